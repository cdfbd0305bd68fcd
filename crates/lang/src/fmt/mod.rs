//! The formatter: `braid fmt`.
//!
//! The formatter works on tokens, so it cannot change the meaning of a program. It only adds and
//! removes commas after the last item of a list. The parser marks the tokens where statements and
//! declarations start, and the brackets of lists. The author decides about blank lines (at most
//! one), whether a short block stays on one line, and which short statements share a line. A
//! comment in the middle of a line moves up in front of its line or item.

mod layout;
mod space;
mod text;
mod tree;

use crate::diag::Diagnostics;
use crate::parse::parse_source;

/// The text in canonical form. Formatting it again changes nothing.
///
/// # Errors
///
/// The errors of a text with syntax errors. Their spans are in file 0.
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
