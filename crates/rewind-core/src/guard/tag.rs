//! The one tag of a guard: checked before anything is asked of the ZVM, and its own in every journal.
use super::{
    GuardRequest,
    look::{AHEAD, Others, RECENT},
};
use crate::{
    Call, Error, ErrorCode,
    checkpoints::{around, later},
    clock::ZvmClock,
    protection::Found,
    rewind::Core,
    tag::{AGENT_MAX_LEN, Tag, TagError, TagFields},
    text,
};
use futures::{TryFutureExt, future::try_join_all};
use jiff::Timestamp;
use std::time::Duration;
use zvm_client::{Checkpoint, Zvm};

/// Guards of one agent, action, VM and change in one second.
const SECONDS_MAX: usize = 100;

/// Who does what, checked.
#[derive(Debug)]
pub(crate) struct Intent {
    pub agent: String,
    pub action: String,
    pub change: String,
}

impl Intent {
    /// The agent and the change are as in the tag.
    pub fn checked(core: &Core, request: &GuardRequest, call: &Call) -> Result<Self, Error> {
        let mut intent = Self {
            agent: agent(
                core.config.agent.as_deref(),
                request.agent.as_deref(),
                &call.caller,
            ),
            action: request.action.clone(),
            change: given(request.change_id.as_deref())
                .unwrap_or(&call.session_change_id)
                .to_owned(),
        };
        let tag = intent.tag("vm", Timestamp::UNIX_EPOCH)?;
        intent.agent = tag.agent().to_owned();
        intent.change = tag.change().to_owned();
        Ok(intent)
    }

    fn tag(&self, vm: &str, at: Timestamp) -> Result<Tag, Error> {
        let fields = TagFields {
            agent: &self.agent,
            action: &self.action,
            vm,
            change: &self.change,
            at,
        };
        Tag::build(&fields).map_err(unusable)
    }
}

/// A name fixed in the configuration wins; only a name that nobody chose is cut to fit.
fn agent(configured: Option<&str>, requested: Option<&str>, caller: &str) -> String {
    match configured.or_else(|| given(requested)) {
        Some(agent) => agent.to_owned(),
        None => match text::display(caller, AGENT_MAX_LEN) {
            caller if caller.is_empty() => "unknown".to_owned(),
            caller => caller,
        },
    }
}

/// Clients send empty text for an argument that they leave out.
pub(crate) fn given(argument: Option<&str>) -> Option<&str> {
    argument.filter(|text| !text.trim().is_empty())
}

fn unusable(error: TagError) -> Error {
    match error {
        TagError::Time { .. } => Error::new(ErrorCode::ZvmError, error.to_string()),
        _ => Error::new(ErrorCode::InvalidArgument, error.to_string()),
    }
}

/// The tag of a guard, and what was seen when it was chosen.
pub(super) struct ChosenTag {
    pub tag: Tag,
    pub clock: ZvmClock,
    /// Of each VPG, in the order in which they were found.
    pub others: Vec<Others>,
}

/// The tag at the ZVM's time; where exactly this tag was used before, at the next second that is free.
pub(super) async fn choose(
    core: &Core,
    zvm: &Zvm,
    found: &Found,
    intent: &Intent,
) -> Result<ChosenTag, Error> {
    let clock = ZvmClock::read(zvm).await?;
    let mut tag = intent.tag(&found.vm, clock.at())?;
    let window = around(clock.at(), RECENT, AHEAD);
    let journals = try_join_all(found.vpgs.iter().map(|vpg| {
        zvm.checkpoints(vpg.id(), window)
            .map_err(|error| vpg.failed(error))
    }))
    .await?;
    let listed: Vec<&str> = journals
        .iter()
        .flatten()
        .filter_map(|row| row.tag.as_deref())
        .collect();
    for _ in 0..SECONDS_MAX {
        // The state knows the tags of this user's other guards that are not listed yet.
        if !listed.iter().any(|listed| tag.same_as(listed)) && intended(core, found, &tag).await? {
            let others = |rows: &Vec<Checkpoint>| Others::listed(window.from, rows);
            return Ok(ChosenTag {
                tag,
                clock,
                others: journals.iter().map(others).collect(),
            });
        }
        tag = tag
            .with_at(later(tag.at(), Duration::from_secs(1)))
            .map_err(unusable)?;
    }
    Err(Error::new(
        ErrorCode::InvalidArgument,
        "too many guards with the same agent, action, VM and change id at once",
    )
    .with_next("Give each change an id of its own."))
}

/// Written down before anything is inserted. False: another guard has this tag.
async fn intended(core: &Core, found: &Found, tag: &Tag) -> Result<bool, Error> {
    let (zvm, vm, tag) = (
        core.config.zvm(),
        found.vm_identifier.clone(),
        tag.to_string(),
    );
    core.with_state(move |state| state.guard_intended(&zvm, &vm, &tag))
        .await
}
