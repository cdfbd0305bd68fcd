//! Sends the frames of a burst with one system call.

use crate::offload::Message;
use braid_packet::Frame;
use rustix::io::Errno;
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Memory for the arguments of the system call, which is used again for each burst.
#[derive(Default)]
pub(crate) struct Batch {
    contents: Vec<Message>,
    parts: Vec<libc::iovec>,
    messages: Vec<libc::mmsghdr>,
}

// SAFETY: the pointers within are used during a call of `send` only.
unsafe impl Send for Batch {}

impl Batch {
    /// Sends frames through a socket that is bound to a device and takes a `virtio_net_hdr` in
    /// front of each frame. Segments that follow each other leave together, unless they have more
    /// than `longest` bytes, which the device does not take. Never waits. Calls `lost` with the
    /// number of each frame that was not sent.
    pub(crate) fn send(
        &mut self,
        socket: BorrowedFd<'_>,
        frames: &[Frame],
        longest: usize,
        mut lost: impl FnMut(usize, Errno),
    ) {
        self.describe(frames, longest);
        // The number of messages that are done, and of their frames.
        let (mut at, mut frame) = (0, 0);
        while let Some(rest) = self.messages.get_mut(at..).filter(|rest| !rest.is_empty()) {
            let count = |messages: &[Message]| messages.iter().map(|one| one.count).sum::<usize>();
            let waiting = self.contents.get(at..).unwrap_or_default();
            let first = waiting.get(..1).unwrap_or_default();
            match send_some(socket, rest) {
                Ok(sent) => {
                    frame += count(waiting.get(..sent).unwrap_or(waiting));
                    at += sent;
                }
                Err(Errno::INTR) => {}
                // The next frame would have the same error.
                Err(error @ (Errno::AGAIN | Errno::NETDOWN | Errno::NXIO | Errno::NODEV)) => {
                    (frame..frames.len()).for_each(|frame| lost(frame, error));
                    break;
                }
                Err(error) => {
                    (frame..frame + count(first)).for_each(|frame| lost(frame, error));
                    frame += count(first);
                    at += 1;
                }
            }
        }
    }

    /// Makes a message for each frame, or for several that leave together.
    fn describe(&mut self, frames: &[Frame], longest: usize) {
        let Self { contents, parts, messages } = self;
        contents.clear();
        parts.clear();
        messages.clear();
        let mut rest = frames;
        while !rest.is_empty() {
            let next = Message::of_first(rest, longest);
            rest = rest.get(next.count..).unwrap_or_default();
            contents.push(next);
        }
        // All of `contents` stays where it is from here on, and then all of `parts`.
        let mut rest = frames.iter();
        for one in &*contents {
            parts.push(part(&one.front));
            let frames = rest.by_ref().take(one.count).map(Frame::bytes);
            parts.extend(frames.map(|frame| part(frame.get(one.payload_at..).unwrap_or_default())));
        }
        let mut rest = parts.as_mut_slice();
        for one in &*contents {
            let Some((parts, behind)) = rest.split_at_mut_checked(1 + one.count) else { return };
            // SAFETY: a plain C structure for which all zero bytes are valid.
            let mut message: libc::mmsghdr = unsafe { zeroed() };
            message.msg_hdr.msg_iov = parts.as_mut_ptr();
            message.msg_hdr.msg_iovlen = parts.len();
            messages.push(message);
            rest = behind;
        }
    }
}

fn part(bytes: &[u8]) -> libc::iovec {
    libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() }
}

/// Returns how many of the messages were sent, at least one.
fn send_some(socket: BorrowedFd<'_>, messages: &mut [libc::mmsghdr]) -> Result<usize, Errno> {
    let count = u32::try_from(messages.len()).unwrap_or(u32::MAX);
    let (socket, messages) = (socket.as_raw_fd(), messages.as_mut_ptr());
    // SAFETY: there are at least `count` messages. Each points to its parts, and each part to a
    // front or to a frame. `Batch::send` borrows all of them until this call returns. The kernel
    // reads what the parts point to, and writes lengths to the messages.
    let sent = unsafe { libc::sendmmsg(socket, messages, count, libc::MSG_DONTWAIT) };
    usize::try_from(sent)
        .map_err(|_| Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO))
}
