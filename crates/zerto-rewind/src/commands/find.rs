//! `find`: a VM and every VPG that protects it.
use std::path::Path;

use owo_colors::OwoColorize as _;
use rewind_core::{Error, ProtectingVpg, Protection, text};

use crate::{
    interrupt::Interrupt,
    output::Output,
    session::Session,
    table::{moment, table},
};

pub async fn run(
    config: Option<&Path>,
    vm: &str,
    output: Output,
    interrupt: &Interrupt,
) -> Result<(), Error> {
    let session = Session::open(config, interrupt)?;
    let found = session
        .run(async |rewind, call| rewind.find(vm, &call).await)
        .await?;
    output.result(&found, show);
    Ok(())
}

fn show(found: &Protection) -> String {
    let rows = found.vpgs.iter().map(row);
    format!(
        "{}  {} {}\n\n{}",
        text::one_line(&found.vm).bold(),
        text::one_line(&found.vm_identifier),
        format!("found by its {}", found.matched_by.replace('_', " ")).dimmed(),
        table(["VPG", "Sites", "RPO", "Journal from (UTC)", "State"], rows)
    )
}

fn row(vpg: &ProtectingVpg) -> [String; 5] {
    let site = |name: &Option<String>| name.clone().unwrap_or_else(|| "?".into());
    let sites = format!(
        "{} → {}",
        site(&vpg.protected_site),
        site(&vpg.recovery_site)
    );
    let rpo = vpg
        .actual_rpo_seconds
        .map_or_else(|| "?".into(), |seconds| format!("{seconds} s"));
    let from = vpg
        .earliest_checkpoint
        .as_deref()
        .map_or_else(|| "?".into(), moment);
    let mut state = match &*vpg.sub_status {
        "" | "None" => vpg.status.clone(),
        sub_status => format!("{}, {sub_status}", vpg.status),
    };
    if !vpg.can_be_tagged {
        let why = vpg.why_not.as_deref().unwrap_or("the reason is not known");
        state = format!("{state}; can't be pinned: {why}");
    }
    [vpg.vpg.clone(), sites, rpo, from, state]
}
