//! The steps of a script: the work that remains for a flow if its path is known.
//!
//! A step computes values from the packet, from state and from parameters into registers, or tests
//! something. A test that fails ends the script without a record. Registers have [`ValueId`]s, so
//! that operations and lookups can name them.

use crate::host::Functions;
use crate::path::Search;
use crate::peel::Peel;
use crate::registers::Registers;
use braid_ir::arith::{binary, compare, narrow};
use braid_ir::engine::Outputs;
use braid_ir::model::{BinOp, CmpOp, Op, ParamId, Ty, ValueId, Word};
use braid_ir::residual::RuleFields;
use braid_ir::values::Values;
use braid_packet::{Bits, Field};
use braid_state::{SlotShape, TableRef, slot_at};

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
    /// Tests that the packet's payload contains none of the patterns.
    Search(Search),
    /// Whether a record may have bounds on a slot, beside the records that use it already.
    MayBound { out: ValueId, from: SlotRef },
    /// Goes on with the packet inside the tunnel that ends here, which is `less` bytes shorter.
    Leave { peel: Peel, less: usize },
    /// Tests that a slot holds a value.
    Holds { from: SlotRef, value: ValueId },
    /// Tests that a slot holds no later time than now.
    NotLater { from: SlotRef },
    /// Tests that something has a value. If it has another one, the script may go on elsewhere: at
    /// the branch with this number.
    Pin { what: Pinned, value: Word, branch: u32 },
}

/// What a script tests in order to know the path.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Pinned {
    /// A register.
    Register(ValueId),
    /// The result of an operation on registers. The register `out` then has it.
    Calc { out: ValueId, calc: Calc },
    /// Whether there is an entry.
    Find(Box<Find>),
}

impl Pinned {
    fn visit_uses(&self, each: &mut dyn FnMut(ValueId)) {
        match self {
            Pinned::Register(register) => each(*register),
            Pinned::Calc { calc, .. } => calc.visit_uses(each),
            Pinned::Find(find) => find.parts.iter().for_each(|part| each(part.from)),
        }
    }
}

/// A slot of an entry that the script has found. `entry` is the entry's number.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct SlotRef {
    pub(crate) entry: usize,
    pub(crate) table: TableRef,
    pub(crate) slot: u32,
    /// Where the entry has the slot ([`SlotShape::place`]).
    place: Option<(usize, bool)>,
}

impl SlotRef {
    /// A slot of an entry with this number, in a table whose slots have this shape.
    pub(crate) fn new(entry: usize, table: TableRef, shape: &SlotShape, slot: u32) -> Self {
        Self { entry, table, slot, place: shape.place(slot as usize) }
    }

    /// The content of the slot in the words of its entry.
    #[inline(always)]
    pub(crate) fn get(self, words: &[u64]) -> Word {
        slot_at(self.place, words)
    }
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
    /// As `Bin`, for a result of at most 64 bits with this largest value.
    Narrow(BinOp, u64, ValueId, ValueId),
    Cmp(CmpOp, ValueId, ValueId),
    /// As `Cmp`, with this number.
    CmpWith(CmpOp, ValueId, u64),
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
    pub(crate) table: TableRef,
    /// The packed key's constant parts. All other bits are 0.
    pub(crate) constant: Box<[u64]>,
    /// What is to be added to the words.
    pub(crate) parts: Box<[Part]>,
    /// The number that the entry has, or would have, among the entries that were found.
    pub(crate) entry: usize,
    /// The entries of the same table that were found before.
    pub(crate) others: Box<[usize]>,
}

/// Bits of a register that are bits of one word of a packed key.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Part {
    from: ValueId,
    /// The number of the register's bits below these.
    below: u32,
    /// The largest number that these bits hold.
    most: u64,
    word: usize,
    /// The number of the word's bits below these.
    shift: u32,
}

impl Part {
    /// The parts for a register whose lowest bits are `width` bits of a key from `bit` on.
    pub(crate) fn of(from: ValueId, bit: usize, width: u16) -> impl Iterator<Item = Self> {
        let mut below = 0;
        std::iter::from_fn(move || {
            let at = bit + below as usize;
            let shift = u32::try_from(at % 64).unwrap_or(0);
            let count = u32::from(width).checked_sub(below).map(|left| left.min(64 - shift));
            let most = u64::MAX.checked_shr(64 - count?)?;
            let part = Self { from, below, most, word: at / 64, shift };
            below += count?;
            Some(part)
        })
    }

    /// Adds the bits to the words of a key.
    #[inline(always)]
    fn add(self, key: &mut [u64], registers: &Registers) {
        let value = registers.get(self.from);
        let bits = if self.below == 0 { low(value) } else { low(value >> self.below) };
        if let Some(word) = key.get_mut(self.word) {
            *word |= (bits & self.most) << self.shift;
        }
    }
}

impl Find {
    /// The packed key. `None` if it does not have this number of words.
    #[inline(always)]
    pub(crate) fn key<const N: usize>(&self, registers: &Registers) -> Option<[u64; N]> {
        let mut key = *<&[u64; N]>::try_from(&*self.constant).ok()?;
        self.parts.iter().for_each(|part| part.add(&mut key, registers));
        Some(key)
    }

    /// As [`Find::key`], for a key of any number of words. `key` is memory for it.
    pub(crate) fn any_key<'a>(
        &self,
        registers: &Registers,
        key: &'a mut [u64; MOST_WORDS],
    ) -> Option<&'a [u64]> {
        let key = key.get_mut(..self.constant.len())?;
        key.copy_from_slice(&self.constant);
        self.parts.iter().for_each(|part| part.add(key, registers));
        Some(key)
    }
}

impl Step {
    /// Whether two steps do the same. The branches of pins may differ.
    pub(crate) fn is_like(&self, other: &Step) -> bool {
        match (self, other) {
            (Step::Pin { what, value, .. }, Step::Pin { what: other, value: expected, .. }) => {
                what == other && value == expected
            }
            _ => self == other,
        }
    }

    /// Whether the step reads state, the time or the payload.
    pub(crate) fn is_of_state(&self) -> bool {
        matches!(
            self,
            Step::Slot { .. }
                | Step::Sum { .. }
                | Step::Pin { what: Pinned::Find(_), .. }
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
            | Step::MayBound { out, .. }
            | Step::Pin { what: Pinned::Calc { out, .. }, .. } => each(*out),
            Step::Call(call) => call.results.iter().copied().for_each(each),
            Step::Classify(one) => [one.pass, one.rule].into_iter().for_each(each),
            Step::Search(_)
            | Step::Leave { .. }
            | Step::Holds { .. }
            | Step::NotLater { .. }
            | Step::Pin { .. } => {}
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
            Step::Holds { value, .. } => each(*value),
            Step::Pin { what, .. } => what.visit_uses(each),
            _ => {}
        }
    }
}

impl Calc {
    fn visit_uses(self, each: &mut dyn FnMut(ValueId)) {
        match self {
            Calc::Bin(_, _, a, b) | Calc::Narrow(_, _, a, b) | Calc::Cmp(_, a, b) => {
                [a, b].into_iter().for_each(each);
            }
            Calc::CmpWith(_, a, _) | Calc::Not(_, a) | Calc::Resize(_, a) | Calc::Clamp(_, a) => {
                each(a)
            }
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
            Op::Bin { out, op, a, b } => {
                Calc::binary(op, values.width(out), register(a), register(b))
            }
            Op::Cmp { op, a, b, .. } => Calc::Cmp(op, register(a), register(b)),
            Op::Not { out, a } => Calc::Not(most(out), register(a)),
            Op::Resize { out, a } => Calc::Resize(most(out), register(a)),
            Op::Clamp { out, a } => Calc::Clamp(most(out), register(a)),
            Op::Select { cond, a, b, .. } => Calc::Select(register(cond), register(a), register(b)),
            _ => return None,
        })
    }

    /// The same comparison without a register for the number with which it compares, if that is a
    /// constant. `constant` returns the number in a register that has one.
    pub(crate) fn with_constant(self, constant: impl Fn(ValueId) -> Option<Word>) -> Self {
        let of = |id| constant(id).and_then(|word| u64::try_from(word).ok());
        match self {
            Calc::Cmp(op, a, b) => match (of(a), of(b)) {
                (_, Some(b)) => Calc::CmpWith(op, a, b),
                (Some(a), None) if matches!(op, CmpOp::Eq | CmpOp::Ne) => Calc::CmpWith(op, b, a),
                _ => self,
            },
            _ => self,
        }
    }

    /// A binary operation with a result of this width (bits), which its operands have, too. Those
    /// of a difference modulo the width may be wider.
    pub(crate) fn binary(op: BinOp, width: u16, a: ValueId, b: ValueId) -> Self {
        match 64_u32.checked_sub(width.into()) {
            Some(unused) if !matches!(op, BinOp::Div | BinOp::Rem) => {
                Calc::Narrow(op, u64::MAX.checked_shr(unused).unwrap_or(0), a, b)
            }
            _ => Calc::Bin(op, width, a, b),
        }
    }

    /// The result. `None` for a fault.
    #[inline(always)]
    pub(crate) fn run(self, registers: &Registers) -> Option<Word> {
        let get = |id| registers.get(id);
        Some(match self {
            Calc::Narrow(op, most, a, b) => narrow(op, most, low(get(a)), low(get(b))).into(),
            Calc::Bin(op, width, a, b) => binary(op, width, get(a), get(b)).ok()?,
            Calc::Cmp(op, a, b) => compare(op, get(a), get(b)).into(),
            Calc::CmpWith(op, a, b) => compare(op, get(a), b.into()).into(),
            Calc::Not(most, a) => !get(a) & most,
            Calc::Resize(most, a) => get(a) & most,
            Calc::Clamp(most, a) => get(a).min(most),
            Calc::Select(cond, a, b) => get(if get(cond) == 0 { b } else { a }),
        })
    }
}

#[expect(clippy::cast_possible_truncation, reason = "callers want the low half")]
#[inline(always)]
fn low(word: Word) -> u64 {
    word as u64
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
        registers: &mut Registers,
    ) -> Option<()> {
        let mut words = [0; MOST_VALUES];
        for (word, operand) in words.iter_mut().zip(&self.operands) {
            *word = registers.get(*operand);
        }
        let mut values = Values { words: &mut words, types: &self.types };
        match self.op {
            Op::Route { .. } | Op::Extern { .. } => {
                functions.call((self.node, worker), out, &mut values, &self.op)?;
            }
            _ => functions.compute(self.node, &mut values, &self.op)?,
        }
        for (word, result) in words.iter().skip(self.operands.len()).zip(&self.results) {
            registers.set(*result, *word);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_externs::Rng;
    use braid_ir::model::{Granularity, Kind, StateDecl};
    use braid_ir::show::max_of;
    use braid_state::KeyShape;

    fn word(rng: &mut Rng) -> Word {
        // Small numbers are shift counts and ports.
        let word = Word::from(rng.next_u64()) << 64 | Word::from(rng.next_u64());
        word >> (rng.next_u64() % 128)
    }

    #[test]
    fn operations_of_every_width_give_what_the_operator_gives() {
        let (mut rng, mut registers) = (Rng::new(1), Registers::default());
        let (a, b) = (ValueId(0), ValueId(1));
        for op in BinOp::ALL {
            for width in 1..=128 {
                registers.set(a, word(&mut rng) & max_of(width));
                registers.set(b, word(&mut rng) & max_of(width));
                let calc = Calc::binary(op, width, a, b);
                let is_narrow = width <= 64 && !matches!(op, BinOp::Div | BinOp::Rem);
                assert_eq!(matches!(calc, Calc::Narrow(..)), is_narrow, "{op:?}, {width} bits");
                let expected = binary(op, width, registers.get(a), registers.get(b)).ok();
                assert_eq!(calc.run(&registers), expected, "{op:?}, {width} bits");
            }
        }
    }

    #[test]
    fn comparisons_with_constants_give_what_the_operator_gives() {
        let (mut rng, mut registers) = (Rng::new(3), Registers::default());
        let (a, b) = (ValueId(0), ValueId(1));
        for _ in 0..braid_cases::at_least(5_000) {
            let words @ [left, right] = [(); 2].map(|()| word(&mut rng) >> (rng.next_u64() % 128));
            [(a, left), (b, right)].into_iter().for_each(|(id, word)| registers.set(id, word));
            for op in [CmpOp::Eq, CmpOp::Ne, CmpOp::Lt, CmpOp::Le, CmpOp::Gt, CmpOp::Ge] {
                for constants in 0..4 {
                    let constant =
                        |id: ValueId| (constants >> id.index() & 1 == 1).then(|| words[id.index()]);
                    let calc = Calc::Cmp(op, a, b).with_constant(constant);
                    let expected = Some(compare(op, left, right).into());
                    assert_eq!(calc.run(&registers), expected, "{left} {op:?} {right}, {calc:?}");
                }
            }
        }
    }

    #[test]
    fn keys_are_as_their_shape_packs_them() {
        let (mut rng, mut registers) = (Rng::new(2), Registers::default());
        for _ in 0..braid_cases::at_least(5_000) {
            let count = 1 + rng.next_u64() % 4;
            let widths: Vec<u16> =
                (0..count).map(|_| 1 + u16::try_from(rng.next_u64() % 128).unwrap()).collect();
            let types = widths.iter().map(|width| Ty { width: *width, kind: Kind::Uint });
            let granularity = Granularity::Key(types.collect());
            let shape = KeyShape::new(&StateDecl::new("s", granularity, Vec::new()));
            let values: Vec<Word> = widths.iter().map(|_| word(&mut rng)).collect();
            let mut expected = vec![0; shape.words()];
            shape.pack(&values, &mut expected);
            // Some parts are constants.
            let mut constants = values.clone();
            let mut parts = Vec::new();
            for (at, value) in values.iter().enumerate() {
                if rng.next_u64() % 3 > 0 {
                    let from = ValueId(u32::try_from(at).unwrap());
                    registers.set(from, *value);
                    let (bit, width) = shape.place(at).unwrap();
                    parts.extend(Part::of(from, bit, width));
                    constants[at] = 0;
                }
            }
            let mut constant = vec![0; shape.words()];
            shape.pack(&constants, &mut constant);
            let find = Find {
                table: TableRef::from_bits(0),
                constant: constant.into(),
                parts: parts.into(),
                entry: 0,
                others: Box::default(),
            };
            let mut memory = [0; MOST_WORDS];
            assert_eq!(find.any_key(&registers, &mut memory), Some(&*expected), "{widths:?}");
            match *expected {
                [one] => assert_eq!(find.key::<1>(&registers), Some([one])),
                [one, two] => assert_eq!(find.key::<2>(&registers), Some([one, two])),
                _ => {
                    assert_eq!((find.key::<1>(&registers), find.key::<2>(&registers)), (None, None))
                }
            }
        }
    }
}
