//! How the servers of listed tools described them: what was accepted, and what was seen last.

use rusqlite::{OptionalExtension, Row, Transaction, params};

use super::{State, StateError, millis};
use crate::ledger::{append, kinds};

/// A server's description of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Definition {
    /// Empty while it is unknown.
    pub server: String,
    pub tool: String,
    /// Over the name and the input schema.
    pub schema_sha256: String,
    /// Over what only describes it.
    pub described_sha256: String,
    /// The input schema; None where it is too long to be kept.
    pub schema: Option<String>,
    /// What only describes it; None where it is too long to be kept.
    pub described: Option<String>,
}

/// A tool as it was accepted, and as it was seen last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Remembered {
    pub accepted: Definition,
    pub seen: Definition,
}

const COLUMNS: &str = "server, tool, schema_sha256, described_sha256, schema, described";
const ACCEPTED: &str = "event IN ('first', 'accepted')";
const SEEN: &str = "event IN ('first', 'seen')";

impl State {
    /// Remembers what was seen where it is not what was seen last, and returns what is accepted: at the first time, this.
    pub(crate) fn tool_seen(&self, seen: &Definition) -> Result<Definition, StateError> {
        let at = millis(self.now());
        self.write(|database| {
            let last = latest(database, SEEN, &seen.server, &seen.tool)?;
            let accepted = latest(database, ACCEPTED, &seen.server, &seen.tool)?;
            match accepted {
                None => insert(database, "first", seen, None, at)?,
                Some(_) if last.as_ref().is_none_or(|last| !last.same_as(seen)) => {
                    insert(database, "seen", seen, None, at)?;
                }
                Some(_) => {}
            }
            Ok(accepted.unwrap_or_else(|| seen.clone()))
        })
    }

    /// A tool as it is remembered; while the server is unknown, those of all servers.
    pub(crate) fn tool_remembered(
        &self,
        server: Option<&str>,
        tool: &str,
    ) -> Result<Vec<Remembered>, StateError> {
        self.read_tools(
            "tool = ?1 AND (?2 IS NULL OR server = ?2)",
            params![tool, server],
        )
    }

    /// Every tool that is remembered, by server and name.
    pub(crate) fn tools_remembered(&self) -> Result<Vec<Remembered>, StateError> {
        self.read_tools("TRUE", params![])
    }

    /// Writes down that a person accepted this definition.
    pub(crate) fn tool_accepted(&self, accepted: &Definition, by: &str) -> Result<(), StateError> {
        let at = millis(self.now());
        self.write(|database| insert(database, "accepted", accepted, Some(by), at))
    }

    fn read_tools(
        &self,
        which: &str,
        parameters: impl rusqlite::Params,
    ) -> Result<Vec<Remembered>, StateError> {
        // Reads only, and so never waits for a writer.
        self.read(|database, _| {
            let mut query = database.prepare_cached(&format!(
                "SELECT DISTINCT server, tool FROM tool_definition WHERE {which} ORDER BY server, tool"
            ))?;
            let names = query.query_map(parameters, |row| {
                Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
            })?;
            let mut tools = Vec::new();
            for name in names {
                let (server, tool) = name?;
                if let Some(accepted) = latest(database, ACCEPTED, &server, &tool)?
                    && let Some(seen) = latest(database, SEEN, &server, &tool)?
                {
                    tools.push(Remembered { accepted, seen });
                }
            }
            Ok(tools)
        })
    }
}

impl Definition {
    /// Whether nothing changed.
    pub(crate) fn same_as(&self, other: &Self) -> bool {
        self.schema_sha256 == other.schema_sha256 && self.described_sha256 == other.described_sha256
    }

    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            server: row.get(0)?,
            tool: row.get(1)?,
            schema_sha256: row.get(2)?,
            described_sha256: row.get(3)?,
            schema: row.get(4)?,
            described: row.get(5)?,
        })
    }
}

fn latest(
    database: &Transaction<'_>,
    which: &str,
    server: &str,
    tool: &str,
) -> rusqlite::Result<Option<Definition>> {
    database
        .prepare_cached(&format!(
            "SELECT {COLUMNS} FROM tool_definition WHERE server = ?1 AND tool = ?2 AND {which} ORDER BY id DESC LIMIT 1"
        ))?
        .query_row([server, tool], Definition::read)
        .optional()
}

fn insert(
    database: &Transaction<'_>,
    event: &str,
    definition: &Definition,
    by: Option<&str>,
    at: i64,
) -> rusqlite::Result<()> {
    database.execute(
        &format!(
            "INSERT INTO tool_definition (at, event, accepted_by, {COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"
        ),
        params![
            at,
            event,
            by,
            definition.server,
            definition.tool,
            definition.schema_sha256,
            definition.described_sha256,
            definition.schema,
            definition.described,
        ],
    )?;
    append(
        database,
        &kinds::TOOL_DEFINITION,
        database.last_insert_rowid(),
        at,
    )
}
