//! BPF programs (RFC 9669), made here and loaded through the system call: no compiler is needed.

mod assemble;

pub use crate::sys::Filter;
pub use assemble::{
    Assembler, Helper, Instruction, Label, Operand, Operation, Register, Size, Test,
};
