//! The conversations of a listening proxy.
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, Weak},
    time::Instant,
};

use axum::http::HeaderValue;
use serde_json::value::RawValue;

use crate::proxy::{
    conversation::Conversation,
    enforcement::Enforcement,
    gate::{Gate, lock},
};

/// How many sessions are kept track of.
const MOST: usize = 1024;

struct Session<E: Enforcement> {
    used: Instant,
    conversation: Arc<Conversation<E>>,
}

/// In eras with sessions there is one conversation for each; else one for each request.
pub struct Sessions<E: Enforcement> {
    gate: Arc<Gate<E>>,
    known: Mutex<HashMap<HeaderValue, Session<E>>>,
    /// Those without a session in which a call is held.
    single: Mutex<Vec<Weak<Conversation<E>>>>,
}

impl<E: Enforcement> Sessions<E> {
    /// None yet.
    pub fn new(gate: Arc<Gate<E>>) -> Self {
        Self {
            gate,
            known: Mutex::default(),
            single: Mutex::default(),
        }
    }

    /// The conversation of a session, or a new one for a request without.
    pub fn conversation(&self, session: Option<&HeaderValue>) -> Arc<Conversation<E>> {
        let Some(session) = session else {
            return Conversation::new(self.gate.clone());
        };
        if let Some(known) = lock(&self.known).get_mut(session) {
            known.used = Instant::now();
            return known.conversation.clone();
        }
        // It may have begun before this proxy did.
        let conversation = Conversation::new(self.gate.clone());
        self.begin(session.clone(), conversation.clone());
        conversation
    }

    /// A session begins with this conversation.
    pub fn begin(&self, session: HeaderValue, conversation: Arc<Conversation<E>>) {
        let mut known = lock(&self.known);
        let oldest = known
            .iter()
            .min_by_key(|(_, known)| known.used)
            .map(|(session, _)| session.clone())
            .filter(|_| known.len() >= MOST);
        let gone = oldest.and_then(|oldest| known.remove(&oldest));
        let used = Instant::now();
        known.insert(session, Session { used, conversation });
        drop(known);
        if let Some(gone) = gone {
            gone.conversation.end();
        }
    }

    /// A session is over.
    pub fn end(&self, session: &HeaderValue) {
        let gone = lock(&self.known).remove(session);
        if let Some(gone) = gone {
            gone.conversation.end();
        }
    }

    /// A call is held in a conversation without a session.
    pub fn hold_single(&self, conversation: &Arc<Conversation<E>>) {
        let mut single = lock(&self.single);
        single.retain(|held| held.strong_count() > 0);
        single.push(Arc::downgrade(conversation));
    }

    /// Cancels the held calls with this id that belong to no session: whose the cancellation is can't be told there, and
    /// a call too many that is not made is the lesser evil.
    pub fn cancel_single(&self, id: &RawValue) -> bool {
        let held: Vec<_> = lock(&self.single)
            .iter()
            .filter_map(Weak::upgrade)
            .collect();
        held.iter()
            .filter(|conversation| conversation.cancel(id))
            .count()
            > 0
    }

    /// Nothing that is held will be forwarded.
    pub fn close(&self) {
        let known: Vec<_> = lock(&self.known)
            .values()
            .map(|known| known.conversation.clone())
            .collect();
        let single: Vec<_> = lock(&self.single)
            .iter()
            .filter_map(Weak::upgrade)
            .collect();
        for conversation in known.iter().chain(&single) {
            conversation.close();
        }
    }

    /// No answer will come any more.
    pub fn end_all(&self) {
        let all: Vec<_> = lock(&self.known).drain().collect();
        for (_, gone) in all {
            gone.conversation.end();
        }
    }
}
