//! Parses tokens to a syntax tree, by recursive descent.
//!
//! `Parser` moves over the tokens and reports what it expected. The grammar is free functions over
//! it, one for each part of the language.
//!
//! Parsing is total: any text gives a tree and all its errors. A wrong part is reported once and
//! omitted (statements and expressions leave an `Error` node). Parsing continues at the next `;`,
//! `}`, row or declaration. `MAX_DEPTH` bounds the nesting, so neither the parser nor later walks
//! over the tree overflow the stack.

mod chain;
mod cursor;
mod expr;
mod item;
mod marks;
mod nf;
mod ops;
pub(crate) mod state;
mod stmt;
mod types;
pub(crate) mod words;

pub(crate) use marks::{BLOCK, FIELDS, GENERIC, GLUE, LINE, LIST, Marks, STMT};
pub(crate) use state::Parser;

use crate::ast::{Expr, ExprKind, File};
use crate::diag::Diagnostics;
use crate::lexer::{Comment, Token, lex};

/// A file with its tokens, comments and marks for the formatter.
pub(crate) struct Source {
    pub file: File,
    pub diagnostics: Diagnostics,
    pub tokens: Vec<Token>,
    pub comments: Vec<Comment>,
    pub marks: Marks,
}

/// Parses the text of file number `file`. The diagnostics hold all errors, and the tree holds the
/// parts without errors.
#[must_use]
pub fn parse(text: &str, file: u32) -> (File, Diagnostics) {
    let source = parse_source(text, file);
    (source.file, source.diagnostics)
}

pub(crate) fn parse_source(text: &str, file: u32) -> Source {
    let mut lexed = lex(text, file, 0);
    let comments = std::mem::take(&mut lexed.comments);
    let mut parser = Parser::new(text, file, 0, lexed);
    let file = item::file(&mut parser);
    let Parser { tokens, diags, marks, .. } = parser;
    Source { file, diagnostics: diags.sorted(), tokens, comments, marks }
}

/// Parses one expression, such as a value in a control file. `text` is the part of file number
/// `file` that starts at byte `base`.
#[must_use]
pub fn parse_expr(text: &str, file: u32, base: u32) -> (Expr, Diagnostics) {
    let mut parser = Parser::new(text, file, base, lex(text, file, base));
    let parsed = expr::whole_expr(&mut parser);
    let span = parser.span_from(0);
    let expr = parsed.unwrap_or(Expr { kind: ExprKind::Error, span });
    (expr, parser.diags.sorted())
}
