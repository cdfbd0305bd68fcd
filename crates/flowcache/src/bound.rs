//! Conditions on counting slots: slots that the packets of a record increase or decrease. Such a
//! condition holds while the slot's value stays within bounds, so no packet needs to test it.
#![expect(
    clippy::indexing_slicing,
    reason = "a dependency on a slot holds the number of an entry that was found"
)]

use crate::entry_use::{Bound, Change, EntryUse, Update};
use crate::host::State;
use crate::mutants::RecordMutant;
use crate::recording::Recording;
use crate::script::SlotRef;
use crate::value_dependency::ValueDependency;
use braid_ir::model::{CmpOp, ValueId, Word};
use braid_ir::values::Values;
use braid_state::{Handle, TableRef};
use std::cmp::Ordering;

/// A comparison of a slot with a fixed value. `entry` is a number among the entries that were
/// found.
pub(crate) struct Compared {
    pub(crate) entry: usize,
    pub(crate) slot: u32,
    /// The amounts that the program added to the slot before the comparison: per packet, and per
    /// byte of the packet.
    pub(crate) packets: i64,
    pub(crate) bytes: u32,
    /// Whether the compared sum wraps.
    pub(crate) wraps: bool,
    /// The least value that the slot may have before the packet, and the largest value that the
    /// compared sum may have.
    pub(crate) least: Word,
    pub(crate) most: Word,
}

/// The counting slots that a specialisation compares.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) compared: Vec<Compared>,
    /// Counting slots that are compared before anything is added to them. An earlier run for the
    /// same packet has found that they count.
    pub(crate) known: Vec<(TableRef, Handle, u32)>,
}

impl Counters {
    /// Starts a run.
    pub(crate) fn start(&mut self) {
        self.compared.clear();
    }

    /// Starts the first run for a packet.
    pub(crate) fn forget(&mut self) {
        self.known.clear();
    }

    /// Compares a counting slot with a fixed value. Returns `None` if no operand is a counting
    /// slot, or if each packet must test the condition. Returns `Some(None)` if no bound on the
    /// slot keeps the result the same.
    pub(crate) fn compare(
        &mut self,
        recording: &mut Recording,
        (state, entries): (&State, &[(Handle, EntryUse)]),
        values: &Values<'_>,
        op: CmpOp,
        (a, b): ((ValueId, ValueDependency), (ValueId, ValueDependency)),
    ) -> Option<Option<ValueDependency>> {
        let (id, with, op, slot) = match (a.1, b.1) {
            (slot @ ValueDependency::Slot { .. }, ValueDependency::Fixed) => (a.0, b.0, op, slot),
            (ValueDependency::Fixed, slot @ ValueDependency::Slot { .. }) => {
                (b.0, a.0, op.swapped(), slot)
            }
            _ => return None,
        };
        let ValueDependency::Slot { entry, slot, packets, bytes, wraps } = slot else {
            return None;
        };
        let (handle, ref how) = entries[entry];
        let table = how.table;
        let counts = wraps.is_some() || self.known.contains(&(table, handle, slot));
        let records = state.dependents();
        if !counts || slot >= 63 {
            return None;
        }
        let may = records.may_bound(state.tables(), (table, handle), slot);
        let from = SlotRef::new(entry, table, state.slot_shape(table), slot);
        recording.may_bound(from, may);
        if !may {
            return None;
        }
        let (value, with) = (values.get(id), values.get(with));
        let is_below = match (op, value.cmp(&with)) {
            (CmpOp::Lt | CmpOp::Ge, order) => order == Ordering::Less,
            (CmpOp::Le | CmpOp::Gt, order) => order != Ordering::Greater,
            (CmpOp::Eq | CmpOp::Ne, Ordering::Equal) => return Some(None),
            (CmpOp::Eq | CmpOp::Ne, order) => order == Ordering::Less,
        };
        let may_be_equal = matches!(op, CmpOp::Le | CmpOp::Gt) == is_below;
        let is_strict = matches!(op, CmpOp::Eq | CmpOp::Ne) || !may_be_equal;
        let by = Word::from(is_strict);
        let (least, most) = if is_below {
            (0, with.saturating_sub(by))
        } else {
            let added = Word::try_from(packets).unwrap_or(0);
            (with.saturating_add(by).saturating_sub(added), Word::MAX)
        };
        let words = state.slots(table, handle)?;
        if state.slot_shape(table).get(words, slot as usize) < least {
            return Some(None);
        }
        let wraps = wraps == Some(true) && !records.has_mutant(RecordMutant::WrapForgotten);
        let compared = Compared { entry, slot, packets, bytes, wraps, least, most };
        self.compared.push(compared);
        Some(Some(ValueDependency::Fixed))
    }

    /// Turns the comparisons into bounds of slots. By now the run has recorded the amounts that
    /// each packet adds to the slots. Returns `None` if a comparison gives no bound.
    pub(crate) fn settle(
        &self,
        state: &State,
        entries: &mut [(Handle, EntryUse)],
        wire_len: u32,
    ) -> Option<()> {
        for compared in &self.compared {
            let Compared { entry, slot, packets, bytes, least, most, .. } = compared;
            let (handle, how) = &mut entries[*entry];
            let Some(update) = how.updates.iter().find(|update| update.slot == *slot).copied()
            else {
                // The packets do not change the slot.
                how.read(*slot);
                continue;
            };
            let Update { change: Change::Add { packets: all, bytes: of_all, wraps }, .. } = update
            else {
                return None;
            };
            if of_all < *bytes {
                return None;
            }
            // The amount that each packet adds after the comparison. All bytes count as added
            // before the comparison.
            let behind = Word::try_from(all.checked_sub(*packets)?).ok()?;
            let shape = state.slot_shape(how.table);
            let highest = shape.most(*slot as usize);
            let most = match compared.wraps {
                // The bound must keep the sum from wrapping, even if the slot itself saturates.
                true => (*most).min(highest),
                // The slot saturates at a value that still satisfies the condition.
                false if *most >= highest => Word::MAX,
                false => *most,
            };
            let most = most.saturating_add(behind);
            let most = if wraps { most.min(highest) } else { most };
            let bound = Bound { slot: *slot, least: *least, most };
            let value = shape.get(state.slots(how.table, *handle)?, *slot as usize);
            if !how.stays_within(bound, value, wire_len) {
                return None;
            }
            how.bound(bound);
        }
        Some(())
    }

    /// Collects the counting slots on whose values this run depends. Returns true if another run
    /// can replace these dependencies by bounds.
    pub(crate) fn knows_more(&mut self, entries: &[(Handle, EntryUse)]) -> bool {
        if !self.known.is_empty() {
            return false;
        }
        for (handle, how) in entries {
            let slots = how.updates.iter().map(|update| update.slot);
            let both = slots.filter(|slot| how.reads >> slot & 1 == 1);
            self.known.extend(both.map(|slot| (how.table, *handle, slot)));
        }
        !self.known.is_empty()
    }
}
