//! The six tools. Their names, arguments and meaning are a contract; each has a file of its own.
use std::sync::LazyLock;

use rewind_core::{Call, Error, ErrorCode, Rewind};
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use schemars::JsonSchema;

use crate::{answer::Reply, arguments::read, person::Person, schema};

mod create_tagged_checkpoint;
mod diff_file;
mod find_protection;
mod guard_before_mutate;
mod list_checkpoints;
mod recover_file;

static ALL: LazyLock<[Tool; 6]> = LazyLock::new(|| {
    [
        find_protection::tool(),
        create_tagged_checkpoint::tool(),
        guard_before_mutate::tool(),
        list_checkpoints::tool(),
        diff_file::tool(),
        recover_file::tool(),
    ]
});

/// All tools as `tools/list` has them, always in this order.
pub fn all() -> &'static [Tool] {
    ALL.as_slice()
}

/// The tool with exactly this name.
pub fn find(name: &str) -> Option<&'static Tool> {
    all().iter().find(|tool| tool.name == name)
}

/// Calls a tool with what a client sent as its arguments.
pub(crate) async fn call(
    tool: &Tool,
    rewind: &Rewind,
    arguments: JsonObject,
    call: &Call,
    person: &Person,
) -> Result<Reply, Error> {
    let answer = match &*tool.name {
        find_protection::NAME => find_protection::call(rewind, read(tool, arguments)?, call).await,
        create_tagged_checkpoint::NAME => {
            create_tagged_checkpoint::call(rewind, read(tool, arguments)?, call).await
        }
        guard_before_mutate::NAME => {
            guard_before_mutate::call(rewind, read(tool, arguments)?, call).await
        }
        list_checkpoints::NAME => {
            list_checkpoints::call(rewind, read(tool, arguments)?, call).await
        }
        diff_file::NAME => {
            return diff_file::call(rewind, read(tool, arguments)?, call, person).await;
        }
        recover_file::NAME => {
            return recover_file::call(rewind, read(tool, arguments)?, call, person).await;
        }
        name => Err(Error::new(
            ErrorCode::InvalidArgument,
            format!("there is no tool {name}"),
        )),
    };
    answer.map(Reply::Done)
}

/// A tool with the arguments `A` and the result `R`. All of them talk to a ZVM, which is a world outside.
fn define<A: JsonSchema, R: JsonSchema>(
    name: &'static str,
    title: &'static str,
    description: &'static str,
    annotations: ToolAnnotations,
) -> Tool {
    let mut annotations = annotations.open_world(true);
    annotations.title = Some(title.into());
    Tool::new(name, description, schema::input::<A>())
        .with_title(title)
        .with_raw_output_schema(schema::output::<R>())
        .with_annotations(annotations)
}

/// Asks, and changes nothing.
fn read_only() -> ToolAnnotations {
    ToolAnnotations::new()
        .read_only(true)
        .destructive(false)
        .idempotent(true)
}

/// Adds something and takes nothing away; done twice, it adds twice.
fn additive() -> ToolAnnotations {
    ToolAnnotations::new()
        .read_only(false)
        .destructive(false)
        .idempotent(false)
}
