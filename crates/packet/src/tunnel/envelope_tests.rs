//! Envelopes add what [`encapsulate`] adds.

use super::tests::{SHAPES, hex, packet, tunnels};
use super::*;

/// One free byte after the other is changed, around packets that are longer than the envelope's.
#[test]
fn an_envelope_adds_what_encapsulation_adds() {
    let mut free_bytes = 0;
    for shape in SHAPES {
        for (inner, parts, text, _) in tunnels() {
            let contents = hex(&text);
            let words = bytes::words_of(&contents);
            let small = packet(shape, b"");
            let new = |words: &[u128]| {
                let place = (inner, parts);
                Envelope::new(&small, &small.parse(), place, (contents.len(), words))
            };
            let sums = parts.contains(&Header::Ip6) && parts.contains(&Header::Udp);
            assert_eq!(new(&words).is_none(), sums, "{parts:?}");
            let Some(envelope) = new(&words) else { continue };
            for at in 0..contents.len() {
                if !envelope.is_free(at, 1) {
                    continue;
                }
                free_bytes += 1;
                let mut other = contents.clone();
                other[at] ^= 0xa5;
                let (mut long, words) = (packet(shape, &[7; 1001]), bytes::words_of(&other));
                let (mut expected, layout) = (long.clone(), long.parse());
                let given = (other.len(), words.as_slice());
                let done = encapsulate(&mut expected, &layout, (inner, parts), given, None);
                assert_eq!(done, Ok(true));
                assert!(envelope.add(&mut long, &layout, |bytes| bytes[at] = other[at]));
                assert_eq!(long, expected, "{shape:?} in {parts:?}, byte {at}");
            }
        }
    }
    assert!(free_bytes > 1000, "{free_bytes}");
}

/// Bits that headers and packets decide are not free: versions, lengths, checksums, what announces
/// the next header, and the bottom of a stack of labels.
#[test]
fn what_follows_from_headers_and_packets_is_not_free() {
    let inside = packet(crate::Shape::Udp4, b"");
    let all = [
        (&[Header::Ip4][..], 20, vec![0, 2, 3, 9, 10, 11]),
        (&[Header::Ip6], 40, vec![0, 4, 5, 6]),
        (&[Header::Mpls], 4, vec![2]),
        (&[Header::Ip4, Header::Udp], 28, vec![0, 2, 3, 9, 10, 11, 24, 25, 26, 27]),
        (&[Header::Ip4, Header::Gre], 24, vec![0, 2, 3, 9, 10, 11, 22, 23]),
    ];
    for (parts, len, taken) in all {
        let place = (Inner::Packet, parts);
        let words = [0; 3];
        let envelope = Envelope::new(&inside, &inside.parse(), place, (len, &words)).unwrap();
        let found: Vec<usize> = (0..len).filter(|at| !envelope.is_free(*at, 1)).collect();
        assert_eq!(found, taken, "{parts:?}");
    }
}

/// An envelope for one kind of packet takes no other, and none that would get too long.
#[test]
fn an_envelope_refuses_what_it_is_not_for() {
    let small = packet(crate::Shape::Udp4, b"");
    let parts = [Header::Ip4, Header::Gre];
    let words = bytes::words_of(&hex("00000000 0000 0000 4000 0000 c0000201 c6336402 00000000"));
    let place = (Inner::Packet, &parts[..]);
    let envelope = Envelope::new(&small, &small.parse(), place, (24, &words)).unwrap();
    for (shape, payload, fits) in [
        (crate::Shape::Udp4, 65_535 - 24 - 28, true),
        (crate::Shape::Udp4, 65_535 - 24 - 27, false),
        (crate::Shape::Udp6, 10, false),
    ] {
        let mut changed = packet(shape, &vec![0; payload]);
        let (before, layout) = (changed.clone(), changed.parse());
        let mut expected = changed.clone();
        let _refused = encapsulate(&mut expected, &layout, place, (24, &words), None);
        assert_eq!(envelope.add(&mut changed, &layout, |_| ()), fits, "{shape:?}");
        let expected = if fits { expected } else { before };
        assert!(changed == expected, "{shape:?}, {payload}");
    }
}
