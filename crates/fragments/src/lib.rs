//! Puts IP fragments together, as a native function: the functions behind it see whole packets.
//!
//! A program that links the crate has the function as the set "ip" ([`register`]).
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::indexing_slicing, clippy::large_stack_arrays)
)]

mod datagrams;
mod fragment;
mod function;
#[cfg(test)]
mod tests;

pub use function::Defragment;

use braid_native::RawNf;

/// The name of the set.
pub const SET: &str = "ip";

static DEFRAGMENT: RawNf = RawNf::of::<Defragment>();

/// Registers the set in this program: `native nf defragment() from "ip";`
pub fn register() {
    braid_native::register(SET, "defragment", &DEFRAGMENT);
}
