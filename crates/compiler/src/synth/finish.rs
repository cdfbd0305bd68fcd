//! From a finished graph of blocks to a residual program: what nobody needs is left out, and pure
//! values are computed as late as they may be, in the last block that all their uses come after
//! (Click, "Global Code Motion", PLDI 1995; there are no loops here).

use super::Synth;
use super::values::{Def, Pure, Values};
use braid_ir::model::{Op, SetRef, Ty, ValueId};
use braid_ir::residual::{Block, HeaderMask, Residual, Step, What};
use braid_packet::Field;
use std::collections::HashMap;

/// A place in a block: before the step with this number.
type Spot = (usize, usize);

struct Finish {
    values: Values,
    blocks: Vec<Block>,
    /// Jumps to each block, as (block, which of its targets).
    preds: Vec<Vec<(usize, usize)>>,
    live: Vec<bool>,
    /// The block that all ways to a block last have in common; of block 0 itself.
    dominator: Vec<usize>,
    depth: Vec<usize>,
    /// Whether the packet's bytes may have changed before a block.
    changed: Vec<bool>,
    /// Of each block, the first step that changes bytes.
    change: Vec<usize>,
}

/// The program that a synthesis has built.
pub(super) fn finish(synth: Synth<'_>, shape: HeaderMask) -> Residual {
    let Synth { start, values, blocks, visits, .. } = synth;
    let tallies = blocks.tallies;
    let mut finish = Finish::new(values, blocks.all);
    finish.mark();
    finish.drop_dead();
    let placed = finish.place();
    let (blocks, values) = finish.emit(&placed);
    let mut program = Residual { point: start, shape, visits, values, blocks, tallies };
    drop_unused_tallies(&mut program);
    program
}

impl Finish {
    fn new(values: Values, blocks: Vec<Block>) -> Self {
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
        Self { values, blocks, preds, live, dominator, depth, changed, change }
    }

    /// Finds the values that something needs.
    fn mark(&mut self) {
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
    fn drop_dead(&mut self) {
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

    /// The spot of each pure value that is needed.
    fn place(&self) -> Vec<Option<Spot>> {
        let mut spots: Vec<Option<Spot>> = vec![None; self.values.len()];
        for (at, block) in self.blocks.iter().enumerate() {
            for (number, step) in block.steps.iter().enumerate() {
                step.what.visit_uses(&mut |value| self.use_at(&mut spots, *value, (at, number)));
            }
            let end = (at, block.steps.len());
            block.end.visit_uses(&mut |value| self.use_at(&mut spots, *value, end));
            block.end.visit_targets(&mut |target| {
                for value in &target.args {
                    self.use_at(&mut spots, *value, end);
                }
            });
        }
        // Operands come before what is made of them, so users are placed first.
        for number in (0..self.values.len()).rev() {
            let value = ValueId(u32::try_from(number).unwrap_or(u32::MAX));
            let Some(mut spot) = spots[number] else { continue };
            match self.values.def(value) {
                Def::Second(first) => self.use_at(&mut spots, *first, spot),
                Def::Pure(pure) => {
                    if matches!(pure, Pure::Init(_)) {
                        spot = self.before_changes(spot);
                        spots[number] = Some(spot);
                    }
                    operands(pure, &mut |value| self.use_at(&mut spots, value, spot));
                }
                Def::Param | Def::Step => {}
            }
        }
        spots
    }

    fn use_at(&self, spots: &mut [Option<Spot>], value: ValueId, at: Spot) {
        let spot = &mut spots[value.index()];
        *spot = Some(match *spot {
            None => at,
            Some(other) if other.0 == at.0 => (at.0, at.1.min(other.1)),
            Some(other) => {
                let block = meet(&self.dominator, &self.depth, other.0, at.0);
                if block == other.0 {
                    other
                } else if block == at.0 {
                    at
                } else {
                    (block, self.blocks[block].steps.len())
                }
            }
        });
    }

    /// The last spot no later than this one where the packet is still as it entered.
    fn before_changes(&self, spot: Spot) -> Spot {
        let (mut block, mut number) = spot;
        while self.changed[block] {
            block = self.dominator[block];
            number = self.blocks[block].steps.len();
        }
        (block, number.min(self.change[block]))
    }

    /// The program's blocks and its values' types.
    fn emit(self, placed: &[Option<Spot>]) -> (Vec<Block>, Vec<Ty>) {
        let mut at_spot: HashMap<Spot, Vec<ValueId>> = HashMap::new();
        for (number, spot) in placed.iter().enumerate() {
            let value = ValueId(u32::try_from(number).unwrap_or(u32::MAX));
            if let (Some(spot), Def::Pure(_)) = (spot, self.values.def(value)) {
                at_spot.entry(*spot).or_default().push(value);
            }
        }
        let mut names = Names { of: HashMap::new(), types: Vec::new() };
        let mut blocks = Vec::with_capacity(self.blocks.len());
        for (at, block) in self.blocks.iter().enumerate() {
            let params = block.params.iter();
            let params = params.map(|value| names.define(*value, self.values.ty(*value))).collect();
            let mut steps = Vec::new();
            for number in 0..=block.steps.len() {
                for value in at_spot.get(&(at, number)).into_iter().flatten() {
                    steps.push(self.pure_step(*value, &mut names));
                }
                if let Some(step) = block.steps.get(number) {
                    let mut step = step.clone();
                    step.what.visit_uses_mut(&mut |value| *value = names.of[value]);
                    step.what.visit_outs_mut(&mut |value| {
                        *value = names.define(*value, self.values.ty(*value));
                    });
                    steps.push(step);
                }
            }
            let mut end = block.end.clone();
            end.visit_uses_mut(&mut |value| *value = names.of[value]);
            end.visit_targets_mut(&mut |target| {
                target.args.iter_mut().for_each(|value| *value = names.of[value]);
            });
            blocks.push(Block { params, steps, end });
        }
        (blocks, names.types)
    }

    /// The step that computes a pure value.
    fn pure_step(&self, value: ValueId, names: &mut Names) -> Step {
        let Def::Pure(pure) = self.values.def(value) else {
            unreachable!("only pure values are placed")
        };
        let of = |value: &ValueId, names: &Names| names.of[value];
        let mut what = match pure {
            Pure::Const(word) => What::Op(Op::Const { out: value, value: *word }),
            Pure::Init(field) => What::Op(Op::Load { out: value, field: *field }),
            Pure::Bin(op, a, b) => {
                let (a, b) = (of(a, names), of(b, names));
                What::Op(Op::Bin { out: value, op: *op, a, b })
            }
            Pure::Cmp(op, a, b) => {
                let (a, b) = (of(a, names), of(b, names));
                What::Op(Op::Cmp { out: value, op: *op, a, b })
            }
            Pure::Not(a) => What::Op(Op::Not { out: value, a: of(a, names) }),
            Pure::Resize(a) | Pure::Retype(a, _) => {
                What::Op(Op::Resize { out: value, a: of(a, names) })
            }
            Pure::Clamp(a) => What::Op(Op::Clamp { out: value, a: of(a, names) }),
            Pure::Select(cond, a, b) => {
                let (cond, a, b) = (of(cond, names), of(a, names), of(b, names));
                What::Op(Op::Select { out: value, cond, a, b })
            }
            Pure::InSet(a, set) => {
                let set = SetRef::Const(self.values.set(*set).clone());
                What::Op(Op::InSet { out: value, a: of(a, names), set })
            }
            Pure::InColumn(a, _, param, column) => {
                let set = SetRef::List(*param, *column);
                What::Op(Op::InSet { out: value, a: of(a, names), set })
            }
            Pure::Len(_, param) => What::Op(Op::ListLen { out: value, param: *param }),
            Pure::Route(_, param, addr) => {
                let (hop, addr) = (ValueId(value.0 + 1), of(addr, names));
                What::Op(Op::Route { found: value, hop, param: *param, addr })
            }
            Pure::Classify(_, param, packet) => {
                let mut packet = packet.clone();
                if let Some(packet) = &mut packet {
                    packet.visit_values_mut(&mut |value| *value = names.of[value]);
                }
                What::Classify { pass: value, rule: ValueId(value.0 + 1), param: *param, packet }
            }
        };
        what.visit_outs_mut(&mut |out| *out = names.define(*out, self.values.ty(*out)));
        Step { site: self.values.site(value), what, fault: None }
    }
}

/// New numbers of values.
struct Names {
    of: HashMap<ValueId, ValueId>,
    types: Vec<Ty>,
}

impl Names {
    fn define(&mut self, value: ValueId, ty: Ty) -> ValueId {
        let name = ValueId(u32::try_from(self.types.len()).unwrap_or(u32::MAX));
        self.types.push(ty);
        self.of.insert(value, name);
        name
    }
}

/// The last block that ways to both have in common.
fn meet(dominator: &[usize], depth: &[usize], mut a: usize, mut b: usize) -> usize {
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
fn operands(pure: &Pure, each: &mut dyn FnMut(ValueId)) {
    match pure {
        Pure::Const(_) | Pure::Init(Field::PktLen) | Pure::Init(_) | Pure::Len(..) => {}
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

/// Leaves out tallies that nothing counts.
fn drop_unused_tallies(program: &mut Residual) {
    let mut new = HashMap::new();
    let mut tallies = Vec::new();
    let old = std::mem::take(&mut program.tallies);
    let mut keep = |id: &mut braid_ir::residual::TallyId| {
        *id = *new.entry(*id).or_insert_with(|| {
            let at = usize::try_from(id.0).unwrap_or(usize::MAX);
            tallies.push(old[at].clone());
            braid_ir::residual::TallyId(u32::try_from(tallies.len() - 1).unwrap_or(u32::MAX))
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
            braid_ir::residual::End::Exit(exit) => keep(&mut exit.tally),
            braid_ir::residual::End::Hold { tally, .. } => keep(tally),
            _ => {}
        }
    }
    program.tallies = tallies;
}
