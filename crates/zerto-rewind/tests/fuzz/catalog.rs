//! Catalogs, and the calls that are looked up in them.
use rewind_core::catalog::{Call, Catalog, Lookup, MAX_VMS};
use serde_json::Value;

use crate::{driver::Target, text::is_readable};

const TARGET: Target = Target {
    name: "catalog",
    words: &[
        "[[guard]]\n",
        "tool = \"t\"\n",
        "server = \"*\"\n",
        "vm = { fixed = \"X\" }\n",
        "vm = { arg = \"/a\" }\n",
        "action = \"x\"\n",
        "{{ args.a }}",
        "{% for x in args %}",
        "{% endfor %}",
        "{{ args | upper }}",
        "regex = '(a+)+$'",
        "{1000}",
        "when = [{ arg = \"/a\", equals = 1 }]\n",
        "hosts = { x = \"X\" }",
        "table = { x = \"X\" }",
        "mode = \"deny\"\n",
        "reuse = \"5m\"\n",
        "unprotected = \"pass\"\n",
        "\n---\n",
        "{\"a\":",
        "\"ssh x 10.0.0.5\"",
        "**/*",
        "?",
        "'''",
        "version = 1\n",
        "[",
        "range(100000)",
    ],
    // A regular expression may take 10 MB once it is compiled, and a template has its fuel.
    memory: (48 << 20, 1 << 10),
};

/// A catalog; behind a line `---`, the arguments of a call.
#[test]
fn a_catalog_is_read_and_answers_or_says_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("catalog.toml");
    TARGET.run(|input| {
        let text = String::from_utf8_lossy(input);
        let (catalog, arguments) = text.split_once("\n---\n").unwrap_or((&text, "{}"));
        let catalog = match Catalog::parse(catalog, &file) {
            Ok(catalog) => catalog,
            Err(error) => {
                return error
                    .mistakes
                    .iter()
                    .map(|mistake| {
                        let mistake = mistake.to_string();
                        assert!(is_short_line(&mistake), "{mistake:?}");
                        mistake
                            .chars()
                            .rev()
                            .filter(|c| c.is_alphabetic())
                            .take(30)
                            .collect()
                    })
                    .take(3)
                    .collect();
            }
        };
        let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
        let mut shape = vec![catalog.entries().len().min(3).to_string()];
        for tool in ["t", "regex", "hosts", "vm_delete"] {
            let call = Call {
                server: Some("s"),
                tool,
                arguments: &arguments,
            };
            let entry = match catalog.lookup(&call) {
                Lookup::Listed(entry) => entry,
                Lookup::Unlisted => continue,
                other => {
                    shape.push(format!("{other:?}").chars().take(12).collect());
                    continue;
                }
            };
            match entry.vms(&arguments) {
                Ok(vms) => {
                    assert!(
                        (1..=MAX_VMS).contains(&vms.len())
                            && vms.iter().all(|vm| !vm.trim().is_empty())
                    );
                    shape.push("vms".into());
                }
                Err(error) => assert!(is_short_line(&error.to_string()), "{error}"),
            }
            match entry.action(&call) {
                Ok(action) => assert!(
                    action.len() <= 3 * 4_096 && is_readable(&action),
                    "{action:?}"
                ),
                Err(error) => assert!(is_short_line(&error.to_string()), "{error}"),
            }
            if let Err(error) = entry.change(&arguments) {
                assert!(is_short_line(&error.to_string()), "{error}");
            }
        }
        shape
    });
}

fn is_short_line(text: &str) -> bool {
    text.chars().count() < 1_000 && is_readable(text)
}
