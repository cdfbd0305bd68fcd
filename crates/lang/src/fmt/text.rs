//! Pieces of the formatted text, and the maximal line length.

use crate::source::offset;

/// The maximal length of a line that the formatter can break.
pub(super) const WIDTH: usize = 100;

/// The bytes from `start` to `end` of `text`. Empty if they are not a part of it.
pub(super) fn part(text: &str, start: u32, end: u32) -> &str {
    text.get(start as usize..end as usize).unwrap_or("")
}

/// Number of line ends between two bytes.
pub(super) fn newlines(text: &str, start: u32, end: u32) -> u32 {
    offset(part(text, start, end).bytes().filter(|byte| *byte == b'\n').count())
}
