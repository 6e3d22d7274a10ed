//! Patterns: paths with wildcards, and the paths on the mounted disks that they match.
//!
//! A pattern is matched name by name, below its fixed beginning, within the partition that this beginning lies on.
use super::{
    path::{GuestPath, told_path},
    resolve::{Folders, ignores_case, name_of, starting_points},
};
use crate::{Error, ErrorCode, text};
use globset::{GlobBuilder, GlobMatcher};
use zvm_client::{PathItem, PathKind};

/// A person has to be able to read what they agree to.
pub(super) const MATCHES_MAX: usize = 100;
/// Folders that are looked into for one pattern; each takes a call.
const FOLDERS_MAX: usize = 2_000;
pub(super) const WILDCARDS: [char; 4] = ['*', '?', '[', '{'];

/// A path with wildcards.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    written: GuestPath,
    /// How many components come before the first wildcard.
    fixed: usize,
}

/// A path that a pattern matches.
#[derive(Clone, Debug)]
pub(super) struct Match {
    /// In the form in which the pattern was written.
    pub path: String,
    pub item: PathItem,
}

enum Part<'a> {
    Name(&'a str),
    Glob(GlobMatcher),
    /// Any number of folders.
    Folders,
}

impl Pattern {
    /// None where there is no wildcard in it.
    pub fn of(path: &GuestPath) -> Result<Option<Self>, Error> {
        let fixed = path
            .components()
            .iter()
            .take_while(|name| !name.contains(WILDCARDS))
            .count();
        let pattern = Self {
            written: path.clone(),
            fixed,
        };
        if fixed == path.components().len() {
            return Ok(None);
        }
        pattern.parts(false, true)?;
        Ok(Some(pattern))
    }

    /// The parts behind the fixed beginning.
    fn parts(&self, ignore_case: bool, whole: bool) -> Result<Vec<Part<'_>>, Error> {
        let names = self.written.components().iter().skip(self.fixed);
        let mut parts: Vec<Part<'_>> = Vec::new();
        for name in names {
            let part = part(name, ignore_case).map_err(|error| {
                Error::new(
                    ErrorCode::InvalidArgument,
                    format!("`paths`: {} is no pattern: {error}", self.written.told()),
                )
                .with_next("Correct the pattern; a wildcard that is meant as itself is written in brackets, such as [*].")
            })?;
            if matches!((parts.last(), &part), (Some(Part::Folders), Part::Folders)) {
                continue;
            }
            parts.push(part);
        }
        // Everything below a folder is what is in it; with all that is in that, where folders come whole.
        if matches!(parts.last(), Some(Part::Folders)) {
            if whole {
                parts.pop();
            }
            parts.push(Part::Glob(glob("*", ignore_case).map_err(|error| {
                Error::new(ErrorCode::InvalidArgument, error.to_string())
            })?));
        }
        Ok(parts)
    }

    /// What it matches, by path. Where folders come `whole`, one stands for all that is in it.
    pub async fn matches(&self, folders: &impl Folders, whole: bool) -> Result<Vec<Match>, Error> {
        let (fixed, _) = self.written.components().split_at(self.fixed);
        let mut matches = Vec::new();
        for start in starting_points(folders, &self.written, fixed).await? {
            let parts = self.parts(ignores_case(&start.partition), whole)?;
            let mut walk = Walk {
                folders,
                parts: &parts,
                looked_into: 0,
                open: vec![(start.at, fixed.to_vec(), 0)],
            };
            while let Some((item, names)) = walk.next().await.map_err(|error| self.about(error))? {
                matches.push(Match {
                    path: self.written.with(names).written(),
                    item,
                });
                if matches.len() > MATCHES_MAX {
                    return Err(self.too_many());
                }
            }
        }
        matches.sort_by(|a, b| a.item.path.cmp(&b.item.path));
        matches.dedup_by(|a, b| a.item.path == b.item.path);
        if whole {
            let folders: Vec<String> = matches
                .iter()
                .filter(|found| found.item.kind == PathKind::Folder)
                .map(|found| format!("{}/", found.item.path))
                .collect();
            matches.retain(|found| {
                !folders
                    .iter()
                    .any(|folder| found.item.path.starts_with(folder))
            });
        }
        self.unambiguous(&matches)?;
        Ok(matches)
    }

    fn unambiguous(&self, matches: &[Match]) -> Result<(), Error> {
        let twice = matches.iter().find(|found| {
            let same = matches.iter().filter(|other| other.path == found.path);
            same.count() > 1
        });
        let Some(twice) = twice else { return Ok(()) };
        let candidates = matches.iter().filter(|other| other.path == twice.path);
        Err(Error::new(
            ErrorCode::PathAmbiguous,
            format!(
                "{} matches {} on several partitions",
                self.written.told(),
                told_path(&twice.path)
            ),
        )
        .with_next("Begin the pattern with one of the partitions.")
        .with_candidates(candidates.map(|found| text::display(&found.item.path, 1_000))))
    }

    fn too_many(&self) -> Error {
        Error::new(
            ErrorCode::InvalidArgument,
            format!("{} matches more than {MATCHES_MAX} paths", self.written.told()),
        )
        .with_next("Narrow the pattern, or name the folder that they are in: nobody can decide on so many.")
    }

    fn about(&self, mut error: Error) -> Error {
        if error.code == ErrorCode::InvalidArgument {
            error.message = format!("{} {}", self.written.told(), error.message);
        }
        error
    }
}

fn part(name: &str, ignore_case: bool) -> Result<Part<'_>, globset::Error> {
    Ok(match name {
        "**" => Part::Folders,
        name if name.contains(WILDCARDS) => Part::Glob(glob(name, ignore_case)?),
        name => Part::Name(name),
    })
}

fn glob(name: &str, ignore_case: bool) -> Result<GlobMatcher, globset::Error> {
    let glob = GlobBuilder::new(name)
        .literal_separator(true)
        .backslash_escape(false)
        .case_insensitive(ignore_case)
        .build()?;
    Ok(glob.compile_matcher())
}

/// Goes through the folders that a pattern leads to.
struct Walk<'a, F> {
    folders: &'a F,
    parts: &'a [Part<'a>],
    looked_into: usize,
    /// Where it is, by which names it got there, and how many parts are behind it.
    open: Vec<(PathItem, Vec<String>, usize)>,
}

impl<F: Folders> Walk<'_, F> {
    async fn next(&mut self) -> Result<Option<(PathItem, Vec<String>)>, Error> {
        while let Some((at, names, done)) = self.open.pop() {
            let Some(part) = self.parts.get(done) else {
                return Ok(Some((at, names)));
            };
            if !at.browsable {
                continue;
            }
            if let Part::Folders = part {
                self.open.push((at.clone(), names.clone(), done + 1));
            }
            if self.looked_into == FOLDERS_MAX {
                return Err(Error::new(
                    ErrorCode::InvalidArgument,
                    format!("leads into more than {FOLDERS_MAX} folders"),
                )
                .with_next("Begin the pattern with more folders by name."));
            }
            self.looked_into += 1;
            for item in self.folders.items(&at.path).await?.iter() {
                let name = name_of(item);
                let (fits, behind) = match part {
                    Part::Name(wanted) => (name == *wanted, done + 1),
                    Part::Glob(glob) => (glob.is_match(name), done + 1),
                    Part::Folders => (item.browsable, done),
                };
                if fits {
                    let names = names.iter().cloned().chain([name.to_owned()]).collect();
                    self.open.push((item.clone(), names, behind));
                }
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests;
