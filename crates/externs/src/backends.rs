//! Backends, as operators see them.

use std::ops::Deref;

/// The backends of a parameter: a slice or a `Vec` of [`Backend`]s.
pub trait Backends {
    /// The number of backends, up or down.
    fn count(&self) -> usize;
    /// The name (first column) of a backend; `index` is below `count`.
    fn name(&self, index: usize) -> u128;
    /// Whether a backend is up; `index` is below `count`.
    fn is_up(&self, index: usize) -> bool;
}

/// A backend in a list of backends.
pub trait Backend {
    /// The name (first column).
    fn name(&self) -> u128;
    /// Whether the backend is up.
    fn is_up(&self) -> bool;
}

/// A name and a health, for callers without a type of their own.
impl Backend for (u128, bool) {
    fn name(&self) -> u128 {
        self.0
    }

    fn is_up(&self) -> bool {
        self.1
    }
}

#[expect(clippy::indexing_slicing, reason = "callers number backends below `count`")]
impl<B: Backend, T: Deref<Target = [B]>> Backends for T {
    fn count(&self) -> usize {
        self.len()
    }

    fn name(&self, index: usize) -> u128 {
        self[index].name()
    }

    fn is_up(&self, index: usize) -> bool {
        self[index].is_up()
    }
}
