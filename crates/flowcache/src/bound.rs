//! Conditions on slots that packets of a record count in: they hold as long as the slot is within bounds, so that
//! nothing is asked for each packet.

use crate::entry_use::{Bound, Change, Update};
use crate::findings::{Compared, Dependence};
use crate::follow::turned;
use crate::host::Functions;
use crate::mutants::RecordMutant;
use crate::specialiser::Specialiser;
use braid_ir::model::{CmpOp, ValueId, Word};
use braid_ir::values::Values;
use std::cmp::Ordering;

impl<F: Functions> Specialiser<'_, F> {
    /// Compares a counter with what depend on nothing. `None`: it is not one, or has to be looked at for each packet.
    /// `None` within: it is about to come out otherwise.
    pub(crate) fn bound(
        &mut self,
        values: &Values<'_>,
        op: CmpOp,
        (a, b): (ValueId, ValueId),
    ) -> Option<Option<Dependence>> {
        let (id, with, op) = match (self.dependence(a), self.dependence(b)) {
            (Dependence::Slot { .. }, Dependence::Fixed) => (a, b, op),
            (Dependence::Fixed, Dependence::Slot { .. }) => (b, a, turned(op)),
            _ => return None,
        };
        let Dependence::Slot { entry, slot, packets, bytes, wraps } = self.dependence(id) else {
            return None;
        };
        let (handle, ref how) = self.findings.depends_on[entry];
        let table = how.table;
        let counts =
            wraps.is_some() || self.findings.counters.known.contains(&(table, handle, slot));
        let store = self.functions.state();
        let records = store.dependents();
        if !counts || slot >= 63 || !records.may_bound(store.tables(), (table, handle), slot) {
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
        let wraps = wraps == Some(true) && !records.has_mutant(RecordMutant::WrapForgotten);
        let compared = Compared { entry, slot, packets, bytes, wraps, least, most };
        self.findings.counters.compared.push(compared);
        Some(Some(Dependence::Fixed))
    }

    /// Makes of comparisons what is to be asked of slots, once all is known that packets add to them; `None` if that
    /// cannot be asked.
    pub(crate) fn settle_bounds(&mut self) -> Option<()> {
        let store = self.functions.state();
        for compared in &self.findings.counters.compared {
            let Compared { entry, slot, packets, bytes, least, most, .. } = compared;
            let (handle, how) = &mut self.findings.depends_on[*entry];
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
                // The sum must not wrap, even if the slot stops at its largest value.
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
    pub(crate) fn knows_more_counters(&mut self) -> bool {
        let counters = &mut self.findings.counters;
        if !counters.known.is_empty() {
            return false;
        }
        for (handle, how) in &self.findings.depends_on {
            let slots = how.updates.iter().map(|update| update.slot);
            let both = slots.filter(|slot| how.reads >> slot & 1 == 1);
            counters.known.extend(both.map(|slot| (how.table, *handle, slot)));
        }
        !counters.known.is_empty()
    }
}
