//! The chain's graph: where each port leads, and which functions see a packet side by side.

mod groups;

use crate::chain::{Chain, Sink, Source};
use crate::model::{Dest, LEFT, Model, PortId, RIGHT, Term};
use braid_packet::Header;
use groups::{Group, groups};
use std::sync::Arc;

/// Links and groups.
#[derive(Clone)]
pub struct Graph {
    /// Where each interface leads.
    entries: Vec<Option<Sink>>,
    /// Where each port of each function leads.
    ports: Vec<Vec<Option<Sink>>>,
    /// For each function, the number of its group.
    group_of: Vec<usize>,
    /// The groups. Most of them have one function.
    groups: Vec<Group>,
    /// Whether each function is native code.
    native: Vec<bool>,
    /// The headers of the packets that go to the stack of each function ([`Model::stacked`]).
    ///
    /// [`Model::stacked`]: crate::model::Model::stacked
    stacked: Vec<&'static [Header]>,
}

impl Graph {
    /// The graph of a chain.
    ///
    /// # Errors
    /// Invalid links or priorities.
    #[expect(
        clippy::indexing_slicing,
        reason = "links are checked, and groups have functions of the chain"
    )]
    pub fn new(chain: &Chain) -> Result<Self, String> {
        let mut entries = vec![None; chain.interfaces.len()];
        let nodes = chain.nodes.iter();
        let mut ports: Vec<Vec<_>> = nodes.map(|node| vec![None; node.model.ports.len()]).collect();
        for (source, sink) in &chain.links {
            check_link(chain, *source, *sink)?;
            let link = match source {
                Source::Interface(number) => &mut entries[usize::from(*number)],
                Source::Port(node, port) => &mut ports[usize::from(*node)][port.index()],
            };
            if link.replace(*sink).is_some() {
                return Err(format!("two links leave from {source:?}"));
            }
        }
        let groups = groups(chain, &ports)?;
        let mut group_of = vec![0; chain.nodes.len()];
        for (number, group) in groups.iter().enumerate() {
            for member in &group.functions {
                group_of[usize::from(*member)] = number;
            }
        }
        let native = chain.nodes.iter().map(|node| node.model.is_native_on_packets()).collect();
        let stacked = chain.nodes.iter().map(|node| node.model.stacked()).collect();
        Ok(Self { entries, ports, group_of, groups, native, stacked })
    }

    /// The first target of packets that enter at an interface.
    #[must_use]
    pub fn entry(&self, interface: u16) -> Option<Sink> {
        self.entries.get(usize::from(interface)).copied().flatten()
    }

    /// The functions that `Priority` relates to this one and those between them, including itself,
    /// in the order of the path.
    #[must_use]
    #[expect(clippy::indexing_slicing, reason = "the caller names a function of the chain")]
    pub fn group(&self, node: u16) -> &[u16] {
        &self.groups[self.group_of[usize::from(node)]].functions
    }

    /// The branches that take a packet side by side when it enters a function in this direction.
    /// Those whose results win come first. Each begins with a function that `Priority` names; the
    /// functions between that one and the next follow in order. `None` if the function runs alone:
    /// `Priority` does not concern it, or the packet comes from the same branch.
    #[must_use]
    #[expect(clippy::indexing_slicing, reason = "the caller names a function of the chain")]
    pub fn branches(&self, node: u16, backward: bool) -> Option<&Arc<[Vec<u16>]>> {
        let branches = self.groups[self.group_of[usize::from(node)]].branches(backward);
        let begins = || branches.iter().any(|branch| branch.first() == Some(&node));
        (branches.len() > 1 && begins()).then_some(branches)
    }

    /// The function behind a function in its branch, for packets of a direction.
    #[must_use]
    #[expect(clippy::indexing_slicing, reason = "the caller names a function of the chain")]
    pub fn next_in_branch(&self, node: u16, backward: bool) -> Option<u16> {
        self.groups[self.group_of[usize::from(node)]].next(node, backward)
    }

    /// Whether a function can have residual programs: it runs alone, and is not native. Programs
    /// leave some packets of a stream function to its stack ([`Self::goes_to_stack`]).
    #[must_use]
    #[expect(clippy::indexing_slicing, reason = "the caller names a function of the chain")]
    pub fn has_programs(&self, node: u16) -> bool {
        self.group(node).len() == 1 && !self.native[usize::from(node)]
    }

    /// Whether a packet with these headers goes to a TCP stack in a function. No residual program
    /// covers the function for such a packet.
    #[must_use]
    pub fn goes_to_stack(&self, node: u16, presence: u128) -> bool {
        self.stacked(node).iter().any(|header| presence & header.bit() != 0)
    }

    /// The headers of the packets that go to the stack of a function.
    #[must_use]
    #[expect(clippy::indexing_slicing, reason = "the caller names a function of the chain")]
    pub fn stacked(&self, node: u16) -> &'static [Header] {
        self.stacked[usize::from(node)]
    }

    /// The target of a packet that leaves a function, which it has entered in this direction. It
    /// goes on to the next function of the branch, and bypasses the functions of other branches.
    #[must_use]
    pub fn leads(&self, node: u16, dest: Dest, backward: bool) -> Option<Sink> {
        let (out, ahead) = (port(dest, backward), port(Dest::Onward, backward));
        match self.next_in_branch(node, backward).filter(|_| out == ahead) {
            Some(next) => Some(Sink::Port(next, if backward { RIGHT } else { LEFT })),
            None => self.next(node, out),
        }
    }

    /// The target of a packet that leaves a function and its group. The packet bypasses the other
    /// functions of the group.
    #[must_use]
    #[expect(
        clippy::indexing_slicing,
        reason = "the caller and the links name functions of the chain"
    )]
    pub fn next(&self, node: u16, port: PortId) -> Option<Sink> {
        let group = self.group_of[usize::from(node)];
        let mut at = (node, port);
        // Each iteration passes one member, so the number of members bounds the iterations.
        for _ in 0..=self.groups[group].functions.len() {
            let sink = (*self.ports[usize::from(at.0)].get(at.1.index())?)?;
            match sink {
                Sink::Port(next, port) if self.group_of[usize::from(next)] == group => {
                    at = (next, if port == RIGHT { LEFT } else { RIGHT });
                }
                _ => return Some(sink),
            }
        }
        None
    }
}

/// The port that a destination denotes.
#[must_use]
pub fn port(dest: Dest, backward: bool) -> PortId {
    match (dest, backward) {
        (Dest::Port(port), _) => port,
        (Dest::Onward, false) | (Dest::Back, true) => RIGHT,
        (Dest::Onward, true) | (Dest::Back, false) => LEFT,
    }
}

/// Whether these ports lead a packet on along its path, and nowhere else.
#[must_use]
pub fn is_onward(ports: &[Dest], backward: bool) -> bool {
    matches!(ports, [dest] if port(*dest, backward) == port(Dest::Onward, backward))
}

fn check_link(chain: &Chain, source: Source, sink: Sink) -> Result<(), String> {
    let interface = |number: u16| usize::from(number) < chain.interfaces.len();
    let port = |node: u16, port: PortId| {
        chain.nodes.get(usize::from(node)).is_some_and(|n| port.index() < n.model.ports.len())
    };
    let from = match source {
        Source::Interface(number) => interface(number),
        Source::Port(node, number) => port(node, number),
    };
    let to = match sink {
        Sink::Interface(number) => interface(number),
        Sink::Port(node, number) => port(node, number),
    };
    if from && to { Ok(()) } else { Err(format!("a link from {source:?} to {sink:?}")) }
}

/// Where a native function sends packets besides the one at hand.
pub fn sends_to(model: &Model) -> impl Iterator<Item = Dest> {
    let sends = model.native.as_ref().is_some_and(|native| native.sends > 0);
    let further = (0..).map(PortId).take(model.ports.len()).skip(2).map(Dest::Port);
    [Dest::Onward, Dest::Back].into_iter().chain(further).filter(move |_| sends)
}

/// Whether native code gets the packets themselves, in a process of its own.
#[must_use]
pub fn is_isolated(model: &Model) -> bool {
    let isolated = model.native.as_ref().and_then(|native| native.reference.isolated);
    model.is_native_on_packets() && isolated.is_some()
}

/// Whether a model has a drop terminator.
#[must_use]
pub fn may_drop(model: &Model) -> bool {
    model.packet.blocks.iter().any(|block| matches!(block.term, Term::Drop { .. }))
}
