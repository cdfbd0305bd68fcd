//! The visits of packets to the functions of a chain: where each visit leads.

use crate::parallel::chain::output;
use crate::profile::{Profile, derive_direction};
use braid_ir::chain::{Chain, Sink};
use braid_ir::engine::HOP_LIMIT;
use braid_ir::graph::{Graph, port};
use braid_ir::model::{Dest, Model, Op, PortId, RIGHT, Term};
use braid_ir::service_graph::stages::Why;
use std::collections::BTreeMap;

/// A visit: a function, or the first function of a group under `Priority`, and whether the packet
/// goes backward.
pub(super) type Visit = (u16, bool);

/// The visits that packets can make.
pub(super) struct Visits {
    pub(super) graph: Graph,
    pub(super) all: BTreeMap<Visit, Exits>,
}

/// What a function does in one direction.
pub(super) struct Member {
    pub(super) node: u16,
    pub(super) profile: Profile,
    /// Whether it may send packets to another port than onward.
    pub(super) steers: bool,
}

/// Where a visit leads.
pub(super) struct Exits {
    pub(super) members: Vec<Member>,
    /// Where the packet itself goes on.
    pub(super) onward: Option<Sink>,
    /// The functions to which other packets go, or the packet itself by another port.
    pub(super) elsewhere: Vec<Visit>,
    /// Whether it sends any packets besides the packet itself, or elsewhere.
    pub(super) sends: bool,
    /// For each target, an upper limit of the packets that one visit sends there.
    counts: Vec<(Visit, u32)>,
}

/// The number of times that one visit may run a program, by `resubmit`.
const RUNS: u32 = braid_ir::engine::RESUBMIT_LIMIT + 1;

impl Visits {
    /// The visits of a chain.
    ///
    /// # Errors
    /// The reason why the chain must be one stage.
    pub(super) fn new(chain: &Chain) -> Result<Self, Why> {
        if chain.steers() {
            return Err(Why::Workers);
        }
        let graph = Graph::new(chain).map_err(Why::Unfit)?;
        let mut visits = Self { graph, all: BTreeMap::new() };
        let entries = (0..).zip(&chain.interfaces).map(|(number, _)| visits.graph.entry(number));
        let mut open: Vec<Visit> = entries.filter_map(|sink| visits.visit(sink)).collect();
        while let Some(visit) = open.pop() {
            if !visits.all.contains_key(&visit) {
                let exits = visits.exits(chain, visit)?;
                open.extend(exits.counts.iter().map(|(next, _)| *next));
                visits.all.insert(visit, exits);
            }
        }
        visits.bound()?;
        Ok(visits)
    }

    /// The visit that begins behind a link.
    pub(super) fn visit(&self, sink: Option<Sink>) -> Option<Visit> {
        let Sink::Port(node, port) = sink? else { return None };
        Some((self.first(node), port == RIGHT))
    }

    /// The first function of a function's group, by number.
    pub(super) fn first(&self, node: u16) -> u16 {
        self.graph.group(node).iter().copied().min().unwrap_or(node)
    }

    fn exits(&self, chain: &Chain, (node, backward): Visit) -> Result<Exits, Why> {
        let mut exits = Exits {
            members: Vec::new(),
            onward: None,
            elsewhere: Vec::new(),
            sends: false,
            counts: Vec::new(),
        };
        let ahead = port(Dest::Onward, backward);
        for (place, node) in self.graph.group(node).iter().enumerate() {
            let model = &chain.nodes[usize::from(*node)].model;
            let profile = derive_direction(model, backward);
            if !profile.holds.is_empty() {
                return Err(Why::Holds(*node));
            }
            let ports = profile.outputs.iter();
            let ports: Vec<PortId> =
                ports.filter_map(|name| output(name, &model.ports, backward)).collect();
            let emits = profile.copies || !profile.creates.is_empty();
            let onward = self.graph.next(*node, ahead);
            if place > 0 && onward != exits.onward {
                return Err(Why::Priority);
            }
            exits.onward = onward;
            for out in &ports {
                let target = self.visit(self.graph.next(*node, *out));
                let (sent, passed) = sends(model, *out, backward);
                let elsewhere = *out != ahead || emits && sent > 0;
                exits.sends |= elsewhere;
                exits.elsewhere.extend(target.filter(|_| elsewhere));
                let runs = if model.native.is_some() { 1 } else { RUNS };
                let count = sent.saturating_mul(runs).saturating_add(passed);
                exits.counts.extend(target.map(|target| (target, count)));
            }
            let steers = ports.iter().any(|out| *out != ahead);
            exits.members.push(Member { node: *node, profile, steers });
        }
        // What functions of a branch send visits further functions of the branch.
        let mut group = self.graph.group(node).iter();
        if exits.sends && group.any(|node| self.graph.next_in_branch(*node, backward).is_some()) {
            return Err(Why::Priority);
        }
        // A function that never lets a packet pass still has a successor on the path.
        exits.counts.extend(self.visit(exits.onward).map(|next| (next, 0)));
        Ok(exits)
    }

    /// All visits that follow a visit, including itself.
    pub(super) fn behind(&self, visit: Visit) -> Vec<Visit> {
        let (mut found, mut open) = (Vec::new(), vec![visit]);
        while let Some(visit) = open.pop() {
            if !found.contains(&visit) {
                found.push(visit);
                let next = self.all.get(&visit).into_iter().flat_map(|exits| &exits.counts);
                open.extend(next.map(|(next, _)| *next));
            }
        }
        found
    }

    /// Checks that no packet can reach the hop limit.
    fn bound(&self) -> Result<(), Why> {
        let mut known = BTreeMap::new();
        for visit in self.all.keys() {
            if self.most(*visit, &mut known)? > HOP_LIMIT {
                return Err(Why::Hops);
            }
        }
        Ok(())
    }

    /// The most visits of a packet that makes this visit, and of all packets that functions send
    /// for it.
    fn most(&self, visit: Visit, known: &mut BTreeMap<Visit, Option<u32>>) -> Result<u32, Why> {
        match known.insert(visit, None) {
            Some(Some(most)) => {
                known.insert(visit, Some(most));
                return Ok(most);
            }
            Some(None) => return Err(Why::Circle),
            None => {}
        }
        let Some(exits) = self.all.get(&visit) else { return Ok(0) };
        let mut most = u32::try_from(exits.members.len()).unwrap_or(u32::MAX);
        for (next, count) in &exits.counts {
            most = most.saturating_add(count.saturating_mul(self.most(*next, known)?));
        }
        known.insert(visit, Some(most));
        Ok(most)
    }
}

/// The most packets besides the arriving one that one run of a model's program sends to a port, and
/// the most copies of the arriving one that its outputs send there.
fn sends(model: &Model, to: PortId, backward: bool) -> (u32, u32) {
    let is_to = |dest: &Dest| port(*dest, backward) == to;
    let blocks = &model.packet.blocks;
    let ops = blocks.iter().flat_map(|block| &block.ops);
    let native = model.native.as_ref().map_or(0, |native| native.sends);
    let sent = ops.map(|op| match op {
        Op::Mirror { port } | Op::Create { port, .. } => u32::from(is_to(port)),
        Op::Native { .. } => native,
        _ => 0,
    });
    let outputs = blocks.iter().map(|block| match &block.term {
        // All but the last are copies.
        Term::Output { ports, .. } => ports.iter().filter(|dest| is_to(dest)).count(),
        _ => 0,
    });
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let several = blocks.iter().any(|block| {
        matches!(&block.term, Term::Output { ports, .. } if ports.len() > 1 && ports.iter().any(is_to))
    });
    (sent.fold(u32::from(several), u32::saturating_add), count(outputs.max().unwrap_or(0)))
}
