//! `Priority(winner > loser)`: both functions see the arriving packet, and the winner's result
//! stands.

mod common;

use braid_ir::chain::{Chain, Priority, Sink};
use braid_ir::model::{LEFT, Model};
use braid_packet::{Field, Header, Packet};
use common::{Bench, LAN, ON, WAN, field, from_port, line, nf, wire, writes};
use std::sync::Arc;

/// Two functions in a line. The function with the number `winner` wins.
fn pair(left: Arc<Model>, right: Arc<Model>, winner: u16) -> Chain {
    let mut chain = line(vec![(left, vec![]), (right, vec![])]);
    chain.priorities.push(Priority { winner, loser: 1 - winner });
    chain
}

const DROP: &str = "drop \"no\" at row1";

fn sent(chain: Chain, packet: Packet) -> Packet {
    let mut bench = Bench::new(chain);
    bench.send(LAN, packet);
    assert_eq!(bench.got.packets.len(), 1);
    assert_eq!(bench.got.packets[0].0, WAN);
    bench.last().clone()
}

#[test]
fn both_see_the_arriving_packet() {
    // In sequence the second function would see port 7. Side by side it sees 99.
    let changes = writes(&[("udp.sport", 7)], ON);
    let says = nf(
        "event SAYS { port: port }",
        "b0: v0:bool = has udp
             branch v0, b1, b2
         b1: v1:port = load udp.sport
             emit SAYS(v1)
             jump b2
         b2: output onward at row0",
    );
    for winner in [0, 1] {
        let mut bench = Bench::new(pair(changes.clone(), says.clone(), winner));
        bench.send(LAN, from_port(1, 99));
        assert_eq!(bench.events(), [(1, 99)]);
        assert_eq!(field(bench.last(), Field::UdpSport), Some(7));
    }
    let mut bench = Bench::new(line(vec![(changes, vec![]), (says, vec![])]));
    bench.send(LAN, from_port(1, 99));
    assert_eq!(bench.events(), [(1, 7)], "without priority");
}

#[test]
fn fields_written_by_both_are_the_winners_others_stay() {
    let left = || writes(&[("ip.ttl", 10), ("udp.sport", 11)], ON);
    let right = || writes(&[("ip.ttl", 20), ("udp.dport", 21)], ON);
    for (winner, ttl) in [(0, 10), (1, 20)] {
        let packet = sent(pair(left(), right(), winner), from_port(1, 99));
        assert_eq!(field(&packet, Field::IpTtl), Some(ttl));
        assert_eq!(field(&packet, Field::UdpSport), Some(11));
        assert_eq!(field(&packet, Field::UdpDport), Some(21));
        assert!(braid_packet::checksum::verify(&packet, &packet.parse()).all_right());
    }
}

#[test]
fn one_field_by_two_names_is_one_field() {
    let left = || writes(&[("l4.sport", 10)], ON);
    let right = || writes(&[("udp.sport", 20)], ON);
    for (winner, port) in [(0, 10), (1, 20)] {
        let packet = sent(pair(left(), right(), winner), from_port(1, 99));
        assert_eq!(field(&packet, Field::UdpSport), Some(port));
    }
}

#[test]
fn winner_that_may_drop_decides() {
    // Both functions count their rows. Only the verdict that stands is a drop.
    let (on, drop) = (writes(&[], ON), writes(&[], DROP));
    for (left, right, winner, dropped_by) in [
        (&drop, &on, 0, Some(0)),
        (&on, &drop, 1, Some(1)),
        // The winner has no drop, so the loser's verdict stands.
        (&drop, &on, 1, Some(0)),
        (&on, &drop, 0, Some(1)),
    ] {
        let mut bench = Bench::new(pair(left.clone(), right.clone(), winner));
        bench.send(LAN, from_port(1, 1));
        let drops: Vec<_> = bench.drops().into_iter().map(|drop| drop.0).collect();
        assert_eq!(drops, Vec::from_iter(dropped_by));
        assert_eq!(bench.counters().nodes[0].rows[1].packets, 1);
        assert_eq!(bench.counters().nodes[1].rows[1].packets, 1);
    }
}

#[test]
fn losers_verdict_stands_when_neither_may_drop() {
    let back = || writes(&[], "output back at row0");
    for (left, right, winner, interface) in
        [(back(), wire(), 0, WAN), (wire(), back(), 0, LAN), (wire(), back(), 1, WAN)]
    {
        let mut bench = Bench::new(pair(left, right, winner));
        bench.send(LAN, from_port(1, 1));
        assert_eq!(bench.left_by(), [interface]);
    }
}

/// Drops packets from port 1, and passes all others.
fn no_port_1() -> Arc<Model> {
    nf(
        "reason \"port 1\"",
        "b0: v0:bool = has udp
             branch v0, b1, b3
         b1: v1:port = load udp.sport
             v2:port = const 1
             v3:bool = eq v1, v2
             branch v3, b2, b3
         b2: count row1
             drop \"port 1\" at row1
         b3: output onward at row0",
    )
}

#[test]
fn losing_drop_is_no_drop_when_the_winner_may_drop() {
    let chain = pair(no_port_1(), writes(&[], DROP), 0);
    let mut bench = Bench::new(chain);
    bench.send(LAN, from_port(1, 2));
    assert_eq!(bench.left_by(), [WAN], "the winner lets it pass");
    assert_eq!(bench.drops(), []);
    assert_eq!(bench.counters().nodes[1].rows[1].packets, 1, "its row still counts");
    bench.send(LAN, from_port(2, 1));
    assert_eq!(bench.drops(), [(0, 1, "port 1".to_owned(), 1)]);
}

#[test]
fn group_works_from_both_sides() {
    let mut bench = Bench::new(pair(writes(&[("ip.ttl", 1)], ON), no_port_1(), 1));
    bench.send(WAN, from_port(1, 1)).send(WAN, from_port(1, 2)).send(LAN, from_port(1, 3));
    assert_eq!(bench.left_by(), [LAN, WAN]);
    let counters = bench.counters();
    assert_eq!((counters.nodes[0].backward.packets, counters.nodes[1].backward.packets), (2, 2));
    assert_eq!((counters.nodes[0].forward.packets, counters.nodes[1].forward.packets), (1, 1));
}

#[test]
fn emissions_of_both_go_out_the_winners_first() {
    let mirrors = |port: u16| {
        nf(
            "",
            &format!(
                "b0: v0:bool = has udp
                     branch v0, b1, b2
                 b1: v1:port = const {port}
                     store udp.sport, v1
                     mirror back
                     mirror onward
                     jump b2
                 b2: output onward at row0"
            ),
        )
    };
    for (winner, first, second) in [(0, 10, 20), (1, 20, 10)] {
        let mut bench = Bench::new(pair(mirrors(10), mirrors(20), winner));
        bench.send(LAN, from_port(1, 99));
        let seen: Vec<_> = bench
            .got
            .packets
            .iter()
            .map(|(interface, packet)| (*interface, field(packet, Field::UdpSport).unwrap()))
            .collect();
        let expected = [(LAN, first), (WAN, first), (LAN, second), (WAN, second), (WAN, first)];
        assert_eq!(seen, expected);
        assert_eq!(bench.counters().copied, 4);
    }
}

/// Adds a VLAN tag with PCP 3 and this identifier.
fn push(id: u16) -> Arc<Model> {
    nf(
        "",
        &format!(
            "b0: v0:bool = has eth
                 branch v0, b1, b2
             b1: v1:u12 = const {id}
                 push_vlan v1
                 v2:u3 = const 3
                 store vlan.pcp, v2
                 jump b2
             b2: output onward at row0"
        ),
    )
}

/// Removes the outermost tag.
fn pop() -> Arc<Model> {
    nf(
        "",
        "b0: v0:bool = has vlan
             branch v0, b1, b2
         b1: pop_vlan
             jump b2
         b2: output onward at row0",
    )
}

/// Writes the outermost tag's identifier and the TTL.
fn retag(id: u16) -> Arc<Model> {
    nf(
        "",
        &format!(
            "b0: v0:bool = has vlan
                 branch v0, b1, b3
             b1: v1:u12 = const {id}
                 store vlan.id, v1
                 v2:bool = has ip
                 branch v2, b2, b3
             b2: v3:u8 = const 9
                 store ip.ttl, v3
                 jump b3
             b3: output onward at row0"
        ),
    )
}

fn tagged(id: u16) -> Packet {
    let mut packet = from_port(1, 99);
    packet.push_vlan(id);
    packet
}

#[test]
fn winners_headers_decide_the_layout() {
    // Both functions add a tag. Only the winner's tag is added.
    let packet = sent(pair(push(5), push(6), 1), from_port(1, 99));
    assert_eq!(field(&packet, Field::VlanId), Some(6));
    assert!(!packet.parse().has(Header::Vlan2));
}

#[test]
fn losers_fields_apply_where_they_still_are() {
    // The winner removes the tag that the loser writes. The loser's TTL stays.
    let packet = sent(pair(pop(), retag(7), 0), tagged(4));
    assert!(!packet.parse().has(Header::Vlan));
    assert_eq!(field(&packet, Field::IpTtl), Some(9));
    // The winner adds a tag in front of the tag that the loser writes.
    let packet = sent(pair(push(5), retag(7), 0), tagged(4));
    assert_eq!(field(&packet, Field::VlanId), Some(5));
    assert_eq!(field(&packet, Field::Vlan2Id), Some(7));
}

#[test]
fn losers_header_changes_stand_when_the_winner_made_none() {
    // The winner writes the tag that arrived. The loser adds a tag of its own in front of it.
    let packet = sent(pair(push(5), retag(7), 1), tagged(4));
    assert_eq!(field(&packet, Field::VlanId), Some(5));
    assert_eq!(field(&packet, Field::VlanPcp), Some(3));
    assert_eq!(field(&packet, Field::Vlan2Id), Some(7));
    assert_eq!(field(&packet, Field::IpTtl), Some(9));
    let packet = sent(pair(pop(), retag(7), 1), tagged(4));
    assert!(!packet.parse().has(Header::Vlan));
}

#[test]
fn winners_fault_stands() {
    let faults = nf("", "b0: v0:u8 = const 0 v1:u8 = div v0, v0 output onward at row0");
    let mut bench = Bench::new(pair(faults.clone(), wire(), 0));
    bench.send(LAN, from_port(1, 1));
    assert_eq!(bench.drops(), [(0, 2, "division".to_owned(), 1)]);
    // The loser's verdict stands too, because the winner has no drop.
    let mut bench = Bench::new(pair(faults, wire(), 1));
    bench.send(LAN, from_port(1, 1));
    assert_eq!(bench.drops(), [(0, 2, "division".to_owned(), 1)]);
}

#[test]
fn three_in_a_row_yield_in_order() {
    let ttl = |ttl| writes(&[("ip.ttl", ttl)], ON);
    let mut chain = line(vec![(ttl(1), vec![]), (ttl(2), vec![]), (ttl(3), vec![])]);
    chain.priorities = vec![Priority { winner: 1, loser: 0 }, Priority { winner: 2, loser: 1 }];
    let packet = sent(chain, from_port(1, 99));
    assert_eq!(field(&packet, Field::IpTtl), Some(3));
}

#[test]
fn priorities_in_a_circle_and_holding_functions_are_refused() {
    let mut chain = pair(wire(), wire(), 0);
    chain.priorities.push(Priority { winner: 1, loser: 0 });
    assert!(braid_reference::Reference::new(chain).is_err());
    let holds = nf(
        "queue q capacity 1",
        "b0: v0:duration = const 1
             hold q for v0 at row0 else b1
         b1: output onward at row0",
    );
    assert!(braid_reference::Reference::new(pair(holds, wire(), 0)).is_err());
}

#[test]
fn group_beyond_the_hop_limit_counts_no_visit() {
    // A packet goes back and forth between two functions under Priority and one that sends it back.
    // Each turn takes three visits. After 85 turns, or 255 visits, the two functions would exceed
    // the limit by one visit.
    let bouncer = || nf("", "b0: output back at row0");
    let nodes = [bouncer(), wire(), wire(), bouncer()];
    let mut chain = line(nodes.map(|model| (model, vec![])).into());
    chain.links[0].1 = Sink::Port(1, LEFT);
    chain.priorities.push(Priority { winner: 1, loser: 2 });
    let mut bench = Bench::new(chain);
    bench.send(LAN, from_port(1, 1));
    let counters = bench.counters();
    assert_eq!(counters.lost["hop_limit"], 1);
    let visits: u64 = counters.nodes.iter().map(|n| n.forward.packets + n.backward.packets).sum();
    assert_eq!(visits, 255);
}

/// Adds a tag in front of the arriving tag, and writes this identifier to the arriving tag.
fn push_and_retag(id: u16) -> Arc<Model> {
    nf(
        "",
        &format!(
            "b0: v0:bool = has vlan
                 branch v0, b1, b3
             b1: v1:u12 = const 5
                 push_vlan v1
                 v2:bool = has vlan2
                 branch v2, b2, b3
             b2: v3:u12 = const {id}
                 store vlan2.id, v3
                 jump b3
             b3: output onward at row0"
        ),
    )
}

#[test]
fn tag_that_arrived_is_the_same_tag_behind_an_added_one() {
    // Both functions write the identifier of the tag that arrived. The winner's value stays.
    let ids = |packet: &Packet| (field(packet, Field::VlanId), field(packet, Field::Vlan2Id));
    let packet = sent(pair(push_and_retag(9), retag(7), 1), tagged(4));
    assert_eq!(ids(&packet), (Some(5), Some(7)));
    let packet = sent(pair(push_and_retag(9), retag(7), 0), tagged(4));
    assert_eq!(ids(&packet), (Some(5), Some(9)));
    // The winner adds a tag of its own, so the loser's tag is not added. The loser's write to the
    // arriving tag stays.
    let packet = sent(pair(push(6), push_and_retag(9), 0), tagged(4));
    assert_eq!(ids(&packet), (Some(6), Some(9)));
}
