//! What is allowed in a catalog but probably not meant.

use super::{Entry, Mode, Unprotected, condition::contradict, error::Warning};

/// Names of tools as harnesses join them with their server's; hooks take them apart.
const JOINED: &str = "mcp__";

pub(super) fn of(entries: &[Entry]) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let earlier = entries
            .iter()
            .take(index)
            .find(|earlier| earlier.shadows(entry));
        let messages = match earlier {
            Some(earlier) => vec![format!(
                "can never apply: the entry at {} applies to every such call before it",
                earlier.place
            )],
            None => entry.doubts(),
        };
        warnings.extend(messages.into_iter().map(|message| Warning {
            entry: entry.place.clone(),
            message,
        }));
    }
    warnings
}

impl Entry {
    /// Whether it applies to every call that a later entry could apply to.
    fn shadows(&self, later: &Self) -> bool {
        self.tool.covers(&later.tool)
            && self.server.covers(&later.server)
            && self.vm.covers(&later.vm)
            && self.when.iter().all(|condition| {
                let condition = condition.to_string();
                later
                    .when
                    .iter()
                    .any(|other| other.to_string() == condition)
            })
    }

    fn doubts(&self) -> Vec<String> {
        let mut doubts = Vec::new();
        if contradict(&self.when) {
            doubts.push("can never apply: no arguments satisfy its conditions".to_owned());
        }
        if self.vm.rows() == Some(0) {
            doubts.push(if self.vm.may_not_apply() {
                "can never apply: its table of hosts is empty".to_owned()
            } else {
                "refuses every call: its table is empty".to_owned()
            });
        }
        if let Some(joined) = self.tool().strip_prefix(JOINED) {
            let (server, tool) = joined.split_once("__").unwrap_or(("NAME", joined));
            doubts.push(format!(
                "can hardly apply: tools are matched by their own names: write server = \"{server}\" and tool = \"{tool}\""
            ));
        }
        if self.mode == Mode::Deny {
            let idle = [
                ("reuse", self.reuse.is_some()),
                ("unprotected", self.unprotected == Unprotected::Pass),
                ("change", self.change.is_some()),
            ];
            doubts.extend(
                idle.into_iter()
                    .filter(|(_, given)| *given)
                    .map(|(key, _)| {
                        format!(
                            "`{key}` has no effect: the entry refuses every call that it applies to"
                        )
                    }),
            );
        }
        doubts
    }
}
