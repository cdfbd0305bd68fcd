//! References to tables and entries, which callers of a store keep.

/// A table of a store, for a shard.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TableRef(pub(crate) u32);

/// The tables of a function's state for all workers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TableLocator {
    /// The number of the first shard's table.
    pub(crate) first: u32,
    /// The distance from one shard's table to the table of the next shard.
    pub(crate) step: u32,
    /// The last shard.
    pub(crate) last: u16,
    /// Whether entries of other tables live with the entries of this table.
    pub(crate) is_partner: bool,
}

/// A reference to an entry of a table: its place, and its generation there. The handle is valid
/// until the entry ends. Afterwards it refers to no entry until 2^31 other entries have used the
/// place.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Handle(u64);

/// A group of entries that live together, named by its root: the number of the root's table, and
/// the root's number in the table.
pub type Group = (usize, usize);

impl TableLocator {
    /// The table for a worker.
    #[must_use]
    #[inline]
    pub fn table(self, worker: u16) -> TableRef {
        // The sum wraps, but real table numbers do not reach 2^32.
        TableRef(self.first.wrapping_add(u32::from(worker.min(self.last)).wrapping_mul(self.step)))
    }

    /// Whether entries of other tables live with the entries of this table.
    #[must_use]
    #[inline]
    pub fn is_partner(self) -> bool {
        self.is_partner
    }
}

impl TableRef {
    /// The table as a number, for machine code.
    #[must_use]
    #[inline]
    pub fn to_bits(self) -> u32 {
        self.0
    }

    /// The table with a number from [`TableRef::to_bits`].
    #[must_use]
    #[inline]
    pub fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// The table at this position.
    #[expect(clippy::cast_possible_truncation, reason = "no memory holds 2^32 tables")]
    pub(crate) fn at(index: usize) -> Self {
        Self(index as u32)
    }

    /// The table's position among all tables of its store.
    #[must_use]
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl Handle {
    /// The handle as a number, for machine code.
    #[must_use]
    #[inline]
    pub fn to_bits(self) -> u64 {
        self.0
    }

    /// The handle with a number from [`Handle::to_bits`]. Any other number gives a handle of an
    /// arbitrary entry or of none.
    #[must_use]
    #[inline]
    pub fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The handle of the entry at a place, from the entry's first word.
    #[inline]
    pub(crate) fn of(head: u64, place: u32) -> Self {
        Self(head >> 32 << 32 | u64::from(place))
    }

    /// The entry's place in its table.
    #[must_use]
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the lower half is the place")]
    pub fn place(self) -> u32 {
        self.0 as u32
    }

    #[inline]
    pub(crate) fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }
}
