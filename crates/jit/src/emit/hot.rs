//! The main way as a function of its own.
//!
//! What asks nothing of the host needs no registers that survive calls, and no room on the stack. So the
//! part of a program that most packets run through becomes a function without calls, if it can: where a
//! packet leaves that part before anything was done to it, it runs by the whole program from the start.

use crate::facts::Facts;
use crate::regions::Regions;
use braid_ir::model::{BinOp, Op, SetRef, ValueId};
use braid_ir::residual::{End, Residual, What};
use std::collections::BTreeSet;

/// Which part that is.
#[derive(Debug)]
pub(crate) struct Hot {
    /// By block: whether it is in it from its first step on.
    pub(super) entered: Vec<bool>,
    /// Ways out of regions, within blocks, behind which it goes on.
    pub(super) behind: BTreeSet<(usize, usize)>,
    /// Exits of regions where the whole program takes over: region and exit.
    pub(super) given_up: BTreeSet<(usize, usize)>,
    /// Jumps with which it does: block and number of the target.
    pub(super) over: BTreeSet<(usize, usize)>,
}

/// Finds it.
struct Finder<'a> {
    residual: &'a Residual,
    regions: &'a Regions,
    /// By block: whether nothing was done on any way before it begins.
    clean: Vec<bool>,
    hot: Hot,
}

impl Hot {
    /// The part of a program that most packets run through, if it begins with the program and asks
    /// nothing of the host.
    pub(crate) fn of(residual: &Residual, facts: &Facts, regions: &Regions) -> Option<Hot> {
        let blocks = residual.blocks.len();
        let mut clean = vec![true; blocks];
        for (number, block) in residual.blocks.iter().enumerate() {
            let after = clean[number] && block.steps.iter().all(|step| is_pure(&step.what));
            block.end.visit_targets(&mut |target| clean[target.block.index()] &= after);
        }
        let hot = Hot {
            entered: vec![false; blocks],
            behind: BTreeSet::new(),
            given_up: BTreeSet::new(),
            over: BTreeSet::new(),
        };
        let mut finder = Finder { residual, regions, clean, hot };
        finder.hot.entered[0] = true;
        for number in (0..blocks).filter(|number| facts.ways[*number] > 0) {
            if finder.hot.entered[number] {
                finder.walk(number, 0)?;
            }
            let mut from = 0;
            while let Some(at) = finder.next_behind(number, from) {
                finder.walk(number, at)?;
                from = at + 1;
            }
        }
        // A program that never gives up is that function already.
        let gives_up = !finder.hot.given_up.is_empty() || !finder.hot.over.is_empty();
        (gives_up || !regions.all.is_empty()).then_some(finder.hot)
    }

    /// Whether the program may leave a block by one of its jumps to the whole program.
    pub(super) fn gives_up(&self, block: usize, which: usize) -> bool {
        self.over.contains(&(block, which))
    }
}

impl Finder<'_> {
    fn next_behind(&self, block: usize, from: usize) -> Option<usize> {
        self.hot.behind.range((block, from)..(block + 1, 0)).next().map(|(_, at)| *at)
    }

    /// Follows a block from a step on; `None` if the host is asked.
    fn walk(&mut self, number: usize, from: usize) -> Option<()> {
        let block = &self.residual.blocks[number];
        for at in from..=block.steps.len() {
            if let Some(region) = self.regions.starts.get(&(number, at)) {
                // The first packet of a class needs the whole program.
                return self.is_clean(number, at).then(|| self.exits(*region));
            }
            if let Some(step) = block.steps.get(at)
                && !is_own(&step.what, &self.residual.values)
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
                self.hot.over.insert((number, which));
            } else {
                self.hot.entered[to] = true;
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
                self.hot.given_up.insert((region, number));
            } else if exit.target.is_none() {
                self.hot.behind.insert((block, at));
            } else {
                self.hot.entered[block] = true;
            }
        }
    }

    /// Whether nothing is done before a step on any way to it.
    fn is_clean(&self, block: usize, step: usize) -> bool {
        let steps = &self.residual.blocks[block].steps[..step];
        self.clean[block] && steps.iter().all(|step| is_pure(&step.what))
    }

    /// Whether a block asks the host from a step on, before a region begins.
    fn asks(&self, block: usize, from: usize) -> bool {
        let steps = self.residual.blocks[block].steps.iter().enumerate().skip(from);
        let mut before =
            steps.take_while(|(at, _)| !self.regions.starts.contains_key(&(block, *at)));
        before.any(|(_, step)| !is_own(&step.what, &self.residual.values))
            || matches!(self.residual.blocks[block].end, End::Hold { .. })
    }

    /// Whether the program begins with one test of all that most packets have in common.
    fn is_guarded(&self) -> bool {
        let first = &self.residual.blocks[0];
        let End::Branch { cond, .. } = &first.end else { return false };
        let is_all = |what: &What| matches!(what, What::Op(Op::Bin { out, op: BinOp::And, .. }) if out == cond);
        first.steps.iter().any(|step| is_all(&step.what))
    }
}

/// Whether a step does nothing but define values.
fn is_pure(what: &What) -> bool {
    matches!(
        what,
        What::Op(
            Op::Const { .. }
                | Op::Bin { .. }
                | Op::Cmp { .. }
                | Op::Not { .. }
                | Op::Resize { .. }
                | Op::Clamp { .. }
                | Op::Select { .. }
                | Op::InSet { .. }
                | Op::Has { .. }
                | Op::Load { .. }
                | Op::Route { .. }
                | Op::ListGet { .. }
        )
    )
}

/// Whether machine code likely does a step by itself. (That it was wrong is found out when the code is
/// written.)
pub(super) fn is_own(what: &What, values: &[braid_ir::model::Ty]) -> bool {
    let narrow = |value: &ValueId| values[value.index()].width <= 64;
    match what {
        What::Op(Op::Bin { op: BinOp::Div | BinOp::Rem | BinOp::MulSat, a, .. }) => narrow(a),
        What::Op(Op::InSet { set, .. }) => matches!(set, SetRef::Const(_)),
        What::Op(Op::Route { .. }) => false,
        What::Write(_) | What::Tally(_) => true,
        what => is_pure(what),
    }
}
