//! A settings file of somebody else: read, backed up, replaced as a whole, put back.
use std::{
    fs::{self, File, Metadata},
    io::{self, Write},
    path::{Path, PathBuf},
};

use rewind_core::private::check_way;

/// No settings are larger.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// A settings file as it was found.
#[derive(Debug)]
pub(super) struct SettingsFile {
    /// As the harness names it.
    pub named: PathBuf,
    /// The file itself, where the name is a link.
    target: PathBuf,
    /// Its text. None where there is none yet.
    pub text: Option<String>,
    metadata: Option<Metadata>,
}

impl SettingsFile {
    pub fn read(named: &Path) -> Result<Self, String> {
        let refuse = |what: &str| format!("{}: {what}", named.display());
        // The folder and the links on the way to it: of a project in a place where others write, another user may have made them.
        check_way(named).map_err(|way| {
            let told = way.told_of(named);
            refuse(&format!("is not safe to change: {told}. {}", way.next()))
        })?;
        let target = match fs::symlink_metadata(named) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self {
                    named: named.to_owned(),
                    target: named.to_owned(),
                    text: None,
                    metadata: None,
                });
            }
            Err(error) => return Err(refuse(&format!("cannot be looked at: {error}"))),
            Ok(_) => fs::canonicalize(named)
                .map_err(|error| refuse(&format!("is a link to nothing: {error}")))?,
        };
        let read = || {
            let metadata = fs::metadata(&target)?;
            if !metadata.is_file() || metadata.len() > MAX_BYTES {
                return Err(io::Error::other("not a regular file of settings"));
            }
            Ok((fs::read(&target)?, metadata))
        };
        let (bytes, metadata) =
            read().map_err(|error| refuse(&format!("cannot be read: {error}")))?;
        let text =
            String::from_utf8(bytes).map_err(|_| refuse("is not UTF-8; it was left alone"))?;
        Ok(Self {
            named: named.to_owned(),
            target,
            text: Some(text),
            metadata: Some(metadata),
        })
    }

    /// The copy of the file as it was before anything of ours was in it.
    pub fn backup(&self) -> PathBuf {
        let mut name = self.target.file_name().unwrap_or_default().to_owned();
        name.push(".zerto-rewind.bak");
        self.target.with_file_name(name)
    }

    /// The text of the backup, where there is one that we have made: not a link, and nobody else's.
    pub fn backed_up(&self) -> Option<String> {
        let backup = self.backup();
        let metadata = fs::symlink_metadata(&backup).ok()?;
        let ours = metadata.is_file() && self.is_of_its_owner(&metadata);
        ours.then(|| fs::read_to_string(backup).ok())?
    }

    /// Copies have the owner of the settings, whoever ran `install`.
    #[cfg(unix)]
    fn is_of_its_owner(&self, copy: &Metadata) -> bool {
        use std::os::unix::fs::MetadataExt;
        let owner = self.metadata.as_ref().map(MetadataExt::uid);
        copy.nlink() == 1
            && (Some(copy.uid()) == owner || copy.uid() == rustix::process::geteuid().as_raw())
    }

    #[cfg(not(unix))]
    fn is_of_its_owner(&self, _: &Metadata) -> bool {
        true
    }

    /// Whether a person or a program has made it read-only: then it is theirs to change.
    pub fn check_writable(&self) -> Result<(), String> {
        match &self.metadata {
            Some(metadata) if metadata.permissions().readonly() => Err(format!(
                "{}: is read-only: make it writable, or put the change above in by hand",
                self.named.display()
            )),
            _ => Ok(()),
        }
    }

    /// Keeps a copy beside the file.
    pub fn back_up(&self) -> Result<(), String> {
        match &self.text {
            Some(text) => self
                .replace(&self.backup(), text)
                .map_err(|error| self.failed("no backup can be kept", &error)),
            None => Ok(()),
        }
    }

    pub fn remove_backup(&self) -> Result<(), String> {
        absent(fs::remove_file(self.backup()))
            .map_err(|error| self.failed("the backup cannot be removed", &error))
    }

    /// Replaces the whole file by `text`; None removes it.
    pub fn write(&self, text: Option<&str>) -> Result<(), String> {
        let now = Self::read(&self.named)?;
        if now.text != self.text {
            return Err(format!(
                "{}: changed meanwhile; nothing was written: try again",
                self.named.display()
            ));
        }
        self.put(text)
    }

    /// Puts the file back as it was found, after [`write`](Self::write).
    pub fn restore(&self) -> Result<(), String> {
        self.put(self.text.as_deref())
    }

    fn put(&self, text: Option<&str>) -> Result<(), String> {
        match text {
            Some(text) => self.replace(&self.target, text),
            None => absent(fs::remove_file(&self.target)),
        }
        .map_err(|error| self.failed("cannot be written", &error))
    }

    /// Atomic, with the mode and the owner of the file that is replaced.
    fn replace(&self, path: &Path, text: &str) -> io::Result<()> {
        let folder = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder)?;
        let mut builder = tempfile::Builder::new();
        builder.prefix(".zerto-rewind-");
        // As any other new file, as the umask has it.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let mut file = builder.tempfile_in(folder)?;
        file.write_all(text.as_bytes())?;
        if let Some(metadata) = &self.metadata {
            inherit(file.as_file(), metadata)?;
        }
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)?;
        #[cfg(unix)]
        File::open(folder)?.sync_all()?;
        Ok(())
    }

    fn failed(&self, what: &str, error: &io::Error) -> String {
        format!("{}: {what}: {error}", self.named.display())
    }
}

fn inherit(file: &File, metadata: &Metadata) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, fchown};
        let new = file.metadata()?;
        if (new.uid(), new.gid()) != (metadata.uid(), metadata.gid()) {
            fchown(file, Some(metadata.uid()), Some(metadata.gid()))?;
        }
    }
    file.set_permissions(metadata.permissions())
}

fn absent(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
