//! Packets that enter nowhere: where they come from, and what the interfaces lack.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use braid_ir::chain::{Chain, Interface};
use braid_ir::value::IntervalSet;
use braid_packet::Packet;

use crate::split::NO_INTERFACE;

/// The most parts of an interface's addresses that are shown, and the most sources.
const SHOWN: usize = 3;

/// The most sources that are counted.
const MOST_SOURCES: usize = 1024;

/// A run warns if it loses one of this many packets.
const ONE_OF: u64 = 10;

/// The packets that enter nowhere.
#[derive(Default)]
pub(crate) struct Strays {
    /// Their number.
    pub(crate) count: u64,
    /// The first of them.
    first: Option<Packet>,
    /// By source network, an IPv4 /24 or IPv6 /64: the number of packets.
    sources: BTreeMap<IpAddr, u64>,
    /// The number of packets without addresses.
    without: u64,
}

impl Strays {
    /// Counts a packet. Gives it back unless it is the first.
    pub(crate) fn note(&mut self, packet: Packet, source: Option<IpAddr>) -> Option<Packet> {
        self.count += 1;
        match source {
            None => self.without += 1,
            Some(source) => self.note_source(network(source), 1),
        }
        match self.first {
            Some(_) => Some(packet),
            None => {
                self.first = Some(packet);
                None
            }
        }
    }

    fn note_source(&mut self, network: IpAddr, count: u64) {
        if self.sources.len() < MOST_SOURCES || self.sources.contains_key(&network) {
            *self.sources.entry(network).or_default() += count;
        }
    }

    /// Takes over what others have counted. These may still have a packet then.
    pub(crate) fn take(&mut self, other: &mut Self) {
        self.count += std::mem::take(&mut other.count);
        self.without += std::mem::take(&mut other.without);
        for (network, count) in std::mem::take(&mut other.sources) {
            self.note_source(network, count);
        }
        if self.first.is_none() {
            self.first = other.first.take();
        }
    }

    /// The first packet, to be reused.
    pub(crate) fn take_first(&mut self) -> Option<Packet> {
        self.first.take()
    }

    /// The warning of a run that has lost this many of its packets, if they are many.
    pub(crate) fn warning(&self, chain: &Chain, lost: u64, packets: u64) -> Option<String> {
        if lost == 0 || lost.saturating_mul(ONE_OF) < packets {
            return None;
        }
        let lost = match lost == packets {
            true => format!("no packet entered: all {packets}"),
            false => format!("{lost} of {packets} packets did not enter: they"),
        };
        let first =
            self.first.as_ref().map_or_else(String::new, |one| format!("; the first is {one}"));
        let behind: Vec<String> = (0..)
            .zip(&chain.interfaces)
            .map(|(number, interface)| match chain.receives(number) {
                true => behind(interface),
                false => format!("`{}` only sends", interface.name),
            })
            .collect();
        Some(format!(
            "{lost} were lost as {NO_INTERFACE}, because neither their source nor their destination \
             address belongs to an interface of chain `{}`{}{first}; {}; add the addresses to a \
             `behind`, or name the interface with --in NAME=FILE",
            chain.name,
            self.origins(),
            behind.join(", ")
        ))
    }

    /// The sources of most packets, as the warning names them.
    fn origins(&self) -> String {
        let mut sources: Vec<(&IpAddr, &u64)> = self.sources.iter().collect();
        sources.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let show = |(network, count): &(&IpAddr, &u64)| match network {
            IpAddr::V4(four) => format!("{four}/24 ({count})"),
            IpAddr::V6(six) => format!("{six}/64 ({count})"),
        };
        let shown: Vec<String> = sources.iter().take(SHOWN).map(show).collect();
        let from = match (shown.is_empty(), sources.len() > SHOWN) {
            (true, _) => String::new(),
            (false, true) => format!("; most come from {}", shown.join(", ")),
            (false, false) => format!("; they come from {}", shown.join(", ")),
        };
        match self.without {
            0 => from,
            count => format!("{from}; without IP or ARP addresses: {count}"),
        }
    }
}

/// The network of an address: its first 24 bits, or 64 bits for IPv6.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(four) => Ipv4Addr::from_bits(four.to_bits() & !0xff).into(),
        IpAddr::V6(six) => Ipv6Addr::from_bits(six.to_bits() & !u128::from(u64::MAX)).into(),
    }
}

/// `` `lan` is behind 10.0.0.0/8 ``
fn behind(interface: &Interface) -> String {
    let name = &interface.name;
    let four = parts(&interface.behind4, 32, |at| {
        Ipv4Addr::from_bits(u32::try_from(at).unwrap_or(u32::MAX)).to_string()
    });
    let six = parts(&interface.behind6, 128, |at| Ipv6Addr::from_bits(at).to_string());
    let all: Vec<String> = four.chain(six).collect();
    match all.len() {
        0 => format!("`{name}` has no `behind`"),
        1..=SHOWN => format!("`{name}` is behind {}", all.join(", ")),
        more => {
            let shown = all.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
            format!("`{name}` is behind {shown} and {} more", more - SHOWN)
        }
    }
}

/// The parts of a set of addresses with this number of bits, as prefixes where they are some.
fn parts(
    set: &IntervalSet,
    bits: u32,
    show: impl Fn(u128) -> String,
) -> impl Iterator<Item = String> {
    set.intervals().iter().map(move |&(low, high)| {
        let size = high - low;
        let host = u128::BITS - size.leading_zeros();
        let is_prefix = size & size.wrapping_add(1) == 0 && low & size == 0;
        match is_prefix {
            true => format!("{}/{}", show(low), bits - host.min(bits)),
            false => format!("{}..{}", show(low), show(high)),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_prefixes_or_ranges() {
        let set = IntervalSet::new([(0x0a00_0000, 0x0aff_ffff), (5, 7), (9, 9)]);
        let interface = Interface { name: "lan".into(), behind4: set, ..Interface::default() };
        let text = "`lan` is behind 0.0.0.5..0.0.0.7, 0.0.0.9/32, 10.0.0.0/8";
        assert_eq!(behind(&interface), text);
        let set = IntervalSet::new([(0, u128::MAX)]);
        let interface = Interface { name: "wan".into(), behind6: set, ..Interface::default() };
        assert_eq!(behind(&interface), "`wan` is behind ::/0");
        let set = IntervalSet::new((0..9).map(|at| (at * 4, at * 4)));
        let interface = Interface { name: "wan".into(), behind4: set, ..Interface::default() };
        assert!(behind(&interface).ends_with("0.0.0.8/32 and 6 more"));
    }
}
