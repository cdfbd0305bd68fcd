//! Why a program has no machine code.

use braid_ir::model::{BlockId, ValueId};
use std::fmt;

/// Why a residual program could not be compiled. Its interpreter can run it all the same.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Error {
    /// There is no code generator for this machine.
    Machine(String),
    /// A value is used that has no definition before it, no type, or two definitions.
    Value(ValueId),
    /// A jump leads to a block that does not exist or is not behind it, or gives too many or too few
    /// values.
    Jump(BlockId),
    /// A width that is not 1 to 128 bits, or that does not suit the operation, of this value.
    Width(ValueId),
    /// A tally that the program does not have.
    Tally(u32),
    /// An operation that residual programs do not have.
    Operation {
        /// The block.
        block: u32,
        /// The step.
        step: u32,
    },
    /// More blocks, steps or values than machine code is made for.
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
            Error::Tally(tally) => write!(f, "there is no tally {tally}"),
            Error::Operation { block, step } => {
                write!(f, "step {step} of b{block} has no place in a residual program")
            }
            Error::Size => write!(f, "the program is too large"),
            Error::Generator(why) => write!(f, "no code was generated: {why}"),
        }
    }
}

impl std::error::Error for Error {}
