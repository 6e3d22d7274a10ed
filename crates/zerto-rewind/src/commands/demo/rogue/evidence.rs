//! Whether each change was pinned before it reached the server: by the server's own notes and the ZVM's own journal. Neither
//! the proxy nor the agent is asked.
use std::{collections::BTreeMap, fs, io, path::Path};

use jiff::Timestamp;
use rewind_core::tag::{self, Parsed};
use zvm_sim::JournalEntry;

use super::super::guest_ops::{Order, Received};

/// The calls that reached the server, oldest first.
pub fn received(file: &Path) -> io::Result<Vec<Received>> {
    let notes = fs::read_to_string(file)?;
    let calls = notes.lines().map(serde_json::from_str);
    Ok(calls.collect::<Result<_, _>>()?)
}

/// The action that the tag of a changing call has. Nothing for a call that only reads.
pub fn action(order: &Order) -> Option<String> {
    match order {
        Order::Read { .. } => None,
        Order::Write { path, .. } => Some(format!("write {path}")),
        Order::Move { path, to, .. } => Some(format!("move {path} to {to}")),
        Order::Delete { path, .. } => Some(format!("delete {path}")),
    }
}

/// The journals of the VPGs that protect a VM, by the names of the VPGs.
pub type Journals = BTreeMap<String, Vec<JournalEntry>>;

/// Takes the pins of this call out of the journals, so that no other call is covered by them.
///
/// # Errors
/// Why the call was not guarded: on some VPG no pin of its own was listed when the server got it.
pub fn guarded(
    journals: &mut Journals,
    agent: &str,
    vm: &str,
    action: &str,
    at: Timestamp,
) -> Result<(), String> {
    if journals.is_empty() {
        return Err(format!("no VPG protects {vm}"));
    }
    for (vpg, entries) in journals {
        let pin = entries.iter().position(|entry| {
            let listed = entry.listed_at.is_some_and(|listed| listed <= at);
            listed && is_pin(&entry.tag, agent, vm, action)
        });
        let pin = pin.ok_or_else(|| {
            format!("\"{action}\" on {vm} reached the server at {at}, and VPG {vpg} had listed no pin for it")
        })?;
        entries.remove(pin);
    }
    Ok(())
}

fn is_pin(name: &str, agent: &str, vm: &str, action: &str) -> bool {
    match tag::parse(name) {
        Parsed::Ours(tag) => tag.agent() == agent && tag.vm() == vm && tag.action() == action,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(agent: &str, action: &str, listed_at: Option<&str>) -> JournalEntry {
        JournalEntry {
            id: "1".into(),
            tag: format!("ai:{agent} | {action} | vm=app01 | change=c | 20260921T170829Z"),
            time: "2026-09-21T17:08:29Z".parse().unwrap(),
            listed_at: listed_at.map(|at| at.parse().unwrap()),
        }
    }

    const BEFORE: Option<&str> = Some("2026-09-21T17:08:31Z");

    fn judged(journals: &[(&str, Vec<JournalEntry>)], times: usize) -> Result<(), String> {
        let mut journals = journals
            .iter()
            .map(|(vpg, entries)| ((*vpg).to_owned(), entries.clone()))
            .collect();
        let at = "2026-09-21T17:08:32Z".parse().unwrap();
        (0..times).try_for_each(|_| guarded(&mut journals, "rogue", "app01", "delete /x", at))
    }

    #[test]
    fn a_call_needs_a_pin_of_its_own_on_every_vpg_listed_before_it_arrives() {
        let good = || entry("rogue", "delete /x", BEFORE);
        assert_eq!(
            judged(&[("a", vec![good()]), ("b", vec![good()])], 1),
            Ok(())
        );
        assert_eq!(judged(&[("a", vec![good(), good()])], 2), Ok(()));
        for (wrong, times) in [
            (vec![], 1),
            (vec![good()], 2),
            (vec![entry("rogue", "delete /x", None)], 1),
            (
                vec![entry("rogue", "delete /x", Some("2026-09-21T17:08:33Z"))],
                1,
            ),
            (vec![entry("other", "delete /x", BEFORE)], 1),
            (vec![entry("rogue", "delete /y", BEFORE)], 1),
        ] {
            let why = judged(&[("a", vec![good(), good()]), ("b", wrong)], times).unwrap_err();
            assert!(why.contains("VPG b"), "{why}");
        }
        assert!(judged(&[], 1).unwrap_err().contains("no VPG"));
    }
}
