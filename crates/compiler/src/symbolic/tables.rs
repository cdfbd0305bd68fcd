//! Operations on state: find, read, assign and remove entries.

use super::Synth;
use super::build::{Edge, Slot, Way, nowhere};
use super::exec::Flow;
use super::mutants::SynthMutant;
use super::state::Memo;
use super::values::Def;
use super::visit::Visit;
use braid_ir::engine::Fault;
use braid_ir::model::{Granularity, Key, Kind, Op, StateId, Ty, ValueId};
use braid_ir::residual::{Counter, End, Fate, What};
use braid_packet::Header;

const BOOL: Ty = Ty { width: 1, kind: Kind::Bool };
const HANDLE: Ty = Ty { width: 64, kind: Kind::Uint };

impl<'a> Synth<'a> {
    pub(super) fn state_op(
        &mut self,
        visit: &mut Visit<'a>,
        way: &mut Way,
        op: &Op,
    ) -> Result<Flow, Header> {
        let (state, key) = match op {
            Op::StateExists { state, key, .. }
            | Op::StateGet { state, key, .. }
            | Op::StateSet { state, key, .. }
            | Op::StatePut { state, key, .. }
            | Op::StateDelete { state, key } => (*state, key),
            Op::StateLen { out, state } => {
                let (state, ty) = (*state, Self::model_ty(visit, *out));
                let make = |outs: &[ValueId]| What::Op(Op::StateLen { out: outs[0], state });
                let outs = self.act(visit, way, &[ty], false, make);
                self.bind(way, *out, outs[0]);
                return Ok(Flow::Next);
            }
            _ => return Ok(Flow::Next),
        };
        let Some(key) = self.key(visit, way, state, key) else {
            return Ok(self.fault(visit, way, Fault::Truncated));
        };
        match op {
            Op::StateExists { out, .. } => {
                let (found, _) = self.find(visit, way, state, &key);
                self.bind(way, *out, found);
            }
            Op::StateGet { outs, .. } => return Ok(self.get(visit, way, state, key, outs)),
            Op::StateSet { ok, values, .. } => {
                let values = values.iter().map(|value| self.value(way, *value)).collect();
                let make = |outs: &[ValueId]| {
                    let key = Key::Explicit(key.clone());
                    What::Op(Op::StateSet { ok: outs[0], state, key, values })
                };
                let outs = self.act(visit, way, &[BOOL], false, make);
                self.assigned(visit, way, state, key);
                self.bind(way, *ok, outs[0]);
            }
            Op::StatePut { ok, slot, value, .. } => {
                let (slot, value) = (*slot, self.value(way, *value));
                let make = |outs: &[ValueId]| {
                    let key = Key::Explicit(key.clone());
                    What::Op(Op::StatePut { ok: outs[0], state, key, slot, value })
                };
                let faults = visit.default(state).is_none();
                let outs = self.act(visit, way, &[BOOL], faults, make);
                self.assigned(visit, way, state, key);
                self.bind(way, *ok, outs[0]);
            }
            Op::StateDelete { .. } => {
                let key = Key::Explicit(key);
                self.step(way.at, What::Op(Op::StateDelete { state, key }));
                way.state.forget_state(visit.node());
                way.state.last.retain(|(node, _), _| *node != visit.node());
            }
            _ => {}
        }
        Ok(Flow::Next)
    }

    /// Updates the state after an assignment: other entries may be gone.
    fn assigned(&mut self, visit: &Visit<'_>, way: &mut Way, state: StateId, key: Vec<ValueId>) {
        if !self.has_mutant(SynthMutant::FindReused) {
            way.state.forget_state(visit.node());
        }
        way.state.last.insert((visit.node(), state), key);
    }

    /// Looks an entry up. Returns whether it exists, and its handle.
    fn find(
        &mut self,
        visit: &Visit<'_>,
        way: &mut Way,
        state: StateId,
        key: &[ValueId],
    ) -> (ValueId, ValueId) {
        let node = visit.node();
        let memo = Memo::Find(node, state, key.to_vec());
        // Entries that live with this table's entries depend on the entry that was found last.
        let ties = visit.model.state.iter().any(|decl| decl.lives_with == Some(state));
        let last = way.state.last.get(&(node, state)).map(Vec::as_slice);
        if ties && last != Some(key) {
            way.state.memo.remove(&memo);
        }
        way.state.last.insert((node, state), key.to_vec());
        let make = |outs: &[ValueId]| What::Find {
            found: outs[0],
            entry: outs[1],
            state,
            key: key.to_vec(),
        };
        let outs = self.once(visit, way, memo, &[BOOL, HANDLE], false, make);
        // Global state always has its one entry.
        if visit.model.state[state.index()].granularity == Granularity::Global {
            way.state.facts.decide(&self.values, outs[0], true);
        }
        (outs[0], outs[1])
    }

    /// The slots of an entry, or the table's default if there is no entry.
    fn get(
        &mut self,
        visit: &Visit<'_>,
        way: &mut Way,
        state: StateId,
        key: Vec<ValueId>,
        outs: &[ValueId],
    ) -> Flow {
        let (found, entry) = self.find(visit, way, state, &key);
        let slots = &visit.model.state[state.index()].slots;
        let types: Vec<Ty> = slots.iter().map(|(_, ty)| *ty).collect();
        let default = visit.default(state);
        let known = way.state.facts.only(&self.values, found).map(|word| word != 0);
        let memo = Memo::Read(visit.node(), state, key);
        if known == Some(true) {
            let values = self.read(visit, way, memo, &types, entry);
            return self.bind_all(way, outs, values);
        }
        let default: Option<Vec<ValueId>> = default.map(|slots| {
            slots.iter().zip(&types).map(|(word, ty)| self.values.constant(*ty, *word)).collect()
        });
        if known == Some(false) {
            return match default {
                Some(values) => self.bind_all(way, outs, values),
                None => self.fault(visit, way, Fault::NoEntry),
            };
        }
        self.blocks.all[way.at].end = End::Branch { cond: found, yes: nowhere(), no: nowhere() };
        let mut there = way.state.clone();
        there.facts.decide(&self.values, found, true);
        let there = Edge { from: way.at, slot: Slot::Yes, state: there };
        let mut gone = way.state.clone();
        gone.facts.decide(&self.values, found, false);
        let gone = Edge { from: way.at, slot: Slot::No, state: gone };
        let mut there = self.blocks.open(there);
        let values = self.read(visit, &mut there, memo, &types, entry);
        match default {
            None => {
                let row = self.fault_row(visit.node());
                let mut gone = self.blocks.open(gone);
                gone.state.count(visit.node(), Counter::Row(row));
                let fate = Fate::Fault { node: visit.node(), fault: Fault::NoEntry };
                self.blocks.exit(&gone, fate);
                *way = there;
                self.bind_all(way, outs, values)
            }
            Some(default) => {
                // One block for both cases, with the slots as its parameters.
                let params: Vec<ValueId> =
                    types.iter().map(|ty| self.values.fresh(*ty, Def::Param)).collect();
                let at = self.blocks.add(params.clone());
                self.blocks.lead(&there.edge(), at, values);
                self.blocks.lead(&gone, at, default);
                way.at = at;
                self.bind_all(way, outs, params)
            }
        }
    }

    fn read(
        &mut self,
        visit: &Visit<'_>,
        way: &mut Way,
        memo: Memo,
        types: &[Ty],
        entry: ValueId,
    ) -> Vec<ValueId> {
        let Memo::Read(_, state, _) = &memo else { return Vec::new() };
        let state = *state;
        let make = |outs: &[ValueId]| What::Read { outs: outs.to_vec(), state, entry };
        self.once(visit, way, memo, types, false, make)
    }

    fn bind_all(&mut self, way: &mut Way, outs: &[ValueId], values: Vec<ValueId>) -> Flow {
        for (out, value) in outs.iter().zip(values) {
            self.bind(way, *out, value);
        }
        Flow::Next
    }
}
