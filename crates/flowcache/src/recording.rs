//! Writes a script while the specialiser runs a packet's path.
//!
//! The specialiser tells where each fixed value comes from. A value that differs between the flows
//! of a path gets a register and a step. Where a value decides about the path or becomes a part of
//! the record template, it is *pinned*: later flows take this path only if they have the same value
//! there. A step is written just before something needs its result. So paths that are equal up to
//! some pin have the same steps up to there.

use crate::entry_use::EntryUse;
use crate::guard::Number;
use crate::headers::{Headers, Place};
use crate::mutants::{Mutants, RecordMutant};
use crate::operations::can_fault;
use crate::peel::Peel;
use crate::prefix::{Met, Prefix};
use crate::registers::MOST_REGISTERS;
use crate::script::{Calc, Call, Classify, Find, MOST_WORDS, Part, Pinned, SlotRef, Step};
use crate::slab::NONE;
use crate::value_dependency::Origin;
use braid_ir::model::{BinOp, Op, ParamId, ValueId, Word};
use braid_ir::residual::RuleFields;
use braid_ir::values::Values;
use braid_packet::{Bits, Field};
use braid_state::{Handle, KeyShape, TableRef};

/// The width of a word in bits.
pub(crate) const WORD_BITS: u16 = 128;

/// Where a value of the program comes from.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Source {
    /// The value is the same for all flows that take this path.
    Constant,
    /// The value is in this register.
    Register(ValueId),
    /// No script can compute the value.
    Unknown,
}

/// An assignment to bits of the packet's first bytes, or a number that the rewrite's new bytes
/// store at these bits for another purpose: an amount, or a part of outer headers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Write {
    pub(crate) bits: Bits,
    pub(crate) from: ValueId,
    pub(crate) is_stored: bool,
}

/// A register.
struct Register {
    /// The position in `steps` of the step that assigns it.
    step: usize,
    is_pinned: bool,
}

/// The script of the current specialisation.
#[derive(Default)]
pub(crate) struct Recording {
    /// Whether the next run of the specialiser is to be recorded.
    pub(crate) is_wanted: bool,
    /// Whether the run is recorded, and whether a script can express the path so far.
    has_begun: bool,
    is_on: bool,
    /// By value of the program.
    sources: Vec<Source>,
    registers: Vec<Register>,
    /// The steps that assign registers. `None` where the step has been written.
    steps: Vec<Option<Step>>,
    constants: Vec<(Word, ValueId)>,
    /// The result: the steps, and the assignments to the packet.
    pub(crate) written: Vec<Step>,
    pub(crate) writes: Vec<Write>,
    /// How many assignments there were when the path first sent a copy of the packet.
    copied_at: Option<usize>,
    mutants: Mutants,
}

impl Recording {
    /// Starts a recording. Nothing is recorded unless a script is wanted and `may` is true.
    pub(crate) fn start(&mut self, may: bool, mutants: Mutants) {
        self.has_begun = may && self.is_wanted && mutants.allow_scripts();
        self.is_on = self.has_begun;
        self.mutants = mutants;
        self.registers.clear();
        self.steps.clear();
        self.constants.clear();
        self.written.clear();
        self.writes.clear();
        self.copied_at = None;
    }

    /// Starts a program that has this number of values.
    pub(crate) fn enter(&mut self, values: usize) {
        self.sources.clear();
        self.sources.resize(values, Source::Unknown);
    }

    /// Gives the recording up: no script can express the path.
    pub(crate) fn give_up(&mut self) {
        self.is_on = false;
    }

    /// The source of a value.
    pub(crate) fn source(&self, id: ValueId) -> Source {
        match self.sources.get(id.index()).copied().unwrap_or(Source::Unknown) {
            Source::Register(register) if self.is_pinned(register) => Source::Constant,
            source => source,
        }
    }

    fn is_pinned(&self, register: ValueId) -> bool {
        self.registers.get(register.index()).is_some_and(|one| one.is_pinned)
    }

    /// Sets the source of a value.
    pub(crate) fn set_source(&mut self, id: ValueId, source: Source) {
        if let Some(one) = self.sources.get_mut(id.index()) {
            *one = source;
        }
    }

    /// Adds a step, which is not written before something needs its result. `step` makes the step
    /// from its register, which becomes the source of the value.
    pub(crate) fn define(&mut self, id: ValueId, step: impl FnOnce(ValueId) -> Step) {
        if !self.is_on {
            return;
        }
        let register = self.register();
        self.steps.push(Some(step(register)));
        self.set_source(id, Source::Register(register));
    }

    /// Adds the load of a field of a packet with these headers, which is `longer` than on arrival.
    pub(crate) fn load(&mut self, headers: &Headers<'_>, longer: i32, id: ValueId, field: Field) {
        match field {
            Field::PktBackward | Field::PktHeld => self.set_source(id, Source::Constant),
            Field::PktTime => self.define(id, |out| Step::Time { out }),
            Field::PktLen => {
                self.define(id, |out| Step::Length { out, longer: longer.into() });
            }
            Field::InetVersion | Field::IpHlen | Field::PktFragment | Field::PktLaterFragment => {
                self.define(id, |out| Step::Field { out, field });
            }
            field => match headers.place(field).filter(|_| self.is_on) {
                Some(Place::Got(_)) => self.set_source(id, Source::Constant),
                Some(Place::Came(bits)) if headers.has_assigned(bits) => {
                    self.set_source(id, self.assigned(bits));
                }
                Some(Place::Came(bits)) => self.define(id, |out| Step::Bits { out, bits }),
                None => self.define(id, |out| Step::Field { out, field }),
            },
        }
    }

    /// Adds the sum of a number of 16 bits in the packet and a constant.
    pub(crate) fn sum(&mut self, id: ValueId, bits: Bits, add: u16) {
        if self.is_on {
            let (by, number) = (self.constant(add.into()), self.register());
            self.steps.push(Some(Step::Bits { out: number, bits }));
            let calc = Calc::binary(BinOp::AddWrap, 16, number, by);
            self.define(id, |out| Step::Calc { out, calc });
        }
    }

    /// Adds the slot of an entry, unless it counts as a constant. Only a mutant makes it one.
    pub(crate) fn slot(&mut self, id: ValueId, from: SlotRef) {
        match self.mutants.has(RecordMutant::SlotConstant) {
            true => self.set_source(id, Source::Constant),
            false => self.define(id, |out| Step::Slot { out, from }),
        }
    }

    /// A new register for the next step.
    #[expect(clippy::cast_possible_truncation, reason = "the number of registers is limited")]
    fn register(&mut self) -> ValueId {
        self.registers.push(Register { step: self.steps.len(), is_pinned: false });
        self.is_on &= self.registers.len() <= MOST_REGISTERS;
        ValueId(self.registers.len() as u32 - 1)
    }

    /// The number of registers.
    pub(crate) fn registers(&self) -> usize {
        self.registers.len()
    }

    /// The register of a value, which is `value` now. `None` if no script can compute it.
    fn register_of(&mut self, id: ValueId, value: Word) -> Option<ValueId> {
        match self.sources.get(id.index())? {
            Source::Unknown => None,
            Source::Register(register) => Some(*register),
            Source::Constant => Some(self.constant(value)),
        }
    }

    /// The register of a constant.
    fn constant(&mut self, value: Word) -> ValueId {
        if let Some((_, register)) = self.constants.iter().find(|(known, _)| *known == value) {
            return *register;
        }
        let register = self.register();
        self.steps.push(Some(Step::Const { out: register, value }));
        self.constants.push((value, register));
        register
    }

    /// The constant that a register holds, if it holds one.
    fn constant_in(&self, register: ValueId) -> Option<Word> {
        let known = self.constants.iter().find(|(_, one)| *one == register);
        known.map(|(value, _)| *value)
    }

    /// As [`Recording::register_of`] for several values.
    fn registers_of(&mut self, values: &Values<'_>, ids: &[ValueId]) -> Option<Box<[ValueId]>> {
        ids.iter().map(|id| self.register_of(*id, values.get(*id))).collect()
    }

    /// Writes the step that assigns a register, and before it the steps that it needs.
    fn demand(&mut self, register: ValueId) {
        if let Some(step) = self.take_step(register) {
            self.write(step);
        }
    }

    /// Takes the step that assigns a register, unless it has been written.
    fn take_step(&mut self, register: ValueId) -> Option<Step> {
        let at = self.registers.get(register.index())?.step;
        self.steps.get_mut(at)?.take()
    }

    /// Writes a step, and before it the steps that it needs.
    fn write(&mut self, step: Step) {
        let mut needed = Vec::new();
        step.visit_uses(&mut |register| needed.push(register));
        needed.into_iter().for_each(|register| self.demand(register));
        self.written.push(step);
    }

    /// Adds a test, if the recording has not been given up.
    pub(crate) fn test(&mut self, step: Step) {
        if self.is_on {
            self.write(step);
        }
    }

    /// Adds the step that goes on with the packet inside a tunnel. The steps so far read the whole
    /// packet, so they come first; what they assign to it is gone.
    pub(crate) fn leave(&mut self, peel: Peel, less: usize) {
        if self.is_on {
            (0..self.steps.len()).for_each(|at| {
                if let Some(step) = self.steps.get_mut(at).and_then(Option::take) {
                    self.write(step);
                }
            });
            self.writes.clear();
            self.write(Step::Leave { peel, less });
        }
    }

    /// Pins a value, which is `value` now.
    pub(crate) fn pin(&mut self, id: ValueId, value: Word) {
        match self.source(id) {
            Source::Constant => {}
            Source::Unknown => self.give_up(),
            Source::Register(_) if self.mutants.has(RecordMutant::PinForgotten) => {}
            Source::Register(register) => self.pin_register(register, value),
        }
    }

    fn pin_register(&mut self, register: ValueId, value: Word) {
        if !self.is_on {
            return;
        }
        let what = match self.take_step(register) {
            Some(Step::Calc { out, calc }) => Pinned::Calc { out, calc },
            step => {
                step.into_iter().for_each(|step| self.write(step));
                Pinned::Register(register)
            }
        };
        self.write(Step::Pin { what, value, branch: NONE });
        if let Some(one) = self.registers.get_mut(register.index()) {
            one.is_pinned = true;
        }
    }

    /// Adds an operation on fixed or open values, whose results are in `values`. One that can fault
    /// is also a test: a flow for which it faults does not take the path, whether the path needs
    /// the result or not.
    pub(crate) fn operation(&mut self, node: u16, values: &Values<'_>, op: &Op) {
        if !self.is_on {
            return;
        }
        let (mut is_known, mut is_constant) = (true, !matches!(op, Op::Extern { .. }));
        op.visit_uses(&mut |id| match self.source(*id) {
            Source::Constant => {}
            Source::Register(_) => is_constant = false,
            Source::Unknown => is_known = false,
        });
        let can_fault = can_fault(op);
        if !is_known && can_fault {
            self.give_up();
        }
        if !is_known || is_constant {
            let source = if is_known { Source::Constant } else { Source::Unknown };
            op.visit_outs(&mut |out| self.set_source(*out, source));
            return;
        }
        let calc = Calc::of(op, values, |id| match self.source(id) {
            Source::Register(register) => register,
            _ => self.constant(values.get(id)),
        });
        if let Some(calc) = calc.map(|calc| calc.with_constant(|id| self.constant_in(id))) {
            let mut out = None;
            op.visit_outs(&mut |id| out = Some(*id));
            if let Some(id) = out {
                self.define(id, |out| Step::Calc { out, calc });
                if let Source::Register(register) = self.source(id)
                    && can_fault
                {
                    self.demand(register);
                }
            }
            return;
        }
        let Some(operands) = self.registers_of(values, &op.uses()) else { return };
        let results: Vec<_> = op.outs().iter().map(|_| self.register()).collect();
        let Some(call) = Call::of(node, op, values, &operands, &results) else {
            self.give_up();
            return;
        };
        self.assign_all(&op.outs(), &results);
        self.steps.push(Some(Step::Call(Box::new(call))));
        if can_fault {
            results.iter().for_each(|register| self.demand(*register));
        }
    }

    /// Makes registers of one step the sources of values.
    fn assign_all(&mut self, ids: &[ValueId], registers: &[ValueId]) {
        for (id, register) in ids.iter().zip(registers) {
            self.set_source(*id, Source::Register(*register));
        }
    }

    /// Adds the lookup of a rule, by these values of a packet's fields. The results are values of
    /// the program: whether the packet passes, and the number of the rule.
    pub(crate) fn classify(
        &mut self,
        values: &Values<'_>,
        node: u16,
        (param, packet): (ParamId, Option<&RuleFields>),
        results: [ValueId; 2],
    ) {
        if !self.is_on {
            return;
        }
        let packet = match packet.map(|fields| self.fields(values, fields)) {
            Some(None) => return self.give_up(),
            Some(fields) => fields,
            None => None,
        };
        let registers @ [pass, rule] = [self.register(), self.register()];
        self.assign_all(&results, &registers);
        let step = Classify { node, param, packet, pass, rule };
        self.steps.push(Some(Step::Classify(Box::new(step))));
    }

    /// Fields with registers in place of values.
    fn fields(&mut self, values: &Values<'_>, fields: &RuleFields) -> Option<RuleFields> {
        let mut register = |id| self.register_of(id, values.get(id));
        let mut pair = |pair: Option<(ValueId, ValueId)>| match pair {
            Some((a, b)) => Some(Some((register(a)?, register(b)?))),
            None => Some(None),
        };
        let (ports, icmp) = (pair(fields.ports)?, pair(fields.icmp)?);
        let tcp_flags = match fields.tcp_flags {
            Some(flags) => Some(register(flags)?),
            None => None,
        };
        let (src, dst) = (register(fields.src)?, register(fields.dst)?);
        let proto = register(fields.proto)?;
        Some(RuleFields { version: fields.version, src, dst, proto, ports, tcp_flags, icmp })
    }

    /// Adds the lookup of an entry, and pins its outcome. `entry` is the entry's position among
    /// those found, or the next free one if there is no entry. `known` holds the uses of entries
    /// found before.
    pub(crate) fn find(
        &mut self,
        values: &Values<'_>,
        (table, shape): (TableRef, &KeyShape),
        key: &[ValueId],
        (entry, is_there): (usize, bool),
        known: &[(Handle, EntryUse)],
    ) {
        if !self.is_on {
            return;
        }
        let Some(key) = self.registers_of(values, key).filter(|_| shape.words() <= MOST_WORDS)
        else {
            return self.give_up();
        };
        let (mut constant, mut parts) = (Vec::new(), Vec::new());
        for (at, from) in key.iter().copied().enumerate() {
            let known = self.constant_in(from);
            constant.push(known.unwrap_or(0));
            if known.is_none() {
                let (bit, width) = shape.place(at).unwrap_or_default();
                parts.extend(Part::of(from, bit, width));
            }
        }
        let mut words = vec![0; shape.words()];
        shape.pack(&constant, &mut words);
        let of_table = known.iter().enumerate().filter(|(_, (_, one))| one.table == table);
        let others = of_table.map(|(at, _)| at).collect();
        let find = Find { table, constant: words.into(), parts: parts.into(), entry, others };
        let what = Pinned::Find(Box::new(find));
        self.write(Step::Pin { what, value: is_there.into(), branch: NONE });
    }

    /// Adds the question whether a record may have bounds on a slot, and pins the answer.
    pub(crate) fn may_bound(&mut self, from: SlotRef, may: bool) {
        if self.is_on {
            let out = self.register();
            self.steps.push(Some(Step::MayBound { out, from }));
            self.pin_register(out, may.into());
        }
    }

    /// Adds the test that a slot of an entry holds a value.
    pub(crate) fn holds(&mut self, from: SlotRef, id: ValueId, value: Word) {
        match self.register_of(id, value).filter(|_| self.is_on) {
            Some(value) => self.write(Step::Holds { from, value }),
            None => self.give_up(),
        }
    }

    /// Adds the assignment of a value to bits of the packet.
    pub(crate) fn assign(&mut self, bits: Bits, id: ValueId, value: Word) {
        if !self.is_on {
            return;
        }
        match self.register_of(id, value) {
            Some(from) => self.writes.push(Write { bits, from, is_stored: false }),
            None => self.give_up(),
        }
    }

    /// Adds an amount: the difference of a value, which is `value` now, and a number in the packet.
    /// The amount has this place in the rewrite's new bytes.
    pub(crate) fn add(&mut self, origin: Origin, bits: Bits, id: ValueId, value: u32) {
        match self.amount(origin, id, value) {
            Some(from) => self.writes.push(Write { bits, from, is_stored: true }),
            None => self.give_up(),
        }
    }

    /// Stores some bits of a value, which is `value` now, in the rewrite's new bytes: the lowest
    /// bit stored is the one with the number `from`.
    pub(crate) fn store(&mut self, bits: Bits, (id, from): (ValueId, u32), value: Word) {
        let Some(register) = self.register_of(id, value).filter(|_| self.is_on) else {
            return self.give_up();
        };
        let by = self.constant(from.into());
        let out = self.register();
        let calc = Calc::binary(BinOp::Shr, WORD_BITS, register, by);
        self.steps.push(Some(Step::Calc { out, calc }));
        self.writes.push(Write { bits, from: out, is_stored: true });
    }

    /// Pins the difference of a value, which is `value` now, and a number in the packet, which is
    /// `was` now.
    pub(crate) fn pin_amount(&mut self, (number, was): (Number, u32), id: ValueId, value: u32) {
        match self.amount(Origin::First(number), id, value) {
            Some(register) => {
                let amount = value.wrapping_sub(was) & number.mask;
                self.pin_register(register, amount.into());
            }
            None => self.give_up(),
        }
    }

    /// The register of such a difference, modulo the number's width.
    fn amount(&mut self, origin: Origin, id: ValueId, value: u32) -> Option<ValueId> {
        if !self.is_on {
            return None;
        }
        let value = self.register_of(id, value.into())?;
        let old = self.register();
        let (step, width) = match origin {
            Origin::First(Number { at, len, .. }) => {
                let (at, width) = (usize::from(at), 8 * u16::from(len));
                let len = usize::from(len);
                let bits = Bits { at, len, shift: 0, width: width.into() };
                (Step::Bits { out: old, bits }, width)
            }
            Origin::Field(field) => (Step::Field { out: old, field }, field.info().width),
        };
        self.steps.push(Some(step));
        let out = self.register();
        let calc = Calc::binary(BinOp::SubWrap, width, value, old);
        self.steps.push(Some(Step::Calc { out, calc }));
        Some(out)
    }

    /// Forgets what the new bytes of the rewrite store at these places.
    pub(crate) fn forget_stored(&mut self, places: &[Bits]) {
        self.writes.retain(|one| !(one.is_stored && places.contains(&one.bits)));
    }

    /// The source of bits that the path has assigned.
    fn assigned(&self, bits: Bits) -> Source {
        let is_in =
            |one: &Write| one.bits.at < bits.at + bits.len && bits.at < one.bits.at + one.bits.len;
        match self.writes.iter().rev().find(|one| is_in(one)) {
            Some(one) if one.bits == bits && !one.is_stored => Source::Register(one.from),
            _ => Source::Unknown,
        }
    }

    /// Notes that the path sends a copy of the packet as it is now.
    pub(crate) fn copy(&mut self) {
        self.copied_at.get_or_insert(self.writes.len());
    }

    /// The script so far, which ends at a place that no record contains, or as far as a script can
    /// express the path. It leaves out what depends on state: the script of the record tests that
    /// as far as the record goes. `None` if the run is not recorded.
    #[expect(clippy::indexing_slicing, reason = "steps use registers of this recording")]
    pub(crate) fn prefix(&self, met: Met) -> Option<Prefix> {
        let registers = self.registers();
        let mut of_state = vec![false; registers];
        let stays = |step: &&Step| {
            let mut leaves = step.is_of_state();
            step.visit_uses(&mut |id| leaves |= of_state[id.index()]);
            step.visit_outs(&mut |id| of_state[id.index()] |= leaves);
            !leaves
        };
        let written = self.written.iter().filter(stays).cloned().collect();
        self.has_begun.then_some(Prefix { written, registers, met })
    }

    /// Completes the script. Returns false if no script can express the path.
    pub(crate) fn finish(&mut self) -> bool {
        // Whether a copy equals the packet at the end depends on the values assigned after it.
        let is_changed = self.copied_at.is_some_and(|at| at < self.writes.len());
        if !self.is_on || is_changed {
            return false;
        }
        for at in 0..self.writes.len() {
            let from = self.writes.get(at).map(|one| one.from);
            from.into_iter().for_each(|from| self.demand(from));
        }
        self.is_on
    }
}
