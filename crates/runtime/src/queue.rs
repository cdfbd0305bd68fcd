//! A queue between two threads that wakes a thread rarely. Waking costs as much as hundreds of
//! packets. So a waiting thread is woken when several items wait for it, when one of them is
//! urgent, or after a short time.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The longest time for which an item waits while the receiver sleeps.
const PATIENCE: Duration = Duration::from_millis(1);

/// Makes a queue with room for `most` items. The `enough`-th item wakes a receiver that waits.
pub(crate) fn queue<T>(most: usize, enough: usize) -> (Sender<T>, Receiver<T>) {
    let state = State { things: VecDeque::with_capacity(most), senders: 1, has_receiver: true };
    let shared = Arc::new(Shared { state: Mutex::new(state), wake: Condvar::new(), enough });
    (Sender(Arc::clone(&shared)), Receiver(shared))
}

struct Shared<T> {
    state: Mutex<State<T>>,
    wake: Condvar,
    enough: usize,
}

struct State<T> {
    things: VecDeque<T>,
    senders: usize,
    has_receiver: bool,
}

impl<T> Shared<T> {
    fn state(&self) -> MutexGuard<'_, State<T>> {
        // No code that can panic runs under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The sending end. The queue ends with its last sender.
pub(crate) struct Sender<T>(Arc<Shared<T>>);

impl<T> Sender<T> {
    /// Sends an item. An urgent item wakes the receiver. Returns false if there is no receiver.
    pub(crate) fn send(&self, thing: T, is_urgent: bool) -> bool {
        let mut state = self.0.state();
        if !state.has_receiver {
            return false;
        }
        state.things.push_back(thing);
        let wakes = is_urgent || state.things.len() == self.0.enough;
        drop(state);
        if wakes {
            self.0.wake.notify_one();
        }
        true
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.0.state().senders += 1;
        Self(Arc::clone(&self.0))
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.0.state().senders -= 1;
        self.0.wake.notify_one();
    }
}

/// The receiving end.
pub(crate) struct Receiver<T>(Arc<Shared<T>>);

impl<T> Receiver<T> {
    /// The next item. `None` at the end.
    pub(crate) fn next(&self) -> Option<T> {
        self.next_while(|| true)
    }

    /// As [`Self::next`]. `None` also if there is nothing and `goes_on` has become false.
    pub(crate) fn next_while(&self, goes_on: impl Fn() -> bool) -> Option<T> {
        let mut state = self.0.state();
        loop {
            if let Some(thing) = state.things.pop_front() {
                return Some(thing);
            }
            if state.senders == 0 || !goes_on() {
                return None;
            }
            let waited = self.0.wake.wait_timeout(state, PATIENCE);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.0.state().has_receiver = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_come_in_order_and_the_end_behind_them() {
        let (send, receive) = queue(8, 4);
        let thread =
            std::thread::spawn(move || std::iter::from_fn(|| receive.next()).collect::<Vec<u32>>());
        let other = send.clone();
        assert!((0..1000).all(|thing| send.send(thing, thing % 7 == 0)));
        drop(send);
        other.send(1000, false);
        drop(other);
        assert_eq!(thread.join().unwrap(), (0..=1000).collect::<Vec<_>>());
    }

    #[test]
    fn thing_that_is_not_urgent_comes_soon() {
        let (send, receive) = queue(8, 4);
        let thread = std::thread::spawn(move || receive.next());
        std::thread::sleep(Duration::from_millis(20));
        assert!(send.send(5, false));
        assert_eq!(thread.join().unwrap(), Some(5));
    }

    #[test]
    fn wait_ends_when_nothing_shall_come() {
        let (send, receive) = queue(8, 4);
        send.send(1, false);
        assert_eq!(receive.next_while(|| false), Some(1));
        assert_eq!(receive.next_while(|| false), None);
    }

    #[test]
    fn sender_learns_that_nobody_receives() {
        let (send, receive) = queue(8, 4);
        drop(receive);
        assert!(!send.send(1, true));
    }
}
