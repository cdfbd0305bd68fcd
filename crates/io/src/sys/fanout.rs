//! Fan-out: several packet sockets share the frames of a device (`packet(7)`).

use super::socket::{get, set};
use std::io;
use std::os::fd::OwnedFd;

/// An instruction of classic BPF.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Instruction {
    /// The operation.
    pub code: u16,
    /// Instructions to skip if the condition is true.
    pub if_true: u8,
    /// Instructions to skip if the condition is false.
    pub if_false: u8,
    /// The operand.
    pub operand: u32,
}

/// The rule that chooses the socket for a frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Steering {
    /// A hash of the frame's addresses and ports, the same for both directions of a flow.
    Hash,
    /// A classic BPF program. Its offsets count from the network header. Its result, modulo the
    /// number of sockets, is the socket's number in the order of joining.
    Program(Vec<Instruction>),
}

/// A group of packet sockets that share the frames of a device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fanout {
    /// The group's number in its network namespace. `None` makes a new group.
    pub group: Option<u16>,
    /// The rule. It is the same for all sockets of a group.
    pub steering: Steering,
}

/// A program for [`Steering::Program`]: the bits of this mask in the word at this offset.
#[must_use]
pub fn by_word(offset: u32, mask: u32) -> [Instruction; 3] {
    let op = |code: u32, operand| {
        let code = u16::try_from(code).unwrap_or(0);
        Instruction { code, if_true: 0, if_false: 0, operand }
    };
    [
        op(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset),
        op(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, mask),
        op(libc::BPF_RET | libc::BPF_A, 0),
    ]
}

/// Adds a bound socket to a group. Returns the group's number.
pub(super) fn join(socket: &OwnedFd, fanout: &Fanout) -> io::Result<u16> {
    let kind = match fanout.steering {
        Steering::Hash => libc::PACKET_FANOUT_HASH,
        Steering::Program(_) => libc::PACKET_FANOUT_CBPF,
    };
    let new = if fanout.group.is_none() { libc::PACKET_FANOUT_FLAG_UNIQUEID } else { 0 };
    let flags = kind | new | libc::PACKET_FANOUT_FLAG_IGNORE_OUTGOING;
    let value = u32::from(fanout.group.unwrap_or(0)) | flags << 16;
    set(socket, libc::SOL_PACKET, libc::PACKET_FANOUT, &value)?;
    if let (Steering::Program(program), None) = (&fanout.steering, fanout.group) {
        set_program(socket, program)?;
    }
    let value = get(socket, libc::SOL_PACKET, libc::PACKET_FANOUT, 0_u32)?;
    Ok(u16::try_from(value & 0xffff).unwrap_or(0))
}

fn set_program(socket: &OwnedFd, program: &[Instruction]) -> io::Result<()> {
    let filter = |op: &Instruction| libc::sock_filter {
        code: op.code,
        jt: op.if_true,
        jf: op.if_false,
        k: op.operand,
    };
    let mut filters: Vec<_> = program.iter().map(filter).collect();
    let length = u16::try_from(filters.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let program = libc::sock_fprog { len: length, filter: filters.as_mut_ptr() };
    // The kernel reads the program during this call. `filters` lives until the end of the function.
    set(socket, libc::SOL_PACKET, libc::PACKET_FANOUT_DATA, &program)
}
