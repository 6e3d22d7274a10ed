//! `install` and `uninstall` on the settings that people have.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]
#![cfg(unix)]

use serde_json::{Value, json};
use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};
use tempfile::TempDir;

const HARNESSES: [&str; 4] = ["claude", "codex", "gemini", "cursor"];

/// A home folder, a project, and a configuration with a catalog.
struct Place(TempDir);

struct Said {
    code: i32,
    out: String,
    err: String,
}

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        for folder in ["home", "project", "it's here"] {
            fs::create_dir(place.path(folder)).unwrap();
        }
        place.configure(json!({"catalog": "catalog.toml"}));
        let catalog = "version = 1\n\n[[guard]]\nserver = \"vmware\"\ntool = \"vm_*\"\nvm = { arg = \"/name\" }\naction = \"{{ tool }}\"\n";
        fs::write(place.path("it's here/catalog.toml"), catalog).unwrap();
        place
    }

    fn configure(&self, more: Value) {
        let mut config = json!({
            "zerto_url": "https://127.0.0.1:1", "username": "u", "password": "p", "state_dir": self.path("state"),
        });
        config
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        fs::write(self.config(), config.to_string()).unwrap();
        #[cfg(unix)]
        fs::set_permissions(
            self.config(),
            std::os::unix::fs::PermissionsExt::from_mode(0o600),
        )
        .unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// In a folder whose name a shell has to be told with care.
    fn config(&self) -> PathBuf {
        self.path("it's here/config.json")
    }

    fn run(&self, words: &[&str]) -> Said {
        let output = Command::new(env!("CARGO_BIN_EXE_zerto-rewind"))
            .args(words)
            .current_dir(self.path("project"))
            .env("HOME", self.path("home"))
            .env("ZERTO_REWIND_CONFIG", self.config())
            .env_remove("CLAUDE_CONFIG_DIR")
            .env_remove("CODEX_HOME")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        Said {
            code: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    fn install(&self, harness: &str) -> Said {
        let said = self.run(&["install", harness, "--yes"]);
        assert_eq!(said.code, 0, "{harness}: {}{}", said.out, said.err);
        assert!(said.out.contains("proved:"), "{}", said.out);
        said
    }

    fn uninstall(&self, harness: &str) {
        let said = self.run(&["uninstall", harness, "--yes"]);
        assert_eq!(said.code, 0, "{harness}: {}{}", said.out, said.err);
    }

    fn hooks(&self, harness: &str) -> PathBuf {
        self.path("home").join(match harness {
            "claude" => ".claude/settings.json",
            "codex" => ".codex/hooks.json",
            "gemini" => ".gemini/settings.json",
            _ => ".cursor/hooks.json",
        })
    }

    fn server(&self, harness: &str) -> PathBuf {
        self.path("home").join(match harness {
            "claude" => ".claude.json",
            "codex" => ".codex/config.toml",
            "gemini" => ".gemini/settings.json",
            _ => ".cursor/mcp.json",
        })
    }

    fn write(&self, path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Every file under home and project, with its text.
    fn files(&self) -> Vec<(PathBuf, String)> {
        let mut found = Vec::new();
        let mut folders = vec![self.path("home"), self.path("project")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    found.push((
                        path.clone(),
                        String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned(),
                    ));
                }
            }
        }
        found.sort();
        found
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

fn parsed(path: &Path) -> Value {
    serde_json::from_str(&read(path)).unwrap()
}

#[test]
fn what_was_not_there_is_created_and_goes_again() {
    for harness in HARNESSES {
        let place = Place::new();
        place.install(harness);
        let (hooks, server) = (place.hooks(harness), place.server(harness));
        assert!(read(&hooks).contains("hook"));
        assert!(read(&server).contains("zerto-rewind"));
        if harness != "codex" {
            let entry = &parsed(&server)["mcpServers"]["zerto-rewind"];
            assert_eq!(entry["args"], json!(["mcp"]));
            assert_eq!(entry["env"]["ZERTO_REWIND_CONFIG"], json!(place.config()));
        }
        let before = place.files();
        let again = place.install(harness);
        assert!(again.out.contains("nothing to change"), "{}", again.out);
        assert_eq!(place.files(), before);
        place.uninstall(harness);
        assert_eq!(place.files(), [], "{harness}");
        place.uninstall(harness);
    }
}

#[test]
fn the_harnesss_time_out_is_above_our_deadline() {
    let place = Place::new();
    for harness in HARNESSES {
        place.install(harness);
    }
    let claude = &parsed(&place.hooks("claude"))["hooks"];
    let handler = &claude["PreToolUse"][0]["hooks"][0];
    assert_eq!(claude["PreToolUse"][0]["matcher"], "*");
    assert_eq!(handler["timeout"], 300);
    assert_eq!(handler["onFailure"], "block");
    assert_eq!(
        handler["args"],
        json!([
            "hook",
            "--format",
            "claude",
            "--deadline",
            "285s",
            "--config",
            place.config()
        ])
    );
    for event in ["PostToolUse", "PostToolUseFailure"] {
        assert_eq!(claude[event][0]["hooks"][0]["timeout"], 30);
    }
    let codex = &parsed(&place.hooks("codex"))["hooks"];
    assert_eq!(codex["PreToolUse"][0]["matcher"], ".*");
    assert_eq!(codex["PreToolUse"][0]["hooks"][0]["timeout"], 300);
    let gemini = &parsed(&place.hooks("gemini"))["hooks"];
    assert_eq!(gemini["BeforeTool"][0]["hooks"][0]["timeout"], 300_000);
    let cursor = parsed(&place.hooks("cursor"));
    assert_eq!(cursor["version"], 1);
    for event in ["preToolUse", "beforeMCPExecution", "beforeShellExecution"] {
        assert_eq!(cursor["hooks"][event][0]["failClosed"], true);
        // Above the 285 s of our own deadline, in seconds.
        assert_eq!(cursor["hooks"][event][0]["timeout"], 300);
    }
    let codex: toml_edit::DocumentMut = read(&place.server("codex")).parse().unwrap();
    let entry = &codex["mcp_servers"]["zerto-rewind"];
    assert_eq!(entry["tool_timeout_sec"].as_integer(), Some(300));
}

#[test]
fn what_was_there_stays_and_comes_back_to_the_byte() {
    // What the edits do to other settings is tested beside them.
    let settings = [
        "",
        "{\"model\":\"opus\",\"permissions\":{\"allow\":[\"Bash(ls)\"]}}",
        "// mine\r\n{\r\n\t\"model\": \"opus\", // best\r\n\t\"hooks\": {\r\n\t\t/* none */\r\n\t\t\"PreToolUse\": [{ \"matcher\": \"Bash\", \"hooks\": [{ \"type\": \"command\", \"command\": \"./lint.sh\" }] }],\r\n\t},\r\n}\r\n",
    ];
    for harness in HARNESSES {
        for text in settings {
            let place = Place::new();
            for path in [place.hooks(harness), place.server(harness)] {
                if path
                    .extension()
                    .is_some_and(|extension| extension == "json")
                {
                    place.write(&path, text);
                } else {
                    place.write(
                        &path,
                        "model = \"x\" # mine\n\n[mcp_servers.other]\ncommand = \"o\"\n",
                    );
                }
            }
            let before = place.files();
            place.install(harness);
            let hooks = read(&place.hooks(harness));
            for kept in ["// mine", "// best", "/* none */", "./lint.sh"] {
                assert_eq!(hooks.contains(kept), text.contains(kept), "{hooks}");
            }
            place.uninstall(harness);
            assert_eq!(place.files(), before, "{harness}: {text}");
        }
    }
}

#[test]
fn what_was_changed_since_is_kept() {
    let place = Place::new();
    let hooks = place.hooks("claude");
    place.write(&hooks, "{\n  \"model\": \"opus\"\n}\n");
    place.install("claude");
    let changed = read(&hooks).replace("\"opus\"", "\"sonnet\"");
    fs::write(&hooks, &changed).unwrap();
    place.uninstall("claude");
    assert_eq!(read(&hooks), "{\n  \"model\": \"sonnet\"\n}\n");
    // The copy of what was there before is the person's to throw away.
    assert_eq!(
        read(&hooks.with_file_name("settings.json.zerto-rewind.bak")),
        "{\n  \"model\": \"opus\"\n}\n"
    );
}

#[test]
fn an_update_keeps_the_first_copy_and_leaves_one_hook() {
    let place = Place::new();
    let hooks = place.hooks("claude");
    place.write(&hooks, "{}");
    place.install("claude");
    let old = read(&hooks).replace("285s", "60s");
    fs::write(&hooks, old).unwrap();
    place.install("claude");
    let now = parsed(&hooks);
    assert_eq!(now["hooks"]["PreToolUse"].as_array().unwrap().len(), 1);
    assert!(!read(&hooks).contains("60s"));
    assert_eq!(
        read(&hooks.with_file_name("settings.json.zerto-rewind.bak")),
        "{}"
    );
    // The other file was not there before: an update must not take ours for the person's.
    place.uninstall("claude");
    assert_eq!(place.files(), [(hooks, "{}".to_owned())]);
}

#[test]
fn hooks_and_servers_by_hand_are_not_touched() {
    let place = Place::new();
    let hooks = place.hooks("claude");
    let by_hand = "{\"hooks\": {\"PreToolUse\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"zerto-rewind hook --format claude\"}]}]}}";
    place.write(&hooks, by_hand);
    let server = "{\"mcpServers\": {\"zerto-rewind\": {\"command\": \"zerto-rewind-mcp\"}}}";
    place.write(&place.server("claude"), server);
    let said = place.install("claude");
    assert!(said.out.contains("by hand"), "{}", said.out);
    assert_eq!(
        parsed(&hooks)["hooks"]["PreToolUse"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    assert_eq!(read(&place.server("claude")), server);
    place.uninstall("claude");
    assert_eq!(read(&hooks), by_hand);
    assert_eq!(read(&place.server("claude")), server);
}

#[test]
fn the_change_is_shown_and_a_dry_run_makes_none() {
    for harness in HARNESSES {
        let place = Place::new();
        place.write(&place.hooks(harness), "{\n  \"mine\": true\n}\n");
        let before = place.files();
        let said = place.run(&["install", harness, "--dry-run"]);
        assert_eq!(said.code, 0, "{}", said.err);
        assert_eq!(place.files(), before);
        for line in [
            "@@",
            "-  \"mine\": true",
            "+  \"mine\": true,",
            "--- ",
            "+++ ",
        ] {
            assert!(said.out.contains(line), "{line}: {}", said.out);
        }
        place.install(harness);
        let before = place.files();
        let said = place.run(&["uninstall", harness, "--dry-run"]);
        assert!(
            said.code == 0 && said.out.contains("-  \"mine\": true,"),
            "{}",
            said.out
        );
        assert_eq!(place.files(), before);
    }
}

#[test]
fn nothing_is_changed_without_a_yes() {
    let place = Place::new();
    for command in ["install", "uninstall"] {
        let before = place.files();
        let said = place.run(&[command, "claude"]);
        assert_eq!(said.code, 3, "{command}: {}", said.out);
        assert!(said.err.contains("--yes"), "{}", said.err);
        assert_eq!(place.files(), before);
        place.install("claude");
    }
}

#[test]
fn a_file_that_cannot_be_parsed_is_left_alone_and_so_is_everything_else() {
    for (name, text) in [
        (".claude/settings.json", "{ broken"),
        (".claude/settings.json", "[]"),
        (".claude/settings.json", "{\"hooks\": 3}"),
        (".claude/settings.json", "{\"disableAllHooks\": true}"),
        (".claude.json", "{\"mcpServers\": {}, \"mcpServers\": {}}"),
        (".claude.json", "{\"mcpServers\": []}"),
    ] {
        let place = Place::new();
        place.write(&place.path("home").join(name), text);
        let before = place.files();
        let said = place.run(&["install", "claude", "--yes"]);
        assert_eq!(said.code, 1, "{text}: {}", said.out);
        assert!(
            said.err.contains(name) && said.err.contains("nothing was changed"),
            "{}",
            said.err
        );
        assert_eq!(place.files(), before);
    }
    for (text, key) in [
        (
            r#"{"hooksConfig": {"enabled": false}}"#,
            "hooksConfig.enabled",
        ),
        (r#"{"tools": {"enableHooks": false}}"#, "tools.enableHooks"),
        (
            r#"{"hooks": {"disabled": ["zerto-rewind"]}}"#,
            "hooks.disabled",
        ),
        (
            r#"{"hooksConfig": {"disabled": ["zerto-rewind"]}}"#,
            "hooksConfig.disabled",
        ),
    ] {
        let place = Place::new();
        place.write(&place.hooks("gemini"), text);
        let before = place.files();
        let said = place.run(&["install", "gemini", "--yes"]);
        assert_eq!(said.code, 1, "{text}: {}", said.out);
        assert!(said.err.contains(key), "{}", said.err);
        assert_eq!(place.files(), before);
    }
    let place = Place::new();
    place.write(&place.server("codex"), "[features]\ncodex_hooks = false\n");
    let before = place.files();
    let said = place.run(&["install", "codex", "--yes"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("features.codex_hooks"), "{}", said.err);
    assert_eq!(place.files(), before);
    let place = Place::new();
    place.write(&place.server("codex"), "a = 1\na = 2\n");
    let before = place.files();
    let said = place.run(&["install", "codex", "--yes"]);
    assert_eq!(said.code, 1);
    assert!(
        said.err.contains("key; nothing was changed"),
        "{}",
        said.err
    );
    let bytes = place.hooks("claude");
    place.write(&bytes, "");
    fs::write(&bytes, b"{\"a\": \"\xff\"}").unwrap();
    assert_eq!(place.run(&["install", "claude", "--yes"]).code, 1);
    fs::remove_file(bytes).unwrap();
    assert_eq!(place.files(), before);
}

#[test]
fn a_read_only_file_is_refused_and_modes_are_kept() {
    let place = Place::new();
    let hooks = place.hooks("claude");
    place.write(&hooks, "{}\n");
    let mode = |mode| fs::set_permissions(&hooks, fs::Permissions::from_mode(mode)).unwrap();
    mode(0o444);
    let before = place.files();
    let said = place.run(&["install", "claude", "--dry-run"]);
    assert_eq!(said.code, 0);
    assert!(
        said.err.contains("would fail") && said.err.contains("read-only"),
        "{}",
        said.err
    );
    let said = place.run(&["install", "claude", "--yes"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("read-only"), "{}", said.err);
    assert_eq!(place.files(), before);
    mode(0o640);
    place.install("claude");
    let backup = hooks.with_file_name("settings.json.zerto-rewind.bak");
    for path in [&hooks, &backup] {
        assert_eq!(
            fs::metadata(path).unwrap().permissions().mode() & 0o777,
            0o640
        );
    }
}

#[test]
fn a_link_is_written_through() {
    let place = Place::new();
    let hooks = place.hooks("claude");
    let real = place.path("project/dotfiles.json");
    fs::create_dir_all(hooks.parent().unwrap()).unwrap();
    symlink(&real, &hooks).unwrap();
    let said = place.run(&["install", "claude", "--yes"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("link to nothing"), "{}", said.err);

    fs::write(&real, "{}\n").unwrap();
    place.install("claude");
    assert!(fs::symlink_metadata(&hooks).unwrap().is_symlink());
    assert!(read(&real).contains("PreToolUse"));
    place.uninstall("claude");
    assert!(fs::symlink_metadata(&hooks).unwrap().is_symlink());
    assert_eq!(read(&real), "{}\n");
}

#[test]
fn the_project_has_its_own_settings() {
    for (harness, names) in [
        ("claude", [".claude/settings.json", ".mcp.json"]),
        ("codex", [".codex/hooks.json", ".codex/config.toml"]),
        ("gemini", [".gemini/settings.json", ".gemini/settings.json"]),
        ("cursor", [".cursor/hooks.json", ".cursor/mcp.json"]),
    ] {
        let place = Place::new();
        let said = place.run(&["install", harness, "--project", "--yes"]);
        assert_eq!(said.code, 0, "{}{}", said.out, said.err);
        let mut files: Vec<_> = names
            .iter()
            .map(|name| place.path("project").join(name))
            .collect();
        files.sort();
        files.dedup();
        assert_eq!(
            place
                .files()
                .into_iter()
                .map(|(path, _)| path)
                .collect::<Vec<_>>(),
            files
        );
        assert_eq!(
            place
                .run(&["uninstall", harness, "--project", "--yes"])
                .code,
            0
        );
        assert_eq!(place.files(), []);
    }
}

#[test]
fn a_hook_that_would_not_deny_as_it_should_is_not_left_behind() {
    // No catalog: everything would pass.
    let place = Place::new();
    place.configure(json!({}));
    let said = place.run(&["install", "claude", "--yes"]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("catalog"), "{}", said.err);
    assert_eq!(place.files(), []);

    // A broken catalog: everything would be denied.
    let place = Place::new();
    place.write(&place.hooks("claude"), "{ \"mine\": 1 }\n");
    let before = place.files();
    fs::write(place.path("it's here/catalog.toml"), "version = ").unwrap();
    let said = place.run(&["install", "claude", "--yes"]);
    assert_eq!(said.code, 1);
    assert!(
        said.err.contains("denies every call")
            && said.err.contains("catalog.toml")
            && said.err.contains("as they were"),
        "{}",
        said.err
    );
    assert_eq!(place.files(), before);

    // Whatever the harness's form is, the reason is told once, as text.
    for harness in HARNESSES {
        let place = Place::new();
        fs::write(place.path("it's here/catalog.toml"), "version = ").unwrap();
        let said = place.run(&["install", harness, "--yes"]);
        assert_eq!(said.code, 1, "{}", said.err);
        assert_eq!(said.err.matches("denies every call").count(), 1);
        assert_eq!(
            said.err.matches("catalog.toml:1:").count(),
            1,
            "{}",
            said.err
        );
        assert!(!said.err.contains("ermission\":"), "{}", said.err);
    }

    let place = Place::new();
    fs::remove_file(place.config()).unwrap();
    let said = place.run(&["install", "claude", "--yes"]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("\nnext: "), "{}", said.err);
    assert_eq!(place.files(), []);
}
