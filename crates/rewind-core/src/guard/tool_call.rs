//! The guard that an agent asks for before it calls a tool, if the catalog lists the tool.
//!
//! The action in the tag is the caller's own word for what it is about to do; the entry's template stands in where the caller
//! has none. A change id of the request wins over the entry's rule, and both win over the session's.
use super::{
    GuardDecision, GuardRequest, Receipt, ToolCall,
    run::{Guarding, refuse_what_can_not_work},
    tag::{Intent, given},
};
use crate::{
    Call, Done, Error, ErrorCode,
    catalog::{self, Catalog, CatalogError, Entry, Lookup, Mode, RuleError, Skipped, Unprotected},
    protection::Found,
    rewind::Core,
    state::{self, arguments_digest},
    text,
};
use futures::future::join_all;
use serde_json::Value;

const SHOWN_MAX_LEN: usize = 100;

pub(crate) async fn guard_tool_call(
    core: &Core,
    request: ToolCall,
    call: &Call,
) -> Result<GuardDecision, Error> {
    if request.tool.trim().is_empty() {
        return Err(Error::new(ErrorCode::InvalidArgument, "`tool` is empty")
            .with_next("Name the tool that is about to be called."));
    }
    let catalog = core.catalog().await?;
    let arguments = request.arguments.as_ref().unwrap_or(&Value::Null);
    let looked_up = catalog::Call {
        server: given(request.server.as_deref()),
        tool: &request.tool,
        arguments,
    };
    let entry = match catalog.lookup(&looked_up) {
        Lookup::Unlisted => {
            return Ok(pass(format!(
                "the catalog does not list {}",
                name(&request)
            )));
        }
        Lookup::DoesNotApply(skipped) if request.arguments.is_some() => {
            return Ok(pass(reasons(&request, &skipped)));
        }
        // Without the arguments nobody can tell that an entry does not apply, so the first that names the tool does.
        Lookup::DoesNotApply(skipped) => match skipped.first().map(|skipped| skipped.entry) {
            Some(entry) if entry.mode() == Mode::Deny => return Err(denied(&request, entry)),
            Some(entry) => entry,
            None => {
                return Ok(pass(format!(
                    "the catalog does not list {}",
                    name(&request)
                )));
            }
        },
        Lookup::Denied(entry) => return Err(denied(&request, entry)),
        Lookup::Listed(entry) => entry,
    };
    Listed {
        core,
        request: &request,
        entry,
        looked_up,
        arguments,
    }
    .guard(call)
    .await
}

/// A call that an entry lists.
struct Listed<'a> {
    core: &'a Core,
    request: &'a ToolCall,
    entry: &'a Entry,
    looked_up: catalog::Call<'a>,
    arguments: &'a Value,
}

impl Listed<'_> {
    async fn guard(&self, call: &Call) -> Result<GuardDecision, Error> {
        let intent = self.intent(call)?;
        let names = self.names()?;
        let guarding = Guarding::new(self.core, call);
        let (mut vms, mut unprotected) = (Vec::<Found>::new(), Vec::new());
        for name in &names {
            match guarding.find(name).await {
                Ok(found) if !vms.iter().any(|known| known.is(&found)) => vms.push(found),
                Ok(_) => {}
                Err(error)
                    if error.code == ErrorCode::VmNotProtected
                        && self.entry.unprotected() == Unprotected::Pass =>
                {
                    unprotected.push(text::display(name, SHOWN_MAX_LEN));
                }
                Err(error) => return Err(error),
            }
        }
        self.check_named_vm(&guarding, &names, &vms).await?;
        if vms.is_empty() {
            return Ok(pass(format!(
                "no VPG protects {}, and the catalog's entry {} lets that pass",
                unprotected.join(", "),
                self.entry.place()
            )));
        }
        vms.iter().try_for_each(refuse_what_can_not_work)?;
        let guards = vms
            .iter()
            .map(|found| guarding.pin_all(found, &intent, Some(self.record())));
        Ok(GuardDecision::Guarded {
            entry: Some(self.entry.place().to_owned()),
            receipts: all_or_failed(join_all(guards).await)?,
            not_protected: unprotected,
        })
    }

    fn intent(&self, call: &Call) -> Result<Intent, Error> {
        let request = self.request;
        let action = match text::one_line(&request.action) {
            action if action.is_empty() => self.entry.action(&self.looked_up).map_err(unusable)?,
            action => action,
        };
        let change_id = match given(request.change_id.as_deref()) {
            Some(change) => Some(change.to_owned()),
            None => self.entry.change(self.arguments).map_err(unusable)?,
        };
        let agent = request.agent.clone();
        let request = GuardRequest {
            vm: String::new(),
            action,
            agent,
            change_id,
        };
        Intent::checked(self.core, &request, call)
    }

    /// The VMs by the entry's rule; where it finds none, the one that the caller names.
    fn names(&self) -> Result<Vec<String>, Error> {
        let named = given(self.request.vm.as_deref());
        match (self.entry.vms(self.arguments), named) {
            (Ok(names), _) => Ok(names),
            (Err(_), Some(named)) => Ok(vec![named.to_owned()]),
            (Err(error), None) => Err(unusable(error)),
        }
    }

    /// A VM that the caller names has to be one that the entry's rule finds.
    async fn check_named_vm(
        &self,
        guarding: &Guarding<'_>,
        names: &[String],
        vms: &[Found],
    ) -> Result<(), Error> {
        let Some(named) = given(self.request.vm.as_deref()) else {
            return Ok(());
        };
        if names.iter().any(|name| name == named) {
            return Ok(());
        }
        let found = guarding.find(named).await?;
        if vms.iter().any(|vm| vm.is(&found)) {
            return Ok(());
        }
        let shown: Vec<_> = names
            .iter()
            .map(|name| text::display(name, SHOWN_MAX_LEN))
            .collect();
        Err(Error::new(
            ErrorCode::InvalidArgument,
            format!(
                "`vm` is {}, but by its arguments the call concerns {}; nothing was inserted",
                found.name(),
                shown.join(", ")
            ),
        )
        .with_next("Leave `vm` out, or correct it or the call's arguments."))
    }

    fn record(&self) -> state::ToolCall {
        let server = given(self.request.server.as_deref());
        state::ToolCall {
            server: server.map(|server| text::display(server, SHOWN_MAX_LEN)),
            tool: text::display(&self.request.tool, SHOWN_MAX_LEN),
            arguments_digest: arguments_digest(self.arguments),
        }
    }
}

/// The first failure speaks for all, and every pin that was taken is told.
fn all_or_failed(results: Vec<Result<Receipt, Error>>) -> Result<Vec<Receipt>, Error> {
    if results.iter().all(Result::is_ok) {
        return Ok(results.into_iter().flatten().collect());
    }
    let (mut failure, mut done) = (None::<Error>, Vec::new());
    for result in results {
        match result {
            Ok(receipt) => done.extend(receipt.pins.into_iter().map(|pin| Done::Pinned {
                vpg: pin.vpg,
                checkpoint: pin.checkpoint,
                tag: pin.tag,
            })),
            Err(mut error) => {
                done.append(&mut error.done);
                match &mut failure {
                    None => failure = Some(error),
                    Some(first) => first.message = format!("{} {}", first.message, error.message),
                }
            }
        }
    }
    let failure = failure.unwrap_or_else(|| Error::new(ErrorCode::ZvmError, "a guard failed"));
    Err(failure.with_done(done))
}

fn pass(reason: String) -> GuardDecision {
    GuardDecision::PassThrough { reason }
}

fn name(request: &ToolCall) -> String {
    let tool = text::display(&request.tool, SHOWN_MAX_LEN);
    match given(request.server.as_deref()) {
        Some(server) => format!("{tool} of {}", text::display(server, SHOWN_MAX_LEN)),
        None => tool,
    }
}

fn reasons(request: &ToolCall, skipped: &[Skipped<'_>]) -> String {
    let reasons: Vec<_> = skipped
        .iter()
        .map(|skipped| format!("{}: {}", skipped.entry.place(), skipped.reason))
        .collect();
    format!(
        "no entry of the catalog applies to this call of {} ({})",
        name(request),
        reasons.join("; ")
    )
}

fn denied(request: &ToolCall, entry: &Entry) -> Error {
    Error::new(
        ErrorCode::Denied,
        format!(
            "the catalog's entry {} refuses {}",
            entry.place(),
            name(request)
        ),
    )
}

fn unusable(error: RuleError) -> Error {
    Error::new(ErrorCode::InvalidArgument, text::display(&error.to_string(), 1_000))
        .with_next("Give the tool call's own `arguments`, as the tool will get them. Don't make the call without a guard.")
}

impl Core {
    /// The catalog as its file is now; empty where none is configured.
    pub async fn catalog(&self) -> Result<Catalog, Error> {
        let Some(file) = self.config.catalog.clone() else {
            return Ok(Catalog::default());
        };
        let loaded = tokio::task::spawn_blocking(move || Catalog::load(&file)).await;
        match loaded {
            Ok(catalog) => catalog.map_err(Error::from),
            Err(_) => Err(Error::new(ErrorCode::Cancelled, "the program is ending")),
        }
    }
}

impl From<CatalogError> for Error {
    fn from(error: CatalogError) -> Self {
        Self::new(ErrorCode::CatalogUnusable, error.to_string())
    }
}
