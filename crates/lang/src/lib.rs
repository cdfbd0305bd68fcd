//! The Braid language: lexer, parser, checks, lowering to IR, chain files, importers, formatter.
//!
//! [`compile()`] makes a program from a file's text. It opens no files: a [`Loader`] reads the
//! files that the program names. [`control`] reads control files, [`fmt`] formats, [`import`] reads
//! rules, routes and patterns, and [`diag`] prints errors.
#![forbid(unsafe_code)]

mod ast;
mod chain;
mod compile;
pub mod control;
pub mod diag;
pub mod fmt;
pub mod import;
pub mod index;
mod lexer;
mod parse;
mod sema;
pub mod source;
#[cfg(test)]
mod tests;

pub use compile::{Compiled, Unit, compile};
pub use sema::arith::duration_unit_ns;
pub use sema::types::{name as type_name, of_field};
pub use sema::{Loader, described};
