//! Results and errors as short texts for people and models: the text beside the structured content.
//!
//! What comes from a ZVM or a guest stands in quotation marks wherever it could pass for a sentence of ours.
use std::fmt::Write as _;

use rewind_core::{
    CheckpointList, Done, Error, GuardDecision, ListedCheckpoint, Protection, Receipt, Recovery,
    text::{named, quoted},
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
        counted(count, "VPG"),
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
        counted(receipt.pins.len(), "VPG"),
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
    let count = counted(list.checkpoints.len(), "tagged checkpoint");
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

/// What the ledger knows of a checkpoint; empty where it knows nothing.
pub fn record(checkpoint: &ListedCheckpoint) -> String {
    let mut said = Vec::new();
    if let Some(guard) = &checkpoint.guard {
        let mut of = format!("guard {}", guard.row);
        if guard.outcome != "pinned" {
            let _ = write!(of, " ({})", words(&guard.outcome));
        }
        for call in &guard.calls {
            let tool = match &call.server {
                Some(server) => format!("{server}/{}", call.tool),
                None => call.tool.clone(),
            };
            let _ = write!(of, ", {}: {}", named(&tool, SHOWN), words(&call.outcome));
        }
        said.push(of);
    }
    for recovery in &checkpoint.recoveries {
        said.push(format!(
            "{} {}",
            words(&recovery.outcome),
            named(&recovery.path, SHOWN)
        ));
    }
    said.join("; ")
}

/// A name on the wire as words.
fn words(name: &str) -> String {
    name.replace('_', " ")
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
    line!(
        text,
        "Recovered {} of {} as it was at {} (checkpoint {} of VPG {}).",
        named(&recovery.guest_path, SHOWN),
        named(&recovery.vm, SHOWN),
        recovery.checkpoint_time,
        recovery.checkpoint,
        named(&recovery.vpg, SHOWN)
    );
    line!(
        text,
        "It is here now: {} ({} bytes)",
        named(&recovery.local_path, 4096),
        recovery.bytes
    );
    if let Some(open) = &recovery.still_open {
        line!(text, "WARNING: {open} {}", open.next);
    }
    for file in &recovery.files {
        line!(
            text,
            "- {}: {} bytes, SHA-256 {}",
            named(&file.path, SHOWN),
            file.bytes,
            file.sha256
        );
    }
    list(&mut text, "Left out:", recovery.skipped.iter().cloned());
    list(&mut text, "Note:", recovery.notes.iter().cloned());
    line!(
        text,
        "Seconds: find {:.1}, mount {:.1}, resolve {:.1}, download {:.1}, unmount {:.1}; {:.1} in all.",
        timing.find,
        timing.mount,
        timing.resolve,
        timing.download,
        timing.unmount,
        timing.total
    );
    text.trim_end().into()
}

fn counted(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}
