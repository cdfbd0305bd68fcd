//! The part of this crate that needs unsafe code: pointers between Braid and native code, in the C
//! interface, libraries, calls and crashes; memory that processes share.

pub mod abi;
mod api;
mod call;
mod crash;
mod fork;
mod gate;
pub mod guest;
pub mod guest_outputs;
mod handles;
pub mod info;
mod load;
mod operator;
mod outputs;
mod shared;
mod shims;
mod tags;

pub use abi::RawNf;
pub(crate) use call::Bound;
pub(crate) use fork::{Forked, fork, ignore_ends};
pub use load::Definition;
pub(crate) use load::{definition, open, read};
pub use operator::MAX_ARGS;
pub(crate) use operator::operator;
pub(crate) use shared::{ALONE, SPINS, Shared, Side, WORDS, Waited, place};
