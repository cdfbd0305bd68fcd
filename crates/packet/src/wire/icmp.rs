//! ICMP (RFC 792) and ICMPv6 (RFC 4443): 8 bytes of header, then data or a quoted packet.

use super::proto;
use crate::declare::{Behind, Bits, Cover, Declaration, Own, Parse, Rules, Show, Where, bytes, rw};
use crate::layout::{Layout, Sum, SumKind};
use crate::malformed::Malformed;
use crate::names::{Base, Field, Header};
use crate::window::{Stop, Window};

/// Offset of the type.
pub(crate) const TYPE: usize = 0;
/// Offset of the code.
pub(crate) const CODE: usize = 1;
/// Offset of the checksum.
pub(crate) const CHECKSUM: usize = 2;
/// The checksum of ICMP.
pub(crate) const SUM: Sum = Sum { kind: SumKind::Icmp, at: CHECKSUM };
/// The checksum of ICMPv6.
pub(crate) const SUM6: Sum = Sum { kind: SumKind::Icmp6, at: CHECKSUM };
/// Offset of the identifier of an echo, and of the rest of the header in other messages.
pub(crate) const REST: usize = 4;
/// Offset of the sequence number of an echo.
pub(crate) const SEQ: usize = 6;
/// Length of the header.
pub(crate) const LEN: usize = 8;

/// The rest of the header as one number.
const WORD: Bits = Bits { offset: REST, len: 4, shift: 0, width: 32 };

/// ICMP for IPv4.
pub(crate) const ICMP: Declaration = Declaration {
    follows: &[(Field::IpProto, &[proto::ICMP as u16])],
    at: (Base::L4, 0),
    parse: Parse::Own(Own(parse)),
    sum: Cover::Transport,
    holds: Some(SUM),
    summary: Some(("ICMP", &[("type ", Field::IcmpType), ("code ", Field::IcmpCode)])),
    fields: &[
        rw(Field::IcmpType, "icmp.type", 8, bytes(TYPE, 1), "ICMP type.").of_flow(),
        rw(Field::IcmpCode, "icmp.code", 8, bytes(CODE, 1), "ICMP code.").of_flow(),
        rw(
            Field::IcmpRest,
            "icmp.rest",
            32,
            Where::Halves(Header::IcmpEcho, [Field::IcmpId, Field::IcmpSeq], WORD),
            "Bytes 4 to 7 of the ICMP header (unused, MTU, gateway).",
        )
        .shown(Show::Hex(8)),
    ],
    ..Declaration::new(Header::Icmp, "icmp", &[Header::Ip4, Header::Inet])
};

/// ICMP echo request or reply (has identifier and sequence number).
pub(crate) const ECHO: Declaration = Declaration {
    follows: &[(Field::IcmpType, ECHO_TYPES)],
    at: (Base::L4, 0),
    parse: Parse::Rules(Rules::of(0)),
    sum: Cover::Transport,
    fields: &[
        rw(Field::IcmpId, "icmp.id", 16, bytes(REST, 2), "Identifier of an ICMP echo.").of_flow(),
        rw(Field::IcmpSeq, "icmp.seq", 16, bytes(SEQ, 2), "Sequence number of an ICMP echo."),
    ],
    ..Declaration::new(Header::IcmpEcho, "icmp.echo", &[Header::Icmp, Header::Ip4, Header::Inet])
};

/// ICMPv6.
pub(crate) const ICMP6: Declaration = Declaration {
    follows: &[(Field::Ip6Proto, &[proto::ICMP6 as u16])],
    at: (Base::L4, 0),
    parse: Parse::Own(Own(parse6)),
    sum: Cover::Transport,
    holds: Some(SUM6),
    summary: Some(("ICMPv6", &[("type ", Field::Icmp6Type), ("code ", Field::Icmp6Code)])),
    fields: &[
        rw(Field::Icmp6Type, "icmp6.type", 8, bytes(TYPE, 1), "ICMPv6 type.").of_flow(),
        rw(Field::Icmp6Code, "icmp6.code", 8, bytes(CODE, 1), "ICMPv6 code.").of_flow(),
        rw(
            Field::Icmp6Rest,
            "icmp6.rest",
            32,
            Where::Halves(Header::Icmp6Echo, [Field::Icmp6Id, Field::Icmp6Seq], WORD),
            "Bytes 4 to 7 of the ICMPv6 header.",
        )
        .shown(Show::Hex(8)),
    ],
    ..Declaration::new(Header::Icmp6, "icmp6", &[Header::Ip6, Header::Inet])
};

/// ICMPv6 echo request or reply.
pub(crate) const ECHO6: Declaration = Declaration {
    follows: &[(Field::Icmp6Type, ECHO6_TYPES)],
    at: (Base::L4, 0),
    parse: Parse::Rules(Rules::of(0)),
    sum: Cover::Transport,
    fields: &[
        rw(Field::Icmp6Id, "icmp6.id", 16, bytes(REST, 2), "Identifier of an ICMPv6 echo.")
            .of_flow(),
        rw(Field::Icmp6Seq, "icmp6.seq", 16, bytes(SEQ, 2), "Sequence number of an ICMPv6 echo."),
    ],
    ..Declaration::new(Header::Icmp6Echo, "icmp6.echo", &[Header::Icmp6, Header::Ip6, Header::Inet])
};

/// The types of an ICMP echo request or reply.
pub(crate) const ECHO_TYPES: &[u16] = &[0, 8];
/// The types of an ICMPv6 echo request or reply.
pub(crate) const ECHO6_TYPES: &[u16] = &[128, 129];
/// The types of ICMP messages that quote a packet: unreachable, source quench, redirect, time
/// exceeded, parameter problem.
pub(crate) const ERROR_TYPES: &[u16] = &[3, 4, 5, 11, 12];
/// The types of ICMPv6 messages that quote a packet: unreachable, packet too big, time exceeded,
/// parameter problem.
pub(crate) const ERROR6_TYPES: &[u16] = &[1, 2, 3, 4];

fn parse<'a>(layout: &mut Layout, window: Window<'a>) -> Result<Behind<'a>, Stop> {
    layout.checksum(window, SUM);
    let (kind, rest) = check(window, Malformed::IcmpShort)?;
    layout.add(Header::Icmp);
    layout.behind(rest);
    Ok(Some((Field::IcmpType, kind.into(), rest)))
}

fn parse6<'a>(layout: &mut Layout, window: Window<'a>) -> Result<Behind<'a>, Stop> {
    layout.checksum(window, SUM6);
    let (kind, rest) = check(window, Malformed::Icmp6Short)?;
    layout.add(Header::Icmp6);
    layout.behind(rest);
    Ok(Some((Field::Icmp6Type, kind.into(), rest)))
}

/// The type, and the bytes behind the header. `short` is the error when there are fewer than 8
/// bytes.
pub(crate) fn check(window: Window<'_>, short: Malformed) -> Result<(u8, Window<'_>), Stop> {
    let header = window.fixed::<LEN>(short)?;
    Ok((header[TYPE], window.skip(LEN)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn icmp_below_8_bytes_is_malformed() {
        let stop = check(Window::new(&[0; 7], 7), Malformed::IcmpShort).unwrap_err();
        assert_eq!(stop, Stop::Bad(Malformed::IcmpShort));
        assert_eq!(check(Window::new(&[0; 7], 8), Malformed::IcmpShort).unwrap_err(), Stop::Cut);
    }
}
