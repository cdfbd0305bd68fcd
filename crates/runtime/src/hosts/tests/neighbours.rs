//! The next hops of packets that leave.

use super::super::messages::BROADCAST;
use super::super::table::{MOST, MOST_FOR_ONE, MOST_WAITING};
use super::*;

#[test]
fn packets_wait_for_the_answer_of_their_next_hop() {
    for (to, hop) in [
        ("203.0.113.9", "203.0.113.9"),
        ("198.51.100.9", "203.0.113.254"),
        ("2001:db8::9", "2001:db8::9"),
        ("2001:db8:9::9", "fe80::fe"),
    ] {
        let mut world = World::new(wan());
        assert_eq!(world.send(to), Err(Leaving::Waits));
        assert_eq!(world.send(to), Err(Leaving::Waits));
        let asked = world.said();
        let [asked] = asked.as_slice() else { panic!("{asked:?}") };
        match ip(hop) {
            IpAddr::V4(_) => assert_eq!(get(asked, Field::ArpTpa), word(hop)),
            IpAddr::V6(_) => {
                assert_eq!(asked.payload(&asked.parse())[..16], word(hop).to_be_bytes());
                assert_eq!(get(asked, Field::Ip6Src), word("2001:db8::1"));
            }
        }
        assert!(world.answers(answer(hop, PEER)).is_empty());
        let waited = world.waited();
        assert_eq!(waited.iter().map(macs).collect::<Vec<_>>(), [(PEER, OWN); 2], "{to}");
        assert_eq!(world.send(to), Ok((PEER, OWN)));
        assert!(world.lost().is_empty() && world.said().is_empty());
    }
}

#[test]
fn silent_neighbour_is_asked_three_times_and_loses_its_packets() {
    let mut world = World::new(wan());
    assert_eq!(world.send("203.0.113.9"), Err(Leaving::Waits));
    assert_eq!(world.said().len(), 1);
    assert_eq!(world.pass(SECOND / 2 + TICK_NS).len(), 1);
    assert_eq!(world.pass(SECOND + TICK_NS).len(), 1);
    assert!(world.lost().is_empty());
    assert!(world.pass(2 * SECOND + TICK_NS).is_empty());
    assert_eq!(world.lost(), ["no_neighbour"]);
    assert_eq!(world.send("203.0.113.9"), Err(Leaving::Lost("no_neighbour")));
    assert!(world.said().is_empty());
    world.pass(5 * SECOND);
    assert_eq!(world.send("203.0.113.9"), Err(Leaving::Waits));
}

#[test]
fn neighbours_are_asked_again_alone_and_lost_when_they_are_gone() {
    let mut world = World::new(wan());
    world.send("203.0.113.9").unwrap_err();
    world.answers(answer("203.0.113.9", PEER));
    world.said();
    assert_eq!(world.waited().len(), 1);
    world.pass(29 * SECOND);
    assert_eq!(world.send("203.0.113.9"), Ok((PEER, OWN)));
    assert!(world.said().is_empty());
    world.pass(2 * SECOND);
    // The packet goes on at once, and the neighbour is asked by a unicast frame.
    assert_eq!(world.send("203.0.113.9"), Ok((PEER, OWN)));
    assert_eq!(world.said().iter().map(macs).collect::<Vec<_>>(), [(PEER, OWN)]);
    world.answers(answer("203.0.113.9", PEER));
    world.pass(20 * SECOND);
    assert_eq!(world.send("203.0.113.9"), Ok((PEER, OWN)));
    assert!(world.said().is_empty());
    // It is gone: after three unicast questions, all hosts are asked, and packets wait.
    world.pass(11 * SECOND);
    assert_eq!(world.send("203.0.113.9"), Ok((PEER, OWN)));
    let asked = world.pass(3 * SECOND + SECOND * 3 / 4);
    assert_eq!(asked.iter().map(|p| macs(p).0).collect::<Vec<_>>(), [PEER, PEER, PEER, BROADCAST]);
    assert_eq!(world.send("203.0.113.9"), Err(Leaving::Waits));
    // It has a new card.
    world.answers(answer("203.0.113.9", OTHER));
    assert_eq!(world.waited().iter().map(macs).collect::<Vec<_>>(), [(OTHER, OWN)]);
}

#[test]
fn hosts_learn_only_from_hosts_that_speak_to_them() {
    let mut world = World::new(wan());
    let neighbours = |world: &World| {
        let status = world.hosts.status(0).unwrap();
        let found = status["neighbours"].as_array().unwrap().clone();
        found.iter().map(|n| format!("{} {}", n["address"], n["mac"])).collect::<Vec<_>>()
    };
    world.answers(asks("203.0.113.9", "203.0.113.8"));
    world.answers(tells("203.0.113.10", PEER));
    world.answers(answer("203.0.113.11", PEER));
    world.answers(tells("2001:db8::9", PEER));
    // This one is not on the link.
    world.answers(asks("198.51.100.1", "203.0.113.1"));
    assert!(neighbours(&world).is_empty());
    world.answers(asks("203.0.113.9", "203.0.113.1"));
    let peer = "\"203.0.113.9\" \"02:00:00:00:00:99\"";
    assert_eq!(neighbours(&world), [peer]);
    // A message to another host changes a known MAC address, too.
    world.answers(tells("203.0.113.9", OTHER));
    assert_eq!(neighbours(&world), ["\"203.0.113.9\" \"02:00:00:00:00:77\""]);
    // Packets do not wait for a neighbour that has spoken, but the neighbour is asked.
    assert_eq!(world.send("203.0.113.9"), Ok((OTHER, OWN)));
    assert_eq!(world.said().len(), 1);
}

#[test]
fn advertisement_that_overrides_nothing_yields() {
    let mut world = World::new(wan());
    world.send("2001:db8::9").unwrap_err();
    world.answers(answer("2001:db8::9", PEER));
    let mut yields = Packet::in_frame(LinkType::Ethernet, 0, tells("2001:db8::9", OTHER), 0);
    let layout = yields.parse();
    assert!(yields.set(&layout, Field::Icmp6Rest, 0));
    world.answers(yields.into_frame());
    assert_eq!(world.send("2001:db8::9"), Ok((PEER, OWN)));
    world.answers(tells("2001:db8::9", OTHER));
    assert_eq!(world.send("2001:db8::9"), Ok((OTHER, OWN)));
}

#[test]
fn packets_without_a_way_are_lost() {
    let mut world = World::new(Interface { gateways: Vec::new(), ..wan() });
    assert_eq!(world.send("198.51.100.9"), Err(Leaving::Lost("no_gateway")));
    assert_eq!(world.send("2001:db8:9::9"), Err(Leaving::Lost("no_gateway")));
    assert_eq!(world.send("203.0.113.1"), Err(Leaving::Lost("no_neighbour")));
    assert!(world.said().is_empty());
    // Packets that wait at the end are lost, too.
    assert_eq!(world.send("203.0.113.9"), Err(Leaving::Waits));
    world.hosts.end();
    assert_eq!(world.lost(), ["no_neighbour"]);
}

#[test]
fn packets_to_several_hosts_need_no_neighbour() {
    let mut world = World::new(wan());
    assert_eq!(world.send("224.1.2.3"), Ok(([1, 0, 0x5e, 1, 2, 3], OWN)));
    assert_eq!(world.send("239.129.2.3"), Ok(([1, 0, 0x5e, 1, 2, 3], OWN)));
    assert_eq!(world.send("255.255.255.255"), Ok((BROADCAST, OWN)));
    assert_eq!(world.send("203.0.113.255"), Ok((BROADCAST, OWN)));
    assert_eq!(world.send("ff02::1:2"), Ok(([0x33, 0x33, 0, 1, 0, 2], OWN)));
    // Packets that are not IP or have a VLAN tag stay unchanged.
    let mut tagged = udp("10.0.0.1", "203.0.113.9", 9);
    tagged.push_vlan(7);
    let (leaving, after) = world.leave(tagged.clone());
    assert_eq!((leaving, after), (Leaving::Sends, tagged));
    assert!(world.said().is_empty());
}

#[test]
fn waiting_packets_have_limits() {
    let mut world = World::new(wan());
    for port in 0..MOST_FOR_ONE + 5 {
        let (leaving, _) = world.leave(udp("10.0.0.1", "203.0.113.9", port));
        assert_eq!(leaving, Leaving::Waits);
    }
    assert_eq!(world.lost(), ["neighbour_limit"; 5]);
    world.answers(answer("203.0.113.9", PEER));
    // The newest ones have waited.
    let lengths: Vec<_> = world.waited().iter().map(|packet| packet.data().len()).collect();
    assert_eq!(lengths, (5..MOST_FOR_ONE + 5).map(|more| 42 + more).collect::<Vec<_>>());

    let mut world = World::new(wan());
    for host in 10..=100 {
        for _ in 0..MOST_FOR_ONE {
            world.leave(udp("10.0.0.1", &format!("203.0.113.{host}"), 9));
        }
    }
    assert_eq!(world.lost().len(), 91 * MOST_FOR_ONE - MOST_WAITING);
    world.hosts.end();
    assert_eq!(world.lost().len(), MOST_WAITING);
}

#[test]
fn neighbours_have_a_limit_and_the_used_ones_stay() {
    let wide = Interface { addresses: vec![own("10.0.0.1/8")], gateways: vec![], ..wan() };
    let mut world = World::new(wide);
    world.send("10.0.0.2").unwrap_err();
    world.answers(answer("10.0.0.2", PEER));
    let mut unlucky = 0;
    for host in 0..2 * u32::try_from(MOST).unwrap() {
        let to = IpAddr::V4((0x0a01_0000 + host).into()).to_string();
        unlucky += usize::from(world.send(&to) == Err(Leaving::Lost("neighbour_limit")));
        world.pass(10_000_000);
    }
    assert_eq!(world.count("neighbours_known"), MOST as u64);
    assert_eq!(world.hosts.status(0).unwrap()["neighbours"].as_array().unwrap().len(), 1000);
    assert_eq!(world.send("10.0.0.2"), Ok((PEER, OWN)));
    assert_eq!(unlucky, 0);
}

#[test]
fn questions_and_answers_have_limits() {
    let wide = Interface { addresses: vec![own("10.0.0.1/8")], gateways: vec![], ..wan() };
    let mut world = World::new(wide);
    for host in 0..2000 {
        let to = IpAddr::V4((0x0a01_0000 + host).into()).to_string();
        let _ = world.send(&to);
    }
    assert_eq!(world.said().len(), 500);
    assert_eq!(world.lost(), [""; 0]);
    let answered = (0..1000).filter(|_| !world.answers(asks("10.0.0.2", "10.0.0.1")).is_empty());
    assert_eq!(answered.count(), 200);
    assert_eq!(world.count("not_answered"), 800);
}

#[test]
fn interface_that_stays_the_same_in_another_chain_keeps_its_neighbours() {
    let mut world = World::new(wan());
    world.send("203.0.113.9").unwrap_err();
    world.answers(answer("203.0.113.9", PEER));
    assert_eq!(world.waited().len(), 1);
    assert_eq!(world.send("203.0.113.8"), Err(Leaving::Waits));
    let next = chain(vec![Interface::default(), wan()]);
    world.hosts.end_not_in(&next);
    assert!(world.lost().is_empty());
    let mut hosts = Hosts::replace(Some(world.hosts), &next).unwrap();
    let mut packet = udp("198.51.100.1", "203.0.113.9", 10);
    assert_eq!((hosts.leave(1, &mut packet), macs(&packet)), (Leaving::Sends, (PEER, OWN)));
    let mut frames = vec![answer("203.0.113.8", PEER)];
    assert_eq!(hosts.receive(1, &mut frames), 1);
    assert_eq!(hosts.out().waited.iter().map(|(interface, _)| *interface).collect::<Vec<_>>(), [1]);
}

#[test]
fn interface_that_changes_with_the_chain_loses_the_packets_that_wait() {
    let mut world = World::new(wan());
    assert_eq!(world.send("203.0.113.8"), Err(Leaving::Waits));
    let next = chain(vec![Interface { gateways: Vec::new(), ..wan() }]);
    world.hosts.end_not_in(&next);
    assert_eq!(world.lost(), ["no_neighbour"]);
    let hosts = Hosts::replace(Some(world.hosts), &next).unwrap();
    assert_eq!(hosts.status(0).unwrap()["neighbours_known"], 0);
    assert!(Hosts::replace(None, &next).is_some());
}
