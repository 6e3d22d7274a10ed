//! The table of error codes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

use rewind_core::{Error, ErrorCode};
use std::{collections::HashSet, fs, path::Path};

#[test]
fn codes_are_stable_names_with_a_meaning_and_an_advice() {
    let mut names = HashSet::new();
    for code in ErrorCode::ALL {
        let name = code.as_str();
        assert!(names.insert(name), "{name} twice");
        assert!(
            name.chars().all(|c| c.is_ascii_lowercase() || c == '_'),
            "{name}"
        );
        assert_eq!(serde_json::to_value(code).unwrap(), name);
        assert!(
            code.meaning().ends_with('.') && code.next().ends_with('.'),
            "{name}"
        );
        assert!(matches!(code.exit_code(), 1..=5 | 130), "{name}");
    }
}

#[test]
fn an_error_is_its_code_message_and_advice_on_the_wire() {
    let error =
        Error::new(ErrorCode::VmNotFound, "no VM is \"x\"").with_candidates(["y".to_owned()]);
    let json = serde_json::to_value(&error).unwrap();
    assert_eq!(json["code"], "vm_not_found");
    assert_eq!(json["message"], "no VM is \"x\"");
    assert_eq!(json["next"], ErrorCode::VmNotFound.next());
    assert_eq!(json["candidates"][0], "y");
    assert!(json.get("done").is_none());
}

/// `UPDATE_DOCS=1 cargo test -p rewind-core --test errors` writes it anew.
#[test]
fn the_page_of_errors_is_made_from_the_table() {
    let page = page();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&file, &page).unwrap();
    }
    let found = fs::read_to_string(&file)
        .unwrap_or_default()
        .replace("\r\n", "\n");
    assert_eq!(
        found, page,
        "run with UPDATE_DOCS=1 to write docs/errors.md anew"
    );
}

fn page() -> String {
    let mut page = String::from(
        "# Errors\n\n\
         Every expected failure has a stable code, a message that says what happened to what, and what to do next. A tool's result \
         then has `isError: true` and the same as structured content; the CLI prints it and exits with the number in the table. What \
         had already been done (pins taken, sessions opened) is in `done`, what could have been meant in `candidates`.\n\n\
         This page is made from the code: `UPDATE_DOCS=1 cargo test -p rewind-core --test errors`.\n\n\
         | code | exit | meaning | what to do |\n|---|---|---|---|\n",
    );
    for code in ErrorCode::ALL {
        page.push_str(&format!(
            "| `{}` | {} | {} | {} |\n",
            code.as_str(),
            code.exit_code(),
            code.meaning(),
            code.next()
        ));
    }
    page
}
