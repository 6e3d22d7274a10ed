//! Progress of long work, on stderr while it is a terminal.
use std::{sync::Arc, time::Duration};

use indicatif::{ProgressBar, ProgressStyle};
use rewind_core::{Progress, ProgressUpdate, Transfer, text};

/// The longest message that fits beside the bar.
const MESSAGE_LEN: usize = 120;

/// Shows how far the work is; gone without a trace when it is dropped.
pub struct Bar(ProgressBar);

impl Bar {
    /// A new one. It shows nothing where stderr is no terminal.
    pub fn new() -> Arc<Self> {
        let bar = ProgressBar::new_spinner();
        bar.set_style(style("{spinner} {elapsed} {wide_msg}"));
        bar.enable_steady_tick(Duration::from_millis(120));
        Arc::new(Self(bar))
    }
}

impl Progress for Bar {
    fn update(&self, update: ProgressUpdate) {
        if let Some(Transfer {
            bytes,
            total: Some(total),
        }) = update.transfer
        {
            if self.0.length().is_none() {
                self.0.set_style(style(
                    "{spinner} {elapsed} {bar:24} {bytes}/{total_bytes} {wide_msg}",
                ));
            }
            self.0.set_length(total);
            self.0.set_position(bytes);
        }
        self.0
            .set_message(text::display(&update.message, MESSAGE_LEN));
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
