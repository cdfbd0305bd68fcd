//! A device of the machine through AF_XDP sockets, one for each of its queues.

use crate::interface::{Interface, OpenError, Received, State, Unsent};
use crate::offload::complete;
use crate::sys::device::Reference;
use crate::sys::{Redirect, XdpMode, Xsk};
use braid_packet::{Frame, Pool};
use rustix::event::epoll;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Frames of each queue: as many as the kernel may have for arriving frames, and half as many on
/// their way through the program.
const FRAMES_PER_QUEUE: u32 = crate::sys::XSK_ENTRIES / 2 * 3;

/// The most frames that one call receives.
const BURST: usize = 64;

/// The room that the kernel leaves in front of an arriving frame.
const FRONT: u32 = 256;

/// The link header with a VLAN tag, which the MTU does not count.
const LINK: u32 = 18;

/// Choices for an XDP port.
#[derive(Clone, Default, Debug)]
pub struct XdpOptions {
    /// Processes frames of the kernel within calls of this program instead of in interrupts, for at
    /// most this number of microseconds. Takes effect for drivers that can do so.
    pub busy_poll_us: Option<u16>,
}

/// What the device and the kernel have agreed to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct XdpFacts {
    /// Where the XDP program runs.
    pub mode: XdpMode,
    /// The device itself reads and writes packet memory.
    pub is_zero_copy: bool,
    /// The number of queues.
    pub queues: u32,
    /// Busy polling was asked for and is permitted.
    pub polls_busily: bool,
}

/// A device of the machine, in promiscuous mode, by AF_XDP. The kernel gets no frames of the device
/// any more.
pub struct XdpPort {
    sockets: Vec<Xsk>,
    redirect: Redirect,
    pool: Pool,
    device: Reference,
    /// Becomes ready when one of the sockets does.
    ready: OwnedFd,
    /// The longest frame that the device sends.
    longest: usize,
    /// The queue that is read next.
    turn: usize,
    polls_busily: bool,
    /// The dropped frames that were reported.
    reported: u64,
}

impl XdpPort {
    /// Opens the device with this name.
    ///
    /// # Errors
    /// As for [`Self::open_with`].
    pub fn open(name: &str) -> Result<Self, OpenError> {
        Self::open_with(name, &XdpOptions::default())
    }

    /// Opens the device with this name, with all of its queues.
    ///
    /// # Errors
    /// When there is no such device, it is not permitted, the device's frames are too long for
    /// AF_XDP, or the operating system refuses.
    pub fn open_with(name: &str, options: &XdpOptions) -> Result<Self, OpenError> {
        let device = Reference::open(name)?;
        let mtu = device.mtu().unwrap_or(0);
        let size = [2048, 4096].into_iter().find(|size| FRONT + LINK + mtu <= *size);
        let size = size.ok_or(OpenError::Mtu(mtu))?;
        let queues = device.queues();
        let pool = Pool::new(queues.saturating_mul(FRAMES_PER_QUEUE), size);
        let mut pool = pool.ok_or(io::Error::from(io::ErrorKind::OutOfMemory))?;
        let redirect = Redirect::attach(device.index())?;
        let ready = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(io::Error::from)?;
        let (mut sockets, mut polls_busily) = (Vec::new(), options.busy_poll_us.is_some());
        for queue in 0..queues {
            let mut socket = Xsk::open(device.index(), queue, &pool)?;
            if let Some(time_us) = options.busy_poll_us {
                polls_busily &= socket.poll_busily(time_us.into());
            }
            socket.refill(&mut pool, FRAMES_PER_QUEUE / 2);
            redirect.set(queue, socket.descriptor())?;
            let (data, events) = (epoll::EventData::new_u64(queue.into()), epoll::EventFlags::IN);
            epoll::add(&ready, socket.descriptor(), data, events).map_err(io::Error::from)?;
            sockets.push(socket);
        }
        let longest = longest(mtu);
        let (turn, reported) = (0, 0);
        Ok(Self { sockets, redirect, pool, device, ready, longest, turn, polls_busily, reported })
    }

    /// What the device and the kernel have agreed to.
    #[must_use]
    pub fn facts(&self) -> XdpFacts {
        XdpFacts {
            mode: self.redirect.mode(),
            is_zero_copy: self.sockets.iter().all(Xsk::is_zero_copy),
            queues: u32::try_from(self.sockets.len()).unwrap_or(u32::MAX),
            polls_busily: self.polls_busily,
        }
    }

    /// Calls `each` with frames that have arrived. Returns their number.
    fn receive_frames(&mut self, mut each: impl FnMut(&Frame)) -> usize {
        let count = self.sockets.len();
        self.turn = (self.turn + 1) % count.max(1);
        let mut found = 0;
        let (first, last) = self.sockets.split_at_mut(self.turn);
        for socket in last.iter_mut().chain(first) {
            let before = found;
            while found < BURST
                && let Some(mut frame) = socket.receive()
            {
                found += 1;
                if !socket.is_zero_copy() {
                    // Cards have no frames with work left undone.
                    complete(frame.bytes_mut());
                }
                each(&frame);
                self.pool.put(frame);
            }
            if found > before {
                socket.refill(&mut self.pool, FRAMES_PER_QUEUE);
            }
            socket.end_receive(self.polls_busily);
        }
        found
    }
}

/// The longest frame for an MTU.
fn longest(mtu: u32) -> usize {
    usize::try_from(mtu.saturating_add(LINK - 4)).unwrap_or(usize::MAX)
}

/// Whether a frame has a VLAN tag, with which it may be longer.
fn is_tagged(frame: &[u8]) -> bool {
    matches!(frame.get(12..14), Some([0x81, 0] | [0x88, 0xa8]))
}

impl Interface for XdpPort {
    fn receive(&mut self, frames: &mut Vec<Vec<u8>>) -> io::Result<Received> {
        let found = self.receive_frames(|frame| frames.push(frame.bytes().to_vec()));
        Ok(if found == 0 { Received::Nothing } else { Received::Something })
    }

    fn send(&mut self, frame: &[u8]) -> Result<(), Unsent> {
        let tag = if is_tagged(frame) { 4 } else { 0 };
        if frame.len() > self.longest + tag {
            return Err(Unsent::TooLong);
        }
        // One queue sends, so that frames stay in order.
        let socket = self.sockets.first_mut().ok_or(Unsent::Refused)?;
        let mut copy = match self.pool.take() {
            Some(copy) => copy,
            None => {
                let _ = socket.end_send(&mut self.pool);
                self.pool.take().ok_or(Unsent::QueueFull)?
            }
        };
        if !copy.push(frame) {
            self.pool.put(copy);
            return Err(Unsent::TooLong);
        }
        let queued = socket.send(&self.pool, copy);
        let sent = socket.end_send(&mut self.pool);
        if let Err(copy) = queued {
            self.pool.put(copy);
            return Err(sent.map_or_else(Unsent::of, |()| Unsent::QueueFull));
        }
        match sent.map_err(Unsent::of) {
            Err(Unsent::Refused) if let Some(copy) = socket.take_back() => {
                self.pool.put(copy);
                Err(Unsent::Refused)
            }
            // Otherwise the frame stays in the ring until the device is ready.
            _ => Ok(()),
        }
    }

    fn overrun(&mut self) -> u64 {
        let all = self.sockets.iter().map(Xsk::dropped).sum();
        all - std::mem::replace(&mut self.reported, all)
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.ready.as_fd()
    }

    fn state(&mut self) -> State {
        if let Ok(mtu) = self.device.mtu() {
            self.longest = longest(mtu);
        }
        self.device.state()
    }
}
