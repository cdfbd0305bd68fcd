//! BPF programs (RFC 9669). This crate assembles them and loads them through the system call, so no
//! compiler is needed.

mod assemble;

pub use crate::sys::Filter;
pub use assemble::{
    Assembler, Helper, Instruction, Label, Operand, Operation, Register, Size, Test,
};
