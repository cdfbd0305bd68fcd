//! What most packets are, parsed at once: TCP or UDP in a whole IPv4 or IPv6 packet behind a plain
//! Ethernet header, without options.
//!
//! The general parse is the definition; this is the same for these packets and leaves all others to it.

use super::{Fragment, Header, Layout, SumKind, long};
use crate::wire::{be16, ether_type, ethernet, ipv4, ipv6, proto, tcp, udp, vxlan};

const IP: usize = ethernet::LEN;
const L4_IN_4: usize = IP + ipv4::LEN;
const L4_IN_6: usize = IP + ipv6::LEN;

/// Version 4 and a header of five words.
const VERSION_AND_LENGTH: u8 = 0x45;
/// More fragments, or an offset.
const FRAGMENTED: u16 = 0x3fff;

const fn bits(headers: &[Header]) -> u32 {
    let mut all = 0;
    let mut at = 0;
    while at < headers.len() {
        all |= 1 << headers[at] as u32;
        at += 1;
    }
    all
}

const INET: u32 = bits(&[Header::Pkt, Header::Eth, Header::Inet, Header::L4]);

/// The layout of a packet of `wire` bytes (at least those of `data`), if it is such a packet.
pub(super) fn parse(data: &[u8], wire: usize) -> Option<Layout> {
    let head = data.first_chunk::<{ L4_IN_4 + udp::LEN }>()?;
    match be16(head[ethernet::TYPE], head[ethernet::TYPE + 1]) {
        ether_type::IPV4 => {
            let total = usize::from(be16(head[IP + ipv4::TOTAL], head[IP + ipv4::TOTAL + 1]));
            let word = be16(head[IP + ipv4::FRAGMENT], head[IP + ipv4::FRAGMENT + 1]);
            if head[IP] != VERSION_AND_LENGTH || word & FRAGMENTED != 0 {
                return None;
            }
            let layout = Layout {
                present: INET | bits(&[Header::Ip4]),
                ip_end: long(IP + total),
                ether_type: ether_type::IPV4,
                pseudo_dst: (IP + ipv4::DST) as u16,
                proto: head[IP + ipv4::PROTO],
                ..PLAIN
            };
            transport::<L4_IN_4>(layout, data, wire)
        }
        ether_type::IPV6 => {
            let payload = be16(head[IP + ipv6::PAYLOAD], head[IP + ipv6::PAYLOAD + 1]);
            if head[IP] >> 4 != 6 {
                return None;
            }
            let layout = Layout {
                present: INET | bits(&[Header::Ip6]),
                ip_end: long(L4_IN_6 + usize::from(payload)),
                ether_type: ether_type::IPV6,
                pseudo_dst: (IP + ipv6::DST) as u16,
                proto: head[IP + ipv6::NEXT],
                ..PLAIN
            };
            transport::<L4_IN_6>(layout, data, wire)
        }
        _ => None,
    }
}

/// What all these packets have in common.
const PLAIN: Layout = Layout {
    present: 0,
    captured: 0,
    payload: 0,
    payload_end: 0,
    ip_end: 0,
    ether_type: 0,
    ether_type_at: ethernet::TYPE as u16,
    arp: 0,
    mpls: 0,
    ip: IP as u16,
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
    proto: 0,
    fragment: Fragment { any: false, later: false },
    malformed: None,
    quote: super::Quote { ip: 0, l4: 0, pseudo_dst: 0, sum_at: 0, sum: None, proto: 0 },
};

/// Puts TCP or UDP at `L4` to what is known of the packet.
fn transport<const L4: usize>(layout: Layout, data: &[u8], wire: usize) -> Option<Layout> {
    let end = layout.ip_end as usize;
    let message = data.get(L4..end.min(data.len()))?;
    if end > wire {
        return None;
    }
    let layout = Layout { captured: long(data.len()), l4: L4 as u16, ..layout };
    if layout.proto == proto::TCP {
        let header = message.first_chunk::<{ tcp::LEN }>()?;
        return (header[tcp::DATA_OFFSET] >> 4 == 5).then_some(Layout {
            present: layout.present | bits(&[Header::Tcp]),
            payload: (L4 + tcp::LEN) as u32,
            payload_end: layout.ip_end,
            sum_at: (L4 + tcp::CHECKSUM) as u16,
            sum: Some(SumKind::Tcp),
            ..layout
        });
    }
    if layout.proto != proto::UDP {
        return None;
    }
    let header = message.first_chunk::<{ udp::LEN }>()?;
    let len = usize::from(be16(header[udp::LENGTH], header[udp::LENGTH + 1]));
    let is_plain = be16(header[2], header[3]) != vxlan::PORT;
    (is_plain && len >= udp::LEN && len <= end - L4).then_some(Layout {
        present: layout.present | bits(&[Header::Udp]),
        payload: (L4 + udp::LEN) as u32,
        payload_end: long(L4 + len),
        sum_at: (L4 + udp::CHECKSUM) as u16,
        sum: Some(SumKind::Udp),
        ..layout
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::{Shape, build_fresh};
    use crate::packet::Link;

    fn frames() -> Vec<Vec<u8>> {
        let build = |shape, payload: &[u8]| {
            build_fresh(Link::Ethernet, 0, shape, &[], payload).unwrap().into_data()
        };
        let mut padded = build(Shape::Udp4, b"abc");
        padded.extend([0; 15]);
        vec![
            build(Shape::Tcp4, b"abcdefgh"),
            build(Shape::Udp4, b"abcdefghi"),
            build(Shape::Tcp6, b"abcdefgh"),
            build(Shape::Udp6, b""),
            padded,
        ]
    }

    /// The fast parse is the general one, or leaves the packet to it. Whether it did something.
    fn agrees(data: &[u8], wire: usize) -> bool {
        let fast = parse(data, wire.max(data.len()));
        let general = Layout::parse_any(Link::Ethernet, data, wire as u32);
        if let Some(fast) = fast {
            assert_eq!(fast, general, "{data:x?} of {wire}");
        }
        fast.is_some()
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
        let mut seed = 1u32;
        let mut next = move |limit: usize| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 8) as usize % limit
        };
        let frames = frames();
        for _ in 0..50_000 {
            let mut data = frames[next(frames.len())].clone();
            for _ in 0..2 + next(3) {
                // Where it matters: lengths, kinds, flags.
                let places = [12, 13, 14, 16, 17, 18, 19, 20, 21, 23, 36, 37, 38, 39, 46, 58, 59];
                let at = places[next(places.len())].min(data.len() - 1);
                data[at] = [0, 1, 5, 6, 8, 17, 28, 0x45, 0x50, 0x60, 0x86, 0xdd, 0xff][next(13)];
            }
            data.truncate(data.len() - next(4) * next(12));
            let wire = data.len() + next(2) * 100;
            agrees(&data, wire);
        }
    }

    #[test]
    fn layout_is_small() {
        assert!(size_of::<Layout>() <= 80, "{}", size_of::<Layout>());
    }
}
