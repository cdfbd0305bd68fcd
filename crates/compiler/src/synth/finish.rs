//! From a finished graph of blocks to a residual program: what nobody needs is left out, values are
//! put in their places and numbered anew.

use super::Synth;
use super::place::{Places, Spot};
use super::values::{Def, Pure, Values};
use braid_ir::model::{BlockId, Op, SetRef, Ty, ValueId};
use braid_ir::residual::{Block, End, Residual, Step, TallyId, What};
use std::collections::HashMap;

/// A finished graph.
pub(crate) struct Finish {
    /// The program, so far without blocks and values.
    program: Residual,
    pub(super) values: Values,
    pub(super) blocks: Vec<Block>,
    /// Where the program for the main way begins, if there is one.
    pub(super) main: Option<usize>,
    /// Jumps to each block, as (block, which of its targets).
    preds: Vec<Vec<(usize, usize)>>,
    live: Vec<bool>,
    /// The block that all ways to a block last have in common; of block 0 itself.
    pub(super) dominator: Vec<usize>,
    pub(super) depth: Vec<usize>,
    /// Whether the packet's bytes may have changed before a block.
    pub(super) changed: Vec<bool>,
    /// Of each block, the first step that changes bytes.
    pub(super) change: Vec<usize>,
}

impl Finish {
    /// The graph of a synthesis, without blocks that only jump.
    pub(crate) fn of(synth: Synth<'_>) -> Self {
        let shape = synth.shape();
        let Synth { start, values, blocks, visits, guarded, .. } = synth;
        let (values_then, all) = (Vec::new(), Vec::new());
        let program = Residual {
            point: start,
            shape,
            visits,
            values: values_then,
            blocks: all,
            tallies: blocks.tallies,
        };
        Self::new(program, values, shorten(blocks.all), guarded)
    }

    fn new(program: Residual, values: Values, blocks: Vec<Block>, guarded: bool) -> Self {
        let main = match &blocks[0].end {
            End::Branch { yes, .. } if guarded => Some(yes.block.index()),
            _ => None,
        };
        let mut preds = vec![Vec::new(); blocks.len()];
        for (at, block) in blocks.iter().enumerate() {
            for (slot, target) in block.end.targets().into_iter().enumerate() {
                preds[target.block.index()].push((at, slot));
            }
        }
        let (mut dominator, mut depth) = (vec![0; blocks.len()], vec![0; blocks.len()]);
        let (mut changed, mut change) = (vec![false; blocks.len()], Vec::new());
        for (at, block) in blocks.iter().enumerate() {
            let mut common = None;
            for (pred, _) in &preds[at] {
                common = Some(match common {
                    None => *pred,
                    Some(other) => meet(&dominator, &depth, other, *pred),
                });
                changed[at] |= changed[*pred] || change[*pred] < blocks[*pred].steps.len();
            }
            if let Some(common) = common {
                dominator[at] = common;
                depth[at] = depth[common] + 1;
            }
            let first = block.steps.iter().position(|step| changes(&step.what));
            change.push(first.unwrap_or(block.steps.len()));
        }
        let live = vec![false; values.len()];
        Self { program, values, blocks, main, preds, live, dominator, depth, changed, change }
    }

    /// Finds the values that something needs.
    pub(crate) fn mark(&mut self) {
        let mut todo = Vec::new();
        let mut home: HashMap<ValueId, (usize, usize)> = HashMap::new();
        let mut param: HashMap<ValueId, (usize, usize)> = HashMap::new();
        for (at, block) in self.blocks.iter().enumerate() {
            for (number, value) in block.params.iter().enumerate() {
                param.insert(*value, (at, number));
            }
            for (number, step) in block.steps.iter().enumerate() {
                step.what.visit_outs(&mut |out| {
                    home.insert(*out, (at, number));
                });
                if acts(step) {
                    todo.extend(step.what.uses());
                }
            }
            block.end.visit_uses(&mut |value| todo.push(*value));
        }
        while let Some(value) = todo.pop() {
            if std::mem::replace(&mut self.live[value.index()], true) {
                continue;
            }
            match self.values.def(value) {
                Def::Param => {
                    let Some((at, number)) = param.get(&value) else { continue };
                    for (pred, slot) in &self.preds[*at] {
                        let targets = self.blocks[*pred].end.targets();
                        todo.push(targets[*slot].args[*number]);
                    }
                }
                Def::Step => {
                    if let Some((at, number)) = home.get(&value) {
                        todo.extend(self.blocks[*at].steps[*number].what.uses());
                    }
                }
                Def::Second(first) => todo.push(*first),
                Def::Pure(pure) => operands(pure, &mut |value| todo.push(value)),
            }
        }
    }

    /// Removes steps and parameters that nobody needs.
    pub(crate) fn drop_dead(&mut self) {
        let live = &self.live;
        let kept: Vec<Vec<bool>> = self
            .blocks
            .iter()
            .map(|block| block.params.iter().map(|value| live[value.index()]).collect())
            .collect();
        for (at, block) in self.blocks.iter_mut().enumerate() {
            let mut keep = kept[at].iter();
            block.params.retain(|_| keep.next() == Some(&true));
            block
                .steps
                .retain(|step| acts(step) || step.what.outs().iter().any(|out| live[out.index()]));
            block.end.visit_targets_mut(&mut |target| {
                let mut keep = kept[target.block.index()].iter();
                target.args.retain(|_| keep.next() == Some(&true));
            });
            let first = block.steps.iter().position(|step| changes(&step.what));
            self.change[at] = first.unwrap_or(block.steps.len());
        }
    }

    /// The program.
    pub(crate) fn emit(mut self, places: &[Places]) -> Residual {
        let mut at_spot: HashMap<Spot, Vec<ValueId>> = HashMap::new();
        for (number, places) in places.iter().enumerate() {
            let value = ValueId(u32::try_from(number).unwrap_or(u32::MAX));
            if let Def::Pure(_) = self.values.def(value) {
                let ends = places.ends.iter().map(|(block, number)| (*block, *number));
                for spot in places.spots.into_iter().flatten().chain(ends) {
                    at_spot.entry(spot).or_default().push(value);
                }
            }
        }
        let mut names = Names::default();
        let mut blocks = Vec::with_capacity(self.blocks.len());
        for (at, block) in self.blocks.iter().enumerate() {
            names.here.clear();
            names.ends = block.end.targets().is_empty();
            let params = block.params.iter();
            let params = params.map(|value| names.define(*value, self.values.ty(*value))).collect();
            let mut steps = Vec::new();
            for number in 0..=block.steps.len() {
                for value in at_spot.get(&(at, number)).into_iter().flatten() {
                    let step = self.pure_step(*value, &mut names, &mut steps);
                    steps.push(step);
                }
                if let Some(step) = block.steps.get(number) {
                    let mut step = step.clone();
                    step.what.visit_uses_mut(&mut |value| {
                        *value = self.name(*value, &mut names, &mut steps);
                    });
                    step.what.visit_outs_mut(&mut |value| {
                        *value = names.define(*value, self.values.ty(*value));
                    });
                    steps.push(step);
                }
            }
            let mut end = block.end.clone();
            end.visit_uses_mut(&mut |value| *value = self.name(*value, &mut names, &mut steps));
            end.visit_targets_mut(&mut |target| {
                for value in &mut target.args {
                    *value = self.name(*value, &mut names, &mut steps);
                }
            });
            blocks.push(Block { params, steps, end });
        }
        self.program.blocks = blocks;
        self.program.values = names.types;
        drop_unused_tallies(&mut self.program);
        self.program
    }

    /// The new number of a value; constants come about in the block where they are used.
    fn name(&self, value: ValueId, names: &mut Names, steps: &mut Vec<Step>) -> ValueId {
        if let Some(name) = names.get(value) {
            return name;
        }
        let word = self.values.known(value).unwrap_or(0);
        let out = names.define_here(value, self.values.ty(value));
        let what = What::Op(Op::Const { out, value: word });
        steps.push(Step { site: self.values.site(value), what, fault: None });
        out
    }

    /// The step that computes a pure value.
    fn pure_step(&self, value: ValueId, names: &mut Names, steps: &mut Vec<Step>) -> Step {
        let Def::Pure(pure) = self.values.def(value) else {
            unreachable!("only pure values are placed")
        };
        let mut what = match pure.clone() {
            Pure::Const(word) => What::Op(Op::Const { out: value, value: word }),
            Pure::Init(field) => What::Op(Op::Load { out: value, field }),
            Pure::Bin(op, a, b) => What::Op(Op::Bin { out: value, op, a, b }),
            Pure::Cmp(op, a, b) => What::Op(Op::Cmp { out: value, op, a, b }),
            Pure::Not(a) => What::Op(Op::Not { out: value, a }),
            Pure::Resize(a) | Pure::Retype(a, _) => What::Op(Op::Resize { out: value, a }),
            Pure::Clamp(a) => What::Op(Op::Clamp { out: value, a }),
            Pure::Select(cond, a, b) => What::Op(Op::Select { out: value, cond, a, b }),
            Pure::InSet(a, set) => {
                let set = SetRef::Const(self.values.set(set).clone());
                What::Op(Op::InSet { out: value, a, set })
            }
            Pure::InColumn(a, _, param, column) => {
                What::Op(Op::InSet { out: value, a, set: SetRef::List(param, column) })
            }
            Pure::Len(_, param) => What::Op(Op::ListLen { out: value, param }),
            Pure::Route(_, param, addr) => {
                let hop = ValueId(value.0 + 1);
                What::Op(Op::Route { found: value, hop, param, addr })
            }
            Pure::Classify(_, param, packet) => {
                What::Classify { pass: value, rule: ValueId(value.0 + 1), param, packet }
            }
        };
        what.visit_uses_mut(&mut |used| *used = self.name(*used, names, steps));
        what.visit_outs_mut(&mut |out| *out = names.define(*out, self.values.ty(*out)));
        Step { site: self.values.site(value), what, fault: None }
    }
}

/// New numbers of values.
#[derive(Default)]
struct Names {
    of: HashMap<ValueId, ValueId>,
    /// Those that are only good in this block.
    here: HashMap<ValueId, ValueId>,
    /// Whether the block ends the program, so that nothing in it is good elsewhere.
    ends: bool,
    types: Vec<Ty>,
}

impl Names {
    fn get(&self, value: ValueId) -> Option<ValueId> {
        self.here.get(&value).or_else(|| self.of.get(&value)).copied()
    }

    fn define(&mut self, value: ValueId, ty: Ty) -> ValueId {
        if self.ends {
            return self.define_here(value, ty);
        }
        let name = self.fresh(ty);
        self.of.insert(value, name);
        name
    }

    fn define_here(&mut self, value: ValueId, ty: Ty) -> ValueId {
        let name = self.fresh(ty);
        self.here.insert(value, name);
        name
    }

    fn fresh(&mut self, ty: Ty) -> ValueId {
        let name = ValueId(u32::try_from(self.types.len()).unwrap_or(u32::MAX));
        self.types.push(ty);
        name
    }
}

/// The last block that ways to both have in common.
pub(super) fn meet(dominator: &[usize], depth: &[usize], mut a: usize, mut b: usize) -> usize {
    while a != b {
        if depth[a] >= depth[b] {
            a = dominator[a];
        } else {
            b = dominator[b];
        }
    }
    a
}

/// Visits what a pure value is made of.
pub(super) fn operands(pure: &Pure, each: &mut dyn FnMut(ValueId)) {
    match pure {
        Pure::Const(_) | Pure::Init(_) | Pure::Len(..) => {}
        Pure::Bin(_, a, b) | Pure::Cmp(_, a, b) => {
            each(*a);
            each(*b);
        }
        Pure::Not(a)
        | Pure::Resize(a)
        | Pure::Retype(a, _)
        | Pure::Clamp(a)
        | Pure::InSet(a, _)
        | Pure::InColumn(a, ..)
        | Pure::Route(_, _, a) => each(*a),
        Pure::Select(a, b, c) => {
            each(*a);
            each(*b);
            each(*c);
        }
        Pure::Classify(_, _, packet) => {
            if let Some(packet) = packet {
                packet.visit_values(&mut |value| each(*value));
            }
        }
    }
}

/// Whether a step does something beside giving results.
fn acts(step: &Step) -> bool {
    let pure = match &step.what {
        What::Read { .. } => true,
        What::Op(op) => matches!(
            op,
            Op::Load { .. }
                | Op::LoadTag { .. }
                | Op::Has { .. }
                | Op::ListGet { .. }
                | Op::BackendUp { .. }
                | Op::Bin { .. }
                | Op::StateLen { .. }
        ),
        _ => false,
    };
    !pure || step.fault.is_some()
}

/// Whether a step changes the packet's bytes, or how they are read.
fn changes(what: &What) -> bool {
    matches!(what, What::Write(_) | What::Parse | What::Op(Op::PushVlan { .. } | Op::PopVlan))
}

/// Leads jumps past blocks that only jump, and leaves out blocks that nothing leads to.
fn shorten(mut blocks: Vec<Block>) -> Vec<Block> {
    for at in (0..blocks.len()).rev() {
        let mut end = blocks[at].end.clone();
        end.visit_targets_mut(&mut |target| {
            let there = &blocks[target.block.index()];
            if there.params.is_empty()
                && there.steps.is_empty()
                && let End::Jump(on) = &there.end
            {
                *target = on.clone();
            }
        });
        if let End::Branch { yes, no, .. } = &end
            && yes == no
        {
            end = End::Jump(yes.clone());
        }
        blocks[at].end = end;
    }
    merge(&mut blocks);
    let mut reached = vec![false; blocks.len()];
    let mut new = Vec::with_capacity(blocks.len());
    reached[0] = true;
    let mut count = 0;
    for (at, block) in blocks.iter().enumerate() {
        new.push(BlockId(count));
        if reached[at] {
            count += 1;
            block.end.visit_targets(&mut |target| reached[target.block.index()] = true);
        }
    }
    let mut kept = reached.iter();
    blocks.retain(|_| kept.next() == Some(&true));
    for block in &mut blocks {
        block.end.visit_targets_mut(&mut |target| target.block = new[target.block.index()]);
    }
    blocks
}

/// Puts blocks after those that alone jump to them.
fn merge(blocks: &mut [Block]) {
    let mut preds = vec![0; blocks.len()];
    // Blocks that nothing leads to do not count, and take nothing away from those that are left.
    let reached = |preds: &[usize], at: usize| at == 0 || preds[at] > 0;
    for (at, block) in blocks.iter().enumerate() {
        if reached(&preds, at) {
            block.end.visit_targets(&mut |target| preds[target.block.index()] += 1);
        }
    }
    for at in (0..blocks.len()).rev().filter(|at| reached(&preds, *at)) {
        let End::Jump(target) = &blocks[at].end else { continue };
        let there = target.block.index();
        if preds[there] == 1 && blocks[there].params.is_empty() {
            let steps = std::mem::take(&mut blocks[there].steps);
            let end = blocks[there].end.clone();
            blocks[at].steps.extend(steps);
            blocks[at].end = end;
        }
    }
}

/// Leaves out tallies that nothing counts.
fn drop_unused_tallies(program: &mut Residual) {
    let mut new = HashMap::new();
    let mut tallies = Vec::new();
    let old = std::mem::take(&mut program.tallies);
    let mut keep = |id: &mut TallyId| {
        *id = *new.entry(*id).or_insert_with(|| {
            let at = usize::try_from(id.0).unwrap_or(usize::MAX);
            tallies.push(old[at].clone());
            TallyId(u32::try_from(tallies.len() - 1).unwrap_or(u32::MAX))
        });
    };
    for block in &mut program.blocks {
        for step in &mut block.steps {
            if let Some(id) = &mut step.fault {
                keep(id);
            }
            if let What::Tally(id) = &mut step.what {
                keep(id);
            }
        }
        match &mut block.end {
            End::Exit(exit) => keep(&mut exit.tally),
            End::Hold { tally, .. } => keep(tally),
            _ => {}
        }
    }
    program.tallies = tallies;
}
