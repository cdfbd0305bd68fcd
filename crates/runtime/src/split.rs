//! The interface by which a packet of a shared capture enters. The prefixes behind the interfaces
//! decide:
//!
//! - If the source address is behind an interface, the packet enters there. If it is behind
//!   several, the packet enters at the first one declared.
//! - Otherwise, if the destination address is behind an interface or is owned by a function of the
//!   chain (a NAT's outside address, a load balancer's service address), the packet enters by the
//!   only interface that has no prefixes. All other addresses are behind this interface.
//! - Any other packet enters nowhere and is lost as [`NO_INTERFACE`].
//!
//! For ARP packets the protocol addresses decide. If a chain has one interface, or declares none
//! (`in` and `out`), all packets enter the first. If no interface has prefixes, and only one leads
//! to a function, all packets enter there.
//!
//! A malformed packet whose addresses cannot be read enters by the only interface without prefixes,
//! or else by the first one, so that the chain's policy on malformed packets decides about it.

use crate::owned::Owned;
use braid_ir::chain::{Chain, Interface};
use braid_packet::{Field, Header, Layout, Packet};
use std::net::IpAddr;

/// The reason for which packets that enter nowhere are lost.
pub const NO_INTERFACE: &str = "no_interface";

/// Finds the interface by which each packet enters a chain.
#[derive(Clone, Debug)]
pub struct Splitter {
    interfaces: Vec<Interface>,
    /// The interface behind which each IPv4 address is: parts of the address space in ascending
    /// order, each with its first address.
    parts4: Vec<(u32, Option<u16>)>,
    /// The interface that all packets enter.
    all: Option<u16>,
    /// The only interface without prefixes. One that only sends counts if there is no other.
    rest: Option<u16>,
    owned: Owned,
}

impl Splitter {
    /// A splitter for the packets of a chain.
    #[must_use]
    pub fn new(chain: &Chain) -> Self {
        let interfaces = &chain.interfaces[..];
        let open =
            |interface: &Interface| interface.behind4.is_empty() && interface.behind6.is_empty();
        let without = (0..).zip(interfaces).filter(|(_, interface)| open(interface));
        let without: Vec<u16> = without.map(|(number, _)| number).collect();
        let entries: Vec<u16> =
            without.iter().copied().filter(|number| chain.receives(*number)).collect();
        let rest = match (&entries[..], &without[..]) {
            ([one], _) | ([], [one]) => Some(*one),
            _ => None,
        };
        let implicit = matches!(interfaces, [first, second]
            if first.name == "in" && second.name == "out" && open(first) && open(second));
        let all = match implicit || interfaces.len() == 1 {
            true => Some(0),
            false => rest.filter(|_| without.len() == interfaces.len()),
        };
        Self {
            interfaces: interfaces.to_vec(),
            parts4: parts4(interfaces),
            all,
            rest,
            owned: Owned::of(&chain.nodes),
        }
    }

    /// Whether no interface can be found for any packet, because there are several interfaces and
    /// none has prefixes.
    #[must_use]
    pub fn is_blind(&self) -> bool {
        let bare = |i: &Interface| i.behind4.is_empty() && i.behind6.is_empty();
        self.all.is_none() && self.interfaces.iter().all(bare)
    }

    /// The interface by which a packet enters, by number.
    #[must_use]
    #[inline]
    pub fn ingress(&self, packet: &Packet, layout: &Layout) -> Option<u16> {
        if self.all.is_some() {
            return self.all;
        }
        match packet.ip4_addresses(layout) {
            Some((source, destination)) => self.ingress4(source, destination),
            None => self.ingress_of_others(packet, layout),
        }
    }

    /// As [`Self::ingress`], for packets that are not IPv4.
    #[inline(never)]
    fn ingress_of_others(&self, packet: &Packet, layout: &Layout) -> Option<u16> {
        let get = |field| packet.get(layout, field);
        if layout.has(Header::Ip6) {
            return self.ingress6(get(Field::Ip6Src)?, get(Field::Ip6Dst)?);
        }
        if layout.malformed().is_some() {
            let named = packet.malformed_addresses(layout);
            let named = named.and_then(|(source, destination)| match (source, destination) {
                (IpAddr::V4(source), IpAddr::V4(destination)) => {
                    self.ingress4(source.to_bits(), destination.to_bits())
                }
                (IpAddr::V6(source), IpAddr::V6(destination)) => {
                    self.ingress6(source.to_bits(), destination.to_bits())
                }
                _ => None,
            });
            return named.or(self.rest).or(Some(0));
        }
        let address = |field| u32::try_from(get(field)?).ok();
        self.ingress4(address(Field::ArpSpa)?, address(Field::ArpTpa)?)
    }

    fn ingress4(&self, source: u32, destination: u32) -> Option<u16> {
        let is_inside =
            || self.behind4(destination).is_some() || self.owned.has_ip4(destination.into());
        self.behind4(source).or_else(|| self.rest.filter(|_| is_inside()))
    }

    fn behind4(&self, address: u32) -> Option<u16> {
        let after = self.parts4.partition_point(|(first, _)| *first <= address);
        self.parts4.get(after.checked_sub(1)?)?.1
    }

    fn ingress6(&self, source: u128, destination: u128) -> Option<u16> {
        let behind = |address| first(&self.interfaces, |one| one.behind6.contains(address));
        let is_inside = || behind(destination).is_some() || self.owned.has_ip6(destination);
        behind(source).or_else(|| self.rest.filter(|_| is_inside()))
    }
}

/// The source address that decides where a packet enters.
pub(crate) fn source(packet: &Packet, layout: &Layout) -> Option<IpAddr> {
    let get = |field| packet.get(layout, field);
    match get(Field::IpSrc).or_else(|| get(Field::ArpSpa)) {
        Some(four) => Some(IpAddr::from(u32::try_from(four).ok()?.to_be_bytes())),
        None => Some(IpAddr::from(get(Field::Ip6Src)?.to_be_bytes())),
    }
}

/// The first interface for which this holds, by number.
fn first(interfaces: &[Interface], holds: impl Fn(&Interface) -> bool) -> Option<u16> {
    (0..).zip(interfaces).find(|(_, interface)| holds(interface)).map(|(number, _)| number)
}

/// The parts of the IPv4 address space with the interface behind which each of them is.
fn parts4(interfaces: &[Interface]) -> Vec<(u32, Option<u16>)> {
    let ranges = interfaces.iter().flat_map(|interface| interface.behind4.intervals());
    let mut starts: Vec<u128> =
        ranges.flat_map(|(low, high)| [*low, high + 1]).chain([0]).collect();
    starts.sort_unstable();
    let part = |start: u128| {
        let behind = first(interfaces, |interface| interface.behind4.contains(start));
        // No part begins after the last address.
        Some((u32::try_from(start).ok()?, behind))
    };
    let mut parts: Vec<_> = starts.into_iter().filter_map(part).collect();
    parts.dedup_by_key(|(_, behind)| *behind);
    parts
}
