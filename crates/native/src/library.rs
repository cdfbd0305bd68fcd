//! Finds the function that a chain file names.

use crate::load_error::LoadError;
use crate::sys::{self, Definition, RawNf};
use braid_externs::Extern;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The functions of this program, by set and name.
static OWN: Mutex<BTreeMap<(String, String), RawNf>> = Mutex::new(BTreeMap::new());

/// Registers a function of this program in a set, which chain files name like a library.
pub fn register(set: &str, function: &str, definition: &RawNf) {
    let mut own = OWN.lock().unwrap_or_else(PoisonError::into_inner);
    own.insert((set.to_owned(), function.to_owned()), *definition);
}

/// Whether a library is named by its path: the name has a `/`, or ends like a shared library.
#[must_use]
pub fn is_path(library: &str) -> bool {
    library.contains('/') || library.ends_with(".so")
}

/// Finds an operator, and registers it. Libraries stay open, so it is there until the program ends.
///
/// # Errors
/// The reason why it cannot be used.
pub fn operator(library: &str, name: &str) -> Result<&'static Extern, LoadError> {
    let label = format!("{name} of {library}");
    if let Some(known) = braid_externs::lookup(&label) {
        return Ok(known);
    }
    if !is_path(library) {
        let why = "it is no path (which has a `/` or ends in `.so`)".to_owned();
        return Err(LoadError::Library { path: library.to_owned(), why });
    }
    let loaded = sys::operator(&*sys::open(library)?, library, name)?;
    Ok(braid_externs::ops::register(label, loaded))
}

/// Finds a function.
///
/// # Errors
/// The reason why it cannot be used.
pub fn find(library: &str, function: &str) -> Result<Arc<Definition>, LoadError> {
    if is_path(library) {
        let opened = sys::open(library)?;
        return sys::read(&opened, library, function).map(Arc::new);
    }
    let own = OWN.lock().unwrap_or_else(PoisonError::into_inner);
    let label = format!("{function} of {library}");
    match own.get(&(library.to_owned(), function.to_owned())) {
        Some(raw) => sys::definition(*raw, label).map(Arc::new),
        None if own.keys().any(|(set, _)| set == library) => {
            Err(LoadError::Symbol { path: library.to_owned(), symbol: function.to_owned() })
        }
        None => Err(LoadError::Library {
            path: library.to_owned(),
            why: "it is no path (which has a `/` or ends in `.so`), and no set of functions that \
                  comes with Braid"
                .to_owned(),
        }),
    }
}
