//! Opens TAP devices: Ethernet devices of the machine whose other end is this program.

use super::device;
use super::request::named;
use crate::port::Ethernet;
use std::ffi::CStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;

/// Opens the TAP device with this name. A `virtio_net_hdr` is in front of each frame, both ways.
/// Creates the device if it does not exist; such a device ends with the file. With `shares`,
/// several files can open the device, and each is a queue.
pub(crate) fn open(name: &str, shares: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(libc::O_NONBLOCK);
    let file = options.open("/dev/net/tun")?;
    let mut request = named(name);
    let queues = if shares { libc::IFF_MULTI_QUEUE } else { 0 };
    let flags = libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR | queues;
    request.ifr_ifru.ifru_flags = libc::c_short::try_from(flags).unwrap_or_default();
    // SAFETY: this request takes an `ifreq`, whose name ends with a zero. It lives, and nobody else
    // borrows it, until the call returns.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
    if done != 0 {
        return Err(io::Error::last_os_error());
    }
    // The kernel may leave checksums and the segments of TCP to the reader. If it refuses this, it
    // leaves no work.
    let work = libc::c_ulong::from(libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6);
    // SAFETY: this request takes a number.
    unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETOFFLOAD, work) };
    Ok(file)
}

/// Whether the file is still attached to a device.
pub(crate) fn is_attached(file: &File) -> bool {
    attached(file).is_some()
}

/// The properties of the machine's end of the file's device on its link.
pub(crate) fn ethernet(file: &File) -> Option<Ethernet> {
    let name = attached(file)?.ifr_name.map(|char| char.to_ne_bytes()[0]);
    let name = CStr::from_bytes_until_nul(&name).ok()?.to_str().ok()?;
    device::ethernet_named(device::any_socket().ok()?, name)
}

/// The device that the file is attached to.
fn attached(file: &File) -> Option<libc::ifreq> {
    let mut request = named("");
    // SAFETY: this request writes to an `ifreq`, which lives, and which nobody else borrows, until
    // the call returns.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNGETIFF, &raw mut request) };
    (done == 0).then_some(request)
}
