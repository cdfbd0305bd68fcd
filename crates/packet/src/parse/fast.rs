//! Parses the most common packets in one step: TCP or UDP in a whole IPv4 or IPv6 packet, behind an
//! Ethernet header with at most one tag. The packets have no options except TCP timestamps in their
//! usual alignment. Where a UDP port announces a header, such as that of a tunnel, the general
//! parser goes on.
//!
//! The general parser is the definition. This one gives the same layout for these packets and
//! leaves all others to the general one.
#![expect(
    clippy::indexing_slicing,
    reason = "the indices are offsets in headers whose constant length was checked"
)]
#![expect(
    clippy::cast_possible_truncation,
    reason = "headers begin below byte 128, and a packet ends one 16-bit length behind them"
)]

use crate::field::is_announced_port;
use crate::layout::{Fragment, Layout, Quote, SumKind, long, words};
use crate::names::Header;
use crate::window::be16;
use crate::wire::{ether_type, ethernet, ipv4, ipv6, proto, tcp, udp, vlan};

/// The fewest bytes behind a link header: IPv4 and UDP.
const LEAST: usize = ipv4::LEN + udp::LEN;
/// Version 4 and a header of five words.
const VERSION_AND_LENGTH: u8 = 0x45;
/// The bits for "more fragments" and for the fragment offset.
const FRAGMENTED: u16 = 0x3fff;
/// Two no-operation options, then the kind and length of timestamps: the alignment that all large
/// systems use.
const TIMESTAMPS: [u8; 4] = [1, 1, 8, 10];
/// Length of a TCP header with only the timestamps.
const STAMPED_LEN: usize = tcp::LEN + 12;

const fn bits(headers: &[Header]) -> u128 {
    let mut all = 0;
    let mut at = 0;
    while at < headers.len() {
        all |= headers[at].bit();
        at += 1;
    }
    all
}

const INET: u128 = bits(&[Header::Pkt, Header::Eth, Header::Inet, Header::L4]);
const VLAN: u128 = bits(&[Header::Vlan]);
const IP4: u128 = INET | bits(&[Header::Ip4]);
const IP6: u128 = INET | bits(&[Header::Ip6]);
const TCP: u128 = bits(&[Header::Tcp]);
const STAMPED: u128 = bits(&[Header::Tcp, Header::TcpTs]);
const UDP: u128 = bits(&[Header::Udp]);

/// The findings of the fast parser behind the IP header.
struct Transport {
    present: u128,
    payload: usize,
    payload_end: usize,
    sum: SumKind,
    sum_at: usize,
    ts: usize,
}

/// Fills `layout` for a packet of `wire` bytes (at least the length of `data`). Returns the UDP
/// port that announces a header behind UDP: the caller parses on from there. Returns 0 if no port
/// does. Returns `None`, and changes nothing, if the packet is not of a kind that this parser
/// handles.
///
/// The function is inlined and writes the layout in place. Copying a layout right after parts of it
/// were written takes longer than making it.
#[inline(always)]
pub(super) fn parse(layout: &mut Layout, data: &[u8], wire: usize) -> Option<u16> {
    plainest(layout, data, wire).or_else(|| plain(layout, data, wire))
}

/// Offsets of IPv4 and of the transport header in a packet without tags and options.
const IP: usize = ethernet::LEN;
const L4: usize = IP + ipv4::LEN;

/// Parses IPv4 without tags and options. Everything but lengths is at a constant offset.
#[inline(always)]
fn plainest(layout: &mut Layout, data: &[u8], wire: usize) -> Option<u16> {
    let head = data.first_chunk::<{ L4 + udp::LEN }>()?;
    let word = |at: usize| be16(head[at], head[at + 1]);
    let is_plain = word(ethernet::TYPE) == ether_type::IPV4
        && head[IP] == VERSION_AND_LENGTH
        && word(IP + ipv4::FRAGMENT) & FRAGMENTED == 0;
    let end = IP + usize::from(word(IP + ipv4::TOTAL));
    if !is_plain || end > wire {
        return None;
    }
    let captured = end.min(data.len());
    let (payload_end, port) = match head[IP + ipv4::PROTO] {
        proto::TCP => {
            let offset = data.get(L4 + tcp::DATA_OFFSET)?;
            if captured < L4 + tcp::LEN || offset >> 4 != 5 {
                return None;
            }
            *layout = TCP4;
            (end, 0)
        }
        proto::UDP => {
            let payload_end = L4 + usize::from(word(L4 + udp::LENGTH));
            let is_whole = captured >= L4 + udp::LEN && payload_end >= L4 + udp::LEN;
            if !is_whole || payload_end > end {
                return None;
            }
            *layout = UDP4;
            (payload_end, announced(word(L4 + 2)))
        }
        _ => return None,
    };
    layout.captured = long(data.len());
    layout.payload_end = payload_end as u32;
    layout.ip_end = end as u32;
    Some(port)
}

/// The port if it announces a header, otherwise 0.
#[inline(always)]
fn announced(port: u16) -> u16 {
    if is_announced_port(port) { port } else { 0 }
}

/// The parts of the layout that all packets of [`plainest`] share.
const PLAINEST: Layout = Layout {
    ether_type: ether_type::IPV4,
    ether_type_at: ethernet::TYPE as u16,
    ip: IP as u16,
    pseudo_dst: (IP + ipv4::DST) as u16,
    l4: L4 as u16,
    plain: true,
    ..PLAIN
};
const TCP4: Layout = Layout {
    present: words(IP4 | TCP),
    payload: (L4 + tcp::LEN) as u32,
    sum_at: (L4 + tcp::CHECKSUM) as u16,
    sum: Some(SumKind::Tcp),
    proto: proto::TCP,
    ..PLAINEST
};
const UDP4: Layout = Layout {
    present: words(IP4 | UDP),
    payload: (L4 + udp::LEN) as u32,
    sum_at: (L4 + udp::CHECKSUM) as u16,
    sum: Some(SumKind::Udp),
    proto: proto::UDP,
    ..PLAINEST
};

/// Parses the other packets: with a tag or with IPv6.
#[inline(never)]
fn plain(layout: &mut Layout, data: &[u8], wire: usize) -> Option<u16> {
    let link = data.first_chunk::<{ ethernet::LEN + vlan::LEN }>()?;
    let mut ether_type_at = ethernet::TYPE;
    let mut tagged = 0;
    if be16(link[ethernet::TYPE], link[ethernet::TYPE + 1]) == ether_type::VLAN {
        (ether_type_at, tagged) = (ethernet::TYPE + vlan::LEN, VLAN);
    }
    let ether_type = be16(link[ether_type_at], link[ether_type_at + 1]);
    let ip = ether_type_at + 2;
    let head = data.get(ip..)?.first_chunk::<LEAST>()?;
    let (present, header, end, kind, pseudo_dst) = match ether_type {
        ether_type::IPV4 => {
            let total = be16(head[ipv4::TOTAL], head[ipv4::TOTAL + 1]);
            let word = be16(head[ipv4::FRAGMENT], head[ipv4::FRAGMENT + 1]);
            if head[0] != VERSION_AND_LENGTH || word & FRAGMENTED != 0 {
                return None;
            }
            (IP4, ipv4::LEN, ip + usize::from(total), head[ipv4::PROTO], ipv4::DST)
        }
        ether_type::IPV6 => {
            let payload = be16(head[ipv6::PAYLOAD], head[ipv6::PAYLOAD + 1]);
            if head[0] >> 4 != 6 {
                return None;
            }
            // With an extension header, the protocol is neither TCP nor UDP, so the match below
            // refuses it.
            (IP6, ipv6::LEN, ip + ipv6::LEN + usize::from(payload), head[ipv6::NEXT], ipv6::DST)
        }
        _ => return None,
    };
    let l4 = ip + header;
    if end > wire {
        return None;
    }
    let message = data.get(l4..end.min(data.len()))?;
    let behind = match kind {
        proto::TCP => tcp(message, l4, end)?,
        proto::UDP => udp(message, l4, end)?,
        _ => return None,
    };
    *layout = Layout {
        present: words(present | tagged | behind.present),
        captured: long(data.len()),
        payload: behind.payload as u32,
        payload_end: behind.payload_end as u32,
        ip_end: end as u32,
        ether_type,
        ether_type_at: ether_type_at as u16,
        ip: ip as u16,
        pseudo_dst: (ip + pseudo_dst) as u16,
        l4: l4 as u16,
        sum_at: behind.sum_at as u16,
        ts: behind.ts as u16,
        sum: Some(behind.sum),
        proto: kind,
        plain: (present, tagged) == (IP4, 0),
        ..PLAIN
    };
    Some(if kind == proto::UDP { announced(be16(message[2], message[3])) } else { 0 })
}

/// Parses a TCP header in the captured bytes of `message`. The packet ends at `end`.
#[inline(always)]
fn tcp(message: &[u8], l4: usize, end: usize) -> Option<Transport> {
    let header = message.first_chunk::<{ tcp::LEN }>()?;
    let plain = Transport {
        present: TCP,
        payload: l4 + tcp::LEN,
        payload_end: end,
        sum: SumKind::Tcp,
        sum_at: l4 + tcp::CHECKSUM,
        ts: 0,
    };
    match header[tcp::DATA_OFFSET] >> 4 {
        5 => Some(plain),
        8 => {
            let header = message.first_chunk::<STAMPED_LEN>()?;
            let is_stamped = header[tcp::LEN..].starts_with(&TIMESTAMPS);
            let (payload, ts) = (l4 + STAMPED_LEN, l4 + tcp::LEN + 2);
            is_stamped.then_some(Transport { present: STAMPED, payload, ts, ..plain })
        }
        _ => None,
    }
}

/// Parses a UDP header, with parameters as for [`tcp()`].
#[inline(always)]
fn udp(message: &[u8], l4: usize, end: usize) -> Option<Transport> {
    let header = message.first_chunk::<{ udp::LEN }>()?;
    let len = usize::from(be16(header[udp::LENGTH], header[udp::LENGTH + 1]));
    (len >= udp::LEN && len <= end - l4).then_some(Transport {
        present: UDP,
        payload: l4 + udp::LEN,
        payload_end: l4 + len,
        sum: SumKind::Udp,
        sum_at: l4 + udp::CHECKSUM,
        ts: 0,
    })
}

/// The parts of the layout that all these packets share.
const PLAIN: Layout = Layout {
    present: [0; 2],
    captured: 0,
    payload: 0,
    payload_end: 0,
    ip_end: 0,
    ether_type: 0,
    ether_type_at: 0,
    network: 0,
    ip: 0,
    pseudo_dst: 0,
    ah: 0,
    l4: 0,
    sum_at: 0,
    mss: 0,
    wscale: 0,
    ts: 0,
    gre_key: 0,
    gre_sum: 0,
    sum: None,
    plain: false,
    jumbo: false,
    proto: 0,
    fragment: Fragment { any: false, later: false },
    malformed: None,
    quote: Quote { ip: 0, l4: 0, pseudo_dst: 0, sum_at: 0, sum: None, proto: 0 },
};

#[cfg(test)]
mod tests {
    use super::super::{parse_any, parse_behind_udp};
    use super::*;
    use crate::build::{Shape, build_fresh};
    use crate::field::{DECLARATIONS, Field};
    use crate::link::Link;

    fn frames() -> Vec<Vec<u8>> {
        let build = |shape, payload: &[u8]| {
            build_fresh(Link::Ethernet, 0, shape, &[], payload).unwrap().data().to_vec()
        };
        let tagged = |frame: Vec<u8>| [&frame[..12], &[0x81, 0, 0x20, 5], &frame[12..]].concat();
        let stamps = [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
        let mut stamped = build(Shape::Tcp4, &[&stamps[..], b"abc"].concat());
        stamped[46] = 8 << 4;
        let mut padded = build(Shape::Udp4, b"abc");
        padded.extend([0; 15]);
        let tunnelled = |shape, port: u16, header: &[u8]| {
            let mut frame = build(shape, &[header, &build(Shape::Tcp4, b"abc")].concat());
            let at = if shape == Shape::Udp4 { 36 } else { 56 };
            frame[at..at + 2].copy_from_slice(&port.to_be_bytes());
            frame
        };
        let vxlan = [8, 0, 0, 0, 0, 0, 42, 0];
        vec![
            tunnelled(Shape::Udp4, 4789, &vxlan),
            tunnelled(Shape::Udp6, 4789, &vxlan),
            tagged(tunnelled(Shape::Udp4, 4789, &vxlan)),
            tunnelled(Shape::Udp4, 6081, &[1, 0, 0x65, 0x58, 0, 0, 42, 0, 0, 1, 0, 0]),
            build(Shape::Tcp4, b"abcdefgh"),
            build(Shape::Udp4, b"abcdefghi"),
            build(Shape::Tcp6, b"abcdefgh"),
            build(Shape::Udp6, b""),
            padded,
            tagged(build(Shape::Udp4, b"abc")),
            tagged(build(Shape::Tcp6, b"")),
            stamped,
        ]
    }

    /// Checks that the fast parser gives the general layout or leaves the packet alone. Returns
    /// whether it parsed the packet.
    fn agrees(data: &[u8], wire: usize) -> bool {
        let mut fast = Layout::default();
        let taken = parse(&mut fast, data, wire.max(data.len()));
        if let Some(port @ 1..) = taken {
            parse_behind_udp(&mut fast, data, port);
        }
        let general = parse_any(Link::Ethernet, data, wire as u32);
        let expected = if taken.is_some() { general } else { Layout::default() };
        assert_eq!(fast, expected, "{data:x?} of {wire}");
        taken.is_some()
    }

    #[test]
    fn plain_packets_are_parsed_at_once() {
        for frame in frames() {
            assert!(agrees(&frame, frame.len()), "{frame:x?}");
        }
    }

    #[test]
    fn packets_with_any_byte_changed_are_as_generally_parsed() {
        let mut fast = 0;
        for frame in frames() {
            for at in 0..frame.len() {
                for value in 0..=255 {
                    let mut data = frame.clone();
                    data[at] = value;
                    for wire in [data.len(), data.len() + 300] {
                        fast += usize::from(agrees(&data, wire));
                    }
                }
            }
        }
        assert!(fast > 10_000, "{fast}");
    }

    #[test]
    fn packets_with_any_announced_header_are_as_generally_parsed() {
        let mut tried = 0;
        for (field, values) in DECLARATIONS.iter().flat_map(|declaration| declaration.follows) {
            let (places, len): (&[usize], usize) = match field {
                Field::EthType => (&[12, 16], 2),
                Field::IpProto => (&[23, 27], 1),
                Field::Ip6Proto => (&[20, 24], 1),
                // The offsets behind IPv4 and IPv6, without a tag and with one.
                Field::UdpDport => (&[36, 40, 56, 60], 2),
                _ => continue,
            };
            for (value, place) in values.iter().flat_map(|v| places.iter().map(move |p| (v, *p))) {
                for mut data in frames() {
                    let Some(bytes) = data.get_mut(place..place + len) else { continue };
                    bytes.copy_from_slice(&value.to_be_bytes()[2 - len..]);
                    agrees(&data, data.len());
                    tried += 1;
                }
            }
        }
        assert!(tried > 200, "{tried}");
    }

    #[test]
    fn packets_cut_anywhere_are_as_generally_parsed() {
        for frame in frames() {
            for captured in 0..=frame.len() {
                for wire in [captured, frame.len(), frame.len() + 9] {
                    agrees(&frame[..captured], wire);
                }
            }
        }
    }

    #[test]
    fn packets_with_some_bytes_changed_are_as_generally_parsed() {
        let mut rng = braid_externs::Rng::new(1);
        let mut next = move |limit: usize| rng.below(limit as u128) as usize;
        let frames = frames();
        for _ in 0..braid_cases::cases(50_000) {
            let mut data = frames[next(frames.len())].clone();
            for _ in 0..2 + next(3) {
                // The offsets that matter: lengths, kinds, flags.
                let places = [
                    12, 13, 14, 16, 17, 18, 19, 20, 21, 22, 23, 27, 36, 37, 38, 39, 46, 54, 57, 58,
                    59,
                ];
                let at = places[next(places.len())].min(data.len() - 1);
                data[at] = [0, 1, 5, 6, 8, 17, 28, 0x45, 0x50, 0x60, 0x81, 0x80, 0x86, 0xdd, 0xff]
                    [next(15)];
            }
            data.truncate(data.len() - next(4) * next(12));
            let wire = data.len() + next(2) * 100;
            agrees(&data, wire);
        }
    }

    #[test]
    fn layout_is_small() {
        assert!(size_of::<Layout>() <= 88, "{}", size_of::<Layout>());
    }
}
