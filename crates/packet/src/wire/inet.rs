//! Headers that stand for one of two: either IP version, either of TCP and UDP.

use super::{tcp, udp};
use crate::declare::{Bits, Cover, Declaration, Show, Where, bytes, ro, rw};
use crate::names::{Base, Field, Header};

const PORT: &str = "TCP or UDP source port; the identifier for ICMP echo; else 0.";
const DPORT: &str = "TCP or UDP destination port; the identifier for ICMP echo; else 0.";

/// Either IPv4 or IPv6, as the outermost network header.
pub(crate) const INET: Declaration = Declaration {
    one_of: &[Header::Ip4, Header::Ip6],
    at: (Base::Ip, 0),
    sum: Cover::Inet,
    fields: &[
        ro(Field::InetVersion, "inet.version", 8, Where::Number(Header::Ip4, 4, 6), "4 or 6."),
        ro(
            Field::InetSrc,
            "inet.src",
            128,
            either(Field::IpSrc, Field::Ip6Src),
            "Source address, of either IP version.",
        )
        .shown(Show::Inet)
        .of_flow(),
        ro(
            Field::InetDst,
            "inet.dst",
            128,
            either(Field::IpDst, Field::Ip6Dst),
            "Destination address, of either IP version.",
        )
        .shown(Show::Inet)
        .of_flow(),
        ro(
            Field::InetProto,
            "inet.proto",
            8,
            Where::Computed,
            "Upper-layer protocol, behind IPv6 extension headers.",
        )
        .of_flow(),
        rw(
            Field::InetTtl,
            "inet.ttl",
            8,
            either(Field::IpTtl, Field::Ip6Ttl),
            "Time to live or hop limit.",
        ),
        ro(
            Field::InetSport,
            "inet.sport",
            16,
            port(&[
                (Header::L4, Field::L4Sport),
                (Header::IcmpEcho, Field::IcmpId),
                (Header::Icmp6Echo, Field::Icmp6Id),
            ]),
            PORT,
        )
        .shown(Show::Port)
        .of_flow(),
        ro(
            Field::InetDport,
            "inet.dport",
            16,
            port(&[
                (Header::L4, Field::L4Dport),
                (Header::IcmpEcho, Field::IcmpId),
                (Header::Icmp6Echo, Field::Icmp6Id),
            ]),
            DPORT,
        )
        .shown(Show::Port)
        .of_flow(),
    ],
    ..Declaration::new(Header::Inet, "inet", &[])
};

const fn either(version4: Field, version6: Field) -> Where {
    Where::Same(Header::Ip4, version4, version6)
}

const fn port(ports: &'static [(Header, Field)]) -> Where {
    Where::First(ports)
}

/// Either TCP or UDP.
pub(crate) const L4: Declaration = Declaration {
    one_of: &[Header::Tcp, Header::Udp],
    at: (Base::L4, 0),
    sum: Cover::Transport,
    fields: &[
        rw(Field::L4Sport, "l4.sport", 16, bytes(0, 2), "TCP or UDP source port.")
            .shown(Show::Port)
            .of_flow(),
        rw(Field::L4Dport, "l4.dport", 16, bytes(2, 2), "TCP or UDP destination port.")
            .shown(Show::Port)
            .of_flow(),
        ro(Field::L4Checksum, "l4.checksum", 16, CHECKSUM, "TCP or UDP checksum.")
            .shown(Show::Hex(4)),
    ],
    ..Declaration::new(Header::L4, "l4", &[Header::Inet])
};

const CHECKSUM: Where = Where::Either(Header::Tcp, word(tcp::CHECKSUM), word(udp::CHECKSUM));

const fn word(offset: usize) -> Bits {
    Bits { offset, len: 2, shift: 0, width: 16 }
}
