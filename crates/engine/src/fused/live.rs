//! What a record still computes for each packet: values that hang on the time, the packet's length, and what
//! slots of state hold then (a token bucket, say). Conditions on them are asked before anything happens.

use super::plan::LENGTH;
use super::probe::{Hang, Probe};
use crate::act::Values;
use braid_ir::arith::{binary, compare};
use braid_ir::model::{BinOp, CmpOp, Op, ValueId, Word};
use braid_packet::Packet;
use braid_state::Store;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Most values of a way.
const MOST: usize = 32;

/// What they are for a packet.
pub(super) type Words = [Word; MOST];

/// Values, conditions on them, and slots that they are assigned to. Values are named by their numbers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Live {
    values: Vec<Expr>,
    /// Values that must be 1 or 0.
    checks: Vec<(u8, bool)>,
    /// What is assigned: the number of an entry among those that the record rests on, its slot.
    puts: Vec<(u8, u32, u8)>,
    /// Tags that the packet must not have.
    lacks: Vec<Arc<str>>,
    /// Entries that the record rests on.
    entries: u8,
}

/// A value, made of earlier ones.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Expr {
    Const(Word),
    /// Bytes of the packet on the wire.
    Length,
    /// The time.
    Time,
    /// What a slot of an entry holds.
    Slot(u8, u32),
    Bin(BinOp, u16, u8, u8),
    Cmp(CmpOp, u8, u8),
    /// The complement, within what is at most.
    Not(Word, u8),
    /// The low bits of it that are set in what is at most.
    Resize(Word, u8),
    /// It, or what is at most.
    Clamp(Word, u8),
}

impl Live {
    pub(super) fn is_empty(&self) -> bool {
        self.checks.is_empty() && self.puts.is_empty() && self.lacks.is_empty()
    }

    /// How much there is to do for each packet: values and what they are assigned to.
    pub(super) fn size(&self) -> u32 {
        (self.values.len() + 2 * self.puts.len()) as u32
    }

    /// Adds a value: its number, if there are not too many.
    fn add(&mut self, expr: Expr) -> Option<u8> {
        let known = self.values.iter().position(|one| *one == expr);
        let number = known.unwrap_or_else(|| {
            self.values.push(expr);
            self.values.len() - 1
        });
        (number < MOST).then_some(number as u8)
    }

    /// A condition.
    pub(super) fn check(&mut self, value: u8, is: bool) {
        if !self.checks.contains(&(value, is)) {
            self.checks.push((value, is));
        }
    }

    /// Packets come without a tag.
    pub(super) fn lack(&mut self, tag: Arc<str>) {
        if !self.lacks.contains(&tag) {
            self.lacks.push(tag);
        }
    }

    /// A slot of an entry that is assigned nothing yet is assigned a value.
    pub(super) fn put(&mut self, entry: usize, slot: u32, value: u8) {
        self.puts.push((entry as u8, slot, value));
    }

    /// A slot of an entry is assigned nothing.
    pub(super) fn forget(&mut self, entry: usize, slot: u32) {
        self.puts.retain(|(one, of, _)| (usize::from(*one), *of) != (entry, slot));
    }

    /// The time.
    pub(super) fn time(&mut self) -> Option<u8> {
        self.add(Expr::Time)
    }

    /// It is for a record that rests on so many entries; `None` if that is too many.
    pub(super) fn rests_on(&mut self, entries: usize) -> Option<()> {
        self.entries = u8::try_from(entries).ok()?;
        Some(())
    }

    /// For a hash: values, but not what is made of them.
    pub(super) fn hash_values<H: Hasher>(&self, state: &mut H) {
        self.values.iter().for_each(|value| value.hash(state));
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.values.clear();
        self.checks.clear();
        self.puts.clear();
        self.lacks.clear();
    }

    /// Does this for a packet that takes the record with this number; false, and nothing has happened, if a condition
    /// does not hold.
    pub(super) fn run(
        &self,
        store: &mut Store,
        record: u32,
        packet: &Packet,
        time: u64,
        words: &mut Words,
    ) -> bool {
        if self.lacks.iter().any(|tag| packet.tags.contains_key(tag)) {
            return false;
        }
        for (at, expr) in self.values.iter().enumerate() {
            let value = |number: u8| words[usize::from(number)];
            words[at] = match *expr {
                Expr::Const(value) => value,
                Expr::Length => packet.wire_len.into(),
                Expr::Time => time.into(),
                Expr::Slot(entry, slot) => {
                    store.record_slot(record, self.behind(entry), slot as usize)
                }
                Expr::Bin(op, width, a, b) => match binary(op, width, value(a), value(b)) {
                    Ok(value) => value,
                    Err(_) => return false,
                },
                Expr::Cmp(op, a, b) => compare(op, value(a), value(b)).into(),
                Expr::Not(most, a) => !value(a) & most,
                Expr::Resize(most, a) => value(a) & most,
                Expr::Clamp(most, a) => value(a).min(most),
            };
        }
        let value = |number: u8| words[usize::from(number)];
        if self.checks.iter().any(|(number, is)| (value(*number) != 0) != *is) {
            return false;
        }
        for (entry, slot, number) in &self.puts {
            let entry = self.behind(*entry);
            store.put_record_slot(record, entry, *slot as usize, value(*number));
        }
        true
    }

    /// Records know their entries from the last one on.
    fn behind(&self, entry: u8) -> usize {
        usize::from(self.entries - 1 - entry)
    }
}

impl Probe<'_> {
    /// Whether the result of an operation can only be computed for each packet.
    pub(super) fn is_live(&self, values: &Values<'_>, op: &Op) -> bool {
        let (mut live, mut counted, mut slot, mut length) = (false, false, false, false);
        op.visit_uses(&mut |id| match self.hang(*id) {
            Hang::Time | Hang::Live(_) => live = true,
            Hang::Slot { bytes, .. } => (slot, counted) = (true, counted || bytes > 0),
            Hang::Number { number: LENGTH, .. } => length = true,
            _ => {}
        });
        let counts = |op: BinOp| matches!(op, BinOp::AddSat | BinOp::AddWrap);
        let relative = |op: BinOp| counts(op) || matches!(op, BinOp::SubSat | BinOp::SubWrap);
        live || match *op {
            Op::Bin { op, .. } if slot => !counts(op) && (counted || length),
            Op::Bin { op, .. } => length && !relative(op),
            Op::Cmp { .. } => counted || slot && length,
            Op::Resize { out, a } | Op::Clamp { out, a } => {
                counted && values.width(out) != values.width(a)
            }
            _ => false,
        }
    }

    /// An operation whose result is computed for each packet.
    pub(super) fn follow_live(&mut self, values: &Values<'_>, op: &Op) -> Option<Hang> {
        let most = |out: ValueId| values.ty(out).max();
        let expr = match *op {
            Op::Bin { out, op, a, b } => {
                Expr::Bin(op, values.width(out), self.live(values, a)?, self.live(values, b)?)
            }
            Op::Cmp { op, a, b, .. } => Expr::Cmp(op, self.live(values, a)?, self.live(values, b)?),
            Op::Not { out, a } => Expr::Not(most(out), self.live(values, a)?),
            Op::Resize { out, a } => Expr::Resize(most(out), self.live(values, a)?),
            Op::Clamp { out, a } => Expr::Clamp(most(out), self.live(values, a)?),
            Op::Select { cond, a, b, .. } => {
                self.fix(values, cond)?;
                return Some(self.hang(if values.truth(cond) { a } else { b }));
            }
            _ => return None,
        };
        Some(Hang::Live(self.notes.way.live.add(expr)?))
    }

    /// A value as one that is computed for each packet.
    pub(super) fn live(&mut self, values: &Values<'_>, id: ValueId) -> Option<u8> {
        let width = values.width(id);
        let expr = match self.hang(id) {
            Hang::Live(number) => return Some(number),
            Hang::Fixed => Expr::Const(values.get(id)),
            Hang::Time => Expr::Time,
            Hang::Number { number: LENGTH, shift: 0, add: 0 } => Expr::Length,
            Hang::Number { number: LENGTH, shift: 0, add } => {
                let by = Expr::Const(add.unsigned_abs().into());
                let (length, by) =
                    (self.notes.way.live.add(Expr::Length)?, self.notes.way.live.add(by)?);
                let op = if add < 0 { BinOp::SubWrap } else { BinOp::AddWrap };
                Expr::Bin(op, width, length, by)
            }
            Hang::Slot { entry, slot, packets, bytes, wraps } => {
                return self.live_slot((entry, slot), width, (packets, bytes, wraps));
            }
            _ => return None,
        };
        self.notes.way.live.add(expr)
    }

    /// A slot of an entry, with what packets add to it.
    pub(super) fn live_slot(
        &mut self,
        (entry, slot): (usize, u32),
        width: u16,
        (packets, bytes, wraps): (i64, u32, Option<bool>),
    ) -> Option<u8> {
        if slot >= 63 {
            return None;
        }
        self.notes.rests_on[entry].1.live |= 1 << slot;
        let live = &mut self.notes.way.live;
        let old = live.add(Expr::Slot(u8::try_from(entry).ok()?, slot))?;
        let Some(wraps) = wraps else { return Some(old) };
        let add = if wraps { BinOp::AddWrap } else { BinOp::AddSat };
        let (length, times) = (live.add(Expr::Length)?, live.add(Expr::Const(bytes.into()))?);
        // What is added has 64 bits at most, and is no larger than the slot can hold, or stops there.
        let bytes = live.add(Expr::Bin(BinOp::MulSat, 64, length, times))?;
        let op = if packets < 0 { BinOp::SubSat } else { BinOp::AddSat };
        let packets = live.add(Expr::Const(packets.unsigned_abs().into()))?;
        let more = live.add(Expr::Bin(op, 64, bytes, packets))?;
        let most = Word::MAX >> (128 - width);
        let more = if wraps { Expr::Resize(most, more) } else { Expr::Clamp(most, more) };
        let more = live.add(more)?;
        live.add(Expr::Bin(add, width, old, more))
    }
}
