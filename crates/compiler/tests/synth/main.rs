//! Synthesis: residual programs of small models and of the library's chains.

#[cfg(feature = "planted-bugs")]
mod bugs;
mod common;
mod library;
mod parsing;
mod rows;
mod size;
mod text;
