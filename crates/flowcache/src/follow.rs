//! Follows the dependencies of values through operations, and adds the guards that they need.

use crate::findings::Findings;
use crate::guard::{Guard, Number};
use crate::key::LENGTH;
use crate::mutants::RecordMutant;
use crate::value_dependency::{Origin, ValueDependency};
use braid_ir::model::{BinOp, CmpOp, Op, SetRef, ValueId, Word};
use braid_ir::value::ParamValue;
use braid_ir::values::Values;

/// The largest amount that each packet may add to a slot, not counting the part for its bytes.
const MOST_ADDED: i64 = u32::MAX as i64;

impl Findings {
    /// Fixes a value: makes it the same for all packets of the record. `None` if that is
    /// impossible. A value that depends on a few bits of the packet gets a guard on these bits. A
    /// value of a slot becomes a dependency of the record.
    #[inline(always)]
    pub(crate) fn fix(&mut self, values: &Values<'_>, id: ValueId) -> Option<()> {
        if self.is_fixed(id) { Some(()) } else { self.fix_open(values, id) }
    }

    #[inline(never)]
    #[expect(
        clippy::indexing_slicing,
        reason = "a dependency on a slot holds the number of an entry that was found"
    )]
    fn fix_open(&mut self, values: &Values<'_>, id: ValueId) -> Option<()> {
        let (number, shift, value) = match self.dependency(id) {
            ValueDependency::Fixed => return Some(()),
            ValueDependency::Slot { entry, slot, bytes: 0, .. } => {
                self.depends_on[entry].1.read(slot);
                self.set_dependency(id, ValueDependency::Fixed);
                return Some(());
            }
            ValueDependency::Dynamic(number) if values.width(id) == 1 => {
                self.pin(values, id);
                self.path.dynamic.check(number, values.truth(id));
                self.set_dependency(id, ValueDependency::Fixed);
                return Some(());
            }
            ValueDependency::Time
            | ValueDependency::Dynamic(_)
            | ValueDependency::Slot { .. }
            | ValueDependency::Relative { .. }
            | ValueDependency::Packet => return None,
            ValueDependency::Number { number, shift, add } => {
                (number, shift, i64::try_from(values.get(id)).ok()?.checked_sub(add)?)
            }
            ValueDependency::Bits { number, shift } => {
                (number, shift, i64::try_from(values.get(id)).ok()?)
            }
        };
        self.guards.fix(number, u32::try_from(value).ok()?, shift)?;
        self.set_dependency(id, ValueDependency::Fixed);
        Some(())
    }

    /// As [`Findings::fix`] for a value with TCP flags. Only the flags in `flags` matter.
    pub(crate) fn fix_flags(&mut self, values: &Values<'_>, id: ValueId, flags: u8) -> Option<()> {
        let ValueDependency::Number { number, shift, add: 0 } = self.dependency(id) else {
            return self.fix(values, id);
        };
        let mask = number.mask & u32::from(flags) << shift;
        if mask != 0 {
            let value = u32::try_from(values.get(id)).ok()? << shift & mask;
            self.guards.add(Guard { number: Number { mask, ..number }, least: value, most: value });
        }
        Some(())
    }

    pub(crate) fn fix_all(&mut self, values: &Values<'_>, ids: &[ValueId]) -> Option<()> {
        ids.iter().try_for_each(|id| self.fix(values, *id))
    }

    /// The dependency of an operation's result. `None` if the result is the same for all packets
    /// only when all operands are. The guards that the dependency assumes are added.
    pub(crate) fn follow(
        &mut self,
        params: &[ParamValue],
        values: &Values<'_>,
        op: &Op,
    ) -> Option<ValueDependency> {
        match *op {
            Op::InSet { a, ref set, .. } => {
                self.make_linear(values, a);
                let ValueDependency::Number { number, shift, add } = self.dependency(a) else {
                    return None;
                };
                let stretch = stretch(params, values.get(a), set)?;
                let bound = |value: Word| i64::try_from(value).unwrap_or(i64::MAX);
                let (least, most) = (bound(stretch.0), bound(stretch.1));
                let range = (least.saturating_sub(add), most.saturating_sub(add));
                self.within(values, a, (number, shift), range)?;
                Some(ValueDependency::Fixed)
            }
            Op::Bin { out, op, a, b } => self.follow_bin(values, out, op, (a, b)),
            Op::Cmp { op, a, b, .. } => {
                self.fix_slots(values, &[a, b])?;
                [a, b].into_iter().for_each(|id| self.make_linear(values, id));
                match (self.dependency(a), self.dependency(b)) {
                    (dependency, ValueDependency::Fixed)
                        if dependency != ValueDependency::Fixed =>
                    {
                        self.pin(values, b);
                        self.compare(values, op, a, b)
                    }
                    (ValueDependency::Fixed, dependency)
                        if dependency != ValueDependency::Fixed =>
                    {
                        self.pin(values, a);
                        self.compare(values, op.swapped(), b, a)
                    }
                    _ => None,
                }
            }
            Op::Select { cond, a, b, .. } => {
                self.fix(values, cond)?;
                self.pin(values, cond);
                Some(self.dependency(if values.truth(cond) { a } else { b }))
            }
            Op::Resize { out, a } | Op::Clamp { out, a } => {
                let (to, from) = (values.width(out), values.width(a));
                if to != from {
                    self.make_linear(values, a);
                }
                // A sum wraps or saturates at the width of its slot.
                let same =
                    to == from || !matches!(self.dependency(a), ValueDependency::Slot { .. });
                (to >= from && same).then(|| self.dependency(a))
            }
            _ => None,
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "a number's mask has 32 bits, and the result keeps a part of it"
    )]
    fn follow_bin(
        &mut self,
        values: &Values<'_>,
        out: ValueId,
        op: BinOp,
        (a, b): (ValueId, ValueId),
    ) -> Option<ValueDependency> {
        match (self.dependency(a), self.dependency(b)) {
            (slot @ ValueDependency::Slot { .. }, by) => {
                if let Some(dependency) = self.count(values, op, slot, (b, by)) {
                    self.pin_fixed(values, b);
                    return Some(dependency);
                }
            }
            (by, slot @ ValueDependency::Slot { .. }) => {
                if let Some(dependency) = self.count(values, op, slot, (a, by)) {
                    self.pin_fixed(values, a);
                    return Some(dependency);
                }
            }
            _ => {}
        }
        self.fix_slots(values, &[a, b])?;
        let (packet, fixed) = match (self.dependency(a), self.dependency(b), op) {
            (_, ValueDependency::Fixed, _) => (a, b),
            (ValueDependency::Fixed, _, BinOp::AddWrap | BinOp::AddSat | BinOp::And) => (b, a),
            _ => return None,
        };
        if let Some(dependency) = self.relative(values, out, op, packet) {
            return Some(dependency);
        }
        self.make_linear(values, packet);
        let ValueDependency::Number { number, shift, add } = self.dependency(packet) else {
            return None;
        };
        self.pin(values, fixed);
        let by = i64::try_from(values.get(fixed)).ok()?;
        let add = match op {
            BinOp::AddWrap | BinOp::AddSat => add.checked_add(by)?,
            BinOp::SubWrap | BinOp::SubSat => add.checked_sub(by)?,
            BinOp::And if add == 0 => {
                let bits = values.get(fixed) & Word::from(number.mask >> shift);
                let mask = (bits as u32) << shift;
                return Some(ValueDependency::Bits { number: Number { mask, ..number }, shift });
            }
            _ => return None,
        };
        // The result stays linear in the number as long as it neither wraps nor saturates.
        let most = i64::try_from(values.ty(out).max()).unwrap_or(i64::MAX);
        self.within(values, packet, (number, shift), (-add, most.saturating_sub(add)))?;
        Some(ValueDependency::Number { number, shift, add })
    }

    /// The dependency of a sum: a number in the packet, plus or minus an operand that is the same
    /// for all packets of the flow, modulo the number's width. The record adds any amount, so the
    /// amount is not pinned.
    fn relative(
        &self,
        values: &Values<'_>,
        out: ValueId,
        op: BinOp,
        packet: ValueId,
    ) -> Option<ValueDependency> {
        let wraps = matches!(op, BinOp::AddWrap | BinOp::SubWrap);
        let is_same = values.width(out) == values.width(packet);
        match self.dependency(packet) {
            _ if !wraps || !is_same => None,
            relative @ ValueDependency::Relative { .. } => Some(relative),
            ValueDependency::Number { number, shift: 0, add: 0 }
                if number.is_whole() && values.width(out) == 8 * u16::from(number.len) =>
            {
                let was = u32::try_from(values.get(packet)).ok()?;
                Some(ValueDependency::Relative { origin: Origin::First(number), was })
            }
            _ => None,
        }
    }

    /// The number in the packet, if a value is that number plus an amount that is the same for all
    /// packets of the flow: its place, and the number in this packet.
    pub(crate) fn relative_to(&self, values: &Values<'_>, id: ValueId) -> Option<(Origin, u32)> {
        match self.dependency(id) {
            ValueDependency::Relative { origin, was } => Some((origin, was)),
            ValueDependency::Number { number, shift: 0, add } if number.is_whole() => {
                let was = i64::try_from(values.get(id)).ok()?.checked_sub(add)?;
                Some((Origin::First(number), u32::try_from(was).ok()?))
            }
            _ => None,
        }
    }

    /// Pins the amount in a value that is a number in the packet plus an amount. The amount is then
    /// the same for all flows of the path. With a guard, the sum wraps either for all packets of
    /// the record or for none. Other values stay as they are.
    pub(crate) fn make_linear(&mut self, values: &Values<'_>, id: ValueId) {
        let ValueDependency::Relative { origin: Origin::First(number), was } = self.dependency(id)
        else {
            return;
        };
        let Ok(value) = u32::try_from(values.get(id)) else { return };
        let add = i64::from(value) - i64::from(was);
        self.recording.pin_amount((number, was), id, value);
        self.set_dependency(id, ValueDependency::Number { number, shift: 0, add });
        // The packet itself keeps the sum in this range.
        let most = i64::from(number.mask) - add;
        let _holds = self.within(values, id, (number, 0), (-add, most));
    }

    /// Pins a value that is the same for all packets of the flow.
    pub(crate) fn pin_fixed(&mut self, values: &Values<'_>, id: ValueId) {
        if self.is_fixed(id) {
            self.pin(values, id);
        }
    }

    /// The dependency of a slot's value, or of a sum with it, after an operand is added to it.
    fn count(
        &self,
        values: &Values<'_>,
        op: BinOp,
        to: ValueDependency,
        (id, by): (ValueId, ValueDependency),
    ) -> Option<ValueDependency> {
        let ValueDependency::Slot { entry, slot, packets, bytes, wraps } = to else { return None };
        let wraps = match op {
            BinOp::AddSat if wraps != Some(true) => false,
            BinOp::AddWrap if wraps != Some(false) => true,
            _ => return None,
        };
        let (more, length) = match by {
            ValueDependency::Fixed => (i64::try_from(values.get(id)).ok()?, 0),
            ValueDependency::Number { number: LENGTH, shift: 0, add } => (add, 1),
            _ => return None,
        };
        let packets = packets.checked_add(more).filter(|packets| packets.abs() <= MOST_ADDED)?;
        Some(ValueDependency::Slot {
            entry,
            slot,
            packets,
            bytes: bytes + length,
            wraps: Some(wraps),
        })
    }

    /// Makes the record depend on the values of slots.
    fn fix_slots(&mut self, values: &Values<'_>, ids: &[ValueId]) -> Option<()> {
        let mut ids = ids.iter();
        ids.try_for_each(|id| match self.dependency(*id) {
            ValueDependency::Slot { .. } => self.fix(values, *id),
            _ => Some(()),
        })
    }

    /// Adds a guard that keeps the packet's part of a value in an interval. `None` if the value is
    /// not in the interval now.
    fn within(
        &mut self,
        values: &Values<'_>,
        id: ValueId,
        (number, shift): (Number, u32),
        (least, most): (i64, i64),
    ) -> Option<()> {
        let ValueDependency::Number { add, .. } = self.dependency(id) else { return None };
        let now = i64::try_from(values.get(id)).ok()?.checked_sub(add)?;
        if now < least || now > most {
            return None;
        }
        let all = i64::from(number.mask >> shift);
        let least = least.saturating_sub(i64::from(self.mutants.has(RecordMutant::GuardTooWide)));
        if least > 0 || most < all {
            let bound = |value: i64| u32::try_from(value.clamp(0, all) << shift).ok();
            let guard = Guard { number, least: bound(least)?, most: bound(most)? };
            self.guards.add(guard);
        }
        Some(())
    }

    /// Compares bits of the packet with a fixed value.
    fn compare(
        &mut self,
        values: &Values<'_>,
        op: CmpOp,
        id: ValueId,
        with: ValueId,
    ) -> Option<ValueDependency> {
        let (number, shift, add) = match self.dependency(id) {
            ValueDependency::Number { number, shift, add } => (number, shift, add),
            ValueDependency::Bits { number, shift } if matches!(op, CmpOp::Eq | CmpOp::Ne) => {
                let value = u32::try_from(values.get(id) << shift).ok()?;
                self.guards.add(Guard { number, least: value, most: value });
                return Some(ValueDependency::Fixed);
            }
            _ => return None,
        };
        let value = i64::try_from(values.get(id)).ok()?;
        // All constants above the largest possible value give the same result.
        let with = i64::try_from(values.get(with)).unwrap_or(i64::MAX).min(1 << 40);
        let below = (i64::MIN, with - 1);
        let (up_to, from, above) = ((i64::MIN, with), (with, i64::MAX), (with + 1, i64::MAX));
        let (least, most) = match op {
            CmpOp::Lt | CmpOp::Ge => {
                if value < with {
                    below
                } else {
                    from
                }
            }
            CmpOp::Le | CmpOp::Gt => {
                if value <= with {
                    up_to
                } else {
                    above
                }
            }
            CmpOp::Eq | CmpOp::Ne => {
                if value == with {
                    (with, with)
                } else if value < with {
                    below
                } else {
                    above
                }
            }
        };
        let range = (least.saturating_sub(add), most.saturating_sub(add));
        self.within(values, id, (number, shift), range)?;
        Some(ValueDependency::Fixed)
    }
}

/// The largest interval around `value` that lies either completely in a set or completely outside
/// it.
#[expect(clippy::indexing_slicing, reason = "a verified model names only its own parameters")]
fn stretch(params: &[ParamValue], value: Word, set: &SetRef) -> Option<(Word, Word)> {
    let set = match set {
        SetRef::Const(set) => set,
        SetRef::Param(param) => match &params[param.index()] {
            ParamValue::Set(set) => set,
            _ => return None,
        },
        SetRef::List(..) => return None,
    };
    let (mut least, mut most) = (0, Word::MAX);
    for &(low, high) in set.intervals() {
        if value < low {
            most = most.min(low - 1);
        } else if value > high {
            least = least.max(high + 1);
        } else {
            return Some((low, high));
        }
    }
    Some((least, most))
}
