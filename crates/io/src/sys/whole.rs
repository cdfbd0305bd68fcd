//! Reads frames that are too long for a slot of the ring: the kernel keeps them in the socket's
//! queue.

use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, OwnedFd};

/// Reads the next frame of the queue. Returns its length, or `None` if it is longer than the
/// buffer. Never waits.
pub(super) fn receive(socket: &OwnedFd, buffer: &mut [u8]) -> io::Result<Option<usize>> {
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: a plain C structure for which all zero bytes are valid.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    // SAFETY: `message` points to `part`, which points to `buffer`, with its length. They live, and
    // nobody else borrows them, until the call returns.
    let length = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_DONTWAIT) };
    let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
    Ok((message.msg_flags & libc::MSG_TRUNC == 0).then_some(length))
}
