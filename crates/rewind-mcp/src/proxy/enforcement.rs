//! What the proxy asks of the domain: these calls of [`Enforcer`], and nothing else.
use std::future::Future;

use rewind_core::{
    Call, Error, Receipt,
    enforce::{Asker, Enforcer, Guarded, ListedCall, ObservedCall, Outcome, ToolStanding, Verdict},
};
use serde::Serialize;
use serde_json::Value;

/// [`Enforcer`] as the proxy sees it. A trait so that tests can put a scripted one in its place, which stops a guard
/// at a moment of their choice.
pub trait Enforcement: Clone + Send + Sync + 'static {
    /// A listed call, not guarded yet.
    type Listed: Send + 'static;
    /// A guarded call.
    type Guarded: Send + 'static;
    /// See [`Enforcer::may_be_listed`].
    fn may_be_listed(&self, server: Option<&str>, tool: &str) -> bool;
    /// See [`Enforcer::has_entries_for`].
    fn has_entries_for(&self, server: &str) -> bool;
    /// See [`Enforcer::verdict`].
    fn verdict(&self, call: &ObservedCall<'_>) -> Ruling<Self::Listed>;
    /// See [`Enforcer::refused`].
    fn refused(&self, call: &ObservedCall<'_>, asker: Asker<'_>, error: &Error) {
        let _ = (call, asker, error);
    }
    /// See [`Enforcer::guard`].
    fn guard(
        &self,
        listed: Self::Listed,
        call: &Call,
    ) -> impl Future<Output = Result<Self::Guarded, Error>> + Send;
    /// See [`Enforcer::outcome`].
    fn outcome(&self, guarded: Self::Guarded, outcome: Outcome);
    /// See [`Enforcer::flush`].
    fn flush(&self);
    /// See [`Enforcer::tool_seen`].
    fn tool_seen(&self, server: Option<&str>, definition: &Value) -> ToolStanding;
    /// What a guarded call's result carries back to the client.
    fn evidence(guarded: &Self::Guarded) -> Evidence<'_>;
}

/// [`Verdict`], with the listed call's type left open.
#[derive(Debug)]
pub enum Ruling<L> {
    /// Passes untouched.
    Unlisted,
    /// Has to be guarded first.
    Listed(L),
    /// Not forwarded.
    Refused(Error),
}

/// The part of a guarded call that its client gets to see.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Evidence<'a> {
    /// One per VM.
    pub receipts: &'a [Receipt],
    /// An earlier pin was used.
    pub reused: bool,
    /// What a person should know.
    pub warnings: &'a [String],
}

impl Enforcement for Enforcer {
    type Listed = Box<ListedCall>;
    type Guarded = Guarded;

    fn may_be_listed(&self, server: Option<&str>, tool: &str) -> bool {
        self.may_be_listed(server, tool)
    }

    fn has_entries_for(&self, server: &str) -> bool {
        self.has_entries_for(server)
    }

    fn verdict(&self, call: &ObservedCall<'_>) -> Ruling<Self::Listed> {
        match self.verdict(call) {
            Verdict::Unlisted => Ruling::Unlisted,
            Verdict::Listed(listed) => Ruling::Listed(listed),
            Verdict::Refused(error) => Ruling::Refused(error),
        }
    }

    fn refused(&self, call: &ObservedCall<'_>, asker: Asker<'_>, error: &Error) {
        self.refused(call, asker, error);
    }

    async fn guard(&self, listed: Self::Listed, call: &Call) -> Result<Guarded, Error> {
        self.guard(*listed, call).await
    }

    fn outcome(&self, guarded: Guarded, outcome: Outcome) {
        self.outcome(guarded, outcome);
    }

    fn flush(&self) {
        self.flush();
    }

    fn tool_seen(&self, server: Option<&str>, definition: &Value) -> ToolStanding {
        self.tool_seen(server, definition)
    }

    fn evidence(guarded: &Guarded) -> Evidence<'_> {
        Evidence {
            receipts: &guarded.receipts,
            reused: guarded.reused,
            warnings: &guarded.warnings,
        }
    }
}
