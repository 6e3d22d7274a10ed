//! The guard that an agent asks for before it calls a tool, if the catalog lists the tool.
//!
//! What is decided about the call is what the enforcer decides. The action in the tag is the caller's own word for what it is about to do;
//! the entry's template stands in where the caller has none. A change id of the request wins over the entry's rule, and both win
//! over the session's. Since the words are the agent's, no hook and no proxy takes such a guard for its own.
use super::{
    GuardDecision, ToolCall,
    run::{Guarding, refuse_what_can_not_work},
    tag::given,
    vms::{Vms, all_or_failed, at_once},
};
use crate::{
    Call, Error, ErrorCode,
    catalog::{self, Catalog, CatalogError, Lookup, Mode, Skipped},
    enforce::{Given, Listing, check_tool, denied, name, refused},
    rewind::Core,
    stop::Stops,
    text,
};
use serde_json::Value;

const SHOWN_MAX_LEN: usize = 100;
const UNUSABLE: &str = "Give the tool call's own `arguments`, as the tool will get them. Don't make the call without a guard.";

pub(crate) async fn guard_tool_call(
    core: &Core,
    request: &ToolCall,
    call: &Call,
) -> Result<GuardDecision, Error> {
    if request.tool.trim().is_empty() {
        return Err(Error::new(ErrorCode::InvalidArgument, "`tool` is empty")
            .with_next("Name the tool that is about to be called."));
    }
    let catalog = core.catalog().await?;
    let looked_up = catalog::Call {
        server: given(request.server.as_deref()),
        tool: &request.tool,
        arguments: request.arguments.as_ref().unwrap_or(&Value::Null),
    };
    let unlisted = || pass(format!("the catalog does not list {}", name(&looked_up)));
    let entry = match catalog.lookup(&looked_up) {
        Lookup::Unlisted => return Ok(unlisted()),
        Lookup::DoesNotApply(skipped) if request.arguments.is_some() => {
            return Ok(pass(reasons(&looked_up, &skipped)));
        }
        // Without the arguments nobody can tell that an entry does not apply, so the first that names the tool does.
        Lookup::DoesNotApply(skipped) => match skipped.first().map(|skipped| skipped.entry) {
            Some(entry) if entry.mode() == Mode::Deny => return Err(denied(entry, &looked_up)),
            Some(entry) => entry,
            None => return Ok(unlisted()),
        },
        Lookup::Denied(entry) => return Err(denied(entry, &looked_up)),
        Lookup::Listed(entry) => entry,
    };
    let stop = Stops::of(&core.config.state_dir);
    stop.check()?;
    core.check_tool(&looked_up).await?;

    let action = text::one_line(&request.action);
    let words = Given {
        vm: given(request.vm.as_deref()),
        action: given(Some(&action)),
        change: given(request.change_id.as_deref()),
    };
    let listing =
        Listing::of(entry, &looked_up, words).map_err(|error| refused(&error, UNUSABLE))?;
    let intent = listing.intent(core, request.agent.clone(), call)?;
    let guarding = Guarding::new(core, call);
    let vms = guarding.find_all(&listing.vms, listing.unprotected).await?;
    if let Some(named) = words.vm {
        check_named_vm(&guarding, named, &listing, &vms).await?;
    }
    if vms.found.is_empty() {
        return Ok(pass(format!(
            "no VPG protects {}, and the catalog's entry {} lets that pass",
            vms.not_protected.join(", "),
            listing.entry
        )));
    }
    vms.found.iter().try_for_each(refuse_what_can_not_work)?;
    let receipts = at_once(&vms.found, |found| {
        guarding.cover(found, &intent, listing.call.clone(), listing.reuse)
    })
    .await;
    let receipts = all_or_failed(receipts, |receipt| receipt)?;
    stop.check()
        .map_err(|error| error.with_done(receipts.iter().flat_map(super::pinned)))?;
    Ok(GuardDecision::Guarded {
        entry: Some(listing.entry),
        receipts,
        not_protected: vms.not_protected,
    })
}

/// A VM that the caller names has to be one that the entry's rule finds.
async fn check_named_vm(
    guarding: &Guarding<'_>,
    named: &str,
    listing: &Listing,
    vms: &Vms,
) -> Result<(), Error> {
    if listing.vms.iter().any(|name| name == named) {
        return Ok(());
    }
    let found = guarding.find(named).await?;
    if vms.found.iter().any(|vm| vm.is(&found)) {
        return Ok(());
    }
    let shown: Vec<_> = listing
        .vms
        .iter()
        .map(|name| text::named(name, SHOWN_MAX_LEN))
        .collect();
    Err(Error::new(
        ErrorCode::InvalidArgument,
        format!(
            "`vm` is {}, but by its arguments the call concerns {}; nothing was inserted",
            found.told(),
            shown.join(", ")
        ),
    )
    .with_next("Leave `vm` out, or correct it or the call's arguments."))
}

fn pass(reason: String) -> GuardDecision {
    GuardDecision::PassThrough { reason }
}

fn reasons(call: &catalog::Call<'_>, skipped: &[Skipped<'_>]) -> String {
    let reasons: Vec<_> = skipped
        .iter()
        .map(|skipped| format!("{}: {}", skipped.entry.place(), skipped.reason))
        .collect();
    format!(
        "no entry of the catalog applies to this call of {} ({})",
        name(call),
        reasons.join("; ")
    )
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

    /// Whether the tool is still what its entry was written for, as far as a proxy has seen it.
    async fn check_tool(&self, call: &catalog::Call<'_>) -> Result<(), Error> {
        let (server, tool) = (call.server.map(str::to_owned), call.tool.to_owned());
        let remembered = self
            .with_state(move |state| state.tool_remembered(server.as_deref(), &tool))
            .await?;
        check_tool(&remembered, None)
    }
}

impl From<CatalogError> for Error {
    fn from(error: CatalogError) -> Self {
        Self::new(ErrorCode::CatalogUnusable, error.to_string()).with_next(error.next())
    }
}
