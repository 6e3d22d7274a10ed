//! Writes what was made. Nothing that is there is lost.
use std::{
    collections::HashMap,
    fs, io,
    io::Write as _,
    path::{Path, PathBuf},
};

use rewind_core::{Error, ErrorCode, catalog::Catalog, config::word, private};
use secrecy::{ExposeSecret as _, SecretString};

use super::{
    Store,
    draft::{CATALOG, Draft, SECRET, Source},
};

/// What a catalog begins with.
const EMPTY_CATALOG: &str = include_str!("catalog.toml");

/// What was written.
pub struct Written {
    /// The copy of the configuration that was there.
    pub kept: Option<PathBuf>,
    /// The catalog; one that was there is as it was.
    pub catalog: PathBuf,
    /// What a person should know of secrets that are still there.
    pub old_secrets: Vec<String>,
}

/// Whether it can be written to these places, before anybody is asked anything: what is there is a plain file or nothing, and may be
/// replaced where it would be; the folder takes files.
///
/// # Errors
/// `destination_exists`, `destination_unusable`.
pub fn check(file: &Path, store: Option<Store>, replace: bool) -> Result<(), Error> {
    let folder = file.parent().unwrap_or(Path::new("."));
    let secret = (store == Some(Store::File)).then(|| folder.join(SECRET));
    for path in [Some(file.to_owned()), secret].into_iter().flatten() {
        if is_there(&path)? && !replace {
            return Err(Error::new(
                ErrorCode::DestinationExists,
                format!("{}: is there already", path.display()),
            )
            .with_next(format!(
                "Look at it (a configuration: `zerto-rewind --config {} doctor`); or add --force, which replaces it and keeps a copy.",
                word(file)
            )));
        }
    }
    is_there(&folder.join(CATALOG))?;
    let there = folder.ancestors().find(|path| path.exists());
    let there = there.unwrap_or(Path::new("/"));
    takes_files(there).map_err(|error| unusable(there, &error))
}

/// Whether there is a plain file, or a link to one. Of anything else no copy can be kept: a device has no end, and a pipe is waited for.
fn is_there(path: &Path) -> Result<bool, Error> {
    let wrong = |what: &str| {
        Error::new(
            ErrorCode::DestinationUnusable,
            format!("{}: {what}", path.display()),
        )
        .with_next("Move it away, or name another place with --config FILE.")
    };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(unusable(path, &error)),
        Ok(_) => {}
    }
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => Ok(true),
        Ok(_) => Err(wrong("is not a regular file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(wrong("is a link to what is not there"))
        }
        Err(error) => Err(unusable(path, &error)),
    }
}

fn takes_files(folder: &Path) -> io::Result<()> {
    if !fs::metadata(folder)?.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    #[cfg(unix)]
    {
        use rustix::fs::{Access, access};
        access(folder, Access::WRITE_OK | Access::EXEC_OK)?;
    }
    Ok(())
}

/// What a person should know of what is there now, before `doctor` says it.
pub fn problems(file: &Path, catalog: &Path) -> Vec<String> {
    let mut problems: Vec<_> = [file, catalog]
        .into_iter()
        .filter_map(|file| {
            let (problem, fix) = private::others_may_write(file)?.described(file, "600");
            Some(format!("{problem}\n{fix}"))
        })
        .collect();
    if let Err(error) = Catalog::load(catalog).map_err(Error::from) {
        problems.push(format!(
            "the catalog that was there before can't be used, so every call of an agent's tools is refused: {}\n{}",
            error.message, error.next
        ));
    }
    problems
}

/// Writes the secret's file, the catalog, and last the configuration that names them. Each is whole or not there, and private.
///
/// # Errors
/// `destination_exists`, `destination_unusable`.
pub fn write(
    draft: &Draft,
    source: &Source,
    secret: Option<&SecretString>,
    replace: bool,
) -> Result<Written, Error> {
    let folder = draft.folder();
    make_private(folder).map_err(|error| unusable(folder, &error))?;
    let mut old_secrets = Vec::new();
    let mut of_its_own = None;
    if let (Source::File(name), Some(secret)) = (source, secret)
        && name.is_relative()
    {
        let mut text = secrecy::zeroize::Zeroizing::new(secret.expose_secret().to_owned());
        text.push('\n');
        let file = folder.join(name);
        old_secrets.extend(put(&file, text.as_bytes(), replace)?.map(|kept| holds_one(&kept)));
        of_its_own = Some(file);
    }
    let catalog = folder.join(CATALOG);
    if fs::symlink_metadata(&catalog).is_err() {
        put(&catalog, EMPTY_CATALOG.as_bytes(), false)?;
    }
    let text = draft.text(source, secret);
    let kept = put(&draft.file, text.as_bytes(), replace)?;
    old_secrets.extend(
        kept.as_deref()
            .filter(|kept| has_secret(kept))
            .map(holds_one),
    );
    let beside = folder.join(SECRET);
    if replace && of_its_own.as_deref() != Some(&*beside) && beside.is_file() {
        old_secrets.push(format!(
            "{}: a secret that an earlier configuration had there is still in it\nThe new one does not use it. Where nothing else does, \
             remove it: `rm {}`.",
            beside.display(),
            word(&beside)
        ));
    }
    Ok(Written {
        kept,
        catalog,
        old_secrets,
    })
}

fn holds_one(copy: &Path) -> String {
    format!(
        "{}: this copy has a secret in it\nRemove it when it is not needed any more: `rm {}`.",
        copy.display(),
        word(copy)
    )
}

/// Whether a configuration has a secret in it. What can't be read may have one.
fn has_secret(configuration: &Path) -> bool {
    let read = fs::read(configuration).map(secrecy::zeroize::Zeroizing::new);
    let keys: Option<HashMap<String, serde::de::IgnoredAny>> = read
        .ok()
        .and_then(|text| serde_json::from_slice(&text).ok());
    keys.is_none_or(|keys| {
        ["password", "client_secret"]
            .iter()
            .any(|key| keys.contains_key(*key))
    })
}

/// Places a file at once, for this user alone. Where another one is there and may be replaced, a copy of it is kept and named.
fn put(file: &Path, content: &[u8], replace: bool) -> Result<Option<PathBuf>, Error> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::AlreadyExists => Error::new(
            ErrorCode::DestinationExists,
            format!("{}: is there already", file.display()),
        )
        .with_next("Move it away; or add --force, which replaces it and keeps a copy."),
        _ => unusable(file, &error),
    };
    let folder = file.parent().unwrap_or(Path::new("."));
    let placed = || {
        // It is this user's alone from its beginning (0600).
        let mut new = tempfile::Builder::new()
            .prefix(".zerto-rewind-")
            .tempfile_in(folder)?;
        new.write_all(content)?;
        new.as_file().sync_all()?;
        let kept = match replace {
            true => keep(file)?,
            false => None,
        };
        match replace {
            true => new.persist(file),
            false => new.persist_noclobber(file),
        }
        .map_err(|error| error.error)?;
        #[cfg(unix)]
        fs::File::open(folder)?.sync_all()?;
        Ok(kept)
    };
    placed().map_err(failed)
}

/// A copy beside the file, private as it may hold a secret. None where there is no file.
fn keep(file: &Path) -> io::Result<Option<PathBuf>> {
    // Looked at in the beginning, and again: a person may have taken a while.
    match fs::metadata(file) {
        Ok(metadata) if metadata.is_file() => {}
        Ok(_) => {
            return Err(io::Error::other("what is there is not a regular file"));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    }
    let mut old = fs::File::open(file)?;
    let name = file.file_name().unwrap_or_default();
    for number in 1.. {
        let mut copy = name.to_owned();
        copy.push(match number {
            1 => ".bak".to_owned(),
            number => format!(".bak{number}"),
        });
        let copy = file.with_file_name(copy);
        let mut options = fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        match options.open(&copy) {
            Ok(mut new) => {
                io::copy(&mut old, &mut new)?;
                new.sync_all()?;
                return Ok(Some(copy));
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

fn make_private(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

fn unusable(path: &Path, error: &io::Error) -> Error {
    Error::new(
        ErrorCode::DestinationUnusable,
        format!("{}: can't be written: {error}", path.display()),
    )
    .with_next("Name another place with --config FILE, or make room and give permission.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn only_a_plain_file_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        let _listening = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let device = folder.path().join("device");
        std::os::unix::fs::symlink("/dev/zero", &device).unwrap();
        for there in [socket, device] {
            let error = put(&there, b"new", true).unwrap_err();
            assert_eq!(error.code, ErrorCode::DestinationUnusable);
            assert!(error.message.contains("not a regular file"), "{error}");
        }
        // Neither a copy nor a temporary file.
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn the_empty_catalog_is_one_and_so_are_its_examples() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(CATALOG);
        fs::write(&file, EMPTY_CATALOG).unwrap();
        let catalog = Catalog::load(&file).unwrap();
        assert_eq!((catalog.entries().len(), catalog.warnings().len()), (0, 0));
        // The comments that are entries begin without a space.
        let with_examples: Vec<_> = EMPTY_CATALOG
            .lines()
            .map(|line| match line.strip_prefix('#') {
                Some(entry) if !entry.starts_with(' ') => entry,
                _ => line,
            })
            .collect();
        fs::write(&file, with_examples.join("\n")).unwrap();
        let catalog = Catalog::load(&file).unwrap();
        assert_eq!((catalog.entries().len(), catalog.warnings().len()), (3, 0));
    }
}
