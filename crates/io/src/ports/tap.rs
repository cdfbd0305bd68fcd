//! A TAP device, through its file.

use super::Share;
use crate::facts::device_facts;
use crate::offload::filled;
use crate::port::{Ethernet, MAX_FRAME, OpenError, Port, State, Unreceived, Unsent};
use crate::sys::{is_attached, open_tap, tap_ethernet};
use braid_packet::{BURST, Frame, Pool};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
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
        Ok(Self { file, buffer: vec![0; MAX_FRAME] })
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
    fn send_one(&mut self, frame: &[u8]) -> Result<(), Unsent> {
        match self.file.write(frame) {
            Ok(written) if written == frame.len() => Ok(()),
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
                    let bytes = self.buffer.get(..length).unwrap_or_default();
                    match filled(pool, bytes, &[]) {
                        Some(frame) => frames.push(frame),
                        None => lost(Unreceived::NoMemory),
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
        for (place, frame) in frames.drain(..).enumerate() {
            if let Err(why) = self.send_one(frame.bytes()) {
                lost(place, why);
            }
            pool.put(frame);
        }
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
