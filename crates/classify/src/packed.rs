//! Rules and packets in the form in which lookups compare them.
//!
//! A rule's *service* is everything except its addresses: port ranges and a 64-bit pattern of
//! protocol, flags, ICMP type and code, and of the headers that must be present. Rule sets have
//! thousands of rules but few services (450 in our largest set of ClassBench's kind). Therefore
//! each service is stored once, and the services stay in the nearest cache.

use crate::trie::Key;
use braid_ir::rules::{ANY_PORT, RulePacket, RuleWords};
use braid_ir::value::{Rule, RuleAddrs};

/// An inclusive range.
pub type Range<T> = (T, T);

/// No rule.
pub const NONE: u32 = u32::MAX;

const GUARDS: u64 = RuleWords::GUARDS;

/// The words of a packet without its addresses, as in [`RuleWords`].
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Ask {
    /// Protocol, flags, ICMP, and the headers that are present.
    bits: u64,
    /// Ports.
    ports: u64,
}

/// Everything in a rule except its addresses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Service {
    /// The required values of the bits under the mask.
    value: u64,
    mask: u64,
    /// Least ports, at their places in [`RuleWords`]. When they are subtracted from a packet's
    /// ports, the guard bit of a port stays set if the least port is not above the packet's port.
    low: u64,
    /// Greatest ports plus twice the guard bits. When a packet's ports are subtracted from them, a
    /// guard bit is left for each port that is not above its greatest value.
    high: u64,
}

/// A rule for the addresses of one family.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packed<K> {
    /// Source addresses.
    pub src: Range<K>,
    /// Destination addresses.
    pub dst: Range<K>,
    /// The service.
    pub service: Service,
}

impl Ask {
    /// The words of a packet.
    #[must_use]
    #[inline]
    pub fn new(packet: &RulePacket) -> Self {
        Self::of(&RuleWords::new(packet))
    }

    /// The same, from words that exist already.
    #[must_use]
    #[inline]
    pub fn of(words: &RuleWords) -> Self {
        Self { bits: words.bits, ports: words.ports }
    }

    /// The protocol.
    #[must_use]
    pub fn proto(&self) -> u8 {
        self.bits.to_le_bytes()[0]
    }

    /// The source port; 0 if absent.
    #[must_use]
    pub fn sport(&self) -> u16 {
        port(self.ports, 0)
    }

    /// The destination port; 0 if absent.
    #[must_use]
    pub fn dport(&self) -> u16 {
        port(self.ports, RuleWords::DPORT)
    }
}

fn port(ports: u64, shift: u32) -> u16 {
    (ports >> shift & 0xffff) as u16
}

impl Service {
    /// The service of a rule.
    #[must_use]
    pub fn new(rule: &Rule) -> Self {
        let spread = |value: u8, flags: u8, icmp: u16| {
            u64::from(value)
                | u64::from(flags) << RuleWords::FLAGS
                | u64::from(icmp) << RuleWords::ICMP
        };
        let mut mask = spread(rule.proto.1, rule.tcp_flags.1, rule.icmp.1);
        let mut value = spread(rule.proto.0, rule.tcp_flags.0, rule.icmp.0) & mask;
        let any_ports = rule.sport == ANY_PORT && rule.dport == ANY_PORT;
        for (here, needed) in [
            (RuleWords::FLAGS_HERE, rule.tcp_flags.1 != 0),
            (RuleWords::ICMP_HERE, rule.icmp.1 != 0),
            (RuleWords::PORTS_HERE, !any_ports),
        ] {
            if needed {
                (mask, value) = (mask | here, value | here);
            }
        }
        let ports =
            |sport: u16, dport: u16| u64::from(sport) | u64::from(dport) << RuleWords::DPORT;
        let low = ports(rule.sport.0, rule.dport.0);
        Self { value, mask, low, high: ports(rule.sport.1, rule.dport.1) + 2 * GUARDS }
    }

    /// Whether the service covers a packet.
    #[must_use]
    #[inline]
    pub fn matches(&self, ask: &Ask) -> bool {
        // Without branches: which part fails is nearly random.
        let ports = ask.ports.wrapping_sub(self.low) & self.high.wrapping_sub(ask.ports);
        (ask.bits ^ self.value) & self.mask | !ports & GUARDS == 0
    }

    /// Source ports.
    #[must_use]
    pub fn sport(&self) -> Range<u16> {
        (port(self.low, 0), port(self.high, 0))
    }

    /// Destination ports.
    #[must_use]
    pub fn dport(&self) -> Range<u16> {
        (port(self.low, RuleWords::DPORT), port(self.high - 2 * GUARDS, RuleWords::DPORT))
    }

    /// Whether the service covers everything that another one covers.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        let within = |a: Range<u16>, b: Range<u16>| a.0 <= b.0 && b.1 <= a.1;
        self.covers_bits(other)
            && within(self.sport(), other.sport())
            && within(self.dport(), other.dport())
    }

    /// The same as [`Self::covers`], with the ports ignored.
    #[must_use]
    pub fn covers_bits(&self, other: &Self) -> bool {
        self.mask & !other.mask == 0 && (self.value ^ other.value) & self.mask == 0
    }

    /// Whether the service covers packets of a protocol.
    #[must_use]
    pub fn has_proto(&self, proto: u8) -> bool {
        (self.value ^ u64::from(proto)) & self.mask & 0xff == 0
    }

    /// Whether the service covers every packet.
    #[must_use]
    pub fn covers_all(&self) -> bool {
        self.mask == 0 && self.sport() == ANY_PORT && self.dport() == ANY_PORT
    }

    /// Whether a packet may be covered by both services. The answer is `true` where the question is
    /// hard.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        (self.value ^ other.value) & self.mask & other.mask == 0
            && meet(self.sport(), other.sport())
            && meet(self.dport(), other.dport())
    }

    /// Whether the service covers no packet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let empty = |range: Range<u16>| range.0 > range.1;
        empty(self.sport()) || empty(self.dport())
    }
}

impl<K: Key> Packed<K> {
    /// The rule as packets of this address family see it; `None` if no such packet can match it.
    #[must_use]
    pub fn new(rule: &Rule) -> Option<Self> {
        let all = (K::cut(0), K::cut(u128::MAX));
        let wide = |(lo, hi): Range<u32>| (K::cut(lo.into()), K::cut(hi.into()));
        let wider = |(lo, hi): Range<u128>| (K::cut(lo), K::cut(hi));
        let (src, dst) = match rule.addrs {
            None => (all, all),
            Some(RuleAddrs::V4 { src, dst }) if K::BITS == 32 => (wide(src), wide(dst)),
            Some(RuleAddrs::V6 { src, dst }) if K::BITS == 128 => (wider(src), wider(dst)),
            Some(_) => return None,
        };
        let service = Service::new(rule);
        let some = src.0 <= src.1 && dst.0 <= dst.1 && !service.is_empty();
        some.then_some(Self { src, dst, service })
    }

    /// Whether a packet may match both rules.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        meet(self.src, other.src)
            && meet(self.dst, other.dst)
            && self.service.overlaps(&other.service)
    }

    /// Whether the rule matches a packet.
    #[must_use]
    #[inline]
    pub fn matches(&self, src: K, dst: K, ask: &Ask) -> bool {
        (self.src.0 <= src)
            & (src <= self.src.1)
            & (self.dst.0 <= dst)
            & (dst <= self.dst.1)
            & self.service.matches(ask)
    }
}

fn meet<T: PartialOrd>(a: Range<T>, b: Range<T>) -> bool {
    a.0 <= b.1 && b.0 <= a.1
}

/// A rule in a list.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Entry {
    /// The rule's service. The top bit marks the last rule of the list.
    pub service: u32,
    /// The rule's number.
    pub rule: u32,
}
