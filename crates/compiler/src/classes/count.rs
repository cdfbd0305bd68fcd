//! Counts the elements of programs by kind, as in SNF, Fig. 5 and 6.

use crate::synth::general;
use braid_ir::chain::{Chain, Sink};
use braid_ir::graph::{Graph, port};
use braid_ir::model::{Op, RIGHT};
use braid_ir::residual::{End, Extent, Fate, Point, Residual, Step, What};
use braid_packet::Header;
use serde::Serialize;
use std::collections::{BTreeSet, HashMap};
use std::ops::Add;

/// The number of elements of each kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Elements {
    /// Parses of the packet's headers.
    pub parses: u64,
    /// Fields that are read from the packet.
    pub reads: u64,
    /// Fields that are written to the packet.
    pub writes: u64,
    /// Updates of checksums.
    pub checksums: u64,
    /// Lookups in rule sets, routes, lists, sets and patterns.
    pub lookups: u64,
    /// Lookups and assignments of state, and uses of pools.
    pub state: u64,
    /// Tested conditions.
    pub conditions: u64,
    /// Arithmetic and comparisons.
    pub arithmetic: u64,
    /// All other elements: events, copies, answers, tags.
    pub others: u64,
    /// Additions to counters.
    pub counts: u64,
}

impl Elements {
    /// The numbers of elements with the names of their kinds.
    #[must_use]
    pub fn named(&self) -> [(&'static str, u64); 10] {
        [
            ("parses", self.parses),
            ("reads", self.reads),
            ("writes", self.writes),
            ("checksum updates", self.checksums),
            ("lookups", self.lookups),
            ("state", self.state),
            ("conditions", self.conditions),
            ("arithmetic", self.arithmetic),
            ("others", self.others),
            ("counts", self.counts),
        ]
    }

    /// The number of all elements.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.named().iter().map(|(_, count)| count).sum()
    }
}

impl Add for Elements {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            parses: self.parses + other.parses,
            reads: self.reads + other.reads,
            writes: self.writes + other.writes,
            checksums: self.checksums + other.checksums,
            lookups: self.lookups + other.lookups,
            state: self.state + other.state,
            conditions: self.conditions + other.conditions,
            arithmetic: self.arithmetic + other.arithmetic,
            others: self.others + other.others,
            counts: self.counts + other.counts,
        }
    }
}

fn of_step(step: &Step) -> Elements {
    let mut one = Elements::default();
    match &step.what {
        What::Op(op) => of_op(op, &mut one),
        What::Classify { .. } => one.lookups = 1,
        What::Find { .. } => one.state = 1,
        What::Write(fields) => {
            one.writes = fields.len() as u64;
            one.checksums = 1;
        }
        What::Parse => one.parses = 1,
        What::Count(_) | What::CountRule { .. } => one.counts = 1,
        What::Enter | What::Read { .. } => {}
    }
    one
}

fn of_op(op: &Op, one: &mut Elements) {
    match op {
        Op::Const { .. } | Op::Param { .. } => {}
        Op::Load { .. } | Op::LoadEntry { .. } | Op::LoadBytes { .. } | Op::LoadString { .. } => {
            one.reads = 1
        }
        Op::Bin { .. }
        | Op::Cmp { .. }
        | Op::Not { .. }
        | Op::Resize { .. }
        | Op::Clamp { .. }
        | Op::Select { .. }
        | Op::Has { .. } => one.arithmetic = 1,
        Op::InSet { .. }
        | Op::ListLen { .. }
        | Op::ListGet { .. }
        | Op::BackendUp { .. }
        | Op::Route { .. }
        | Op::Rules { .. }
        | Op::Patterns { .. }
        | Op::FindPatterns { .. }
        | Op::InStrings { .. } => one.lookups = 1,
        Op::StateExists { .. }
        | Op::StateGet { .. }
        | Op::StateSet { .. }
        | Op::StatePut { .. }
        | Op::StateDelete { .. }
        | Op::StateLen { .. }
        | Op::Take { .. }
        | Op::TakeThis { .. }
        | Op::Release { .. } => one.state = 1,
        Op::Count { .. } => one.counts = 1,
        _ => one.others = 1,
    }
}

/// The elements on the path with the most elements. They include the parse of the packet.
pub(super) fn longest(program: &Residual) -> Elements {
    let parse = Elements { parses: 1, ..Elements::default() };
    parse + from_blocks(program, &|_| Elements::default())[0]
}

/// For each block, the elements on the longest path from it. `behind` gives the elements of the
/// programs that follow the end of a block.
fn from_blocks(program: &Residual, behind: &dyn Fn(usize) -> Elements) -> Vec<Elements> {
    let mut from = vec![Elements::default(); program.blocks.len()];
    for (number, block) in program.blocks.iter().enumerate().rev() {
        let own = block.steps.iter().map(of_step).fold(Elements::default(), Add::add);
        let mut end = match &block.end {
            End::Branch { .. } => Elements { conditions: 1, ..Elements::default() },
            End::Exit(_) => Elements { counts: 1, ..Elements::default() } + behind(number),
            End::Hold { .. } => Elements { counts: 1, others: 1, ..Elements::default() },
            End::Jump(_) => Elements::default(),
        };
        let next = block.end.targets().into_iter().map(|target| from[target.block.index()]);
        end = end + next.max_by_key(Elements::total).unwrap_or_default();
        from[number] = own + end;
    }
    from
}

/// The elements on the longest path from a point on if each function has its own program. The
/// search follows only one kind of header changes: changes of the first two VLAN tags.
pub(super) fn apart(chain: &Chain, graph: &Graph, point: Point, presence: u128) -> Elements {
    Apart { chain, graph, known: HashMap::new() }.from(point, presence, 0)
}

struct Apart<'a> {
    chain: &'a Chain,
    graph: &'a Graph,
    known: HashMap<(Point, u128), Elements>,
}

impl Apart<'_> {
    fn from(&mut self, point: Point, presence: u128, depth: u32) -> Elements {
        if let Some(known) = self.known.get(&(point, presence)) {
            return *known;
        }
        // Until the search leaves the point, a visit from within the search closes a loop and
        // counts nothing.
        self.known.insert((point, presence), Elements::default());
        // Where packets have no program, nothing is counted, and nothing behind it.
        let has_program =
            self.graph.has_programs(point.node) && !self.graph.goes_to_stack(point.node, presence);
        if depth > braid_ir::engine::HOP_LIMIT || !has_program {
            return Elements::default();
        }
        let (program, _) = general(self.chain, self.graph, point, presence, Extent::Function);
        let headers = headers(&program, presence);
        let mut next: HashMap<usize, Elements> = HashMap::new();
        for (number, block) in program.blocks.iter().enumerate() {
            let End::Exit(exit) = &block.end else { continue };
            let Some(to) = self.next(&exit.fate, point) else { continue };
            let all = headers[number].iter().map(|headers| self.from(to, *headers, depth + 1));
            next.insert(number, all.max_by_key(Elements::total).unwrap_or_default());
        }
        let behind = |number: usize| next.get(&number).copied().unwrap_or_default();
        let parse = Elements { parses: 1, ..Elements::default() };
        let found = parse + from_blocks(&program, &behind)[0];
        self.known.insert((point, presence), found);
        found
    }

    /// The point where a packet continues in the chain.
    fn next(&self, fate: &Fate, from: Point) -> Option<Point> {
        match fate {
            Fate::Go(point) => Some(*point),
            Fate::Output { node, ports } => {
                let sink = self.graph.next(*node, port(*ports.last()?, from.backward));
                let Some(Sink::Port(node, to)) = sink else { return None };
                Some(Point { node, backward: to == RIGHT, held: false })
            }
            _ => None,
        }
    }
}

/// The headers that packets may have at the end of each block.
fn headers(program: &Residual, presence: u128) -> Vec<BTreeSet<u128>> {
    let (one, two) = (Header::Vlan.bit(), Header::Vlan2.bit());
    let mut found = vec![BTreeSet::new(); program.blocks.len()];
    found[0].insert(presence);
    for (number, block) in program.blocks.iter().enumerate() {
        for step in &block.steps {
            let change = |headers: u128| match step.what {
                What::Op(Op::PushVlan { .. }) if headers & one == 0 => headers | one,
                What::Op(Op::PushVlan { .. }) => headers | two,
                What::Op(Op::PopVlan) if headers & two == 0 => headers & !one,
                What::Op(Op::PopVlan) => headers & !two,
                What::Op(Op::PushOption { option, .. }) => headers | option.bit(),
                What::Op(Op::PopOption { option }) => headers & !option.bit(),
                _ => headers,
            };
            if let What::Op(op) = &step.what
                && op.rewraps()
            {
                found[number].extend(braid_packet::presences());
                continue;
            }
            let changed: BTreeSet<u128> = found[number].iter().copied().map(change).collect();
            match step.what {
                // The packet may have had the option twice.
                What::Op(Op::PopOption { .. }) => found[number].extend(changed),
                _ => found[number] = changed,
            }
        }
        for target in block.end.targets() {
            let here = found[number].clone();
            found[target.block.index()].extend(here);
        }
    }
    found
}
