//! Options of sockets, and binding to a device.

use crate::port::OpenError;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with, sockopt};
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::ptr;

pub(super) fn length_of<T>() -> libc::socklen_t {
    libc::socklen_t::try_from(size_of::<T>()).unwrap_or(libc::socklen_t::MAX)
}

fn done(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Sets an option to a plain C value.
pub(super) fn set<T: Copy>(
    socket: impl AsFd,
    level: i32,
    option: i32,
    value: &T,
) -> io::Result<()> {
    let socket = socket.as_fd().as_raw_fd();
    let value = ptr::from_ref(value).cast();
    // SAFETY: `value` points to this number of bytes, which live until the call returns. The kernel
    // only reads them.
    done(unsafe { libc::setsockopt(socket, level, option, value, length_of::<T>()) })
}

/// Reads an option that is a plain C value, for which any bytes are valid. The kernel may write
/// less than all of it: then the rest stays as in `start`.
pub(super) fn get<T: Copy>(socket: impl AsFd, level: i32, option: i32, start: T) -> io::Result<T> {
    let mut value = start;
    let mut length = length_of::<T>();
    let into = ptr::from_mut(&mut value).cast();
    let socket = socket.as_fd().as_raw_fd();
    // SAFETY: `into` points to `length` bytes, which live, and which nobody else borrows, until the
    // call returns. The kernel writes no more than that.
    done(unsafe { libc::getsockopt(socket, level, option, into, &raw mut length) })?;
    Ok(value)
}

/// Binds a packet socket to a device. It receives all protocols, or nothing.
pub(super) fn bind(socket: &OwnedFd, index: i32, receives: bool) -> io::Result<()> {
    // SAFETY: a plain C structure for which all zero bytes are valid.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    let protocol = if receives { libc::ETH_P_ALL } else { 0 };
    address.sll_family = u16::try_from(libc::AF_PACKET).unwrap_or(17);
    address.sll_protocol = u16::try_from(protocol).unwrap_or(3).to_be();
    address.sll_ifindex = index;
    let address = ptr::from_ref(&address).cast();
    // SAFETY: `address` points to this number of bytes, which live until the call returns.
    done(unsafe { libc::bind(socket.as_raw_fd(), address, length_of::<libc::sockaddr_ll>()) })
}

/// Gives a socket's buffer this size: all of it with `CAP_NET_ADMIN`, otherwise up to the system's
/// limit (`net.core.rmem_max`, `net.core.wmem_max`).
pub(super) fn grow(socket: &OwnedFd, receive: usize, send: usize) -> io::Result<()> {
    if sockopt::set_socket_recv_buffer_size_force(socket, receive).is_err() {
        sockopt::set_socket_recv_buffer_size(socket, receive)?;
    }
    let send = i32::try_from(send).unwrap_or(i32::MAX);
    set(socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &send)
        .or_else(|_| set(socket, libc::SOL_SOCKET, libc::SO_SNDBUF, &send))
}

/// A packet socket that is not bound yet.
pub(super) fn packet_socket() -> Result<OwnedFd, OpenError> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    // Without a protocol the socket gets nothing before it is bound.
    socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None).map_err(|error| match error {
        Errno::PERM | Errno::ACCESS => OpenError::Permission(
            "packet sockets need CAP_NET_RAW: run as root, or once \
             `sudo setcap cap_net_raw+ep PATH_OF_BRAID`",
        ),
        error => OpenError::Io(error.into()),
    })
}
