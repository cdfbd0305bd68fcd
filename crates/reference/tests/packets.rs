//! The fates of packets: writes and checksums, copies and answers, queues, faults, limits,
//! malformed packets, and the accounting of all packets.

mod common;

use braid_ir::chain::{Malformed, Sink, Source};
use braid_ir::engine::{HOP_LIMIT, RESUBMIT_LIMIT, Traffic};
use braid_ir::model::{LEFT, PortId, RIGHT};
use braid_ir::value::ParamValue;
use braid_packet::{Field, Link, Packet, checksum};
use common::{Bench, LAN, WAN, alone, field, from_port, line, nf, udp, wire};

#[test]
fn empty_line_passes_packets_both_ways() {
    let mut bench = Bench::new(line(vec![]));
    bench.send(LAN, from_port(1, 1)).send(WAN, from_port(2, 2));
    assert_eq!(bench.left_by(), [WAN, LAN]);
}

#[test]
fn onward_follows_the_direction_and_back_turns_it() {
    let bouncer = nf(
        "",
        "b0: v0:bool = load pkt.backward
             branch v0, b1, b2
         b1: output onward at row0
         b2: output back at row1",
    );
    let mut bench = Bench::new(line(vec![(wire(), vec![]), (bouncer, vec![])]));
    bench.send(LAN, from_port(1, 1)).send(WAN, from_port(2, 2));
    assert_eq!(bench.left_by(), [LAN, LAN]);
    let counters = bench.counters();
    let traffic = |packets| Traffic { packets, bytes: 46 * packets };
    assert_eq!((counters.nodes[1].forward, counters.nodes[1].backward), (traffic(1), traffic(1)));
    // The packet that bounced passed the first function in both directions.
    assert_eq!((counters.nodes[0].forward, counters.nodes[0].backward), (traffic(1), traffic(2)));
}

#[test]
fn writes_keep_checksums_right_and_wrong_ones_as_wrong() {
    let rewrite = nf(
        "",
        "b0: v0:bool = has udp
             branch v0, b1, b3
         b1: v1:bool = has ip
             branch v1, b2, b3
         b2: v2:ip4 = const 203.0.113.1
             store ip.src, v2
             v3:port = const 4000
             store udp.sport, v3
             jump b3
         b3: output onward at row0",
    );
    let mut bench = Bench::new(alone(rewrite));
    let good = udp(1, 0x0a00_0001, 9, 0x0800_0008, 53);
    bench.send(LAN, good.clone());
    let sent = bench.last();
    assert_eq!(field(sent, Field::IpSrc), Some(0xcb00_7101));
    assert_eq!(field(sent, Field::UdpSport), Some(4000));
    assert!(checksum::verify(sent, &sent.parse()).all_right());
    let right = field(sent, Field::L4Checksum).unwrap();
    let mut bad = good;
    let before = field(&bad, Field::L4Checksum).unwrap();
    bad.data_mut()[14 + 20 + 7] ^= 1;
    let after = field(&bad, Field::L4Checksum).unwrap();
    bench.send(LAN, bad);
    let sent = bench.last();
    assert_eq!(checksum::verify(sent, &sent.parse()).transport, Some(false));
    assert_eq!(field(sent, Field::L4Checksum), Some(right + after - before), "as wrong as it was");
}

#[test]
fn assignment_of_the_old_value_leaves_the_canonical_checksum() {
    let rewrite = nf(
        "",
        "b0: v0:bool = has ip
             branch v0, b1, b2
         b1: v1:u8 = load ip.ttl
             store ip.ttl, v1
             jump b2
         b2: output onward at row0",
    );
    // The rest of the header sums to 0xffff, so 0x0000 and 0xffff are both right checksums.
    let mut packet = from_port(1, 1);
    let id = field(&packet, Field::IpChecksum).unwrap();
    let layout = packet.parse();
    assert_eq!(field(&packet, Field::IpId), Some(0));
    packet.set(&layout, Field::IpId, id);
    assert_eq!(field(&packet, Field::IpChecksum), Some(0));
    packet.data_mut()[14 + 10..14 + 12].copy_from_slice(&[0xff, 0xff]);
    let mut untouched = Bench::new(alone(wire()));
    untouched.send(LAN, packet.clone());
    assert_eq!(field(untouched.last(), Field::IpChecksum), Some(0xffff));
    let mut bench = Bench::new(alone(rewrite));
    bench.send(LAN, packet);
    assert_eq!(field(bench.last(), Field::IpChecksum), Some(0));
}

#[test]
fn writes_of_two_functions_that_cancel_leave_the_canonical_checksums() {
    let port = |port: u16| {
        nf(
            "",
            &format!(
                "b0: v0:bool = has udp
                     branch v0, b1, b2
                 b1: v1:port = const {port}
                     store udp.sport, v1
                     jump b2
                 b2: output onward at row0"
            ),
        )
    };
    // A wrong checksum of 0x1234 is restored. 0xffff is UDP's canonical form, and 0 means no
    // checksum.
    for sum in [0x1234_u16, 0xffff, 0] {
        let mut packet = from_port(1, 7);
        packet.data_mut()[14 + 20 + 6..][..2].copy_from_slice(&sum.to_be_bytes());
        let mut bench = Bench::new(line(vec![(port(9), vec![]), (port(7), vec![])]));
        bench.send(LAN, packet.clone());
        assert_eq!(bench.last().data(), packet.data(), "{sum:#x}");
    }
}

#[test]
fn loads_see_writes_and_entry_loads_do_not() {
    let model = nf(
        "event SAYS { now: port } event SAID { entry: port }",
        "b0: v0:bool = has udp
             branch v0, b1, b2
         b1: v1:port = const 7
             store udp.sport, v1
             v2:port = load l4.sport
             emit SAYS(v2)
             v3:port = load_entry udp.sport
             emit SAID(v3)
             jump b2
         b2: output onward at row0",
    );
    let mut bench = Bench::new(alone(model));
    bench.send(LAN, from_port(1, 99));
    assert_eq!(bench.events(), [(1, 7), (1, 99)]);
}

#[test]
fn presence_follows_what_was_written() {
    let model = nf(
        "event SAYS { echo: bool }",
        "b0: v0:bool = has icmp
             branch v0, b1, b2
         b1: v1:u8 = const 3
             store icmp.type, v1
             v2:bool = has icmp.echo
             emit SAYS(v2)
             v3:u8 = const 8
             store icmp.type, v3
             v4:bool = has icmp.echo
             emit SAYS(v4)
             jump b2
         b2: output onward at row0",
    );
    let fields = [(Field::IcmpType, 8)];
    let ping =
        braid_packet::build_fresh(Link::Ethernet, 1, braid_packet::Shape::Icmp, &fields, &[]);
    let mut bench = Bench::new(alone(model));
    bench.send(LAN, ping.unwrap());
    assert_eq!(bench.events(), [(1, 0), (1, 1)]);
}

#[test]
fn implicit_key_is_that_of_the_entering_packet() {
    let model = nf(
        "state seen: u8 per (udp.sport) capacity 9 full refuse tick 1",
        "b0: v0:bool = has udp
             branch v0, b1, b2
         b1: v1:port = const 7
             store udp.sport, v1
             v2:u8 = const 1
             v3:bool = set seen[entry], (v2)
             jump b2
         b2: output onward at row0",
    );
    let mut bench = Bench::new(alone(model));
    bench.send(LAN, from_port(1, 99));
    assert_eq!(bench.state()[0].key[0].1, 99);
}

#[test]
fn mirrored_packet_is_a_copy_of_that_moment_and_goes_first() {
    let model = nf(
        "ports left, right, tap",
        "b0: v0:bool = has udp
             branch v0, b1, b2
         b1: v1:port = const 7
             mirror back
             store udp.sport, v1
             jump b2
         b2: output onward, back at row0",
    );
    let mut bench = Bench::new(alone(model));
    bench.send(LAN, from_port(1, 99));
    let ports: Vec<_> =
        bench.got.packets.iter().map(|(i, p)| (*i, field(p, Field::UdpSport).unwrap())).collect();
    assert_eq!(ports, [(LAN, 99), (WAN, 7), (LAN, 7)]);
    let counters = bench.counters();
    assert_eq!((counters.packets_in, counters.copied, counters.created), (1, 2, 0));
}

#[test]
fn answer_is_built_from_the_current_packet_and_the_question_consumed() {
    let model = nf(
        "",
        "b0: v0:bool = has udp
             branch v0, b1, b2
         b1: v1:u8 = const 3
             v2:u8 = const 1
             count row1
             create icmp { icmp.type = v1, icmp.code = v2 } payload quote 28 to back
             consume at row1
         b2: output onward at row0",
    );
    let mut bench = Bench::new(line(vec![(wire(), vec![]), (model, vec![])]));
    bench.send(LAN, udp(1, 0x0a00_0001, 9, 0x0800_0008, 53));
    assert_eq!(bench.got.packets.len(), 1);
    let answer = bench.last();
    assert_eq!(bench.got.packets[0].0, LAN);
    assert_eq!(field(answer, Field::IpSrc), Some(0x0800_0008));
    assert_eq!(field(answer, Field::IpDst), Some(0x0a00_0001));
    assert_eq!(field(answer, Field::QuotedSport), Some(9));
    assert!(checksum::verify(answer, &answer.parse()).all_right());
    let counters = bench.counters();
    assert_eq!((counters.created, counters.consumed), (1, 1));
    assert_eq!(counters.nodes[1].rows[1], Traffic { packets: 1, bytes: 46 });
    assert_eq!(counters.nodes[0].backward.packets, 1, "the answer passed the first function");
}

#[test]
fn each_walk_ends_before_the_next_begins() {
    // Two copies go right through a function that reports their source port.
    let twice = nf(
        "",
        "b0: v0:bool = has udp
             branch v0, b1, b2
         b1: v1:port = const 1
             store udp.sport, v1
             mirror onward
             v2:port = const 2
             store udp.sport, v2
             jump b2
         b2: output onward at row0",
    );
    let says = |number: u8| {
        nf(
            "event SAYS { what: u32 }",
            &format!(
                "b0: v0:bool = has udp
                     branch v0, b1, b2
                 b1: v1:port = load udp.sport
                     v2:u32 = resize v1
                     v3:u32 = const {number}0
                     v4:u32 = add_sat v2, v3
                     emit SAYS(v4)
                     jump b2
                 b2: output onward at row0"
            ),
        )
    };
    let mut bench = Bench::new(line(vec![(twice, vec![]), (says(1), vec![]), (says(2), vec![])]));
    bench.send(LAN, from_port(1, 9));
    let said: Vec<_> = bench.events().into_iter().map(|(_, what)| what).collect();
    assert_eq!(said, [11, 21, 12, 22]);
}

#[test]
fn held_packet_runs_anew_after_the_delay_and_full_queue_says_no() {
    let model = nf(
        "queue q capacity 1 reason \"q full\"",
        "b0: v0:bool = load pkt.held
             branch v0, b1, b2
         b1: output onward at row0
         b2: v1:duration = const 50
             hold q for v1 at row0 else b3
         b3: drop \"q full\" at row1",
    );
    let held = nf(
        "event SAYS { held: bool }",
        "b0: v0:bool = load pkt.held emit SAYS(v0)
                   output onward at row0",
    );
    let mut bench = Bench::new(line(vec![(model, vec![]), (held, vec![])]));
    bench.send(LAN, from_port(100, 1)).send(LAN, from_port(120, 2));
    assert_eq!(bench.counters().held, 1);
    assert_eq!(bench.drops(), [(0, 1, "q full".to_owned(), 1)]);
    bench.advance(149);
    assert!(bench.left_by().is_empty());
    bench.advance(150);
    assert_eq!(bench.left_by(), [WAN]);
    assert_eq!(bench.counters().held, 0);
    assert_eq!(bench.events(), [(150, 0)], "held means held by this function");
    assert_eq!(bench.counters().nodes[0].forward.packets, 2, "it entered once");
}

#[test]
fn packet_that_is_held_for_ever_is_lost_at_the_hop_limit() {
    let model = nf(
        "queue q capacity 1 reason \"q full\"",
        "b0: v0:duration = const 0
             hold q for v0 at row0 else b1
         b1: drop \"q full\" at row1",
    );
    let mut bench = Bench::new(alone(model));
    bench.send(LAN, from_port(100, 1)).advance(101);
    assert_eq!(bench.counters().lost["hop_limit"], 1);
    assert_eq!(bench.counters().held, 0);
}

#[test]
fn packet_that_goes_to_and_fro_is_lost_at_the_hop_limit() {
    let bouncer = || nf("", "b0: output back at row0");
    // Between two functions that both send back, the packet never leaves.
    let mut bench = Bench::new(line(vec![(wire(), vec![]), (bouncer(), vec![])]));
    bench.send(LAN, from_port(1, 1));
    assert_eq!(bench.left_by(), [LAN]);
    let mut chain = line(vec![(bouncer(), vec![]), (bouncer(), vec![])]);
    chain.links[0].1 = Sink::Port(1, LEFT);
    let mut bench = Bench::new(chain);
    bench.send(LAN, from_port(1, 1));
    assert!(bench.left_by().is_empty());
    let counters = bench.counters();
    assert_eq!(counters.lost["hop_limit"], 1);
    let visits: u64 = counters.nodes.iter().map(|n| n.forward.packets + n.backward.packets).sum();
    assert_eq!(visits, u64::from(HOP_LIMIT));
}

#[test]
fn copies_share_the_hop_limit() {
    // Eight doublings would need 2 + 4 + ... + 256 = 510 visits. The limit is 256 visits.
    let double = || nf("", "b0: mirror onward output onward at row0");
    let mut bench = Bench::new(line((0..9).map(|_| (double(), vec![])).collect()));
    bench.send(LAN, from_port(1, 1));
    let counters = bench.counters();
    let visits: u64 = counters.nodes.iter().map(|node| node.forward.packets).sum();
    assert_eq!(visits, u64::from(HOP_LIMIT));
    assert!(counters.lost["hop_limit"] > 0);
}

#[test]
fn resubmitted_packet_enters_anew_as_it_is() {
    // Adds 1 to the TTL on each run, reports the TTL on entry, and sends the packet onward at 67.
    let model = nf(
        "event SAYS { ttl: u8 }",
        "b0: v0:bool = has ip
             branch v0, b1, b4
         b1: v1:u8 = load_entry ip.ttl
             emit SAYS(v1)
             v2:u8 = const 67
             v3:bool = ge v1, v2
             branch v3, b4, b2
         b2: v4:u8 = const 1
             v5:u8 = add_sat v1, v4
             store ip.ttl, v5
             jump b3
         b3: resubmit at row0
         b4: output onward at row0",
    );
    let mut bench = Bench::new(alone(model));
    bench.send(LAN, from_port(1, 1));
    let said: Vec<_> = bench.events().into_iter().map(|(_, what)| what).collect();
    assert_eq!(said, [64, 65, 66, 67]);
    assert_eq!(bench.left_by(), [WAN]);
    assert_eq!(bench.counters().nodes[0].forward.packets, 1);
}

#[test]
fn endless_resubmit_is_a_fault() {
    let model = nf(
        "event SAYS { n: u8 }",
        "b0: v0:u8 = const 1
             emit SAYS(v0)
             resubmit at row0",
    );
    let mut bench = Bench::new(alone(model));
    bench.send(LAN, from_port(1, 1));
    assert_eq!(bench.events().len() as u32, 1 + RESUBMIT_LIMIT);
    assert_eq!(bench.drops(), [(0, 2, "resubmit".to_owned(), 1)]);
}

#[test]
fn faults_drop_at_the_row_fault_and_earlier_effects_stay() {
    let fails = |op: &str| {
        nf(
            "param servers: list<ip4>
             state n: u8 global default (0)",
            &format!(
                "b0: v0:u8 = const 1
                     v1:bool = set n[entry], (v0)
                     mirror onward
                     v2:u8 = const 0
                     v3:u32 = const 1
                     {op}
                     output onward at row0"
            ),
        )
    };
    let cases = [
        ("v4:u8 = div v0, v2", "division"),
        ("v4:u8 = rem v0, v2", "division"),
        ("v4:ip4 = member servers, v3, 0", "index"),
    ];
    for (op, reason) in cases {
        let servers = ParamValue::List(vec![vec![7]]);
        let mut bench = Bench::new(line(vec![(fails(op), vec![servers])]));
        bench.send(LAN, from_port(1, 1));
        assert_eq!(bench.drops(), [(0, 2, reason.to_owned(), 1)]);
        assert_eq!(bench.state()[0].slots[0].2, 1);
        assert_eq!(bench.left_by(), [WAN], "the mirrored copy");
        assert_eq!(bench.counters().nodes[0].rows[2], Traffic { packets: 1, bytes: 46 });
    }
}

#[test]
fn payload_that_the_capture_lacks_is_a_fault() {
    let model = nf(
        "event SAYS { sum: u16 }",
        "b0: v0:u16 = extern checksum()
             emit SAYS(v0)
             output onward at row0",
    );
    let whole = from_port(1, 1);
    let wire_len = whole.wire_len;
    let mut cut = whole.data().to_vec();
    cut.truncate(cut.len() - 1);
    let mut bench = Bench::new(alone(model));
    bench.send(LAN, whole);
    // The sum of "data": 0x6461 + 0x7461 = 0xd8c2.
    assert_eq!(bench.events(), [(1, u128::from(!0xd8c2_u16))]);
    bench.send(LAN, Packet::snapped(Link::Ethernet, 2, cut, wire_len));
    assert_eq!(bench.drops(), [(0, 2, "truncated".to_owned(), 1)]);
}

#[test]
fn background_faults_are_counted() {
    let model = common::nf_with(
        "state s: u8 per [u8] capacity 1 full refuse tick 1 event SAYS { n: u8 }",
        "b0: output onward at row0",
        "every 10 { b0: v0:u8 = const 1 emit SAYS(v0) v1:u8 = get s[v0] emit SAYS(v1) return }",
    );
    let mut bench = Bench::new(alone(model));
    bench.send(LAN, from_port(0, 1)).advance(10);
    assert_eq!(bench.events(), [(10, 1)], "what came before the fault stays");
    assert_eq!(bench.counters().nodes[0].background_faults, 1);
}

#[test]
fn malformed_packet_is_lost_by_reason_or_passes() {
    let mut bytes = from_port(1, 1).data().to_vec();
    bytes[14] = 0x44;
    let bad = || Packet::new(Link::Ethernet, 1, bytes.clone());
    let mut bench = Bench::new(alone(wire()));
    bench.send(LAN, bad());
    assert_eq!(bench.counters().lost["ip_header_length"], 1);
    let mut chain = alone(wire());
    chain.malformed = Malformed::Pass;
    let mut bench = Bench::new(chain);
    bench.send(LAN, bad());
    assert_eq!(bench.left_by(), [WAN]);
}

#[test]
fn packet_to_an_unlinked_port_is_lost() {
    let model = nf("ports left, right, dmz", "b0: output port dmz at row0");
    let mut chain = alone(model.clone());
    let mut bench = Bench::new(chain.clone());
    bench.send(LAN, from_port(1, 1));
    assert_eq!(bench.counters().lost["unlinked"], 1);
    chain.links.push((Source::Port(0, PortId(2)), Sink::Interface(LAN)));
    let mut bench = Bench::new(chain.clone());
    bench.send(LAN, from_port(1, 1));
    assert_eq!(bench.left_by(), [LAN]);
    chain.links.retain(|(source, _)| *source != Source::Interface(LAN));
    let mut bench = Bench::new(chain.clone());
    bench.send(LAN, from_port(1, 1));
    assert_eq!(bench.counters().lost["unlinked"], 1);
    chain.links.push((Source::Port(0, PortId(2)), Sink::Port(0, RIGHT)));
    assert!(braid_reference::Reference::new(chain).is_err(), "two links from a port");
}

#[test]
fn tags_are_shared_by_name_and_read_0_when_unset() {
    let set = nf(
        "tag mark: u16",
        "b0: v0:u16 = const 258 store_tag mark, v0
                  output onward at row0",
    );
    let get = nf(
        "tag mark: u8 tag other: u8 event SAYS { mark: u8 } event ALSO { other: u8 }",
        "b0: v0:u8 = load_tag mark
             v1:u8 = load_tag other
             emit SAYS(v0)
             emit ALSO(v1)
             output onward at row0",
    );
    let mut bench = Bench::new(line(vec![(set, vec![]), (get, vec![])]));
    bench.send(LAN, from_port(1, 1));
    // A read with a narrower type gives the low bits of 0x102.
    assert_eq!(bench.events(), [(1, 2), (1, 0)]);
}

#[test]
fn vlan_tags_come_and_go_and_lengths_follow() {
    let push = nf(
        "",
        "b0: v0:bool = has eth
             branch v0, b1, b2
         b1: v1:u12 = const 42
             push_vlan v1
             v2:u3 = const 5
             store vlan.pcp, v2
             jump b2
         b2: output onward at row0",
    );
    let pop = nf(
        "",
        "b0: v0:bool = has vlan
             branch v0, b1, b2
         b1: pop_vlan
             jump b2
         b2: output onward at row0",
    );
    let mut bench = Bench::new(alone(push.clone()));
    bench.send(LAN, from_port(1, 1));
    let tagged = bench.last();
    assert_eq!((field(tagged, Field::VlanId), field(tagged, Field::VlanPcp)), (Some(42), Some(5)));
    assert_eq!(tagged.wire_len, 50);
    assert_eq!(field(tagged, Field::UdpDport), Some(53));
    let mut bench = Bench::new(line(vec![(push, vec![]), (pop, vec![])]));
    bench.send(LAN, from_port(1, 1));
    assert_eq!(bench.last().data(), from_port(1, 1).data());
}

#[test]
fn rule_routes_and_patterns_decide_and_count() {
    use braid_externs::patterns::{Matcher, Pattern, PatternSet};
    use braid_ir::routes::RouteTable;
    use braid_ir::value::{Rule, RuleSet};
    let model = nf(
        "param ok: rules param table: routes param sigs: patterns
         event SAYS { pass: bool, rule: u32, found: bool, hop: u32, hit: bool, number: u32 }",
        "b0: v0:bool, v1:u32 = rules ok
             v2:bool, v3:u32 = patterns sigs
             v4:ip4 = const 10.1.2.3
             v5:bool, v6:u32 = route table, v4
             emit SAYS(v0, v1, v5, v6, v2, v3)
             output onward at row0",
    );
    let rules = RuleSet {
        rules: vec![
            Rule { dport: (80, 80), ..Rule::any(true) },
            Rule { sport: (1, 1), ..Rule::any(true) },
        ],
        default_pass: false,
    };
    let mut routes = RouteTable::default();
    routes.insert4(0x0a00_0000, 8, 5);
    routes.insert4(0x0a01_0000, 16, 6);
    let literal = |number, text: &str| Pattern {
        number,
        matcher: Matcher::Literal { bytes: text.as_bytes().to_vec(), nocase: false },
    };
    let sigs = PatternSet::new(vec![literal(9, "dat"), literal(4, "ata")]).unwrap();
    let params =
        vec![ParamValue::Rules(rules), ParamValue::Routes(routes), ParamValue::Patterns(sigs)];
    let mut bench = Bench::new(line(vec![(model, params)]));
    let said = |bench: &mut Bench, packet| {
        bench.send(LAN, packet);
        let event = bench.got.events.pop().unwrap();
        let value = |value| match value {
            braid_ir::engine::EventValue::Scalar(_, value) => value,
            braid_ir::engine::EventValue::Str(_) => 99,
        };
        event.fields.into_iter().map(|field| value(field.1)).collect::<Vec<_>>()
    };
    assert_eq!(said(&mut bench, from_port(1, 1)), [1, 1, 1, 6, 1, 4]);
    assert_eq!(said(&mut bench, from_port(1, 2)), [0, 2, 1, 6, 1, 4]);
    let arp = braid_packet::build_fresh(Link::Ethernet, 1, braid_packet::Shape::Arp, &[], &[]);
    assert_eq!(said(&mut bench, arp.unwrap()), [0, 2, 1, 6, 0, 0]);
    assert_eq!(bench.counters().nodes[0].rules[&0], [0, 1, 1], "a packet without IP: no rule");
}
