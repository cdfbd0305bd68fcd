//! ICMP errors about packets that leave and cannot be sent (RFC 792, RFC 1191, RFC 4443).

use super::messages::{Mac, is_host_address, mac_number};
use braid_packet::build::{NewPayload, Shape, build_new};
use braid_packet::{Field, Packet};
use std::net::IpAddr;

/// The TOS of ICMP errors (RFC 1812 4.3.2.5).
const INTERNETWORK_CONTROL: u128 = 0xc0;

/// The bytes that an error quotes at most. So it has at most 576 bytes, or 1280 for IPv6.
const QUOTE: u16 = 548;
const QUOTE6: u16 = 1232;

/// Why a packet cannot be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Why {
    /// It is longer than this MTU of the device.
    TooLong { mtu: u32 },
    /// Its next hop does not answer.
    NoHost,
    /// There is no gateway to its network.
    NoNetwork,
}

/// The error about a packet that left by an interface and cannot be sent. It comes from the
/// interface's address to the packet's source, and enters the chain where the packet left it.
/// `None` if no error may be sent: about an ICMP error, a later fragment, or a packet to or from
/// several hosts (RFC 1812 4.3.2.7, RFC 4443 2.4).
pub(super) fn error(packet: &Packet, own: (IpAddr, Mac), why: Why) -> Option<Packet> {
    let (layout, (address, mac)) = (packet.parse(), own);
    let get = |field| packet.get(&layout, field);
    let icmp = get(Field::IcmpType).is_some_and(|kind| [3, 4, 5, 11, 12].contains(&kind));
    let icmp6 = get(Field::Icmp6Type).is_some_and(|kind| kind < 128 || kind == 137);
    let to_group = get(Field::EthDst)? >> 40 & 1 == 1;
    if icmp || icmp6 || to_group || layout.is_later_fragment() {
        return None;
    }
    let ip4 = |field| Some(IpAddr::V4(u32::try_from(get(field)?).ok()?.into()));
    let ip6 = |field| Some(IpAddr::V6(get(field)?.into()));
    let ends = match address {
        IpAddr::V4(_) => [ip4(Field::IpSrc)?, ip4(Field::IpDst)?],
        IpAddr::V6(_) => [ip6(Field::Ip6Src)?, ip6(Field::Ip6Dst)?],
    };
    if !ends.into_iter().all(is_host_address) {
        return None;
    }
    let both = [(Field::EthDst, mac_number(mac)), (Field::EthSrc, mac_number(mac))];
    let mut error = match address {
        IpAddr::V4(address) => {
            let (code, rest) = match why {
                Why::TooLong { mtu } => (4, u128::from(mtu)),
                Why::NoHost => (1, 0),
                Why::NoNetwork => (0, 0),
            };
            let fields = [
                (Field::IpSrc, u128::from(address.to_bits())),
                (Field::IpTos, INTERNETWORK_CONTROL),
                (Field::IcmpType, 3),
                (Field::IcmpCode, code),
                (Field::IcmpRest, rest.min(0xffff)),
            ];
            let fields = [&both[..], &fields].concat();
            build_new(packet, Shape::Icmp, true, &fields, NewPayload::Quote(QUOTE))
        }
        IpAddr::V6(address) => {
            let (kind, code, rest) = match why {
                Why::TooLong { mtu } => (2, 0, u128::from(mtu)),
                Why::NoHost => (1, 3, 0),
                Why::NoNetwork => (1, 0, 0),
            };
            let fields = [
                (Field::Ip6Src, address.to_bits()),
                (Field::Icmp6Type, kind),
                (Field::Icmp6Code, code),
                (Field::Icmp6Rest, rest),
            ];
            let fields = [&both[..], &fields].concat();
            build_new(packet, Shape::Icmp6, true, &fields, NewPayload::Quote(QUOTE6))
        }
    }?;
    error.backward = false;
    Some(error)
}
