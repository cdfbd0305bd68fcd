//! The data of entries that lookups do not need.

use crate::index::Spot;
use crate::memory::NONE;

/// The data of an entry that lookups do not need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cold {
    pub(crate) created_ns: u64,
    /// Unique in the store, and larger than the ids of all older entries.
    pub(crate) id: u64,
    /// The place of the next member of the entry's group, or [`NONE`].
    pub(crate) next: u32,
    /// Where the index has the entry.
    pub(crate) spot: Spot,
    /// The shard that created the entry.
    pub(crate) creator: u16,
    /// The number in the function of the next member's table. A model has at most
    /// [`MAX_STATES`](braid_ir::model::MAX_STATES) tables.
    pub(crate) next_state: u16,
    /// Whether the queue of deadlines holds the place. This belongs to the place, not to the entry.
    pub(crate) is_queued: bool,
}

const _: () = assert!(size_of::<Cold>() == 32, "two fit into a cache line");

/// The next member of a group: its place or [`NONE`], and its table's number in the function.
pub(crate) type Next = (u32, u16);

/// The cold data of a place that has had no entry yet.
pub(crate) const COLD: Cold = Cold {
    created_ns: 0,
    id: 0,
    next: NONE,
    spot: Spot::NONE,
    creator: 0,
    next_state: 0,
    is_queued: false,
};
