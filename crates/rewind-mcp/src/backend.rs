//! The domain behind the tools, opened when the first call needs it.
use std::sync::{Mutex, PoisonError};

use rewind_core::{Error, Rewind};

/// Opens the configured ZVM.
type Open = dyn Fn() -> Result<Rewind, Error> + Send + Sync;

/// Opens the configuration at the first call. One that can't be used is an answer of that call, not the end of
/// the server, and is read anew by the next one: it can be mended while the MCP client keeps the server running.
pub struct Backend {
    open: Box<Open>,
    opened: Mutex<Option<Rewind>>,
}

impl Backend {
    /// A backend that `open` opens. Nothing is opened yet.
    pub fn new(open: impl Fn() -> Result<Rewind, Error> + Send + Sync + 'static) -> Self {
        Self {
            open: Box::new(open),
            opened: Mutex::new(None),
        }
    }

    /// The domain, opened now if it was not yet.
    ///
    /// # Errors
    /// What is wrong with the configuration.
    pub fn rewind(&self) -> Result<Rewind, Error> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(rewind) = &*opened {
            return Ok(rewind.clone());
        }
        let rewind = (self.open)()?;
        *opened = Some(rewind.clone());
        Ok(rewind)
    }
}
