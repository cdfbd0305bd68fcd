//! The parser's state.

use super::marks::Marks;
use crate::diag::Diagnostics;
use crate::lexer::{Lexed, Token};

/// The trouble has been reported; find back at the next statement or declaration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bail;

/// How deep blocks, brackets, operators and types may nest.
pub const MAX_DEPTH: u32 = 128;

/// Result of a part: `Err` means that the trouble has been reported.
pub(super) type Parsed<T> = Result<T, Bail>;

/// The parser's state.
pub(crate) struct Parser<'t> {
    pub(super) text: &'t str,
    pub(super) file: u32,
    pub(super) base: u32,
    pub(super) tokens: Vec<Token>,
    pub(super) pos: usize,
    pub(super) depth: u32,
    pub(super) open_braces: u32,
    /// Set when the rest of the file is given up; silences what would follow from that.
    pub(super) aborted: bool,
    /// Where a missing closing bracket was last reported.
    pub(super) unclosed_at: Option<usize>,
    pub(super) diags: Diagnostics,
    pub(super) marks: Marks,
}

impl<'t> Parser<'t> {
    pub(super) fn new(text: &'t str, file: u32, base: u32, lexed: Lexed) -> Self {
        let marks = Marks::new(lexed.tokens.len());
        Self {
            text,
            file,
            base,
            tokens: lexed.tokens,
            pos: 0,
            depth: 0,
            open_braces: 0,
            aborted: false,
            unclosed_at: None,
            diags: lexed.diagnostics,
            marks,
        }
    }
}
