//! What the server says: what is read of it, and the two changes that are made to it.
use rewind_core::enforce::Outcome;
use serde_json::value::RawValue;

use super::{Conversation, Pending, state_digest, text};
use crate::proxy::{
    answer,
    enforcement::Enforcement,
    gate::{InFlight, lock},
    message::{self, Head, Key},
    splice::{self, member},
};

/// What becomes of a message of the server.
#[derive(Debug, PartialEq, Eq)]
pub enum FromServer {
    /// It goes to the client as it is.
    Forward,
    /// This goes there instead.
    Instead(Vec<u8>),
    /// It was not for the client.
    Drop,
}

impl<E: Enforcement> Conversation<E> {
    /// Decides on a message of the server.
    pub fn server_says(&self, body: &[u8]) -> FromServer {
        let Ok(head) = Head::read(body) else {
            self.unreadable_answer(body);
            return FromServer::Forward;
        };
        match head.method.as_deref() {
            None => self.answered(&head, body),
            Some("notifications/progress") => self.progressed(&head, body),
            Some("notifications/tools/list_changed") => {
                self.gate.tools_changed();
                FromServer::Forward
            }
            Some("notifications/tasks" | "notifications/tasks/status") => {
                if let Some(task) = head.params {
                    self.task_told(task);
                }
                FromServer::Forward
            }
            Some(_) => FromServer::Forward,
        }
    }

    fn answered(&self, head: &Head<'_>, body: &[u8]) -> FromServer {
        let Some(key) = head.id.and_then(Key::new) else {
            return FromServer::Forward;
        };
        let pending = {
            let mut state = lock(&self.state);
            if let Some(Pending::Held(_)) = state.pending.get(&key) {
                tracing::warn!(
                    "an answer of the server to a call that was not forwarded is dropped"
                );
                return FromServer::Drop;
            }
            let pending = state.pending.remove(&key);
            if let Some(Pending::Guarded(_, Some(token))) = &pending {
                state.progress.remove(token);
            }
            pending
        };
        match (pending, head.result) {
            (Some(Pending::Initialize), Some(result)) => self.gate.initialized(result),
            (Some(Pending::Discover), Some(result)) => self.gate.identified(result),
            (Some(Pending::ToolsList), Some(result)) => {
                if let Err(error) = self.gate.tools_listed(result) {
                    tracing::debug!(%error, "a list of tools that can't be read");
                }
            }
            (Some(Pending::Tasks(Some(task))), result) => {
                self.gate.task_ended(&task, outcome(result));
            }
            (Some(Pending::Tasks(None)), Some(result)) => self.task_told(result),
            (Some(Pending::Own(waiting)), _) => {
                // Whoever asked may have given up.
                let _ = waiting.send(body.to_vec());
                return FromServer::Drop;
            }
            (Some(Pending::Guarded(in_flight, _)), result) => {
                return self.guarded_answered(*in_flight, result, body);
            }
            _ => {}
        }
        FromServer::Forward
    }

    /// Records the end of a guarded call, or keeps its guard where this is not the end, and adds the receipt.
    fn guarded_answered(
        &self,
        in_flight: InFlight<E::Guarded>,
        result: Option<&RawValue>,
        body: &[u8],
    ) -> FromServer {
        let instead = result.and_then(|result| {
            splice::with_meta(body, result, answer::RECEIPT_KEY, &in_flight.receipt)
        });
        match result.map(Ending::of) {
            Some(Ending::AskedBack(state)) => {
                self.gate.asked_back((in_flight.digest, state), in_flight)
            }
            Some(Ending::Task(task)) => self.gate.became_task(task, in_flight),
            Some(Ending::Over) | None => self
                .gate
                .enforcer
                .outcome(in_flight.guarded, outcome(result)),
        }
        match instead {
            Some(instead) => FromServer::Instead(instead),
            None => FromServer::Forward,
        }
    }

    /// What can't be read may still be the answer to a guarded call.
    fn unreadable_answer(&self, body: &[u8]) {
        let Some(key) = message::answer_id(body).and_then(Key::new) else {
            return;
        };
        let mut state = lock(&self.state);
        if matches!(state.pending.get(&key), Some(Pending::Guarded(..)))
            && let Some(Pending::Guarded(in_flight, _)) = state.pending.remove(&key)
        {
            drop(state);
            self.gate
                .enforcer
                .outcome(in_flight.guarded, Outcome::ProtocolError);
        }
    }

    /// An answer of the server that was too long to be passed on: what the client gets instead.
    pub fn too_long(&self, beginning: &[u8], longest: usize) -> Option<Vec<u8>> {
        self.unreadable_answer(beginning);
        let id = message::answer_id(beginning)?;
        if let Some(key) = Key::new(id) {
            lock(&self.state).pending.remove(&key);
        }
        let what = format!("the server's answer was longer than {longest} bytes");
        Some(answer::error(Some(id), answer::INTERNAL_ERROR, &what))
    }

    /// A task as its server describes it.
    fn task_told(&self, task: &RawValue) {
        let (Some(id), Some(status)) = (text(task, "taskId"), text(task, "status")) else {
            return;
        };
        let ended = match status.as_str() {
            "completed" => outcome(member(task, "result").ok().flatten().or(Some(task))),
            "failed" if matches!(member(task, "error"), Ok(Some(_))) => Outcome::ProtocolError,
            "failed" => Outcome::IsError,
            "cancelled" => Outcome::Lost,
            _ => return,
        };
        self.gate.task_ended(&id, ended);
    }

    fn progressed(&self, head: &Head<'_>, body: &[u8]) -> FromServer {
        let mut state = lock(&self.state);
        if state.progress.is_empty() {
            return FromServer::Forward;
        }
        let Some(params) = head.params else {
            return FromServer::Forward;
        };
        let field = |name| member(params, name).ok().flatten();
        let number = |raw: &RawValue| raw.get().parse::<f64>().ok();
        let raised = field("progressToken")
            .and_then(Key::new)
            .and_then(|token| state.progress.get_mut(&token));
        let (Some(raised), Some(progress)) = (raised, field("progress")) else {
            return FromServer::Forward;
        };
        let Some(value) = number(progress) else {
            return FromServer::Forward;
        };
        let last = raised.last;
        let by = *raised.by.get_or_insert(if value > last {
            0.0
        } else {
            last - value + 1.0
        });
        if by == 0.0 {
            return FromServer::Forward;
        }
        let mut raised = splice::replace(body, progress, &answer::number(value + by));
        if let (Some(message), Some(total)) = (&raised, field("total").and_then(number)) {
            // The positions have moved: read it again.
            raised = Head::read(message)
                .ok()
                .and_then(|head| member(head.params?, "total").ok().flatten())
                .and_then(|place| splice::replace(message, place, &answer::number(total + by)));
        }
        raised.map_or(FromServer::Forward, FromServer::Instead)
    }
}

/// What a result says about where its call stands.
enum Ending {
    Over,
    /// The server asks for something; the digest of the state that has to come back with the answer.
    AskedBack(Option<[u8; 32]>),
    Task(String),
}

impl Ending {
    fn of(result: &RawValue) -> Self {
        match text(result, "resultType").as_deref() {
            Some("input_required") => {
                Self::AskedBack(state_digest(member(result, "requestState").ok().flatten()))
            }
            Some("task") => text(result, "taskId").map_or(Self::Over, Self::Task),
            _ => match member(result, "task") {
                Ok(Some(task)) => text(task, "taskId").map_or(Self::Over, Self::Task),
                _ => Self::Over,
            },
        }
    }
}

/// How a call ended, by its result or the lack of one.
fn outcome(result: Option<&RawValue>) -> Outcome {
    let Some(result) = result else {
        return Outcome::ProtocolError;
    };
    match member(result, "isError") {
        Ok(None) => Outcome::Ok,
        Ok(Some(is_error)) if is_error.get() == "false" => Outcome::Ok,
        Ok(Some(_)) => Outcome::IsError,
        Err(_) => Outcome::ProtocolError,
    }
}
