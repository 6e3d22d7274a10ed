//! Results and errors as short texts for people and models: the text beside the structured content.
//!
//! What comes from a ZVM or a guest stands in quotation marks wherever it could pass for a sentence of ours.
mod record;

pub use record::record;
use std::fmt::Write as _;

use crate::advice;
use rewind_core::{
    CheckpointList, Done, Error, FileDiff, GuardDecision, ListedCheckpoint, Outcome, Protection,
    Receipt, RecoveredPath, Recovery,
    diff::{Change, Facts, FolderDiff},
    text::{PATH_MAX_LEN, bytes, counted, named, named_exactly, quoted},
};

/// Characters of one name, path or tag. The structured content has what the domain has.
const SHOWN: usize = 500;

/// Writing to a string does not fail.
macro_rules! line {
    ($text:expr, $($what:tt)*) => {{ let _ = writeln!($text, $($what)*); }};
}

/// What had already been done, as one sentence.
pub fn done(done: &Done) -> String {
    match done {
        Done::Pinned {
            vpg,
            checkpoint,
            tag,
        } => format!(
            "VPG {} is pinned: checkpoint {checkpoint}, tag {}",
            named(vpg, SHOWN),
            quoted(tag, SHOWN)
        ),
        Done::InsertedNotListed { vpg, tag } => format!(
            "on VPG {} a checkpoint was inserted that is not listed yet: tag {}",
            named(vpg, SHOWN),
            quoted(tag, SHOWN)
        ),
        Done::NotPinned { vpg, reason } => {
            format!("VPG {} is not pinned: {reason}", named(vpg, SHOWN))
        }
        Done::Placed { path, local_path } => format!(
            "{} is here: {}",
            named(path, SHOWN),
            named(local_path, PATH_MAX_LEN)
        ),
        Done::Restored {
            path,
            restore_id: Some(id),
        } => format!(
            "{} was written in the guest (restore {id})",
            named(path, SHOWN)
        ),
        Done::Restored { path, .. } => format!("{} was written in the guest", named(path, SHOWN)),
        Done::SessionOpened {
            session,
            closed: true,
            ..
        } => {
            format!("the FLR session {session} was opened, and is unmounted again")
        }
        Done::SessionOpened {
            session,
            closed: false,
            why,
        } => {
            let why = why.as_deref().unwrap_or("it is not known why");
            format!(
                "the FLR session {session} is still mounted ({why}); every further command tries to unmount it"
            )
        }
    }
}

/// An error: what happened, what to do next, what was done.
pub fn error(error: &Error) -> String {
    let mut text = String::new();
    line!(text, "{}: {}", error.code.as_str(), error.message);
    line!(text, "Next: {}", error.next);
    list(&mut text, "Candidates:", error.candidates.iter().cloned());
    list(&mut text, "Done before that:", error.done.iter().map(done));
    text.trim_end().into()
}

fn list(text: &mut String, heading: &str, items: impl Iterator<Item = String>) {
    let mut items = items.peekable();
    if items.peek().is_some() {
        line!(text, "{heading}");
    }
    for item in items {
        line!(text, "- {item}");
    }
}

/// A VM and its VPGs.
pub fn protection(found: &Protection) -> String {
    let mut text = String::new();
    let count = found.vpgs.len();
    line!(
        text,
        "{} ({}) is protected by {}, found by its {}.",
        named(&found.vm, SHOWN),
        named(&found.vm_identifier, SHOWN),
        counted(count, "VPG", "VPGs"),
        found.matched_by.replace('_', " ")
    );
    for vpg in &found.vpgs {
        let state = match &*vpg.sub_status {
            "" | "None" => named(&vpg.status, SHOWN),
            sub_status => format!(
                "{}, {}",
                named(&vpg.status, SHOWN),
                named(sub_status, SHOWN)
            ),
        };
        let tagging = match &vpg.why_not {
            Some(why) => format!("no tagged checkpoint can be inserted: {why}"),
            None if vpg.can_be_tagged => "a tagged checkpoint can be inserted".into(),
            None => "no tagged checkpoint can be inserted".into(),
        };
        let from = match &vpg.earliest_checkpoint {
            Some(earliest) => format!("; its journal begins at {earliest}"),
            None => String::new(),
        };
        let name = named(&vpg.vpg, SHOWN);
        line!(text, "- VPG {name}: {state}; {tagging}{from}.");
    }
    text.trim_end().into()
}

/// A guard's pins.
pub fn receipt(receipt: &Receipt) -> String {
    let mut text = String::new();
    line!(
        text,
        "Guarded {}: {} pinned in {:.1} s. The change may be made.",
        named(&receipt.vm, SHOWN),
        counted(receipt.pins.len(), "VPG", "VPGs"),
        receipt.seconds
    );
    line!(text, "Tag: {}", quoted(&receipt.tag, SHOWN));
    for pin in &receipt.pins {
        line!(
            text,
            "- VPG {}: checkpoint {} at {}{}.",
            named(&pin.vpg, SHOWN),
            pin.checkpoint,
            pin.time,
            expected(pin.expected_until.as_deref())
        );
    }
    line!(text, "Change id: {}", receipt.change_id);
    line!(text, "{}", receipt.note);
    text.trim_end().into()
}

fn expected(until: Option<&str>) -> String {
    match until {
        Some(until) => format!(", expected to stay until {until} (an estimate)"),
        None => String::new(),
    }
}

/// What became of a call that was looked up in the catalog.
pub fn decision(decision: &GuardDecision) -> String {
    match decision {
        GuardDecision::PassThrough { reason } => {
            format!("pass_through: {reason}. The call may be made; nothing was pinned.")
        }
        GuardDecision::Guarded {
            receipts,
            not_protected,
            ..
        } => {
            let mut text = String::from("guarded:\n");
            for guarded in receipts {
                line!(text, "{}", receipt(guarded));
            }
            if !not_protected.is_empty() {
                let vms: Vec<_> = not_protected.iter().map(|vm| named(vm, SHOWN)).collect();
                let vms = vms.join(", ");
                line!(text, "No VPG protects {vms}; the catalog lets that pass.");
            }
            text.trim_end().into()
        }
    }
}

/// The tagged checkpoints of a VM.
pub fn checkpoints(list: &CheckpointList) -> String {
    let mut text = String::new();
    let count = counted(
        list.checkpoints.len(),
        "tagged checkpoint",
        "tagged checkpoints",
    );
    line!(
        text,
        "{}: {count} since {}, newest first.",
        named(&list.vm, SHOWN),
        list.since
    );
    for checkpoint in &list.checkpoints {
        line!(text, "- {}", listed(checkpoint));
    }
    if list.truncated {
        line!(text, "There may be more: the limit was reached.");
    }
    line!(text, "{}", list.note);
    text.trim_end().into()
}

fn listed(checkpoint: &ListedCheckpoint) -> String {
    let used = if checkpoint.used_for_flr {
        ", used for FLR"
    } else {
        ""
    };
    let record = match &*record(checkpoint) {
        "" => String::new(),
        known => format!(" ({known})"),
    };
    format!(
        "VPG {}: checkpoint {} at {}{}{used}: {}{record}",
        named(&checkpoint.vpg, SHOWN),
        checkpoint.checkpoint,
        checkpoint.time,
        expected(checkpoint.expected_until.as_deref()),
        quoted(&checkpoint.tag, SHOWN)
    )
}

/// What was recovered, and where it is.
pub fn recovery(recovery: &Recovery) -> String {
    let mut text = String::new();
    let timing = &recovery.timing;
    let Recovery {
        vm,
        vpg,
        checkpoint,
        checkpoint_time,
        ..
    } = recovery;
    let of = format!(
        "{} as it was at {checkpoint_time} (checkpoint {checkpoint} of VPG {})",
        named(vm, SHOWN),
        named(vpg, SHOWN)
    );
    if let Some(failure) = &recovery.error {
        line!(text, "{}", error(failure));
    }
    if recovery.one.is_none() {
        let placed = recovery
            .paths
            .iter()
            .filter(|path| path.outcome.is_recovered());
        let all = counted(recovery.paths.len(), "path", "paths");
        line!(text, "Recovered {} of {all} of {of}.", placed.count());
    }
    for path in &recovery.paths {
        became(&mut text, path, None);
    }
    if let Some(path) = &recovery.one {
        became(&mut text, path, Some(&of));
    }
    if let Some(open) = &recovery.still_open {
        line!(text, "WARNING: {open} {}", open.next);
    }
    if let Some(tag) = &recovery.guard_tag {
        line!(text, "Guarded first: {}", quoted(tag, SHOWN));
    }
    list(&mut text, "Note:", recovery.notes.iter().cloned());
    line!(
        text,
        "Seconds: find {:.1}, mount {:.1}, resolve {:.1}, download {:.1}, unmount {:.1}{}; {:.1} in all.",
        timing.find,
        timing.mount,
        timing.resolve,
        timing.download,
        timing.unmount,
        written(timing.write),
        timing.total
    );
    text.trim_end().into()
}

fn written(seconds: f64) -> String {
    match seconds > 0.0 {
        true => format!(", write {seconds:.1}"),
        false => String::new(),
    }
}

/// What became of a path: of the only one, with what it is of.
fn became(text: &mut String, path: &RecoveredPath, of: Option<&str>) {
    let name = named_exactly(path.guest_path.as_deref().unwrap_or(&path.path), SHOWN);
    let how = match path.outcome {
        Outcome::Restored => "Restored in the guest",
        Outcome::Beside => "Put beside the present file in the guest",
        Outcome::Unchanged => "Left as it was, as the guest has exactly this already",
        Outcome::Incomplete => "Recovered in part",
        _ => "Recovered",
    };
    match of {
        Some(of) => line!(text, "{how}: {name} of {of}."),
        None => line!(text, "{name}: {}", path.outcome.as_str()),
    }
    if let Some(why) = &path.why {
        line!(text, "Because: {why}");
    }
    if let Some(local) = &path.local_path {
        let local = named_exactly(local, PATH_MAX_LEN);
        line!(text, "It is here now: {local} ({})", bytes(path.bytes));
    }
    if let Some(file) = &path.restored {
        line!(
            text,
            "In the guest: {}",
            named_exactly(&file.path, PATH_MAX_LEN)
        );
        if let Some(kept) = &file.kept {
            line!(
                text,
                "What was there is kept as {}",
                named_exactly(kept, PATH_MAX_LEN)
            );
        }
        if let Some(id) = &file.restore_id
            && path.outcome == Outcome::Restored
        {
            let undo = format!("`zerto-rewind undo-restore {id}`");
            line!(text, "A person can undo it: {}", advice::complete(&undo));
        }
    }
    for file in &path.files {
        line!(
            text,
            "- {}: {}, SHA-256 {}",
            named_exactly(&file.path, SHOWN),
            bytes(file.bytes),
            file.sha256
        );
    }
    list(text, "Left out:", path.skipped.iter().cloned());
}

/// What changed since a checkpoint, for people and models alike.
pub fn diff(diff: &FileDiff) -> String {
    let mut text = String::new();
    let what = match diff.change {
        Change::Unchanged => "is unchanged since",
        Change::Changed => "has changed since",
        Change::Added => "is there now and was not at",
        Change::Removed => "is gone now and was there at",
        Change::NotCompared => {
            "was not read whole, so that it can't be told whether it has changed since"
        }
    };
    line!(
        text,
        "{} of {} {what} checkpoint {} of VPG {} ({}).",
        named(&diff.path, PATH_MAX_LEN),
        named(&diff.vm, SHOWN),
        diff.checkpoint,
        named(&diff.vpg, SHOWN),
        diff.checkpoint_time
    );
    line!(text, "Compared with {}.", diff.now);
    if let Some(open) = &diff.still_open {
        line!(text, "WARNING: {open} {}", open.next);
    }
    for (when, facts) in [("then", &diff.then), ("now", &diff.current)] {
        if let Some(facts) = facts {
            line!(text, "- {when}: {}", self::facts(facts));
        }
    }
    if let Some(folder) = &diff.folder {
        self::folder(&mut text, folder);
    }
    list(&mut text, "Note:", diff.notes.iter().cloned());
    if let Some(unified) = &diff.unified {
        line!(text, "\n{unified}");
    }
    text.trim_end().into()
}

fn facts(facts: &Facts) -> String {
    let unknown = || "unknown".to_owned();
    format!(
        "{}, written {}, SHA-256 {}",
        facts.bytes.map_or_else(|| "unknown size".to_owned(), bytes),
        facts.modified.clone().unwrap_or_else(unknown),
        facts
            .sha256
            .clone()
            .unwrap_or_else(|| "not read".to_owned())
    )
}

fn folder(text: &mut String, folder: &FolderDiff) {
    for (what, count, names) in [
        ("added", folder.added_count, &folder.added),
        ("removed", folder.removed_count, &folder.removed),
        ("changed", folder.changed_count, &folder.changed),
    ] {
        line!(text, "{count} {what}");
        for name in names {
            line!(text, "- {name}");
        }
        if names.len() < count {
            line!(text, "- … and {} more", count - names.len());
        }
    }
    line!(text, "{} unchanged", folder.unchanged_count);
}
