//! A look into a checkpoint: who permits it, and what is written down of it before anything is mounted.
use super::{path::shown_path, plan::Subject};
use crate::{
    Call, Error, ErrorCode,
    approver::Approver,
    config::Previews,
    plan::{PREVIEW_LIFE, Plan},
    rewind::Core,
    state::{LookId, LookRecord},
    text,
};

/// What permits a look.
pub(crate) struct Permission {
    /// The plan that was agreed to. None: nobody has to agree.
    agreed: Option<String>,
}

/// Whether who calls may look into the plan's checkpoint: nobody has to be asked, or somebody has agreed to it for who calls, not longer
/// ago than [`PREVIEW_LIFE`] and not before the approver's passphrase was last set or removed. `agreed` names a preview that counts whoever asked
/// for it.
pub(crate) async fn permission(
    core: &Core,
    plan: &Plan,
    call: &Call,
    agreed: Option<&str>,
) -> Result<Option<Permission>, Error> {
    if core.config.previews == Previews::Free {
        return Ok(Some(Permission { agreed: None }));
    }
    let (plan, seat, now) = (plan.clone(), call.seat.clone(), core.state.now());
    let named = agreed.map(str::to_owned);
    let approver = Approver::of(&core.config.state_dir);
    let agreed = core.with_state(move |state| {
        let since = approver.changed()?.max(Some(now - PREVIEW_LIFE));
        state.preview_approved(&plan, &seat, named.as_deref(), since.unwrap_or(now), now)
    });
    Ok(agreed.await?.map(|agreed| Permission {
        agreed: Some(agreed),
    }))
}

/// Looks that are written down as begun.
pub(crate) struct Looks(Vec<LookId>);

impl Looks {
    /// Writes down what is about to be looked for. Where that is not possible, nothing may be mounted.
    pub async fn begin(
        core: &Core,
        subject: &Subject,
        call: &Call,
        permission: &Permission,
        paths: impl Iterator<Item = String>,
        compared_with: Option<String>,
    ) -> Result<Self, Error> {
        let (found, chosen) = (&subject.found, &subject.chosen);
        let record = |path: String| LookRecord {
            zvm: core.config.zvm(),
            vm_identifier: found.vm_identifier.clone(),
            vm_name: found.name(),
            vpg_identifier: chosen.vpg.id().to_owned(),
            vpg_name: chosen.vpg.name(),
            checkpoint_id: chosen.checkpoint.id.to_string(),
            client: text::remembered(&call.caller),
            change: call.session_change_id.clone(),
            agreed: permission.agreed.clone(),
            path: shown_path(&path),
            compared_with: compared_with.clone(),
        };
        let looks: Vec<_> = paths.map(record).collect();
        let begun = core.with_state(move |state| state.looks_beginning(&looks));
        Ok(Self(begun.await?))
    }

    /// Writes down how they ended. Without this the next process to come says that they were interrupted.
    pub async fn end(self, core: &Core, failure: Option<ErrorCode>) {
        let ended = core
            .with_state(move |state| state.looks_ended(&self.0, failure.map(ErrorCode::as_str)));
        if let Err(error) = ended.await {
            core.not_written_down("how this look ended", &error);
        }
    }
}
