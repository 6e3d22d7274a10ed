//! Where a recovered file or folder lands: never over something, and over MCP never outside of the recovery folder.
use super::Destination;
use crate::{Error, ErrorCode, text};
use std::{
    ffi::OsStr,
    fs, io,
    path::{Component, Path, PathBuf},
    time::Duration,
};

const COMPONENT_MAX_BYTES: usize = 200;
const COMPONENTS_MAX: usize = 32;

/// What the default destination is made of.
pub(crate) struct Source<'a> {
    pub vm: &'a str,
    pub checkpoint: u64,
    /// The name of the file or folder in the guest.
    pub name: &'a str,
}

/// A place that is free.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    folder: PathBuf,
    name: String,
    /// What the folder must not lie outside of.
    within: Option<PathBuf>,
}

impl Target {
    /// Checks where it would land; makes nothing.
    pub fn new(
        destination: &Destination,
        recover_dir: &Path,
        source: &Source<'_>,
    ) -> Result<Self, Error> {
        let name = local_name(source.name);
        let target = match destination {
            Destination::Folder(folder) => Self {
                folder: whole(folder)?,
                name,
                within: None,
            },
            Destination::InRecoverDir(inside) => {
                let recover_dir = std::path::absolute(recover_dir)
                    .map_err(|error| unusable(recover_dir, &error))?;
                let (folder, name) =
                    match inside.as_deref().filter(|inside| !inside.trim().is_empty()) {
                        None => (
                            recover_dir
                                .join(component(source.vm))
                                .join(source.checkpoint.to_string()),
                            name,
                        ),
                        Some(inside) => inside_of(&recover_dir, inside, name)?,
                    };
                Self {
                    folder,
                    name,
                    within: Some(recover_dir),
                }
            }
        };
        target.check_containment()?;
        target.check_free()?;
        target.check_folder()?;
        Ok(target)
    }

    /// Where it lands.
    pub fn path(&self) -> PathBuf {
        self.folder.join(&self.name)
    }

    /// The path, safe to show.
    pub fn shown(&self) -> String {
        text::display(&self.path().to_string_lossy(), 4096)
    }

    /// Makes the folder (0700 where it is missing) and shows that it can be written to.
    pub fn prepare(self) -> Result<Place, Error> {
        let mut place = Place {
            target: self,
            created: Vec::new(),
            kept: false,
        };
        let target = &place.target;
        if let Some(within) = &target.within
            && !within.exists()
        {
            make_folders(within, &mut place.created).map_err(|error| unusable(within, &error))?;
        }
        make_folders(&target.folder, &mut place.created)
            .map_err(|error| unusable(&target.folder, &error))?;
        target.check_containment()?;
        target.check_free()?;
        remove_stale(&target.folder);
        // Rather now than after the mount.
        tempfile::tempfile_in(&target.folder).map_err(|error| unusable(&target.folder, &error))?;
        Ok(place)
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
    kept: bool,
}

impl Place {
    pub fn folder(&self) -> &Path {
        &self.target.folder
    }

    pub fn path(&self) -> PathBuf {
        self.target.path()
    }

    /// Moves a complete file here, unless something is here already.
    pub fn keep_file(&mut self, file: tempfile::NamedTempFile) -> Result<PathBuf, Error> {
        let path = self.path();
        file.persist_noclobber(&path)
            .map_err(|error| self.not_placed(&error.error))?;
        self.kept(path)
    }

    /// Moves a complete folder here, unless something is here already.
    pub fn keep_folder(&mut self, folder: tempfile::TempDir) -> Result<PathBuf, Error> {
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

/// The name that a guest's file gets here: its own, as far as one component of a path can have it.
pub(crate) fn local_name(name: &str) -> String {
    let clean: String = name
        .chars()
        .map(|c| if c.is_control() || unfit(c) { '_' } else { c })
        .collect();
    match clean.as_str() {
        "" | "." | ".." => "_".to_owned(),
        _ => clean,
    }
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

/// What begins the names of files and folders that are not complete yet.
pub(crate) const TEMPORARY: &str = ".zerto-rewind-";
/// No download that still runs leaves its file untouched for so long.
const STALE: Duration = Duration::from_secs(24 * 60 * 60);

/// Removes what a crash left of earlier recoveries.
fn remove_stale(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(TEMPORARY);
        let touched = entry.metadata().and_then(|metadata| metadata.modified());
        let is_stale = touched.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > STALE));
        if is_ours && is_stale {
            let path = entry.path();
            // What can't be removed stays; it is in nobody's way.
            let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
        }
    }
}

fn make_folders(folder: &Path, created: &mut Vec<PathBuf>) -> io::Result<()> {
    let missing: Vec<&Path> = folder
        .ancestors()
        .take_while(|path| !path.exists())
        .collect();
    for path in missing.into_iter().rev() {
        match private_folder(path) {
            Ok(()) => created.push(path.to_owned()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    if folder.is_dir() {
        Ok(())
    } else {
        Err(io::Error::from(io::ErrorKind::NotADirectory))
    }
}

/// Makes one folder that only this user can look into.
pub(crate) fn private_folder(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Takes a folder of ours from others' sight.
#[cfg(unix)]
pub(crate) fn make_private(folder: &Path) -> io::Result<()> {
    fs::set_permissions(folder, std::os::unix::fs::PermissionsExt::from_mode(0o700))
}

#[cfg(not(unix))]
pub(crate) fn make_private(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(target_os = "linux")]
fn rename_noreplace(from: &Path, to: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Some file systems can't promise it.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => rename_if_free(from, to),
        result => Ok(result?),
    }
}

#[cfg(not(target_os = "linux"))]
fn rename_noreplace(from: &Path, to: &Path) -> io::Result<()> {
    rename_if_free(from, to)
}

/// A folder that appears in between is replaced only where it is empty.
fn rename_if_free(from: &Path, to: &Path) -> io::Result<()> {
    match fs::symlink_metadata(to) {
        Ok(_) => Err(io::Error::from(io::ErrorKind::AlreadyExists)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => fs::rename(from, to),
        Err(error) => Err(error),
    }
}

#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    fs::File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Bytes that can still be written in this folder, where that can be told.
#[cfg(unix)]
pub(crate) fn free_bytes(folder: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(folder).ok()?;
    Some(stat.f_bavail.saturating_mul(stat.f_frsize))
}

#[cfg(not(unix))]
pub(crate) fn free_bytes(_: &Path) -> Option<u64> {
    None
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
mod tests {
    use super::*;

    const SOURCE: Source<'static> = Source {
        vm: "app01",
        checkpoint: 7,
        name: "hosts",
    };

    fn inside(root: &Path, destination: Option<&str>) -> Result<PathBuf, Error> {
        let target = Target::new(
            &Destination::InRecoverDir(destination.map(str::to_owned)),
            root,
            &SOURCE,
        )?;
        Ok(target.path().strip_prefix(root).unwrap().to_owned())
    }

    #[test]
    fn the_default_names_vm_and_checkpoint() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(
            inside(root.path(), None).unwrap(),
            Path::new("app01/7/hosts")
        );
        let odd = Source {
            vm: "../a/b\u{202E}:c ",
            ..SOURCE
        };
        let target = Target::new(&Destination::InRecoverDir(None), root.path(), &odd).unwrap();
        assert_eq!(target.path(), root.path().join("_a_b_c/7/hosts"));
    }

    #[test]
    fn a_destination_is_a_folder_or_a_new_name() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("there")).unwrap();
        for (destination, path) in [
            ("new/", "new/hosts"),
            ("there", "there/hosts"),
            ("a/b", "a/b"),
            ("a//ü b", "a/ü b"),
            (" ", "app01/7/hosts"),
        ] {
            assert_eq!(
                inside(root.path(), Some(destination)).unwrap(),
                Path::new(path),
                "{destination}"
            );
        }
    }

    #[test]
    fn nothing_leads_out_of_the_recovery_folder() {
        let root = tempfile::tempdir().unwrap();
        for destination in [
            "..",
            "../x",
            "a/../../x",
            "/etc/x",
            "C:x",
            "a\\..\\b",
            "./x",
            "a\nb",
        ] {
            let error = inside(root.path(), Some(destination)).unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidArgument, "{destination}");
        }
        let long = "x".repeat(300);
        assert!(inside(root.path(), Some(&long)).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_link_that_leads_out_is_refused() {
        let (root, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::os::unix::fs::symlink(other.path(), root.path().join("out")).unwrap();
        fs::create_dir(root.path().join("real")).unwrap();
        std::os::unix::fs::symlink(root.path().join("real"), root.path().join("in")).unwrap();
        std::os::unix::fs::symlink("nowhere", root.path().join("broken")).unwrap();
        for destination in ["out/x", "out/", "out/a/b", "broken/x"] {
            let error = inside(root.path(), Some(destination)).unwrap_err();
            assert_eq!(error.code, ErrorCode::DestinationUnusable, "{destination}");
        }
        assert!(inside(root.path(), Some("in/x")).is_ok());
        assert_eq!(
            inside(root.path(), Some("broken")).unwrap_err().code,
            ErrorCode::DestinationExists
        );
    }

    #[test]
    fn what_exists_is_never_replaced() {
        let root = tempfile::tempdir().unwrap();
        let target = |name: &str| {
            Target::new(
                &Destination::Folder(root.path().to_owned()),
                root.path(),
                &Source { name, ..SOURCE },
            )
        };
        fs::write(root.path().join("hosts"), "mine").unwrap();
        assert_eq!(
            target("hosts").unwrap_err().code,
            ErrorCode::DestinationExists
        );

        // Somebody is quicker.
        let mut place = target("late").unwrap().prepare().unwrap();
        let file = tempfile::NamedTempFile::new_in(place.folder()).unwrap();
        fs::write(root.path().join("late"), "mine").unwrap();
        assert_eq!(
            place.keep_file(file).unwrap_err().code,
            ErrorCode::DestinationExists
        );
        assert_eq!(
            fs::read_to_string(root.path().join("late")).unwrap(),
            "mine"
        );

        let mut place = target("folder").unwrap().prepare().unwrap();
        let folder = tempfile::tempdir_in(place.folder()).unwrap();
        fs::create_dir(root.path().join("folder")).unwrap();
        assert_eq!(
            place.keep_folder(folder).unwrap_err().code,
            ErrorCode::DestinationExists
        );
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 3);
    }

    #[test]
    fn folders_that_were_made_for_nothing_go_again() {
        let root = tempfile::tempdir().unwrap();
        let recover_dir = root.path().join("recovered/here");
        let place = || {
            Target::new(&Destination::InRecoverDir(None), &recover_dir, &SOURCE)
                .unwrap()
                .prepare()
                .unwrap()
        };
        drop(place());
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
        let mut kept = place();
        let path = kept
            .keep_file(tempfile::NamedTempFile::new_in(kept.folder()).unwrap())
            .unwrap();
        drop(kept);
        assert!(path.is_file());
    }

    #[cfg(unix)]
    #[test]
    fn what_is_made_is_private() {
        use std::os::unix::fs::PermissionsExt;
        let root = tempfile::tempdir().unwrap();
        let mut place = Target::new(&Destination::InRecoverDir(None), root.path(), &SOURCE)
            .unwrap()
            .prepare()
            .unwrap();
        let path = place
            .keep_file(tempfile::NamedTempFile::new_in(place.folder()).unwrap())
            .unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(place.folder()), 0o700);
    }

    #[test]
    fn what_a_crash_left_behind_is_removed_after_a_day() {
        let root = tempfile::tempdir().unwrap();
        let old = std::time::SystemTime::now() - 2 * STALE;
        for (name, age) in [
            (".zerto-rewind-old", Some(old)),
            (".zerto-rewind-new", None),
            ("old", Some(old)),
        ] {
            let file = fs::File::create(root.path().join(name)).unwrap();
            if let Some(at) = age {
                file.set_modified(at).unwrap();
            }
        }
        Target::new(
            &Destination::Folder(root.path().to_owned()),
            root.path(),
            &SOURCE,
        )
        .unwrap()
        .prepare()
        .unwrap();
        let mut left: Vec<_> = fs::read_dir(root.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        left.sort();
        assert_eq!(left, [".zerto-rewind-new", "old"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_that_can_not_be_is_unusable() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("file"), "").unwrap();
        std::os::unix::fs::symlink("nowhere", root.path().join("broken")).unwrap();
        for name in ["file", "file/below", "broken", "broken/below"] {
            let folder = Destination::Folder(root.path().join(name));
            let error = Target::new(&folder, root.path(), &SOURCE).unwrap_err();
            assert_eq!(error.code, ErrorCode::DestinationUnusable, "{name}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_that_can_not_be_written_to_is_unusable() {
        use std::os::unix::fs::PermissionsExt;
        if rustix::process::getuid().is_root() {
            eprintln!("skipped: root may write everywhere");
            return;
        }
        let root = tempfile::tempdir().unwrap();
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o500)).unwrap();
        for name in ["", "new/below"] {
            let folder = Destination::Folder(root.path().join(name));
            let error = Target::new(&folder, root.path(), &SOURCE).unwrap_err();
            assert_eq!(error.code, ErrorCode::DestinationUnusable, "{name}");
        }
    }

    #[test]
    fn a_tilde_is_not_expanded_and_says_so() {
        let root = tempfile::tempdir().unwrap();
        for name in ["~", "~/back", "~justin/back"] {
            let folder = Destination::Folder(name.into());
            let error = Target::new(&folder, root.path(), &SOURCE).unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidArgument, "{name}");
            assert!(error.message.contains('~'), "{}", error.message);
            let error = inside(root.path(), Some(name)).unwrap_err();
            assert!(error.message.contains('~'), "{}", error.message);
        }
        assert!(inside(root.path(), Some("a/~")).is_ok());
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_is_shown_whole() {
        let root = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(root.path()).unwrap();
        fs::create_dir_all(root.join("a/b")).unwrap();
        std::os::unix::fs::symlink(root.join("a/b"), root.join("link")).unwrap();
        for (folder, shown) in [
            ("a/b/..", "a/hosts"),
            ("a/./b/../../new/../c", "c/hosts"),
            ("link/..", "a/hosts"),
            ("link", "link/hosts"),
        ] {
            let folder = Destination::Folder(root.join(folder));
            let target = Target::new(&folder, &root, &SOURCE).unwrap();
            assert_eq!(target.path(), root.join(shown));
        }
    }
}
