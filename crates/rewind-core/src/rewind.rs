//! The facade: everything that the MCP server and the CLI do, they do through this.
use crate::{
    Call, CheckpointList, Error, ErrorCode, GuardDecision, GuardRequest, Patience, Plan,
    Protection, Receipt, ToolCall,
    catalog::Catalog,
    certificate, checkpoints,
    clock::{Clock, SystemClock},
    config::{self, Config},
    enforce::{self, ChangedTool},
    guard,
    ledger::{self, Comparison, Ledger},
    lock::Locks,
    login_gate::StateGate,
    protection, recovery,
    state::{Asked, Refusal, State, StateError},
    stop::Stops,
    text::remembered,
    warnings::Warnings,
};
use serde::Serialize;
use std::{
    sync::{Arc, Weak},
    time::Duration,
};
use zvm_client::{CertificateJudge, Timeouts, TlsTrust, Zvm, ZvmConfig};

/// One configured ZVM with its state. Cheap to clone. Opening it sends nothing and does not open the state database.
#[derive(Clone, Debug)]
pub struct Rewind {
    pub(crate) core: Arc<Core>,
}

/// Which ZVM it is.
#[derive(Clone, Debug, Serialize)]
pub struct Site {
    /// The name of its site.
    pub name: String,
    /// Its version, where it says so.
    pub version: Option<String>,
}

/// What the operations share.
#[derive(Debug)]
pub(crate) struct Core {
    pub config: Config,
    pub zvm: Zvm,
    pub state: State,
    pub locks: Locks,
    pub patience: Patience,
    /// What a person should know.
    pub warnings: Warnings,
    /// Held while what processes of ours left behind is cleaned up.
    pub cleaning: tokio::sync::Mutex<()>,
    /// For what goes on in the background.
    pub me: Weak<Self>,
}

impl Rewind {
    /// For one configuration.
    ///
    /// # Errors
    /// `configuration`: it can never work.
    pub fn new(config: Config) -> Result<Self, Error> {
        Self::with_patience(config, Patience::default())
    }

    /// As [`new`](Self::new), for recoveries that wait for other times than usual.
    ///
    /// # Errors
    /// `configuration`: it can never work.
    pub fn with_patience(config: Config, patience: Patience) -> Result<Self, Error> {
        Self::with_clock(config, patience, Arc::new(SystemClock))
    }

    /// As [`with_patience`](Self::with_patience), where another clock than the system's says what this host takes for the time.
    ///
    /// # Errors
    /// `configuration`: it can never work.
    pub fn with_clock(
        config: Config,
        patience: Patience,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Error> {
        let state = State::with_clock(&config.state_dir, clock);
        let gate = Arc::new(StateGate::new(state.clone(), config.zvm()));
        let warnings = Warnings::default();
        let judge = certificate::judge(&config, &state, &warnings);
        let zvm = Zvm::new(zvm_config(&config, judge)?, gate)?;
        let locks = Locks::new(&config.state_dir);
        let core = Arc::new_cyclic(|me| Core {
            me: me.clone(),
            config,
            zvm,
            state,
            locks,
            patience,
            warnings,
            cleaning: tokio::sync::Mutex::default(),
        });
        Ok(Self { core })
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.core.config
    }

    /// What a person should know and no call failed with, such as a certificate that was trusted at its first use; each is told once.
    /// The log has it, too.
    #[must_use]
    pub fn take_warnings(&self) -> Vec<String> {
        self.core.warnings.take()
    }

    /// Logs in, and asks the ZVM which one it is.
    ///
    /// # Errors
    /// Those of the ZVM, and of the login.
    pub async fn site(&self, call: &Call) -> Result<Site, Error> {
        let asked = async { Ok(self.core.zvm.local_site().await?) };
        let site = call
            .watch()
            .during(|| "logging in".to_owned(), asked)
            .await?;
        Ok(Site {
            name: shown(&site.name),
            version: site.version.as_deref().map(shown),
        })
    }

    /// The catalog as its file is now; an empty one where none is configured.
    ///
    /// # Errors
    /// `catalog_unusable`, with every mistake and its line.
    pub async fn catalog(&self) -> Result<Catalog, Error> {
        self.core.catalog().await
    }

    /// Exactly one VM and every VPG that protects it.
    ///
    /// # Errors
    /// `vm_not_found`, `vm_ambiguous`, `vm_not_protected`, and those of the ZVM.
    pub async fn find(&self, vm: &str, call: &Call) -> Result<Protection, Error> {
        let watch = call.watch();
        let finding = watch.during(
            || format!("looking for {}", shown(vm)),
            protection::find(&self.core.zvm, vm),
        );
        let found = recovery::clean_up_beside(&self.core, finding).await?;
        Ok(found.protection())
    }

    /// Pins every VPG that protects the VM, or fails.
    ///
    /// # Errors
    /// Those of [`find`](Self::find); `protected_site_is_cloud`, `vpg_not_ready`, `insert_refused`, `not_listed`, `cancelled`,
    /// `deadline_passed`, with what was done.
    pub async fn guard(&self, request: GuardRequest, call: &Call) -> Result<Receipt, Error> {
        let result = guard::guard(&self.core, &request, call).await;
        // What was begun is in the ledger as a guard.
        if let Err(error) = &result
            && error.done.is_empty()
        {
            let refusal = request.refusal(&self.core, call, error);
            self.core.refused(refusal).await;
        }
        result
    }

    /// As [`guard`](Self::guard), unless a person has stopped changes: the receipt is the word that a change may be made.
    ///
    /// # Errors
    /// `stopped`, and those of [`guard`](Self::guard).
    pub async fn guard_unless_stopped(
        &self,
        request: GuardRequest,
        call: &Call,
    ) -> Result<Receipt, Error> {
        if let Err(error) = Stops::of(&self.core.config.state_dir).check() {
            let refusal = request.refusal(&self.core, call, &error);
            self.core.refused(refusal).await;
            return Err(error);
        }
        self.guard(request, call).await
    }

    /// Pins the VMs that a tool call is about to change, if the catalog lists the tool.
    ///
    /// # Errors
    /// `denied`, `stopped`, `catalog_unusable`, `invalid_argument` where no VM or another one than `vm` is found, and those of
    /// [`guard`](Self::guard).
    pub async fn guard_tool_call(
        &self,
        request: ToolCall,
        call: &Call,
    ) -> Result<GuardDecision, Error> {
        let result = guard::guard_tool_call(&self.core, &request, call).await;
        if let Err(error) = &result {
            let refusal = request.refusal(&self.core, call, error);
            self.core.refused(refusal).await;
        }
        result
    }

    /// The tagged checkpoints of a VM, newest first: of the last `since` (default: a day), at most `limit` (default: 50, at
    /// most 500).
    ///
    /// # Errors
    /// Those of [`find`](Self::find).
    pub async fn checkpoints(
        &self,
        vm: &str,
        since: Option<Duration>,
        limit: Option<usize>,
        call: &Call,
    ) -> Result<CheckpointList, Error> {
        let zvm = &self.core.zvm;
        let work = Box::pin(async {
            checkpoints::list(zvm, &protection::find(zvm, vm).await?, since, limit).await
        });
        let watch = call.watch();
        let listing = watch.during(
            || format!("listing the tagged checkpoints of {}", shown(vm)),
            work,
        );
        let mut list = recovery::clean_up_beside(&self.core, listing).await?;
        let (zvm, vm, pins) = (
            self.core.config.zvm(),
            list.vm_identifier.clone(),
            list.pins(),
        );
        let known = self
            .core
            .with_state(move |state| state.known(&zvm, &vm, &pins));
        match known.await {
            Ok(known) => list.join(known),
            // The journal is there all the same.
            Err(error) => {
                list.note = format!("{} The ledger can't be read: {error}.", list.note);
            }
        }
        Ok(list)
    }

    /// Compares the ledger with the journals of the VPGs that protect `vm`; without one, of those that the ledger knows. Goes through each
    /// journal day by day, from now back to `since` ago, or to its beginning.
    ///
    /// # Errors
    /// Those of [`find`](Self::find), and of the state.
    pub async fn compare_with_journals(
        &self,
        vm: Option<&str>,
        since: Option<Duration>,
        call: &Call,
    ) -> Result<Comparison, Error> {
        Box::pin(ledger::compare(&self.core, vm, since, call)).await
    }

    /// Unmounts FLR sessions of ours that were left behind: their process died, or could not unmount them. Also done before a
    /// recovery, and beside every search, list, plan and pin.
    ///
    /// # Errors
    /// Those of the state and of the ZVM; what could not be unmounted stays for the next time.
    pub async fn clean_up_orphans(&self) -> Result<usize, Error> {
        recovery::clean_up_orphans(&self.core).await
    }

    /// Why FLR sessions that recoveries of this user left mounted could not be unmounted up to now, by session. Asks the state alone.
    ///
    /// # Errors
    /// Those of the state.
    pub async fn left_mounted(&self) -> Result<Vec<(String, String)>, Error> {
        recovery::left_mounted(&self.core).await
    }

    /// The ledger of this state folder.
    #[must_use]
    pub fn ledger(&self) -> Ledger {
        Ledger::of(&self.core.config.state_dir)
    }

    /// The listed tools whose servers describe them in another way than was accepted, by server and name.
    ///
    /// # Errors
    /// `state`.
    pub fn changed_tools(&self) -> Result<Vec<ChangedTool>, Error> {
        enforce::changed_tools(&self.core.state)
    }

    /// Accepts a tool as it is described in `tool`, because a person at a terminal said so. Calls of it are no longer refused, unless
    /// it has changed again meanwhile.
    ///
    /// # Errors
    /// `state`.
    pub fn accept_tool(&self, tool: &ChangedTool, by: &str) -> Result<(), Error> {
        enforce::accept_tool(&self.core.state, tool, by)
    }

    /// Permits one more login after too many refused ones, because a person at a terminal asked for it.
    ///
    /// # Errors
    /// `state`.
    pub fn allow_one_login(&self) -> Result<(), Error> {
        let config = &self.core.config;
        Ok(self
            .core
            .state
            .person_asked(&config.zvm(), config.credentials.account())?)
    }
}

impl Core {
    /// Something was done whose outcome can't be written down: what was done is true all the same, and the ledger will not say so.
    pub fn not_written_down(&self, what: &str, error: &Error) {
        self.warnings.add(format!(
            "{what} can't be written down, so that the ledger will say later that it was interrupted: {error}"
        ));
    }

    /// What is remembered of a refusal, whatever was asked for.
    pub fn refusal(&self, asked: Asked, call: &Call, error: &Error) -> Refusal {
        Refusal {
            zvm: self.config.zvm(),
            asked,
            code: error.code,
            vm: None,
            vm_identifier: None,
            plan: None,
            agent: self.config.agent.clone(),
            client: remembered(&call.caller),
            change: remembered(&call.session_change_id),
            call: None,
        }
    }

    pub async fn recovery_refused(&self, vm: &str, call: &Call, error: &Error) {
        let refusal = Refusal {
            vm: remembered(vm),
            ..self.refusal(Asked::Recovery, call, error)
        };
        self.refused(refusal).await;
    }

    pub async fn look_refused(&self, vm: &str, call: &Call, error: &Error) {
        let refusal = Refusal {
            vm: remembered(vm),
            ..self.refusal(Asked::Look, call, error)
        };
        self.refused(refusal).await;
    }

    /// Of what was asked for by naming a plan.
    pub async fn plan_refused(&self, plan: &Plan, call: &Call, error: &Error) {
        let asked = match plan.is_comparison() {
            true => Asked::Look,
            false => Asked::Recovery,
        };
        let refusal = Refusal {
            vm: Some(plan.vm.clone()),
            vm_identifier: Some(plan.vm_identifier.clone()),
            plan: Some(plan.id.clone()),
            ..self.refusal(asked, call, error)
        };
        self.refused(refusal).await;
    }

    /// Writes a refusal down; nothing depends on that.
    pub async fn refused(&self, refusal: Refusal) {
        let code = refusal.code;
        if let Err(error) = self.with_state(move |state| state.refused(&refusal)).await {
            tracing::warn!(%error, code = code.as_str(), "a refusal can't be remembered");
        }
    }

    /// Runs short blocking work on the state.
    pub async fn with_state<T: Send + 'static>(
        &self,
        work: impl FnOnce(&State) -> Result<T, StateError> + Send + 'static,
    ) -> Result<T, Error> {
        let state = self.state.clone();
        match tokio::task::spawn_blocking(move || work(&state)).await {
            Ok(result) => Ok(result?),
            Err(_) => Err(Error::new(ErrorCode::Cancelled, "the program is ending")),
        }
    }
}

/// How the client is to call the ZVM.
pub(crate) fn zvm_config(
    config: &Config,
    judge: Option<Arc<dyn CertificateJudge>>,
) -> Result<ZvmConfig, Error> {
    Ok(ZvmConfig {
        url: config.zerto_url.clone(),
        credentials: match config.credentials.clone() {
            config::Credentials::Password { username, password } => {
                zvm_client::Credentials::Password {
                    username,
                    password: password.into(),
                }
            }
            config::Credentials::Client {
                client_id,
                client_secret,
            } => zvm_client::Credentials::Client {
                client_id,
                client_secret: client_secret.into(),
            },
        },
        tls: TlsTrust::from(&config.tls),
        judge,
        timeouts: Timeouts::default(),
    })
}

fn shown(vm: &str) -> String {
    crate::text::display(vm, 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_send(_: impl Send) {}

    /// A server runs each call as a task of its own: its future has to be one that can be sent. The compiler is asked here,
    /// near the cause.
    const _: fn(
        &Rewind,
        &Call,
        GuardRequest,
        ToolCall,
        crate::RecoverRequest,
        crate::DiffRequest,
        &crate::guest::UndoPlan,
    ) = |rewind, call, guard, tool_call, recover, diff, undo| {
        is_send(rewind.find("", call));
        is_send(rewind.guard(guard, call));
        is_send(rewind.guard_tool_call(tool_call, call));
        is_send(rewind.checkpoints("", None, None, call));
        is_send(rewind.plan_recovery(&recover, call));
        is_send(rewind.recover("", call));
        is_send(rewind.plan_diff(&diff, call));
        is_send(rewind.diff(&diff, call));
        is_send(rewind.plan_undo("", call));
        is_send(rewind.undo_restore(undo, call));
        is_send(rewind.clean_up_orphans());
        is_send(rewind.compare_with_journals(None, None, call));
    };
}
