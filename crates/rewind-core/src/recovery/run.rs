//! Carries out a plan that a human has agreed to.
use super::{
    Outcome, RecoveredFile, RecoveredPath, Recovery, Timing,
    contents::Contents,
    destination::{Place, Target},
    download::{Downloading, Recovered},
    in_guest::{OnItsWay, Reached, WINDOWS, fetch, reach},
    leftovers::note,
    mounting::{Ended, free, while_mounted},
    path::{GuestPath, shown_path, told_path},
    plan::{Subject, Verified, verify},
    preview::not_carried,
    resolve::{Mounted, Resolved, name_of, resolve},
    scratch::Scratch,
    session::Mount,
};
use crate::{
    Call, Done, Error, ErrorCode, KnownPlan, Paths,
    call::{Doing, Transfer, Watch},
    checkpoints::{self, Chosen},
    guest::told_first,
    ledger::list_digest,
    plan::{Effect, Plan, PlanEnd, Seen, Source},
    protection,
    rewind::Core,
    state::{Begun, Placed, PlacingId, RecoveryId, RecoveryRecord},
    text,
};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use tokio::time::Instant;
use zvm_client::{FlrSessionId, PathItem, PathKind};

const SHOWN_MAX_LEN: usize = 500;
/// More incomplete folders than these are counted in an error; each is in the result.
const INCOMPLETE_NAMED: usize = 3;

pub(crate) async fn recover(
    core: &Arc<Core>,
    known: &KnownPlan,
    call: &Call,
) -> Result<Recovery, Error> {
    let watch = call.watch();
    let mut work = Work {
        core,
        plan: &known.plan,
        watch: &watch,
        timing: Timing::default(),
        recoveries: Vec::new(),
        placed: Vec::new(),
        notes: Vec::new(),
    };
    let mut result = Box::pin(prepare(&mut work, known, call)).await;
    if work.recoveries.is_empty() {
        if let Err(error) = result {
            result = Err(unless_used(core, &known.plan, error).await);
        }
        if let Err(error) = &result {
            core.plan_refused(&known.plan, call, error).await;
        }
    }
    result
}

/// Why a plan was not begun. Where another caller has begun it meanwhile, it is that: what this one met, such as a session that is open or
/// a place that is taken, is that caller's doing.
async fn unless_used(core: &Core, plan: &Plan, error: Error) -> Error {
    // Where the state can't be written, it may be this one that has begun it.
    if matches!(
        error.code,
        ErrorCode::Cancelled | ErrorCode::PlanUsed | ErrorCode::State
    ) {
        return error;
    }
    match used_by_now(core, plan).await {
        Some(used) => used.with_done(error.done),
        None => error,
    }
}

/// `plan_used`, where it is known by now that somebody has begun it. That nobody else does is certain only once it is begun.
pub(super) async fn used_by_now(core: &Core, plan: &Plan) -> Option<Error> {
    let (zvm, name) = (plan.zvm.clone(), plan.id.clone());
    let row = core.with_state(move |state| state.plan_named(&zvm, &name));
    let now = KnownPlan::read(row.await.ok()??, core.state.now());
    now.ok()?.used()
}

async fn prepare(work: &mut Work<'_>, known: &KnownPlan, call: &Call) -> Result<Recovery, Error> {
    let (core, plan, watch) = (work.core, work.plan, work.watch);
    if !known.approved()? || plan.is_preview() {
        return Err(not_approved(plan));
    }
    let Verified { subject, targets } = verify(core, plan, watch).await?;
    let mount = Mount::of(&subject.found, &subject.chosen, subject.clock);
    work.timing.find = watch.seconds();
    free(core, &mount, &plan.vm, watch).await?;
    let scratch = match plan
        .effects()
        .iter()
        .any(|effect| matches!(effect, Effect::Write { .. }))
    {
        true => Some(Scratch::new(core).await?),
        false => None,
    };
    let places = targets.iter().flatten().map(Target::work_place).collect();
    let noted = note(core, places).await?;
    let result = work
        .carry_out(known, &subject, targets, scratch.as_ref(), call)
        .await;
    if let Some(scratch) = scratch {
        scratch.gone(core).await;
    }
    noted.left(core).await;
    result
}

/// What has become of an effect so far.
enum Step {
    Done(RecoveredPath),
    /// It is here, and still to be written in the guest.
    Coming(OnItsWay),
}

impl Step {
    fn done(self) -> Option<RecoveredPath> {
        match self {
            Self::Done(path) => Some(path),
            Self::Coming(_) => None,
        }
    }
}

fn not_approved(plan: &Plan) -> Error {
    Error::new(
        ErrorCode::ConfirmationRequired,
        format!("nobody has agreed to plan {}", plan.id),
    )
    .with_plan(&plan.id)
}

/// What is about to be recovered, as it is remembered.
fn records(plan: &Plan, mount: &Mount, call: &Call) -> Vec<RecoveryRecord> {
    let Chosen { vpg, checkpoint } = &mount.chosen;
    let record = |effect: &Effect| RecoveryRecord {
        plan: plan.id.clone(),
        zvm: plan.zvm.clone(),
        vm_identifier: plan.vm_identifier.clone(),
        vm_name: plan.vm.clone(),
        vpg_identifier: plan.vpg_identifier.clone(),
        vpg_name: vpg.vpg.name.clone(),
        checkpoint_id: plan.checkpoint.clone(),
        checkpoint_at: checkpoint.time,
        tag: plan.tag.clone(),
        client: text::remembered(&call.caller),
        change: call.session_change_id.clone(),
        path: shown_path(&effect.source().path),
    };
    plan.effects().iter().map(record).collect()
}

async fn begin(
    core: &Core,
    known: &KnownPlan,
    recoveries: Vec<RecoveryRecord>,
) -> Result<Vec<RecoveryId>, Error> {
    let (plan, digest, now) = (known.plan.clone(), known.digest.clone(), core.state.now());
    let begun = core
        .with_state(move |state| state.plan_begun(&plan, &digest, now))
        .await?;
    match begun {
        Begun::Now => {
            let name = known.plan.id.clone();
            let beginning = core.with_state(move |state| {
                let beginning = state.recoveries_beginning(&recoveries);
                if beginning.is_err() {
                    // It is used up, and nothing of it will be done. Where that can't be written either, the first error says why.
                    let _ = state.plan_ended(&name, PlanEnd::Failed);
                }
                beginning
            });
            beginning.await
        }
        Begun::Before => Err(Error::new(
            ErrorCode::PlanUsed,
            format!(
                "plan {} is being carried out already, or was",
                known.plan.id
            ),
        )),
        Begun::NotApproved if now >= known.plan.expires_at => Err(known.expired_error()),
        Begun::NotApproved => Err(not_approved(&known.plan)),
    }
}

/// Writes down what became of it. Without this the next process to come says that it was interrupted; and what was recovered is true
/// whether that can be remembered or not.
async fn end(
    core: &Core,
    plan: &Plan,
    recoveries: Vec<RecoveryId>,
    result: Result<&[RecoveredPath], &Error>,
) {
    let (outcome, failure) = match result {
        Ok(paths) if paths.iter().all(|path| path.outcome.is_recovered()) => (PlanEnd::Done, None),
        Ok(_) => (PlanEnd::NotAll, None),
        Err(error) => (PlanEnd::Failed, Some(error.code)),
    };
    let plan = plan.id.clone();
    let ended = core.with_state(move |state| {
        // Those that were not come to; what became of the others is written down.
        let failure = failure.map(ErrorCode::as_str);
        let mut recoveries = recoveries.into_iter();
        let others = recoveries.try_for_each(|recovery| state.recovery_ended(recovery, failure));
        state.plan_ended(&plan, outcome)?;
        others
    });
    if let Err(error) = ended.await {
        core.not_written_down("how this recovery ended", &error);
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
fn about(mut error: Error, plan: &Plan) -> Error {
    if error.code == ErrorCode::FlrFailed {
        let Plan {
            vm,
            vpg,
            checkpoint,
            ..
        } = plan;
        error.message = format!(
            "{}, checkpoint {checkpoint} of VPG {}: {}",
            text::named(vm, SHOWN_MAX_LEN),
            text::named(vpg, SHOWN_MAX_LEN),
            error.message
        );
    }
    error
}

struct Work<'a> {
    core: &'a Arc<Core>,
    plan: &'a Plan,
    watch: &'a Watch<'a>,
    timing: Timing,
    /// One for each effect, once the plan is begun.
    recoveries: Vec<RecoveryId>,
    /// What is on this host, or in the guest, already.
    placed: Vec<Done>,
    notes: Vec<String>,
}

impl Work<'_> {
    async fn carry_out(
        &mut self,
        known: &KnownPlan,
        subject: &Subject,
        targets: Vec<Option<Target>>,
        scratch: Option<&Scratch>,
        call: &Call,
    ) -> Result<Recovery, Error> {
        let (core, plan, watch) = (self.core, self.plan, self.watch);
        let prepared = targets
            .into_iter()
            .map(|target| target.map(Target::prepare).transpose());
        let places = prepared.collect::<Result<Vec<_>, _>>()?;
        let began = watch.seconds();
        let guest = reach(core, plan, subject, call, watch).await?;
        let pinned = || guest.iter().flat_map(Reached::done);
        let mount = Mount::of(&subject.found, &subject.chosen, subject.clock);
        // From here on it counts as carried out, whatever happens.
        let begun = begin(core, known, records(plan, &mount, call)).await;
        let told = guest.as_ref().map_or(&[][..], |guest| &guest.notes);
        self.recoveries = begun.map_err(|error| told_first(error.with_done(pinned()), told))?;
        let reached = watch.seconds();
        if guest.is_some() {
            self.timing.guard = reached - began;
        }
        let (result, ended) = while_mounted(core, mount, watch, async |session| {
            self.timing.mount = watch.seconds() - reached;
            self.all(session, places, scratch).await
        })
        .await;
        self.timing.unmount = ended.seconds;
        let result = match (result, &guest) {
            (Ok(steps), Some(guest)) => self.write(steps, guest, call).await,
            (Ok(steps), None) => Ok(steps.into_iter().filter_map(Step::done).collect()),
            (Err(error), _) => Err(error),
        };
        end(core, plan, self.recoveries.clone(), result.as_deref()).await;
        self.timing.total = watch.seconds();
        match result {
            Ok(paths) => Ok(self.finished(paths, guest.as_ref(), &ended)),
            Err(error) => {
                let placed = self.placed.iter().cloned();
                let done = pinned().chain(placed).chain(ended.done());
                Err(told_first(about(error, plan).with_done(done), told))
            }
        }
    }

    /// Each effect in turn. What goes wrong with one of several is its own outcome; a cancellation ends all.
    async fn all(
        &mut self,
        session: &FlrSessionId,
        places: Vec<Option<Place>>,
        scratch: Option<&Scratch>,
    ) -> Result<Vec<Step>, Error> {
        let folders = Mounted::new(&self.core.zvm, session);
        let one = matches!(self.plan.asked.paths, Paths::One(_));
        let mut steps = Vec::new();
        let mut gone = false;
        let recoveries = self.recoveries.clone();
        let effects = self.plan.effects().iter().zip(places).zip(recoveries);
        for ((effect, place), recovery) in effects {
            let source = effect.source();
            let result = match (effect, place, scratch) {
                (Effect::Omit { code, why, .. }, ..) => Err(Error::new(*code, why)),
                _ if gone => Err(self.left_the_journal()),
                (_, Some(place), _) => {
                    let placed = self.place(&folders, source, place, recovery).await;
                    placed.map(Step::Done)
                }
                (_, None, Some(scratch)) => self.fetch(&folders, source, scratch).await,
                (_, None, None) => Err(Error::new(
                    ErrorCode::DestinationUnusable,
                    "there is no folder for what is on its way to the guest",
                )),
            };
            match &result {
                Ok(Step::Coming(_)) => {}
                Ok(Step::Done(path)) => {
                    let all = path.outcome.is_recovered();
                    let failure = (!all).then_some(ErrorCode::NotAllRecovered);
                    self.ended(recovery, failure).await;
                }
                Err(error) => self.ended(recovery, Some(error.code)).await,
            }
            match result {
                Ok(step) => steps.push(step),
                Err(error) if one || error.code == ErrorCode::Cancelled => return Err(error),
                Err(error) => {
                    let outcome = match error.code {
                        ErrorCode::DestinationExists | ErrorCode::GuestConflict => {
                            Outcome::Conflict
                        }
                        _ if matches!(effect, Effect::Omit { .. }) => Outcome::Failed,
                        _ if gone => Outcome::Expired,
                        // About this host or the plan, not about the checkpoint.
                        ErrorCode::DestinationUnusable
                        | ErrorCode::PlanChanged
                        | ErrorCode::State => Outcome::Failed,
                        _ if self.has_left_the_journal().await => Outcome::Expired,
                        _ => Outcome::Failed,
                    };
                    gone |= outcome == Outcome::Expired;
                    steps.push(Step::Done(not_placed(source, outcome, &error)));
                }
            }
        }
        Ok(steps)
    }

    async fn fetch(
        &mut self,
        folders: &Mounted<'_>,
        source: &Source,
        scratch: &Scratch,
    ) -> Result<Step, Error> {
        let began = Instant::now();
        let coming = fetch(folders, source, scratch, self.watch).await?;
        self.timing.download += began.elapsed().as_secs_f64();
        let note = coming.note.clone();
        self.note(&shown_path(&source.path), note.into_iter());
        Ok(Step::Coming(coming))
    }

    /// Writes what has come in the guest, file by file.
    async fn write(
        &mut self,
        steps: Vec<Step>,
        guest: &Reached,
        call: &Call,
    ) -> Result<Vec<RecoveredPath>, Error> {
        let one = matches!(self.plan.asked.paths, Paths::One(_));
        let began = Instant::now();
        let mut paths = Vec::new();
        let effects = self.plan.effects().iter().zip(steps);
        for ((effect, step), recovery) in effects.zip(self.recoveries.clone()) {
            let (
                Step::Coming(coming),
                Effect::Write {
                    source, in_guest, ..
                },
            ) = (&step, effect)
            else {
                paths.extend(step.done());
                continue;
            };
            let from = (self.plan.checkpoint.as_str(), coming);
            let to = format!(
                "{} in the guest of {}",
                shown_path(&in_guest.to),
                self.plan.vm
            );
            let written = async {
                let placing = self.placing(recovery, &coming.guest_path, to).await?;
                let asked = (call, self.watch);
                let written = guest.write(self.core, source, in_guest, from, asked).await;
                let files = written.as_ref().map(|path| path.files.as_slice());
                self.placed(placing, files, false).await;
                written
            };
            let written = written.await;
            let failure = written.as_ref().err().map(|error| error.code);
            self.ended(recovery, failure).await;
            match written {
                Ok(path) => {
                    self.tell(&path);
                    paths.push(path);
                }
                Err(error) if one || error.code == ErrorCode::Cancelled => return Err(error),
                Err(error) => {
                    let outcome = match error.code {
                        ErrorCode::GuestConflict => Outcome::Conflict,
                        _ => Outcome::Failed,
                    };
                    paths.push(not_placed(source, outcome, &error));
                }
            }
        }
        self.timing.write = began.elapsed().as_secs_f64();
        Ok(paths)
    }

    /// What has to be known of a file that was written in the guest.
    fn tell(&mut self, path: &RecoveredPath) {
        let Some(file) = &path.restored else { return };
        self.note(&path.path, file.notes.iter().cloned());
        let written = told_path(&file.path);
        if path.outcome == Outcome::Restored {
            self.notes.push(format!(
                "{written} on {} is no longer what it was before: read it again before working with it.",
                self.plan.vm
            ));
        }
        if path.outcome != Outcome::Unchanged {
            self.placed.push(Done::Restored {
                path: written,
                restore_id: file.restore_id.clone(),
            });
        }
    }

    async fn place(
        &mut self,
        folders: &Mounted<'_>,
        source: &Source,
        mut place: Place,
        recovery: RecoveryId,
    ) -> Result<RecoveredPath, Error> {
        let told = told_path(&source.path);
        let began = Instant::now();
        let resolving = || format!("looking for {told}");
        let Resolved { item, note } = self
            .watch
            .during(resolving, as_seen(folders, source))
            .await?;
        let contents = match item.kind {
            PathKind::Folder => {
                let listing = Contents::of(folders, &item);
                Some(self.watch.during(resolving, listing).await?)
            }
            _ => None,
        };
        self.timing.resolve += began.elapsed().as_secs_f64();
        if !item.downloadable {
            return Err(not_carried(&item));
        }

        let destination = shown_path(&place.path().to_string_lossy());
        let guest_path = text::exact(&item.path, 4096);
        let placing = self.placing(recovery, &guest_path, destination).await?;
        let began = Instant::now();
        let arrived = AtomicU64::new(0);
        let downloading = || downloading(&item, arrived.load(Ordering::Relaxed));
        let downloading_item = Downloading {
            zvm: folders.zvm,
            session: folders.session,
            item: &item,
            arrived: &arrived,
        };
        let arriving = downloading_item.to(&mut place, contents.as_ref());
        let recovered = self.watch.during(downloading, arriving).await;
        self.timing.download += began.elapsed().as_secs_f64();
        let files = recovered
            .as_ref()
            .map(|recovered| recovered.files.as_slice());
        self.placed(placing, files, contents.is_some()).await;
        let Recovered {
            local,
            files,
            skipped,
            notes,
        } = recovered.map_err(|mut error| {
            if error.code == ErrorCode::DownloadIncomplete {
                error.message = format!("{told}: {}", error.message);
            }
            error
        })?;
        self.note(&told, notes.into_iter().chain(note));
        let local = local.to_string_lossy().into_owned();
        self.placed.push(Done::Placed {
            path: shown_path(&source.path),
            local_path: local.clone(),
        });
        Ok(RecoveredPath {
            path: shown_path(&source.path),
            outcome: match skipped.is_empty() {
                true => Outcome::Placed,
                false => Outcome::Incomplete,
            },
            why: None,
            guest_path: Some(guest_path),
            is_folder: item.kind == PathKind::Folder,
            local_path: Some(local),
            bytes: files.iter().map(|file| file.bytes).sum(),
            files: files.into_iter().map(shown).collect(),
            skipped,
            restored: None,
        })
    }

    async fn ended(&self, recovery: RecoveryId, failure: Option<ErrorCode>) {
        let failure = failure.map(ErrorCode::as_str);
        let ended = self
            .core
            .with_state(move |state| state.recovery_ended(recovery, failure));
        if let Err(error) = ended.await {
            tracing::warn!(%error, "how the recovery of a path ended can't be remembered");
        }
    }

    async fn placing(
        &self,
        recovery: RecoveryId,
        guest_path: &str,
        destination: String,
    ) -> Result<PlacingId, Error> {
        let guest_path = guest_path.to_owned();
        self.core
            .with_state(move |state| state.placing(recovery, &guest_path, &destination))
            .await
    }

    async fn placed(
        &self,
        placing: PlacingId,
        files: Result<&[RecoveredFile], &Error>,
        is_folder: bool,
    ) {
        let result = match files {
            Ok(files) => Ok(Placed {
                files: files.len() as u64,
                bytes: files.iter().map(|file| file.bytes).sum(),
                sha256: list_digest(files, is_folder),
            }),
            Err(error) => Err(error.code.as_str()),
        };
        let placed = self.core.with_state(move |state| {
            let result = result.as_ref().map_err(|code| *code);
            state.placed(placing, result)
        });
        if let Err(error) = placed.await {
            tracing::warn!(%error, "what was placed can't be remembered");
        }
    }

    /// Of several paths, a note says which.
    fn note(&mut self, path: &str, notes: impl Iterator<Item = String>) {
        let one = matches!(self.plan.asked.paths, Paths::One(_));
        self.notes.extend(notes.map(|note| match one {
            true => note,
            false => format!("{path}: {note}"),
        }));
    }

    /// Whether the checkpoint is surely not in the journal any more.
    async fn has_left_the_journal(&self) -> bool {
        let zvm = &self.core.zvm;
        let listed = async {
            let found = protection::find(zvm, &self.plan.vm_identifier).await?;
            let wanted = checkpoints::Wanted::parse(&self.plan.checkpoint)?;
            checkpoints::choose(self.core, &found, &wanted, Some(&self.plan.vpg_identifier)).await
        };
        let gone = |error: Error| error.code == ErrorCode::CheckpointGone;
        let looking = || "looking whether the checkpoint is still in the journal".to_owned();
        self.watch
            .during(looking, listed)
            .await
            .err()
            .is_some_and(gone)
    }

    fn left_the_journal(&self) -> Error {
        let Plan {
            checkpoint, vpg, ..
        } = self.plan;
        Error::new(
            ErrorCode::CheckpointGone,
            format!(
                "checkpoint {checkpoint} has left the journal of VPG {}",
                text::named(vpg, SHOWN_MAX_LEN)
            ),
        )
    }

    fn finished(
        &mut self,
        paths: Vec<RecoveredPath>,
        guest: Option<&Reached>,
        ended: &Ended,
    ) -> Recovery {
        let plan = self.plan;
        let error = not_all(&paths).map(|error| error.with_done(self.placed.clone()));
        let guard = guest.and_then(|guest| guest.guard.as_ref());
        let before = guest.iter().flat_map(|guest| guest.notes.iter().cloned());
        self.notes.extend(before);
        let placed = |effect: &Effect| matches!(effect, Effect::Place { .. });
        if plan.asked.restore.is_some() && plan.effects().iter().any(placed) {
            self.notes.push(WINDOWS.to_owned());
        }
        let (one, paths) = match plan.asked.paths {
            Paths::One(_) => (paths.into_iter().next(), Vec::new()),
            Paths::Several(_) => (None, paths),
        };
        Recovery {
            plan_id: plan.id.clone(),
            vm: plan.vm.clone(),
            vpg: plan.vpg.clone(),
            checkpoint: plan.checkpoint.clone(),
            checkpoint_time: plan.checkpoint_time.clone(),
            tag: plan.tag.clone(),
            one,
            paths,
            guard_tag: guard.map(|receipt| receipt.tag.clone()),
            notes: std::mem::take(&mut self.notes),
            still_open: ended.still_open(),
            timing: std::mem::take(&mut self.timing),
            error,
        }
    }
}

/// None where everything was recovered.
fn not_all(paths: &[RecoveredPath]) -> Option<Error> {
    let (mut missing, mut incomplete) = (0, Vec::new());
    for path in paths {
        match path.outcome {
            Outcome::Incomplete => incomplete.push(path.left_out()),
            outcome if outcome.is_recovered() => {}
            _ => missing += 1,
        }
    }
    if missing == 0 && incomplete.is_empty() {
        return None;
    }
    let mut said = Vec::new();
    if missing > 0 {
        said.push(format!(
            "{missing} of {} could not be recovered",
            text::counted(paths.len(), "path", "paths")
        ));
    }
    let more = incomplete.len().saturating_sub(INCOMPLETE_NAMED);
    said.extend(incomplete.into_iter().take(INCOMPLETE_NAMED));
    if more > 0 {
        said.push(format!("{more} more are incomplete"));
    }
    let error = Error::new(ErrorCode::NotAllRecovered, said.join("; "));
    Some(match missing {
        0 => error.with_next(
            "What was left out is not carried by file-level restore, or could not be unpacked here: where it matters, make it again by hand.",
        ),
        _ => error,
    })
}

/// What was agreed to: exactly what a preview has seen, where there was one.
pub(super) async fn as_seen(folders: &Mounted<'_>, source: &Source) -> Result<Resolved, Error> {
    let Some(seen) = &source.seen else {
        return resolve(folders, &GuestPath::parse(&source.path)?).await;
    };
    let resolved = resolve(folders, &GuestPath::parse(&seen.at)?).await?;
    if is_what(seen, &resolved.item) {
        return Ok(resolved);
    }
    Err(Error::new(
        ErrorCode::PlanChanged,
        format!(
            "{} is not what was seen of it when the plan was made",
            told_path(&source.path)
        ),
    ))
}

fn is_what(seen: &Seen, item: &PathItem) -> bool {
    let is_folder = item.kind == PathKind::Folder;
    seen.is_folder == is_folder && (is_folder || seen.bytes == item.size)
}

fn not_placed(source: &Source, outcome: Outcome, error: &Error) -> RecoveredPath {
    RecoveredPath {
        path: shown_path(&source.path),
        outcome,
        why: Some(format!("{}: {}", error.code.as_str(), error.message)),
        guest_path: None,
        is_folder: false,
        local_path: None,
        bytes: 0,
        files: Vec::new(),
        skipped: Vec::new(),
        restored: None,
    }
}

pub(super) fn downloading(item: &PathItem, bytes: u64) -> Doing {
    Doing {
        message: format!("downloading {}", text::named(name_of(item), 100)),
        transfer: Some(Transfer {
            bytes,
            total: item.size.filter(|_| item.kind != PathKind::Folder),
        }),
    }
}
