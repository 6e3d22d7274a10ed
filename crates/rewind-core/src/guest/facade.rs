//! Undoing a restore, as the commands use it.
use super::{
    Connection, Present, RestoredFile, Restoring, WayIn,
    leftovers::told_first,
    names::undone,
    restore::{plan_undo, undoable},
};
use crate::{
    Call, Error, ErrorCode, GuardRequest, Receipt, Rewind, guard,
    plan::summary::row,
    protection::{self, Found},
    state::GuestWrite,
    text,
};
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::atomic::{AtomicU64, Ordering};

/// What undoing a restore would do, precisely enough for a person to agree to it.
#[derive(Clone, Debug)]
pub struct UndoPlan {
    /// The text that a person has to agree to.
    pub summary: String,
    /// The restore that is undone.
    pub restore_id: String,
    /// What else there is to know, such as what an interrupted restore had left.
    pub notes: Vec<String>,
    earlier: GuestWrite,
    present: Present,
}

/// What undoing a restore came to.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Undone {
    /// The restore that was undone.
    pub restore_id: String,
    /// The name that the ZVM reports.
    pub vm: String,
    /// The way in, as the configuration has it.
    pub guest: String,
    /// What was put back, where it is, and where what it replaced is kept.
    pub file: RestoredFile,
    /// The guard that was taken first.
    pub guard: Receipt,
    /// What else there is to know.
    pub notes: Vec<String>,
}

impl Rewind {
    /// Whether a restore can be undone, as far as that can be told without its guest. Asks the state alone.
    ///
    /// # Errors
    /// `not_found`: no such restore; `invalid_argument`: it was undone already, or it replaced nothing; `state`.
    pub async fn may_be_undone(&self, id: &str) -> Result<(), Error> {
        undoable(&self.core, id, false).await.map(drop)
    }

    /// Looks at what a restore has left in the guest, and says what undoing it would do. Writes nothing there.
    ///
    /// # Errors
    /// `not_found`, `invalid_argument`: as [`may_be_undone`](Self::may_be_undone), or it failed; `guest_conflict`: what is there now is not what it left;
    /// `guest_not_configured`, `guest_unreachable`, `guest_failed`, and those of [`find`](Self::find).
    pub async fn plan_undo(&self, id: &str, call: &Call) -> Result<UndoPlan, Error> {
        let watch = call.watch();
        let looking = || "looking at what is in the guest".to_owned();
        let work = async {
            let earlier = undoable(&self.core, id, false).await?;
            let (_, _, connection, notes) = self.reach(&earlier).await?;
            // What was interrupted is known now.
            let undoable = undoable(&self.core, id, true).await;
            let read = &AtomicU64::new(0);
            let looked = async {
                let earlier = undoable?;
                let present = plan_undo(&connection, &earlier, read).await?;
                Ok::<_, Error>((earlier, present))
            };
            // Told in any case: it is said once.
            let (earlier, present) = looked.await.map_err(|error| told_first(error, &notes))?;
            Ok(UndoPlan {
                summary: summary(&earlier, &present),
                restore_id: earlier.name.clone(),
                notes,
                earlier,
                present,
            })
        };
        watch.during(looking, work).await
    }

    /// Guards the VM, and puts back what a restore has replaced, if everything is as it was planned.
    ///
    /// # Errors
    /// `stopped`; those of [`plan_undo`](Self::plan_undo) and of [`guard`](Self::guard).
    pub async fn undo_restore(&self, plan: &UndoPlan, call: &Call) -> Result<Undone, Error> {
        let earlier = &plan.earlier;
        let request = GuardRequest {
            vm: earlier.vm_identifier.clone(),
            action: format!("undo restore {} of {}", earlier.name, earlier.path),
            agent: None,
            change_id: None,
        };
        let receipt = self.guard_unless_stopped(request, call).await?;
        let done = AtomicU64::new(0);
        let watch = call.watch();
        let putting = || {
            let bytes = text::bytes(done.load(Ordering::Relaxed));
            format!("putting back what was replaced ({bytes} compared)")
        };
        let connecting = || "connecting to the guest".to_owned();
        let work = async {
            let reached = watch.during(connecting, self.reach(earlier)).await?;
            let (found, way, connection, notes) = reached;
            let restoring = Restoring {
                core: &self.core,
                connection: &connection,
                way: &way,
                vm: &found.name(),
                vm_identifier: &found.vm_identifier,
                cancel: &call.cancel,
                done: &done,
            };
            // Once it has begun, it is brought to its end.
            let undoing = restoring.undo(earlier, &plan.present);
            let undone = watch.to_the_end(putting, undoing).await;
            let file = undone.map_err(|error| told_first(error, &notes))?;
            Ok::<_, Error>((way.shown().to_owned(), file, notes))
        };
        let worked = work.await;
        let (guest, file, notes) =
            worked.map_err(|error| error.with_done(guard::pinned(&receipt)))?;
        Ok(Undone {
            restore_id: earlier.name.clone(),
            vm: earlier.vm.clone(),
            guest,
            file,
            guard: receipt,
            notes,
        })
    }

    /// The guest that a restore was made in.
    async fn reach(
        &self,
        earlier: &GuestWrite,
    ) -> Result<(Found, WayIn, Connection, Vec<String>), Error> {
        let found = protection::find(&self.core.zvm, &earlier.vm_identifier).await?;
        let way = WayIn::require(&self.core, &found.vm, &found.vm_identifier).await?;
        if way.shown() != earlier.guest {
            return Err(Error::new(
                ErrorCode::GuestConflict,
                format!(
                    "restore {} was made over {}, and `guests` names {} for this VM now",
                    earlier.name,
                    text::named_exactly(&earlier.guest, 200),
                    text::named_exactly(way.shown(), 200)
                ),
            )
            .with_next("Undo it by hand in the guest, or name the same guest again."));
        }
        let (connection, notes) = way.connect(&self.core).await?;
        Ok((found, way, connection, notes))
    }
}

fn summary(earlier: &GuestWrite, present: &Present) -> String {
    let path = text::named_exactly(&earlier.target, 4096);
    let mut text = "Undo a restore in a guest:\n".to_owned();
    row!(
        text,
        "VM",
        "{} ({})",
        earlier.vm,
        text::display(&earlier.vm_identifier, 256)
    );
    row!(
        text,
        "guest",
        "{}",
        text::named_exactly(&earlier.guest, 200)
    );
    row!(
        text,
        "restore",
        "{}, from checkpoint {}",
        earlier.name,
        earlier.checkpoint
    );
    row!(text, "file", "{path}");
    let Present {
        bytes,
        sha256,
        attributes,
    } = present;
    row!(
        text,
        "is now",
        "{}, SHA-256 {sha256}, {attributes}",
        text::bytes(*bytes)
    );
    let away = text::exact(&undone(&earlier.target, sha256), 4096);
    match (&earlier.copy, &earlier.previous_sha256) {
        (Some(kept), Some(before)) => {
            row!(
                text,
                "put back",
                "{}, SHA-256 {before}",
                text::named_exactly(kept, 4096)
            );
            row!(text, "kept", "what is there now, as {away}");
        }
        _ => row!(text, "moved away", "to {away}; nothing was there before"),
    }
    text.push_str(
        "The VM is guarded first. What is in the guest must still be this, or nothing is changed.",
    );
    text
}
