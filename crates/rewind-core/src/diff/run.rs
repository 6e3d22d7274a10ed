//! The steps of a comparison.
use super::{
    Change, DiffRequest, Facts, FileDiff, Kind, Now, PATHS_COMPARED,
    facts::Side,
    folder::Tree,
    text::{as_text, unified},
};
use crate::{
    Call, Destination, Error, ErrorCode, KnownPlan, Paths, Plan, RecoverRequest, Rewind, StillOpen,
    call::{Doing, Transfer, Watch},
    checkpoints::{self, Chosen, as_shown},
    guest::{Connection, WayIn, told_first},
    plan::{Decides, Purpose},
    recovery::{
        Ended, GuestPath, Looks, Mount, Mounted, Permission, Scratch, Subject, free, permission,
        while_mounted,
    },
    rewind::Core,
    text::named_exactly,
};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// How the present is looked at.
enum Present {
    Guest(Box<Connection>, String),
    Latest(Box<Chosen>),
}

/// What a path is on one side, and what there is to know about that.
struct Looked {
    /// Of one of several paths, an error that is about it alone.
    side: Result<Side, Error>,
    notes: Vec<String>,
}

/// Both sides, path by path.
struct Sides {
    then: Vec<Looked>,
    now: Vec<Looked>,
    still_open: Option<StillOpen>,
}

/// What is compared.
struct Wanted {
    paths: Vec<GuestPath>,
    checkpoint: checkpoints::Wanted,
    asked: RecoverRequest,
}

struct Diffing<'a> {
    core: &'a Arc<Core>,
    paths: &'a [GuestPath],
    subject: Subject,
    watch: Watch<'a>,
    arrived: AtomicU64,
}

impl Rewind {
    /// What somebody has to agree to before [`diff`](Self::diff) mounts anything: to look into the checkpoint. None: somebody has, or
    /// nobody has to be asked.
    ///
    /// # Errors
    /// `invalid_argument`, `checkpoint_gone`, `checkpoint_ambiguous`, `state`, and those of [`find`](Self::find).
    pub async fn plan_diff(
        &self,
        request: &DiffRequest,
        call: &Call,
    ) -> Result<Option<KnownPlan>, Error> {
        self.preview(&self.wanted(request, call).await?, call).await
    }

    /// What changed between a checkpoint and now. Mounts the checkpoint, once somebody has agreed to that, and places nothing.
    ///
    /// # Errors
    /// `confirmation_required`; as [`plan_diff`](Self::plan_diff); `flr_busy`, `flr_failed`, `path_not_found`, `path_ambiguous`,
    /// `not_downloadable`, `download_incomplete`, `guest_unreachable`, `guest_failed`, `cancelled`.
    pub async fn diff(&self, request: &DiffRequest, call: &Call) -> Result<FileDiff, Error> {
        let wanted = self.wanted(request, call).await?;
        let diffs = self.compare(&wanted, call).await?;
        let nothing = || Error::new(ErrorCode::InvalidArgument, "no path was named");
        diffs.into_iter().next().ok_or_else(nothing)?
    }

    /// As [`plan_diff`](Self::plan_diff), for [`diff_of`](Self::diff_of).
    ///
    /// # Errors
    /// As [`plan_diff`](Self::plan_diff).
    pub async fn plan_diff_of(
        &self,
        known: &KnownPlan,
        call: &Call,
    ) -> Result<Option<KnownPlan>, Error> {
        self.preview(&Wanted::of_plan(known)?, call).await
    }

    /// What changed since the checkpoint in the first [`PATHS_COMPARED`] files and folders that a plan recovers, in its order; an error where one is
    /// on neither side.
    ///
    /// # Errors
    /// As [`diff`](Self::diff), of what concerns all of them.
    pub async fn diff_of(
        &self,
        known: &KnownPlan,
        call: &Call,
    ) -> Result<Vec<Result<FileDiff, Error>>, Error> {
        self.compare(&Wanted::of_plan(known)?, call).await
    }

    async fn wanted(&self, request: &DiffRequest, call: &Call) -> Result<Wanted, Error> {
        let wanted = Wanted::of(request);
        if let Err(error) = &wanted {
            self.core.look_refused(&request.vm, call, error).await;
        }
        wanted
    }

    async fn preview(&self, wanted: &Wanted, call: &Call) -> Result<Option<KnownPlan>, Error> {
        let found = self.find_allowed(wanted, call).await;
        if let Err(error) = &found {
            self.core.look_refused(&wanted.asked.vm, call, error).await;
        }
        match found?.1 {
            Allowed::Not(plan) => self.written_once(*plan, call).await.map(Some),
            Allowed::By(_) => Ok(None),
        }
    }

    async fn find_allowed(
        &self,
        wanted: &Wanted,
        call: &Call,
    ) -> Result<(Subject, Allowed), Error> {
        let subject = wanted.find(&self.core, &call.watch()).await?;
        let allowed = allowed(&self.core, wanted, &subject, call).await?;
        Ok((subject, allowed))
    }

    async fn compare(
        &self,
        wanted: &Wanted,
        call: &Call,
    ) -> Result<Vec<Result<FileDiff, Error>>, Error> {
        let mut begun = false;
        let compared = self.compare_or(wanted, call, &mut begun).await;
        if let (Err(error), false) = (&compared, begun) {
            self.core.look_refused(&wanted.asked.vm, call, error).await;
        }
        compared
    }

    /// `begun` once the look is written down.
    async fn compare_or(
        &self,
        wanted: &Wanted,
        call: &Call,
        begun: &mut bool,
    ) -> Result<Vec<Result<FileDiff, Error>>, Error> {
        let core = &self.core;
        let (subject, allowed) = self.find_allowed(wanted, call).await?;
        let permission = match allowed {
            Allowed::By(permission) => permission,
            Allowed::Not(plan) => {
                let known = self.written_once(*plan, call).await?;
                return Err(Error::new(
                    ErrorCode::ConfirmationRequired,
                    known.plan.summary(&known.digest),
                )
                .with_plan(&known.plan.id));
            }
        };
        let diffing = Diffing {
            core,
            paths: &wanted.paths,
            subject,
            watch: call.watch(),
            arrived: AtomicU64::new(0),
        };
        let scratch = Scratch::new(core).await?;
        let compared = Box::pin(diffing.run(&scratch, &permission, call, begun)).await;
        scratch.gone(core).await;
        compared
    }
}

impl DiffRequest {
    /// As a plan has it.
    #[must_use]
    pub fn asked(&self) -> RecoverRequest {
        RecoverRequest {
            vm: self.vm.clone(),
            paths: Paths::One(self.path.clone()),
            checkpoint: self.checkpoint.clone(),
            vpg: self.vpg.clone(),
            destination: Destination::InRecoverDir(None),
            restore: None,
        }
    }
}

impl Wanted {
    /// What can be told without the ZVM.
    fn of(request: &DiffRequest) -> Result<Self, Error> {
        Ok(Self {
            paths: vec![GuestPath::parse(&request.path)?],
            checkpoint: checkpoints::Wanted::parse(&request.checkpoint)?,
            asked: request.asked(),
        })
    }

    fn of_plan(known: &KnownPlan) -> Result<Self, Error> {
        let plan = &known.plan;
        let paths: Vec<String> = plan
            .effects()
            .iter()
            .take(PATHS_COMPARED)
            .map(|effect| effect.source().path.clone())
            .collect();
        if paths.is_empty() {
            return Err(Error::new(
                ErrorCode::InvalidArgument,
                format!(
                    "plan {} only looks into the checkpoint: there is nothing to compare yet",
                    plan.id
                ),
            ));
        }
        Ok(Self {
            paths: paths
                .iter()
                .map(|path| GuestPath::parse(path))
                .collect::<Result<_, _>>()?,
            checkpoint: checkpoints::Wanted::parse(&plan.checkpoint)?,
            asked: RecoverRequest {
                vm: plan.vm_identifier.clone(),
                paths: Paths::Several(paths),
                checkpoint: plan.checkpoint.clone(),
                vpg: Some(plan.vpg_identifier.clone()),
                destination: Destination::InRecoverDir(None),
                restore: None,
            },
        })
    }

    async fn find(&self, core: &Core, watch: &Watch<'_>) -> Result<Subject, Error> {
        let finding = || "finding the VM and the checkpoint".to_owned();
        let (vm, vpg) = (&self.asked.vm, self.asked.vpg.as_deref());
        let subject = Subject::find(core, vm, &self.checkpoint, vpg);
        watch.during(finding, subject).await
    }

    /// Whether a running guest can have all of them.
    fn are_posix(&self) -> bool {
        are_posix(&self.paths)
    }
}

fn are_posix(paths: &[GuestPath]) -> bool {
    paths.iter().all(|path| matches!(path, GuestPath::Posix(_)))
}

enum Allowed {
    By(Permission),
    /// This has to be agreed to before.
    Not(Box<Plan>),
}

async fn allowed(
    core: &Core,
    wanted: &Wanted,
    subject: &Subject,
    call: &Call,
) -> Result<Allowed, Error> {
    let mut plan = subject.plan(core, &wanted.asked);
    plan.decides = Decides::Preview {
        looks_for: wanted.paths.iter().map(GuestPath::written).collect(),
        purpose: Purpose::Comparison,
    };
    if let Some(permission) = permission(core, &plan, call, None).await? {
        return Ok(Allowed::By(permission));
    }
    let found = &subject.found;
    let way = WayIn::find(core, &found.vm, &found.vm_identifier).await?;
    plan.notes.push(match way {
        Some(way) if wanted.are_posix() => format!(
            "It is compared with what is in the guest now, which is read over SSH ({}).",
            named_exactly(way.shown(), 200)
        ),
        _ => "It is compared with the journal's latest checkpoint, which is mounted after it."
            .to_owned(),
    });
    Ok(Allowed::Not(Box::new(plan)))
}

impl Diffing<'_> {
    async fn run(
        self,
        scratch: &Scratch,
        permission: &Permission,
        call: &Call,
        begun: &mut bool,
    ) -> Result<Vec<Result<FileDiff, Error>>, Error> {
        let (present, told) = self.present().await?;
        let now = match &present {
            Present::Guest(_, guest) => Now::Guest {
                guest: guest.clone(),
            },
            Present::Latest(chosen) => Now::LatestCheckpoint {
                checkpoint: chosen.checkpoint.id.to_string(),
                time: as_shown(chosen.checkpoint.time),
            },
        };
        let paths = self.paths.iter().map(GuestPath::written);
        let with = match &now {
            Now::Guest { guest } => format!("the guest ({guest})"),
            Now::LatestCheckpoint { checkpoint, .. } => format!("checkpoint {checkpoint}"),
        };
        let looks = Looks::begin(
            self.core,
            &self.subject,
            call,
            permission,
            paths,
            Some(with),
        )
        .await
        .map_err(|error| told_first(error, &told))?;
        *begun = true;
        let looked = self.sides(&present, scratch).await;
        let failure = looked.as_ref().err().map(|error| error.code);
        looks.end(self.core, failure).await;
        let sides = looked.map_err(|error| told_first(error, &told))?;
        let both = sides.then.into_iter().zip(sides.now);
        let answers = self.paths.iter().zip(both).map(|(path, (then, now_is))| {
            let mut answer = self.answer(path, &now, sides.still_open.clone());
            let notes = [then.notes, now_is.notes, told.clone()].concat();
            answer.compare(path, then.side?, now_is.side?)?;
            for note in notes {
                if !answer.notes.contains(&note) {
                    answer.notes.push(note);
                }
            }
            Ok(answer)
        });
        Ok(answers.collect())
    }

    /// The guest where there is a way in and the paths are of it, else the journal's latest checkpoint.
    async fn present(&self) -> Result<(Present, Vec<String>), Error> {
        let Subject { found, chosen, .. } = &self.subject;
        let looking = || "looking for what is there now".to_owned();
        let find = async {
            let way = WayIn::find(self.core, &found.vm, &found.vm_identifier).await?;
            if let Some(way) = way.filter(|_| are_posix(self.paths)) {
                let (connection, notes) = way.connect(self.core).await?;
                let present = Present::Guest(Box::new(connection), way.shown().to_owned());
                return Ok((present, notes));
            }
            let latest = checkpoints::latest(&self.core.zvm, &chosen.vpg).await?;
            Ok((Present::Latest(Box::new(latest)), Vec::new()))
        };
        self.watch.during(looking, find).await
    }

    async fn sides(&self, present: &Present, scratch: &Scratch) -> Result<Sides, Error> {
        if let Present::Latest(latest) = present
            && latest.checkpoint.id == self.subject.chosen.checkpoint.id
        {
            return Err(Error::new(
                ErrorCode::InvalidArgument,
                "this checkpoint is the journal's latest one: there is nothing newer to compare it with",
            )
            .with_next("Try again in a moment, or configure a way into the guest (`guests`)."));
        }
        let (then, first) = self.at(&self.subject.chosen, scratch).await?;
        let still_open = first.still_open();
        let now = match present {
            Present::Guest(connection, _) => self.in_guest(connection).await.map(|now| (now, None)),
            Present::Latest(latest) => {
                let second = self.at(latest, scratch).await;
                second.map(|(now, ended)| (now, ended.still_open()))
            }
        };
        let left = || still_open.as_ref().and_then(|_| first.done());
        let (now, second) = now.map_err(|error| error.with_done(left()))?;
        Ok(Sides {
            then,
            now,
            still_open: still_open.or(second),
        })
    }

    async fn in_guest(&self, connection: &Connection) -> Result<Vec<Looked>, Error> {
        let mut sides = Vec::new();
        for path in self.paths {
            let written = path.written();
            self.arrived.store(0, Ordering::Relaxed);
            let reading = || self.doing(&format!("reading {} in the guest", path.told()));
            let side = Side::of_guest(connection, &written, &self.arrived);
            sides.push(Looked {
                side: self.of_path(self.watch.during(reading, side).await)?,
                notes: Vec::new(),
            });
        }
        Ok(sides)
    }

    /// The paths in a checkpoint, which is mounted for it.
    async fn at(&self, chosen: &Chosen, scratch: &Scratch) -> Result<(Vec<Looked>, Ended), Error> {
        let mount = Mount::of(&self.subject.found, chosen, self.subject.clock);
        free(self.core, &mount, &self.subject.found.name(), &self.watch).await?;
        let checkpoint = chosen.checkpoint.id.to_string();
        let (result, ended) = while_mounted(self.core, mount, &self.watch, async |session| {
            let folders = Mounted::new(&self.core.zvm, session);
            let mut sides = Vec::new();
            for path in self.paths {
                self.arrived.store(0, Ordering::Relaxed);
                let reading = || {
                    let told = path.told();
                    self.doing(&format!("reading {told} in checkpoint {checkpoint}"))
                };
                let mut notes = Vec::new();
                let side = Side::of_checkpoint(&folders, path, scratch, &self.arrived, &mut notes);
                let side = self.of_path(self.watch.during(reading, side).await)?;
                sides.push(Looked { side, notes });
            }
            Ok(sides)
        })
        .await;
        let sides = result.map_err(|error| error.with_done(ended.done()))?;
        Ok((sides, ended))
    }

    /// What is neither a file nor a folder does not keep the other paths from being compared.
    fn of_path(&self, side: Result<Side, Error>) -> Result<Result<Side, Error>, Error> {
        match side {
            Err(error) if error.code == ErrorCode::NotDownloadable && self.paths.len() > 1 => {
                Ok(Err(error))
            }
            side => side.map(Ok),
        }
    }

    fn doing(&self, message: &str) -> Doing {
        let bytes = self.arrived.load(Ordering::Relaxed);
        Doing {
            message: message.to_owned(),
            transfer: (bytes > 0).then_some(Transfer { bytes, total: None }),
        }
    }

    fn answer(&self, path: &GuestPath, now: &Now, still_open: Option<StillOpen>) -> FileDiff {
        let Subject { found, chosen, .. } = &self.subject;
        FileDiff {
            vm: found.name(),
            vpg: chosen.vpg.name(),
            checkpoint: chosen.checkpoint.id.to_string(),
            checkpoint_time: as_shown(chosen.checkpoint.time),
            tag: chosen.tag(),
            now: now.clone(),
            path: path.to_string(),
            change: Change::Changed,
            kind: Kind::Data,
            then: None,
            current: None,
            unified: None,
            folder: None,
            notes: Vec::new(),
            still_open,
            seconds: self.watch.seconds(),
        }
    }
}

/// What one side has of a file: none where it is none.
fn of_file(side: Side) -> (Option<Facts>, Option<Vec<u8>>, bool) {
    match side {
        Side::File { facts, content } => (Some(facts), content, false),
        Side::Folder(_) => (None, None, true),
        Side::Nothing(_) => (None, Some(Vec::new()), false),
    }
}

/// Only where nothing has that very name: a name may have wildcards in it.
fn not_expanded(mut error: Error, path: &GuestPath) -> Error {
    error.message = format!(
        "{}; nothing has just the name {}, and `diff` does not expand patterns",
        error.message,
        path.told()
    );
    error.with_next(
        "Name one file, or the folder that the files are in: a folder is compared whole.",
    )
}

impl FileDiff {
    /// An error where it is on neither side.
    fn compare(&mut self, path: &GuestPath, then: Side, now: Side) -> Result<(), Error> {
        match (then, now) {
            (Side::Nothing(error), Side::Nothing(_)) => {
                return Err(match path.has_wildcard() {
                    true => not_expanded(error, path),
                    false => error,
                });
            }
            (Side::Folder(then), Side::Folder(now)) => self.folders(&then, &now),
            (Side::Folder(then), Side::Nothing(_)) => {
                self.folders(&then, &Tree::default());
                self.change = Change::Removed;
            }
            (Side::Nothing(_), Side::Folder(now)) => {
                self.folders(&Tree::default(), &now);
                self.change = Change::Added;
            }
            (then, now) => self.files(then, now),
        }
        Ok(())
    }

    fn folders(&mut self, then: &Tree, now: &Tree) {
        let diff = then.compare(now);
        let same = diff.added_count + diff.removed_count + diff.changed_count == 0;
        let partial = then.partial || now.partial;
        if partial {
            self.notes.push("The folder is too large to list: only a part of it was compared, and what is said to be added or removed may be in the other part.".to_owned());
        }
        self.kind = Kind::Folder;
        self.change = match same {
            true if partial => Change::NotCompared,
            true => Change::Unchanged,
            false => Change::Changed,
        };
        self.folder = Some(diff);
    }

    /// At least one of them is a file.
    fn files(&mut self, then: Side, now: Side) {
        let (gone, new) = (
            matches!(now, Side::Nothing(_)),
            matches!(then, Side::Nothing(_)),
        );
        let (then, old, then_folder) = of_file(then);
        let (current, fresh, now_folder) = of_file(now);
        self.change = match (&then, &current) {
            _ if then_folder || now_folder => Change::Changed,
            _ if gone => Change::Removed,
            _ if new => Change::Added,
            (Some(then), Some(now)) => then.compare(now),
            _ => Change::Changed,
        };
        (self.then, self.current) = (then, current);
        if then_folder || now_folder {
            self.kind = Kind::Different;
            let (was, is) = match then_folder {
                true => ("folder", "file"),
                false => ("file", "folder"),
            };
            self.notes
                .push(format!("It was a {was} then, and is a {is} now."));
            return;
        }
        let (Some(old), Some(fresh)) = (old, fresh) else {
            return;
        };
        let (Some(old), Some(fresh)) = (as_text(&old), as_text(&fresh)) else {
            return;
        };
        self.kind = Kind::Text;
        if self.change != Change::Unchanged {
            let header = (
                format!("checkpoint {}", self.checkpoint),
                format!("now: {}", self.now),
            );
            let (text, shortened) = unified((&header.0, old), (&header.1, fresh));
            self.unified = Some(text);
            if shortened {
                self.notes.push(
                    "The diff is too long to be shown whole: this is its beginning.".to_owned(),
                );
            }
        }
    }
}

impl Facts {
    fn compare(&self, now: &Self) -> Change {
        match (&self.sha256, &now.sha256) {
            (Some(then), Some(now)) if then == now => Change::Unchanged,
            (Some(_), Some(_)) => Change::Changed,
            _ if self.bytes != now.bytes => Change::Changed,
            _ => Change::NotCompared,
        }
    }
}
