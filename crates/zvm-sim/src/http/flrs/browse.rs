//! Looking into what is mounted, and asking for it.

use std::sync::Arc;

use serde_json::Value;

use super::super::reply::{Failure, Reply};
use super::super::request::{Call, member, text_member};
use super::mounted;
use crate::app::App;
use crate::disk::{DiskError, Entry, EntryKind};
use crate::flr::{Download, Item};
use crate::guest::Volume;
use crate::render::{Dialect, Object, Writer};
use crate::spread::millis;
use crate::switches::{BrowsePath, DownloadUrl, Paging, Switches, Vanishes};

/// Why a link can't be downloaded, in the vendor's words.
const LINKS: &str = "Cannot restore. Links are not supported.";

/// What is at a path: the list of partitions, or an entry of one.
enum Place {
    Root,
    Entry(Volume, String, Entry),
}

/// One item of an answer.
struct PathItem {
    path: String,
    kind: ItemKind,
    entry: Option<Entry>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ItemKind {
    /// The list of partitions. Its type is "Partition", too.
    Root,
    Partition,
    Folder,
    File,
    Link,
    /// A device or the like.
    Other,
}

impl PathItem {
    fn of(path: String, entry: Entry) -> Self {
        let kind = match entry.kind {
            EntryKind::Folder => ItemKind::Folder,
            EntryKind::File => ItemKind::File,
            EntryKind::Link => ItemKind::Link,
            EntryKind::Other => ItemKind::Other,
        };
        Self {
            path,
            kind,
            entry: Some(entry),
        }
    }

    fn partition(name: &str) -> Self {
        Self {
            path: name.to_owned(),
            kind: ItemKind::Partition,
            entry: None,
        }
    }
}

pub(in super::super) async fn browse(
    app: &Arc<App>,
    call: &Call,
    id: &str,
) -> Result<Reply, Failure> {
    let body = call.json()?;
    let path = text_member(&body, "path").unwrap_or_default();
    let (_, volumes) = mounted(app, id, Vanishes::AtBrowse)?;
    let (main, items) = blocking(app, move || look(&volumes, &path)).await?;
    let world = app.world();
    let switches = &world.switches;
    let items = page(items, &body, switches)?;
    Ok(Reply::json(Writer::object(
        Dialect::of(switches),
        |object| {
            object
                .object("MainPathItem", |object| put(object, &main, switches))
                .objects("PathItems", &items, |object, item| {
                    put(object, item, switches)
                });
        },
    )))
}

async fn blocking<T: Send + 'static>(
    app: &App,
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    app.work
        .spawn_blocking(work)
        .await
        .map_err(|stopped| Failure::internal(stopped.to_string()))?
}

fn look(volumes: &[Volume], path: &str) -> Result<(PathItem, Vec<PathItem>), Failure> {
    match find(volumes, path)? {
        Place::Root => {
            let root = PathItem {
                path: String::new(),
                kind: ItemKind::Root,
                entry: None,
            };
            let partitions = volumes
                .iter()
                .map(|volume| PathItem::partition(&volume.name));
            Ok((root, partitions.collect()))
        }
        Place::Entry(volume, inner, entry) => {
            let mut main = PathItem::of(joined(&volume.name, &inner), entry);
            if inner.is_empty() {
                main.kind = ItemKind::Partition;
            } else if main.kind != ItemKind::Folder {
                return Err(Failure::bad(format!(
                    "The path '{path}' cannot be browsed."
                )));
            }
            let items = volume
                .view
                .list(&inner)
                .map_err(|error| from_disk(path, &error))?
                .into_iter()
                .map(|entry| PathItem::of(joined(&main.path, &entry.name), entry))
                .collect();
            Ok((main, items))
        }
    }
}

fn joined(parent: &str, name: &str) -> String {
    if name.is_empty() {
        parent.to_owned()
    } else {
        format!("{parent}/{name}")
    }
}

fn missing(path: &str) -> Failure {
    Failure::not_found(format!("The path '{path}' was not found."))
}

fn from_disk(path: &str, error: &DiskError) -> Failure {
    match error {
        DiskError::NotFound { .. } => missing(path),
        error => Failure::internal(error.to_string()),
    }
}

/// Components are separated by slashes; backslashes belong to names. `.` and `..` lead nowhere.
fn find(volumes: &[Volume], path: &str) -> Result<Place, Failure> {
    let path = path.trim_matches('/');
    if path.is_empty() {
        return Ok(Place::Root);
    }
    let (partition, inner) = path.split_once('/').unwrap_or((path, ""));
    if inner
        .split('/')
        .any(|part| matches!(part, "." | "..") || inner.is_empty() != part.is_empty())
    {
        return Err(missing(path));
    }
    let volume = volumes
        .iter()
        .find(|volume| volume.name == partition)
        .ok_or_else(|| missing(path))?;
    let entry = volume
        .view
        .entry(inner)
        .map_err(|error| from_disk(path, &error))?;
    Ok(Place::Entry(volume.clone(), inner.to_owned(), entry))
}

/// The part of the list that was asked for.
fn page(items: Vec<PathItem>, body: &Value, switches: &Switches) -> Result<Vec<PathItem>, Failure> {
    if switches.browse_paging == Paging::Ignored {
        return Ok(items);
    }
    let asked = |name: &str| -> Result<Option<u64>, Failure> {
        match member(body, name) {
            None => Ok(None),
            Some(value) => value
                .as_u64()
                .map(Some)
                .ok_or_else(|| Failure::bad(format!("The member {name} is not valid."))),
        }
    };
    let size = asked("pageSize")?
        .filter(|&size| size > 0)
        .map(|size| size.min(u64::from(switches.browse_page_max)))
        .or(switches.browse_page_size.map(u64::from));
    let Some(size) = size else { return Ok(items) };
    let base = u64::from(switches.browse_page_base);
    let number = asked("pageNumber")?.unwrap_or(base).saturating_sub(base);
    let count = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
    Ok(items
        .into_iter()
        .skip(count(number.saturating_mul(size)))
        .take(count(size))
        .collect())
}

fn put(object: &mut Object, item: &PathItem, switches: &Switches) {
    let kind = match item.kind {
        ItemKind::Root | ItemKind::Partition => "Partition",
        ItemKind::Folder => "Folder",
        ItemKind::File | ItemKind::Other => "File",
        ItemKind::Link => &switches.link_type,
    };
    let path = match switches.browse_path {
        BrowsePath::Full => item.path.clone(),
        BrowsePath::Name => item.path.rsplit('/').next().unwrap_or_default().to_owned(),
        BrowsePath::Backslash => item.path.replace('/', "\\"),
    };
    let browsable = matches!(
        item.kind,
        ItemKind::Root | ItemKind::Partition | ItemKind::Folder
    );
    let reason = match item.kind {
        ItemKind::Link => Some(LINKS),
        ItemKind::Other => Some("Cannot restore. The file type is not supported."),
        ItemKind::Root => Some("Cannot restore. Select a partition, a folder or a file."),
        _ => None,
    };
    object
        .text("Path", &path)
        .text("Type", kind)
        .flag("IsBrowsable", browsable);
    match &item.entry {
        Some(entry) if item.kind == ItemKind::File => {
            object.number("SizeInBytes", i64::try_from(entry.size).unwrap_or(i64::MAX));
        }
        _ => {
            object.null("SizeInBytes");
        }
    }
    let times = item.entry.as_ref().map(|entry| {
        [
            ("CreationTime", entry.created),
            ("LastAccessTime", entry.accessed),
            ("LastWriteTime", entry.modified),
        ]
    });
    match times {
        // Times inside the guest are the guest's: the ZVM's clock has no part in them.
        Some(times) => times.iter().for_each(|(name, time)| {
            object.fixed_date(name, time.as_millisecond());
        }),
        None => ["CreationTime", "LastAccessTime", "LastWriteTime"]
            .iter()
            .for_each(|name| {
                object.null(name);
            }),
    }
    object.object("DownloadInformation", |info| {
        info.flag("IsDownloadable", reason.is_none())
            .text_or_null("AdditionalInformation", reason);
    });
}

/// Answers with a URL for some files and folders.
pub(in super::super) async fn download(
    app: &Arc<App>,
    call: &Call,
    id: &str,
) -> Result<Reply, Failure> {
    let body = call.json()?;
    let paths: Vec<String> = member(&body, "pathList")
        .and_then(Value::as_array)
        .map(|list| {
            list.iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect()
        })
        .unwrap_or_default();
    if paths.is_empty() {
        return Err(Failure::bad("The list of paths is empty."));
    }
    let (session, volumes) = mounted(app, id, Vanishes::AtDownload)?;
    let items = blocking(app, move || {
        paths.iter().map(|path| item(&volumes, path)).collect()
    })
    .await?;
    let mut world = app.world();
    let name = format!(
        "{}.{}",
        app.inventory.own_site_id(),
        crate::realm::uuid(&mut world.rng)
    );
    let now = app.clock.now();
    world.downloads.retain(|_, download| now < download.expires);
    let expires = now.saturating_add(millis(world.switches.download_lifetime));
    world.downloads.insert(
        name.clone(),
        Download {
            session,
            expires,
            items,
        },
    );
    let url = url(app, &world.switches, &name);
    Ok(Reply::json(Writer::string(&url)))
}

fn item(volumes: &[Volume], path: &str) -> Result<Item, Failure> {
    let Place::Entry(volume, inner, entry) = find(volumes, path)? else {
        return Err(Failure::bad(
            "Cannot restore. Select a partition, a folder or a file.",
        ));
    };
    let size = match entry.kind {
        EntryKind::Link => return Err(Failure::bad(LINKS)),
        EntryKind::Other => {
            return Err(Failure::bad(
                "Cannot restore. The file type is not supported.",
            ));
        }
        EntryKind::File => Some(entry.size),
        EntryKind::Folder => None,
    };
    let name = if inner.is_empty() {
        volume.name.clone()
    } else {
        entry.name
    };
    Ok(Item {
        volume,
        path: inner,
        name,
        size,
    })
}

fn url(app: &App, switches: &Switches, name: &str) -> String {
    match switches.download_url {
        DownloadUrl::Relative => format!("v1/downloads/{name}"),
        DownloadUrl::LeadingSlash => format!("/v1/downloads/{name}"),
        DownloadUrl::Backslash => format!("v1\\downloads\\{name}"),
        DownloadUrl::Absolute => format!("{}/v1/downloads/{name}", app.url),
        DownloadUrl::Foreign => format!(
            "{}/v1/downloads/{name}",
            switches.download_foreign_host.trim_end_matches('/')
        ),
    }
}
