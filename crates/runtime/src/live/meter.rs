//! The load of a worker.

/// The time over which a load is measured (ns).
const WINDOW_NS: u64 = 1_000_000_000;

/// Measures how busy a worker is, and how many packets it reads. It reads no clock.
#[derive(Default)]
pub(super) struct Meter {
    /// When the current window began (ns).
    since_ns: u64,
    /// The packets that had been read by then.
    packets_before: u64,
    /// The time of the window so far in which the worker was not waiting for frames (ns).
    busy_ns: u64,
    last: Rates,
}

/// The load of a worker in the last whole window.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Rates {
    /// The share of the time in which it was not waiting for frames, in per cent.
    pub(super) busy_percent: u64,
    /// Frames read.
    pub(super) packets_per_second: u64,
}

impl Meter {
    /// Records that the worker has been busy for `busy_ns` since the last call, and has read
    /// `packets` packets in all. Returns whether another window begins.
    #[inline]
    pub(super) fn note(&mut self, now_ns: u64, busy_ns: u64, packets: u64) -> bool {
        self.busy_ns += busy_ns;
        let ends = now_ns.saturating_sub(self.since_ns) >= WINDOW_NS;
        if ends {
            self.begin_window(now_ns, packets);
        }
        ends
    }

    #[cold]
    fn begin_window(&mut self, now_ns: u64, packets: u64) {
        let passed_ns = u128::from(now_ns.saturating_sub(self.since_ns)).max(1);
        let share = |part: u64, whole: u128| {
            u64::try_from(u128::from(part) * whole / passed_ns).unwrap_or(u64::MAX)
        };
        self.last = Rates {
            busy_percent: share(self.busy_ns, 100).min(100),
            packets_per_second: share(packets - self.packets_before, u128::from(WINDOW_NS)),
        };
        (self.since_ns, self.packets_before, self.busy_ns) = (now_ns, packets, 0);
    }

    /// The load in the last whole window; nothing before the first one has passed.
    pub(super) fn rates(&self) -> Rates {
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_is_that_of_the_last_whole_second() {
        let mut meter = Meter::default();
        let start = 1_700_000_000 * WINDOW_NS;
        meter.note(start, 0, 0);
        let ends = (1..=10).map(|n| meter.note(start + n * WINDOW_NS / 10, 25_000_000, n * 7));
        assert_eq!(ends.filter(|ends| *ends).count(), 1);
        let first = Rates { busy_percent: 25, packets_per_second: 70 };
        assert_eq!(meter.rates(), first);
        meter.note(start + WINDOW_NS * 3 / 2, WINDOW_NS / 2, 1_000);
        assert_eq!(meter.rates(), first);
        // There was no call for two and a half seconds, so the window is longer.
        meter.note(start + 4 * WINDOW_NS, 0, 1_270);
        assert_eq!(meter.rates(), Rates { busy_percent: 16, packets_per_second: 400 });
    }
}
