//! Meaning: names, types, checks, and lowering of functions to models.
//!
//! `compile` puts a program together; `module` holds what a file declares, `nf` makes a model of
//! one function. Within it `decl` declares; `stmt`, `assign`, `rows`, `state`, `send` lower statements,
//! `expr`, `calls`, `pred`, `names` lower expressions; all of them build the program with `build`,
//! which carries what is known (`facts`) along every edge.

pub mod arith;
mod assign;
mod build;
mod calls;
mod compile;
pub mod constant;
mod cover;
mod decl;
pub mod eval;
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
pub mod types;
mod unused;
mod walk;

pub use compile::{Compiled, Unit, compile};

use std::collections::BTreeMap;
use std::sync::Arc;

use braid_native::{Definition, LoadError};

use crate::ast::Expr;
use crate::source::SourceMap;

/// Gives the contents of files that a program names. The language itself reads none.
pub trait Loader {
    /// The contents of `path`, which stands in the source file `relative_to`.
    ///
    /// # Errors
    /// Why it cannot be read, as a sentence without a full stop.
    fn read(&self, path: &str, relative_to: &str) -> Result<Vec<u8>, String>;

    /// A function in native code. Loading a library runs code of it, so only who wants that says more than no.
    ///
    /// # Errors
    /// Why it cannot be had.
    fn native(&self, library: &str, _function: &str) -> Result<Arc<Definition>, LoadError> {
        let why = "no native code is loaded here".to_owned();
        Err(LoadError::Library { path: library.to_owned(), why })
    }
}

/// Named constants in sight.
pub trait Constants {
    /// What the constant of this name stands for.
    fn find(&self, name: &str) -> Option<&Expr>;
}

/// No constants, as in a control file.
impl Constants for () {
    fn find(&self, _name: &str) -> Option<&Expr> {
        None
    }
}

impl Constants for BTreeMap<String, Expr> {
    fn find(&self, name: &str) -> Option<&Expr> {
        self.get(name)
    }
}

/// What parameter values may refer to.
#[derive(Clone, Copy)]
pub struct Env<'a> {
    /// Named constants.
    pub constants: &'a dyn Constants,
    /// Files.
    pub loader: &'a dyn Loader,
    /// Source files: a path in an expression is relative to the file that it stands in.
    pub sources: &'a SourceMap,
}
