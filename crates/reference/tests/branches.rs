//! `Priority` between functions that are not neighbours: the functions between them belong to the
//! branch of the one in front.

mod common;

use braid_ir::chain::{Chain, Priority, Sink, Source};
use braid_ir::engine::EventValue;
use braid_ir::model::{LEFT, Model, PortId, RIGHT};
use braid_packet::Field;
use common::{Bench, LAN, ON, WAN, field, from_port, line, nf, wire, writes};
use std::sync::Arc;

/// Functions in a line. The first and the last one are related, and the one with the number
/// `winner` wins.
fn row(models: Vec<Arc<Model>>, winner: u16) -> Chain {
    let last = u16::try_from(models.len() - 1).unwrap();
    let mut chain = line(models.into_iter().map(|model| (model, vec![])).collect());
    chain.priorities.push(Priority { winner, loser: last - winner });
    chain
}

/// Writes a field of UDP packets.
fn sets(name: &str, value: u128) -> Arc<Model> {
    writes(&[(name, value)], ON)
}

/// Publishes 256 times the source port, plus the TTL.
fn says() -> Arc<Model> {
    nf(
        "event SAYS { what: u32 }",
        "b0: v0:bool = has udp
             branch v0, b1, b3
         b1: v1:port = load udp.sport
             v2:u32 = resize v1
             v3:bool = has ip
             branch v3, b2, b3
         b2: v4:u32 = const 8
             v5:u32 = shl v2, v4
             v6:u8 = load ip.ttl
             v7:u32 = resize v6
             v8:u32 = or v5, v7
             emit SAYS(v8)
             jump b3
         b3: output onward at row0",
    )
}

/// Ends packets from this source port in this way, and passes all others.
fn on_port(port: u16, declarations: &str, end: &str) -> Arc<Model> {
    nf(
        declarations,
        &format!(
            "b0: v0:bool = has udp
                 branch v0, b1, b3
             b1: v1:port = load udp.sport
                 v2:port = const {port}
                 v3:bool = eq v1, v2
                 branch v3, b2, b3
             b2: {end}
             b3: output onward at row0"
        ),
    )
}

fn drops(port: u16) -> Arc<Model> {
    on_port(port, "reason \"no\"", "drop \"no\" at row1")
}

/// What functions said, each with its number.
type Said = Vec<(u16, u128)>;

fn said(bench: &Bench) -> Said {
    let value = |event: &braid_ir::engine::Event| match event.fields[0].1 {
        EventValue::Scalar(_, value) => (event.node, value),
        ref other => panic!("{other:?}"),
    };
    bench.got.events.iter().map(value).collect()
}

/// What functions said, and the ports and TTLs of the packets that left.
fn run(chain: Chain, ingress: u16, port: u16) -> (Said, Vec<(u128, u128)>) {
    let mut bench = Bench::new(chain);
    bench.send(ingress, from_port(1, port));
    let left = bench.got.packets.iter().map(|(interface, packet)| {
        assert_eq!(*interface, 1 - ingress);
        (field(packet, Field::UdpSport).unwrap(), field(packet, Field::IpTtl).unwrap())
    });
    let left = left.collect();
    (said(&bench), left)
}

#[test]
fn function_between_sees_what_the_one_in_front_made_and_the_other_what_arrived() {
    let chain = |winner| row(vec![sets("ip.ttl", 7), says(), says()], winner);
    for winner in [0, 2] {
        let (mut events, left) = run(chain(winner), LAN, 9);
        events.sort_unstable();
        assert_eq!(events, [(1, 0x907), (2, 0x940)]);
        assert_eq!(left, [(9, 7)]);
    }
}

#[test]
fn backward_packets_take_the_functions_between_behind_the_last_function() {
    let chain = row(vec![says(), says(), sets("ip.ttl", 7)], 0);
    let (events, left) = run(chain, WAN, 9);
    assert_eq!(events, [(0, 0x940), (1, 0x907)]);
    assert_eq!(left, [(9, 7)]);
}

#[test]
fn writes_of_the_branch_that_wins_stay() {
    for (winner, port, ttl) in [(0, 5, 4), (3, 6, 4)] {
        let models = vec![
            sets("udp.sport", 3),
            sets("udp.sport", 5),
            sets("ip.ttl", 4),
            sets("udp.sport", 6),
        ];
        assert_eq!(run(row(models, winner), LAN, 9).1, [(port, ttl)]);
    }
}

#[test]
fn drop_of_a_function_between_counts_whoever_wins() {
    for winner in [0, 2] {
        let mut bench = Bench::new(row(vec![drops(1), drops(2), drops(3)], winner));
        bench.send(LAN, from_port(1, 2));
        assert_eq!(bench.drops(), [(1, 1, "no".to_owned(), 1)], "winner {winner}");
        assert_eq!(bench.counters().nodes[2].forward.packets, 1, "the other branch ran");
    }
}

#[test]
fn drops_of_related_functions_count_only_if_they_win() {
    // By the winner: the port of packets that the first function drops, and whether that counts.
    for (winner, first, last) in [(0, true, false), (2, false, true)] {
        for (port, counts, node) in [(1, first, 0), (3, last, 2)] {
            let mut bench = Bench::new(row(vec![drops(1), says(), drops(3)], winner));
            bench.send(LAN, from_port(1, port));
            let dropped: Vec<u16> = bench.drops().iter().map(|drop| drop.0).collect();
            assert_eq!(dropped, if counts { vec![node] } else { vec![] });
            // The function between sees what is not dropped in front of it.
            let seen = bench.counters().nodes[1].forward.packets;
            assert_eq!(seen, u64::from(!(counts && node == 0)), "winner {winner}, port {port}");
        }
    }
}

#[test]
fn drop_behind_a_winner_that_drops_nothing_counts() {
    let mut bench = Bench::new(row(vec![wire(), says(), drops(3)], 0));
    bench.send(LAN, from_port(1, 3));
    assert_eq!(bench.drops(), [(2, 1, "no".to_owned(), 1)]);
}

#[test]
fn function_between_leads_elsewhere() {
    let turns = on_port(2, "ports left, right, side", "output port side at row1");
    for winner in [0, 2] {
        let mut chain = row(vec![sets("ip.ttl", 7), turns.clone(), drops(2)], winner);
        // Packets of the port leave by `lan`, so that they can be told apart.
        chain.links.push((Source::Port(1, PortId(2)), Sink::Interface(LAN)));
        let mut bench = Bench::new(chain);
        bench.send(LAN, from_port(1, 2));
        assert_eq!(field(bench.last(), Field::IpTtl), Some(7));
        assert_eq!((bench.left_by(), bench.drops().len()), (vec![LAN], 0), "winner {winner}");
    }
}

#[test]
fn packets_that_a_branch_sends_pass_the_rest_of_it_and_bypass_others() {
    let mirrors = nf("", "b0: mirror back mirror onward output onward at row0");
    let mut bench = Bench::new(row(vec![mirrors, says(), says()], 0));
    bench.send(LAN, from_port(1, 9));
    // The mirror passes the function between before the packet itself does.
    assert_eq!(said(&bench), [(1, 0x940), (1, 0x940), (2, 0x940)]);
    assert_eq!(bench.left_by(), [LAN, WAN, WAN]);
    let visits: Vec<u64> = bench.counters().nodes.iter().map(|node| node.forward.packets).collect();
    assert_eq!(visits, [1, 2, 1]);
}

#[test]
fn packets_that_the_last_function_sends_back_bypass_the_others() {
    let mirrors = nf("", "b0: mirror back output onward at row0");
    let mut bench = Bench::new(row(vec![says(), says(), mirrors], 0));
    bench.send(LAN, from_port(1, 9));
    assert_eq!(said(&bench), [(0, 0x940), (1, 0x940)]);
    assert_eq!(bench.left_by(), [LAN, WAN]);
}

#[test]
fn functions_that_are_not_on_one_path_are_refused() {
    let mut chain = row(vec![wire(), wire(), wire()], 0);
    chain.links.retain(|(source, _)| *source != Source::Port(1, RIGHT));
    assert!(braid_reference::Reference::new(chain.clone()).is_err());
    chain.links.push((Source::Port(1, RIGHT), Sink::Port(2, LEFT)));
    assert!(braid_reference::Reference::new(chain).is_ok());
}

#[test]
fn groups_that_overlap_and_functions_between_that_hold_packets_are_refused() {
    let mut chain = row(vec![wire(), wire(), wire(), wire()], 0);
    chain.priorities = vec![Priority { winner: 0, loser: 2 }, Priority { winner: 1, loser: 3 }];
    assert!(braid_reference::Reference::new(chain).is_err());
    let holds = nf(
        "queue q capacity 1",
        "b0: v0:duration = const 1
             hold q for v0 at row0 else b1
         b1: output onward at row0",
    );
    assert!(braid_reference::Reference::new(row(vec![wire(), holds, wire()], 0)).is_err());
}
