//! A look into a tunnel finds what decapsulation leaves.

use super::tests::{SHAPES, hex, packet, tunnels};
use super::*;

/// Each byte of tunnelled packets is changed in turn, captures are cut, and bytes follow behind.
#[test]
fn a_look_inside_finds_what_decapsulation_leaves() {
    let (mut found, mut not_found) = (0, 0);
    for shape in SHAPES {
        for (inner, parts, text, last) in tunnels() {
            let contents = hex(&text);
            let mut whole = packet(shape, b"payload");
            let (layout, words) = (whole.parse(), bytes::words_of(&contents));
            let given = (contents.len(), words.as_slice());
            assert_eq!(encapsulate(&mut whole, &layout, (inner, parts), given, None), Ok(true));
            let len = whole.data().len();
            let changed = (0..len).flat_map(|at| [1, 0x10, 0xff].map(|bits| (at, bits, len)));
            let cut = (0..len).map(|len| (0, 0, len));
            for (at, bits, captured) in changed.chain(cut).chain([(0, 0, len + 3)]) {
                let mut data = whole.data().to_vec();
                data[at] ^= bits;
                data.resize(captured, 0);
                let mut one = Packet::new(Link::Ethernet, 0, data);
                one.wire_len = one.wire_len.max(whole.wire_len);
                let (before, layout) = (one.clone(), one.parse());
                for offset in [0, 1] {
                    let mut inside = Layout::default();
                    let less = look_inside(&mut one, &layout, (inner, last), offset, &mut inside);
                    assert_eq!(one, before);
                    let Some(less) = less else {
                        not_found += 1;
                        continue;
                    };
                    found += 1;
                    let mut expected = before.clone();
                    let place = (inner, last);
                    let done = decapsulate(&mut expected, &layout, place, offset as u128, None);
                    assert_eq!(done, Ok(true), "{shape:?} in {parts:?}, byte {at}");
                    assert_eq!(inside, expected.parse(), "{shape:?} in {parts:?}, byte {at}");
                    let mut left = before.clone();
                    leave(&mut left, inner, less);
                    assert_eq!(left, expected, "{shape:?} in {parts:?}, byte {at}");
                }
            }
        }
    }
    assert!(found > 3_000 && not_found > 10_000, "{found} found, {not_found} not");
}
