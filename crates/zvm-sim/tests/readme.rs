//! The README says what the program does.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

use serde_json::{Value, to_value};
use zvm_sim::{Fault, OPERATIONS, Scenario, Switches, VpgSwitches};

const README: &str = include_str!("../README.md");

fn members(value: &Value) -> Vec<String> {
    value.as_object().unwrap().keys().cloned().collect()
}

#[test]
fn its_scenario_is_one_and_leaves_no_section_out() {
    let text = README
        .split("```toml\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    let scenario = Scenario::from_toml(text).unwrap();
    assert_eq!(scenario.vpgs[0].past, 500_000);
    let document: toml::Table = text.parse().unwrap();
    for section in members(&to_value(Scenario::default()).unwrap()) {
        assert!(document.contains_key(&section), "{section}");
    }
}

#[test]
fn every_switch_is_in_the_table_and_nothing_else() {
    let table = README
        .split("## Switches")
        .nth(1)
        .unwrap()
        .split("\n## ")
        .next()
        .unwrap();
    let mut documented: Vec<&str> = table
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .collect();
    documented.sort_unstable();
    let mut switches = members(&to_value(Switches::default()).unwrap());
    switches.retain(|name| name != "vpg");
    switches.sort_unstable();
    assert_eq!(documented, switches);
    for name in members(&to_value(VpgSwitches::default()).unwrap()) {
        if !["status", "sub_status", "history"].contains(&name.as_str()) {
            assert!(table.contains(&format!("| `{name}` •")), "{name}");
        }
    }
}

#[test]
fn every_member_of_a_fault_is_in_its_table() {
    let section = README
        .split("## Faults")
        .nth(1)
        .unwrap()
        .split("\n## ")
        .next()
        .unwrap();
    for name in members(&to_value(Fault::default()).unwrap()) {
        assert!(section.contains(&format!("`{name}`")), "{name}");
    }
}

#[test]
fn every_collection_that_is_served_is_named() {
    for operation in OPERATIONS {
        let first = operation
            .path
            .split('/')
            .find(|part| !matches!(*part, "" | "v1" | "auth"))
            .unwrap();
        assert!(README.contains(first), "{first}");
    }
}
