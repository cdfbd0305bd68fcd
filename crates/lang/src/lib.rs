//! The Braid language: lexer, parser, checks, lowering to IR, chain files, importers, formatter.
#![forbid(unsafe_code)]

pub mod ast;
pub mod chain;
pub mod control;
pub mod diag;
pub mod fmt;
pub mod import;
pub mod lexer;
pub mod parse;
pub mod sema;
pub mod source;

pub use sema::{Compiled, Loader, Unit, compile};
