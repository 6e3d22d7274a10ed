//! The ledger to be read: as a list, one row, or for other programs.

use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row};
use serde::Serialize;
use serde_json::{Map, Value};

use super::{
    chain::{Content, Hash, Link, iso, shown},
    kinds::{self, Kind},
};
use crate::{
    checkpoints::earlier,
    state::{State, StateError},
    tag::{self, Parsed},
};

/// Which rows.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Of this VM: its name, or the ZVM's identifier. Letter case does not count.
    pub vm: Option<String>,
    /// Of this agent; where none was declared, of this client.
    pub agent: Option<String>,
    /// Of this change id.
    pub change: Option<String>,
    /// Written within this time.
    pub since: Option<Duration>,
    /// Also those that are of interest only together with others.
    pub everything: bool,
    /// So many at most.
    pub limit: Option<usize>,
}

/// One row, in short.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Its number.
    pub row: i64,
    /// When it was written (ISO 8601, UTC, this host's clock).
    pub at: String,
    /// Its table.
    pub kind: String,
    /// Names of the VMs that it concerns: mostly one, of a call all of them.
    pub vms: Vec<String>,
    /// The ZVM's identifiers of VMs that it concerns, as far as they are known.
    pub vm_identifiers: Vec<String>,
    /// The agent, as it was declared; else the client.
    pub agent: Option<String>,
    /// The change id.
    pub change_id: Option<String>,
    /// What happened.
    pub what: String,
    /// The number of the intent that it is an outcome of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closes: Option<i64>,
}

/// All that is known of one row.
#[derive(Clone, Debug, Serialize)]
pub struct Shown {
    /// The row in short.
    #[serde(flatten)]
    pub entry: Entry,
    /// Its columns.
    pub content: Value,
    /// The hash of the row before.
    pub prev: String,
    /// Its own hash.
    pub hash: String,
    /// The intent that it is an outcome of.
    pub intent: Option<Entry>,
    /// The outcomes of this intent.
    pub closed_by: Vec<Entry>,
}

/// A row of the ledger.
struct Line {
    seq: i64,
    at: i64,
    table: String,
    row_id: i64,
    closes: Option<i64>,
    prev: Hash,
    hash: Hash,
}

const LINE: &str = "SELECT seq, at, kind, row_id, closes, prev, hash FROM ledger";

impl Line {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            seq: row.get(0)?,
            at: row.get(1)?,
            table: row.get(2)?,
            row_id: row.get(3)?,
            closes: row.get(4)?,
            // What is no hash of ours, `verify` tells.
            prev: row.get(5).unwrap_or_default(),
            hash: row.get(6).unwrap_or_default(),
        })
    }

    fn find(database: &Connection, seq: i64) -> rusqlite::Result<Option<Self>> {
        database
            .prepare_cached(&format!("{LINE} WHERE seq = ?1"))?
            .query_row([seq], Self::read)
            .optional()
    }

    fn kind(&self) -> Option<&'static Kind> {
        kinds::named(&self.table)
    }

    fn entry(&self, database: &Connection) -> rusqlite::Result<Entry> {
        let mut about = About::of(database, self)?;
        if !about.has_subject()
            && let Some(intent) = self
                .closes
                .map(|seq| Self::find(database, seq))
                .transpose()?
            && let Some(intent) = intent
        {
            let what = about.what.take();
            about = About {
                what,
                ..About::of(database, &intent)?
            };
        }
        Ok(Entry {
            row: self.seq,
            at: iso(self.at),
            kind: self.table.clone(),
            vms: about.vms,
            vm_identifiers: about.vm_identifiers,
            agent: about.agent,
            change_id: about.change,
            what: about.what.unwrap_or_default(),
            closes: self.closes,
        })
    }

    /// What its hash is made of.
    fn canonical(&self, database: &Connection) -> rusqlite::Result<Option<Map<String, Value>>> {
        let Some(kind) = self.kind() else {
            return Ok(None);
        };
        let link = Link {
            at: self.at,
            kind: kind.table,
            closes: self.closes,
            prev: self.prev,
        };
        let mut out = Vec::new();
        if !Content::of(database, kind)?.write(&link, self.row_id, &mut out)? {
            return Ok(None);
        }
        // What we have just written is an object.
        Ok(serde_json::from_slice(&out).ok())
    }
}

/// Whom and what a row concerns.
#[derive(Default)]
struct About {
    vm_identifiers: Vec<String>,
    vms: Vec<String>,
    agent: Option<String>,
    change: Option<String>,
    what: Option<String>,
}

impl About {
    fn of(database: &Connection, line: &Line) -> rusqlite::Result<Self> {
        let Some(kind) = line.kind() else {
            return Ok(Self::default());
        };
        let found = database
            .prepare_cached(kind.about)?
            .query_row([line.row_id], |row| {
                let lines = |column: usize| -> rusqlite::Result<Vec<String>> {
                    let text: Option<String> = row.get(column)?;
                    Ok(text
                        .iter()
                        .flat_map(|text| text.lines())
                        .map(str::to_owned)
                        .collect())
                };
                let about = Self {
                    vm_identifiers: lines(0)?,
                    vms: lines(1)?,
                    agent: row.get(2)?,
                    change: row.get(3)?,
                    what: row.get(5)?,
                };
                Ok((about, row.get::<_, Option<String>>(4)?))
            })
            .optional()?;
        let Some((mut about, tag)) = found else {
            return Ok(Self::default());
        };
        if let Some(Parsed::Ours(tag)) = tag.as_deref().map(tag::parse) {
            if about.vms.is_empty() {
                about.vms.push(tag.vm().to_owned());
            }
            about.agent.get_or_insert_with(|| tag.agent().to_owned());
            about.change.get_or_insert_with(|| tag.change().to_owned());
            if let Some(what) = &mut about.what {
                what.push_str(" | ");
                what.push_str(tag.action());
            }
        }
        Ok(about)
    }

    fn has_subject(&self) -> bool {
        !self.vms.is_empty() || !self.vm_identifiers.is_empty() || self.agent.is_some()
    }
}

/// A filter, with what it says of VMs resolved.
struct Wanted<'a> {
    filter: &'a Filter,
    /// The identifiers that the VM's name has, or had, in lower case.
    identifiers: Vec<String>,
    from: i64,
}

impl<'a> Wanted<'a> {
    fn of(database: &Connection, filter: &'a Filter, now: Timestamp) -> rusqlite::Result<Self> {
        let mut identifiers = Vec::new();
        if let Some(vm) = &filter.vm {
            let mut query = database.prepare(
                "SELECT lower(vm_identifier) FROM guard WHERE vm_name = ?1 COLLATE NOCASE
                 UNION SELECT lower(vm_identifier) FROM plan WHERE vm_name = ?1 COLLATE NOCASE",
            )?;
            for identifier in query.query_map([vm], |row| row.get(0))? {
                identifiers.push(identifier?);
            }
        }
        let from = filter
            .since
            .map_or(i64::MIN, |since| earlier(now, since).as_millisecond());
        Ok(Self {
            filter,
            identifiers,
            from,
        })
    }

    fn wants_kind(&self, line: &Line) -> bool {
        self.filter.everything || line.kind().is_none_or(|kind| kind.headline)
    }

    fn wants(&self, entry: &Entry) -> bool {
        let Filter {
            vm, agent, change, ..
        } = self.filter;
        let is = |wanted: &Option<String>, found: &Option<String>| match (wanted, found) {
            (None, _) => true,
            (Some(wanted), Some(found)) => same(wanted, found),
            (Some(_), None) => false,
        };
        let is_vm = vm.as_ref().is_none_or(|vm| {
            let mut named = entry.vms.iter().chain(&entry.vm_identifiers);
            named.any(|found| same(vm, found) || self.identifiers.contains(&found.to_lowercase()))
        });
        is_vm && is(agent, &entry.agent) && is(change, &entry.change_id)
    }
}

/// Letter case aside.
fn same(a: &str, b: &str) -> bool {
    a.to_lowercase() == b.to_lowercase()
}

impl State {
    pub(super) fn entries(&self, filter: &Filter) -> Result<Vec<Entry>, StateError> {
        let now = self.now();
        self.read(|database, _| {
            let wanted = Wanted::of(database, filter, now)?;
            let mut entries = Vec::new();
            let mut query =
                database.prepare(&format!("{LINE} WHERE at >= ?1 ORDER BY seq DESC"))?;
            let mut lines = query.query([wanted.from])?;
            while let Some(row) = lines.next()? {
                if filter.limit.is_some_and(|limit| entries.len() >= limit) {
                    break;
                }
                let line = Line::read(row)?;
                if wanted.wants_kind(&line) {
                    let entry = line.entry(database)?;
                    if wanted.wants(&entry) {
                        entries.push(entry);
                    }
                }
            }
            Ok(entries)
        })
    }

    pub(super) fn entry(&self, seq: i64) -> Result<Option<Shown>, StateError> {
        self.read(|database, _| {
            let Some(line) = Line::find(database, seq)? else {
                return Ok(None);
            };
            let intent = match line.closes {
                Some(seq) => Line::find(database, seq)?
                    .map(|intent| intent.entry(database))
                    .transpose()?,
                None => None,
            };
            let mut query =
                database.prepare_cached(&format!("{LINE} WHERE closes = ?1 ORDER BY seq"))?;
            let closing = query.query_map([seq], Line::read)?;
            let closed_by = closing
                .map(|line| line?.entry(database))
                .collect::<rusqlite::Result<_>>()?;
            let content = line
                .canonical(database)?
                .and_then(|mut canonical| canonical.remove("row"));
            Ok(Some(Shown {
                entry: line.entry(database)?,
                content: content.unwrap_or_default(),
                prev: shown(&line.prev),
                hash: shown(&line.hash),
                intent,
                closed_by,
            }))
        })
    }

    pub(super) fn export(
        &self,
        filter: &Filter,
        mut each: impl FnMut(Value),
    ) -> Result<(), StateError> {
        let now = self.now();
        self.read(|database, _| {
            let wanted = Wanted::of(database, filter, now)?;
            let narrowed = filter.vm.is_some() || filter.agent.is_some() || filter.change.is_some();
            let mut query = database.prepare(&format!("{LINE} WHERE at >= ?1 ORDER BY seq"))?;
            let mut lines = query.query([wanted.from])?;
            while let Some(row) = lines.next()? {
                let line = Line::read(row)?;
                if narrowed && !wanted.wants(&line.entry(database)?) {
                    continue;
                }
                let mut members = line.canonical(database)?.unwrap_or_default();
                members.insert("seq".to_owned(), line.seq.into());
                members.insert("hash".to_owned(), shown(&line.hash).into());
                each(Value::Object(members));
            }
            Ok(())
        })
    }
}
