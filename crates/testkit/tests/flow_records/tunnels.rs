//! Records of packets that enter and leave tunnels.

use crate::{chain, eager, enter, left, same, steps};
use braid_engine::{Compiled, FlowTemplate, Options, RecordMutant};
use braid_ir::chain::Chain;
use braid_ir::residual::Extent;
use braid_packet::Field;
use braid_testkit::compare::difference;
use braid_testkit::generate::Rng;
use braid_testkit::harness;
use braid_testkit::record::{Detail, Stimulus, record, record_bursts};
use std::collections::BTreeSet;

const FLOWS: u64 = 100;
const STATIONS: u64 = 10;
const ROUNDS: u64 = 4;

/// A frame from one of two endpoints, by which the gateway learns where a station is.
fn lesson(station: u64) -> Stimulus {
    let endpoint = 2 + station % 2;
    let frame =
        format!("eth 02:00:00:00:01:{station:02x} > 02:00:00:00:02:00 / udp 1.1.1.1:1 > 2.2.2.2:2");
    enter(0, 1, &format!("udp 192.0.2.{endpoint}:50000 > 192.0.2.1:4789 / vxlan 42 / {frame}"))
}

/// A packet of a flow to one of the stations.
fn frame(at_ms: u64, flow: u64) -> Stimulus {
    let station = flow % STATIONS;
    let (port, to) = (1000 + flow, format!("02:00:00:00:01:{station:02x}"));
    let text =
        format!("eth 02:00:00:00:02:00 > {to} / udp 10.0.0.1:{port} > 10.9.9.9:53 \"{at_ms}\"");
    enter(at_ms, 0, &text)
}

#[test]
fn flows_with_other_outer_headers_share_a_script() {
    let chain = chain(
        "chain c {
           interface segment { behind 10.0.0.0/8 }
           interface underlay;
           count = monitor();
           tunnel = vxlan_gateway(own: 192.0.2.1, vni: 42, peers: [192.0.2.2, 192.0.2.3]);
           path segment <-> count <-> tunnel <-> underlay;
         }",
        &[],
    );
    let mut stimuli: Vec<Stimulus> = (0..STATIONS).map(lesson).collect();
    for round in 0..ROUNDS {
        stimuli.extend((0..FLOWS).map(|flow| frame(1 + round * FLOWS + flow, flow)));
    }
    let (trace, flows) = same(&chain, &stimuli);
    // Nearly each flow has a source port of its own, and the stations are at two endpoints.
    let tunnelled = |field| left(&trace, field).split_off(STATIONS as usize);
    let ports: BTreeSet<_> = tunnelled(Field::L4Sport).into_iter().collect();
    let endpoints: BTreeSet<_> = tunnelled(Field::IpDst).into_iter().collect();
    assert!(ports.len() as u64 > FLOWS * 9 / 10, "{ports:?}");
    assert_eq!(endpoints, [0xc000_0202, 0xc000_0203].map(Some).into());
    // The specialiser makes one record, and its script the others. One more record is for lessons
    // behind the tunnel's end. It was made before their flows became those of the frames inside.
    assert_eq!((flows.records.made, flows.scripted), (FLOWS + 1, FLOWS - 1), "{flows:?}");
    // The key has link addresses, so the first attempt makes all keys wide. The admission filter
    // then counts each flow anew, and not the first packet of the first flow.
    assert!(flows.hits >= FLOWS * (ROUNDS - 2) - 2, "{flows:?}");
}

/// There is room for one record. One flow gets it behind the tunnel, in place of another flow whose
/// next packet is in the same batch.
#[test]
fn record_behind_a_tunnel_takes_the_place_of_one_that_a_later_packet_would_take() {
    let chain = chain(
        "nf ends() {
           match {
             forward and has vxlan => { pop eth, ip, udp, vxlan else drop \"no frame\"; output; }
             else => output;
           }
         }
         chain c {
           interface underlay;
           interface wan;
           path underlay <-> ends() <-> monitor() <-> napt(public: 203.0.113.1) <-> wan;
         }",
        &[],
    );
    // Because of the bytes behind the packet, the flow inside is not looked for where it enters.
    let packet = "udp 192.0.2.2:50000 > 192.0.2.1:4789 / vxlan 42 / eth 02:00:00:00:01:01 > \
                  02:00:00:00:02:00 / udp 10.0.0.1:1000 > 10.9.9.9:53 \"in\" pad=4";
    let inside = |at| enter(at, 0, packet);
    let beside = |at| enter(at, 0, "udp 10.0.0.2:2000 > 10.9.9.9:53 \"beside\"");
    let mut stimuli: Vec<_> = (0..4).map(beside).collect();
    stimuli.extend([inside(1_300), inside(1_400), inside(1_500), beside(1_500)]);
    let expected = record(harness::reference(&chain).as_mut(), &stimuli, Detail::End);
    let options = Options { records: 1, eager: true, ..Options::fused() };
    let engines = [
        Compiled::new(chain.clone(), Extent::Chain, options),
        Compiled::with_record_mutant(chain, Extent::Chain, options, RecordMutant::RestEndsMissed),
    ];
    let found = engines.map(|engine| {
        let mut engine = engine.expect("an engine");
        let found = record_bursts(&mut engine, &stimuli, 32);
        let flows = engine.flows().expect("flow records");
        assert_eq!((flows.records.replaced, flows.rest_hits), (1, 1), "{flows:?}");
        difference(&expected, &found).is_some()
    });
    assert_eq!(found, [false, true]);
}

#[test]
fn flows_beside_a_tunnel_keep_their_records() {
    let chain = chain(
        "nf some() {
           match {
             forward and has ip and has l4 and ip.dst == 10.9.9.8 => {
               push ip { src: 192.0.2.1, dst: ip.src }, gre { key: hash(flow) } else drop \"long\";
               output;
             }
             else => output;
           }
         }
         chain c {
           interface lan { behind 10.0.0.0/8 }
           interface wan;
           path lan <-> monitor() <-> napt(public: 203.0.113.1) <-> some() <-> wan;
         }",
        &[],
    );
    let mut stimuli = Vec::new();
    for round in 0..ROUNDS {
        for flow in 0..FLOWS {
            // One flow of ten enters the tunnel, which the tenth begins.
            let to = if flow % 10 == 9 { 8 } else { 9 };
            let text = format!("udp 10.0.0.1:{} > 10.9.9.{to}:53 \"{round}\"", 1000 + flow);
            stimuli.push(enter(round * FLOWS + flow, 0, &text));
        }
    }
    let (trace, flows) = same(&chain, &stimuli);
    let keys = left(&trace, Field::GreKey).into_iter().flatten().collect::<BTreeSet<_>>();
    assert_eq!(keys.len() as u64, FLOWS / 10);
    // Had the tunnel made all records wide, the narrow ones would have ended.
    assert_eq!((flows.records.made, flows.records.ended), (FLOWS, 0), "{flows:?}");
    assert_eq!(flows.scripted, FLOWS - 2, "{flows:?}");
}

#[test]
fn outer_headers_for_which_a_record_has_no_room_are_in_the_template() {
    let chain = chain(
        "nf deep() {
           state n: u32 per ip.src = 0, capacity 100;
           match {
             has ip => {
               n += 1;
               let x = u128(u32(ip.src));
               push ip6 { src: ip6(wrapping(x * 0x10001000100010001000100010001)),
                          dst: ip6(wrapping(x * 0x30003000300030003000300030003)) } else drop \"long\";
               push ip6 { src: ip6(wrapping(x * 0x50005000500050005000500050005)),
                          dst: ip6(wrapping(x * 0x70007000700070007000700070007)) } else drop \"long\";
               push ip6 { src: ip6(wrapping(x * 0x90009000900090009000900090009)),
                          dst: ip6(wrapping(x * 0xb000b000b000b000b000b000b000b)) } else drop \"long\";
               output;
             }
             else => output;
           }
         }
         chain c { interface lan { behind 10.0.0.0/8 } interface wan; path lan <-> deep() <-> wan; }",
        &[],
    );
    let packet = |at| enter(at, 0, &format!("udp 10.0.0.{}:1 > 10.9.9.9:53 \"{at}\"", at % 20));
    let (_, flows) = same(&chain, &(0..120).map(packet).collect::<Vec<_>>());
    assert_eq!((flows.records.made, flows.scripted), (20, 0), "{flows:?}");
}

/// A chain with these functions between the ends of a VXLAN tunnel whose source port comes from a
/// hash, and a GRE tunnel inside of it.
fn through_tunnels(functions: &str, between: &str) -> Chain {
    let text = format!(
        "nf frames_in() {{
           match {{
             forward and has l4 => {{
               push eth {{ src: 02:00:00:00:00:01, dst: 02:00:00:00:00:02 }},
                   ip {{ src: 192.0.2.1, dst: 192.0.2.2, ttl: 9 }},
                   udp {{ sport: port(0xc000 | u16(hash(flow) & 0x3fff)) }},
                   vxlan {{ vni: 42 }} else drop \"long\";
               output;
             }}
             else => output;
           }}
         }}
         nf frames_out() {{
           match {{
             forward and vxlan.vni == 42 and ip.dst == 192.0.2.2 => {{
               pop eth, ip, udp, vxlan else drop \"no frame\";
               output;
             }}
             else => output;
           }}
         }}
         nf packets_in() {{
           match {{
             forward and has ip => {{
               push ip {{ src: 192.0.2.5, dst: 192.0.2.6 }}, gre {{ key: 7 }} else drop \"long\";
               output;
             }}
             else => output;
           }}
         }}
         nf packets_out() {{
           match {{
             forward and gre.key == 7 => {{ pop ip, gre else drop \"no packet\"; output; }}
             else => output;
           }}
         }}
         {functions}
         chain c {{
           interface lan {{ behind 10.0.0.0/8 }}
           interface wan;
           path lan <-> {between} <-> napt(public: 203.0.113.1) <-> wan;
         }}"
    );
    chain(&text, &[])
}

/// A function that reads and writes outer headers.
const BETWEEN: &str = "nf between() {
  match {
    forward and has ip and has eth and ip.ttl > 1 and pkt.len > 20 => {
      ip.ttl = ip.ttl - 1;
      eth.dst = 02:00:00:00:00:77;
      output;
    }
    else => output;
  }
}";

/// Functions that read what differs between the packets in a tunnel.
const LENGTH_AND_PORT: &str = "
  nf length() { match { ip.len > 100 => drop \"long\"; else => output; } }
  nf port() { match { has udp and udp.sport > 50000 => output right; else => output; } }";

/// The packets of the test's flows, in rounds.
fn rounds(count: u64) -> Vec<Stimulus> {
    let packet = |number: u64| {
        let (port, round) = (1000 + number % FLOWS, number / FLOWS);
        enter(number, 0, &format!("udp 10.0.0.1:{port} > 10.9.9.9:53 \"{round}\""))
    };
    (0..FLOWS * count).map(packet).collect()
}

/// Records neither add nor remove headers that one function adds and another one removes, whatever
/// the functions between them do with these headers.
#[test]
fn tunnels_that_begin_and_end_on_a_path_cancel() {
    for between in [
        "monitor() <-> frames_in() <-> frames_out()",
        "monitor() <-> frames_in() <-> between() <-> frames_out()",
        "monitor() <-> frames_in() <-> forwarder() <-> between() <-> frames_out()",
        "monitor() <-> packets_in() <-> between() <-> packets_out()",
        "monitor() <-> frames_in() <-> length() <-> frames_out()",
        "monitor() <-> packets_in() <-> length() <-> packets_out()",
        // The first program reads no ports.
        "packets_in() <-> packets_out()",
        "forwarder() <-> packets_in() <-> between() <-> packets_out()",
        "monitor() <-> packets_in() <-> packets_out() <-> frames_in() <-> between() <-> frames_out()",
    ] {
        let chain = through_tunnels(&format!("{BETWEEN} {LENGTH_AND_PORT}"), between);
        let stimuli = rounds(2 * ROUNDS);
        same(&chain, &stimuli);
        // At first, flows have records that end where the tunnel begins, and records behind it.
        let all = steps(&chain, &stimuli);
        let (before, after) = (all[(FLOWS * (2 * ROUNDS - 1)) as usize - 1], all[all.len() - 1]);
        assert_eq!(after.hits - before.hits, FLOWS, "{between}: {after:?}");
        assert_eq!((after.part_hits, after.rest_hits), (before.part_hits, before.rest_hits));
        assert!(after.scripted >= after.records.made - 20, "{between}: {after:?}");
    }
}

/// Records end where a tunnel begins if a function behind asks for something that differs between
/// the packets of a record, or if the tunnel does not end as a whole.
#[test]
fn tunnels_that_do_not_cancel_begin_at_the_end_of_a_record() {
    let functions = format!(
        "{LENGTH_AND_PORT}
        nf inside() {{ match {{ forward and has udp => {{ u8 at payload + 0 = 120 else {{ }} output; }} else => output; }} }}
        nf half() {{ match {{ has gre => {{ pop ip else drop \"no packet\"; output; }} else => output; }} }}"
    );
    for between in [
        "monitor() <-> frames_in() <-> port() <-> frames_out()",
        "monitor() <-> frames_in() <-> inside() <-> frames_out()",
        "monitor() <-> frames_in() <-> packets_in() <-> packets_out() <-> frames_out()",
        "monitor() <-> packets_in() <-> half() <-> packets_out()",
        "monitor() <-> frames_in() <-> monitor() <-> frames_out()",
        "monitor() <-> frames_in() <-> forwarder()",
    ] {
        let chain = through_tunnels(&functions, between);
        let (_, flows) = same(&chain, &rounds(2 * ROUNDS));
        assert!(flows.part_hits >= FLOWS * ROUNDS, "{between}: {flows:?}");
    }
}

/// Chains with ends of tunnels and other functions in any order, and flows with packets of
/// different lengths.
#[test]
fn tunnels_in_any_order_are_as_in_the_reference() {
    let functions = [
        "frames_in()",
        "frames_out()",
        "packets_in()",
        "packets_out()",
        "between()",
        "forwarder()",
        "length()",
        "port()",
        "monitor()",
        "napt(public: 203.0.113.2)",
    ];
    let more = format!("{BETWEEN} {LENGTH_AND_PORT}");
    let (mut through, mut whole) = (0, 0);
    for seed in 0..braid_cases::at_least(150).into() {
        let mut rng = Rng::new(seed);
        // Keys have the ports if the first program reads them.
        let mut row = vec![*rng.pick(&["monitor()", "forwarder()", "forwarder()"])];
        for _ in 0..2 + rng.below(5) {
            // Mostly, a tunnel that has begun ends later.
            let begun = row.iter().rev().find(|one| one.ends_with("_in()"));
            row.push(match begun {
                Some(&"frames_in()") if rng.one_in(3) => "frames_out()",
                Some(&"packets_in()") if rng.one_in(3) => "packets_out()",
                _ => *rng.pick::<&str>(&functions),
            });
        }
        let chain = through_tunnels(&more, &row.join(" <-> "));
        let mut stimuli = Vec::new();
        for number in 0..160 {
            let (port, filler) = (1000 + rng.below(12), "x".repeat(rng.below(120)));
            let kind = if port % 3 == 0 { "tcp" } else { "udp" };
            let text = format!("{kind} 10.0.0.{}:{port} > 10.9.9.9:53 \"{filler}\"", port % 5);
            stimuli.push(enter(number, 0, &text));
        }
        same(&chain, &stimuli);
        let mut engine = eager(&chain, Options::fused().hash);
        record(&mut engine, &stimuli, Detail::End);
        let table = engine.flow_table().expect("records");
        let passes = |one: &&FlowTemplate| one.path.programs().count() > 1;
        let templates: Vec<_> = table.templates.iter().filter(passes).collect();
        assert!(templates.iter().all(|one| one.path.effects.outer.is_empty()), "{row:?}");
        through += usize::from(!templates.is_empty());
        whole += usize::from(templates.iter().any(|one| one.onward.is_none()));
    }
    assert!(
        through >= 10 && whole >= 5,
        "{through} chains have tunnels that cancel, {whole} as a whole"
    );
}

/// Records with a mutant differ from the reference for packets of different lengths, and of flows
/// that have the same addresses.
#[test]
fn records_through_tunnels_know_what_differs_between_packets() {
    let stimuli: Vec<_> = (0..60)
        .map(|number| {
            let filler = "x".repeat(if number % 2 == 0 { 1 } else { 120 });
            let port = 1000 + number % 5;
            enter(number, 0, &format!("udp 10.0.0.1:{port} > 10.9.9.9:53 \"{filler}\""))
        })
        .collect();
    for (mutant, between) in [
        (RecordMutant::OuterLength, "monitor() <-> frames_in() <-> length() <-> frames_out()"),
        (RecordMutant::KeyTooNarrow, "packets_in() <-> packets_out()"),
    ] {
        let chain = through_tunnels(LENGTH_AND_PORT, between);
        let (expected, _) = same(&chain, &stimuli);
        let options = Options { eager: true, ..Options::fused() };
        let engine = Compiled::with_record_mutant(chain, Extent::Chain, options, mutant);
        let found = record(&mut engine.expect("an engine"), &stimuli, Detail::Steps);
        assert!(difference(&expected, &found).is_some(), "{mutant:?}");
    }
}
