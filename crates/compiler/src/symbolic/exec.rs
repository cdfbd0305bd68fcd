//! The effect of each operation of a model on the abstract state.

use super::Synth;
use super::build::Way;
use super::mutants::SynthMutant;
use super::range::{ends, intersect};
use super::state::Memo;
use super::values::{Def, Pure};
use super::visit::Visit;
use braid_ir::engine::Fault;
use braid_ir::model::{BinOp, EventArg, Kind, Op, ParamId, SetRef, Ty, ValueId, Word};
use braid_ir::residual::{Counter, Fate, ListedCounter, Step, What};
use braid_ir::value::{IntervalSet, ParamValue};
use braid_packet::Header;

/// How execution continues after an operation.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Flow {
    /// With the next operation.
    Next,
    /// Not at all: the path has ended.
    Ended,
    /// With the same operation, when it is known whether this header is present.
    Needs(Header),
    /// With the same operation, when it is known whether this condition holds.
    Splits(ValueId),
}

/// The maximum number of rows of a list whose values become facts.
const FEW_ROWS: usize = 64;

const BOOL: Ty = Ty { width: 1, kind: Kind::Bool };
const WORD: Ty = Ty { width: 32, kind: Kind::Uint };

impl<'a> Synth<'a> {
    /// Executes an operation.
    pub(super) fn op(&mut self, visit: &mut Visit<'a>, way: &mut Way, op: &Op) -> Flow {
        let flow = match op {
            Op::Const { .. }
            | Op::Param { .. }
            | Op::Not { .. }
            | Op::Resize { .. }
            | Op::Clamp { .. }
            | Op::Select { .. }
            | Op::Cmp { .. }
            | Op::Bin { .. } => self.value_op(visit, way, op),
            Op::ListLen { .. } | Op::ListGet { .. } | Op::BackendUp { .. } | Op::InSet { .. } => {
                self.list_op(visit, way, op)
            }
            Op::Has { .. }
            | Op::Load { .. }
            | Op::LoadEntry { .. }
            | Op::Store { .. }
            | Op::LoadTag { .. }
            | Op::StoreTag { .. }
            | Op::PushVlan { .. }
            | Op::PopVlan
            | Op::Count { .. }
            | Op::Mirror { .. }
            | Op::Create { .. } => self.packet_op(visit, way, op),
            Op::Rules { .. } | Op::Route { .. } | Op::Patterns { .. } | Op::Extern { .. } => {
                self.lookup_op(visit, way, op)
            }
            Op::StateExists { .. }
            | Op::StateGet { .. }
            | Op::StateSet { .. }
            | Op::StatePut { .. }
            | Op::StateDelete { .. }
            | Op::StateLen { .. } => self.state_op(visit, way, op),
            Op::Take { .. } | Op::TakeThis { .. } | Op::Release { .. } | Op::Emit { .. } => {
                self.effect(visit, way, op);
                Ok(Flow::Next)
            }
            // Packet programs have none of these operations, or the function has no residual
            // program.
            Op::Expiring { .. } | Op::ExpiringKey { .. } | Op::Native { .. } => Ok(Flow::Next),
        };
        flow.unwrap_or_else(Flow::Needs)
    }

    pub(super) fn value(&self, way: &Way, value: ValueId) -> ValueId {
        way.state.env[&value]
    }

    pub(super) fn model_ty(visit: &Visit<'_>, value: ValueId) -> Ty {
        visit.model.packet.values[value.index()]
    }

    /// Binds a value of the model. If only one value is possible, binds it to a constant.
    pub(super) fn bind(&mut self, way: &mut Way, out: ValueId, value: ValueId) {
        let value = match way.state.facts.only(&self.values, value) {
            Some(word) => {
                let ty = self.values.ty(value);
                self.values.constant(ty, word)
            }
            None => value,
        };
        way.state.env.insert(out, value);
    }

    /// Adds a step with results of these types. `faults`: the step may end with a fault.
    pub(super) fn act(
        &mut self,
        visit: &Visit<'_>,
        way: &mut Way,
        types: &[Ty],
        faults: bool,
        make: impl FnOnce(&[ValueId]) -> What,
    ) -> Vec<ValueId> {
        let outs: Vec<ValueId> = types.iter().map(|ty| self.values.fresh(*ty, Def::Step)).collect();
        let fault = faults.then(|| {
            let counter = Counter::Row(self.fault_row(visit.node()));
            let mut counters = way.state.counters();
            let length = way.state.waiting.length();
            counters.push(ListedCounter { node: visit.node(), counter, length });
            counters.sort_unstable();
            self.blocks.counters(counters)
        });
        let step = Step { site: self.values.site, what: make(&outs), fault };
        self.blocks.all[way.at].steps.push(step);
        outs
    }

    /// Ends the path with a fault.
    pub(super) fn fault(&mut self, visit: &Visit<'_>, way: &mut Way, fault: Fault) -> Flow {
        let row = self.fault_row(visit.node());
        way.state.count(visit.node(), Counter::Row(row));
        self.blocks.exit(way, Fate::Fault { node: visit.node(), fault });
        Flow::Ended
    }

    /// As `act`, unless this path already has the result.
    pub(super) fn once(
        &mut self,
        visit: &Visit<'_>,
        way: &mut Way,
        memo: Memo,
        types: &[Ty],
        faults: bool,
        make: impl FnOnce(&[ValueId]) -> What,
    ) -> Vec<ValueId> {
        if let Some(outs) = way.state.memo.get(&memo) {
            self.stats.reused += 1;
            return outs.clone();
        }
        let outs = self.act(visit, way, types, faults, make);
        way.state.memo.insert(memo, outs.clone());
        outs
    }

    /// Operations on values alone.
    fn value_op(&mut self, visit: &mut Visit<'a>, way: &mut Way, op: &Op) -> Result<Flow, Header> {
        let ty = |value: &ValueId| Self::model_ty(visit, *value);
        let of = |value: &ValueId| way.state.env[value];
        let (out, value) = match op {
            Op::Const { out, value } => (out, self.values.constant(ty(out), *value)),
            Op::Param { out, param } => (out, self.values.constant(ty(out), visit.scalar(*param))),
            Op::Not { out, a } => (out, self.values.not(ty(out), of(a))),
            Op::Resize { out, a } => (out, self.values.resize(ty(out), of(a))),
            Op::Clamp { out, a } => (out, self.clamp(way, ty(out), of(a))),
            Op::Select { out, cond, a, b } => (out, self.values.select(of(cond), of(a), of(b))),
            Op::Cmp { out, op, a, b } => (out, self.values.cmp(*op, of(a), of(b))),
            Op::Bin { out, op: op @ (BinOp::Div | BinOp::Rem), a, b } => {
                let (a, b) = (of(a), of(b));
                match self.divide(visit, way, *op, a, b) {
                    Some(value) => (out, value),
                    None => return Ok(self.fault(visit, way, Fault::Division)),
                }
            }
            Op::Bin { out, op, a, b } => (out, self.binary(way, *op, ty(out), of(a), of(b))),
            _ => return Ok(Flow::Next),
        };
        self.bind(way, *out, value);
        Ok(Flow::Next)
    }

    fn clamp(&mut self, way: &Way, ty: Ty, a: ValueId) -> ValueId {
        match ends(&way.state.facts.range(&self.values, a)) {
            Some((_, high)) if high <= ty.max() => self.values.resize(ty, a),
            _ => self.values.clamp(ty, a),
        }
    }

    /// A binary operation. A saturating operation that cannot reach its limit becomes a wrapping
    /// one.
    fn binary(&mut self, way: &Way, op: BinOp, ty: Ty, a: ValueId, b: ValueId) -> ValueId {
        let range = |value| ends(&way.state.facts.range(&self.values, value));
        let (Some((a_low, a_high)), Some((b_low, b_high))) = (range(a), range(b)) else {
            return self.values.bin(op, ty, a, b);
        };
        let fits = |high: Option<Word>| high.is_some_and(|high| high <= ty.max());
        let op = match op {
            BinOp::SubSat if a_low >= b_high => BinOp::SubWrap,
            BinOp::AddSat if fits(a_high.checked_add(b_high)) => BinOp::AddWrap,
            BinOp::MulSat if fits(a_high.checked_mul(b_high)) => BinOp::MulWrap,
            BinOp::Min if a_high <= b_low => return a,
            BinOp::Min if b_high <= a_low => return b,
            BinOp::Max if a_low >= b_high => return a,
            BinOp::Max if b_low >= a_high => return b,
            _ => op,
        };
        if self.has_mutant(SynthMutant::LostDecrement)
            && op == BinOp::SubWrap
            && self.values.split(a).1 != 0
        {
            return a;
        }
        self.values.bin(op, ty, a, b)
    }

    /// A quotient or remainder. `None`: the divisor is 0.
    fn divide(
        &mut self,
        visit: &Visit<'_>,
        way: &mut Way,
        op: BinOp,
        a: ValueId,
        b: ValueId,
    ) -> Option<ValueId> {
        let ty = self.values.ty(a);
        match self.values.known(b) {
            Some(0) => return None,
            Some(_) => return Some(self.values.bin(op, ty, a, b)),
            None => {}
        }
        let nonzero = IntervalSet::new([(1, ty.max())]);
        let range = way.state.facts.range(&self.values, b);
        let faults = intersect(&range, &nonzero) != range;
        let memo = Memo::Quotient(op == BinOp::Div, a, b);
        let make = |outs: &[ValueId]| What::Op(Op::Bin { out: outs[0], op, a, b });
        let outs = self.once(visit, way, memo, &[ty], faults, make);
        way.state.facts.learn(&self.values, b, &nonzero).then_some(outs[0])
    }

    /// Lists and sets.
    fn list_op(&mut self, visit: &mut Visit<'a>, way: &mut Way, op: &Op) -> Result<Flow, Header> {
        let node = visit.node();
        match op {
            Op::ListLen { out, param } => {
                let ty = Self::model_ty(visit, *out);
                let value = match &visit.params[param.index()] {
                    ParamValue::List(rows) => self.values.constant(ty, rows.len() as Word),
                    _ => self.values.pure(ty, Pure::Len(node, *param)),
                };
                self.bind(way, *out, value);
            }
            Op::InSet { out, a, set } => {
                let a = self.value(way, *a);
                let value = self.membership(visit, a, set);
                self.bind(way, *out, value);
            }
            Op::ListGet { out, param, index, column } => {
                let at = self.value(way, *index);
                return Ok(self.list_get(visit, way, *out, *param, at, *column));
            }
            Op::BackendUp { out, param, index } => {
                let index = self.value(way, *index);
                let memo = Memo::Up(node, *param, index);
                let param = *param;
                let make =
                    |outs: &[ValueId]| What::Op(Op::BackendUp { out: outs[0], param, index });
                let outs = self.once(visit, way, memo, &[BOOL], true, make);
                self.bind(way, *out, outs[0]);
            }
            _ => {}
        }
        Ok(Flow::Next)
    }

    /// Reads a column of a member of a list or of backends.
    fn list_get(
        &mut self,
        visit: &Visit<'a>,
        way: &mut Way,
        out: ValueId,
        param: ParamId,
        index: ValueId,
        column: u32,
    ) -> Flow {
        let ty = Self::model_ty(visit, out);
        let rows = match &visit.params[param.index()] {
            ParamValue::List(rows) => Some(rows),
            _ => None,
        };
        let mut faults = true;
        if let Some(rows) = rows {
            let inside = members(rows);
            let range = way.state.facts.range(&self.values, index);
            let hit = intersect(&range, &inside);
            if hit.is_empty() {
                return self.fault(visit, way, Fault::Index);
            }
            faults = hit != range;
            let known = self.values.known(index).and_then(|at| rows.get(usize::try_from(at).ok()?));
            if let Some(row) = known {
                let value = self.values.constant(ty, row[column as usize]);
                self.bind(way, out, value);
                return Flow::Next;
            }
        }
        let memo = Memo::ListGet(visit.node(), param, index, column);
        let make = |outs: &[ValueId]| What::Op(Op::ListGet { out: outs[0], param, index, column });
        let value = self.once(visit, way, memo, &[ty], faults, make)[0];
        if let Some(rows) = rows {
            way.state.facts.learn(&self.values, index, &members(rows));
            if rows.len() <= FEW_ROWS {
                let column = column as usize;
                let set = IntervalSet::new(rows.iter().map(|row| (row[column], row[column])));
                way.state.facts.learn(&self.values, value, &set);
            }
        }
        self.bind(way, out, value);
        Flow::Next
    }

    fn membership(&mut self, visit: &Visit<'_>, a: ValueId, set: &SetRef) -> ValueId {
        let members = match set {
            SetRef::Const(members) => members.clone(),
            SetRef::Param(param) => match &visit.params[param.index()] {
                ParamValue::Set(members) => members.clone(),
                _ => IntervalSet::default(),
            },
            SetRef::List(param, column) => match &visit.params[param.index()] {
                ParamValue::List(rows) => {
                    let column = *column as usize;
                    IntervalSet::new(rows.iter().map(|row| (row[column], row[column])))
                }
                ParamValue::Backends(_) => {
                    let pure = Pure::InColumn(a, visit.node(), *param, *column);
                    return self.values.pure(BOOL, pure);
                }
                _ => IntervalSet::default(),
            },
        };
        if let Some(word) = self.values.known(a) {
            return self.values.truth(members.contains(word));
        }
        let number = self.values.intern(&members);
        self.values.pure(BOOL, Pure::InSet(a, number))
    }

    /// Rules, routes, patterns and externs.
    fn lookup_op(&mut self, visit: &mut Visit<'a>, way: &mut Way, op: &Op) -> Result<Flow, Header> {
        match op {
            Op::Rules { pass, rule, param } => {
                let packet = self.rule_fields(visit, way)?;
                let counts = packet.is_some();
                let pure = Pure::Classify(visit.node(), *param, packet.map(Box::new));
                let (passes, number) = self.values.pair(BOOL, WORD, pure);
                if counts {
                    self.step(way.at, What::CountRule { param: *param, rule: number });
                }
                self.bind(way, *pass, passes);
                self.bind(way, *rule, number);
            }
            Op::Route { found, hop, param, addr } => {
                let addr = self.value(way, *addr);
                let pure = Pure::Route(visit.node(), *param, addr);
                let (there, number) = self.values.pair(BOOL, WORD, pure);
                self.bind(way, *found, there);
                self.bind(way, *hop, number);
            }
            Op::Patterns { found, number, param } => {
                self.freshen_payload(way);
                let param = *param;
                let make = |outs: &[ValueId]| {
                    What::Op(Op::Patterns { found: outs[0], number: outs[1], param })
                };
                let outs = self.act(visit, way, &[BOOL, WORD], true, make);
                self.bind(way, *found, outs[0]);
                self.bind(way, *number, outs[1]);
            }
            Op::Extern { outs, name, param, args } => {
                let reads =
                    braid_externs::lookup(name).is_some_and(|op| op.signature.reads_payload());
                if reads {
                    self.freshen_payload(way);
                }
                let args = args.iter().map(|arg| self.value(way, *arg)).collect();
                let types: Vec<Ty> = outs.iter().map(|out| Self::model_ty(visit, *out)).collect();
                let (name, param) = (name.clone(), *param);
                let make = |outs: &[ValueId]| {
                    What::Op(Op::Extern { outs: outs.to_vec(), name, param, args })
                };
                let found = self.act(visit, way, &types, reads, make);
                for (out, value) in outs.iter().zip(found) {
                    self.bind(way, *out, value);
                }
            }
            _ => {}
        }
        Ok(Flow::Next)
    }

    /// Pools and events.
    fn effect(&mut self, visit: &mut Visit<'a>, way: &mut Way, op: &Op) {
        match op {
            Op::Take { ok, out, pool } => {
                let (pool, ty) = (*pool, Self::model_ty(visit, *out));
                let make =
                    |outs: &[ValueId]| What::Op(Op::Take { ok: outs[0], out: outs[1], pool });
                let outs = self.act(visit, way, &[BOOL, ty], false, make);
                self.bind(way, *ok, outs[0]);
                self.bind(way, *out, outs[1]);
            }
            Op::TakeThis { ok, pool, a } => {
                let (pool, a) = (*pool, self.value(way, *a));
                let make = |outs: &[ValueId]| What::Op(Op::TakeThis { ok: outs[0], pool, a });
                let outs = self.act(visit, way, &[BOOL], false, make);
                self.bind(way, *ok, outs[0]);
            }
            Op::Release { pool, a } => {
                let a = self.value(way, *a);
                self.step(way.at, What::Op(Op::Release { pool: *pool, a }));
            }
            Op::Emit { event, args } => {
                let mut values = Vec::with_capacity(args.len());
                for arg in args {
                    values.push(match arg {
                        EventArg::Value(value) => {
                            let kind = Self::model_ty(visit, *value).kind;
                            let value = self.value(way, *value);
                            EventArg::Value(self.values.retype(kind, value))
                        }
                        other => other.clone(),
                    });
                }
                self.step(way.at, What::Op(Op::Emit { event: *event, args: values }));
            }
            _ => {}
        }
    }
}

/// The valid indices of a list.
fn members(rows: &[Vec<Word>]) -> IntervalSet {
    match (rows.len() as Word).checked_sub(1) {
        Some(last) => IntervalSet::new([(0, last)]),
        None => IntervalSet::default(),
    }
}
