//! Connections that other processes serve: Braid's ends of their pairs of sockets.
//!
//! They belong to the process: an instance that takes over from another one finds them by number.

use super::listener::Channel;
use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

static ALL: Mutex<Option<HashMap<u64, Weak<Outside>>>> = Mutex::new(None);
static NEXT: AtomicU64 = AtomicU64::new(1);

/// Braid's end of a pair of sockets.
#[derive(Debug)]
pub struct Outside {
    number: u64,
    /// The end.
    pub socket: OwnedFd,
    /// Of the server that has the other end.
    pub server: Arc<Channel>,
}

impl Outside {
    /// The end of a pair whose other end a server has.
    pub fn new(socket: OwnedFd, server: Arc<Channel>) -> Arc<Self> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let outside = Arc::new(Self { number, socket, server });
        with_all(|all| all.insert(number, Arc::downgrade(&outside)));
        outside
    }

    /// Its name: that of the process, and its number there.
    pub fn name(&self) -> (u64, u64) {
        (process(), self.number)
    }

    /// The end with this name, if this process has it.
    pub fn named((of, number): (u64, u64)) -> Option<Arc<Self>> {
        with_all(|all| all.get(&number).filter(|_| of == process()).and_then(Weak::upgrade))
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        with_all(|all| all.remove(&self.number));
    }
}

/// A number that no other process has.
fn process() -> u64 {
    static NUMBER: OnceLock<u64> = OnceLock::new();
    *NUMBER.get_or_init(|| RandomState::new().hash_one(std::process::id()))
}

fn with_all<T>(work: impl FnOnce(&mut HashMap<u64, Weak<Outside>>) -> T) -> T {
    let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    work(all.get_or_insert_default())
}
