//! `zerto_recover_file`: files and folders out of a checkpoint, after a human has agreed to exactly that.
use rewind_core::{
    Call, Destination, Error, ErrorCode, How, KnownPlan, Paths, RecoverRequest, Recovery, Rewind,
    Verdict, config::Confirmation, guest::Restore,
};
use rmcp::model::{JsonObject, MetaObject, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{additive, define};
use crate::{
    advice,
    answer::{Answer, Reply},
    person::{Asked, Person},
    text,
};

pub const NAME: &str = "zerto_recover_file";

/// A folder may have so many files that no client would take an answer with all of them.
const FILES_TOLD: usize = 200;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// The VM that the files were on: its name, its hostname, its IP address, or its vmIdentifier. Needed, unless plan_id is given.
    #[schemars(length(min = 1, max = 256))]
    vm: Option<String>,
    /// The file or folder on the VM: "/etc/nginx/nginx.conf" or "C:\inetpub\web.config". Either this or paths is needed, unless
    /// plan_id is given.
    #[schemars(length(min = 1, max = 4096))]
    path: Option<String>,
    /// Several files and folders, or patterns: "/etc/nginx/*.conf", "/srv/**/*.yaml". The human is shown the paths that a pattern
    /// matches, and agrees to those.
    #[schemars(length(min = 1, max = 100), inner(length(min = 1, max = 4096)))]
    paths: Option<Vec<String>>,
    /// The checkpoint: its id or its tag, from a receipt or from zerto_list_checkpoints. Needed, unless plan_id is given.
    #[schemars(length(min = 1, max = 512))]
    checkpoint: Option<String>,
    /// The VPG, where the checkpoint alone does not say it: an id is unique only within its VPG.
    #[schemars(length(min = 1, max = 256))]
    vpg: Option<String>,
    /// Back into the VM's guest over SSH, where the operator has configured a way in, instead of to the host of this server:
    /// "beside" puts each file next to the present one, "replace" in its place, after a guard; what it replaces is kept.
    restore: Option<Restoring>,
    /// Where it lands, within the configured recovery folder. With `path`: the new file or folder itself, its name included; an
    /// existing folder, or one that ends in "/", gets it under its own name. With `paths`, also a single one: the folder that gets
    /// each under its own name. Without it, `<vm>/<checkpoint>/<path>`. What exists already is never overwritten.
    #[schemars(length(min = 1, max = 1024))]
    destination: Option<String>,
    /// The plan that a human has decided on, as an earlier answer named it: that one is carried out, once, as it was shown.
    #[schemars(length(min = 1, max = 32))]
    plan_id: Option<String>,
    /// Decides nothing, unless the operator has configured that the human's word is taken from here. The answer says which.
    confirmed: Option<bool>,
}

// Not documented, so that the schema is one of a string.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Restoring {
    Beside,
    Replace,
}

impl Arguments {
    /// What is asked for; None where only a plan is named.
    fn request(self) -> Result<Option<RecoverRequest>, Error> {
        let invalid =
            |problem: &str| Error::new(ErrorCode::InvalidArgument, format!("{NAME}: {problem}"));
        let nothing = self.vm.is_none()
            && self.path.is_none()
            && self.paths.is_none()
            && self.checkpoint.is_none()
            && self.vpg.is_none()
            && self.restore.is_none()
            && self.destination.is_none();
        if nothing && self.plan_id.is_some() {
            return Ok(None);
        }
        let paths = match (self.path, self.paths) {
            (Some(path), None) => Paths::One(path),
            (None, Some(paths)) => Paths::Several(paths),
            (None, None) => return Err(invalid("the argument `path` is missing, or `paths`")),
            (Some(_), Some(_)) => return Err(invalid("give `path` or `paths`, not both")),
        };
        Ok(Some(RecoverRequest {
            vm: self
                .vm
                .ok_or_else(|| invalid("the argument `vm` is missing"))?,
            paths,
            checkpoint: self
                .checkpoint
                .ok_or_else(|| invalid("the argument `checkpoint` is missing"))?,
            vpg: self.vpg,
            destination: Destination::InRecoverDir(self.destination),
            restore: self.restore.map(|how| match how {
                Restoring::Beside => Restore::Beside,
                Restoring::Replace => Restore::Replace,
            }),
        }))
    }
}

pub fn tool() -> Tool {
    let tool = define::<Arguments, Recovery>(
        NAME,
        "Recover files from a checkpoint",
        "Takes files and folders of a VM back as they were at a checkpoint: mounts the checkpoint (file-level restore), \
         downloads them to the host that this server runs on, and unmounts it again. Nothing on the VM is changed and \
         nothing that exists is overwritten, unless `restore` says to put files back into the VM's guest: then the answer says what \
         became of each, and what you remember of a replaced file is no longer true. A human decides on exactly this first, by a form of the client, or elsewhere: then the \
         answer is `confirmation_required` with a plan_id. Show them its message, wait, and call again with plan_id once they have \
         approved.",
        // `restore` may replace a file, which is kept.
        additive().destructive(true),
    );
    let needs_person = ("anthropic/requiresUserInteraction".to_owned(), true.into());
    tool.with_meta(MetaObject(JsonObject::from_iter([needs_person])))
}

/// Where a human's word comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// A form, and nothing else.
    Form,
    /// Out of band: `zerto-rewind approve`.
    Approve,
    /// The argument `confirmed`.
    Argument,
}

impl Way {
    fn of(confirmation: Confirmation, person: &Person) -> Self {
        match confirmation {
            Confirmation::Auto if person.sees_forms() => Self::Form,
            Confirmation::Auto | Confirmation::Approve => Self::Approve,
            Confirmation::Form => Self::Form,
            Confirmation::Argument => Self::Argument,
        }
    }
}

pub async fn call(
    rewind: &Rewind,
    arguments: Arguments,
    call: &Call,
    person: &Person,
) -> Result<Reply, Error> {
    let plan_id = arguments.plan_id.clone();
    let mut confirmed = arguments.confirmed.unwrap_or(false);
    let request = arguments.request()?;
    let errand = Errand::new(rewind, call, person);
    let (mut known, mut approved) = errand.begin(plan_id.as_deref(), request.as_ref()).await?;
    let mut before = None;
    loop {
        if !approved {
            // What patterns match is agreed to only once it was shown.
            let word = confirmed && (plan_id.is_some() || !known.plan.was_previewed());
            confirmed = false;
            let decided = errand.decide(&known, word).await;
            if let Some(reply) = decided.map_err(|error| anew(error, before.as_deref()))? {
                return Ok(reply);
            }
        }
        if !known.plan.is_preview() {
            let mut recovery = rewind.recover(&known.plan.id, call).await?;
            shorten(&mut recovery);
            recovery.error = recovery.error.as_ref().map(advice::completed);
            let text = text::recovery(&recovery);
            return Ok(Reply::Done(match recovery.error {
                None => Answer::new(&recovery, text),
                Some(_) => Answer::failed(&recovery, text),
            }));
        }
        let next = errand.plan(&known.plan.asked).await?;
        before = next.plan.is_preview().then_some(known.plan.id);
        known = next;
        approved = known.approved()?;
    }
}

/// Says why a human is asked about a look again: it was agreed to with the plan `before`, and that does not hold for who calls.
pub(super) fn anew(mut error: Error, before: Option<&str>) -> Error {
    if let (ErrorCode::ConfirmationRequired, Some(id)) = (error.code, before) {
        error.message = format!(
            "What was agreed to with plan {id} holds for the session that it was asked for, and not for this one, or not any more: it \
             is asked about anew.\n{}",
            error.message
        );
    }
    error
}

/// A call that a human has to decide on.
pub(super) struct Errand<'a> {
    rewind: &'a Rewind,
    call: &'a Call,
    person: &'a Person,
    way: Way,
}

impl<'a> Errand<'a> {
    pub(super) fn new(rewind: &'a Rewind, call: &'a Call, person: &'a Person) -> Self {
        Self {
            rewind,
            call,
            person,
            way: Way::of(rewind.config().confirmation, person),
        }
    }

    /// The plan that the call is about, and whether it is approved.
    async fn begin(
        &self,
        plan_id: Option<&str>,
        request: Option<&RecoverRequest>,
    ) -> Result<(KnownPlan, bool), Error> {
        let recovers = |known: &KnownPlan| known.is_for_recovery();
        if let Some(named) = self.named(plan_id, request, recovers).await? {
            return Ok(named);
        }
        let Some(request) = request else {
            return Err(Error::new(
                ErrorCode::InvalidArgument,
                format!("{NAME}: the argument `vm` is missing"),
            ));
        };
        let known = self.plan(request).await?;
        match known.approved()? {
            true => Err(waits(&known)),
            false => Ok((known, false)),
        }
    }

    /// The plan that a form was about, or that the call names; and whether it is approved.
    /// What is refused here was asked for by naming a plan, and is written down so.
    pub(super) async fn named(
        &self,
        plan_id: Option<&str>,
        request: Option<&RecoverRequest>,
        fits: impl Fn(&KnownPlan) -> Result<(), Error>,
    ) -> Result<Option<(KnownPlan, bool)>, Error> {
        let named = self.find_named(plan_id, request).await;
        let fitting = named.and_then(|named| {
            named.as_ref().map_or(Ok(()), |(known, _)| fits(known))?;
            Ok(named)
        });
        if let (Err(error), Some(id)) = (&fitting, plan_id) {
            self.rewind.plan_refused(id, self.call, error).await;
        }
        fitting
    }

    async fn find_named(
        &self,
        plan_id: Option<&str>,
        request: Option<&RecoverRequest>,
    ) -> Result<Option<(KnownPlan, bool)>, Error> {
        if let Some(returned) = self.person.returned(self.rewind).await? {
            let known = returned.known;
            if plan_id.is_some_and(|id| !id.trim().eq_ignore_ascii_case(&known.plan.id)) {
                return Err(Error::new(
                    ErrorCode::PlanAltered,
                    format!("the form was about plan {}, not this one", known.plan.id),
                ));
            }
            request.map_or(Ok(()), |request| known.asked_as(request))?;
            let approved = match (known.approved()?, returned.verdict) {
                (false, Some(verdict)) => {
                    self.said(&known, verdict).await?;
                    true
                }
                (approved, _) => approved,
            };
            return Ok(Some((known, approved)));
        }
        let Some(id) = plan_id else { return Ok(None) };
        let known = self.rewind.plan(id).await?;
        request.map_or(Ok(()), |request| known.asked_as(request))?;
        let approved = known.approved()?;
        Ok(Some((known, approved)))
    }

    async fn plan(&self, request: &RecoverRequest) -> Result<KnownPlan, Error> {
        match self.way {
            Way::Approve => self.rewind.plan_recovery_once(request, self.call).await,
            _ => self.rewind.plan_recovery(request, self.call).await,
        }
    }

    /// None: a human has agreed. Else the reply that asks them. What they decide elsewhere is asked for by an error.
    pub(super) async fn decide(
        &self,
        known: &KnownPlan,
        word: bool,
    ) -> Result<Option<Reply>, Error> {
        match self.way {
            Way::Argument if word => {
                let by = self.person.by();
                let decided = self
                    .rewind
                    .decide(known, Verdict::Approved, How::Argument, &by);
                decided.await.map(|_| None)
            }
            Way::Argument => Err(asks_for_argument(known)),
            Way::Approve => Err(asks_elsewhere(known)),
            Way::Form => match self.person.ask(self.rewind, known, self.call).await? {
                Asked::Said(verdict) => self.said(known, verdict).await.map(|()| None),
                Asked::Later(question) => Ok(Some(Reply::Ask(question))),
                Asked::NotShown => Err(asks_for_form(known)),
            },
        }
    }

    /// Writes down what the form said. An error, unless it agreed.
    async fn said(&self, known: &KnownPlan, verdict: Verdict) -> Result<(), Error> {
        let by = self.person.by();
        self.rewind.decide(known, verdict, How::Form, &by).await?;
        match verdict {
            Verdict::Approved => Ok(()),
            _ => self
                .rewind
                .plan(&known.plan.id)
                .await?
                .approved()
                .map(|_| ()),
        }
    }
}

fn required(known: &KnownPlan, next: String) -> Error {
    let message = known.plan.summary(&known.digest);
    Error::new(ErrorCode::ConfirmationRequired, message)
        .with_next(next)
        .with_plan(&known.plan.id)
}

fn asks_elsewhere(known: &KnownPlan) -> Error {
    let id = &known.plan.id;
    required(
        known,
        format!(
            "Show the message to a human, word for word, and wait. They decide at a terminal of their own, with \
             `zerto-rewind approve {id}` or `zerto-rewind deny {id}`: these are theirs to run, not yours. Once they have approved, \
             call again with `plan_id: \"{id}\"`. `confirmed` decides nothing here."
        ),
    )
}

fn asks_for_argument(known: &KnownPlan) -> Error {
    let id = &known.plan.id;
    required(
        known,
        format!(
            "Show the message to a human, word for word; only when they agree to exactly this, call again with \
             `plan_id: \"{id}\"` and `confirmed: true`."
        ),
    )
}

fn asks_for_form(known: &KnownPlan) -> Error {
    let next = "A human has to decide by a form, and this MCP client shows no forms. Tell them. `confirmed` decides nothing here.";
    required(known, next.to_owned())
}

/// It was approved, and the call does not name it.
fn waits(known: &KnownPlan) -> Error {
    let id = &known.plan.id;
    Error::new(
        ErrorCode::ConfirmationRequired,
        format!("a human has approved plan {id} for exactly this; it waits to be carried out"),
    )
    .with_next(format!("Call again with `plan_id: \"{id}\"`."))
    .with_plan(id)
}

fn shorten(recovery: &mut Recovery) {
    let mut notes = Vec::new();
    for path in recovery.one.iter_mut().chain(&mut recovery.paths) {
        for (list, count) in [
            ("files", path.files.len()),
            ("members that were left out", path.skipped.len()),
        ] {
            if count > FILES_TOLD {
                let of =
                    rewind_core::text::named_exactly(&path.path, rewind_core::text::PATH_MAX_LEN);
                notes.push(format!(
                    "{of}: only the first {FILES_TOLD} of {count} {list} are told here."
                ));
            }
        }
        path.files.truncate(FILES_TOLD);
        path.skipped.truncate(FILES_TOLD);
    }
    recovery.notes.append(&mut notes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use rewind_core::{Outcome, RecoveredFile, RecoveredPath, Timing};

    #[test]
    fn a_folder_of_many_files_is_told_in_part() {
        let file = |index: usize| RecoveredFile {
            path: format!("{index}"),
            bytes: 1,
            sha256: String::new(),
        };
        let mut recovery = Recovery {
            plan_id: String::new(),
            vm: String::new(),
            vpg: String::new(),
            checkpoint: String::new(),
            checkpoint_time: String::new(),
            tag: None,
            one: Some(RecoveredPath {
                path: "/srv".into(),
                outcome: Outcome::Placed,
                why: None,
                guest_path: None,
                is_folder: true,
                local_path: None,
                bytes: 1000,
                files: (0..1000).map(file).collect(),
                skipped: vec!["link".into()],
                restored: None,
            }),
            paths: Vec::new(),
            guard_tag: None,
            still_open: None,
            notes: Vec::new(),
            timing: Timing::default(),
            error: None,
        };
        shorten(&mut recovery);
        assert_eq!(
            recovery.notes,
            ["/srv: only the first 200 of 1000 files are told here."]
        );
        let one = recovery.one.unwrap();
        assert_eq!((one.files.len(), one.skipped.len()), (200, 1));
        assert_eq!(one.bytes, 1000);
    }
}
