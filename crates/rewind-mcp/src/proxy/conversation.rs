//! What is in flight between one client and the server, and the decision on each message.
use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use rewind_core::{
    Error, ErrorCode,
    enforce::{Asker, ObservedCall, Outcome},
};
use serde_json::{Value, value::RawValue};
use sha2::{Digest, Sha256};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

mod server;

pub use server::FromServer;

use super::{
    answer::{self, INVALID_PARAMS, INVALID_REQUEST},
    call::{RequestMeta, TOOLS_CALL, ToolCall, folded, name_of},
    enforcement::{Enforcement, Ruling},
    gate::{Gate, InFlight, lock},
    held::{Held, Ticket},
    lines::{Line, split_end},
    message::{self, Head, Key, Unreadable},
    splice::member,
};

/// How many requests that are only passed on are kept track of.
const MOST_TRACKED: usize = 64 * 1024;

/// A client that does not say who it is.
const UNNAMED: &str = "mcp-client";

/// What becomes of a message of the client.
pub enum FromClient<E: Enforcement> {
    /// It goes to the server as it is.
    Forward,
    /// It does not. This goes back.
    Answer(Vec<u8>),
    /// It does not, and there is nobody to tell.
    Drop,
    /// It waits for its guard.
    Hold(Box<Held<E>>),
}

/// A request that has no answer yet.
enum Pending<E: Enforcement> {
    /// Only passed on.
    Plain,
    Initialize,
    Discover,
    ToolsList,
    /// About tasks; for `tasks/result` the task's id.
    Tasks(Option<String>),
    /// Not forwarded yet.
    Held(Entry),
    /// Forwarded, guarded.
    Guarded(Box<InFlight<E::Guarded>>, Option<Key>),
    /// The proxy's own.
    Own(oneshot::Sender<Vec<u8>>),
}

/// A held call's place among the requests. Another call may get its id once it was cancelled.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The id.
    pub key: Key,
    /// Cancelled by the client, or because one of the two is gone.
    pub cancel: CancellationToken,
    number: u64,
}

impl<E: Enforcement> Pending<E> {
    fn is(&self, entry: &Entry) -> bool {
        matches!(self, Self::Held(held) if held.number == entry.number)
    }

    /// Whether its answer has to be told apart from any other.
    fn matters(&self) -> bool {
        !matches!(self, Self::Plain)
    }
}

/// The progress that a call's client has seen from us, and by how much the server's own has to be raised.
#[derive(Debug, Default)]
struct Raised {
    last: f64,
    by: Option<f64>,
}

struct State<E: Enforcement> {
    pending: HashMap<Key, Pending<E>>,
    progress: HashMap<Key, Raised>,
    caller: Option<String>,
    /// How many calls were held.
    held: u64,
    /// Nothing that is held now will be forwarded.
    closed: bool,
}

impl<E: Enforcement> State<E> {
    fn holds(&self, entry: &Entry) -> bool {
        self.pending
            .get(&entry.key)
            .is_some_and(|pending| pending.is(entry))
    }
}

/// See the module.
pub struct Conversation<E: Enforcement> {
    /// What is known of the server.
    pub gate: Arc<Gate<E>>,
    /// The change id of calls that have none.
    pub change_id: String,
    state: Mutex<State<E>>,
}

impl<E: Enforcement> Conversation<E> {
    /// A conversation in which nothing was said yet.
    pub fn new(gate: Arc<Gate<E>>) -> Arc<Self> {
        let state = State {
            pending: HashMap::new(),
            progress: HashMap::new(),
            caller: None,
            held: 0,
            closed: false,
        };
        Arc::new(Self {
            gate,
            change_id: crate::new_change_id(),
            state: Mutex::new(state),
        })
    }

    /// Decides on a line of the client. A blank one is no message: it goes where lines go.
    pub fn client_says_line(self: &Arc<Self>, line: &Line<'_>, longest: usize) -> FromClient<E> {
        let line = match line {
            Line::Whole(line) => line,
            Line::TooLong(beginning) => {
                return refuse_unreadable(beginning, &Unreadable::TooLong(longest));
            }
        };
        let (body, _) = split_end(line);
        if body.iter().all(u8::is_ascii_whitespace) {
            return FromClient::Forward;
        }
        if memchr::memchr(b'\r', body).is_some() {
            return refuse_unreadable(body, &Unreadable::CarriageReturn);
        }
        self.client_says(body)
    }

    /// Decides on a message of the client.
    fn client_says(self: &Arc<Self>, body: &[u8]) -> FromClient<E> {
        match Head::read(body) {
            Ok(head) => self.decide(&head, body.len()),
            Err(unreadable) => refuse_unreadable(body, &unreadable),
        }
    }

    /// Decides on a message of the client that has been read.
    pub fn decide(self: &Arc<Self>, head: &Head<'_>, size: usize) -> FromClient<E> {
        let Some(method) = head.method.as_deref() else {
            return FromClient::Forward;
        };
        let pending = match method {
            TOOLS_CALL => return self.tool_call(head, size),
            "notifications/cancelled" => return self.cancelled(head),
            "initialize" => {
                self.met(head.params);
                Pending::Initialize
            }
            "server/discover" => Pending::Discover,
            "tools/list" => Pending::ToolsList,
            "tasks/get" | "tasks/cancel" | "tasks/result" if self.gate.has_tasks() => {
                let task = head
                    .params
                    .filter(|_| method == "tasks/result")
                    .and_then(|params| text(params, "taskId"));
                Pending::Tasks(task)
            }
            _ if message::resembles(method, TOOLS_CALL) => {
                let what = format!("the method {method:?} could be taken for {TOOLS_CALL:?}");
                return FromClient::Answer(answer::error(head.id, INVALID_REQUEST, &what));
            }
            _ => Pending::Plain,
        };
        self.forward(head.id, pending)
    }

    /// Takes note of a request that is passed on.
    fn forward(&self, id: Option<&RawValue>, pending: Pending<E>) -> FromClient<E> {
        if let Some(key) = id.and_then(Key::new)
            && !self.enter(key, pending)
        {
            return FromClient::Answer(in_use(id));
        }
        FromClient::Forward
    }

    /// False where the id is in use and the two answers must not be mixed up.
    fn enter(&self, key: Key, new: Pending<E>) -> bool {
        let mut state = lock(&self.state);
        match state.pending.get(&key) {
            Some(old) if old.matters() || new.matters() => return false,
            None if !new.matters() && state.pending.len() >= MOST_TRACKED => return true,
            _ => {}
        }
        state.pending.insert(key, new);
        true
    }

    /// Remembers the client's name from its `initialize`.
    fn met(&self, params: Option<&RawValue>) {
        if let Some(params) = params
            && let Ok(Some(info)) = member(params, "clientInfo")
            && let Some(name) = name_of(info)
        {
            lock(&self.state).caller = Some(name);
        }
    }

    fn tool_call(self: &Arc<Self>, head: &Head<'_>, size: usize) -> FromClient<E> {
        let gate = &self.gate;
        let call = match ToolCall::read(head.params) {
            Ok(call) => call,
            Err(what) => return FromClient::Answer(answer::error(head.id, INVALID_PARAMS, &what)),
        };
        if !gate.enforcer.may_be_listed(gate.server(), &call.name) {
            let plain = folded(call.name.trim());
            if plain != *call.name && gate.enforcer.may_be_listed(gate.server(), &plain) {
                let what = format!(
                    "the tool's name {:?} could be taken for {plain:?}, which the catalog lists: call it by the name that the server gives it; if that is \
                     this one, a person has to list it",
                    call.name
                );
                return FromClient::Answer(answer::error(head.id, INVALID_PARAMS, &what));
            }
            return self.forward(head.id, Pending::Plain);
        }
        let Some(id) = head.id else {
            tracing::warn!(
                tool = &*call.name,
                "a call without an id is not forwarded: the tool may be listed"
            );
            return FromClient::Drop;
        };
        let Some(key) = Key::new(id) else {
            let what = "the id of a call of a listed tool has to be a string or a whole number";
            return FromClient::Answer(answer::error(Some(id), INVALID_REQUEST, what));
        };
        let caller = call
            .meta
            .client_name()
            .or_else(|| lock(&self.state).caller.clone())
            .unwrap_or_else(|| UNNAMED.into());
        let refuse = |error: &Error, arguments: &Value| {
            let observed = ObservedCall {
                server: gate.server(),
                tool: &call.name,
                arguments,
            };
            let asker = Asker {
                client: &caller,
                change: &self.change_id,
            };
            gate.enforcer.refused(&observed, asker, error);
            FromClient::Answer(answer::refusal(id, call.meta.is_modern(), error))
        };
        let arguments = match call.arguments() {
            Ok(arguments) => arguments,
            Err(what) => {
                let text = call.arguments.map(RawValue::get).unwrap_or_default();
                return refuse(
                    &Error::new(
                        ErrorCode::InvalidArgument,
                        format!(
                            "the arguments of {:?} can't be read without doubt: {what}",
                            call.name
                        ),
                    )
                    .with_next(
                        "Call it again with arguments that are plain JSON: each member once, at most 128 deep, whole characters.",
                    ),
                    &text.into(),
                );
            }
        };
        // Where the tool is known, what is not listed or refused needs no waiting.
        if let (Some(_), Some(Some(tool))) = (gate.server(), gate.tool(&call.name)) {
            if let Err(error) = gate.check(&call.name, &tool, &arguments) {
                return refuse(&error, &arguments);
            }
            let observed = ObservedCall {
                server: gate.server(),
                tool: &call.name,
                arguments: &arguments,
            };
            match gate.enforcer.verdict(&observed) {
                Ruling::Unlisted => return self.forward(head.id, Pending::Plain),
                Ruling::Refused(error) => return refuse(&error, &arguments),
                Ruling::Listed(_) => {}
            }
        }
        let Some(place) = gate.place(size) else {
            return refuse(
                &Error::new(
                    ErrorCode::Denied,
                    "too many listed calls wait for their guards already",
                )
                .with_next("Call it again when some of them have been answered."),
                &arguments,
            );
        };
        let entry = {
            let mut state = lock(&self.state);
            state.held += 1;
            Entry {
                key: key.clone(),
                cancel: CancellationToken::new(),
                number: state.held,
            }
        };
        if !self.enter(key, Pending::Held(entry.clone())) {
            return FromClient::Answer(in_use(Some(id)));
        }
        FromClient::Hold(Box::new(Held::new(
            self.clone(),
            entry,
            id,
            &call,
            arguments,
            caller,
            place,
        )))
    }

    /// A held call that is cancelled is forgotten, and the server never hears of either. Else the server is told.
    fn cancelled(&self, head: &Head<'_>) -> FromClient<E> {
        let id = head.params.map(|params| member(params, "requestId"));
        match id {
            Some(Ok(Some(id))) if self.cancel(id) => FromClient::Drop,
            Some(Err(error)) => {
                let what = format!("a cancellation that can't be read without doubt: {error}");
                FromClient::Answer(answer::error(head.id, INVALID_PARAMS, &what))
            }
            _ => FromClient::Forward,
        }
    }

    /// Cancels a held call. False where there is none with this id.
    pub fn cancel(&self, id: &RawValue) -> bool {
        let Some(key) = Key::new(id) else {
            return false;
        };
        let mut state = lock(&self.state);
        match state.pending.get(&key) {
            Some(Pending::Held(entry)) => {
                entry.cancel.cancel();
                state.pending.remove(&key);
                true
            }
            // The server owes no answer to it.
            Some(Pending::Plain) => {
                state.pending.remove(&key);
                false
            }
            _ => false,
        }
    }

    /// From here on, a held call counts as forwarded: to be called by the one who writes, just before it does, while it
    /// keeps others from writing. False where the call must not be forwarded any more.
    pub fn admit(&self, held: &Held<E>, ticket: Ticket<E>) -> bool {
        let mut state = lock(&self.state);
        if !state.holds(&held.entry) || state.closed {
            drop(state);
            self.withdraw(ticket);
            return false;
        }
        let pending = match ticket {
            Ticket::Unlisted => Pending::Plain,
            Ticket::Guarded(in_flight) => Pending::Guarded(in_flight, held.progress_key()),
        };
        state.pending.insert(held.entry.key.clone(), pending);
        true
    }

    /// A call that may be forwarded, and is not.
    pub fn withdraw(&self, ticket: Ticket<E>) {
        if let Ticket::Guarded(in_flight) = ticket {
            self.gate
                .enforcer
                .outcome(in_flight.guarded, Outcome::NotForwarded);
        }
    }

    /// The answer to a held call that is not forwarded. None where nobody waits for it: it was cancelled.
    pub fn refuse(&self, held: &Held<E>, error: &Error) -> Option<Vec<u8>> {
        let mut state = lock(&self.state);
        if !state.holds(&held.entry) {
            return None;
        }
        state.pending.remove(&held.entry.key);
        if let Some(token) = held.progress_key() {
            state.progress.remove(&token);
        }
        let ended = state.closed.then(|| Error {
            message: "the client or the server ended, or was about to, before the call was guarded"
                .into(),
            ..error.clone()
        });
        Some(answer::refusal(
            &held.id,
            held.modern,
            ended.as_ref().unwrap_or(error),
        ))
    }

    /// The next progress value of a held call: greater than the ones before, and `done` where that is greater.
    pub fn next_progress(&self, token: &Key, done: f64) -> f64 {
        /// The least step between two values.
        const STEP: f64 = 0.001;
        let mut state = lock(&self.state);
        let raised = state.progress.entry(token.clone()).or_default();
        raised.last = if done.is_finite() {
            done.max(raised.last + STEP)
        } else {
            raised.last + STEP
        };
        raised.last
    }

    /// Takes note of a request of the proxy's own; its answer does not reach the client.
    pub fn expect_own(&self, id: &RawValue) -> Option<oneshot::Receiver<Vec<u8>>> {
        let (answer, answered) = oneshot::channel();
        let key = Key::new(id)?;
        lock(&self.state).pending.insert(key, Pending::Own(answer));
        Some(answered)
    }

    /// A request that will have no answer. Returns what its client gets instead.
    pub fn failed(&self, id: &RawValue, sent: bool, why: &str) -> Vec<u8> {
        let pending = Key::new(id).and_then(|key| lock(&self.state).pending.remove(&key));
        if let Some(Pending::Guarded(in_flight, token)) = pending {
            if let Some(token) = token {
                lock(&self.state).progress.remove(&token);
            }
            let outcome = if sent {
                Outcome::Lost
            } else {
                Outcome::NotForwarded
            };
            self.gate.enforcer.outcome(in_flight.guarded, outcome);
        }
        answer::error(Some(id), answer::INTERNAL_ERROR, why)
    }

    /// Held calls are not forwarded from here on: the client or the server is gone.
    pub fn close(&self) {
        let mut state = lock(&self.state);
        state.closed = true;
        for pending in state.pending.values() {
            if let Pending::Held(entry) = pending {
                entry.cancel.cancel();
            }
        }
    }

    /// No answer will come any more.
    pub fn end(&self) {
        self.close();
        let guarded: Vec<_> = lock(&self.state)
            .pending
            .extract_if(|_, pending| matches!(pending, Pending::Guarded(..)))
            .collect();
        if !guarded.is_empty() {
            tracing::warn!(
                calls = guarded.len(),
                "the server ended before it answered calls that were guarded and forwarded: whether they were carried out is not known"
            );
        }
        for (_, pending) in guarded {
            if let Pending::Guarded(in_flight, _) = pending {
                self.gate.enforcer.outcome(in_flight.guarded, Outcome::Lost);
            }
        }
    }
}

/// A digest of the state that a server gave with its question, decoded.
pub fn state_digest(state: Option<&RawValue>) -> Option<[u8; 32]> {
    let state = state.filter(|state| state.get() != "null")?;
    let decoded = serde_json::from_str::<String>(state.get());
    let state = decoded.as_deref().unwrap_or(state.get());
    Some(Sha256::digest(state.as_bytes()).into())
}

fn text(object: &RawValue, name: &str) -> Option<String> {
    let text = member(object, name).ok()??;
    serde_json::from_str(text.get()).ok()
}

fn in_use(id: Option<&RawValue>) -> Vec<u8> {
    answer::error(
        id,
        INVALID_REQUEST,
        "this id belongs to a request that has no answer yet",
    )
}

/// The answer to a message that can't be read.
pub fn refuse_unreadable<E: Enforcement>(body: &[u8], unreadable: &Unreadable) -> FromClient<E> {
    FromClient::Answer(answer::error(
        message::request_id(body),
        unreadable.code(),
        &unreadable.to_string(),
    ))
}

/// The `_meta` of a request.
pub fn request_meta<'a>(head: &Head<'a>) -> RequestMeta<'a> {
    RequestMeta::read(
        head.params
            .and_then(|params| member(params, "_meta").ok().flatten()),
    )
}
