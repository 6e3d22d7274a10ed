//! The domain behind the tools, as the configuration is now.
use std::sync::{Mutex, PoisonError};

use rewind_core::{Error, Rewind, config::Config};

/// Reads the configuration.
type Load = dyn Fn() -> Result<Config, Error> + Send + Sync;

/// Looks at the configuration anew for each call, so that it can be mended while the MCP client keeps the server running.
/// While it can't be used, each call answers with what is wrong with it. Calls that run when it changes end as they began.
pub struct Backend {
    load: Box<Load>,
    opened: Mutex<Option<Rewind>>,
}

impl Backend {
    /// A backend of the configuration that `load` reads. Nothing is read yet.
    pub fn new(load: impl Fn() -> Result<Config, Error> + Send + Sync + 'static) -> Self {
        Self {
            load: Box::new(load),
            opened: Mutex::new(None),
        }
    }

    /// The domain, opened now if it was not yet, or if the configuration has changed since. What earlier runs left mounted
    /// there is unmounted in the background.
    ///
    /// # Errors
    /// What is wrong with the configuration.
    pub(crate) fn rewind(&self) -> Result<Rewind, Error> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let config = (self.load)()?;
        if let Some(rewind) = &*opened
            && rewind.config().is_unchanged(&config)
        {
            return Ok(rewind.clone());
        }
        let rewind = Rewind::new(config)?;
        if opened.replace(rewind.clone()).is_some() {
            tracing::info!("the configuration has changed and was read again");
        }
        tokio::spawn(clean_up_orphans(rewind.clone()));
        Ok(rewind)
    }
}

async fn clean_up_orphans(rewind: Rewind) {
    match rewind.clean_up_orphans().await {
        Ok(0) => {}
        Ok(sessions) => tracing::info!(sessions, "unmounted what an earlier run left behind"),
        Err(error) => {
            tracing::warn!(code = ?error.code, "an earlier run left something behind that could not be unmounted: {error}")
        }
    }
}
