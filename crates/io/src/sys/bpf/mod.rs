//! BPF programs in the kernel: for frames of a device (XDP), and for packets of sockets.

mod call;
mod filter;

use crate::bpf::Register::{R1, R2, R3};
use crate::bpf::{Assembler, Helper, Instruction, Size};
use crate::port::OpenError;
pub use filter::Filter;
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The most queues of a device.
const QUEUES: u32 = 256;

/// The result of an XDP program: the kernel goes on with the frame.
const XDP_PASS: i32 = 2;

/// The offset of the queue's number in the argument of an XDP program, `struct xdp_md`.
const QUEUE: i16 = 16;

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
    /// The number of the device.
    device: u32,
    sockets: OwnedFd,
    _link: OwnedFd,
    mode: XdpMode,
}

impl Redirect {
    /// Attaches the program to the device with this number: in its driver if this is possible.
    pub(crate) fn attach(index: u32) -> Result<Self, OpenError> {
        let sockets = call::socket_map(QUEUES).map_err(refused)?;
        let program = redirect_to_sockets(sockets.as_fd());
        let program = call::load(call::XDP_PROGRAM, &program).map_err(refused)?;
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
        Ok(Self { device: index, sockets, _link: link, mode })
    }

    /// The number of the device.
    pub(crate) fn device(&self) -> u32 {
        self.device
    }

    /// Hands the frames of a queue to this socket from now on.
    pub(crate) fn set(&self, queue: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
        call::set_socket(&self.sockets, queue, socket)
    }

    pub(crate) fn mode(&self) -> XdpMode {
        self.mode
    }
}

/// A program that hands each frame to the socket of its queue in the map `sockets`, or to the
/// kernel if there is none.
fn redirect_to_sockets(sockets: BorrowedFd<'_>) -> Vec<Instruction> {
    let mut code = Assembler::new();
    code.load(Size::Word, R2, R1, QUEUE);
    code.set_map(R1, sockets);
    code.set(R3, XDP_PASS);
    code.call(Helper::RedirectMap);
    code.exit();
    code.finish().unwrap_or_default()
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
