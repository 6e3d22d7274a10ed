//! A real OpenSSH server on loopback, as the way into a simulated guest: its own configuration, host key and port, a key of the
//! tester's own, and paths as the guest has them.
#![allow(dead_code)]
use serde_json::{Value, json};
use std::{
    fs,
    io::Write as _,
    net::{Shutdown, TcpListener, TcpStream},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};
use tempfile::TempDir;

/// The name by which the client's configuration knows it.
pub const HOST: &str = "guest-vm";

/// The server. Dropping it ends it, and every connection to it.
pub struct Sshd {
    folder: TempDir,
    address: std::net::SocketAddr,
    sessions: Arc<Mutex<Vec<(TcpStream, Child)>>>,
    ended: Arc<AtomicBool>,
    sftp_server: PathBuf,
}

/// Where `sshd` is; says loudly that what needs it is skipped, and fails where nothing may be skipped.
pub fn sshd() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/sbin", "/usr/local/sbin", "/sbin"].map(PathBuf::from);
    let found = std::env::split_paths(&path)
        .chain(usual)
        .map(|folder| folder.join("sshd"))
        .find(|file| file.is_file());
    if found.is_none() {
        let required =
            std::env::var_os("ZERTO_REWIND_REQUIRE_ALL").is_some_and(|value| value == "1");
        assert!(!required, "openssh-server is required, and not there");
        skipped("the way into a guest, because there is no sshd (openssh-server)");
    }
    found
}

/// Past the test harness, which shows the output of failed tests only. What only root can do is not required of others.
pub fn skipped(what: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED: {what}");
}

fn sftp_server() -> PathBuf {
    [
        "/usr/lib/openssh/sftp-server",
        "/usr/libexec/openssh/sftp-server",
        "/usr/lib/ssh/sftp-server",
        "/usr/libexec/sftp-server",
    ]
    .into_iter()
    .map(PathBuf::from)
    .find(|file| file.is_file())
    .expect("there is an sshd, and no sftp-server")
}

/// A program of this workspace's examples, which `cargo test` builds with the tests.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let target = test.parent().unwrap().parent().unwrap();
    let file = target.join("examples").join(name);
    assert!(
        file.is_file(),
        "{} is missing: cargo build --workspace --examples",
        file.display()
    );
    file
}

fn key(file: &Path) -> String {
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(file)
        .status()
        .unwrap();
    assert!(made.success());
    fs::read_to_string(file.with_extension("pub")).unwrap()
}

fn user() -> String {
    let output = Command::new("id").arg("-un").output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Whoever is root needs no permission.
pub fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output().unwrap();
    output.stdout.trim_ascii() == b"0"
}

impl Sshd {
    /// `mounts`: where the guest's paths lie on this host. None where there is no sshd.
    pub fn start(mounts: &[(&str, &Path)]) -> Option<Self> {
        let sshd = sshd()?;
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        let host_key = key(&at.join("host"));
        fs::write(at.join("authorized"), key(&at.join("id"))).unwrap();
        let bin = at.join("bin");
        fs::create_dir(&bin).unwrap();
        let path = std::env::var("PATH").unwrap_or_default();
        let settings = [
            format!("HostKey {}", at.join("host").display()),
            format!("AuthorizedKeysFile {}", at.join("authorized").display()),
            "StrictModes no".into(),
            "PasswordAuthentication no".into(),
            "KbdInteractiveAuthentication no".into(),
            "PidFile none".into(),
            // The quickest one: a test connects often.
            "KexAlgorithms curve25519-sha256".into(),
            "LogLevel ERROR".into(),
            // A shell that is not the first one reads no start-up files. Programs of the test's own come first.
            format!("SetEnv SHLVL=3 \"PATH={}:{path}\"", bin.display()),
            format!("Subsystem sftp /bin/sh {}", at.join("server").display()),
        ];
        fs::write(at.join("sshd_config"), settings.join("\n") + "\n").unwrap();
        if is_root() {
            // Its packages make this folder when they start it.
            fs::create_dir_all("/run/sshd").unwrap();
        }
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        fs::write(at.join("known_hosts"), format!("{HOST} {host_key}")).unwrap();
        let client = [
            format!("Host {HOST}"),
            "HostName 127.0.0.1".into(),
            format!("HostKeyAlias {HOST}"),
            format!("Port {}", address.port()),
            format!("User {}", user()),
            format!("IdentityFile {}", at.join("id").display()),
            "IdentitiesOnly yes".into(),
            "IdentityAgent none".into(),
            format!("UserKnownHostsFile {}", at.join("known_hosts").display()),
            "GlobalKnownHostsFile /dev/null".into(),
        ];
        fs::write(at.join("ssh_config"), client.join("\n") + "\n").unwrap();
        let started = Self {
            sessions: Arc::default(),
            ended: Arc::default(),
            address,
            sftp_server: sftp_server(),
            folder,
        };
        let mut control = String::new();
        for (mount, folder) in mounts {
            let folder = folder.canonicalize().unwrap();
            control.push_str(&format!("mount {mount} {}\n", folder.display()));
        }
        fs::write(started.at("mounts"), &control).unwrap();
        started.control("");
        started.server(None);
        started.listen(listener, sshd);
        Some(started)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// One process per connection, with the connection as its input and output.
    fn listen(&self, listener: TcpListener, sshd: PathBuf) {
        let (sessions, ended) = (self.sessions.clone(), self.ended.clone());
        let config = self.at("sshd_config");
        thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                if ended.load(Ordering::SeqCst) {
                    return;
                }
                let (input, output) = (
                    connection.try_clone().unwrap(),
                    connection.try_clone().unwrap(),
                );
                let session = Command::new(&sshd)
                    .args(["-i", "-e", "-f"])
                    .arg(&config)
                    .stdin(Stdio::from(OwnedFd::from(input)))
                    .stdout(Stdio::from(OwnedFd::from(output)))
                    .stderr(Stdio::null())
                    .spawn()
                    .unwrap();
                let mut sessions = sessions.lock().unwrap();
                sessions
                    .retain_mut(|(_, session)| session.try_wait().is_ok_and(|over| over.is_none()));
                sessions.push((connection, session));
            }
        });
    }

    /// What the simulated guest's SFTP server does from the next connection on.
    pub fn control(&self, lines: &str) {
        let mounts = fs::read_to_string(self.at("mounts")).unwrap();
        fs::write(self.at("control.new"), format!("{mounts}{lines}")).unwrap();
        fs::rename(self.at("control.new"), self.at("control")).unwrap();
    }

    /// Runs the SFTP server through a line of `sh`, in which `$SERVER` is the server.
    pub fn server(&self, line: Option<&str>) {
        let relay = example("guest-sftp");
        let inner = line.unwrap_or("exec \"$SERVER\"");
        fs::write(
            self.at("inner"),
            format!("SERVER={}\n{inner}\n", self.sftp_server.display()),
        )
        .unwrap();
        let outer = format!(
            "exec {} {} -- /bin/sh {}\n",
            relay.display(),
            self.at("control").display(),
            self.at("inner").display()
        );
        fs::write(self.at("server"), outer).unwrap();
    }

    /// A program that comes before all others in the guest.
    pub fn program(&self, name: &str, script: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt as _;
        let file = self.at("bin").join(name);
        fs::write(&file, script).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        file
    }

    /// The line that runs the SFTP server, for a program of the test's own.
    pub fn server_line(&self) -> String {
        fs::read_to_string(self.at("server")).unwrap()
    }

    /// What was asked of the SFTP server since the last time, a line each.
    pub fn asked(&self) -> Vec<String> {
        let log = self.at("control.log");
        let text = fs::read_to_string(&log).unwrap_or_default();
        let _ = fs::remove_file(log);
        text.lines().map(str::to_owned).collect()
    }

    /// Returns once this request, counted from the connection's first, was asked.
    pub async fn asks(&self, number: usize) {
        let begins = format!("{number} ");
        let log = self.at("control.log");
        let asked = || {
            let text = fs::read_to_string(&log).unwrap_or_default();
            text.lines().any(|line| line.starts_with(&begins))
        };
        while !asked() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    }

    /// Ends all connections.
    pub fn cut(&self) {
        for (connection, mut session) in self.sessions.lock().unwrap().drain(..) {
            // It is shared by the processes of a session, all of which end then.
            let _ = connection.shutdown(Shutdown::Both);
            let _ = session.kill();
            let _ = session.wait();
        }
    }

    /// How many connections are open.
    pub fn connections(&self) -> usize {
        let mut sessions = self.sessions.lock().unwrap();
        sessions.retain_mut(|(_, session)| session.try_wait().is_ok_and(|over| over.is_none()));
        sessions.len()
    }

    pub fn ssh_config(&self) -> PathBuf {
        self.at("ssh_config")
    }

    pub fn known_hosts(&self) -> PathBuf {
        self.at("known_hosts")
    }

    /// Its folder, for what a test adds.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// As an entry of `guests`.
    pub fn guest(&self) -> Value {
        json!({ "ssh": HOST, "ssh_config": self.ssh_config() })
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        // The listening thread looks only when somebody comes.
        let _ = TcpStream::connect(self.address);
        self.cut();
    }
}
