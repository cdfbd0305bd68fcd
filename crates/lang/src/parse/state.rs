//! The parser's state.

use super::marks::Marks;
use crate::diag::Diagnostics;
use crate::lexer::{Lexed, Token};

/// An error that is already reported. Parsing continues at the next statement or declaration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bail;

/// How deep blocks, brackets, operators and types may nest.
pub const MAX_DEPTH: u32 = 128;

/// The result of a part. `Err` means that the error is already reported.
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
    /// Whether the rest of the file is skipped. Further messages are then suppressed.
    pub(super) aborted: bool,
    /// The place of the last reported missing closing bracket.
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
