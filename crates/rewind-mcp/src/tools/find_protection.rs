//! `zerto_find_protection`: exactly one VM, and every VPG that protects it.
use rewind_core::{Call, Error, Protection, Rewind};
use rmcp::model::Tool;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{define, read_only};
use crate::{answer::Answer, text};

pub const NAME: &str = "zerto_find_protection";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// The VM: its name, its hostname, its IP address, or its vmIdentifier. Matched whole, never in part.
    #[schemars(length(min = 1, max = 256))]
    vm: String,
}

pub fn tool() -> Tool {
    define::<Arguments, Protection>(
        NAME,
        "Find a VM's protection",
        "Finds exactly one VM on the ZVM and every VPG (protection group) that protects it, with each VPG's state and \
         whether a tagged checkpoint can be inserted there now. Changes nothing. Where no VM fits, or several do, it \
         stops and names the candidates.",
        read_only(),
    )
}

pub async fn call(rewind: &Rewind, arguments: Arguments, call: &Call) -> Result<Answer, Error> {
    let found = rewind.find(&arguments.vm, call).await?;
    Ok(Answer::new(&found, text::protection(&found)))
}
