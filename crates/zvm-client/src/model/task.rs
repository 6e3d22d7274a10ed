//! Tasks.

use serde::Deserialize;

use super::{EnumValue, FlrSessionId, LinkWire};
use crate::decode::{Maybe, Scalar};

/// A task as it is now.
#[derive(Clone, Debug)]
pub struct Task {
    /// `<task guid>.<site guid>`
    pub id: String,
    /// `InsertTaggedCP`, …
    pub kind: Option<String>,
    /// How it stands.
    pub state: TaskState,
    /// Per cent.
    pub progress: Option<u8>,
    /// Why it failed, in the ZVM's words.
    pub reason: Option<String>,
    /// The FLR sessions that it is about.
    pub flr_sessions: Vec<FlrSessionId>,
}

/// Failed includes Stopped; unknown states are running (polled on).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskState {
    /// On its way (1 InProgress, 2 WaitingForUserInput, 3 Paused, 7 Cancelling, and whatever is unknown).
    Running,
    /// 6 Completed.
    Completed,
    /// 4 Failed, 5 Stopped.
    Failed,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub(crate) struct TaskWire {
    #[serde(alias = "taskIdentifier")]
    task_identifier: Scalar,
    #[serde(alias = "link")]
    link: Maybe<LinkWire>,
    #[serde(alias = "type")]
    r#type: Scalar,
    #[serde(alias = "status")]
    status: Maybe<StatusWire>,
    #[serde(alias = "completeReason")]
    complete_reason: Scalar,
    #[serde(alias = "relatedEntities")]
    related_entities: Maybe<RelatedWire>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct RelatedWire {
    #[serde(alias = "flrSessions")]
    flr_sessions: Option<Vec<Maybe<LinkWire>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct StatusWire {
    #[serde(alias = "state")]
    state: EnumValue,
    #[serde(alias = "progress")]
    progress: Scalar,
}

impl TaskWire {
    /// `asked`: the id that was asked for, where the answer has none.
    pub(crate) fn read(self, asked: &str) -> Task {
        let status = self.status.0.unwrap_or_default();
        let id = self
            .task_identifier
            .text()
            .or_else(|| self.link.0.and_then(LinkWire::identifier));
        Task {
            id: id.unwrap_or_else(|| asked.to_owned()),
            kind: self.r#type.text(),
            state: state(&status.state),
            progress: status
                .progress
                .unsigned()
                .and_then(|per_cent| u8::try_from(per_cent).ok()),
            reason: self.complete_reason.text(),
            flr_sessions: self
                .related_entities
                .0
                .and_then(|related| related.flr_sessions)
                .unwrap_or_default()
                .into_iter()
                .filter_map(|link| link.0?.identifier())
                .map(FlrSessionId)
                .collect(),
        }
    }
}

fn state(value: &EnumValue) -> TaskState {
    match (value.number, value.name.as_deref()) {
        (Some(6), _) => TaskState::Completed,
        (Some(4 | 5), _) => TaskState::Failed,
        (None, Some(name)) if name.eq_ignore_ascii_case("Completed") => TaskState::Completed,
        (None, Some(name))
            if name.eq_ignore_ascii_case("Failed") || name.eq_ignore_ascii_case("Stopped") =>
        {
            TaskState::Failed
        }
        _ => TaskState::Running,
    }
}
