//! Sends the frames of a burst with one system call.

use rustix::io::Errno;
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

/// Memory for the arguments of the system call, which is used again for each burst.
#[derive(Default)]
pub(crate) struct Batch {
    parts: Vec<libc::iovec>,
    messages: Vec<libc::mmsghdr>,
}

// SAFETY: the pointers within are used during a call of `send` only.
unsafe impl Send for Batch {}

impl Batch {
    /// Sends frames through a socket that is bound to a device. Never waits. Calls `lost` with the
    /// number of each frame that was not sent.
    pub(crate) fn send<'f>(
        &mut self,
        socket: BorrowedFd<'_>,
        frames: impl Iterator<Item = &'f [u8]>,
        mut lost: impl FnMut(usize, Errno),
    ) {
        self.parts.clear();
        self.messages.clear();
        self.parts.extend(frames.map(|frame| libc::iovec {
            iov_base: frame.as_ptr().cast_mut().cast(),
            iov_len: frame.len(),
        }));
        for part in &mut self.parts {
            // SAFETY: a plain C structure for which all zero bytes are valid.
            let mut message: libc::mmsghdr = unsafe { zeroed() };
            message.msg_hdr.msg_iov = ptr::from_mut(part);
            message.msg_hdr.msg_iovlen = 1;
            self.messages.push(message);
        }
        let mut at = 0;
        while let Some(rest) = self.messages.get_mut(at..).filter(|rest| !rest.is_empty()) {
            match send_some(socket, rest) {
                Ok(sent) => at += sent,
                Err(Errno::INTR) => {}
                // The next frame would have the same error.
                Err(error @ (Errno::AGAIN | Errno::NETDOWN | Errno::NXIO | Errno::NODEV)) => {
                    (at..self.messages.len()).for_each(|frame| lost(frame, error));
                    break;
                }
                Err(error) => {
                    lost(at, error);
                    at += 1;
                }
            }
        }
    }
}

/// Returns how many of the messages were sent, at least one.
fn send_some(socket: BorrowedFd<'_>, messages: &mut [libc::mmsghdr]) -> Result<usize, Errno> {
    let count = u32::try_from(messages.len()).unwrap_or(u32::MAX);
    let (socket, messages) = (socket.as_raw_fd(), messages.as_mut_ptr());
    // SAFETY: there are at least `count` messages. Each points to one part, and each part to a
    // frame. `Batch::send` borrows all of them until this call returns. The kernel reads frames,
    // and writes lengths to the messages.
    let sent = unsafe { libc::sendmmsg(socket, messages, count, libc::MSG_DONTWAIT) };
    usize::try_from(sent)
        .map_err(|_| Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO))
}
