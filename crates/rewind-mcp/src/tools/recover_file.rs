//! `zerto_recover_file`: a file or folder out of a checkpoint, after a human has confirmed.
use rewind_core::{Call, Destination, Error, RecoverRequest, Recovery, Rewind};
use rmcp::model::Tool;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{additive, define};
use crate::{answer::Answer, text};

pub const NAME: &str = "zerto_recover_file";

/// A folder may have so many files that no client would take an answer with all of them.
const FILES_TOLD: usize = 200;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// The VM that the file was on: its name, its hostname, its IP address, or its vmIdentifier.
    #[schemars(length(min = 1, max = 256))]
    vm: String,
    /// The file or folder on the VM: "/etc/nginx/nginx.conf" or "C:\inetpub\web.config".
    #[schemars(length(min = 1, max = 4096))]
    path: String,
    /// The checkpoint: its id or its tag, from a receipt or from zerto_list_checkpoints.
    #[schemars(length(min = 1, max = 512))]
    checkpoint: String,
    /// The VPG, where the checkpoint alone does not say it: an id is unique only within its VPG.
    #[schemars(length(min = 1, max = 256))]
    vpg: Option<String>,
    /// Where it lands: a path within the configured recovery folder. Without it, `<vm>/<checkpoint>/<path>`.
    /// What exists already is never overwritten.
    #[schemars(length(min = 1, max = 1024))]
    destination: Option<String>,
    /// Only after a human has seen exactly this recovery and agreed to it. Leave it out of the first call:
    /// the answer then says what they have to agree to.
    confirmed: Option<bool>,
}

pub fn tool() -> Tool {
    define::<Arguments, Recovery>(
        NAME,
        "Recover a file from a checkpoint",
        "Takes a file or folder of a VM back as it was at a checkpoint: mounts the checkpoint (file-level restore), \
         downloads the file to the host that this server runs on, and unmounts it again. Nothing on the VM is changed \
         and nothing that exists is overwritten. A human has to agree first: without `confirmed` it mounts nothing and \
         answers `confirmation_required` with exactly what to show them.",
        additive(),
    )
}

pub async fn call(rewind: &Rewind, arguments: Arguments, call: &Call) -> Result<Answer, Error> {
    let request = RecoverRequest {
        vm: arguments.vm,
        path: arguments.path,
        checkpoint: arguments.checkpoint,
        vpg: arguments.vpg,
        destination: Destination::InRecoverDir(arguments.destination),
        confirmed: arguments.confirmed.unwrap_or(false),
    };
    let mut recovery = rewind.recover(request, call).await?;
    shorten(&mut recovery);
    Ok(Answer::new(&recovery, text::recovery(&recovery)))
}

fn shorten(recovery: &mut Recovery) {
    for (list, count) in [
        ("files", recovery.files.len()),
        ("members that were left out", recovery.skipped.len()),
    ] {
        if count > FILES_TOLD {
            let note = format!("Only the first {FILES_TOLD} of {count} {list} are told here.");
            recovery.notes.push(note);
        }
    }
    recovery.files.truncate(FILES_TOLD);
    recovery.skipped.truncate(FILES_TOLD);
}

#[cfg(test)]
mod tests {
    use super::*;
    use rewind_core::{RecoveredFile, Timing};

    #[test]
    fn a_folder_of_many_files_is_told_in_part() {
        let file = |index: usize| RecoveredFile {
            path: format!("{index}"),
            bytes: 1,
            sha256: String::new(),
        };
        let mut recovery = Recovery {
            vm: String::new(),
            vpg: String::new(),
            checkpoint: String::new(),
            checkpoint_time: String::new(),
            tag: None,
            guest_path: String::new(),
            is_folder: true,
            local_path: String::new(),
            bytes: 1000,
            files: (0..1000).map(file).collect(),
            skipped: vec!["link".into()],
            still_open: None,
            notes: Vec::new(),
            timing: Timing::default(),
        };
        shorten(&mut recovery);
        assert_eq!((recovery.files.len(), recovery.skipped.len()), (200, 1));
        assert_eq!(
            recovery.notes,
            ["Only the first 200 of 1000 files are told here."]
        );
        assert_eq!(recovery.bytes, 1000);
    }
}
