//! State in a run without effect: entries that the record will rest on, and what each packet changes in them.

use super::plan::LENGTH;
use super::probe::{Hang, Probe};
use crate::act::{Role, Values};
use braid_ir::model::{StateId, ValueId, Word};
use braid_state::{Change, Handle, RecordBug, Update, Use};

/// An entry that was found.
pub(super) struct Rest {
    node: u16,
    state: StateId,
    pub(super) entry: Handle,
    pub(super) how: Use,
}

impl Rest {
    /// A slot is taken for granted.
    pub(super) fn reads(&mut self, slot: u32) {
        self.how.reads |= 1 << slot.min(63);
    }

    /// Whether no slot that changes is taken for granted.
    pub(super) fn is_consistent(&self) -> bool {
        self.how.reads & (self.how.counts() | self.how.puts) == 0
    }
}

impl Probe<'_> {
    /// Looks an entry up: its number among those that were found, and its handle. `None` within, if the record
    /// will rest on its not being there.
    pub(super) fn find(
        &mut self,
        values: &Values<'_>,
        node: u16,
        state: StateId,
        key: &[ValueId],
    ) -> Option<Option<(usize, Handle)>> {
        self.fix_all(values, key)?;
        self.lookups += 1;
        // As for a timer, for which nothing is renewed.
        let shard = self.functions.instances[usize::from(node)].shard(self.worker);
        let mut act = self.functions.act(node, shard, Role::Timer, self.out);
        let table = act.table(state);
        let Some(entry) = act.with_key(values, key, |act, key| act.find(state, key)) else {
            self.absent.push((table, act.packed_key().into()));
            return Some(None);
        };
        let same = |rest: &Rest| (rest.how.table, rest.entry) == (table, entry);
        let known = self.rests_on.iter().position(same);
        let number = known.unwrap_or_else(|| {
            let how = Use { table, reads: 0, live: 0, puts: 0, updates: Vec::new() };
            self.rests_on.push(Rest { node, state, entry, how });
            self.rests_on.len() - 1
        });
        Some(Some((number, entry)))
    }

    /// Reads the slots of an entry that was found.
    pub(super) fn read(
        &mut self,
        values: &mut Values<'_>,
        (node, state, entry): (u16, StateId, Handle),
        outs: &[ValueId],
    ) -> Option<()> {
        let is_it = |rest: &Rest| (rest.node, rest.state, rest.entry) == (node, state, entry);
        let number = self.rests_on.iter().position(is_it)?;
        let act = self.functions.act_on(node, self.worker, self.out);
        act.read(state, entry, &mut |slot, value| values.set(outs[slot], value));
        let length = Word::from(self.packet.wire_len);
        for (slot, out) in (0..).zip(outs) {
            if let Some(put) = self.put.iter().find(|put| (put.0, put.1) == (number, slot)) {
                values.set(*out, put.2);
                self.hangs[out.index()] = put.3;
                continue;
            }
            let update = self.rests_on[number].how.updates.iter().find(|one| one.slot == slot);
            let (packets, bytes, wraps) = match update.map(|one| one.change) {
                None => (0, 0, None),
                Some(Change::Time) => {
                    self.hangs[out.index()] = Hang::Time;
                    continue;
                }
                Some(Change::Add { packets, bytes, wraps }) => {
                    let by = (Word::from(bytes) * length).saturating_add_signed(packets.into());
                    let most = values.ty(*out).max();
                    let sum = values.get(*out).saturating_add(by);
                    values.set(*out, if wraps { sum & most } else { sum.min(most) });
                    (packets, bytes, Some(wraps))
                }
            };
            self.hangs[out.index()] = Hang::Slot { entry: number, slot, packets, bytes, wraps };
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
        let Rest { node, state, entry, .. } = self.rests_on[number];
        let act = self.functions.act_on(node, self.worker, self.out);
        let mut old: Word = 0;
        act.read(state, entry, &mut |at, value| {
            if at == slot as usize {
                old = value;
            }
        });
        let width = act.model.state[state.index()].slots[slot as usize].1.width;
        let is_now = width == 64 && old <= Word::from(self.functions.now);
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
                self.rests_on[number].reads(slot);
                return (values.get(id) == old).then_some(());
            }
        };
        if slot >= 63 {
            return None;
        }
        self.rests_on[number].how.updates.push(Update { slot, change });
        Some(())
    }

    /// Forgets what a slot was assigned.
    fn forget(&mut self, entry: usize, slot: u32) {
        let how = &mut self.rests_on[entry].how;
        how.updates.retain(|update| update.slot != slot);
        how.puts &= !(1_u64.checked_shl(slot).unwrap_or(0));
        self.put.retain(|put| (put.0, put.1) != (entry, slot));
        self.way.live.forget(entry, slot);
    }

    /// Whether a slot was assigned something that is computed for each packet.
    fn has_put(&self, entry: usize, slot: u32) -> bool {
        self.put.iter().any(|put| (put.0, put.1) == (entry, slot))
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
        self.rests_on[entry].how.puts |= 1 << slot;
        self.way.live.put(entry, slot, value);
        self.put.push((entry, slot, values.get(id), Hang::Live(value)));
        Some(())
    }

    /// Slots that count, and whose values are needed for each packet, too, are assigned for each.
    pub(super) fn count_live(&mut self) -> Option<()> {
        for entry in 0..self.rests_on.len() {
            let Rest { node, state, ref how, .. } = self.rests_on[entry];
            let (live, updates) = (how.live, how.updates.clone());
            for update in updates.into_iter().filter(|update| live >> update.slot & 1 == 1) {
                let slot = update.slot;
                let model = &self.functions.chain.nodes[usize::from(node)].model;
                let width = model.state[state.index()].slots[slot as usize].1.width;
                let value = match update.change {
                    Change::Time => self.way.live.time()?,
                    Change::Add { packets, bytes, wraps } => {
                        self.live_slot((entry, slot), width, (packets, bytes, Some(wraps)))?
                    }
                };
                let how = &mut self.rests_on[entry].how;
                how.updates.retain(|one| one.slot != slot);
                how.puts |= 1 << slot;
                self.way.live.put(entry, slot, value);
            }
        }
        Some(())
    }
}
