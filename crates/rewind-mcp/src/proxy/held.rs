//! A call that waits: for its tool's definition where that is not known yet, and for its guard.
use std::{
    future::Future,
    sync::{Arc, Mutex},
    time::Duration,
};

use rewind_core::{
    Call, Error, ErrorCode, Progress, ProgressUpdate,
    enforce::{Asker, ObservedCall},
};
use serde_json::{Value, json, value::RawValue};
use tokio::sync::Notify;
use uuid::Uuid;

use super::{
    answer,
    call::{self, RequestMeta, ToolCall},
    conversation::{Conversation, Entry, state_digest},
    enforcement::{Enforcement, Evidence, Ruling},
    gate::{Gate, InFlight, Place, RoundKey, Tool, lock},
    message::{Head, Key},
};

/// How long the server may take to list its tools, all pages together.
const LISTING_TIME: Duration = Duration::from_secs(30);
/// How many pages that may be.
const LISTING_PAGES: usize = 1000;

/// Who a held call talks to while it waits.
pub trait Peers: Send + Sync {
    /// Sends a message of ours to the client that waits for the call. A client that is gone is no error here.
    fn tell_client(&self, message: Vec<u8>) -> impl Future<Output = ()> + Send;
    /// Sends a request of ours to the server, and returns its answer.
    ///
    /// # Errors
    /// Says why there is none.
    fn ask_server(
        &self,
        id: &RawValue,
        request: Vec<u8>,
    ) -> impl Future<Output = Result<Vec<u8>, String>> + Send;
}

/// What a held call may be forwarded with.
pub enum Ticket<E: Enforcement> {
    /// It is not listed after all.
    Unlisted,
    /// Its guard.
    Guarded(Box<InFlight<E::Guarded>>),
}

/// See the module.
pub struct Held<E: Enforcement> {
    /// Where it belongs.
    pub conversation: Arc<Conversation<E>>,
    /// Its place there.
    pub entry: Entry,
    /// Its id as the client wrote it.
    pub id: Box<RawValue>,
    /// Whether its era has a protocol revision in each request.
    pub modern: bool,
    tool: String,
    arguments: Value,
    digest: [u8; 32],
    token: Option<(Key, Box<RawValue>)>,
    /// Where it repeats a call to which the server had asked back.
    round: Option<RoundKey>,
    /// `_meta` for requests of ours in this call's name, without a progress token.
    meta: Option<String>,
    caller: String,
    _place: Place,
}

impl<E: Enforcement> Held<E> {
    /// A call that was entered as held in `conversation`.
    pub fn new(
        conversation: Arc<Conversation<E>>,
        entry: Entry,
        id: &RawValue,
        call: &ToolCall<'_>,
        arguments: Value,
        caller: String,
        place: Place,
    ) -> Self {
        let digest = call::digest(&call.name, &arguments);
        Self {
            conversation,
            entry,
            id: id.to_owned(),
            modern: call.meta.is_modern(),
            tool: call.name.clone().into_owned(),
            arguments,
            digest,
            token: call
                .meta
                .progress_token
                .and_then(|token| Some((Key::new(token)?, token.to_owned()))),
            round: call
                .is_retry
                .then(|| (digest, state_digest(call.request_state))),
            meta: own_meta(&call.meta),
            caller,
            _place: place,
        }
    }

    fn gate(&self) -> &Gate<E> {
        &self.conversation.gate
    }

    /// The token under which the client hears of progress.
    pub fn progress_key(&self) -> Option<Key> {
        self.token.as_ref().map(|(key, _)| key.clone())
    }

    /// Waits until the call may be forwarded.
    ///
    /// # Errors
    /// Why it may not.
    pub async fn settle(&self, peers: &impl Peers) -> Result<Ticket<E>, Error> {
        let gate = self.gate();
        let ruled = self.ruled(peers).await.inspect_err(|error| {
            if !self.entry.cancel.is_cancelled() {
                let asker = Asker {
                    client: &self.caller,
                    change: &self.conversation.change_id,
                };
                gate.enforcer.refused(&self.observed(), asker, error);
            }
        })?;
        let Some((listed, warning)) = ruled else {
            return Ok(Ticket::Unlisted);
        };
        if let Some(in_flight) = self.round.as_ref().and_then(|round| gate.repeated(round)) {
            return Ok(Ticket::Guarded(Box::new(in_flight)));
        }
        let guarded = self.guard(listed, peers).await?;
        let evidence = E::evidence(&guarded);
        let warnings: Vec<String> = evidence.warnings.iter().cloned().chain(warning).collect();
        let receipt = json!(Evidence {
            warnings: &warnings,
            ..evidence
        })
        .to_string();
        Ok(Ticket::Guarded(Box::new(InFlight {
            guarded,
            receipt,
            digest: self.digest,
        })))
    }

    fn observed(&self) -> ObservedCall<'_> {
        ObservedCall {
            server: self.gate().server(),
            tool: &self.tool,
            arguments: &self.arguments,
        }
    }

    /// The listed call, with what there is to warn of; None where it is not listed after all.
    async fn ruled(
        &self,
        peers: &impl Peers,
    ) -> Result<Option<(E::Listed, Option<String>)>, Error> {
        let gate = self.gate();
        let tool = tokio::select! {
            biased;
            () = self.entry.cancel.cancelled() => return Err(cancelled()),
            tool = self.definition(peers) => tool?,
        };
        let warning = match tool {
            Some(tool) => gate.check(&self.tool, &tool, &self.arguments)?,
            None => Some(format!(
                "{} does not list the tool {:?}, so its definition could not be checked",
                gate.called(),
                self.tool
            )),
        };
        match gate.enforcer.verdict(&self.observed()) {
            Ruling::Unlisted => Ok(None),
            Ruling::Refused(error) => Err(error),
            Ruling::Listed(listed) => Ok(Some((listed, warning))),
        }
    }

    async fn guard(&self, listed: E::Listed, peers: &impl Peers) -> Result<E::Guarded, Error> {
        let newest = Arc::new(Newest::default());
        let call = Call {
            progress: self
                .token
                .as_ref()
                .map(|_| newest.clone() as Arc<dyn Progress>),
            cancel: self.entry.cancel.clone(),
            caller: self.caller.clone(),
            session_change_id: self.conversation.change_id.clone(),
            seat: self.conversation.change_id.clone(),
        };
        let enforcer = self.gate().enforcer.clone();
        let mut guarding = tokio::spawn(async move { enforcer.guard(listed, &call).await });
        let guarded = loop {
            tokio::select! {
                guarded = &mut guarding => break guarded,
                () = newest.arrived.notified() => self.tell_progress(&newest, peers).await,
            }
        };
        self.tell_progress(&newest, peers).await;
        guarded.unwrap_or_else(|error| {
            Err(
                Error::new(ErrorCode::State, format!("the guard broke off: {error}"))
                    .with_next("Look at the log of the proxy, and report this as a bug."),
            )
        })
    }

    async fn tell_progress(&self, newest: &Newest, peers: &impl Peers) {
        let update = lock(&newest.update).take();
        if let (Some(update), Some((key, token))) = (update, &self.token)
            && !self.entry.cancel.is_cancelled()
        {
            let value = self.conversation.next_progress(key, update.done);
            peers
                .tell_client(answer::progress(token, value, &update.message))
                .await;
        }
    }

    /// The tool as its server describes it. Asks the server where it has not told yet.
    async fn definition(&self, peers: &impl Peers) -> Result<Option<Arc<Tool>>, Error> {
        let gate = self.gate();
        if let Some(known) = gate.tool(&self.tool) {
            return Ok(known);
        }
        let asking = async {
            let _one_at_a_time = gate.listing.lock().await;
            if let Some(known) = gate.tool(&self.tool) {
                return Ok(known);
            }
            self.list_tools(peers).await?;
            if let Some(known) = gate.tool(&self.tool) {
                return Ok(known);
            }
            if gate.enforcer.may_be_listed(gate.server(), &self.tool) {
                gate.not_listed_by_server(&self.tool);
            }
            Ok(None)
        };
        tokio::time::timeout(LISTING_TIME, asking)
            .await
            .unwrap_or_else(|_| Err(format!("no answer within {} s", LISTING_TIME.as_secs())))
            .map_err(|why| Error::new(ErrorCode::Denied, format!(
                    "{} was asked for its tools, to see whether {:?} is still what its catalog entry was written for: {why}",
                    gate.called(),
                    self.tool
                )).with_next("List the server's tools (tools/list), then call the tool again."))
    }

    async fn list_tools(&self, peers: &impl Peers) -> Result<(), String> {
        let mut cursor = None;
        for _ in 0..LISTING_PAGES {
            let id = own_id().map_err(|error| error.to_string())?;
            let request = list_request(&id, self.meta.as_deref(), cursor.as_deref());
            let answer = peers.ask_server(&id, request.into_bytes()).await?;
            let head = Head::read(&answer).map_err(|error| error.to_string())?;
            let Some(result) = head.result else {
                let error = head.error.map_or("no result", RawValue::get);
                return Err(format!("it answered {error:.300}"));
            };
            cursor = self
                .gate()
                .tools_listed(result)
                .map_err(|error| error.to_string())?;
            if cursor.is_none() {
                return Ok(());
            }
        }
        Err(format!("its list has more than {LISTING_PAGES} pages"))
    }
}

/// An id for a request of ours, as nobody else makes one.
pub fn own_id() -> Result<Box<RawValue>, serde_json::Error> {
    RawValue::from_string(format!("\"zerto-rewind-{}\"", Uuid::new_v4().simple()))
}

/// Asks for a page of the server's tools.
pub fn list_request(id: &RawValue, meta: Option<&str>, cursor: Option<&str>) -> String {
    let cursor = cursor.map(|cursor| format!(r#""cursor":{}"#, Value::from(cursor)));
    let meta = meta.map(|meta| format!(r#""_meta":{meta}"#));
    let params: Vec<String> = cursor.into_iter().chain(meta).collect();
    format!(
        r#"{{"jsonrpc":"2.0","id":{},"method":"tools/list","params":{{{}}}}}"#,
        id.get(),
        params.join(",")
    )
}

/// What each modern request has to say of its client.
pub fn own_meta(meta: &RequestMeta<'_>) -> Option<String> {
    meta.protocol_version?;
    let fields = [
        ("protocolVersion", meta.protocol_version),
        ("clientInfo", meta.client_info),
        ("clientCapabilities", meta.client_capabilities),
    ];
    let fields: Vec<String> = fields
        .into_iter()
        .filter_map(|(name, value)| {
            Some(format!(
                r#""io.modelcontextprotocol/{name}":{}"#,
                value?.get()
            ))
        })
        .collect();
    Some(format!("{{{}}}", fields.join(",")))
}

fn cancelled() -> Error {
    Error::new(
        ErrorCode::Cancelled,
        "the call was cancelled before it was guarded",
    )
    .with_next("Call it again if it is still wanted.")
}

/// The newest update that was not sent yet: a client that does not read costs nothing.
#[derive(Default)]
struct Newest {
    update: Mutex<Option<ProgressUpdate>>,
    arrived: Notify,
}

impl Progress for Newest {
    fn update(&self, update: ProgressUpdate) {
        *lock(&self.update) = Some(update);
        self.arrived.notify_one();
    }
}
