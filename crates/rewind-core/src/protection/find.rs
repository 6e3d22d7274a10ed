//! Asks the ZVM which VM is meant and which VPGs protect it.
use super::{
    ProtectingVpg, Protection,
    matching::{self, Known, MatchedBy, Vm},
    readiness,
};
use crate::{Error, ErrorCode, text};
use futures::future::try_join_all;
use zvm_client::{EnumValue, VmFilter, VmRow, Vpg, Zvm};

/// The longest text that is looked for; vCenter allows 80 characters in a name, a DNS name has at most 253.
const WANTED_MAX_LEN: usize = 256;
/// The longest name that is shown.
const SHOWN_MAX_LEN: usize = 256;
const CANDIDATES_MAX: usize = 50;
const SUGGESTIONS_MAX: usize = 10;
/// A real VM is in three VPGs at most.
const VPGS_MAX: usize = 64;

/// One VM, with what the ZVM calls it and what protects it.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// The VM's name as the ZVM reports it.
    pub vm: String,
    /// As the ZVM sent it: echoed back.
    pub vm_identifier: String,
    pub matched_by: &'static str,
    /// By name; never empty.
    pub vpgs: Vec<FoundVpg>,
}

/// One protecting VPG.
#[derive(Clone, Debug)]
pub(crate) struct FoundVpg {
    pub vpg: Vpg,
    pub status: String,
    pub sub_status: String,
    /// Why no tagged checkpoint can be tried.
    pub refused: Option<(ErrorCode, String)>,
}

/// Of which only the journal matters.
impl From<Vpg> for FoundVpg {
    fn from(vpg: Vpg) -> Self {
        Self {
            vpg,
            status: String::new(),
            sub_status: String::new(),
            refused: None,
        }
    }
}

impl FoundVpg {
    /// A VPG, with its state by name and what that means. `entity` is what the row of a VM says that it is protected as.
    pub async fn of(
        zvm: &Zvm,
        vpg: Vpg,
        entity: Option<&EnumValue>,
    ) -> Result<Self, zvm_client::Error> {
        let (status, sub_status) = readiness::state_names(zvm, &vpg).await?;
        let cloud =
            readiness::cloud(&vpg.protected_entity).or_else(|| entity.and_then(readiness::cloud));
        let refused = match cloud {
            Some(cloud) => Some((
                ErrorCode::ProtectedSiteIsCloud,
                format!("its protected site is {cloud}"),
            )),
            None => {
                readiness::refusal(&status, &sub_status).map(|why| (ErrorCode::VpgNotReady, why))
            }
        };
        Ok(Self {
            vpg,
            status,
            sub_status,
            refused,
        })
    }

    /// The VPG's name, safe to show.
    pub fn name(&self) -> String {
        text::display(&self.vpg.name, SHOWN_MAX_LEN)
    }

    /// Its name, within a sentence.
    pub fn told(&self) -> String {
        text::named(&self.vpg.name, SHOWN_MAX_LEN)
    }

    pub fn id(&self) -> &str {
        &self.vpg.identifier
    }

    /// A failed call about this VPG, which the client knows by its identifier and people by its name.
    pub fn failed(&self, error: zvm_client::Error) -> Error {
        let mut error = Error::from(error);
        error.message = error.message.replace(self.id(), &self.told());
        error
    }
}

impl Found {
    /// The VM's name, safe to show.
    pub fn name(&self) -> String {
        text::display(&self.vm, SHOWN_MAX_LEN)
    }

    /// Its name, within a sentence.
    pub fn told(&self) -> String {
        text::named(&self.vm, SHOWN_MAX_LEN)
    }

    /// Whether both are the same VM.
    pub fn is(&self, other: &Self) -> bool {
        self.vm_identifier
            .eq_ignore_ascii_case(&other.vm_identifier)
    }

    pub fn protection(&self) -> Protection {
        let shown = |text: &Option<String>| {
            text.as_deref()
                .map(|text| text::display(text, SHOWN_MAX_LEN))
        };
        Protection {
            vm: self.name(),
            vm_identifier: text::display(&self.vm_identifier, SHOWN_MAX_LEN),
            matched_by: self.matched_by.to_owned(),
            vpgs: self
                .vpgs
                .iter()
                .map(|found| ProtectingVpg {
                    vpg: found.name(),
                    vpg_identifier: text::display(found.id(), SHOWN_MAX_LEN),
                    status: text::display(&found.status, SHOWN_MAX_LEN),
                    sub_status: text::display(&found.sub_status, SHOWN_MAX_LEN),
                    can_be_tagged: found.refused.is_none(),
                    why_not: found.refused.as_ref().map(|(_, why)| why.clone()),
                    protected_site: shown(&found.vpg.protected_site),
                    recovery_site: shown(&found.vpg.recovery_site),
                    actual_rpo_seconds: found.vpg.actual_rpo_seconds,
                    configured_history_minutes: found.vpg.configured_history_minutes,
                    earliest_checkpoint: found
                        .vpg
                        .earliest_checkpoint
                        .as_ref()
                        .map(|first| first.time.to_string()),
                })
                .collect(),
        }
    }
}

/// Exactly one VM and every VPG that protects it, or an error with the candidates.
pub(crate) async fn find(zvm: &Zvm, wanted: &str) -> Result<Found, Error> {
    let wanted = checked(wanted)?;
    // Large, and part of nearly every call.
    let (matched_by, vm) = Box::pin(one_vm(zvm, wanted)).await?;
    let mut vpgs = try_join_all(vm.rows.iter().map(|row| protecting_vpg(zvm, row))).await?;
    vpgs.sort_by(|a, b| (&a.vpg.name, &a.vpg.identifier).cmp(&(&b.vpg.name, &b.vpg.identifier)));
    Ok(Found {
        vm: vm.name,
        vm_identifier: vm.identifier,
        matched_by: matched_by.as_str(),
        vpgs,
    })
}

async fn protecting_vpg(zvm: &Zvm, row: &VmRow) -> Result<FoundVpg, Error> {
    let vpg = zvm.vpg(&row.vpg_identifier).await?;
    Ok(FoundVpg::of(zvm, vpg, Some(&row.protected_entity)).await?)
}

/// The text to look for, if it can be one.
fn checked(wanted: &str) -> Result<&str, Error> {
    let wanted = wanted.trim();
    let problem = if wanted.is_empty() {
        "`vm` is empty"
    } else if wanted.chars().nth(WANTED_MAX_LEN).is_some() {
        "`vm` is too long: it has more than 256 characters"
    } else if wanted.chars().any(char::is_control) {
        "`vm` contains control characters"
    } else {
        return Ok(wanted);
    };
    Err(Error::new(ErrorCode::InvalidArgument, problem)
        .with_next("Give a VM's name, hostname, IP address or identifier."))
}

async fn one_vm(zvm: &Zvm, wanted: &str) -> Result<(MatchedBy, Vm), Error> {
    // The ZVM filters first. What it makes of a filter is not documented, so the answer is matched again, and only
    // a match of the filtered field itself counts: the answer holds all rows of such a VM.
    let filter = if looks_like_identifier(wanted) {
        VmFilter {
            identifier: Some(wanted.to_owned()),
            ..VmFilter::default()
        }
    } else {
        VmFilter {
            name: Some(wanted.to_owned()),
            ..VmFilter::default()
        }
    };
    let filtered = matching::vms(zvm.vms(&filter).await?);
    if let Some((by, found)) = matching::matching(&filtered, wanted)
        && matches!(
            by,
            MatchedBy::Identifier | MatchedBy::Name | MatchedBy::NameIgnoringCase
        )
    {
        return exactly_one(by, &found, wanted);
    }
    let all = matching::vms(zvm.vms(&VmFilter::default()).await?);
    match matching::matching(&all, wanted) {
        Some((by, found)) => exactly_one(by, &found, wanted),
        None => Err(unprotected_or_unknown(zvm, &all, wanted).await),
    }
}

/// `<server guid>.<managed object>`, as vSphere VMs have it. Others are found in the whole list.
fn looks_like_identifier(wanted: &str) -> bool {
    wanted
        .split_once('.')
        .is_some_and(|(server, object)| uuid::Uuid::try_parse(server).is_ok() && !object.is_empty())
}

fn exactly_one(by: MatchedBy, found: &[&Vm], wanted: &str) -> Result<(MatchedBy, Vm), Error> {
    let [vm] = found else {
        return Err(Error::new(
            ErrorCode::VmAmbiguous,
            format!(
                "{} VMs match {}",
                found.len(),
                text::quoted(wanted, SHOWN_MAX_LEN)
            ),
        )
        .with_candidates(found.iter().take(CANDIDATES_MAX).map(|vm| shown(vm))));
    };
    // Which VPG is meant is unknown, or what the ZVM says can't be: "every VPG" can't be promised.
    let problem = if vm.rows.iter().any(|row| row.vpg_identifier.is_empty()) {
        "without saying which VPG protects it".to_owned()
    } else if vm.rows.len() > VPGS_MAX {
        format!(
            "as protected by {} VPGs, more than any VM has",
            vm.rows.len()
        )
    } else {
        return Ok((by, (*vm).clone()));
    };
    let name = text::named(&vm.name, SHOWN_MAX_LEN);
    Err(Error::new(
        ErrorCode::ZvmError,
        format!("the ZVM lists {name} {problem}"),
    ))
}

async fn unprotected_or_unknown(zvm: &Zvm, protected: &[Vm], wanted: &str) -> Error {
    let shown_wanted = text::exact(wanted, SHOWN_MAX_LEN);
    let mut similar: Vec<String> = matching::resembling(protected, wanted, SUGGESTIONS_MAX)
        .into_iter()
        .map(shown)
        .collect();
    let listing = zvm.unprotected_vms().await;
    let mut message = format!("no VM on {} is \"{shown_wanted}\"", zvm.host());
    match &listing {
        Ok(unprotected) => {
            if let Some((_, found)) = matching::matching(unprotected, wanted) {
                return Error::new(
                    ErrorCode::VmNotProtected,
                    format!("\"{shown_wanted}\" exists, but no VPG protects it"),
                )
                .with_candidates(
                    found
                        .into_iter()
                        .take(CANDIDATES_MAX)
                        .map(unprotected_candidate),
                );
            }
            similar.extend(
                matching::resembling(unprotected, wanted, SUGGESTIONS_MAX)
                    .into_iter()
                    .map(unprotected_candidate),
            );
        }
        Err(error) => {
            message.push_str(&format!(
                " among the protected ones; the others could not be listed ({error})"
            ));
        }
    }
    similar.truncate(SUGGESTIONS_MAX);
    Error::new(ErrorCode::VmNotFound, message).with_candidates(similar)
}

fn shown(vm: &Vm) -> String {
    vm.candidate().to_string()
}

fn unprotected_candidate<T: Known>(vm: &T) -> String {
    let candidate = super::VmCandidate {
        name: vm.name().to_owned(),
        identifier: vm.identifier().to_owned(),
        vpgs: Vec::new(),
    };
    candidate.to_string()
}
