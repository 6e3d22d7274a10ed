//! Find: exactly one VM and every VPG that protects it.
mod find;
mod matching;
mod readiness;

use crate::text;
pub(crate) use find::{Found, FoundVpg, find};
use schemars::JsonSchema;
use serde::Serialize;

const SHOWN_MAX_LEN: usize = 256;
/// Of a candidate.
const VPGS_SHOWN: usize = 5;

/// A VM that could have been meant.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct VmCandidate {
    /// The name that the ZVM reports.
    pub name: String,
    /// The ZVM's identifier of the VM.
    pub identifier: String,
    /// Names of the VPGs that protect it.
    pub vpgs: Vec<String>,
}

impl std::fmt::Display for VmCandidate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let named = |text: &String| text::named(text, SHOWN_MAX_LEN);
        let (name, identifier) = (named(&self.name), named(&self.identifier));
        write!(f, "{name} (identifier {identifier}")?;
        match self.vpgs.as_slice() {
            [] => write!(f, ", not protected)"),
            vpgs => {
                let shown: Vec<_> = vpgs.iter().take(VPGS_SHOWN).map(named).collect();
                let more = if vpgs.len() > VPGS_SHOWN { ", …" } else { "" };
                write!(f, ", VPG {}{more})", shown.join(", "))
            }
        }
    }
}

/// One VM and every VPG that protects it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Protection {
    /// The name that the ZVM reports.
    pub vm: String,
    /// The ZVM's identifier of the VM.
    pub vm_identifier: String,
    /// What the given text matched: `identifier`, `name`, `name_ignoring_case`, `hostname` or `address`.
    pub matched_by: String,
    /// Every VPG that protects the VM, by name.
    pub vpgs: Vec<ProtectingVpg>,
}

/// One VPG that protects the VM.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ProtectingVpg {
    /// Name of the VPG.
    pub vpg: String,
    /// The ZVM's identifier of the VPG.
    pub vpg_identifier: String,
    /// The VPG's status, by the ZVM's own name.
    pub status: String,
    /// The VPG's substatus, by the ZVM's own name.
    pub sub_status: String,
    /// Whether a tagged checkpoint can be tried.
    pub can_be_tagged: bool,
    /// Why none can be tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why_not: Option<String>,
    /// Name of the protected site.
    pub protected_site: Option<String>,
    /// Name of the recovery site.
    pub recovery_site: Option<String>,
    /// The recovery point objective that is met now, in seconds; null while the VPG initialises.
    pub actual_rpo_seconds: Option<u64>,
    /// How far back the journal is configured to reach, in minutes.
    pub configured_history_minutes: Option<u64>,
    /// Time of the earliest checkpoint in the journal (ISO 8601, UTC).
    pub earliest_checkpoint: Option<String>,
}
