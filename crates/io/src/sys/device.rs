//! What the kernel tells about a network device.

use crate::interface::State;
use rustix::net::netdevice;
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// The state of the device with this number.
pub(crate) fn state(socket: impl AsFd, index: u32) -> State {
    let socket = socket.as_fd();
    let Ok(name) = netdevice::index_to_name(socket, index) else { return State::Missing };
    let Ok(request) = ask(socket, &name, libc::SIOCGIFFLAGS) else { return State::Missing };
    // SAFETY: after this request, the union holds the flags.
    let flags = i32::from(unsafe { request.ifr_ifru.ifru_flags });
    let wanted = libc::IFF_UP | libc::IFF_RUNNING;
    if flags & wanted == wanted { State::Up } else { State::Down }
}

/// The device's MTU.
pub(crate) fn mtu(socket: impl AsFd, name: &str) -> io::Result<u32> {
    let request = ask(socket.as_fd(), name, libc::SIOCGIFMTU)?;
    // SAFETY: after this request, the union holds the MTU.
    Ok(u32::try_from(unsafe { request.ifr_ifru.ifru_mtu }).unwrap_or(0))
}

/// An `ifreq` with the name of a device and otherwise zeros.
pub(super) fn named(name: &str) -> libc::ifreq {
    // SAFETY: a plain C structure for which all zero bytes are valid.
    let mut request: libc::ifreq = unsafe { zeroed() };
    let room = request.ifr_name.len() - 1;
    for (to, from) in request.ifr_name.iter_mut().take(room).zip(name.bytes()) {
        *to = libc::c_char::from_ne_bytes([from]);
    }
    request
}

fn ask(socket: BorrowedFd<'_>, name: &str, what: libc::Ioctl) -> io::Result<libc::ifreq> {
    let mut request = named(name);
    // SAFETY: the requests of this module take an `ifreq`, whose name ends with a zero. It lives,
    // and nobody else borrows it, until the call returns.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), what, &raw mut request) };
    if done == 0 { Ok(request) } else { Err(io::Error::last_os_error()) }
}
