//! The position of a table in its store, and its relations to other tables.

use braid_ir::model::StateId;

/// The position of a table in the store, and its relations to other tables, which are named by
/// their numbers in the store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Site {
    pub(crate) node: u16,
    pub(crate) state: StateId,
    pub(crate) shard: u16,
    /// The number of the function's first table in this shard.
    pub(crate) row: usize,
    /// The table with whose entries new entries of this table live.
    pub(crate) partner: Option<usize>,
    /// The table at the end of the chain of partners. Its entries are the roots of groups. A table
    /// without a partner is its own root table.
    pub(crate) root: usize,
    /// Whether this table is its own `root`.
    pub(crate) is_root: bool,
    /// Whether the function has several shards.
    pub(crate) sharded: bool,
    /// Whether a program runs for entries that end.
    pub(crate) runs: bool,
}

impl Site {
    /// The number of the table in its function.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "a model has at most `MAX_STATES` tables")]
    pub(crate) fn number(&self) -> u16 {
        self.state.0 as u16
    }
}
