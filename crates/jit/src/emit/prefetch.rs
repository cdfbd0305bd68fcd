//! A function that tells the host of the key that a program will likely look up first.
//!
//! It is a hint: what the program writes before does not matter, nor whether it comes to the lookup.

use super::{Emitter, Place, at};
use crate::abi::Resource;
use crate::error::Error;
use crate::facts::Facts;
use braid_ir::model::{BinOp, Op, SetRef, ValueId};
use braid_ir::residual::{Residual, Step, What};
use cranelift_codegen::ir::{InstBuilder, types};
use cranelift_codegen::isa::TargetFrontendConfig;

/// Most steps that are worth doing twice.
const MOST: usize = 64;

/// A key and the steps that make it, in order.
#[derive(Debug)]
pub(crate) struct Hint<'a> {
    node: u16,
    resource: Resource,
    key: &'a [ValueId],
    steps: Vec<&'a Step>,
}

impl<'a> Hint<'a> {
    /// For the first lookup of a program, if its key hangs on nothing but fields and constants.
    pub(crate) fn of(residual: &'a Residual, facts: &Facts) -> Option<Hint<'a>> {
        let reached = residual.blocks.iter().zip(&facts.ways).filter(|(_, ways)| **ways > 0);
        let mut steps = reached.flat_map(|(block, _)| &block.steps);
        let mut before = Vec::new();
        let (node, state, key) = loop {
            let step = steps.next()?;
            match &step.what {
                What::Find { state, key, .. } => break (step.site.node, *state, key),
                _ => before.push(step),
            }
        };
        let mut needed = vec![false; residual.values.len()];
        for part in key {
            needed[part.index()] = true;
        }
        let mut chosen = Vec::new();
        for step in before.into_iter().rev() {
            let outs = step.what.outs();
            if !outs.iter().any(|out| needed[out.index()]) {
                continue;
            }
            if !is_plain(&step.what) || chosen.len() == MOST {
                return None;
            }
            outs.iter().for_each(|out| needed[out.index()] = false);
            step.what.uses().iter().for_each(|used| needed[used.index()] = true);
            chosen.push(step);
        }
        chosen.reverse();
        let resource = Resource::Table(state);
        // What is still needed is given by jumps.
        let is_whole = !needed.contains(&true);
        is_whole.then_some(Hint { node, resource, key, steps: chosen })
    }
}

/// Whether a step does nothing but define a value, and cannot fault.
fn is_plain(what: &What) -> bool {
    match what {
        What::Op(Op::Bin { op, .. }) => !matches!(op, BinOp::Div | BinOp::Rem),
        What::Op(Op::InSet { set, .. }) => matches!(set, SetRef::Const(_)),
        What::Op(op) => matches!(
            op,
            Op::Const { .. }
                | Op::Cmp { .. }
                | Op::Not { .. }
                | Op::Resize { .. }
                | Op::Clamp { .. }
                | Op::Select { .. }
                | Op::Load { .. }
        ),
        _ => false,
    }
}

impl Emitter<'_, '_> {
    /// Writes the function. False if it would be of no use: it must not be called then.
    pub(crate) fn prefetch(
        mut self,
        hint: &Hint<'_>,
        config: TargetFrontendConfig,
    ) -> Result<bool, Error> {
        let number = self.numbered(hint.node, hint.resource, 0);
        let useful = match number {
            Some(number) => self.hand_over(hint, number)?,
            None => false,
        };
        self.build.ins().return_(&[]);
        self.finish(config);
        Ok(useful)
    }

    fn hand_over(&mut self, hint: &Hint<'_>, number: u32) -> Result<bool, Error> {
        for step in &hint.steps {
            let place = Place { block: 0, step: 0, fault: None };
            match &step.what {
                What::Op(Op::Load { out, field }) => {
                    if !self.load_field(*out, *field) {
                        return Ok(false);
                    }
                }
                What::Op(Op::InSet { set: SetRef::Const(set), .. }) if !self.fits(set) => {
                    return Ok(false);
                }
                what => {
                    if let What::Op(op) = what {
                        self.op(place, step.site.node, op, step)?;
                    }
                }
            }
        }
        let words = self.key_words(hint.key)?;
        let key = self.key(&words);
        let number = self.build.ins().iconst(types::I32, i64::from(number));
        let words = self.imm(words.len() as u64);
        self.call(at::PREFETCH, &[self.frame, number, key, words], 0);
        Ok(true)
    }
}
