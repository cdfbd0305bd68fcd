//! IPv6 and its extension headers (RFC 8200), jumbograms included (RFC 2675).

use super::{ether_type, ipsec, proto};
use crate::declare::{
    Address, Behind, Cover, Declaration, Outer, Own, Parse, Parts, Show, Where, bits, bytes, ro, rw,
};
use crate::layout::{Fragment, Layout, Network};
use crate::malformed::Malformed;
use crate::names::{Base, Field, Header};
use crate::window::{Stop, Window, be16};

/// Offset of the payload length.
pub(crate) const PAYLOAD: usize = 4;
/// Offset of the next header.
pub(crate) const NEXT: usize = 6;
/// Offset of the hop limit.
pub(crate) const TTL: usize = 7;
/// Offset of the source address.
pub(crate) const SRC: usize = 8;
/// Offset of the destination address.
pub(crate) const DST: usize = 24;
/// Length of the fixed header.
pub(crate) const LEN: usize = 40;

/// The most extension headers that are parsed.
const MAX_EXTENSIONS: usize = 16;
const JUMBO_OPTION: u8 = 0xc2;

/// Outermost IPv6 header.
pub(crate) const IP6: Declaration = Declaration {
    follows: &[(Field::EthType, &[ether_type::IPV6])],
    at: (Base::Ip, 0),
    parse: Parse::Own(Own(parse)),
    // An authentication header does not change which headers may follow.
    parts: Parts::Any(&[Header::Ah]),
    sum: Cover::Ip6,
    takes_declared: true,
    outer: Some(Outer {
        behind: &[Header::Eth],
        announces: Some(Field::Ip6Next),
        required: &[Field::Ip6Src, Field::Ip6Dst],
        defaults: &[(Field::Ip6Ttl, 64)],
        ..Outer::of(LEN)
    }),
    fields: &[
        rw(Field::Ip6Src, "ip6.src", 128, bytes(SRC, 16), "IPv6 source address.")
            .address(Address::Src, Show::Ip6)
            .of_flow(),
        rw(Field::Ip6Dst, "ip6.dst", 128, bytes(DST, 16), "IPv6 destination address.")
            .address(Address::Dst, Show::Ip6)
            .of_flow(),
        ro(
            Field::Ip6Next,
            "ip6.next",
            8,
            bytes(NEXT, 1),
            "Next header field of the fixed IPv6 header.",
        )
        .of_flow(),
        ro(
            Field::Ip6Proto,
            "ip6.proto",
            8,
            Where::Computed,
            "Protocol behind the IPv6 extension headers.",
        )
        .of_flow(),
        rw(Field::Ip6Ttl, "ip6.ttl", 8, bytes(TTL, 1), "IPv6 hop limit."),
        rw(Field::Ip6Tc, "ip6.tc", 8, bits(0, 4, 20, 8), "IPv6 traffic class.").shown(Show::Hex(2)),
        rw(Field::Ip6Flow, "ip6.flow", 20, bits(0, 4, 0, 20), "IPv6 flow label."),
        ro(Field::Ip6Len, "ip6.len", 16, bytes(PAYLOAD, 2), "IPv6 payload length in bytes.")
            .counts_payload(),
    ],
    ..Declaration::new(Header::Ip6, "ip6", &[Header::Inet])
};

fn parse<'a>(layout: &mut Layout, window: Window<'a>) -> Result<Behind<'a>, Stop> {
    let ip = check(window)?;
    layout.add(Header::Ip6);
    let Ipv6 { proto, fragment, pseudo_dst, jumbo, rest, ah } = ip;
    layout.network(window, Network { proto, fragment, pseudo_dst, jumbo }, rest);
    if let Some(at) = ah {
        layout.authenticated(at, rest);
    }
    Ok((!fragment.later).then_some((Field::Ip6Proto, proto.into(), rest)))
}

/// A checked header with its extension headers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ipv6<'a> {
    /// Protocol behind the extension headers.
    pub(crate) proto: u8,
    pub(crate) fragment: Fragment,
    /// Absolute offset of the first authentication header.
    pub(crate) ah: Option<usize>,
    /// Absolute offset of the destination address in the pseudo header: the packet's destination,
    /// or the final address of a routing header with segments left (RFC 8200 §8.1).
    pub(crate) pseudo_dst: usize,
    /// Whether a jumbo payload option holds the packet's length.
    pub(crate) jumbo: bool,
    /// The bytes behind the extension headers.
    pub(crate) rest: Window<'a>,
}

/// Checks a header and its extensions against the bytes on the wire.
pub(crate) fn check(window: Window<'_>) -> Result<Ipv6<'_>, Stop> {
    let header = fixed(window)?;
    let mut payload = usize::from(be16(header[PAYLOAD], header[PAYLOAD + 1]));
    let mut jumbo = false;
    if payload == 0 && header[NEXT] == proto::HOP_BY_HOP {
        (payload, jumbo) = jumbo_length(window.skip(LEN))?.map_or((0, false), |len| (len, true));
    }
    if payload > window.wire() - LEN {
        return Err(Stop::Bad(Malformed::Ip6PayloadLength));
    }
    let ip = walk(window, header[NEXT], window.skip(LEN).limit(payload))?;
    Ok(Ipv6 { jumbo, ..ip })
}

/// Checks a header that an ICMPv6 error quotes. The payload length does not describe the quote.
pub(crate) fn check_quoted(window: Window<'_>) -> Result<Ipv6<'_>, Stop> {
    let header = fixed(window)?;
    walk(window, header[NEXT], window.skip(LEN))
}

fn fixed(window: Window<'_>) -> Result<&[u8; LEN], Stop> {
    let header = window.fixed::<LEN>(Malformed::IpShort)?;
    if header[0] >> 4 != 6 {
        return Err(Stop::Bad(Malformed::IpVersion));
    }
    Ok(header)
}

/// Parses the extension headers in `rest`, up to the fragment header of a later fragment.
fn walk<'a>(ip: Window<'a>, next: u8, rest: Window<'a>) -> Result<Ipv6<'a>, Stop> {
    let mut seen = Ipv6 {
        proto: next,
        fragment: Fragment::default(),
        ah: None,
        pseudo_dst: ip.at() + DST,
        jumbo: false,
        rest,
    };
    for _ in 0..MAX_EXTENSIONS {
        if !is_extension(seen.proto) || seen.fragment.later {
            return Ok(seen);
        }
        seen.step()?;
    }
    if is_extension(seen.proto) && !seen.fragment.later {
        return Err(Stop::Bad(Malformed::Ip6ExtensionDepth));
    }
    Ok(seen)
}

fn is_extension(next: u8) -> bool {
    matches!(next, proto::FRAGMENT | proto::AH) || proto::EXTENSIONS.contains(&next)
}

impl Ipv6<'_> {
    /// Parses one extension header and removes it from `rest`.
    fn step(&mut self) -> Result<(), Stop> {
        let window = self.rest;
        if self.proto == proto::AH {
            self.ah = self.ah.or(Some(window.at()));
            (self.proto, self.rest) = ipsec::check_ah(window)?;
            return Ok(());
        }
        let header = window.fixed::<8>(Malformed::Ip6ExtensionLength)?;
        let mut len = 8;
        match self.proto {
            proto::FRAGMENT => {
                let word = be16(header[2], header[3]);
                self.fragment.later |= word >> 3 != 0;
                // Offset 0 without more fragments is an atomic fragment: a whole packet (RFC 6946).
                self.fragment.any |= word & 0xfff9 != 0;
            }
            kind => {
                len += usize::from(header[1]) * 8;
                let whole = window.first(len, Malformed::Ip6ExtensionLength)?;
                if kind == proto::ROUTING
                    && let Some(offset) = final_dst(whole)
                {
                    self.pseudo_dst = window.at() + offset;
                }
            }
        }
        self.proto = header[0];
        self.rest = window.skip(len);
        Ok(())
    }
}

/// The place of the fragment header in an IPv6 packet, from the IP header on. `None` if it has
/// none.
#[must_use]
pub fn fragment_header(ip: &[u8]) -> Option<usize> {
    extension(ip, proto::FRAGMENT).map(|(behind, _)| behind - 2)
}

/// The offset in a packet of the first extension header with a protocol number, behind its first
/// two bytes, and the number of bytes from there on. `None` if the packet, which was checked, has
/// none.
pub(crate) fn extension(ip: &[u8], kind: u8) -> Option<(usize, usize)> {
    let (mut next, mut at) = (*ip.get(NEXT)?, LEN);
    for _ in 0..MAX_EXTENSIONS {
        if !is_extension(next) {
            return None;
        }
        let &[behind, units, high, low, ..] = ip.get(at..)? else { return None };
        let len = match next {
            proto::AH => 4 * (usize::from(units) + 2),
            proto::FRAGMENT => 8,
            _ => 8 * (usize::from(units) + 1),
        };
        if next == kind {
            return Some((at + 2, len - 2));
        }
        // Behind the fragment header of a later fragment are no headers.
        if next == proto::FRAGMENT && be16(high, low) >> 3 != 0 {
            return None;
        }
        (next, at) = (behind, at + len);
    }
    None
}

/// Offset of the final destination in a routing header with segments left: the last address of
/// types 0 and 2, or the first segment of type 4 (RFC 8754).
fn final_dst(header: &[u8]) -> Option<usize> {
    let (&[_, _, kind, left, ..], rest) = header.split_first_chunk::<8>()?;
    let addresses = rest.len() / 16;
    if left == 0 || addresses == 0 {
        return None;
    }
    match kind {
        0 | 2 => Some(8 + (addresses - 1) * 16),
        4 => Some(8),
        _ => None,
    }
}

/// The length in a jumbo payload option of the hop-by-hop header, if there is one.
fn jumbo_length(window: Window<'_>) -> Result<Option<usize>, Stop> {
    let header = window.fixed::<8>(Malformed::Ip6ExtensionLength)?;
    let len = 8 + usize::from(header[1]) * 8;
    let whole = window.first(len, Malformed::Ip6ExtensionLength)?;
    let mut at = 2;
    while let Some(&kind) = whole.get(at) {
        if kind == 0 {
            at += 1;
            continue;
        }
        let Some(&len) = whole.get(at + 1) else { break };
        if kind == JUMBO_OPTION && len == 4 {
            let value = whole.get(at + 2..).and_then(|tail| tail.first_chunk::<4>());
            let length = value.map(|value| u32::from_be_bytes(*value));
            return Ok(length.and_then(|length| usize::try_from(length).ok()));
        }
        at += 2 + usize::from(len);
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet: a fixed header with this payload length and next header, then `rest`.
    fn packet(payload: u16, next: u8, rest: &[u8]) -> Vec<u8> {
        let mut data = vec![0; 40];
        data[0] = 0x60;
        data[4..6].copy_from_slice(&payload.to_be_bytes());
        data[6] = next;
        data.extend(rest);
        data
    }

    fn stop(data: &[u8]) -> Stop {
        check(Window::new(data, data.len())).unwrap_err()
    }

    #[test]
    fn payload_length_beyond_the_wire_is_malformed() {
        assert_eq!(stop(&packet(1, 59, &[])), Stop::Bad(Malformed::Ip6PayloadLength));
        let data = packet(1, 59, &[7, 8]);
        assert_eq!(check(Window::new(&data, 42)).unwrap().rest.bytes(), &[7]);
    }

    #[test]
    fn routing_header_with_segments_left_moves_the_pseudo_destination() {
        let at = |kind: u8, left: u8| {
            let mut rest = vec![0; 40];
            rest[..4].copy_from_slice(&[59, 4, kind, left]);
            let data = packet(40, proto::ROUTING, &rest);
            check(Window::new(&data, 80)).unwrap().pseudo_dst
        };
        assert_eq!((at(0, 0), at(0, 1), at(4, 1), at(3, 1)), (24, 40 + 24, 40 + 8, 24));
    }

    #[test]
    fn jumbo_length_must_be_on_the_wire() {
        let hop = [59, 0, JUMBO_OPTION, 4, 0, 0, 0, 9];
        assert_eq!(stop(&packet(0, 0, &hop)), Stop::Bad(Malformed::Ip6PayloadLength));
        let data = packet(0, 0, &[&hop[..], &[7]].concat());
        let ip = check(Window::new(&data, 49)).unwrap();
        assert_eq!((ip.jumbo, ip.rest.bytes()), (true, &[7u8][..]));
    }

    #[test]
    fn zero_length_without_jumbo_option_is_malformed() {
        let hop = [59, 0, 1, 4, 0, 0, 0, 0];
        assert_eq!(stop(&packet(0, 0, &hop)), Stop::Bad(Malformed::Ip6ExtensionLength));
        assert!(check(Window::new(&packet(0, 59, &[]), 40)).is_ok());
    }

    #[test]
    fn extension_header_beyond_the_capture_is_cut() {
        let data = packet(8, 60, &[59, 0, 1]);
        assert_eq!(check(Window::new(&data, 48)).unwrap_err(), Stop::Cut);
    }
}
