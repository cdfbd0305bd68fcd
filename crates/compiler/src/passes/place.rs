//! The pass `place`: moves each pure step to where its values are needed, and renumbers values.

use super::facts::Facts;
use super::spots::{Parts, Spot, places};
use braid_ir::model::{Op, Ty, ValueId};
use braid_ir::residual::{Block, Residual, Step, What};
use std::collections::HashMap;

/// Moves each pure step to where its values are needed (see [`super::spots`]). Numbers the values
/// in the order of their definitions.
pub(super) fn place(program: &mut Residual, facts: &Facts) {
    let parts = Parts::of(program, facts);
    let mut at_spot: HashMap<Spot, Vec<ValueId>> = HashMap::new();
    for (number, places) in places(&parts).iter().enumerate() {
        let value = ValueId(u32::try_from(number).unwrap_or(u32::MAX));
        let ends = places.ends.iter().map(|(block, number)| (*block, *number));
        for spot in places.spots.into_iter().flatten().chain(ends) {
            at_spot.entry(spot).or_default().push(value);
        }
    }
    let mut writer = Writer {
        parts: &parts,
        old_types: std::mem::take(&mut program.values),
        names: Names::default(),
        steps: Vec::new(),
    };
    program.blocks = (0..parts.blocks.len()).map(|at| writer.block(at, &at_spot)).collect();
    program.values = writer.names.types;
}

/// Writes the new blocks.
struct Writer<'a> {
    parts: &'a Parts,
    old_types: Vec<Ty>,
    names: Names,
    /// Steps of the block so far.
    steps: Vec<Step>,
}

impl Writer<'_> {
    fn block(&mut self, at: usize, at_spot: &HashMap<Spot, Vec<ValueId>>) -> Block {
        let parts = self.parts;
        let block = &parts.blocks[at];
        self.names.here.clear();
        self.names.ends = block.end.targets().is_empty();
        let params = block.params.iter().map(|value| self.define(*value)).collect();
        for number in 0..=block.steps.len() {
            for value in at_spot.get(&(at, number)).into_iter().flatten() {
                if let Some(step) = &parts.pure[value.index()] {
                    self.step(step);
                }
            }
            if let Some(step) = block.steps.get(number) {
                self.step(step);
            }
        }
        let mut end = block.end.clone();
        end.visit_uses_mut(&mut |value| *value = self.name(*value));
        end.visit_targets_mut(&mut |target| {
            for value in &mut target.args {
                *value = self.name(*value);
            }
        });
        Block { params, steps: std::mem::take(&mut self.steps), end }
    }

    fn step(&mut self, step: &Step) {
        let mut step = step.clone();
        step.what.visit_uses_mut(&mut |value| *value = self.name(*value));
        step.what.visit_outs_mut(&mut |value| *value = self.define(*value));
        self.steps.push(step);
    }

    fn define(&mut self, value: ValueId) -> ValueId {
        self.names.define(value, self.old_types[value.index()])
    }

    /// The new number of a value. Each block that uses a constant defines the constant itself.
    fn name(&mut self, value: ValueId) -> ValueId {
        if let Some(name) = self.names.get(value) {
            return name;
        }
        let name = self.names.define_here(value, self.old_types[value.index()]);
        if let Some(Step { site, what: What::Op(Op::Const { value, .. }), .. }) =
            &self.parts.pure[value.index()]
        {
            let what = What::Op(Op::Const { out: name, value: *value });
            self.steps.push(Step { site: *site, what, fault: None });
        }
        name
    }
}

/// New numbers of values.
#[derive(Default)]
struct Names {
    of: HashMap<ValueId, ValueId>,
    /// Values that are defined in this block only.
    here: HashMap<ValueId, ValueId>,
    /// Whether the block ends the program, so that no other block can use its values.
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
