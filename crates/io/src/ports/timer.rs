//! A timer that a thread can wait for beside its devices.

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// A timer. It becomes ready when the time of the last `set` has passed, and stays ready until it
/// is set again.
pub(super) struct Timer(OwnedFd);

impl Timer {
    /// A timer that is not set.
    pub(super) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        Ok(Self(timerfd_create(TimerfdClockId::Monotonic, flags)?))
    }

    /// Makes the timer ready after this time.
    pub(super) fn set(&self, left: Duration) -> io::Result<()> {
        // A time of 0 would stop the timer.
        self.write(left.max(Duration::from_nanos(1)))
    }

    /// Stops the timer: it does not become ready any more.
    pub(super) fn stop(&self) -> io::Result<()> {
        self.write(Duration::ZERO)
    }

    fn write(&self, left: Duration) -> io::Result<()> {
        let value = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        Ok(timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &once).map(drop)?)
    }

    /// The descriptor to wait for.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
