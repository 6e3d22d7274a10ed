//! `zerto_list_checkpoints`: the tagged checkpoints of a VM, newest first.
use rewind_core::{Call, CheckpointList, Error, ErrorCode, Rewind, duration};
use rmcp::model::Tool;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{define, read_only};
use crate::{answer::Answer, text};

/// Of one checkpoint. Its `recovery_count` is of all.
const RECOVERIES_TOLD: usize = 10;

pub const NAME: &str = "zerto_list_checkpoints";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// The VM: its name, its hostname, its IP address, or its vmIdentifier.
    #[schemars(length(min = 1, max = 256))]
    vm: String,
    /// How far back to look: "90m", "24h", "7d". Without it, 24 hours.
    #[schemars(length(min = 1, max = 32))]
    since: Option<String>,
    /// At most so many checkpoints. Without it, 50.
    #[schemars(range(min = 1, max = 500))]
    limit: Option<u64>,
}

pub fn tool() -> Tool {
    define::<Arguments, CheckpointList>(
        NAME,
        "List tagged checkpoints of a VM",
        "Lists the tagged checkpoints in the journals of all VPGs that protect a VM, newest first: each tag taken apart \
         (agent, action, change id, time), until when the checkpoint is expected to stay in the journal, which is an \
         estimate, and what this host's ledger knows of it: for which tool call it was pinned, how that ended, and what was \
         recovered from it. Use it to find the checkpoint to recover from. Changes nothing.",
        read_only(),
    )
}

pub async fn call(rewind: &Rewind, arguments: Arguments, call: &Call) -> Result<Answer, Error> {
    let since = arguments
        .since
        .map(|since| duration::parse(&since))
        .transpose()
        .map_err(|error| {
            Error::new(
                ErrorCode::InvalidArgument,
                format!("{NAME}: the argument `since`: {error}"),
            )
        })?;
    let limit = arguments
        .limit
        .and_then(|limit| usize::try_from(limit).ok());
    let mut list = rewind
        .checkpoints(&arguments.vm, since, limit, call)
        .await?;
    let text = text::checkpoints(&list);
    list.bound_recoveries(RECOVERIES_TOLD);
    Ok(Answer::new(&list, text))
}
