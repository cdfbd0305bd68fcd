//! Descriptors that wake the worker of a thread.
//!
//! A worker that has nothing to do waits for its devices. A native function that runs on it may
//! wait for something else, such as a socket of another program. It names a descriptor here, in
//! the worker's thread, and the worker waits for that, too.

use std::cell::RefCell;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};

thread_local! {
    static HERE: RefCell<Vec<Weak<OwnedFd>>> = const { RefCell::new(Vec::new()) };
}

/// From now on, and as long as the descriptor exists, the worker of this thread also wakes when it
/// can be read. A descriptor that was named before counts once.
pub fn wake_for(descriptor: &Arc<OwnedFd>) {
    HERE.with_borrow_mut(|here| {
        let is_known =
            |known: &Weak<OwnedFd>| std::ptr::eq(known.as_ptr(), Arc::as_ptr(descriptor));
        if !here.iter().any(is_known) {
            here.push(Arc::downgrade(descriptor));
        }
    });
}

/// The descriptors for which the worker of this thread wakes.
#[must_use]
pub fn wakers() -> Vec<Arc<OwnedFd>> {
    HERE.with_borrow_mut(|here| {
        let all: Vec<_> = here.iter().filter_map(Weak::upgrade).collect();
        here.retain(|known| known.strong_count() > 0);
        all
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{EventfdFlags, eventfd};

    #[test]
    fn descriptor_wakes_its_thread_as_long_as_it_exists() {
        let event = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).expect("a descriptor"));
        wake_for(&event);
        wake_for(&event);
        assert_eq!(wakers().len(), 1);
        assert!(std::thread::spawn(|| wakers().is_empty()).join().expect("a thread"));
        drop(event);
        assert!(wakers().is_empty());
    }
}
