//! A function that announces the first lookups of a program to the host: a key in a table, or a
//! packet in a rule set.
//!
//! An announcement may be wrong: the program may change the fields before the lookup, or never
//! reach it.

use super::emitter::{Emitter, Place, at};
use super::{key, load, rules, set, step};
use crate::abi::{Resource, Resources};
use crate::error::Error;
use crate::facts::Facts;
use braid_ir::model::{Op, SetRef, ValueId};
use braid_ir::residual::{Residual, RuleFields, Step, What};
use cranelift_codegen::ir::{InstBuilder, types};
use cranelift_codegen::isa::TargetFrontendConfig;

/// The largest number of steps for operands. More steps are not worth running twice.
const MOST: usize = 64;

/// A lookup to announce, and the steps that compute its operands, in order.
#[derive(Debug)]
pub(crate) struct Hint<'a> {
    node: u16,
    resource: Resource,
    operands: Operands<'a>,
    steps: Vec<&'a Step>,
}

/// The operands of a lookup.
#[derive(Clone, Copy, Debug)]
enum Operands<'a> {
    Key(&'a [ValueId]),
    Packet(&'a RuleFields),
}

impl<'a> Hint<'a> {
    /// The announcements for a program: its first lookup in a rule set for which the host wants
    /// them, and its first lookup in a table. Operands may depend only on fields and constants.
    pub(crate) fn all(
        residual: &'a Residual,
        facts: &Facts,
        resources: &mut dyn Resources,
    ) -> Vec<Hint<'a>> {
        let packet = Self::first(residual, facts, &mut |step| match &step.what {
            What::Classify { param, packet: Some(packet), .. }
                if resources.prefetches_rules(step.site.node, *param) =>
            {
                Some((Resource::Rules(*param), Operands::Packet(packet)))
            }
            _ => None,
        });
        let key = Self::first(residual, facts, &mut |step| match &step.what {
            What::Find { state, key, .. } => Some((Resource::Table(*state), Operands::Key(key))),
            _ => None,
        });
        packet.into_iter().chain(key).collect()
    }

    /// The first lookup of a kind, if its operands depend only on fields and constants.
    #[expect(
        clippy::indexing_slicing,
        reason = "`Facts` has checked the values and jumps of blocks that the program reaches"
    )]
    fn first(
        residual: &'a Residual,
        facts: &Facts,
        kind: &mut dyn FnMut(&'a Step) -> Option<(Resource, Operands<'a>)>,
    ) -> Option<Hint<'a>> {
        let mut steps = facts.reached(residual).flat_map(|(_, block)| &block.steps);
        let mut before = Vec::new();
        let (node, resource, operands, uses) = loop {
            let step = steps.next()?;
            match kind(step) {
                Some((resource, operands)) => {
                    break (step.site.node, resource, operands, step.what.uses());
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
            if !is_pure(&step.what) || chosen.len() == MOST {
                return None;
            }
            outs.iter().for_each(|out| needed[out.index()] = false);
            step.what.uses().iter().for_each(|used| needed[used.index()] = true);
            chosen.push(step);
        }
        chosen.reverse();
        // A value without a step is the parameter of a block, so the lookup cannot be announced.
        let is_whole = !needed.contains(&true);
        is_whole.then_some(Hint { node, resource, operands, steps: chosen })
    }
}

/// Whether a step only defines a value and cannot fault.
fn is_pure(what: &What) -> bool {
    match what {
        What::Op(Op::InSet { set, .. }) => matches!(set, SetRef::Const(_)),
        What::Op(Op::Load { .. }) => true,
        What::Op(op) => op.is_arithmetic() && !op.divides(),
        _ => false,
    }
}

/// Writes the function. Returns false if the function would do nothing. It must then not be called.
pub(crate) fn prefetch(
    mut emitter: Emitter<'_, '_>,
    hints: &[Hint<'_>],
    config: TargetFrontendConfig,
) -> Result<bool, Error> {
    let mut useful = false;
    for hint in hints {
        if let Some(number) = step::numbered(&mut emitter, hint.node, hint.resource, 0) {
            useful |= hand_over(&mut emitter, hint, number)?;
        }
    }
    emitter.build.ins().return_(&[]);
    emitter.finish(config);
    Ok(useful)
}

fn hand_over(e: &mut Emitter<'_, '_>, hint: &Hint<'_>, number: u32) -> Result<bool, Error> {
    for step in &hint.steps {
        let place = Place { block: 0, step: 0, fault: None };
        match &step.what {
            // An earlier announcement has computed these values.
            what if what.outs().iter().all(|out| e.is_known(*out)) => {}
            What::Op(Op::Load { out, field }) => {
                if !load::load_field(e, *out, *field) {
                    return Ok(false);
                }
            }
            What::Op(Op::InSet { set: SetRef::Const(set), .. }) if !set::is_compiled(set) => {
                return Ok(false);
            }
            what => {
                if let What::Op(op) = what {
                    step::emit_op(e, place, step.site.node, op, step)?;
                }
            }
        }
    }
    match hint.operands {
        Operands::Key(key) => {
            let words = key::key_words(e, key)?;
            let key = key::store_key(e, &words);
            let number = e.build.ins().iconst(types::I32, i64::from(number));
            let words = e.imm(words.len() as u64);
            let [] = e.call(at::PREFETCH, &[e.frame, number, key, words]);
            Ok(true)
        }
        Operands::Packet(packet) => rules::prefetch_packet(e, number, packet),
    }
}
