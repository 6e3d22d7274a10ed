//! Enforcement: what stands between a listed tool call and its server. Used by the proxy and the hooks.
//!
//! A call passes untouched, is refused, or is guarded first; the catalog and the person's stop decide, without the ZVM. What fails on
//! the way to a guard refuses the call.

mod listing;
mod outcome;
mod tools;

pub use tools::{Change, ChangedTool};

pub(crate) use listing::{Given, Listing, denied, name, record, refused};
pub(crate) use tools::{accept_tool, changed_tools, check as check_tool};

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::Value;
use uuid::Uuid;

use crate::{
    Call, Error, ErrorCode, Receipt, Rewind,
    catalog::{self, Current, Entry, LiveCatalog, Lookup},
    guard::{
        Covered, Guarding, Sharing, all_or_failed, at_once, given, pinned, refuse_what_can_not_work,
    },
    state::{
        Asked, Refusal, State,
        calls::{NewCall, SeenBy},
    },
    stop::Stops,
    text::remembered,
};
use outcome::{OpenCall, Recorder};
use tools::Seen;

/// What to do about a call that its entry cannot be followed for.
const UNUSABLE: &str = "Call the tool again with arguments that its catalog entry can be followed for, or have a person correct the entry. \
                        The call was not made.";

/// A tool call as somebody else's client makes it.
#[derive(Clone, Copy, Debug)]
pub struct ObservedCall<'a> {
    /// The MCP server's name, or `builtin` for a harness's own tools; None while unknown (then every entry's `server` matches).
    pub server: Option<&'a str>,
    /// The tool's name.
    pub tool: &'a str,
    /// Its arguments, normally an object.
    pub arguments: &'a Value,
}

/// Who makes a call, where it was refused.
#[derive(Clone, Copy, Debug)]
pub struct Asker<'a> {
    /// The MCP client as it named itself; a harness's agent.
    pub client: &'a str,
    /// The change id of its session.
    pub change: &'a str,
}

/// What the catalog says of a call. Made without the ZVM.
#[derive(Debug)]
pub enum Verdict {
    /// Not listed (or `when` doesn't hold, or a `hosts` rule found no host): passes untouched.
    Unlisted,
    /// Has to be guarded first.
    Listed(Box<ListedCall>),
    /// Refused: `mode = "deny"`, no VM found by the rule, stopped, changed tool, …
    Refused(Error),
}

/// A listed call with its VMs, action and change id; see [`Enforcer::guard`]. Nothing has been done for it yet.
#[derive(Debug)]
pub struct ListedCall {
    listing: Listing,
    warnings: Vec<String>,
}

/// A guarded call: it may be forwarded now. Its outcome is to be told once, by [`Enforcer::outcome`]; dropped without: `Lost`.
#[derive(Debug)]
pub struct Guarded {
    /// One per VM; none where the entry lets calls pass on VMs that no VPG protects, and there are no others.
    pub receipts: Vec<Receipt>,
    /// True where an earlier pin was used (`reuse`, or a hook and the proxy that saw the same call).
    pub reused: bool,
    /// For the receipt: e.g. that the catalog file is broken and the last good one is in force.
    pub warnings: Vec<String>,
    open: OpenCall,
}

/// How a guarded call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// With a result.
    Ok,
    /// With a result that says of itself that it is an error.
    IsError,
    /// With an error of the protocol.
    ProtocolError,
    /// Its end is not known.
    Lost,
    /// It never reached its server.
    NotForwarded,
}

impl Outcome {
    /// The name under which it is remembered.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::IsError => "is_error",
            Self::ProtocolError => "protocol_error",
            Self::Lost => "lost",
            Self::NotForwarded => "not_forwarded",
        }
    }
}

/// How a listed tool stands to what was remembered of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolStanding {
    /// Not listed, or as remembered, or seen for the first time and remembered now.
    Fine,
    /// Description or annotations changed: a warning.
    Described(String),
    /// Name or input schema changed: its calls are refused until a person accepts it (`zerto-rewind catalog accept`).
    Changed(String),
}

/// Cheap to clone; the catalog behind it follows its file.
///
/// One enforcer sees a call once: what it sees again is another call, and gets a pin of its own. A hook's and a proxy's may see the
/// same call, and take one pin between them. Dropping the last clone waits until the outcomes are written down.
#[derive(Clone, Debug)]
pub struct Enforcer {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    rewind: Rewind,
    catalog: LiveCatalog,
    stop: Stops,
    seen_by: SeenBy,
    /// This enforcer's name in the state.
    observer: String,
    recorder: Arc<Recorder>,
    /// A connection of its own: what only looks must not wait behind a write that waits for another process.
    looks: State,
    /// The input schemas that this enforcer's servers showed it.
    seen: Mutex<HashMap<(Option<String>, String), String>>,
}

impl Enforcer {
    /// As [`Rewind::take_warnings`].
    #[must_use]
    pub fn take_warnings(&self) -> Vec<String> {
        self.inner.rewind.take_warnings()
    }

    /// For a proxy. Opens the configured catalog; neither the state nor the ZVM is touched before a call is listed.
    ///
    /// # Errors
    /// `configuration` where no catalog is configured; `catalog_unusable` where there is no good one to start with.
    pub fn new(rewind: Rewind) -> Result<Self, Error> {
        Self::seeing(rewind, SeenBy::Proxy)
    }

    /// For one event of a harness, as [`new`](Self::new).
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn of_hook(rewind: Rewind) -> Result<Self, Error> {
        Self::seeing(rewind, SeenBy::Hook)
    }

    fn seeing(rewind: Rewind, seen_by: SeenBy) -> Result<Self, Error> {
        let config = rewind.config();
        let Some(file) = &config.catalog else {
            return Err(Error::new(
                ErrorCode::Configuration,
                "the configuration names no `catalog`, so nothing says which calls have to be guarded",
            )
            .with_next("Set `catalog` in the configuration to the path of a catalog."));
        };
        let catalog = LiveCatalog::open(file)?;
        let recorder = Recorder::new(rewind.core.state.clone());
        let inner = Inner {
            catalog,
            stop: Stops::of(&config.state_dir),
            seen_by,
            observer: Uuid::new_v4().simple().to_string(),
            recorder: Arc::new(recorder),
            looks: State::new(&config.state_dir),
            seen: Mutex::default(),
            rewind,
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// A cheap look at the name alone: false means certainly unlisted.
    #[must_use]
    pub fn may_be_listed(&self, server: Option<&str>, tool: &str) -> bool {
        self.inner.catalog.now().catalog.names(given(server), tool)
    }

    /// Whether any entry of the catalog is for this server. Where none is, everything passes.
    #[must_use]
    pub fn has_entries_for(&self, server: &str) -> bool {
        let current = self.inner.catalog.now();
        current
            .catalog
            .entries()
            .iter()
            .any(|entry| entry.is_for(server))
    }

    /// What is to be done about a call. No ZVM, no waiting.
    #[must_use]
    pub fn verdict(&self, call: &ObservedCall<'_>) -> Verdict {
        let current = self.inner.catalog.now();
        let call = looked_up(call);
        let listed = match current.catalog.lookup(&call) {
            Lookup::Unlisted | Lookup::DoesNotApply(_) => return Verdict::Unlisted,
            Lookup::Denied(entry) => Err(denied(entry, &call)),
            Lookup::Listed(entry) => self.listed(&current, entry, &call),
        };
        match listed {
            Ok(listed) => Verdict::Listed(Box::new(listed)),
            Err(error) => Verdict::Refused(error),
        }
    }

    fn listed(
        &self,
        current: &Current,
        entry: &Entry,
        call: &catalog::Call<'_>,
    ) -> Result<ListedCall, Error> {
        self.inner.stop.check()?;
        let remembered = self.inner.looks.tool_remembered(call.server, call.tool)?;
        check_tool(&remembered, self.seen(call.server, call.tool).as_deref())?;
        let listing = Listing::of(entry, call, Given::default())
            .map_err(|error| refused(&error, UNUSABLE))?;
        let broken = current.broken.as_ref().map(|mistakes| {
            format!(
                "the catalog file has mistakes, and the last good catalog is in force until they are mended: {mistakes}"
            )
        });
        Ok(ListedCall {
            listing,
            warnings: broken.into_iter().collect(),
        })
    }

    /// Writes down that a call was not let through, and why: once for each call, by the one who refuses it. Does not wait for that.
    /// What [`guard`](Self::guard) refuses, it writes down itself.
    pub fn refused(&self, call: &ObservedCall<'_>, asker: Asker<'_>, error: &Error) {
        let config = self.inner.rewind.config();
        self.inner.recorder.refused(Refusal {
            zvm: config.zvm(),
            asked: Asked::Call,
            code: error.code,
            vm: None,
            vm_identifier: None,
            plan: None,
            agent: config.agent.clone(),
            client: remembered(asker.client),
            change: remembered(asker.change),
            call: Some(listing::record(&looked_up(call))),
        });
    }

    /// Guards every VM of the call (or refuses).
    ///
    /// # Errors
    /// `stopped`; those of [`Rewind::guard`], with what was pinned. The call must not be made.
    pub async fn guard(&self, listed: ListedCall, call: &Call) -> Result<Guarded, Error> {
        self.guard_known(listed, call, None).await
    }

    /// As [`guard`](Self::guard), of a call that a harness has an id for: hooks that are told the same one see the same call.
    ///
    /// # Errors
    /// As [`guard`](Self::guard).
    pub async fn guard_known(
        &self,
        listed: ListedCall,
        call: &Call,
        correlation: Option<&str>,
    ) -> Result<Guarded, Error> {
        let ListedCall {
            listing,
            mut warnings,
        } = listed;
        let inner = &*self.inner;
        let core = &*inner.rewind.core;
        let guarding = Guarding::new(core, call);
        let begun = async {
            inner.stop.check()?;
            let intent = listing.intent(core, None, call)?;
            let vms = guarding.find_all(&listing.vms, listing.unprotected).await?;
            vms.found.iter().try_for_each(refuse_what_can_not_work)?;
            Ok((intent, vms))
        };
        let (intent, vms) = begun
            .await
            .inspect_err(|error| inner.recorder.refused(listing.refusal(core, call, error)))?;
        warnings.extend(vms.not_protected.iter().map(|vm| {
            let entry = &listing.entry;
            format!("no VPG protects {vm}, so there is no pin of it; the catalog entry {entry} lets that pass")
        }));
        let new = NewCall {
            zvm: core.config.zvm(),
            observer: inner.observer.clone(),
            seen_by: inner.seen_by,
            correlation: correlation.map(str::to_owned),
            call: listing.call.clone(),
            agent: intent.agent.clone(),
            change: intent.change.clone(),
        };
        let id = core.with_state(move |state| state.call_begun(&new)).await?;
        let mut open = OpenCall::new(Arc::clone(&inner.recorder), id);
        let sharing = Sharing {
            guarding: &guarding,
            id,
            call: &listing.call,
            intent: &intent,
            reuse: listing.reuse,
        };
        let covered = at_once(&vms.found, |found| sharing.cover(found)).await;
        let covered = all_or_failed(covered, |covered| &covered.receipt)?;
        let reused = covered.iter().any(|covered| covered.reused);
        let receipts: Vec<Receipt> = covered.into_iter().map(Covered::into_receipt).collect();
        inner
            .stop
            .check()
            .map_err(|error| error.with_done(receipts.iter().flat_map(pinned)))?;
        open.may_be_made();
        Ok(Guarded {
            receipts,
            reused,
            warnings,
            open,
        })
    }

    /// Records how a guarded call ended. Does not wait for it to be written down.
    pub fn outcome(&self, guarded: Guarded, outcome: Outcome) {
        guarded.open.end(outcome);
    }

    /// Waits until every outcome that was told is written down: before a process ends in which others may still hold this enforcer.
    pub fn flush(&self) {
        self.inner.recorder.flush();
    }

    /// Leaves the outcome open for a later process: a hook before a call is over when the call begins. `correlation` is the harness's id of
    /// the call.
    pub fn hand_over(&self, guarded: Guarded, correlation: Option<&str>) {
        guarded.open.hand_over(correlation);
    }

    /// The outcome of a call that an earlier process handed over, found by `correlation`, else by tool and digest of the arguments.
    /// One that was not guarded, or whose outcome was told, is passed over.
    ///
    /// # Errors
    /// `state`: it could not be recorded.
    pub fn outcome_of(
        &self,
        call: &ObservedCall<'_>,
        correlation: Option<&str>,
        outcome: Outcome,
    ) -> Result<(), Error> {
        let core = &*self.inner.rewind.core;
        let call = listing::record(&looked_up(call));
        Ok(core
            .state
            .handed_over_ended(&core.config.zvm(), &call, correlation, outcome)?)
    }

    /// A server's own description of a tool, as its `tools/list` gave it.
    #[must_use]
    pub fn tool_seen(&self, server: Option<&str>, definition: &Value) -> ToolStanding {
        let server = given(server);
        let Some(seen) = Seen::read(server, definition) else {
            return ToolStanding::Fine;
        };
        if !self.may_be_listed(server, seen.tool()) {
            return ToolStanding::Fine;
        }
        let key = (server.map(str::to_owned), seen.tool().to_owned());
        self.lock_seen()
            .insert(key, seen.schema_sha256().to_owned());
        seen.stand(&self.inner.rewind.core.state)
    }

    fn seen(&self, server: Option<&str>, tool: &str) -> Option<String> {
        let key = (server.map(str::to_owned), tool.to_owned());
        self.lock_seen().get(&key).cloned()
    }

    fn lock_seen(&self) -> std::sync::MutexGuard<'_, HashMap<(Option<String>, String), String>> {
        self.inner
            .seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn looked_up<'a>(call: &ObservedCall<'a>) -> catalog::Call<'a> {
    catalog::Call {
        server: given(call.server),
        tool: call.tool,
        arguments: call.arguments,
    }
}
