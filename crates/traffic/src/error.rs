//! What can go wrong, in words for the person at the keyboard.

use braid_io::{ReadError, WriteError};

/// Why traffic can't be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The options contradict each other or a limit.
    #[error("{0}")]
    Options(String),
    /// The template file is not right. The message names line and key, not the file.
    #[error("{0}")]
    Template(String),
    /// Captures that a template file names can't be found.
    #[error("{0}")]
    Missing(String),
    /// A capture can't be read.
    #[error("{file}: {why}")]
    Read {
        /// Its path.
        file: String,
        /// Why not.
        why: ReadError,
    },
    /// A capture can be read, but not used.
    #[error("{file}: {why}")]
    Capture {
        /// Its path.
        file: String,
        /// Why not.
        why: String,
    },
    /// The output can't be written. The message doesn't name it.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// More connections at once than there may be.
    #[error(
        "more than {limit} connections are open at once, {after} s after the start; ask for less \
         traffic (lower `cps` or --scale) or for shorter gaps (lower `ipg` and `rtt`)"
    )]
    Crowded {
        /// The limit.
        limit: usize,
        /// Seconds since the start, rounded down.
        after: u64,
    },
    /// Times would be later than pcap can say.
    #[error("times would go past the year 2106, where those of pcap end; start earlier (--start)")]
    End,
}
