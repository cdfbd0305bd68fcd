//! Shared support for the syntax tests: random trees, a simple printer, trees without spans.
#![allow(dead_code, reason = "each test program uses a part")]

pub mod entropy;
pub mod gen_chain;
pub mod gen_expr;
pub mod gen_stmt;
pub mod print;
pub mod print_item;

use crate::ast::File;

/// A tree without its spans as text, for comparison.
pub fn without_spans(file: &File) -> String {
    let mut text = format!("{file:?}");
    while let Some(start) = text.find("Span {") {
        let end = text[start..].find('}').map_or(text.len(), |at| start + at + 1);
        text.replace_range(start..end, "_");
    }
    text
}
