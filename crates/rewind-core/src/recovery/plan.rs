//! What a recovery would do, so that a human can agree to exactly that; and whether it still is so.
use super::{
    Destination, Paths, RecoverRequest,
    destination::{Naming, Target},
    in_guest::{self, divide},
    look::permission,
    path::{GuestPath, told_path},
    preview::{Found as Sources, Wanted},
};
use crate::{
    Call, Error, ErrorCode,
    call::Watch,
    checkpoints::{self, Chosen, as_shown, expected_until},
    clock::ZvmClock,
    guest::told_first,
    plan::{Decides, Effect, PLAN_LIFE, Plan, Present, Purpose, Source, new_id},
    protection::{self, Found},
    rewind::Core,
    text,
};
use jiff::{SignedDuration, Timestamp};
use std::sync::Arc;

/// A plan of what is asked for: a preview, where patterns have to be looked for and nobody has agreed to that, else the effects.
/// Where somebody has, the checkpoint is mounted to look for them, and unmounted. `agreed` names a preview for just this request.
pub(crate) async fn make(
    core: &Arc<Core>,
    request: &RecoverRequest,
    call: &Call,
    agreed: Option<&str>,
) -> Result<Plan, Error> {
    let watch = call.watch();
    // What can be told without the ZVM comes first.
    let wanted = Wanted::parse(&request.paths, request.restore)?;
    let checkpoint = checkpoints::Wanted::parse(&request.checkpoint)?;
    utf8(&request.destination)?;
    one_place(request)?;
    let finding = || "finding the VM and the checkpoint".to_owned();
    let find = Subject::find(core, &request.vm, &checkpoint, request.vpg.as_deref());
    let subject = watch.during(finding, find).await?;
    let patterns = wanted.patterns();
    let mut plan = subject.plan(core, request);
    let sources = if patterns.is_empty() {
        wanted.unseen()
    } else if let Some(permission) = permission(core, &plan, call, agreed).await? {
        Box::pin(wanted.look(core, &subject, &permission, call)).await?
    } else {
        plan.decides = Decides::Preview {
            looks_for: patterns,
            purpose: Purpose::Recovery,
        };
        return Ok(plan);
    };
    let Sources {
        sources,
        mut missing,
        notes,
    } = sources;
    let divided = divide(sources, request.restore)?;
    let mut effects = subject.place(core, request, divided.placed)?;
    plan.notes = notes;
    plan.notes.extend(divided.notes);
    if let Some(restore) = request.restore
        && !divided.written.is_empty()
    {
        let writes = in_guest::plan(core, &subject, restore, divided.written, &watch).await?;
        effects.extend(writes.effects);
        missing.extend(writes.missing);
        if effects.is_empty() {
            return Err(nothing_left(missing, &writes.notes));
        }
        plan.notes.extend(writes.notes);
    }
    if effects.is_empty() {
        return Err(nothing_left(missing, &[]));
    }
    effects.extend(missing.into_iter().map(|(source, error)| Effect::Omit {
        source,
        code: error.code,
        why: error.message,
    }));
    plan.decides = Decides::Effects { effects };
    Ok(plan)
}

/// None of the paths can be recovered: why the first can't. `notes` are told once.
fn nothing_left(missing: Vec<(Source, Error)>, notes: &[String]) -> Error {
    let first = missing.into_iter().next().map(|(_, error)| error);
    let error = first
        .unwrap_or_else(|| Error::new(ErrorCode::InvalidArgument, "there is nothing to recover"));
    told_first(error, notes)
}

/// Back in the guest, or here.
fn one_place(request: &RecoverRequest) -> Result<(), Error> {
    let named = match &request.destination {
        Destination::InRecoverDir(inside) => inside.is_some(),
        Destination::Folder(_) => true,
    };
    match request.restore {
        Some(_) if named => Err(Error::new(
            ErrorCode::InvalidArgument,
            "a destination on this host and `restore` exclude each other",
        )
        .with_next("Leave one of them out.")),
        _ => Ok(()),
    }
}

/// What is needed to carry a plan out.
pub(super) struct Verified {
    pub subject: Subject,
    /// One per effect; none for what ends in the guest.
    pub targets: Vec<Option<Target>>,
}

/// Whether a plan would be made in the same way now.
pub(super) async fn verify(
    core: &Arc<Core>,
    plan: &Plan,
    watch: &Watch<'_>,
) -> Result<Verified, Error> {
    let checkpoint = checkpoints::Wanted::parse(&plan.checkpoint)?;
    let finding = || "finding the VM and the checkpoint".to_owned();
    let find = Subject::find(
        core,
        &plan.vm_identifier,
        &checkpoint,
        Some(&plan.vpg_identifier),
    );
    let subject = watch.during(finding, find).await?;
    let mut now = subject.plan(core, &plan.asked);
    now.decides = plan.decides.clone();
    if let Some(what) = plan.changed_in(&now) {
        return Err(Error::new(
            ErrorCode::PlanChanged,
            format!("since plan {} was made, this has changed: {what}", plan.id),
        ));
    }
    let targets = plan.effects().iter().map(|effect| match effect {
        Effect::Place { to, within, .. } => {
            Target::agreed(to.as_ref(), within.as_deref().map(AsRef::as_ref)).map(Some)
        }
        Effect::Write { .. } | Effect::Omit { .. } => Ok(None),
    });
    Ok(Verified {
        targets: targets.collect::<Result<_, _>>()?,
        subject,
    })
}

/// One VM and one checkpoint of it, as the ZVM has them now.
pub(crate) struct Subject {
    pub found: Found,
    pub chosen: Chosen,
    pub clock: ZvmClock,
}

impl Subject {
    pub async fn find(
        core: &Core,
        vm: &str,
        checkpoint: &checkpoints::Wanted,
        vpg: Option<&str>,
    ) -> Result<Self, Error> {
        let found = protection::find(&core.zvm, vm).await?;
        let vpg = vpg.filter(|vpg| !vpg.trim().is_empty());
        let chosen = checkpoints::choose(core, &found, checkpoint, vpg).await?;
        let clock = ZvmClock::read(&core.zvm).await?;
        Ok(Self {
            found,
            chosen,
            clock,
        })
    }

    /// A plan that does nothing yet.
    pub fn plan(&self, core: &Core, asked: &RecoverRequest) -> Plan {
        let (chosen, now) = (&self.chosen, core.state.now());
        let time = chosen.checkpoint.time;
        Plan {
            id: new_id(),
            zvm: core.config.zvm(),
            vm: self.found.name(),
            vm_identifier: self.found.vm_identifier.clone(),
            vpg: chosen.vpg.name(),
            vpg_identifier: chosen.vpg.id().to_owned(),
            checkpoint: chosen.checkpoint.id.to_string(),
            checkpoint_time: as_shown(time),
            checkpoint_age: age(self.clock.at(), time, now),
            expected_until: expected_until(&chosen.vpg.vpg, time),
            tag: chosen.tag(),
            decides: Decides::Effects {
                effects: Vec::new(),
            },
            notes: Vec::new(),
            asked: asked.clone(),
            asked_by: None,
            made_at: now,
            expires_at: now + PLAN_LIFE,
        }
    }

    fn place(
        &self,
        core: &Core,
        request: &RecoverRequest,
        sources: Vec<Source>,
    ) -> Result<Vec<Effect>, Error> {
        let several = matches!(request.paths, Paths::Several(_));
        let mut effects = Vec::new();
        let mut places: Vec<(String, String)> = Vec::new();
        for source in sources {
            let path = GuestPath::parse(&source.path)?;
            let folders = path.folders();
            let naming = Naming {
                folders: &folders,
                vm: &self.found.vm,
                checkpoint: self.chosen.checkpoint.id.0,
                name: path.name(),
                several,
            };
            let target = Target::new(&request.destination, &core.config.recover_dir, &naming)?;
            let to = target.written()?;
            apart(&places, &source.path, &to)?;
            places.push((source.path.clone(), to.clone()));
            effects.push(Effect::Place {
                source,
                to,
                within: target.within()?,
                now: Present::Nothing,
            });
        }
        Ok(effects)
    }
}

/// Two paths that would land at one place, or one within the other, can't both be placed.
fn apart(places: &[(String, String)], path: &str, to: &str) -> Result<(), Error> {
    let inside = |outer: &str, inner: &str| std::path::Path::new(inner).starts_with(outer);
    let Some((other, _)) = places
        .iter()
        .find(|(_, place)| inside(place, to) || inside(to, place))
    else {
        return Ok(());
    };
    Err(Error::new(
        ErrorCode::InvalidArgument,
        format!(
            "{} and {} would land at the same place",
            told_path(other),
            told_path(path)
        ),
    )
    .with_next("Leave one of them out, or the destination: without one, each path gets a place of its own."))
}

/// A plan is text, so what it names has to be.
fn utf8(destination: &Destination) -> Result<(), Error> {
    match destination {
        Destination::Folder(folder) if folder.to_str().is_none() => Err(Error::new(
            ErrorCode::InvalidArgument,
            format!(
                "the destination {} is no UTF-8",
                text::named(&folder.to_string_lossy(), 4096)
            ),
        )),
        _ => Ok(()),
    }
}

/// In the two largest units, as of a moment that is named: the text is read later. `now` and `then` are by the ZVM's clock.
fn age(now: Timestamp, then: Timestamp, made_at: Timestamp) -> String {
    let age = now.duration_since(then);
    if age < SignedDuration::ZERO {
        return format!(
            "which was in the future by the ZVM's clock when this plan was made at {made_at:.0}"
        );
    }
    let seconds = age.as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    let age = match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, minutes) => format!("{minutes} min {} s", seconds % 60),
        (0, hours, minutes) => format!("{hours} h {minutes} min"),
        (days, hours, _) => format!("{days} d {hours} h"),
    };
    format!("{age} before this plan was made at {made_at:.0}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_read_well() {
        let then: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        for (seconds, text) in [
            (
                -5,
                "which was in the future by the ZVM's clock when this plan was",
            ),
            (0, "0 s before this plan was"),
            (59, "59 s before this plan was"),
            (61, "1 min 1 s before this plan was"),
            (3_600 + 120, "1 h 2 min before this plan was"),
            (3 * 86_400 + 7_200, "3 d 2 h before this plan was"),
        ] {
            let now = then + SignedDuration::from_secs(seconds);
            assert_eq!(
                age(now, then, then),
                format!("{text} made at 2026-01-01T00:00:00Z")
            );
        }
    }
}
