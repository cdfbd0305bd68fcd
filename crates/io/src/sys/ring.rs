//! The receiving side of a packet socket (`packet(7)`): a ring of slots that the kernel writes
//! frames to, without a system call.
//!
//! The ring has the format TPACKET_V2. In the format V3, the kernel hands over blocks of frames,
//! and a block that is not full only after a time-out of a millisecond or more. A lone frame would
//! wait for that long (measured: 1 ms instead of 20 µs). A frame that is longer than a slot, such
//! as a frame of several segments, also goes to the socket's queue, and is read from there.

use super::bpf::Filter;
use super::map::Map;
use super::socket::{bind, get, grow, packet_socket, set};
use super::{device, fanout, whole};
use crate::offload::HEADER;
use crate::port::{Ethernet, MAX_FRAME, OpenError, State};
use rustix::net::sockopt;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// The TPID of a VLAN tag when the kernel does not report it.
const CUSTOMER_VLAN: u16 = 0x8100;

/// The memory of the ring, and the size of the queue for long frames.
const MEMORY: usize = 8 << 20;

/// The most memory for frames that are being sent.
const SENDING: usize = 4 << 20;

/// The size of the ring's blocks of contiguous memory, unless a slot is larger.
const BLOCK: usize = 1 << 17;

/// The space in a slot in front of a frame, at most: the kernel's description, addresses, padding.
const FRONT: u32 = 128;

/// A frame in the ring, and the kernel's data beside it.
pub(crate) struct Arrived<'r> {
    /// The `virtio_net_hdr`.
    pub(crate) header: [u8; HEADER],
    pub(crate) bytes: &'r [u8],
    /// The VLAN tag that the kernel has removed: TPID and TCI.
    pub(crate) vlan: Option<(u16, u16)>,
}

/// The contents of a slot of the ring.
enum Slot<'r> {
    Frame(Arrived<'r>),
    /// The frame is in the queue.
    Queued {
        vlan: Option<(u16, u16)>,
    },
    /// The frame was longer than the slot, and the queue was full.
    Cut,
}

/// A bound packet socket with a ring, in promiscuous mode. It does not read back its own frames.
pub(crate) struct Ring {
    socket: OwnedFd,
    slots: Map,
    /// The size of a slot.
    slot: usize,
    /// The offset of the next slot.
    next: usize,
    /// A long frame, from the queue.
    whole: Vec<u8>,
    /// Frames for which the queue had no room.
    cut: u64,
    index: u32,
}

/// A packet socket that sends on the device with this number, and receives nothing. A
/// `virtio_net_hdr` is in front of each frame.
pub(crate) fn sender(index: u32) -> Result<OwnedFd, OpenError> {
    let socket = packet_socket()?;
    set(&socket, libc::SOL_PACKET, libc::PACKET_VNET_HDR, &1_i32)?;
    grow(&socket, 0, SENDING)?;
    bind(&socket, i32::try_from(index).map_err(|_| OpenError::NoDevice)?, false)?;
    Ok(socket)
}

impl Ring {
    /// Opens the device with this name.
    pub(crate) fn open(name: &str) -> Result<Self, OpenError> {
        let socket = packet_socket()?;
        let index = device::index(&socket, name)?;
        device::ethernet(&socket, name)?;
        let number = i32::try_from(index).map_err(|_| OpenError::NoDevice)?;
        set(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &1_i32)?;
        set(&socket, libc::SOL_PACKET, libc::PACKET_VNET_HDR, &1_i32)?;
        grow(&socket, MEMORY, SENDING)?;
        let slot = slot_size(device::mtu(&socket, name)?);
        let slots = map_slots(&socket, slot)?;
        device::promiscuous(&socket, index)?;
        bind(&socket, number, true)?;
        let whole = vec![0; HEADER + MAX_FRAME];
        Ok(Self { socket, slots, slot, next: 0, whole, cut: 0, index })
    }

    /// Joins a fan-out group, or a new one. Returns the group's number.
    pub(crate) fn join(&self, group: Option<u16>, program: Option<&Filter>) -> io::Result<u16> {
        fanout::join(&self.socket, group, program)
    }

    /// The number of the device.
    pub(crate) fn index(&self) -> u32 {
        self.index
    }

    /// Calls `each` with frames that have arrived, at most `most`, and gives their slots back to
    /// the kernel. Returns the number of slots. `each` gets `None` for a frame that exceeds the
    /// limit for frames.
    pub(crate) fn receive(
        &mut self,
        most: usize,
        mut each: impl FnMut(Option<Arrived<'_>>),
    ) -> usize {
        for count in 0..most {
            let Some(status) = self.status() else { return count };
            let seen = status.load(Ordering::Acquire);
            if seen & libc::TP_STATUS_USER == 0 {
                return count;
            }
            match self.read(seen) {
                Slot::Frame(frame) => each(Some(frame)),
                Slot::Queued { vlan } => self.read_queued(vlan, &mut each),
                Slot::Cut => self.cut += 1,
            }
            self.release();
        }
        most
    }

    /// The status of the next slot.
    fn status(&self) -> Option<&AtomicU32> {
        let header = self.header()?.cast::<u32>();
        // SAFETY: the status is the first word of the slot's header, aligned, and in the ring for
        // as long as the ring. The kernel and this value change it only as a whole.
        Some(unsafe { AtomicU32::from_ptr(header.as_ptr()) })
    }

    fn header(&self) -> Option<NonNull<libc::tpacket2_hdr>> {
        Some(self.slots.at(self.next, size_of::<libc::tpacket2_hdr>())?.cast())
    }

    /// Reads the next slot, which belongs to this program by its status.
    fn read(&self, status: u32) -> Slot<'_> {
        let Some(at) = self.header() else { return Slot::Cut };
        // SAFETY: the kernel has written the header, and leaves the slot alone until it is given
        // back. Slots are aligned for it.
        let header = unsafe { at.read() };
        let vlan = vlan(status, &header);
        if status & libc::TP_STATUS_COPY != 0 {
            return Slot::Queued { vlan };
        }
        let (start, length) = (usize::from(header.tp_mac), header.tp_snaplen);
        if length < header.tp_len {
            return Slot::Cut;
        }
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        // The `virtio_net_hdr` is right in front of the frame.
        let whole = start.checked_sub(HEADER).filter(|_| start.saturating_add(length) <= self.slot);
        let first = whole.and_then(|from| self.slots.at(self.next + from, HEADER + length));
        let Some(first) = first else { return Slot::Cut };
        // SAFETY: these bytes are in the slot, by the check above, and the kernel leaves the slot
        // alone until it is given back, which needs an exclusive borrow.
        let bytes = unsafe { NonNull::slice_from_raw_parts(first, HEADER + length).as_ref() };
        match bytes.split_first_chunk::<HEADER>() {
            Some((header, bytes)) => Slot::Frame(Arrived { header: *header, bytes, vlan }),
            None => Slot::Cut,
        }
    }

    /// Reads a long frame from the queue, where frames are in the order of their slots.
    fn read_queued(
        &mut self,
        vlan: Option<(u16, u16)>,
        each: &mut impl FnMut(Option<Arrived<'_>>),
    ) {
        match whole::receive(&self.socket, &mut self.whole) {
            Ok(Some(length)) => {
                let whole = self.whole.get(..length);
                if let Some((header, bytes)) = whole.and_then(|all| all.split_first_chunk()) {
                    each(Some(Arrived { header: *header, bytes, vlan }));
                }
            }
            Ok(None) => each(None),
            Err(_) => self.cut += 1,
        }
    }

    /// Gives the next slot back to the kernel.
    fn release(&mut self) {
        if let Some(status) = self.status() {
            status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        }
        self.next += self.slot;
        if self.next >= self.slots.length() {
            self.next = 0;
        }
    }

    /// The number of frames that the kernel has dropped since the last call because the ring or the
    /// queue was full, or because it could not describe the segments that it had joined.
    pub(crate) fn dropped(&mut self) -> u64 {
        let start = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let counted = get(&self.socket, libc::SOL_PACKET, libc::PACKET_STATISTICS, start);
        counted.map_or(0, |counted| u64::from(counted.tp_drops)) + std::mem::take(&mut self.cut)
    }

    /// The state of the device. Takes the socket's error, so that waiting is possible again.
    pub(crate) fn state(&self) -> State {
        let _ = sockopt::socket_error(&self.socket);
        device::state(&self.socket, self.index)
    }

    pub(crate) fn mtu(&self) -> io::Result<u32> {
        device::mtu_of(&self.socket, self.index)
    }

    /// The device's properties on its link.
    pub(crate) fn ethernet(&self) -> Option<Ethernet> {
        device::ethernet_of(&self.socket, self.index)
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The size of a slot that takes frames of this MTU: a power of two, so that slots fill blocks.
fn slot_size(mtu: u32) -> usize {
    let bytes = mtu.saturating_add(FRONT).min(1 << 16).next_power_of_two().max(2048);
    usize::try_from(bytes).unwrap_or(1 << 16)
}

/// Makes the socket's ring and maps it.
fn map_slots(socket: &OwnedFd, slot: usize) -> io::Result<Map> {
    let block = BLOCK.max(slot);
    let number = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX);
    let request = libc::tpacket_req {
        tp_block_size: number(block),
        tp_block_nr: number(MEMORY / block),
        tp_frame_size: number(slot),
        tp_frame_nr: number(MEMORY / slot),
    };
    let version = libc::tpacket_versions::TPACKET_V2 as i32;
    set(socket, libc::SOL_PACKET, libc::PACKET_VERSION, &version)?;
    // Frames that do not fit go to the queue, too.
    set(socket, libc::SOL_PACKET, libc::PACKET_COPY_THRESH, &1_i32)?;
    set(socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
    Map::of_socket(socket.as_fd(), MEMORY, 0)
}

fn vlan(status: u32, header: &libc::tpacket2_hdr) -> Option<(u16, u16)> {
    (status & libc::TP_STATUS_VLAN_VALID != 0).then(|| {
        let tells = status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
        (if tells { header.tp_vlan_tpid } else { CUSTOMER_VLAN }, header.tp_vlan_tci)
    })
}
