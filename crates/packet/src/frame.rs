//! Packet memory: pools of equal frames, and frames that own their place in a pool or memory of
//! their own.
//!
//! This module is the only one of the crate with unsafe code. Its claim: a [`Frame`] is the only
//! owner of `size` initialised bytes at `base`, until it is dropped or taken apart.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};

/// Room in front of a packet that a port or a reader has put into a frame, in bytes. Headers that
/// functions add go there.
pub const HEADROOM: u32 = 192;

/// The usual size of a pool's frames, in bytes.
pub const FRAME: u32 = 2048;

/// The size of the frames of a pool that no device shares, in bytes. It is no power of two. So the
/// first bytes of many packets do not all fall into the same few sets of the nearest cache.
pub const SPREAD_FRAME: u32 = FRAME + 128;

/// The alignment of a pool's memory: a page.
const PAGE: usize = 4096;

/// The end of a list of free frames.
const NONE: u32 = u32::MAX;

/// Stands in the place of the first returned frame when the pool is gone.
const CLOSED: u32 = u32::MAX - 1;

/// Memory for a pool that is not allocated here, such as memory that a device shares. It lives as
/// long as this value.
///
/// # Safety
/// [`Region::memory`] returns the same initialised bytes at each call. While the value lives, no
/// one else reads or writes the bytes of a frame without owning the frame.
pub unsafe trait Region: Send {
    /// The bytes.
    fn memory(&self) -> NonNull<[u8]>;
}

/// Memory from the allocator. The system provides its pages when they are used first.
struct Allocated {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the memory belongs to the value alone.
unsafe impl Send for Allocated {}

// SAFETY: the allocator has set the bytes to 0, and they stay where they are until the drop.
unsafe impl Region for Allocated {
    fn memory(&self) -> NonNull<[u8]> {
        let skip = self.start.align_offset(PAGE);
        // SAFETY: there is a page more than the memory has.
        let start = unsafe { self.start.add(skip) };
        NonNull::slice_from_raw_parts(start, self.layout.size() - PAGE)
    }
}

impl Drop for Allocated {
    fn drop(&mut self) {
        // SAFETY: `Allocated::new` allocated the memory with this layout.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

impl Allocated {
    /// This number of zero bytes, from the beginning of a page on. `None` if there is not enough
    /// memory.
    fn new(bytes: usize) -> Option<Self> {
        // For a larger alignment, the allocator would write to all pages.
        let layout = Layout::from_size_align(bytes.checked_add(PAGE)?, 16).ok()?;
        // SAFETY: the layout is not empty.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        Some(Self { start, layout })
    }
}

/// A limited number of equal frames in one region of memory.
///
/// One thread takes frames and puts them back. A frame that is dropped, on whatever thread, returns
/// to its pool, too. The memory lives until the pool and all of its frames are gone.
pub struct Pool {
    shared: NonNull<Shared>,
    /// The frames that can be taken.
    free: Vec<u32>,
}

/// The part of a pool that its frames refer to.
struct Shared {
    base: NonNull<u8>,
    /// The owner of the memory.
    _region: Box<dyn Region>,
    /// The size of a frame in bytes.
    size: u32,
    frames: u32,
    /// The first of the frames that were dropped. `next` links the others.
    returned: AtomicU32,
    next: Box<[AtomicU32]>,
    /// Once the pool is gone: the number of its frames that still exist.
    left: AtomicI64,
}

impl Shared {
    /// Returns a frame. The frame's bytes may belong to someone else from then on.
    fn give(shared: NonNull<Shared>, index: u32) {
        // SAFETY: a frame that is not yet returned keeps its pool's shared part alive.
        let this = unsafe { shared.as_ref() };
        let Some(next) = this.next.get(index as usize) else { return };
        let mut first = this.returned.load(Ordering::Relaxed);
        loop {
            if first == CLOSED {
                return Shared::one_less(shared);
            }
            next.store(first, Ordering::Relaxed);
            let changed = this.returned.compare_exchange_weak(
                first,
                index,
                Ordering::Release,
                Ordering::Relaxed,
            );
            match changed {
                Ok(_) => return,
                Err(now) => first = now,
            }
        }
    }

    /// Counts a frame that ends after its pool. The last one frees the memory.
    fn one_less(shared: NonNull<Shared>) {
        // SAFETY: this frame has not been counted yet, so the shared part is there.
        let left = unsafe { shared.as_ref() }.left.fetch_sub(1, Ordering::AcqRel);
        if left == 1 {
            // SAFETY: the pool and all of its frames are gone.
            unsafe { Shared::free(shared) };
        }
    }

    /// Frees the memory and the shared part.
    ///
    /// # Safety
    /// Nothing refers to them any more.
    unsafe fn free(shared: NonNull<Shared>) {
        // SAFETY: `Pool::of` made the box, and nothing else refers to it.
        drop(unsafe { Box::from_raw(shared.as_ptr()) });
    }
}

impl Pool {
    /// A pool of `frames` frames of `size` bytes each (at least 1). `None` if there is not enough
    /// memory.
    #[must_use]
    pub fn new(frames: u32, size: u32) -> Option<Self> {
        let (frames, size) = (frames.min(CLOSED - 1), size.max(1));
        let bytes = (size as usize).checked_mul(frames as usize)?;
        Some(Self::of(Box::new(Allocated::new(bytes)?), frames, size))
    }

    /// A pool of as many frames of `size` bytes (at least 1) as the region has room for.
    #[must_use]
    pub fn in_region(region: Box<dyn Region>, size: u32) -> Self {
        let (memory, size) = (region.memory(), size.max(1));
        let frames = u32::try_from(memory.len() / size as usize).unwrap_or(u32::MAX);
        Self::of(region, frames.min(CLOSED - 1), size)
    }

    /// A pool of frames at the beginning of a region, which has room for them.
    fn of(region: Box<dyn Region>, frames: u32, size: u32) -> Self {
        let shared = Shared {
            base: region.memory().cast(),
            _region: region,
            size,
            frames,
            returned: AtomicU32::new(NONE),
            next: (0..frames).map(|_| AtomicU32::new(NONE)).collect(),
            left: AtomicI64::new(0),
        };
        let shared = NonNull::from(Box::leak(Box::new(shared)));
        Self { shared, free: (0..frames).rev().collect() }
    }

    fn shared(&self) -> &Shared {
        // SAFETY: the shared part lives at least as long as the pool.
        unsafe { self.shared.as_ref() }
    }

    /// The size of a frame in bytes.
    #[must_use]
    pub fn frame_size(&self) -> u32 {
        self.shared().size
    }

    /// The start and the length of the memory of all frames. Frame N begins at N frame sizes.
    #[must_use]
    pub fn memory(&self) -> (NonNull<u8>, usize) {
        let Shared { base, size, frames, .. } = self.shared();
        (*base, *size as usize * *frames as usize)
    }

    /// The number of a frame in this pool. `None` if the frame is not of this pool.
    #[must_use]
    #[inline]
    pub fn index(&self, frame: &Frame) -> Option<u32> {
        if frame.pool != Some(self.shared) {
            return None;
        }
        let shared = self.shared();
        // SAFETY: both pointers are into the pool's region.
        let offset = unsafe { frame.base.byte_offset_from_unsigned(shared.base) };
        u32::try_from(offset / shared.size as usize).ok()
    }

    /// An empty frame with [`HEADROOM`] bytes of room in front (less if the frame is smaller).
    /// `None` if no frame is free.
    #[inline]
    #[must_use]
    pub fn take(&mut self) -> Option<Frame> {
        let index = match self.free.pop() {
            Some(index) => index,
            None => self.reclaim()?,
        };
        let shared = self.shared();
        let offset = index as usize * shared.size as usize;
        // SAFETY: the pool has more frames than `index`, so the offset is in its region.
        let base = unsafe { shared.base.byte_add(offset) };
        Some(Frame {
            base,
            pool: Some(self.shared),
            index,
            start: HEADROOM.min(shared.size),
            len: 0,
            size: shared.size,
        })
    }

    /// Takes a frame and appends it to a list. `None` if no frame is free. The frame is made in its
    /// place, for the reason that `Frame::come_from` has.
    #[inline(always)]
    pub fn take_to<'f>(&mut self, frames: &'f mut Vec<Frame>) -> Option<&'f mut Frame> {
        frames.push(Frame::empty());
        if !frames.last_mut().is_some_and(|frame| frame.come_from(self)) {
            frames.pop();
            return None;
        }
        frames.last_mut()
    }

    /// A frame that holds these bytes: of this pool if they fit and a frame is free, otherwise with
    /// memory of its own.
    #[inline]
    #[must_use]
    pub fn frame_of(&mut self, bytes: &[u8]) -> Frame {
        if let Some(mut frame) = self.take()
            && frame.push(bytes)
        {
            return frame;
        }
        Frame::of(bytes)
    }

    /// Takes back a frame. A frame that is not of this pool is dropped.
    #[inline]
    pub fn put(&mut self, frame: Frame) {
        if frame.pool != Some(self.shared) {
            return;
        }
        self.free.push(ManuallyDrop::new(frame).index);
    }

    /// Takes back a frame, and leaves an empty one in its place. A frame that is not of this pool
    /// is dropped.
    #[inline(always)]
    pub(crate) fn put_from(&mut self, frame: &mut Frame) {
        if frame.size == 0 {
            return;
        }
        match frame.pool == Some(self.shared) {
            true => self.free.push(frame.index),
            false => frame.release(),
        }
        (frame.pool, frame.start, frame.len, frame.size) = (None, 0, 0, 0);
    }

    /// Collects the frames that were dropped, and takes one of them.
    #[cold]
    fn reclaim(&mut self) -> Option<u32> {
        self.collect(NONE);
        self.free.pop()
    }

    /// Collects the frames that were dropped, and puts `instead` in their place.
    fn collect(&mut self, instead: u32) {
        // SAFETY: the shared part lives at least as long as the pool.
        let shared = unsafe { self.shared.as_ref() };
        let mut index = shared.returned.swap(instead, Ordering::Acquire);
        while let Some(next) = shared.next.get(index as usize) {
            self.free.push(index);
            index = next.load(Ordering::Relaxed);
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.collect(CLOSED);
        let left = i64::from(self.shared().frames) - self.free.len() as i64;
        let before = self.shared().left.fetch_add(left, Ordering::AcqRel);
        if before + left == 0 {
            // SAFETY: all frames were returned before the pool ended, or counted themselves since.
            unsafe { Shared::free(self.shared) };
        }
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shared { size, frames, .. } = self.shared();
        write!(f, "Pool of {frames} frames of {size} bytes, {} free", self.free.len())
    }
}

// SAFETY: a pool is the only one that takes frames; what it shares with frames is atomic.
unsafe impl Send for Pool {}

/// Memory for one packet: `len` bytes from `start` on, with room in front of and behind them.
pub struct Frame {
    base: NonNull<u8>,
    /// The pool to which the frame returns. `None`: the frame has memory of its own.
    pool: Option<NonNull<Shared>>,
    /// The frame's number in its pool.
    index: u32,
    start: u32,
    len: u32,
    size: u32,
}

// SAFETY: a frame is the only owner of its bytes, and pools take frames back from any thread.
unsafe impl Send for Frame {}
// SAFETY: a shared frame only gives shared access to its bytes.
unsafe impl Sync for Frame {}

impl Frame {
    /// A frame without memory.
    #[must_use]
    #[inline]
    pub const fn empty() -> Self {
        Frame { base: NonNull::dangling(), pool: None, index: 0, start: 0, len: 0, size: 0 }
    }

    /// A frame with memory of its own that holds `len` zero bytes, with room in front and behind.
    fn zeroed(front: u32, len: u32, behind: u32) -> Self {
        let size = front.saturating_add(len).saturating_add(behind);
        if size == 0 {
            return Frame::empty();
        }
        let memory = own_memory(size);
        // SAFETY: the layout is not empty.
        let base = NonNull::new(unsafe { alloc_zeroed(memory) });
        let Some(base) = base else { handle_alloc_error(memory) };
        Frame { base, pool: None, index: 0, start: front, len: len.min(size - front), size }
    }

    /// A frame with memory of its own, which holds these bytes. There is [`HEADROOM`] in front of
    /// them. Bytes past 2^32 - 2^16 are cut off.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        let most = u32::MAX - 0xffff;
        let len = u32::try_from(bytes.len()).unwrap_or(most).min(most);
        let mut frame = Frame::zeroed(HEADROOM, len, 0);
        if let Some(bytes) = bytes.get(..len as usize) {
            frame.bytes_mut().copy_from_slice(bytes);
        }
        frame
    }

    /// Makes this frame an empty one of a pool, as [`Pool::take`] gives it. Returns false if none
    /// is free. Its fields are written one by one. Otherwise the frame would be made elsewhere and
    /// copied, and the processor would wait until all fields can be read together.
    #[inline(always)]
    pub(crate) fn come_from(&mut self, pool: &mut Pool) -> bool {
        let Some(frame) = pool.take() else { return false };
        let mut frame = ManuallyDrop::new(frame);
        self.take_over(&mut frame);
        true
    }

    /// Moves another frame to this place, and leaves an empty frame in its place. Its parts move
    /// one by one, for the reason that [`Self::come_from`] has.
    #[inline(always)]
    pub(crate) fn take_over(&mut self, other: &mut Frame) {
        if self.size > 0 {
            self.release();
        }
        (self.base, self.pool) = (other.base, other.pool);
        (self.index, self.start) = (other.index, other.start);
        (self.len, self.size) = (other.len, other.size);
        (other.pool, other.start, other.len, other.size) = (None, 0, 0, 0);
    }

    /// Takes the frame out of its place, and leaves an empty frame there.
    #[inline(always)]
    pub(crate) fn take(&mut self) -> Frame {
        let mut frame = Frame::empty();
        frame.take_over(self);
        frame
    }

    /// The bytes.
    #[must_use]
    #[inline(always)]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the frame owns these initialised bytes: start + len is at most size.
        unsafe {
            std::slice::from_raw_parts(self.base.as_ptr().add(self.start as usize), self.len())
        }
    }

    /// The bytes, to be changed.
    #[inline(always)]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`; the frame is borrowed alone.
        unsafe {
            std::slice::from_raw_parts_mut(self.base.as_ptr().add(self.start as usize), self.len())
        }
    }

    /// The number of bytes.
    #[must_use]
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// The room in front of the bytes.
    #[must_use]
    #[inline(always)]
    pub fn start(&self) -> u32 {
        self.start
    }

    /// Sets the place of the bytes in the frame, for example after a device has written them. Their
    /// contents stay. Bytes that do not fit into the frame are cut off.
    #[inline]
    pub fn place(&mut self, start: u32, len: u32) {
        self.start = start.min(self.size);
        self.len = len.min(self.size - self.start);
    }

    /// Whether the frame holds no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The memory behind the bytes. Its contents are arbitrary.
    #[must_use]
    pub fn room(&mut self) -> &mut [u8] {
        let end = self.start + self.len;
        // SAFETY: these bytes are the rest of the frame, and the frame is borrowed alone. All
        // memory of frames was initialised when it was allocated.
        unsafe {
            std::slice::from_raw_parts_mut(
                self.base.as_ptr().add(end as usize),
                (self.size - end) as usize,
            )
        }
    }

    /// Adds the next `more` bytes of [`Self::room`] to the bytes. Adds fewer if there are fewer.
    #[inline]
    pub fn extend(&mut self, more: usize) {
        let room = self.size - self.start - self.len;
        self.len += u32::try_from(more).unwrap_or(u32::MAX).min(room);
    }

    /// Appends bytes. Returns false, and changes nothing, if there is no room.
    #[inline]
    pub fn push(&mut self, bytes: &[u8]) -> bool {
        let Some(room) = self.room().get_mut(..bytes.len()) else { return false };
        room.copy_from_slice(bytes);
        self.extend(bytes.len());
        true
    }

    /// Keeps only the first `len` bytes.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(u32::try_from(len).unwrap_or(u32::MAX));
    }

    /// Makes a gap of `more` bytes at the offset `at`. The contents of the gap are arbitrary. Moves
    /// the bytes in front of the gap if there is room for them; otherwise the frame gets memory of
    /// its own. Returns false, and changes nothing, if `at` is past the bytes or the frame would be
    /// too long.
    pub fn open(&mut self, at: usize, more: usize) -> bool {
        let (Ok(at32), Ok(more32)) = (u32::try_from(at), u32::try_from(more)) else { return false };
        let longer = self.len.checked_add(more32).filter(|len| *len <= u32::MAX - 0xffff);
        let Some(longer) = longer.filter(|_| at32 <= self.len) else { return false };
        if more32 <= self.start {
            (self.start, self.len) = (self.start - more32, longer);
            self.bytes_mut().copy_within(more..more + at, 0);
            return true;
        }
        let mut other = Frame::zeroed(HEADROOM, longer, 0);
        let (front, behind) = self.bytes().split_at(at);
        let bytes = other.bytes_mut();
        if let Some(to) = bytes.get_mut(..at) {
            to.copy_from_slice(front);
        }
        if let Some(to) = bytes.get_mut(at + more..) {
            to.copy_from_slice(behind);
        }
        *self = other;
        true
    }

    /// Removes `less` bytes at the offset `at`. Returns false, and changes nothing, if there are
    /// fewer.
    pub fn close(&mut self, at: usize, less: usize) -> bool {
        let end = at.checked_add(less).filter(|end| *end <= self.len());
        let (Some(_), Ok(less32)) = (end, u32::try_from(less)) else { return false };
        self.bytes_mut().copy_within(..at, less);
        (self.start, self.len) = (self.start + less32, self.len - less32);
        true
    }

    /// Returns the memory. This is the end of a frame with memory.
    #[inline(never)]
    fn release(&mut self) {
        match self.pool {
            Some(pool) => Shared::give(pool, self.index),
            // SAFETY: `zeroed` allocated the memory with this layout.
            None => unsafe { dealloc(self.base.as_ptr(), own_memory(self.size)) },
        }
    }
}

/// The memory of a frame that belongs to no pool.
fn own_memory(size: u32) -> Layout {
    Layout::array::<u8>(size as usize).unwrap_or(Layout::new::<u8>())
}

impl Drop for Frame {
    #[inline]
    fn drop(&mut self) {
        if self.size > 0 {
            self.release();
        }
    }
}

impl Clone for Frame {
    /// The copy has memory of its own.
    fn clone(&self) -> Self {
        Frame::of(self.bytes())
    }
}

impl PartialEq for Frame {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for Frame {}

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes().fmt(f)
    }
}

#[cfg(test)]
mod tests;
