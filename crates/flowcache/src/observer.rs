//! Invalidation: reacts when the store is about to change or report entries. Records end, add their
//! counts to the entries, or renew them.

use crate::mutants::RecordMutant;
use crate::records::Records;
use crate::uses::{Takes, bits};
use braid_ir::model::Word;
use braid_state::{Dependents, Group, Handle, SlotShape, TableRef, Tables};

impl Dependents for Records {
    #[inline(always)]
    fn exist(&self) -> bool {
        !self.is_empty()
    }

    #[inline(always)]
    fn depend_on(&self, group: Group) -> bool {
        self.has_links(group)
    }

    /// Adds the counts of records to the slots of an entry that a program finds, and takes the
    /// records' fuel away.
    #[inline(never)]
    #[expect(
        clippy::indexing_slicing,
        reason = "settling and draining do not change the list of records on a group"
    )]
    fn entry_found(&mut self, tables: &mut Tables, group: Group) {
        let takes = self.takes(group, tables);
        if takes.counts == 0 || self.has_mutant(RecordMutant::CountersUnsettled) {
            return;
        }
        for at in 0..self.on(group).len() {
            let record = self.on(group)[at];
            self.settle(tables, record);
            if !self.has_mutant(RecordMutant::FuelKept) {
                self.drain(record);
            }
        }
    }

    /// Ends the records that depend on the slot's value, unless the value stays the same. If the
    /// new value is later than `now`, also ends the records that assign the time to the slot,
    /// because they would set it back.
    #[inline(never)]
    fn slot_will_change(
        &mut self,
        tables: &mut Tables,
        (table, entry): (TableRef, Handle),
        slot: usize,
        value: Word,
        now: u64,
    ) {
        let place = entry.place();
        let slots = bits(table, 1 << slot.min(63));
        let group = tables.group(table, place);
        let Takes { reads, counts, .. } = self.takes(group, tables);
        if (reads | counts) & slots == 0 {
            return;
        }
        let is_same = tables.slot(table, place, slot) == value;
        if is_same || self.has_mutant(RecordMutant::StaleSlot) {
            return;
        }
        let is_late = value > Word::from(now) && !self.has_mutant(RecordMutant::StaleTime);
        self.end_dependent(tables, group, |link, one| {
            let reads = one.reads >> slot.min(63) & 1 == 1;
            let is_it = (one.table, link.place) == (table, place);
            is_it && (reads || is_late && one.is_time(slot))
        });
    }

    #[inline]
    fn group_will_end(&mut self, tables: &mut Tables, group: Group) {
        if self.has_links(group) && !self.has_mutant(RecordMutant::StaleEntry) {
            self.end_dependent(tables, group, |_, _| true);
        }
    }

    #[inline(always)]
    fn entry_will_appear(&mut self, tables: &mut Tables, table: TableRef, key: &[u64]) {
        if self.has_absences() {
            self.end_absent(tables, table, key);
        }
    }

    #[inline(always)]
    fn last_used(&self, group: Group) -> Option<u64> {
        let is_used = self.has_links(group) && !self.has_mutant(RecordMutant::LivenessLost);
        if is_used { self.seen(group) } else { None }
    }

    fn settle_copy(
        &self,
        entry: (TableRef, u32),
        group: Group,
        shape: &SlotShape,
        words: &mut [u64],
    ) {
        if !self.has_mutant(RecordMutant::ReportUnsettled) {
            self.settle_words(entry, group, shape, words);
        }
    }
}
