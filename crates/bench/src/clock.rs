//! Time that is measured.

use rustix::time::{ClockId, clock_gettime};

/// Time that this thread has spent on a processor (ns): what others do on the same core does not count.
pub fn thread_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    (time.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64)
}
