//! What threads share with each other.

pub(super) use std::sync::Mutex;
pub(super) use std::sync::atomic::{AtomicBool, Ordering, fence};
pub(super) use std::thread::{Thread, current, park};

/// Lets a short time pass.
pub(super) fn spin() {
    std::hint::spin_loop();
}
