//! `recover`: files and folders out of a checkpoint, after the person at the terminal has agreed, or one has to the plan.
use std::path::Path;

use owo_colors::OwoColorize as _;
use rewind_core::{
    Destination, Error, ErrorCode, How, KnownPlan, Outcome, Paths, RecoverRequest, RecoveredPath,
    Recovery, Rewind, StillOpen, Verdict, config, guest::Restore, plan::Decides, text,
};

use super::approve;
use crate::{
    cli,
    interrupt::Interrupt,
    output::{self, Output},
    permit,
    session::{self, Session},
    table::moment,
    terminal,
    wrap::{beside, hanging, prose},
};

/// More files than these are counted, not listed.
const FILES_SHOWN: usize = 20;

/// The exit code: not 0 where not every path was recovered.
pub async fn run(
    config: Option<&Path>,
    arguments: cli::Recover,
    output: Output,
    interrupt: &Interrupt,
) -> Result<u8, Error> {
    let mut desk = Desk::new(arguments.yes, interrupt);
    let session;
    let mut known = match (&arguments.plan, request(&arguments)) {
        (Some(id), _) => {
            session = Session::open(config, interrupt)?;
            let rewind = session.rewind();
            let known = session::telling(rewind, named(rewind, id)).await;
            if let Err(error) = &known {
                rewind.plan_refused(id, &session.call(), error).await;
            }
            known?
        }
        (None, Some(request)) => {
            desk.is_there()?;
            session = Session::open(config, interrupt)?;
            plan(&session, &request).await?
        }
        (None, None) => {
            return Err(Error::new(
                ErrorCode::InvalidArgument,
                "VM, PATH and --at are needed, or --plan",
            ));
        }
    };
    loop {
        if !known.approved()? {
            desk.decide(&session, &known).await?;
        }
        if !known.plan.is_preview() {
            break;
        }
        let found = session
            .run(async |rewind, call| rewind.plan_found(&known, &call).await)
            .await?;
        if arguments.plan.is_some() {
            let was_made = format!(
                "Plan {} only agrees to look into checkpoint {}. Of what was found there, plan {} was made.",
                known.plan.id, known.plan.checkpoint, found.plan.id
            );
            output::note(&hanging(&was_made, ""));
        }
        known = found;
    }
    let recovery = session
        .run(async |rewind, call| rewind.recover(&known.plan.id, &call).await)
        .await?;
    output.result(&recovery, show);
    still_open(recovery.still_open.as_ref());
    let Some(error) = &recovery.error else {
        return Ok(0);
    };
    // As JSON it is in the result already.
    Ok(match output.is_json() {
        true => error.code.exit_code(),
        false => output.error(error),
    })
}

/// The plan of this id, if a recovery can still come of it.
async fn named(rewind: &Rewind, id: &str) -> Result<KnownPlan, Error> {
    let known = rewind.plan(id).await?;
    known
        .is_for_recovery()
        .map_err(|error| error.with_next(instead(&known)))?;
    known.approved()?;
    Ok(known)
}

/// What the person can run instead of a recovery by a plan that is none for it.
fn instead(known: &KnownPlan) -> String {
    let plan = &known.plan;
    let word = |text: &str| config::word(Path::new(&output::lines(text)));
    let path = match &plan.decides {
        Decides::Preview { looks_for, .. } => looks_for.first().map(|path| word(path)),
        Decides::Effects { .. } => None,
    };
    let (vm, path) = (word(&plan.vm), path.unwrap_or_else(|| "PATH".to_owned()));
    let checkpoint = &plan.checkpoint;
    format!(
        "To compare: `zerto-rewind diff {vm} {path} --at {checkpoint}`. To recover: `zerto-rewind recover {vm} {path} --at {checkpoint}`, \
         which makes a plan of its own."
    )
}

/// Says so where the checkpoint could not be unmounted.
pub(super) fn still_open(open: Option<&StillOpen>) {
    if let Some(open) = open {
        output::warning(&format!("{open}\n{}", open.next));
    }
}

fn request(arguments: &cli::Recover) -> Option<RecoverRequest> {
    Some(RecoverRequest {
        vm: arguments.vm.clone()?,
        paths: Paths::of(arguments.paths.clone()),
        checkpoint: arguments.at.clone()?,
        vpg: arguments.vpg.clone(),
        destination: match &arguments.to {
            Some(folder) => Destination::Folder(folder.clone()),
            None => Destination::InRecoverDir(None),
        },
        restore: arguments.restore.map(|how| match how {
            cli::Restoring::Beside => Restore::Beside,
            cli::Restoring::Replace => Restore::Replace,
        }),
    })
}

async fn plan(session: &Session, request: &RecoverRequest) -> Result<KnownPlan, Error> {
    session
        .run(async |rewind, call| rewind.plan_recovery(request, &call).await)
        .await
}

/// Where the person sits.
pub(super) struct Desk<'a> {
    /// What was not done where nobody agrees.
    nothing: &'static str,
    yes: bool,
    /// The passphrase was typed, or none is needed.
    permitted: bool,
    interrupt: &'a Interrupt,
}

impl<'a> Desk<'a> {
    /// For what begins with a mount.
    pub(super) fn new(yes: bool, interrupt: &'a Interrupt) -> Self {
        Self::for_what("nothing was mounted", yes, interrupt)
    }

    pub(super) fn for_what(nothing: &'static str, yes: bool, interrupt: &'a Interrupt) -> Self {
        Self {
            nothing,
            yes,
            permitted: false,
            interrupt,
        }
    }

    pub(super) fn is_there(&self) -> Result<(), Error> {
        if terminal::is_there() {
            return Ok(());
        }
        let why = if self.yes {
            "`--yes` says that a person has agreed, and"
        } else {
            "a person has to agree, and"
        };
        Err(Error::new(
            ErrorCode::ConfirmationRequired,
            format!(
                "{}: {why} there is no terminal here (stdin and stderr)",
                self.nothing
            ),
        )
        .with_next("Run the command in a terminal, and read there what it is going to do."))
    }

    /// Asks, and for the passphrase where one is set.
    pub(super) async fn agrees(
        &mut self,
        session: &Session,
        question: &str,
    ) -> Result<bool, Error> {
        let state_dir = &session.rewind().config().state_dir;
        if !self.permitted {
            permit::may_be_tried(state_dir)?;
        }
        let agrees = self.yes
            || tokio::select! {
                agrees = terminal::agrees(question) => agrees,
                () = self.interrupt.token().cancelled_owned() => {
                    return Err(Error::new(ErrorCode::Cancelled, self.nothing));
                }
            };
        if agrees && !self.permitted {
            permit::passphrase_until(state_dir, self.interrupt).await?;
            self.permitted = true;
        }
        Ok(agrees)
    }

    /// Shows the plan, asks, and writes the answer down.
    pub(super) async fn decide(
        &mut self,
        session: &Session,
        known: &KnownPlan,
    ) -> Result<(), Error> {
        self.is_there()?;
        approve::show(known);
        let question = match known.plan.is_preview() {
            true => "Look into it?",
            false => "Recover this?",
        };
        let agrees = self.agrees(session, question).await?;
        let verdict = match agrees {
            true => Verdict::Approved,
            false => Verdict::Declined,
        };
        session
            .rewind()
            .decide(known, verdict, How::Terminal, &session::caller())
            .await?;
        if agrees {
            return Ok(());
        }
        let what = match known.plan.is_preview() {
            true => "nothing was looked into: you did not agree",
            false => "nothing was recovered: you did not agree",
        };
        let next = match known.plan.is_comparison() {
            true => "Run it again to be asked again.",
            false => "Run it again, without --plan, to be asked again.",
        };
        Err(Error::new(ErrorCode::Declined, what).with_next(next))
    }
}

/// What was recovered, for a person. The digests are as `sha256sum` prints them.
fn show(recovery: &Recovery) -> String {
    let of = format!(
        "  of {}, checkpoint {} of VPG {}, {} (UTC)",
        output::lines(&recovery.vm),
        recovery.checkpoint,
        output::lines(&recovery.vpg),
        moment(&recovery.checkpoint_time),
    );
    let of = prose(&of);
    let paths: Vec<String> = recovery.all().map(|path| became(path, &of)).collect();
    let notes: String = recovery
        .notes
        .iter()
        .map(|note| format!("{}\n", prose(&output::ours(note))))
        .collect();
    format!(
        "{}\n{notes}\n{}",
        paths.join("\n"),
        timing(recovery).dimmed()
    )
}

fn timing(recovery: &Recovery) -> String {
    let timing = &recovery.timing;
    let write = match timing.write > 0.0 {
        true => format!(", write {:.1} s", timing.write),
        false => String::new(),
    };
    prose(&format!(
        "find {:.1} s, mount {:.1} s, resolve {:.1} s, download {:.1} s, unmount {:.1} s{write}: {:.1} s in all",
        timing.find, timing.mount, timing.resolve, timing.download, timing.unmount, timing.total
    ))
}

fn became(path: &RecoveredPath, of: &str) -> String {
    let name = text::path(path.guest_path.as_deref().unwrap_or(&path.path));
    let headed = |what: &dyn std::fmt::Display| beside(&what.to_string(), &name.bold().to_string());
    if !path.outcome.is_recovered() && path.outcome != Outcome::Incomplete {
        let why = output::lines(path.why.as_deref().unwrap_or_default());
        let headed = headed(&path.outcome.as_str().red().bold());
        return format!("{headed}\n{of}\n{}\n", prose(&format!("  {why}")));
    }
    let files = path.files.iter().take(FILES_SHOWN);
    let files: String = files
        .map(|file| format!("{}  {}\n", file.sha256, text::path(&file.path)))
        .collect();
    let more = match path.files.len().saturating_sub(FILES_SHOWN) {
        0 => String::new(),
        more => format!("… and {}\n", text::counted(more, "more file", "more files")),
    };
    let left_out = path.skipped.iter().take(FILES_SHOWN);
    let left_out: String = left_out
        .map(|skipped| {
            format!(
                "{}\n",
                prose(&format!("left out: {}", output::lines(skipped)))
            )
        })
        .collect();
    let incomplete = match path.outcome {
        Outcome::Incomplete => format!("\n  {} left out", path.skipped.len()),
        _ => String::new(),
    };
    let more_left_out = match path.skipped.len().saturating_sub(FILES_SHOWN) {
        0 => String::new(),
        more => format!("… and {more} more left out\n"),
    };
    let what = match path.outcome {
        Outcome::Restored => "Restored",
        Outcome::Beside => "Put beside",
        Outcome::Unchanged => "Unchanged",
        Outcome::Incomplete => "Recovered in part",
        _ => "Recovered",
    };
    let what = match path.outcome {
        Outcome::Incomplete => what.yellow().bold().to_string(),
        _ => what.green().bold().to_string(),
    };
    format!(
        "{}\n{of}\n{}{incomplete}\n\n{files}{more}{left_out}{more_left_out}",
        headed(&what),
        whereto(path),
    )
}

fn whereto(path: &RecoveredPath) -> String {
    let bytes = text::bytes(path.bytes);
    let Some(file) = &path.restored else {
        let local = text::path(path.local_path.as_deref().unwrap_or_default());
        return beside(&format!("  {bytes}, to"), &local.bold().to_string());
    };
    let place = text::path(&file.path).bold().to_string();
    let mut whereto = beside(&format!("  {bytes}, in the guest:"), &place);
    if let Some(kept) = &file.kept {
        whereto.push_str(&format!("\n{}", beside("  kept:", &text::path(kept))));
    }
    if let Some(id) = &file.restore_id
        && path.outcome == Outcome::Restored
    {
        let undo = output::ours(&format!("`zerto-rewind undo-restore {id}`"));
        whereto.push_str(&format!("\n{}", beside("  undo:", &undo)));
    }
    whereto
}

#[cfg(test)]
mod tests {
    use super::*;
    use rewind_core::RecoveredFile;

    #[test]
    fn a_line_break_in_a_name_is_seen_wherever_the_name_stands() {
        let path = "/srv/new\nline.txt";
        let recovered = RecoveredPath {
            path: path.into(),
            outcome: Outcome::Placed,
            why: None,
            guest_path: Some(path.into()),
            is_folder: false,
            local_path: Some("/home/ana/new\nline.txt".into()),
            bytes: 1,
            files: vec![RecoveredFile {
                path: "new\nline.txt".into(),
                bytes: 1,
                sha256: "ab".repeat(32),
            }],
            skipped: Vec::new(),
            restored: None,
        };
        let shown = became(&recovered, "  of jp-ubuntu");
        assert_eq!(shown.matches("new\\u{a}line.txt").count(), 3, "{shown}");
    }
}
