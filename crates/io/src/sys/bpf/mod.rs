//! BPF programs, made here and loaded through the system call: no compiler is needed.

mod assemble;
mod call;

use crate::port::OpenError;
use assemble::redirect_to_sockets;
use rustix::io::Errno;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

/// The most queues of a device.
const QUEUES: u32 = 256;

/// Where the XDP program of a device runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum XdpMode {
    /// In the device's driver.
    Native,
    /// In the kernel, behind the driver: slower, but for all devices.
    Generic,
}

/// The XDP program of a device. It hands the frames of a queue to the queue's AF_XDP socket, and
/// frames of queues without a socket to the kernel. The program ends with this value.
pub struct Redirect {
    sockets: OwnedFd,
    _link: OwnedFd,
    mode: XdpMode,
}

impl Redirect {
    /// Attaches the program to the device with this number: in its driver if this is possible.
    pub(crate) fn attach(index: u32) -> Result<Self, OpenError> {
        let sockets = call::socket_map(QUEUES).map_err(refused)?;
        let program = call::load_xdp(&redirect_to_sockets(&sockets)).map_err(refused)?;
        let attach = |mode| call::attach_xdp(&program, index, mode);
        let (link, mode) = match attach(call::NATIVE) {
            Ok(link) => (link, XdpMode::Native),
            Err(native) => match attach(call::GENERIC) {
                Ok(link) => (link, XdpMode::Generic),
                // The first error tells more, unless it is only about the mode.
                Err(generic) if is_unsupported(&native) => return Err(refused(generic)),
                Err(_) => return Err(refused(native)),
            },
        };
        Ok(Self { sockets, _link: link, mode })
    }

    /// Hands the frames of a queue to this socket from now on.
    pub(crate) fn set(&self, queue: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
        call::set_socket(&self.sockets, queue, socket)
    }

    pub(crate) fn mode(&self) -> XdpMode {
        self.mode
    }
}

fn is_unsupported(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::OPNOTSUPP | Errno::INVAL))
}

fn refused(error: io::Error) -> OpenError {
    match Errno::from_io_error(&error) {
        Some(Errno::PERM | Errno::ACCESS) => OpenError::Permission(
            "XDP needs CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF: run as root, or once \
             `sudo setcap cap_net_admin,cap_net_raw,cap_bpf+ep PATH_OF_BRAID`",
        ),
        Some(Errno::NODEV) => OpenError::NoDevice,
        Some(Errno::BUSY | Errno::EXIST) => OpenError::Busy,
        _ => OpenError::Io(error),
    }
}

#[cfg(test)]
mod tests;
