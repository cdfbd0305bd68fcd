//! Replaces bytes of the payload by others, which may be more or fewer. Lengths and checksums
//! follow.

use crate::bytes::{self, Area, Cut, may_write, place};
use crate::checksum::{self, Delta, Sum16};
use crate::field::Header;
use crate::layout::Layout;
use crate::lengths;
use crate::packet::Packet;

/// Replaces `old` bytes of the payload, from byte `offset` on, by the first `new` bytes of `words`,
/// which hold 16 bytes each, the first byte highest. Updates lengths and checksums. Earlier layouts
/// become invalid.
///
/// Returns false, and changes nothing, if the payload ends before, if the words hold fewer bytes,
/// for fragments other than the first, and for ICMP errors. If the length changes, also for first
/// fragments, for ARP, and if a length in a header would not fit.
///
/// # Errors
/// The capture lacks bytes of the payload that this changes or moves. Nothing has changed.
pub fn replace(
    packet: &mut Packet,
    layout: &Layout,
    (offset, old): (u128, u128),
    (new, words): (u128, &[u128]),
) -> Result<bool, Cut> {
    let buffer = bytes::of_words(words);
    let held = (16 * words.len()).min(buffer.len());
    let new = usize::try_from(new).ok().filter(|new| *new <= held);
    let Some(new) = new.and_then(|new| buffer.get(..new)) else { return Ok(false) };
    let Some(old) = usize::try_from(old).ok() else { return Ok(false) };
    let Some(at) = place(packet, layout, (Area::Payload, offset), old) else { return Ok(false) };
    let grows = new.len().saturating_sub(old);
    // The length of ARP is fixed.
    let may_grow = !layout.has(Header::Arp) && lengths::can_grow(packet, layout, grows);
    let may_change = new.len() == old || may_grow;
    if !may_write(layout) || !may_change {
        return Ok(false);
    }
    // Bytes behind the replaced ones move. Moved by an odd number, they count differently in a
    // checksum.
    let moved = layout.payload_offset() + layout.payload_len();
    let is_whole = packet.data().len() >= if new.len() == old { at + old } else { moved };
    if !is_whole {
        return Err(Cut);
    }
    let end = if new.len().abs_diff(old) % 2 == 0 { at + old } else { moved };
    let before = summed(packet, layout, at..end);
    let done = match new.len() > old {
        true => packet.insert(at + old, new.get(old..).unwrap_or_default()),
        false => packet.remove(at + new.len(), old - new.len()),
    };
    if !done {
        return Ok(false);
    }
    lengths::write(packet, at, new);
    let lengths = (grows, old.saturating_sub(new.len()));
    settle(packet, layout, (before, at..end + new.len() - old), lengths);
    Ok(true)
}

/// Updates lengths and checksums of a packet whose payload has changed. `before` is what bytes
/// added to the checksum ([`summed`]) that are now at a place. The payload is longer by `more`
/// bytes, or shorter by `less`.
pub(crate) fn settle(
    packet: &mut Packet,
    layout: &Layout,
    (before, now): (u16, std::ops::Range<usize>),
    (more, less): (usize, usize),
) {
    let after = summed(packet, layout, now);
    let of_bytes = Delta::between(before.into(), after.into(), 2);
    let of_lengths = match more == less {
        true => Delta::default(),
        false => lengths::change(packet, layout, more, less),
    };
    checksum::follow(packet, layout, (of_bytes.and(of_lengths), of_bytes));
}

/// What bytes add to the checksum of the header in front of them.
pub(crate) fn summed(packet: &Packet, layout: &Layout, bytes: std::ops::Range<usize>) -> u16 {
    let is_odd = bytes.start.abs_diff(layout.l4()) % 2 == 1;
    let bytes = packet.data().get(bytes).unwrap_or_default();
    let sum = Sum16::default().with(bytes).folded();
    if is_odd { sum.swap_bytes() } else { sum }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum::verify;
    use crate::{Field, Link, Shape, build_fresh};

    const SHAPES: [Shape; 4] = [Shape::Tcp4, Shape::Tcp6, Shape::Udp4, Shape::Udp6];

    fn packet(shape: Shape, payload: &[u8]) -> Packet {
        let fields = [(Field::L4Sport, 7), (Field::L4Dport, 80)];
        build_fresh(Link::Ethernet, 0, shape, &fields, payload).unwrap()
    }

    fn put(packet: &mut Packet, place: (u128, u128), new: &[u8]) -> Result<bool, Cut> {
        let words = bytes::words_of(new);
        let layout = packet.parse();
        replace(packet, &layout, place, (new.len() as u128, &words))
    }

    #[test]
    fn bytes_are_replaced_by_more_or_fewer_and_lengths_and_checksums_follow() {
        let payload = b"abcdefghijklm";
        for shape in SHAPES {
            for at in 0..5 {
                for old in 0..6 {
                    for new in [&b""[..], b"X", b"XY", b"XYZ", b"a text of more than 16 bytes"] {
                        let mut changed = packet(shape, payload);
                        let mut expected = payload.to_vec();
                        expected.splice(at..at + old, new.iter().copied());
                        assert_eq!(put(&mut changed, (at as u128, old as u128), new), Ok(true));
                        let layout = changed.parse();
                        assert_eq!(changed.payload(&layout), expected, "{shape:?} {at} {old}");
                        assert!(verify(&changed, &layout).all_right(), "{shape:?} {at} {old}");
                        assert_eq!(changed.data(), packet(shape, &expected).data());
                        assert_eq!(changed.wire_len as usize, changed.data().len());
                    }
                }
            }
        }
    }

    #[test]
    fn bytes_behind_icmp_and_gre_have_checksums_too() {
        let hex = |text: &str| -> Vec<u8> {
            let byte = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
            (0..text.len()).step_by(2).map(byte).collect()
        };
        // IPv4 with ICMP echo and with GRE that has a checksum, and IPv6 with ICMPv6 echo. The
        // checksums are filled in below.
        for (ip, proto_at, header) in [
            ("45000000000000004001 0000 0a000001 0a000002", 9, "0800000000010002"),
            ("45000000000000004001 0000 0a000001 0a000002", 9, "8000880b00000000"),
            (
                "6000000000003a40 20010db8000000000000000000000001 20010db8000000000000000000000002",
                6,
                "8000000000010002",
            ),
        ] {
            let build = |payload: &[u8]| {
                let mut bytes = hex(&ip.replace(' ', ""));
                let (start, is_gre) = (bytes.len(), header.contains("880b"));
                if is_gre {
                    bytes[proto_at] = 47;
                }
                bytes.extend(hex(header));
                bytes.extend(payload);
                let length = if start == 20 { bytes.len() } else { bytes.len() - 40 };
                let at = if start == 20 { 2 } else { 4 };
                bytes[at..at + 2].copy_from_slice(&u16::try_from(length).unwrap().to_be_bytes());
                if is_gre {
                    let sum = checksum::rfc1071(&bytes[start..]).to_be_bytes();
                    bytes[start + 4..start + 6].copy_from_slice(&sum);
                }
                let mut packet = Packet::new(Link::RawIp, 0, bytes);
                checksum::fill(&mut packet);
                packet
            };
            let payload = b"abcdefghijklm";
            for at in 0..4 {
                let mut changed = build(payload);
                let layout = changed.parse();
                let value = (Area::Payload, at as u128);
                assert_eq!(bytes::store(&mut changed, &layout, value, 3, 0x58_595a), Ok(true));
                let mut expected = payload.to_vec();
                expected[at..at + 3].copy_from_slice(b"XYZ");
                assert_eq!(changed.data(), build(&expected).data(), "{header} {at}");
                for new in [&b""[..], b"X", b"XYZ", b"a text of more than 16 bytes"] {
                    let mut changed = build(payload);
                    let mut expected = payload.to_vec();
                    expected.splice(at..at + 2, new.iter().copied());
                    assert_eq!(put(&mut changed, (at as u128, 2), new), Ok(true));
                    assert_eq!(changed.data(), build(&expected).data(), "{header} {at} {new:?}");
                }
            }
        }
    }

    #[test]
    fn a_wrong_checksum_stays_wrong_by_the_same_amount() {
        for shape in SHAPES {
            let mut changed = packet(shape, b"abcdef");
            let at = changed.parse().sum().unwrap().at;
            changed.data_mut()[at] ^= 0x40;
            assert_eq!(put(&mut changed, (1, 2), b"12345"), Ok(true));
            let wrong = changed.clone();
            checksum::fill(&mut changed);
            assert_eq!(changed.data()[at] ^ 0x40, wrong.data()[at]);
        }
    }

    #[test]
    fn a_missing_udp_checksum_stays_missing() {
        let mut changed = packet(Shape::Udp4, b"abcdef");
        let at = changed.parse().sum().unwrap().at;
        changed.data_mut()[at..at + 2].fill(0);
        assert_eq!(put(&mut changed, (1, 2), b"12345"), Ok(true));
        assert_eq!(changed.data()[at..at + 2], [0, 0]);
    }

    #[test]
    fn nothing_changes_where_it_cannot() {
        let small = packet(Shape::Udp4, b"abcdef");
        let mut fragment = small.clone();
        fragment.data_mut()[14 + 6] = 0x20;
        let mut later = small.clone();
        later.data_mut()[14 + 7] = 1;
        let quoting = packet(Shape::Udp4, &small.data()[14..]);
        let mut error = quoting.clone();
        // An ICMP message "time exceeded".
        error.data_mut()[14 + 9] = 1;
        error.data_mut()[34..42].copy_from_slice(&[11, 0, 0, 0, 0, 0, 0, 0]);
        let long = packet(Shape::Udp6, &vec![0; 65_535 - 8]);
        let cases: [(&Packet, (u128, u128), &[u8]); 7] = [
            (&small, (4, 3), b""),
            (&small, (7, 0), b"x"),
            (&small, (u128::MAX, 1), b"x"),
            (&fragment, (0, 1), b"xy"),
            (&later, (0, 1), b"x"),
            (&error, (0, 1), b"x"),
            (&long, (0, 1), b"xy"),
        ];
        for (before, place, new) in cases {
            let mut changed = before.clone();
            assert_eq!(put(&mut changed, place, new), Ok(false), "{place:?}");
            assert_eq!(changed, *before);
        }
        // Equal lengths and shorter ones fit.
        assert_eq!(put(&mut fragment, (0, 2), b"xy"), Ok(true));
        assert_eq!(put(&mut long.clone(), (0, 2), b"x"), Ok(true));
        // The words hold fewer bytes.
        let layout = small.parse();
        let mut changed = small.clone();
        assert_eq!(replace(&mut changed, &layout, (0, 1), (17, &[0])), Ok(false));
        assert_eq!(replace(&mut changed, &layout, (0, 1), (u128::MAX, &[0; 40])), Ok(false));
        assert_eq!(changed, small);
    }

    #[test]
    fn bytes_that_would_move_must_be_captured() {
        let whole = packet(Shape::Tcp4, b"abcdef");
        let data = whole.data();
        let cut = Packet::snapped(Link::Ethernet, 0, &data[..data.len() - 1], whole.wire_len);
        for (place, new, expected) in [
            ((0, 2), &b"xy"[..], Ok(true)),
            ((0, 2), b"xyz", Err(Cut)),
            ((0, 2), b"x", Err(Cut)),
            ((4, 2), b"xy", Err(Cut)),
            ((4, 3), b"xy", Ok(false)),
        ] {
            let mut changed = cut.clone();
            assert_eq!(put(&mut changed, place, new), expected, "{place:?} {new:?}");
            assert_eq!(changed == cut, expected != Ok(true));
        }
    }

    #[test]
    fn padding_behind_the_packet_stays() {
        let plain = packet(Shape::Udp4, b"ab");
        let padded = [plain.data(), &[0xee; 7]].concat();
        let mut changed = Packet::new(Link::Ethernet, 0, padded);
        assert_eq!(put(&mut changed, (1, 1), b"123"), Ok(true));
        let layout = changed.parse();
        assert_eq!(changed.payload(&layout), b"a123");
        assert!(verify(&changed, &layout).all_right() && changed.data().ends_with(&[0xee; 7]));
    }
}
