//! The part of a recovery that ends in the guest: what it would write there, and writing it.
use super::{
    Outcome, RecoveredFile, RecoveredPath, Scratch,
    path::{GuestPath, shown_path, told_path},
    plan::Subject,
    resolve::{Mounted, Resolved},
    run::{as_seen, downloading, used_by_now},
    scratch::Downloaded,
};
use crate::{
    Call, Done, Error, ErrorCode, GuardRequest, Receipt,
    call::{Doing, Transfer, Watch},
    guard,
    guest::{
        self, Connection, Content, GuestOutcome, InGuest, Restore, Restoring, WayIn, posix_path,
        told_first,
    },
    plan::{Effect, Plan, Source},
    rewind::Core,
    stop::Stops,
    text,
};
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU64, Ordering},
};
use zvm_client::PathKind;

const NOT_CARRIED: &str = "Not carried: access control lists, extended attributes, security labels and further hard links of the file.";
/// Told before and after.
pub(super) const WINDOWS: &str =
    "In a Windows guest nothing is written: its files are downloaded to this host only.";

/// Which of the paths are written in the guest, and what there is to know about the others.
pub(super) struct Divided {
    pub written: Vec<Source>,
    pub placed: Vec<Source>,
    pub notes: Vec<String>,
}

/// Paths of Windows guests are placed on this host.
pub(super) fn divide(sources: Vec<Source>, restore: Option<Restore>) -> Result<Divided, Error> {
    let mut divided = Divided {
        written: Vec::new(),
        placed: Vec::new(),
        notes: Vec::new(),
    };
    for source in sources {
        let windows = matches!(GuestPath::parse(&source.path)?, GuestPath::Windows(..));
        if restore.is_none() || windows {
            divided.placed.push(source);
            continue;
        }
        posix_path(&source.path)?;
        if source.seen.as_ref().is_some_and(|seen| seen.is_folder) {
            return Err(a_folder(&source));
        }
        divided.written.push(source);
    }
    if restore.is_some() && !divided.placed.is_empty() {
        divided.notes.push(WINDOWS.to_owned());
    }
    if !divided.written.is_empty() {
        divided.notes.push(NOT_CARRIED.to_owned());
    }
    Ok(divided)
}

fn a_folder(source: &Source) -> Error {
    let path = told_path(&source.path);
    Error::new(
        ErrorCode::InvalidArgument,
        format!("{path} is a folder, and `restore` writes files"),
    )
    .with_next(format!(
        "Name the files in it, or a pattern such as {path}/*."
    ))
}

/// What would be written in the guest.
pub(super) struct Writes {
    pub effects: Vec<Effect>,
    /// What can't be written as the guest is now, and why.
    pub missing: Vec<(Source, Error)>,
    pub notes: Vec<String>,
}

/// Looks at what is in the guest, and says what would be written there.
pub(super) async fn plan(
    core: &Core,
    subject: &Subject,
    restore: Restore,
    sources: Vec<Source>,
    watch: &Watch<'_>,
) -> Result<Writes, Error> {
    let found = &subject.found;
    let connecting = || format!("connecting to the guest of {}", found.name());
    let reach = async {
        let way = WayIn::require(core, &found.vm, &found.vm_identifier).await?;
        let (connection, notes) = way.connect(core).await?;
        Ok((way, connection, notes))
    };
    let (way, connection, notes) = watch.during(connecting, reach).await?;
    let checkpoint = subject.chosen.checkpoint.id.to_string();
    let (mut effects, mut missing) = (Vec::new(), Vec::new());
    for source in sources {
        let read = AtomicU64::new(0);
        let shown = told_path(&source.path);
        let reading = || Doing {
            message: format!("reading {shown} in the guest"),
            transfer: transferred(&read, None),
        };
        let way = (way.shown(), way.guest.sudo);
        let looking = async {
            let path = source.path.as_str();
            let planned = guest::plan(&connection, way, path, restore, &checkpoint, &read);
            Ok(planned.await?)
        };
        let looked_at = core.state.now();
        match watch.during(reading, looking).await {
            Ok(in_guest) => effects.push(Effect::Write {
                source,
                in_guest,
                looked_at,
            }),
            // About this file, not about the guest.
            Err(error)
                if matches!(
                    error.code,
                    ErrorCode::GuestConflict | ErrorCode::GuestFailed
                ) =>
            {
                missing.push((source, error));
            }
            Err(error) => return Err(told_first(error, &notes)),
        }
    }
    Ok(Writes {
        effects,
        missing,
        notes,
    })
}

fn transferred(bytes: &AtomicU64, total: Option<u64>) -> Option<Transfer> {
    let bytes = bytes.load(Ordering::Relaxed);
    (bytes > 0).then_some(Transfer { bytes, total })
}

/// A guest that is reached, and the guard that was taken first where something is replaced there.
pub(super) struct Reached {
    way: WayIn,
    connection: Connection,
    vm: String,
    vm_identifier: String,
    pub guard: Option<Receipt>,
    pub notes: Vec<String>,
}

/// What has to be there before anything is mounted for a plan that ends in the guest.
pub(super) async fn reach(
    core: &Core,
    plan: &Plan,
    subject: &Subject,
    call: &Call,
    watch: &Watch<'_>,
) -> Result<Option<Reached>, Error> {
    let mut planned = plan.effects().iter().filter_map(in_guest);
    let Some(first) = planned.next() else {
        return Ok(None);
    };
    Stops::of(&core.config.state_dir).check()?;
    let found = &subject.found;
    let connecting = || format!("connecting to the guest of {}", found.name());
    let connect = async {
        let way = WayIn::require(core, &found.vm, &found.vm_identifier).await?;
        if (way.shown(), way.guest.sudo) != (first.guest.as_str(), first.sudo) {
            return Err(Error::new(
                ErrorCode::PlanChanged,
                format!(
                    "since plan {} was made, the way into the guest has changed",
                    plan.id
                ),
            ));
        }
        let (connection, notes) = way.connect(core).await?;
        Ok((way, connection, notes))
    };
    let (way, connection, notes) = watch.during(connecting, connect).await?;
    let replaced: Vec<&Effect> = plan
        .effects()
        .iter()
        .filter(|effect| effect.replaces())
        .collect();
    let guard = match replaced.as_slice() {
        [] => None,
        [first, others @ ..] => {
            let more = match others.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let action = format!(
                "restore {}{more} from checkpoint {}",
                shown_path(&first.source().path),
                plan.checkpoint
            );
            let request = GuardRequest {
                vm: plan.vm_identifier.clone(),
                action,
                agent: None,
                change_id: None,
            };
            // Who comes too late pins nothing in vain.
            if let Some(used) = used_by_now(core, plan).await {
                return Err(told_first(used, &notes));
            }
            let guarded = guard::guard(core, &request, call).await;
            Some(guarded.map_err(|error| told_first(error, &notes))?)
        }
    };
    Ok(Some(Reached {
        way,
        connection,
        vm: found.name(),
        vm_identifier: found.vm_identifier.clone(),
        guard,
        notes,
    }))
}

fn in_guest(effect: &Effect) -> Option<&InGuest> {
    match effect {
        Effect::Write { in_guest, .. } => Some(in_guest),
        Effect::Place { .. } | Effect::Omit { .. } => None,
    }
}

/// A file of the checkpoint that is here, and on its way to the guest.
pub(super) struct OnItsWay {
    downloaded: Downloaded,
    modified: Option<u32>,
    pub guest_path: String,
    pub note: Option<String>,
}

/// Downloads a file that is to be written in the guest.
pub(super) async fn fetch(
    folders: &Mounted<'_>,
    source: &Source,
    scratch: &Scratch,
    watch: &Watch<'_>,
) -> Result<OnItsWay, Error> {
    let shown = told_path(&source.path);
    let resolving = || format!("looking for {shown}");
    let Resolved { item, note } = watch.during(resolving, as_seen(folders, source)).await?;
    if item.kind == PathKind::Folder {
        return Err(a_folder(source));
    }
    if !item.downloadable {
        return Err(super::preview::not_carried(&item));
    }
    let arrived = AtomicU64::new(0);
    let coming = || downloading(&item, arrived.load(Ordering::Relaxed));
    let fetching = scratch.fetch(folders, &item, &arrived);
    let downloaded = watch.during(coming, fetching).await?;
    Ok(OnItsWay {
        downloaded,
        // SFTP has no later ones, and no earlier ones.
        modified: item
            .modified
            .and_then(|at| u32::try_from(at.as_second()).ok()),
        guest_path: text::exact(&item.path, 4096),
        note,
    })
}

impl Reached {
    /// Writes one file in the guest, exactly as it was agreed to.
    pub async fn write(
        &self,
        core: &Core,
        source: &Source,
        planned: &InGuest,
        (checkpoint, coming): (&str, &OnItsWay),
        (call, watch): (&Call, &Watch<'_>),
    ) -> Result<RecoveredPath, Error> {
        let done = AtomicU64::new(0);
        let content = Content {
            file: Arc::new(Mutex::new(coming.downloaded.open()?)),
            bytes: coming.downloaded.bytes,
            sha256: coming.downloaded.sha256.clone(),
            modified: coming.modified,
        };
        let restoring = Restoring {
            core,
            connection: &self.connection,
            way: &self.way,
            vm: &self.vm,
            vm_identifier: &self.vm_identifier,
            cancel: &call.cancel,
            done: &done,
        };
        let shown = told_path(&planned.to);
        let writing = || Doing {
            message: format!("writing {shown} in the guest"),
            transfer: transferred(&done, None),
        };
        // It takes back by itself what it has begun, where it is cancelled.
        let writes = restoring.write(planned, checkpoint, &content);
        let file = watch.to_the_end(writing, writes).await?;
        let name = GuestPath::parse(&source.path)?.name().to_owned();
        Ok(RecoveredPath {
            path: shown_path(&source.path),
            outcome: match file.outcome {
                GuestOutcome::Restored => Outcome::Restored,
                GuestOutcome::Beside => Outcome::Beside,
                GuestOutcome::Unchanged => Outcome::Unchanged,
            },
            why: None,
            guest_path: Some(coming.guest_path.clone()),
            is_folder: false,
            local_path: None,
            bytes: file.bytes,
            files: vec![RecoveredFile {
                path: text::exact(&name, 4096),
                bytes: file.bytes,
                sha256: file.sha256.clone(),
            }],
            skipped: Vec::new(),
            restored: Some(file),
        })
    }

    /// What was done, for an error.
    pub fn done(&self) -> impl Iterator<Item = Done> {
        self.guard.iter().flat_map(guard::pinned)
    }
}
