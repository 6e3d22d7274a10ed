//! The ledger beside the journals: pins that have left them, and tags of ours that no row knows.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt,
    time::Duration,
};

use jiff::Timestamp;
use rusqlite::params;
use serde::Serialize;
use zvm_client::{Checkpoint, Vpg, Window};

use crate::{
    Call, Error,
    checkpoints::{Backwards, DAY, OFF, as_shown, begins, earlier, later, shown_tag},
    protection::{self, FoundVpg},
    rewind::Core,
    state::{State, StateError, timestamp},
    tag::{self, Parsed},
    text,
};

/// How a ledger and the journals differ.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Nothing was found.
    pub clean: bool,
    /// One for each VPG that was looked at.
    pub journals: Vec<ComparedJournal>,
}

/// One VPG's journal beside the ledger.
#[derive(Clone, Debug, Serialize)]
pub struct ComparedJournal {
    /// Name of the VPG.
    pub vpg: String,
    /// The ZVM's identifier of the VPG.
    pub vpg_identifier: String,
    /// From when on its journal was looked at (ISO 8601, UTC, the ZVM's clock). None: there is no journal.
    pub from: Option<String>,
    /// Pins of the ledger that are listed.
    pub listed: usize,
    /// Pins of the ledger that have left the journal, and were older than its configured history.
    pub aged_out: usize,
    /// Pins of the ledger that are older than what was looked at.
    pub not_looked_at: usize,
    /// What is not as it should be.
    pub findings: Vec<JournalFinding>,
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "finding", rename_all = "snake_case")]
#[non_exhaustive]
pub enum JournalFinding {
    /// The journal begins after this pin, and should still reach back to it: it was full, or was made anew by a resync.
    LeftEarly {
        /// Id of the checkpoint.
        checkpoint: String,
        /// Its time.
        time: String,
        /// Its tag.
        tag: String,
        /// Until when it was expected to stay; None where the history is not known.
        expected_until: Option<String>,
    },
    /// The journal reaches further back than this pin, and does not have it.
    Missing {
        /// Id of the checkpoint.
        checkpoint: String,
        /// Its time.
        time: String,
        /// Its tag.
        tag: String,
    },
    /// The checkpoint is there, with another tag than was pinned.
    OtherTag {
        /// Id of the checkpoint.
        checkpoint: String,
        /// The tag of the ledger.
        tag: String,
        /// The tag of the journal.
        listed: String,
    },
    /// The journal has a tag of our form, and no row knows it: another user or host wrote it, or rows are gone.
    UnknownTag {
        /// Id of the checkpoint.
        checkpoint: String,
        /// Its time.
        time: String,
        /// Its tag.
        tag: String,
    },
    /// The ZVM has no such VPG any more.
    VpgGone {
        /// How many pins of the ledger went with it.
        pins: usize,
    },
}

impl fmt::Display for JournalFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LeftEarly {
                checkpoint,
                time,
                tag,
                expected_until,
            } => {
                let until = expected_until
                    .as_deref()
                    .unwrap_or("a time that is not known");
                write!(
                    f,
                    "checkpoint {checkpoint} of {time} has left the journal early; it was expected to stay until {until}: {tag}"
                )
            }
            Self::Missing {
                checkpoint,
                time,
                tag,
            } => write!(
                f,
                "checkpoint {checkpoint} of {time} is not in the journal, which reaches further back: {tag}"
            ),
            Self::OtherTag {
                checkpoint,
                tag,
                listed,
            } => write!(
                f,
                "checkpoint {checkpoint} has another tag than was pinned: {listed} instead of {tag}"
            ),
            Self::UnknownTag {
                checkpoint,
                time,
                tag,
            } => write!(
                f,
                "checkpoint {checkpoint} of {time} has a tag that no row knows: another user or host wrote it, or rows are gone: {tag}"
            ),
            Self::VpgGone { pins } => {
                write!(
                    f,
                    "the ZVM has no such VPG any more; {} went with it",
                    text::counted(*pins, "pin", "pins")
                )
            }
        }
    }
}

/// A pin of the ledger.
struct RecordedPin {
    checkpoint_id: String,
    at: Timestamp,
    tag: String,
}

/// A VPG that the ledger knows: its identifier in lower case, and its newest name.
struct RecordedVpg {
    identifier: String,
    name: String,
}

impl State {
    fn recorded_vpgs(&self, zvm: &str) -> Result<Vec<RecordedVpg>, StateError> {
        self.read(|database, _| {
            // Those of which nothing was pinned are told by their inserts.
            let mut query = database.prepare(
                "SELECT lower(p.vpg_identifier) AS vpg, p.vpg_name, max(p.id) FROM pin p JOIN guard g ON g.id = p.guard
                 WHERE g.zvm = ?1 GROUP BY vpg
                 UNION ALL SELECT DISTINCT vpg_identifier, vpg_identifier, 0 FROM insert_sent WHERE zvm = ?1",
            )?;
            let rows = query.query_map([zvm], |row| {
                Ok(RecordedVpg {
                    identifier: row.get(0)?,
                    name: row.get(1)?,
                })
            })?;
            let mut vpgs = BTreeMap::new();
            for vpg in rows {
                let vpg = vpg?;
                vpgs.entry(vpg.identifier.clone()).or_insert(vpg);
            }
            Ok(vpgs.into_values().collect())
        })
    }

    fn recorded_pins(&self, zvm: &str, vpg: &str) -> Result<Vec<RecordedPin>, StateError> {
        self.read(|database, _| {
            let mut query = database.prepare(
                "SELECT p.checkpoint_id, p.checkpoint_at, g.tag FROM pin p JOIN guard g ON g.id = p.guard
                 WHERE g.zvm = ?1 AND lower(p.vpg_identifier) = ?2 ORDER BY p.id",
            )?;
            let rows = query.query_map(params![zvm, vpg], |row| {
                Ok(RecordedPin {
                    checkpoint_id: row.get(0)?,
                    at: timestamp(row.get(1)?),
                    tag: row.get(2)?,
                })
            })?;
            rows.collect()
        })
    }

    /// Every tag that a guard was about to insert.
    fn recorded_tags(&self, zvm: &str) -> Result<HashSet<String>, StateError> {
        self.read(|database, _| {
            let mut query = database.prepare(
                "SELECT tag FROM guard_intent WHERE zvm = ?1 UNION SELECT tag FROM guard WHERE zvm = ?1",
            )?;
            let rows = query.query_map([zvm], |row| row.get(0))?;
            rows.collect()
        })
    }
}

/// See [`Rewind::compare_with_journals`](crate::Rewind::compare_with_journals).
pub(crate) async fn compare(
    core: &Core,
    vm: Option<&str>,
    since: Option<Duration>,
    call: &Call,
) -> Result<Comparison, Error> {
    let watch = call.watch();
    let zvm = core.config.zvm();
    let of_zvm = zvm.clone();
    let tags = core
        .with_state(move |state| state.recorded_tags(&of_zvm))
        .await?;
    let vpgs = watch
        .during(|| "looking for the VPGs".to_owned(), wanted_vpgs(core, vm))
        .await?;
    let mut journals = Vec::new();
    for (recorded, vpg) in vpgs {
        let (of_zvm, identifier) = (zvm.clone(), recorded.identifier.clone());
        let pins = core
            .with_state(move |state| state.recorded_pins(&of_zvm, &identifier))
            .await?;
        let comparing = || {
            format!(
                "comparing with the journal of VPG {}",
                text::named(&recorded.name, 256)
            )
        };
        let journal = Journal {
            core,
            tags: &tags,
            pins: &pins,
            ids: pins.iter().map(|pin| pin.checkpoint_id.as_str()).collect(),
        };
        let compared = watch.during(comparing, journal.compare(&recorded, vpg, since));
        journals.push(compared.await?);
    }
    Ok(Comparison {
        clean: journals.iter().all(|journal| journal.findings.is_empty()),
        journals,
    })
}

/// The VPGs of a VM; without one, those that the ledger knows. None beside a VPG: the ZVM does not have it.
async fn wanted_vpgs(
    core: &Core,
    vm: Option<&str>,
) -> Result<Vec<(RecordedVpg, Option<FoundVpg>)>, Error> {
    let recorded = |vpg: &FoundVpg| RecordedVpg {
        identifier: vpg.id().to_lowercase(),
        name: vpg.name(),
    };
    if let Some(vm) = vm {
        let found = protection::find(&core.zvm, vm).await?;
        let vpgs = found.vpgs.into_iter();
        return Ok(vpgs.map(|vpg| (recorded(&vpg), Some(vpg))).collect());
    }
    let zvm = core.config.zvm();
    let known = core
        .with_state(move |state| state.recorded_vpgs(&zvm))
        .await?;
    let mut there: HashMap<String, Vpg> = core
        .zvm
        .vpgs()
        .await?
        .into_iter()
        .map(|vpg| (vpg.identifier.to_lowercase(), vpg))
        .collect();
    Ok(known
        .into_iter()
        .map(|known| {
            let vpg = there.remove(&known.identifier).map(FoundVpg::from);
            (vpg.as_ref().map_or(known, recorded), vpg)
        })
        .collect())
}

struct Journal<'a> {
    core: &'a Core,
    tags: &'a HashSet<String>,
    pins: &'a [RecordedPin],
    /// Of the pins.
    ids: HashSet<&'a str>,
}

impl Journal<'_> {
    async fn compare(
        &self,
        recorded: &RecordedVpg,
        vpg: Option<FoundVpg>,
        since: Option<Duration>,
    ) -> Result<ComparedJournal, Error> {
        let mut compared = ComparedJournal {
            vpg: text::display(&recorded.name, 256),
            vpg_identifier: text::display(&recorded.identifier, 256),
            from: None,
            listed: 0,
            aged_out: 0,
            not_looked_at: 0,
            findings: Vec::new(),
        };
        let Some(vpg) = vpg else {
            let pins = self.pins.len();
            compared.findings.push(JournalFinding::VpgGone { pins });
            return Ok(compared);
        };
        let now = self.core.zvm.server_time().await?;
        let begins = begins(&self.core.zvm, &vpg).await?;
        let from = begins.map(|begins| match since {
            Some(since) => begins.max(earlier(now, since)),
            None => begins,
        });
        compared.from = from.map(as_shown);
        let rows = match from {
            Some(from) => self.rows(&vpg, from, now).await?,
            None => HashMap::new(),
        };
        let history = vpg
            .vpg
            .configured_history_minutes
            .map(|minutes| Duration::from_secs(minutes.saturating_mul(60)));
        for pin in self.pins {
            let place = Place {
                now,
                begins,
                from,
                history,
            };
            match rows.get(&pin.checkpoint_id) {
                Some(row) => match row.tag.as_deref() {
                    Some(listed) if tag::same(&pin.tag, listed) => compared.listed += 1,
                    listed => compared.findings.push(JournalFinding::OtherTag {
                        checkpoint: pin.checkpoint_id.clone(),
                        tag: shown_tag(&pin.tag),
                        listed: listed.map_or_else(|| "none".to_owned(), shown_tag),
                    }),
                },
                None => place.of(pin, &mut compared),
            }
        }
        let unknown = rows.values().filter(|row| self.is_unknown(row));
        let mut unknown: Vec<_> = unknown.collect();
        unknown.sort_unstable_by_key(|row| row.id);
        let unknown = unknown.into_iter().map(|row| JournalFinding::UnknownTag {
            checkpoint: row.id.to_string(),
            time: as_shown(row.time),
            tag: row.tag.as_deref().map(shown_tag).unwrap_or_default(),
        });
        compared.findings.extend(unknown);
        Ok(compared)
    }

    /// What matters of the journal, day by day: pins of the ledger, and tags of ours.
    async fn rows(
        &self,
        vpg: &FoundVpg,
        from: Timestamp,
        now: Timestamp,
    ) -> Result<HashMap<String, Checkpoint>, Error> {
        let mut found = HashMap::new();
        for window in Backwards::new(earlier(from, OFF), later(now, OFF), DAY) {
            let rows = self.day(vpg, window).await?;
            found.extend(rows.into_iter().filter_map(|row| {
                let id = row.id.to_string();
                let matters = self.ids.contains(id.as_str()) || is_ours(&row);
                matters.then_some((id, row))
            }));
        }
        Ok(found)
    }

    async fn day(&self, vpg: &FoundVpg, window: Window) -> Result<Vec<Checkpoint>, Error> {
        self.core
            .zvm
            .checkpoints(vpg.id(), window)
            .await
            .map_err(|error| vpg.failed(error))
    }

    fn is_unknown(&self, row: &Checkpoint) -> bool {
        let Some(listed) = row.tag.as_deref().filter(|_| is_ours(row)) else {
            return false;
        };
        !self.tags.contains(tag::without_suffix(listed))
            && !self.ids.contains(row.id.to_string().as_str())
    }
}

fn is_ours(row: &Checkpoint) -> bool {
    row.tag
        .as_deref()
        .is_some_and(|tag| tag::parse(tag) != Parsed::NotOurs)
}

/// A pin that is not listed, and a journal.
struct Place {
    now: Timestamp,
    /// Where the journal begins.
    begins: Option<Timestamp>,
    /// From when on it was looked at.
    from: Option<Timestamp>,
    history: Option<Duration>,
}

impl Place {
    fn of(&self, pin: &RecordedPin, compared: &mut ComparedJournal) {
        let (checkpoint, tag) = (pin.checkpoint_id.clone(), shown_tag(&pin.tag));
        let time = as_shown(pin.at);
        if self.begins.is_some_and(|begins| pin.at >= begins) {
            if self.from.is_some_and(|from| pin.at >= from) {
                let missing = JournalFinding::Missing {
                    checkpoint,
                    time,
                    tag,
                };
                compared.findings.push(missing);
            } else {
                compared.not_looked_at += 1;
            }
            return;
        }
        let until = self.history.map(|history| later(pin.at, history));
        if until.is_some_and(|until| until <= self.now) {
            compared.aged_out += 1;
            return;
        }
        compared.findings.push(JournalFinding::LeftEarly {
            checkpoint,
            time,
            tag,
            expected_until: until.map(as_shown),
        });
    }
}
