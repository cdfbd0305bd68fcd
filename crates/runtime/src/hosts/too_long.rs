//! Packets that are longer than a device allows: ICMP errors about them (RFC 1191, RFC 8201), and
//! fragments of IPv4 packets (RFC 791).

use super::messages::{is_host_address, mac_number};
use braid_packet::build::{NewPayload, Shape, build_new};
use braid_packet::checksum::rfc1071;
use braid_packet::{Field, Header, Link, Packet};
use std::net::IpAddr;

/// The length of an Ethernet header.
pub(super) const ETHERNET: usize = 14;

/// Offsets in an IPv4 header.
const TOTAL: usize = 2;
const FRAGMENT: usize = 6;
const CHECKSUM: usize = 10;
/// The length of an IPv4 header without options.
const HEADER: usize = 20;

/// Flags beside an IPv4 fragment's offset.
const DF: u16 = 0x4000;
const MF: u16 = 0x2000;
/// The bits of the offset, in units of 8 bytes.
const OFFSET: u16 = 0x1fff;

/// The TOS of ICMP errors (RFC 1812 4.3.2.5).
const INTERNETWORK_CONTROL: u128 = 0xc0;

/// The bytes that an error quotes at most. So it has at most 576 bytes, or 1280 for IPv6.
const QUOTE: u16 = 548;
const QUOTE6: u16 = 1232;

/// The error about a packet that left by an interface and is too long for its device. It comes from
/// the interface's address to the packet's source, and enters the chain where the packet left it.
/// `None` if nobody may be told: about an error, a later fragment, a packet to or from several hosts
/// (RFC 1812 4.3.2.7, RFC 4443 2.4).
pub(super) fn error(packet: &Packet, own: (IpAddr, [u8; 6]), mtu: u32) -> Option<Packet> {
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
    let mtu = u128::from(mtu);
    let both = [(Field::EthDst, mac_number(mac)), (Field::EthSrc, mac_number(mac))];
    let mut error = match address {
        IpAddr::V4(address) => {
            let fields = [
                (Field::IpSrc, u128::from(address.to_bits())),
                (Field::IpTos, INTERNETWORK_CONTROL),
                (Field::IcmpType, 3),
                (Field::IcmpCode, 4),
                (Field::IcmpRest, mtu.min(0xffff)),
            ];
            let fields = [&both[..], &fields].concat();
            build_new(packet, Shape::Icmp, true, &fields, NewPayload::Quote(QUOTE))
        }
        IpAddr::V6(address) => {
            let fields = [
                (Field::Ip6Src, address.to_bits()),
                (Field::Icmp6Type, 2),
                (Field::Icmp6Rest, mtu),
            ];
            let fields = [&both[..], &fields].concat();
            build_new(packet, Shape::Icmp6, true, &fields, NewPayload::Quote(QUOTE6))
        }
    }?;
    error.backward = false;
    Some(error)
}

/// Whether a packet is IPv4 and may be fragmented.
pub(super) fn may_fragment(packet: &Packet) -> bool {
    let layout = packet.parse();
    layout.has(Header::Ip4) && packet.get(&layout, Field::IpDf) == Some(0)
}

/// Shortens a packet, which may be fragmented, to its first fragment. Gives each other fragment to
/// `more`, as a whole frame. Does nothing if the MTU leaves no room.
pub(super) fn fragment(packet: &mut Packet, mtu: usize, mut more: impl FnMut(&[u8])) {
    let layout = packet.parse();
    let get = |field| packet.get(&layout, field).and_then(|value| usize::try_from(value).ok());
    let (Some(header_len), Some(total)) = (get(Field::IpHlen), get(Field::IpLen)) else { return };
    let data = packet.data().to_vec();
    let Some((start, ip)) = data.get(..ETHERNET + total).and_then(|d| d.split_at_checked(ETHERNET))
    else {
        return;
    };
    let Some((header, mut body)) = ip.split_at_checked(header_len) else { return };
    let (Some(room), true) = (room(mtu, header_len), header_len >= HEADER) else { return };
    if total <= mtu {
        return;
    }
    let field = u16::from_be_bytes([header[FRAGMENT], header[FRAGMENT + 1]]);
    let (rest, mut offset) = (field & MF, usize::from(field & OFFSET) * 8);
    let later = later_header(header);
    let mut frames = Vec::new();
    while !body.is_empty() {
        let header = if frames.is_empty() { header } else { &later };
        let room = if frames.is_empty() { room } else { mtu.saturating_sub(header.len()) & !7 };
        let (now, then) = body.split_at(room.min(body.len()));
        let more = if then.is_empty() { rest } else { MF };
        frames.push([start, &fragment_header(header, now.len(), offset, more), now].concat());
        (body, offset) = (then, offset + now.len());
    }
    frames.iter().skip(1).for_each(|frame| more(frame));
    if let Some(first) = frames.into_iter().next() {
        let mut made = Packet::new(Link::Ethernet, packet.time_ns, first);
        made.ingress = packet.ingress;
        *packet = made;
    }
}

/// The room for data in a fragment behind a header. Fragments but the last one have a multiple of 8
/// bytes.
fn room(mtu: usize, header_len: usize) -> Option<usize> {
    Some(mtu.checked_sub(header_len)? & !7).filter(|room| *room > 0)
}

/// The header of later fragments: only some options are copied to it.
fn later_header(header: &[u8]) -> Vec<u8> {
    let (fixed, mut options) = header.split_at(HEADER.min(header.len()));
    let mut later = fixed.to_vec();
    while let [kind, rest @ ..] = options {
        let len = match (kind, rest) {
            (0, _) => break,
            (1, _) => 1,
            (_, [len, ..]) => usize::from(*len).max(2),
            (_, []) => break,
        };
        let Some((option, behind)) = options.split_at_checked(len) else { break };
        if kind & 0x80 != 0 {
            later.extend(option);
        }
        options = behind;
    }
    later.resize(later.len().next_multiple_of(4), 0);
    later
}

/// A header with a fragment's lengths, offset and checksum.
fn fragment_header(header: &[u8], body: usize, offset: usize, more: u16) -> Vec<u8> {
    let mut header = header.to_vec();
    let number = |value: usize| u16::try_from(value).unwrap_or(u16::MAX);
    let words = u8::try_from(header.len() / 4).unwrap_or(15);
    header[0] = 0x40 | words;
    let field = number(offset / 8) & OFFSET & !DF | more;
    let total = number(header.len() + body);
    for (at, value) in [(TOTAL, total), (FRAGMENT, field), (CHECKSUM, 0)] {
        header[at..at + 2].copy_from_slice(&value.to_be_bytes());
    }
    let checksum = rfc1071(&header);
    header[CHECKSUM..CHECKSUM + 2].copy_from_slice(&checksum.to_be_bytes());
    header
}
