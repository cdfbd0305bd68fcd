//! Compiles residual programs to machine code (a JIT compiler on Cranelift).
//!
//! [`compile`] turns a [`Residual`](braid_ir::residual::Residual) into [`Code`], and [`Code::run`]
//! runs the code on one packet. The code does arithmetic, field access, checksums, counters and
//! branches by itself. For everything else it calls its [`Host`]: the engine, which owns tables,
//! rules and queues.
//!
//! The crate's interface hides Cranelift and the memory of the code. [`abi`] defines how code and
//! host exchange values.
#![deny(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::indexing_slicing, clippy::large_stack_arrays)
)]

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

pub use abi::{
    AddressGroups, Call, Count, Ended, GuardFailure, Host, Resource, Resources, Search, Work,
};
pub use code::{Code, Prefetcher, Runner, compile, compile_with};
pub use error::Error;
pub use index::Index;
