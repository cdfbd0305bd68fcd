//! The places where packets stop: the ends of a program's paths, and the stops of the walk along
//! the chain.

use braid_ir::chain::{Chain, Sink};
use braid_ir::engine::Fault;
use braid_ir::graph::port;
use braid_ir::model::{Dest, QueueId, ReasonId, RowId};
use braid_ir::residual::{Fate, Point};

use crate::ops::State;
use crate::term::Term;

/// How a run of a function ends.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Done {
    Output(Vec<Dest>),
    Drop(RowId, ReasonId),
    Fault(Fault),
    Consume,
    Hold(QueueId, Term),
    Resubmit,
}

/// A place where the walk stops: the end of a program, or a place where another program may take
/// over.
pub(crate) struct Stop {
    pub(crate) guard: Term,
    pub(crate) state: State,
    pub(crate) node: u16,
    pub(crate) backward: bool,
    /// Number of functions that were counted as visited.
    pub(crate) visits: u128,
    pub(crate) done: Done,
    /// Where the packet goes next, if it leaves by one port.
    pub(crate) next: Option<Sink>,
}

/// How a path ends.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Goal {
    Fate(Fate),
    Hold { node: u16, queue: QueueId, delay: Term },
}

/// A path through a program.
pub(crate) struct Path {
    pub(crate) guard: Term,
    pub(crate) state: State,
    pub(crate) goal: Goal,
    /// Number of functions that the path counted as visited, in 16 bits.
    pub(crate) visits: Term,
}

impl Path {
    /// Whether the chain's walk may stop where this path ends. The path's condition and its number
    /// of visits are not considered.
    pub(crate) fn stops_at(&self, stop: &Stop) -> bool {
        let Goal::Fate(fate) = &self.goal else {
            return matches!((&self.goal, &stop.done),
                (Goal::Hold { node, queue, .. }, Done::Hold(of, _))
                    if *node == stop.node && queue == of);
        };
        match (fate, &stop.done) {
            (Fate::Leave { interface }, Done::Output(_)) => {
                stop.next == Some(Sink::Interface(*interface))
            }
            (Fate::Go(point), Done::Output(_)) => match stop.next {
                Some(Sink::Port(node, at)) => {
                    let backward = at == braid_ir::model::RIGHT;
                    *point == Point { node, backward, held: false }
                }
                _ => false,
            },
            (Fate::Output { node, ports }, Done::Output(of)) => {
                *node == stop.node && same_ports(ports, of, stop.backward)
            }
            (Fate::Drop { node, row, reason }, Done::Drop(at, why)) => {
                *node == stop.node && row == at && reason == why
            }
            (Fate::Fault { node, fault }, Done::Fault(of)) => *node == stop.node && fault == of,
            (Fate::Consume { node }, Done::Consume) | (Fate::Resubmit { node }, Done::Resubmit) => {
                *node == stop.node
            }
            _ => false,
        }
    }
}

fn same_ports(a: &[Dest], b: &[Dest], backward: bool) -> bool {
    let resolve =
        |ports: &[Dest]| -> Vec<_> { ports.iter().map(|dest| port(*dest, backward)).collect() };
    resolve(a) == resolve(b)
}

impl Goal {
    /// The end as readable text.
    pub(crate) fn text(&self, chain: &Chain) -> String {
        let name = |node: &u16| {
            chain.nodes.get(usize::from(*node)).map_or("?", |node| node.name.as_str()).to_owned()
        };
        match self {
            Goal::Hold { node, .. } => format!("waits in {}", name(node)),
            Goal::Fate(fate) => match fate {
                Fate::Leave { interface } => {
                    let interface = chain.interfaces.get(usize::from(*interface));
                    format!("leaves by {}", interface.map_or("?", |one| one.name.as_str()))
                }
                Fate::Go(point) => format!("goes on at {}", name(&point.node)),
                Fate::Output { node, .. } => format!("is put out by {}", name(node)),
                Fate::Drop { node, reason, .. } => {
                    let model = chain.nodes.get(usize::from(*node)).map(|node| &node.model);
                    let reason = model.and_then(|model| model.reasons.get(reason.index()));
                    format!("is dropped by {}: {}", name(node), reason.map_or("?", |text| text))
                }
                Fate::Fault { node, fault } => {
                    format!("ends in {} by fault {}", name(node), Fault::reason(*fault))
                }
                Fate::Consume { node } => format!("is consumed by {}", name(node)),
                Fate::Resubmit { node } => format!("is resubmitted to {}", name(node)),
            },
        }
    }
}
