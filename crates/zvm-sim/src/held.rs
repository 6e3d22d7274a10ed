//! Requests that are held until somebody lets them go, so that a test can act at exactly this moment.

use std::collections::BTreeMap;

use serde::Serialize;

/// A request that is held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HeldRequest {
    /// Its method.
    pub method: String,
    /// Its path as it was sent.
    pub path: String,
    /// Whether it was carried out: then it is its answer that is held.
    pub carried_out: bool,
}

/// What becomes of a request that was held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LetGo {
    /// It goes on.
    On,
    /// Its connection is cut; what was not carried out never is.
    Cut,
}

#[derive(Default)]
pub(crate) struct Held {
    requests: BTreeMap<u64, (HeldRequest, Option<LetGo>)>,
    next: u64,
    /// Nothing is held any more.
    ended: bool,
}

impl Held {
    /// Holds a request and gives it a number.
    pub(crate) fn add(&mut self, request: HeldRequest) -> u64 {
        let number = self.next;
        self.next += 1;
        let let_go = self.ended.then_some(LetGo::Cut);
        self.requests.insert(number, (request, let_go));
        number
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &HeldRequest> {
        self.requests
            .values()
            .filter(|(_, let_go)| let_go.is_none())
            .map(|(request, _)| request)
    }

    /// Lets all of them go.
    pub(crate) fn let_go(&mut self, how: LetGo) {
        for (_, let_go) in self.requests.values_mut() {
            let_go.get_or_insert(how);
        }
    }

    /// The simulator stops: what is held, and what would be, is cut.
    pub(crate) fn end(&mut self) {
        self.ended = true;
        self.let_go(LetGo::Cut);
    }

    pub(crate) fn is_let_go(&self, number: u64) -> bool {
        self.requests
            .get(&number)
            .is_none_or(|(_, let_go)| let_go.is_some())
    }

    /// What becomes of a request that was let go, which is forgotten.
    pub(crate) fn leave(&mut self, number: u64) -> LetGo {
        self.requests
            .remove(&number)
            .and_then(|(_, let_go)| let_go)
            .unwrap_or(LetGo::Cut)
    }
}
