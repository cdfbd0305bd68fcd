//! The TCP stacks of stream functions. Functions that see the same packets share a stack, in each
//! worker.

use crate::passing::Passing;
use braid_compiler::profile::derive;
use braid_ir::chain::{Chain, Node, Sink, Source};
use braid_ir::graph::Graph;
use braid_ir::model::{LEFT, ParamId, PortId, RIGHT, Word, flow_of};
use braid_ir::native::{Noted, Problems};
use braid_ir::value::ParamValue;
use braid_packet::{Field, FlowKey, Header};
use braid_streams::{End, Stack};

/// The TCP stacks of a chain.
pub(crate) struct Stacks {
    /// Group by group, one for each worker. A stack is away while it runs programs.
    all: Vec<Option<Box<Stack>>>,
    /// For each function: its group, and its number in the group.
    places: Vec<Option<(usize, usize)>>,
    /// By function: what happens to the packets that its stack lets pass.
    passing: Vec<Option<Passing>>,
    workers: usize,
    /// The number of the packet that the engine walks.
    packet: u64,
}

/// A stack that was taken out.
pub(crate) struct Taken {
    pub(crate) stack: Box<Stack>,
    index: usize,
    /// The number of the function among those of the stack.
    pub(crate) at: usize,
    /// The number of the packet that the engine walks.
    pub(crate) packet: u64,
}

impl Stacks {
    pub(crate) fn new(chain: &Chain) -> Self {
        let workers = usize::from(chain.workers.max(1));
        let passing = |node: &Node| node.model.is_stream().then(|| Passing::of(&node.model));
        let mut stacks = Self {
            all: Vec::new(),
            places: vec![None; chain.nodes.len()],
            passing: chain.nodes.iter().map(|node| passing(node).flatten()).collect(),
            workers,
            packet: 0,
        };
        for (number, group) in groups(chain).iter().enumerate() {
            for (at, node) in group.iter().enumerate() {
                if let Some(place) = stacks.places.get_mut(usize::from(*node)) {
                    *place = Some((number, at));
                }
            }
            let nodes = group.iter().filter_map(|node| chain.nodes.get(usize::from(*node)));
            let models: Vec<_> = nodes.map(|node| &*node.model).collect();
            let stack = || Some(Box::new(Stack::new(models.iter().copied())));
            stacks.all.extend(std::iter::repeat_with(stack).take(workers));
        }
        stacks
    }

    /// The engine walks another packet.
    pub(crate) fn next_packet(&mut self) {
        self.packet = self.packet.wrapping_add(1);
    }

    /// What a function does with the TCP packets that its stack lets pass. `None` if it is no
    /// stream function, or if its program must run to decide.
    pub(crate) fn passing(&self, node: u16) -> Option<Passing> {
        self.passing.get(usize::from(node)).copied().flatten()
    }

    /// Tells a function's stack that a parameter has changed. The function may search its patterns.
    pub(crate) fn changed(&mut self, node: u16, param: ParamId) {
        let Some((group, at)) = self.place(node) else { return };
        let stacks = self.all.iter_mut().skip(group * self.workers).take(self.workers);
        stacks.flatten().for_each(|stack| stack.changed(at, param));
    }

    /// For each worker, what its stack holds for a function. `None` if the function has no stack.
    pub(crate) fn save(&self, node: u16) -> Option<Vec<Option<Vec<u8>>>> {
        let (group, at) = self.place(node)?;
        let stacks = self.all.iter().skip(group * self.workers).take(self.workers);
        Some(stacks.map(|stack| stack.as_ref().map(|stack| stack.save(at))).collect())
    }

    /// Restores what stacks held for a function, for each worker. Call it for each function in
    /// order, before the first packet.
    pub(crate) fn restore<'a>(
        &mut self,
        node: u16,
        params: &[ParamValue],
        saved: impl Iterator<Item = Option<&'a [u8]>>,
    ) -> Result<(), String> {
        let Some((group, at)) = self.place(node) else { return Ok(()) };
        let stacks = self.all.iter_mut().skip(group * self.workers).take(self.workers);
        for (stack, saved) in stacks.zip(saved) {
            if let (Some(stack), Some(saved)) = (stack, saved) {
                stack.restore(at, params, saved)?;
            }
        }
        Ok(())
    }

    /// What the stacks could not follow, with the numbers of their functions.
    pub(crate) fn problems(&self) -> impl Iterator<Item = (u16, Noted)> {
        let places = (0..).zip(&self.places).filter_map(|(node, place)| Some((node, (*place)?)));
        places.flat_map(|(node, (group, at))| {
            let stacks = self.all.iter().skip(group * self.workers).take(self.workers);
            let mut problems = Problems::default();
            stacks.flatten().for_each(|stack| problems.append(stack.problems(at)));
            problems.all().to_vec().into_iter().map(move |noted| (node, noted))
        })
    }

    /// Removes a function's stack for a shard, so that it can run programs. `None` if it has been
    /// removed already.
    pub(crate) fn take(&mut self, node: u16, shard: u16) -> Option<Taken> {
        let (group, at) = self.place(node)?;
        let index = group * self.workers + usize::from(shard);
        let stack = self.all.get_mut(index)?.take()?;
        Some(Taken { stack, index, at, packet: self.packet })
    }

    /// A handler of a function has decided about the flow that an event with these fields names.
    pub(crate) fn order(&mut self, node: u16, shard: u16, (fields, end): (&[Word], End), now: u64) {
        if let (Some(flow), Some(mut taken)) = (flow_of(fields), self.take(node, shard)) {
            taken.stack.order(taken.at, flow, end, now);
            self.put(taken);
        }
    }

    /// Puts a stack back.
    pub(crate) fn put(&mut self, taken: Taken) {
        if let Some(place) = self.all.get_mut(taken.index) {
            *place = Some(taken.stack);
        }
    }

    fn place(&self, node: u16) -> Option<(usize, usize)> {
        self.places.get(usize::from(node)).copied().flatten()
    }
}

/// The stream functions of a chain, grouped by stack. A function shares the stack of the one in
/// front of it if exactly the same TCP packets pass both.
fn groups(chain: &Chain) -> Vec<Vec<u16>> {
    let graph = Graph::new(chain).ok();
    let mut groups: Vec<Vec<u16>> = Vec::new();
    for (node, config) in (0..).zip(&chain.nodes) {
        if !config.model.is_stream() {
            continue;
        }
        let before = graph.as_ref().and_then(|graph| previous(chain, graph, node));
        match groups.iter_mut().find(|group| before.is_some_and(|node| group.contains(&node))) {
            Some(group) => group.push(node),
            None => groups.push(vec![node]),
        }
    }
    groups
}

/// The stream function directly before this one: every packet that leaves it on the right enters
/// this one on the left, and the reverse. Functions between the two change nothing for TCP.
fn previous(chain: &Chain, graph: &Graph, node: u16) -> Option<u16> {
    let mut at = node;
    // Each iteration passes a function, so the number of functions bounds the iterations.
    for _ in &chain.nodes {
        let (before, RIGHT) = only_source(chain, graph, at, LEFT)? else { return None };
        if only_source(chain, graph, before, RIGHT)? != (at, LEFT) {
            return None;
        }
        let config = chain.nodes.get(usize::from(before))?;
        if config.model.is_stream() {
            return Some(before);
        }
        if !is_transparent(config) {
            return None;
        }
        at = before;
    }
    None
}

/// The port from which all packets come that enter a function by a port. `None` if there are
/// several, if it is an interface, or if the function is in a group under `Priority`.
fn only_source(chain: &Chain, graph: &Graph, node: u16, port: PortId) -> Option<(u16, PortId)> {
    if graph.group(node).len() > 1 {
        return None;
    }
    let mut sources = chain.links.iter().filter(|(_, sink)| *sink == Sink::Port(node, port));
    match (sources.next(), sources.next()) {
        (Some((Source::Port(node, port), _)), None) => Some((*node, *port)),
        _ => None,
    }
}

/// Whether a function passes every packet exactly once, and changes nothing that TCP depends on.
fn is_transparent(node: &Node) -> bool {
    let profile = derive(&node.model);
    let matters = |field: &Field| {
        FlowKey::has_field(*field)
            || field.info().header.implies().contains(&Header::Tcp)
            || field.info().header == Header::Tcp
    };
    let ends = profile.drops.is_empty()
        && profile.faults.is_empty()
        && profile.holds.is_empty()
        && !profile.consumes
        && !profile.resubmits
        && profile.outputs.iter().all(|port| port == "onward");
    let changes = profile.writes.iter().any(matters)
        || !profile.adds.is_empty()
        || !profile.removes.is_empty()
        || profile.writes_payload;
    let adds = !profile.creates.is_empty() || profile.copies;
    ends && !changes && !adds && !node.model.is_opaque()
}
