//! The formatter: `braid fmt`.
//!
//! Works on tokens, so that it cannot change what a program means: only commas after the last item
//! of a list come and go. The parser's marks say where statements and declarations start and which
//! brackets hold lists. What the author decides: blank lines (one at most), whether a short block
//! stays on one line, which short statements share a line. A comment that stands where no line ends
//! moves up in front of its line or item.

mod layout;
mod space;
mod tree;

use crate::diag::Diagnostics;
use crate::parse::parse_source;
use crate::source::offset;

/// Longest line that the formatter makes where it can break it.
pub const WIDTH: usize = 100;

/// The text in canonical form. Formatting twice changes nothing more.
///
/// # Errors
///
/// What is wrong with the text, if it does not parse; spans are in file 0.
pub fn format(text: &str) -> Result<String, Diagnostics> {
    let source = parse_source(text, 0);
    if source.diagnostics.has_errors() {
        return Err(source.diagnostics);
    }
    let tree = tree::build(text, &source);
    let mut out = layout::Printer::new(text, &source);
    out.file(&tree);
    Ok(out.finish())
}

/// The bytes from `start` to `end` of `text`; empty where that is no part of it.
fn part(text: &str, start: u32, end: u32) -> &str {
    text.get(start as usize..end as usize).unwrap_or("")
}

/// Line ends between two bytes.
fn newlines(text: &str, start: u32, end: u32) -> u32 {
    offset(part(text, start, end).bytes().filter(|byte| *byte == b'\n').count())
}
