//! The packet that an ICMP or ICMPv6 error quotes, as far as the quote goes.

use super::{icmp, ipsec, ipv4, ipv6, proto, tcp, udp};
use crate::declare::{
    Address, Behind, Cover, Declaration, Own, Parse, Parts, Show, Where, bytes, ro, rw,
};
use crate::layout::{Layout, Quoted, Sum, SumKind};
use crate::names::{Base, Field, Header};
use crate::window::{Stop, Window};

/// The IP packet quoted in an ICMP or ICMPv6 error: its IP header is whole.
pub(crate) const QUOTED: Declaration = Declaration {
    follows: &[(Field::IcmpType, icmp::ERROR_TYPES), (Field::Icmp6Type, icmp::ERROR6_TYPES)],
    one_of: &[Header::Quoted4, Header::Quoted6],
    parts: Parts::One(&[Header::QuotedL4, Header::QuotedEcho]),
    at: (Base::QuotedIp, 0),
    parse: Parse::Own(Own(parse)),
    sum: Cover::Quoted,
    fields: &[
        ro(
            Field::QuotedProto,
            "quoted.proto",
            8,
            Where::Computed,
            "Upper-layer protocol of the quoted packet.",
        ),
        ro(
            Field::QuotedInetVersion,
            "quoted.inet.version",
            8,
            Where::Number(Header::Quoted4, 4, 6),
            "IP version of the quoted packet: 4 or 6.",
        ),
        ro(
            Field::QuotedInetSrc,
            "quoted.inet.src",
            128,
            either(Field::QuotedIpSrc, Field::QuotedIp6Src),
            "Source address of the quoted packet, of either IP version.",
        )
        .shown(Show::Inet),
        ro(
            Field::QuotedInetDst,
            "quoted.inet.dst",
            128,
            either(Field::QuotedIpDst, Field::QuotedIp6Dst),
            "Destination address of the quoted packet, of either IP version.",
        )
        .shown(Show::Inet),
        ro(
            Field::QuotedInetSport,
            "quoted.inet.sport",
            16,
            Where::First(&[
                (Header::QuotedL4, Field::QuotedSport),
                (Header::QuotedEcho, Field::QuotedId),
            ]),
            "As inet.sport, of the quoted packet.",
        )
        .shown(Show::Port),
        ro(
            Field::QuotedInetDport,
            "quoted.inet.dport",
            16,
            Where::First(&[
                (Header::QuotedL4, Field::QuotedDport),
                (Header::QuotedEcho, Field::QuotedId),
            ]),
            "As inet.dport, of the quoted packet.",
        )
        .shown(Show::Port),
    ],
    ..Declaration::new(Header::Quoted, "quoted", &[Header::Inet])
};

const fn either(version4: Field, version6: Field) -> Where {
    Where::Same(Header::Quoted4, version4, version6)
}

/// A quoted IPv4 packet.
pub(crate) const IP4: Declaration = Declaration {
    at: (Base::QuotedIp, 0),
    sum: Cover::Quoted,
    fields: &[
        rw(
            Field::QuotedIpSrc,
            "quoted.ip.src",
            32,
            bytes(ipv4::SRC, 4),
            "Source address of the quoted IPv4 packet.",
        )
        .address(Address::Src, Show::Ip4),
        rw(
            Field::QuotedIpDst,
            "quoted.ip.dst",
            32,
            bytes(ipv4::DST, 4),
            "Destination address of the quoted IPv4 packet.",
        )
        .address(Address::Dst, Show::Ip4),
        rw(
            Field::QuotedIpTos,
            "quoted.ip.tos",
            8,
            bytes(ipv4::TOS, 1),
            "Type of service of the quoted IPv4 packet.",
        ),
        rw(
            Field::QuotedIpId,
            "quoted.ip.id",
            16,
            bytes(ipv4::ID, 2),
            "Identification of the quoted IPv4 packet.",
        ),
        rw(
            Field::QuotedIpTtl,
            "quoted.ip.ttl",
            8,
            bytes(ipv4::TTL, 1),
            "Time to live of the quoted IPv4 packet.",
        ),
    ],
    ..Declaration::new(
        Header::Quoted4,
        "quoted.ip",
        &[Header::Quoted, Header::Icmp, Header::Ip4, Header::Inet],
    )
};

/// A quoted IPv6 packet.
pub(crate) const IP6: Declaration = Declaration {
    at: (Base::QuotedIp, 0),
    sum: Cover::Quoted,
    fields: &[
        rw(
            Field::QuotedIp6Src,
            "quoted.ip6.src",
            128,
            bytes(ipv6::SRC, 16),
            "Source address of the quoted IPv6 packet.",
        )
        .address(Address::Src, Show::Ip6),
        rw(
            Field::QuotedIp6Dst,
            "quoted.ip6.dst",
            128,
            bytes(ipv6::DST, 16),
            "Destination address of the quoted IPv6 packet.",
        )
        .address(Address::Dst, Show::Ip6),
        rw(
            Field::QuotedIp6Ttl,
            "quoted.ip6.ttl",
            8,
            bytes(ipv6::TTL, 1),
            "Hop limit of the quoted IPv6 packet.",
        ),
    ],
    ..Declaration::new(
        Header::Quoted6,
        "quoted.ip6",
        &[Header::Quoted, Header::Icmp6, Header::Ip6, Header::Inet],
    )
};

/// TCP or UDP ports of the quoted packet.
pub(crate) const L4: Declaration = Declaration {
    at: (Base::QuotedL4, 0),
    sum: Cover::Quoted,
    fields: &[
        rw(
            Field::QuotedSport,
            "quoted.l4.sport",
            16,
            bytes(0, 2),
            "Source port of the quoted packet.",
        )
        .shown(Show::Port),
        rw(
            Field::QuotedDport,
            "quoted.l4.dport",
            16,
            bytes(2, 2),
            "Destination port of the quoted packet.",
        )
        .shown(Show::Port),
    ],
    ..Declaration::new(Header::QuotedL4, "quoted.l4", &[Header::Quoted, Header::Inet])
};

/// Identifier of a quoted ICMP echo.
pub(crate) const ECHO: Declaration = Declaration {
    at: (Base::QuotedL4, 0),
    sum: Cover::Quoted,
    fields: &[rw(
        Field::QuotedId,
        "quoted.icmp.id",
        16,
        bytes(icmp::REST, 2),
        "Identifier of the quoted ICMP echo.",
    )],
    ..Declaration::new(Header::QuotedEcho, "quoted.icmp", &[Header::Quoted, Header::Inet])
};

fn parse<'a>(layout: &mut Layout, window: Window<'a>) -> Result<Behind<'a>, Stop> {
    let version = if layout.has(Header::Ip4) { 4 } else { 6 };
    if let Some(quoted) = check(window, version) {
        layout.quote(&quoted);
    }
    Ok(None)
}

/// Checks a quote. `None` when its IP header is not whole or contradicts itself.
pub(crate) fn check(window: Window<'_>, version: u8) -> Option<Quoted> {
    let (mut proto, later, pseudo_dst, mut rest);
    if version == 4 {
        let ip = ipv4::check_quoted(window).ok()?;
        (proto, later, pseudo_dst, rest) = (ip.proto, ip.fragment.later, ip.pseudo_dst, ip.rest);
        if proto == proto::AH
            && !later
            && let Ok((next, behind)) = ipsec::check_ah(rest)
        {
            (proto, rest) = (next, behind);
        }
    } else {
        let ip = ipv6::check_quoted(window).ok()?;
        (proto, later, pseudo_dst, rest) = (ip.proto, ip.fragment.later, ip.pseudo_dst, ip.rest);
    }
    let mut quoted = Quoted {
        version,
        ip: window.at(),
        proto,
        pseudo_dst,
        l4: rest.at(),
        ports: false,
        echo: false,
        sum: None,
    };
    if !later {
        transport(&mut quoted, rest);
    }
    Some(quoted)
}

/// Parses the bytes behind the quoted IP headers.
fn transport(quoted: &mut Quoted, rest: Window<'_>) {
    let bytes = rest.bytes();
    let sum = match (quoted.version, quoted.proto) {
        (_, proto::TCP) => tcp::SUM,
        (_, proto::UDP) => udp::SUM,
        (4, proto::ICMP) => icmp::SUM,
        (6, proto::ICMP6) => icmp::SUM6,
        _ => return,
    };
    quoted.sum = rest.captured16(sum.at).map(|at| Sum { at, ..sum });
    let Some(message) = bytes.first() else { return };
    let is_echo = |types: &[u16]| types.contains(&u16::from(*message)) && bytes.len() >= 6;
    match sum.kind {
        SumKind::Tcp | SumKind::Udp => quoted.ports = bytes.len() >= 4,
        SumKind::Icmp => quoted.echo = is_echo(icmp::ECHO_TYPES),
        SumKind::Icmp6 => quoted.echo = is_echo(icmp::ECHO6_TYPES),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An IPv4 header of protocol `proto` with a total length that no quote reaches.
    fn header(proto: u8, rest: &[u8]) -> Vec<u8> {
        let mut data = vec![0x45, 0, 0xff, 0xff, 0, 0, 0, 0, 64, proto];
        data.extend([0; 10]);
        data.extend(rest);
        data
    }

    fn look(data: &[u8]) -> Option<Quoted> {
        check(Window::new(data, data.len()), 4)
    }

    #[test]
    fn quote_is_not_bound_by_the_total_length() {
        let quoted = look(&header(proto::UDP, &[0, 1, 0, 2])).unwrap();
        assert!(quoted.ports && quoted.sum.is_none());
        let quoted = look(&header(proto::UDP, &[0, 1, 0, 2, 0, 8, 0, 0])).unwrap();
        assert_eq!(quoted.sum, Some(Sum { kind: SumKind::Udp, at: 26 }));
    }

    #[test]
    fn quote_of_another_version_is_none() {
        assert!(look(&[0x60; 60]).is_none());
        assert!(check(Window::new(&header(6, &[0; 20]), 40), 6).is_none());
    }

    #[test]
    fn authentication_header_in_a_quote_is_walked() {
        let ah = [proto::TCP, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 80, 0, 81];
        let quoted = look(&header(proto::AH, &ah)).unwrap();
        assert_eq!((quoted.proto, quoted.l4, quoted.ports), (proto::TCP, 32, true));
        let cut = look(&header(proto::AH, &ah[..10])).unwrap();
        assert_eq!((cut.proto, cut.l4, cut.ports), (proto::AH, 20, false));
    }
}
