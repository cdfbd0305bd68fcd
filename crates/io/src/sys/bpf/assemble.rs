//! An assembler for the BPF programs that Braid needs (RFC 9669).

use std::os::fd::{AsRawFd, OwnedFd};

/// An instruction as the kernel reads it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub(super) struct Instruction {
    code: u8,
    /// The destination register in the low half, the source register in the high half.
    registers: u8,
    offset: i16,
    immediate: i32,
}

/// A register: `R0` holds results, `R1` and so on hold arguments.
#[derive(Clone, Copy)]
pub(super) enum Register {
    R0 = 0,
    R1 = 1,
    R2 = 2,
    R3 = 3,
}
use Register::{R0, R1, R2, R3};

/// The result of an XDP program: the kernel goes on with the frame.
const XDP_PASS: i32 = 2;

/// The offset of the queue's number in the argument of an XDP program, `struct xdp_md`.
const QUEUE: i16 = 16;

/// The number of `bpf_redirect_map`.
const REDIRECT_MAP: i32 = 51;

/// The source register that makes a constant the descriptor of a map.
const MAP: u8 = 1;

/// A program that hands each frame to the socket of its queue in the map `sockets`, or to the
/// kernel if there is none.
pub(super) fn redirect_to_sockets(sockets: &OwnedFd) -> Vec<Instruction> {
    let [low, high] = map(R1, sockets.as_raw_fd());
    vec![load_word(R2, R1, QUEUE), low, high, set(R3, XDP_PASS), call(REDIRECT_MAP), exit()]
}

/// A program that hands all frames to the kernel.
#[cfg(test)]
pub(super) fn pass() -> Vec<Instruction> {
    vec![set(R0, XDP_PASS), exit()]
}

fn instruction(code: u8, to: Register, source: u8, offset: i16, immediate: i32) -> Instruction {
    Instruction { code, registers: to as u8 | source << 4, offset, immediate }
}

/// `to = *(u32 *)(from + offset)`
pub(super) fn load_word(to: Register, from: Register, offset: i16) -> Instruction {
    instruction(0x61, to, from as u8, offset, 0)
}

/// `to = value`
pub(super) fn set(to: Register, value: i32) -> Instruction {
    instruction(0xb7, to, 0, 0, value)
}

/// `to = the map with this descriptor`, which takes two instructions.
fn map(to: Register, descriptor: i32) -> [Instruction; 2] {
    [instruction(0x18, to, MAP, 0, descriptor), instruction(0, R0, 0, 0, 0)]
}

/// `R0 = helper(R1, R2, R3)`
fn call(helper: i32) -> Instruction {
    instruction(0x85, R0, 0, 0, helper)
}

/// Ends the program with the result `R0`.
pub(super) fn exit() -> Instruction {
    instruction(0x95, R0, 0, 0, 0)
}
