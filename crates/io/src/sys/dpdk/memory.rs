//! Packet memory that DPDK's devices can reach.

use super::calls::{braid_dpdk_allocate, braid_dpdk_free};
use super::frames::Lent;
use crate::port::OpenError;
use braid_packet::Pool;
use braid_packet::frame::Region;
use std::ptr::{NonNull, slice_from_raw_parts_mut};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The regions that exist.
static REGIONS: Mutex<Vec<Weak<Memory>>> = Mutex::new(Vec::new());

/// A region of DPDK's memory. It ends with the last of its pool, the pool's frames and the ports
/// that use it.
pub(super) struct Memory {
    start: NonNull<u8>,
    length: usize,
    /// The frames of the region that devices have.
    lent: Mutex<Weak<Mutex<Lent>>>,
}

// SAFETY: `start` is only handed on, and the rest is behind a lock.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: `pool` allocated the memory, and nothing refers to it any more.
        unsafe { braid_dpdk_free(self.start.as_ptr().cast()) };
    }
}

/// A pool's share in its region.
struct Share(Arc<Memory>);

// SAFETY: the memory was allocated with zeros in it. DPDK touches a frame only while `Lent` holds
// it.
unsafe impl Region for Share {
    fn memory(&self) -> NonNull<[u8]> {
        let Memory { start, length, .. } = &*self.0;
        // The pointer is not null, as its start is not.
        NonNull::new(slice_from_raw_parts_mut(start.as_ptr(), *length))
            .unwrap_or(NonNull::slice_from_raw_parts(*start, 0))
    }
}

/// A pool of frames in DPDK's memory. DPDK must run.
///
/// # Errors
/// When DPDK has too little memory.
pub(crate) fn pool(frames: u32, size: u32) -> Result<Pool, OpenError> {
    let length = frames as usize * size as usize;
    // SAFETY: DPDK runs.
    let start = NonNull::new(unsafe { braid_dpdk_allocate(length) }.cast::<u8>());
    let Some(start) = start else {
        return Err(OpenError::Dpdk(format!(
            "DPDK has no room for {} MiB of packets; give it more huge pages, such as by \
             `sudo sysctl vm.nr_hugepages=512`",
            length >> 20
        )));
    };
    let memory = Arc::new(Memory { start, length, lent: Mutex::new(Weak::new()) });
    let mut regions = REGIONS.lock().unwrap_or_else(PoisonError::into_inner);
    regions.retain(|region| region.strong_count() > 0);
    regions.push(Arc::downgrade(&memory));
    Ok(Pool::in_region(Box::new(Share(memory)), size))
}

/// The frames of a pool that devices have. `None` if the pool is not in DPDK's memory.
///
/// # Errors
/// When DPDK has too little memory.
pub(super) fn lent(pool: &Pool) -> Result<Option<Arc<Mutex<Lent>>>, OpenError> {
    let regions = REGIONS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut found = regions.iter().filter_map(Weak::upgrade);
    let Some(memory) = found.find(|memory| memory.start == pool.memory().0) else {
        return Ok(None);
    };
    let mut known = memory.lent.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(lent) = known.upgrade() {
        return Ok(Some(lent));
    }
    let lent = Arc::new(Mutex::new(Lent::new(memory.clone(), pool)?));
    *known = Arc::downgrade(&lent);
    Ok(Some(lent))
}
