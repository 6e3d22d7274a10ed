//! `zerto-rewind install` and `uninstall`: the hook and the MCP server in the settings of an agent harness.
//!
//! The settings belong to the person. The change is shown before it is made, everything else in a file stays as it was written, a file
//! that cannot be parsed is left alone, and a copy is kept of what was there before. `uninstall` takes out what `install` wrote and
//! nothing else; where nothing else has changed since, the file becomes what it was, to the byte.
mod change;
mod command;
mod file;
mod harness;
mod json;
mod proof;
mod survey;
mod toml;

pub use harness::Harness;
pub use survey::{Found, survey};

use crate::{
    commands::{run, stop},
    output, permit, session, terminal,
};
use change::Change;
use command::HookCommand;
use file::SettingsFile;
use harness::{Place, Scope};
use json::Content;
use rewind_core::{Error, config};
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

const FAILED: u8 = 1;
const CONFIGURATION: u8 = 2;
const REFUSED: u8 = 3;

/// Put the hook and the MCP server into the settings of an agent harness.
#[derive(Debug, clap::Args)]
pub struct InstallArgs {
    #[command(flatten)]
    target: Target,
}

/// Take what `install` wrote out of the settings of an agent harness.
#[derive(Debug, clap::Args)]
pub struct UninstallArgs {
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, clap::Args)]
struct Target {
    /// Whose settings.
    #[arg(value_enum)]
    harness: Harness,
    /// The settings of the project in the current folder.
    #[arg(long)]
    project: bool,
    /// The settings of the user, for every project (the default).
    #[arg(long, conflicts_with = "project")]
    user: bool,
    /// Show the change and make none.
    #[arg(long)]
    dry_run: bool,
    /// Make the change without asking.
    #[arg(long)]
    yes: bool,
}

impl Target {
    fn places(&self) -> Result<Vec<Place>, Failure> {
        let scope = if self.project {
            Scope::Project
        } else {
            Scope::User
        };
        let home = env::home_dir()
            .ok_or_else(|| Failure::new("the home folder is not known: set HOME"))?;
        let here = env::current_dir()
            .map_err(|error| Failure::new(format!("the current folder is not known: {error}")))?;
        Ok(self.harness.places(scope, &home, &here))
    }
}

/// Why it was not done.
struct Failure {
    message: String,
    code: u8,
}

impl Failure {
    fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            code: FAILED,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self {
            message: format!(
                "nothing was changed: {}\nnext: {}",
                error.message, error.next
            ),
            code: error.code.exit_code(),
        }
    }
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self::new(message)
    }
}

/// What is written.
struct Ours {
    harness: Harness,
    program: String,
    config: String,
    pre: HookCommand,
    post: HookCommand,
}

impl Ours {
    fn new(harness: Harness, program: String, config: String) -> Self {
        Self {
            pre: HookCommand::new(harness, &program, &config, true),
            post: HookCommand::new(harness, &program, &config, false),
            harness,
            program,
            config,
        }
    }

    /// The text with our entries, and notes about what was left alone.
    fn add(&self, place: &Place, text: &str) -> Result<(String, Vec<String>), String> {
        if is_toml(&place.path) {
            return toml::add(text, &self.program, &self.config);
        }
        let content = Content {
            harness: self.harness,
            hooks: place.hooks.then_some([&self.pre, &self.post]),
            server: place.server.then_some((&self.program, &self.config)),
        };
        json::add(text, &content)
    }
}

/// Installs and proves that a denial comes out.
#[must_use]
pub fn install(args: InstallArgs, config: Option<PathBuf>) -> ExitCode {
    finish(try_install(&args.target, config.as_deref()))
}

/// Takes out what was installed.
#[must_use]
pub fn uninstall(args: UninstallArgs, config: Option<PathBuf>) -> ExitCode {
    finish(try_uninstall(&args.target, config.as_deref()))
}

fn finish(result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output::note(&format!("zerto-rewind: {}", output::ours(&failure.message)));
            ExitCode::from(failure.code)
        }
    }
}

fn try_install(target: &Target, config: Option<&Path>) -> Result<(), Failure> {
    let harness = target.harness;
    let loaded = session::load(config).map_err(|error| Failure {
        message: format!("{}\nnext: {}", error.message, error.next),
        code: CONFIGURATION,
    })?;
    if loaded.catalog.is_none() {
        return Err(Failure {
            message: format!(
                "{}: names no catalog, so that the hook would deny every call\nnext: Add `catalog`, and list what has to be guarded.",
                loaded.file.display()
            ),
            code: CONFIGURATION,
        });
    }
    let ours = Ours::new(harness, utf8(&program()?)?, utf8(&loaded.file)?);
    let mut changes = Vec::new();
    for place in target.places()? {
        let file = SettingsFile::read(&place.path)?;
        let text = file.text.clone().unwrap_or_default();
        let refuse = |problem: String| refuse_edit(&place.path, &problem);
        let (after, notes) = ours.add(&place, &text).map_err(refuse)?;
        let pristine = strip(&place, harness, &text).map_err(refuse)? == text;
        for note in notes {
            output::print(&format!("{}: {note}", place.path.display()));
        }
        changes.push(Change {
            file,
            place,
            after: Some(after),
            pristine,
        });
    }
    if !approve(target, &changes, &loaded.state_dir)? {
        return Ok(());
    }
    let written = change::apply(harness, &changes)?;
    if let Err(problem) = prove(harness, &changes) {
        let put_back = change::undo(harness, &written);
        return Err(Failure::new(format!("{problem}\n{put_back}")));
    }
    output::print("proved: a made-up call was denied by the hook as it was written");
    for note in harness.notes() {
        output::print(note);
    }
    Ok(())
}

fn try_uninstall(target: &Target, config: Option<&Path>) -> Result<(), Failure> {
    let harness = target.harness;
    let mut changes = Vec::new();
    for place in target.places()? {
        let file = SettingsFile::read(&place.path)?;
        let Some(text) = &file.text else {
            continue;
        };
        let stripped =
            strip(&place, harness, text).map_err(|problem| refuse_edit(&place.path, &problem))?;
        let after = if stripped == *text {
            Some(stripped)
        } else {
            before_install(&place, harness, &file, stripped)
        };
        changes.push(Change {
            file,
            place,
            after,
            pristine: false,
        });
    }
    // A configuration that can't be read is no reason to keep what was installed.
    let state_dir = stop::state_dir(config)
        .ok()
        .or_else(config::default_state_dir)
        .unwrap_or_default();
    if !approve(target, &changes, &state_dir)? {
        return Ok(());
    }
    change::apply(harness, &changes)?;
    for change in changes.iter().filter(|change| !change.is_none()) {
        if change.after.is_some() && change.after == change.file.backed_up() {
            change.file.remove_backup()?;
        }
    }
    Ok(())
}

/// Exactly what was there before `install`, where nothing but our entries sets `stripped` apart from it; else `stripped`.
fn before_install(
    place: &Place,
    harness: Harness,
    file: &SettingsFile,
    stripped: String,
) -> Option<String> {
    let before = file
        .backed_up()
        .filter(|text| strip(place, harness, text).as_ref() == Ok(text));
    let again = round_trip(place, harness, before.as_deref().unwrap_or_default());
    if again.as_ref() == Some(&stripped) {
        before
    } else {
        Some(stripped)
    }
}

/// A text with our entries put in and taken out again.
fn round_trip(place: &Place, harness: Harness, text: &str) -> Option<String> {
    let ours = Ours::new(harness, "zerto-rewind".to_owned(), "config.json".to_owned());
    let (added, _) = ours.add(place, text).ok()?;
    strip(place, harness, &added).ok()
}

fn strip(place: &Place, harness: Harness, text: &str) -> Result<String, String> {
    if is_toml(&place.path) {
        toml::strip(text)
    } else {
        json::strip(text, harness)
    }
}

fn is_toml(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "toml")
}

/// Shows the change and asks. False: nothing is to be done.
fn approve(target: &Target, changes: &[Change], state_dir: &Path) -> Result<bool, Failure> {
    let pending: Vec<&Change> = changes.iter().filter(|change| !change.is_none()).collect();
    if pending.is_empty() {
        output::print("nothing to change");
        // What is there is proved again.
        return Ok(!target.dry_run);
    }
    for change in &pending {
        change.show();
    }
    if target.dry_run {
        for problem in pending
            .iter()
            .filter_map(|change| change.file.check_writable().err())
        {
            output::warning(&format!("without --dry-run this would fail: {problem}"));
        }
        return Ok(false);
    }
    for change in &pending {
        change.file.check_writable()?;
    }
    permit::may_be_tried(state_dir)?;
    if !target.yes {
        ask()?;
    }
    permit::blocking(state_dir)?;
    Ok(true)
}

fn ask() -> Result<(), Failure> {
    let refused = |message: &str| Failure {
        message: message.to_owned(),
        code: REFUSED,
    };
    if !terminal::is_there() {
        return Err(refused(
            "nothing was changed: there is no terminal to ask on; give --yes",
        ));
    }
    let runtime = run::runtime().map_err(|error| Failure::new(error.message))?;
    if runtime.block_on(terminal::agrees("Make this change?")) {
        Ok(())
    } else {
        Err(refused("nothing was changed"))
    }
}

fn prove(harness: Harness, changes: &[Change]) -> Result<(), String> {
    let mut handlers = Vec::new();
    for change in changes.iter().filter(|change| change.place.hooks) {
        let text = fs::read_to_string(&change.place.path)
            .map_err(|error| format!("{}: cannot be read: {error}", change.place.path.display()))?;
        handlers.extend(json::handlers(&text, harness)?);
    }
    proof::prove(harness, &handlers)
}

fn refuse_edit(path: &Path, problem: &str) -> Failure {
    Failure::new(format!(
        "{}: {problem}; nothing was changed: put it right first",
        path.display()
    ))
}

/// This program, by the name under which it is on the `PATH`, since that one outlives an update.
fn program() -> Result<PathBuf, Failure> {
    let here = env::current_exe()
        .map_err(|error| Failure::new(format!("the path of this program is not known: {error}")))?;
    let Some(name) = here.file_name() else {
        return Ok(here);
    };
    let on_path = env::var_os("PATH").and_then(|path| {
        env::split_paths(&path)
            .filter(|folder| folder.is_absolute())
            .map(|folder| folder.join(name))
            .find(|candidate| candidate.is_file())
    });
    let same =
        |candidate: &PathBuf| fs::canonicalize(candidate).ok() == fs::canonicalize(&here).ok();
    Ok(on_path.filter(same).unwrap_or(here))
}

fn utf8(path: &Path) -> Result<String, Failure> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        Failure::new(format!(
            "{}: settings cannot hold this path: it is not UTF-8",
            path.display()
        ))
    })
}
