//! Fan-out: several packet sockets share the frames of a device (`packet(7)`).

use super::socket::{get, set};
use std::io;
use std::os::fd::OwnedFd;

/// Adds a bound socket to a group, or to a new one. The kernel gives all frames of a flow to one
/// socket of the group, in both directions. Returns the group's number.
pub(super) fn join(socket: &OwnedFd, group: Option<u16>) -> io::Result<u16> {
    let new = if group.is_none() { libc::PACKET_FANOUT_FLAG_UNIQUEID } else { 0 };
    let flags = libc::PACKET_FANOUT_HASH | new | libc::PACKET_FANOUT_FLAG_IGNORE_OUTGOING;
    let value = u32::from(group.unwrap_or(0)) | flags << 16;
    set(socket, libc::SOL_PACKET, libc::PACKET_FANOUT, &value)?;
    let value = get(socket, libc::SOL_PACKET, libc::PACKET_FANOUT, 0_u32)?;
    Ok(u16::try_from(value & 0xffff).unwrap_or(0))
}
