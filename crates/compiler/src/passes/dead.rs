//! The pass `remove-dead`: removes steps and parameters whose values are unused, and lists of
//! counters that no step or end adds to.

use super::counters::drop_unused;
use super::facts::Facts;
use super::graph::preds;
use super::purity::has_effect;
use braid_ir::model::ValueId;
use braid_ir::residual::{Block, Residual};

/// Removes steps and parameters whose values are unused, and unused lists of counters.
pub(super) fn remove(program: &mut Residual, _: &Facts) {
    let live = live_values(program);
    let is_live = |value: &ValueId| live[value.index()];
    let kept: Vec<Vec<bool>> =
        program.blocks.iter().map(|block| block.params.iter().map(is_live).collect()).collect();
    for (block, kept_params) in program.blocks.iter_mut().zip(&kept) {
        retain(&mut block.params, kept_params);
        block.steps.retain(|step| has_effect(step) || step.what.outs().iter().any(is_live));
        block
            .end
            .visit_targets_mut(&mut |target| retain(&mut target.args, &kept[target.block.index()]));
    }
    drop_unused(program);
}

fn retain(values: &mut Vec<ValueId>, keep: &[bool]) {
    let mut keep = keep.iter();
    values.retain(|_| keep.next() == Some(&true));
}

/// Where a value is defined.
#[derive(Clone, Copy)]
enum Place {
    Nowhere,
    Param(usize, usize),
    Step(usize, usize),
}

/// Whether an effect or an end needs each value, directly or through other values.
fn live_values(program: &Residual) -> Vec<bool> {
    let blocks: &[Block] = &program.blocks;
    let preds = preds(blocks);
    let mut places = vec![Place::Nowhere; program.values.len()];
    let mut todo = Vec::new();
    for (at, block) in blocks.iter().enumerate() {
        for (number, value) in block.params.iter().enumerate() {
            places[value.index()] = Place::Param(at, number);
        }
        for (number, step) in block.steps.iter().enumerate() {
            step.what.visit_outs(&mut |out| places[out.index()] = Place::Step(at, number));
            if has_effect(step) {
                todo.extend(step.what.uses());
            }
        }
        block.end.visit_uses(&mut |value| todo.push(*value));
    }
    let mut live = vec![false; program.values.len()];
    while let Some(value) = todo.pop() {
        // Each value is followed once, because many paths may lead to it.
        if std::mem::replace(&mut live[value.index()], true) {
            continue;
        }
        match places[value.index()] {
            Place::Nowhere => {}
            // A parameter needs the argument of each jump to its block.
            Place::Param(at, number) => {
                for (pred, slot) in &preds[at] {
                    todo.push(blocks[*pred].end.targets()[*slot].args[number]);
                }
            }
            Place::Step(at, number) => todo.extend(blocks[at].steps[number].what.uses()),
        }
    }
    live
}
