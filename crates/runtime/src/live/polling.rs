//! Decides when a worker sleeps: not while packets come faster than it could fall asleep and wake.

/// The approximate time to fall asleep and wake (ns).
const WAKING_NS: u64 = 20_000;

/// The longest gap that counts (ns). After one such gap, a dozen short ones must follow before the
/// worker stays awake again.
const LONG_NS: u64 = 1_000_000;

/// Decides whether a worker that found nothing to do sleeps. It reads no clock.
#[derive(Default)]
pub(super) struct Polling {
    /// When the worker last found packets (ns).
    last_ns: u64,
    /// The mean time from packets to the next ones (ns); recent ones count most.
    gap_ns: u64,
}

impl Polling {
    /// Records that the worker has found packets.
    #[inline]
    pub(super) fn found(&mut self, now_ns: u64) {
        let gap = now_ns.saturating_sub(self.last_ns).min(LONG_NS);
        self.gap_ns = (self.gap_ns * 7 + gap) / 8;
        self.last_ns = now_ns;
    }

    /// Whether to sleep, because the next packets are expected later than the worker could wake, or
    /// because they do not come as expected.
    #[inline]
    pub(super) fn sleeps(&self, now_ns: u64) -> bool {
        self.gap_ns >= WAKING_NS || now_ns.saturating_sub(self.last_ns) >= 2 * WAKING_NS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Polling that has found packets at these times.
    fn after(times: impl IntoIterator<Item = u64>) -> Polling {
        let mut polling = Polling::default();
        times.into_iter().for_each(|time| polling.found(time));
        polling
    }

    #[test]
    fn steady_packets_keep_the_worker_awake_until_they_end() {
        let polling = after((0..100).map(|count| MS + count * 10_000));
        let last = MS + 99 * 10_000;
        assert!(!polling.sleeps(last + 1_000));
        assert!(!polling.sleeps(last + 39_999));
        assert!(polling.sleeps(last + 40_000));
    }

    #[test]
    fn rare_packets_let_the_worker_sleep_at_once() {
        let polling = after((0..100).map(|count| MS + count * 100_000));
        assert!(polling.sleeps(MS + 99 * 100_000 + 1_000));
    }

    #[test]
    fn packets_after_a_long_gap_keep_nobody_awake_unless_they_go_on() {
        let start = 1_000 * MS;
        let few = |count| after([start].into_iter().chain((1..count).map(|n| start + n * 1_000)));
        assert!(few(5).sleeps(start + 5_000));
        assert!(!few(40).sleeps(start + 40_000));
    }
}
