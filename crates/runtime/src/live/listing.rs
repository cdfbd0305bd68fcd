//! The state entries that a client reads page by page.

use braid_ir::engine::StateEntry;
use std::time::{Duration, Instant};

/// How long a listing waits for its next page.
const PATIENCE: Duration = Duration::from_secs(10);

/// The state entries of a chain, or of one function, as they were when the first page was asked
/// for. The next pages come from here, so that the state is copied once for all of them.
pub(super) struct Listing {
    function: Option<u16>,
    entries: Vec<StateEntry>,
    made: Instant,
}

impl Listing {
    pub(super) fn new(function: Option<u16>, entries: Vec<StateEntry>) -> Self {
        Self { function, entries, made: Instant::now() }
    }

    pub(super) fn entries(&self) -> &[StateEntry] {
        &self.entries
    }

    /// Whether a page that begins at this entry, of this function or of all, continues the listing.
    pub(super) fn goes_on(&self, function: Option<u16>, from: usize) -> bool {
        from > 0 && self.function == function && !self.is_old()
    }

    /// Whether the client has left.
    pub(super) fn is_old(&self) -> bool {
        self.made.elapsed() > PATIENCE
    }

    /// Records that a page was asked for.
    pub(super) fn used(mut self) -> Self {
        self.made = Instant::now();
        self
    }
}
