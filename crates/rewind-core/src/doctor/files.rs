//! The configuration and the files that it names.
use super::{Check, LOCAL, check::Step, id, on_this_host};
use crate::{
    Error,
    catalog::Catalog,
    config::{Config, ConfigError},
    enforce, rewind,
    state::State,
    text,
};
use secrecy::SecretString;
use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

/// A command that gives a secret has 15 s of its own.
const SECRET: Duration = Duration::from_secs(20);
const SHOWN_MAX_LEN: usize = 300;

/// The configuration, what is to be said about it and its file, and whether commands would use it.
pub(super) async fn inspect(file: PathBuf) -> Result<(Config, Vec<Check>, Step<()>), Check> {
    let shown = file.display().to_string();
    let inspected = on_this_host(LOCAL, move || {
        let (config, open) = Config::inspect(&file)?;
        let who = others_may_write(&file).map(|who| (who, "600"));
        Ok::<_, ConfigError>((config, open, who))
    });
    let (config, open, who) = inspected
        .await
        .ok_or_else(|| Check::silent(id::CONFIGURATION, &shown))?
        .map_err(|error| Check::of_error(id::CONFIGURATION, error.into()))?;
    let usable = rewind::check(&config);
    let mut readable = Ok(());
    let first = match usable {
        Ok(()) => Check::ok(id::CONFIGURATION, shown),
        Err(error) => {
            readable = Err(id::CONFIGURATION);
            Check::of_error(id::CONFIGURATION, error)
        }
    };
    let second = match (open, who) {
        (Err(error), _) => {
            readable = readable.and(Err(id::CONFIG_FILE));
            Check::of_error(id::CONFIG_FILE, error.into())
        }
        (Ok(()), Some((who, mode))) => writable(id::CONFIG_FILE, &config.file, &who, mode),
        (Ok(()), None) => Check::ok(id::CONFIG_FILE, readers(&config.file)),
    };
    Ok((config, vec![first, second], readable))
}

/// The password or client secret, from where the configuration says.
pub(super) async fn secret(config: &Config) -> (Check, Option<SecretString>) {
    let secret = config.credentials.secret().clone();
    let origin = config.secret_origin();
    match on_this_host(SECRET, move || secret.get()).await {
        None => (Check::silent(id::SECRET, &origin), None),
        Some(Ok(secret)) => (
            Check::ok(id::SECRET, format!("comes from {origin}")),
            Some(secret),
        ),
        Some(Err(error)) => (Check::of_error(id::SECRET, error.into()), None),
    }
}

/// None where the configuration names none.
pub(super) async fn ca_file(config: &Config) -> Option<Check> {
    let file = config.tls.ca_file.clone()?;
    let shown = file.display().to_string();
    let look = on_this_host(LOCAL, move || {
        Ok::<_, zvm_client::Error>((
            zvm_client::authorities(&file)?,
            others_may_write(&file),
            file,
        ))
    });
    Some(match look.await {
        None => Check::silent(id::CA_FILE, &shown),
        Some(Err(error)) => Check::of_error(id::CA_FILE, error.into()),
        Some(Ok((_, Some(who), file))) => writable(id::CA_FILE, &file, &who, "644"),
        Some(Ok((1, None, _))) => Check::ok(id::CA_FILE, format!("{shown}: 1 certificate")),
        Some(Ok((count, None, _))) => {
            Check::ok(id::CA_FILE, format!("{shown}: {count} certificates"))
        }
    })
}

/// The catalog, and whether the tools that it lists are what they were.
pub(super) async fn catalog(config: &Config) -> Check {
    let Some(file) = config.catalog.clone() else {
        return Check::ok(
            id::CATALOG,
            "none is configured: the tools work, a proxy or a hook needs one",
        );
    };
    let shown = file.display().to_string();
    let state = config.state_dir.clone();
    let look = on_this_host(LOCAL, move || {
        let catalog = Catalog::load(&file)?;
        // What is wrong with the state has a check of its own.
        let changed = match state.exists() {
            true => enforce::changed_tools(&State::new(state)).unwrap_or_default(),
            false => Vec::new(),
        };
        Ok::<_, Error>((catalog, changed, others_may_write(&file), file))
    });
    let (catalog, changed, who, file) = match look.await {
        None => return Check::silent(id::CATALOG, &shown),
        Some(Err(error)) => return Check::of_error(id::CATALOG, error),
        Some(Ok(found)) => found,
    };
    if let Some(who) = who {
        return writable(id::CATALOG, &file, &who, "600");
    }
    if !changed.is_empty() {
        let tools = changed.iter().map(|tool| {
            let server = tool.server.as_deref().unwrap_or("?");
            let refused = tool
                .schema
                .as_ref()
                .map_or("", |_| ": its calls are refused");
            text::display(&format!("{server}/{}{refused}", tool.tool), SHOWN_MAX_LEN)
        });
        return Check::warning(
            id::CATALOG,
            format!("{shown}: listed tools have changed since they were accepted"),
            "Look at what changed, and accept it: run `zerto-rewind catalog accept`.",
        )
        .with_details(tools);
    }
    match (catalog.entries().len(), catalog.warnings()) {
        (0, _) => Check::warning(
            id::CATALOG,
            format!("{shown} has no entry, so no call has to be guarded"),
            "List the tools that change VMs; `zerto-rewind catalog scan -- COMMAND` drafts entries from a server's own list.",
        ),
        (entries, []) => Check::ok(
            id::CATALOG,
            format!("{shown}: {}", counted(entries, "entry", "entries")),
        ),
        (entries, warnings) => Check::warning(
            id::CATALOG,
            format!(
                "{shown}: {}, not all of them as probably meant",
                counted(entries, "entry", "entries")
            ),
            "Run `zerto-rewind catalog validate`.",
        )
        .with_details(
            warnings
                .iter()
                .map(|warning| text::display(&warning.to_string(), SHOWN_MAX_LEN)),
        ),
    }
}

pub(super) fn counted(count: usize, one: &str, many: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        _ => format!("{count} {many}"),
    }
}

/// Somebody else may change what a program of this user goes by.
fn writable(id: &'static str, file: &Path, who: &Writer, mode: &str) -> Check {
    let shown = file.display();
    let word = crate::config::word(file);
    match who {
        Writer::File(found) => Check::warning(
            id,
            format!("{shown}: others may change it ({found:04o})"),
            format!("Run `chmod {mode} {word}`."),
        ),
        Writer::Folder(folder) => Check::warning(
            id,
            format!(
                "{shown}: others may put another file in its place, as they may write to {}",
                folder.display()
            ),
            format!(
                "Move it to a folder of your own, or run `chmod go-w {}`.",
                crate::config::word(folder)
            ),
        ),
        Writer::Owner(owner) => Check::warning(
            id,
            format!("{shown} belongs to user {owner}, who may change it"),
            format!("Make it your own: copy it, or run `sudo chown $USER {word}`."),
        ),
    }
}

/// Who else may change a file.
enum Writer {
    /// Those whom the file's mode lets.
    File(u32),
    /// Those who may write to its folder.
    Folder(PathBuf),
    /// The user whom it belongs to.
    Owner(u32),
}

#[cfg(unix)]
fn others_may_write(file: &Path) -> Option<Writer> {
    use std::os::unix::fs::MetadataExt as _;
    let (file, user) = (
        fs::canonicalize(file).ok()?,
        rustix::process::geteuid().as_raw(),
    );
    let foreign = |owner: u32| owner != user && owner != 0;
    let metadata = fs::metadata(&file).ok()?;
    if foreign(metadata.uid()) {
        return Some(Writer::Owner(metadata.uid()));
    }
    if metadata.mode() & 0o022 != 0 {
        return Some(Writer::File(metadata.mode() & 0o7777));
    }
    let folder = file.parent()?;
    let metadata = fs::metadata(folder).ok()?;
    // In a folder with the sticky bit, only its owner can replace a file.
    let open = metadata.mode() & 0o022 != 0 && metadata.mode() & 0o1000 == 0;
    (open || foreign(metadata.uid())).then(|| Writer::Folder(folder.to_owned()))
}

#[cfg(not(unix))]
fn others_may_write(_: &Path) -> Option<Writer> {
    // A user's own folders are private there by inheritance.
    None
}

#[cfg(unix)]
fn readers(file: &Path) -> String {
    use std::os::unix::fs::MetadataExt as _;
    let Ok(metadata) = fs::metadata(file) else {
        return "it can't be looked at any more".to_owned();
    };
    let mode = metadata.mode() & 0o7777;
    match mode & 0o077 {
        0 => format!("yours alone ({mode:04o})"),
        _ => format!("others can read it, and there is no secret in it ({mode:04o})"),
    }
}

#[cfg(not(unix))]
fn readers(_: &Path) -> String {
    "as private as its folder".to_owned()
}
