//! The semantics: names, types, checks, and lowering of functions to models.
//!
//! `compile` assembles a program. `module` holds the declarations of a file, and `nf` lowers one
//! function to a model. `decl` declares its names. `stmt`, `assign`, `rows`, `state` and `send`
//! lower statements. `expr`, `calls`, `pred` and `names` lower expressions. All of them build the
//! program with `build`, which carries the known facts (`facts`) along every edge.

pub(crate) mod arith;
mod assign;
mod build;
mod calls;
mod compile;
mod constant;
mod cover;
mod decl;
pub(crate) mod env;
pub(crate) mod eval;
mod expand;
mod expr;
mod facts;
mod files;
mod guard;
mod lower;
mod module;
mod names;
mod native;
mod nf;
mod order;
mod pred;
mod rows;
mod say;
mod send;
mod state;
mod stmt;
mod stream;
pub(crate) mod types;
mod unused;
mod walk;

pub use compile::{Compiled, Unit, compile};
pub use env::Loader;
