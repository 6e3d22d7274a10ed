//! A plan as the state has it: what was decided, and whether it was carried out.
use super::{Plan, digest_of};
use crate::{Error, ErrorCode, RecoverRequest, state::PlanRow, text};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

/// A clock that is corrected while a plan waits may go back so far.
const SET_BACK: SignedDuration = SignedDuration::from_mins(1);

/// What a human said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// They agreed to exactly this.
    Approved,
    /// They said no.
    Declined,
    /// They closed the form.
    Cancelled,
    /// The form came back without the VM's name in it.
    Mistyped,
    /// The client that shows forms answered this one with an error.
    Unanswered,
}

/// How they were asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// By a form of the MCP client.
    Form,
    /// By `zerto-rewind approve` or `deny`.
    Approve,
    /// By the argument `confirmed` alone: nobody was.
    Argument,
    /// By the command that carries it out.
    Terminal,
}

/// How a plan ended that was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanEnd {
    /// All of it was done.
    Done,
    /// Some of its paths were not recovered, or not all that is in them.
    NotAll,
    /// It failed.
    Failed,
    /// Its process ended before it did.
    Interrupted,
}

/// A decision. It is final.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Decision {
    /// What was decided.
    pub verdict: Verdict,
    /// How the human was asked.
    pub how: How,
    /// Who, as far as it is known: the user at the terminal, or the MCP client that showed the form.
    pub by: String,
    /// When, by this host's clock.
    pub at: Timestamp,
}

macro_rules! names {
    ($type:ty: $($variant:ident $name:literal),+) => {
        impl $type {
            pub(crate) fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            pub(crate) fn parse(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}

names!(Verdict: Approved "approved", Declined "declined", Cancelled "cancelled", Mistyped "mistyped", Unanswered "unanswered");
names!(PlanEnd: Done "done", NotAll "not_all", Failed "failed", Interrupted "interrupted");
names!(How: Form "form", Approve "approve", Argument "argument", Terminal "terminal");

impl std::fmt::Display for PlanEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Done => "was carried out",
            Self::NotAll => "was carried out, and not all of it was recovered",
            Self::Failed => "was begun, and failed",
            Self::Interrupted => "was begun, and its process ended before it was done",
        })
    }
}

impl std::fmt::Display for Decision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let verdict = match self.verdict {
            Verdict::Mistyped => {
                "declined, as the form came back without the VM's name as it was shown"
            }
            Verdict::Cancelled => "declined, as the form was closed",
            Verdict::Unanswered => "declined, as the MCP client answered the form with an error",
            other => other.as_str(),
        };
        write!(f, "{verdict}, by {} at {:.0}", self.by, self.at)
    }
}

/// A plan, what was decided about it, and whether it was begun.
#[derive(Clone, Debug)]
pub struct KnownPlan {
    /// The plan.
    pub plan: Plan,
    /// Its digest.
    pub digest: String,
    /// The MCP client as it named itself, or the program that asked for it.
    pub asked_by: Option<String>,
    /// What was decided.
    pub decision: Option<Decision>,
    /// It was begun: it is not begun again.
    pub begun: bool,
    /// Where it was begun and has ended: how.
    pub end: Option<PlanEnd>,
    /// It can't be decided on or carried out any more.
    pub expired: bool,
    /// It was agreed to at a terminal before the approver's passphrase was set or removed: under other rules, and perhaps by an agent's
    /// shell. That does not count any more.
    pub outdated: bool,
}

impl KnownPlan {
    /// A plan that was just made.
    pub(crate) fn new(plan: Plan, asked_by: Option<String>) -> Result<Self, Error> {
        Ok(Self {
            digest: plan.digest()?,
            plan,
            asked_by,
            decision: None,
            begun: false,
            end: None,
            expired: false,
            outdated: false,
        })
    }

    /// It was begun, and has not ended as far as is known.
    pub(crate) fn is_open(&self) -> bool {
        self.begun && self.end.is_none()
    }

    /// What the state has, if it is what was written down.
    pub(crate) fn read(row: PlanRow, now: Timestamp) -> Result<Self, Error> {
        let changed = || {
            Error::new(
                ErrorCode::State,
                "a plan in the state is not as it was written down",
            )
            .with_next("Find out who changed the state database. Ask again for a new plan.")
        };
        if digest_of(&row.body) != row.digest {
            return Err(changed());
        }
        let plan: Plan = serde_json::from_str(&row.body).map_err(|_| changed())?;
        let decided = row.decision.as_ref().map(|(_, digest)| digest);
        if decided.is_some_and(|digest| *digest != row.digest) {
            return Err(changed());
        }
        Ok(Self {
            digest: row.digest,
            asked_by: row.client,
            decision: row.decision.map(|(decision, _)| decision),
            begun: row.begun,
            end: row.end,
            // A clock that was set back does not lengthen its life.
            expired: now >= plan.expires_at || now.duration_since(plan.made_at) < -SET_BACK,
            outdated: false,
            plan,
        })
    }

    /// With what a passphrase that was `changed` then makes of the decision.
    pub(crate) fn judged(mut self, changed: Option<Timestamp>) -> Self {
        let said = self.decision.as_ref().filter(|decision| {
            decision.verdict == Verdict::Approved
                && matches!(decision.how, How::Approve | How::Terminal)
        });
        let outdated = said.is_some_and(|said| changed.is_some_and(|changed| changed > said.at));
        self.outdated = outdated && !self.begun;
        self
    }

    /// `plan_changed`, where what was agreed to does not count any more.
    pub(super) fn still_counts(&self) -> Result<(), Error> {
        if !self.outdated {
            return Ok(());
        }
        let message = format!(
            "plan {} was agreed to before the approver's passphrase was set or removed, so that does not count any more",
            self.plan.id
        );
        Err(Error::new(ErrorCode::PlanChanged, message))
    }

    /// Whether it was approved and can be carried out; false while nobody has decided.
    ///
    /// # Errors
    /// `plan_used`, `declined`, `plan_expired`, `plan_changed` where it was agreed to under other rules. An agreement to a preview does not expire with its plan: it holds for a time of its own.
    pub fn approved(&self) -> Result<bool, Error> {
        if let Some(used) = self.used() {
            return Err(used);
        }
        self.still_counts()?;
        match &self.decision {
            Some(decision) if decision.verdict != Verdict::Approved => Err(self.declined(decision)),
            Some(_) if self.plan.is_preview() => Ok(true),
            _ if self.expired => Err(self.expired_error()),
            decision => Ok(decision.is_some()),
        }
    }

    /// `plan_used`, where it was begun.
    pub(crate) fn used(&self) -> Option<Error> {
        let id = &self.plan.id;
        let how = match (self.begun, self.end) {
            (false, _) => return None,
            (true, Some(end)) => format!("plan {id} {end}; none is used twice"),
            (true, None) => format!("plan {id} is being carried out already"),
        };
        Some(Error::new(ErrorCode::PlanUsed, how))
    }

    /// Whether a recovery can come of it: by what it does, or by what a look finds.
    ///
    /// # Errors
    /// `plan_altered`: it is for a comparison.
    pub fn is_for_recovery(&self) -> Result<(), Error> {
        match self.plan.is_comparison() {
            false => Ok(()),
            true => Err(Error::new(
                ErrorCode::PlanAltered,
                format!(
                    "plan {} only agrees to look into checkpoint {} for a comparison: nothing is recovered by it",
                    self.plan.id, self.plan.checkpoint
                ),
            )
            .with_next(
                "Compare with zerto_diff_file, or ask for the recovery without a plan id: that makes a plan of its own.",
            )),
        }
    }

    /// Whether a call asks for what the plan was made for.
    ///
    /// # Errors
    /// `plan_altered`.
    pub fn asked_as(&self, asked: &RecoverRequest) -> Result<(), Error> {
        if self.plan.asked == *asked {
            return Ok(());
        }
        Err(Error::new(
            ErrorCode::PlanAltered,
            format!(
                "plan {} was made for other arguments than this call has",
                self.plan.id
            ),
        ))
    }

    pub(crate) fn declined(&self, decision: &Decision) -> Error {
        Error::new(
            ErrorCode::Declined,
            format!("plan {}: {decision}; that is final", self.plan.id),
        )
    }

    pub(crate) fn expired_error(&self) -> Error {
        Error::new(
            ErrorCode::PlanExpired,
            format!(
                "plan {} expired at {:.0}",
                self.plan.id, self.plan.expires_at
            ),
        )
    }

    pub(crate) fn decided_already(&self, decision: &Decision) -> Error {
        Error::new(
            ErrorCode::PlanDecided,
            format!("plan {} was decided already: {decision}", self.plan.id),
        )
    }
}

/// No plan of this id can be used here.
pub(crate) fn foreign(id: &str) -> Error {
    Error::new(
        ErrorCode::PlanForeign,
        format!(
            "there is no plan {} of this user on this ZVM",
            text::display(id, 40)
        ),
    )
}
