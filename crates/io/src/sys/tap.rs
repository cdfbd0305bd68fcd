//! A TAP device: an Ethernet device of the machine whose other end is this program.
//!
//! The device has no offloads, so that the kernel completes frames before it passes them on.

use crate::live::{Interface, MAX_FRAME, OpenError, Received, Unreceived, Unsent};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::mem::zeroed;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

/// A TAP device. It ends with this value unless it existed before.
pub(crate) struct Tap {
    file: File,
    buffer: Vec<u8>,
}

impl Tap {
    pub(crate) fn open(name: &str) -> Result<Self, OpenError> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(libc::O_NONBLOCK);
        let file = options.open("/dev/net/tun").map_err(refused)?;
        attach(&file, name).map_err(refused)?;
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

/// Attaches the file to the device with this name.
fn attach(file: &File, name: &str) -> io::Result<()> {
    // SAFETY: a plain C structure for which all zero bytes are valid.
    let mut request: libc::ifreq = unsafe { zeroed() };
    let room = request.ifr_name.len() - 1;
    for (to, from) in request.ifr_name.iter_mut().take(room).zip(name.bytes()) {
        *to = libc::c_char::from_ne_bytes([from]);
    }
    request.ifr_ifru.ifru_flags =
        libc::c_short::try_from(libc::IFF_TAP | libc::IFF_NO_PI).unwrap_or_default();
    // SAFETY: this request takes an `ifreq`, whose name ends with a zero. It lives, and nobody else
    // borrows it, until the call returns.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

impl Interface for Tap {
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
}
