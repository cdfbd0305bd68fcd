//! Synthesis: residual programs of small models and of the library's chains.

mod common;
mod handlers;
mod library;
#[cfg(feature = "mutants")]
mod mutants;
mod parsing;
mod rows;
mod size;
mod text;
