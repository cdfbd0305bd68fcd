//! What a monitor may use, and how it decides.

use crate::policies::Policies;

/// What a monitor may use, and how it decides.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which bytes count where segments to a host disagree.
    pub policies: Policies,
    /// The memory that waiting bytes of one stream may use (bytes). At the limit, missing bytes are
    /// given up ([`crate::Why::Memory`]), and the stream goes on behind them.
    pub stream_memory: usize,
    /// The memory of all connections together (bytes). At the limit, the connection that has been
    /// idle for the longest time is given up ([`crate::Ended::GivenUp`]).
    pub memory: usize,
    /// The time after which missing bytes are given up that the receiver has acknowledged (ns).
    pub patience_ns: u64,
    /// Whether the monitor stands in the path of the packets, so that a receiver has only what has
    /// passed. Bytes that wait for missing ones when the connection ends are then forgotten, not
    /// delivered with gaps between. A RST counts only at the next byte to deliver.
    pub is_inline: bool,
    /// What becomes of segments with a wrong checksum.
    pub checksums: Checksums,
}

/// What becomes of segments with a wrong checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Checksums {
    /// They count like others.
    Ignored,
    /// They are left out.
    Verified,
    /// They are left out once their end of the connection has sent a segment with a right checksum.
    /// In captures of a host, all of its own segments may have wrong ones, because its network
    /// device fills them in later. A receiver drops segments with wrong ones, so no connection goes
    /// on without right ones otherwise.
    Learned,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            policies: Policies::default(),
            stream_memory: 1 << 20,
            memory: 256 << 20,
            patience_ns: 1_000_000_000,
            is_inline: false,
            checksums: Checksums::Ignored,
        }
    }
}
