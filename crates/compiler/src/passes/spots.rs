//! Where pure values are computed: as late as possible, in the last block that all paths to their
//! users share (Click, "Global Code Motion", PLDI 1995, without loops). A cheap value that only
//! ends of the program need is computed at each of these ends, so that other paths do not compute
//! it.

use super::facts::Facts;
use super::graph::Dominators;
use super::purity::{changes_packet, is_pure};
use braid_ir::model::{Op, SetRef, ValueId};
use braid_ir::residual::{Block, End, Residual, Step, What};
use std::collections::BTreeMap;

/// A place in a block: before the fixed step with this number, or before the end.
pub(super) type Spot = (usize, usize);

/// A program split into blocks with their fixed steps, and pure steps.
pub(super) struct Parts {
    pub(super) blocks: Vec<Block>,
    /// Each pure step, by the number of its first result.
    pub(super) pure: Vec<Option<Step>>,
    /// For each value, the first result of the step that defines it.
    first: Vec<ValueId>,
    /// Where the main path begins, if the program has one.
    main: Option<usize>,
    dominators: Dominators,
    /// Whether the packet's bytes may have changed before a block.
    changed: Vec<bool>,
    /// For each block, its first fixed step that changes the packet's bytes, or the number of its
    /// steps.
    change: Vec<usize>,
}

impl Parts {
    /// Takes the blocks out of a program.
    pub(super) fn of(program: &mut Residual, facts: &Facts) -> Self {
        let all = all_values(program.values.len());
        let mut parts = Self {
            blocks: std::mem::take(&mut program.blocks),
            pure: all.iter().map(|_| None).collect(),
            first: all,
            main: None,
            dominators: Dominators::of(&[]),
            changed: Vec::new(),
            change: Vec::new(),
        };
        parts.dominators = Dominators::of(&parts.blocks);
        parts.main = match parts.blocks.first().map(|block| &block.end) {
            Some(End::Branch { yes, .. }) if facts.guarded => Some(yes.block.index()),
            _ => None,
        };
        parts.changed = vec![false; parts.blocks.len()];
        for at in 0..parts.blocks.len() {
            parts.take_pure(at);
        }
        parts
    }

    fn take_pure(&mut self, at: usize) {
        let mut changed = self.changed[at];
        let mut change = None;
        let mut fixed = Vec::new();
        for step in std::mem::take(&mut self.blocks[at].steps) {
            let outs = step.what.outs();
            match outs.first() {
                Some(first) if is_pure(&step, changed) => {
                    for out in &outs {
                        self.first[out.index()] = *first;
                    }
                    self.pure[first.index()] = Some(step);
                }
                _ => {
                    if changes_packet(&step.what) {
                        changed = true;
                        change.get_or_insert(fixed.len());
                    }
                    fixed.push(step);
                }
            }
        }
        self.change.push(change.unwrap_or(fixed.len()));
        self.blocks[at].steps = fixed;
        self.blocks[at].end.visit_targets(&mut |target| {
            self.changed[target.block.index()] |= changed;
        });
    }
}

/// The numbers of all values.
fn all_values(count: usize) -> Vec<ValueId> {
    (0..count).map(|number| ValueId(u32::try_from(number).unwrap_or(u32::MAX))).collect()
}

/// The places where a pure step is computed.
#[derive(Clone, Default)]
pub(super) struct Places {
    /// For each [`Part`] of the program: the place that serves all users in it.
    pub(super) spots: [Option<Spot>; 3],
    /// Blocks that end the program and compute the value themselves: before the step with this
    /// number.
    pub(super) ends: BTreeMap<usize, usize>,
}

/// Parts of a program that do not share values: the test before the main path, the general part,
/// the main path. So the main path computes no value that only the general part needs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Front,
    General,
    Main,
}

/// The largest number of ends that each compute a value themselves.
const MOST_ENDS: usize = 64;

/// The largest number of operations in a row that an end computes itself.
const MOST_HEIGHT: u32 = 6;

/// The places of all pure steps, by the number of their first result. Constants have no place: each
/// block that uses a constant defines it.
pub(super) fn places(parts: &Parts) -> Vec<Places> {
    let places = vec![Places::default(); parts.pure.len()];
    let mut placement = Placement { parts, places, heights: heights(parts) };
    for (at, block) in parts.blocks.iter().enumerate() {
        for (number, step) in block.steps.iter().enumerate() {
            step.what.visit_uses(&mut |value| placement.need(*value, (at, number)));
        }
        let end = (at, block.steps.len());
        block.end.visit_uses(&mut |value| placement.need(*value, end));
        block.end.visit_targets(&mut |target| {
            for value in &target.args {
                placement.need(*value, end);
            }
        });
    }
    // Operands have smaller numbers than results, so users are placed first.
    for number in (0..parts.pure.len()).rev() {
        match &parts.pure[number] {
            Some(Step { what: What::Op(Op::Const { .. }), .. }) => {
                placement.places[number] = Places::default();
            }
            Some(step) => placement.settle(number, step),
            None => {}
        }
    }
    placement.places
}

struct Placement<'a> {
    parts: &'a Parts,
    places: Vec<Places>,
    /// For each value, the number of operations in a row that compute it. `None` for lookups, which
    /// are not cheap.
    heights: Vec<Option<u32>>,
}

fn heights(parts: &Parts) -> Vec<Option<u32>> {
    let mut heights: Vec<Option<u32>> = vec![Some(0); parts.pure.len()];
    for number in 0..parts.pure.len() {
        let Some(step) = &parts.pure[number] else { continue };
        let mut most = 0;
        step.what.visit_uses(&mut |operand| {
            most = most.max(heights[operand.index()].map_or(0, |height| height + 1));
        });
        let height = if is_lookup(&step.what) { None } else { Some(most) };
        step.what.visit_outs(&mut |out| heights[out.index()] = height);
    }
    heights
}

fn is_lookup(what: &What) -> bool {
    match what {
        What::Op(op) => {
            matches!(op, Op::Route { .. } | Op::InSet { set: SetRef::List(..), .. })
        }
        _ => true,
    }
}

impl Placement<'_> {
    fn part(&self, block: usize) -> Part {
        match self.parts.main {
            Some(_) if block == 0 => Part::Front,
            Some(main) if block >= main => Part::Main,
            _ => Part::General,
        }
    }

    fn need(&mut self, value: ValueId, at: Spot) {
        let cheap = self.heights[value.index()].is_some_and(|height| height <= MOST_HEIGHT);
        let ends = self.parts.blocks[at.0].end.targets().is_empty();
        let first = self.parts.first[value.index()];
        let places = &mut self.places[first.index()];
        let has_room = places.ends.len() < MOST_ENDS || places.ends.contains_key(&at.0);
        if cheap && ends && has_room {
            let number = places.ends.entry(at.0).or_insert(at.1);
            *number = at.1.min(*number);
        } else {
            self.need_before(first, at);
        }
    }

    fn need_before(&mut self, first: ValueId, at: Spot) {
        let parts = self.parts;
        let part = self.part(at.0);
        let spot = &mut self.places[first.index()].spots[part as usize];
        *spot = Some(match *spot {
            None => at,
            Some(other) if other.0 == at.0 => (at.0, at.1.min(other.1)),
            // Block 0 lies on all paths. Without this case, the search would be long.
            Some(other) if other.0 == 0 => other,
            Some(other) => {
                let block = parts.dominators.meet(other.0, at.0);
                if block == other.0 {
                    other
                } else if block == at.0 {
                    at
                } else {
                    (block, parts.blocks[block].steps.len())
                }
            }
        });
    }

    /// Fixes the places of a step, whose users already have places. Its operands are needed there.
    fn settle(&mut self, number: usize, step: &Step) {
        let parts = self.parts;
        let first = parts.first[number];
        let load = matches!(step.what, What::Op(Op::Load { .. }));
        let ends = std::mem::take(&mut self.places[number].ends);
        let mut own = BTreeMap::new();
        for (block, number) in ends {
            if load && parts.changed[block] {
                self.need_before(first, (block, number));
            } else {
                own.insert(block, if load { number.min(parts.change[block]) } else { number });
            }
        }
        let mut spots = self.places[number].spots;
        if spots[Part::Front as usize].is_some() {
            spots[1..].fill(None);
        }
        for spot in spots.iter_mut().flatten() {
            if load {
                *spot = self.before_changes(*spot);
            }
            own.retain(|end, _| !parts.dominators.dominates(spot.0, *end));
        }
        self.places[number] = Places { spots, ends: own.clone() };
        for at in spots.into_iter().flatten().chain(own) {
            step.what.visit_uses(&mut |operand| self.need(*operand, at));
        }
    }

    /// The last spot at or before this one at which the packet is still unchanged.
    fn before_changes(&self, spot: Spot) -> Spot {
        let (mut block, mut number) = spot;
        while self.parts.changed[block] {
            block = self.parts.dominators.parent(block);
            number = self.parts.blocks[block].steps.len();
        }
        (block, number.min(self.parts.change[block]))
    }
}
