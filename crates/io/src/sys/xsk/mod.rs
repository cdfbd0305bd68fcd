//! AF_XDP sockets: frames of a device's queue in packet memory that is shared with the kernel.
//!
//! The sockets of a device share one registration of their pool's memory. Each device registers the
//! memory for itself. So devices with the same pool exchange frames without a copy. Each device
//! uses the best mode that it supports, and no device is affected if another one is removed.

mod ring;

use super::socket::set;
use braid_packet::{Frame, Pool};
use ring::{Reader, Writer};
use rustix::io::Errno;
use rustix::net::xdp::{
    SocketAddrXdp, SocketAddrXdpFlags, SocketAddrXdpWithSharedUmem, XDP_PGOFF_RX_RING,
    XDP_PGOFF_TX_RING, XDP_UMEM_PGOFF_COMPLETION_RING, XDP_UMEM_PGOFF_FILL_RING, XdpOptionsFlags,
    XdpUmemReg, XdpUmemRegFlags,
};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, send, socket_with,
    sockopt,
};
use std::io;
use std::mem;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::thread;
use std::time::Duration;

/// The most memory that the kernel may use for frames that are being sent.
const SENDING: i32 = 4 << 20;

/// The number of frames that one call sends in copy mode.
const PER_CALL: u32 = 32;

/// The number of attempts to bind a socket to a queue that is not free yet.
const ATTEMPTS: u32 = 200;

/// The time between two attempts.
const PAUSE: Duration = Duration::from_millis(5);

/// A frame in a ring.
#[derive(Clone, Copy)]
#[repr(C)]
struct Descriptor {
    /// The offset of the first byte in the pool's memory.
    at: u64,
    length: u32,
    options: u32,
}

/// A bound AF_XDP socket.
pub(crate) struct Xsk {
    socket: OwnedFd,
    fill: Writer<u64>,
    received: Reader<Descriptor>,
    sending: Writer<Descriptor>,
    sent: Reader<u64>,
    /// The frames that the kernel has, by their number in the pool.
    held: Vec<Frame>,
    frame_size: u64,
    /// The start of the memory of the pool that is registered.
    memory: NonNull<u8>,
    is_zero_copy: bool,
}

// SAFETY: `memory` is only compared.
unsafe impl Send for Xsk {}

impl Xsk {
    /// Binds a socket to a queue of the device with this number. Each of its rings has this number
    /// of entries, a power of two. The frames of the pool must have 2048 or 4096 bytes. `first` is
    /// the first socket of the device with this pool.
    pub(crate) fn open(
        index: u32,
        queue: u32,
        entries: u32,
        pool: &Pool,
        first: Option<&Xsk>,
    ) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::XDP, SocketType::RAW, flags, None)?;
        let (memory, length) = pool.memory();
        if first.is_none() {
            register(&socket, pool)?;
        }
        sockopt::set_xdp_umem_fill_ring_size(&socket, entries)?;
        sockopt::set_xdp_umem_completion_ring_size(&socket, entries)?;
        sockopt::set_xdp_rx_ring_size(&socket, entries)?;
        sockopt::set_xdp_tx_ring_size(&socket, entries)?;
        // Without this option, the kernel's default limits the number of frames that are being
        // sent.
        let _ = set(&socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &SENDING);
        let at = sockopt::xdp_mmap_offsets(&socket)?;
        let frames = length / usize::try_from(pool.frame_size().max(1)).unwrap_or(1);
        let mut this = Self {
            fill: Writer::map(&socket, at.fr, XDP_UMEM_PGOFF_FILL_RING, entries)?,
            received: Reader::map(&socket, at.rx, XDP_PGOFF_RX_RING, entries)?,
            sending: Writer::map(&socket, at.tx, XDP_PGOFF_TX_RING, entries)?,
            sent: Reader::map(&socket, at.cr, XDP_UMEM_PGOFF_COMPLETION_RING, entries)?,
            socket,
            held: (0..frames).map(|_| Frame::empty()).collect(),
            frame_size: u64::from(pool.frame_size().max(1)),
            memory,
            is_zero_copy: false,
        };
        let mut attached = attach(&this.socket, index, queue, first);
        for _ in 0..ATTEMPTS {
            // The kernel frees the queue of a closed socket some time later.
            if attached != Err(Errno::BUSY) {
                break;
            }
            thread::sleep(PAUSE);
            attached = attach(&this.socket, index, queue, first);
        }
        attached?;
        let options = sockopt::xdp_options(&this.socket)?;
        this.is_zero_copy = options.contains(XdpOptionsFlags::XDP_OPTIONS_ZEROCOPY);
        Ok(this)
    }

    /// Whether the device writes to packet memory, and reads from it, by itself.
    pub(crate) fn is_zero_copy(&self) -> bool {
        self.is_zero_copy
    }

    /// Hands free frames of the pool to the kernel, for frames that arrive.
    pub(crate) fn refill(&mut self, pool: &mut Pool) {
        for _ in 0..self.fill.room() {
            let Some(frame) = pool.take() else { break };
            let Some(at) = self.hold(pool, frame) else { break };
            self.fill.put(at);
        }
        self.fill.publish();
    }

    /// Keeps a frame while the kernel has it. Returns the offset of its memory. `None` if the frame
    /// is not in the memory that is registered.
    fn hold(&mut self, pool: &Pool, frame: Frame) -> Option<u64> {
        let index = pool.index(&frame).filter(|_| pool.memory().0 == self.memory)?;
        let place = self.held.get_mut(usize::try_from(index).ok()?)?;
        *place = frame;
        Some(u64::from(index) * self.frame_size)
    }

    /// Takes back the frame with this offset in its memory, and the offset within the frame.
    fn release(&mut self, at: u64) -> Option<(Frame, u32)> {
        let place = self.held.get_mut(usize::try_from(at / self.frame_size).ok()?)?;
        let start = u32::try_from(at % self.frame_size).ok()?;
        Some((mem::replace(place, Frame::empty()), start))
    }

    /// The next frame that has arrived.
    pub(crate) fn receive(&mut self) -> Option<Frame> {
        let Descriptor { at, length, .. } = self.received.take()?;
        let (mut frame, start) = self.release(at)?;
        frame.place(start, length);
        Some(frame)
    }

    /// Gives the entries of received frames back to the kernel, and calls it if it waits for that.
    pub(crate) fn end_receive(&mut self) {
        self.received.give_back();
        if self.fill.needs_wakeup() {
            let mut nothing: [u8; 0] = [];
            let _ = recv(&self.socket, &mut nothing, RecvFlags::DONTWAIT);
        }
    }

    /// Queues a frame of the pool for sending. Returns it if the ring is full, or if it is a frame
    /// of another pool.
    pub(crate) fn send(&mut self, pool: &Pool, frame: Frame) -> Result<(), Frame> {
        let is_ours = pool.index(&frame).is_some() && pool.memory().0 == self.memory;
        if self.sending.room() == 0 || !is_ours {
            return Err(frame);
        }
        let start = u64::from(frame.start());
        let length = u32::try_from(frame.len()).unwrap_or(u32::MAX);
        let Some(base) = self.hold(pool, frame) else { return Ok(()) };
        self.sending.put(Descriptor { at: base + start, length, options: 0 });
        Ok(())
    }

    /// Sends the queued frames, and returns frames that were sent to the pool. Returns the number
    /// of frames that the device has dropped, and the last error.
    pub(crate) fn end_send(&mut self, pool: &mut Pool) -> (u32, Result<(), Errno>) {
        self.sending.publish();
        let (mut waiting, mut dropped, mut result) = (self.sending.waiting(), 0, Ok(()));
        // A call sends a limited number of frames, or the device drops one. Older kernels (5.15)
        // report their progress only when they have sent all frames.
        let (most, mut silent) = (waiting + waiting / PER_CALL + 1, waiting / PER_CALL + 1);
        for _ in 0..most {
            if waiting == 0 || !self.is_to_be_woken() {
                break;
            }
            result = send(&self.socket, &[], SendFlags::DONTWAIT).map(|_| ());
            if !matches!(result, Err(Errno::NETDOWN | Errno::NXIO)) {
                self.sending.may_be_known();
            }
            self.collect(pool);
            let left = self.sending.waiting();
            match result {
                Err(Errno::BUSY) => dropped += 1,
                Err(Errno::AGAIN) if left == waiting && silent == 1 => break,
                Err(Errno::AGAIN) => silent -= u32::from(left == waiting),
                _ if left == waiting => break,
                _ => {}
            }
            waiting = left;
        }
        self.collect(pool);
        (dropped, result)
    }

    /// Takes back the last frame that the kernel does not know. There is none if the device itself
    /// reads the ring, because it may do so at any time.
    pub(crate) fn take_back(&mut self) -> Option<Frame> {
        if self.is_zero_copy {
            return None;
        }
        let Descriptor { at, length, .. } = self.sending.take_back()?;
        let (mut frame, start) = self.release(at)?;
        frame.place(start, length);
        Some(frame)
    }

    fn is_to_be_woken(&self) -> bool {
        !self.is_zero_copy || self.sending.needs_wakeup()
    }

    /// Returns frames that were sent to the pool.
    fn collect(&mut self, pool: &mut Pool) {
        while let Some(at) = self.sent.take() {
            if let Some((frame, _)) = self.release(at) {
                pool.put(frame);
            }
        }
        self.sent.give_back();
    }

    /// Frames that the kernel dropped because there was no room for them, since the start. Frames
    /// for which the fill ring was empty are among `rx_dropped`.
    pub(crate) fn dropped(&self) -> u64 {
        let counted = sockopt::xdp_statistics(&self.socket);
        counted.map_or(0, |counted| counted.rx_dropped + counted.rx_ring_full.unwrap_or(0))
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Registers the memory of a pool.
fn register(socket: &OwnedFd, pool: &Pool) -> io::Result<()> {
    let (memory, length) = pool.memory();
    let memory = XdpUmemReg {
        addr: memory.as_ptr().expose_provenance() as u64,
        len: length as u64,
        chunk_size: pool.frame_size(),
        headroom: 0,
        flags: XdpUmemRegFlags::empty(),
        tx_metadata_len: 0,
    };
    Ok(sockopt::set_xdp_umem_reg(socket, memory)?)
}

/// Binds a socket to a queue. The kernel chooses the mode: without a copy if the driver is capable
/// of it. Further sockets of a device have the mode and the memory of the first one.
fn attach(socket: &OwnedFd, index: u32, queue: u32, first: Option<&Xsk>) -> Result<(), Errno> {
    let address = |flags| SocketAddrXdp::new(flags, index, queue);
    match first {
        None => bind(socket, &address(SocketAddrXdpFlags::XDP_USE_NEED_WAKEUP)),
        Some(first) => {
            let addr = address(SocketAddrXdpFlags::XDP_SHARED_UMEM);
            let shared_umem_fd = first.socket.as_fd();
            bind(socket, &SocketAddrXdpWithSharedUmem { addr, shared_umem_fd })
        }
    }
}
