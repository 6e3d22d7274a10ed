//! `init`: makes a configuration, and tries what it is told while it asks.
mod draft;
mod files;
mod login;
mod reach;

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::{Args, ValueEnum, ValueHint};
use rewind_core::{
    Error, ErrorCode, Site,
    config::{Config, default_file, word},
};
use serde::Serialize;

use crate::{
    cli::not_blank,
    interrupt::Interrupt,
    output::{self, Output},
    terminal,
    wrap::{hanging, prose},
};
use draft::{Draft, Source};

/// Whether this build can use the system's keyring.
const KEYRING: bool = cfg!(feature = "keyring");

/// Make a configuration: asks at a terminal, and tries what it is told.
#[derive(Debug, Args)]
pub struct InitArgs {
    /// The ZVM: https://zvm.example.com
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url, value_parser = not_blank)]
    url: Option<String>,
    /// A ZVM user
    #[arg(long, value_name = "NAME", value_parser = not_blank, conflicts_with = "client_id")]
    username: Option<String>,
    /// Instead of a user: a client that an administrator made. The --password options are about its secret then
    #[arg(long, value_name = "ID", value_parser = not_blank)]
    client_id: Option<String>,
    #[command(flatten)]
    secret: SecretArgs,
    /// Where a password goes that was typed or came on stdin
    #[arg(long, value_enum, conflicts_with_all = ["password_file", "password_command", "password_env"])]
    store: Option<Store>,
    /// Verify the certificate and its name by the system's authorities
    #[arg(long)]
    verify_tls: bool,
    /// Verify them by the certificates of this PEM file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    ca_file: Option<PathBuf>,
    /// SHA-256 of the only certificate to accept
    #[arg(long, value_name = "SHA256")]
    tls_fingerprint: Option<String>,
    /// Fix the agent's name in every tag
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Try nothing: the ZVM is not asked
    #[arg(long)]
    no_test: bool,
    /// Replace a configuration that is there; a copy of it is kept
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Args)]
#[group(multiple = false)]
struct SecretArgs {
    /// The password is in this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    password_file: Option<PathBuf>,
    /// The password is what this program prints, such as "pass show zvm". No shell is involved
    #[arg(long, value_name = "COMMAND")]
    password_command: Option<String>,
    /// The password is in ZERTO_REWIND_PASSWORD (the client secret in ZERTO_REWIND_CLIENT_SECRET), now and later
    #[arg(long)]
    password_env: bool,
    /// The password is in the system's keyring, by this service and the user's name
    #[arg(long, value_name = "SERVICE", value_parser = not_blank, hide = !KEYRING)]
    password_keyring: Option<String>,
    /// Read the password from stdin
    #[arg(long)]
    password_stdin: bool,
}

/// Where a secret goes that was typed or came on stdin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Store {
    /// Into the configuration (the default)
    Config,
    /// Into a file of its own beside it
    File,
    /// Into the system's keyring
    #[value(hide = !KEYRING)]
    Keyring,
}

/// What was made.
#[derive(Serialize)]
struct Report {
    /// The configuration file.
    configuration: PathBuf,
    /// The copy of the one that was there.
    kept: Option<PathBuf>,
    /// The catalog, which is empty where it was not there.
    catalog: PathBuf,
    /// Where the secret is.
    secret: Kept,
    /// Host and port of the ZVM.
    zvm: String,
    /// SHA-256 of the certificate that it shows; null where it was not asked.
    certificate: Option<String>,
    /// The ZVM that accepted the login; null where it was not tried.
    site: Option<Site>,
    /// Commands to go on with.
    next: Vec<String>,
}

/// Where a secret is.
#[derive(Serialize)]
struct Kept {
    /// `config`, `file`, `command`, `environment` or `keyring`.
    kind: &'static str,
    /// For a person; of a file its path, of a command its words.
    origin: String,
}

/// Makes a configuration.
///
/// # Errors
/// `destination_exists`, `invalid_argument`, `configuration`, `declined`, `cancelled`, and those of the ZVM. Nothing was written then.
pub async fn run(
    config: Option<&Path>,
    args: InitArgs,
    output: Output,
    interrupt: &Interrupt,
) -> Result<(), Error> {
    let cancel = interrupt.token();
    let report = tokio::select! {
        biased;
        // What it was about when it was interrupted does not matter.
        report = init(config, args, interrupt) => match report {
            Err(_) if cancel.is_cancelled() => return Err(interrupted()),
            report => report?,
        },
        () = cancel.cancelled() => return Err(interrupted()),
    };
    output.result(&report, |report| prose(&show(report)));
    Ok(())
}

fn interrupted() -> Error {
    Error::new(ErrorCode::Cancelled, "no configuration was written")
        .with_next("Run `zerto-rewind init` again.")
}

async fn init(
    config: Option<&Path>,
    args: InitArgs,
    interrupt: &Interrupt,
) -> Result<Report, Error> {
    let wants_keyring =
        args.store == Some(Store::Keyring) || args.secret.password_keyring.is_some();
    if wants_keyring && !KEYRING {
        return Err(no_keyring());
    }
    let file = target(config)?;
    files::check(&file, args.store, args.force)?;
    let person = terminal::is_there();
    let given = draft::Given::of(&args)?;
    if args.secret.password_stdin && person {
        return Err(usage(
            "--password-stdin: stdin is a terminal, and what is typed would be shown",
        )
        .with_next("Leave it out: you are asked for the password then."));
    }
    if !person {
        given.check_complete()?;
    }
    let mut draft = Draft::new(file, &args)?;
    if person {
        tell(&format!(
            "This makes {}. Ctrl-C ends it, and nothing is written before the end.\n",
            draft.file.display()
        ));
    }
    let shown = reach::address(&mut draft, &args, person, interrupt).await?;
    let certificate = match shown {
        Some(shown) => Some(reach::certificate(&draft, shown, person).await?),
        None => None,
    };
    let decided = certificate.as_ref();
    let login = login::run(&mut draft, given, &args, person, decided, interrupt).await?;
    let source = login::keep(&draft, &args, person, login.given, login.secret.as_ref()).await?;
    // What will be read is read before it is written.
    if !matches!(source, Source::Environment) {
        let text = draft.text(&source, login.secret.as_ref());
        Config::parse(&text, &draft.file).map_err(draft::in_arguments)?;
    }
    let written = files::write(&draft, &source, login.secret.as_ref(), args.force)?;
    match decided.map(|decided| decided.remember(&draft)) {
        None | Some(Ok(None)) => {}
        Some(Ok(Some(warning))) => output::warning(&warning),
        Some(Err(error)) => output::warning(&format!(
            "the certificate can't be remembered: {}\n{}",
            error.message, error.next
        )),
    }
    let problems = files::problems(&draft.file, &written.catalog);
    for problem in written.old_secrets.iter().chain(&problems) {
        output::warning(problem);
    }
    let next = next(&draft.file);
    Ok(Report {
        configuration: draft.file.clone(),
        kept: written.kept,
        catalog: written.catalog,
        secret: Kept {
            kind: source.kind(),
            origin: source.described(&draft),
        },
        zvm: draft.without_login()?.zvm(),
        certificate: decided.map(|decided| decided.shown.to_string()),
        site: login.site,
        next,
    })
}

/// The file that is named, else the one that every program takes where none is.
fn target(config: Option<&Path>) -> Result<PathBuf, Error> {
    let file = Config::named(config).or_else(default_file).ok_or_else(|| {
        usage("this user has no home folder").with_next("Name the file: --config FILE.")
    })?;
    // A link is followed, so that it stays one.
    Ok(real(file))
}

fn real(file: PathBuf) -> PathBuf {
    let file = std::path::absolute(&file).unwrap_or(file);
    fs::canonicalize(&file).unwrap_or(file)
}

/// With the configuration named, unless it is the one that is found without that.
fn next(file: &Path) -> Vec<String> {
    let found = Config::locate(None).is_ok_and(|found| real(found) == file);
    let program = match found {
        true => "zerto-rewind".to_owned(),
        false => format!("zerto-rewind --config {}", word(file)),
    };
    ["doctor", "install claude"]
        .map(|command| format!("{program} {command}"))
        .to_vec()
}

fn show(report: &Report) -> String {
    let mut lines = vec![
        format!("configuration  {}", report.configuration.display()),
        format!("secret         {}", report.secret.origin),
        format!("catalog        {}", report.catalog.display()),
    ];
    if let Some(certificate) = &report.certificate {
        lines.push(format!("certificate    SHA-256 {certificate}"));
    }
    if let Some(kept) = &report.kept {
        lines.push(format!("kept           {}", kept.display()));
    }
    lines.push("\nNext:".to_owned());
    for command in &report.next {
        let why = match command.split_whitespace().last() {
            Some("doctor") => "is everything there that is needed?",
            Some("claude") => "or codex, gemini, cursor; else see the README",
            _ => "",
        };
        lines.push(format!("  {command:<28}  {why}").trim_end().to_owned());
    }
    lines.join("\n")
}

/// To the person who is asked.
fn tell(text: &str) {
    output::note(&hanging(&output::lines(text), ""));
}

fn no_keyring() -> Error {
    usage("this build can't use the system's keyring").with_next(
        "Build it with `--features keyring`; or keep the secret elsewhere: --store file, --password-file, or --password-command, \
         such as \"secret-tool lookup service zerto-rewind\".",
    )
}

fn usage(message: impl Into<String>) -> Error {
    Error::new(ErrorCode::InvalidArgument, message)
}
