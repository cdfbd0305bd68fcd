//! Records of packets that come in tunnels, which end on the path.

use crate::{chain, eager, enter, left, same};
use braid_engine::{Compiled, Options, RecordMutant};
use braid_ir::chain::Chain;
use braid_ir::residual::Extent;
use braid_packet::Field;
use braid_testkit::compare::difference;
use braid_testkit::generate::Rng;
use braid_testkit::record::{Detail, Stimulus, record};

const FLOWS: u64 = 100;
const ROUNDS: u64 = 4;

/// Functions of the chains.
const OWN: &str = "
      nf frames_out() {
        match {
          forward and has vxlan => { pop eth, ip, udp, vxlan else drop \"no frame\"; output; }
          else => output;
        }
      }
      nf packets_out() {
        match {
          forward and has gre => { pop ip, gre else drop \"no packet\"; output; }
          else => output;
        }
      }
      // What the packet inside may do depends on the outer headers, and on what was learned.
      nf endpoint(own: ip4) {
        state at: ip4 per (mac), idle 60 s, capacity 16, full evict_oldest;
        match {
          forward and has ip and ip.dst == own and vxlan.vni == 42 => {
            let peer = ip.src;
            pop eth, ip, udp, vxlan else drop \"no frame\";
            if has eth {
              if exists at[eth.src] and at[eth.src] != peer { drop \"moved\"; }
              at[eth.src] = peer;
            }
            if has ip and ip.dst == peer { drop \"loop\"; }
            output;
          }
          else => output;
        }
      }
      nf sizes() {
        state sum: u64 per ip.src = 0, capacity 64, full evict_oldest;
        match {
          forward and has ip => {
            sum += u64(pkt.len);
            if sum > 20_000 { drop \"spent\"; }
            output;
          }
          else => output;
        }
      }
      nf hop() {
        match {
          forward and has ip and ip.ttl > 1 => { ip.ttl = ip.ttl - 1; output; }
          has ip and ip.ttl <= 1 => drop \"ttl\";
          else => output;
        }
      }
      nf station() {
        match {
          forward and has eth and has ip => { eth.dst = 02:00:00:00:00:77; ip.tos = 4; output; }
          else => output;
        }
      }
      nf long() { match { forward and pkt.len > 150 => drop \"long\"; else => output; } }
      nf tagged() {
        match { forward and has eth and has ip => { push vlan(7); output; } else => output; }
      }
      nf again() {
        match {
          forward and has ip => {
            push ip { src: 198.51.100.1, dst: 198.51.100.2 }, gre { key: 9 } else drop \"long\";
            output;
          }
          else => output;
        }
      }
      nf stamped() { match { forward and has tcp.ts => drop \"stamped\"; else => output; } }";

/// A chain of these functions, or of functions of the library.
fn row(functions: &str) -> Chain {
    let row = format!("path underlay <-> {functions} <-> wan;");
    chain(&format!("{OWN} chain c {{ interface underlay; interface wan; {row} }}"), &[])
}

/// The beginning of a packet in a tunnel of frames.
const FRAMES: &str = "udp 192.0.2.2:50000 > 192.0.2.1:4789 / vxlan 42 / ";

/// The packets of the flows, each inside these headers, in rounds.
fn rounds(outer: &str, packet: &str) -> Vec<Stimulus> {
    let one = |number: u64| {
        let (port, round) = (1000 + number % FLOWS, number / FLOWS);
        let packet = if port % 2 == 0 { packet.replace("udp 10", "tcp 10") } else { packet.into() };
        enter(
            number,
            0,
            &format!("{outer}{} \"{round}\"", packet.replace("PORT", &port.to_string())),
        )
    };
    (0..FLOWS * ROUNDS).map(one).collect()
}

/// All but the first packets of each flow take one record, which a script has made.
#[test]
fn packets_that_leave_a_tunnel_take_one_record_for_their_whole_path() {
    let udp = "udp 10.0.0.1:PORT > 10.9.9.9:53";
    let frame = "eth 02:00:00:00:01:01 > 02:00:00:00:02:00 / udp 10.0.0.1:PORT > 10.9.9.9:53";
    for (functions, outer, packet) in [
        ("frames_out() <-> monitor() <-> napt(public: 203.0.113.1)", FRAMES, frame),
        ("hop() <-> frames_out() <-> monitor() <-> hop()", FRAMES, frame),
        ("long() <-> frames_out() <-> monitor() <-> hop()", FRAMES, frame),
        ("endpoint(own: 192.0.2.1) <-> monitor() <-> station()", FRAMES, frame),
        ("frames_out() <-> monitor() <-> tagged()", FRAMES, frame),
        ("frames_out() <-> monitor() <-> again()", FRAMES, frame),
        ("packets_out() <-> monitor() <-> hop()", "ip 192.0.2.2 > 192.0.2.1 / gre key=5 / ", udp),
    ] {
        let (trace, flows) = same(&row(functions), &rounds(outer, packet));
        let arrived = left(&trace, Field::IpSrc).iter().flatten().count() as u64;
        assert!(arrived >= FLOWS * ROUNDS / 2, "{functions}: {arrived} packets");
        assert!(flows.hits >= FLOWS * (ROUNDS - 2), "{functions}: {flows:?}");
        assert_eq!(flows.rest_hits, 0, "{functions}: {flows:?}");
        assert!(flows.scripted >= FLOWS - 4, "{functions}: {flows:?}");
    }
}

/// Where the flow inside cannot be a part of a key, or where a function in front of the tunnel's
/// end counts in an entry that all flows in the tunnel share, packets take records from the end on.
#[test]
fn other_packets_that_leave_a_tunnel_take_records_from_there() {
    let link = "eth 02:00:00:00:01:01 > 02:00:00:00:02:00 / ";
    for (functions, packet, hits) in [
        ("frames_out() <-> monitor()", "udp [2001:db8::1]:PORT > [2001:db8::2]:53", 0),
        ("monitor() <-> frames_out() <-> monitor()", "udp 10.0.0.1:PORT > 10.9.9.9:53", 1),
    ] {
        let (_, flows) = same(&row(functions), &rounds(FRAMES, &format!("{link}{packet}")));
        assert!(flows.rest_hits >= FLOWS * (ROUNDS - 2), "{functions}: {flows:?}");
        assert!(flows.hits >= hits * FLOWS * (ROUNDS - 2), "{functions}: {flows:?}");
    }
}

/// A packet in a tunnel, or one beside it.
fn any(rng: &mut Rng) -> String {
    let filler = "x".repeat(rng.below(110));
    let (client, port) = (rng.below(3), 1000 + rng.below(4));
    let from = format!("10.0.0.{client}:{port}");
    let ttl = rng.pick(&["", "", "", " ttl=1", " ttl=9"]);
    let packet = match rng.below(12) {
        0 => format!("icmp 10.0.0.{client} > 10.9.9.9 echo-request id={port}"),
        1 => format!("udp [2001:db8::{client}]:{port} > [2001:db8::9]:53"),
        2 => format!("udp {from} > 10.9.9.9:53 mf"),
        3..=4 => format!("tcp {from} > 10.9.9.9:80 A ts=1,2"),
        5 => format!("tcp {from} > 10.9.9.9:80 S mss=1400"),
        6..=7 => format!("tcp {from} > 10.9.9.9:80 A{ttl}"),
        // To the tunnel's other end.
        8 => format!("udp {from} > 192.0.2.2:53{ttl}"),
        _ => format!("udp {from} > 10.9.9.9:53{ttl}"),
    };
    let station = rng.below(3);
    let frame = format!("eth 02:00:00:00:01:0{station} > 02:00:00:00:02:00 / {packet}");
    let (peer, outer_ttl) = (2 + rng.below(2), rng.pick(&["", "", " ttl=1"]));
    let tag = rng.pick(&["", "", "", "vlan 5 / "]);
    let vni = if rng.one_in(8) { 43 } else { 42 };
    let end = rng.pick(&["", "", "", "", " pad=4", " snap=95"]);
    let udp = format!("udp 192.0.2.{peer}:{} > 192.0.2.1:4789{outer_ttl}", 50_000 + rng.below(2));
    match rng.below(9) {
        0 => format!("{packet} \"{filler}\""),
        1 => format!("ip 2001:db8::7 > 2001:db8::8 / gre key=5 / {packet} \"{filler}\"{end}"),
        2..=3 => {
            let key = rng.pick(&["", " key=5", " key=6"]);
            format!(
                "ip 192.0.2.{peer} > 192.0.2.1{outer_ttl} / gre{key} / {packet} \"{filler}\"{end}"
            )
        }
        4 => format!(
            "udp [2001:db8::7]:50000 > [2001:db8::8]:4789 / vxlan {vni} / {frame} \"{filler}\""
        ),
        _ => format!("{tag}{udp} / vxlan {vni} / {frame} \"{filler}\"{end}"),
    }
}

#[test]
fn packets_of_any_kind_leave_tunnels_in_rows_of_any_functions() {
    let functions = [
        "frames_out()",
        "packets_out()",
        "endpoint(own: 192.0.2.1)",
        "sizes()",
        "hop()",
        "station()",
        "long()",
        "tagged()",
        "again()",
        "stamped()",
        "monitor()",
        "napt(public: 203.0.113.2)",
    ];
    let mut one_record = 0;
    for seed in 0..braid_cases::at_least(150).into() {
        let mut rng = Rng::new(seed);
        let mut names: Vec<&str> = (0..rng.below(3)).map(|_| *rng.pick(&functions)).collect();
        names.push(*rng.pick::<&str>(&functions[..3]));
        names.extend((0..rng.below(4)).map(|_| *rng.pick(&functions)));
        let chain = row(&names.join(" <-> "));
        let packets: Vec<String> = (0..12).map(|_| any(&mut rng)).collect();
        let stimuli: Vec<_> =
            (0..160).map(|at| enter(at, 0, rng.pick::<String>(&packets))).collect();
        same(&chain, &stimuli);
        let mut engine = eager(&chain, Options::fused().hash);
        record(&mut engine, &stimuli, Detail::End);
        let table = engine.flow_table().expect("records");
        one_record +=
            usize::from(table.templates.iter().any(|one| one.path.lost_headers().is_some()));
    }
    assert!(one_record >= 50, "{one_record} chains have records that leave a tunnel");
}

/// Records with a mutant differ from the reference.
#[test]
fn records_that_leave_a_tunnel_know_what_differs_between_packets() {
    let frame = "eth 02:00:00:00:01:01 > 02:00:00:00:02:00 / ";
    let packets = |one: &str, other: &str| -> Vec<_> {
        (0..60).map(|at| enter(at, 0, if at % 7 == 6 { other } else { one })).collect()
    };
    let tcp = format!("{FRAMES}{frame}tcp 10.0.0.1:1000 > 10.9.9.9:80 A");
    let near = FRAMES.replace("4789", "4789 ttl=1");
    for (mutant, functions, stimuli) in [
        (
            RecordMutant::OuterUntested,
            "hop() <-> frames_out() <-> monitor()",
            packets(&tcp, &format!("{near}{frame}tcp 10.0.0.1:1000 > 10.9.9.9:80 A")),
        ),
        (
            RecordMutant::InsideUntested,
            "frames_out() <-> monitor() <-> stamped()",
            packets(&tcp, &format!("{tcp} ts=1,2")),
        ),
        (
            RecordMutant::OuterUncounted,
            "long() <-> frames_out() <-> monitor()",
            packets(&tcp, &tcp),
        ),
    ] {
        let chain = row(functions);
        let (expected, flows) = same(&chain, &stimuli);
        assert!(flows.hits > 40, "{functions}: {flows:?}");
        let options = Options { eager: true, ..Options::fused() };
        let engine = Compiled::with_record_mutant(chain, Extent::Chain, options, mutant);
        let found = record(&mut engine.expect("an engine"), &stimuli, Detail::Steps);
        assert!(difference(&expected, &found).is_some(), "{mutant:?}");
    }
}
