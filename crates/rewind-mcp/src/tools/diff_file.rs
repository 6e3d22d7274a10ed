//! `zerto_diff_file`: what changed between a checkpoint and now, once a human has agreed to look into the checkpoint.
use rewind_core::{Call, DiffRequest, Error, ErrorCode, FileDiff, KnownPlan, Paths, Rewind};
use rmcp::model::Tool;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    additive, define,
    recover_file::{Errand, anew},
};
use crate::{
    answer::{Answer, Reply},
    person::Person,
    text,
};

pub const NAME: &str = "zerto_diff_file";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// The VM that the file is on: its name, its hostname, its IP address, or its vmIdentifier. Needed, unless plan_id is given.
    #[schemars(length(min = 1, max = 256))]
    vm: Option<String>,
    /// The file or folder on the VM: "/etc/nginx/nginx.conf" or "C:\inetpub\web.config". Needed, unless plan_id is given.
    #[schemars(length(min = 1, max = 4096))]
    path: Option<String>,
    /// The checkpoint: its id or its tag, from a receipt or from zerto_list_checkpoints. Needed, unless plan_id is given.
    #[schemars(length(min = 1, max = 512))]
    checkpoint: Option<String>,
    /// The VPG, where the checkpoint alone does not say it: an id is unique only within its VPG.
    #[schemars(length(min = 1, max = 256))]
    vpg: Option<String>,
    /// The plan that a human has decided on, as an earlier answer named it.
    #[schemars(length(min = 1, max = 32))]
    plan_id: Option<String>,
    /// Decides nothing, unless the operator has configured that the human's word is taken from here. The answer says which.
    confirmed: Option<bool>,
}

impl Arguments {
    /// What is asked for; None where only a plan is named.
    fn request(self) -> Result<Option<DiffRequest>, Error> {
        let nothing = self.vm.is_none()
            && self.path.is_none()
            && self.checkpoint.is_none()
            && self.vpg.is_none();
        if nothing && self.plan_id.is_some() {
            return Ok(None);
        }
        let missing = |name: &str| invalid(&format!("the argument `{name}` is missing"));
        Ok(Some(DiffRequest {
            vm: self.vm.ok_or_else(|| missing("vm"))?,
            path: self.path.ok_or_else(|| missing("path"))?,
            checkpoint: self.checkpoint.ok_or_else(|| missing("checkpoint"))?,
            vpg: self.vpg,
        }))
    }
}

fn invalid(problem: &str) -> Error {
    Error::new(ErrorCode::InvalidArgument, format!("{NAME}: {problem}"))
}

pub fn tool() -> Tool {
    define::<Arguments, FileDiff>(
        NAME,
        "Compare a file with a checkpoint",
        "Says what changed in a file or folder of a VM since a checkpoint: a unified diff of text; size, times and \
         SHA-256 of any other file; what was added, removed and changed in a folder. It is compared with the guest itself \
         where a way into it over SSH is configured, else with the journal's latest checkpoint, and the answer says which. \
         Mounts the checkpoint (file-level restore) and unmounts it again; nothing is placed anywhere and nothing on the VM \
         is changed. A human decides first, once per checkpoint: by a form of the client, or elsewhere; then the answer is \
         `confirmation_required` with a plan_id.",
        additive(),
    )
}

pub async fn call(
    rewind: &Rewind,
    arguments: Arguments,
    call: &Call,
    person: &Person,
) -> Result<Reply, Error> {
    let confirmed = arguments.confirmed.unwrap_or(false);
    let plan_id = arguments.plan_id.clone();
    let request = arguments.request()?;
    let asked = request.as_ref().map(DiffRequest::asked);
    let errand = Errand::new(rewind, call, person);
    let named = errand
        .named(plan_id.as_deref(), asked.as_ref(), |known| {
            of_plan(known).map(drop)
        })
        .await?;
    let request = match (request, &named) {
        (Some(request), _) => request,
        (None, Some((known, _))) => of_plan(known)?,
        (None, None) => return Err(invalid("the argument `vm` is missing")),
    };
    let mut before = None;
    let open = match named {
        Some((known, false)) => Some(known),
        // An agreement holds for the session that asked.
        Some((known, true)) => {
            before = Some(known.plan.id);
            rewind.plan_diff(&request, call).await?
        }
        None => rewind.plan_diff(&request, call).await?,
    };
    if let Some(known) = open
        && !known.approved()?
    {
        let decided = errand.decide(&known, confirmed).await;
        if let Some(reply) = decided.map_err(|error| anew(error, before.as_deref()))? {
            return Ok(reply);
        }
    }
    let diff = rewind.diff(&request, call).await?;
    Ok(Reply::Done(Answer::new(&diff, text::diff(&diff))))
}

fn of_plan(known: &KnownPlan) -> Result<DiffRequest, Error> {
    let asked = &known.plan.asked;
    match &asked.paths {
        Paths::One(path) if known.plan.is_preview() => Ok(DiffRequest {
            vm: asked.vm.clone(),
            path: path.clone(),
            checkpoint: asked.checkpoint.clone(),
            vpg: asked.vpg.clone(),
        }),
        _ => Err(Error::new(
            ErrorCode::PlanAltered,
            format!("plan {} is none for a comparison", known.plan.id),
        )),
    }
}
