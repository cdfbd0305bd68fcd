//! Errors, in words for the user.

use braid_io::{ReadError, WriteError};

/// The reasons why traffic can't be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The options contradict each other or a limit.
    #[error("{0}")]
    Options(String),
    /// The template file is wrong. The message names the line and the key, not the file.
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
        /// The reason.
        why: ReadError,
    },
    /// A capture can be read, but not used.
    #[error("{file}: {why}")]
    Capture {
        /// Its path.
        file: String,
        /// The reason.
        why: String,
    },
    /// The output can't be written. The message doesn't name it.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// More connections would be open at once than the limit allows.
    #[error(
        "more than {limit} connections are open at once, {after} s after the start; ask for less \
         traffic (lower `cps` or --scale) or for shorter gaps (lower `ipg` and `rtt`)"
    )]
    Crowded {
        /// The limit.
        limit: usize,
        /// Seconds after the start, rounded down.
        after: u64,
    },
    /// Times would be too late for pcap.
    #[error("times would go past the year 2106, where those of pcap end; start earlier (--start)")]
    End,
}
