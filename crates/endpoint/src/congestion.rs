//! The congestion window (RFC 5681, RFC 6582, RFC 6928).

/// Whether lost segments are being repaired.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Recovery {
    /// Nothing is known to be lost.
    None,
    /// Duplicates told of a loss (fast recovery).
    Fast,
    /// The timer told of it: all that was sent counts as lost.
    Timeout,
}

/// The congestion window of a sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Congestion {
    /// The window (bytes).
    pub window: u64,
    /// Below it, the window grows by slow start (bytes).
    pub threshold: u64,
    /// Acknowledged bytes that have not let the window grow yet.
    pub counted: u64,
    /// Whether lost segments are being repaired.
    pub recovery: Recovery,
    /// The offset whose acknowledgement ends the recovery.
    pub until: u64,
}

impl Congestion {
    /// A window at the start, for segments of `segment` bytes.
    pub fn new(segment: u64) -> Self {
        Self {
            window: initial(segment),
            threshold: u64::MAX,
            counted: 0,
            recovery: Recovery::None,
            until: 0,
        }
    }

    /// The connection begins, now that the size of segments is known. If the SYN was lost, one
    /// segment may be sent (RFC 5681 §3.1).
    pub fn begin(&mut self, segment: u64, was_lost: bool) {
        self.window = if was_lost { segment } else { initial(segment) };
    }

    /// Duplicates told of a loss while `flight` bytes were under way.
    pub fn lose(&mut self, flight: u64, segment: u64, until: u64) {
        self.threshold = (flight / 2).max(2 * segment);
        self.window = self.threshold;
        (self.counted, self.recovery, self.until) = (0, Recovery::Fast, until);
    }

    /// The timer ran out while `flight` bytes were under way. They are the same if it does so
    /// again, so the threshold stays then.
    pub fn time_out(&mut self, flight: u64, segment: u64, until: u64) {
        self.threshold = (flight / 2).max(2 * segment);
        self.window = segment;
        (self.counted, self.recovery, self.until) = (0, Recovery::Timeout, until);
    }

    /// All that is under way, up to `until`, leaves again, but not because of congestion.
    pub fn repeat(&mut self, until: u64) {
        if self.recovery != Recovery::Timeout {
            (self.counted, self.recovery, self.until) = (0, Recovery::Fast, until);
        }
    }

    /// Bytes were acknowledged outside of fast recovery. In slow start, the window grows by half of
    /// these bytes, or by one segment if that is more. So it grows as fast whether a receiver
    /// acknowledges every second segment, or many segments at once because they travelled together.
    /// After a time-out, it grows by one segment at most (RFC 3465 §2.3).
    pub fn grow(&mut self, acknowledged: u64, segment: u64) {
        if self.window < self.threshold {
            let half = if self.recovery == Recovery::Timeout { 0 } else { acknowledged / 2 };
            self.window = self.window.saturating_add(half.max(acknowledged.min(segment)));
            return;
        }
        self.counted = self.counted.saturating_add(acknowledged);
        if self.counted >= self.window {
            self.counted -= self.window;
            self.window = self.window.saturating_add(segment);
        }
    }

    /// Nothing was sent for longer than a timeout (RFC 5681 §4.1).
    pub fn rest(&mut self, segment: u64) {
        self.window = self.window.min(initial(segment));
    }
}

/// The initial window (RFC 6928 §2).
fn initial(segment: u64) -> u64 {
    (10 * segment).min((2 * segment).max(14_600))
}

#[cfg(test)]
mod tests {
    use super::Congestion;

    #[test]
    fn window_grows_by_slow_start_then_by_a_segment_per_window() {
        let mut congestion = Congestion::new(1000);
        assert_eq!(congestion.window, 10_000);
        congestion.grow(2000, 1000);
        assert_eq!(congestion.window, 11_000);
        congestion.lose(20_000, 1000, 0);
        assert_eq!(congestion.window, 10_000);
        (0..9).for_each(|_| congestion.grow(1000, 1000));
        assert_eq!(congestion.window, 10_000);
        congestion.grow(1000, 1000);
        assert_eq!(congestion.window, 11_000);
    }

    #[test]
    fn timeout_leaves_one_segment_and_lowers_the_threshold() {
        let mut congestion = Congestion::new(1000);
        congestion.time_out(10_000, 1000, 0);
        assert_eq!((congestion.window, congestion.threshold), (1000, 5000));
        congestion.time_out(1000, 1000, 0);
        assert_eq!((congestion.window, congestion.threshold), (1000, 2000));
    }
}
