use std::path::Path;

use rewind_core::catalog::{Call, Catalog, Lookup};
use serde_json::json;

use super::*;

fn tool(name: &str, properties: Value) -> Described {
    let required: Vec<&String> = properties.as_object().unwrap().keys().collect();
    Described {
        name: name.into(),
        description: format!("About {name}."),
        schema: json!({ "type": "object", "required": required, "properties": properties }),
        read_only: None,
        destructive: None,
    }
}

fn text_argument(name: &str) -> Value {
    json!({ name: { "type": "string" } })
}

fn parsed(draft: &str) -> Catalog {
    let catalog = Catalog::parse(draft, Path::new("/draft.toml"))
        .unwrap_or_else(|error| panic!("{error}\n{draft}"));
    assert_eq!(catalog.warnings(), [], "{draft}");
    catalog
}

/// With every commented entry in force, as if a person had taken the marks away.
fn uncommented(draft: &str) -> String {
    const KEYS: [&str; 5] = ["[[guard]]", "server = ", "tool = ", "vm = ", "action = "];
    let lines = draft.lines().map(|line| match line.strip_prefix("# ") {
        Some(rest) if KEYS.iter().any(|key| rest.starts_with(key)) => rest,
        _ => line,
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn what_probably_changes_a_vm_is_listed() {
    let tools = [
        tool("vm_delete", text_argument("vm_name")),
        tool("powerOffVm", text_argument("vmName")),
        tool("reboot", text_argument("hostname")),
        tool(
            "reconfigure",
            json!({ "spec": { "type": "object", "required": ["vm"], "properties": { "vm": { "type": "string" } } } }),
        ),
        tool(
            "stop_many",
            json!({ "vms": { "type": "array", "items": { "type": "string" } } }),
        ),
        tool("vm_list", text_argument("vm_name")),
        tool("get_power_state", text_argument("vm_name")),
    ];
    let text = draft(Some("vmware"), &tools);
    let catalog = parsed(&text);
    assert_eq!(catalog.entries().len(), 5, "{text}");
    let arguments = json!({ "spec": { "vm": "app01" } });
    let call = Call {
        server: Some("vmware"),
        tool: "reconfigure",
        arguments: &arguments,
    };
    let Lookup::Listed(entry) = catalog.lookup(&call) else {
        panic!("{text}")
    };
    assert_eq!(entry.vms(&arguments).unwrap(), ["app01"]);
    assert_eq!(entry.action(&call).unwrap(), "reconfigure app01");
    assert!(text.contains("#   vm_list: About vm_list."), "{text}");
    assert!(text.contains("not proven"), "{text}");
}

#[test]
fn what_a_person_has_to_complete_is_commented_out() {
    let tools = [
        tool("delete_thing", text_argument("name")),
        tool("vm_start", json!({ "vmid": { "type": "integer" } })),
        tool("run", text_argument("command")),
        tool("wipe", json!({})),
        tool("frobnicate", text_argument("vm")),
    ];
    let text = draft(Some("s"), &tools);
    assert!(parsed(&text).entries().is_empty(), "{text}");
    for expected in [
        "# Does `name` name a VM?",
        "# vm = { arg = \"/vmid\", table = \"vms.toml\" }",
        "# vm = { arg = \"/command\", hosts = \"hosts.toml\" }",
        "# No argument seems to name the VM",
        "# It is not clear whether it changes anything.",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    let folder = tempfile::tempdir().unwrap();
    for table in ["vms.toml", "hosts.toml"] {
        std::fs::write(folder.path().join(table), "a = \"A\"").unwrap();
    }
    let catalog = Catalog::parse(&uncommented(&text), &folder.path().join("draft.toml")).unwrap();
    assert_eq!(catalog.entries().len(), tools.len());
}

#[test]
fn hints_make_the_guess_stricter_and_never_laxer() {
    let hinted = |name: &str, read_only, destructive| Described {
        read_only,
        destructive,
        ..tool(name, text_argument("vm"))
    };
    assert_eq!(
        hinted("vm_delete", Some(true), Some(false)).kind(),
        Kind::Changes
    );
    assert_eq!(hinted("vm_get", None, Some(true)).kind(), Kind::Changes);
    assert_eq!(hinted("vm_get", Some(false), None).kind(), Kind::Changes);
    assert_eq!(hinted("vm_get", None, None).kind(), Kind::Reads);
    assert_eq!(hinted("vm", Some(true), None).kind(), Kind::Unclear);
    assert_eq!(hinted("vm", None, Some(true)).kind(), Kind::Changes);
    let text = draft(Some("s"), &[hinted("vm_delete", Some(true), None)]);
    assert!(text.contains("(by its own hint read-only)"), "{text}");
}

#[test]
fn hostile_words_stay_what_they_are() {
    let evil = [
        "x\"\n[[guard]]\ntool = \"*\"",
        "a\u{202e}b",
        "delete_*",
        "delete_{a,b}[c]\\",
        "delete\u{0}",
        "",
        "delete_{{ args.x }}",
        "stop'''\"\"\"",
    ];
    for name in evil {
        let mut evil_tool = tool(name, json!({ name: { "type": "string" }, "vm": {} }));
        evil_tool.description = format!("{name}\n[[guard]]\ntool = \"*\"\n");
        let mut other = tool("stop", json!({ "vm": {} }));
        other.description = "fine".into();
        let text = draft(Some(name), &[evil_tool, other]);
        let catalog = parsed(&text);
        assert!(
            text.lines().skip(1).all(|line| line.is_empty()
                || line.starts_with('#')
                || ["version", "[[guard]]", "server", "tool", "vm", "action"]
                    .iter()
                    .any(|key| line.starts_with(key))),
            "{text}"
        );
        // Entries match their own tool and no other.
        assert!(
            !catalog.names(None, "anything") && catalog.names(None, "stop"),
            "{text}"
        );
        if is_plain(name) && catalog.entries().len() == 2 {
            assert!(catalog.names(Some(name), name), "{text}");
        }
    }
}

#[test]
fn odd_schemas_and_repeated_names_do_no_harm() {
    let odd = [
        Value::Null,
        json!([]),
        json!({ "properties": [] }),
        json!({ "properties": { "vm": null } }),
        json!({ "properties": { "vm": { "type": 7 } }, "required": "vm" }),
        json!({ "properties": { "a/b~c": { "properties": { "vm": { "anyOf": [{ "type": "string" }, { "type": "null" }] } } } } }),
    ];
    let tools: Vec<_> = odd
        .into_iter()
        .enumerate()
        .map(|(index, schema)| Described {
            schema,
            ..tool(&format!("stop_{}", index % 5), json!({}))
        })
        .collect();
    let text = draft(None, &tools);
    parsed(&text);
    assert_eq!(text.matches("[[guard]]").count(), 5, "{text}");
    parsed(&draft(None, &[]));
    let nested = Described {
        schema: tools[5].schema.clone(),
        ..tool("stop", json!({}))
    };
    assert!(draft(None, &[nested]).contains("{ arg = \"/a~1b~0c/vm\" }"));
    assert_eq!(
        words("vmPowerOff_nowX2").collect::<Vec<_>>(),
        ["vm", "power", "off", "now", "x2"]
    );
}
