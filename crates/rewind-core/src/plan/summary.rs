//! A plan as the text that a person reads before they decide. Everything in it comes from the plan, so its digest covers it.
use super::{Decides, Effect, Plan, Present, Source, shown_digest};
use crate::{
    guest::{InGuest, Restore},
    recovery::told_path,
    text,
};
use jiff::Timestamp;

/// A line of what a person agrees to. Writing to a string does not fail.
macro_rules! row {
    ($text:expr, $name:expr, $($what:tt)*) => {{
        use std::fmt::Write as _;
        let _ = writeln!($text, "  {:<13}{}", $name, format_args!($($what)*));
    }};
}
pub(crate) use row;

const NAME_MAX_LEN: usize = 500;

impl Plan {
    /// The text that a human has to agree to. `digest` is the plan's own.
    #[must_use]
    pub fn summary(&self, digest: &str) -> String {
        let mut text = match &self.decides {
            Decides::Preview { .. } => "Look into a checkpoint of the Zerto journal:\n",
            Decides::Effects { .. } => "Recover from the Zerto journal:\n",
        }
        .to_owned();
        let named = |name: &str| text::named(name, NAME_MAX_LEN);
        let (vm, identifier) = (named(&self.vm), named(&self.vm_identifier));
        row!(text, "VM", "{vm} ({identifier})");
        row!(text, "VPG", "{}", named(&self.vpg));
        let (id, time, age) = (
            &self.checkpoint,
            &self.checkpoint_time,
            &self.checkpoint_age,
        );
        row!(text, "checkpoint", "{id} of {time}, {age}");
        if let Some(until) = &self.expected_until {
            row!(text, "in journal", "until about {until} (an estimate)");
        }
        let tag = self.tag.as_deref();
        let tag = tag.map(|tag| text::quoted(tag, NAME_MAX_LEN));
        row!(text, "tag", "{}", tag.as_deref().unwrap_or("none"));
        match &self.decides {
            Decides::Preview { looks_for, .. } => {
                for pattern in looks_for {
                    row!(text, "look for", "{}", told_path(pattern));
                }
            }
            Decides::Effects { effects } => {
                for effect in effects {
                    describe(&mut text, effect);
                }
            }
        }
        if let Some(asks) = &self.asked_by {
            row!(text, "asked by", "{}", named(asks));
        }
        for note in &self.notes {
            row!(text, "note", "{note}");
        }
        row!(
            text,
            "plan",
            "{}, digest {}, valid until {:.0}",
            self.id,
            shown_digest(digest),
            self.expires_at
        );
        text.push_str(&self.what_happens());
        text
    }

    fn what_happens(&self) -> String {
        match &self.decides {
            Decides::Preview { .. } => {
                "The checkpoint is mounted beside the VM, its disks are read, and it is unmounted. Nothing is placed anywhere: what is \
                 to be recovered is asked about again. The agreement is about all of this checkpoint, not these paths alone: who asks \
                 here may look for any path in it, and see what differs in files since, for ten minutes (at a command line, where \
                 there is a passphrase: with this command). Each look is written down in the ledger."
                    .to_owned()
            }
            Decides::Effects { effects } => {
                let unseen = "Whether the path is in the checkpoint, and how large it is, is known only once it is mounted.";
                let unknown = match self.was_previewed() {
                    true => "",
                    false => unseen,
                };
                format!("{} {unknown}", of_effects(effects))
                    .trim_end()
                    .to_owned()
            }
        }
    }
}

fn of_effects(effects: &[Effect]) -> String {
    let carried_out = |effect: &&Effect| !matches!(effect, Effect::Omit { .. });
    let what = match effects.iter().filter(carried_out).count() {
        1 => "the path is",
        _ => "the paths are",
    };
    let mounted = format!(
        "The checkpoint is mounted beside the VM, {what} downloaded to this host, and the checkpoint is unmounted."
    );
    let writes = effects
        .iter()
        .any(|effect| matches!(effect, Effect::Write { .. }));
    if !writes {
        return format!("{mounted} The VM itself is not changed.");
    }
    let guarded = match effects.iter().any(Effect::replaces) {
        true => "The VM is guarded first. ",
        false => "",
    };
    format!(
        "{guarded}{mounted} Then each file is written in the guest under a temporary name, compared, and given its name by one \
         rename. Where a file in the guest is not as it is shown here, nothing is overwritten there; the others are written all the same."
    )
}

fn describe(text: &mut String, effect: &Effect) {
    let source = effect.source();
    row!(
        text,
        "path",
        "{}{}",
        told_path(&source.path),
        what_it_is(source)
    );
    match effect {
        Effect::Place { to, now, .. } => {
            let there = match now {
                Present::Nothing => "nothing is there now",
            };
            row!(
                text,
                "to",
                "{} ({there})",
                text::named_exactly(to, text::PATH_MAX_LEN)
            );
        }
        Effect::Write {
            in_guest,
            looked_at,
            ..
        } => written(text, in_guest, *looked_at),
        Effect::Omit { code, why, .. } => {
            row!(text, "is left out", "{}: {why}", code.as_str());
        }
    }
}

fn written(text: &mut String, in_guest: &InGuest, looked_at: Timestamp) {
    let InGuest {
        guest,
        sudo,
        restore,
        to,
        present,
        kept,
        attributes,
        ..
    } = in_guest;
    let under = if *sudo { ", under sudo" } else { "" };
    row!(
        text,
        "in the guest",
        "over SSH: {}{under}",
        text::named_exactly(guest, 200)
    );
    match present {
        Some(there) => row!(
            text,
            "is now",
            "{}, SHA-256 {}, {} (looked at {looked_at:.0})",
            text::bytes(there.bytes),
            there.sha256,
            there.attributes
        ),
        None => row!(text, "is now", "not there (looked at {looked_at:.0})"),
    }
    let how = match (restore, present) {
        (Restore::Beside, _) => "next to it",
        (Restore::Replace, Some(_)) => "in its place",
        (Restore::Replace, None) => "where nothing is now",
    };
    row!(text, "written to", "{} ({how})", told_path(to));
    row!(text, "gets", "{attributes}");
    if let Some(kept) = kept {
        row!(text, "kept", "what is there now, as {}", told_path(kept));
    }
}

fn what_it_is(source: &Source) -> String {
    match &source.seen {
        None => String::new(),
        Some(seen) if seen.is_folder => ", a folder with all that is in it".to_owned(),
        Some(seen) => match seen.bytes {
            Some(bytes) => format!(", {}", text::bytes(bytes)),
            None => ", of unknown size".to_owned(),
        },
    }
}
