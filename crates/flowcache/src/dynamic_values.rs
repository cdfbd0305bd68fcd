//! Makes dynamic values in a specialisation: values that a record computes for each packet.
#![expect(
    clippy::indexing_slicing,
    reason = "the number of an entry is its position in `depends_on`"
)]

use crate::dynamic::{Expr, Operation};
use crate::entry_use::{Change, Update};
use crate::findings::{Findings, Put};
use crate::host::State;
use crate::key::LENGTH;
use crate::value_dependency::ValueDependency;
use braid_ir::model::{BinOp, Op, ValueId, Word};
use braid_ir::values::Values;

impl Findings {
    /// Whether the record must compute the result of an operation for each packet.
    pub(crate) fn is_dynamic(&self, values: &Values<'_>, op: &Op) -> bool {
        let (mut dynamic, mut counted, mut slot, mut length) = (false, false, false, false);
        op.visit_uses(&mut |id| match self.dependency(*id) {
            ValueDependency::Time | ValueDependency::Dynamic(_) => dynamic = true,
            ValueDependency::Slot { bytes, .. } => (slot, counted) = (true, counted || bytes > 0),
            ValueDependency::Number { number: LENGTH, .. } => length = true,
            _ => {}
        });
        let counts = |op: BinOp| matches!(op, BinOp::AddSat | BinOp::AddWrap);
        let relative = |op: BinOp| counts(op) || matches!(op, BinOp::SubSat | BinOp::SubWrap);
        dynamic
            || match *op {
                Op::Bin { op, .. } if slot => !counts(op) && (counted || length),
                Op::Bin { op, .. } => length && !relative(op),
                Op::Cmp { .. } => counted || slot && length,
                Op::Resize { out, a } | Op::Clamp { out, a } => {
                    counted && values.width(out) != values.width(a)
                }
                _ => false,
            }
    }

    /// Follows an operation whose result is a dynamic value.
    pub(crate) fn follow_dynamic(
        &mut self,
        values: &Values<'_>,
        op: &Op,
    ) -> Option<ValueDependency> {
        let most = |out: ValueId| values.ty(out).max();
        let operation = match *op {
            Op::Bin { out, op, a, b } => Operation::Bin(
                op,
                values.width(out),
                self.dynamic(values, a)?,
                self.dynamic(values, b)?,
            ),
            Op::Cmp { op, a, b, .. } => {
                Operation::Cmp(op, self.dynamic(values, a)?, self.dynamic(values, b)?)
            }
            Op::Not { out, a } => Operation::Not(most(out), self.dynamic(values, a)?),
            Op::Resize { out, a } => Operation::Resize(most(out), self.dynamic(values, a)?),
            Op::Clamp { out, a } => Operation::Clamp(most(out), self.dynamic(values, a)?),
            Op::Select { cond, a, b, .. } => {
                self.fix(values, cond)?;
                self.pin(values, cond);
                return Some(self.dependency(if values.truth(cond) { a } else { b }));
            }
            _ => return None,
        };
        Some(ValueDependency::Dynamic(self.path.dynamic.compute(operation)?))
    }

    /// The number of a value among the dynamic values. The value is added if necessary.
    pub(crate) fn dynamic(&mut self, values: &Values<'_>, id: ValueId) -> Option<u8> {
        let width = values.width(id);
        let expr = match self.dependency(id) {
            ValueDependency::Dynamic(number) => return Some(number),
            ValueDependency::Fixed => {
                self.pin(values, id);
                Expr::Const(values.get(id))
            }
            ValueDependency::Time => Expr::Time,
            ValueDependency::Number { number: LENGTH, shift: 0, add: 0 } => Expr::Length,
            ValueDependency::Number { number: LENGTH, shift: 0, add } => {
                let by = Expr::Const(add.unsigned_abs().into());
                let (length, by) =
                    (self.path.dynamic.add(Expr::Length)?, self.path.dynamic.add(by)?);
                let op = if add < 0 { BinOp::SubWrap } else { BinOp::AddWrap };
                Expr::Of(Operation::Bin(op, width, length, by))
            }
            ValueDependency::Slot { entry, slot, packets, bytes, wraps } => {
                return self.dynamic_slot((entry, slot), width, (packets, bytes, wraps));
            }
            _ => return None,
        };
        self.path.dynamic.add(expr)
    }

    /// A slot of an entry, plus the amounts that the packet has added to it so far, as a dynamic
    /// value.
    pub(crate) fn dynamic_slot(
        &mut self,
        (entry, slot): (usize, u32),
        width: u16,
        (packets, bytes, wraps): (i64, u32, Option<bool>),
    ) -> Option<u8> {
        if slot >= 63 {
            return None;
        }
        self.depends_on[entry].1.dynamic |= 1 << slot;
        let dynamic = &mut self.path.dynamic;
        let old = dynamic.add(Expr::Slot(u8::try_from(entry).ok()?, slot))?;
        let Some(wraps) = wraps else { return Some(old) };
        let add = if wraps { BinOp::AddWrap } else { BinOp::AddSat };
        let length = dynamic.add(Expr::Length)?;
        // The addend fits in 64 bits, because the length, `bytes` and `packets` have at most 32
        // bits each. It is then masked or limited to the slot's width.
        let bytes = match bytes {
            1 => length,
            _ => {
                let times = dynamic.add(Expr::Const(bytes.into()))?;
                dynamic.compute(Operation::Bin(BinOp::MulSat, 64, length, times))?
            }
        };
        let more = match packets {
            0 => bytes,
            _ => {
                let op = if packets < 0 { BinOp::SubSat } else { BinOp::AddSat };
                let packets = dynamic.add(Expr::Const(packets.unsigned_abs().into()))?;
                dynamic.compute(Operation::Bin(op, 64, bytes, packets))?
            }
        };
        let most = Word::MAX >> (128 - width);
        let more = dynamic.compute(match wraps {
            true => Operation::Resize(most, more),
            false => Operation::Clamp(most, more),
        })?;
        dynamic.compute(Operation::Bin(add, width, old, more))
    }

    /// Removes the assignment to a slot.
    pub(crate) fn forget(&mut self, entry: usize, slot: u32) {
        let Self { depends_on, put, path, .. } = self;
        let how = &mut depends_on[entry].1;
        how.updates.retain(|update| update.slot != slot);
        how.puts &= !(1_u64.checked_shl(slot).unwrap_or(0));
        put.retain(|put| (put.entry, put.slot) != (entry, slot));
        path.dynamic.forget(entry, slot);
    }

    /// Whether a slot was assigned a dynamic value.
    pub(crate) fn has_put(&self, entry: usize, slot: u32) -> bool {
        self.put.iter().any(|put| (put.entry, put.slot) == (entry, slot))
    }

    /// Whether a value may differ from packet to packet and can be a dynamic value.
    pub(crate) fn changes_with_packets(&self, id: ValueId) -> bool {
        matches!(
            self.dependency(id),
            ValueDependency::Dynamic(_) | ValueDependency::Time | ValueDependency::Slot { .. }
        ) || matches!(self.dependency(id), ValueDependency::Number { number: LENGTH, .. })
    }

    /// Assigns a dynamic value to a slot.
    pub(crate) fn put_dynamic(
        &mut self,
        values: &Values<'_>,
        (entry, slot): (usize, u32),
        id: ValueId,
    ) -> Option<()> {
        let value = self.dynamic(values, id)?;
        if slot >= 63 {
            return None;
        }
        self.forget(entry, slot);
        let Self { depends_on, put, path, recording, .. } = self;
        depends_on[entry].1.puts |= 1 << slot;
        path.dynamic.put(entry, slot, value);
        let (dependency, source) = (ValueDependency::Dynamic(value), recording.source(id));
        put.push(Put { entry, slot, value: values.get(id), dependency, source });
        Some(())
    }

    /// Turns counting slots into slots that are assigned for each packet, if the record also needs
    /// their values for each packet.
    pub(crate) fn count_dynamic(&mut self, state: &State) -> Option<()> {
        for entry in 0..self.depends_on.len() {
            let how = &self.depends_on[entry].1;
            let (table, dynamic) = (how.table, how.dynamic);
            let mut at = 0;
            while let Some(Update { slot, change }) =
                self.depends_on[entry].1.updates.get(at).copied()
            {
                if dynamic >> slot & 1 == 0 {
                    at += 1;
                    continue;
                }
                let width = state.slot_shape(table).width(slot as usize);
                let value = match change {
                    Change::Time => self.path.dynamic.time()?,
                    Change::Add { packets, bytes, wraps } => {
                        self.dynamic_slot((entry, slot), width, (packets, bytes, Some(wraps)))?
                    }
                };
                let Self { depends_on, path, .. } = self;
                let how = &mut depends_on[entry].1;
                how.updates.remove(at);
                how.puts |= 1 << slot;
                path.dynamic.put(entry, slot, value);
            }
        }
        Some(())
    }
}
