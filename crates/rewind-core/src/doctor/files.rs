//! The configuration and the files that it names.
use super::{Check, LOCAL, check::Step, id, on_this_host};
use crate::{
    Error,
    catalog::Catalog,
    config::{Config, ConfigError},
    enforce,
    private::{Writer, others_may_write},
    state::State,
    text::{self, counted},
};
use secrecy::SecretString;
use std::{
    path::{Path, PathBuf},
    time::Duration,
};

/// A command that gives a secret has 15 s of its own.
const SECRET: Duration = Duration::from_secs(20);
const SHOWN_MAX_LEN: usize = 300;

/// The configuration, what is to be said about it and its file, and whether commands would use it.
pub(super) async fn inspect(file: PathBuf) -> Result<(Config, Vec<Check>, Step<()>), Vec<Check>> {
    let shown = file.display().to_string();
    let inspected = on_this_host(LOCAL, move || {
        let (config, open) = Config::inspect(&file)?;
        let who = others_may_write(&file).map(|who| (who, "600"));
        Ok::<_, ConfigError>((config, open, who))
    });
    let (config, open, who) = inspected
        .await
        .ok_or_else(|| vec![Check::silent(id::CONFIGURATION, &shown)])?
        .map_err(unusable)?;
    let mut readable = Ok(());
    let first = Check::ok(id::CONFIGURATION, shown);
    let second = match (open, who) {
        (Err(error), _) => {
            readable = Err(id::CONFIG_FILE);
            Check::of_error(id::CONFIG_FILE, error.into())
        }
        (Ok(()), Some((who, mode))) => writable(id::CONFIG_FILE, &config.file, &who, mode),
        (Ok(()), None) => Check::ok(id::CONFIG_FILE, readers(&config.file)),
    };
    Ok((config, vec![first, second], readable))
}

/// Why there is no configuration. What others may do with its file is a check of its own.
fn unusable(error: ConfigError) -> Vec<Check> {
    match error {
        ConfigError::OpenToOthers {
            file,
            mode,
            mistake: Some(mistake),
        } => {
            let open = ConfigError::OpenToOthers {
                file,
                mode,
                mistake: None,
            };
            vec![
                Check::of_error(id::CONFIGURATION, (*mistake).into()),
                Check::of_error(id::CONFIG_FILE, open.into()),
            ]
        }
        error => vec![Check::of_error(id::CONFIGURATION, error.into())],
    }
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
        Some(Ok((count, None, _))) => {
            let certificates = counted(count, "certificate", "certificates");
            Check::ok(id::CA_FILE, format!("{shown}: {certificates}"))
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

/// Somebody else may change what a program of this user goes by.
fn writable(id: &'static str, file: &Path, who: &Writer, mode: &str) -> Check {
    let (message, fix) = who.described(file, mode);
    Check::warning(id, message, fix)
}

#[cfg(unix)]
fn readers(file: &Path) -> String {
    use std::os::unix::fs::MetadataExt as _;
    let Ok(metadata) = std::fs::metadata(file) else {
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
