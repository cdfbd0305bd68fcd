//! The main path of a program as a function of its own.
//!
//! A function that calls no host function needs neither a stack nor registers that survive calls.
//! So the part of a program that most packets take becomes a function without calls, where that is
//! possible. If a packet leaves this part before the code has changed anything, the whole program
//! runs from the start.
#![expect(
    clippy::indexing_slicing,
    reason = "`Facts` has checked the values and jumps of blocks that the program reaches"
)]

use crate::facts::Facts;
use crate::regions::Regions;
use braid_ir::model::{BinOp, Op, SetRef, ValueId};
use braid_ir::residual::{End, Residual, What};
use std::collections::BTreeSet;

/// The main path of a program.
#[derive(Debug)]
pub(crate) struct MainPath {
    /// By block: whether the path contains the block from its first step on.
    pub(super) entered: Vec<bool>,
    /// Exits inside blocks (see [`crate::regions`]) after which the path continues: block and step.
    pub(super) behind: BTreeSet<(usize, usize)>,
    /// Exits of regions at which the packet falls back to the whole program: region and exit.
    pub(super) fallback_exits: BTreeSet<(usize, usize)>,
    /// Jumps at which the packet falls back to the whole program: block, and number of the target.
    pub(super) fallback_jumps: BTreeSet<(usize, usize)>,
}

/// Finds the main path.
struct Finder<'a> {
    residual: &'a Residual,
    regions: &'a Regions,
    /// By block: whether no path to the block has an effect.
    clean: Vec<bool>,
    path: MainPath,
}

impl MainPath {
    /// Finds the main path of a program. `None` if the path calls the host, or if it would be the
    /// whole program.
    pub(crate) fn of(residual: &Residual, facts: &Facts, regions: &Regions) -> Option<MainPath> {
        let blocks = residual.blocks.len();
        let mut clean = vec![true; blocks];
        for (number, block) in facts.reached(residual) {
            let after = clean[number] && block.steps.iter().all(|step| is_pure(&step.what));
            block.end.visit_targets(&mut |target| clean[target.block.index()] &= after);
        }
        let path = MainPath {
            entered: vec![false; blocks],
            behind: BTreeSet::new(),
            fallback_exits: BTreeSet::new(),
            fallback_jumps: BTreeSet::new(),
        };
        let mut finder = Finder { residual, regions, clean, path };
        finder.path.entered[0] = true;
        for (number, _) in facts.reached(residual) {
            if finder.path.entered[number] {
                finder.walk(number, 0)?;
            }
            let mut from = 0;
            while let Some(at) = finder.next_behind(number, from) {
                finder.walk(number, at)?;
                from = at + 1;
            }
        }
        // Without regions and without a fallback, this function would be the whole program.
        let falls_back =
            !finder.path.fallback_exits.is_empty() || !finder.path.fallback_jumps.is_empty();
        (falls_back || !regions.all.is_empty()).then_some(finder.path)
    }

    /// Whether a jump of a block falls back to the whole program.
    pub(super) fn falls_back(&self, block: usize, which: usize) -> bool {
        self.fallback_jumps.contains(&(block, which))
    }
}

impl Finder<'_> {
    fn next_behind(&self, block: usize, from: usize) -> Option<usize> {
        self.path.behind.range((block, from)..(block + 1, 0)).next().map(|(_, at)| *at)
    }

    /// Adds the steps of a block from `from` on to the path. `None` if they call the host.
    fn walk(&mut self, number: usize, from: usize) -> Option<()> {
        let block = &self.residual.blocks[number];
        for at in from..=block.steps.len() {
            if let Some(region) = self.regions.starts.get(&(number, at)) {
                // A packet without an outcome falls back here, so nothing may have changed before.
                return self.is_clean(number, at).then(|| self.exits(*region));
            }
            if let Some(step) = block.steps.get(at)
                && !is_inline(&step.what, &self.residual.values)
            {
                return None;
            }
        }
        if matches!(block.end, End::Hold { .. }) {
            return None;
        }
        let clean = self.is_clean(number, block.steps.len());
        let guard = number == 0 && self.is_guarded();
        for (which, target) in block.end.targets().into_iter().enumerate() {
            let to = target.block.index();
            if clean && (guard && which == 1 || self.asks(to, 0)) {
                self.path.fallback_jumps.insert((number, which));
            } else {
                self.path.entered[to] = true;
            }
        }
        Some(())
    }

    fn exits(&mut self, region: usize) {
        for (number, exit) in self.regions.all[region].exits.iter().enumerate() {
            let (block, at) = match exit.target {
                None => match self.regions.cuts.iter().find(|(_, cut)| **cut == (region, number)) {
                    Some((place, _)) => *place,
                    None => continue,
                },
                Some(which) => {
                    let targets = self.residual.blocks[exit.block].end.targets();
                    (targets[which].block.index(), 0)
                }
            };
            if self.asks(block, at) {
                self.path.fallback_exits.insert((region, number));
            } else if exit.target.is_none() {
                self.path.behind.insert((block, at));
            } else {
                self.path.entered[block] = true;
            }
        }
    }

    /// Whether no path to a step has an effect.
    fn is_clean(&self, block: usize, step: usize) -> bool {
        let steps = &self.residual.blocks[block].steps[..step];
        self.clean[block] && steps.iter().all(|step| is_pure(&step.what))
    }

    /// Whether a block calls the host between step `from` and the next region.
    fn asks(&self, block: usize, from: usize) -> bool {
        let steps = self.residual.blocks[block].steps.iter().enumerate().skip(from);
        let mut before =
            steps.take_while(|(at, _)| !self.regions.starts.contains_key(&(block, *at)));
        before.any(|(_, step)| !is_inline(&step.what, &self.residual.values))
            || matches!(self.residual.blocks[block].end, End::Hold { .. })
    }

    /// Whether the program begins with one test of the conditions that most packets fulfil.
    fn is_guarded(&self) -> bool {
        let first = &self.residual.blocks[0];
        let End::Branch { cond, .. } = &first.end else { return false };
        let is_all = |what: &What| matches!(what, What::Op(Op::Bin { out, op: BinOp::And, .. }) if out == cond);
        first.steps.iter().any(|step| is_all(&step.what))
    }
}

/// Whether a step has no effect but to define values or to fault.
fn is_pure(what: &What) -> bool {
    let What::Op(op) = what else { return false };
    op.is_arithmetic()
        || matches!(
            op,
            Op::InSet { .. }
                | Op::Has { .. }
                | Op::Load { .. }
                | Op::Route { .. }
                | Op::ListGet { .. }
        )
}

/// Whether machine code probably performs a step without a host call. If the guess is wrong,
/// `emit::program::main_path` notices the call and gives up.
pub(super) fn is_inline(what: &What, values: &[braid_ir::model::Ty]) -> bool {
    let narrow = |value: &ValueId| values[value.index()].width <= 64;
    match what {
        What::Op(Op::Bin { op: BinOp::Div | BinOp::Rem | BinOp::MulSat, a, .. }) => narrow(a),
        What::Op(Op::InSet { set, .. }) => matches!(set, SetRef::Const(_)),
        What::Op(Op::Route { .. }) => false,
        What::Write(_) | What::Count(_) => true,
        what => is_pure(what),
    }
}
