//! The SFTP server of a simulated guest: a real one behind paths as the guest has them, which breaks off where a test wants it to.
//!
//! `guest-sftp CONTROL -- SERVER…`, where the file CONTROL has lines such as `mount /home FOLDER`, `lose-reply 7`, `lose-request 7`, and
//! `hold 7`, which passes nothing on from that request on, and `truncate 7 FILE`, which empties a file before that request.
//! Each request is appended to `CONTROL.log`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::exit
)]
use std::{
    collections::HashSet,
    fs,
    io::{self, Read, Write},
    process::{Command, Stdio, exit},
    sync::{Arc, Mutex},
    thread,
};

const NAME: u8 = 104;
const REALPATH: u8 = 16;
const EXTENDED: u8 = 200;

#[derive(Default)]
struct Control {
    /// Mount point and folder on this host.
    mounts: Vec<(String, String)>,
    lose_request: Option<usize>,
    lose_reply: Option<usize>,
    hold: Option<usize>,
    truncate: Option<(usize, String)>,
    /// Extensions that the server is said not to have.
    without: Vec<String>,
}

impl Control {
    fn read(file: &str) -> Self {
        let mut control = Self::default();
        for line in fs::read_to_string(file).unwrap().lines() {
            let words: Vec<&str> = line.splitn(3, ' ').collect();
            match words.as_slice() {
                ["mount", at, folder] => control.mounts.push((at.to_string(), folder.to_string())),
                ["lose-request", number] => control.lose_request = number.parse().ok(),
                ["lose-reply", number] => control.lose_reply = number.parse().ok(),
                ["hold", number] => control.hold = number.parse().ok(),
                ["truncate", number, file] => {
                    control.truncate = Some((number.parse().unwrap(), file.to_string()));
                }
                ["without", extension] => control.without.push(extension.to_string()),
                other => panic!("{other:?}"),
            }
        }
        control
    }

    /// The path on this host.
    fn on_host(&self, path: &[u8]) -> Vec<u8> {
        let below = |at: &str| match at {
            "/" => Some(path),
            at => path
                .strip_prefix(at.as_bytes())
                .filter(|rest| rest.is_empty() || rest[0] == b'/'),
        };
        let found = self
            .mounts
            .iter()
            .filter_map(|(at, folder)| Some((at.len(), folder, below(at)?)));
        let (_, folder, rest) = found.max_by_key(|(depth, ..)| *depth).unwrap();
        let rest = if rest == b"/" { b"".as_slice() } else { rest };
        [folder.as_bytes(), rest].concat()
    }

    /// The path in the guest.
    fn in_guest(&self, path: &[u8]) -> Vec<u8> {
        for (at, folder) in &self.mounts {
            if let Some(rest) = path.strip_prefix(folder.as_bytes()) {
                let at = if at == "/" { "" } else { at };
                let path = [at.as_bytes(), rest].concat();
                return if path.is_empty() { b"/".to_vec() } else { path };
            }
        }
        path.to_vec()
    }
}

fn packet(from: &mut impl Read) -> Option<Vec<u8>> {
    let mut length = [0; 4];
    from.read_exact(&mut length).ok()?;
    let mut packet = vec![0; u32::from_be_bytes(length) as usize];
    from.read_exact(&mut packet).ok()?;
    Some(packet)
}

fn send(to: &mut impl Write, packet: &[u8]) -> io::Result<()> {
    to.write_all(&(packet.len() as u32).to_be_bytes())?;
    to.write_all(packet)?;
    to.flush()
}

fn string(packet: &[u8], at: usize) -> (&[u8], usize) {
    let length = u32::from_be_bytes(packet[at..at + 4].try_into().unwrap()) as usize;
    (&packet[at + 4..at + 4 + length], at + 4 + length)
}

fn put(packet: &mut Vec<u8>, string: &[u8]) {
    packet.extend((string.len() as u32).to_be_bytes());
    packet.extend(string);
}

/// Where the paths of a request begin, and how many there are.
fn paths(packet: &[u8]) -> (usize, usize) {
    match packet[0] {
        3 | 7 | 9 | 11 | 13 | 14 | 15 | REALPATH | 17 | 19 => (5, 1),
        18 => (5, 2),
        EXTENDED => {
            let (name, end) = string(packet, 5);
            match name {
                b"posix-rename@openssh.com" | b"hardlink@openssh.com" => (end, 2),
                b"statvfs@openssh.com" | b"lsetstat@openssh.com" => (end, 1),
                _ => (0, 0),
            }
        }
        _ => (0, 0),
    }
}

fn to_host(control: &Control, packet: &[u8]) -> (Vec<u8>, String) {
    let (mut at, count) = paths(packet);
    let mut said = format!("{}", packet[0]);
    if packet[0] == EXTENDED {
        said = String::from_utf8_lossy(string(packet, 5).0).into_owned();
    }
    if count == 0 {
        return (packet.to_vec(), said);
    }
    let mut mapped = packet[..at].to_vec();
    for _ in 0..count {
        let (path, end) = string(packet, at);
        said.push_str(&format!(" {:?}", String::from_utf8_lossy(path)));
        put(&mut mapped, &control.on_host(path));
        at = end;
    }
    mapped.extend(&packet[at..]);
    (mapped, said)
}

fn to_guest(control: &Control, packet: &[u8]) -> Vec<u8> {
    let (path, mut at) = string(packet, 9);
    let (longname, end) = string(packet, at);
    let mut mapped = packet[..9].to_vec();
    put(&mut mapped, &control.in_guest(path));
    put(&mut mapped, longname);
    at = end;
    mapped.extend(&packet[at..]);
    mapped
}

/// The version packet without some of the extensions.
fn hidden(control: &Control, packet: &[u8]) -> Vec<u8> {
    let (mut shown, mut at) = (packet[..5].to_vec(), 5);
    while at < packet.len() {
        let (name, after) = string(packet, at);
        let (value, end) = string(packet, after);
        if !control
            .without
            .iter()
            .any(|without| without.as_bytes() == name)
        {
            put(&mut shown, name);
            put(&mut shown, value);
        }
        at = end;
    }
    shown
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, dashes, server, rest @ ..] = arguments.as_slice() else {
        panic!("guest-sftp CONTROL -- SERVER…");
    };
    assert_eq!(dashes, "--");
    let control = Arc::new(Control::read(file));
    let mut child = Command::new(server)
        .args(rest)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut to, mut from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let real_paths = Arc::<Mutex<HashSet<Vec<u8>>>>::default();
    let lost = Arc::<Mutex<Option<Vec<u8>>>>::default();

    thread::spawn({
        let (control, real_paths, lost) = (control.clone(), real_paths.clone(), lost.clone());
        move || {
            let mut out = io::stdout().lock();
            while let Some(mut packet) = packet(&mut from) {
                let id = packet.get(1..5).unwrap_or_default().to_vec();
                if lost.lock().unwrap().as_ref() == Some(&id) && packet[0] != 2 {
                    exit(0);
                }
                if packet[0] == 2 {
                    packet = hidden(&control, &packet);
                }
                if packet[0] == NAME && real_paths.lock().unwrap().remove(&id) {
                    packet = to_guest(&control, &packet);
                }
                if send(&mut out, &packet).is_err() {
                    exit(0);
                }
            }
            exit(0);
        }
    });

    let mut log = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(format!("{file}.log"))
        .unwrap();
    let mut input = io::stdin().lock();
    let mut number = 0;
    while let Some(packet) = packet(&mut input) {
        let (mapped, said) = to_host(&control, &packet);
        if packet[0] != 1 {
            number += 1;
            writeln!(log, "{number} {said}").unwrap();
            if control.lose_request == Some(number) {
                exit(0);
            }
            if let Some((at, file)) = &control.truncate
                && *at == number
            {
                let on_host = String::from_utf8(control.on_host(file.as_bytes())).unwrap();
                fs::write(on_host, "").unwrap();
            }
            if control.hold == Some(number) {
                io::copy(&mut input, &mut io::sink()).unwrap();
                exit(0);
            }
            let id = packet[1..5].to_vec();
            if control.lose_reply == Some(number) {
                *lost.lock().unwrap() = Some(id.clone());
            }
            if packet[0] == REALPATH {
                real_paths.lock().unwrap().insert(id);
            }
        }
        if send(&mut to, &mapped).is_err() {
            break;
        }
    }
    drop(to);
    let _ = child.wait();
}
