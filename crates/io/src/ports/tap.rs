//! A TAP device, through its file.

use crate::interface::{Interface, MAX_FRAME, OpenError, Received, State, Unreceived, Unsent};
use crate::sys::{is_attached, open_tap};
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
        let file = open_tap(name).map_err(refused)?;
        Ok(Self { file, buffer: vec![0; MAX_FRAME] })
    }
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

impl Interface for TapPort {
    fn receive(&mut self, frames: &mut Vec<Vec<u8>>) -> io::Result<Received> {
        match self.file.read(&mut self.buffer) {
            Ok(length) if length == self.buffer.len() => Ok(Received::Lost(Unreceived::TooLong)),
            Ok(length) => {
                frames.extend(self.buffer.get(..length).map(<[u8]>::to_vec));
                Ok(Received::Something)
            }
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::Interrupted => Ok(Received::Nothing),
                _ => Err(error),
            },
        }
    }

    fn send(&mut self, frame: &[u8]) -> Result<(), Unsent> {
        match self.file.write(frame) {
            Ok(written) if written == frame.len() => Ok(()),
            Ok(_) => Err(Unsent::Refused),
            Err(error) => Err(Errno::from_io_error(&error).map_or(Unsent::Refused, Unsent::of)),
        }
    }

    /// The device itself counts the frames that it drops (`ip -s link`).
    fn overrun(&mut self) -> u64 {
        0
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    fn state(&mut self) -> State {
        if is_attached(&self.file) { State::Up } else { State::Missing }
    }
}
