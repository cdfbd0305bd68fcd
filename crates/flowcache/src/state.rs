//! State in a specialisation: the entries that the record will depend on, and the changes that each
//! packet makes to them.
#![expect(
    clippy::indexing_slicing,
    reason = "an entry's number is its position in `depends_on`, and each value has a dependency"
)]

use crate::entry_use::{Change, EntryUse, Update};
use crate::findings::Findings;
use crate::host::Functions;
use crate::mutants::RecordMutant;
use crate::recording::Source;
use crate::script::{SlotRef, Step, Sum};
use crate::specialiser::Specialiser;
use crate::value_dependency::ValueDependency;
use braid_ir::model::{StateId, ValueId, Word};
use braid_ir::values::Values;
use braid_state::{Handle, TableRef};

impl<F: Functions> Specialiser<'_, F> {
    /// Looks up an entry. Returns its number among the entries that were found. The inner `None`
    /// means that there is no entry; the record will depend on its absence.
    pub(crate) fn find(
        &mut self,
        values: &Values<'_>,
        node: u16,
        state: StateId,
        key: &[ValueId],
    ) -> Option<Option<usize>> {
        let table = self.functions.table(node, state, self.worker);
        let confuses = self.findings.mutants.has(RecordMutant::LookupConfused);
        if let Some(number) = self.findings.asked.get(table, key, confuses) {
            return Some(number);
        }
        self.findings.fix_all(values, key)?;
        let known = self.findings.depends_on.len();
        let number = self.look_up(values, table, key);
        let Findings { depends_on, recording, .. } = &mut *self.findings;
        let found = (number.unwrap_or(known), number.is_some());
        let shape = self.functions.state().key_shape(table);
        recording.find(values, (table, shape), key, found, &depends_on[..known]);
        self.findings.asked.push(table, key, number);
        Some(number)
    }

    fn look_up(&mut self, values: &Values<'_>, table: TableRef, key: &[ValueId]) -> Option<usize> {
        let (key, entry) = self.functions.peek(table, values, key);
        self.findings.looks_up(1);
        let Findings { depends_on, absent, spare, recording, .. } = &mut *self.findings;
        let Some(entry) = entry else {
            if absent.add(table, key).is_none() {
                // Whether two keys are equal may differ between the flows of a path.
                recording.give_up();
            }
            return None;
        };
        let same = |(one, how): &(Handle, EntryUse)| (how.table, *one) == (table, entry);
        let known = depends_on.iter().position(same);
        let number = known.unwrap_or_else(|| {
            let one = spare.pop().unwrap_or_else(|| EntryUse::of(table));
            depends_on.push((entry, EntryUse { table, ..one }));
            depends_on.len() - 1
        });
        Some(number)
    }

    /// Reads the slots of an entry that was found.
    pub(crate) fn read(
        &mut self,
        values: &mut Values<'_>,
        (node, state, entry): (u16, StateId, Handle),
        outs: &[ValueId],
    ) -> Option<()> {
        let table = self.functions.table(node, state, self.worker);
        let Findings { depends_on, put, dependencies, recording, .. } = &mut *self.findings;
        let is_it = |(one, how): &(Handle, EntryUse)| (how.table, *one) == (table, entry);
        let number = depends_on.iter().position(is_it)?;
        let (store, updates) = (self.functions.state(), &depends_on[number].1.updates);
        let (shape, words) = (store.slot_shape(table), store.slots(table, entry)?);
        let length = self.headers.packet.wire_len;
        for (slot, out) in (0..).zip(outs) {
            let dependency = &mut dependencies[out.index()];
            recording.set_source(*out, Source::Unknown);
            if let Some(put) = put.iter().find(|put| (put.entry, put.slot) == (number, slot)) {
                values.set(*out, put.value);
                *dependency = put.dependency;
                recording.set_source(*out, put.source);
                continue;
            }
            let mut value = shape.get(words, slot as usize);
            let from = SlotRef::new(number, table, shape, slot);
            let update = updates.iter().find(|one| one.slot == slot);
            let (packets, bytes, wraps) = match update.map(|one| one.change) {
                None => {
                    recording.slot(*out, from);
                    (0, 0, None)
                }
                Some(Change::Time) => {
                    values.set(*out, self.now.into());
                    *dependency = ValueDependency::Time;
                    recording.define(*out, |out| Step::Time { out });
                    continue;
                }
                Some(Change::Add { packets, bytes, wraps }) => {
                    let sum = Sum { packets, bytes, wraps, most: values.ty(*out).max() };
                    value = sum.of(value, length);
                    recording.define(*out, |out| Step::Sum { out, from, sum });
                    (packets, bytes, Some(wraps))
                }
            };
            values.set(*out, value);
            *dependency = ValueDependency::Slot { entry: number, slot, packets, bytes, wraps };
        }
        Some(())
    }

    /// Assigns a slot of an entry. `None` unless the record can make the assignment for each
    /// packet, or the slot already holds the value.
    pub(crate) fn assign(
        &mut self,
        values: &Values<'_>,
        number: usize,
        slot: u32,
        id: ValueId,
    ) -> Option<()> {
        let (entry, ref how) = self.findings.depends_on[number];
        let store = self.functions.state();
        let (shape, words) = (store.slot_shape(how.table), store.slots(how.table, entry)?);
        let from = SlotRef::new(number, how.table, shape, slot);
        let old = shape.get(words, slot as usize);
        let is_now = shape.width(slot as usize) == 64 && old <= Word::from(self.functions.now());
        let dependency = self.findings.dependency(id);
        if dependency == ValueDependency::Time && !is_now {
            self.findings.recording.give_up();
        }
        let change = match dependency {
            ValueDependency::Slot { entry, slot: from, packets, bytes, wraps }
                if (entry, from) == (number, slot) =>
            {
                // The value is the slot's content before the packet, perhaps with an addition. It
                // replaces earlier assignments.
                self.findings.forget(number, slot);
                let Some(wraps) = wraps else { return Some(()) };
                let forgets = self.findings.mutants.has(RecordMutant::BytesForgotten);
                Change::Add { packets, bytes: if forgets { 0 } else { bytes }, wraps }
            }
            ValueDependency::Time if is_now => {
                self.findings.forget(number, slot);
                self.findings.recording.test(Step::NotLater { from });
                Change::Time
            }
            _ if self.findings.has_put(number, slot) || self.findings.changes_with_packets(id) => {
                return self.findings.put_dynamic(values, (number, slot), id);
            }
            _ => {
                self.findings.fix(values, id)?;
                self.findings.depends_on[number].1.read(slot);
                self.findings.recording.holds(from, id, old);
                return (values.get(id) == old).then_some(());
            }
        };
        if slot >= 63 {
            return None;
        }
        self.findings.depends_on[number].1.updates.push(Update { slot, change });
        Some(())
    }
}
