//! What threads share with each other. In the test of how they wait, shuttle stands for the system.

#[cfg(feature = "model")]
pub(super) use shuttle::{
    sync::atomic::{AtomicBool, Ordering, fence},
    thread::{Thread, current, park},
};
#[cfg(not(feature = "model"))]
pub(super) use std::{
    sync::atomic::{AtomicBool, Ordering, fence},
    thread::{Thread, current, park},
};

/// Lets a short time pass.
pub(super) fn spin() {
    #[cfg(feature = "model")]
    shuttle::thread::yield_now();
    #[cfg(not(feature = "model"))]
    std::hint::spin_loop();
}
