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
    /// Functions, in declaration order. A function's number is its place in this list.
    pub nodes: Vec<Node>,
    /// Links, each from the place where packets leave to the place where they enter.
    pub links: Vec<(Source, Sink)>,
    /// Priority rules about neighbours on a path, which run in parallel.
    pub priorities: Vec<Priority>,
    /// All policy rules as written, for later analyses.
    pub policy: Vec<PolicyRule>,
    /// What happens to malformed packets.
    pub malformed: Malformed,
    /// The seed of random choices. Functions derive their seeds from it and their position.
    pub seed: u64,
    /// Number of workers that share sharded state. The default is 1.
    pub workers: u16,
}

/// An interface.
#[derive(Clone, PartialEq, Debug)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// The IPv4 addresses that are reached through it.
    pub behind4: IntervalSet,
    /// The IPv6 addresses that are reached through it.
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

/// A place that packets come from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Source {
    /// An interface, by number.
    Interface(u16),
    /// A port of a function, by number.
    Port(u16, PortId),
}

/// A place that packets go to. A packet that enters a function by its right port goes backward. A
/// packet that enters by any other port goes forward.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Sink {
    /// An interface, by number.
    Interface(u16),
    /// A port of a function, by number.
    Port(u16, PortId),
}

/// `Priority(winner > loser)` between neighbours on a path: both see the arriving packet. Where
/// their results conflict, the winner's result stands (NFP §3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Priority {
    /// The function whose result wins.
    pub winner: u16,
    /// The function whose result yields.
    pub loser: u16,
}

/// A rule of NFP Table 1, over functions by number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PolicyRule {
    /// The first function runs before the second.
    Order(u16, u16),
    /// The first function's result wins over the second's.
    Priority(u16, u16),
    /// The function runs before all others.
    First(u16),
    /// The function runs after all others.
    Last(u16),
}

/// The treatment of malformed packets where they enter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Malformed {
    /// They are lost and counted by reason.
    Drop,
    /// They run through the chain with the headers before the malformed one.
    Pass,
}

/// A change of configuration at a time.
#[derive(Clone, Debug)]
pub struct Control {
    /// The time (ns since the epoch). The change comes before packets of the same time.
    pub time_ns: u64,
    /// The function, by number.
    pub node: u16,
    /// The parameter.
    pub param: ParamId,
    /// The change.
    pub change: Change,
}

/// The content of a change of configuration.
#[derive(Clone, Debug)]
pub enum Change {
    /// A new value. For a pool: new members. Members that are taken stay taken until they are
    /// released.
    Set(ParamValue),
    /// Inserts a rule in front of the rule with this number, or at the end.
    AddRule(usize, crate::value::Rule),
    /// Removes the rule with this number.
    RemoveRule(usize),
    /// Marks the backend with this value in its first column up or down.
    BackendUp(u128, bool),
    /// Adds a backend that is up, with a value for each column.
    AddBackend(Vec<u128>),
    /// Removes the backend with this value in its first column.
    RemoveBackend(u128),
}

/// The time at which a change of configuration applies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// At this time (ns since the epoch).
    At(u64),
    /// This time after the run's first packet (ns).
    AfterFirst(u64),
}

/// A change of configuration as a control file writes it.
#[derive(Clone, Debug)]
pub struct Scheduled {
    /// The time.
    pub when: When,
    /// The function, by number.
    pub node: u16,
    /// The parameter.
    pub param: ParamId,
    /// The change.
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
