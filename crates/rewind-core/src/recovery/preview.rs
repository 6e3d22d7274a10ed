//! A preview: a checkpoint is mounted to see which paths are meant.
use super::{
    Paths,
    look::{Looks, Permission},
    mounting::{free, while_mounted},
    path::{GuestPath, told_path},
    pattern::{MATCHES_MAX, Match, Pattern},
    plan::Subject,
    resolve::{Folders, Mounted, Resolved, resolve},
    session::Mount,
};
use crate::{
    Call, Error, ErrorCode,
    guest::Restore,
    plan::{Seen, Source},
    rewind::Core,
    text,
};
use std::sync::Arc;
use zvm_client::{PathItem, PathKind};

/// What of a VM's disks is wanted, in the order of asking.
#[derive(Debug)]
pub(super) struct Wanted {
    named: Vec<Named>,
    /// They are to go back into the guest, where files are written and no folders.
    restored: bool,
}

#[derive(Debug)]
enum Named {
    Path(GuestPath),
    Pattern(GuestPath, Pattern),
}

/// Paths that were seen, and what there is to know about the others.
pub(super) struct Found {
    pub sources: Vec<Source>,
    /// What was named and can't be recovered, and why.
    pub missing: Vec<(Source, Error)>,
    pub notes: Vec<String>,
}

impl Named {
    fn path(&self) -> &GuestPath {
        let (Self::Path(path) | Self::Pattern(path, _)) = self;
        path
    }
}

impl Wanted {
    pub fn parse(paths: &Paths, restore: Option<Restore>) -> Result<Self, Error> {
        let of = |named| Self {
            named,
            restored: restore.is_some(),
        };
        let several = match paths {
            Paths::One(path) => return Ok(of(vec![Named::Path(GuestPath::parse(path)?)])),
            Paths::Several(several) => several,
        };
        let invalid =
            |problem: String| Error::new(ErrorCode::InvalidArgument, format!("`paths` {problem}"));
        if several.is_empty() {
            return Err(invalid("is empty".to_owned()).with_next("Name one path at least."));
        }
        if several.len() > MATCHES_MAX {
            return Err(invalid(format!("has more than {MATCHES_MAX} paths"))
                .with_next("Name the folders that they are in, or ask for fewer at once."));
        }
        let mut wanted = Vec::new();
        for written in several {
            let path = GuestPath::parse(written).map_err(|mut error| {
                let shown = text::named_exactly(written, 200);
                error.message = error
                    .message
                    .replacen("`path`", &format!("`paths`: {shown}"), 1);
                error
            })?;
            wanted.push(match Pattern::of(&path)? {
                Some(pattern) => Named::Pattern(path, pattern),
                None => Named::Path(path),
            });
        }
        Ok(of(wanted))
    }

    /// The patterns among them, as they are written.
    pub fn patterns(&self) -> Vec<String> {
        let patterns = self.named.iter().filter_map(|named| match named {
            Named::Path(_) => None,
            Named::Pattern(path, _) => Some(path.written()),
        });
        patterns.collect()
    }

    /// Paths that nobody has looked for. Only without patterns.
    pub fn unseen(&self) -> Found {
        let sources = self.named.iter().map(|named| unseen(named.path()));
        let mut found = Found {
            sources: sources.collect(),
            missing: Vec::new(),
            notes: Vec::new(),
        };
        found.without_repetition();
        found
    }

    /// Mounts the checkpoint, looks for all of them, and unmounts it.
    pub async fn look(
        &self,
        core: &Arc<Core>,
        subject: &Subject,
        permission: &Permission,
        call: &Call,
    ) -> Result<Found, Error> {
        let watch = &call.watch();
        let mount = Mount::of(&subject.found, &subject.chosen, subject.clock);
        free(core, &mount, &subject.found.name(), watch).await?;
        let paths = self.named.iter().map(|named| named.path().written());
        let looks = Looks::begin(core, subject, call, permission, paths, None).await?;
        let looking = || "looking for what the patterns match".to_owned();
        let (result, ended) = while_mounted(core, mount, watch, async |session| {
            let folders = Mounted::new(&core.zvm, session);
            watch.during(looking, self.find(&folders)).await
        })
        .await;
        let failure = result.as_ref().err().map(|error| error.code);
        looks.end(core, failure).await;
        let mut found = result.map_err(|error| error.with_done(ended.done()))?;
        if let Some(open) = ended.still_open() {
            found.notes.push(open.to_string());
        }
        Ok(found)
    }

    async fn find(&self, folders: &impl Folders) -> Result<Found, Error> {
        let mut found = Found {
            sources: Vec::new(),
            missing: Vec::new(),
            notes: Vec::new(),
        };
        for named in &self.named {
            match named {
                Named::Path(path) => found.exactly(path, resolve(folders, path).await)?,
                Named::Pattern(path, pattern) => match resolve(folders, path).await {
                    Err(error) if error.code == ErrorCode::PathNotFound => {
                        let matches = pattern.matches(folders, !self.files_only(path)).await?;
                        found.matching(path, matches, self.files_only(path))?;
                    }
                    // Something has just that name.
                    resolved => found.exactly(path, resolved)?,
                },
            }
        }
        found.without_repetition();
        if found.sources.is_empty() && !found.missing.is_empty() {
            return Err(found.missing.swap_remove(0).1);
        }
        if found.sources.len() > MATCHES_MAX {
            return Err(Error::new(
                ErrorCode::InvalidArgument,
                format!("`paths` match more than {MATCHES_MAX} files and folders together"),
            )
            .with_next("Narrow the patterns, or name the folders that they are in."));
        }
        Ok(found)
    }

    /// What is of a Windows guest is placed on this host, folders as well.
    fn files_only(&self, path: &GuestPath) -> bool {
        self.restored && !matches!(path, GuestPath::Windows(..))
    }
}

impl Found {
    fn exactly(
        &mut self,
        path: &GuestPath,
        resolved: Result<Resolved, Error>,
    ) -> Result<(), Error> {
        let missing = match resolved {
            Ok(Resolved { item, .. }) if item.downloadable => {
                self.sources.push(source(path.written(), item));
                return Ok(());
            }
            Ok(Resolved { item, .. }) => not_carried(&item),
            Err(error) if error.code == ErrorCode::PathNotFound => error,
            Err(error) => return Err(error),
        };
        self.missing.push((unseen(path), missing));
        Ok(())
    }

    fn matching(
        &mut self,
        path: &GuestPath,
        matches: Vec<Match>,
        files_only: bool,
    ) -> Result<(), Error> {
        let paths: Vec<String> = matches.iter().map(|it| it.item.path.clone()).collect();
        let (mut any, before) = (false, self.notes.len());
        for found in matches {
            let why = if files_only && found.item.kind == PathKind::Folder {
                let inside = format!("{}/", found.item.path);
                if paths.iter().any(|path| path.starts_with(&inside)) {
                    continue;
                }
                "a folder, and only files are restored".to_owned()
            } else if found.item.downloadable {
                any = true;
                self.sources.push(source(found.path, found.item));
                continue;
            } else {
                reason(&found.item)
            };
            let path = told_path(&found.path);
            self.notes.push(format!("left out: {path}: {why}"));
        }
        if any {
            return Ok(());
        }
        let left_out = match self.notes.get(before..) {
            None | Some([]) => String::new(),
            Some(notes) => format!(" ({})", notes.join("; ")),
        };
        Err(Error::new(
            ErrorCode::PathNotFound,
            format!(
                "{} matches nothing that can be recovered{left_out}",
                path.told()
            ),
        ))
    }

    /// What is named twice comes once, and what is in a folder that is named comes with it.
    fn without_repetition(&mut self) {
        let at = |source: &Source| match &source.seen {
            Some(seen) => seen.at.clone(),
            None => source.path.clone(),
        };
        let folders: Vec<String> = self
            .sources
            .iter()
            .filter(|source| source.seen.as_ref().is_some_and(|seen| seen.is_folder))
            .map(|folder| format!("{}/", at(folder)))
            .collect();
        let mut known = std::collections::HashSet::new();
        self.sources.retain(|source| {
            let at = at(source);
            !folders.iter().any(|folder| at.starts_with(folder)) && known.insert(at)
        });
        self.missing
            .retain(|(source, _)| known.insert(source.path.clone()));
    }
}

fn unseen(path: &GuestPath) -> Source {
    Source {
        path: path.written(),
        seen: None,
    }
}

fn source(path: String, item: PathItem) -> Source {
    let is_folder = item.kind == PathKind::Folder;
    Source {
        path,
        seen: Some(Seen {
            bytes: item.size.filter(|_| !is_folder),
            is_folder,
            at: item.path,
        }),
    }
}

fn reason(item: &PathItem) -> String {
    item.reason.as_deref().map_or_else(
        || "no reason given".to_owned(),
        |why| text::quoted(why, 300),
    )
}

/// File-level restore does not carry it.
pub(crate) fn not_carried(item: &PathItem) -> Error {
    Error::new(
        ErrorCode::NotDownloadable,
        format!(
            "{} can't be downloaded: {}",
            text::named(&item.path, 1_000),
            reason(item)
        ),
    )
}
