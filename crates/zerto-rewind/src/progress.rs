//! Progress of long work, on stderr while it is a terminal.
use std::{sync::Arc, time::Duration};

use indicatif::{ProgressBar, ProgressStyle};
use rewind_core::{Progress, ProgressUpdate, Transfer, text};

/// The longest message that fits beside the bar.
const MESSAGE_LEN: usize = 120;
/// Often enough to look alive.
const EVERY: Duration = Duration::from_millis(120);

const WAITING: &str = "{spinner} {elapsed} {wide_msg}";
const DOWNLOADING: &str = "{spinner} {elapsed} {bar:24} {bytes}/{total_bytes} {wide_msg}";
const DOWNLOADING_OF_UNKNOWN_SIZE: &str = "{spinner} {elapsed} {bytes} {wide_msg}";

/// Shows how far the work is; gone without a trace when it is dropped.
pub struct Bar(ProgressBar);

impl Bar {
    /// A new one. It shows nothing where stderr is no terminal.
    pub fn new() -> Arc<Self> {
        let bar = ProgressBar::new_spinner();
        bar.set_style(style(WAITING));
        bar.enable_steady_tick(EVERY);
        Arc::new(Self(bar))
    }
}

impl Progress for Bar {
    fn update(&self, update: ProgressUpdate) {
        let bar = &self.0;
        match update.transfer {
            None => bar.set_style(style(WAITING)),
            Some(Transfer { bytes, total }) => {
                match total {
                    Some(total) => {
                        bar.set_style(style(DOWNLOADING));
                        bar.set_length(total);
                    }
                    None => bar.set_style(style(DOWNLOADING_OF_UNKNOWN_SIZE)),
                }
                bar.set_position(bytes);
            }
        }
        bar.set_message(text::display(&update.message, MESSAGE_LEN));
    }

    fn every(&self) -> Duration {
        EVERY
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner())
}
