//! The interface for dependents of a store's entries. The store tells them before an entry changes.

use crate::handle::{Group, Handle, TableRef};
use crate::shape::SlotShape;
use crate::tables::Tables;
use braid_ir::model::Word;

/// Something that depends on entries, such as flow records. Packets that take a record do not touch
/// the entries that the record depends on. So a store calls its dependents before it changes or
/// reports an entry.
///
/// By default, every method does nothing and costs nothing.
pub trait Dependents {
    /// Whether there are any dependents. The store asks this first, to avoid the other calls.
    #[inline(always)]
    fn exist(&self) -> bool {
        false
    }

    /// Whether anything depends on an entry of a group.
    #[inline(always)]
    fn depend_on(&self, _group: Group) -> bool {
        false
    }

    /// A program is about to find an entry of a lazy table ([`Tables::set_lazy`]). The entry's
    /// group has dependents.
    #[inline(always)]
    fn entry_found(&mut self, _tables: &mut Tables, _group: Group) {}

    /// A program is about to assign a value to a slot at the time `now` (ns). The entry's group has
    /// dependents.
    #[inline(always)]
    fn slot_will_change(
        &mut self,
        _tables: &mut Tables,
        _entry: (TableRef, Handle),
        _slot: usize,
        _value: Word,
        _now: u64,
    ) {
    }

    /// A group of entries is about to end.
    #[inline(always)]
    fn group_will_end(&mut self, _tables: &mut Tables, _group: Group) {}

    /// An entry with this key is about to be created.
    #[inline(always)]
    fn entry_will_appear(&mut self, _tables: &mut Tables, _table: TableRef, _key: &[u64]) {}

    /// When a group's dependents were last used (ns). The group counts as seen at that time, so the
    /// store asks before the group expires and for reports. `None` if they were not used.
    #[inline(always)]
    fn last_used(&self, _group: Group) -> Option<u64> {
        None
    }

    /// Adds the counts of an entry's dependents to a copy of its slots, for a report.
    #[inline(always)]
    fn settle_copy(
        &self,
        _entry: (TableRef, u32),
        _group: Group,
        _shape: &SlotShape,
        _words: &mut [u64],
    ) {
    }
}

/// Nothing depends on the entries.
impl Dependents for () {}
