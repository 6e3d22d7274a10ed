//! Tasks: what a ZVM is doing, and did.

use std::collections::VecDeque;

/// How many tasks are remembered; older ones that ended are forgotten first.
const REMEMBERED: usize = 5000;

/// What a task is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    InsertTag,
    Mount,
    Unmount,
}

impl Kind {
    /// Its type name in the API.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::InsertTag => "InsertTaggedCP",
            Self::Mount => "FlrJournalMount",
            Self::Unmount => "FlrJournalUnmount",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    InProgress,
    Failed,
    Completed,
}

impl State {
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::InProgress => 1,
            Self::Failed => 4,
            Self::Completed => 6,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Task {
    /// `<taskGuid>.<siteGuid>`.
    pub(crate) id: String,
    pub(crate) kind: Kind,
    pub(crate) state: State,
    pub(crate) started: i64,
    /// When it is expected to end, for its progress.
    pub(crate) due: i64,
    pub(crate) completed: Option<i64>,
    pub(crate) reason: String,
    pub(crate) initiated_by: String,
    /// Index of the VPG.
    pub(crate) vpg: usize,
    /// GUID of the FLR session, without its site.
    pub(crate) session: Option<String>,
    /// Is 404 once it has ended.
    pub(crate) disappears: bool,
}

impl Task {
    pub(crate) fn progress(&self, now: i64) -> u8 {
        if self.state != State::InProgress {
            return 100;
        }
        let whole = (self.due - self.started).max(1);
        let part = (now - self.started).clamp(0, whole);
        u8::try_from(part * 99 / whole).unwrap_or(99)
    }
}

#[derive(Default)]
pub(crate) struct Tasks {
    all: VecDeque<Task>,
}

impl Tasks {
    pub(crate) fn add(&mut self, task: Task) {
        if self.all.len() >= REMEMBERED {
            let ended = self.all.iter().position(|task| task.completed.is_some());
            self.all.remove(ended.unwrap_or(0));
        }
        self.all.push_back(task);
    }

    pub(crate) fn get(&self, id: &str) -> Option<&Task> {
        self.all
            .iter()
            .rev()
            .find(|task| task.id.eq_ignore_ascii_case(id))
    }

    /// Ends a task, unless it is forgotten or already ended.
    pub(crate) fn end(&mut self, id: &str, now: i64, failure: Option<String>) {
        let Some(index) = self.all.iter().rposition(|task| task.id == id) else {
            return;
        };
        let Some(task) = self.all.get_mut(index) else {
            return;
        };
        if task.disappears {
            self.all.remove(index);
        } else if task.completed.is_none() {
            task.completed = Some(now);
            task.state = match failure {
                None => State::Completed,
                Some(_) => State::Failed,
            };
            task.reason = failure.unwrap_or_default();
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Task> {
        self.all.iter()
    }

    pub(crate) fn forget_all(&mut self) {
        self.all.clear();
    }
}
