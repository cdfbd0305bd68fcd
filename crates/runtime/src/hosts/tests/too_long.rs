//! Packets that are longer than a device allows.

use super::super::too_long::{ETHERNET, fragment, may_fragment};
use super::*;
use braid_ir::chain::TooLong;
use braid_packet::checksum::verify;

/// A UDP packet as it leaves, with DF.
fn unbreakable(from: &str, to: &str, payload: usize) -> Packet {
    let mut packet = udp(from, to, payload);
    let layout = packet.parse();
    packet.set(&layout, Field::IpDf, 1);
    packet
}

#[test]
fn sender_of_a_packet_that_is_too_long_is_told() {
    let mut world = World::new(wan());
    let (leaving, _) = world.leave(unbreakable("198.51.100.1", "203.0.113.9", 1473));
    assert_eq!(leaving, Leaving::Lost("too_long_answered"));
    let error = world.hosts.out().errors.pop().unwrap();
    assert_eq!((error.ingress, error.backward), (0, false));
    assert_eq!(get(&error, Field::IpSrc), word("203.0.113.1"));
    assert_eq!(get(&error, Field::IpDst), word("198.51.100.1"));
    assert_eq!((get(&error, Field::IcmpType), get(&error, Field::IcmpCode)), (3, 4));
    assert_eq!(get(&error, Field::IcmpRest), 1500);
    assert_eq!(get(&error, Field::IpLen), 576);
    assert_eq!(get(&error, Field::QuotedIpDst), word("203.0.113.9"));
    assert_eq!(macs(&error).0, OWN);
    assert!(verify(&error, &error.parse()).all_right());
    let (leaving, _) = world.leave(udp("2001:db8:1::1", "2001:db8::9", 1453));
    assert_eq!(leaving, Leaving::Lost("too_long_answered"));
    let error = world.hosts.out().errors.pop().unwrap();
    assert_eq!(get(&error, Field::Ip6Src), word("2001:db8::1"));
    assert_eq!((get(&error, Field::Icmp6Type), get(&error, Field::Icmp6Rest)), (2, 1500));
    assert_eq!(error.data().len(), ETHERNET + 1280);
    assert!(verify(&error, &error.parse()).all_right());
    // Exactly as long as the MTU allows.
    assert_eq!(world.leave(udp("198.51.100.1", "203.0.113.9", 1472)).0, Leaving::Waits);
    assert_eq!(world.count("answered/too_long"), 2);
}

#[test]
fn nobody_is_told_of_errors_later_fragments_and_packets_of_several_hosts() {
    let mut world = World::new(wan());
    let icmp = |kind: u128| {
        let fields = [
            (Field::IpSrc, word("198.51.100.1")),
            (Field::IpDst, word("203.0.113.9")),
            (Field::IcmpType, kind),
        ];
        build_fresh(LinkType::Ethernet, 0, Shape::Icmp, &fields, &[0; 1600]).unwrap()
    };
    let mut later = unbreakable("198.51.100.1", "203.0.113.9", 1600);
    later.data_mut()[21] = 8;
    let mut group = unbreakable("198.51.100.1", "203.0.113.9", 1600);
    group.data_mut()[0] = 1;
    let unanswerable = [
        icmp(3),
        icmp(11),
        later,
        group,
        unbreakable("198.51.100.1", "224.0.0.9", 1600),
        unbreakable("0.0.0.0", "203.0.113.9", 1600),
        udp("::", "2001:db8::9", 1600),
    ];
    for (at, packet) in unanswerable.into_iter().enumerate() {
        assert_eq!(world.leave(packet).0, Leaving::Lost("send_too_long"), "{at}");
    }
    assert_eq!(world.leave(icmp(8)).0, Leaving::Lost("too_long_answered"));
    let silent = Interface { too_long: TooLong::Drop, ..wan() };
    let leaving = World::new(silent).leave(unbreakable("198.51.100.1", "203.0.113.9", 1600)).0;
    assert_eq!(leaving, Leaving::Lost("send_too_long"));
    // No address of the packet's IP version.
    let only4 = Interface { addresses: vec![own("203.0.113.1/24")], ..wan() };
    let leaving = World::new(only4).leave(udp("2001:db8:1::1", "2001:db8::9", 1600)).0;
    assert_eq!(leaving, Leaving::Lost("send_too_long"));
}

#[test]
fn errors_about_long_packets_have_a_limit() {
    let mut world = World::new(wan());
    let told = (0..100).filter(|_| {
        let (leaving, _) = world.leave(unbreakable("198.51.100.1", "203.0.113.9", 1600));
        leaving == Leaving::Lost("too_long_answered")
    });
    assert_eq!(told.count(), 50);
}

/// The payload of fragments, put together, and the flags and offsets of each of them.
fn join(fragments: &[Packet]) -> (Vec<u8>, Vec<(u128, u128)>) {
    let mut all = Vec::new();
    let mut fields = Vec::new();
    for fragment in fragments {
        let layout = fragment.parse();
        let header = usize::try_from(get(fragment, Field::IpHlen)).unwrap();
        let total = usize::try_from(get(fragment, Field::IpLen)).unwrap();
        assert_eq!(fragment.data().len(), ETHERNET + total);
        assert_eq!(verify(fragment, &layout).ip, Some(true));
        fields.push((get(fragment, Field::IpMf), get(fragment, Field::IpFrag)));
        all.extend(&fragment.data()[ETHERNET + header..]);
    }
    (all, fields)
}

#[test]
fn packets_without_df_leave_in_fragments_where_the_chain_says_so() {
    let fragmenting = Interface { too_long: TooLong::Fragment, ..wan() };
    let mut world = World::new(fragmenting);
    world.send("203.0.113.9").unwrap_err();
    world.answers(answer("203.0.113.9", PEER));
    world.waited();
    let whole = udp("198.51.100.1", "203.0.113.9", 3200);
    let (leaving, first) = world.leave(whole.clone());
    assert_eq!(leaving, Leaving::Sends);
    let mut fragments = vec![first];
    fragments.extend(world.hosts.out().fragments.drain(..).map(|(_, fragment)| fragment));
    assert!(world.said().is_empty());
    assert!(fragments.iter().all(|fragment| macs(fragment) == (PEER, OWN)));
    let (joined, fields) = join(&fragments);
    assert_eq!(joined, whole.data()[ETHERNET + 20..]);
    assert_eq!(fields.len(), 3);
    assert_eq!(fields.iter().map(|(more, _)| *more).collect::<Vec<_>>(), [1, 1, 0]);
    assert_eq!(fields[1].1 * 8, 1480);
    // With DF, the sender gets an ICMP error.
    let (leaving, _) = world.leave(unbreakable("198.51.100.1", "203.0.113.9", 3200));
    assert_eq!(leaving, Leaving::Lost("too_long_answered"));
}

#[test]
fn fragments_of_packets_without_an_identification_are_told_apart() {
    let mut last_id = u16::MAX - 1;
    let mut ids = Vec::new();
    for given in [0, 0, 77] {
        let mut packet = udp("198.51.100.1", "203.0.113.9", 3200);
        let layout = packet.parse();
        packet.set(&layout, Field::IpId, given);
        let mut all = Vec::new();
        fragment(&mut packet, 1500, &mut last_id, |fragment| all.push(fragment));
        all.push(packet);
        assert!(all.iter().all(|one| verify(one, &one.parse()).ip == Some(true)));
        let of_all: Vec<u128> = all.iter().map(|one| get(one, Field::IpId)).collect();
        assert!(of_all.len() == 3 && of_all.iter().all(|id| *id == of_all[0]), "{of_all:?}");
        ids.push(of_all[0]);
        // What is a fragment already keeps what it has.
        let mut later = all[0].clone();
        let layout = later.parse();
        let had = later.get(&layout, Field::IpId);
        fragment(&mut later, 600, &mut last_id, drop);
        assert_eq!(later.get(&later.parse(), Field::IpId), had);
    }
    // 0 is no identification.
    assert_eq!(ids, [65_535, 1, 77]);
}

/// A UDP packet of IPv6 with a destination options header, and a fragment header that says that it
/// is whole.
fn atomic(payload: usize) -> Packet {
    let mut packet = udp("2001:db8:1::1", "2001:db8::9", payload);
    let options = [44, 0, 1, 4, 0, 0, 0, 0];
    let fragment = [17, 0, 0, 0, 1, 2, 3, 4];
    packet.insert(ETHERNET + 40, &[options, fragment].concat());
    let len = u16::try_from(packet.data().len() - ETHERNET - 40).unwrap();
    packet.data_mut()[ETHERNET + 4..ETHERNET + 6].copy_from_slice(&len.to_be_bytes());
    packet.data_mut()[ETHERNET + 6] = 60;
    packet
}

#[test]
fn ipv6_packets_leave_in_fragments_if_their_sender_has_sent_fragments() {
    let mut world = World::new(Interface { too_long: TooLong::Fragment, ..wan() });
    // Without a fragment header, the sender is told.
    let (leaving, _) = world.leave(udp("2001:db8:1::1", "2001:db8::9", 3200));
    assert_eq!(leaving, Leaving::Lost("too_long_answered"));
    let whole = atomic(3200);
    assert!(may_fragment(&whole));
    let (mut first, mut all) = (whole.clone(), Vec::new());
    fragment(&mut first, 1500, &mut 0, |fragment| all.push(fragment));
    all.insert(0, first);
    let headers = ETHERNET + 40 + 8 + 8;
    let mut joined = Vec::new();
    for (at, one) in all.iter().enumerate() {
        assert!(!may_fragment(one) && one.parse().is_fragment());
        let data = one.data();
        assert_eq!(data.len(), ETHERNET + 40 + usize::try_from(get(one, Field::Ip6Len)).unwrap());
        assert!(data.len() <= ETHERNET + 1500);
        let field = u16::from_be_bytes([data[headers - 6], data[headers - 5]]);
        assert_eq!((usize::from(field & !7), field & 1 == 1), (joined.len(), at < 2));
        assert_eq!(data[headers - 4..headers], [1, 2, 3, 4]);
        joined.extend(&data[headers..]);
    }
    assert_eq!((all.len(), &joined[..]), (3, &whole.data()[headers..]));
    // It is short enough, or nothing fits.
    for mtu in [4000, 60] {
        let mut same = whole.clone();
        fragment(&mut same, mtu, &mut 0, |_| panic!("a fragment"));
        assert_eq!(same.data(), whole.data());
    }
}

#[test]
fn options_are_copied_to_later_fragments_if_they_say_so() {
    let mut packet = udp("198.51.100.1", "203.0.113.9", 100);
    // A security option, which is copied, and a record of the route, which is not.
    let options = [130, 4, 1, 2, 7, 4, 4, 0];
    packet.insert(ETHERNET + 20, &options);
    packet.data_mut()[ETHERNET] = 0x47;
    packet.data_mut()[ETHERNET + 2..ETHERNET + 4].copy_from_slice(&136_u16.to_be_bytes());
    let whole = packet.data().to_vec();
    let mut later = Vec::new();
    fragment(&mut packet, 76, &mut 0, |fragment| later.push(fragment));
    let all: Vec<Packet> = std::iter::once(packet.clone()).chain(later).collect();
    let (joined, _) = join(&all);
    assert_eq!(joined, whole[ETHERNET + 28..]);
    let headers: Vec<u128> = all.iter().map(|fragment| get(fragment, Field::IpHlen)).collect();
    assert_eq!(headers[..2], [28, 24]);
    assert_eq!(all[1].data()[ETHERNET + 20..ETHERNET + 24], options[..4]);
}
