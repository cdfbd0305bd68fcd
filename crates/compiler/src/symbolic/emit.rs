//! Turns the blocks of symbolic execution into a residual program.

use super::build::Blocks;
use super::values::{Def, Pure, Values};
use crate::passes::drop_unreachable;
use braid_ir::model::{Op, SetRef, ValueId};
use braid_ir::residual::{Block, HeaderMask, Point, Residual, Step, What};
use std::collections::BTreeMap;

/// A place in a block: before the step with this number.
type Spot = (usize, usize);

/// Makes the program. Each pure value is computed as early as possible: once its operands are
/// defined. The pass `place` moves it later.
pub(super) fn emit(
    values: &Values,
    blocks: Blocks,
    point: Point,
    shape: HeaderMask,
    visits: u32,
) -> Residual {
    let (mut all, counter_lists) = (blocks.all, blocks.counter_lists);
    drop_unreachable(&mut all);
    let mut at_spot: BTreeMap<Spot, Vec<Step>> = BTreeMap::new();
    let spots = spots(values, &all);
    for (number, spot) in spots.into_iter().enumerate() {
        let value = ValueId(u32::try_from(number).unwrap_or(u32::MAX));
        if let (Def::Pure(pure), Some(spot)) = (values.def(value), spot) {
            at_spot.entry(spot).or_default().push(step(values, value, pure));
        }
    }
    let mut here = at_spot.into_iter().peekable();
    for (at, block) in all.iter_mut().enumerate() {
        let old = std::mem::take(&mut block.steps);
        let mut old = old.into_iter();
        let mut number = 0;
        loop {
            while let Some((_, steps)) = here.next_if(|(spot, _)| *spot == (at, number)) {
                block.steps.extend(steps);
            }
            let Some(step) = old.next() else { break };
            block.steps.push(step);
            number += 1;
        }
    }
    Residual { point, shape, visits, values: values.types().to_vec(), blocks: all, counter_lists }
}

/// The first place where each value can be computed. `None` if an operand has no definition.
fn spots(values: &Values, blocks: &[Block]) -> Vec<Option<Spot>> {
    let mut spots: Vec<Option<Spot>> = vec![None; values.len()];
    for (at, block) in blocks.iter().enumerate() {
        for param in &block.params {
            spots[param.index()] = Some((at, 0));
        }
        for (number, step) in block.steps.iter().enumerate() {
            step.what.visit_outs(&mut |out| spots[out.index()] = Some((at, number + 1)));
        }
    }
    for number in 0..values.len() {
        let value = ValueId(u32::try_from(number).unwrap_or(u32::MAX));
        spots[number] = match values.def(value) {
            Def::Param | Def::Step => continue,
            Def::Second(first) => spots[first.index()],
            Def::Pure(pure) => {
                // The blocks that define the operands lie on one path, so the last of these blocks
                // has the highest number.
                let mut spot = Some((0, 0));
                pure.visit_operands(&mut |operand| {
                    spot = spot.zip(spots[operand.index()]).map(|(a, b)| a.max(b));
                });
                spot
            }
        };
    }
    spots
}

/// The step that computes a pure value.
fn step(values: &Values, value: ValueId, pure: &Pure) -> Step {
    let what = match pure.clone() {
        Pure::Const(word) => What::Op(Op::Const { out: value, value: word }),
        Pure::Init(field) => What::Op(Op::Load { out: value, field }),
        Pure::Bin(op, a, b) => What::Op(Op::Bin { out: value, op, a, b }),
        Pure::Cmp(op, a, b) => What::Op(Op::Cmp { out: value, op, a, b }),
        Pure::Not(a) => What::Op(Op::Not { out: value, a }),
        Pure::Resize(a) | Pure::Retype(a, _) => What::Op(Op::Resize { out: value, a }),
        Pure::Clamp(a) => What::Op(Op::Clamp { out: value, a }),
        Pure::Select(cond, a, b) => What::Op(Op::Select { out: value, cond, a, b }),
        Pure::InSet(a, set) => {
            let set = SetRef::Const(values.set(set).clone());
            What::Op(Op::InSet { out: value, a, set })
        }
        Pure::InColumn(a, _, param, column) => {
            What::Op(Op::InSet { out: value, a, set: SetRef::List(param, column) })
        }
        Pure::Len(_, param) => What::Op(Op::ListLen { out: value, param }),
        Pure::Route(_, param, addr) => {
            What::Op(Op::Route { found: value, hop: ValueId(value.0 + 1), param, addr })
        }
        Pure::Classify(_, param, packet) => {
            What::Classify { pass: value, rule: ValueId(value.0 + 1), param, packet }
        }
    };
    Step { site: values.site(value), what, fault: None }
}
