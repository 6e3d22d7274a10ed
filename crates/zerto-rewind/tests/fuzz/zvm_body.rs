//! Every body that a ZVM answers with, through every decoder.
use tokio::time::Instant;

use url::Url;
use zvm_client::{FlrSessionId, bodies};

use crate::{driver::Target, text::is_readable};

const TARGET: Target = Target {
    name: "zvm_body",
    words: &[
        "null",
        "{}",
        "[]",
        "[",
        "{\"a\":",
        "\"",
        ",",
        "true",
        "-1",
        "1.5",
        "{\"VmIdentifier\":\"a\"}",
        "\"VpgIdentifier\":",
        "\"Link\":",
        "\"identifier\":",
        "\"/Date(1479726853000)/\"",
        "\"2026-09-21T17:08:29Z\"",
        "\"CheckpointIdentifier\":",
        "\"Tag\":",
        "\"PathItems\":",
        "\"MainPathItem\":",
        "\"Path\":\"..\\\\..\\\\x\"",
        "\"State\":6",
        "\"FlrSessionIdentifier\":",
        "\"FlrSessionStatus\":",
        "\"access_token\":",
        "\"expires_in\":",
        "\"https://evil.example/x\"",
        "\"file:///etc/passwd\"",
        "\"//evil.example\"",
        "\"v1/downloads/a\"",
        "<html><title>",
        "\\ud800",
        "\\u0000",
        "\\u001b",
        "\\u202e",
        "\u{feff}",
    ],
    // The smallest row is two bytes, and some hundred in memory.
    memory: (1 << 20, 512),
};

#[test]
fn every_decoder_answers_every_body() {
    let base = Url::parse("https://zvm.example.com/").unwrap();
    let session = FlrSessionId("a.b".into());
    TARGET.run(|body| {
        let now = Instant::now();
        let read: [(&str, Result<usize, String>); 17] = [
            ("token", bodies::token(body, now).map(|_| 1)),
            ("time", bodies::time(body).map(|_| 1)),
            ("site", bodies::site(body).map(|_| 1)),
            (
                "sites",
                bodies::virtualization_sites(body).map(|rows| rows.len()),
            ),
            (
                "unprotected",
                bodies::unprotected_vms(body).map(|rows| rows.len()),
            ),
            ("vms", bodies::vms(body).map(|rows| rows.len())),
            ("vpg", bodies::vpg(body).map(|_| 1)),
            ("vpgs", bodies::vpgs(body).map(|rows| rows.len())),
            ("names", bodies::names(body).map(|rows| rows.len())),
            (
                "checkpoints",
                bodies::checkpoints(body).map(|rows| rows.len()),
            ),
            ("stats", bodies::journal_stats(body).map(|_| 1)),
            (
                "points",
                bodies::points_in_time(body).map(|rows| rows.len()),
            ),
            (
                "task",
                bodies::task(body, "asked").map(|task| task.iter().count()),
            ),
            ("tasks", bodies::tasks(body).map(|rows| rows.len())),
            (
                "sessions",
                bodies::flr_sessions(body).map(|rows| rows.len()),
            ),
            (
                "session",
                bodies::flr_session(body, &session).map(|one| one.iter().count()),
            ),
            (
                "items",
                bodies::path_items(body, "partition#0 Ext4/etc").map(|rows| rows.len()),
            ),
        ];
        let mut shape: Vec<_> = read
            .into_iter()
            .map(|(what, read)| (what, kind(read)))
            .collect();
        shape.push((
            "identifier",
            kind(
                bodies::identifier(body)
                    .inspect(|id| assert!(!id.contains([' ', '\n', '\u{1b}'])))
                    .map(|id| id.len()),
            ),
        ));
        let url = bodies::download_url(&base, body).inspect(|url| {
            assert!(
                url.has_host() && url.username().is_empty() && url.password().is_none(),
                "{url}"
            );
        });
        shape.push((
            "url",
            kind(url.map(|url| usize::from(url.origin() == base.origin()))),
        ));
        let reason = bodies::reason(body);
        assert!(!reason.is_empty() && is_short(&reason), "{reason:?}");
        shape
    });
}

/// Few, several or many; or what was wrong, without its numbers.
fn kind(read: Result<usize, String>) -> String {
    match read {
        Ok(rows) => rows.min(3).to_string(),
        Err(why) => {
            assert!(is_short(&why), "{why:?}");
            why.chars().filter(|c| c.is_alphabetic()).take(30).collect()
        }
    }
}

fn is_short(text: &str) -> bool {
    text.chars().count() <= 700
        && text.chars().all(|c| !c.is_control())
        && (text.is_ascii() || is_readable_enough(text))
}

/// The client's own cleaning knows the characters that act on a reader; those that only can't be seen are left to the domain's.
fn is_readable_enough(text: &str) -> bool {
    is_readable(text)
        || !text.contains(['\u{202e}', '\u{2066}', '\u{200b}', '\u{feff}', '\u{e0041}'])
}
