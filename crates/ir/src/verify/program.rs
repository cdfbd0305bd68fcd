//! Checks the structure of a program: blocks, jumps, and definitions that dominate their uses.

use super::facts::Facts;
use super::place::{Part, Place, Problem, VerifyError, Which};
use super::types::OpCheck;
use crate::model::{BlockId, Model, Program, Target, ValueId};

/// Collects errors about all programs of a model with correct declarations.
pub(super) fn check_all(model: &Model, errors: &mut Vec<VerifyError>) {
    check(model, Which::Packet, &model.packet, errors);
    for (state, program) in &model.expire {
        check(model, Which::Expire(*state), program, errors);
    }
    for (event, program) in &model.streams {
        check(model, Which::Stream(*event), program, errors);
    }
    for (event, program) in &model.handlers {
        check(model, Which::Handler(*event), program, errors);
    }
    for (number, timer) in model.timers.iter().enumerate() {
        check(model, Which::Timer(number), &timer.body, errors);
    }
}

fn check(model: &Model, which: Which, program: &Program, errors: &mut Vec<VerifyError>) {
    let before = errors.len();
    Structure { which, program, errors }.check();
    // The checks below rely on valid numbers.
    if errors.len() > before {
        return;
    }
    let mut uses = Uses::new(which, program);
    uses.check(errors);
    let reached = uses.reached;
    OpCheck { model, which, program, errors }.check();
    // The check of presence uses conditions, which must be correct first.
    if errors.len() == before {
        Facts::new(model, which, program, &reached).check(errors);
    }
}

/// Checks that numbers are in range, jumps lead forward and pass the right number of values, and
/// values are defined once.
struct Structure<'a> {
    which: Which,
    program: &'a Program,
    errors: &'a mut Vec<VerifyError>,
}

impl Structure<'_> {
    fn report(&mut self, place: Place, problem: Problem) {
        self.errors.push(VerifyError { place, problem });
    }

    fn check(&mut self) {
        let program = self.program;
        let whole = Place::Program(self.which);
        match program.blocks.first() {
            None => return self.report(whole, Problem::NoBlocks),
            Some(entry) if !entry.params.is_empty() => self.report(whole, Problem::EntryParams),
            Some(_) => {}
        }
        for ty in &program.values {
            if !ty.is_valid() {
                self.report(whole, Problem::Type(ty.to_string()));
            }
        }
        let mut defined = vec![false; program.values.len()];
        for (id, block) in (0..).map(BlockId).zip(&program.blocks) {
            let at = |part| Place::Block(self.which, id, part);
            let (params, term) = (at(Part::Params), at(Part::Term));
            self.define(params, &block.params, &mut defined);
            for (number, op) in block.ops.iter().enumerate() {
                let place = Place::Block(self.which, id, Part::Op(number));
                self.define(place, &op.outs(), &mut defined);
                self.in_range(place, &op.uses());
            }
            self.in_range(term, &block.term.uses());
            for target in block.term.targets() {
                self.in_range(term, &target.args);
                self.target(term, id, target);
            }
        }
    }

    fn in_range(&mut self, place: Place, values: &[ValueId]) {
        for value in values {
            if value.index() >= self.program.values.len() {
                self.report(place, Problem::Missing(value.to_string()));
            }
        }
    }

    fn define(&mut self, place: Place, values: &[ValueId], defined: &mut [bool]) {
        for value in values {
            match defined.get_mut(value.index()) {
                None => self.report(place, Problem::Missing(value.to_string())),
                Some(true) => self.report(place, Problem::DefinedTwice(*value)),
                Some(defined) => *defined = true,
            }
        }
    }

    fn target(&mut self, place: Place, from: BlockId, target: &Target) {
        let Some(block) = self.program.blocks.get(target.block.index()) else {
            return self.report(place, Problem::Missing(target.block.to_string()));
        };
        if target.block <= from {
            self.report(place, Problem::Backward(target.block));
        }
        let (found, wanted) = (target.args.len(), block.params.len());
        if found != wanted {
            let block = target.block;
            return self.report(place, Problem::TargetArgs { block, found, wanted });
        }
        for (arg, param) in target.args.iter().zip(&block.params) {
            let width = |id: &ValueId| self.program.values.get(id.index()).map(|ty| ty.width);
            if let (Some(found), Some(wanted)) = (width(arg), width(param))
                && found != wanted
            {
                self.report(place, Problem::Width { value: *arg, found, wanted });
            }
        }
    }
}

/// Checks uses of values: every path to a use must define the value first.
struct Uses<'a> {
    which: Which,
    program: &'a Program,
    /// Whether each block can be reached. Unreachable blocks are not checked here.
    reached: Vec<bool>,
    /// The immediate dominator of each block: the last block that all paths to it pass before it.
    dominator: Vec<usize>,
    /// The place that defines each value: the block, and 0 for its parameters or the operation's
    /// number from 1.
    defined: Vec<Option<(usize, usize)>>,
}

#[expect(clippy::indexing_slicing, reason = "`Structure` has checked the numbers")]
impl<'a> Uses<'a> {
    fn new(which: Which, program: &'a Program) -> Self {
        let mut defined = vec![None; program.values.len()];
        for (at, block) in program.blocks.iter().enumerate() {
            for value in &block.params {
                defined[value.index()] = Some((at, 0));
            }
            for (number, op) in block.ops.iter().enumerate() {
                for value in op.outs() {
                    defined[value.index()] = Some((at, number + 1));
                }
            }
        }
        let (reached, dominator) = dominators(program);
        Self { which, program, reached, dominator, defined }
    }

    fn check(&mut self, errors: &mut Vec<VerifyError>) {
        for (at, block) in self.program.blocks.iter().enumerate() {
            if !self.reached[at] {
                continue;
            }
            let mut judge = |part, place, values: &[ValueId]| {
                for value in values.iter().filter(|value| !self.is_defined(**value, at, place)) {
                    let id = BlockId(u32::try_from(at).unwrap_or(u32::MAX));
                    let place = Place::Block(self.which, id, part);
                    errors.push(VerifyError { place, problem: Problem::Undefined(*value) });
                }
            };
            for (number, op) in block.ops.iter().enumerate() {
                judge(Part::Op(number), number + 1, &op.uses());
            }
            judge(Part::Term, usize::MAX, &block.term.uses());
            for target in block.term.targets() {
                judge(Part::Term, usize::MAX, &target.args);
            }
        }
    }

    fn is_defined(&self, value: ValueId, block: usize, before: usize) -> bool {
        let Some((home, number)) = self.defined[value.index()] else { return false };
        if home == block {
            return number < before;
        }
        let mut at = block;
        while at > home {
            at = self.dominator[at];
        }
        at == home
    }
}

/// The blocks that can be reached, and the immediate dominator of each block. Blocks are in
/// topological order, so one pass is enough.
#[expect(clippy::indexing_slicing, reason = "`Structure` has checked the numbers")]
fn dominators(program: &Program) -> (Vec<bool>, Vec<usize>) {
    let count = program.blocks.len();
    let mut dominator: Vec<Option<usize>> = vec![None; count];
    let mut reached = vec![false; count];
    reached[0] = true;
    for at in 0..count {
        if !reached[at] {
            continue;
        }
        for target in program.blocks[at].term.targets() {
            let next = target.block.index();
            reached[next] = true;
            dominator[next] = Some(match dominator[next] {
                None => at,
                Some(other) => meet(&dominator, at, other),
            });
        }
    }
    (reached, dominator.into_iter().map(|at| at.unwrap_or(0)).collect())
}

/// The last block that dominates both blocks.
#[expect(
    clippy::indexing_slicing,
    reason = "the caller gives numbers of blocks, and dominators are blocks"
)]
fn meet(dominator: &[Option<usize>], mut a: usize, mut b: usize) -> usize {
    while a != b {
        if a > b {
            a = dominator[a].unwrap_or(0);
        } else {
            b = dominator[b].unwrap_or(0);
        }
    }
    a
}
