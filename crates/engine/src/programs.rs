//! Residual programs by point and header shape. The engine makes a program when the first packet of
//! a shape arrives at a point.
#![expect(
    clippy::indexing_slicing,
    reason = "`place` returns a position in `Points`, and programs name functions of the chain"
)]

use crate::chain_counters::ChainCounters;
use crate::exec_context::Functions;
use crate::options::Jit;
use crate::program::Program;
use braid_compiler::synth;
use braid_flowcache::Cut;
use braid_ir::chain::Chain;
use braid_ir::engine::NodeCounters;
use braid_ir::graph::Graph;
use braid_ir::model::Word;
use braid_ir::residual::{Counter, Extent, Fate, HeaderMask, Point, Residual};
use std::cell::Cell;
use std::collections::HashMap;

/// The largest number of programs at a time. The model interpreter runs packets of further shapes,
/// so that memory does not grow with the variety of the traffic.
const MOST: usize = 4096;
/// The number of blocks of all programs together from which on no program is made. Packets wait
/// while a program is made, and senders choose the shapes of packets.
const MOST_BLOCKS: usize = 1 << 18;

/// All programs.
pub(crate) struct Programs {
    extent: Extent,
    jit: Jit,
    pub(crate) set: ProgramSet,
    /// The number of blocks of all programs.
    blocks: usize,
    /// Memory for the values of the running program, large enough for the largest program.
    pub(crate) words: Vec<Word>,
    #[cfg(feature = "mutants")]
    pub(crate) bug: Option<synth::SynthMutant>,
}

/// The existing programs.
pub(crate) struct ProgramSet {
    pub(crate) all: Vec<Program>,
    pub(crate) points: Points,
    /// Programs that end in front of a function. They never run: only flow records follow them.
    pub(crate) cuts: HashMap<Cut, usize>,
}

/// What a program is to be made for: packets with these headers at a point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Order {
    pub(crate) point: Point,
    pub(crate) presence: u128,
    /// The program ends in front of this function.
    pub(crate) up_to: Option<u16>,
}

impl From<Cut> for Order {
    fn from(Cut { point, present, node }: Cut) -> Self {
        Self { point, presence: present, up_to: Some(node) }
    }
}

impl ProgramSet {
    /// No programs yet.
    fn of(points: Points) -> Self {
        Self { all: Vec::new(), points, cuts: HashMap::new() }
    }
}

/// The programs of each point, indexed by [`place`].
pub(crate) struct Points(Vec<Known>);

/// The programs of a point.
#[derive(Default)]
struct Known {
    /// Whether no program can run here: the function shares packets under `Priority`, is native, or
    /// is too large.
    without: bool,
    /// The program that ran last.
    last: Cell<Option<(HeaderMask, usize)>>,
    shapes: Vec<(HeaderMask, usize)>,
}

impl Known {
    /// Searches all shapes except that of the last program.
    #[inline(never)]
    fn other(&self, presence: u128) -> Option<usize> {
        let found = self.shapes.iter().find(|(shape, _)| shape.fits(presence)).copied()?;
        self.last.set(Some(found));
        Some(found.1)
    }
}

/// The index of a point's programs.
fn place(point: Point) -> usize {
    usize::from(point.node) * 4 + usize::from(point.backward) * 2 + usize::from(point.held)
}

impl Points {
    /// The program that ran last at a point, and its shape.
    pub(crate) fn last(&self, point: Point) -> Option<(HeaderMask, usize)> {
        self.0[place(point)].last.get()
    }

    /// The program at a point for packets with these headers, if there is one.
    #[inline(always)]
    pub(crate) fn known(&self, point: Point, presence: u128) -> Option<usize> {
        let known = &self.0[place(point)];
        match known.last.get() {
            Some((shape, program)) if shape.fits(presence) => Some(program),
            _ => known.other(presence),
        }
    }
}

impl Programs {
    pub(crate) fn new(chain: &Chain, graph: &Graph, extent: Extent, jit: Jit) -> Self {
        let nodes = (0..).zip(&chain.nodes);
        let points = nodes.flat_map(|(number, node)| {
            let without = !graph.has_programs(number) || !synth::fits(&node.model);
            (0..4).map(move |_| Known { without, ..Known::default() })
        });
        Self {
            extent,
            jit,
            set: ProgramSet::of(Points(points.collect())),
            blocks: 0,
            words: Vec::new(),
            #[cfg(feature = "mutants")]
            bug: None,
        }
    }

    /// Makes a program.
    fn residual(&self, order: Order, chain: &Chain, graph: &Graph) -> Residual {
        let Order { point, presence, up_to } = order;
        let extent = up_to.map_or(self.extent, Extent::UpTo);
        #[cfg(feature = "mutants")]
        if let Some(bug) = self.bug {
            return synth::residual_with_mutant(chain, graph, point, presence, extent, bug);
        }
        synth::residual(chain, graph, point, presence, extent)
    }

    /// The program at a point for packets with these headers. Makes it if necessary.
    pub(crate) fn find(
        &mut self,
        point: Point,
        presence: u128,
        chain: &Chain,
        graph: &Graph,
    ) -> Option<usize> {
        if let Some(number) = self.set.points.known(point, presence) {
            return Some(number);
        }
        if !self.has_room(point) || graph.goes_to_stack(point.node, presence) {
            return None;
        }
        let order = Order { point, presence, up_to: None };
        let residual = self.residual(order, chain, graph);
        Some(self.add(Program::new(residual, graph, self.jit)))
    }

    /// Makes a program that flow records want.
    pub(crate) fn make_cut(&mut self, cut: Cut, chain: &Chain, graph: &Graph) {
        let residual = self.residual(cut.into(), chain, graph);
        self.add_cut(cut, Program::new(residual, graph, Jit::Off));
    }

    /// Whether flow records can have a program that they want.
    pub(crate) fn lacks_cut(&self, cut: Cut) -> bool {
        !self.set.cuts.contains_key(&cut) && self.has_room(cut.point)
    }

    /// Whether a point may have one more program.
    pub(crate) fn has_room(&self, point: Point) -> bool {
        let is_free = self.set.all.len() < MOST && self.blocks < MOST_BLOCKS;
        is_free && !self.set.points.0[place(point)].without
    }

    /// Adds a program. Returns its number.
    pub(crate) fn add(&mut self, program: Program) -> usize {
        let Residual { point, shape, .. } = *program.residual;
        let number = self.store(program);
        let known = &mut self.set.points.0[place(point)];
        known.shapes.push((shape, number));
        known.last.set(Some((shape, number)));
        number
    }

    /// Adds a program that flow records want.
    pub(crate) fn add_cut(&mut self, cut: Cut, program: Program) {
        let number = self.store(program);
        self.set.cuts.insert(cut, number);
    }

    fn store(&mut self, program: Program) -> usize {
        let Residual { values, blocks, .. } = &*program.residual;
        self.blocks += blocks.len();
        if self.words.len() < values.len() {
            self.words.resize(values.len(), 0);
        }
        self.set.all.push(program);
        self.set.all.len() - 1
    }

    /// The program that ran last at a point.
    pub(crate) fn last(&self, point: Point) -> Option<(HeaderMask, &Program)> {
        let (shape, program) = self.set.points.last(point)?;
        Some((shape, &self.set.all[program]))
    }

    /// Removes all programs. They are made again when they are needed.
    pub(crate) fn clear(&mut self) {
        self.set.all.clear();
        self.set.cuts.clear();
        self.blocks = 0;
        for known in &mut self.set.points.0 {
            known.last.set(None);
            known.shapes.clear();
        }
    }
}

impl Program {
    /// Adds the program's counts to the counters of functions and chain.
    pub(crate) fn add_to(
        &self,
        functions: &Functions,
        nodes: &mut [NodeCounters],
        chain_counters: &mut ChainCounters,
    ) {
        for (node, counter, packets, bytes) in self.counters() {
            let counters = &mut nodes[usize::from(node)];
            let traffic = match counter {
                Counter::Forward => &mut counters.forward,
                Counter::Backward => &mut counters.backward,
                Counter::Row(row) => &mut counters.rows[row.index()],
                Counter::Background => {
                    counters.background_faults += packets;
                    continue;
                }
            };
            traffic.packets += packets;
            traffic.bytes = traffic.bytes.wrapping_add(bytes);
        }
        let model = |node: u16| &functions.chain.nodes[usize::from(node)].model;
        for (fate, count) in self.reached() {
            match fate {
                Fate::Leave { interface } => chain_counters.leave(*interface, count),
                Fate::Drop { node, row, reason } => {
                    chain_counters.count_drop(
                        *node,
                        *row,
                        &model(*node).reasons[reason.index()],
                        count,
                    );
                }
                Fate::Fault { node, fault } => {
                    let row = functions.instances[usize::from(*node)].fault_row();
                    chain_counters.count_drop(*node, row, fault.reason(), count);
                }
                Fate::Consume { .. } => chain_counters.consumed += count,
                Fate::Go(_) | Fate::Output { .. } | Fate::Resubmit { .. } => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_program_is_made_when_all_are_large_together() {
        let points = Points((0..4).map(|_| Known::default()).collect());
        let mut programs = Programs {
            extent: Extent::Chain,
            jit: Jit::Off,
            set: ProgramSet::of(points),
            blocks: MOST_BLOCKS - 1,
            words: Vec::new(),
            #[cfg(feature = "mutants")]
            bug: None,
        };
        let point = Point { node: 0, backward: false, held: false };
        assert!(programs.has_room(point));
        programs.blocks += 1;
        assert!(!programs.has_room(point));
        programs.clear();
        assert!(programs.has_room(point));
    }
}
