//! The steps of a script: the work that remains for a flow if its path is known.
//!
//! A step computes values from the packet, from state and from parameters into registers, or tests
//! something. A test that fails ends the script without a record. Registers have [`ValueId`]s, so
//! that operations and lookups can name them.

use crate::host::Functions;
use crate::path::Search;
use braid_ir::arith::{binary, compare};
use braid_ir::engine::Outputs;
use braid_ir::model::{BinOp, CmpOp, Op, ParamId, Ty, ValueId, Word};
use braid_ir::residual::RuleFields;
use braid_ir::values::Values;
use braid_packet::{Bits, Field};
use braid_state::TableRef;

/// A step of a script. `out` is the register that it assigns.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Step {
    /// A constant.
    Const { out: ValueId, value: Word },
    /// Bits of the packet's first bytes on arrival.
    Bits { out: ValueId, bits: Bits },
    /// A field of the packet on arrival.
    Field { out: ValueId, field: Field },
    /// The packet's length on the wire, plus `longer`.
    Length { out: ValueId, longer: i64 },
    /// The time.
    Time { out: ValueId },
    /// A slot of an entry that the script has found.
    Slot { out: ValueId, from: SlotRef },
    /// A slot of an entry that the script has found, after the path has counted in it.
    Sum { out: ValueId, from: SlotRef, sum: Sum },
    /// An operation on registers.
    Calc { out: ValueId, calc: Calc },
    /// An operation that needs more than registers.
    Call(Box<Call>),
    /// The lookup of a rule.
    Classify(Box<Classify>),
    /// The lookup of an entry.
    Find(Box<Find>),
    /// Tests that the packet's payload contains none of the patterns.
    Search(Search),
    /// Whether a record may have bounds on a slot, beside the records that use it already.
    MayBound { out: ValueId, from: SlotRef },
    /// Tests that a slot holds a value.
    Holds { from: SlotRef, value: ValueId },
    /// Tests that a slot holds no later time than now.
    NotLater { from: SlotRef },
    /// Tests that a register holds a value. If it does not, the script may go on elsewhere: at the
    /// branch with this number.
    Pin { register: ValueId, value: Word, branch: u32 },
}

/// A slot of an entry that the script has found. `entry` is the entry's number.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct SlotRef {
    pub(crate) entry: usize,
    pub(crate) table: TableRef,
    pub(crate) slot: u32,
}

/// What a path has added to a slot: `packets`, and `bytes` for each byte of the packet on the wire.
/// The sum wraps or saturates at `most`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Sum {
    pub(crate) packets: i64,
    pub(crate) bytes: u32,
    pub(crate) wraps: bool,
    pub(crate) most: Word,
}

impl Sum {
    /// The content of the slot after a packet with this length on the wire.
    pub(crate) fn of(self, old: Word, wire_len: u32) -> Word {
        let by = Word::from(self.bytes) * Word::from(wire_len);
        let sum = old.saturating_add(by.saturating_add_signed(self.packets.into()));
        if self.wraps { sum & self.most } else { sum.min(self.most) }
    }
}

/// An operation on registers, with what it needs of their types: the width of the result in bits,
/// or the largest value of the result.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Calc {
    Bin(BinOp, u16, ValueId, ValueId),
    Cmp(CmpOp, ValueId, ValueId),
    Not(Word, ValueId),
    Resize(Word, ValueId),
    Clamp(Word, ValueId),
    Select(ValueId, ValueId, ValueId),
}

/// The largest number of values of an operation in a [`Call`].
const MOST_VALUES: usize = 24;

/// An operation that needs parameters, routes or an extern. The operation numbers its values by
/// itself: first its operands, then its results.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Call {
    node: u16,
    op: Op,
    /// The types of the operation's values.
    types: Box<[Ty]>,
    /// The registers of the operation's values.
    operands: Box<[ValueId]>,
    results: Box<[ValueId]>,
}

/// The lookup of a rule, as [`braid_ir::residual::What::Classify`].
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Classify {
    pub(crate) node: u16,
    pub(crate) param: ParamId,
    pub(crate) packet: Option<RuleFields>,
    pub(crate) pass: ValueId,
    pub(crate) rule: ValueId,
}

/// The largest number of words of a key.
pub(crate) const MOST_WORDS: usize = 8;

/// The lookup of an entry.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Find {
    /// Whether there is an entry.
    pub(crate) out: ValueId,
    pub(crate) table: TableRef,
    /// The packed key's constant parts. All other bits are 0.
    pub(crate) constant: Box<[u64]>,
    /// The other parts.
    pub(crate) parts: Box<[Part]>,
    /// The number that the entry has, or would have, among the entries that were found.
    pub(crate) entry: usize,
    /// The entries of the same table that were found before.
    pub(crate) others: Box<[usize]>,
}

/// A part of a key: a register, the first bit in the packed key, and the width in bits.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Part {
    pub(crate) from: ValueId,
    pub(crate) bit: usize,
    pub(crate) width: u16,
}

impl Step {
    /// Whether two steps do the same. The branches of pins may differ.
    pub(crate) fn is_like(&self, other: &Step) -> bool {
        match (self, other) {
            (
                Step::Pin { register, value, .. },
                Step::Pin { register: other, value: other_value, .. },
            ) => register == other && value == other_value,
            _ => self == other,
        }
    }

    /// Whether the step reads state, the time or the payload.
    pub(crate) fn is_of_state(&self) -> bool {
        matches!(
            self,
            Step::Slot { .. }
                | Step::Sum { .. }
                | Step::Find(_)
                | Step::MayBound { .. }
                | Step::Holds { .. }
                | Step::NotLater { .. }
                | Step::Time { .. }
                | Step::Search(_)
        )
    }

    /// Visits the registers that the step assigns.
    pub(crate) fn visit_outs(&self, each: &mut dyn FnMut(ValueId)) {
        match self {
            Step::Const { out, .. }
            | Step::Bits { out, .. }
            | Step::Field { out, .. }
            | Step::Length { out, .. }
            | Step::Time { out }
            | Step::Slot { out, .. }
            | Step::Sum { out, .. }
            | Step::Calc { out, .. }
            | Step::MayBound { out, .. } => each(*out),
            Step::Call(call) => call.results.iter().copied().for_each(each),
            Step::Classify(one) => [one.pass, one.rule].into_iter().for_each(each),
            Step::Find(find) => each(find.out),
            Step::Search(_) | Step::Holds { .. } | Step::NotLater { .. } | Step::Pin { .. } => {}
        }
    }

    /// Visits the registers that the step reads.
    pub(crate) fn visit_uses(&self, each: &mut dyn FnMut(ValueId)) {
        match self {
            Step::Calc { calc, .. } => calc.visit_uses(each),
            Step::Call(call) => call.operands.iter().copied().for_each(each),
            Step::Classify(one) => {
                let Some(fields) = &one.packet else { return };
                let RuleFields { src, dst, proto, ports, tcp_flags, icmp, .. } = fields;
                [*src, *dst, *proto].into_iter().for_each(&mut *each);
                let pairs = [*ports, *icmp].into_iter().flatten();
                pairs.for_each(|(a, b)| [a, b].into_iter().for_each(&mut *each));
                tcp_flags.iter().copied().for_each(each);
            }
            Step::Find(find) => find.parts.iter().for_each(|part| each(part.from)),
            Step::Holds { value, .. } => each(*value),
            Step::Pin { register, .. } => each(*register),
            _ => {}
        }
    }
}

impl Calc {
    fn visit_uses(self, each: &mut dyn FnMut(ValueId)) {
        match self {
            Calc::Bin(_, _, a, b) | Calc::Cmp(_, a, b) => [a, b].into_iter().for_each(each),
            Calc::Not(_, a) | Calc::Resize(_, a) | Calc::Clamp(_, a) => each(a),
            Calc::Select(cond, a, b) => [cond, a, b].into_iter().for_each(each),
        }
    }

    /// The calculation of an operation, with registers for its operands. `None` for operations that
    /// need more than registers.
    pub(crate) fn of(
        op: &Op,
        values: &Values<'_>,
        mut register: impl FnMut(ValueId) -> ValueId,
    ) -> Option<Self> {
        let most = |out: ValueId| values.ty(out).max();
        Some(match *op {
            Op::Bin { out, op, a, b } => Calc::Bin(op, values.width(out), register(a), register(b)),
            Op::Cmp { op, a, b, .. } => Calc::Cmp(op, register(a), register(b)),
            Op::Not { out, a } => Calc::Not(most(out), register(a)),
            Op::Resize { out, a } => Calc::Resize(most(out), register(a)),
            Op::Clamp { out, a } => Calc::Clamp(most(out), register(a)),
            Op::Select { cond, a, b, .. } => Calc::Select(register(cond), register(a), register(b)),
            _ => return None,
        })
    }

    /// The result. `None` for a fault.
    #[inline]
    pub(crate) fn run(self, values: &Values<'_>) -> Option<Word> {
        Some(match self {
            Calc::Bin(op, width, a, b) => binary(op, width, values.get(a), values.get(b)).ok()?,
            Calc::Cmp(op, a, b) => compare(op, values.get(a), values.get(b)).into(),
            Calc::Not(most, a) => !values.get(a) & most,
            Calc::Resize(most, a) => values.get(a) & most,
            Calc::Clamp(most, a) => values.get(a).min(most),
            Calc::Select(cond, a, b) => values.get(if values.truth(cond) { a } else { b }),
        })
    }
}

impl Call {
    /// The call of an operation of a function. `operands` and `results` are the registers of the
    /// values that it uses and defines, in order. `None` if it has too many values.
    #[expect(clippy::cast_possible_truncation, reason = "the number of values is limited")]
    pub(crate) fn of(
        node: u16,
        op: &Op,
        values: &Values<'_>,
        operands: &[ValueId],
        results: &[ValueId],
    ) -> Option<Self> {
        if operands.len() + results.len() > MOST_VALUES {
            return None;
        }
        let (mut op, mut types) = (op.clone(), Vec::new());
        let mut number = |id: &mut ValueId| {
            types.push(values.ty(*id));
            *id = ValueId(types.len() as u32 - 1);
        };
        op.visit_uses_mut(&mut number);
        op.visit_outs_mut(&mut number);
        Some(Self {
            node,
            op,
            types: types.into(),
            operands: operands.into(),
            results: results.into(),
        })
    }

    /// Executes the operation. `None` for a fault.
    pub(crate) fn run(
        &self,
        functions: &mut impl Functions,
        worker: u16,
        out: &mut dyn Outputs,
        registers: &mut [Word],
    ) -> Option<()> {
        let mut words = [0; MOST_VALUES];
        for (word, operand) in words.iter_mut().zip(&self.operands) {
            *word = *registers.get(operand.index())?;
        }
        let mut values = Values { words: &mut words, types: &self.types };
        match self.op {
            Op::Route { .. } | Op::Extern { .. } => {
                functions.call((self.node, worker), out, &mut values, &self.op)?;
            }
            _ => functions.compute(self.node, &mut values, &self.op)?,
        }
        for (word, result) in words.iter().skip(self.operands.len()).zip(&self.results) {
            *registers.get_mut(result.index())? = *word;
        }
        Some(())
    }
}
