//! Tests relative writes: sums that a masked rewrite writes.

use braid_packet::rewrite::{
    Add, Adds, Follows, MOST_ADDS, Outline, Rewrite, WIDE, WIDE_BYTES, sums, wide_window, words,
};
use braid_packet::{Field, Link, Packet, Shape, build_fresh};

const FIELDS: [(Field, Follows); 6] = [
    (Field::TcpSeq, Follows::Transport),
    (Field::TcpAck, Follows::Transport),
    (Field::TcpWindow, Follows::Transport),
    (Field::TcpTsVal, Follows::Transport),
    (Field::TcpTsEcr, Follows::Transport),
    (Field::IpId, Follows::Ip),
];

/// A TCP packet whose timestamps begin at an even or an odd offset.
fn packet(shape: Shape, is_odd: bool, next: &mut impl FnMut() -> u64) -> Packet {
    let ts: Vec<u8> = [8, 10].into_iter().chain((0..8).map(|_| next() as u8)).collect();
    let padding = if is_odd { [1, 0] } else { [1, 1] };
    let options = match is_odd {
        true => [&padding[..1], &ts, &padding[1..]].concat(),
        false => [&padding[..], &ts].concat(),
    };
    // The options come from the payload: the header's length is set behind them.
    let mut packet = build_fresh(Link::Ethernet, 0, shape, &[], &options).expect("a packet");
    let l4 = Outline::of(&packet.parse()).expect("an outline").l4();
    packet.data_mut()[l4 + 12] = 8 << 4;
    (l4 + 4..l4 + 12).for_each(|at| packet.data_mut()[at] = next() as u8);
    (l4 + 14..l4 + 18).for_each(|at| packet.data_mut()[at] = next() as u8);
    packet
}

/// Assigning the sums defines the right result.
#[test]
fn amounts_are_added_as_sums_are_assigned() {
    let mut rng = braid_externs::Rng::new(11);
    let mut next = || rng.next_u64();
    let mut wraps = 0;
    for case in 0..braid_cases::at_least(5_000) {
        let shape = if case % 2 == 0 { Shape::Tcp4 } else { Shape::Tcp6 };
        let packet = packet(shape, case % 4 > 1, &mut next);
        let layout = packet.parse();
        let outline = Outline::of(&layout).expect("an outline");
        let (mut expected, mut adds, mut bytes) = (packet.clone(), Adds::NONE, [0; WIDE_BYTES]);
        for (at, (field, follows)) in FIELDS.into_iter().enumerate() {
            let Some(old) = packet.get(&layout, field).filter(|_| next() % 3 > 0) else {
                continue;
            };
            let len = usize::from(field.whole_bytes().expect("whole bytes"));
            let most = u128::MAX >> (128 - 8 * len);
            let amount = [1, most, u128::from(next()) & most, 0][next() as usize % 4];
            let from = 4 * at;
            bytes[from..from + len].copy_from_slice(&amount.to_be_bytes()[16 - len..]);
            assert!(adds.push(Add { field, from: from as u8, follows }));
            assert!(expected.set(&layout, field, (old + amount) & most));
            wraps += u32::from(old + amount > most);
        }
        let head = wide_window(packet.data());
        let rewrite = Rewrite { keep: [u64::MAX; WIDE], adds, ..Rewrite::NONE };
        let added = sums(&layout, outline, &head, &head);
        let mut actual = packet.clone();
        let bytes = words(&bytes);
        layout.rewrite_wide((actual.data_mut(), outline), &rewrite, &bytes, added);
        assert_eq!(actual, expected, "case {case}: {adds:?}");
    }
    assert!(wraps > 1_000, "{wraps}");
}

#[test]
fn more_fields_than_a_rewrite_can_hold_are_refused() {
    let add = Add { field: Field::TcpSeq, from: 0, follows: Follows::Transport };
    let mut adds = Adds::NONE;
    assert!((0..MOST_ADDS).all(|_| adds.push(add)));
    assert!(!adds.push(add) && adds.iter().count() == MOST_ADDS);
}
