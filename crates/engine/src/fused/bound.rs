//! Conditions on slots that packets of a record count in: they hold as long as the slot is within bounds, so that
//! nothing is asked for each packet.

use super::follow::turned;
use super::probe::{Hang, Probe};
use crate::act::Values;
use braid_ir::model::{CmpOp, ValueId, Word};
use braid_state::{Bound, Change, Handle, RecordBug, TableRef, Update};
use std::cmp::Ordering;

/// A slot that was compared, of an entry by its number.
struct Compared {
    entry: usize,
    slot: u32,
    /// What was added to it before: for the packet, and for each of its bytes.
    packets: i64,
    bytes: u32,
    /// Whether the sum that was compared goes round behind the largest value.
    wraps: bool,
    /// What it must hold in front of the packet at least, and with what was added at most.
    least: Word,
    most: Word,
}

/// What a run without effect knows of counters that are compared.
#[derive(Default)]
pub(super) struct Counters {
    compared: Vec<Compared>,
    /// Slots that are compared before anything is added to them, as an earlier run of the same packet has found.
    known: Vec<(TableRef, Handle, u32)>,
}

impl Counters {
    /// A run starts.
    pub(super) fn start(&mut self) {
        self.compared.clear();
    }

    /// The first run of a packet starts.
    pub(super) fn forget(&mut self) {
        self.known.clear();
    }
}

impl Probe<'_> {
    /// Compares a counter with what hangs on nothing. `None`: it is not one, or has to be looked at for each packet.
    /// `None` within: it is about to come out otherwise.
    pub(super) fn bound(
        &mut self,
        values: &Values<'_>,
        op: CmpOp,
        (a, b): (ValueId, ValueId),
    ) -> Option<Option<Hang>> {
        let (id, with, op) = match (self.hang(a), self.hang(b)) {
            (Hang::Slot { .. }, Hang::Fixed) => (a, b, op),
            (Hang::Fixed, Hang::Slot { .. }) => (b, a, turned(op)),
            _ => return None,
        };
        let Hang::Slot { entry, slot, packets, bytes, wraps } = self.hang(id) else { return None };
        let (handle, ref how) = self.notes.rests_on[entry];
        let table = how.table;
        let counts = wraps.is_some() || self.notes.counters.known.contains(&(table, handle, slot));
        let store = &self.functions.store;
        if !counts || slot >= 63 || !store.may_bound(table, handle, slot) {
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
        let words = store.slots(table, handle)?;
        if store.slot_shape(table).get(words, slot as usize) < least {
            return Some(None);
        }
        let wraps = wraps == Some(true) && !store.has_bug(RecordBug::RoundForgotten);
        let compared = Compared { entry, slot, packets, bytes, wraps, least, most };
        self.notes.counters.compared.push(compared);
        Some(Some(Hang::Fixed))
    }

    /// Makes of comparisons what is to be asked of slots, once all is known that packets add to them; `None` if that
    /// cannot be asked.
    pub(super) fn settle_bounds(&mut self) -> Option<()> {
        let store = &self.functions.store;
        for compared in &self.notes.counters.compared {
            let Compared { entry, slot, packets, bytes, least, most, .. } = compared;
            let (handle, how) = &mut self.notes.rests_on[*entry];
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
            let shape = store.slot_shape(how.table);
            let highest = shape.most(*slot as usize);
            let most = match compared.wraps {
                // The sum must not go round, even if the slot stops at its largest value.
                true => (*most).min(highest),
                // There it stops.
                false if *most >= highest => Word::MAX,
                false => *most,
            };
            let most = most.saturating_add(behind);
            let most = if wraps { most.min(highest) } else { most };
            let bound = Bound { slot: *slot, least: *least, most };
            let value = shape.get(store.slots(how.table, *handle)?, *slot as usize);
            if !how.stays_within(bound, value, self.origin.wire_len) {
                return None;
            }
            how.bound(bound);
        }
        Some(())
    }

    /// Slots that were taken for granted, and count: whether another run can compare them as counters.
    pub(super) fn knows_more_counters(&mut self) -> bool {
        let counters = &mut self.notes.counters;
        if !counters.known.is_empty() {
            return false;
        }
        for (handle, how) in &self.notes.rests_on {
            let slots = how.updates.iter().map(|update| update.slot);
            let both = slots.filter(|slot| how.reads >> slot & 1 == 1);
            counters.known.extend(both.map(|slot| (how.table, *handle, slot)));
        }
        !counters.known.is_empty()
    }
}
