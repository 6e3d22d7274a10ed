//! What a person should know and no call fails with.
use std::{
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Where nobody takes them, the log has to do.
const WARNINGS_MAX: usize = 50;

/// Warnings that nobody has been told yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Warnings(Arc<Mutex<Vec<Warning>>>);

#[derive(Debug)]
struct Warning {
    /// The id of what it is about, where it may become known better before it is told.
    about: Option<String>,
    text: String,
}

impl Warnings {
    /// Adds one; the log has it, too.
    pub fn add(&self, text: String) {
        self.push(Warning { about: None, text });
    }

    /// As [`add`](Self::add), unless [`settled`](Self::settled) says meanwhile that there is something better to tell.
    pub fn add_about(&self, id: &str, text: String) {
        self.push(Warning {
            about: Some(id.to_owned()),
            text,
        });
    }

    /// More is known of what has this id, and it is told in another way.
    pub fn settled(&self, id: &str) {
        self.lock()
            .retain(|warning| warning.about.as_deref() != Some(id));
    }

    /// Takes what has gathered.
    pub fn take(&self) -> Vec<String> {
        let warnings = mem::take(&mut *self.lock());
        warnings.into_iter().map(|warning| warning.text).collect()
    }

    fn push(&self, warning: Warning) {
        tracing::warn!("{}", warning.text);
        let mut warnings = self.lock();
        if warnings.len() < WARNINGS_MAX {
            warnings.push(warning);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Warning>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
