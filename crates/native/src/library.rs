//! Which function a chain file means, and where it is found.

use crate::sys::{self, Definition, RawNf};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Why a function cannot be had.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LoadError {
    /// No such library, or it cannot be loaded.
    #[error("the library {path} cannot be loaded: {why}")]
    Library {
        /// Where it was looked for.
        path: String,
        /// What the system says.
        why: String,
    },
    /// It lacks the function.
    #[error("the library {path} has no function of this name: it lacks the symbol `{symbol}`")]
    Symbol {
        /// The library.
        path: String,
        /// What it should have.
        symbol: String,
    },
    /// It was made for another interface.
    #[error("{label} was built for version {found} of braid_nf.h, and this is version {wanted}")]
    Abi {
        /// Function and library.
        label: String,
        /// Its version.
        found: u32,
        /// Ours.
        wanted: u32,
    },
    /// It says that it is too small to be a function.
    #[error("{label} says that its `braid_nf` has {found} bytes, where {least} are the least")]
    Size {
        /// Function and library.
        label: String,
        /// What it says.
        found: usize,
        /// What it needs.
        least: usize,
    },
    /// It has no code.
    #[error("{label} has no `packet`: nothing would run for packets")]
    NoPacket {
        /// Function and library.
        label: String,
    },
    /// It asks for too much memory.
    #[error("{label} asks for {found} bytes for each flow, where {most} are the most")]
    FlowBytes {
        /// Function and library.
        label: String,
        /// What it asks for.
        found: u64,
        /// The limit.
        most: u64,
    },
    /// Its profile makes no sense.
    #[error("{label}: {why}")]
    Profile {
        /// Function and library.
        label: String,
        /// What is wrong.
        why: String,
    },
}

/// Functions that the program itself brings, by set and name.
static OWN: Mutex<BTreeMap<(String, String), RawNf>> = Mutex::new(BTreeMap::new());

/// Makes a function of the program known, in a set that chain files name like a library.
pub fn register(set: &str, function: &str, definition: &RawNf) {
    let mut own = OWN.lock().unwrap_or_else(PoisonError::into_inner);
    own.insert((set.to_owned(), function.to_owned()), *definition);
}

/// Whether a library is named by its path: it has a `/`, or ends as shared libraries do.
#[must_use]
pub fn is_path(library: &str) -> bool {
    library.contains('/') || library.ends_with(".so")
}

/// Finds a function.
///
/// # Errors
/// Why it cannot be had.
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
