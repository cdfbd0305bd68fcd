//! The blocks of the residual program under construction, and the edges that have no target yet.

use super::state::State;
use braid_ir::model::{BlockId, Target, ValueId};
use braid_ir::residual::{Block, CounterList, CounterListId, End, Exit, Fate};
use std::collections::HashMap;

/// The largest number of blocks of a program. Functions past that limit get programs of their own.
pub(super) const MOST_BLOCKS: usize = 50_000;

/// Where an edge starts.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Slot {
    /// The block has no end yet.
    Open,
    /// The branch's condition holds.
    Yes,
    /// The branch's condition does not hold.
    No,
    /// The queue of the block's `Hold` is full.
    Full,
}

/// An edge from a block to a place for which no block exists yet.
pub(super) struct Edge {
    pub(super) from: usize,
    pub(super) slot: Slot,
    pub(super) state: State,
}

/// A path that is being followed: its current block and its state.
pub(super) struct Path {
    pub(super) at: usize,
    pub(super) state: State,
}

impl Path {
    /// The program's value for a value of the model.
    pub(super) fn value(&self, value: ValueId) -> ValueId {
        self.state.env[&value]
    }

    /// The edge from the path's current block on.
    pub(super) fn edge(self) -> Edge {
        Edge { from: self.at, slot: Slot::Open, state: self.state }
    }
}

/// The blocks, and the lists of counters that they add to.
#[derive(Default)]
pub(super) struct Blocks {
    pub(super) all: Vec<Block>,
    pub(super) counter_lists: Vec<CounterList>,
    index: HashMap<CounterList, CounterListId>,
}

const NOWHERE: BlockId = BlockId(u32::MAX);

/// A placeholder for an end that is not known yet.
fn open() -> End {
    End::Jump(Target { block: NOWHERE, args: Vec::new() })
}

/// A placeholder for a target.
pub(super) fn nowhere() -> Target {
    Target { block: NOWHERE, args: Vec::new() }
}

/// The jump to a block without parameters.
pub(super) fn to(block: usize) -> Target {
    Target { block: BlockId(u32::try_from(block).unwrap_or(u32::MAX)), args: Vec::new() }
}

impl Blocks {
    /// A new block.
    pub(super) fn add(&mut self, params: Vec<ValueId>) -> usize {
        self.all.push(Block { params, steps: Vec::new(), end: open() });
        self.all.len() - 1
    }

    /// The number of a list of counters. A new list gets a new number.
    pub(super) fn counters(&mut self, counters: CounterList) -> CounterListId {
        if let Some(found) = self.index.get(&counters) {
            return *found;
        }
        let id = CounterListId(u32::try_from(self.counter_lists.len()).unwrap_or(u32::MAX));
        self.counter_lists.push(counters.clone());
        self.index.insert(counters, id);
        id
    }

    /// Makes an edge lead to a block with these arguments.
    pub(super) fn lead(&mut self, edge: &Edge, block: usize, args: Vec<ValueId>) {
        let to = Target { args, ..to(block) };
        match (&mut self.all[edge.from].end, edge.slot) {
            (End::Jump(target), _)
            | (End::Branch { yes: target, .. }, Slot::Yes)
            | (End::Branch { no: target, .. }, _)
            | (End::Hold { full: target, .. }, _) => *target = to,
            (End::Exit(_), _) => {}
        }
    }

    /// The path at the end of an edge, which gets a new block.
    pub(super) fn open(&mut self, edge: Edge) -> Path {
        if edge.slot == Slot::Open {
            return Path { at: edge.from, state: edge.state };
        }
        let at = self.add(Vec::new());
        self.lead(&edge, at, Vec::new());
        Path { at, state: edge.state }
    }

    /// Ends the program on this path.
    pub(super) fn exit(&mut self, path: &Path, fate: Fate) {
        let counters = self.counters(path.state.counters());
        self.all[path.at].end = End::Exit(Exit { counters, fate });
    }
}
