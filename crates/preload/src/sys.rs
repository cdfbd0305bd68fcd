//! System calls, and addresses in the form of the C library.

use libc::{
    AF_INET, AF_INET6, AF_UNIX, c_int, c_void, in_addr, in6_addr, sa_family_t, sockaddr,
    sockaddr_in, sockaddr_in6, sockaddr_un, socklen_t,
};
use std::mem::{offset_of, size_of, zeroed};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::ptr;

/// The length of a structure.
pub fn len<T>() -> socklen_t {
    socklen_t::try_from(size_of::<T>()).unwrap_or(socklen_t::MAX)
}

/// The inode of a socket. `None` for other files.
pub fn inode(descriptor: c_int) -> Option<u64> {
    // SAFETY: zeros are a right `stat`.
    let mut stat: libc::stat = unsafe { zeroed() };
    // SAFETY: `stat` has room for the answer.
    let code = unsafe { libc::fstat(descriptor, &raw mut stat) };
    (code == 0 && stat.st_mode & libc::S_IFMT == libc::S_IFSOCK).then_some(stat.st_ino)
}

/// A number among the options of a socket.
pub fn option(descriptor: c_int, level: c_int, name: c_int) -> Option<c_int> {
    let (mut value, mut room): (c_int, _) = (0, len::<c_int>());
    let place = (&raw mut value).cast::<c_void>();
    // SAFETY: `place` has `room` bytes. The raw call does not come back to this library.
    let code = unsafe {
        libc::syscall(libc::SYS_getsockopt, descriptor, level, name, place, &raw mut room)
    };
    (code == 0).then_some(value)
}

/// Sets the error of the C library's last call.
pub fn fail(error: c_int) -> c_int {
    // SAFETY: the place of this thread's error.
    unsafe { *libc::__errno_location() = error };
    -1
}

/// A connection to a Unix socket of the type SEQPACKET, without the flag that closes it on `exec`.
/// The error of the last call says why there is none.
pub fn connect(path: &Path) -> Option<c_int> {
    // SAFETY: zeros are a right address.
    let mut address: sockaddr_un = unsafe { zeroed() };
    address.sun_family = sa_family_t::try_from(AF_UNIX).unwrap_or(1);
    let path = path.as_os_str().as_bytes();
    if path.len() >= address.sun_path.len() {
        fail(libc::ENAMETOOLONG);
        return None;
    }
    for (to, byte) in address.sun_path.iter_mut().zip(path) {
        *to = byte.cast_signed();
    }
    let used = offset_of!(sockaddr_un, sun_path) + path.len() + 1;
    let used = socklen_t::try_from(used).unwrap_or(socklen_t::MAX);
    // SAFETY: a call without pointers.
    let socket = unsafe { libc::socket(AF_UNIX, libc::SOCK_SEQPACKET, 0) };
    if socket < 0 {
        return None;
    }
    // SAFETY: the address has `used` bytes.
    let code = unsafe { libc::connect(socket, (&raw const address).cast(), used) };
    if code == 0 {
        return Some(socket);
    }
    // SAFETY: the place of this thread's error.
    let error = unsafe { *libc::__errno_location() };
    close(socket);
    fail(error);
    None
}

/// Sends a message. Whether it was sent.
pub fn send(socket: c_int, bytes: &[u8]) -> bool {
    let (start, count) = (bytes.as_ptr().cast::<c_void>(), bytes.len());
    // SAFETY: `start` has `count` bytes.
    let sent = unsafe { libc::send(socket, start, count, libc::MSG_NOSIGNAL) };
    usize::try_from(sent) == Ok(count)
}

/// Closes a descriptor.
pub fn close(descriptor: c_int) {
    // SAFETY: a call without pointers, for a descriptor of this library.
    unsafe { libc::close(descriptor) };
}

/// Two sockets that are joined.
pub fn pair() -> Option<[c_int; 2]> {
    let mut both = [0; 2];
    // SAFETY: `both` has room for two descriptors.
    let code = unsafe { libc::socketpair(AF_UNIX, libc::SOCK_SEQPACKET, 0, both.as_mut_ptr()) };
    (code == 0).then_some(both)
}

/// Lets `place` be the file of `file`, with the flags that `place` had, and closes `file`. Whether
/// that was possible.
pub fn replace(place: c_int, file: c_int) -> bool {
    // SAFETY: calls without pointers.
    let is_done = unsafe {
        let (status, own) = (libc::fcntl(place, libc::F_GETFL), libc::fcntl(place, libc::F_GETFD));
        let closes = if own & libc::FD_CLOEXEC == 0 { 0 } else { libc::O_CLOEXEC };
        libc::fcntl(file, libc::F_SETFL, status & libc::O_NONBLOCK) == 0
            && libc::dup3(file, place, closes) == place
    };
    close(file);
    is_done
}

/// Lets calls on a descriptor not wait.
pub fn never_wait(descriptor: c_int) {
    // SAFETY: calls without pointers.
    unsafe {
        let status = libc::fcntl(descriptor, libc::F_GETFL);
        libc::fcntl(descriptor, libc::F_SETFL, status | libc::O_NONBLOCK);
    }
}

/// What has come from Braid.
pub enum Came<const N: usize> {
    /// A message with this many bytes, and a descriptor.
    Message([u8; N], usize, Option<c_int>),
    /// Braid has closed the connection.
    End,
    /// Nothing. The error of the last call says why.
    Nothing,
}

/// Receives a message with at most one descriptor.
pub fn receive<const N: usize>(socket: c_int, closes_on_exec: bool) -> Came<N> {
    let mut bytes = [0; N];
    // A header and a descriptor, with room to spare, on the boundary of a header.
    let mut control = [0_u64; 8];
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: N };
    // SAFETY: zeros are a right header of a message.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control);
    let flags = if closes_on_exec { libc::MSG_CMSG_CLOEXEC } else { 0 };
    // SAFETY: all places in the header have the room that it tells.
    let count = unsafe { libc::recvmsg(socket, &raw mut message, flags) };
    let Ok(count) = usize::try_from(count) else { return Came::Nothing };
    if count == 0 {
        return Came::End;
    }
    let mut descriptor = None;
    // SAFETY: the kernel has filled the header. A control message with a descriptor has room for
    // it, and its data need not be aligned.
    unsafe {
        let first = libc::CMSG_FIRSTHDR(&raw const message);
        if !first.is_null()
            && ((*first).cmsg_level, (*first).cmsg_type) == (libc::SOL_SOCKET, libc::SCM_RIGHTS)
        {
            descriptor = Some(ptr::read_unaligned(libc::CMSG_DATA(first).cast::<c_int>()));
        }
    }
    Came::Message(bytes, count, descriptor)
}

/// The address and port in an address of IP.
///
/// # Safety
/// `address` has `room` bytes.
pub unsafe fn read_address(address: *const sockaddr, room: socklen_t) -> Option<SocketAddr> {
    if address.is_null() || room < len::<sa_family_t>() {
        return None;
    }
    // SAFETY: there is room for the family, which comes first.
    let family = c_int::from(unsafe { ptr::read_unaligned(address.cast::<sa_family_t>()) });
    if family == AF_INET && room >= len::<sockaddr_in>() {
        // SAFETY: there is room for the whole address.
        let address = unsafe { ptr::read_unaligned(address.cast::<sockaddr_in>()) };
        let ip = IpAddr::from(address.sin_addr.s_addr.to_ne_bytes());
        Some(SocketAddr::new(ip, u16::from_be(address.sin_port)))
    } else if family == AF_INET6 && room >= len::<sockaddr_in6>() {
        // SAFETY: there is room for the whole address.
        let address = unsafe { ptr::read_unaligned(address.cast::<sockaddr_in6>()) };
        let ip = IpAddr::from(address.sin6_addr.s6_addr);
        Some(SocketAddr::new(ip, u16::from_be(address.sin6_port)))
    } else {
        None
    }
}

/// Writes an address and a port, as far as there is room, and how long they are. With `is_v6`, one
/// of IPv4 becomes one of IPv6 (RFC 4291 §2.5.5.2).
///
/// # Safety
/// Both places are null, or `room` is one, and `place` has as many bytes as it tells.
pub unsafe fn write_address(
    address: SocketAddr,
    is_v6: bool,
    place: *mut sockaddr,
    room: *mut socklen_t,
) {
    let port = address.port().to_be();
    // SAFETY: zeros are right addresses.
    let (mut v4, mut v6): (sockaddr_in, sockaddr_in6) = unsafe { (zeroed(), zeroed()) };
    let (bytes, count) = match address.ip() {
        IpAddr::V4(ip) if !is_v6 => {
            v4.sin_family = sa_family_t::try_from(AF_INET).unwrap_or(2);
            v4.sin_port = port;
            v4.sin_addr = in_addr { s_addr: u32::from_ne_bytes(ip.octets()) };
            ((&raw const v4).cast::<u8>(), len::<sockaddr_in>())
        }
        ip => {
            let octets = match ip {
                IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
                IpAddr::V6(ip) => ip.octets(),
            };
            v6.sin6_family = sa_family_t::try_from(AF_INET6).unwrap_or(10);
            v6.sin6_port = port;
            v6.sin6_addr = in6_addr { s6_addr: octets };
            ((&raw const v6).cast::<u8>(), len::<sockaddr_in6>())
        }
    };
    if place.is_null() || room.is_null() {
        return;
    }
    // SAFETY: the caller's word; not more bytes are written than there is room for.
    unsafe {
        let fits = (*room).min(count);
        ptr::copy_nonoverlapping(bytes, place.cast::<u8>(), usize::try_from(fits).unwrap_or(0));
        *room = count;
    }
}

/// Writes the value of an option, as far as there is room, and how long it is.
///
/// # Safety
/// `room` is a length, and `place` has as many bytes as it tells; or one of them is null.
pub unsafe fn write_option(value: &[u8], place: *mut c_void, room: *mut socklen_t) -> c_int {
    if place.is_null() || room.is_null() {
        return fail(libc::EFAULT);
    }
    // SAFETY: the caller's word; not more bytes are written than there is room for.
    unsafe {
        let fits = usize::try_from(*room).unwrap_or(0).min(value.len());
        ptr::copy_nonoverlapping(value.as_ptr(), place.cast::<u8>(), fits);
        *room = socklen_t::try_from(fits).unwrap_or(0);
    }
    0
}
