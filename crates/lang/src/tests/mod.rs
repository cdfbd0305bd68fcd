//! Tests of private parts of the crate: lexer, parser, values, chains. The crate's folder `tests`
//! tests the public parts.

mod chain;
mod control;
mod grammar;
mod hostile;
mod parse;
mod programs;
mod support;
mod syntax;
mod values;
