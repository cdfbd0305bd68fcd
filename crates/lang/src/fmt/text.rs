//! Pieces of the text that is formatted, and how long its lines may be.

use crate::source::offset;

/// Longest line that the formatter makes where it can break it.
pub(super) const WIDTH: usize = 100;

/// The bytes from `start` to `end` of `text`; empty where that is no part of it.
pub(super) fn part(text: &str, start: u32, end: u32) -> &str {
    text.get(start as usize..end as usize).unwrap_or("")
}

/// Line ends between two bytes.
pub(super) fn newlines(text: &str, start: u32, end: u32) -> u32 {
    offset(part(text, start, end).bytes().filter(|byte| *byte == b'\n').count())
}
