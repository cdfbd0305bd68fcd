//! IPv4 with options (RFC 791).

use super::ether_type;
use crate::declare::{
    Address, Behind, Bits, Cover, Declaration, Outer, Own, Parse, Parts, Show, Where, bits, bytes,
    ro, rw,
};
use crate::layout::{Fragment, Layout, Network};
use crate::malformed::Malformed;
use crate::names::{Base, Field, Header};
use crate::window::{Stop, Window, be16};

/// Offset of the type of service.
pub(crate) const TOS: usize = 1;
/// Offset of the total length.
pub(crate) const TOTAL: usize = 2;
/// Offset of the identification.
pub(crate) const ID: usize = 4;
/// Offset of flags and fragment offset.
pub(crate) const FRAGMENT: usize = 6;
/// Offset of the time to live.
pub(crate) const TTL: usize = 8;
/// Offset of the protocol.
pub(crate) const PROTO: usize = 9;
/// Offset of the header checksum.
pub(crate) const CHECKSUM: usize = 10;
/// Offset of the source address.
pub(crate) const SRC: usize = 12;
/// Offset of the destination address.
pub(crate) const DST: usize = 16;
/// Length of the header without options.
pub(crate) const LEN: usize = 20;

/// The header's length in words.
const LENGTH: Bits = Bits { offset: 0, len: 1, shift: 0, width: 4 };

const MORE_FRAGMENTS: u16 = 0x2000;
const OFFSET_MASK: u16 = 0x1fff;
const LOOSE_SOURCE_ROUTE: u8 = 131;
const STRICT_SOURCE_ROUTE: u8 = 137;

/// Outermost IPv4 header.
pub(crate) const IP4: Declaration = Declaration {
    follows: &[(Field::EthType, &[ether_type::IPV4])],
    at: (Base::Ip, 0),
    parse: Parse::Own(Own(parse)),
    // An authentication header does not change which headers may follow.
    parts: Parts::Any(&[Header::Ah]),
    sum: Cover::Ip4,
    takes_declared: true,
    outer: Some(Outer {
        behind: &[Header::Eth],
        announces: Some(Field::IpProto),
        required: &[Field::IpSrc, Field::IpDst],
        defaults: &[(Field::IpTtl, 64)],
        ..Outer::of(LEN)
    }),
    fields: &[
        rw(Field::IpSrc, "ip.src", 32, bytes(SRC, 4), "IPv4 source address.")
            .address(Address::Src, Show::Ip4)
            .of_flow(),
        rw(Field::IpDst, "ip.dst", 32, bytes(DST, 4), "IPv4 destination address.")
            .address(Address::Dst, Show::Ip4)
            .of_flow(),
        ro(Field::IpProto, "ip.proto", 8, bytes(PROTO, 1), "IPv4 protocol.").of_flow(),
        rw(Field::IpTtl, "ip.ttl", 8, bytes(TTL, 1), "IPv4 time to live."),
        rw(Field::IpTos, "ip.tos", 8, bytes(TOS, 1), "IPv4 type of service byte.")
            .shown(Show::Hex(2)),
        rw(
            Field::IpDscp,
            "ip.dscp",
            6,
            Where::Part(Field::IpTos, 2),
            "IPv4 differentiated services code point.",
        ),
        rw(
            Field::IpEcn,
            "ip.ecn",
            2,
            Where::Part(Field::IpTos, 0),
            "IPv4 explicit congestion notification bits.",
        ),
        rw(Field::IpId, "ip.id", 16, bytes(ID, 2), "IPv4 identification."),
        rw(Field::IpDf, "ip.df", 1, bits(FRAGMENT, 2, 14, 1), "IPv4 don't fragment flag."),
        ro(Field::IpMf, "ip.mf", 1, bits(FRAGMENT, 2, 13, 1), "IPv4 more fragments flag."),
        ro(
            Field::IpFrag,
            "ip.frag",
            13,
            bits(FRAGMENT, 2, 0, 13),
            "IPv4 fragment offset in units of 8 bytes.",
        ),
        ro(Field::IpLen, "ip.len", 16, bytes(TOTAL, 2), "IPv4 total length in bytes.")
            .counts_payload(),
        ro(
            Field::IpHlen,
            "ip.hlen",
            8,
            Where::Words(LENGTH),
            "IPv4 header length in bytes, options included.",
        ),
        ro(Field::IpChecksum, "ip.checksum", 16, bytes(CHECKSUM, 2), "IPv4 header checksum.")
            .shown(Show::Hex(4)),
    ],
    ..Declaration::new(Header::Ip4, "ip", &[Header::Inet])
};

fn parse<'a>(layout: &mut Layout, window: Window<'a>) -> Result<Behind<'a>, Stop> {
    let ip = check(window)?;
    layout.add(Header::Ip4);
    let Ipv4 { proto, fragment, pseudo_dst, rest } = ip;
    layout.network(window, Network { proto, fragment, pseudo_dst, jumbo: false }, rest);
    Ok((!fragment.later).then_some((Field::IpProto, proto.into(), rest)))
}

/// A checked header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ipv4<'a> {
    pub(crate) proto: u8,
    pub(crate) fragment: Fragment,
    /// Absolute offset of the destination address in the pseudo header: the packet's destination,
    /// or the last hop of a source route that is not used up (RFC 9293 §3.1, RFC 791).
    pub(crate) pseudo_dst: usize,
    /// The IP payload, without the bytes behind the total length.
    pub(crate) rest: Window<'a>,
}

/// Checks a header against the bytes on the wire.
pub(crate) fn check(window: Window<'_>) -> Result<Ipv4<'_>, Stop> {
    let header = header(window, Malformed::IpShort)?;
    let total = usize::from(be16(header[TOTAL], header[TOTAL + 1]));
    if total < header_len(header) || total > window.wire() {
        return Err(Stop::Bad(Malformed::IpTotalLength));
    }
    finish(window.limit(total), header)
}

/// Checks a header that an ICMP error quotes. The total length does not describe the quote.
pub(crate) fn check_quoted(window: Window<'_>) -> Result<Ipv4<'_>, Stop> {
    finish(window, header(window, Malformed::IpShort)?)
}

/// The fixed part of the header. Version and header length are checked against the bytes on the
/// wire.
fn header(window: Window<'_>, short: Malformed) -> Result<&[u8; LEN], Stop> {
    let header = window.fixed::<LEN>(short)?;
    if header[0] >> 4 != 4 {
        return Err(Stop::Bad(Malformed::IpVersion));
    }
    let len = header_len(header);
    if len < LEN || len > window.wire() {
        return Err(Stop::Bad(Malformed::IpHeaderLength));
    }
    Ok(header)
}

fn header_len(header: &[u8; LEN]) -> usize {
    usize::from(header[0] & 15) * 4
}

/// Makes the remaining checks, for a window that ends where the packet ends.
fn finish<'a>(window: Window<'a>, header: &[u8; LEN]) -> Result<Ipv4<'a>, Stop> {
    let len = header_len(header);
    let options = window.skip(LEN).first(len - LEN, Malformed::IpHeaderLength)?;
    let pseudo_dst = window.at() + final_dst(options)?.map_or(DST, |offset| LEN + offset);
    let word = be16(header[FRAGMENT], header[FRAGMENT + 1]);
    let later = word & OFFSET_MASK != 0;
    let fragment = Fragment { any: later || word & MORE_FRAGMENTS != 0, later };
    Ok(Ipv4 { proto: header[PROTO], fragment, pseudo_dst, rest: window.skip(len) })
}

/// The offset in a packet of the value of the first option of a kind, and its length. `None` if the
/// packet, which was checked, has none.
pub(crate) fn option(ip: &[u8], kind: u8) -> Option<(usize, usize)> {
    let options = ip.get(..header_len(ip.first_chunk()?))?;
    let mut at = LEN;
    while let Some(&found) = options.get(at) {
        match found {
            0 => break,
            1 => at += 1,
            _ => {
                let len = usize::from(*options.get(at + 1)?);
                if found == kind {
                    return Some((at + 2, len.checked_sub(2)?));
                }
                at += len.max(1);
            }
        }
    }
    None
}

/// Parses the options. Returns the offset of a pending source route's last address, if any.
fn final_dst(options: &[u8]) -> Result<Option<usize>, Stop> {
    let mut found = None;
    let mut at = 0;
    while let Some(&kind) = options.get(at) {
        match kind {
            0 => break,
            1 => at += 1,
            _ => {
                let len = options.get(at + 1).map_or(0, |len| usize::from(*len));
                if len < 2 || at + len > options.len() {
                    return Err(Stop::Bad(Malformed::IpOptions));
                }
                let route = matches!(kind, LOOSE_SOURCE_ROUTE | STRICT_SOURCE_ROUTE);
                let pending = options.get(at + 2).is_some_and(|at| usize::from(*at) <= len);
                if route && len >= 7 && pending {
                    found = Some(at + len - 4);
                }
                at += len;
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(ihl: u8, total: u16, options: &[u8]) -> Vec<u8> {
        let mut data =
            vec![0x40 | ihl, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        data[2..4].copy_from_slice(&total.to_be_bytes());
        data.extend(options);
        data
    }

    fn bad(data: &[u8], wire: usize) -> Stop {
        check(Window::new(data, wire)).unwrap_err()
    }

    #[test]
    fn header_length_out_of_range_is_malformed() {
        assert_eq!(bad(&header(4, 20, &[]), 20), Stop::Bad(Malformed::IpHeaderLength));
        assert_eq!(bad(&header(6, 20, &[]), 20), Stop::Bad(Malformed::IpHeaderLength));
    }

    #[test]
    fn total_length_out_of_range_is_malformed() {
        assert_eq!(bad(&header(5, 19, &[]), 20), Stop::Bad(Malformed::IpTotalLength));
        assert_eq!(bad(&header(5, 21, &[]), 20), Stop::Bad(Malformed::IpTotalLength));
        assert_eq!(bad(&header(6, 20, &[1, 1, 1, 1]), 24), Stop::Bad(Malformed::IpTotalLength));
        assert!(check(Window::new(&header(5, 21, &[]), 21)).is_ok());
    }

    #[test]
    fn padding_behind_total_length_is_left_out() {
        let ip = header(5, 22, &[7, 8, 9]);
        assert_eq!(check(Window::new(&ip, 23)).unwrap().rest.bytes(), &[7, 8]);
    }

    #[test]
    fn option_over_the_header_end_is_malformed() {
        assert_eq!(bad(&header(6, 24, &[7, 5, 0, 0]), 24), Stop::Bad(Malformed::IpOptions));
        assert_eq!(bad(&header(6, 24, &[7, 1, 0, 0]), 24), Stop::Bad(Malformed::IpOptions));
        assert_eq!(bad(&header(6, 24, &[1, 1, 1, 7]), 24), Stop::Bad(Malformed::IpOptions));
        assert!(check(Window::new(&header(6, 24, &[0, 7, 99, 1]), 24)).is_ok());
    }

    #[test]
    fn options_beyond_the_capture_are_cut() {
        assert_eq!(bad(&header(6, 24, &[]), 24), Stop::Cut);
    }

    #[test]
    fn pending_source_route_moves_the_pseudo_destination() {
        let pending = [131, 7, 4, 9, 9, 9, 9, 0];
        let used_up = [131, 7, 8, 9, 9, 9, 9, 0];
        let at =
            |options: &[u8]| check(Window::new(&header(7, 28, options), 28)).unwrap().pseudo_dst;
        assert_eq!((at(&pending), at(&used_up)), (23, 16));
    }

    #[test]
    fn fragments_are_told_apart() {
        let fragment = |word: u16| {
            let mut data = header(5, 20, &[]);
            data[6..8].copy_from_slice(&word.to_be_bytes());
            let fragment = check(Window::new(&data, 20)).unwrap().fragment;
            (fragment.any, fragment.later)
        };
        assert_eq!(fragment(0x4000), (false, false));
        assert_eq!(fragment(0x2000), (true, false));
        assert_eq!(fragment(0x2001), (true, true));
        assert_eq!(fragment(0x0001), (true, true));
    }
}
