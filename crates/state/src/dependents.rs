//! The interface for dependents of a store's entries. They are told before an entry changes.

use crate::handle::{Group, Handle, TableRef};
use crate::shape::SlotShape;
use crate::tables::Tables;
use braid_ir::model::Word;

/// Something that depends on entries. An example is flow records: packets that use a record do not
/// touch the entries that it depends on. A store calls its dependents before it changes or shows an
/// entry.
///
/// By default, every method does nothing and costs nothing.
pub trait Dependents {
    /// Whether there are any dependents.
    #[inline(always)]
    fn exist(&self) -> bool {
        false
    }

    /// Whether anything depends on an entry of a group.
    #[inline(always)]
    fn depend_on(&self, _group: Group) -> bool {
        false
    }

    /// A program is about to find an entry of a lazy table ([`Tables::set_lazy`]), in a group that
    /// has dependents.
    #[inline(always)]
    fn entry_found(&mut self, _tables: &mut Tables, _group: Group) {}

    /// A slot of an entry in a group with dependents is about to be assigned a value, at a time.
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

    /// A group would expire unless its dependents renew it.
    #[inline(always)]
    fn group_is_due(&mut self, _tables: &mut Tables, _group: Group) {}

    /// An entry with this key is about to be created.
    #[inline(always)]
    fn entry_will_appear(&mut self, _tables: &mut Tables, _table: TableRef, _key: &[u64]) {}

    /// When a group's dependents were last used (ns). The group counts as seen at that time.
    #[inline(always)]
    fn last_used(&self, _group: Group) -> Option<u64> {
        None
    }

    /// Adds the counts of an entry's dependents to a copy of its slots.
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
