//! A TAP device, through its file.

use super::Share;
use crate::facts::device_facts;
use crate::offload::{HEADER, Message, Offload};
use crate::port::{Ethernet, MAX_FRAME, OpenError, Port, State, Unreceived, Unsent};
use crate::sys::{is_attached, open_tap, tap_ethernet};
use braid_packet::{BURST, Frame, Pool};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

/// A TAP device. It ends with this value unless it existed before.
pub struct TapPort {
    file: File,
    buffer: Vec<u8>,
}

impl TapPort {
    /// Opens the device with this name. Creates it if it does not exist.
    ///
    /// # Errors
    /// When this is not permitted, or the operating system refuses.
    pub fn open(name: &str) -> Result<Self, OpenError> {
        Self::open_share(name, &Share::default())
    }

    /// As [`Self::open`], for one of several ports.
    pub(crate) fn open_share(name: &str, share: &Share) -> Result<Self, OpenError> {
        let is_wrong = |why: &io::Error| why.kind() == ErrorKind::InvalidInput;
        let file = match open_tap(name, !share.is_whole()) {
            // Devices that were made beforehand have one queue unless they were made otherwise.
            // One worker takes a queue of either kind.
            Err(why) if is_wrong(&why) && share.is_whole() => open_tap(name, true),
            opened => opened,
        };
        let file = file.map_err(|why| match is_wrong(&why) {
            true if is_tap(name) => OpenError::OneQueue,
            true => OpenError::NotTap,
            false => refused(why),
        })?;
        Ok(Self { file, buffer: vec![0; HEADER + MAX_FRAME] })
    }
}

/// Whether the device with this name is a TAP device. A TUN device has the same driver, and other
/// frames.
fn is_tap(name: &str) -> bool {
    device_facts(name)
        .is_ok_and(|facts| facts.is_ethernet && facts.driver.as_deref() == Some("tun"))
}

fn refused(error: io::Error) -> OpenError {
    match error.kind() {
        ErrorKind::PermissionDenied => OpenError::Permission(
            "TAP devices need CAP_NET_ADMIN: run as root, or have one made for you with \
             `sudo ip tuntap add DEVICE mode tap user $USER`",
        ),
        _ => OpenError::Io(error),
    }
}

impl TapPort {
    /// Sends frames as one.
    fn send_one(&mut self, message: &Message, frames: &[Frame]) -> Result<(), Unsent> {
        let behind = |frame| Frame::bytes(frame).get(message.payload_at..).unwrap_or_default();
        let parts = [&message.front[..]].into_iter().chain(frames.iter().map(behind));
        let parts: Vec<IoSlice<'_>> = parts.map(IoSlice::new).collect();
        match self.file.write_vectored(&parts) {
            Ok(written) if written == parts.iter().map(|part| part.len()).sum() => Ok(()),
            Ok(_) => Err(Unsent::Refused),
            Err(error) => Err(Errno::from_io_error(&error).map_or(Unsent::Refused, Unsent::of)),
        }
    }
}

impl Port for TapPort {
    fn receive(
        &mut self,
        pool: &mut Pool,
        frames: &mut Vec<Frame>,
        lost: &mut dyn FnMut(Unreceived),
    ) -> io::Result<usize> {
        for count in 0..BURST {
            match self.file.read(&mut self.buffer) {
                Ok(length) if length == self.buffer.len() => lost(Unreceived::TooLong),
                Ok(length) => {
                    let read = self.buffer.get(..length).and_then(|all| all.split_first_chunk());
                    let finished = read.map_or(Err(Unreceived::Offload), |(header, bytes)| {
                        Offload::parse(*header).finish(bytes, None, pool, frames)
                    });
                    if let Err(why) = finished {
                        lost(why);
                    }
                }
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock | ErrorKind::Interrupted => return Ok(count),
                    _ if count > 0 => return Ok(count),
                    _ => return Err(error),
                },
            }
        }
        Ok(BURST)
    }

    fn send(
        &mut self,
        pool: &mut Pool,
        frames: &mut Vec<Frame>,
        lost: &mut dyn FnMut(usize, Unsent),
    ) {
        let mut at = 0;
        while let Some(rest) = frames.get(at..).filter(|rest| !rest.is_empty()) {
            // The device takes frames of any length.
            let message = Message::of_first(rest, usize::MAX);
            let together = rest.get(..message.count).unwrap_or(rest);
            let sent = self.send_one(&message, together);
            let end = at + together.len();
            if let Err(why) = sent {
                (at..end).for_each(|place| lost(place, why));
            }
            at = end;
        }
        frames.drain(..).for_each(|frame| pool.put(frame));
    }

    /// The device itself counts the frames that it drops (`ip -s link`).
    fn overrun(&mut self) -> u64 {
        0
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    fn ethernet(&self) -> Option<Ethernet> {
        tap_ethernet(&self.file).map(Ethernet::at_other_end)
    }

    fn state(&mut self) -> State {
        if is_attached(&self.file) { State::Up } else { State::Missing }
    }
}
