//! What depends on the entries of a store, and is told before they change.

use crate::handle::{Group, Handle, TableRef};
use crate::shape::SlotShape;
use crate::tables::Tables;
use braid_ir::model::Word;

/// Something that depends on entries: flow records, which let packets pass without touching the
/// entries that they depend on. A store asks its dependents before it changes or shows an entry.
///
/// Every method does nothing by default, and costs nothing then.
pub trait Dependents {
    /// Whether there are any dependents at all.
    #[inline(always)]
    fn exist(&self) -> bool {
        false
    }

    /// Whether any depends on an entry of a group.
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

    /// When a group's dependents were last used (ns): the group counts as seen then.
    #[inline(always)]
    fn last_used(&self, _group: Group) -> Option<u64> {
        None
    }

    /// Adds to a copy of an entry's slots what its dependents have counted.
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
