//! Tokens to a syntax tree, by recursive descent.
//!
//! Total: any text gives a tree and all that is wrong with it. A part that makes no sense is
//! reported once and left out (statements and expressions leave an `Error` node); parsing goes on at
//! the next `;`, `}`, row or declaration. Nesting is bounded by [`MAX_DEPTH`], so that neither the
//! parser nor what walks the tree later can run out of stack.

mod chain;
mod cursor;
mod expr;
mod item;
mod marks;
mod nf;
mod ops;
mod stmt;
mod types;
mod words;

pub(crate) use marks::{BLOCK, GENERIC, GLUE, LINE, LIST, Marks, STMT};
pub use words::{KEYWORDS, RATES, UNITS};

use crate::ast::{Expr, ExprKind, File};
use crate::diag::Diagnostics;
use crate::lexer::{Comment, Lexed, Tok, Token, lex};
use cursor::Bail;

/// How deep blocks, brackets, operators and types may nest.
pub const MAX_DEPTH: u32 = 128;

/// Result of a part: `Err` means that the trouble has been reported.
type Parsed<T> = Result<T, Bail>;

/// The parser's state.
pub(crate) struct Parser<'t> {
    text: &'t str,
    file: u32,
    base: u32,
    tokens: Vec<Token>,
    pos: usize,
    depth: u32,
    open_braces: u32,
    /// Set when the rest of the file is given up; silences what would follow from that.
    aborted: bool,
    /// Where a missing closing bracket was last reported.
    unclosed_at: Option<usize>,
    diags: Diagnostics,
    marks: Marks,
}

/// A file with what the formatter needs besides the tree.
pub(crate) struct Source {
    pub file: File,
    pub diagnostics: Diagnostics,
    pub tokens: Vec<Token>,
    pub comments: Vec<Comment>,
    pub marks: Marks,
}

impl<'t> Parser<'t> {
    fn new(text: &'t str, file: u32, base: u32, lexed: Lexed) -> Self {
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

/// Parses the text of file number `file`. All that is wrong is in the diagnostics; the tree holds
/// what could be understood.
#[must_use]
pub fn parse(text: &str, file: u32) -> (File, Diagnostics) {
    let source = parse_source(text, file);
    (source.file, source.diagnostics)
}

pub(crate) fn parse_source(text: &str, file: u32) -> Source {
    let mut lexed = lex(text, file, 0);
    let comments = std::mem::take(&mut lexed.comments);
    let mut parser = Parser::new(text, file, 0, lexed);
    let file = parser.file();
    let Parser { tokens, diags, marks, .. } = parser;
    Source { file, diagnostics: diags.sorted(), tokens, comments, marks }
}

/// Parses one expression, such as a value in a control file; `text` is the part of file number
/// `file` that starts at byte `base`.
#[must_use]
pub fn parse_expr(text: &str, file: u32, base: u32) -> (Expr, Diagnostics) {
    let mut parser = Parser::new(text, file, base, lex(text, file, base));
    let parsed = parser.whole_expr();
    let span = parser.span_from(0);
    let expr = parsed.unwrap_or(Expr { kind: ExprKind::Error, span });
    (expr, parser.diags.sorted())
}

impl Parser<'_> {
    fn whole_expr(&mut self) -> Parsed<Expr> {
        let expr = self.expr()?;
        if !self.at(Tok::Eof) {
            return Err(self.expected("the end of the value"));
        }
        Ok(expr)
    }
}
