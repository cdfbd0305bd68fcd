//! The interface by which a packet of a shared capture enters. The prefixes behind the interfaces
//! decide:
//!
//! - If the source address is behind an interface, the packet enters there. If it is behind
//!   several, the packet enters at the first one declared.
//! - Otherwise, if the destination address is behind an interface or is owned by a function of the
//!   chain (a NAT's outside address, a load balancer's service address), the packet enters by the
//!   only interface that has no prefixes: the rest of the world is there.
//! - Any other packet enters nowhere and is lost as [`NO_INTERFACE`].
//!
//! For ARP packets the protocol addresses decide. If a chain has one interface, or declares none
//! (`in` and `out`), all packets enter the first.

use crate::owned::Owned;
use braid_ir::chain::{Chain, Interface};
use braid_packet::{Field, Header, Layout, Packet};

/// The reason for which packets that enter nowhere are lost.
pub const NO_INTERFACE: &str = "no_interface";

/// Finds the interface by which each packet enters a chain.
#[derive(Clone, Debug)]
pub struct Splitter {
    interfaces: Vec<Interface>,
    /// Whether all packets enter the first interface.
    all_first: bool,
    /// The only interface without prefixes.
    rest: Option<u16>,
    owned: Owned,
}

#[derive(Clone, Copy)]
enum Address {
    V4(u128),
    V6(u128),
}

impl Splitter {
    /// A splitter for the packets of a chain.
    #[must_use]
    pub fn new(chain: &Chain) -> Self {
        let interfaces = &chain.interfaces[..];
        let open =
            |interface: &Interface| interface.behind4.is_empty() && interface.behind6.is_empty();
        let mut without = (0..).zip(interfaces).filter(|(_, interface)| open(interface));
        let rest = match (without.next(), without.next()) {
            (Some((number, _)), None) => Some(number),
            _ => None,
        };
        let implicit = matches!(interfaces, [first, second]
            if first.name == "in" && second.name == "out" && open(first) && open(second));
        Self {
            interfaces: interfaces.to_vec(),
            all_first: implicit || interfaces.len() == 1,
            rest,
            owned: Owned::of(&chain.nodes),
        }
    }

    /// Whether no interface can be found for any packet, because there are several interfaces and
    /// none has prefixes.
    #[must_use]
    pub fn is_blind(&self) -> bool {
        let bare = |i: &Interface| i.behind4.is_empty() && i.behind6.is_empty();
        !self.all_first && self.interfaces.iter().all(bare)
    }

    /// The interface by which a packet enters, by number.
    #[must_use]
    pub fn ingress(&self, packet: &Packet, layout: &Layout) -> Option<u16> {
        if self.all_first {
            return Some(0);
        }
        let (source, destination) = addresses(packet, layout);
        let is_inside = |address| self.behind(address).is_some() || self.is_owned(address);
        let behind = self.behind(source?);
        behind.or_else(|| self.rest.filter(|_| destination.is_some_and(is_inside)))
    }

    fn is_owned(&self, address: Address) -> bool {
        match address {
            Address::V4(word) => self.owned.has_ip4(word),
            Address::V6(word) => self.owned.has_ip6(word),
        }
    }

    fn behind(&self, address: Address) -> Option<u16> {
        let holds = |interface: &Interface| match address {
            Address::V4(word) => interface.behind4.contains(word),
            Address::V6(word) => interface.behind6.contains(word),
        };
        (0..).zip(&self.interfaces).find(|(_, interface)| holds(interface)).map(|(n, _)| n)
    }
}

/// The source and the destination address.
fn addresses(packet: &Packet, layout: &Layout) -> (Option<Address>, Option<Address>) {
    if let Some((source, destination)) = packet.ip4_addresses(layout) {
        return (Some(Address::V4(source.into())), Some(Address::V4(destination.into())));
    }
    let address = |field| packet.get(layout, field);
    if layout.has(Header::Ip6) {
        (address(Field::Ip6Src).map(Address::V6), address(Field::Ip6Dst).map(Address::V6))
    } else {
        (address(Field::ArpSpa).map(Address::V4), address(Field::ArpTpa).map(Address::V4))
    }
}
