//! Rule sets and packets for tests and measurements: generated, or read from ClassBench's files.

use crate::trie::Key;
use braid_externs::Rng;
use braid_ir::rules::{ANY_PORT, RulePacket};
use braid_ir::value::{Rule, RuleAddrs, RuleSet};
use std::net::Ipv4Addr;

/// Random numbers that depend only on a seed.
#[derive(Clone, Debug)]
pub struct Noise(Rng);

/// A kind of generated rule set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// From hosts and small networks to ports of servers, as in access lists.
    Access,
    /// Half of the rules have one open side, and many have port ranges, as in firewalls.
    Firewall,
    /// Mixed prefixes, as in the rule chains of Linux hosts.
    Chain,
    /// IPv6 hosts and networks.
    Six,
    /// Ranges nested in each other in all fields, in random order.
    Nested,
    /// Random ranges, so that nearly all of them overlap.
    Tangled,
    /// The same rule again and again.
    Same,
    /// Random port ranges for the same addresses.
    Ports,
}

/// All kinds with their names.
pub const KINDS: [(&str, Kind); 8] = [
    ("access", Kind::Access),
    ("firewall", Kind::Firewall),
    ("chain", Kind::Chain),
    ("six", Kind::Six),
    ("nested", Kind::Nested),
    ("tangled", Kind::Tangled),
    ("same", Kind::Same),
    ("ports", Kind::Ports),
];

impl Noise {
    /// Each seed gives another sequence.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(Rng::new(seed))
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below the bound, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.draw() % bound.max(1)
    }

    fn wide(&mut self) -> u128 {
        u128::from(self.draw()) << 64 | u128::from(self.draw())
    }

    fn half(&mut self) -> u16 {
        u16::try_from(self.draw() >> 48).unwrap_or(0)
    }

    fn byte(&mut self) -> u8 {
        u8::try_from(self.draw() >> 56).unwrap_or(0)
    }

    /// A number within a range. An empty range gives its lower end.
    fn within(&mut self, (lo, hi): (u128, u128)) -> u128 {
        if lo > hi {
            return lo;
        }
        match hi.wrapping_sub(lo).wrapping_add(1) {
            0 => self.wide(),
            size => lo.wrapping_add(self.wide() % size),
        }
    }

    fn port(&mut self, (lo, hi): (u16, u16)) -> u16 {
        u16::try_from(self.within((lo.into(), hi.into()))).unwrap_or(0)
    }

    /// TCP, UDP or ICMP.
    fn proto(&mut self) -> u8 {
        match self.byte() % 3 {
            0 => 6,
            1 => 17,
            _ => 1,
        }
    }
}

/// Generates a set of `count` rules. The default drops.
#[must_use]
pub fn rules(kind: Kind, count: usize, seed: u64) -> RuleSet {
    let mut noise = Noise::new(seed);
    // Networks and hosts that rules have in common. Larger sets have more of them.
    let pool: Vec<u128> = (0..count / 3 + 8).map(|_| noise.wide()).collect();
    let rules = (0..count).map(|number| one(kind, number as u64, count as u64, &pool, &mut noise));
    RuleSet { rules: rules.collect(), default_pass: false }
}

#[expect(clippy::indexing_slicing, reason = "the places are drawn below the lengths")]
fn one(kind: Kind, number: u64, count: u64, pool: &[u128], noise: &mut Noise) -> Rule {
    let pass = noise.below(4) != 0;
    let port = |noise: &mut Noise| u16::try_from(noise.below(96) * 7).unwrap_or(0);
    let mut rule =
        Rule { proto: (if noise.below(3) == 0 { 17 } else { 6 }, 0xff), ..Rule::any(pass) };
    let lens: [&[u8]; 2] = match kind {
        Kind::Access => [&[32, 32, 28, 24, 20], &[32, 32, 32, 24, 16]],
        Kind::Firewall if number.is_multiple_of(2) => [&[0, 0, 8], &[32, 29, 27, 24]],
        Kind::Firewall => [&[32, 29, 28, 24], &[0, 0, 0, 12]],
        Kind::Chain => [&[32, 32, 24, 16, 8, 0], &[32, 32, 24, 22, 16]],
        Kind::Six => [&[128, 64, 48, 0], &[128, 128, 64, 56, 32]],
        Kind::Nested | Kind::Tangled | Kind::Same | Kind::Ports => {
            return hostile(kind, count, rule, noise);
        }
    };
    let [src, dst] = lens.map(|lens| {
        let len = lens[usize::try_from(noise.below(lens.len() as u64)).unwrap_or(0)];
        let at = usize::try_from(noise.below(pool.len() as u64)).unwrap_or(0);
        (pool[at] ^ u128::from(noise.below(4)), len)
    });
    rule.addrs = Some(if kind == Kind::Six {
        RuleAddrs::V6 { src: prefix(src.0, src.1, 128), dst: prefix(dst.0, dst.1, 128) }
    } else {
        let four = |(addr, len): (u128, u8)| {
            let (lo, hi) = prefix(addr & u128::from(u32::MAX), len, 32);
            (u32::cut(lo), u32::cut(hi))
        };
        RuleAddrs::V4 { src: four(src), dst: four(dst) }
    });
    match noise.below(8) {
        0 => rule.dport = ANY_PORT,
        1 => rule.dport = (1024, u16::MAX),
        2 => rule.dport = (port(noise), 700),
        3 => rule = Rule { proto: (1, 0xff), icmp: (0x0800, 0xff00), ..rule },
        4 => rule = Rule { proto: (6, 0xff), tcp_flags: (0x02, 0x12), ..rule },
        _ => rule.dport = [port(noise); 1].map(|port| (port, port))[0],
    }
    if kind == Kind::Firewall && noise.below(3) == 0 {
        rule.sport = (1024, u16::MAX);
    }
    rule
}

fn hostile(kind: Kind, count: u64, mut rule: Rule, noise: &mut Noise) -> Rule {
    let ordered = |a: u64, b: u64, bits: u32| {
        let cut = |value: u64| u32::cut((value >> (64 - bits)).into());
        (cut(a.min(b)), cut(a.max(b)))
    };
    let ports = |noise: &mut Noise| {
        let (a, b) = (noise.half(), noise.half());
        (a.min(b), a.max(b))
    };
    let depth = u32::cut(noise.below(count.clamp(1, 1 << 31)).into());
    match kind {
        Kind::Nested => {
            let range = (depth, u32::MAX - depth);
            let port = u16::try_from(depth >> 2 & 0x7fff).unwrap_or(0);
            rule.addrs = Some(RuleAddrs::V4 { src: range, dst: range });
            rule.dport = (port, u16::MAX - port);
            rule.sport = rule.dport;
        }
        Kind::Tangled => {
            let mut range = || ordered(noise.draw(), noise.draw(), 32);
            rule.addrs = Some(RuleAddrs::V4 { src: range(), dst: range() });
            (rule.sport, rule.dport) = (ports(noise), ports(noise));
        }
        Kind::Ports => (rule.sport, rule.dport) = (ports(noise), ports(noise)),
        _ => {}
    }
    rule
}

fn prefix(addr: u128, len: u8, bits: u32) -> (u128, u128) {
    let host = u128::MAX.checked_shr(128 - (bits - u32::from(len).min(bits))).unwrap_or(0);
    (addr & !host, addr | host)
}

/// Packets that match each rule in turn, as far as a single rule determines this, in random order.
#[must_use]
pub fn packets(set: &RuleSet, count: usize, seed: u64) -> Vec<RulePacket> {
    let mut noise = Noise::new(seed);
    let any = [Rule::any(true)];
    let rules = if set.rules.is_empty() { &any } else { set.rules.as_slice() };
    let mut packets: Vec<_> =
        rules.iter().cycle().take(count).map(|rule| packet(rule, &mut noise)).collect();
    for last in (1..count).rev() {
        packets.swap(last, usize::try_from(noise.below(last as u64 + 1)).unwrap_or(0));
    }
    packets
}

/// Random packets. In most sets, most of them match no rule.
#[must_use]
pub fn random_packets(count: usize, seed: u64) -> Vec<RulePacket> {
    let mut noise = Noise::new(seed);
    let four = RuleAddrs::V4 { src: (0, u32::MAX), dst: (0, u32::MAX) };
    let rule = |proto| Rule { addrs: Some(four), proto: (proto, 0xff), ..Rule::any(true) };
    (0..count).map(|_| packet(&rule(noise.proto()), &mut noise)).collect()
}

/// A packet that matches a rule, if the packet's protocol has everything that the rule asks for.
pub fn packet(rule: &Rule, noise: &mut Noise) -> RulePacket {
    let wide = |(lo, hi): (u32, u32)| (u128::from(lo), u128::from(hi));
    let (version, src, dst) = match rule.addrs {
        None => (4, (0, u32::MAX.into()), (0, u32::MAX.into())),
        Some(RuleAddrs::V4 { src, dst }) => (4, wide(src), wide(dst)),
        Some(RuleAddrs::V6 { src, dst }) => (6, src, dst),
    };
    let fill = |(value, mask): (u8, u8), noise: &mut Noise| value & mask | noise.byte() & !mask;
    let proto = match rule.proto {
        (_, 0) => noise.proto(),
        condition => fill(condition, noise),
    };
    let ports = [6, 17].contains(&proto).then(|| (noise.port(rule.sport), noise.port(rule.dport)));
    let icmp = rule.icmp.0 & rule.icmp.1 | noise.half() & !rule.icmp.1;
    RulePacket {
        version,
        src: noise.within(src),
        dst: noise.within(dst),
        proto,
        ports,
        tcp_flags: (proto == 6).then(|| fill(rule.tcp_flags, noise)),
        icmp: [1, 58].contains(&proto).then(|| icmp.to_be_bytes().into()),
    }
}

/// Reads the rules of a file in ClassBench's format: `@source destination low : high low : high
/// proto/mask`, then optionally TCP flags and their mask, in the high half. The format has no
/// actions: the rules pass and drop in turn. Conditions on flags are kept for TCP only.
///
/// # Errors
/// The number, from 1, of the first line that is not in this format.
pub fn parse(text: &str) -> Result<RuleSet, usize> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let parsed = lines.zip(1..).map(|(line, number)| parse_line(line, number).ok_or(number));
    Ok(RuleSet { rules: parsed.collect::<Result<_, _>>()?, default_pass: false })
}

fn parse_line(line: &str, number: usize) -> Option<Rule> {
    let words: Vec<&str> = line.strip_prefix('@')?.split_whitespace().collect();
    let addrs = |text: &str| {
        let (addr, len) = text.split_once('/')?;
        let addr: Ipv4Addr = addr.parse().ok()?;
        let (lo, hi) = prefix(addr.to_bits().into(), len.parse().ok()?, 32);
        Some((u32::cut(lo), u32::cut(hi)))
    };
    let hex = |text: &str| u16::from_str_radix(text.strip_prefix("0x")?, 16).ok();
    let pair = |text: &str| text.split_once('/').and_then(|(a, b)| Some((hex(a)?, hex(b)?)));
    let low = |value: u16| value.to_be_bytes()[1];
    let high = |value: u16| value.to_be_bytes()[0];
    let port = |at: usize| Some((words.get(at)?.parse().ok()?, words.get(at + 2)?.parse().ok()?));
    let proto = pair(words.get(8)?)?;
    let flags = words.get(9).map_or(Some((0, 0)), |text| pair(text))?;
    let is_tcp = proto == (6, 0xff);
    Some(Rule {
        addrs: Some(RuleAddrs::V4 { src: addrs(words.first()?)?, dst: addrs(words.get(1)?)? }),
        proto: (low(proto.0), low(proto.1)),
        sport: port(2)?,
        dport: port(5)?,
        tcp_flags: if is_tcp { (high(flags.0), high(flags.1)) } else { (0, 0) },
        ..Rule::any(number % 2 == 1)
    })
}
