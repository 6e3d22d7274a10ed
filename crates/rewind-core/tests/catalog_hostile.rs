#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]
//! Whatever a call's arguments and a catalog's text are: a bounded answer or a clear error.

use std::{path::Path, sync::LazyLock};

use proptest::prelude::*;
use rewind_core::catalog::{Call, Catalog, Lookup, MAX_VMS};
use serde_json::Value;

const CATALOG: &str = r#"
version = 1
[[guard]]
tool = "arg"
vm = { arg = "/a" }
action = "{{ args.a }} {{ args.b.c }}"
change = { arg = "/b" }
[[guard]]
tool = "regex"
vm = { arg = "/a", regex = '(?P<vm>\w+)' }
action = "{{ args }}"
[[guard]]
tool = "table"
vm = { arg = "/a", table = { x = "X", 1 = ["Y", "Z"] } }
action = "{{ args.a | upper }}"
[[guard]]
tool = "hosts"
vm = { arg = "", hosts = { x = "X", "10.0.0.5" = "Y", "fe80::1" = "Z" } }
action = "{% for item in args %}{{ item }}{% endfor %}"
[[guard]]
tool = "when"
vm = { fixed = "X" }
action = "x"
when = [{ arg = "/a", equals = 1, not_equals = "x", in = [1, true], matches = "x", glob = "*", greater_than = 0, less_than = 2 }]
"#;

fn json() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        any::<String>(),
        Just("x".to_owned()),
        "[x10.:é_\\- ]{0,12}",
        Just("ssh x 10.0.0.5 fe80::1 é".to_owned()),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text.prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 64, 40, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..40).prop_map(Value::from),
            prop::collection::btree_map("[abc]{1,2}", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arguments_of_any_shape_are_answered(arguments in json()) {
        static GOOD: LazyLock<Catalog> = LazyLock::new(|| Catalog::parse(CATALOG, Path::new("catalog.toml")).unwrap());
        let catalog = &*GOOD;
        for tool in ["arg", "regex", "table", "hosts", "when"] {
            let call = Call { server: None, tool, arguments: &arguments };
            let entry = match catalog.lookup(&call) {
                Lookup::Listed(entry) => entry,
                Lookup::DoesNotApply(skipped) => {
                    prop_assert!(["hosts", "when"].contains(&tool) && !skipped.is_empty());
                    continue;
                }
                other => panic!("{other:?}"),
            };
            match entry.vms(&arguments) {
                Ok(vms) => prop_assert!((1..=MAX_VMS).contains(&vms.len()) && vms.iter().all(|vm| !vm.trim().is_empty())),
                Err(error) => prop_assert!(is_short_line(&error.to_string()), "{error}"),
            }
            match entry.action(&call) {
                Ok(action) => prop_assert!(action.len() <= 3 * 4096 && !action.contains(char::is_control)),
                Err(error) => prop_assert!(is_short_line(&error.to_string()), "{error}"),
            }
            if let Err(error) = entry.change(&arguments) {
                prop_assert!(is_short_line(&error.to_string()), "{error}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn text_of_any_kind_is_a_catalog_or_an_error(text in any::<String>(), at in 0..CATALOG.len(), cut in 0usize..20) {
        let _ = Catalog::parse(&text, Path::new("catalog.toml"));
        // The good one with a piece replaced.
        let mut broken = CATALOG.to_owned();
        let end = (at + cut).min(broken.len());
        broken.replace_range(at..end, &text);
        match Catalog::parse(&broken, Path::new("catalog.toml")) {
            Ok(catalog) => prop_assert!(catalog.entries().len() <= 5),
            Err(error) => prop_assert!(error.mistakes.iter().all(|mistake| is_short_line(&mistake.to_string())), "{error}"),
        }
    }
}

fn is_short_line(text: &str) -> bool {
    text.chars().count() < 400 && !text.contains(char::is_control)
}

#[test]
fn an_action_that_is_nested_too_deep_is_a_mistake_and_no_end_of_the_process() {
    let text = |expression: String| {
        format!(
            "version = 1\n[[guard]]\ntool = \"*\"\nvm = {{ fixed = \"x\" }}\naction = '{{{{ {expression}1 }}}}'\n"
        )
    };
    let parse = |expression| Catalog::parse(&text(expression), Path::new("catalog.toml"));
    for (unit, times, said) in [
        ("a(", 140, "opening brackets"),
        ("[", 140, "opening brackets"),
        ("{a:", 140, "opening brackets"),
        ("-", 100_000, "bytes"),
        ("not ", 100_000, "bytes"),
    ] {
        let error = parse(unit.repeat(times)).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
    for (unit, times) in [("-", 990), ("not ", 240), ("2**", 320)] {
        parse(unit.repeat(times)).unwrap();
    }
}
