//! Live interfaces: frames from and to the machine's network devices.
//!
//! System calls move one frame at a time: simple and correct, but not fast. Network cards and the
//! kernel leave some work on frames undone. It is done here (see [`crate::offload`]), so that a
//! chain processes frames as they would be on a wire.

use crate::sys::{PacketSocket, Tap};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;
use std::str::FromStr;
use std::time::Duration;

/// The longest frame that is read: the largest frame that a card makes of several, with room for
/// its headers.
pub(crate) const MAX_FRAME: usize = 0x1_0000 + 256;

/// A live interface. All frames are Ethernet.
pub trait Interface {
    /// Reads a frame if there is one, and appends it to `frames`. Appends several frames if the
    /// frame stands for several. Never waits.
    ///
    /// # Errors
    /// When nothing more can be read, for example because the device was removed.
    fn receive(&mut self, frames: &mut Vec<Vec<u8>>) -> io::Result<Received>;

    /// Sends a frame. Never waits.
    ///
    /// # Errors
    /// When the frame was not sent.
    fn send(&mut self, frame: &[u8]) -> Result<(), Unsent>;

    /// The number of frames that the kernel has dropped since the last call because they were not
    /// read in time.
    fn overrun(&mut self) -> u64;

    /// The descriptor to wait for.
    fn descriptor(&self) -> BorrowedFd<'_>;
}

/// The result of reading.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Received {
    /// There is no frame now.
    Nothing,
    /// Something was read. There may be no frame for us in it.
    Something,
    /// A frame was lost.
    Lost(Unreceived),
}

/// The reasons for losing a frame when it was read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Unreceived {
    /// The frame is longer than any frame may be.
    TooLong,
    /// A card or the kernel has put several packets together, and they cannot be separated.
    Offload,
}

/// The reasons for not sending a frame.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Unsent {
    /// The frame is longer than the device takes (its MTU).
    TooLong,
    /// The device's queue is full.
    QueueFull,
    /// The device is down, or refuses the frame.
    Refused,
}

impl Unreceived {
    /// The name of the loss.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Unreceived::TooLong => "received_too_long",
            Unreceived::Offload => "received_offload",
        }
    }
}

impl Unsent {
    /// The name of the loss.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Unsent::TooLong => "send_too_long",
            Unsent::QueueFull => "send_queue_full",
            Unsent::Refused => "send_refused",
        }
    }

    pub(crate) fn of(error: rustix::io::Errno) -> Self {
        use rustix::io::Errno;
        match error {
            Errno::MSGSIZE => Unsent::TooLong,
            Errno::AGAIN | Errno::NOBUFS | Errno::INTR => Unsent::QueueFull,
            _ => Unsent::Refused,
        }
    }
}

/// A device with its name on the command line: `af_packet:eth0`, `tap:tap0`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Device {
    /// A device of the machine, through a packet socket.
    Packet(String),
    /// A TAP device. It is created if it does not exist.
    Tap(String),
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Device::Packet(name) => write!(f, "af_packet:{name}"),
            Device::Tap(name) => write!(f, "tap:{name}"),
        }
    }
}

impl FromStr for Device {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, name) = text.split_once(':').unwrap_or((text, ""));
        let make = match kind {
            "af_packet" => Device::Packet,
            "tap" => Device::Tap,
            _ => return Err(format!("`{text}`: expected af_packet:DEVICE or tap:DEVICE")),
        };
        // IFNAMSIZ, including the 0 at the end.
        let fits = (1..16).contains(&name.len());
        if !fits || name.contains(|c: char| c == '/' || c.is_whitespace() || c.is_control()) {
            return Err(format!("`{text}`: a device's name has 1 to 15 characters"));
        }
        Ok(make(name.to_owned()))
    }
}

impl Device {
    /// Opens the device.
    ///
    /// # Errors
    /// When the device does not exist or cannot be used, with a remedy.
    pub fn open(&self) -> Result<Box<dyn Interface>, OpenError> {
        Ok(match self {
            Device::Packet(name) => Box::new(PacketSocket::open(name)?),
            Device::Tap(name) => Box::new(Tap::open(name)?),
        })
    }
}

/// The reasons why a device cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Privileges are missing.
    #[error("not permitted; {0}")]
    Permission(&'static str),
    /// There is no such device.
    #[error("there is no such device; `ip link` lists them, each network namespace has its own")]
    NoDevice,
    /// The device carries no Ethernet frames.
    #[error("not an Ethernet device (hardware type {0}); use a veth, bridge, tap or network card")]
    NotEthernet(u16),
    /// The operating system refuses.
    #[error("cannot be opened: {0}")]
    Io(#[from] io::Error),
}

/// Waits until one of the interfaces has something to read, or for this long. A signal ends the
/// wait.
///
/// # Errors
/// When waiting is not possible.
pub fn wait<'i>(
    interfaces: impl Iterator<Item = &'i dyn Interface>,
    timeout: Duration,
) -> io::Result<()> {
    let mut descriptors: Vec<PollFd<'i>> = interfaces
        .map(|interface| PollFd::from_borrowed_fd(interface.descriptor(), PollFlags::IN))
        .collect();
    let timeout = Timespec {
        tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    };
    match poll(&mut descriptors, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_named_by_kind_and_name() {
        assert_eq!("af_packet:veth0".parse(), Ok(Device::Packet("veth0".into())));
        assert_eq!("tap:t0".parse(), Ok(Device::Tap("t0".into())));
        for wrong in ["veth0", "af_packet:", "tap", "xdp:eth0", "tap:a/b", "tap:1234567890123456"] {
            assert!(wrong.parse::<Device>().is_err(), "{wrong}");
        }
        assert_eq!(Device::Tap("t0".into()).to_string(), "tap:t0");
    }

    #[test]
    fn missing_device_is_said_so() {
        let error = Device::Packet("no-such-dev".into()).open().map(|_| ()).unwrap_err();
        // Without privileges, this error comes first.
        assert!(matches!(error, OpenError::NoDevice | OpenError::Permission(_)), "{error}");
    }
}
