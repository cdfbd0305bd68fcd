//! The blocks of a program that can run, perhaps for one direction of packets only.

use braid_ir::model::{Block, CmpOp, Op, Program, Term, ValueId, Word};
use braid_packet::Field;
use std::collections::HashMap;

/// The blocks that can run, and the values that are the same in each run.
pub(super) struct Runs {
    runs: Vec<bool>,
    known: HashMap<ValueId, Word>,
}

impl Runs {
    /// Follows the branches of a program. Jumps go to later blocks only, so one pass in order is
    /// enough. A value is defined before its uses, so one table serves all blocks.
    pub(super) fn of(program: &Program, backward: Option<bool>) -> Self {
        let mut found = Self { runs: vec![false; program.blocks.len()], known: HashMap::new() };
        if let Some(entry) = found.runs.first_mut() {
            *entry = true;
        }
        for (at, block) in program.blocks.iter().enumerate() {
            if found.runs[at] {
                block.ops.iter().for_each(|op| found.learn(program, op, backward));
                found.follow(&block.term);
            }
        }
        found
    }

    /// The blocks that can run, with their numbers.
    pub(super) fn blocks<'p>(
        &'p self,
        program: &'p Program,
    ) -> impl Iterator<Item = (usize, &'p Block)> {
        program.blocks.iter().enumerate().filter(|(at, _)| self.runs[*at])
    }

    /// Whether a value is the same in each run, and not 0.
    pub(super) fn is_nonzero(&self, value: ValueId) -> bool {
        self.known.get(&value).is_some_and(|value| *value != 0)
    }

    fn learn(&mut self, program: &Program, op: &Op, backward: Option<bool>) {
        let (out, value) = match op {
            Op::Const { out, value } => (*out, Some(*value)),
            Op::Load { out, field: Field::PktBackward }
            | Op::LoadEntry { out, field: Field::PktBackward } => (*out, backward.map(Word::from)),
            Op::Not { out, a } if is_bool(program, *out) => {
                (*out, self.known.get(a).map(|a| Word::from(*a == 0)))
            }
            Op::Cmp { out, op: CmpOp::Eq, a, b } => (*out, self.equal(*a, *b).map(Word::from)),
            Op::Cmp { out, op: CmpOp::Ne, a, b } => {
                (*out, self.equal(*a, *b).map(|same| Word::from(!same)))
            }
            _ => return,
        };
        if let Some(value) = value {
            self.known.insert(out, value);
        }
    }

    fn equal(&self, a: ValueId, b: ValueId) -> Option<bool> {
        Some(self.known.get(&a)? == self.known.get(&b)?)
    }

    fn follow(&mut self, term: &Term) {
        let known = match term {
            Term::Branch { cond, .. } => self.known.get(cond).copied(),
            _ => None,
        };
        let targets = match (term, known) {
            (Term::Branch { no, .. }, Some(0)) => vec![no],
            (Term::Branch { yes, .. }, Some(_)) => vec![yes],
            _ => term.targets(),
        };
        for target in targets {
            if let Some(runs) = self.runs.get_mut(target.block.index()) {
                *runs = true;
            }
        }
    }
}

fn is_bool(program: &Program, value: ValueId) -> bool {
    program.values.get(value.index()).is_some_and(|ty| ty.width == 1)
}
