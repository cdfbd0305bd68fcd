//! Random frames.

use super::*;
use braid_ir::chain::TooLong;
use proptest::prelude::*;

/// Frames that are near to the messages that hosts hear.
fn frames() -> impl Strategy<Value = Vec<u8>> {
    let near = prop::sample::select(vec![
        asks("203.0.113.9", "203.0.113.1").bytes().to_vec(),
        answer("203.0.113.9", PEER).bytes().to_vec(),
        asks("fe80::9", "2001:db8::1").bytes().to_vec(),
        answer("2001:db8::9", PEER).bytes().to_vec(),
        udp("198.51.100.1", "203.0.113.9", 1500).data().to_vec(),
        mld::query(1000, "::"),
    ]);
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6);
    let changed = (near, changes, any::<prop::sample::Index>(), any::<bool>()).prop_map(
        |(mut bytes, changes, end, is_cut)| {
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            if is_cut {
                bytes.truncate(end.index(bytes.len()));
            }
            bytes
        },
    );
    prop_oneof![changed, prop::collection::vec(any::<u8>(), 0..80)]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: braid_cases::cases(256),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// For all arriving and leaving frames, packets are accounted for and nothing grows without
    /// bound.
    #[test]
    fn hostile_frames_are_borne(frames in prop::collection::vec((frames(), any::<bool>()), 1..60), mtu in 0_u32..2000) {
        let fragmenting = Interface { too_long: TooLong::Fragment, ..wan() };
        let mut world = World::new(fragmenting);
        world.hosts.device(0, Some(Ethernet { mac: OWN, mtu }), true);
        let (mut left, mut gone) = (0, 0);
        for (bytes, arrives) in frames {
            if arrives {
                world.hear(Frame::of(&bytes));
            } else {
                left += 1;
                let (leaving, _) = world.leave(Packet::new(LinkType::Ethernet, 0, &bytes));
                gone += usize::from(leaving != Leaving::Waits);
            }
            world.pass(100_000_000);
            gone += world.waited().len() + world.lost().len();
            world.hosts.out().errors.clear();
        }
        world.hosts.end();
        gone += world.lost().len();
        prop_assert_eq!(gone, left);
    }
}
