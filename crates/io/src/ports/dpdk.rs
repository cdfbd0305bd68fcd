//! A device by one of DPDK's drivers: network cards, and devices in software.
//!
//! The port polls the driver for frames. While none arrive, the port's thread sleeps between polls,
//! longer each time, up to [`LONGEST_SLEEP`].

use super::Share;
use super::limit::Limit;
use super::timer::Timer;
use crate::offload::complete;
use crate::port::{Ethernet, OpenError, Port, State, Unreceived, Unsent};
use crate::sys::device as kernel;
pub(crate) use crate::sys::dpdk::NEEDS;
use crate::sys::dpdk::{self, Dpdk, Eal};
use braid_packet::{BURST, Frame, Pool};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// The longest sleep while no frames arrive. A frame may wait as long.
const LONGEST_SLEEP: Duration = Duration::from_millis(1);

/// The time without frames, divided by the length of the sleep that follows.
const PATIENCE: u32 = 8;

/// A device by one of DPDK's drivers.
pub struct DpdkPort {
    device: Dpdk,
    has_huge_pages: bool,
    /// The kernel's device behind this one, if there is one, with a socket of its namespace.
    kernel: Option<(OwnedFd, u32)>,
    /// Frames come from the kernel, with work left to do ([`crate::offload`]).
    is_unfinished: bool,
    /// The limit and the state are asked for together.
    limit: Limit,
    state: State,
    /// Becomes ready when it is time to ask for frames.
    timer: Timer,
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
    /// Opens a device, for one of several ports. One of them receives all frames. The others send
    /// only. The device is named as DPDK names it: a PCI address or a virtual device, with the
    /// driver's arguments, such as `net_pcap0,rx_pcap=a.pcap`. The pool must be one that
    /// [`crate::pool_for`] made for devices of DPDK.
    ///
    /// # Errors
    /// When DPDK cannot be started, there is no such device, or its driver refuses.
    pub fn open(name: &str, pool: &mut Pool, share: &Share) -> Result<Self, OpenError> {
        let Eal { has_huge_pages, .. } = Eal::start([name].into_iter())?;
        let device = Dpdk::open(name, pool, |open| share.device(open))?;
        let kernel = device.index().map(|index| Ok::<_, io::Error>((kernel::any_socket()?, index)));
        let mut this = Self {
            has_huge_pages,
            kernel: kernel.transpose()?,
            is_unfinished: device.driver().starts_with("net_af_"),
            limit: Limit::of(0),
            state: State::Up,
            device,
            timer: Timer::new()?,
            arrived: Instant::now(),
            reported: 0,
            ready: Vec::new(),
            places: Vec::new(),
        };
        this.look();
        Ok(this)
    }

    /// A frame that the device can send, in the pool.
    fn prepare(&self, pool: &mut Pool, frame: Frame) -> Result<Frame, Unsent> {
        if self.state == State::Up {
            return self.limit.prepare(pool, frame);
        }
        pool.put(frame);
        Err(Unsent::Refused)
    }

    /// Sends the frames that are ready.
    fn flush(&mut self, pool: &mut Pool, lost: &mut dyn FnMut(usize, Unsent)) {
        let sent = self.device.send(pool, self.ready.drain(..));
        self.places.drain(..).skip(sent).for_each(|place| lost(place, Unsent::QueueFull));
    }

    /// Asks for the state and the MTU. The port checks them itself, because drivers accept frames
    /// that they cannot send, and report no error.
    fn look(&mut self) {
        self.state = self.ask();
        self.limit = Limit::of(self.ethernet().map_or(1500, |found| found.mtu));
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
                let sleep = self.arrived.elapsed() / PATIENCE;
                self.timer.set(sleep.min(LONGEST_SLEEP))?;
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
        if self.limit.is_old() {
            self.look();
        }
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
        self.timer.descriptor()
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
        // One of the device's ports reports this for all.
        (unsent > 0 && self.device.receives()).then(note).into_iter().collect()
    }
}
