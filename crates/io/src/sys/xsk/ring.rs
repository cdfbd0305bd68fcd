//! A ring of an AF_XDP socket: one side writes entries, the other one reads them.

use crate::sys::map::Map;
use rustix::net::xdp::XdpRingOffset;
use std::io;
use std::marker::PhantomData;
use std::mem::size_of;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// A ring. The entries are plain numbers or structures of numbers.
struct Ring<T> {
    map: Map,
    producer: usize,
    consumer: usize,
    flags: usize,
    /// The offset of the first entry.
    entries: usize,
    /// The number of entries, a power of two.
    count: u32,
    kind: PhantomData<T>,
}

/// A ring that this program writes and the kernel reads.
pub(super) struct Writer<T> {
    ring: Ring<T>,
    /// The number of entries that were put.
    put: u32,
    /// The number of entries that the kernel had read at the last check.
    read: u32,
    /// The number of entries that had been put when the kernel last looked at the ring.
    known: u32,
}

/// A ring that the kernel writes and this program reads.
pub(super) struct Reader<T> {
    ring: Ring<T>,
    /// The number of entries that were taken.
    taken: u32,
    /// The number of entries that the kernel had written at the last check.
    written: u32,
}

impl<T: Copy> Ring<T> {
    /// Maps a ring of a socket.
    fn map(socket: &OwnedFd, at: XdpRingOffset, offset: u64, count: u32) -> io::Result<Self> {
        let place = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX);
        let entries = place(at.desc);
        let length = entries.saturating_add(size_of::<T>() * count as usize);
        let offset = libc::off_t::try_from(offset).unwrap_or(-1);
        Ok(Self {
            map: Map::of_socket(socket.as_fd(), length, offset)?,
            producer: place(at.producer),
            consumer: place(at.consumer),
            flags: place(at.flags.unwrap_or(u64::MAX)),
            entries,
            count,
            kind: PhantomData,
        })
    }

    fn word(&self, offset: usize) -> Option<&AtomicU32> {
        let word = self.map.at(offset, 4)?.cast::<u32>();
        // SAFETY: the word is in the ring, by the check in `at`, and the ring lives as long as the
        // result. The kernel places the word aligned, and changes it only as a whole.
        Some(unsafe { AtomicU32::from_ptr(word.as_ptr()) })
    }

    fn load(&self, offset: usize) -> u32 {
        self.word(offset).map_or(0, |word| word.load(Ordering::Acquire))
    }

    fn store(&self, offset: usize, value: u32) {
        if let Some(word) = self.word(offset) {
            word.store(value, Ordering::Release);
        }
    }

    /// The entry with this number, counted from the start of time.
    fn entry(&self, number: u32) -> Option<NonNull<T>> {
        let slot = (number & (self.count - 1)) as usize;
        Some(self.map.at(self.entries + slot * size_of::<T>(), size_of::<T>())?.cast())
    }
}

impl<T: Copy> Writer<T> {
    /// Maps a ring of a socket.
    pub(super) fn map(
        socket: &OwnedFd,
        at: XdpRingOffset,
        offset: u64,
        count: u32,
    ) -> io::Result<Self> {
        Ok(Self { ring: Ring::map(socket, at, offset, count)?, put: 0, read: 0, known: 0 })
    }

    /// The number of entries that can be put.
    pub(super) fn room(&mut self) -> u32 {
        let count = self.ring.count;
        let used = |this: &Self| this.put.wrapping_sub(this.read).min(count);
        if used(self) == count {
            self.read = self.ring.load(self.ring.consumer);
        }
        count - used(self)
    }

    /// Puts an entry. There must be room.
    pub(super) fn put(&mut self, value: T) {
        if let Some(entry) = self.ring.entry(self.put) {
            // SAFETY: the entry is in the ring and aligned, and the kernel does not read it before
            // it is published.
            unsafe { entry.write(value) };
            self.put = self.put.wrapping_add(1);
        }
    }

    /// Makes the entries visible to the kernel.
    pub(super) fn publish(&mut self) {
        self.ring.store(self.ring.producer, self.put);
    }

    /// The number of published entries that the kernel has not read.
    pub(super) fn waiting(&self) -> u32 {
        self.put.wrapping_sub(self.ring.load(self.ring.consumer))
    }

    /// The kernel may have looked at the ring. Once it has, it will read all entries that were put
    /// until then, even if it has read only some of them: it remembers how many there are.
    pub(super) fn may_be_known(&mut self) {
        self.known = self.put;
    }

    /// Takes back the last entry if the kernel does not know it ([`Self::may_be_known`]). The
    /// kernel must not be reading.
    pub(super) fn take_back(&mut self) -> Option<T> {
        if self.put == self.known || self.waiting() == 0 {
            return None;
        }
        let last = self.put.wrapping_sub(1);
        let entry = self.ring.entry(last)?;
        // SAFETY: the entry is in the ring and aligned, and this program has written it.
        let value = unsafe { entry.read() };
        self.put = last;
        self.publish();
        Some(value)
    }

    /// Whether the kernel waits for a call.
    pub(super) fn needs_wakeup(&self) -> bool {
        self.ring.load(self.ring.flags) & libc::XDP_RING_NEED_WAKEUP != 0
    }
}

impl<T: Copy> Reader<T> {
    /// Maps a ring of a socket.
    pub(super) fn map(
        socket: &OwnedFd,
        at: XdpRingOffset,
        offset: u64,
        count: u32,
    ) -> io::Result<Self> {
        Ok(Self { ring: Ring::map(socket, at, offset, count)?, taken: 0, written: 0 })
    }

    /// Takes an entry if there is one.
    pub(super) fn take(&mut self) -> Option<T> {
        if self.taken == self.written {
            self.written = self.ring.load(self.ring.producer);
            if self.taken == self.written {
                return None;
            }
        }
        let entry = self.ring.entry(self.taken)?;
        self.taken = self.taken.wrapping_add(1);
        // SAFETY: the entry is in the ring and aligned. The kernel has written it, and leaves it
        // alone until it is given back. Any bytes are a valid value.
        Some(unsafe { entry.read() })
    }

    /// Gives the entries back to the kernel.
    pub(super) fn give_back(&mut self) {
        self.ring.store(self.ring.consumer, self.taken);
    }
}
