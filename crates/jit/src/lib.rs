//! Machine code from residual programs.
//!
//! [`compile`] turns a [`Residual`](braid_ir::residual::Residual) into [`Code`]; [`Code::run`] runs it
//! on one packet. What the code does itself: arithmetic, fields, checksums, tallies, branches. For
//! everything else it calls its [`Host`], the engine that owns tables, rules and queues. Cranelift and
//! the memory of the code stay behind this crate; how values pass is in [`abi`].
#![deny(unsafe_code)]

pub mod abi;
mod code;
mod error;

pub use abi::{Call, Count, Ended, Host, Misfit, Resource, Work};
pub use code::{Code, compile};
pub use error::Error;
