//! What a person decides on: a plan, its digest, and the decision.
//!
//! A plan is written down when it is made and does not change any more. What a person sees is rendered from it, what they confirm is
//! the digest of its canonical form, and what is carried out is exactly it, at most once, before it expires.
mod facade;
mod known;
pub(crate) mod summary;

use crate::{
    Error, ErrorCode, RecoverRequest,
    guest::{InGuest, Restore},
    tag, text,
};
use jiff::{SignedDuration, Timestamp};
pub use known::{Decision, How, KnownPlan, PlanEnd, Verdict};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// How long a plan can be decided on and carried out.
pub const PLAN_LIFE: SignedDuration = SignedDuration::from_mins(10);
/// How long an agreement to a preview holds.
pub const PREVIEW_LIFE: SignedDuration = SignedDuration::from_mins(10);

/// Begins the canonical form; another form would be another number.
const FORM: &str = "zerto-rewind plan 1\n";
/// Letters and digits that are not mistaken for one another.
const ID_ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const ID_LEN: usize = 8;
/// How much of a digest a person compares.
const DIGEST_SHOWN: usize = 16;

/// What will happen, exactly.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// What people and agents call it.
    pub id: String,
    /// Host and port of the ZVM.
    pub zvm: String,
    /// The name that the ZVM reports, safe to show.
    pub vm: String,
    /// The ZVM's identifier of the VM.
    pub vm_identifier: String,
    /// Name of the VPG, safe to show.
    pub vpg: String,
    /// The VPG's identifier: two can have one name as it is shown.
    pub vpg_identifier: String,
    /// Id of the checkpoint.
    pub checkpoint: String,
    /// ISO 8601, UTC, the ZVM's clock.
    pub checkpoint_time: String,
    /// How old the checkpoint was when the plan was made, and when that was, in words.
    pub checkpoint_age: String,
    /// Until when the checkpoint is expected to stay in the journal: an estimate.
    pub expected_until: Option<String>,
    /// Its tag, safe to show, if it has one.
    pub tag: Option<String>,
    /// What is decided.
    pub decides: Decides,
    /// What else there is to know before deciding, such as what is not carried.
    pub notes: Vec<String>,
    /// The request that the plan was made for.
    pub asked: RecoverRequest,
    /// The MCP client that asked, as it named itself, or the user at a terminal; safe to show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_by: Option<String>,
    /// When it was made, by this host's clock.
    pub made_at: Timestamp,
    /// Until when it can be carried out, by this host's clock.
    pub expires_at: Timestamp,
}

/// The two kinds of decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Decides {
    /// To look into the checkpoint: it is mounted, read, and unmounted. Asked for once per checkpoint, holds [`PREVIEW_LIFE`].
    Preview {
        /// What it is looked into for, as paths and patterns.
        looks_for: Vec<String>,
        /// What for.
        #[serde(default)]
        purpose: Purpose,
    },
    /// To do something, asked for each time.
    Effects {
        /// All of it, in this order.
        effects: Vec<Effect>,
    },
}

/// What a checkpoint is looked into for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// What is found is to be recovered.
    #[default]
    Recovery,
    /// What is found is compared with what is there now.
    Comparison,
}

/// One thing that happens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "effect")]
pub enum Effect {
    /// A file or folder of the checkpoint is placed on this host.
    Place {
        /// The file or folder.
        source: Source,
        /// Where it lands, absolute.
        to: String,
        /// The folder that it must not lie outside of.
        within: Option<String>,
        /// What is there now.
        now: Present,
    },
    /// A file of the checkpoint is written in the guest of the VM.
    Write {
        /// The file.
        source: Source,
        /// Exactly what is written where.
        in_guest: InGuest,
        /// When it was looked what is there now, by this host's clock.
        looked_at: Timestamp,
    },
    /// Nothing: it was asked for, and can't be recovered. The result says so again.
    Omit {
        /// What was asked for.
        source: Source,
        /// Why, as a stable name.
        code: ErrorCode,
        /// Why, in words.
        why: String,
    },
}

impl Effect {
    /// The file or folder of the checkpoint.
    #[must_use]
    pub fn source(&self) -> &Source {
        match self {
            Self::Place { source, .. } | Self::Write { source, .. } | Self::Omit { source, .. } => {
                source
            }
        }
    }

    /// Whether something in the guest is replaced by it, or comes back there.
    #[must_use]
    pub fn replaces(&self) -> bool {
        matches!(self, Self::Write { in_guest, .. } if in_guest.restore == Restore::Replace)
    }
}

/// A file or folder of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// Its path in the guest.
    pub path: String,
    /// What a preview has seen of it. Without one, whether it is there is known only once the checkpoint is mounted.
    pub seen: Option<Seen>,
}

/// What a preview has seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// The ZVM's path: it names the partition.
    pub at: String,
    /// Whether it is a folder.
    pub is_folder: bool,
    /// Its size, of a file.
    pub bytes: Option<u64>,
}

/// What is at the place that a plan changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Present {
    /// Nothing; what appears there later is not overwritten.
    Nothing,
}

impl Plan {
    /// Whether the decision is about looking into the checkpoint only.
    #[must_use]
    pub fn is_preview(&self) -> bool {
        matches!(self.decides, Decides::Preview { .. })
    }

    /// Whether it is a preview for a comparison.
    #[must_use]
    pub fn is_comparison(&self) -> bool {
        matches!(
            self.decides,
            Decides::Preview {
                purpose: Purpose::Comparison,
                ..
            }
        )
    }

    /// What happens; nothing for a preview.
    #[must_use]
    pub fn effects(&self) -> &[Effect] {
        match &self.decides {
            Decides::Preview { .. } => &[],
            Decides::Effects { effects } => effects,
        }
    }

    /// Whether a preview has looked for what is placed.
    #[must_use]
    pub fn was_previewed(&self) -> bool {
        self.effects()
            .iter()
            .any(|effect| effect.source().seen.is_some())
    }

    /// SHA-256 of the canonical form, hexadecimal: what a person confirms.
    ///
    /// # Errors
    /// `state`: it has no canonical form.
    pub fn digest(&self) -> Result<String, Error> {
        Ok(digest_of(&self.body()?))
    }

    /// The canonical form, without its first line: JSON, each member in the order of declaration, no white space.
    pub(crate) fn body(&self) -> Result<String, Error> {
        serde_json::to_string(self)
            .map_err(|error| Error::new(ErrorCode::State, format!("the plan has no form: {error}")))
    }

    /// The same for two plans that differ in their names and times alone, or in the suffix that Zerto puts on a tag.
    pub(crate) fn substance(&self) -> Result<String, Error> {
        let mut bare = self.clone();
        bare.id.clear();
        bare.checkpoint_age.clear();
        bare.tag = self
            .tag
            .as_deref()
            .map(|tag| tag::without_suffix(tag).to_owned());
        if let Decides::Effects { effects } = &mut bare.decides {
            for effect in effects {
                if let Effect::Write { looked_at, .. } = effect {
                    *looked_at = Timestamp::UNIX_EPOCH;
                }
            }
        }
        bare.made_at = Timestamp::UNIX_EPOCH;
        bare.expires_at = Timestamp::UNIX_EPOCH;
        bare.digest()
    }

    /// What differs from `self` in a plan that was made of the same later, in words. None: nothing that matters.
    pub(crate) fn changed_in(&self, later: &Self) -> Option<String> {
        let tag = |plan: &Self| {
            plan.tag
                .as_deref()
                .map(|tag| tag::without_suffix(tag).to_owned())
        };
        let differs = [
            ("the ZVM", self.zvm != later.zvm),
            (
                "the VM",
                (&self.vm, &self.vm_identifier) != (&later.vm, &later.vm_identifier),
            ),
            (
                "the VPG",
                (&self.vpg, &self.vpg_identifier) != (&later.vpg, &later.vpg_identifier),
            ),
            (
                "the checkpoint",
                (&self.checkpoint, &self.checkpoint_time)
                    != (&later.checkpoint, &later.checkpoint_time),
            ),
            ("the checkpoint's tag", tag(self) != tag(later)),
            (
                "until when the checkpoint is expected to stay in the journal",
                self.expected_until != later.expected_until,
            ),
            ("what would be done", self.decides != later.decides),
        ];
        let what: Vec<_> = differs
            .into_iter()
            .filter_map(|(what, differs)| differs.then_some(what))
            .collect();
        (!what.is_empty()).then(|| what.join(", "))
    }
}

pub(crate) fn digest_of(body: &str) -> String {
    let hash = Sha256::new()
        .chain_update(FORM)
        .chain_update(body)
        .finalize();
    text::hex(&hash)
}

/// As much of a digest as a person compares.
#[must_use]
pub fn shown_digest(digest: &str) -> String {
    digest.chars().take(DIGEST_SHOWN).collect()
}

/// An id that can be typed; two plans can't have the same.
pub(crate) fn new_id() -> String {
    let mut random = Uuid::new_v4().as_u128();
    let mut id = String::from("p-");
    for _ in 0..ID_LEN {
        let letter = usize::try_from(random % 32).unwrap_or_default();
        id.extend(ID_ALPHABET.get(letter).copied().map(char::from));
        random /= 32;
    }
    id
}

#[cfg(test)]
mod tests;
