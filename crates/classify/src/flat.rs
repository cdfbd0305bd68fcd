//! Rule sets with addresses replaced by their ranks.
//!
//! The ends of a field's ranges, in order, cut its addresses into intervals. Rules can only tell
//! apart the numbers of these intervals, the *ranks* of addresses. Structures over ranks are the
//! same for IPv4 and IPv6.

use crate::packed::{Ask, Packed, Range, Service};
use crate::steps::Steps;
use crate::trie::{Key, Run, Trie};
use std::collections::HashMap;

/// A rule over ranks. Rules with smaller numbers come first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flat {
    /// The number in the set.
    pub number: u32,
    /// Ranks of the source.
    pub src: Range<u32>,
    /// Ranks of the destination.
    pub dst: Range<u32>,
    /// The number of its service.
    pub service: u32,
}

/// A packet over ranks.
#[derive(Clone, Copy, Default, Debug)]
pub struct Query {
    /// Rank of the source.
    pub src: u32,
    /// Rank of the destination.
    pub dst: u32,
    /// Protocol, ports, flags and ICMP.
    pub ask: Ask,
}

/// A rule set over ranks.
#[derive(Clone, Debug, Default)]
pub struct FlatSet {
    /// The rules that a packet can match, in order.
    pub rules: Vec<Flat>,
    /// The distinct services.
    pub services: Vec<Service>,
    /// The number of ranks of sources.
    pub src_ranks: u32,
    /// The number of ranks of destinations.
    pub dst_ranks: u32,
}

/// The map from addresses to ranks: the address at which each rank starts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Starts(Vec<u128>);

impl Starts {
    /// The ranks that these ranges distinguish.
    #[must_use]
    pub fn new<K: Key>(ranges: impl Iterator<Item = Range<K>>) -> Self {
        let past = |hi: K| hi.into().checked_add(1).filter(|past| K::cut(*past).into() == *past);
        let ends = ranges.flat_map(|(lo, hi)| [Some(lo.into()), past(hi)]);
        let mut starts: Vec<u128> = ends.flatten().chain([0]).collect();
        starts.sort_unstable();
        starts.dedup();
        Self(starts)
    }

    /// Number of ranks.
    #[must_use]
    pub fn ranks(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }

    /// The rank of an address.
    #[must_use]
    pub fn rank(&self, address: u128) -> u32 {
        let after = self.0.partition_point(|start| *start <= address);
        u32::try_from(after - 1).unwrap_or(u32::MAX)
    }

    /// The fastest map from IPv4 addresses to ranks, unless there are too many ranks.
    #[must_use]
    pub fn steps<K: Key>(&self) -> Option<Steps> {
        let starts: Vec<u32> = self.0.iter().map(|start| u32::cut(*start)).collect();
        (K::BITS == u32::BITS).then(|| Steps::new(&starts)).flatten()
    }

    /// A fast map from addresses to ranks.
    #[must_use]
    pub fn trie<K: Key>(&self) -> Trie<K> {
        let runs: Vec<Run> = self.0.iter().copied().zip(0..).collect();
        Trie::new(&runs)
    }
}

impl FlatSet {
    /// The set over ranks of source and destination.
    #[must_use]
    pub fn new<K: Key>(rules: &[Option<Packed<K>>]) -> (Self, Starts, Starts) {
        let src = Starts::new(rules.iter().flatten().map(|rule| rule.src));
        let dst = Starts::new(rules.iter().flatten().map(|rule| rule.dst));
        let mut flat = Self { src_ranks: src.ranks(), dst_ranks: dst.ranks(), ..Self::default() };
        let mut numbers = HashMap::new();
        let ranks =
            |starts: &Starts, (lo, hi): Range<K>| (starts.rank(lo.into()), starts.rank(hi.into()));
        for (number, rule) in (0..).zip(rules) {
            let Some(rule) = rule else { continue };
            let service = *numbers.entry(rule.service).or_insert_with(|| {
                flat.services.push(rule.service);
                u32::try_from(flat.services.len() - 1).unwrap_or(u32::MAX)
            });
            let (src, dst) = (ranks(&src, rule.src), ranks(&dst, rule.dst));
            flat.rules.push(Flat { number, src, dst, service });
        }
        (flat, src, dst)
    }

    /// The service of a rule of this set.
    #[expect(clippy::indexing_slicing, reason = "`new` gave the rules numbers of these services")]
    pub fn service(&self, rule: &Flat) -> &Service {
        &self.services[rule.service as usize]
    }
}

impl Flat {
    /// Whether the rule matches a packet.
    #[must_use]
    #[inline]
    #[expect(
        clippy::indexing_slicing,
        reason = "a rule's service is in the set that the rule is from"
    )]
    pub fn matches(&self, query: &Query, services: &[Service]) -> bool {
        ((self.src.0 <= query.src)
            & (query.src <= self.src.1)
            & (self.dst.0 <= query.dst)
            & (query.dst <= self.dst.1))
            && services[self.service as usize].matches(&query.ask)
    }
}
