//! What a hook needs of enforcement: the seam between harnesses and the catalog.
use super::watch::TRY_AGAIN;
use rewind_core::{
    Call, Error, ErrorCode, Receipt, Rewind,
    catalog::{self, Catalog, Lookup},
    config::Config,
    enforce::{self, Asker, Enforcer, ListedCall, ObservedCall, Outcome},
};
use serde_json::Value;
use std::cell::OnceCell;
use tokio_util::sync::CancellationToken;

/// What the catalog says of a call.
#[derive(Debug)]
pub enum Verdict<L> {
    /// Not listed: it passes.
    Unlisted,
    /// Has to be guarded first.
    Listed(L),
    /// Must not run.
    Refused(Error),
}

/// A guarded call.
#[derive(Debug)]
pub struct Pinned {
    /// One per VM.
    pub receipts: Vec<Receipt>,
    /// What a person should know, such as a broken catalog file.
    pub warnings: Vec<String>,
}

/// Who makes a call, and which.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The agent, for the tag.
    pub agent: String,
    /// The change id where the call has none: one per session of the harness.
    pub change: String,
    /// The harness's id of this call.
    pub correlation: Option<String>,
}

/// Decides about calls. Implemented by the catalog and its enforcer; tests have a scripted one.
pub trait Gate {
    /// A listed call, ready to be guarded.
    type Listed;
    /// False means certainly unlisted.
    fn may_be_listed(&self, server: Option<&str>, tool: &str) -> bool;
    /// Without the ZVM.
    fn verdict(&self, call: &ObservedCall<'_>) -> Verdict<Self::Listed>;
    /// Writes down that a call was refused; nothing depends on that.
    fn refused(&self, call: &ObservedCall<'_>, caller: &Caller, error: &Error) {
        let _ = (call, caller, error);
    }
    /// Guards every VM of the call. Its outcome stays open for the post event.
    ///
    /// # Errors
    ///
    /// Not every VM was guarded: the call must not run.
    fn guard(&self, listed: Self::Listed, caller: &Caller) -> Result<Pinned, Error>;
    /// Records how a call ended that an earlier process guarded. A call that was not guarded is passed over.
    ///
    /// # Errors
    ///
    /// It could not be recorded.
    fn outcome(
        &self,
        call: &ObservedCall<'_>,
        caller: &Caller,
        outcome: Outcome,
    ) -> Result<(), Error>;
}

/// The catalog of a configuration. State, runtime, TLS and ZVM are reached for only where the catalog names the tool.
pub(super) struct CatalogGate {
    config: Config,
    catalog: Catalog,
    enforcer: OnceCell<Enforcer>,
    cancel: CancellationToken,
}

impl CatalogGate {
    pub fn open(config: Config, cancel: CancellationToken) -> Result<Self, Error> {
        // Who takes the key away would disarm every hook.
        let Some(file) = &config.catalog else {
            return Err(Error::new(
                ErrorCode::Configuration,
                format!(
                    "{}: the configuration names no catalog, so nothing says which calls have to be guarded",
                    config.file.display()
                ),
            )
            .with_next(
                "Set `catalog` in it to the path of a catalog; where nothing is to be guarded any more, take the hook out with \
                 `zerto-rewind uninstall`.",
            ));
        };
        let catalog = Catalog::load(file)?;
        Ok(Self {
            config,
            catalog,
            enforcer: OnceCell::new(),
            cancel,
        })
    }

    fn enforcer(&self) -> Result<&Enforcer, Error> {
        if let Some(enforcer) = self.enforcer.get() {
            return Ok(enforcer);
        }
        let enforcer = Enforcer::of_hook(Rewind::new(self.config.clone())?)?;
        Ok(self.enforcer.get_or_init(|| enforcer))
    }
}

impl Gate for CatalogGate {
    type Listed = Box<ListedCall>;

    fn may_be_listed(&self, server: Option<&str>, tool: &str) -> bool {
        let any = catalog::Call {
            server,
            tool,
            arguments: &Value::Null,
        };
        !matches!(self.catalog.lookup(&any), Lookup::Unlisted)
    }

    fn verdict(&self, call: &ObservedCall<'_>) -> Verdict<Self::Listed> {
        match self.enforcer().map(|enforcer| enforcer.verdict(call)) {
            Ok(enforce::Verdict::Unlisted) => Verdict::Unlisted,
            Ok(enforce::Verdict::Listed(listed)) => Verdict::Listed(listed),
            Ok(enforce::Verdict::Refused(error)) | Err(error) => Verdict::Refused(error),
        }
    }

    fn refused(&self, call: &ObservedCall<'_>, caller: &Caller, error: &Error) {
        // Without an enforcer there is no state to write to.
        if let Some(enforcer) = self.enforcer.get() {
            let asker = Asker {
                client: &caller.agent,
                change: &caller.change,
            };
            enforcer.refused(call, asker, error);
            enforcer.flush();
        }
    }

    fn guard(&self, listed: Self::Listed, caller: &Caller) -> Result<Pinned, Error> {
        let call = Call {
            progress: None,
            cancel: self.cancel.clone(),
            caller: caller.agent.clone(),
            session_change_id: caller.change.clone(),
            seat: caller.change.clone(),
        };
        let enforcer = self.enforcer()?;
        let runtime = crate::commands::run::runtime()?;
        let guarded =
            runtime.block_on(enforcer.guard_known(*listed, &call, caller.correlation.as_deref()));
        // A process that is about to end waits for what it has told.
        enforcer.flush();
        let guarded = guarded.map_err(|error| match error.code {
            // Nothing else cancels a hook.
            ErrorCode::Cancelled => Error {
                message: format!("the hook's own deadline was near: {}", error.message),
                ..error
            }
            .with_next(TRY_AGAIN),
            _ => error,
        })?;
        let pinned = Pinned {
            receipts: guarded.receipts.clone(),
            warnings: [enforcer.take_warnings(), guarded.warnings.clone()].concat(),
        };
        enforcer.hand_over(guarded, caller.correlation.as_deref());
        Ok(pinned)
    }

    fn outcome(
        &self,
        call: &ObservedCall<'_>,
        caller: &Caller,
        outcome: Outcome,
    ) -> Result<(), Error> {
        self.enforcer()?
            .outcome_of(call, caller.correlation.as_deref(), outcome)
    }
}
