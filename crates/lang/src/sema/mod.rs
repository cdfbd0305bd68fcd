//! The semantics: names, types, checks, and lowering of functions to models.
//!
//! `compile` assembles a program. `module` holds the declarations of a file, and `nf` lowers one
//! function to a model. `decl` declares its names. `stmt`, `assign`, `rows`, `send` and `ends`
//! lower statements. `expr`, `operators`, `calls`, `pred`, `path`, `payload` and `state` lower expressions.
//! `names` resolves names, and `needs` checks what the packet must have. All of them build the
//! program with `build`, which carries the known facts (`facts`) along every edge. `free` checks
//! what no function uses.
//!
//! These modules are functions over `Lower`, the state of lowering one function. Its names are in
//! `scope`. Statements and expressions nest in each other, so `Lower` has a method for each of
//! them: `statement`, `block`, `value` and `predicate`.

pub(crate) mod arith;
mod assign;
mod bucket;
mod build;
mod built_in;
mod bytes;
mod calls;
mod compile;
mod constant;
mod cover;
mod crypt;
mod decl;
mod declared;
mod ends;
pub(crate) mod env;
pub(crate) mod eval;
mod expand;
mod expr;
mod facts;
mod files;
mod flow;
mod free;
mod guard;
mod headers;
mod inner;
mod locals;
mod lower;
mod module;
mod names;
mod native;
mod needs;
mod nf;
mod operators;
mod order;
mod path;

mod pred;
mod push;
mod rows;
pub(crate) mod say;
mod scope;
mod send;
mod state;
mod stmt;
mod stream;
mod strings;
mod tunnel;
pub(crate) mod types;
mod unused;
mod walk;

pub use built_in::described;
pub(crate) use calls::functions;
pub(crate) use compile::gather;
pub use compile::{Compiled, Unit, compile};
pub use env::Loader;
