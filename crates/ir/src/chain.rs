//! Chains: instances of models linked by ports, with interfaces, policy and control changes.

use crate::model::{Model, ParamId, PortId};
use crate::value::{IntervalSet, ParamValue};
use std::sync::Arc;

/// A service chain (a graph without cycles of functions and interfaces).
#[derive(Clone, Debug)]
pub struct Chain {
    /// Its name.
    pub name: String,
    /// Interfaces, in declaration order. A chain that declares none has `in` and `out`.
    pub interfaces: Vec<Interface>,
    /// Functions, in declaration order (their position).
    pub nodes: Vec<Node>,
    /// Links: from where packets leave to where they enter.
    pub links: Vec<(Source, Sink)>,
    /// Priority rules that name neighbours on a path: those run in parallel.
    pub priorities: Vec<Priority>,
    /// All policy rules as written, for later analyses.
    pub policy: Vec<PolicyRule>,
    /// What happens to malformed packets.
    pub malformed: Malformed,
    /// Seeds random choices; functions derive theirs from it and their position.
    pub seed: u64,
    /// Number of workers that sharded state is split over; 1 unless said otherwise.
    pub workers: u16,
}

/// An interface.
#[derive(Clone, PartialEq, Debug)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// IPv4 addresses behind it.
    pub behind4: IntervalSet,
    /// IPv6 addresses behind it.
    pub behind6: IntervalSet,
}

/// An instance of a model.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its name in the chain.
    pub name: String,
    /// The model.
    pub model: Arc<Model>,
    /// A value for each parameter of the model.
    pub params: Vec<ParamValue>,
}

/// Where packets come from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Source {
    /// An interface, by number.
    Interface(u16),
    /// A port of a function, by number.
    Port(u16, PortId),
}

/// Where packets go. Entering a function at its right port makes them go backward; at any other
/// port, forward.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Sink {
    /// An interface, by number.
    Interface(u16),
    /// A port of a function, by number.
    Port(u16, PortId),
}

/// `Priority(winner > loser)` between neighbours on a path: both see the arriving packet, and the
/// winner's result stands where they conflict (NFP §3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Priority {
    /// Whose result wins.
    pub winner: u16,
    /// Whose result yields.
    pub loser: u16,
}

/// A rule of NFP Table 1, over functions by number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PolicyRule {
    /// The first runs before the second.
    Order(u16, u16),
    /// The first's result wins over the second's.
    Priority(u16, u16),
    /// First of all.
    First(u16),
    /// Last of all.
    Last(u16),
}

/// What happens to malformed packets where they enter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Malformed {
    /// Lost, counted by reason.
    Drop,
    /// They run through the chain with the headers before the malformed one.
    Pass,
}

/// A change of configuration at a time.
#[derive(Clone, Debug)]
pub struct Control {
    /// When: before packets of equal time (ns since the epoch).
    pub time_ns: u64,
    /// The function, by number.
    pub node: u16,
    /// The parameter.
    pub param: ParamId,
    /// What changes.
    pub change: Change,
}

/// What a control line changes.
#[derive(Clone, Debug)]
pub enum Change {
    /// A new value (for a pool: new members; those taken stay taken until released).
    Set(ParamValue),
    /// Puts a rule in front of the rule with this number (or at the end).
    AddRule(usize, crate::value::Rule),
    /// Removes the rule with this number.
    RemoveRule(usize),
    /// Marks the backend with this value in its first column up or down.
    BackendUp(u128, bool),
    /// Adds a backend (up), a value for each column.
    AddBackend(Vec<u128>),
    /// Removes the backend with this value in its first column.
    RemoveBackend(u128),
}

/// When a change of configuration applies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// At this time (ns since the epoch).
    At(u64),
    /// So long after the run's first packet (ns).
    AfterFirst(u64),
}

/// A change of configuration as a control file writes it.
#[derive(Clone, Debug)]
pub struct Scheduled {
    /// When.
    pub when: When,
    /// The function, by number.
    pub node: u16,
    /// The parameter.
    pub param: ParamId,
    /// What changes.
    pub change: Change,
}

impl Scheduled {
    /// The change with its time, in a run whose first packet has this time.
    #[must_use]
    pub fn resolve(&self, first_packet_ns: u64) -> Control {
        let time_ns = match self.when {
            When::At(time_ns) => time_ns,
            When::AfterFirst(delay_ns) => first_packet_ns.saturating_add(delay_ns),
        };
        Control { time_ns, node: self.node, param: self.param, change: self.change.clone() }
    }
}
