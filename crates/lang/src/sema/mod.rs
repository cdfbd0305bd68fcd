//! Meaning: names, types, checks, and lowering of functions to models.

pub mod arith;
pub mod constant;
pub mod eval;
mod files;
pub mod say;
pub mod types;

use std::collections::BTreeMap;

use crate::ast::Expr;
use crate::source::SourceMap;

/// Gives the contents of files that a program names. The language itself reads none.
pub trait Loader {
    /// The contents of `path`, which stands in the source file `relative_to`.
    ///
    /// # Errors
    /// Why it cannot be read, as a sentence without a full stop.
    fn read(&self, path: &str, relative_to: &str) -> Result<Vec<u8>, String>;
}

/// Named constants in sight.
pub trait Constants {
    /// What the constant of this name stands for.
    fn find(&self, name: &str) -> Option<&Expr>;
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
