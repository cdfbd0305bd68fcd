//! What drivers tell about devices, by the requests of `ethtool`.

use super::request::named;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

/// `SIOCETHTOOL`
const REQUEST: libc::c_ulong = 0x8946;

const GET_CHANNELS: u32 = 0x3c;

/// `struct ethtool_channels`
#[repr(C)]
#[derive(Default)]
struct Channels {
    command: u32,
    most_receive: u32,
    most_send: u32,
    most_other: u32,
    most_combined: u32,
    receive: u32,
    send: u32,
    other: u32,
    combined: u32,
}

/// The number of queues that receive.
pub(super) fn channels(socket: BorrowedFd<'_>, name: &str) -> Option<u32> {
    let mut channels = Channels { command: GET_CHANNELS, ..Channels::default() };
    // SAFETY: this command takes this structure.
    let known = unsafe { ask(socket, name, &mut channels) };
    known.then_some(channels.receive + channels.combined)
}

/// Asks a driver. Returns false if it does not know the command.
///
/// # Safety
/// The structure starts with the number of the command, and belongs to it.
unsafe fn ask<T>(socket: BorrowedFd<'_>, name: &str, structure: &mut T) -> bool {
    let mut request = named(name);
    request.ifr_ifru.ifru_data = ptr::from_mut(structure).cast();
    // SAFETY: the request takes an `ifreq` with the name of a device and a pointer to a structure.
    // Both live, and nobody else borrows them, until the call returns.
    unsafe { libc::ioctl(socket.as_raw_fd(), REQUEST, &raw mut request) == 0 }
}
