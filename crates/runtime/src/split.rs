//! By which interface a packet of a common capture enters: told by the prefixes behind interfaces.
//!
//! - A packet from an address behind an interface enters there (the first declared of several).
//! - Else one to an address behind an interface enters by the only interface that has no prefixes:
//!   the rest of the world is there.
//! - Any other packet enters nowhere and is lost as [`NO_INTERFACE`].
//!
//! ARP packets are told by their protocol addresses. In a chain with one interface, or with none
//! declared (`in` and `out`), all packets enter the first.

use braid_ir::chain::{Chain, Interface};
use braid_packet::{Field, Header, Layout, Packet};

/// The loss of packets that enter nowhere.
pub const NO_INTERFACE: &str = "no_interface";

/// Decides for the packets of a chain.
#[derive(Clone, Debug)]
pub struct Splitter<'a> {
    interfaces: &'a [Interface],
    /// All packets enter the first interface.
    all_first: bool,
    /// The only interface without prefixes.
    rest: Option<u16>,
}

#[derive(Clone, Copy)]
enum Address {
    V4(u128),
    V6(u128),
}

impl<'a> Splitter<'a> {
    /// For a chain.
    #[must_use]
    pub fn new(chain: &'a Chain) -> Self {
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
        Self { interfaces, all_first: implicit || interfaces.len() == 1, rest }
    }

    /// Whether no packet can be told: there are several interfaces and nothing behind any.
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
        let (source, destination) = addresses(packet, layout)?;
        self.behind(source).or_else(|| self.behind(destination).and(self.rest))
    }

    fn behind(&self, address: Address) -> Option<u16> {
        let holds = |interface: &Interface| match address {
            Address::V4(word) => interface.behind4.contains(word),
            Address::V6(word) => interface.behind6.contains(word),
        };
        (0..).zip(self.interfaces).find(|(_, interface)| holds(interface)).map(|(n, _)| n)
    }
}

fn addresses(packet: &Packet, layout: &Layout) -> Option<(Address, Address)> {
    let pair = |source, destination, version: fn(u128) -> Address| {
        let (source, destination) = (packet.get(layout, source)?, packet.get(layout, destination)?);
        Some((version(source), version(destination)))
    };
    if layout.has(Header::Ip4) {
        pair(Field::IpSrc, Field::IpDst, Address::V4)
    } else if layout.has(Header::Ip6) {
        pair(Field::Ip6Src, Field::Ip6Dst, Address::V6)
    } else {
        pair(Field::ArpSpa, Field::ArpTpa, Address::V4)
    }
}
