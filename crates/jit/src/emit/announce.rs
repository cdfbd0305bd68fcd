//! Announces to the host the lookups of packets that begin flows.
//!
//! Where a packet has found no entry, the program creates entries. It often knows by then the keys
//! with which it will create or look up others, in the same function and in the next one. To create
//! an entry takes long, so the host can load the memory of these lookups meanwhile.
//!
//! An announcement may be wrong: the program may take another way.

use super::emitter::{Emitter, Place, at};
use super::{key, step};
use crate::abi::Resource;
use crate::error::Error;
use braid_ir::model::{Key, Op, StateId, ValueId};
use braid_ir::residual::{Block, End, Residual, Step, What};
use cranelift_codegen::ir::{InstBuilder, types};
use std::collections::{HashMap, HashSet};

/// The largest number of steps between the creation of an entry and an announced lookup.
const MOST: usize = 64;

/// A lookup that follows the creation of an entry.
#[derive(Debug)]
struct Lookup<'a> {
    /// The block, and the number of the step there.
    at: (usize, usize),
    node: u16,
    state: StateId,
    key: Vec<ValueId>,
    /// The steps behind the creation of the entry that compute the key, in order, each with its
    /// operation there.
    steps: Vec<(Op, &'a Step)>,
}

/// Before a step that creates an entry for a flow that begins, announces the lookups behind it.
#[expect(clippy::indexing_slicing, reason = "`begins` has an element for each block")]
pub(super) fn before(e: &mut Emitter<'_, '_>, place: Place, step: &Step) -> Result<(), Error> {
    let creates = matches!(&step.what, What::Op(Op::StateSet { key: Key::Explicit(_), .. }));
    if !creates || !e.facts.begins[place.block as usize] {
        return Ok(());
    }
    for lookup in Lookup::behind(e.residual, (place.block as usize, place.step as usize)) {
        if e.announced.insert(lookup.at) {
            hand_over(e, &lookup)?;
        }
    }
    Ok(())
}

fn hand_over(e: &mut Emitter<'_, '_>, lookup: &Lookup<'_>) -> Result<(), Error> {
    let table = Resource::Table(lookup.state);
    let Some(number) = step::numbered(e, lookup.node, table, 0) else { return Ok(()) };
    for (op, step) in &lookup.steps {
        let place = Place { block: 0, step: 0, fault: None };
        step::emit_op(e, place, step.site.node, op, step)?;
    }
    let words = key::key_words(e, &lookup.key)?;
    let number = e.build.ins().iconst(types::I32, i64::from(number));
    let [] = match *words {
        [word] => e.call(at::ANNOUNCE_1, &[e.frame, number, word]),
        _ => {
            let (key, size) = (key::store_key(e, &words), e.imm(words.len() as u64));
            e.call(at::ANNOUNCE, &[e.frame, number, key, size])
        }
    };
    Ok(())
}

impl<'a> Lookup<'a> {
    /// The lookups behind a step that creates an entry, up to the first one whose result decides
    /// how the program goes on. Other entries on the way are created.
    #[expect(
        clippy::indexing_slicing,
        reason = "`Facts` has checked the jumps of blocks that the program reaches"
    )]
    fn behind(residual: &'a Residual, (block, step): (usize, usize)) -> Vec<Self> {
        let mut walk = Walk::new();
        let (mut block, mut first) = (block, step);
        loop {
            let code = &residual.blocks[block];
            for (number, step) in code.steps.iter().enumerate().skip(first) {
                let is_last = walk.step((block, number), step);
                walk.left -= 1;
                if is_last || walk.left == 0 {
                    return walk.lookups;
                }
            }
            let Some(next) = walk.leave(residual, code) else { return walk.lookups };
            (block, first) = (next, 0);
        }
    }
}

/// The way behind a step that creates an entry, while all goes well.
struct Walk<'a> {
    /// The lookups so far, without the one at the beginning.
    lookups: Vec<Lookup<'a>>,
    /// The operations so far that only define a value, with this value and their step.
    pure: Vec<(ValueId, Op, &'a Step)>,
    /// The other values that steps have defined. They are not known at the beginning.
    unknown: HashSet<ValueId>,
    /// What parameters of blocks stand for on this way.
    args: HashMap<ValueId, ValueId>,
    /// The values that say whether an entry was created.
    created: HashSet<ValueId>,
    /// The number of steps that may still follow.
    left: usize,
}

impl<'a> Walk<'a> {
    fn new() -> Self {
        let (lookups, pure, args) = (Vec::new(), Vec::new(), HashMap::new());
        let (unknown, created) = (HashSet::new(), HashSet::new());
        Self { lookups, pure, unknown, args, created, left: MOST }
    }

    /// Follows a step. Returns whether it is a lookup whose result decides how the program goes on.
    fn step(&mut self, at: (usize, usize), step: &'a Step) -> bool {
        match &step.what {
            What::Op(op) if op.is_arithmetic() && !op.divides() => {
                let mut op = op.clone();
                op.visit_uses_mut(&mut |value| *value = self.resolved(*value));
                if let [out] = *step.what.outs() {
                    self.pure.push((out, op, step));
                }
                return false;
            }
            What::Op(Op::StateSet { ok, state, key: Key::Explicit(key), .. }) => {
                // The first one is what the others are behind.
                if self.left < MOST {
                    self.look_up(at, step.site.node, *state, key);
                }
                self.created.insert(*ok);
            }
            What::Find { state, key, .. } => {
                self.look_up(at, step.site.node, *state, key);
                return true;
            }
            _ => {}
        }
        self.unknown.extend(step.what.outs().iter());
        false
    }

    /// The block that follows a block, if the creation of entries alone decides that.
    #[expect(clippy::indexing_slicing, reason = "as for `Lookup::behind`")]
    fn leave(&mut self, residual: &Residual, block: &Block) -> Option<usize> {
        let target = match &block.end {
            End::Jump(target) => target,
            End::Branch { cond, yes, .. } if self.created.contains(cond) => yes,
            _ => return None,
        };
        let params = &residual.blocks[target.block.index()].params;
        let args = target.args.iter().map(|arg| self.resolved(*arg));
        let args: Vec<_> = params.iter().copied().zip(args).collect();
        self.args.extend(args);
        Some(target.block.index())
    }

    fn resolved(&self, value: ValueId) -> ValueId {
        self.args.get(&value).copied().unwrap_or(value)
    }

    /// Adds a lookup, if its key is known at the beginning.
    fn look_up(&mut self, at: (usize, usize), node: u16, state: StateId, key: &[ValueId]) {
        let key: Vec<_> = key.iter().map(|part| self.resolved(*part)).collect();
        let mut needed: HashSet<ValueId> = key.iter().copied().collect();
        let mut steps = Vec::new();
        for (out, op, step) in self.pure.iter().rev() {
            if needed.remove(out) {
                op.visit_uses(&mut |used| {
                    needed.insert(*used);
                });
                steps.push((op.clone(), *step));
            }
        }
        steps.reverse();
        if needed.is_disjoint(&self.unknown) {
            self.lookups.push(Lookup { at, node, state, key, steps });
        }
    }
}
