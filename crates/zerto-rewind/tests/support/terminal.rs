//! A program at a terminal of its own.
#![allow(dead_code)]

use std::{
    fs::File,
    io::{Read as _, Write as _},
    os::fd::OwnedFd,
    process::Stdio,
    sync::{Arc, Mutex},
    thread::JoinHandle,
};

use rustix::{
    fs::{Mode, OFlags},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
};
use tokio::{
    process::{Child, Command},
    sync::Notify,
    time::timeout,
};

use super::PATIENCE;

/// What the person at the terminal sees and types.
pub struct Terminal {
    master: File,
    screen: Arc<Screen>,
    reader: JoinHandle<()>,
}

#[derive(Default)]
struct Screen {
    text: Mutex<String>,
    grew: Notify,
}

impl Terminal {
    /// Starts a program with this terminal as its stdin and stderr, and as its stdout unless that is piped.
    pub fn start(command: &mut Command, stdout_too: bool) -> (Self, Child) {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let slave = || -> OwnedFd {
            rustix::fs::open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap()
        };
        command
            .env("TERM", "xterm-256color")
            .stdin(slave())
            .stderr(slave());
        if stdout_too {
            command.stdout(slave());
        } else {
            command.stdout(Stdio::piped());
        }
        let child = command.spawn().unwrap();
        // The command would keep its ends open for as long as it lives.
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let master = File::from(master);
        let screen = Arc::new(Screen::default());
        let reader = std::thread::spawn({
            let (mut master, screen) = (master.try_clone().unwrap(), screen.clone());
            move || {
                let mut buffer = [0; 4096];
                // At the end of the last program on it, reading from a terminal fails.
                while let Ok(length @ 1..) = master.read(&mut buffer) {
                    let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
                    screen.text.lock().unwrap().push_str(&text);
                    screen.grew.notify_one();
                }
                screen.grew.notify_one();
            }
        });
        (
            Self {
                master,
                screen,
                reader,
            },
            child,
        )
    }

    /// Waits until this stands on the screen.
    pub async fn shows(&self, wanted: &str) {
        let shown = timeout(PATIENCE, async {
            while !self.text().contains(wanted) {
                self.screen.grew.notified().await;
            }
        });
        assert!(
            shown.await.is_ok(),
            "{wanted:?} is not shown: {}",
            self.text()
        );
    }

    /// Waits until this stands on the screen so often.
    pub async fn shows_again(&self, wanted: &str, times: usize) {
        let shown = timeout(PATIENCE, async {
            while self.text().matches(wanted).count() < times {
                self.screen.grew.notified().await;
            }
        });
        assert!(
            shown.await.is_ok(),
            "{wanted:?} is not shown {times} times: {}",
            self.text()
        );
    }

    /// Whether it shows what is typed.
    pub fn echoes(&self) -> bool {
        let modes = rustix::termios::tcgetattr(&self.master)
            .unwrap()
            .local_modes;
        modes.contains(rustix::termios::LocalModes::ECHO)
    }

    /// Types a line.
    pub fn types(&mut self, line: &str) {
        self.master
            .write_all(format!("{line}\n").as_bytes())
            .unwrap();
    }

    /// Everything that was shown up to now.
    pub fn text(&self) -> String {
        self.screen.text.lock().unwrap().clone()
    }

    /// Everything that was shown, after the program has ended.
    pub fn end(self) -> String {
        self.reader.join().unwrap();
        Arc::into_inner(self.screen)
            .unwrap()
            .text
            .into_inner()
            .unwrap()
    }
}
