//! A function that tells the host what a program will likely look up first: of a table the key, of a rule
//! set the packet.
//!
//! It is a hint: what the program writes before does not matter, nor whether it comes to the lookup.

use super::{Emitter, Place, at};
use crate::abi::{Resource, Resources};
use crate::error::Error;
use crate::facts::Facts;
use braid_ir::model::{BinOp, Op, SetRef, ValueId};
use braid_ir::residual::{Residual, RuleFields, Step, What};
use cranelift_codegen::ir::{InstBuilder, types};
use cranelift_codegen::isa::TargetFrontendConfig;

/// Most steps that are worth doing twice.
const MOST: usize = 64;

/// A lookup and the steps that make what it wants to know, in order.
#[derive(Debug)]
pub(crate) struct Hint<'a> {
    node: u16,
    resource: Resource,
    asked: Asked<'a>,
    steps: Vec<&'a Step>,
}

/// What a lookup wants to know.
#[derive(Clone, Copy, Debug)]
enum Asked<'a> {
    Key(&'a [ValueId]),
    Packet(&'a RuleFields),
}

impl<'a> Hint<'a> {
    /// For the first lookups of a program of which the host wants to know ahead, as far as they hang on
    /// nothing but fields and constants.
    pub(crate) fn all(
        residual: &'a Residual,
        facts: &Facts,
        resources: &mut dyn Resources,
    ) -> Vec<Hint<'a>> {
        let packet = Self::first(residual, facts, &mut |step| match &step.what {
            What::Classify { param, packet: Some(packet), .. }
                if resources.asks_ahead(step.site.node, *param) =>
            {
                Some((Resource::Rules(*param), Asked::Packet(packet)))
            }
            _ => None,
        });
        let key = Self::first(residual, facts, &mut |step| match &step.what {
            What::Find { state, key, .. } => Some((Resource::Table(*state), Asked::Key(key))),
            _ => None,
        });
        packet.into_iter().chain(key).collect()
    }

    /// For the first lookup of a kind.
    fn first(
        residual: &'a Residual,
        facts: &Facts,
        kind: &mut dyn FnMut(&'a Step) -> Option<(Resource, Asked<'a>)>,
    ) -> Option<Hint<'a>> {
        let reached = residual.blocks.iter().zip(&facts.ways).filter(|(_, ways)| **ways > 0);
        let mut steps = reached.flat_map(|(block, _)| &block.steps);
        let mut before = Vec::new();
        let (node, resource, asked, uses) = loop {
            let step = steps.next()?;
            match kind(step) {
                Some((resource, asked)) => {
                    break (step.site.node, resource, asked, step.what.uses());
                }
                None => before.push(step),
            }
        };
        let mut needed = vec![false; residual.values.len()];
        for part in uses {
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
        // What is still needed is given by jumps.
        let is_whole = !needed.contains(&true);
        is_whole.then_some(Hint { node, resource, asked, steps: chosen })
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
        hints: &[Hint<'_>],
        config: TargetFrontendConfig,
    ) -> Result<bool, Error> {
        let mut useful = false;
        for hint in hints {
            if let Some(number) = self.numbered(hint.node, hint.resource, 0) {
                useful |= self.hand_over(hint, number)?;
            }
        }
        self.build.ins().return_(&[]);
        self.finish(config);
        Ok(useful)
    }

    fn hand_over(&mut self, hint: &Hint<'_>, number: u32) -> Result<bool, Error> {
        for step in &hint.steps {
            let place = Place { block: 0, step: 0, fault: None };
            match &step.what {
                // What an earlier hint has made.
                what if what.outs().iter().all(|out| self.is_known(*out)) => {}
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
        match hint.asked {
            Asked::Key(key) => {
                let words = self.key_words(key)?;
                let key = self.key(&words);
                let number = self.build.ins().iconst(types::I32, i64::from(number));
                let words = self.imm(words.len() as u64);
                self.call(at::PREFETCH, &[self.frame, number, key, words], 0);
                Ok(true)
            }
            Asked::Packet(packet) => self.ask(number, packet),
        }
    }
}
