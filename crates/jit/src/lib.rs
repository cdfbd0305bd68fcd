//! Machine code from residual programs.
//!
//! [`compile`] turns a [`Residual`](braid_ir::residual::Residual) into [`Code`]; [`Code::run`] runs it
//! on one packet. What the code does itself: arithmetic, fields, checksums, tallies, branches. For
//! everything else it calls its [`Host`], the engine that owns tables, rules and queues. Cranelift and
//! the memory of the code stay behind this crate; how values pass is in [`abi`].
#![deny(unsafe_code)]

pub mod abi;
mod code;
mod emit;
mod error;
mod facts;
mod headers;
mod index;
mod regions;
#[allow(unsafe_code, reason = "generated code is called, and calls back, through pointers")]
mod sys;

pub use abi::{Call, Classes, Count, Ended, Host, Misfit, Resource, Resources, Search, Work};
pub use code::{Code, Runner, compile, compile_with};
pub use error::Error;
pub use index::Index;
