//! A device with a driver of DPDK.

use super::calls::{
    Counters, Facts, MOST, Moved, braid_dpdk_attach, braid_dpdk_begin, braid_dpdk_count,
    braid_dpdk_detach, braid_dpdk_drop, braid_dpdk_enter, braid_dpdk_ethernet, braid_dpdk_join,
    braid_dpdk_leave, braid_dpdk_link, braid_dpdk_receive, braid_dpdk_send,
};
use super::eal::{messages, why};
use super::frames::Lent;
use super::memory;
use crate::port::{Ethernet, MAX_FRAME, OpenError, State, Unreceived};
use braid_packet::{Frame, Pool};
use std::ffi::{CStr, CString};
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The numbers of the ports in use. Each call that opens or ends a device takes this lock, because
/// DPDK allows only one such call at a time.
static IN_USE: Mutex<Vec<u16>> = Mutex::new(Vec::new());

/// Frames that a device needs: for the descriptors of its two queues, `DESCRIPTORS` of `shim.c`
/// each, and four bursts on their way.
pub(crate) const NEEDS: u32 = 2 * 1024 + 4 * 64;

/// A device, which several ports may share. It ends with the last of them.
pub(crate) struct Device {
    port: u16,
    driver: String,
    /// The device of the kernel behind it, or 0.
    index: u32,
    /// The frames that it has from the pools of its ports. A thread that sends or asks for counters
    /// holds this lock, because DPDK allows one such thread at a time.
    lent: Mutex<Vec<Arc<Mutex<Lent>>>>,
}

/// Opens a device.
pub(crate) type Open<'o> = &'o mut dyn FnMut() -> Result<Device, OpenError>;

/// A port to a device.
pub(crate) struct Dpdk {
    device: Arc<Device>,
    /// The device has one queue, which this port reads. No other port of the device does.
    receives: bool,
    lent: Lending,
    burst: [Moved; MOST as usize],
}

// SAFETY: a device belongs to no thread. The pointers of `burst` are used during calls only.
unsafe impl Send for Dpdk {}

/// The frames of a pool that a port needs, as long as the port exists.
struct Lending(Arc<Mutex<Lent>>);

impl Lending {
    fn begin(pool: &mut Pool) -> Result<Self, OpenError> {
        let lent = memory::lent(pool)?;
        let this = Self(lent.ok_or_else(|| refused("the packets are not in DPDK's memory"))?);
        let mut lent = lock(&this.0);
        lent.want(NEEDS as usize);
        lent.balance(pool);
        drop(lent);
        Ok(this)
    }
}

impl Drop for Lending {
    fn drop(&mut self) {
        lock(&self.0).want_less(NEEDS as usize);
    }
}

/// A thread that DPDK knows.
struct Known;

impl Drop for Known {
    fn drop(&mut self) {
        // SAFETY: DPDK runs, and the thread has entered it.
        unsafe { braid_dpdk_leave() };
    }
}

thread_local! {
    static KNOWN: Known = {
        // SAFETY: DPDK runs.
        unsafe { braid_dpdk_enter() };
        Known
    };
}

impl Device {
    /// Opens a device. It receives frames of the pool.
    fn open(name: &str, lent: &Arc<Mutex<Lent>>) -> Result<Self, OpenError> {
        let port = attach(name)?;
        let lent = Mutex::new(vec![Arc::clone(lent)]);
        let mut this = Self { port, driver: String::new(), index: 0, lent };
        let mempool = lock(&this.lent).first().map_or(null_mut(), |lent| lock(lent).mempool());
        let mut facts = Facts { driver: c"".as_ptr(), index: 0 };
        // SAFETY: the port exists, and only this value uses it. It also keeps the pool of mbufs.
        // Nothing else borrows `facts`.
        let begun = unsafe { braid_dpdk_begin(port, mempool, &raw mut facts) };
        if begun != 0 {
            return Err(refused(format!("its driver cannot start it: {}", why(begun))));
        }
        // SAFETY: the driver's name is a text that ends with a zero and lives as long as the
        // driver.
        this.driver = unsafe { CStr::from_ptr(facts.driver) }.to_string_lossy().into_owned();
        this.index = facts.index;
        Ok(this)
    }
}

impl Dpdk {
    /// Opens a port to a device, whose name may be followed by the driver's arguments. `share`
    /// returns the device if another port has opened it, and otherwise calls its argument, which
    /// opens the device. DPDK must run.
    ///
    /// # Errors
    /// When there is no such device, it is in use, or the driver refuses.
    pub(crate) fn open(
        name: &str,
        pool: &mut Pool,
        share: impl FnOnce(Open<'_>) -> Result<Arc<Device>, OpenError>,
    ) -> Result<Self, OpenError> {
        let lent = Lending::begin(pool)?;
        let mut receives = false;
        let device = share(&mut || {
            receives = true;
            Device::open(name, &lent.0)
        })?;
        if !receives {
            // Frames that the port sends may be in the device's queue when the port ends.
            lock(&device.lent).push(Arc::clone(&lent.0));
        }
        let nothing = Moved { mbuf: null_mut(), memory: null_mut(), start: 0, length: 0, parts: 0 };
        Ok(Self { device, receives, lent, burst: [nothing; MOST as usize] })
    }

    /// Whether this port receives the frames that arrive.
    pub(crate) fn receives(&self) -> bool {
        self.receives
    }

    /// The name of the driver, such as `net_pcap`.
    pub(crate) fn driver(&self) -> &str {
        &self.device.driver
    }

    /// The number of the kernel's device behind this one, if there is one.
    pub(crate) fn index(&self) -> Option<u32> {
        Some(self.device.index).filter(|index| *index > 0)
    }

    /// Appends the frames that have arrived, at most [`MOST`]. Calls `lost` for each one that is
    /// lost. Returns how many there were.
    pub(crate) fn receive(
        &mut self,
        pool: &mut Pool,
        frames: &mut Vec<Frame>,
        lost: &mut dyn FnMut(Unreceived),
    ) -> usize {
        KNOWN.with(|_| ());
        let Self { device, lent, burst, .. } = self;
        let mut lent = lock(&lent.0);
        lent.balance(pool);
        if !self.receives {
            return 0;
        }
        // SAFETY: the device has been started, and has one queue, which this port alone reads.
        // `burst` has room for `MOST` frames.
        let count = unsafe { braid_dpdk_receive(device.port, burst.as_mut_ptr(), MOST) };
        for moved in burst.iter().take(usize::from(count)) {
            if moved.parts > 1 {
                match join(*moved) {
                    Some(frame) => frames.push(frame),
                    None => lost(Unreceived::TooLong),
                }
            } else if let Some(mut frame) = lent.release(moved.memory) {
                frame.place(moved.start, moved.length);
                frames.push(frame);
            }
        }
        count.into()
    }

    /// Sends frames, at most [`MOST`], which must be of the device's pool. Returns the number of
    /// frames, from the first on, that belong to the driver now. The others are back in the pool.
    pub(crate) fn send(&mut self, pool: &mut Pool, frames: impl Iterator<Item = Frame>) -> usize {
        KNOWN.with(|_| ());
        let Self { device, lent, burst, .. } = self;
        let mut lent = lock(&lent.0);
        let mut count = 0;
        for (moved, frame) in burst.iter_mut().zip(frames) {
            let (start, length) = (frame.start(), u32::try_from(frame.len()).unwrap_or(0));
            let Some((mbuf, memory)) = lent.hold(pool, frame) else { break };
            *moved = Moved { mbuf, memory, start, length, parts: 1 };
            count += 1;
        }
        let calls = lock(&device.lent);
        // SAFETY: the device has been started, and has one queue, whose lock is held. `lent` holds
        // the first `count` frames of `burst`.
        let sent = unsafe { braid_dpdk_send(device.port, burst.as_ptr(), count) };
        drop(calls);
        for moved in burst.iter().take(count.into()).skip(sent.into()) {
            if let Some(frame) = lent.release(moved.memory) {
                pool.put(frame);
            }
        }
        sent.into()
    }

    /// Whether the device carries frames, as its driver sees it.
    pub(crate) fn link(&self) -> State {
        let _calls = lock(&self.device.lent);
        // SAFETY: the device exists.
        match unsafe { braid_dpdk_link(self.device.port) } {
            1 => State::Up,
            0 => State::Down,
            _ => State::Missing,
        }
    }

    pub(crate) fn ethernet(&self) -> Option<Ethernet> {
        let (mut mac, mut mtu) = ([0; 6], 0);
        let _calls = lock(&self.device.lent);
        // SAFETY: the device exists, a MAC address has six bytes, and nothing else borrows the two.
        let found =
            unsafe { braid_dpdk_ethernet(self.device.port, mac.as_mut_ptr(), &raw mut mtu) };
        (found == 0).then_some(Ethernet { mac, mtu: mtu.into() })
    }

    pub(crate) fn counted(&self) -> Counters {
        let mut counters = Counters::default();
        let _calls = lock(&self.device.lent);
        // SAFETY: the device exists, and nothing else borrows the counters.
        unsafe { braid_dpdk_count(self.device.port, &raw mut counters) };
        counters
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        let mut in_use = lock(&IN_USE);
        // SAFETY: the device exists, and nobody uses it any more. The lock is held.
        unsafe { braid_dpdk_detach(self.port) };
        in_use.retain(|port| *port != self.port);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn refused(why: impl Into<String>) -> OpenError {
    OpenError::Dpdk(why.into())
}

/// Attaches a device, and returns the number of its port, which is in use from now on.
fn attach(device: &str) -> Result<u16, OpenError> {
    let text = CString::new(device).map_err(|_| refused("a name cannot have a zero byte"))?;
    let (mut in_use, mut port) = (lock(&IN_USE), 0);
    // Earlier messages of DPDK are about other devices.
    messages();
    // SAFETY: the text ends with a zero, and nothing else borrows `port`. The lock is held.
    let attached = unsafe { braid_dpdk_attach(text.as_ptr(), &raw mut port) };
    if attached != 0 {
        return Err(refused(unknown(&why(attached))));
    }
    if in_use.contains(&port) {
        return Err(refused("this run uses the device already; number devices, as in net_null1"));
    }
    in_use.push(port);
    Ok(port)
}

/// The remedy for a device that cannot be attached.
fn unknown(why: &str) -> String {
    let remedy = if why.contains("failed to parse device") {
        "; DPDK has no driver of this name (a device of the kernel is net_af_packet0,iface=NAME), \
         or its package is not installed (Debian: one for each driver, such as librte-net-tap23)"
    } else if why.contains("Cannot find device") {
        "; `dpdk-devbind.py --status` lists network cards, which need to be bound to vfio-pci"
    } else {
        ""
    };
    format!("DPDK cannot attach it: {why}{remedy}")
}

/// A frame with memory of its own from one that several mbufs hold. `None` if it is too long.
fn join(moved: Moved) -> Option<Frame> {
    let length = moved.length as usize;
    if length > MAX_FRAME {
        // SAFETY: the driver has handed out the mbuf.
        unsafe { braid_dpdk_drop(moved.mbuf) };
        return None;
    }
    let mut bytes = vec![0; length];
    // SAFETY: the driver has handed out the mbuf. Its parts have `length` bytes in all.
    unsafe { braid_dpdk_join(moved.mbuf, bytes.as_mut_ptr()) };
    Some(Frame::of(&bytes))
}
