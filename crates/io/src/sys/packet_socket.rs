//! A device of the machine through a packet socket (`packet(7)`).

use crate::live::{Interface, MAX_FRAME, OpenError, Received, Unreceived, Unsent};
use crate::offload::{HEADER, Offload, put_vlan};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendFlags, SocketFlags, SocketType, netdevice, send, socket_with, sockopt,
};
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr;

/// `ARPHRD_ETHER` and `ARPHRD_LOOPBACK`, whose frames have Ethernet headers.
const ETHERNET: [u16; 2] = [1, 772];

/// The TPID of a VLAN tag when the kernel does not report it.
const CUSTOMER_VLAN: u16 = 0x8100;

/// The size of the buffer for frames (and their descriptors) that wait to be read.
const RECEIVE_BUFFER: usize = 8 << 20;

/// A bound packet socket, in promiscuous mode. It does not read back its own frames.
pub(crate) struct PacketSocket {
    socket: OwnedFd,
    buffer: Vec<u8>,
    sending: Vec<u8>,
}

impl PacketSocket {
    pub(crate) fn open(name: &str) -> Result<Self, OpenError> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        // Without a protocol the socket gets nothing before it is bound.
        let socket = socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None);
        let socket = socket.map_err(|error| match error {
            Errno::PERM | Errno::ACCESS => OpenError::Permission(
                "packet sockets need CAP_NET_RAW: run as root, or once \
                 `sudo setcap cap_net_raw+ep PATH_OF_BRAID`",
            ),
            error => OpenError::Io(error.into()),
        })?;
        let index = netdevice::name_to_index(&socket, name).map_err(|error| match error {
            Errno::NODEV => OpenError::NoDevice,
            error => OpenError::Io(error.into()),
        })?;
        let index = i32::try_from(index).map_err(|_| OpenError::NoDevice)?;
        for option in [libc::PACKET_AUXDATA, libc::PACKET_VNET_HDR] {
            set(&socket, option, &1_i32)?;
        }
        // Kernels before 4.20 do not have this option. For them, the kernel's mark on each frame is
        // checked below.
        let _ = set(&socket, libc::PACKET_IGNORE_OUTGOING, &1_i32);
        let promiscuous = libc::packet_mreq {
            mr_ifindex: index,
            mr_type: u16::try_from(libc::PACKET_MR_PROMISC).unwrap_or(1),
            mr_alen: 0,
            mr_address: [0; 8],
        };
        set(&socket, libc::PACKET_ADD_MEMBERSHIP, &promiscuous)?;
        // As much as the system allows: all of it with CAP_NET_ADMIN, otherwise up to
        // `net.core.rmem_max`.
        if sockopt::set_socket_recv_buffer_size_force(&socket, RECEIVE_BUFFER).is_err() {
            sockopt::set_socket_recv_buffer_size(&socket, RECEIVE_BUFFER)
                .map_err(io::Error::from)?;
        }
        bind(&socket, index)?;
        let hardware = hardware(&socket)?;
        if !ETHERNET.contains(&hardware) {
            return Err(OpenError::NotEthernet(hardware));
        }
        Ok(Self { socket, buffer: vec![0; HEADER + MAX_FRAME], sending: Vec::new() })
    }
}

impl Interface for PacketSocket {
    fn receive(&mut self, frames: &mut Vec<Vec<u8>>) -> io::Result<Received> {
        let message = match receive(&self.socket, &mut self.buffer) {
            Ok(message) => message,
            Err(error) => {
                return match error.raw_os_error() {
                    Some(libc::EAGAIN | libc::EINTR) => Ok(Received::Nothing),
                    // The kernel cannot describe how it put the frame together.
                    Some(libc::EINVAL) => Ok(Received::Lost(Unreceived::Offload)),
                    _ => Err(error),
                };
            }
        };
        if message.outgoing {
            return Ok(Received::Something);
        }
        if message.cut {
            return Ok(Received::Lost(Unreceived::TooLong));
        }
        let whole = self.buffer.get(..message.length);
        let Some((header, frame)) = whole.and_then(|whole| whole.split_first_chunk::<HEADER>())
        else {
            return Ok(Received::Something);
        };
        match Offload::parse(*header).finish(frame.to_vec()) {
            Ok(mut finished) => {
                if let Some((tpid, tci)) = message.vlan {
                    finished.iter_mut().for_each(|frame| put_vlan(frame, tpid, tci));
                }
                frames.append(&mut finished);
                Ok(Received::Something)
            }
            Err(lost) => Ok(Received::Lost(lost)),
        }
    }

    fn send(&mut self, frame: &[u8]) -> Result<(), Unsent> {
        // No work is left in the frame.
        self.sending.clear();
        self.sending.resize(HEADER, 0);
        self.sending.extend_from_slice(frame);
        match send(&self.socket, &self.sending, SendFlags::empty()) {
            Ok(_) => Ok(()),
            Err(error) => Err(Unsent::of(error)),
        }
    }

    fn overrun(&mut self) -> u64 {
        statistics(&self.socket).map_or(0, |counted| counted.tp_drops.into())
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A frame that was read, and the kernel's data beside it.
struct Message {
    length: usize,
    /// The frame was longer than the buffer.
    cut: bool,
    /// This machine has sent the frame.
    outgoing: bool,
    /// The VLAN tag that the kernel has removed: TPID and TCI.
    vlan: Option<(u16, u16)>,
}

/// A buffer for the data beside a frame, aligned for its headers.
type Beside = [u64; 16];

fn receive(socket: &OwnedFd, buffer: &mut [u8]) -> io::Result<Message> {
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let mut beside: Beside = [0; 16];
    // SAFETY: these are plain C structures for which all zero bytes are valid.
    let (mut from, mut message): (libc::sockaddr_ll, libc::msghdr) =
        unsafe { (zeroed(), zeroed()) };
    message.msg_name = ptr::from_mut(&mut from).cast();
    message.msg_namelen = length_of::<libc::sockaddr_ll>();
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = beside.as_mut_ptr().cast();
    message.msg_controllen = size_of::<Beside>();
    // SAFETY: `message` points to `from`, `part` (which points to `buffer`) and `beside`, with
    // their lengths. All of them live, and nobody else borrows them, until the call returns.
    let length = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, 0) };
    let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
    Ok(Message {
        length: length.min(buffer.len()),
        cut: message.msg_flags & libc::MSG_TRUNC != 0,
        outgoing: from.sll_pkttype == libc::PACKET_OUTGOING,
        vlan: auxiliary(&message).and_then(vlan),
    })
}

/// The packet socket's own data beside a frame.
fn auxiliary(message: &libc::msghdr) -> Option<libc::tpacket_auxdata> {
    // SAFETY: `recvmsg` has filled in the message, and its buffer lives in the caller. The macro
    // checks that a header fits in.
    let header = unsafe { libc::CMSG_FIRSTHDR(message) };
    // SAFETY: the pointer is null, or points to a header within the buffer, which is aligned for
    // it.
    let header_ref = unsafe { header.as_ref() }?;
    let wanted = header_ref.cmsg_level == libc::SOL_PACKET
        && header_ref.cmsg_type == libc::PACKET_AUXDATA
        && header_ref.cmsg_len
            // SAFETY: the macro only computes a length.
            >= unsafe { libc::CMSG_LEN(length_of::<libc::tpacket_auxdata>()) } as usize;
    if !wanted {
        return None;
    }
    // SAFETY: by the header, this number of bytes follows it in the buffer. They need not be
    // aligned, and any bytes are a valid value.
    Some(unsafe { ptr::read_unaligned(libc::CMSG_DATA(header).cast()) })
}

fn vlan(data: libc::tpacket_auxdata) -> Option<(u16, u16)> {
    (data.tp_status & libc::TP_STATUS_VLAN_VALID != 0).then(|| {
        let tells = data.tp_status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
        (if tells { data.tp_vlan_tpid } else { CUSTOMER_VLAN }, data.tp_vlan_tci)
    })
}

fn length_of<T>() -> libc::socklen_t {
    libc::socklen_t::try_from(size_of::<T>()).unwrap_or(libc::socklen_t::MAX)
}

/// Sets an option of packet sockets to a plain C value.
fn set<T: Copy>(socket: &OwnedFd, option: i32, value: &T) -> io::Result<()> {
    let value = ptr::from_ref(value).cast();
    // SAFETY: `value` points to this number of bytes, which live until the call returns. The kernel
    // only reads them.
    let done = unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_PACKET, option, value, length_of::<T>())
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Binds the socket to a device, for all protocols.
fn bind(socket: &OwnedFd, index: i32) -> io::Result<()> {
    // SAFETY: a plain C structure for which all zero bytes are valid.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    address.sll_family = u16::try_from(libc::AF_PACKET).unwrap_or(17);
    address.sll_protocol = u16::try_from(libc::ETH_P_ALL).unwrap_or(3).to_be();
    address.sll_ifindex = index;
    let address = ptr::from_ref(&address).cast();
    // SAFETY: `address` points to this number of bytes, which live until the call returns.
    let done = unsafe { libc::bind(socket.as_raw_fd(), address, length_of::<libc::sockaddr_ll>()) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The hardware type of the device that the socket is bound to.
fn hardware(socket: &OwnedFd) -> io::Result<u16> {
    // SAFETY: a plain C structure for which all zero bytes are valid.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    let mut length = length_of::<libc::sockaddr_ll>();
    let into = ptr::from_mut(&mut address).cast();
    // SAFETY: `into` points to `length` bytes, which live, and which nobody else borrows, until the
    // call returns. The kernel writes no more than that.
    let done = unsafe { libc::getsockname(socket.as_raw_fd(), into, &raw mut length) };
    if done == 0 { Ok(address.sll_hatype) } else { Err(io::Error::last_os_error()) }
}

/// The numbers of frames received and dropped since the last call.
fn statistics(socket: &OwnedFd) -> io::Result<libc::tpacket_stats> {
    let mut counted = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
    let mut length = length_of::<libc::tpacket_stats>();
    let into = ptr::from_mut(&mut counted).cast();
    let (level, option) = (libc::SOL_PACKET, libc::PACKET_STATISTICS);
    // SAFETY: `into` points to `length` bytes, which live, and which nobody else borrows, until the
    // call returns. The kernel writes no more than that.
    let done =
        unsafe { libc::getsockopt(socket.as_raw_fd(), level, option, into, &raw mut length) };
    if done == 0 { Ok(counted) } else { Err(io::Error::last_os_error()) }
}
