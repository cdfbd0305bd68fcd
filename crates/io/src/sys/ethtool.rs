//! Facts about devices from their drivers, through the requests of `ethtool`.

use super::request::named;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

/// `SIOCETHTOOL`
const REQUEST: libc::c_ulong = 0x8946;

const GET_DRIVER: u32 = 0x03;
const GET_CHANNELS: u32 = 0x3c;
const GET_FLAGS: u32 = 0x25;
const GET_GRO: u32 = 0x2b;

/// A setting of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Setting {
    /// The card joins packets that it receives.
    Lro,
    /// The card removes VLAN tags.
    RemoveVlan,
    /// The kernel joins packets that it receives.
    Gro,
}

impl Setting {
    /// The command that asks for the setting, and the setting's bit in the answer.
    fn command(self) -> (u32, u32) {
        match self {
            Setting::Lro => (GET_FLAGS, 1 << 15),
            Setting::RemoveVlan => (GET_FLAGS, 1 << 8),
            Setting::Gro => (GET_GRO, 1),
        }
    }
}

/// `struct ethtool_value`
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

/// `struct ethtool_drvinfo`
#[repr(C)]
struct Driver {
    command: u32,
    name: [u8; 32],
    rest: [u8; 160],
}

/// Whether a setting is on. `None` if the driver does not report it.
pub(crate) fn setting(socket: BorrowedFd<'_>, name: &str, setting: Setting) -> Option<bool> {
    let (command, bit) = setting.command();
    let mut value = Value { command, data: 0 };
    // SAFETY: these commands take this structure.
    let is_known = unsafe { ask(socket, name, &mut value) };
    is_known.then_some(value.data & bit != 0)
}

/// The name of the device's driver.
pub(crate) fn driver(socket: BorrowedFd<'_>, name: &str) -> Option<String> {
    let mut driver = Driver { command: GET_DRIVER, name: [0; 32], rest: [0; 160] };
    // SAFETY: this command takes this structure.
    let is_known = unsafe { ask(socket, name, &mut driver) };
    let text = driver.name.split(|byte| *byte == 0).next().unwrap_or_default();
    is_known.then(|| String::from_utf8_lossy(text).into_owned())
}

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
pub(crate) fn channels(socket: BorrowedFd<'_>, name: &str) -> Option<u32> {
    let mut channels = Channels { command: GET_CHANNELS, ..Channels::default() };
    // SAFETY: this command takes this structure.
    let is_known = unsafe { ask(socket, name, &mut channels) };
    is_known.then_some(channels.receive + channels.combined)
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
