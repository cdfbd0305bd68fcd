//! The data of entries that lookups do not need.

use crate::memory::NONE;

/// The data of an entry that lookups do not need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cold {
    pub(crate) created_ns: u64,
    /// Unique in the store, and larger than the ids of all older entries.
    pub(crate) id: u64,
    /// The next member of the entry's group.
    pub(crate) next: Next,
    /// The next place in the same slot of the queue of deadlines. It belongs to the place, not to
    /// the entry.
    pub(crate) behind: u32,
    /// The shard that created the entry.
    pub(crate) creator: u16,
}

/// The next member of a group: its place or [`NONE`], and its table's number in the function.
pub(crate) type Next = (u32, u32);

/// The cold data of a place that has had no entry yet.
pub(crate) const COLD: Cold =
    Cold { created_ns: 0, id: 0, next: (NONE, 0), behind: FREE, creator: 0 };

/// In [`Cold::behind`]: the place is not queued.
pub(crate) const FREE: u32 = u32::MAX;
