//! `doctor`: everything that a guard or a recovery needs, a line each.
use std::{fs, path::Path};

use owo_colors::OwoColorize as _;
use rewind_core::{
    Error,
    doctor::{self, Check, Report, Status, id},
};

use crate::{
    commands::install::{self, Found},
    interrupt::Interrupt,
    output::{self, Output},
    session,
    table::is_drawn,
    wrap::wrap,
};
use rewind_mcp::advice;

/// The settings of MCP clients. The only check that the domain knows nothing of.
const CLIENTS: &str = "clients";

/// Makes every check and shows them; the exit code.
///
/// # Errors
/// `cancelled`.
pub async fn run(
    config: Option<&Path>,
    output: Output,
    interrupt: &Interrupt,
) -> Result<u8, Error> {
    let call = session::call(interrupt.token());
    let mut report = doctor::run(session::locate(config), &call).await?;
    report.add(clients(&install::survey(), report.configuration.as_deref()));
    drop(call);
    for check in &mut report.checks {
        check.message = advice::complete(&check.message).into_owned();
        check.fix = check
            .fix
            .as_deref()
            .map(|fix| advice::complete(fix).into_owned());
    }
    output.result(&report, show);
    Ok(report.exit_code())
}

/// Where we are set up, and whether that can work.
fn clients(found: &[Found], configuration: Option<&Path>) -> Check {
    if found.is_empty() {
        let mut none = Check::ok(
            CLIENTS,
            "none of Claude Code, Codex CLI, Gemini CLI, Cursor is set up",
        );
        none.fix = Some(
            "To set one up, run `zerto-rewind install claude` (or codex, gemini, cursor); for others see the README.".to_owned(),
        );
        return none;
    }
    let set_up: Vec<_> = found
        .iter()
        .filter(|found| !found.parts.is_empty())
        .map(|found| {
            format!(
                "{}: {} in {}",
                found.harness,
                found.parts.join(" and "),
                found.file.display()
            )
        })
        .collect();
    let others = found.iter().flat_map(|found| {
        let others = found
            .configurations
            .iter()
            .filter(|other| !is_same(other, configuration));
        others.map(|other| format!("{} goes by {}", found.file.display(), other.display()))
    });
    let problems: Vec<_> = found
        .iter()
        .flat_map(|found| {
            let file = found.file.display();
            found.problems.iter().map(
                move |problem| match problem.starts_with(&file.to_string()) {
                    true => problem.clone(),
                    false => format!("{file}: {problem}"),
                },
            )
        })
        .collect();
    let count = match set_up.len() {
        1 => "one settings file has it".to_owned(),
        count => format!("{count} settings files have it"),
    };
    match problems.is_empty() {
        true => Check::ok(CLIENTS, count).with_details(set_up.into_iter().chain(others)),
        false => Check::warning(
            CLIENTS,
            "not everything that is set up can work",
            "Put it right by hand, or run `zerto-rewind install` for it again.",
        )
        .with_details(problems.into_iter().chain(set_up)),
    }
}

fn is_same(file: &Path, configuration: Option<&Path>) -> bool {
    let real = |file: &Path| fs::canonicalize(file).ok();
    configuration.is_some_and(|configuration| {
        file == configuration || real(file).is_some_and(|file| Some(file) == real(configuration))
    })
}

fn show(report: &Report) -> String {
    let lines = report.checks.iter().map(line);
    let mut text: Vec<_> = lines.collect();
    text.push(String::new());
    text.push(summary(report));
    text.join("\n")
}

fn line(check: &Check) -> String {
    let status = word(check.status);
    let first = format!("{status:<8} {:<15} ", check.id);
    let rest = " ".repeat(first.len());
    let mut lines = vec![wrapped(&check.message, &first)];
    for detail in &check.details {
        lines.push(wrapped(detail, &format!("{rest}- ")));
    }
    if let Some(fix) = &check.fix {
        lines.push(wrapped(fix, &format!("{rest}fix: ")));
    }
    // Styles have no width, so they come last.
    let styled = match check.status {
        Status::Ok => status.green().to_string(),
        Status::Skipped => status.dimmed().to_string(),
        Status::Warning => status.yellow().bold().to_string(),
        Status::Failed => status.red().bold().to_string(),
    };
    lines.join("\n").replacen(status, &styled, 1)
}

/// A screen would break it in the middle of words; elsewhere a line stays a line.
fn wrapped(text: &str, first: &str) -> String {
    let text = output::lines(text);
    if !is_drawn() {
        return format!("{first}{text}");
    }
    wrap(&text, first)
}

fn word(status: Status) -> &'static str {
    match status {
        Status::Ok => "ok",
        Status::Skipped => "skipped",
        Status::Warning => "warning",
        Status::Failed => "failed",
    }
}

fn summary(report: &Report) -> String {
    let count = |status: Status| {
        let count = report
            .checks
            .iter()
            .filter(|check| check.status == status)
            .count();
        let plural = if status == Status::Warning && count > 1 {
            "s"
        } else {
            ""
        };
        (count > 0).then(|| format!("{count} {}{plural}", word(status)))
    };
    let counts: Vec<_> = [Status::Failed, Status::Warning, Status::Skipped, Status::Ok]
        .into_iter()
        .filter_map(count)
        .collect();
    let stopped = |check: &Check| check.id == id::STOP && check.status == Status::Warning;
    let verdict = match report.status {
        Status::Warning if report.checks.iter().any(stopped) => {
            "Nothing failed, but changes are stopped and no guard is made"
        }
        Status::Ok => "All is well",
        Status::Skipped | Status::Warning => "Nothing failed",
        Status::Failed => "Something does not work",
    };
    format!("{verdict}: {}.", counts.join(", "))
}
