//! Conditions on slots that packets of a record count in: they hold as long as the slot is within bounds, so that
//! nothing is asked for each packet.

use crate::dependence::Dependence;
use crate::entry_use::{Bound, Change, EntryUse, Update};
use crate::host::State;
use crate::mutants::RecordMutant;
use braid_ir::model::{CmpOp, ValueId, Word};
use braid_ir::values::Values;
use braid_state::{Handle, TableRef};
use std::cmp::Ordering;

/// A slot that was compared, of an entry by its number.
pub(crate) struct Compared {
    pub(crate) entry: usize,
    pub(crate) slot: u32,
    /// What was added to it before: for the packet, and for each of its bytes.
    pub(crate) packets: i64,
    pub(crate) bytes: u32,
    /// Whether the sum that was compared wraps.
    pub(crate) wraps: bool,
    /// What it must hold in front of the packet at least, and with what was added at most.
    pub(crate) least: Word,
    pub(crate) most: Word,
}

/// The counters that a specialisation compares.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) compared: Vec<Compared>,
    /// Slots that are compared before anything is added to them, as an earlier run of the same packet has found.
    pub(crate) known: Vec<(TableRef, Handle, u32)>,
}

impl Counters {
    /// A run starts.
    pub(crate) fn start(&mut self) {
        self.compared.clear();
    }

    /// The first run of a packet starts.
    pub(crate) fn forget(&mut self) {
        self.known.clear();
    }

    /// Compares a counter with what depend on nothing. `None`: it is not one, or has to be looked at for each packet.
    /// `None` within: it is about to come out otherwise.
    pub(crate) fn compare(
        &mut self,
        (state, entries): (&State, &[(Handle, EntryUse)]),
        values: &Values<'_>,
        op: CmpOp,
        (a, b): ((ValueId, Dependence), (ValueId, Dependence)),
    ) -> Option<Option<Dependence>> {
        let (id, with, op, slot) = match (a.1, b.1) {
            (slot @ Dependence::Slot { .. }, Dependence::Fixed) => (a.0, b.0, op, slot),
            (Dependence::Fixed, slot @ Dependence::Slot { .. }) => (b.0, a.0, turned(op), slot),
            _ => return None,
        };
        let Dependence::Slot { entry, slot, packets, bytes, wraps } = slot else { return None };
        let (handle, ref how) = entries[entry];
        let table = how.table;
        let counts = wraps.is_some() || self.known.contains(&(table, handle, slot));
        let records = state.dependents();
        if !counts || slot >= 63 || !records.may_bound(state.tables(), (table, handle), slot) {
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
        Some(Some(Dependence::Fixed))
    }

    /// Makes of comparisons what is to be asked of slots, once all is known that packets add to them; `None` if that
    /// cannot be asked.
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
                // It stays as it is.
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
            // What each packet adds behind the comparison; its bytes are looked at as if all were added before.
            let behind = Word::try_from(all.checked_sub(*packets)?).ok()?;
            let shape = state.slot_shape(how.table);
            let highest = shape.most(*slot as usize);
            let most = match compared.wraps {
                // The sum must not wrap, even if the slot stops at its largest value.
                true => (*most).min(highest),
                // There it stops.
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

    /// Slots that were taken for granted, and count: whether another run can compare them as counters.
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

/// A comparison with its operands exchanged.
pub(crate) fn turned(op: CmpOp) -> CmpOp {
    match op {
        CmpOp::Eq | CmpOp::Ne => op,
        CmpOp::Lt => CmpOp::Gt,
        CmpOp::Le => CmpOp::Ge,
        CmpOp::Gt => CmpOp::Lt,
        CmpOp::Ge => CmpOp::Le,
    }
}
