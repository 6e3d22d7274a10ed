//! Unpacks what a ZVM zipped. The archive is data from outside: its members can't leave the folder, overwrite each other,
//! be links, or be larger than they say, and reading it takes bounded memory. Blocking.
use super::{RecoveredFile, destination::unusable, folders::private_folder};
use crate::{Error, ErrorCode, text};
use sha2::{Digest, Sha256};
use std::{
    fs::{self, File},
    io::{self, Read, Write},
    path::{Path, PathBuf},
};
use zip::{ZipArchive, read::Config, unstable::read::ZipIterable};

/// Folders within folders. Removing a folder that can't be kept holds each of them open.
const DEPTH_MAX: usize = 200;
/// Of all members' names, comments and other remarks; all of them are in memory at once.
const DIRECTORY_MAX: u64 = 64 * 1024 * 1024;

/// What an archive may contain.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Files and folders.
    pub members: usize,
    /// Of all members together, unpacked: there is room for no more.
    pub bytes: u64,
    /// What they may have by what the ZVM lists, where that is known.
    pub listed: Option<u64>,
}

impl Limits {
    fn most(self) -> u64 {
        self.bytes.min(self.listed.unwrap_or(u64::MAX))
    }
}

/// What came out.
#[derive(Debug, Default)]
pub struct Unpacked {
    /// Paths are relative to the folder, with `/`.
    pub files: Vec<RecoveredFile>,
    /// What was left out, with the reason.
    pub skipped: Vec<String>,
}

/// Unpacks a folder's archive into `into`, an empty folder of ours. `top` holds the names that the folder is known to have:
/// members may be given relative to the folder, with the folder's name in front, or with the whole path, and only the names tell.
///
/// # Errors
/// `download_incomplete`: it is no archive, or not one that can be believed. `destination_unusable`: it does not fit.
pub fn folder(
    archive: &File,
    into: &Path,
    folder_path: &str,
    top: &[String],
    limits: Limits,
) -> Result<Unpacked, Error> {
    let mut zip = open(archive, limits)?;
    let names = member_names(&mut zip)?;
    let prefix = prefix(&names, folder_path, top);
    let mut unpacked = Unpacked::default();
    let mut left = limits.most();
    for (index, name) in names.iter().enumerate() {
        let Some(inside) = name.strip_prefix(&prefix) else {
            unpacked.skip(name, "is not below the folder");
            continue;
        };
        if inside.is_empty() {
            continue;
        }
        let relative = match relative(inside) {
            Ok(relative) => relative,
            Err(why) => {
                unpacked.skip(name, why);
                continue;
            }
        };
        let mut member = zip.by_index(index).map_err(unreadable)?;
        if member.is_symlink() {
            unpacked.skip(inside, "is a link");
        } else if is_special(member.unix_mode()) {
            unpacked.skip(inside, "is neither a file nor a folder");
        } else if member.encrypted() {
            unpacked.skip(inside, "is encrypted");
        } else if member.is_dir() {
            make_folders(into, &relative)?;
        } else {
            if let Some(parent) = relative.parent() {
                make_folders(into, parent)?;
            }
            let path = into.join(&relative);
            let size = member.size();
            left = left.checked_sub(size).ok_or_else(|| too_large(limits))?;
            let mut out = create(&path)?;
            let (bytes, sha256) = copy(&mut member, &mut out, &path, size)?;
            out.sync_all().map_err(|error| unusable(&path, &error))?;
            unpacked.files.push(RecoveredFile {
                path: inside.to_owned(),
                bytes,
                sha256,
            });
        }
    }
    Ok(unpacked)
}

/// Unpacks the only member of a single file's archive into `out`: its name and size have to be the file's. None: this is no
/// such archive.
pub(super) fn single(
    archive: &File,
    name: &str,
    size: Option<u64>,
    out: &mut File,
    out_path: &Path,
) -> Result<Option<(u64, String)>, Error> {
    let limits = Limits {
        members: 1,
        bytes: size.unwrap_or(u64::MAX),
        listed: None,
    };
    let Ok(mut zip) = open(archive, limits) else {
        return Ok(None);
    };
    let Ok(mut member) = zip.by_index(0) else {
        return Ok(None);
    };
    let member_name = String::from_utf8_lossy(member.name_raw()).into_owned();
    let named = member_name.rsplit('/').next() == Some(name);
    let declared = member.size();
    if !named || size.is_some_and(|size| size != declared) || member.is_symlink() || member.is_dir()
    {
        return Ok(None);
    }
    copy(&mut member, out, out_path, declared).map(Some)
}

fn open(archive: &File, limits: Limits) -> Result<ZipArchive<io::BufReader<File>>, Error> {
    let reader = archive
        .try_clone()
        .map_err(|error| broken(&error.to_string()))?;
    let mut reader = io::BufReader::new(reader);
    check_directory(&mut reader, limits)?;
    let zip = ZipArchive::new(reader).map_err(unreadable)?;
    if zip.has_duplicate_names() {
        return Err(broken("it has two members of one name"));
    }
    if zip
        .decompressed_size()
        .is_some_and(|size| size > u128::from(limits.most()))
    {
        return Err(too_large(limits));
    }
    Ok(zip)
}

/// Looks at the directory member by member, before all of it is read.
fn check_directory(reader: &mut io::BufReader<File>, limits: Limits) -> Result<(), Error> {
    let mut zip = ZipIterable::try_new(reader, Config::default()).map_err(unreadable)?;
    if zip.len() > limits.members {
        return Err(broken(&format!(
            "it has {} members, more than {}",
            zip.len(),
            limits.members
        )));
    }
    let mut first = None;
    for member in zip.files().map_err(unreadable)? {
        let start = member.map_err(unreadable)?.central_header_start();
        if start.saturating_sub(*first.get_or_insert(start)) > DIRECTORY_MAX {
            return Err(broken("the names of its members take too much room"));
        }
    }
    Ok(())
}

fn member_names(zip: &mut ZipArchive<io::BufReader<File>>) -> Result<Vec<String>, Error> {
    // Most write UTF-8 whatever the archive's flags say.
    zip.file_names_raw()
        .zip(zip.file_names())
        .map(|(raw, name)| match std::str::from_utf8(raw) {
            Ok(name) => Ok(name.to_owned()),
            Err(_) => name.map(|name| name.into_owned()).map_err(unreadable),
        })
        .collect()
}

/// What stands in front of every member's path within the folder.
fn prefix(names: &[String], folder_path: &str, top: &[String]) -> String {
    let whole = format!("{folder_path}/");
    let name = format!("{}/", folder_path.rsplit('/').next().unwrap_or(folder_path));
    [whole, name]
        .into_iter()
        .find(|prefix| {
            names.iter().all(|member| {
                member.strip_prefix(prefix.as_str()).is_some_and(|inside| {
                    let first = inside.split('/').next().unwrap_or(inside);
                    first.is_empty() || top.iter().any(|known| known == first)
                })
            })
        })
        .unwrap_or_default()
}

/// A member's path below the folder, if every component is a plain name; else why not.
fn relative(inside: &str) -> Result<PathBuf, &'static str> {
    let inside = inside.strip_suffix('/').unwrap_or(inside);
    let mut path = PathBuf::new();
    for (depth, name) in inside.split('/').enumerate() {
        let plain = !matches!(name, "" | "." | "..") && !name.contains('\0') && fits(name);
        if !plain {
            return Err("would leave the folder");
        }
        if depth == DEPTH_MAX {
            return Err("lies too deep");
        }
        path.push(name);
    }
    Ok(path)
}

#[cfg(not(windows))]
const fn fits(_: &str) -> bool {
    true
}

#[cfg(windows)]
fn fits(name: &str) -> bool {
    !name.contains(['\\', ':', '*', '?', '"', '<', '>', '|']) && !name.ends_with(['.', ' '])
}

/// A device, a pipe or a socket.
fn is_special(mode: Option<u32>) -> bool {
    const TYPE: u32 = 0o170_000;
    const FILE: u32 = 0o100_000;
    const FOLDER: u32 = 0o040_000;
    mode.is_some_and(|mode| !matches!(mode & TYPE, 0 | FILE | FOLDER))
}

/// Makes the folders of `relative` below `into`. All of them are ours, so none is a link.
fn make_folders(into: &Path, relative: &Path) -> Result<(), Error> {
    let mut path = into.to_owned();
    for name in relative {
        path.push(name);
        match private_folder(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(broken("one name is both a file and a folder"));
            }
            Err(error) => return Err(unusable(&path, &error)),
        }
    }
    Ok(())
}

fn create(path: &Path) -> Result<File, Error> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => broken("it has two members of one name"),
        _ => unusable(path, &error),
    })
}

/// Copies exactly `size` bytes and hashes them.
fn copy(
    from: &mut impl Read,
    to: &mut File,
    path: &Path,
    size: u64,
) -> Result<(u64, String), Error> {
    let mut buffer = vec![0; 128 * 1024];
    let (mut bytes, mut hash) = (0_u64, Sha256::new());
    loop {
        let read = from
            .read(&mut buffer)
            .map_err(|error| broken(&error.to_string()))?;
        let Some(chunk) = buffer.get(..read).filter(|chunk| !chunk.is_empty()) else {
            break;
        };
        bytes += read as u64;
        if bytes > size {
            return Err(broken("a member is larger than it says"));
        }
        hash.update(chunk);
        to.write_all(chunk)
            .map_err(|error| unusable(path, &error))?;
    }
    if bytes != size {
        return Err(broken("a member is smaller than it says"));
    }
    Ok((bytes, text::hex(&hash.finalize())))
}

impl Unpacked {
    fn skip(&mut self, name: &str, why: &str) {
        self.skipped
            .push(format!("{} {why}", text::named(name, 300)));
    }
}

fn broken(why: &str) -> Error {
    Error::new(
        ErrorCode::DownloadIncomplete,
        format!(
            "the archive that the ZVM sent can't be unpacked: {}",
            text::display(why, 300)
        ),
    )
}

fn unreadable(error: impl std::fmt::Display) -> Error {
    broken(&error.to_string())
}

fn too_large(limits: Limits) -> Error {
    if let Some(listed) = limits.listed.filter(|listed| *listed < limits.bytes) {
        return broken(&format!(
            "it unpacks to more than {}, which is more than the ZVM lists",
            text::bytes(listed)
        ));
    }
    Error::new(
        ErrorCode::DestinationUnusable,
        format!(
            "the folder unpacks to more than {}",
            text::bytes(limits.bytes)
        ),
    )
    .with_next("Make room at the destination, or recover a smaller folder.")
}

#[cfg(test)]
mod tests;
