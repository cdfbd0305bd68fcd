//! A device of the machine through packet sockets: one receives by a ring, one sends.

use super::limit::Limit;
use super::share::{Member, Share};
use crate::offload::Offload;
use crate::port::{Ethernet, OpenError, Port, State, Unreceived, Unsent};
use crate::sys::{Arrived, Batch, Ring, sender};
use braid_packet::{BURST, Frame, Pool};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A device of the machine, in promiscuous mode. It does not read back its own frames.
pub struct PacketPort {
    ring: Ring,
    sender: OwnedFd,
    batch: Batch,
    /// The kernel itself limits only frames that are not joined.
    limit: Limit,
    /// The port's membership among several ports. It ends last, after the kernel has released the
    /// ring's socket.
    member: Option<Member>,
}

impl PacketPort {
    /// Opens the device with this name.
    ///
    /// # Errors
    /// When there is no such device, it is not permitted, or the operating system refuses.
    pub fn open(name: &str) -> Result<Self, OpenError> {
        Self::open_share(name, &Share::default())
    }

    /// As [`Self::open`], for one of several ports.
    pub(crate) fn open_share(name: &str, share: &Share) -> Result<Self, OpenError> {
        // The kernel keeps the order in which sockets were made, and joins them in this order after
        // the device was down.
        let turn = share.turn()?;
        let ring = Ring::open(name)?;
        let member = turn.map(|turn| turn.join(|group, program| ring.join(group, program)));
        let member = member.transpose()?;
        let sender = sender(ring.index())?;
        let limit = Limit::of(ring.mtu()?);
        Ok(Self { ring, sender, batch: Batch::default(), limit, member })
    }
}

impl Port for PacketPort {
    fn receive(
        &mut self,
        pool: &mut Pool,
        frames: &mut Vec<Frame>,
        lost: &mut dyn FnMut(Unreceived),
    ) -> io::Result<usize> {
        Ok(self.ring.receive(BURST, |arrived| {
            let read = match arrived {
                Some(Arrived { header, bytes, vlan }) => {
                    Offload::parse(header).finish(bytes, vlan, pool, frames)
                }
                None => Err(Unreceived::TooLong),
            };
            if let Err(why) = read {
                lost(why);
            }
        }))
    }

    fn send(
        &mut self,
        pool: &mut Pool,
        frames: &mut Vec<Frame>,
        lost: &mut dyn FnMut(usize, Unsent),
    ) {
        self.limit.renew(|| self.ring.mtu());
        let longest = self.limit.longest();
        let lost = |place, why| lost(place, Unsent::of(why));
        self.batch.send(self.sender.as_fd(), frames, longest, lost);
        frames.drain(..).for_each(|frame| pool.put(frame));
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

    fn ethernet(&self) -> Option<Ethernet> {
        self.ring.ethernet()
    }

    fn facts(&self) -> Option<String> {
        self.member.as_ref().map(Member::steering)
    }
}
