//! A device of the machine through AF_XDP sockets, one for each of its queues.

use super::Share;
use super::limit::Limit;
use crate::offload::complete;
use crate::port::{Ethernet, OpenError, Port, State, Unreceived, Unsent};
use crate::sys::device::Reference;
use crate::sys::{Redirect, XdpMode, Xsk};
use braid_packet::{BURST, Frame, Pool};
use rustix::event::epoll;
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// The entries of a ring, for all queues of a device together. They hold the frames that arrive
/// while the program does not run.
const ENTRIES: u32 = 4096;

/// The entries of each ring of a device with this number of queues.
fn entries(queues: u32) -> u32 {
    let share = (ENTRIES / queues.max(1)).clamp(512, 4096);
    if share.is_power_of_two() { share } else { share.next_power_of_two() / 2 }
}

/// Frames that a pool needs for a device with this number of queues: the arriving frames, and half
/// as many that are being processed.
fn frames(queues: u32) -> u32 {
    entries(queues).saturating_mul(queues).saturating_mul(3) / 2
}

/// The room that the kernel leaves in front of an arriving frame.
const FRONT: u32 = 256;

/// The link header with a VLAN tag, which the MTU does not count.
const LINK: u32 = 18;

/// The mode that the device and the kernel have agreed on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct XdpFacts {
    /// Where the XDP program runs.
    pub mode: XdpMode,
    /// The device itself reads and writes packet memory.
    pub is_zero_copy: bool,
    /// The number of the port's queues.
    pub queues: u32,
}

/// A device of the machine, in promiscuous mode, by AF_XDP. The kernel gets no frames of the port's
/// queues any more.
pub struct XdpPort {
    sockets: Vec<Xsk>,
    redirect: Arc<Redirect>,
    device: Reference,
    /// Becomes ready when one of the sockets does.
    ready: OwnedFd,
    limit: Limit,
    /// The queue that is read next.
    turn: usize,
    /// The dropped frames that were reported.
    reported: u64,
    /// The places of frames in a burst that were queued for sending.
    queued: Vec<usize>,
    /// The frames that the device has dropped and that were not reported yet.
    dropped: u32,
}

/// The size and the number of frames that a pool needs for a device: `None` if there is no such
/// device, or if its frames are too long.
#[must_use]
pub(crate) fn needs(name: &str, share: &Share) -> Option<(u32, u32)> {
    let device = Reference::open(name).ok()?;
    let size = frame_size(device.mtu().ok()?)?;
    Some((
        size,
        frames({
            let queues = share.queues(device.queues());
            queues.end - queues.start
        }),
    ))
}

/// The size of frames for an MTU.
fn frame_size(mtu: u32) -> Option<u32> {
    [2048, 4096].into_iter().find(|size| FRONT + LINK + mtu <= *size)
}

impl XdpPort {
    /// Opens the device with this name, for one of several ports. Each of them has a part of the
    /// device's queues, and the device chooses the queue for a flow. The frames of the pool must
    /// have 2048 or 4096 bytes. All frames that arrive are in this pool.
    ///
    /// # Errors
    /// When there is no such device, it is not permitted, the device's frames are too long for
    /// AF_XDP or for the pool, or the operating system refuses.
    pub fn open(name: &str, pool: &mut Pool, share: &Share) -> Result<Self, OpenError> {
        let device = Reference::open(name)?;
        if device.queues() < share.count() {
            return Err(OpenError::Queues { queues: device.queues(), ports: share.count() });
        }
        let redirect = share.redirect(device.index())?;
        let mtu = device.mtu().unwrap_or(0);
        if frame_size(mtu).is_none_or(|size| size > pool.frame_size()) {
            return Err(OpenError::Mtu(mtu));
        }
        let ready = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(io::Error::from)?;
        let mut sockets = Vec::<Xsk>::new();
        let queues = share.queues(device.queues());
        let entries = entries(queues.end - queues.start);
        for queue in queues.clone() {
            let socket = Xsk::open(device.index(), queue, entries, pool, sockets.first());
            sockets.push(socket.map_err(refused)?);
        }
        for (queue, socket) in queues.zip(&mut sockets) {
            socket.refill(pool);
            redirect.set(queue, socket.descriptor())?;
            let (data, events) = (epoll::EventData::new_u64(queue.into()), epoll::EventFlags::IN);
            epoll::add(&ready, socket.descriptor(), data, events).map_err(io::Error::from)?;
        }
        Ok(Self {
            sockets,
            redirect,
            device,
            ready,
            limit: Limit::of(mtu),
            turn: 0,
            reported: 0,
            queued: Vec::new(),
            dropped: 0,
        })
    }

    /// The mode that the device and the kernel have agreed on.
    #[must_use]
    pub fn xdp_facts(&self) -> XdpFacts {
        XdpFacts {
            mode: self.redirect.mode(),
            is_zero_copy: self.sockets.iter().all(Xsk::is_zero_copy),
            queues: u32::try_from(self.sockets.len()).unwrap_or(u32::MAX),
        }
    }

    /// Queues a frame for sending.
    fn queue(&mut self, pool: &mut Pool, frame: Frame) -> Result<(), Unsent> {
        let frame = self.limit.prepare(pool, frame)?;
        // One queue sends, so that frames stay in order.
        let socket = self.sockets.first_mut().ok_or(Unsent::Refused)?;
        let Err(frame) = socket.send(pool, frame) else { return Ok(()) };
        // The ring is full. The kernel may take some frames now.
        let (dropped, sent) = socket.end_send(pool);
        self.dropped += dropped;
        socket.send(pool, frame).map_err(|frame| {
            pool.put(frame);
            sent.map_or_else(Unsent::of, |()| Unsent::QueueFull)
        })
    }
}

fn refused(error: io::Error) -> OpenError {
    match Errno::from_io_error(&error) {
        Some(Errno::NOBUFS | Errno::NOMEM) => OpenError::Permission(
            "AF_XDP locks the memory of packets: `ulimit -l unlimited` in the shell that starts \
             braid, or give it CAP_IPC_LOCK",
        ),
        Some(Errno::PERM | Errno::ACCESS) => {
            OpenError::Permission("AF_XDP needs CAP_NET_RAW: run as root, or see `braid doctor`")
        }
        Some(Errno::BUSY) => OpenError::Busy,
        _ => OpenError::Io(error),
    }
}

impl Port for XdpPort {
    fn receive(
        &mut self,
        pool: &mut Pool,
        frames: &mut Vec<Frame>,
        _: &mut dyn FnMut(Unreceived),
    ) -> io::Result<usize> {
        self.turn = (self.turn + 1) % self.sockets.len().max(1);
        let mut found = 0;
        let (first, last) = self.sockets.split_at_mut(self.turn);
        for socket in last.iter_mut().chain(first) {
            while found < BURST
                && let Some(mut frame) = socket.receive()
            {
                found += 1;
                if !socket.is_zero_copy() {
                    // Frames from cards have no work left to do.
                    complete(frame.bytes_mut());
                }
                frames.push(frame);
            }
            // Also if nothing has arrived: there may have been no frames before.
            socket.refill(pool);
            socket.end_receive();
        }
        Ok(found)
    }

    fn send(
        &mut self,
        pool: &mut Pool,
        frames: &mut Vec<Frame>,
        lost: &mut dyn FnMut(usize, Unsent),
    ) {
        self.limit.renew(|| self.device.mtu());
        self.queued.clear();
        for (place, frame) in frames.drain(..).enumerate() {
            match self.queue(pool, frame) {
                Ok(()) => self.queued.push(place),
                Err(why) => lost(place, why),
            }
        }
        let Some(socket) = self.sockets.first_mut() else { return };
        let (dropped, sent) = socket.end_send(pool);
        let dropped = usize::try_from(dropped + std::mem::take(&mut self.dropped)).unwrap_or(0);
        // The device does not say which frames it drops. Some may be of earlier calls.
        let dropped = self.queued.drain(..dropped.min(self.queued.len()));
        dropped.for_each(|place| lost(place, Unsent::Refused));
        // With other errors, frames stay in the ring until the device is ready.
        if sent.map_err(Unsent::of) == Err(Unsent::Refused) {
            while let Some(place) = self.queued.pop()
                && let Some(frame) = socket.take_back()
            {
                pool.put(frame);
                lost(place, Unsent::Refused);
            }
        }
    }

    fn overrun(&mut self) -> u64 {
        let all: u64 = self.sockets.iter().map(Xsk::dropped).sum();
        // A device that is gone has no counters.
        all.saturating_sub(std::mem::replace(&mut self.reported, all))
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.ready.as_fd()
    }

    fn state(&mut self) -> State {
        self.device.state()
    }

    fn ethernet(&self) -> Option<Ethernet> {
        self.device.ethernet()
    }

    fn facts(&self) -> Option<String> {
        let XdpFacts { mode, is_zero_copy, queues } = self.xdp_facts();
        let mode = match mode {
            XdpMode::Native => "in the driver",
            XdpMode::Generic => "behind the driver (generic XDP)",
        };
        let copy = if is_zero_copy { "no copies" } else { "copies" };
        let queues = if queues == 1 { "1 queue".into() } else { format!("{queues} queues") };
        Some(format!("{mode}, {copy}, {queues}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_are_smaller_the_more_queues_there_are() {
        assert_eq!([1, 2, 3, 4, 8, 100].map(entries), [4096, 2048, 1024, 1024, 512, 512]);
        assert_eq!([0, 1, 2, 8, 100].map(frames), [0, 6144, 6144, 6144, 76_800]);
    }

    #[test]
    fn frames_are_as_large_as_the_mtu_needs() {
        assert_eq!(
            [1500, 1774, 1775, 3822, 3823].map(frame_size),
            [Some(2048), Some(2048), Some(4096), Some(4096), None]
        );
    }
}
