//! A simulated ZVM, a configuration file for it, and the built programs.
#![allow(dead_code)]

pub mod open_rows;
pub mod stdio;
#[cfg(unix)]
pub mod terminal;

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Output, Stdio},
    time::Duration,
};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;
use zvm_sim::{Scenario, Sim};

/// Longer than anything here takes, short enough for a failing test.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A simulated ZVM and a configuration file for it.
pub struct World {
    pub sim: Sim,
    pub folder: TempDir,
}

impl World {
    pub async fn new() -> Self {
        Self::with(Scenario::fast()).await
    }

    pub async fn with(scenario: Scenario) -> Self {
        let world = Self {
            sim: Sim::start(scenario).await.unwrap(),
            folder: tempfile::tempdir().unwrap(),
        };
        world.configure(json!({}));
        world
    }

    /// Writes the configuration file with these keys besides the needed ones.
    pub fn configure(&self, extra: Value) {
        let credentials = self.sim.credentials();
        let mut config = json!({
            "zerto_url": self.sim.url(),
            "username": credentials.username,
            "password": credentials.password,
            "verify_tls": true,
            "ca_file": self.sim.ca_file(),
            "state_dir": self.path("state"),
            "recover_dir": self.path("recovered"),
        });
        for (key, value) in extra.as_object().unwrap() {
            config[key] = value.clone();
        }
        self.write_config(&config.to_string());
    }

    /// Writes this as the configuration file, readable for this user alone.
    pub fn write_config(&self, text: &str) {
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(self.config()).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn config(&self) -> PathBuf {
        self.path("config.json")
    }

    /// Runs `zerto-rewind` with these arguments and waits for its end.
    pub async fn run(&self, arguments: &[&str]) -> Run {
        self.finish(&mut self.command(arguments)).await
    }

    pub async fn finish(&self, command: &mut Command) -> Run {
        Run::of(
            tokio::time::timeout(PATIENCE, command.output())
                .await
                .expect("it does not end")
                .unwrap(),
        )
    }

    /// `zerto-rewind`, configured, with no terminal and nothing on stdin.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = program(env!("CARGO_BIN_EXE_zerto-rewind"), &self.config());
        command.args(arguments);
        command
    }
}

/// `zerto-rewind demo` with a folder of its own for what is temporary.
pub fn demo(temporary: &Path, arguments: &[&str]) -> Command {
    let mut command = program(env!("CARGO_BIN_EXE_zerto-rewind"), Path::new(""));
    command
        .env_remove("ZERTO_REWIND_CONFIG")
        .env("TMPDIR", temporary)
        .arg("demo")
        .args(arguments);
    command
}

/// Gives a file to another user; false, and said so, where this user can't.
#[cfg(unix)]
pub fn given_away(path: &Path) -> bool {
    const NOBODY: u32 = 65_534;
    let as_root = ["-h", &NOBODY.to_string(), path.to_str().unwrap()].map(str::to_owned);
    let given = |program: &str, first: &[&str]| {
        let status = std::process::Command::new(program)
            .args(first)
            .args(&as_root)
            .stderr(Stdio::null())
            .status();
        status.is_ok_and(|status| status.success())
    };
    if given("chown", &[]) || given("sudo", &["-n", "chown"]) {
        return true;
    }
    assert!(
        std::env::var_os("ZERTO_REWIND_REQUIRE_ALL").is_none_or(|value| value != "1"),
        "nothing can be given to another user: run as root, or with a sudo that does not ask"
    );
    eprintln!(
        "SKIPPED: nothing can be given to another user here (root can); ZERTO_REWIND_REQUIRE_ALL=1 makes that a failure"
    );
    false
}

/// Runs it as a process that can't make a file longer than this: as on a disk with hardly any room.
#[cfg(unix)]
pub fn without_room(command: &std::process::Command, blocks: u32) -> std::process::Command {
    let mut limited = std::process::Command::new("sh");
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
    limited
        .args(["-c", &script])
        .arg(command.get_program())
        .args(command.get_args())
        .stdin(Stdio::null());
    for (variable, value) in command.get_envs() {
        match value {
            Some(value) => limited.env(variable, value),
            None => limited.env_remove(variable),
        };
    }
    limited
}

/// Runs it as a user whom a mode keeps out, to whom all of the folder belongs then: root is let in everywhere.
#[cfg(unix)]
pub fn as_mortal(command: &mut std::process::Command, folder: &Path) {
    use std::os::unix::process::CommandExt as _;
    const NOBODY: u32 = 65_534;
    if rustix::process::geteuid().is_root() {
        give(folder, NOBODY);
        command.uid(NOBODY).gid(NOBODY);
    }
}

#[cfg(unix)]
fn give(path: &Path, user: u32) {
    std::os::unix::fs::lchown(path, Some(user), Some(user)).unwrap();
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            give(&entry.unwrap().path(), user);
        }
    }
}

pub fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).unwrap().next().is_none()
}

/// One of the programs in a quiet environment. The home is the configuration's folder: what the user's own holds, such as a stop,
/// is neither looked at nor touched.
pub fn program(path: &str, config: &Path) -> Command {
    let mut command = Command::new(path);
    match config.parent() {
        Some(home) => command
            .env("HOME", home)
            .env("XDG_STATE_HOME", home.join("home"))
            .env_remove("XDG_CONFIG_HOME"),
        None => command.env("XDG_CONFIG_HOME", "/nowhere"),
    };
    command
        .env_remove("ZERTO_REWIND_PASSWORD")
        .env_remove("ZERTO_REWIND_CLIENT_SECRET")
        .env("ZERTO_REWIND_CONFIG", config)
        .env("USER", "justin")
        .env_remove("RUST_LOG")
        .env_remove("NO_COLOR")
        .env_remove("CLICOLOR_FORCE")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// How a program ended.
pub struct Run {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Run {
    pub fn of(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", self.stdout))
    }
}

/// Ctrl-C.
#[cfg(unix)]
pub fn interrupt(child: &tokio::process::Child) {
    signal(child, rustix::process::Signal::INT);
}

#[cfg(unix)]
pub fn signal(child: &tokio::process::Child, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(child.id().unwrap().try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

/// A program of another crate's examples, which `cargo test --workspace` builds with the tests.
pub fn wire_server() -> PathBuf {
    let deps = std::env::current_exe().unwrap();
    let program = deps
        .parent()
        .unwrap()
        .parent()
        .unwrap()
        .join("examples/wire-server");
    assert!(
        program.exists(),
        "{} is missing: cargo build -p rewind-mcp --examples",
        program.display()
    );
    program
}
