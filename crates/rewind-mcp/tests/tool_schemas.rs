//! Every tool's definition is a snapshot: a change of the contract is seen in the diff.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

use rewind_mcp::tools;

#[test]
fn definitions_are_as_checked_in() {
    for tool in tools::all() {
        insta::assert_json_snapshot!(tool.name.as_ref(), tool);
    }
}

#[test]
fn schemas_are_valid_and_every_argument_is_described() {
    for tool in tools::all() {
        let input = serde_json::to_value(&tool.input_schema).unwrap();
        let output = serde_json::to_value(tool.output_schema.as_ref().unwrap()).unwrap();
        jsonschema::meta::validate(&input).unwrap();
        jsonschema::meta::validate(&output).unwrap();
        assert_eq!(input["type"], "object", "{}", tool.name);
        assert_eq!(output["type"], "object", "{}", tool.name);
        assert_eq!(input["additionalProperties"], false, "{}", tool.name);
        for (name, argument) in input["properties"].as_object().unwrap() {
            assert!(argument["description"].is_string(), "{}: {name}", tool.name);
            assert!(argument["type"].is_string(), "{}: {name}", tool.name);
        }
    }
}

#[test]
fn every_tool_has_a_title_and_all_four_annotations() {
    for tool in tools::all() {
        let annotations = tool.annotations.as_ref().unwrap();
        assert_eq!(tool.title, annotations.title);
        assert!(tool.title.is_some());
        let reads = matches!(
            &*tool.name,
            "zerto_find_protection" | "zerto_list_checkpoints"
        );
        assert_eq!(annotations.read_only_hint, Some(reads), "{}", tool.name);
        assert_eq!(annotations.idempotent_hint, Some(reads), "{}", tool.name);
        // A restore in the guest may replace a file, which is kept.
        let replaces = tool.name == "zerto_recover_file";
        assert_eq!(
            annotations.destructive_hint,
            Some(replaces),
            "{}",
            tool.name
        );
        assert_eq!(annotations.open_world_hint, Some(true), "{}", tool.name);
    }
}
