//! State in a run without effect: entries that the record will rest on, and what each packet changes in them.

use super::plan::LENGTH;
use super::probe::{Hang, Notes, Probe};
use crate::act::Values;
use braid_ir::model::{StateId, ValueId, Word};
use braid_state::{Change, Handle, RecordBug, TableRef, Update, Use};

/// What was looked up so far: by the values that a key is made of, which stay as they are, like state.
#[derive(Default)]
pub(super) struct Asked {
    parts: Vec<ValueId>,
    /// The table, where the parts end, and the number of the entry among those that were found.
    all: Vec<(TableRef, usize, Option<usize>)>,
}

impl Asked {
    fn push(&mut self, table: TableRef, parts: &[ValueId], found: Option<usize>) {
        self.parts.extend_from_slice(parts);
        self.all.push((table, self.parts.len(), found));
    }

    /// What was found by a key made of the same values, if it was asked for.
    fn get(&self, table: TableRef, parts: &[ValueId], confuses: bool) -> Option<Option<usize>> {
        let is_it = |(one, end, _): &&(TableRef, usize, _)| {
            *one == table && (confuses || self.parts[..*end].ends_with(parts))
        };
        self.all.iter().find(is_it).map(|(_, _, found)| *found)
    }

    pub(super) fn clear(&mut self) {
        self.parts.clear();
        self.all.clear();
    }
}

impl Probe<'_> {
    /// Looks an entry up: its number among those that were found. `None` within, if the record will rest on its not
    /// being there.
    pub(super) fn find(
        &mut self,
        values: &Values<'_>,
        node: u16,
        state: StateId,
        key: &[ValueId],
    ) -> Option<Option<usize>> {
        let table = self.functions.table(node, state, self.worker);
        let confuses = self.functions.store.has_bug(RecordBug::LookupConfused);
        if let Some(number) = self.notes.asked.get(table, key, confuses) {
            return Some(number);
        }
        self.fix_all(values, key)?;
        let number = self.look_up(values, table, key);
        self.notes.asked.push(table, key, number);
        Some(number)
    }

    fn look_up(&mut self, values: &Values<'_>, table: TableRef, key: &[ValueId]) -> Option<usize> {
        let (key, entry) = self.functions.peek(table, values, key);
        let Notes { rests_on, absent, lookups, spare, .. } = &mut *self.notes;
        *lookups += 1;
        let Some(entry) = entry else {
            absent.push(table, key);
            return None;
        };
        let same = |(one, how): &(Handle, Use)| (how.table, *one) == (table, entry);
        let known = rests_on.iter().position(same);
        let number = known.unwrap_or_else(|| {
            let one = spare.pop().unwrap_or_else(|| Use::of(table));
            rests_on.push((entry, Use { table, ..one }));
            rests_on.len() - 1
        });
        Some(number)
    }

    /// Reads the slots of an entry that was found.
    pub(super) fn read(
        &mut self,
        values: &mut Values<'_>,
        (node, state, entry): (u16, StateId, Handle),
        outs: &[ValueId],
    ) -> Option<()> {
        let table = self.functions.table(node, state, self.worker);
        let Notes { rests_on, put, hangs, .. } = &mut *self.notes;
        let is_it = |(one, how): &(Handle, Use)| (how.table, *one) == (table, entry);
        let number = rests_on.iter().position(is_it)?;
        let (store, updates) = (&self.functions.store, &rests_on[number].1.updates);
        let (shape, words) = (store.slot_shape(table), store.slots(table, entry)?);
        let length = Word::from(self.packet.wire_len);
        for (slot, out) in (0..).zip(outs) {
            let hang = &mut hangs[out.index()];
            if let Some(put) = put.iter().find(|put| (put.0, put.1) == (number, slot)) {
                values.set(*out, put.2);
                *hang = put.3;
                continue;
            }
            let mut value = shape.get(words, slot as usize);
            let update = updates.iter().find(|one| one.slot == slot);
            let (packets, bytes, wraps) = match update.map(|one| one.change) {
                None => (0, 0, None),
                Some(Change::Time) => {
                    values.set(*out, value);
                    *hang = Hang::Time;
                    continue;
                }
                Some(Change::Add { packets, bytes, wraps }) => {
                    let by = (Word::from(bytes) * length).saturating_add_signed(packets.into());
                    let (sum, most) = (value.saturating_add(by), values.ty(*out).max());
                    value = if wraps { sum & most } else { sum.min(most) };
                    (packets, bytes, Some(wraps))
                }
            };
            values.set(*out, value);
            *hang = Hang::Slot { entry: number, slot, packets, bytes, wraps };
        }
        Some(())
    }

    /// Assigns a slot of an entry: something that a record can do for each packet, or what it holds anyway.
    pub(super) fn assign(
        &mut self,
        values: &Values<'_>,
        number: usize,
        slot: u32,
        id: ValueId,
    ) -> Option<()> {
        let (entry, ref how) = self.notes.rests_on[number];
        let store = &self.functions.store;
        let (shape, words) = (store.slot_shape(how.table), store.slots(how.table, entry)?);
        let old = shape.get(words, slot as usize);
        let is_now = shape.width(slot as usize) == 64 && old <= Word::from(self.functions.now);
        let change = match self.hang(id) {
            Hang::Slot { entry, slot: from, packets, bytes, wraps }
                if (entry, from) == (number, slot) =>
            {
                // What it held before, perhaps with something added, whatever it was assigned since.
                self.forget(number, slot);
                let Some(wraps) = wraps else { return Some(()) };
                let forgets = self.functions.store.has_bug(RecordBug::BytesForgotten);
                Change::Add { packets, bytes: if forgets { 0 } else { bytes }, wraps }
            }
            Hang::Time if is_now => {
                self.forget(number, slot);
                Change::Time
            }
            _ if self.has_put(number, slot) || self.changes_with_packets(id) => {
                return self.put_live(values, (number, slot), id);
            }
            _ => {
                self.fix(values, id)?;
                self.notes.rests_on[number].1.read(slot);
                return (values.get(id) == old).then_some(());
            }
        };
        if slot >= 63 {
            return None;
        }
        self.notes.rests_on[number].1.updates.push(Update { slot, change });
        Some(())
    }

    /// Forgets what a slot was assigned.
    fn forget(&mut self, entry: usize, slot: u32) {
        let Notes { rests_on, put, way, .. } = &mut *self.notes;
        let how = &mut rests_on[entry].1;
        how.updates.retain(|update| update.slot != slot);
        how.puts &= !(1_u64.checked_shl(slot).unwrap_or(0));
        put.retain(|put| (put.0, put.1) != (entry, slot));
        way.live.forget(entry, slot);
    }

    /// Whether a slot was assigned something that is computed for each packet.
    fn has_put(&self, entry: usize, slot: u32) -> bool {
        self.notes.put.iter().any(|put| (put.0, put.1) == (entry, slot))
    }

    /// Whether a value is another one for each packet, and can be computed.
    fn changes_with_packets(&self, id: ValueId) -> bool {
        matches!(self.hang(id), Hang::Live(_) | Hang::Time | Hang::Slot { .. })
            || matches!(self.hang(id), Hang::Number { number: LENGTH, .. })
    }

    /// Assigns a slot something that is computed for each packet.
    fn put_live(
        &mut self,
        values: &Values<'_>,
        (entry, slot): (usize, u32),
        id: ValueId,
    ) -> Option<()> {
        let value = self.live(values, id)?;
        if slot >= 63 {
            return None;
        }
        self.forget(entry, slot);
        let Notes { rests_on, put, way, .. } = &mut *self.notes;
        rests_on[entry].1.puts |= 1 << slot;
        way.live.put(entry, slot, value);
        put.push((entry, slot, values.get(id), Hang::Live(value)));
        Some(())
    }

    /// Slots that count, and whose values are needed for each packet, too, are assigned for each.
    pub(super) fn count_live(&mut self) -> Option<()> {
        for entry in 0..self.notes.rests_on.len() {
            let how = &self.notes.rests_on[entry].1;
            let (table, live) = (how.table, how.live);
            let mut at = 0;
            while let Some(Update { slot, change }) =
                self.notes.rests_on[entry].1.updates.get(at).copied()
            {
                if live >> slot & 1 == 0 {
                    at += 1;
                    continue;
                }
                let width = self.functions.store.slot_shape(table).width(slot as usize);
                let value = match change {
                    Change::Time => self.notes.way.live.time()?,
                    Change::Add { packets, bytes, wraps } => {
                        self.live_slot((entry, slot), width, (packets, bytes, Some(wraps)))?
                    }
                };
                let Notes { rests_on, way, .. } = &mut *self.notes;
                let how = &mut rests_on[entry].1;
                how.updates.remove(at);
                how.puts |= 1 << slot;
                way.live.put(entry, slot, value);
            }
        }
        Some(())
    }
}
