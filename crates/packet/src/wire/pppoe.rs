//! PPPoE (RFC 2516) with the PPP protocol (RFC 1661) in its sessions.

use super::ether_type;
use crate::declare::{Declaration, Outer, Parse, Rules, Show, bytes, ro, rw};
use crate::malformed::Malformed;
use crate::names::{Base, Field, Header};

/// Length of the header of PPPoE.
pub(crate) const LEN: usize = 6;
/// Length of the PPP protocol.
pub(crate) const PPP_LEN: usize = 2;
/// The EtherType of a session.
pub(crate) const SESSION: u16 = 0x8864;
/// Offset of the number of bytes behind the header.
pub(crate) const LENGTH: usize = 4;
pub(crate) const VERSION_AND_TYPE: u8 = 0x11;

/// The PPP protocols of what sessions carry, with their EtherTypes.
const CARRIED: [(u16, u16); 3] =
    [(0x0021, ether_type::IPV4), (0x0057, ether_type::IPV6), (0x0281, ether_type::MPLS)];

/// The PPP protocol of what this EtherType announces.
pub(crate) fn protocol(kind: u16) -> Option<u16> {
    CARRIED.iter().find(|(_, of)| *of == kind).map(|(protocol, _)| *protocol)
}

/// The EtherType of what this PPP protocol announces.
pub(crate) fn kind(protocol: u16) -> Option<u16> {
    CARRIED.iter().find(|(of, _)| *of == protocol).map(|(_, kind)| *kind)
}

/// PPPoE, for discovery or for a session. Bytes behind its length are link padding.
pub(crate) const PPPOE: Declaration = Declaration {
    follows: &[(Field::EthType, &[0x8863, SESSION])],
    at: (Base::Network, 0),
    parse: Parse::Rules(Rules {
        fixed: &[(0, 0xff, VERSION_AND_TYPE)],
        body: Some(LENGTH),
        next: Some((Field::PppoeCode, 1, 1)),
        short: Some(Malformed::HeaderLength),
        ..Rules::of(LEN)
    }),
    outer: Some(Outer { required: &[Field::PppoeSession], ..Outer::of(LEN) }),
    summary: Some(("PPPoE", &[("code ", Field::PppoeCode), ("session ", Field::PppoeSession)])),
    fields: &[
        ro(Field::PppoeCode, "pppoe.code", 8, bytes(1, 1), "Code: 0 in a session, else discovery.")
            .shown(Show::Hex(2)),
        rw(Field::PppoeSession, "pppoe.session", 16, bytes(2, 2), "Session identifier."),
        ro(Field::PppoeLen, "pppoe.len", 16, bytes(LENGTH, 2), "Bytes behind the PPPoE header.")
            .counts_payload(),
    ],
    ..Declaration::new(Header::Pppoe, "pppoe", &[])
};

/// PPP in a PPPoE session, with a protocol of two bytes.
pub(crate) const PPP: Declaration = Declaration {
    follows: &[(Field::PppoeCode, &[0])],
    at: (Base::Network, LEN),
    parse: Parse::Rules(Rules {
        // An odd first byte is a protocol of one byte.
        fixed: &[(0, 0x01, 0)],
        next: Some((Field::PppProto, 0, 2)),
        same: &[
            (0x0021, Field::EthType, ether_type::IPV4),
            (0x0057, Field::EthType, ether_type::IPV6),
        ],
        ..Rules::of(PPP_LEN)
    }),
    outer: Some(Outer { behind: &[Header::Pppoe], ..Outer::of(PPP_LEN) }),
    fields: &[ro(
        Field::PppProto,
        "ppp.proto",
        16,
        bytes(0, 2),
        "PPP protocol: 0x0021 IPv4, 0x0057 IPv6.",
    )
    .shown(Show::Hex(4))],
    ..Declaration::new(Header::Ppp, "ppp", &[Header::Pppoe])
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::{Stop, Window};

    #[test]
    fn pppoe_length_leaves_padding_out_and_must_be_on_the_wire() {
        let Parse::Rules(rules) = PPPOE.parse else { panic!("{PPPOE:?}") };
        let data = [0x11, 0, 0, 5, 0, 2, 0, 0x21, 9];
        let (next, rest) = rules.check(Window::new(&data, 9)).unwrap();
        assert_eq!((next, rest.bytes()), (Some((Field::PppoeCode, 0)), &[0, 0x21][..]));
        let bad = Stop::Bad(Malformed::HeaderLength);
        assert_eq!(rules.check(Window::new(&data[..7], 7)).unwrap_err(), bad);
        assert_eq!(rules.check(Window::new(&data[..5], 5)).unwrap_err(), bad);
        assert_eq!(rules.check(Window::new(&data[..5], 9)).unwrap_err(), Stop::Cut);
    }

    #[test]
    fn ppp_protocols_announce_ip_versions() {
        let Parse::Rules(rules) = PPP.parse else { panic!("{PPP:?}") };
        let next = |data: &[u8]| rules.check(Window::new(data, data.len())).map(|found| found.0);
        assert_eq!(next(&[0, 0x21]), Ok(Some((Field::EthType, ether_type::IPV4))));
        assert_eq!(next(&[0, 0x57]), Ok(Some((Field::EthType, ether_type::IPV6))));
        assert_eq!(next(&[0xc0, 0x21]), Ok(Some((Field::PppProto, 0xc021))));
        assert_eq!(next(&[0x21, 0x45]), Err(Stop::Unknown));
    }
}
