//! Why a function or an operator that a chain file names cannot be used.

use serde::{Deserialize, Serialize};

/// The reasons why a function cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error, Serialize, Deserialize)]
pub enum LoadError {
    /// There is no such library, or it cannot be loaded.
    #[error("the library {path} cannot be loaded: {why}")]
    Library {
        /// The path where it was searched.
        path: String,
        /// The system's message.
        why: String,
    },
    /// The library does not have the function.
    #[error("the library {path} has no function of this name: it lacks the symbol `{symbol}`")]
    Symbol {
        /// The library.
        path: String,
        /// The symbol that is missing.
        symbol: String,
    },
    /// The function was built for another version of the interface.
    #[error("{label} was built for version {found} of braid_nf.h, and this is version {wanted}")]
    Abi {
        /// Function and library.
        label: String,
        /// The function's version.
        found: u32,
        /// The version of this program.
        wanted: u32,
    },
    /// The size that the function states is too small.
    #[error(
        "{label} says that its `braid_nf` has {found} bytes, but it must have at least {least}"
    )]
    Size {
        /// Function and library.
        label: String,
        /// The size that it states.
        found: usize,
        /// The least size.
        least: usize,
    },
    /// The operator has no code.
    #[error("{label} has no `run`: there is nothing to call")]
    NoRun {
        /// Operator and library.
        label: String,
    },
    /// The function has no code for packets.
    #[error("{label} has no `packet`: nothing would run for packets")]
    NoPacket {
        /// Function and library.
        label: String,
    },
    /// The function asks for too much memory.
    #[error("{label} asks for {found} bytes for each flow, but at most {most} are allowed")]
    FlowBytes {
        /// Function and library.
        label: String,
        /// The number of bytes that it asks for.
        found: u64,
        /// The limit.
        most: u64,
    },
    /// The function's process does not say what the function is.
    #[error("{label} cannot run in a process of its own: {why}")]
    Isolated {
        /// Function and library.
        label: String,
        /// The reason.
        why: String,
    },
    /// What the function declares makes no sense.
    #[error("{label}: {why}")]
    Declared {
        /// Function and library.
        label: String,
        /// The mistake.
        why: String,
    },
}
