//! What is known of one server, for all its clients: its name, its listed tools, and the guards that outlive a request.
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use rewind_core::{
    Error, ErrorCode,
    enforce::{Outcome, ToolStanding},
};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use tokio::sync::Semaphore;

use super::{
    call::{folded, name_of},
    enforcement::Enforcement,
    sink::blocking,
    splice::member,
    waiting::Waiting,
};

/// How many KiB of listed calls may wait for their guards at once. Each counts [`HELD_CALL`] beside its own size.
const HELD_TOTAL: u32 = 256 * 1024;
/// What a waiting call counts for beside its own size, in KiB.
const HELD_CALL: usize = 1024;
/// A retry of a multi-round-trip request that comes later than this is a new call.
const ROUND_TIME: Duration = Duration::from_secs(60 * 60);
/// A task whose end is not heard of within this time counts as lost.
const TASK_TIME: Duration = Duration::from_secs(24 * 60 * 60);

/// How long the last outcomes may take to be written down.
const WRITING_TIME: Duration = Duration::from_secs(5);

/// A guard whose call has been forwarded and is not at its end yet.
#[derive(Debug)]
pub struct InFlight<G> {
    /// The domain's part.
    pub guarded: G,
    /// The receipt as JSON, for `_meta`.
    pub receipt: String,
    /// See [`super::call::digest`].
    pub digest: [u8; 32],
}

/// The digest of a call, and of the state that its server gave with its question.
pub type RoundKey = ([u8; 32], Option<[u8; 32]>);

/// A tool that may be listed, as its server described it.
pub struct Tool {
    definition: Value,
    properties: Vec<String>,
    /// How it stood, and under which server's name that was looked up.
    standing: Mutex<Option<(Option<String>, ToolStanding)>>,
}

/// See the module.
pub struct Gate<E: Enforcement> {
    /// The domain.
    pub enforcer: E,
    name: OnceLock<String>,
    /// None: the server does not list it.
    tools: Mutex<HashMap<String, Option<Arc<Tool>>>>,
    /// Held by the one who asks for the tools.
    pub listing: tokio::sync::Mutex<()>,
    rounds: Mutex<Waiting<RoundKey, InFlight<E::Guarded>>>,
    tasks: Mutex<Waiting<String, InFlight<E::Guarded>>>,
    /// See [`HELD_TOTAL`].
    held: Arc<Semaphore>,
}

/// A place among the calls that wait for their guards.
pub type Place = tokio::sync::OwnedSemaphorePermit;

/// A name that no entry is for is most likely a mistake, and nothing else would tell of it.
fn warn_of_no_entries(enforcer: &impl Enforcement, server: &str) {
    if !enforcer.has_entries_for(server) {
        tracing::warn!(
            server,
            "no entry of the catalog is for this server: every call passes without a guard. Give the proxy the catalog's name for it with --name"
        );
    }
}

impl<E: Enforcement> Gate<E> {
    /// A gate for a server whose name is `name`, or else the one that it reports first.
    pub fn new(enforcer: E, name: Option<String>) -> Self {
        if let Some(name) = &name {
            warn_of_no_entries(&enforcer, name);
        }
        Self {
            enforcer,
            name: name.map(OnceLock::from).unwrap_or_default(),
            tools: Mutex::default(),
            listing: tokio::sync::Mutex::default(),
            rounds: Mutex::new(Waiting::new(ROUND_TIME)),
            tasks: Mutex::new(Waiting::new(TASK_TIME)),
            held: Arc::new(Semaphore::new(HELD_TOTAL as usize)),
        }
    }

    /// The server's name, once it is known.
    pub fn server(&self) -> Option<&str> {
        self.name.get().map(String::as_str)
    }

    /// A place for a call of this size; None while too many wait.
    pub fn place(&self, bytes: usize) -> Option<Place> {
        let weight = u32::try_from(HELD_CALL + bytes / 1024).ok()?;
        self.held.clone().try_acquire_many_owned(weight).ok()
    }

    /// Waits until no call waits for its guard any more.
    pub async fn settled(&self) {
        // The semaphore is never closed.
        let _all = self.held.acquire_many(HELD_TOTAL).await;
    }

    fn named(&self, implementation: &RawValue) {
        let Some(name) = name_of(implementation).filter(|name| !name.is_empty()) else {
            return;
        };
        let known = self.name.get_or_init(|| {
            warn_of_no_entries(&self.enforcer, &name);
            name.clone()
        });
        if *known != name {
            tracing::debug!(
                known,
                reported = name,
                "the server's name stays the first one"
            );
        }
    }

    /// Reads the result of `initialize`.
    pub fn initialized(&self, result: &RawValue) {
        if let Ok(Some(info)) = member(result, "serverInfo") {
            self.named(info);
        }
    }

    /// Reads what a modern result says of its server.
    pub fn identified(&self, result: &RawValue) {
        if let Ok(Some(meta)) = member(result, "_meta")
            && let Ok(Some(info)) = member(meta, "io.modelcontextprotocol/serverInfo")
        {
            self.named(info);
        }
    }

    /// Reads a page of the server's tools. Returns the cursor of the next page.
    ///
    /// # Errors
    /// Where it is no list of tools.
    pub fn tools_listed(&self, result: &RawValue) -> Result<Option<String>, serde_json::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Page {
            tools: Vec<Value>,
            next_cursor: Option<String>,
        }
        self.identified(result);
        let page: Page = serde_json::from_str(result.get())?;
        for definition in page.tools {
            let Some(name) = definition.get("name").and_then(Value::as_str) else {
                continue;
            };
            if !self.enforcer.may_be_listed(self.server(), name) {
                continue;
            }
            let name = name.to_owned();
            let tool = Arc::new(Tool::new(definition));
            // Remembered now, at first sight, and not at the first call.
            match self.standing(&tool) {
                ToolStanding::Fine => {}
                ToolStanding::Described(what) | ToolStanding::Changed(what) => {
                    tracing::warn!(tool = name, "{what}");
                }
            }
            lock(&self.tools).insert(name, Some(tool));
        }
        Ok(page.next_cursor)
    }

    /// What the server said of a tool; `Some(None)`: it does not list it. None: not asked yet.
    pub fn tool(&self, name: &str) -> Option<Option<Arc<Tool>>> {
        lock(&self.tools).get(name).cloned()
    }

    /// The server has listed all its tools, and this one was not among them.
    pub fn not_listed_by_server(&self, name: &str) {
        lock(&self.tools).entry(name.to_owned()).or_insert(None);
    }

    /// The server said that its tools have changed.
    pub fn tools_changed(&self) {
        lock(&self.tools).clear();
    }

    /// How a tool stands now. A changed one is looked up again: a person may have accepted it.
    fn standing(&self, tool: &Tool) -> ToolStanding {
        let mut known = lock(&tool.standing);
        match &*known {
            Some((server, standing))
                if server.as_deref() == self.server()
                    && !matches!(standing, ToolStanding::Changed(_)) =>
            {
                standing.clone()
            }
            _ => {
                let standing = self.enforcer.tool_seen(self.server(), &tool.definition);
                *known = Some((self.server().map(str::to_owned), standing.clone()));
                standing
            }
        }
    }

    /// Whether a tool may be called with these arguments. Returns what a person should know about it.
    ///
    /// # Errors
    /// The tool has changed, or an argument's name is not spelled as its schema has it: the catalog would not see it, and
    /// a server that does not care about case would.
    pub fn check(
        &self,
        name: &str,
        tool: &Tool,
        arguments: &Value,
    ) -> Result<Option<String>, Error> {
        let warning = match self.standing(tool) {
            ToolStanding::Fine => None,
            ToolStanding::Described(what) => Some(what),
            ToolStanding::Changed(what) => {
                return Err(Error::new(ErrorCode::Denied, format!("the tool {name:?} of {} is not what it was: {what}", self.called())).with_next("A person has to look at the tool and at its catalog entry, and accept it: `zerto-rewind catalog accept`"));
            }
        };
        let unclear = arguments
            .as_object()
            .into_iter()
            .flat_map(serde_json::Map::keys)
            .filter(|argument| !tool.properties.contains(argument))
            .find_map(|argument| {
                let folded_argument = folded(argument);
                let meant = tool
                    .properties
                    .iter()
                    .find(|known| folded(known) == folded_argument)?;
                Some((argument, meant))
            });
        match unclear {
            None => Ok(warning),
            Some((argument, meant)) => Err(Error::new(
                ErrorCode::InvalidArgument,
                format!("the argument {argument:?} of {name:?} could be taken for {meant:?}"),
            )
            .with_next(format!(
                "Call it again with {meant:?}, spelled as the tool's schema has it."
            ))),
        }
    }

    /// The server, in words.
    pub fn called(&self) -> String {
        self.server()
            .map_or_else(|| "this server".into(), |name| format!("{name:?}"))
    }

    /// Keeps the guard of a call that its server answered with a question.
    pub fn asked_back(&self, key: RoundKey, in_flight: InFlight<E::Guarded>) {
        self.lost(lock(&self.rounds).insert(key, in_flight));
    }

    /// The guard of the call that this one repeats.
    pub fn repeated(&self, key: &RoundKey) -> Option<InFlight<E::Guarded>> {
        lock(&self.rounds).take(key)
    }

    /// Keeps the guard of a call that became a task.
    pub fn became_task(&self, task: String, in_flight: InFlight<E::Guarded>) {
        self.lost(lock(&self.tasks).insert(task, in_flight));
    }

    /// Whether any guarded call is a task that is not at its end.
    pub fn has_tasks(&self) -> bool {
        !lock(&self.tasks).is_empty()
    }

    /// The end of a task.
    pub fn task_ended(&self, task: &str, outcome: Outcome) {
        let ended = lock(&self.tasks).take(task);
        if let Some(in_flight) = ended {
            self.enforcer.outcome(in_flight.guarded, outcome);
        }
    }

    /// Nothing more will be heard of what is still open: its outcomes are written down.
    pub async fn end(&self) {
        self.lost(lock(&self.rounds).drain());
        self.lost(lock(&self.tasks).drain());
        let enforcer = self.enforcer.clone();
        let written = blocking(move || {
            enforcer.flush();
            Ok(())
        });
        if tokio::time::timeout(WRITING_TIME, written).await.is_err() {
            tracing::warn!("the outcomes of the last calls may not be written down");
        }
    }

    fn lost(&self, gone: Vec<InFlight<E::Guarded>>) {
        for in_flight in gone {
            self.enforcer.outcome(in_flight.guarded, Outcome::Lost);
        }
    }
}

impl Tool {
    fn new(definition: Value) -> Self {
        let properties = definition
            .pointer("/inputSchema/properties")
            .and_then(Value::as_object)
            .map(|properties| properties.keys().cloned().collect())
            .unwrap_or_default();
        Self {
            definition,
            properties,
            standing: Mutex::default(),
        }
    }
}

/// A lock that a panic elsewhere does not break.
pub fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
