//! BPF programs (RFC 9669). This module assembles them, and [`crate::Filter`] loads them through
//! the system call, so no compiler is needed.

mod assemble;

pub use assemble::{
    Assembler, Helper, Instruction, Label, Operand, Operation, Register, Size, Test,
};
