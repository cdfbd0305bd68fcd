//! Ports: network devices of the machine that receive and send bursts of frames.
//!
//! Network cards and the kernel leave some work on frames undone. Ports do this work (see
//! [`crate::offload`]), so that a chain processes frames as they would be on a wire.

use crate::error::ReadError;
use braid_packet::{Frame, Pool};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// The longest frame that is read: the largest frame that a card makes from several segments, with
/// room for its headers.
pub(crate) const MAX_FRAME: usize = 0x1_0000 + 256;

/// A device that receives and sends frames, all of them Ethernet. One pool belongs to all ports of
/// a thread: frames that one port has received are sent by another one without a copy, where the
/// ports can do that.
pub trait Port: Send {
    /// Reads the frames that have arrived, at most [`braid_packet::BURST`], and appends them to
    /// `frames`. A frame that holds several segments becomes several frames. Calls `lost` for each
    /// frame that is lost on reading. Never waits. Returns how many frames were read or lost: 0 if
    /// there is none now.
    ///
    /// # Errors
    /// When nothing more can be read, for example because the device was removed.
    fn receive(
        &mut self,
        pool: &mut Pool,
        frames: &mut Vec<Frame>,
        lost: &mut dyn FnMut(Unreceived),
    ) -> io::Result<usize>;

    /// Sends all of `frames`, in order, and removes them. Calls `lost` with the place of each frame
    /// that was not sent. Never waits.
    fn send(
        &mut self,
        pool: &mut Pool,
        frames: &mut Vec<Frame>,
        lost: &mut dyn FnMut(usize, Unsent),
    );

    /// The number of frames that the kernel has dropped since the last call because they were not
    /// read in time.
    fn overrun(&mut self) -> u64;

    /// The descriptor to wait for.
    fn descriptor(&self) -> BorrowedFd<'_>;

    /// Asks the kernel whether the device carries frames.
    fn state(&mut self) -> State {
        State::Up
    }

    /// The way in which the port works, where the device and the kernel have a choice.
    fn facts(&self) -> Option<String> {
        None
    }

    /// The device's properties on its link. `None` if the device does not report them, or does not
    /// exist.
    fn ethernet(&self) -> Option<Ethernet> {
        None
    }

    /// Events of the device that the user should know about, such as the number of times that its
    /// link went down.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The properties of a device on its link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ethernet {
    /// The MAC address from which frames are sent.
    pub mac: [u8; 6],
    /// The most bytes that a frame has behind its Ethernet header.
    pub mtu: u32,
}

impl Ethernet {
    /// The properties of Braid's end of a TAP device. Its MAC address differs from the device's MAC
    /// address, which belongs to the machine's end.
    pub(crate) fn at_other_end(mut self) -> Self {
        let [first, .., last] = &mut self.mac;
        (*first, *last) = (*first | 2, *last ^ 1);
        self
    }
}

/// Whether a device carries frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// The device is up and has a carrier.
    Up,
    /// The device is down, or its cable or its other end is missing.
    Down,
    /// The device does not exist any more.
    Missing,
}

/// The reasons for losing a frame when it was read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Unreceived {
    /// The frame is longer than any frame may be.
    TooLong,
    /// The frame holds several segments, which a card or the kernel has joined, and it cannot be
    /// split.
    Offload,
    /// The pool had no memory for the frame.
    NoMemory,
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
            Unreceived::NoMemory => "received_no_memory",
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
    /// The device's frames are too long for AF_XDP.
    #[error(
        "its MTU of {0} is too large for AF_XDP; use `ip link set DEVICE mtu 3498` or less, or \
         af_packet"
    )]
    Mtu(u32),
    /// The device has too few queues.
    #[error(
        "it has {queues} {} for {ports} workers, and AF_XDP gives a queue to one of them; use \
         `ethtool -L DEVICE combined {ports}`, fewer workers, or af_packet",
        queue_word(*.queues)
    )]
    Queues {
        /// Its queues.
        queues: u32,
        /// The ports that are wanted.
        ports: u32,
    },
    /// Another kind of device has the name of a TAP device.
    #[error("the device exists and is no TAP device; use another name, or af_packet")]
    NotTap,
    /// A TAP device that was made for one worker only.
    #[error(
        "the device was made with one queue; make it with `ip tuntap add DEVICE mode tap \
         multi_queue`, or use one worker"
    )]
    OneQueue,
    /// Something else uses the device.
    #[error(
        "another program has attached to the device's XDP; `ip link show` names it, \
         `ip link set DEVICE xdp off` detaches it"
    )]
    Busy,
    /// The capture of a port cannot be read.
    #[error("{0}")]
    Capture(#[from] Box<ReadError>),
    /// The capture of a port has packets without Ethernet headers.
    #[error("its packets have no Ethernet header, and devices carry Ethernet frames")]
    NoFrames,
    /// The capture of a port is too large for memory.
    #[error("it has more than {0} MiB; use a part of it")]
    TooMuch(usize),
    /// DPDK or its driver refuses.
    #[cfg(feature = "dpdk")]
    #[error("{0}")]
    Dpdk(String),
    /// There is not enough memory for packets.
    #[error("there is not enough memory for packets")]
    Memory,
    /// The operating system refuses.
    #[error("cannot be opened: {0}")]
    Io(#[from] io::Error),
}

fn queue_word(queues: u32) -> &'static str {
    if queues == 1 { "queue" } else { "queues" }
}

/// Waits until one of these descriptors is ready to be read, or for this long. A signal ends the
/// wait.
///
/// # Errors
/// When waiting is not possible.
pub fn wait<'d>(
    descriptors: impl Iterator<Item = BorrowedFd<'d>>,
    timeout: Duration,
) -> io::Result<()> {
    let mut descriptors: Vec<PollFd<'d>> =
        descriptors.map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN)).collect();
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
    use super::OpenError;

    #[test]
    fn number_of_queues_agrees_with_its_noun() {
        let told = |queues| OpenError::Queues { queues, ports: 3 }.to_string();
        assert!(told(1).starts_with("it has 1 queue for 3 workers, "), "{}", told(1));
        assert!(told(2).starts_with("it has 2 queues for 3 workers, "), "{}", told(2));
    }
}
