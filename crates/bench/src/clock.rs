//! The clock of the measurements: processor time of a thread.

use rustix::time::{ClockId, clock_gettime};

/// Time that this thread has spent on a processor (ns). It does not include the time of other
/// threads on the same core.
pub fn thread_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    (time.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64)
}
