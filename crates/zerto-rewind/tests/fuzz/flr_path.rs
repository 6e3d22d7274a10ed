//! Paths of guests, and where what they name lands on this host.
use std::path::{Component, Path};

use rewind_core::{Destination, ErrorCode, GuestPath};

use crate::{driver::Target, text::is_readable};

const TARGET: Target = Target {
    name: "flr_path",
    words: &[
        "/",
        "\\",
        "..",
        "../",
        ".",
        "~",
        "C:",
        "C:\\",
        "//",
        "\\\\server\\share",
        "partition#0 Ext4/",
        "/etc/hosts",
        "a/b/",
        "NUL",
        "CON",
        "file:",
        "\u{2215}",
        "\u{ff0f}",
        "%2f",
        "%2e%2e/",
    ],
    memory: (256 << 10, 128),
};

/// Lines: destination (none where it is empty) and VM; what is left is the path.
#[test]
fn nothing_lands_outside_of_the_recovery_folder() {
    let root = tempfile::tempdir().unwrap();
    let recover_dir = root.path().join("recovered");
    TARGET.run(|input| {
        let text = String::from_utf8_lossy(input);
        let mut lines = text.splitn(3, '\n');
        let mut next = || lines.next().unwrap_or_default();
        let (destination, vm, path) = (next(), next(), next());
        let path = match GuestPath::parse(path) {
            Ok(path) => path,
            Err(error) => return vec![code(error)],
        };
        check(&path);
        let destinations = [
            None,
            Some(destination.to_owned()).filter(|text| !text.is_empty()),
        ];
        let lands = destinations.map(|inside| {
            let landed =
                Destination::InRecoverDir(inside.clone()).lands(&recover_dir, vm, 7, &path);
            landed.map(|landed| {
                let below = landed
                    .strip_prefix(&recover_dir)
                    .unwrap_or_else(|_| panic!("{} leaves", landed.display()));
                assert!(below.components().count() > 0);
                for component in below.components() {
                    assert!(
                        matches!(component, Component::Normal(_)),
                        "{}",
                        landed.display()
                    );
                }
                assert!(!below.to_str().unwrap().contains("//"));
                // A name of the guest shows what it is; one that a caller gives is theirs.
                assert!(
                    inside.is_some()
                        || !below.to_str().unwrap().contains([
                            '\u{202e}',
                            '\u{1b}',
                            '\n',
                            '\u{e0041}'
                        ])
                );
                below.components().count().min(5).to_string()
            })
        });
        assert!(!recover_dir.exists(), "nothing is made");
        lands
            .into_iter()
            .map(|landed| landed.unwrap_or_else(code))
            .collect()
    });
}

fn check(path: &GuestPath) {
    let shown = path.to_string();
    assert!(is_readable(&shown), "{shown:?}");
    let (GuestPath::Posix(components)
    | GuestPath::Windows(_, components)
    | GuestPath::Partition(components)) = path;
    assert!(!components.is_empty());
    for name in components {
        assert!(
            !matches!(name.as_str(), "" | "." | "..") && !name.contains(['/', '\0']),
            "{name:?}"
        );
    }
    // What is shown as it is means the same.
    if components
        .iter()
        .all(|name| shown.contains(name.as_str()) && !name.contains('\\'))
        && shown.chars().count() < 4_000
    {
        assert_eq!(&GuestPath::parse(&shown).unwrap(), path, "{shown}");
    }
    assert!(Path::new(path.name()).components().count() <= 1 || path.name().contains('\\'));
}

fn code(error: rewind_core::Error) -> String {
    assert!(
        is_readable(&error.message) && error.message.chars().count() < 9_000,
        "{error:?}"
    );
    assert!(
        matches!(
            error.code,
            ErrorCode::InvalidArgument
                | ErrorCode::DestinationUnusable
                | ErrorCode::DestinationExists
        ),
        "{error:?}"
    );
    error
        .message
        .chars()
        .filter(|c| c.is_alphabetic())
        .take(40)
        .collect()
}
