//! Waiting for other threads: a thread looks for a short time whether there is work, and then
//! sleeps until another thread rings its bell.

use super::sync::{AtomicBool, Ordering, Thread, current, fence, park, spin};
use std::sync::{Mutex, PoisonError};

/// Wakes one thread.
pub(super) struct Bell {
    /// Whether the thread sleeps, or is about to.
    sleeps: AtomicBool,
    thread: Mutex<Option<Thread>>,
}

impl Default for Bell {
    fn default() -> Self {
        Self { sleeps: AtomicBool::new(false), thread: Mutex::new(None) }
    }
}

impl Bell {
    /// Wakes the thread if it sleeps. What this thread has done before is visible to that thread
    /// when it wakes, or when it looks next.
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
            self.sleeps.store(true, Ordering::Release);
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

#[cfg(feature = "model")]
#[cfg(test)]
mod tests {
    use super::*;
    use shuttle::sync::Arc;
    use shuttle::sync::atomic::AtomicUsize;
    use shuttle::thread;

    /// Two threads each put two things on a ring and ring. The third one must see all, in whatever
    /// order the steps of the three come. Shuttle reports a thread that sleeps for ever.
    #[test]
    fn no_thread_sleeps_while_there_is_work() {
        let steps = || {
            let shared = Arc::new((Bell::default(), [AtomicUsize::new(0), AtomicUsize::new(0)]));
            for at in [0, 1] {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    let (bell, rings) = &*shared;
                    for _ in 0..2 {
                        rings[at].fetch_add(1, Ordering::Release);
                        bell.ring();
                    }
                });
            }
            let (bell, rings) = &*shared;
            let mut seen = [0, 0];
            while seen != [2, 2] {
                let now = || [0, 1].map(|at: usize| rings[at].load(Ordering::Acquire));
                bell.wait(0, || now() != seen);
                seen = now();
            }
        };
        shuttle::check_random(steps, 20_000);
        shuttle::check_pct(steps, 20_000, 3);
    }
}
