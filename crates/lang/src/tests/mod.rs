//! Tests of parts that only this crate sees: lexer, parser, values, chains. Tests of what others see
//! are in the folder `tests` of the crate.

mod chain;
mod control;
mod grammar;
mod hostile;
mod parse;
mod programs;
mod support;
mod syntax;
mod values;
