//! What of ours is in the settings of the harnesses that `install` knows. They are read and nothing else.
use super::{
    command::words,
    file::SettingsFile,
    harness::{Harness, Place, Scope},
    is_toml, json,
};
use clap::ValueEnum as _;
use serde_json::Value;
use std::{
    env, fs,
    path::{Path, PathBuf},
};

/// What was found in one settings file, or why it can't be told.
#[derive(Debug)]
pub struct Found {
    /// Whose settings, as people call it.
    pub harness: &'static str,
    /// The file.
    pub file: PathBuf,
    /// What of ours is in it: "hook", "server", "proxy".
    pub parts: Vec<&'static str>,
    /// What keeps it from working.
    pub problems: Vec<String>,
    /// The configurations that it names.
    pub configurations: Vec<PathBuf>,
}

/// Looks into every settings file of this user, and of the project in the current folder, that may have something of ours.
#[must_use]
pub fn survey() -> Vec<Found> {
    let home = env::home_dir().unwrap_or_default();
    let here = env::current_dir().unwrap_or_default();
    let mut found = Vec::new();
    for harness in Harness::value_variants() {
        for scope in [Scope::User, Scope::Project] {
            for place in harness.places(scope, &home, &here) {
                found.extend(look(*harness, &place));
            }
        }
    }
    // At home, both scopes may be one file.
    found.dedup_by(|a, b| a.file == b.file);
    found
}

/// None where nothing of ours is in it.
fn look(harness: Harness, place: &Place) -> Option<Found> {
    let mut found = Found {
        harness: harness.label(),
        file: place.path.clone(),
        parts: Vec::new(),
        problems: Vec::new(),
        configurations: Vec::new(),
    };
    match SettingsFile::read(&place.path) {
        Ok(file) => {
            let text = file.text.filter(|text| !text.trim().is_empty())?;
            if let Err(problem) = found.read(harness, place, &text) {
                found.problems.push(problem);
            }
        }
        Err(problem) => found.problems.push(problem),
    }
    (!found.parts.is_empty() || !found.problems.is_empty()).then_some(found)
}

impl Found {
    fn read(&mut self, harness: Harness, place: &Place, text: &str) -> Result<(), String> {
        if place.hooks {
            self.hooks(harness, text)?;
        }
        if place.server {
            let servers = match is_toml(&place.path) {
                true => toml(text)?.get("mcp_servers").cloned(),
                false => json::value(text)?.get("mcpServers").cloned(),
            };
            let servers = servers.as_ref().and_then(Value::as_object);
            for server in servers.into_iter().flatten() {
                self.server(server.1);
            }
        }
        for problem in [self.missing_configurations()].into_iter().flatten() {
            self.problems.push(problem);
        }
        Ok(())
    }

    fn hooks(&mut self, harness: Harness, text: &str) -> Result<(), String> {
        let handlers = json::handlers(text, harness)?;
        if handlers.is_empty() {
            return Ok(());
        }
        self.part("hook");
        json::check_enabled(text, harness)?;
        for words in handlers.iter().filter_map(words) {
            if let Some(program) = words.first() {
                self.program(program);
            }
            let config = words.iter().skip_while(|word| *word != "--config").nth(1);
            self.configurations.extend(config.map(PathBuf::from));
        }
        Ok(())
    }

    fn server(&mut self, entry: &Value) {
        let Some(program) = entry.get("command").and_then(Value::as_str) else {
            return;
        };
        let name = Path::new(program)
            .file_stem()
            .and_then(|name| name.to_str());
        let first = entry.get("args").and_then(|arguments| arguments.get(0));
        match (name, first.and_then(Value::as_str)) {
            (Some("zerto-rewind"), Some("proxy")) => self.part("proxy"),
            (Some("zerto-rewind"), Some("mcp")) | (Some("zerto-rewind-mcp"), _) => {
                self.part("server");
            }
            _ => return,
        }
        self.program(program);
        let config = entry
            .get("env")
            .and_then(|env| env.get("ZERTO_REWIND_CONFIG"))
            .and_then(Value::as_str);
        self.configurations.extend(config.map(PathBuf::from));
    }

    fn part(&mut self, part: &'static str) {
        if !self.parts.contains(&part) {
            self.parts.push(part);
        }
    }

    /// A name without a folder is looked up by the harness, with a PATH that is not known here.
    fn program(&mut self, program: &str) {
        let path = Path::new(program);
        if path.is_absolute() && !path.is_file() {
            let problem = format!("the program {program} is not there");
            if !self.problems.contains(&problem) {
                self.problems.push(problem);
            }
        }
    }

    fn missing_configurations(&mut self) -> Option<String> {
        self.configurations.sort();
        self.configurations.dedup();
        let missing: Vec<_> = self
            .configurations
            .iter()
            .filter(|file| fs::metadata(file).is_err())
            .map(|file| file.display().to_string())
            .collect();
        (!missing.is_empty())
            .then(|| format!("the configuration {} is not there", missing.join(", ")))
    }
}

fn toml(text: &str) -> Result<Value, String> {
    let table: ::toml::Table = text
        .parse()
        .map_err(|_| "it is no TOML that can be read".to_owned())?;
    serde_json::to_value(table).map_err(|error| error.to_string())
}
