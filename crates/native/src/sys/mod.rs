//! The part of this crate that needs unsafe code: pointers between Braid and native code, in the C
//! interface, libraries, calls and crashes.

pub mod abi;
mod api;
mod call;
mod crash;
pub mod guest;
mod load;
mod shims;

pub use abi::RawNf;
pub(crate) use call::Bound;
pub use load::Definition;
pub(crate) use load::{definition, open, read};
