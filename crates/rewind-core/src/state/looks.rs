//! Looks into checkpoints: who looked for which path, and what it was compared with. What was seen is not kept.

use rusqlite::{Transaction, params};

use super::{State, StateError, millis};
use crate::ledger::{append, append_if, kinds};

/// A path or pattern that is about to be looked for.
pub(crate) struct LookRecord {
    /// Host and port of the ZVM.
    pub zvm: String,
    pub vm_identifier: String,
    pub vm_name: String,
    pub vpg_identifier: String,
    pub vpg_name: String,
    pub checkpoint_id: String,
    /// The MCP client as it named itself, or the program that asked.
    pub client: Option<String>,
    /// The change id of the session that asked.
    pub change: String,
    /// The name of the plan that was agreed to. None: nobody had to agree.
    pub agreed: Option<String>,
    pub path: String,
    /// What it is compared with, if with anything.
    pub compared_with: Option<String>,
}

/// The number of a look in the state.
#[derive(Clone, Copy)]
pub(crate) struct LookId(i64);

impl State {
    /// Writes down that these are about to be looked for. Where that is not possible, nothing may be mounted.
    pub(crate) fn looks_beginning(&self, looks: &[LookRecord]) -> Result<Vec<LookId>, StateError> {
        let at = millis(self.now());
        self.with(|open| {
            let owner = open.owner()?;
            open.write(|database| {
                looks
                    .iter()
                    .map(|look| beginning(database, look, &owner, at))
                    .collect()
            })
        })
    }

    /// Writes down how they ended: with the code of a failure, or well.
    pub(crate) fn looks_ended(
        &self,
        looks: &[LookId],
        failure: Option<&str>,
    ) -> Result<(), StateError> {
        let at = millis(self.now());
        self.write_outcome(|database| {
            for look in looks {
                let added = database.execute(
                    "INSERT OR IGNORE INTO look_ended (look, failure) VALUES (?1, ?2)",
                    params![look.0, failure],
                )?;
                append_if(added, database, &kinds::LOOK_ENDED, look.0, at)?;
            }
            Ok(())
        })
    }
}

fn beginning(
    database: &Transaction<'_>,
    look: &LookRecord,
    owner: &str,
    at: i64,
) -> rusqlite::Result<LookId> {
    database.execute(
        "INSERT INTO look (zvm, vm_identifier, vm_name, vpg_identifier, vpg_name, checkpoint_id, client, change_id, agreed, path,
             compared_with, owner)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        params![
            look.zvm,
            look.vm_identifier,
            look.vm_name,
            look.vpg_identifier,
            look.vpg_name,
            look.checkpoint_id,
            look.client,
            look.change,
            look.agreed,
            look.path,
            look.compared_with,
            owner,
        ],
    )?;
    let id = database.last_insert_rowid();
    append(database, &kinds::LOOK, id, at)?;
    Ok(LookId(id))
}
