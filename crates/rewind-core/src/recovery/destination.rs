//! Where a recovered file or folder lands: never over something, and over MCP never outside of the recovery folder.
use super::{
    Destination, GuestPath,
    folders::{
        TEMPORARY, make_folders, make_private, missing, remove_stale, rename_noreplace, sync_folder,
    },
};
use crate::{Error, ErrorCode, private::check_way, state::places::WorkPlace, text};
use std::{
    ffi::OsStr,
    fs, io,
    path::{Component, Path, PathBuf},
};
use tempfile::{NamedTempFile, TempDir};
use uuid::Uuid;

const COMPONENT_MAX_BYTES: usize = 200;
const COMPONENTS_MAX: usize = 32;

/// What a destination is made of.
pub(crate) struct Naming<'a> {
    pub vm: &'a str,
    pub checkpoint: u64,
    /// The folders in the guest that lead to it, outermost first.
    pub folders: &'a [String],
    /// The name of the file or folder in the guest.
    pub name: &'a str,
    /// It is one of several: what is named is the folder for all of them.
    pub several: bool,
}

impl Naming<'_> {
    /// A folder of its own for each of a checkpoint's folders: files of one name don't meet.
    fn folder(&self, recover_dir: &Path) -> PathBuf {
        let checkpoint = recover_dir
            .join(component(self.vm))
            .join(self.checkpoint.to_string());
        let folders = self.folders.iter().map(|name| local_name(name));
        folders.fold(checkpoint, |path, name| path.join(name))
    }
}

impl Destination {
    /// Where a file or folder of a guest would land, with what can be told against it before anything is mounted. Makes nothing.
    ///
    /// # Errors
    /// `invalid_argument`, `destination_exists`, `destination_unusable`.
    pub fn lands(
        &self,
        recover_dir: &Path,
        vm: &str,
        checkpoint: u64,
        path: &GuestPath,
    ) -> Result<PathBuf, Error> {
        let folders = path.folders();
        let naming = Naming {
            vm,
            checkpoint,
            folders: &folders,
            name: path.name(),
            several: false,
        };
        Target::new(self, recover_dir, &naming).map(|target| target.path())
    }
}

/// A place that is free.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    folder: PathBuf,
    name: String,
    /// What the folder must not lie outside of.
    within: Option<PathBuf>,
    /// What begins the names of what is not complete yet: this recovery's own.
    mark: String,
}

/// Each time, another recovery has to end in a moment as short as that between two calls.
const PREPARE_TRIES: u32 = 5;

impl Target {
    /// Checks where it would land; makes nothing.
    pub fn new(
        destination: &Destination,
        recover_dir: &Path,
        naming: &Naming<'_>,
    ) -> Result<Self, Error> {
        let name = local_name(naming.name);
        let target = match destination {
            Destination::Folder(folder) => Self {
                folder: whole(folder)?,
                name,
                within: None,
                mark: mark(),
            },
            Destination::InRecoverDir(inside) => {
                let recover_dir = std::path::absolute(recover_dir)
                    .map_err(|error| unusable(recover_dir, &error))?;
                let (folder, name) =
                    match inside.as_deref().filter(|inside| !inside.trim().is_empty()) {
                        None => (naming.folder(&recover_dir), name),
                        Some(inside) if naming.several => {
                            inside_of(&recover_dir, &format!("{inside}/"), name)?
                        }
                        Some(inside) => inside_of(&recover_dir, inside, name)?,
                    };
                Self {
                    folder,
                    name,
                    within: Some(recover_dir),
                    mark: mark(),
                }
            }
        };
        target.check()
    }

    /// The place that a plan names, checked again; makes nothing.
    pub fn agreed(to: &Path, within: Option<&Path>) -> Result<Self, Error> {
        let (Some(folder), Some(name)) = (to.parent(), to.file_name().and_then(OsStr::to_str))
        else {
            let error = io::Error::from(io::ErrorKind::InvalidInput);
            return Err(unusable(to, &error));
        };
        let target = Self {
            folder: folder.to_owned(),
            name: name.to_owned(),
            within: within.map(Path::to_owned),
            mark: mark(),
        };
        target.check()
    }

    fn check(self) -> Result<Self, Error> {
        self.check_way()?;
        self.check_containment()?;
        self.check_free()?;
        self.check_folder()?;
        Ok(self)
    }

    /// Where it lands, as a plan has it.
    pub fn written(&self) -> Result<String, Error> {
        written(&self.path())
    }

    /// The folder that it must not lie outside of, as a plan has it.
    pub fn within(&self) -> Result<Option<String>, Error> {
        self.within.as_deref().map(written).transpose()
    }

    /// In a folder of ours.
    pub fn in_folder(folder: &Path, name: String) -> Self {
        Self {
            folder: folder.to_owned(),
            name,
            within: None,
            mark: mark(),
        }
    }

    /// Where it lands.
    pub fn path(&self) -> PathBuf {
        self.folder.join(&self.name)
    }

    /// Where it is worked, before anything is made.
    pub fn work_place(&self) -> WorkPlace {
        WorkPlace {
            folder: self.folder.clone(),
            mark: self.mark.clone(),
            made: missing(&self.folder).last().map(|made| (*made).to_owned()),
        }
    }

    /// Makes the folder (0700 where it is missing) and shows that it can be written to.
    pub fn prepare(self) -> Result<Place, Error> {
        let mut place = Place {
            target: self,
            created: Vec::new(),
            hold: None,
            kept: false,
        };
        for left in (0..PREPARE_TRIES).rev() {
            let target = &place.target;
            if let Some(within) = &target.within
                && !within.exists()
            {
                make_folders(within, &mut place.created)
                    .map_err(|error| unusable(within, &error))?;
            }
            make_folders(&target.folder, &mut place.created)
                .map_err(|error| unusable(&target.folder, &error))?;
            target.check_way()?;
            target.check_containment()?;
            target.check_free()?;
            remove_stale(&target.folder);
            // Rather now than after the mount.
            match target.temporary_file() {
                Ok(hold) => {
                    place.hold = Some(hold);
                    break;
                }
                // Another recovery, which had made the folder, has ended.
                Err(error) if error.kind() == io::ErrorKind::NotFound && left > 0 => {}
                Err(error) => return Err(unusable(&target.folder, &error)),
            }
        }
        Ok(place)
    }

    fn temporary_file(&self) -> io::Result<NamedTempFile> {
        tempfile::Builder::new()
            .prefix(&self.mark)
            .tempfile_in(&self.folder)
    }

    fn check_free(&self) -> Result<(), Error> {
        match fs::symlink_metadata(self.path()) {
            Ok(_) => Err(exists(&self.path())),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                Ok(())
            }
            Err(error) => Err(unusable(&self.path(), &error)),
        }
    }

    /// Whether the folder can be written to, or made: a person is asked for nothing that can't be done.
    fn check_folder(&self) -> Result<(), Error> {
        for path in self.folder.ancestors() {
            match fs::metadata(path) {
                Ok(found) if !found.is_dir() => {
                    let error = io::Error::from(io::ErrorKind::NotADirectory);
                    return Err(unusable(path, &error));
                }
                Ok(_) => return check_writable(path).map_err(|error| unusable(path, &error)),
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                    ) && fs::symlink_metadata(path).is_err() => {}
                Err(error) => return Err(unusable(path, &error)),
            }
        }
        Ok(())
    }

    /// Nobody else may put something else where it lands. Within the recovery folder, whose paths no person chooses, each folder has to be
    /// this user's own.
    fn check_way(&self) -> Result<(), Error> {
        check_way(&self.folder).map_err(|way| unsafe_place(&format!("{way}. {}", way.next())))?;
        let Some(within) = &self.within else {
            return Ok(());
        };
        for folder in self.folder.ancestors() {
            check_owner(folder)?;
            if folder == within {
                break;
            }
        }
        Ok(())
    }

    /// Links below the recovery folder must not lead out of it.
    fn check_containment(&self) -> Result<(), Error> {
        let Some(within) = &self.within else {
            return Ok(());
        };
        let Ok(root) = fs::canonicalize(within) else {
            return Ok(()); // Not there yet: neither is a link in it.
        };
        let mut existing = self.folder.as_path();
        while fs::symlink_metadata(existing).is_err() {
            match existing.parent() {
                Some(parent) if parent.starts_with(within) => existing = parent,
                _ => return Ok(()),
            }
        }
        match fs::canonicalize(existing) {
            Ok(real) if real.starts_with(&root) => Ok(()),
            Ok(_) => Err(Error::new(
                ErrorCode::DestinationUnusable,
                format!("{} leads out of the recovery folder", shown(existing)),
            )),
            Err(error) => Err(unusable(existing, &error)),
        }
    }
}

/// What begins the names of what is not complete yet, for one recovery alone.
pub(super) fn mark() -> String {
    format!("{TEMPORARY}{}-", Uuid::new_v4().simple())
}

fn written(path: &Path) -> Result<String, Error> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        let error = io::Error::new(io::ErrorKind::InvalidInput, "it is no UTF-8");
        unusable(path, &error)
    })
}

#[cfg(unix)]
fn check_owner(folder: &Path) -> Result<(), Error> {
    use std::os::unix::fs::MetadataExt;

    let user = rustix::process::geteuid().as_raw();
    match fs::metadata(folder) {
        Ok(metadata) if metadata.uid() != user && metadata.uid() != 0 => {
            let (shown, owner) = (shown(folder), metadata.uid());
            Err(unsafe_place(&format!(
                "{shown}: belongs to user {owner}, not to you ({user}): move it away, or name another recovery folder"
            )))
        }
        // What is missing is made; what can't be looked at is told when it is used.
        _ => Ok(()),
    }
}

#[cfg(not(unix))]
fn check_owner(_: &Path) -> Result<(), Error> {
    Ok(())
}

/// The message says what to do.
fn unsafe_place(why: &str) -> Error {
    Error::new(
        ErrorCode::DestinationUnusable,
        text::display(&format!("the destination is not safe: {why}"), 5_000),
    )
    .with_next("Do what the message says, or name another destination.")
}

#[cfg(unix)]
fn check_writable(folder: &Path) -> io::Result<()> {
    use rustix::fs::{Access, access};
    Ok(access(folder, Access::WRITE_OK | Access::EXEC_OK)?)
}

#[cfg(not(unix))]
fn check_writable(_: &Path) -> io::Result<()> {
    Ok(())
}

/// A person's folder as it is shown: absolute, and without `.` and `..`. A link before a `..` is followed, as the system
/// follows it.
fn whole(folder: &Path) -> Result<PathBuf, Error> {
    if folder.to_string_lossy().starts_with('~') {
        let shown = shown(folder);
        let message =
            format!("the destination {shown} begins with `~`, which only a shell expands");
        return Err(Error::new(ErrorCode::InvalidArgument, message).with_next(format!(
            "Write the path in full, or without quotes. If a folder of this name is meant: ./{shown}"
        )));
    }
    let absolute = std::path::absolute(folder).map_err(|error| unusable(folder, &error))?;
    let mut whole = PathBuf::new();
    for component in absolute.components() {
        if component == Component::ParentDir {
            whole = fs::canonicalize(&whole).unwrap_or(whole);
            whole.pop();
        } else {
            whole.push(component);
        }
    }
    Ok(whole)
}

/// A folder that is there and can be written to. What was made for it is removed again where nothing is kept in it.
#[derive(Debug)]
pub(crate) struct Place {
    target: Target,
    /// Outermost first.
    created: Vec<PathBuf>,
    /// Empty. As long as it is there, another recovery that has made the folder does not remove it.
    hold: Option<NamedTempFile>,
    kept: bool,
}

impl Place {
    pub fn folder(&self) -> &Path {
        &self.target.folder
    }

    pub fn path(&self) -> PathBuf {
        self.target.path()
    }

    /// A file, not complete yet, that only this user can read.
    pub fn temporary_file(&self) -> Result<NamedTempFile, Error> {
        self.target
            .temporary_file()
            .map_err(|error| unusable(self.folder(), &error))
    }

    /// A folder, not complete yet, that only this user can look into.
    pub fn temporary_folder(&self) -> Result<TempDir, Error> {
        let folder = tempfile::Builder::new()
            .prefix(&self.target.mark)
            .tempdir_in(self.folder())
            .map_err(|error| unusable(self.folder(), &error))?;
        make_private(folder.path()).map_err(|error| unusable(folder.path(), &error))?;
        Ok(folder)
    }

    /// Moves a complete file here, unless something is here already.
    pub fn keep_file(&mut self, file: NamedTempFile) -> Result<PathBuf, Error> {
        let path = self.path();
        file.persist_noclobber(&path)
            .map_err(|error| self.not_placed(&error.error))?;
        self.kept(path)
    }

    /// Moves a complete folder here, unless something is here already.
    pub fn keep_folder(&mut self, folder: TempDir) -> Result<PathBuf, Error> {
        let path = self.path();
        rename_noreplace(folder.path(), &path).map_err(|error| self.not_placed(&error))?;
        // It is not at its temporary path any more.
        let _ = folder.keep();
        self.kept(path)
    }

    fn kept(&mut self, path: PathBuf) -> Result<PathBuf, Error> {
        self.kept = true;
        sync_folder(self.folder()).map_err(|error| unusable(self.folder(), &error))?;
        Ok(path)
    }

    fn not_placed(&self, error: &io::Error) -> Error {
        match error.kind() {
            io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty => exists(&self.path()),
            _ => unusable(&self.path(), error),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.hold = None;
        if !self.kept {
            for folder in self.created.iter().rev() {
                // Only an empty one goes.
                let _ = fs::remove_dir(folder);
            }
        }
    }
}

/// The folder and the name that a relative destination means: the folder itself where it is one or ends in `/`, else the
/// new name of the file or folder.
fn inside_of(recover_dir: &Path, inside: &str, name: String) -> Result<(PathBuf, String), Error> {
    let invalid = |problem: &str| {
        Error::new(
            ErrorCode::InvalidArgument,
            format!("`destination` \"{}\" {problem}", text::display(inside, 200)),
        )
        .with_next("Give a path relative to the recovery folder, such as app01/before, or none.")
    };
    if inside.chars().any(char::is_control) {
        return Err(invalid("contains control characters"));
    }
    if inside.contains('\\') {
        return Err(invalid("contains a backslash: separate folders with /"));
    }
    if inside.starts_with('~') {
        return Err(invalid("begins with `~`, which is not expanded"));
    }
    if inside.starts_with('/') || Path::new(inside).is_absolute() || inside.get(1..2) == Some(":") {
        return Err(invalid("is absolute"));
    }
    let mut components = Vec::new();
    for part in inside.split('/').filter(|part| !part.is_empty()) {
        if part == "." || part == ".." {
            return Err(invalid("contains `.` or `..`"));
        }
        if part.len() > COMPONENT_MAX_BYTES || components.len() == COMPONENTS_MAX {
            return Err(invalid("is too long"));
        }
        components.push(part);
    }
    let whole = components
        .iter()
        .fold(recover_dir.to_owned(), |path, part| path.join(part));
    if inside.ends_with('/') || whole.is_dir() {
        return Ok((whole, name));
    }
    let last = components.pop().ok_or_else(|| invalid("is empty"))?;
    Ok((
        components
            .iter()
            .fold(recover_dir.to_owned(), |path, part| path.join(part)),
        last.to_owned(),
    ))
}

/// The name that a guest's file gets here: its own, as far as one component of a path can have it and a person can see it.
pub(crate) fn local_name(name: &str) -> String {
    let clean: String = name
        .chars()
        .map(|c| if fits_a_name(c) { c } else { '_' })
        .collect();
    match clean.as_str() {
        "" | "." | ".." => "_".to_owned(),
        _ => clean,
    }
}

/// Joiners and the emoji selector can't be seen, and many names are wrong without them.
fn fits_a_name(c: char) -> bool {
    (text::is_visible(c) || matches!(c, '\u{200C}' | '\u{200D}' | '\u{FE0F}')) && !unfit(c)
}

#[cfg(not(windows))]
const fn unfit(c: char) -> bool {
    c == '/'
}

#[cfg(windows)]
const fn unfit(c: char) -> bool {
    matches!(c, '/' | '\\' | ':' | '*' | '?' | '"' | '<' | '>' | '|')
}

/// A name that we give a folder: readable, and the same on every platform.
fn component(name: &str) -> String {
    let clean: String = text::one_line(name)
        .chars()
        .map(|c| {
            if matches!(c, '/' | '\\' | ':' | '*' | '?' | '"' | '<' | '>' | '|') {
                '_'
            } else {
                c
            }
        })
        .collect();
    let mut clean = clean.trim_matches(['.', ' ']).to_owned();
    while clean.len() > COMPONENT_MAX_BYTES {
        clean.pop();
    }
    if clean.is_empty() {
        "_".to_owned()
    } else {
        clean
    }
}

fn shown(path: &Path) -> String {
    text::display(&path.as_os_str().to_string_lossy(), 4096)
}

fn exists(path: &Path) -> Error {
    Error::new(
        ErrorCode::DestinationExists,
        format!("{} exists already", shown(path)),
    )
}

/// What the system said when something at the destination could not be done.
pub(crate) fn unusable(path: &Path, error: &io::Error) -> Error {
    let what = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "no room is left".to_owned(),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "no permission to write".to_owned()
        }
        io::ErrorKind::NotADirectory => "it is not a folder".to_owned(),
        _ => error.to_string(),
    };
    let path = if path.as_os_str() == OsStr::new("") {
        Path::new(".")
    } else {
        path
    };
    Error::new(
        ErrorCode::DestinationUnusable,
        format!("{} can't be used: {what}", shown(path)),
    )
}

#[cfg(test)]
mod tests;
