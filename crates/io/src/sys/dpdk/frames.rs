//! The frames of a pool that DPDK has.
//!
//! Each frame of the pool has an mbuf, DPDK's descriptor of a packet, which points to the frame's
//! memory. So packets go from device to pool to device without a copy. While an mbuf is in DPDK's
//! pool of mbufs or in a driver's queue, its frame is here. When a driver hands the mbuf out with a
//! packet, the frame leaves, and when it is sent, it comes back here.

use super::calls::{
    Mbuf, Mempool, braid_dpdk_give, braid_dpdk_pool, braid_dpdk_pool_end, braid_dpdk_take,
};
use crate::port::OpenError;
use braid_packet::{BURST, Frame, Pool};
use std::any::Any;
use std::ffi::CString;
use std::mem;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The frames of one pool that DPDK has.
pub(super) struct Lent {
    /// The mbufs, for drivers to take.
    mempool: NonNull<Mempool>,
    /// By the number of a frame, its mbuf.
    mbufs: Vec<*mut Mbuf>,
    /// By number, the frames that DPDK has. All other elements are empty.
    held: Vec<Frame>,
    /// The number of frames that DPDK has, and should have.
    count: usize,
    wanted: usize,
    start: NonNull<u8>,
    size: usize,
    /// Frames point to it.
    _memory: Arc<dyn Any + Send + Sync>,
}

// SAFETY: mbufs and pools of mbufs belong to no thread.
unsafe impl Send for Lent {}

impl Lent {
    /// Makes the mbufs of a pool, whose memory lives as long as `memory`. DPDK has no frame yet.
    pub(super) fn new(memory: Arc<dyn Any + Send + Sync>, pool: &Pool) -> Result<Self, OpenError> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let (start, length) = pool.memory();
        let size = pool.frame_size();
        let frames = length / size as usize;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = CString::new(format!("braid-{number}")).unwrap_or_default();
        let count = u32::try_from(frames).unwrap_or(u32::MAX);
        // SAFETY: the memory consists of `count` frames of this size. It lives as long as `this`.
        let mempool = unsafe { braid_dpdk_pool(name.as_ptr(), start.as_ptr(), count, size) };
        let mempool = NonNull::new(mempool).ok_or_else(|| {
            OpenError::Dpdk("DPDK has too little memory; give it more huge pages".to_owned())
        })?;
        let mut this = Self {
            mempool,
            mbufs: vec![null_mut(); frames],
            held: (0..frames).map(|_| Frame::empty()).collect(),
            count: 0,
            wanted: 0,
            start,
            size: size as usize,
            _memory: memory,
        };
        while let Some((mbuf, memory)) = this.take() {
            let place = this.place(memory);
            if let Some(known) = this.mbufs.get_mut(place) {
                *known = mbuf;
            }
        }
        Ok(this)
    }

    pub(super) fn mempool(&self) -> *mut Mempool {
        self.mempool.as_ptr()
    }

    /// Lends this number of further frames, because a device needs them. They are handed over when
    /// the device receives.
    pub(super) fn want(&mut self, frames: usize) {
        self.wanted += frames;
    }

    /// Lends fewer frames, by this number.
    pub(super) fn want_less(&mut self, frames: usize) {
        self.wanted = self.wanted.saturating_sub(frames);
    }

    /// Makes sure that DPDK has about as many frames as wanted. If it has more, the surplus is in
    /// drivers' queues or was sent by drivers.
    pub(super) fn balance(&mut self, pool: &mut Pool) {
        if self.count + BURST < self.wanted {
            while self.count < self.wanted
                && let Some(frame) = pool.take()
                && let Some((mbuf, _)) = self.hold(pool, frame)
            {
                // SAFETY: the mbuf is of this pool of mbufs, and was outside of it.
                unsafe { braid_dpdk_give(self.mempool(), mbuf) };
            }
        } else if self.count > self.wanted + BURST {
            while self.count > self.wanted
                && let Some((_, memory)) = self.take()
                && let Some(frame) = self.release(memory)
            {
                pool.put(frame);
            }
        }
    }

    /// Keeps a frame for DPDK. Returns its mbuf and the start of its memory. `None` if the frame is
    /// not of the pool whose frames are here.
    pub(super) fn hold(&mut self, pool: &Pool, frame: Frame) -> Option<(*mut Mbuf, *mut u8)> {
        let place = pool.index(&frame).filter(|_| pool.memory().0 == self.start)? as usize;
        let (held, mbuf) = (self.held.get_mut(place)?, self.mbufs.get(place)?);
        *held = frame;
        self.count += 1;
        // The place is in the region.
        Some((*mbuf, self.start.as_ptr().wrapping_add(place * self.size)))
    }

    /// Takes back the frame with this memory, whose mbuf DPDK has handed out.
    pub(super) fn release(&mut self, memory: *mut u8) -> Option<Frame> {
        let place = self.place(memory);
        let held = self.held.get_mut(place)?;
        self.count = self.count.saturating_sub(1);
        Some(mem::replace(held, Frame::empty()))
    }

    /// The number of the frame whose memory begins here.
    fn place(&self, memory: *mut u8) -> usize {
        memory.addr().wrapping_sub(self.start.as_ptr().addr()) / self.size
    }

    /// Takes an mbuf out of the pool of mbufs, with the start of its frame's memory.
    fn take(&mut self) -> Option<(*mut Mbuf, *mut u8)> {
        let mut memory = null_mut();
        // SAFETY: the pool of mbufs lives, and nothing else borrows `memory`.
        let mbuf = unsafe { braid_dpdk_take(self.mempool(), &raw mut memory) };
        (!mbuf.is_null()).then_some((mbuf, memory))
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        // SAFETY: each port that uses the mbufs keeps this value until its device has ended.
        unsafe { braid_dpdk_pool_end(self.mempool()) };
    }
}
