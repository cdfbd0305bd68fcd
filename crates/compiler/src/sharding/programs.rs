//! The residual programs of a chain, made when the analysis first asks for them.

use super::mutants::ShardingMutant;
use crate::symbolic::fits;
use crate::synth::general;
use braid_ir::chain::Chain;
use braid_ir::graph::Graph;
use braid_ir::model::{Model, Op};
use braid_ir::residual::{Extent, Point, Residual};
use braid_packet::presences;
use std::collections::HashMap;
use std::rc::Rc;

/// The largest number of programs of a chain that the analysis uses.
const MOST_PROGRAMS: usize = 20_000;

/// The largest number of blocks that the analysis of a chain walks through. It takes a minute or so
/// in a debug build.
const MOST_BLOCKS: usize = 2_000_000;

/// The programs of a chain.
pub(super) struct Programs {
    pub(super) chain: Chain,
    pub(super) graph: Graph,
    presences: Vec<u128>,
    made: HashMap<Point, Rc<PointPrograms>>,
    count: usize,
    /// The number of blocks that were walked through.
    walked: usize,
    pub(super) bug: Option<ShardingMutant>,
}

/// The programs of a point.
pub(super) struct PointPrograms {
    pub(super) programs: Vec<Rc<Residual>>,
    /// Each set of headers that packets may have, with the number of its program.
    of: Vec<(u128, usize)>,
}

impl Programs {
    /// The programs of a chain. Functions under `Priority` are taken one after the other. If they
    /// change no packets, this makes no difference to the worker of a packet.
    ///
    /// # Errors
    /// Links or priorities are invalid, or functions under `Priority` change packets.
    pub(super) fn new(chain: &Chain, bug: Option<ShardingMutant>) -> Result<Self, String> {
        let graph = Graph::new(chain)?;
        let is_alone = |number: u16| graph.group(number).len() == 1;
        for (_, node) in (0..).zip(&chain.nodes).filter(|(number, _)| !is_alone(*number)) {
            if changes_packets(&node.model) {
                return Err(format!("{} changes packets and is under Priority", node.name));
            }
        }
        let chain = Chain { priorities: Vec::new(), ..chain.clone() };
        let graph = Graph::new(&chain)?;
        Ok(Self {
            chain,
            graph,
            presences: presences(),
            made: HashMap::new(),
            count: 0,
            walked: 0,
            bug,
        })
    }

    /// The programs of a point.
    ///
    /// # Errors
    /// The point has no programs, or there are too many.
    pub(super) fn at(&mut self, point: Point) -> Result<Rc<PointPrograms>, String> {
        if let Some(made) = self.made.get(&point) {
            return Ok(made.clone());
        }
        let node = &self.chain.nodes[usize::from(point.node)];
        if !fits(&node.model) {
            return Err(format!("{} is too large for the analysis", node.name));
        }
        let made = Rc::new(self.make(point));
        self.count += made.programs.len();
        if self.count > MOST_PROGRAMS {
            return Err("the chain is too large for the analysis".to_owned());
        }
        self.made.insert(point, made.clone());
        Ok(made)
    }

    /// Counts a walk through a program.
    ///
    /// # Errors
    /// There were too many walks.
    pub(super) fn walk(&mut self, program: &Residual) -> Result<(), String> {
        self.walked += program.blocks.len();
        match self.walked > MOST_BLOCKS {
            true => Err("the analysis is too long".to_owned()),
            false => Ok(()),
        }
    }

    fn make(&self, point: Point) -> PointPrograms {
        let mut programs: Vec<Rc<Residual>> = Vec::new();
        let mut of = Vec::with_capacity(self.presences.len());
        for presence in &self.presences {
            let known = programs.iter().position(|program| program.shape.fits(*presence));
            let number = known.unwrap_or_else(|| {
                let (chain, graph) = (&self.chain, &self.graph);
                let program = general(chain, graph, point, *presence, Extent::Chain).0;
                programs.push(Rc::new(program));
                programs.len() - 1
            });
            of.push((*presence, number));
        }
        PointPrograms { programs, of }
    }
}

impl PointPrograms {
    /// Each set of headers that packets may have, with the number of its program.
    pub(super) fn all(&self) -> impl Iterator<Item = (u128, usize)> {
        self.of.iter().copied()
    }

    /// The number of the program for packets with these headers.
    pub(super) fn of(&self, presence: u128) -> Option<usize> {
        let at = self.of.binary_search_by_key(&presence, |(presence, _)| *presence).ok()?;
        Some(self.of[at].1)
    }
}

/// Whether a function may change packets.
fn changes_packets(model: &Model) -> bool {
    let ops = model.packet.blocks.iter().flat_map(|block| &block.ops);
    let changes =
        |op: &Op| op.changes_bytes() || matches!(op, Op::StoreTag { .. } | Op::Native { .. });
    ops.into_iter().any(changes)
}
