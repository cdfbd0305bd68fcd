//! What can be odd about a stream: gaps and overlaps.

use crate::policy::Kept;

/// Why bytes of a stream are missing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub enum Why {
    /// The receiver has acknowledged them, but the capture does not have them.
    Acknowledged,
    /// The bytes behind them needed more memory than the stream may use.
    Memory,
    /// The connection, its part of the capture or its place in memory ended first.
    End,
}

impl Why {
    /// The name in listings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Why::Acknowledged => "acknowledged",
            Why::Memory => "memory",
            Why::End => "end",
        }
    }
}

/// Bytes of a stream that never came, or came too late.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gap {
    /// The offset of the first of them in the stream.
    pub offset: u64,
    /// Their number.
    pub len: u64,
    /// Why they are missing.
    pub why: Why,
}

/// Bytes that came twice and are not the same: from the first to the last byte that differs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Overlap {
    /// The offset of the first byte that differs.
    pub offset: u64,
    /// The number of bytes up to the last one that differs.
    pub len: u64,
    /// Which bytes were kept.
    pub kept: Kept,
}

impl Overlap {
    /// The part of two equally long runs of bytes at `offset` that differs; `None` if they are
    /// equal.
    #[must_use]
    pub fn between(offset: u64, earlier: &[u8], later: &[u8], kept: Kept) -> Option<Overlap> {
        let pairs = || earlier.iter().zip(later);
        let first = pairs().position(|(a, b)| a != b)?;
        let last = pairs().rposition(|(a, b)| a != b)?;
        Some(Overlap { offset: offset + first as u64, len: (last - first) as u64 + 1, kept })
    }
}
