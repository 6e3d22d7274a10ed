#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]
//! What a catalog may say, which calls its entries apply to, and how its mistakes are reported.

use std::{fs, path::Path, time::Duration};

use rewind_core::catalog::{
    Call, Catalog, CatalogError, Entry, Lookup, MAX_VMS, Mode, RuleProblem, Unprotected,
};
use serde_json::{Value, json};

const FILE: &str = "/etc/rewind/catalog.toml";

fn parse(text: &str) -> Result<Catalog, CatalogError> {
    Catalog::parse(text, Path::new(FILE))
}

fn catalog(entries: &str) -> Catalog {
    parse(&format!("version = 1\n{entries}")).unwrap_or_else(|error| panic!("{error}"))
}

/// A catalog of one entry for the tool `t`, with `more` besides.
fn entry(vm: &str, more: &str) -> Catalog {
    catalog(&format!(
        "[[guard]]\ntool = \"t\"\nvm = {vm}\naction = \"do\"\n{more}"
    ))
}

fn call<'a>(tool: &'a str, arguments: &'a Value) -> Call<'a> {
    Call {
        server: None,
        tool,
        arguments,
    }
}

fn listed<'a>(catalog: &'a Catalog, call: &Call<'_>) -> Option<&'a Entry> {
    match catalog.lookup(call) {
        Lookup::Listed(entry) => Some(entry),
        _ => None,
    }
}

fn applies(catalog: &Catalog, arguments: Value) -> bool {
    listed(catalog, &call("t", &arguments)).is_some()
}

fn vms(catalog: &Catalog, arguments: Value) -> Result<Vec<String>, RuleProblem> {
    catalog.entries()[0]
        .vms(&arguments)
        .map_err(|error| error.problem)
}

#[test]
fn the_documented_example_is_understood() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(
        folder.path().join("hosts.toml"),
        "jp-ubuntu = \"jp-ubuntu\"\n\"10.0.0.5\" = [\"app01\"]\n",
    )
    .unwrap();
    let file = folder.path().join("catalog.toml");
    fs::write(
        &file,
        r#"
version = 1

[[guard]]
server = "vmware"                    # glob on the MCP server's name; default "*"
tool   = "vm_reconfigure*"           # glob on the tool's name
vm     = { arg = "/vm_name" }        # JSON Pointer into the call's arguments; or { fixed = "jp-ubuntu" }
action = "reconfigure {{ args.vm_name }}"         # template; shortened to fit the tag
change = { arg = "/ticket" }         # optional
when   = [{ arg = "/dry_run", not_equals = true }]   # optional, all must hold

[[guard]]
server = "builtin"                   # a harness's own tools
tool   = "Bash"
vm     = { arg = "/command", hosts = "hosts.toml" }   # every host of the table that the text mentions as a whole word
action = "{{ args.command }}"
"#,
    )
    .unwrap();
    let catalog = Catalog::load(&file).unwrap();
    assert!(catalog.warnings().is_empty());

    let arguments = json!({"vm_name": "jp-ubuntu", "ticket": "chg-412", "cpus": 4});
    let reconfigure = Call {
        server: Some("vmware"),
        tool: "vm_reconfigure_cpu",
        arguments: &arguments,
    };
    let entry = listed(&catalog, &reconfigure).unwrap();
    assert_eq!(entry.vms(&arguments).unwrap(), ["jp-ubuntu"]);
    assert_eq!(entry.action(&reconfigure).unwrap(), "reconfigure jp-ubuntu");
    assert_eq!(
        entry.change(&arguments).unwrap().as_deref(),
        Some("chg-412")
    );
    assert_eq!(entry.place(), "catalog.toml:4");
    assert_eq!(entry.vm_rule().to_string(), "argument /vm_name");
    assert_eq!(
        entry.conditions()[0].to_string(),
        "`/dry_run` not_equals true"
    );

    let arguments = json!({"command": "ssh root@10.0.0.5 'rm -rf /srv' && ssh JP-UBUNTU reboot"});
    let bash = Call {
        server: Some("builtin"),
        tool: "Bash",
        arguments: &arguments,
    };
    let entry = listed(&catalog, &bash).unwrap();
    assert_eq!(entry.vms(&arguments).unwrap(), ["app01", "jp-ubuntu"]);
    assert_eq!(
        entry.action(&bash).unwrap(),
        "ssh root@10.0.0.5 'rm -rf /srv' && ssh JP-UBUNTU reboot"
    );

    for (server, tool, arguments) in [
        (Some("vmware"), "vm_list", json!({"vm_name": "jp-ubuntu"})),
        (
            Some("proxmox"),
            "vm_reconfigure",
            json!({"vm_name": "jp-ubuntu"}),
        ),
        (
            Some("vmware"),
            "VM_reconfigure",
            json!({"vm_name": "jp-ubuntu"}),
        ),
        (Some("builtin"), "Read", json!({"command": "ssh jp-ubuntu"})),
    ] {
        let call = Call {
            server,
            tool,
            arguments: &arguments,
        };
        assert!(
            matches!(catalog.lookup(&call), Lookup::Unlisted),
            "{call:?}"
        );
    }
    for (server, tool, arguments, reason) in [
        (
            "vmware",
            "vm_reconfigure",
            json!({"dry_run": true}),
            "the condition `/dry_run` not_equals true does not hold",
        ),
        (
            "builtin",
            "Bash",
            json!({"command": "ls"}),
            "no host of the table is mentioned",
        ),
    ] {
        let call = Call {
            server: Some(server),
            tool,
            arguments: &arguments,
        };
        let Lookup::DoesNotApply(skipped) = catalog.lookup(&call) else {
            panic!("{call:?}")
        };
        assert_eq!(skipped.len(), 1);
        assert_eq!(skipped[0].reason.to_string(), reason);
    }
}

#[test]
fn while_the_server_is_unknown_every_entry_matches() {
    let catalog = entry("{ arg = \"/vm\" }", "server = \"vmware\"");
    let arguments = json!({});
    assert!(
        listed(
            &catalog,
            &Call {
                server: None,
                tool: "t",
                arguments: &arguments
            }
        )
        .is_some()
    );
    assert!(
        listed(
            &catalog,
            &Call {
                server: Some("vmware"),
                tool: "t",
                arguments: &arguments
            }
        )
        .is_some()
    );
    assert!(
        listed(
            &catalog,
            &Call {
                server: Some("VMware"),
                tool: "t",
                arguments: &arguments
            }
        )
        .is_none()
    );
}

#[test]
fn the_first_entry_that_applies_decides() {
    let catalog = catalog(
        r#"
        [[guard]]
        tool = "vm_*"
        when = [{ arg = "/force", equals = true }]
        mode = "deny"
        [[guard]]
        tool = "vm_delete"
        vm = { arg = "/vm" }
        action = "first"
        unprotected = "pass"
        reuse = "10m"
        [[guard]]
        tool = "vm_*"
        vm = { arg = "/vm" }
        action = "second"
        "#,
    );
    let arguments = json!({"vm": "a", "force": true});
    let Lookup::Denied(denied) = catalog.lookup(&call("vm_delete", &arguments)) else {
        panic!("not denied")
    };
    assert_eq!(denied.mode(), Mode::Deny);
    assert_eq!(
        denied.action(&call("vm_delete", &arguments)).unwrap(),
        "vm_delete"
    );
    assert_eq!(
        denied.vms(&arguments).unwrap_err().problem,
        RuleProblem::NoRule
    );

    let arguments = json!({"vm": "a"});
    let first = listed(&catalog, &call("vm_delete", &arguments)).unwrap();
    assert_eq!(
        (first.action_template(), first.unprotected()),
        ("first", Unprotected::Pass)
    );
    assert_eq!(first.reuse(), Some(Duration::from_secs(600)));
    let second = listed(&catalog, &call("vm_create", &arguments)).unwrap();
    assert_eq!(
        (second.action_template(), second.unprotected()),
        ("second", Unprotected::Refuse)
    );
    assert_eq!(
        (second.reuse(), second.server(), second.tool()),
        (None, "*", "vm_*")
    );
}

#[test]
fn an_entry_that_denies_may_depend_on_hosts() {
    let catalog = catalog(
        "[[guard]]\ntool = \"t\"\nmode = \"deny\"\nvm = { arg = \"/c\", hosts = { dc01 = \"dc01\" } }",
    );
    let arguments = json!({"c": "ssh dc01"});
    assert!(matches!(
        catalog.lookup(&call("t", &arguments)),
        Lookup::Denied(_)
    ));
    let arguments = json!({"c": "ssh app01"});
    assert!(matches!(
        catalog.lookup(&call("t", &arguments)),
        Lookup::DoesNotApply(_)
    ));
}

#[test]
fn no_catalog_lists_nothing() {
    let arguments = json!({});
    assert!(matches!(
        Catalog::default().lookup(&call("vm_delete", &arguments)),
        Lookup::Unlisted
    ));
    assert!(catalog("").entries().is_empty());
}

#[test]
fn an_argument_names_the_vm() {
    let catalog = entry("{ arg = \"/target/vm\" }", "");
    assert_eq!(
        vms(&catalog, json!({"target": {"vm": " app01 "}})).unwrap(),
        ["app01"]
    );
    assert_eq!(
        vms(&catalog, json!({"target": {"vm": ["b", "a", "b"]}})).unwrap(),
        ["b", "a"]
    );
    for (arguments, expected) in [
        (
            json!({}),
            "the call has no argument `/target/vm`, which must name the VM",
        ),
        (
            json!([1]),
            "the call has no argument `/target/vm`, which must name the VM",
        ),
        (
            json!(null),
            "the call has no argument `/target/vm`, which must name the VM",
        ),
        (
            json!({"target": {"vm": null}}),
            "the argument `/target/vm` is null, and must be the text that names the VM",
        ),
        (
            json!({"target": {"vm": 101}}),
            "the argument `/target/vm` is the number 101, and must be the text that names the VM",
        ),
        (
            json!({"target": {"vm": true}}),
            "the argument `/target/vm` is true, and must be the text that names the VM",
        ),
        (
            json!({"target": {"vm": {"id": 1}}}),
            "the argument `/target/vm` is an object, and must be the text that names the VM",
        ),
        (
            json!({"target": {"vm": ["a", ["b"]]}}),
            "the argument `/target/vm` is a list of 1, and must be the text that names the VM",
        ),
        (
            json!({"target": {"vm": []}}),
            "the argument `/target/vm` is empty, and must name the VM",
        ),
        (
            json!({"target": {"vm": ["a", " \n"]}}),
            "the argument `/target/vm` is empty, and must name the VM",
        ),
    ] {
        assert_eq!(
            vms(&catalog, arguments.clone()).unwrap_err().to_string(),
            expected,
            "{arguments}"
        );
    }
    let error = catalog.entries()[0]
        .vms(&json!({}))
        .unwrap_err()
        .to_string();
    assert!(error.ends_with("(catalog entry catalog.toml:2)"), "{error}");
    let endless = vms(&catalog, json!({"target": {"vm": "x".repeat(1_000_000)}})).unwrap_err();
    assert!(endless.to_string().len() < 300);
}

#[test]
fn a_call_on_too_many_vms_is_refused() {
    let catalog = entry("{ arg = \"/vms\" }", "");
    let names =
        |count: usize| json!({"vms": (0..count).map(|n| format!("vm{n}")).collect::<Vec<_>>()});
    assert_eq!(vms(&catalog, names(MAX_VMS)).unwrap().len(), MAX_VMS);
    assert_eq!(
        vms(&catalog, names(1000)).unwrap_err(),
        RuleProblem::TooMany
    );
    assert_eq!(
        vms(&catalog, json!({"vms": vec!["same"; 1000]})).unwrap(),
        ["same"]
    );
}

#[test]
fn a_fixed_vm_needs_no_argument() {
    assert_eq!(
        vms(&entry("{ fixed = \"jp-ubuntu\" }", ""), json!(null)).unwrap(),
        ["jp-ubuntu"]
    );
}

#[test]
fn a_regular_expression_finds_every_vm() {
    let catalog = entry(r#"{ arg = "/path", regex = '/vm/(?P<vm>[\w-]+)' }"#, "");
    assert_eq!(
        vms(
            &catalog,
            json!({"path": "/dc/vm/app01/x /dc/vm/web-2 /vm/app01"})
        )
        .unwrap(),
        ["app01", "web-2"]
    );
    assert_eq!(
        vms(&catalog, json!({"path": ["/vm/a", "/vm/b"]})).unwrap(),
        ["a", "b"]
    );
    assert_eq!(
        vms(&catalog, json!({"path": "/host/\u{1b}[31mx"}))
            .unwrap_err()
            .to_string(),
        "the argument `/path` is \"/host/ [31mx\", in which the entry's `regex` finds no VM"
    );
    assert!(matches!(
        vms(&catalog, json!({"path": ["/vm/a", "none"]})),
        Err(RuleProblem::NoMatch { .. })
    ));
    assert!(matches!(
        vms(&catalog, json!({"path": 7})),
        Err(RuleProblem::NotText { .. })
    ));
    assert!(matches!(
        vms(&catalog, json!({})),
        Err(RuleProblem::Missing { .. })
    ));
    let many: String = (0..100).map(|n| format!("/vm/a{n} ")).collect();
    assert_eq!(
        vms(&catalog, json!({"path": many})).unwrap_err(),
        RuleProblem::TooMany
    );
    let endless = "/vm/a ".repeat(100_000);
    assert!(matches!(
        vms(&catalog, json!({"path": endless})),
        Err(RuleProblem::TooLong { .. })
    ));

    let optional = entry(r#"{ arg = "/p", regex = 'x(?P<vm>\w*)' }"#, "");
    assert!(matches!(
        vms(&optional, json!({"p": "x x"})),
        Err(RuleProblem::NoMatch { .. })
    ));
}

#[test]
fn a_hostile_regular_expression_costs_linear_time() {
    let catalog = entry(r#"{ arg = "/p", regex = '(?P<vm>(a+)+)$' }"#, "");
    let text = format!("{}b", "a".repeat(50_000));
    assert!(matches!(
        vms(&catalog, json!({"p": text})),
        Err(RuleProblem::NoMatch { .. })
    ));
}

#[test]
fn a_table_maps_arguments_to_vms() {
    let catalog = entry(
        r#"{ arg = "/id", table = { 101 = "app01", "10.0.0.5" = "jp-ubuntu", web = ["web1", "web2"] } }"#,
        "",
    );
    assert_eq!(vms(&catalog, json!({"id": 101})).unwrap(), ["app01"]);
    assert_eq!(vms(&catalog, json!({"id": "101"})).unwrap(), ["app01"]);
    assert_eq!(
        vms(&catalog, json!({"id": ["web", "10.0.0.5", 101]})).unwrap(),
        ["web1", "web2", "jp-ubuntu", "app01"]
    );
    assert_eq!(
        vms(&catalog, json!({"id": "WEB"})).unwrap_err().to_string(),
        "the argument `/id` is \"WEB\", which the entry's `table` does not map to a VM: add it there"
    );
    assert!(matches!(
        vms(&catalog, json!({"id": 101.5})),
        Err(RuleProblem::NotText { .. })
    ));
    assert!(matches!(
        vms(&catalog, json!({"id": ["web", 7]})),
        Err(RuleProblem::NotInTable { .. })
    ));
    assert!(matches!(
        vms(&catalog, json!({})),
        Err(RuleProblem::Missing { .. })
    ));
}

#[test]
fn hosts_are_found_in_texts_of_any_shape() {
    let catalog = entry(
        r#"{ arg = "/command", hosts = { app01 = "app01", "app01.lab" = ["app01", "lb"], web = "web1" } }"#,
        "",
    );
    for (arguments, expected) in [
        (
            json!({"command": "ssh web; ssh app01"}),
            vec!["web1", "app01"],
        ),
        (
            json!({"command": ["ssh", "-l", "root", "app01.lab", "uptime"]}),
            vec!["app01", "lb"],
        ),
        (
            json!({"command": {"steps": [{"run": "ping web"}]}}),
            vec!["web1"],
        ),
    ] {
        assert!(applies(&catalog, arguments.clone()), "{arguments}");
        assert_eq!(vms(&catalog, arguments).unwrap(), expected);
    }
    for arguments in [
        json!({"command": "ls web-old"}),
        json!({"command": 7}),
        json!({"command": null}),
        json!({}),
    ] {
        assert!(!applies(&catalog, arguments.clone()), "{arguments}");
        assert!(matches!(
            vms(&catalog, arguments),
            Err(RuleProblem::NoHost { .. })
        ));
    }
    let endless = json!({"command": "x ".repeat(3_000_000)});
    assert!(
        applies(&catalog, endless.clone()),
        "what cannot be searched is not waved through"
    );
    assert!(matches!(
        vms(&catalog, endless),
        Err(RuleProblem::TooLong { .. })
    ));

    let anywhere = entry(r#"{ arg = "", hosts = { app01 = "app01" } }"#, "");
    assert_eq!(
        vms(&anywhere, json!({"a": {"b": "app01"}})).unwrap(),
        ["app01"]
    );
}

#[test]
fn conditions_hold_as_documented() {
    let missing = [json!({}), json!({"a": null}), json!(null)];
    for (condition, holds, fails) in [
        (
            "equals = true",
            vec![json!(true), json!("true"), json!("True")],
            vec![json!(false), json!("yes"), json!(1)],
        ),
        (
            "equals = 5",
            vec![json!(5), json!(5.0), json!("5"), json!(" 5 ")],
            vec![json!(6), json!("x"), json!([5])],
        ),
        (
            "equals = \"5\"",
            vec![json!("5"), json!(5)],
            vec![json!("05"), json!(true)],
        ),
        (
            "equals = \"stop\"",
            vec![json!("stop")],
            vec![json!("STOP"), json!("stop ")],
        ),
        (
            "equals = [1, \"a\"]",
            vec![json!([1, "a"])],
            vec![json!([1]), json!(1)],
        ),
        (
            "not_equals = true",
            vec![json!(false), json!("true"), json!(1)],
            vec![json!(true)],
        ),
        (
            "not_equals = 1",
            vec![json!("1"), json!(2)],
            vec![json!(1), json!(1.0)],
        ),
        (
            "in = [\"stop\", 3]",
            vec![json!("stop"), json!(3), json!("3")],
            vec![json!("start"), json!(4)],
        ),
        (
            "matches = \"^rm \"",
            vec![json!("rm -rf"), json!(["ls", "rm x"])],
            vec![json!("xrm "), json!({"a": "rm "}), json!([])],
        ),
        ("matches = \"^1\"", vec![json!(10)], vec![json!(2)]),
        (
            "glob = \"/etc/*\"",
            vec![json!("/etc/a/b")],
            vec![json!("x/etc/a"), json!(7)],
        ),
        (
            "exists = true",
            vec![json!(false), json!(""), json!([])],
            vec![],
        ),
        (
            "greater_than = 5",
            vec![
                json!(6),
                json!(5.5),
                json!("6"),
                json!("+7"),
                json!(u64::MAX),
            ],
            vec![json!(5), json!("x"), json!([9])],
        ),
        (
            "less_than = 2.5",
            vec![json!(2), json!(-1), json!("2.4")],
            vec![json!(2.5), json!("3"), json!(true)],
        ),
        (
            "greater_than = 1, less_than = 4",
            vec![json!(2)],
            vec![json!(1), json!(4)],
        ),
    ] {
        let catalog = entry(
            "{ fixed = \"vm\" }",
            &format!("when = [{{ arg = \"/a\", {condition} }}]"),
        );
        for value in holds {
            assert!(
                applies(&catalog, json!({"a": value})),
                "{condition} of {value}"
            );
        }
        for value in fails {
            assert!(
                !applies(&catalog, json!({"a": value})),
                "{condition} of {value}"
            );
        }
        let satisfied = condition.starts_with("not_equals");
        for arguments in &missing {
            assert_eq!(
                applies(&catalog, arguments.clone()),
                satisfied,
                "{condition} of {arguments}"
            );
        }
    }
    let absent = entry(
        "{ fixed = \"vm\" }",
        "when = [{ arg = \"/a\", exists = false }]",
    );
    for arguments in missing {
        assert!(applies(&absent, arguments));
    }
    assert!(!applies(&absent, json!({"a": 0})));

    let all = entry(
        "{ fixed = \"vm\" }",
        "when = [{ arg = \"/a\", equals = 1 }, { arg = \"/b\", equals = 2 }]",
    );
    assert!(
        applies(&all, json!({"a": 1, "b": 2}))
            && !applies(&all, json!({"a": 1}))
            && !applies(&all, json!({"b": 2}))
    );
}

#[test]
fn actions_are_one_bounded_line_whatever_the_arguments_are() {
    let render = |template: &str, arguments: Value| {
        let catalog = catalog(&format!(
            "[[guard]]\ntool = \"t\"\nvm = {{ fixed = \"v\" }}\naction = '''{template}'''"
        ));
        let call = Call {
            server: Some("srv"),
            tool: "t",
            arguments: &arguments,
        };
        catalog.entries()[0].action(&call)
    };
    for (template, arguments, expected) in [
        (
            "set {{ args.cpus }} CPUs, {{ args.hot }}",
            json!({"cpus": 4, "hot": true}),
            "set 4 CPUs, true",
        ),
        (
            "{{ args.a.b.c }} of {{ args.x }}",
            json!({}),
            "(missing) of (missing)",
        ),
        (
            "{{ args.list }} {{ args.nothing }}",
            json!({"list": ["a", 1], "nothing": null}),
            "[\"a\",1] null",
        ),
        ("{{ server }}/{{ tool }}", json!({}), "srv/t"),
        (
            "{{ args.x | default('nothing') | upper }}",
            json!({}),
            "NOTHING",
        ),
        (
            "{% for vm in args.vms %}{{ vm }} {% endfor %}",
            json!({"vms": ["a", "b"]}),
            "a b",
        ),
        (
            "{% if args.force %}force {% endif %}stop",
            json!({"force": true}),
            "force stop",
        ),
        (
            "run {{ args.c }}",
            json!({"c": "a\r\n\u{1b}[2J\u{202E}b <&>\"'"}),
            "run a [2Jb <&>\"'",
        ),
        (
            "{{ args.c }}",
            json!({"c": "{{ args.secret }}", "secret": "s"}),
            "{{ args.secret }}",
        ),
        ("{{ args.x }}", json!(null), "(missing)"),
    ] {
        assert_eq!(render(template, arguments).unwrap(), expected, "{template}");
    }
    let long = render("edit {{ args.c }}", json!({"c": "ü".repeat(1_000_000)})).unwrap();
    assert!(long.starts_with("edit üü") && long.len() < 5_000);

    let error = render("{{ args.n + 1 }}", json!({"n": "x"})).unwrap_err();
    assert!(matches!(error.problem, RuleProblem::Action { .. }));
    let endless =
        "{% for a in range(9999) %}{% for b in range(9999) %}{{ args.c }}{% endfor %}{% endfor %}";
    let error = render(endless, json!({"c": "x"})).unwrap_err();
    assert!(error.to_string().contains("fuel"), "{error}");
}

#[test]
fn change_ids_are_read_from_the_call() {
    let catalog = entry("{ fixed = \"v\" }", "change = { arg = \"/ticket\" }");
    let entry = &catalog.entries()[0];
    for (arguments, expected) in [
        (json!({"ticket": " chg-1 "}), Some("chg-1")),
        (json!({"ticket": 4711}), Some("4711")),
        (json!({"ticket": ""}), None),
        (json!({"ticket": null}), None),
        (json!({}), None),
    ] {
        assert_eq!(
            entry.change(&arguments).unwrap().as_deref(),
            expected,
            "{arguments}"
        );
    }
    let error = entry
        .change(&json!({"ticket": ["a"]}))
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "the argument `/ticket` is a list of 1, and must be the change id in a text (catalog entry catalog.toml:2)"
    );
}

#[test]
fn a_mistake_is_reported_with_its_place_and_what_to_write() {
    let good = "tool = \"t\"\nvm = { arg = \"/vm\" }\naction = \"do\"\n";
    for (text, expected) in [
        ("", "1:1: the version is missing: write `version = 1` at the top".to_owned()),
        ("version = 2", "1:11: version 2 is not known: write `version = 1` at the top".to_owned()),
        ("version = \"1\"", "1:11: invalid type: string \"1\", expected i64".to_owned()),
        ("version = 1\n[guard]\ntool = \"t\"", "2:1: invalid type: map, expected a sequence: write a list, such as [[guard]] or when = [{ … }]".to_owned()),
        ("version = 1\n[[guards]]", "2:3: unknown key `guards`: did you mean `guard`?".to_owned()),
        ("version = 1\n\n[[guard]]\ntoool = \"t\"", "4:1: unknown key `toool`: did you mean `tool`?".to_owned()),
        ("version = 1\n[[guard]]\ntool = \"t", "3:10: invalid basic string, expected `\"`".to_owned()),
        (
            "version = 1\n[[guard]]\nserver = \"x\"",
            "2:1: the entry has no `tool`: write `tool = \"NAME\"`; `*` stands for any characters\n\
             2:1: the entry has no `vm`: write `vm = { arg = \"/NAME\" }` for the argument that names the VM\n\
             2:1: the entry has no `action`: write `action = \"…\"`: what the call changes, for the tag"
                .to_owned(),
        ),
    ] {
        check(text, &expected);
    }
    for (more, expected) in [
        (
            "server = \"[a\"",
            "6:10: not a glob: unclosed character class; missing ']'",
        ),
        (
            "mode = \"denied\"",
            "6:8: unknown value `denied`: write one of `guard`, `deny`",
        ),
        (
            "unprotected = \"allow\"",
            "6:15: unknown value `allow`: write one of `refuse`, `pass`",
        ),
        (
            "reuse = 10",
            "6:9: a duration needs a unit: write \"10s\" for seconds, \"10m\" for minutes or \"10h\" for hours",
        ),
        ("reuse = \"0m\"", "6:9: a duration must be longer than zero"),
        (
            "change = { arg = \"ticket\" }",
            "6:18: not a JSON Pointer: write \"/ticket\"",
        ),
        (
            "change = {}",
            "6:10: `arg` is missing: write `arg = \"/NAME\"`",
        ),
        (
            "when = { arg = \"/a\", exists = true }",
            "6:8: invalid type: map, expected a sequence: write a list, such as [[guard]] or when = [{ … }]",
        ),
        (
            "when = [{ arg = \"/a\" }]",
            "6:9: the condition tests nothing: add one of `equals`, `not_equals`, `in`, `matches`, `glob`, `exists`, `greater_than`, `less_than`",
        ),
        (
            "when = [{ equals = 1 }]",
            "6:9: `arg` is missing: write `arg = \"/NAME\"`",
        ),
        (
            "when = [{ arg = \"/a\", equal = 1 }]",
            "6:23: unknown key `equal`: did you mean `equals`?",
        ),
        (
            "when = [\n  { arg = \"/a\", exists = true },\n  { arg = \"/a\", matches = \"(\" },\n]",
            "8:27: not a regular expression: unclosed group",
        ),
        (
            "when = [{ arg = \"/a\", greater_than = \"5\" }]",
            "6:38: not a number: write a number, without quotes",
        ),
        (
            "when = [{ arg = \"/a\", less_than = nan }]",
            "6:35: not a number: write a number, without quotes",
        ),
        (
            "when = [{ arg = \"/a\", equals = 2026-09-21 }]",
            "6:32: no argument can have this value: write a text, a number, true, false, or a list of them",
        ),
        (
            "when = [{ arg = \"/a\", exists = 1 }]",
            "6:32: invalid type: integer `1`, expected a boolean",
        ),
    ] {
        check(&format!("version = 1\n[[guard]]\n{good}{more}"), expected);
    }
    const RULES: &str = "write { fixed = \"VM\" }, { arg = \"/NAME\" }, or { arg = \"/NAME\" } with one of `regex`, `table` or `hosts`";
    for (vm, expected) in [
        ("{}", format!("4:6: the rule is empty: {RULES}")),
        ("{ arg = \"/a\", fixed = \"b\" }", format!("4:6: the rule says several things: {RULES}")),
        ("{ arg = \"/a\", regex = \"(?P<vm>b)\", hosts = \"h\" }", format!("4:6: the rule says several things: {RULES}")),
        ("{ fixed = \" \" }", "4:16: the VM's name is empty: write the VM's name".to_owned()),
        ("{ arg = \"vm_name\" }", "4:14: not a JSON Pointer: write \"/vm_name\"".to_owned()),
        ("{ arg = \"/a~b\" }", "4:14: not a JSON Pointer: write `~0` for `~` and `~1` for `/` within a name".to_owned()),
        ("{ ary = \"/a\" }", "4:8: unknown key `ary`: did you mean `arg`?".to_owned()),
        ("{ regex = \"(?P<vm>x)\" }", "4:6: `arg` is missing: write `arg = \"/NAME\"`".to_owned()),
        ("{ arg = \"/ü\", regex = \"x\" }", "4:28: the regular expression has no group `vm`: write (?P<vm>…) around what names the VM".to_owned()),
        ("{ arg = \"/a\", table = 5 }", "4:28: invalid type: integer `5`, expected a file's path or a table such as { app01 = \"VM\" }".to_owned()),
        ("{ arg = \"/a\", table = { x = 5 } }", "4:34: `x` is not mapped to the name of a VM: write \"x\" = \"VM\", or a list of VMs".to_owned()),
        ("{ arg = \"/a\", hosts = { \"a b\" = \"x\" } }", "4:30: `a b` is no host: write a host's name or address alone".to_owned()),
        ("{ arg = \"/a\", hosts = { app01.lab = \"x\" } }", "4:30: `app01` is not mapped to the name of a VM: put names with dots in quotes: \"app01.…\" = \"VM\"".to_owned()),
        ("{ arg = \"/a\", hosts = \"~/hosts.toml\" }", "4:28: not a usable path: write a path that starts at the catalog's folder, or a full one; `~` is not expanded".to_owned()),
        ("{ arg = \"/a\", hosts = \"missing.toml\" }", "4:28: /etc/rewind/missing.toml: there is no such file: create it, or correct the path".to_owned()),
    ] {
        check(&format!("version = 1\n[[guard]]\ntool = \"t\"\nvm = {vm}\naction = \"do\""), &expected);
    }
    for (action, expected) in [
        (
            "\" \"",
            "5:10: the action is empty: say what the call changes",
        ),
        (
            "\"{{ args.x\"",
            "5:10: not a template: syntax error: unexpected end of input, expected end of variable block",
        ),
        (
            "\"edit {{ vm }}\"",
            "5:10: the template uses `vm`, which is not known: write `args.vm` for an argument; `server` and `tool` are known, too",
        ),
        (
            "\"{{ args.x | shout }}\"",
            "5:10: unknown filter: filter shout is unknown",
        ),
        (
            "\"{{ shout() }}\"",
            "5:10: the template uses `shout`, which is not known: write `args.shout` for an argument; `server` and `tool` are known, too",
        ),
    ] {
        check(
            &format!(
                "version = 1\n[[guard]]\ntool = \"t\"\nvm = {{ arg = \"/a\" }}\naction = {action}"
            ),
            expected,
        );
    }
}

fn check(text: &str, expected: &str) {
    let error = parse(text).expect_err(text).to_string();
    let expected: Vec<_> = expected
        .lines()
        .map(|line| format!("{FILE}:{line}"))
        .collect();
    assert_eq!(error, expected.join("\n"), "{text}");
}

#[test]
fn all_mistakes_are_reported_at_once() {
    let text = "version = 3\n[[guard]]\ntool = \"\"\nvm = { arg = \"x\" }\naction = \"{{ y }}\"\n[[guard]]\ntool = \"t\"\nmode = \"deny\"\nwhen = [{ arg = \"/a\", glob = \"[\" }]";
    let places: Vec<_> = parse(text)
        .unwrap_err()
        .mistakes
        .iter()
        .map(|mistake| mistake.position.unwrap())
        .collect();
    assert_eq!(places, [(1, 11), (3, 8), (4, 14), (5, 10), (9, 30)]);
}

#[test]
fn mistakes_in_tables_are_reported_in_their_file() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("hosts.toml");
    let file = folder.path().join("catalog.toml");
    let entry =
        "[[guard]]\ntool = \"t\"\nvm = { arg = \"/c\", hosts = \"hosts.toml\" }\naction = \"do\"\n";
    fs::write(&file, format!("version = 1\n{entry}{entry}")).unwrap();
    for (rows, expected) in [
        (
            "a = \"x\"\nb = []",
            "2:5: `b` is not mapped to the name of a VM: write \"b\" = \"VM\", or a list of VMs",
        ),
        (
            "a = \"x\"\n\"user@b\" = \"x\"",
            "2:1: `user@b` is no host: write a host's name or address alone",
        ),
        (
            "[hosts]\na = \"x\"",
            "1:1: `hosts` is not mapped to the name of a VM: put names with dots in quotes: \"hosts.…\" = \"VM\"",
        ),
        ("a = \"x\"\na = \"y\"", "2:1: duplicate key"),
    ] {
        fs::write(&table, rows).unwrap();
        let error = Catalog::load(&file).unwrap_err().to_string();
        assert_eq!(
            error.lines().next().unwrap(),
            format!("{}:{expected}", table.display()),
            "{rows}"
        );
    }
    fs::write(&table, "a = \"x\"").unwrap();
    assert_eq!(Catalog::load(&file).unwrap().entries().len(), 2);
    fs::write(&table, [0xff]).unwrap();
    assert!(
        Catalog::load(&file)
            .unwrap_err()
            .to_string()
            .contains("hosts.toml: cannot be read")
    );
}

#[test]
fn a_file_that_is_missing_or_huge_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("catalog.toml");
    let error = Catalog::load(&file).unwrap_err().to_string();
    assert_eq!(
        error,
        format!(
            "{}: there is no such file: create it, or correct the path",
            file.display()
        )
    );
    fs::write(&file, "#".repeat(5 << 20)).unwrap();
    assert!(
        Catalog::load(&file)
            .unwrap_err()
            .to_string()
            .contains("larger than 4 MiB")
    );
    fs::write(&file, "\u{FEFF}version = 1\n").unwrap();
    Catalog::load(&file).unwrap();
    fs::write(&file, "\u{FEFF}verzion = 1\n").unwrap();
    assert!(
        Catalog::load(&file)
            .unwrap_err()
            .to_string()
            .contains("catalog.toml:1:1: unknown key")
    );
}

#[test]
fn entries_that_can_never_apply_are_warned_about() {
    let catalog = catalog(
        r#"
[[guard]]
tool = "vm_*"
vm = { arg = "/vm" }
action = "a"
[[guard]]
server = "vmware"
tool = "vm_delete"
vm = { arg = "/vm" }
action = "b"
[[guard]]
tool = "x"
when = [{ arg = "/a", in = [] }]
vm = { arg = "/vm" }
action = "c"
[[guard]]
tool = "y"
vm = { arg = "/vm", hosts = {} }
action = "d"
[[guard]]
tool = "y"
vm = { arg = "/vm" }
action = "e"
"#,
    );
    let warnings: Vec<_> = catalog.warnings().iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "catalog.toml:7: can never apply: the entry at catalog.toml:3 applies to every such call before it",
            "catalog.toml:12: can never apply: no arguments satisfy its conditions",
            "catalog.toml:17: can never apply: its table of hosts is empty",
        ]
    );
}

#[test]
fn conditions_that_contradict_each_other_are_warned_about() {
    let warnings = |when: &str| {
        entry(r#"{ arg = "/vm" }"#, &format!("when = [{when}]"))
            .warnings()
            .len()
    };
    for never in [
        r#"{ arg = "/a", equals = 1, exists = false }"#,
        r#"{ arg = "/a", exists = true }, { arg = "/a", exists = false }"#,
        r#"{ arg = "/a", equals = "x" }, { arg = "/a", equals = "y" }"#,
        r#"{ arg = "/a", equals = "x", not_equals = "x" }"#,
        r#"{ arg = "/a", in = ["x", "y"] }, { arg = "/a", equals = "z" }"#,
        r#"{ arg = "/a", in = ["x", "y"], glob = "z*" }"#,
        r#"{ arg = "/a", equals = "x", matches = "^y" }"#,
        r#"{ arg = "/a", greater_than = 5, less_than = 5 }"#,
        r#"{ arg = "/a", in = [1, 2] }, { arg = "/a", greater_than = 2 }"#,
    ] {
        assert_eq!(warnings(never), 1, "{never}");
    }
    for possible in [
        r#"{ arg = "/a", equals = 1 }, { arg = "/b", exists = false }"#,
        r#"{ arg = "/a", not_equals = 1, exists = false }"#,
        r#"{ arg = "/a", equals = 5, glob = "5" }"#,
        r#"{ arg = "/a", equals = true, not_equals = true }"#,
        r#"{ arg = "/a", equals = "5", greater_than = 4 }"#,
        r#"{ arg = "/a", in = ["x", "y"], not_equals = "x" }"#,
        r#"{ arg = "/a", greater_than = 5, less_than = 6 }"#,
        r#"{ arg = "/a", glob = "x*", matches = "y$" }"#,
    ] {
        assert_eq!(warnings(possible), 0, "{possible}");
    }
}

#[test]
fn shadows_are_told_only_where_they_are_certain() {
    let shadowed = |first: &str, second: &str| {
        let entry = |text: &str| format!("[[guard]]\naction = \"a\"\n{text}\n");
        let catalog = catalog(&format!("{}{}", entry(first), entry(second)));
        catalog
            .warnings()
            .iter()
            .any(|warning| warning.message.contains("before it"))
    };
    let vm = r#"vm = { arg = "/vm" }"#;
    let hosts = |names: &str| format!(r#"vm = {{ arg = "/c", hosts = {{ {names} }} }}"#);
    let when = r#"when = [{ arg = "/dry_run", not_equals = true }]"#;
    let more =
        r#"when = [{ arg = "/force", equals = true }, { arg = "/dry_run", not_equals = true }]"#;
    let tool = |tool: &str, rest: &str| format!("tool = \"{tool}\"\n{rest}");
    let both = |a: &str, b: &str| format!("{a}\n{b}");

    assert!(shadowed(&tool("vm_*", vm), &tool("vm_{start,stop}", vm)));
    assert!(shadowed(
        &tool("x", &both(vm, when)),
        &tool("x", &both(vm, more))
    ));
    assert!(shadowed(
        &tool("x", &hosts(r#"a = "A", b = "B""#)),
        &tool("x", &hosts(r#"B = "B""#))
    ));
    assert!(shadowed(&tool("x", vm), &tool("x", "mode = \"deny\"")));

    assert!(!shadowed(&tool("vm_start", vm), &tool("vm_*", vm)));
    assert!(!shadowed(
        &tool("x", &both(vm, more)),
        &tool("x", &both(vm, when))
    ));
    assert!(!shadowed(
        &tool("x", &hosts(r#"a = "A""#)),
        &tool("x", &hosts(r#"b = "B""#))
    ));
    assert!(!shadowed(&tool("x", &hosts(r#"a = "A""#)), &tool("x", vm)));
    assert!(!shadowed(
        &format!("server = \"a\"\n{}", tool("x", vm)),
        &tool("x", vm)
    ));
}

#[test]
fn keys_and_names_that_do_nothing_are_warned_about() {
    let messages = |entry: &str| -> Vec<String> {
        catalog(&format!("[[guard]]\n{entry}"))
            .warnings()
            .iter()
            .map(|warning| warning.message.clone())
            .collect()
    };
    let joined =
        messages("tool = \"mcp__vmware__vm_delete\"\nvm = { arg = \"/vm\" }\naction = \"a\"");
    assert!(
        joined[0].contains(r#"server = "vmware" and tool = "vm_delete""#),
        "{joined:?}"
    );
    let denied = messages(
        "tool = \"x\"\nmode = \"deny\"\nreuse = \"5m\"\nunprotected = \"pass\"\nchange = { arg = \"/c\" }",
    );
    assert_eq!(denied.len(), 3, "{denied:?}");
    let empty = messages("tool = \"x\"\nvm = { arg = \"/vm\", table = {} }\naction = \"a\"");
    assert_eq!(empty, ["refuses every call: its table is empty"]);
}
