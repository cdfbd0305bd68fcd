//! Progress bars on standard error, shown only if it is a terminal.

use std::io::IsTerminal;
use std::time::Duration;

use braid_io::{PacketSource, ReadError, Warning};
use braid_packet::Packet;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A progress bar, hidden unless standard error is a terminal.
pub struct Progress(ProgressBar);

impl Progress {
    /// A bar for work on this many bytes.
    pub fn bytes(total: u64, what: &str) -> Self {
        let template = "{msg} [{bar:32}] {bytes}/{total_bytes} {eta}";
        Self::new(total, what, template)
    }

    /// A bar that shows a percentage only.
    pub fn share(total: u64, what: &str) -> Self {
        Self::new(total, what, "{msg} [{bar:32}] {percent}% {eta}")
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

    /// Sets the amount of finished work.
    pub fn set(&self, done: u64) {
        self.0.set_position(done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// The number of packets between two updates of the bar.
const PERIOD: u64 = 1024;

/// A source that shows its progress.
pub struct Shown<'a, S> {
    source: &'a mut S,
    what: &'static str,
    bar: Option<Progress>,
    packets: u64,
}

impl<'a, S: PacketSource> Shown<'a, S> {
    /// Shows the progress of `source`.
    pub fn new(source: &'a mut S, what: &'static str) -> Self {
        Self { source, what, bar: None, packets: 0 }
    }
}

impl<S: PacketSource> PacketSource for Shown<'_, S> {
    fn next_packet(&mut self) -> Result<Option<Packet>, ReadError> {
        self.packets += 1;
        if self.packets.is_multiple_of(PERIOD)
            && let Some(now) = self.source.progress()
        {
            let bar = self.bar.get_or_insert_with(|| Progress::bytes(now.total, self.what));
            bar.set(now.read);
        }
        self.source.next_packet()
    }

    fn warning(&self) -> Option<Warning> {
        self.source.warning()
    }

    fn progress(&self) -> Option<braid_io::Progress> {
        self.source.progress()
    }
}
