//! What a recovery would do, so that a human can agree to exactly that.
use super::{RecoverRequest, destination::Target, path::GuestPath};
use crate::{
    Call, Error, RecoveryPlan,
    checkpoints::{self, Chosen, Wanted, as_shown},
    clock::ZvmClock,
    protection::{self, Found},
    rewind::Core,
    state::RecoveryRecord,
    text,
};
use jiff::{SignedDuration, Timestamp};

/// Longer than any path that is accepted.
const SHOWN_MAX_LEN: usize = 5_000;

/// A plan, and what is needed to carry it out.
pub(super) struct Planned {
    pub found: Found,
    pub chosen: Chosen,
    pub path: GuestPath,
    pub target: Target,
    pub clock: ZvmClock,
    pub plan: RecoveryPlan,
}

impl Planned {
    /// As it is remembered.
    pub fn record(&self, core: &Core, call: &Call) -> RecoveryRecord {
        let Chosen { vpg, checkpoint } = &self.chosen;
        RecoveryRecord {
            zvm: core.config.zvm(),
            vm_identifier: self.found.vm_identifier.clone(),
            vm_name: self.found.vm.clone(),
            vpg_identifier: vpg.id().to_owned(),
            vpg_name: vpg.vpg.name.clone(),
            checkpoint_id: checkpoint.id.to_string(),
            checkpoint_at: checkpoint.time,
            tag: self.chosen.tag(),
            client: text::remembered(&call.caller),
            change: call.session_change_id.clone(),
            path: self.plan.path.clone(),
        }
    }
}

pub(crate) async fn plan(
    core: &Core,
    request: &RecoverRequest,
    call: &Call,
) -> Result<RecoveryPlan, Error> {
    let work = make(core, request);
    Ok(call
        .watch()
        .during(|| "finding the VM and the checkpoint".to_owned(), work)
        .await?
        .plan)
}

pub(super) async fn make(core: &Core, request: &RecoverRequest) -> Result<Planned, Error> {
    // What can be told without the ZVM comes first.
    let path = GuestPath::parse(&request.path)?;
    let wanted = Wanted::parse(&request.checkpoint)?;
    let found = protection::find(&core.zvm, &request.vm).await?;
    let vpg = request.vpg.as_deref().filter(|vpg| !vpg.trim().is_empty());
    let chosen = checkpoints::choose(core, &found, &wanted, vpg).await?;
    let target = Target::for_path(
        &request.destination,
        &core.config.recover_dir,
        &found.vm,
        chosen.checkpoint.id.0,
        &path,
    )?;
    let clock = ZvmClock::read(&core.zvm).await?;
    let plan = describe(&found, &chosen, &path, &target, clock.at());
    Ok(Planned {
        found,
        chosen,
        path,
        target,
        clock,
        plan,
    })
}

fn describe(
    found: &Found,
    chosen: &Chosen,
    path: &GuestPath,
    target: &Target,
    now: Timestamp,
) -> RecoveryPlan {
    let protection = found.protection();
    let (vm, vpg) = (protection.vm, chosen.vpg.name());
    let checkpoint = chosen.checkpoint.id.to_string();
    let checkpoint_time = as_shown(chosen.checkpoint.time);
    let path = path.to_string();
    let (tag, destination) = (chosen.tag(), target.shown());
    let named = |text: &str| text::named(text, SHOWN_MAX_LEN);
    let summary = format!(
        "Recover from the Zerto journal:\n\
         \u{20} VM           {} ({})\n\
         \u{20} VPG          {}\n\
         \u{20} checkpoint   {checkpoint} of {checkpoint_time}, {age}\n\
         \u{20} tag          {tag}\n\
         \u{20} path         {}\n\
         \u{20} to           {}\n\
         The checkpoint is mounted beside the VM, the path is downloaded to this host, and the checkpoint is unmounted. \
         The VM itself is not changed. Whether the path is in the checkpoint, and how large it is, is known only once it is \
         mounted.",
        named(&vm),
        named(&protection.vm_identifier),
        named(&vpg),
        named(&path),
        named(&destination),
        age = age(now, chosen.checkpoint.time),
        tag = tag
            .as_deref()
            .map_or_else(|| "none".to_owned(), |tag| text::quoted(tag, SHOWN_MAX_LEN)),
    );
    RecoveryPlan {
        summary,
        vm,
        vpg,
        vpg_identifier: chosen.vpg.id().to_owned(),
        checkpoint,
        checkpoint_time,
        tag,
        path,
        destination,
    }
}

/// In the two largest units.
fn age(now: Timestamp, then: Timestamp) -> String {
    let age = now.duration_since(then);
    if age < SignedDuration::ZERO {
        return "which is in the future by the ZVM's clock".to_owned();
    }
    let seconds = age.as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s ago"),
        (0, 0, minutes) => format!("{minutes} min {} s ago", seconds % 60),
        (0, hours, minutes) => format!("{hours} h {minutes} min ago"),
        (days, hours, _) => format!("{days} d {hours} h ago"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_read_well() {
        let then: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        for (seconds, text) in [
            (-5, "which is in the future by the ZVM's clock"),
            (0, "0 s ago"),
            (59, "59 s ago"),
            (61, "1 min 1 s ago"),
            (3_600 + 120, "1 h 2 min ago"),
            (3 * 86_400 + 7_200, "3 d 2 h ago"),
        ] {
            assert_eq!(age(then + SignedDuration::from_secs(seconds), then), text);
        }
    }
}
