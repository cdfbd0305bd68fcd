//! Rules over packets: the match of a rule, the rule of a set that decides, and the text form.
//!
//! Evaluation is deliberately naive: rule after rule, condition after condition. Faster classifiers
//! are compared with it. The text form is the simple rule file of `docs/rule-files.md`.

use crate::model::Word;
use crate::value::{Rule, RuleAddrs, RuleSet};
use braid_packet::Field;
use std::convert::Infallible;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Names of the TCP flags, lowest bit first, as rule files write them.
pub const TCP_FLAG_NAMES: [&str; 8] = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"];

/// Protocols that rule files can name.
pub const PROTOCOL_NAMES: [(&str, u8); 4] = [("tcp", 6), ("udp", 17), ("icmp", 1), ("icmp6", 58)];

/// The port range that also matches packets without ports.
pub const ANY_PORT: (u16, u16) = (0, u16::MAX);

const ADDRS: [Field; 2] = [Field::InetSrc, Field::InetDst];
const PORTS: [Field; 2] = [Field::L4Sport, Field::L4Dport];
const ICMP: [Field; 2] = [Field::IcmpType, Field::IcmpCode];
const ICMP6: [Field; 2] = [Field::Icmp6Type, Field::Icmp6Code];

/// The fields that rules read.
pub const FIELDS: [Field; 11] = [
    Field::InetVersion,
    ADDRS[0],
    ADDRS[1],
    Field::InetProto,
    PORTS[0],
    PORTS[1],
    Field::TcpFlags,
    ICMP[0],
    ICMP[1],
    ICMP6[0],
    ICMP6[1],
];

/// What a reader gives for the fields that rules read, without the IP version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RuleParts<T> {
    /// Source and destination address.
    pub addrs: (T, T),
    /// Upper-layer protocol, behind IPv6 extension headers.
    pub proto: T,
    /// Source and destination port of TCP or UDP, if that header is present.
    pub ports: Option<(T, T)>,
    /// TCP flags, if that header is present.
    pub tcp_flags: Option<T>,
    /// ICMP or ICMPv6 type and code, if that header is present.
    pub icmp: Option<(T, T)>,
}

impl<T> RuleParts<T> {
    /// Reads the fields of an IP packet. The reader gives `None` for a field whose header is
    /// absent. `None` if the packet has no addresses.
    ///
    /// # Errors
    /// Those of the reader.
    pub fn read<E>(
        mut field: impl FnMut(Field) -> Result<Option<T>, E>,
    ) -> Result<Option<Self>, E> {
        let mut pair = |[a, b]: [Field; 2]| match field(a)? {
            Some(a) => Ok(Some(a).zip(field(b)?)),
            None => Ok(None),
        };
        let ports = pair(PORTS)?;
        let icmp = match pair(ICMP)? {
            None => pair(ICMP6)?,
            icmp => icmp,
        };
        let tcp_flags = field(Field::TcpFlags)?;
        let [src, dst] = [field(ADDRS[0])?, field(ADDRS[1])?];
        let found = src.zip(dst).zip(field(Field::InetProto)?);
        Ok(found.map(|(addrs, proto)| Self { addrs, proto, ports, tcp_flags, icmp }))
    }
}

/// The fields of an IP packet that rules read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RulePacket {
    /// 4 or 6.
    pub version: u8,
    /// Source address (in the low 32 bits for version 4).
    pub src: u128,
    /// Destination address (in the low 32 bits for version 4).
    pub dst: u128,
    /// Upper-layer protocol, behind IPv6 extension headers.
    pub proto: u8,
    /// Source and destination port of TCP or UDP, if that header is present.
    pub ports: Option<(u16, u16)>,
    /// TCP flags (FIN is bit 0), if that header is present.
    pub tcp_flags: Option<u8>,
    /// ICMP or ICMPv6 type and code, if that header is present.
    pub icmp: Option<(u8, u8)>,
}

impl RulePacket {
    /// The fields of a packet, given a way to read them. `None` for packets that are not IP.
    pub fn read(field: impl Fn(Field) -> Option<Word>) -> Option<Self> {
        let byte = |value: Word| u8::try_from(value).ok();
        let port = |value: Word| u16::try_from(value).ok();
        let Ok(parts) = RuleParts::read(|name| Ok::<_, Infallible>(field(name)));
        let parts = parts?;
        Some(Self {
            version: field(Field::InetVersion).and_then(byte)?,
            src: parts.addrs.0,
            dst: parts.addrs.1,
            proto: byte(parts.proto)?,
            ports: parts.ports.and_then(|(src, dst)| port(src).zip(port(dst))),
            tcp_flags: parts.tcp_flags.and_then(byte),
            icmp: parts.icmp.and_then(|(kind, code)| byte(kind).zip(byte(code))),
        })
    }
}

/// The fields of an IPv4 packet that rules read, packed into words that can be compared at once.
/// Machine code passes packets in this form, and classifiers take it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RuleWords {
    /// Source address in the upper half, destination in the lower one.
    pub addrs: u64,
    /// Source port from bit 0, destination port from bit [`RuleWords::DPORT`]. A missing port is 0.
    /// The bits of [`RuleWords::GUARDS`] above the ports are set.
    pub ports: u64,
    /// Protocol from bit 0, TCP flags from bit 8, ICMP type and code as 16 bits from bit 16. A
    /// missing part is 0. Higher bits tell which of the headers are present.
    pub bits: u64,
}

impl RuleWords {
    /// The first bit of the destination port.
    pub const DPORT: u32 = 17;
    /// A bit above each port. A difference of ports may borrow from it.
    pub const GUARDS: u64 = 1 << 16 | 1 << 33;
    /// The first bit of the TCP flags.
    pub const FLAGS: u32 = 8;
    /// The first bit of the ICMP code.
    pub const ICMP: u32 = 16;
    /// The packet has TCP flags.
    pub const FLAGS_HERE: u64 = 1 << 32;
    /// The packet has an ICMP type.
    pub const ICMP_HERE: u64 = 1 << 33;
    /// The packet has ports.
    pub const PORTS_HERE: u64 = 1 << 34;

    /// The words of a packet. Only the low 32 bits of its addresses count.
    #[must_use]
    #[inline]
    pub fn new(packet: &RulePacket) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "the mask keeps only low bits")]
        let low = |addr: u128| addr as u64 & u64::from(u32::MAX);
        let mut bits = u64::from(packet.proto);
        if let Some(flags) = packet.tcp_flags {
            bits |= Self::FLAGS_HERE | u64::from(flags) << Self::FLAGS;
        }
        if let Some((kind, code)) = packet.icmp {
            bits |= Self::ICMP_HERE | u64::from(u16::from_be_bytes([kind, code])) << Self::ICMP;
        }
        let mut ports = Self::GUARDS;
        if let Some((sport, dport)) = packet.ports {
            bits |= Self::PORTS_HERE;
            ports |= u64::from(sport) | u64::from(dport) << Self::DPORT;
        }
        Self { addrs: low(packet.src) << 32 | low(packet.dst), ports, bits }
    }

    /// The packet that these words describe.
    #[must_use]
    pub fn packet(&self) -> RulePacket {
        let [_, _, _, _, kind, code, flags, proto] = self.bits.to_be_bytes();
        let here = |bit: u64| self.bits & bit != 0;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the cast removes what is above a port"
        )]
        let port = |shift: u32| (self.ports >> shift) as u16;
        RulePacket {
            version: 4,
            src: (self.addrs >> 32).into(),
            dst: (self.addrs & u64::from(u32::MAX)).into(),
            proto,
            ports: here(Self::PORTS_HERE).then(|| (port(0), port(Self::DPORT))),
            tcp_flags: here(Self::FLAGS_HERE).then_some(flags),
            icmp: here(Self::ICMP_HERE).then_some((kind, code)),
        }
    }
}

impl Rule {
    /// The rule that matches every IP packet.
    #[must_use]
    pub fn any(pass: bool) -> Self {
        Self {
            addrs: None,
            proto: (0, 0),
            sport: ANY_PORT,
            dport: ANY_PORT,
            tcp_flags: (0, 0),
            icmp: (0, 0),
            pass,
            line: 0,
        }
    }

    /// Whether an IP packet meets all conditions.
    #[must_use]
    pub fn matches(&self, packet: &RulePacket) -> bool {
        self.matches_addrs(packet)
            && masked(u16::from(packet.proto), widen(self.proto))
            && self.matches_ports(packet)
            && optional(packet.tcp_flags.map(u16::from), widen(self.tcp_flags))
            && optional(packet.icmp.map(|(kind, code)| u16::from_be_bytes([kind, code])), self.icmp)
    }

    fn matches_addrs(&self, packet: &RulePacket) -> bool {
        let inside = |value: u128, (lo, hi): (u128, u128)| lo <= value && value <= hi;
        let wide = |(lo, hi): (u32, u32)| (u128::from(lo), u128::from(hi));
        match self.addrs {
            None => true,
            Some(RuleAddrs::V4 { src, dst }) => {
                packet.version == 4
                    && inside(packet.src, wide(src))
                    && inside(packet.dst, wide(dst))
            }
            Some(RuleAddrs::V6 { src, dst }) => {
                packet.version == 6 && inside(packet.src, src) && inside(packet.dst, dst)
            }
        }
    }

    fn matches_ports(&self, packet: &RulePacket) -> bool {
        let inside = |value: u16, (lo, hi): (u16, u16)| lo <= value && value <= hi;
        match packet.ports {
            Some((sport, dport)) => inside(sport, self.sport) && inside(dport, self.dport),
            None => self.sport == ANY_PORT && self.dport == ANY_PORT,
        }
    }
}

impl RuleSet {
    /// Whether an IP packet passes, and the number of the rule that decides, from 0. The first rule
    /// that matches decides. If the default decides, the number is the number of rules.
    #[must_use]
    pub fn decide(&self, packet: &RulePacket) -> (bool, u32) {
        match (0..).zip(&self.rules).find(|(_, rule)| rule.matches(packet)) {
            Some((number, rule)) => (rule.pass, number),
            None => (self.default_pass, u32::try_from(self.rules.len()).unwrap_or(u32::MAX)),
        }
    }
}

fn widen((value, mask): (u8, u8)) -> (u16, u16) {
    (u16::from(value), u16::from(mask))
}

/// Whether the bits under the mask are equal.
fn masked(found: u16, (value, mask): (u16, u16)) -> bool {
    (found ^ value) & mask == 0
}

/// As `masked`, for a field that only some packets have.
fn optional(found: Option<u16>, condition: (u16, u16)) -> bool {
    condition.1 == 0 || found.is_some_and(|found| masked(found, condition))
}

impl fmt::Display for RuleSet {
    /// The set as a rule file. The default is on the last line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for rule in &self.rules {
            writeln!(f, "{rule}")?;
        }
        writeln!(f, "default {}", action(self.default_pass))
    }
}

impl fmt::Display for Rule {
    /// The rule as a line of a rule file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(action(self.pass))?;
        self.fmt_proto(f)?;
        let (src, dst) = self.addr_texts();
        fmt_side(f, "from", src, self.sport)?;
        fmt_side(f, "to", dst, self.dport)?;
        fmt_icmp(f, self.icmp)?;
        fmt_flags(f, self.tcp_flags)
    }
}

impl Rule {
    fn fmt_proto(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.proto {
            (_, 0) => Ok(()),
            (value, 0xff) => match PROTOCOL_NAMES.iter().find(|(_, number)| *number == value) {
                Some((name, _)) => write!(f, " proto {name}"),
                None => write!(f, " proto {value}"),
            },
            (value, mask) => write!(f, " proto {value:#04x}/{mask:#04x}"),
        }
    }

    /// Source and destination. `None`: any address of either version matches, or the other address
    /// already gives the version.
    fn addr_texts(&self) -> (Option<String>, Option<String>) {
        let full4 = (0, u32::MAX);
        let full6 = (0, u128::MAX);
        match self.addrs {
            None => (None, None),
            Some(RuleAddrs::V4 { src, dst }) => {
                let text = |(lo, hi): (u32, u32)| {
                    let prefix = prefix_len(lo.into(), hi.into(), 32);
                    range_text(Ipv4Addr::from(lo), Ipv4Addr::from(hi), prefix)
                };
                // One of the two addresses must give the version.
                let said = dst != full4;
                ((src != full4 || !said).then(|| text(src)), (dst != full4).then(|| text(dst)))
            }
            Some(RuleAddrs::V6 { src, dst }) => {
                let text = |(lo, hi): (u128, u128)| {
                    range_text(Ipv6Addr::from(lo), Ipv6Addr::from(hi), prefix_len(lo, hi, 128))
                };
                let said = dst != full6;
                ((src != full6 || !said).then(|| text(src)), (dst != full6).then(|| text(dst)))
            }
        }
    }
}

fn action(pass: bool) -> &'static str {
    if pass { "pass" } else { "drop" }
}

/// The length of the prefix that is exactly this range of addresses with `bits` bits. `None`: the
/// range is not a prefix.
fn prefix_len(lo: u128, hi: u128, bits: u32) -> Option<u32> {
    let host_bits = u128::BITS - (lo ^ hi).leading_zeros();
    let host_mask = u128::MAX.checked_shr(u128::BITS - host_bits).unwrap_or(0);
    (lo & host_mask == 0 && hi & host_mask == host_mask).then(|| bits - host_bits)
}

fn range_text(lo: impl fmt::Display, hi: impl fmt::Display, prefix: Option<u32>) -> String {
    match prefix {
        Some(length) => format!("{lo}/{length}"),
        None => format!("{lo}-{hi}"),
    }
}

fn fmt_side(
    f: &mut fmt::Formatter<'_>,
    word: &str,
    addr: Option<String>,
    ports: (u16, u16),
) -> fmt::Result {
    if addr.is_none() && ports == ANY_PORT {
        return Ok(());
    }
    write!(f, " {word} {}", addr.as_deref().unwrap_or("any"))?;
    match ports {
        ANY_PORT => Ok(()),
        (lo, hi) if lo == hi => write!(f, " port {lo}"),
        (lo, hi) => write!(f, " port {lo}-{hi}"),
    }
}

fn fmt_icmp(f: &mut fmt::Formatter<'_>, (value, mask): (u16, u16)) -> fmt::Result {
    let [kind, code] = value.to_be_bytes();
    match mask {
        0 => Ok(()),
        0xff00 => write!(f, " type {kind}"),
        0xffff => write!(f, " type {kind} code {code}"),
        _ => write!(f, " type {value:#06x}/{mask:#06x}"),
    }
}

fn fmt_flags(f: &mut fmt::Formatter<'_>, (value, mask): (u8, u8)) -> fmt::Result {
    let mut separator = " flags ";
    for (bit, name) in TCP_FLAG_NAMES.iter().enumerate().filter(|(bit, _)| mask >> bit & 1 == 1) {
        let not = if value >> bit & 1 == 1 { "" } else { "!" };
        write!(f, "{separator}{not}{name}")?;
        separator = ",";
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const PACKET: RulePacket = RulePacket {
        version: 4,
        src: 0x0a00_0001,
        dst: 0xc000_0201,
        proto: 6,
        ports: Some((40_000, 80)),
        tcp_flags: Some(0x02),
        icmp: None,
    };

    const PING: RulePacket =
        RulePacket { proto: 1, ports: None, tcp_flags: None, icmp: Some((8, 0)), ..PACKET };

    #[test]
    fn each_condition_matches_at_its_ends_only() {
        let any = Rule::any(true);
        let v4 = |src, dst| Rule { addrs: Some(RuleAddrs::V4 { src, dst }), ..any.clone() };
        let all = (0, u32::MAX);
        let cases = [
            (v4((0x0a00_0001, 0x0a00_0001), all), true),
            (v4((0x0a00_0002, u32::MAX), all), false),
            (v4((0, 0x0a00_0000), all), false),
            (v4(all, (0xc000_0201, u32::MAX)), true),
            (v4(all, (0, 0xc000_0200)), false),
            (Rule { proto: (6, 0xff), ..any.clone() }, true),
            (Rule { proto: (17, 0xff), ..any.clone() }, false),
            (Rule { proto: (0x16, 0x0f), ..any.clone() }, true),
            (Rule { sport: (40_000, 40_000), ..any.clone() }, true),
            (Rule { sport: (40_001, 65_535), ..any.clone() }, false),
            (Rule { dport: (0, 79), ..any.clone() }, false),
            (Rule { tcp_flags: (0x02, 0x12), ..any.clone() }, true),
            (Rule { tcp_flags: (0x12, 0x12), ..any.clone() }, false),
            (Rule { icmp: (0x0800, 0xff00), ..any.clone() }, false),
            (any, true),
        ];
        for (rule, expected) in cases {
            assert_eq!(rule.matches(&PACKET), expected, "{rule}");
        }
    }

    #[test]
    fn addresses_fix_the_version() {
        let all6 = RuleAddrs::V6 { src: (0, u128::MAX), dst: (0, u128::MAX) };
        let rule = Rule { addrs: Some(all6), ..Rule::any(true) };
        assert!(!rule.matches(&PACKET));
        assert!(rule.matches(&RulePacket { version: 6, ..PACKET }));
        let all4 = RuleAddrs::V4 { src: (0, u32::MAX), dst: (0, u32::MAX) };
        let rule = Rule { addrs: Some(all4), ..Rule::any(true) };
        assert!(!rule.matches(&RulePacket { version: 6, ..PACKET }));
    }

    #[test]
    fn words_say_what_packets_do() {
        let flagged = RulePacket { tcp_flags: Some(0), ..PACKET };
        let odd = RulePacket { ports: Some((0xffff, 0)), icmp: Some((3, 0xfe)), ..PING };
        for packet in [PACKET, PING, flagged, odd] {
            assert_eq!(RuleWords::new(&packet).packet(), packet);
        }
        let ping = RuleWords::new(&PING);
        assert_eq!((ping.ports, ping.bits), (RuleWords::GUARDS, 1 << 33 | 0x0800 << 16 | 1));
        let tcp =
            RuleWords { ports: 0x2_0001_0000 | 443 << 17 | 40_000, ..RuleWords::new(&PACKET) };
        assert_eq!(tcp, RuleWords::new(&RulePacket { ports: Some((40_000, 443)), ..PACKET }));
    }

    #[test]
    fn conditions_on_absent_headers_match_nothing() {
        let any = Rule::any(true);
        assert!(any.matches(&PING));
        assert!(Rule { icmp: (0x0800, 0xff00), ..any.clone() }.matches(&PING));
        assert!(!Rule { icmp: (0x0801, 0xffff), ..any.clone() }.matches(&PING));
        assert!(!Rule { sport: (0, 65_534), ..any.clone() }.matches(&PING));
        assert!(!Rule { tcp_flags: (0, 0x02), ..any }.matches(&PING));
    }

    #[test]
    fn first_match_decides_and_the_default_has_the_number_past_the_last() {
        let udp = Rule { proto: (17, 0xff), ..Rule::any(true) };
        let tcp = |pass| Rule { proto: (6, 0xff), ..Rule::any(pass) };
        let set = RuleSet { rules: vec![udp, tcp(false), tcp(true)], default_pass: true };
        assert_eq!(set.decide(&PACKET), (false, 1));
        assert_eq!(set.decide(&PING), (true, 3));
    }

    #[test]
    fn rules_print_as_their_file_has_them() {
        let texts = |addrs| Rule { addrs: Some(addrs), ..Rule::any(true) }.to_string();
        let (all4, one4) = ((0, u32::MAX), (0x0a00_0001, 0x0a00_0001));
        assert_eq!(texts(RuleAddrs::V4 { src: all4, dst: all4 }), "pass from 0.0.0.0/0");
        assert_eq!(texts(RuleAddrs::V4 { src: all4, dst: one4 }), "pass to 10.0.0.1/32");
        let odd = (0x0a00_0001, 0x0a00_0002);
        assert_eq!(texts(RuleAddrs::V4 { src: odd, dst: all4 }), "pass from 10.0.0.1-10.0.0.2");
        let all6 = (0, u128::MAX);
        assert_eq!(texts(RuleAddrs::V6 { src: all6, dst: all6 }), "pass from ::/0");
        let rule =
            Rule { proto: (6, 0xff), dport: (80, 81), tcp_flags: (0x02, 0x12), ..Rule::any(false) };
        let set = RuleSet { rules: vec![rule], default_pass: true };
        let expected = "drop proto tcp to any port 80-81 flags SYN,!ACK\ndefault pass\n";
        assert_eq!(set.to_string(), expected);
    }

    #[test]
    fn list_of_fields_has_all_that_rules_read() {
        let mut read = BTreeSet::from([Field::InetVersion]);
        for absent in [&[][..], &ICMP] {
            let Ok(parts) = RuleParts::read(|field| {
                read.insert(field);
                Ok::<_, Infallible>((!absent.contains(&field)).then_some(field))
            });
            let icmp = if absent.is_empty() { ICMP } else { ICMP6 };
            assert_eq!(parts.and_then(|parts| parts.icmp), Some((icmp[0], icmp[1])));
        }
        assert_eq!(read, BTreeSet::from(FIELDS));
    }
}
