//! Blocks of the residual program under construction, and the edges that still lead nowhere.

use super::state::State;
use braid_ir::model::{BlockId, Target, ValueId};
use braid_ir::residual::{Block, End, Exit, Fate, Tally, TallyId};
use std::collections::HashMap;

/// Where an edge starts.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Slot {
    /// The block has no end yet.
    Open,
    /// The side of its branch on which the condition holds.
    Yes,
    /// The other one.
    No,
    /// Its queue is full.
    Full,
}

/// An edge to a place that is not built yet.
pub(super) struct Edge {
    pub(super) from: usize,
    pub(super) slot: Slot,
    pub(super) state: State,
}

/// A way that is being followed: the block where it is, and what is known.
pub(super) struct Way {
    pub(super) at: usize,
    pub(super) state: State,
}

impl Way {
    /// The edge from here on.
    pub(super) fn edge(self) -> Edge {
        Edge { from: self.at, slot: Slot::Open, state: self.state }
    }
}

/// Blocks and tallies.
#[derive(Default)]
pub(super) struct Blocks {
    pub(super) all: Vec<Block>,
    pub(super) tallies: Vec<Tally>,
    index: HashMap<Tally, TallyId>,
}

const NOWHERE: BlockId = BlockId(u32::MAX);

/// An end that is not known yet.
fn open() -> End {
    End::Jump(Target { block: NOWHERE, args: Vec::new() })
}

/// A place to be filled in.
pub(super) fn nowhere() -> Target {
    Target { block: NOWHERE, args: Vec::new() }
}

impl Blocks {
    /// A new block.
    pub(super) fn add(&mut self, params: Vec<ValueId>) -> usize {
        self.all.push(Block { params, steps: Vec::new(), end: open() });
        self.all.len() - 1
    }

    /// The number of a tally.
    pub(super) fn tally(&mut self, tally: Tally) -> TallyId {
        if let Some(found) = self.index.get(&tally) {
            return *found;
        }
        let id = TallyId(u32::try_from(self.tallies.len()).unwrap_or(u32::MAX));
        self.tallies.push(tally.clone());
        self.index.insert(tally, id);
        id
    }

    /// Lets an edge lead to a block.
    pub(super) fn lead(&mut self, edge: &Edge, block: usize, args: Vec<ValueId>) {
        let to = Target { block: BlockId(u32::try_from(block).unwrap_or(u32::MAX)), args };
        match (&mut self.all[edge.from].end, edge.slot) {
            (End::Jump(target), _)
            | (End::Branch { yes: target, .. }, Slot::Yes)
            | (End::Branch { no: target, .. }, _)
            | (End::Hold { full: target, .. }, _) => *target = to,
            (End::Exit(_), _) => {}
        }
    }

    /// A block of its own at the end of an edge, to go on in.
    pub(super) fn open(&mut self, edge: Edge) -> Way {
        if edge.slot == Slot::Open {
            return Way { at: edge.from, state: edge.state };
        }
        let at = self.add(Vec::new());
        self.lead(&edge, at, Vec::new());
        Way { at, state: edge.state }
    }

    /// Ends the program.
    pub(super) fn exit(&mut self, way: &Way, fate: Fate) {
        let tally = self.tally(way.state.tally());
        self.all[way.at].end = End::Exit(Exit { tally, fate });
    }
}
