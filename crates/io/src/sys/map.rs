//! Memory that is mapped: rings that are shared with the kernel, and packet memory.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{self, NonNull};

/// A mapped region, which ends with this value.
#[derive(Debug)]
pub(crate) struct Map {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: the region belongs to the process, not to a thread.
unsafe impl Send for Map {}

impl Map {
    /// Maps a ring of a socket.
    pub(super) fn of_socket(
        socket: BorrowedFd<'_>,
        length: usize,
        offset: libc::off_t,
    ) -> io::Result<Self> {
        Self::new(length, libc::MAP_SHARED | libc::MAP_POPULATE, socket.as_raw_fd(), offset)
    }

    fn new(length: usize, flags: i32, file: i32, offset: libc::off_t) -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the kernel chooses the place, so that nothing is there yet.
        let start = unsafe { libc::mmap(ptr::null_mut(), length, access, flags, file, offset) };
        match NonNull::new(start.cast::<u8>()) {
            Some(start) if start.as_ptr().cast() != libc::MAP_FAILED => Ok(Self { start, length }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The start of `length` bytes at an offset; `None` if they are not all in the region.
    pub(super) fn at(&self, offset: usize, length: usize) -> Option<NonNull<u8>> {
        let end = offset.checked_add(length)?;
        // SAFETY: the offset is within the region.
        (end <= self.length).then(|| unsafe { self.start.add(offset) })
    }

    pub(super) fn length(&self) -> usize {
        self.length
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: this value owns the region, and nothing borrows it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}
