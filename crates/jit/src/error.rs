//! The reasons why a program cannot be compiled.

use braid_ir::model::{BlockId, ValueId};
use std::fmt;

/// The reason why a residual program could not be compiled. Engines can still interpret the
/// program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Error {
    /// Cranelift has no code generator for this machine.
    Machine(String),
    /// A value is used without an earlier definition, has no type, or has two definitions.
    Value(ValueId),
    /// A jump leads to a block that does not exist or that is not later, or the jump has the wrong
    /// number of arguments.
    Jump(BlockId),
    /// This value has a width outside 1 to 128 bits, or one that the operation does not accept.
    Width(ValueId),
    /// A step or end names a counter list that the program does not have.
    Counter(u32),
    /// The operation cannot occur in residual programs.
    Operation {
        /// The block.
        block: u32,
        /// The step.
        step: u32,
    },
    /// The program has more blocks, steps or values than the code generator supports.
    Size,
    /// The code generator failed.
    Generator(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Machine(why) => write!(f, "no machine code on this machine: {why}"),
            Error::Value(value) => write!(f, "{value} is used where it is not defined"),
            Error::Jump(block) => write!(f, "a jump to {block} does not fit it"),
            Error::Width(value) => write!(f, "{value} has a width that does not fit"),
            Error::Counter(counter) => write!(f, "there is no counter {counter}"),
            Error::Operation { block, step } => {
                write!(f, "step {step} of b{block} has no place in a residual program")
            }
            Error::Size => write!(f, "the program is too large"),
            Error::Generator(why) => write!(f, "no code was generated: {why}"),
        }
    }
}

impl std::error::Error for Error {}
