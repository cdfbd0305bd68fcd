//! The semantics: names, types, checks, and lowering of functions to models.
//!
//! `module` holds the declarations of a file, and `nf` lowers one function to a model. `decl`
//! declares its names. `stmt`, `assign`, `rows`, `send` and `ends` lower statements. `expr`,
//! `operators`, `calls`, `pred`, `path`, `payload` and `state` lower expressions. `names` resolves
//! names, and `needs` checks what the packet must have. All of them build the program with `build`,
//! which carries the known facts (`facts`) along every edge. `free` checks what no function uses.
//! `crate::compile` assembles programs of functions and chains.
//!
//! These modules are functions over `Lower`, the state of lowering one function. Its names are in
//! `scope`. Statements and expressions nest in each other, so `Lower` has a method for each of
//! them: `statement`, `block`, `value` and `predicate`.

mod addr;
pub(crate) mod arith;
mod assign;
mod bucket;
mod build;
mod built_in;
mod bytes;
mod calls;
mod constant;
mod contents;
mod cover;
mod crypt;
mod decl;
mod declared;
mod declared_sums;
mod ends;
pub(crate) mod env;
pub(crate) mod eval;
mod expand;
mod expr;
mod facts;
mod files;
mod flow;
pub(crate) mod free;
mod guard;
mod headers;
pub(crate) mod inner;
mod library;
mod locals;
mod lower;
mod messages;
pub(crate) mod module;
mod names;
pub(crate) mod native;
mod needs;
pub(crate) mod nf;
mod operators;
mod order;
mod path;
mod patterns;

mod pred;
mod push;
mod rows;
pub(crate) mod say;
mod scope;
mod search;
mod send;
pub(crate) mod sides;
mod state;
mod stmt;
pub(crate) mod stream;
mod strings;
mod translate;
mod tunnel;
pub(crate) mod types;
mod unused;
mod versions;
mod walk;

pub(crate) use arith::BIT_NANOS;
pub use built_in::described;
pub(crate) use built_in::functions;
pub use env::Loader;
pub(crate) use operators::WHOLE_BYTES;
