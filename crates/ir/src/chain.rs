//! Chains: instances of models linked by ports, with interfaces, policy and control changes.

use crate::model::{Model, ParamId, PortId};
use crate::steering::Steering;
use crate::value::{IntervalSet, ParamValue};
use braid_packet::{Layout, Packet};
use std::net::IpAddr;
use std::sync::Arc;

/// The maximum number of function visits by one entering packet, including the visits of its copies
/// and answers. Past the limit, its remaining packets are lost as `hop_limit`. A held packet keeps
/// its count.
pub const HOP_LIMIT: u32 = 256;

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
    /// The rule that gives each packet its worker.
    pub steering: Steering,
    /// The worker that an engine of this chain is. It gets only this worker's packets. `None`: the
    /// engine is all workers.
    pub only: Option<u16>,
    /// Whether the policy alone orders the functions. The links then have one of the orders that it
    /// allows.
    pub by_rules: bool,
}

impl Chain {
    /// Whether packets that come in at an interface have a place to go to. Other interfaces only
    /// send.
    #[must_use]
    pub fn receives(&self, interface: u16) -> bool {
        self.links.iter().any(|(source, _)| *source == Source::Interface(interface))
    }

    /// Whether an engine of this chain gives packets their workers.
    #[must_use]
    pub fn steers(&self) -> bool {
        self.workers > 1 && self.only.is_none()
    }

    /// The shards in which the timers of a function run.
    pub fn timer_shards(&self, node: u16) -> impl Iterator<Item = u16> + use<> {
        let model = self.nodes.get(usize::from(node)).map(|node| &node.model);
        let once = model.is_none_or(|model| model.state.is_empty());
        let count = if once { 1 } else { model.map_or(1, |model| model.shards(self.workers)) };
        let only = self.only;
        (0..count).filter(move |shard| only.is_none_or(|only| only == *shard))
    }

    /// The worker of a packet that enters by its ingress, from 0.
    #[inline]
    #[must_use]
    pub fn worker(&self, packet: &Packet, layout: &Layout) -> u16 {
        if self.steers() {
            self.steering.worker(packet, layout, packet.ingress, self.workers)
        } else {
            self.only.unwrap_or(0)
        }
    }
}

/// An interface.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// The IPv4 addresses that are reached through it.
    pub behind4: IntervalSet,
    /// The IPv6 addresses that are reached through it.
    pub behind6: IntervalSet,
    /// Its own addresses in live runs. Without one, it is the end of a wire.
    pub addresses: Vec<OwnAddress>,
    /// The next hops of packets to addresses that are in no prefix of `addresses`: at most one for
    /// each IP version.
    pub gateways: Vec<IpAddr>,
    /// Its own MAC address. `None`: the device's.
    pub mac: Option<[u8; 6]>,
    /// What happens to packets that are longer than the device allows.
    pub too_long: TooLong,
}

impl Interface {
    /// Whether a host with this address is on the interface's own link: the address is in a prefix
    /// of the interface's addresses, or it is link-local and the interface has an IPv6 address.
    #[must_use]
    pub fn is_on_link(&self, address: IpAddr) -> bool {
        let is_local = matches!(address, IpAddr::V6(address) if address.is_unicast_link_local());
        self.addresses
            .iter()
            .any(|own| own.is_on_link(address) || is_local && own.address.is_ipv6())
    }
}

/// An address of an interface, with the prefix of the addresses on its link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OwnAddress {
    /// The address.
    pub address: IpAddr,
    /// The length of the prefix in bits.
    pub prefix_len: u8,
}

impl OwnAddress {
    /// Whether an address is in the prefix.
    #[must_use]
    pub fn is_on_link(&self, other: IpAddr) -> bool {
        let len = u32::from(self.prefix_len);
        match (self.address, other) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let differs = own.to_bits() ^ other.to_bits();
                differs.checked_shr(u32::BITS.saturating_sub(len)).unwrap_or(0) == 0
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                let differs = own.to_bits() ^ other.to_bits();
                differs.checked_shr(u128::BITS.saturating_sub(len)).unwrap_or(0) == 0
            }
            _ => false,
        }
    }

    /// The broadcast address of an IPv4 prefix that has one.
    #[must_use]
    pub fn broadcast(&self) -> Option<IpAddr> {
        match self.address {
            IpAddr::V4(own) if self.prefix_len <= 30 => {
                let host = u32::MAX.checked_shr(self.prefix_len.into()).unwrap_or(0);
                Some(IpAddr::V4((own.to_bits() | host).into()))
            }
            _ => None,
        }
    }
}

/// What an interface does with a packet that is longer than its device allows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TooLong {
    /// The packet's sender gets an ICMP error from the interface's own address, if it has one.
    #[default]
    Icmp,
    /// IPv4 without DF leaves in fragments. For other packets, as [`TooLong::Icmp`].
    Fragment,
    /// The packet is lost.
    Drop,
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
    /// The line of the control file that asks for it.
    pub line: Option<u32>,
}

/// The content of a change of configuration.
#[derive(Clone, Debug)]
pub enum Change {
    /// A new value. For a pool: new members. Members that are taken stay taken until they are
    /// released.
    Set(ParamValue),
    /// Inserts a rule in front of the rule with this number, or without a number at the end. The
    /// number of the rules is a place, too: the end.
    AddRule(Option<usize>, crate::value::Rule),
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
    /// The line of the control file, from 1.
    pub line: Option<u32>,
}

impl Scheduled {
    /// The change with its time, in a run whose first packet has this time.
    #[must_use]
    pub fn resolve(&self, first_packet_ns: u64) -> Control {
        let time_ns = match self.when {
            When::At(time_ns) => time_ns,
            When::AfterFirst(delay_ns) => first_packet_ns.saturating_add(delay_ns),
        };
        let Self { node, param, line, .. } = *self;
        Control { time_ns, node, param, change: self.change.clone(), line }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(address: &str, prefix_len: u8) -> OwnAddress {
        OwnAddress { address: address.parse().unwrap(), prefix_len }
    }

    #[test]
    fn prefix_of_an_address_holds_its_own_ip_version_only() {
        let is_on_link = |own: OwnAddress, other: &str| own.is_on_link(other.parse().unwrap());
        assert!(is_on_link(own("10.0.0.1", 24), "10.0.0.255"));
        assert!(!is_on_link(own("10.0.0.1", 24), "10.0.1.0"));
        assert!(is_on_link(own("10.0.0.1", 0), "255.0.0.1"));
        assert!(!is_on_link(own("10.0.0.1", 32), "10.0.0.0"));
        assert!(is_on_link(own("fe80::1", 64), "fe80::ffff:0:0:1"));
        assert!(!is_on_link(own("fe80::1", 64), "fe80:0:0:1::1"));
        assert!(!is_on_link(own("::", 0), "10.0.0.1"));
        assert!(!is_on_link(own("0.0.0.0", 0), "::"));
    }

    #[test]
    fn broadcast_addresses_end_short_prefixes() {
        assert_eq!(own("10.0.0.1", 24).broadcast(), Some("10.0.0.255".parse().unwrap()));
        assert_eq!(own("10.0.0.1", 31).broadcast(), None);
        assert_eq!(own("fd00::1", 64).broadcast(), None);
    }
}
