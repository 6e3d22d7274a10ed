//! The stop: a file in the state folder. While it is there, every listed call of this user is refused.
//!
//! Looking at it costs one `lstat`, so it is looked at before every listed call and no process has to be told. It fails closed: a file
//! that cannot be read, a link and a folder of its name all count as a stop.
use crate::{
    Error, ErrorCode,
    config::default_state_dir,
    state::{FolderError, folder},
    text as readable,
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::{
    fmt, fs,
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

const FILE: &str = "stop.json";
/// A note is short; what is longer was not written by us.
const MAX_BYTES: u64 = 16 * 1024;
const MAX_REASON: usize = 500;

/// The stop of one state folder.
#[derive(Clone, Debug)]
pub struct Stop {
    path: PathBuf,
}

/// The stops that hold for a program: that of its own state folder, and that of the platform's, which a person reaches without
/// a configuration.
#[derive(Clone, Debug)]
pub struct Stops(Vec<Stop>);

impl Stops {
    /// Those that hold for programs with this state folder.
    #[must_use]
    pub fn of(state_dir: &Path) -> Self {
        let users = default_state_dir().filter(|users| users != state_dir);
        Self(
            [Some(state_dir), users.as_deref()]
                .into_iter()
                .flatten()
                .map(Stop::at)
                .collect(),
        )
    }

    /// Refuses while one of them is in force.
    ///
    /// # Errors
    /// As [`Stop::check`].
    pub fn check(&self) -> Result<(), Error> {
        self.0.iter().try_for_each(Stop::check)
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &Stop> {
        self.0.iter()
    }
}

impl From<Stop> for Stops {
    fn from(stop: Stop) -> Self {
        Self(vec![stop])
    }
}

/// What is in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopNote {
    /// Since when, by this host's clock. None where the file cannot be read.
    pub since: Option<Timestamp>,
    /// Why, on one line.
    pub reason: Option<String>,
    /// Who said so.
    pub by: Option<String>,
    /// Why the file cannot be read. It counts as a stop all the same.
    #[serde(skip)]
    pub unreadable: Option<String>,
}

impl fmt::Display for StopNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("stopped")?;
        if let Some(since) = self.since {
            write!(f, " since {since:.0}")?;
        }
        if let Some(by) = &self.by {
            write!(f, " by {by}")?;
        }
        if let Some(reason) = &self.reason {
            write!(f, ": {reason}")?;
        }
        if let Some(problem) = &self.unreadable {
            write!(f, " ({problem}; that counts as a stop)")?;
        }
        Ok(())
    }
}

impl Stop {
    /// The stop of this state folder, which need not exist.
    #[must_use]
    pub fn at(state_dir: &Path) -> Self {
        Self {
            path: state_dir.join(FILE),
        }
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is in force now, if anything.
    ///
    /// # Errors
    ///
    /// `state` where it cannot be told whether the file exists. The caller has to refuse then.
    pub fn in_force(&self) -> Result<Option<StopNote>, Error> {
        match fs::symlink_metadata(&self.path) {
            Ok(metadata) => Ok(Some(self.read(&metadata))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.state("cannot be looked at", &error)),
        }
    }

    /// Refuses while a stop is in force.
    ///
    /// # Errors
    ///
    /// `stopped` with the note, or as [`in_force`](Self::in_force).
    pub fn check(&self) -> Result<(), Error> {
        match self.in_force()? {
            None => Ok(()),
            Some(note) => Err(
                Error::new(ErrorCode::Stopped, format!("zerto-rewind is {note}")).with_next(
                    "Leave the change alone. A person lifts the stop with `zerto-rewind resume`.",
                ),
            ),
        }
    }

    /// Stops. Where a stop is in force already, its time stays, and a new reason replaces the old one, with its author.
    ///
    /// # Errors
    ///
    /// `state` where the file cannot be written, or where others could take it away: the folder is not this user's alone. It says whether
    /// listed calls are refused all the same; they mostly are not, as a program that has the folder open needs nothing new of it.
    pub fn engage(&self, reason: Option<&str>, by: &str) -> Result<StopNote, Error> {
        self.prepare_folder()
            .map_err(|error| self.not_written(&error.to_string(), error.next()))?;
        let reason = reason.map(reason_line).filter(|text| !text.is_empty());
        let before = self.in_force()?;
        if let Some(note) = &before
            && reason.is_none()
            && note.unreadable.is_none()
        {
            return Ok(note.clone());
        }
        let note = StopNote {
            since: Some(
                before
                    .as_ref()
                    .and_then(|note| note.since)
                    .unwrap_or_else(Timestamp::now),
            ),
            reason,
            by: Some(reason_line(by)),
            unreadable: None,
        };
        match self.write(&note) {
            Ok(()) => Ok(note),
            // An empty file needs no room, and what is no note of ours is a stop, too.
            Err(error) if before.is_none() && self.mark().is_ok() => Ok(StopNote {
                since: None,
                reason: None,
                by: None,
                unreadable: Some(format!(
                    "{}: the reason and the time can't be written: {}",
                    self.path.display(),
                    plain(&error)
                )),
            }),
            Err(error) => {
                let what = format!(
                    "{}: cannot be written: {}",
                    self.path.display(),
                    plain(&error)
                );
                Err(self.not_written(&what, cure(&error).to_owned()))
            }
        }
    }

    /// Lifts the stop and returns what was in force.
    ///
    /// # Errors
    ///
    /// `state` where the file cannot be removed: the stop stays in force.
    pub fn lift(&self) -> Result<Option<StopNote>, Error> {
        let Some(note) = self.in_force()? else {
            return Ok(None);
        };
        match fs::remove_file(&self.path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(self.state("cannot be removed, the stop stays in force", &error));
            }
        }
        self.sync_folder().map_err(|error| {
            self.state("was removed, but not surely for good", &error)
                .with_next("The stop is lifted now, and a power cut could bring it back: look after the disk.")
        })?;
        Ok(Some(note))
    }

    fn read(&self, metadata: &fs::Metadata) -> StopNote {
        let unreadable = |problem: String| StopNote {
            since: None,
            reason: None,
            by: None,
            unreadable: Some(problem),
        };
        let shown = self.path.display();
        if !metadata.is_file() {
            return unreadable(format!("{shown} is not a regular file"));
        }
        let mut text = String::new();
        let read = fs::File::open(&self.path)
            .and_then(|file| file.take(MAX_BYTES).read_to_string(&mut text));
        if let Err(error) = read {
            return unreadable(format!("{shown} cannot be read: {error}"));
        }
        match serde_json::from_str::<StopNote>(&text) {
            Ok(note) => StopNote {
                reason: note.reason.as_deref().map(reason_line),
                by: note.by.as_deref().map(reason_line),
                ..note
            },
            Err(_) => unreadable(format!("{shown} is not a note of ours")),
        }
    }

    /// A folder that others can only look into keeps a stop as well as any.
    fn prepare_folder(&self) -> Result<(), FolderError> {
        const OTHERS_WRITE: u32 = 0o022;
        match folder::prepare(self.path.parent().unwrap_or(Path::new("."))) {
            Err(FolderError::OpenToOthers { mode, .. }) if mode & OTHERS_WRITE == 0 => Ok(()),
            prepared => prepared.map(drop),
        }
    }

    fn write(&self, note: &StopNote) -> io::Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        // A new file (0600) takes the name, so that a link of that name is replaced and never written through.
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        serde_json::to_writer_pretty(&mut file, note)?;
        file.write_all(b"\n")?;
        file.as_file().sync_all()?;
        file.persist(&self.path).map_err(|error| error.error)?;
        self.sync_folder()
    }

    /// A stop without a note.
    fn mark(&self) -> io::Result<()> {
        let mut options = fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(&self.path)?;
        self.sync_folder()
    }

    /// A stop that a power failure undoes would be none.
    fn sync_folder(&self) -> io::Result<()> {
        #[cfg(unix)]
        if let Some(folder) = self.path.parent() {
            fs::File::open(folder)?.sync_all()?;
        }
        Ok(())
    }

    /// A person who reads this wants to know one thing first: whether agents are held now.
    fn not_written(&self, why: &str, cure: String) -> Error {
        let (held, meanwhile) = match self.in_force() {
            Ok(None) => (
                "NOT stopped: listed calls may still pass",
                "To hold agents all the same, end their clients, and with them every proxy and MCP server of zerto-rewind; or, \
                 where another folder of yours can be written to, run `env -u ZERTO_REWIND_CONFIG zerto-rewind stop`, which names no \
                 configuration and holds for all of them. Then stop again. ",
            ),
            Ok(Some(_)) => (
                "stopped already, as what is there counts as a stop, but the reason is not written",
                "",
            ),
            Err(_) => (
                "listed calls are refused, as it can't be told whether there is a stop, but none is written",
                "",
            ),
        };
        Error::new(ErrorCode::State, format!("{held}: {why}"))
            .with_next(format!("{meanwhile}{cure}"))
    }

    fn state(&self, what: &str, error: &io::Error) -> Error {
        Error::new(
            ErrorCode::State,
            format!("{}: {what}: {error}", self.path.display()),
        )
        .with_next("Put the permissions of the state folder right. Until then every listed call is refused.")
    }
}

/// What the system says, without the name of a file that is gone again.
fn plain(error: &io::Error) -> String {
    let said = readable::without_os_numbers(error.to_string());
    match said.split_once(" at path ") {
        Some((said, _)) => said.to_owned(),
        None => said,
    }
}

fn cure(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            "The disk, or what this user may use of it, is full: make room."
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "Make the state folder one that this user can write to."
        }
        _ => "See what is wrong with the state folder.",
    }
}

fn reason_line(text: &str) -> String {
    readable::display(text, MAX_REASON)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fresh() -> (tempfile::TempDir, Stop) {
        let folder = tempfile::tempdir().unwrap();
        let stop = Stop::at(&folder.path().join("state"));
        (folder, stop)
    }

    #[test]
    fn nothing_is_in_force_before_and_after() {
        let (_folder, stop) = fresh();
        assert_eq!(stop.in_force().unwrap(), None);
        assert_eq!(stop.lift().unwrap(), None);
        stop.check().unwrap();

        let note = stop.engage(Some("disk\nfull\u{7}"), "cli/ana").unwrap();
        assert_eq!(note.reason.as_deref(), Some("disk full"));
        assert_eq!(stop.in_force().unwrap(), Some(note.clone()));
        let error = stop.check().unwrap_err();
        assert_eq!(error.code, ErrorCode::Stopped);
        assert!(
            error.message.contains("disk full") && error.message.contains("cli/ana"),
            "{error}"
        );

        assert_eq!(stop.lift().unwrap(), Some(note));
        stop.check().unwrap();
    }

    #[test]
    fn a_second_stop_keeps_the_time_and_takes_a_new_reason() {
        let (_folder, stop) = fresh();
        let first = stop.engage(Some("one"), "cli/ana").unwrap();
        assert_eq!(stop.engage(None, "cli/bo").unwrap(), first);
        let second = stop.engage(Some("two"), "cli/bo").unwrap();
        assert_eq!(second.since, first.since);
        assert_eq!(second.reason.as_deref(), Some("two"));
        assert_eq!(second.by.as_deref(), Some("cli/bo"));
    }

    #[test]
    fn what_cannot_be_read_counts_as_a_stop() {
        for content in ["", "{", "[]", "\u{0}", "{\"since\": 3}"] {
            let (_folder, stop) = fresh();
            fs::create_dir_all(stop.path().parent().unwrap()).unwrap();
            fs::write(stop.path(), content).unwrap();
            assert_eq!(
                stop.check().unwrap_err().code,
                ErrorCode::Stopped,
                "{content:?}"
            );
            // It can be replaced by a proper note, and lifted.
            assert!(stop.engage(None, "cli/ana").unwrap().since.is_some());
            stop.lift().unwrap();
            stop.check().unwrap();
        }
        let (_folder, stop) = fresh();
        fs::create_dir_all(stop.path()).unwrap();
        assert_eq!(stop.check().unwrap_err().code, ErrorCode::Stopped);
        assert_eq!(stop.lift().unwrap_err().code, ErrorCode::State);
        assert_eq!(stop.check().unwrap_err().code, ErrorCode::Stopped);
    }

    #[test]
    fn a_state_folder_that_cannot_be_looked_into_refuses() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        assert_eq!(Stop::at(&file).check().unwrap_err().code, ErrorCode::State);
    }

    #[cfg(unix)]
    #[test]
    fn links_are_not_followed_and_the_file_is_private() {
        use std::os::unix::fs::{MetadataExt, symlink};
        let (folder, stop) = fresh();
        let target = folder.path().join("target");
        fs::create_dir_all(stop.path().parent().unwrap()).unwrap();
        symlink(&target, stop.path()).unwrap();
        // A link to nothing is a stop, too.
        assert_eq!(stop.check().unwrap_err().code, ErrorCode::Stopped);
        fs::write(&target, "precious").unwrap();
        stop.engage(Some("x"), "cli/ana").unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
        let metadata = fs::symlink_metadata(stop.path()).unwrap();
        assert!(metadata.is_file());
        assert_eq!(metadata.mode() & 0o777, 0o600);
        let (_other, stop) = fresh();
        stop.engage(None, "cli/ana").unwrap();
        let folder = fs::metadata(stop.path().parent().unwrap()).unwrap();
        assert_eq!(folder.mode() & 0o777, 0o700);
    }
}
