//! Finds the function that a chain file names.

use crate::sys::{self, Definition, RawNf};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The reasons why a function cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LoadError {
    /// There is no such library, or it cannot be loaded.
    #[error("the library {path} cannot be loaded: {why}")]
    Library {
        /// The path where it was searched.
        path: String,
        /// The system's message.
        why: String,
    },
    /// The library does not have the function.
    #[error("the library {path} has no function of this name: it lacks the symbol `{symbol}`")]
    Symbol {
        /// The library.
        path: String,
        /// The symbol that is missing.
        symbol: String,
    },
    /// The function was built for another version of the interface.
    #[error("{label} was built for version {found} of braid_nf.h, and this is version {wanted}")]
    Abi {
        /// Function and library.
        label: String,
        /// The function's version.
        found: u32,
        /// The version of this program.
        wanted: u32,
    },
    /// The size that the function states is too small.
    #[error("{label} says that its `braid_nf` has {found} bytes, where {least} are the least")]
    Size {
        /// Function and library.
        label: String,
        /// The size that it states.
        found: usize,
        /// The least size.
        least: usize,
    },
    /// The function has no code for packets.
    #[error("{label} has no `packet`: nothing would run for packets")]
    NoPacket {
        /// Function and library.
        label: String,
    },
    /// The function asks for too much memory.
    #[error("{label} asks for {found} bytes for each flow, where {most} are the most")]
    FlowBytes {
        /// Function and library.
        label: String,
        /// The number of bytes that it asks for.
        found: u64,
        /// The limit.
        most: u64,
    },
    /// The function's profile makes no sense.
    #[error("{label}: {why}")]
    Profile {
        /// Function and library.
        label: String,
        /// The mistake.
        why: String,
    },
}

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
