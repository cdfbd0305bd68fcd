//! Keeps native code from calling Braid outside of an instance's calls, or from another thread.

use std::ptr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

thread_local! {
    /// Its address tells the threads that live apart.
    static HERE: u8 = const { 0 };
}

fn here() -> usize {
    HERE.with(|here| ptr::from_ref(here).addr())
}

/// The gate of an instance: open for one thread while that thread runs a call of the instance.
#[derive(Default)]
pub(crate) struct Gate {
    /// The thread for which it is open. 0: none.
    thread: AtomicUsize,
    /// The number of calls that it has refused.
    refused: AtomicU64,
}

impl Gate {
    /// Opens the gate for this thread. Returns the thread for which it was open.
    pub(super) fn open(&self) -> usize {
        self.thread.swap(here(), Ordering::Relaxed)
    }

    /// Opens the gate for the thread for which it was open before.
    pub(super) fn close(&self, before: usize) {
        self.thread.store(before, Ordering::Relaxed);
    }

    /// Whether this thread may call Braid now. A thread that may not finds another number than its
    /// own, whatever the order of memory.
    pub(super) fn lets_in(&self) -> bool {
        let is_open = self.thread.load(Ordering::Relaxed) == here();
        if !is_open {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        is_open
    }

    /// The number of calls that it has refused.
    pub(super) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::Gate;

    #[test]
    fn gate_is_open_in_one_thread_during_a_call() {
        let gate = Gate::default();
        assert!(!gate.lets_in());
        let before = gate.open();
        assert!(gate.lets_in());
        std::thread::scope(|scope| {
            assert!(!scope.spawn(|| gate.lets_in()).join().unwrap());
        });
        gate.close(before);
        assert!(!gate.lets_in());
        assert_eq!(gate.refused(), 3);
    }
}
