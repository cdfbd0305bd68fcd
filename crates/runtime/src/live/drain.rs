//! The quiet end of a worker: no packet enters any more, and the packets that wait inside leave.

use super::worker::Worker;
use crate::outcome::RunError;

/// The reason for which packets that arrive while a worker drains are lost.
pub(super) const DRAINED: &str = "drained";

impl Worker<'_> {
    /// Lets no packet enter from now on. The worker ends when no packet waits in it any more, or
    /// after this time. Returns the number of packets that wait.
    pub(super) fn drain(&mut self, within_ns: u64) -> u64 {
        self.drains_until_ns = Some(self.clock.now_ns().saturating_add(within_ns));
        self.waiting()
    }

    /// Whether the worker drains and has nothing left to do. Runs what is due by this time.
    pub(super) fn has_drained(&mut self, now: u64) -> Result<bool, RunError> {
        let Some(until) = self.drains_until_ns else { return Ok(false) };
        self.advance(now)?;
        Ok(now >= until || self.waiting() == 0)
    }

    /// Loses the frames that were read, as frames that may not enter.
    pub(super) fn refuse(&mut self) {
        let Self { frames, sink, packets, lost, .. } = self;
        if !frames.is_empty() {
            *packets += frames.len() as u64;
            *lost.entry(DRAINED).or_default() += frames.len() as u64;
            frames.drain(..).for_each(|frame| sink.pool.put(frame));
        }
    }

    /// The number of packets that wait in queues of functions and for their next hops.
    fn waiting(&self) -> u64 {
        let for_hops = self.sink.hosts.as_ref().map_or(0, |hosts| hosts.waiting() as u64);
        self.engine.counters().held + for_hops
    }
}
