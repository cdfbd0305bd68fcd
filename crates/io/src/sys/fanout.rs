//! Fan-out: several packet sockets share the frames of a device (`packet(7)`).

use super::bpf::Filter;
use super::socket::{get, set};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// Adds a bound socket to a group, or to a new one. The program chooses the socket for a frame: the
/// one with the number of its result, in the order in which sockets have joined. Without a program,
/// the kernel gives all frames of a flow to one socket, in both directions. Returns the group's
/// number.
pub(super) fn join(
    socket: &OwnedFd,
    group: Option<u16>,
    program: Option<&Filter>,
) -> io::Result<u16> {
    let new = if group.is_none() { libc::PACKET_FANOUT_FLAG_UNIQUEID } else { 0 };
    let kind = match program {
        Some(_) => libc::PACKET_FANOUT_EBPF,
        None => libc::PACKET_FANOUT_HASH,
    };
    let flags = kind | new | libc::PACKET_FANOUT_FLAG_IGNORE_OUTGOING;
    let value = u32::from(group.unwrap_or(0)) | flags << 16;
    set(socket, libc::SOL_PACKET, libc::PACKET_FANOUT, &value)?;
    if let Some(program) = program {
        let program = program.as_fd().as_raw_fd();
        set(socket, libc::SOL_PACKET, libc::PACKET_FANOUT_DATA, &program)?;
    }
    let value = get(socket, libc::SOL_PACKET, libc::PACKET_FANOUT, 0_u32)?;
    Ok(u16::try_from(value & 0xffff).unwrap_or(0))
}
