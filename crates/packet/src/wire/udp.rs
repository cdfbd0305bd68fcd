//! UDP (RFC 768).

use super::proto;
use crate::declare::{Behind, Cover, Declaration, Outer, Own, Parse, Show, Where, bytes, ro, rw};
use crate::layout::{Layout, Sum, SumKind};
use crate::malformed::Malformed;
use crate::names::{Base, Field, Header};
use crate::window::{Stop, Window, be16};

/// Offset of the length.
pub(crate) const LENGTH: usize = 4;
/// Offset of the checksum.
pub(crate) const CHECKSUM: usize = 6;
/// The checksum.
pub(crate) const SUM: Sum = Sum { kind: SumKind::Udp, at: CHECKSUM };
/// Length of the header.
pub(crate) const LEN: usize = 8;

/// UDP. It is never in a fragment other than the first.
pub(crate) const UDP: Declaration = Declaration {
    follows: &[(Field::IpProto, &[proto::UDP as u16]), (Field::Ip6Proto, &[proto::UDP as u16])],
    at: (Base::L4, 0),
    parse: Parse::Own(Own(parse)),
    sum: Cover::Transport,
    holds: Some(SUM),
    takes_declared: true,
    summary: Some(("UDP", &[])),
    outer: Some(Outer {
        behind: &[Header::Ip4, Header::Ip6],
        required: &[Field::UdpSport, Field::UdpDport],
        ..Outer::of(LEN)
    }),
    fields: &[
        rw(Field::UdpSport, "udp.sport", 16, Where::Part(Field::L4Sport, 0), "UDP source port.")
            .shown(Show::Port)
            .of_flow(),
        rw(
            Field::UdpDport,
            "udp.dport",
            16,
            Where::Part(Field::L4Dport, 0),
            "UDP destination port.",
        )
        .shown(Show::Port)
        .of_flow(),
        ro(Field::UdpLen, "udp.len", 16, bytes(LENGTH, 2), "UDP length in bytes.").counts_payload(),
    ],
    ..Declaration::new(Header::Udp, "udp", &[Header::L4, Header::Inet])
};

fn parse<'a>(layout: &mut Layout, window: Window<'a>) -> Result<Behind<'a>, Stop> {
    layout.checksum(window, SUM);
    let (port, rest) = check(window, layout.is_fragment(), layout.is_jumbo())?;
    layout.add(Header::L4);
    layout.add(Header::Udp);
    layout.behind(rest);
    Ok(Some((Field::UdpDport, port, rest)))
}

/// The destination port and the payload. In a fragment the length may exceed the bytes in the
/// packet. In a jumbogram it may be 0 (RFC 2675 §4).
pub(crate) fn check(
    window: Window<'_>,
    fragment: bool,
    jumbo: bool,
) -> Result<(u16, Window<'_>), Stop> {
    let header = window.fixed::<LEN>(Malformed::UdpShort)?;
    let mut len = usize::from(be16(header[LENGTH], header[LENGTH + 1]));
    if jumbo && len == 0 {
        len = window.wire();
    }
    if len < LEN || (len > window.wire() && !fragment) {
        return Err(Stop::Bad(Malformed::UdpLength));
    }
    Ok((be16(header[2], header[3]), window.limit(len).skip(LEN)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(len: u8) -> [u8; 10] {
        [0, 53, 0, 99, 0, len, 0, 0, 1, 2]
    }

    #[test]
    fn length_out_of_range_is_malformed_but_not_in_fragments() {
        let bad = Stop::Bad(Malformed::UdpLength);
        assert_eq!(check(Window::new(&header(7), 10), true, false).unwrap_err(), bad);
        assert_eq!(check(Window::new(&header(11), 10), false, false).unwrap_err(), bad);
        assert!(check(Window::new(&header(11), 10), true, false).is_ok());
        assert_eq!(check(Window::new(&header(0), 10), false, false).unwrap_err(), bad);
        assert!(check(Window::new(&header(0), 10), false, true).is_ok());
    }

    #[test]
    fn bytes_behind_the_length_are_no_payload() {
        let data = header(9);
        let (port, rest) = check(Window::new(&data, 10), false, false).unwrap();
        assert_eq!((port, rest.bytes()), (99, &[1u8][..]));
    }
}
