//! A device of the machine through packet sockets: one receives by a ring, one sends.

use crate::interface::{Interface, OpenError, Received, State, Unreceived, Unsent};
use crate::offload::{Offload, put_vlan};
use crate::sys::{Arrived, Batch, Fanout, Ring, sender};
use std::io;
use std::iter;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A device of the machine, in promiscuous mode. It does not read back its own frames.
pub struct PacketPort {
    ring: Ring,
    sender: OwnedFd,
    batch: Batch,
}

/// Choices for a packet port.
#[derive(Clone, Default, Debug)]
pub struct PacketOptions {
    /// The group with which the port shares the frames of the device.
    pub fanout: Option<Fanout>,
    /// Frames are sent past the device's queue (its qdisc), which is faster. Then nothing shapes
    /// them, and more of them are lost when the device is busy.
    pub bypass_queue: bool,
}

impl PacketPort {
    /// Opens the device with this name.
    ///
    /// # Errors
    /// When there is no such device, it is not permitted, or the operating system refuses.
    pub fn open(name: &str) -> Result<Self, OpenError> {
        Self::open_with(name, &PacketOptions::default())
    }

    /// Opens the device with this name.
    ///
    /// # Errors
    /// As for [`Self::open`], and when the fan-out group does not take the port.
    pub fn open_with(name: &str, options: &PacketOptions) -> Result<Self, OpenError> {
        let ring = Ring::open(name, options.fanout.as_ref())?;
        let sender = sender(ring.index(), options.bypass_queue)?;
        Ok(Self { ring, sender, batch: Batch::default() })
    }

    /// The number of the port's fan-out group, for the ports that join it.
    #[must_use]
    pub fn group(&self) -> Option<u16> {
        self.ring.group()
    }
}

/// Does the work that is left in a frame, and appends the frames that it stands for.
fn finish(arrived: &Arrived<'_>, frames: &mut Vec<Vec<u8>>) -> Result<(), Unreceived> {
    let mut finished = Offload::parse(arrived.header).finish(arrived.bytes.to_vec())?;
    if let Some((tpid, tci)) = arrived.vlan {
        finished.iter_mut().for_each(|frame| put_vlan(frame, tpid, tci));
    }
    frames.append(&mut finished);
    Ok(())
}

impl Interface for PacketPort {
    fn receive(&mut self, frames: &mut Vec<Vec<u8>>) -> io::Result<Received> {
        let mut received = Received::Something;
        let slots = self.ring.receive(1, |arrived| {
            let read = match arrived {
                Some(arrived) => finish(&arrived, frames),
                None => Err(Unreceived::TooLong),
            };
            if let Err(lost) = read {
                received = Received::Lost(lost);
            }
        });
        Ok(if slots == 0 { Received::Nothing } else { received })
    }

    fn send(&mut self, frame: &[u8]) -> Result<(), Unsent> {
        let mut sent = Ok(());
        self.batch.send(self.sender.as_fd(), iter::once(frame), |_, why| {
            sent = Err(Unsent::of(why));
        });
        sent
    }

    fn overrun(&mut self) -> u64 {
        self.ring.dropped()
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.ring.descriptor()
    }

    fn state(&mut self) -> State {
        self.ring.state()
    }
}
