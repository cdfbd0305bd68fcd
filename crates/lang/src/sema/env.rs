//! The environment of a program: its files, native code, and constants in scope.

use braid_externs::Extern;
use std::collections::BTreeMap;
use std::sync::Arc;

use braid_native::{Description, LoadError};

use crate::ast::Expr;
use crate::source::SourceMap;

/// Reads the files that a program names. This crate opens no files itself.
pub trait Loader {
    /// The contents of `path`, which the source file `relative_to` names.
    ///
    /// # Errors
    /// The reason why the file cannot be read, as a sentence without a full stop.
    fn read(&self, path: &str, relative_to: &str) -> Result<Vec<u8>, String>;

    /// The contents of a file with secret keys. The default reads it as any other file; a loader
    /// that opens files refuses one that other users can read.
    ///
    /// # Errors
    /// As for [`Loader::read`].
    fn secret(&self, path: &str, relative_to: &str) -> Result<Vec<u8>, String> {
        self.read(path, relative_to)
    }

    /// The description of a native function, which is loaded for it: in a process of its own, if
    /// the function is isolated. Loading a library runs its code, so the default refuses.
    ///
    /// # Errors
    /// The reason why the function cannot be loaded.
    fn native(
        &self,
        library: &str,
        _function: &str,
        _is_isolated: bool,
    ) -> Result<Arc<Description>, LoadError> {
        let why = "no native code is loaded here".to_owned();
        Err(LoadError::Library { path: library.to_owned(), why })
    }

    /// An operator, which is loaded for it. The default refuses, as for native functions.
    ///
    /// # Errors
    /// The reason why the operator cannot be loaded.
    fn operator(&self, library: &str, _name: &str) -> Result<&'static Extern, LoadError> {
        let why = "no native code is loaded here".to_owned();
        Err(LoadError::Library { path: library.to_owned(), why })
    }
}

/// The named constants in scope.
pub trait Constants {
    /// The expression of the constant with this name.
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

/// Everything that parameter values may refer to.
#[derive(Clone, Copy)]
pub struct Env<'a> {
    /// Named constants.
    pub constants: &'a dyn Constants,
    /// Reads the files that values name.
    pub loader: &'a dyn Loader,
    /// The source files. A path in an expression is relative to the file of the expression.
    pub sources: &'a SourceMap,
}
