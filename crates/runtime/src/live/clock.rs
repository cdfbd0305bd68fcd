//! The clock of a live run.

use std::time::{Duration, Instant, SystemTime};

/// A clock in nanoseconds since the epoch. It never goes back, even if someone sets the machine's
/// clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start_ns: u64,
    since: Instant,
}

impl Clock {
    /// Reads the machine's clock once; from then on time passes evenly.
    #[must_use]
    pub fn start() -> Self {
        let epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Self { start_ns: nanoseconds(epoch.unwrap_or_default()), since: Instant::now() }
    }

    /// The time at which the clock was started.
    #[must_use]
    pub fn start_ns(&self) -> u64 {
        self.start_ns
    }

    /// The current time.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.start_ns.saturating_add(nanoseconds(self.since.elapsed()))
    }
}

/// A duration in nanoseconds.
pub(super) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
