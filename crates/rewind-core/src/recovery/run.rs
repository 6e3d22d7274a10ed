//! The steps of a recovery, once a human has confirmed.
use super::{
    RecoverRequest, RecoveredFile, Recovery, StillOpen, Timing,
    contents::Contents,
    destination::Place,
    download::{Downloading, Recovered},
    leftovers::{Noted, note},
    orphans::make_way,
    plan::{Planned, make},
    resolve::{Mounted, Resolved, name_of, resolve},
    session::{Mount, Session, mounted},
};
use crate::{
    Call, Error, ErrorCode, RecoveryPlan,
    call::{Doing, Transfer, Watch},
    ledger::list_digest,
    rewind::Core,
    state::{Asked, Placed, PlacingId, RecoveryId, Refusal},
    text,
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::time::{Instant, timeout};
use zvm_client::{FlrSessionId, PathItem, PathKind};

/// A caller that cancelled is not kept waiting for the ZVM.
const CLOSE_AFTER_CANCEL: Duration = Duration::from_secs(15);
const SHOWN_MAX_LEN: usize = 500;

pub(crate) async fn recover(
    core: &Arc<Core>,
    request: &RecoverRequest,
    call: &Call,
) -> Result<Recovery, Error> {
    let watch = call.watch();
    let mut timing = Timing::default();
    let begun = begin(core, request, call, &watch, &mut timing).await;
    let Begun {
        planned,
        noted,
        place,
        recovery,
    } = match begun {
        Ok(begun) => begun,
        Err(error) => {
            core.refused(refusal(core, request, call, &error)).await;
            return Err(error);
        }
    };
    let mounting = || format!("mounting checkpoint {}", planned.plan.checkpoint);
    let mount = Mount::of(&planned.found, &planned.chosen, planned.clock);
    let mut session = Session::begin(core, mount);
    let result = match watch.during(mounting, session.opened()).await {
        Ok(id) => with_session(core, &planned, (recovery, place), &id, &watch, &mut timing).await,
        Err(error) => {
            drop(place);
            Err(error)
        }
    };
    noted.left(core).await;

    let began = Instant::now();
    let cancelled = matches!(&result, Err(error) if error.code == ErrorCode::Cancelled);
    let closed = if cancelled {
        timeout(CLOSE_AFTER_CANCEL, session.close())
            .await
            .unwrap_or_else(|_| still_unmounting())
    } else {
        let unmounting = || "unmounting the checkpoint".to_owned();
        // A cancellation from here on comes too late to change anything but the waiting.
        watch
            .during(unmounting, async { Ok(session.close().await) })
            .await
            .unwrap_or_else(|_| still_unmounting())
    };
    timing.unmount = began.elapsed().as_secs_f64();
    timing.total = watch.seconds();
    ended(core, recovery, &result).await;

    let (item, recovered) =
        result.map_err(|error| about(error, &planned.plan).with_done(session.done(&closed)))?;
    Ok(Recovery {
        vm: planned.plan.vm,
        vpg: planned.plan.vpg,
        checkpoint: planned.plan.checkpoint,
        checkpoint_time: planned.plan.checkpoint_time,
        tag: planned.plan.tag,
        guest_path: text::exact(&item.path, 4096),
        is_folder: item.kind == PathKind::Folder,
        local_path: recovered.local.to_string_lossy().into_owned(),
        bytes: recovered.files.iter().map(|file| file.bytes).sum(),
        files: recovered.files.into_iter().map(shown).collect(),
        skipped: recovered.skipped,
        notes: recovered.notes,
        still_open: closed.err().map(|why| still_open(&session, why)),
        timing,
    })
}

/// A recovery that is about to mount.
struct Begun {
    planned: Planned,
    noted: Noted,
    place: Place,
    recovery: RecoveryId,
}

/// What comes before the mount.
async fn begin(
    core: &Arc<Core>,
    request: &RecoverRequest,
    call: &Call,
    watch: &Watch<'_>,
    timing: &mut Timing,
) -> Result<Begun, Error> {
    let planned = watch
        .during(
            || "finding the VM and the checkpoint".to_owned(),
            make(core, request),
        )
        .await?;
    if !request.confirmed {
        return Err(Error::new(
            ErrorCode::ConfirmationRequired,
            planned.plan.summary,
        ));
    }
    timing.find = watch.seconds();

    let busy = || {
        format!(
            "making sure that no other session is open on {}",
            text::named(&planned.plan.vm, SHOWN_MAX_LEN)
        )
    };
    watch
        .during(busy, make_way(core, &planned.found.vm_identifier))
        .await?;
    let noted = note(core, planned.target.work_place()).await?;
    match ready(core, &planned, call).await {
        Ok((place, recovery)) => Ok(Begun {
            planned,
            noted,
            place,
            recovery,
        }),
        Err(error) => {
            noted.left(core).await;
            Err(error)
        }
    }
}

async fn ready(core: &Core, planned: &Planned, call: &Call) -> Result<(Place, RecoveryId), Error> {
    let place = planned.target.clone().prepare()?;
    let record = planned.record(core, call);
    let recovery = core
        .with_state(move |state| state.recovery_beginning(&record))
        .await?;
    Ok((place, recovery))
}

fn refusal(core: &Core, request: &RecoverRequest, call: &Call, error: &Error) -> Refusal {
    Refusal {
        vm: text::remembered(&request.vm),
        ..core.refusal(Asked::Recovery, call, error)
    }
}

/// What was recovered is true whether its end can be remembered or not.
async fn ended<T>(core: &Core, recovery: RecoveryId, result: &Result<T, Error>) {
    let failure = result.as_ref().err().map(|error| error.code.as_str());
    let ended = core.with_state(move |state| state.recovery_ended(recovery, failure));
    if let Err(error) = ended.await {
        tracing::warn!(%error, "how a recovery ended can't be remembered");
    }
}

/// A file's path is the ZVM's text: bounded, and with what can't be seen in it as an escape.
fn shown(file: RecoveredFile) -> RecoveredFile {
    RecoveredFile {
        path: text::exact(&file.path, SHOWN_MAX_LEN),
        ..file
    }
}

/// What went wrong says to what.
fn about(mut error: Error, plan: &RecoveryPlan) -> Error {
    match error.code {
        ErrorCode::FlrFailed => {
            let RecoveryPlan {
                vm,
                vpg,
                checkpoint,
                ..
            } = plan;
            let (vm, vpg) = (
                text::named(vm, SHOWN_MAX_LEN),
                text::named(vpg, SHOWN_MAX_LEN),
            );
            error.message = format!(
                "{vm}, checkpoint {checkpoint} of VPG {vpg}: {}",
                error.message
            );
        }
        ErrorCode::DownloadIncomplete => {
            error.message = format!(
                "{}: {}",
                text::named(&plan.path, SHOWN_MAX_LEN),
                error.message
            )
        }
        _ => {}
    }
    error
}

/// Nobody waits for it any longer; it goes on in the background.
fn still_unmounting() -> Result<(), String> {
    Err("it was still being unmounted when nobody waited for it any more".to_owned())
}

fn still_open(session: &Session, why: String) -> StillOpen {
    StillOpen {
        session: session.shown(),
        why,
        next: "Put the reason right or unmount the session in the ZVM's own interface. Every further command of this \
               user that talks to the ZVM tries to unmount it, too."
            .to_owned(),
    }
}

async fn with_session(
    core: &Core,
    planned: &Planned,
    (recovery, mut place): (RecoveryId, Place),
    session: &FlrSessionId,
    watch: &Watch<'_>,
    timing: &mut Timing,
) -> Result<(PathItem, Recovered), Error> {
    let mounting = || {
        format!(
            "waiting until checkpoint {} is mounted",
            planned.plan.checkpoint
        )
    };
    watch.during(mounting, mounted(core, session)).await?;
    timing.mount = watch.seconds() - timing.find;

    let began = Instant::now();
    let folders = Mounted::new(&core.zvm, session);
    let resolving = || {
        format!(
            "looking for {}",
            text::named(&planned.plan.path, SHOWN_MAX_LEN)
        )
    };
    let Resolved { item, note } = watch
        .during(resolving, resolve(&folders, &planned.path))
        .await?;
    let contents = match item.kind {
        PathKind::Folder => Some(
            watch
                .during(resolving, Contents::of(&folders, &item))
                .await?,
        ),
        _ => None,
    };
    timing.resolve = began.elapsed().as_secs_f64();
    if !item.downloadable {
        let reason = item.reason.as_deref().map_or_else(
            || "no reason given".to_owned(),
            |why| text::quoted(why, 300),
        );
        return Err(Error::new(
            ErrorCode::NotDownloadable,
            format!(
                "{} can't be downloaded: {reason}",
                text::named(&item.path, 1_000)
            ),
        ));
    }

    let began = Instant::now();
    let arrived = AtomicU64::new(0);
    let downloading = || downloading(&item, arrived.load(Ordering::Relaxed));
    let downloading_item = Downloading {
        zvm: &core.zvm,
        session,
        item: &item,
        arrived: &arrived,
    };
    let (guest_path, destination) = (text::exact(&item.path, 4096), place.shown());
    let placing = core
        .with_state(move |state| state.placing(recovery, &guest_path, &destination))
        .await?;
    let arriving = downloading_item.to(&mut place, contents.as_ref());
    let arrived = watch.during(downloading, arriving).await;
    placed(core, placing, &item, &arrived).await;
    let mut recovered = arrived?;
    recovered.notes.extend(note);
    timing.download = began.elapsed().as_secs_f64();
    Ok((item, recovered))
}

/// As [`ended`].
async fn placed(
    core: &Core,
    placing: PlacingId,
    item: &PathItem,
    arrived: &Result<Recovered, Error>,
) {
    let result = match arrived {
        Ok(recovered) => Ok(Placed {
            files: recovered.files.len() as u64,
            bytes: recovered.files.iter().map(|file| file.bytes).sum(),
            sha256: list_digest(&recovered.files, item.kind == PathKind::Folder),
        }),
        Err(error) => Err(error.code.as_str()),
    };
    let placed = core.with_state(move |state| {
        let result = result.as_ref().map_err(|code| *code);
        state.placed(placing, result)
    });
    if let Err(error) = placed.await {
        tracing::warn!(%error, "what was placed can't be remembered");
    }
}

fn downloading(item: &PathItem, bytes: u64) -> Doing {
    Doing {
        message: format!("downloading {}", text::named(name_of(item), 100)),
        transfer: Some(Transfer {
            bytes,
            total: item.size.filter(|_| item.kind != PathKind::Folder),
        }),
    }
}
