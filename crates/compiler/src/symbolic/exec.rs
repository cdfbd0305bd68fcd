//! The effect of each operation of a model on the abstract state.

use super::build::Path;
use super::draft::{Draft, Flow};
use super::faults::lead_off;
use super::fields::rule_fields;
use super::mutants::SynthMutant;
use super::packet::packet_op;
use super::range::ends;
use super::state::Memo;
use super::tables::state_op;
use super::values::Pure;
use super::visit::Visit;
use super::write::{freshen, freshen_payload};
use braid_ir::engine::Fault;
use braid_ir::model::{Area, BinOp, EventArg, Kind, Op, ParamId, SetRef, Ty, ValueId, Word};
use braid_ir::residual::What;
use braid_ir::value::{IntervalSet, ParamValue};
use braid_packet::Header;

/// The largest number of rows of a list for which the values of a column become a fact.
const FEW_ROWS: usize = 64;

const BOOL: Ty = Ty { width: 1, kind: Kind::Bool };
const WORD: Ty = Ty { width: 32, kind: Kind::Uint };

/// Executes an operation.
pub(super) fn execute_op(
    draft: &mut Draft,
    visit: &mut Visit<'_>,
    path: &mut Path,
    op: &Op,
) -> Flow {
    let flow = match visit.event {
        Some(_) => lead_off(draft, visit, path, op),
        None => Flow::Next,
    };
    match flow {
        Flow::Next => run(draft, visit, path, op).unwrap_or_else(Flow::Needs),
        flow => flow,
    }
}

fn run(draft: &mut Draft, visit: &mut Visit<'_>, path: &mut Path, op: &Op) -> Result<Flow, Header> {
    match op {
        Op::Const { .. }
        | Op::Param { .. }
        | Op::Not { .. }
        | Op::Resize { .. }
        | Op::Clamp { .. }
        | Op::Select { .. }
        | Op::Cmp { .. }
        | Op::Bin { .. } => value_op(draft, visit, path, op),
        Op::ListLen { .. } | Op::ListGet { .. } | Op::BackendUp { .. } | Op::InSet { .. } => {
            list_op(draft, visit, path, op)
        }
        Op::Has { .. }
        | Op::Load { .. }
        | Op::LoadEntry { .. }
        | Op::Store { .. }
        | Op::StoreBytes { .. }
        | Op::ReplaceBytes { .. }
        | Op::SetOption { .. }
        | Op::Encapsulate { .. }
        | Op::Decapsulate { .. }
        | Op::Translate { .. }
        | Op::Encrypt { .. }
        | Op::Decrypt { .. }
        | Op::LoadTag { .. }
        | Op::StoreTag { .. }
        | Op::PushVlan { .. }
        | Op::PopVlan
        | Op::HasRoom { .. }
        | Op::PushOption { .. }
        | Op::PopOption { .. }
        | Op::Count { .. }
        | Op::Mirror { .. }
        | Op::Create { .. } => packet_op(draft, visit, path, op),
        Op::Rules { .. }
        | Op::Route { .. }
        | Op::Patterns { .. }
        | Op::FindPatterns { .. }
        | Op::InStrings { .. }
        | Op::LoadBytes { .. }
        | Op::LoadString { .. }
        | Op::Extern { .. } => lookup_op(draft, visit, path, op),
        Op::StateExists { .. }
        | Op::StateGet { .. }
        | Op::StateSet { .. }
        | Op::StatePut { .. }
        | Op::StateDelete { .. }
        | Op::StateLen { .. } => state_op(draft, visit, path, op),
        Op::Take { .. } | Op::TakeThis { .. } | Op::Release { .. } | Op::Emit { .. } => {
            effect(draft, visit, path, op);
            Ok(Flow::Next)
        }
        Op::LoadEvent { out, field } => {
            if let Some(value) = visit.field(*field) {
                draft.bind(path, *out, value);
            }
            Ok(Flow::Next)
        }
        // Packet programs have none of these operations, the function has no residual program, or
        // the program ends in front of the function for these packets.
        Op::Expiring { .. }
        | Op::ExpiringKey { .. }
        | Op::Native { .. }
        | Op::Stream { .. }
        | Op::LoadStream { .. }
        | Op::StreamMatch { .. } => Ok(Flow::Next),
    }
}

/// Operations on values alone.
fn value_op(
    draft: &mut Draft,
    visit: &mut Visit<'_>,
    path: &mut Path,
    op: &Op,
) -> Result<Flow, Header> {
    let ty = |value: &ValueId| visit.ty(*value);
    let of = |value: &ValueId| path.state.env[value];
    let (out, value) = match op {
        Op::Const { out, value } => (out, draft.values.constant(ty(out), *value)),
        Op::Param { out, param } => (out, draft.values.constant(ty(out), visit.scalar(*param))),
        Op::Not { out, a } => (out, draft.values.not(ty(out), of(a))),
        Op::Resize { out, a } => (out, draft.values.resize(ty(out), of(a))),
        Op::Clamp { out, a } => (out, clamp(draft, path, ty(out), of(a))),
        Op::Select { out, cond, a, b } => (out, draft.values.select(of(cond), of(a), of(b))),
        Op::Cmp { out, op, a, b } => (out, draft.values.cmp(*op, of(a), of(b))),
        Op::Bin { out, op: op @ (BinOp::Div | BinOp::Rem), a, b } => {
            let (a, b) = (of(a), of(b));
            match divide(draft, visit, path, *op, a, b) {
                Some(value) => (out, value),
                None => return Ok(draft.fault(visit, path, Fault::Division)),
            }
        }
        Op::Bin { out, op, a, b } => (out, binary(draft, path, *op, ty(out), of(a), of(b))),
        _ => return Ok(Flow::Next),
    };
    draft.bind(path, *out, value);
    Ok(Flow::Next)
}

fn clamp(draft: &mut Draft, path: &Path, ty: Ty, a: ValueId) -> ValueId {
    match ends(&path.state.facts.range(&draft.values, a)) {
        Some((_, high)) if high <= ty.max() => draft.values.resize(ty, a),
        _ => draft.values.clamp(ty, a),
    }
}

/// A binary operation that cannot fault. A saturating operation that cannot reach its limit becomes
/// a wrapping one.
fn binary(draft: &mut Draft, path: &Path, op: BinOp, ty: Ty, a: ValueId, b: ValueId) -> ValueId {
    let range = |value| ends(&path.state.facts.range(&draft.values, value));
    let (Some((a_low, a_high)), Some((b_low, b_high))) = (range(a), range(b)) else {
        return draft.values.bin(op, ty, a, b);
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
    if draft.has_mutant(SynthMutant::LostDecrement)
        && op == BinOp::SubWrap
        && draft.values.split(a).1 != 0
    {
        return a;
    }
    draft.values.bin(op, ty, a, b)
}

/// A quotient or remainder. `None` if the divisor is 0.
fn divide(
    draft: &mut Draft,
    visit: &Visit<'_>,
    path: &mut Path,
    op: BinOp,
    a: ValueId,
    b: ValueId,
) -> Option<ValueId> {
    let ty = draft.values.ty(a);
    match draft.values.known(b) {
        Some(0) => return None,
        Some(_) => return Some(draft.values.bin(op, ty, a, b)),
        None => {}
    }
    let nonzero = IntervalSet::new([(1, ty.max())]);
    let range = path.state.facts.range(&draft.values, b);
    let faults = range.intersection(&nonzero) != range;
    let memo = Memo::Quotient(op == BinOp::Div, a, b);
    let make = |outs: &[ValueId]| What::Op(Op::Bin { out: outs[0], op, a, b });
    let outs = draft.once(visit, path, memo, &[ty], faults, make);
    path.state.facts.learn(&draft.values, b, &nonzero).then_some(outs[0])
}

/// Lists and sets.
fn list_op(
    draft: &mut Draft,
    visit: &mut Visit<'_>,
    path: &mut Path,
    op: &Op,
) -> Result<Flow, Header> {
    let node = visit.node();
    match op {
        Op::ListLen { out, param } => {
            let ty = visit.ty(*out);
            let value = match &visit.params[param.index()] {
                ParamValue::List(rows) => draft.values.constant(ty, rows.len() as Word),
                _ => draft.values.pure(ty, Pure::Len(node, *param)),
            };
            draft.bind(path, *out, value);
        }
        Op::InSet { out, a, set } => {
            let a = path.value(*a);
            let value = membership(draft, visit, a, set);
            draft.bind(path, *out, value);
        }
        Op::ListGet { out, param, index, column } => {
            let at = path.value(*index);
            return Ok(list_get(draft, visit, path, *out, *param, at, *column));
        }
        Op::BackendUp { out, param, index } => {
            let index = path.value(*index);
            let memo = Memo::Up(node, *param, index);
            let param = *param;
            let make = |outs: &[ValueId]| What::Op(Op::BackendUp { out: outs[0], param, index });
            let outs = draft.once(visit, path, memo, &[BOOL], true, make);
            draft.bind(path, *out, outs[0]);
        }
        _ => {}
    }
    Ok(Flow::Next)
}

/// Reads a column of a member of a list or of backends.
fn list_get(
    draft: &mut Draft,
    visit: &mut Visit<'_>,
    path: &mut Path,
    out: ValueId,
    param: ParamId,
    index: ValueId,
    column: u32,
) -> Flow {
    let ty = visit.ty(out);
    let rows = match &visit.params[param.index()] {
        ParamValue::List(rows) => Some(rows),
        _ => None,
    };
    let mut faults = true;
    if let Some(rows) = rows {
        let inside = members(rows);
        let range = path.state.facts.range(&draft.values, index);
        let hit = range.intersection(&inside);
        if hit.is_empty() {
            return draft.fault(visit, path, Fault::Index);
        }
        faults = hit != range;
        let known = draft.values.known(index).and_then(|at| rows.get(usize::try_from(at).ok()?));
        if let Some(row) = known {
            let value = draft.values.constant(ty, row[column as usize]);
            draft.bind(path, out, value);
            return Flow::Next;
        }
    }
    let memo = Memo::ListGet(visit.node(), param, index, column);
    let make = |outs: &[ValueId]| What::Op(Op::ListGet { out: outs[0], param, index, column });
    let value = draft.once(visit, path, memo, &[ty], faults, make)[0];
    if let Some(rows) = rows {
        path.state.facts.learn(&draft.values, index, &members(rows));
        if rows.len() <= FEW_ROWS {
            let column = column as usize;
            let set = IntervalSet::new(rows.iter().map(|row| (row[column], row[column])));
            path.state.facts.learn(&draft.values, value, &set);
        }
    }
    draft.bind(path, out, value);
    Flow::Next
}

fn membership(draft: &mut Draft, visit: &Visit<'_>, a: ValueId, set: &SetRef) -> ValueId {
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
                return draft.values.pure(BOOL, pure);
            }
            _ => IntervalSet::default(),
        },
    };
    if let Some(word) = draft.values.known(a) {
        return draft.values.truth(members.contains(word));
    }
    let number = draft.values.intern(&members);
    draft.values.pure(BOOL, Pure::InSet(a, number))
}

/// Rules, routes, patterns and externs.
fn lookup_op(
    draft: &mut Draft,
    visit: &mut Visit<'_>,
    path: &mut Path,
    op: &Op,
) -> Result<Flow, Header> {
    match op {
        Op::Rules { pass, rule, param } => {
            let packet = rule_fields(draft, visit, path)?;
            let counts = packet.is_some();
            let pure = Pure::Classify(visit.node(), *param, packet.map(Box::new));
            let (passes, number) = draft.values.pair(BOOL, WORD, pure);
            if counts {
                draft.step(path.at, What::CountRule { param: *param, rule: number });
            }
            draft.bind(path, *pass, passes);
            draft.bind(path, *rule, number);
        }
        Op::Route { found, hop, param, addr } => {
            let addr = path.value(*addr);
            let pure = Pure::Route(visit.node(), *param, addr);
            let (there, number) = draft.values.pair(BOOL, WORD, pure);
            draft.bind(path, *found, there);
            draft.bind(path, *hop, number);
        }
        Op::Patterns { found, number, param } => {
            freshen_payload(draft, path);
            let param = *param;
            let make = |outs: &[ValueId]| {
                What::Op(Op::Patterns { found: outs[0], number: outs[1], param })
            };
            let outs = draft.act(visit, path, &[BOOL, WORD], true, make);
            draft.bind(path, *found, outs[0]);
            draft.bind(path, *number, outs[1]);
        }
        Op::FindPatterns { .. } | Op::InStrings { .. } => strings_op(draft, visit, path, op),
        Op::LoadBytes { .. } | Op::LoadString { .. } => bytes_op(draft, visit, path, op),
        Op::Extern { outs, name, param, args } => {
            let reads = braid_externs::lookup(name).is_some_and(|op| op.signature.reads_payload());
            if reads {
                freshen_payload(draft, path);
            }
            let args = args.iter().map(|arg| path.value(*arg)).collect();
            let types: Vec<Ty> = outs.iter().map(|out| visit.ty(*out)).collect();
            let (name, param) = (name.clone(), *param);
            let make =
                |outs: &[ValueId]| What::Op(Op::Extern { outs: outs.to_vec(), name, param, args });
            let found = draft.act(visit, path, &types, reads, make);
            for (out, value) in outs.iter().zip(found) {
                draft.bind(path, *out, value);
            }
        }
        _ => {}
    }
    Ok(Flow::Next)
}

/// The places of patterns, and sets of strings.
fn strings_op(draft: &mut Draft, visit: &mut Visit<'_>, path: &mut Path, op: &Op) {
    let mut placed = op.clone();
    let finds = matches!(op, Op::FindPatterns { .. });
    let reads = matches!(op, Op::FindPatterns { of, .. } if of.is_payload());
    if reads {
        freshen_payload(draft, path);
    }
    if op.is_beyond_records() {
        visit.beyond_records(path);
    }
    placed.visit_uses_mut(&mut |value| *value = path.value(*value));
    if let Op::InStrings { len, words, .. } = &mut placed
        && draft.has_mutant(SynthMutant::LengthLost)
    {
        let ty = draft.values.ty(*len);
        *len = draft.values.constant(ty, 16 * words.len() as Word);
    }
    let types: Vec<Ty> = op.outs().iter().map(|out| visit.ty(*out)).collect();
    let mut made = draft.act(visit, path, &types, reads, |made| {
        let mut made = made.iter();
        placed.visit_outs_mut(&mut |out| *out = *made.next().unwrap_or(out));
        What::Op(placed)
    });
    if finds && draft.has_mutant(SynthMutant::PlaceSwapped) {
        made.swap(2, 3);
    }
    for (out, value) in op.outs().into_iter().zip(made) {
        draft.bind(path, out, value);
    }
}

/// Pools and events.
fn effect(draft: &mut Draft, visit: &mut Visit<'_>, path: &mut Path, op: &Op) {
    match op {
        Op::Take { ok, out, pool } => {
            let (pool, ty) = (*pool, visit.ty(*out));
            let make = |outs: &[ValueId]| What::Op(Op::Take { ok: outs[0], out: outs[1], pool });
            let outs = draft.act(visit, path, &[BOOL, ty], false, make);
            draft.bind(path, *ok, outs[0]);
            draft.bind(path, *out, outs[1]);
        }
        Op::TakeThis { ok, pool, a } => {
            let (pool, a) = (*pool, path.value(*a));
            let make = |outs: &[ValueId]| What::Op(Op::TakeThis { ok: outs[0], pool, a });
            let outs = draft.act(visit, path, &[BOOL], false, make);
            draft.bind(path, *ok, outs[0]);
        }
        Op::Release { pool, a } => {
            let a = path.value(*a);
            draft.step(path.at, What::Op(Op::Release { pool: *pool, a }));
        }
        Op::Emit { event, args } => {
            let mut values = Vec::with_capacity(args.len());
            for arg in args {
                values.push(match arg {
                    EventArg::Value(value) => {
                        let kind = visit.ty(*value).kind;
                        let value = path.value(*value);
                        EventArg::Value(draft.values.retype(kind, value))
                    }
                    EventArg::Bytes(ids) => {
                        EventArg::Bytes(ids.iter().map(|id| path.value(*id)).collect())
                    }
                    other => other.clone(),
                });
            }
            draft.step(path.at, What::Op(Op::Emit { event: *event, args: values }));
        }
        _ => {}
    }
}

/// The valid indices of a list.
fn members(rows: &[Vec<Word>]) -> IntervalSet {
    match (rows.len() as Word).checked_sub(1) {
        Some(last) => IntervalSet::new([(0, last)]),
        None => IntervalSet::default(),
    }
}

/// Prepares the packet for an operation that reads an area, which no record contains if it is the
/// payload.
fn freshen_area(draft: &mut Draft, visit: &Visit<'_>, path: &mut Path, area: Area) {
    match area {
        Area::Payload => {
            freshen_payload(draft, path);
            visit.beyond_records(path);
        }
        Area::TcpOption(_) | Area::IpOption(_) | Area::Ip6Extension(_) => freshen(draft, path),
    }
}

/// Reads bytes of an area.
fn bytes_op(draft: &mut Draft, visit: &mut Visit<'_>, path: &mut Path, op: &Op) {
    match op {
        Op::LoadString { found, outs, area, offset, len } => {
            freshen_area(draft, visit, path, *area);
            let (area, offset, len) = (*area, path.value(*offset), path.value(*len));
            let types: Vec<Ty> =
                [found].into_iter().chain(outs).map(|out| visit.ty(*out)).collect();
            let made = draft.act(visit, path, &types, true, |made| {
                let (found, outs) = (made[0], made[1..].to_vec());
                What::Op(Op::LoadString { found, outs, area, offset, len })
            });
            for (out, value) in [found].into_iter().chain(outs).zip(made) {
                draft.bind(path, *out, value);
            }
        }
        Op::LoadBytes { found, out, area, offset } => {
            freshen_area(draft, visit, path, *area);
            let area = *area;
            let (offset, ty) = (path.value(*offset), visit.ty(*out));
            let make = |outs: &[ValueId]| {
                What::Op(Op::LoadBytes { found: outs[0], out: outs[1], area, offset })
            };
            let outs = draft.act(visit, path, &[BOOL, ty], true, make);
            draft.bind(path, *found, outs[0]);
            draft.bind(path, *out, outs[1]);
        }
        _ => {}
    }
}
