//! What the documents promise: each guarantee has its test, each dependency its reason.
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use toml::Table;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn toml(path: &str) -> Table {
    read(path).parse().unwrap()
}

/// The cells of a document's tables, a row each; headings and rulers are left out.
fn rows(text: &str) -> Vec<Vec<String>> {
    let cells = |line: &str| {
        line.trim_matches('|')
            .split('|')
            .map(|cell| cell.trim().to_owned())
            .collect::<Vec<_>>()
    };
    let lines: Vec<&str> = text.lines().collect();
    let is_ruler = |line: &&str| line.starts_with("|-") || line.starts_with("| -");
    lines
        .iter()
        .enumerate()
        .filter(|(_, line)| line.starts_with('|') && !is_ruler(line))
        .filter(|(index, _)| !lines.get(index + 1).is_some_and(is_ruler))
        .map(|(_, line)| cells(line))
        .collect()
}

/// What stands in backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Every Rust file of the workspace.
fn sources() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![root().join("crates")];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found
}

/// The names of all tests: functions behind an attribute that makes them one.
fn tests() -> BTreeSet<String> {
    let mut tests = BTreeSet::new();
    for file in sources() {
        let text = fs::read_to_string(&file).unwrap();
        let mut is_test = false;
        for line in text.lines().map(str::trim) {
            is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
            let name = line
                .strip_prefix("async fn ")
                .or_else(|| line.strip_prefix("fn "))
                .and_then(|rest| rest.split(['(', '<']).next());
            if let Some(name) = name {
                if is_test {
                    tests.insert(name.to_owned());
                }
                is_test = false;
            }
        }
    }
    tests
}

#[test]
fn each_guarantee_names_its_tests() {
    let tests = tests();
    let text = read("docs/security.md");
    let (_, guarantees) = text.split_once("## Guarantees").unwrap();
    let guarantees = rows(guarantees);
    assert!(guarantees.iter().all(|cells| cells.len() == 3));
    assert!(guarantees.len() >= 20, "{} guarantees", guarantees.len());
    let mut missing = Vec::new();
    for cells in &guarantees {
        let named: Vec<_> = quoted(&cells[2]).collect();
        assert!(!named.is_empty(), "no test: {}", cells[0]);
        missing.extend(
            named
                .into_iter()
                .filter(|name| !tests.contains(*name))
                .map(str::to_owned),
        );
    }
    assert_eq!(missing, [""; 0], "there are no such tests");
}

#[test]
fn each_dependency_has_its_reason_and_no_other_is_named() {
    let workspace = toml("Cargo.toml");
    let all = workspace["workspace"]["dependencies"].as_table().unwrap();
    let ours: BTreeSet<_> = all
        .iter()
        .filter(|(_, spec)| spec.get("path").is_some())
        .map(|(name, _)| name.as_str())
        .collect();
    let package = |name: &str| {
        let spec = all
            .get(name)
            .unwrap_or_else(|| panic!("{name} is not in the workspace's dependencies"));
        spec.get("package")
            .and_then(|package| package.as_str())
            .unwrap_or(name)
            .to_owned()
    };

    // What the crates use; a renamed one counts by its own name.
    let (mut used, mut in_programs) = (BTreeSet::new(), BTreeSet::new());
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let manifest = entry.unwrap().path().join("Cargo.toml");
        let manifest: Table = fs::read_to_string(manifest).unwrap().parse().unwrap();
        for (kind, names) in dependencies(&manifest) {
            for name in names
                .into_iter()
                .filter(|name| !ours.contains(name.as_str()))
            {
                used.insert(package(&name));
                if kind != "dev-dependencies" {
                    in_programs.insert(package(&name));
                }
            }
        }
    }
    let declared: BTreeSet<_> = all
        .keys()
        .filter(|name| !ours.contains(name.as_str()))
        .map(|name| package(name))
        .collect();
    assert_eq!(declared, used, "every declared dependency is used");

    let text = read("docs/dependencies.md");
    let reasons: BTreeMap<String, String> = rows(&text)
        .into_iter()
        .flat_map(|cells| {
            let names = cells[0].split(" (as ").next().unwrap().to_owned();
            let reason = cells[1].clone();
            quoted(&names)
                .map(|name| (name.to_owned(), reason.clone()))
                .collect::<Vec<_>>()
        })
        .collect();
    for (name, reason) in &reasons {
        assert!(reason.len() > 5, "{name} has no reason");
    }
    let (_, for_tests) = text.split_once("Tests and benchmarks only").unwrap();
    let for_tests: BTreeSet<_> = quoted(for_tests).map(str::to_owned).collect();
    assert_eq!(
        reasons.keys().cloned().collect::<BTreeSet<_>>(),
        in_programs,
        "docs/dependencies.md: the table"
    );
    assert_eq!(
        for_tests,
        &used - &in_programs,
        "docs/dependencies.md: tests only"
    );
}

/// The names below every `dependencies` of a manifest, those of single platforms included.
fn dependencies(manifest: &Table) -> Vec<(&str, Vec<String>)> {
    let mut tables = vec![manifest];
    if let Some(targets) = manifest
        .get("target")
        .and_then(|targets| targets.as_table())
    {
        tables.extend(targets.values().filter_map(|target| target.as_table()));
    }
    let kinds = ["dependencies", "dev-dependencies", "build-dependencies"];
    tables
        .into_iter()
        .flat_map(|table| kinds.map(|kind| (kind, table.get(kind))))
        .filter_map(|(kind, names)| Some((kind, names?.as_table()?.keys().cloned().collect())))
        .collect()
}

#[test]
fn unsafe_is_forbidden_in_every_crate() {
    let workspace = toml("Cargo.toml");
    assert_eq!(
        workspace["workspace"]["lints"]["rust"]["unsafe_code"].as_str(),
        Some("forbid")
    );
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let path = entry.unwrap().path().join("Cargo.toml");
        let manifest: Table = fs::read_to_string(&path).unwrap().parse().unwrap();
        assert_eq!(
            manifest["lints"]["workspace"].as_bool(),
            Some(true),
            "{}",
            path.display()
        );
    }
    assert!(root().join("Cargo.lock").is_file());
}

#[test]
fn what_may_be_linked_is_said_and_ci_checks_it() {
    let deny = toml("deny.toml");
    let banned: Vec<_> = deny["bans"]["deny"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["crate"].as_str().unwrap())
        .collect();
    for provider in ["openssl", "native-tls", "aws-lc-rs"] {
        assert!(banned.contains(&provider), "{provider}");
    }
    assert_eq!(deny["sources"]["unknown-registry"].as_str(), Some("deny"));
    assert_eq!(deny["sources"]["unknown-git"].as_str(), Some("deny"));
    assert!(read(".ci/run").contains("cargo-deny"));
    let lock = toml("Cargo.lock");
    for package in lock["package"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        assert!(
            !["openssl-sys", "native-tls", "aws-lc-sys", "aws-lc-rs"].contains(&name),
            "{name} is linked"
        );
    }
}

#[test]
fn a_fault_is_reported_privately_and_every_page_leads_there() {
    let policy = read("SECURITY.md");
    for heading in [
        "## Supported versions",
        "## Reporting a vulnerability",
        "## What to expect",
    ] {
        assert!(policy.contains(heading), "{heading}");
    }
    assert!(!policy.contains('@'), "no address that nobody reads");
    for (page, link) in [
        ("README.md", "docs/security.md"),
        ("README.md", "SECURITY.md"),
        ("docs/architecture.md", "security.md"),
        ("SECURITY.md", "docs/security.md"),
        ("docs/security.md", "../SECURITY.md"),
    ] {
        assert!(
            read(page).contains(&format!("]({link})")),
            "{page} does not lead to {link}"
        );
    }
}
