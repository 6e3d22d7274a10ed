//! What a check says.
use super::id;
use crate::{Error, ErrorCode, text};
use serde::Serialize;
use std::path::PathBuf;

/// The most lines below one check; the rest is counted.
const DETAILS_MAX: usize = 20;

/// How a check ended; the worst is the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It is as it should be.
    Ok,
    /// It was not looked at, or can't be known.
    Skipped,
    /// It works, and a person should know something.
    Warning,
    /// It does not work.
    Failed,
}

/// One thing that was looked at.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// What was looked at: a name that stays the same.
    pub id: &'static str,
    /// How it ended.
    pub status: Status,
    /// What was found, or why it was not looked at.
    pub message: String,
    /// Each thing that the message counts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
    /// The error that a command would end with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<ErrorCode>,
}

impl Check {
    /// It is as it should be.
    pub fn ok(id: &'static str, message: impl Into<String>) -> Self {
        Self {
            id,
            status: Status::Ok,
            message: text::without_os_numbers(message.into()),
            details: Vec::new(),
            fix: None,
            code: None,
        }
    }

    /// It works, and a person should know something.
    pub fn warning(id: &'static str, message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            status: Status::Warning,
            fix: Some(fix.into()),
            ..Self::ok(id, message)
        }
    }

    /// It does not work.
    pub fn of_error(id: &'static str, error: Error) -> Self {
        Self {
            status: Status::Failed,
            fix: Some(error.next),
            code: Some(error.code),
            ..Self::ok(id, error.message)
        }
    }

    /// It was not looked at, or can't be known.
    pub fn skipped(id: &'static str, reason: impl Into<String>) -> Self {
        Self {
            status: Status::Skipped,
            ..Self::ok(id, reason)
        }
    }

    /// It was not looked at, because another check failed.
    pub(super) fn skipped_after(id: &'static str, cause: &str) -> Self {
        Self::skipped(id, format!("not looked at, because of `{cause}`"))
    }

    /// Something on this host did not answer in time.
    pub(super) fn silent(id: &'static str, what: &str) -> Self {
        let limit = super::LOCAL.as_secs();
        Self::of_error(
            id,
            Error::new(
                ErrorCode::State,
                format!("{what}: no answer within {limit} s"),
            )
            .with_next("Is it on a network file system whose server is gone? Use a local folder."),
        )
    }

    /// With each thing that the message counts.
    #[must_use]
    pub fn with_details(mut self, details: impl IntoIterator<Item = String>) -> Self {
        let mut details = details.into_iter();
        self.details.extend(details.by_ref().take(DETAILS_MAX));
        match details.count() {
            0 => {}
            more => self.details.push(format!("and {more} more")),
        }
        self
    }
}

/// What a check brought that others need; else the check that stands in the way.
pub(super) type Step<T> = Result<T, &'static str>;

/// One VPG as the ZVM has it now.
#[derive(Clone, Debug, Serialize)]
pub struct VpgState {
    /// Name of the VPG.
    pub vpg: String,
    /// The ZVM's identifier of the VPG.
    pub vpg_identifier: String,
    /// Its status, by the ZVM's own name.
    pub status: String,
    /// Its substatus, by the ZVM's own name.
    pub sub_status: String,
    /// Whether a tagged checkpoint can be tried.
    pub can_be_tagged: bool,
    /// Why none can be tried.
    pub why_not: Option<String>,
    /// Whether the ZVM is its protected site; null where the ZVM does not say.
    pub protected_here: Option<bool>,
    /// Name of the protected site.
    pub protected_site: Option<String>,
    /// Name of the recovery site.
    pub recovery_site: Option<String>,
}

/// Everything that was looked at.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The worst of all.
    pub status: Status,
    /// The configuration file.
    pub configuration: Option<PathBuf>,
    /// Host and port of the ZVM.
    pub zvm: Option<String>,
    /// Each check, in the order in which they were made.
    pub checks: Vec<Check>,
    /// Every VPG that the ZVM lists; none where it was not asked.
    pub vpgs: Vec<VpgState>,
}

impl Report {
    pub(super) fn new() -> Self {
        Self {
            status: Status::Ok,
            configuration: None,
            zvm: None,
            checks: Vec::with_capacity(id::ALL.len()),
            vpgs: Vec::new(),
        }
    }

    /// Adds a check.
    pub fn add(&mut self, check: Check) {
        self.status = self.status.max(check.status);
        self.checks.push(check);
    }

    /// Adds a check, and passes on what it brought. What brought nothing stands in the way of what depends on it.
    pub(super) fn step<T>(&mut self, (check, brought): (Check, Option<T>)) -> Step<T> {
        let id = check.id;
        self.add(check);
        brought.ok_or(id)
    }

    /// Adds a check that can't be made.
    pub(super) fn skip<T>(&mut self, id: &'static str, cause: &'static str) -> Step<T> {
        self.add(Check::skipped_after(id, cause));
        Err(cause)
    }

    /// The CLI's exit code: 0 where nothing failed, else that of the first failure.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        let first = self.checks.iter().find_map(|check| match check.status {
            Status::Failed => Some(check.code.map_or(1, ErrorCode::exit_code)),
            _ => None,
        });
        first.unwrap_or(0)
    }
}
