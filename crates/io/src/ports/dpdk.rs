//! A device by one of DPDK's drivers: network cards, and devices in software.
//!
//! Drivers of DPDK are asked for frames, over and over. While none arrive, the port has its thread
//! sleep: the longer nothing arrived, the longer, up to [`LONGEST_SLEEP`].

use super::Share;
use crate::offload::{complete, is_tagged};
use crate::port::{Ethernet, OpenError, Port, State, Unreceived, Unsent};
use crate::sys::device as kernel;
pub(crate) use crate::sys::dpdk::NEEDS;
use crate::sys::dpdk::{self, Dpdk, Eal};
use braid_packet::{BURST, Frame, Pool};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// The longest sleep while no frames arrive. A frame may wait as long.
const LONGEST_SLEEP: Duration = Duration::from_millis(1);

/// By how much the time without frames is longer than the sleep that follows.
const PATIENCE: u32 = 8;

/// The time between two questions for the state and the MTU.
const PERIOD: Duration = Duration::from_millis(100);

/// A device by one of DPDK's drivers.
pub struct DpdkPort {
    device: Dpdk,
    has_huge_pages: bool,
    /// The kernel's device behind this one, if there is one, with a socket of its namespace.
    kernel: Option<(OwnedFd, u32)>,
    /// Frames come as the kernel hands them on, with work left undone.
    is_unfinished: bool,
    /// The longest frame without a tag that the device sends, its state, and the time when it was
    /// asked for them.
    longest: usize,
    state: State,
    asked: Instant,
    /// Becomes ready when it is time to ask for frames.
    timer: OwnedFd,
    /// When frames arrived last.
    arrived: Instant,
    /// The lost frames that were reported.
    reported: u64,
    /// Frames that are ready to be sent, and their places among the frames to send.
    ready: Vec<Frame>,
    places: Vec<usize>,
}

/// A pool of frames that DPDK's devices can reach, for devices with these names. Starts DPDK.
///
/// # Errors
/// When DPDK cannot be started, or has too little memory.
pub(crate) fn pool<'n>(
    names: impl Iterator<Item = &'n str>,
    frames: u32,
    size: u32,
) -> Result<Pool, OpenError> {
    let eal = Eal::start(names)?;
    dpdk::pool(frames, if eal.is_physical { size.next_power_of_two() } else { size })
}

impl DpdkPort {
    /// Opens a device that is named as DPDK names it: a PCI address or a virtual device, with the
    /// driver's arguments, such as `net_pcap0,rx_pcap=a.pcap`. The pool must be one that
    /// [`crate::pool_for`] made for devices of DPDK.
    ///
    /// # Errors
    /// When DPDK cannot be started, there is no such device, or its driver refuses.
    pub fn open(name: &str, pool: &mut Pool) -> Result<Self, OpenError> {
        Self::open_share(name, pool, &Share::default())
    }

    /// As [`Self::open`], for one of several ports. One of them receives all frames. The others
    /// send only.
    pub(crate) fn open_share(
        name: &str,
        pool: &mut Pool,
        share: &Share,
    ) -> Result<Self, OpenError> {
        let Eal { has_huge_pages, .. } = Eal::start([name].into_iter())?;
        let device = Dpdk::open(name, pool, |open| share.device(open))?;
        let kernel = device.index().map(|index| Ok::<_, io::Error>((kernel::any_socket()?, index)));
        let clock = TimerfdClockId::Monotonic;
        let timer = timerfd_create(clock, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK);
        let now = Instant::now();
        let mut this = Self {
            has_huge_pages,
            kernel: kernel.transpose()?,
            is_unfinished: device.driver().starts_with("net_af_"),
            longest: 0,
            state: State::Up,
            asked: now,
            device,
            timer: timer.map_err(io::Error::from)?,
            arrived: now,
            reported: 0,
            ready: Vec::new(),
            places: Vec::new(),
        };
        this.longest = longest(this.ethernet());
        this.state = this.ask();
        Ok(this)
    }

    /// Sets the timer for the next look, after a look that found nothing.
    fn rest(&self) -> io::Result<()> {
        let sleep = (self.arrived.elapsed() / PATIENCE).min(LONGEST_SLEEP);
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        // A time of 0 would turn the timer off.
        let it_value = Timespec { tv_sec: 0, tv_nsec: sleep.subsec_nanos().max(1).into() };
        let time = Itimerspec { it_interval: zero, it_value };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &time)?;
        Ok(())
    }

    /// A frame that the device can send, in the pool: a copy if it is not in the pool.
    fn prepare(&self, pool: &mut Pool, frame: Frame) -> Result<Frame, Unsent> {
        let tag = if is_tagged(frame.bytes()) { 4 } else { 0 };
        let refused = match self.state {
            State::Up if frame.len() <= self.longest + tag => None,
            State::Up => Some(Unsent::TooLong),
            _ => Some(Unsent::Refused),
        };
        if let Some(why) = refused {
            pool.put(frame);
            return Err(why);
        }
        if pool.index(&frame).is_some() {
            return Ok(frame);
        }
        let mut copy = pool.take().ok_or(Unsent::QueueFull)?;
        if copy.push(frame.bytes()) { Ok(copy) } else { Err(Unsent::TooLong) }
    }

    /// Sends the frames that are ready.
    fn flush(&mut self, pool: &mut Pool, lost: &mut dyn FnMut(usize, Unsent)) {
        let sent = self.device.send(pool, self.ready.drain(..));
        self.places.drain(..).skip(sent).for_each(|place| lost(place, Unsent::QueueFull));
    }

    /// Asks for the state and the MTU if it is time. Drivers accept frames that they cannot send, and
    /// do not say so.
    fn look(&mut self) {
        let now = Instant::now();
        if now.duration_since(self.asked) > PERIOD {
            self.asked = now;
            self.state = self.ask();
            self.longest = longest(self.ethernet());
        }
    }

    fn ask(&self) -> State {
        let seen = |(socket, index): &(OwnedFd, u32)| kernel::state(socket, *index);
        match (self.device.link(), self.kernel.as_ref().map(seen)) {
            (State::Missing, _) | (_, Some(State::Missing)) => State::Missing,
            (State::Down, _) | (_, Some(State::Down)) => State::Down,
            _ => State::Up,
        }
    }
}

/// The longest frame for an MTU.
fn longest(found: Option<Ethernet>) -> usize {
    usize::try_from(found.map_or(1500, |found| found.mtu) + 14).unwrap_or(usize::MAX)
}

impl Port for DpdkPort {
    fn receive(
        &mut self,
        pool: &mut Pool,
        frames: &mut Vec<Frame>,
        lost: &mut dyn FnMut(Unreceived),
    ) -> io::Result<usize> {
        let before = frames.len();
        let found = self.device.receive(pool, frames, lost);
        if found == 0 {
            if self.device.receives() {
                self.rest()?;
            }
            return Ok(0);
        }
        self.arrived = Instant::now();
        if self.is_unfinished {
            for frame in frames.iter_mut().skip(before) {
                complete(frame.bytes_mut());
            }
        }
        Ok(found)
    }

    fn send(
        &mut self,
        pool: &mut Pool,
        frames: &mut Vec<Frame>,
        lost: &mut dyn FnMut(usize, Unsent),
    ) {
        self.look();
        for (place, frame) in frames.drain(..).enumerate() {
            match self.prepare(pool, frame) {
                Ok(frame) => {
                    self.places.push(place);
                    self.ready.push(frame);
                }
                Err(why) => lost(place, why),
            }
            if self.ready.len() == BURST {
                self.flush(pool, lost);
            }
        }
        self.flush(pool, lost);
    }

    fn overrun(&mut self) -> u64 {
        if !self.device.receives() {
            return 0;
        }
        let all = self.device.counted().missed;
        all.saturating_sub(std::mem::replace(&mut self.reported, all))
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }

    fn state(&mut self) -> State {
        self.state = self.ask();
        self.state
    }

    fn facts(&self) -> Option<String> {
        let pages = if self.has_huge_pages { "huge pages" } else { "no huge pages" };
        Some(format!("{}, {}, {pages}", self.device.driver(), dpdk::version()))
    }

    fn ethernet(&self) -> Option<Ethernet> {
        let mut found = self.device.ethernet()?;
        if let Some((socket, index)) = &self.kernel
            && let Some(kernel) = kernel::ethernet_of(socket, *index)
        {
            found.mtu = found.mtu.min(kernel.mtu);
        }
        Some(match self.device.driver() {
            "net_tap" => found.at_other_end(),
            _ => found,
        })
    }

    fn notes(&self) -> Vec<String> {
        let unsent = self.device.counted().unsent;
        let note = || format!("the driver accepted {unsent} frames that it could not send");
        // One of the device's ports says so for all.
        (unsent > 0 && self.device.receives()).then(note).into_iter().collect()
    }
}
