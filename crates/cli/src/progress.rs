//! Progress of long work: on standard error, and only where that is a terminal.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A progress bar over bytes, hidden unless a person looks at it.
pub struct Progress(ProgressBar);

impl Progress {
    /// For work on so many bytes.
    pub fn bytes(total: u64, what: &str) -> Self {
        let template = "{msg} [{bar:32}] {bytes}/{total_bytes} {eta}";
        Self::new(total, what, template)
    }

    fn new(total: u64, what: &str, template: &str) -> Self {
        let visible = std::io::stderr().is_terminal();
        let target =
            if visible { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(total), target);
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message(what.to_owned());
        bar.enable_steady_tick(Duration::from_millis(200));
        Self(bar)
    }

    /// So much is done.
    pub fn set(&self, done: u64) {
        self.0.set_position(done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
