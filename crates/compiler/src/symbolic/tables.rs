//! Operations on state: find, read, assign and remove entries.

use super::build::{Edge, Path, Slot, nowhere};
use super::draft::{Draft, Flow};
use super::keys::key_parts;
use super::mutants::SynthMutant;
use super::state::Memo;
use super::values::Def;
use super::visit::Visit;
use braid_ir::engine::Fault;
use braid_ir::model::{Granularity, Key, Kind, Op, StateId, Ty, ValueId};
use braid_ir::residual::{End, What};
use braid_packet::Header;

const BOOL: Ty = Ty { width: 1, kind: Kind::Bool };
const HANDLE: Ty = Ty { width: 64, kind: Kind::Uint };

/// Executes an operation on a state table.
pub(super) fn state_op(
    draft: &mut Draft,
    visit: &mut Visit<'_>,
    path: &mut Path,
    op: &Op,
) -> Result<Flow, Header> {
    let (state, key) = match op {
        Op::StateExists { state, key, .. }
        | Op::StateGet { state, key, .. }
        | Op::StateSet { state, key, .. }
        | Op::StatePut { state, key, .. }
        | Op::StateDelete { state, key } => (*state, key),
        Op::StateLen { out, state } => {
            let (state, ty) = (*state, visit.ty(*out));
            let make = |outs: &[ValueId]| What::Op(Op::StateLen { out: outs[0], state });
            let outs = draft.act(visit, path, &[ty], false, make);
            draft.bind(path, *out, outs[0]);
            return Ok(Flow::Next);
        }
        _ => return Ok(Flow::Next),
    };
    let Some(key) = key_parts(draft, visit, path, state, key) else {
        return Ok(draft.fault(visit, path, Fault::Truncated));
    };
    match op {
        Op::StateExists { out, .. } => {
            let (found, _) = find(draft, visit, path, state, &key);
            draft.bind(path, *out, found);
        }
        Op::StateGet { outs, .. } => return Ok(get(draft, visit, path, state, key, outs)),
        Op::StateSet { ok, values, .. } => {
            let values = values.iter().map(|value| path.value(*value)).collect();
            let make = |outs: &[ValueId]| {
                let key = Key::Explicit(key.clone());
                What::Op(Op::StateSet { ok: outs[0], state, key, values })
            };
            let outs = draft.act(visit, path, &[BOOL], false, make);
            assigned(draft, visit, path, state, key);
            draft.bind(path, *ok, outs[0]);
        }
        Op::StatePut { ok, slot, value, .. } => {
            let (slot, value) = (*slot, path.value(*value));
            let make = |outs: &[ValueId]| {
                let key = Key::Explicit(key.clone());
                What::Op(Op::StatePut { ok: outs[0], state, key, slot, value })
            };
            let faults = visit.default(state).is_none();
            let outs = draft.act(visit, path, &[BOOL], faults, make);
            assigned(draft, visit, path, state, key);
            draft.bind(path, *ok, outs[0]);
        }
        Op::StateDelete { .. } => {
            let key = Key::Explicit(key);
            draft.step(path.at, What::Op(Op::StateDelete { state, key }));
            path.state.forget_state(visit.node());
            path.state.last.retain(|(node, _), _| *node != visit.node());
        }
        _ => {}
    }
    Ok(Flow::Next)
}

/// Updates the path's state after an assignment to a table. Other entries may have been evicted.
fn assigned(
    draft: &mut Draft,
    visit: &Visit<'_>,
    path: &mut Path,
    state: StateId,
    key: Vec<ValueId>,
) {
    if !draft.has_mutant(SynthMutant::FindReused) {
        path.state.forget_state(visit.node());
    }
    path.state.last.insert((visit.node(), state), key);
}

/// Looks up an entry. Returns two values: whether it exists, and its handle.
pub(super) fn find(
    draft: &mut Draft,
    visit: &Visit<'_>,
    path: &mut Path,
    state: StateId,
    key: &[ValueId],
) -> (ValueId, ValueId) {
    let node = visit.node();
    let memo = Memo::Find(node, state, key.to_vec());
    // A new entry may live with the entry that was found last. So if other entries were looked up
    // since, this lookup is repeated instead of reused.
    let ties = visit.model.state.iter().any(|decl| decl.lives_with == Some(state));
    let last = path.state.last.get(&(node, state)).map(Vec::as_slice);
    if ties && last != Some(key) {
        path.state.memo.remove(&memo);
    }
    path.state.last.insert((node, state), key.to_vec());
    let make =
        |outs: &[ValueId]| What::Find { found: outs[0], entry: outs[1], state, key: key.to_vec() };
    let outs = draft.once(visit, path, memo, &[BOOL, HANDLE], false, make);
    // Global state has one entry, which always exists.
    if visit.model.state[state.index()].granularity == Granularity::Global {
        path.state.facts.decide(&draft.values, outs[0], true);
    }
    (outs[0], outs[1])
}

/// The slots of an entry. For a missing entry, the table's default.
fn get(
    draft: &mut Draft,
    visit: &mut Visit<'_>,
    path: &mut Path,
    state: StateId,
    key: Vec<ValueId>,
    outs: &[ValueId],
) -> Flow {
    let (found, entry) = find(draft, visit, path, state, &key);
    let slots = &visit.model.state[state.index()].slots;
    let types: Vec<Ty> = slots.iter().map(|(_, ty)| *ty).collect();
    let default = visit.default(state);
    let known = path.state.facts.only(&draft.values, found).map(|word| word != 0);
    let memo = Memo::Read(visit.node(), state, key);
    if known == Some(true) {
        let values = read(draft, visit, path, memo, &types, entry);
        return bind_all(draft, path, outs, values);
    }
    let default: Option<Vec<ValueId>> = default.map(|slots| {
        slots.iter().zip(&types).map(|(word, ty)| draft.values.constant(*ty, *word)).collect()
    });
    if known == Some(false) {
        return match default {
            Some(values) => bind_all(draft, path, outs, values),
            None => draft.fault(visit, path, Fault::NoEntry),
        };
    }
    draft.blocks.all[path.at].end = End::Branch { cond: found, yes: nowhere(), no: nowhere() };
    let mut there = path.state.clone();
    there.facts.decide(&draft.values, found, true);
    let there = Edge { from: path.at, slot: Slot::Yes, state: there };
    let mut gone = path.state.clone();
    gone.facts.decide(&draft.values, found, false);
    let gone = Edge { from: path.at, slot: Slot::No, state: gone };
    let mut there = draft.blocks.open(there);
    let values = read(draft, visit, &mut there, memo, &types, entry);
    match default {
        None => {
            let mut gone = draft.blocks.open(gone);
            draft.fault(visit, &mut gone, Fault::NoEntry);
            *path = there;
            bind_all(draft, path, outs, values)
        }
        Some(default) => {
            // One block for both cases, with the slots as its parameters.
            let params: Vec<ValueId> =
                types.iter().map(|ty| draft.values.fresh(*ty, Def::Param)).collect();
            let at = draft.blocks.add(params.clone());
            draft.blocks.lead(&there.edge(), at, values);
            draft.blocks.lead(&gone, at, default);
            path.at = at;
            bind_all(draft, path, outs, params)
        }
    }
}

fn read(
    draft: &mut Draft,
    visit: &Visit<'_>,
    path: &mut Path,
    memo: Memo,
    types: &[Ty],
    entry: ValueId,
) -> Vec<ValueId> {
    let Memo::Read(_, state, _) = &memo else { return Vec::new() };
    let state = *state;
    let make = |outs: &[ValueId]| What::Read { outs: outs.to_vec(), state, entry };
    draft.once(visit, path, memo, types, false, make)
}

fn bind_all(draft: &mut Draft, path: &mut Path, outs: &[ValueId], values: Vec<ValueId>) -> Flow {
    for (out, value) in outs.iter().zip(values) {
        draft.bind(path, *out, value);
    }
    Flow::Next
}
