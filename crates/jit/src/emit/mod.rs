//! Translates residual programs to Cranelift's IR.
//!
//! A value is an `i64`, or an `i128` if it can have more than 64 significant bits. All bits above
//! the significant ones are 0. Each block of the program becomes a block of Cranelift's IR, and
//! some steps add more blocks.
//!
//! `emitter`, `value` and `call` hold the state of a function and its basic operations. Each of the
//! other files writes one kind of step. `program` puts the steps together.

mod announce;
mod arith;
mod branch;
mod call;
mod emitter;
mod key;
mod load;
mod main_path;
mod outcomes;
mod prefetch;
mod program;
mod region;
mod resource;
mod rules;
mod set;
mod state;
mod step;
mod value;
mod write;

pub(crate) use emitter::{Emitter, Lists};
pub(crate) use main_path::MainPath;
pub(crate) use prefetch::{Hint, prefetch};
pub(crate) use program::{main_path, whole_program};
