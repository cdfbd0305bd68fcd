//! Waiting for other threads: a thread looks for a short time whether there is work, and then sleeps
//! until another thread rings its bell.

use super::sync::{AtomicBool, Mutex, Ordering, Thread, current, fence, park, spin};
use std::sync::PoisonError;

/// Wakes one thread.
#[derive(Default)]
pub(super) struct Bell {
    /// Whether the thread sleeps, or is about to.
    sleeps: AtomicBool,
    thread: Mutex<Option<Thread>>,
}

impl Bell {
    /// Wakes the thread if it sleeps. What this thread has done before is visible to that thread when
    /// it wakes, or when it looks next.
    pub(super) fn ring(&self) {
        // Orders the work before the question, as the fence in `wait` orders the answer before the
        // last look. So one of the two threads sees what the other one has done.
        fence(Ordering::SeqCst);
        if self.sleeps.load(Ordering::Relaxed) && self.sleeps.swap(false, Ordering::AcqRel) {
            let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if let Some(thread) = thread {
                thread.unpark();
            }
        }
    }

    /// Waits until `look` finds something. `spins` is the number of looks before the thread sleeps.
    pub(super) fn wait(&self, spins: u32, mut look: impl FnMut() -> bool) {
        for _ in 0..spins {
            if look() {
                return;
            }
            spin();
        }
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(current());
        loop {
            self.sleeps.store(true, Ordering::Relaxed);
            fence(Ordering::SeqCst);
            if look() {
                self.sleeps.store(false, Ordering::Relaxed);
                return;
            }
            while self.sleeps.load(Ordering::Acquire) {
                park();
            }
        }
    }
}
