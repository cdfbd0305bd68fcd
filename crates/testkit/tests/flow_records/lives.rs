//! Tests records over the lives of TCP connections: numbers that functions translate, FINs and RSTs
//! that change entries or do not, late segments, and 5-tuples that open again.

use crate::{MS, chain, eager, enter, left, same, steps};
use braid_engine::{FlowTemplate, Flows, Options};
use braid_packet::Field;
use braid_testkit::record::{Stimulus, step};
use std::collections::BTreeSet;

/// Translates sequence numbers, as a proxy does behind a handshake of its own.
const RENUMBER: &str = "nf renumber() {
  state by: { seq: u32, ts: u32, id: u16 } per biflow, idle 60 s;
  match {
    forward and tcp.flags & 0x02 != 0 => {
      by = { seq: wrapping(tcp.seq * 2654435761), ts: 4000000000, id: 9 };
      tcp.seq = wrapping(tcp.seq + by.seq);
      output;
    }
    forward and exists by and has tcp => {
      tcp.seq = wrapping(tcp.seq + by.seq);
      if has tcp.ts { tcp.ts_val = wrapping(tcp.ts_val + by.ts); }
      if has ip { ip.id = wrapping(ip.id - by.id); }
      output;
    }
    exists by and has tcp => {
      tcp.ack = wrapping(tcp.ack - by.seq);
      if has tcp.ts { tcp.ts_ecr = wrapping(tcp.ts_ecr - by.ts); }
      output;
    }
    else => drop \"no connection\";
  }
}
";

/// Connections 1 to 5 that each send `rounds` packets in both directions. All numbers wrap.
fn talk(rounds: u64) -> Vec<Stimulus> {
    let mut stimuli = Vec::new();
    let isn = |flow: u64| 4_294_000_000 + 7 * flow;
    for flow in 1..6 {
        let text = format!("tcp 10.0.0.{flow}:1000 > 192.0.2.1:80 S seq={}", isn(flow));
        stimuli.push(enter(flow, 0, &text));
    }
    for round in 0..rounds {
        for flow in 1..6 {
            let (seq, at) = ((isn(flow) + 90_000 * round) % (1 << 32), 10 + 10 * round + flow);
            let (id, stamp) = (65_000 + 100 * round, 300_000_000 * round % (1 << 32));
            let ts =
                if flow % 2 == 0 { format!(" ts={stamp},{round} nop nop") } else { String::new() };
            let (a, b) = (format!("10.0.0.{flow}:1000"), "192.0.2.1:80");
            let id = id % (1 << 16);
            let text = format!("tcp {a} > {b} ipid={id} PA seq={seq} ack=5{ts} \"data\"");
            stimuli.push(enter(at, 0, &text));
            let ts =
                if flow % 2 == 0 { format!(" ts={round},{stamp} nop nop") } else { String::new() };
            stimuli.push(enter(at, 1, &format!("tcp {b} > {a} A seq=9 ack={seq}{ts}")));
        }
    }
    stimuli
}

#[test]
fn sequence_numbers_are_translated_by_records_of_few_templates() {
    let chain = chain(
        &format!(
            "{RENUMBER} chain c {{
               interface lan {{ behind 10.0.0.0/8 }}
               interface wan;
               a = renumber();
               b = renumber();
               nat = napt(public: 203.0.113.1, ports: 2000..2010);
               path lan <-> a <-> b <-> nat <-> wan;
             }}"
        ),
        &[],
    );
    // The answers go to the public address.
    let mut stimuli = talk(40);
    for stimulus in &mut stimuli {
        let Stimulus::Packet(1, packet) = stimulus else { continue };
        let layout = packet.parse();
        let inside = packet.get(&layout, Field::IpDst).expect("an address") & 0xff;
        assert!(packet.set(&layout, Field::IpDst, 0xcb00_7101));
        assert!(packet.set(&layout, Field::TcpDport, 2000 + inside - 1));
    }
    let (trace, flows) = same(&chain, &stimuli);
    let seqs = left(&trace, Field::TcpSeq);
    assert!(seqs.iter().all(Option::is_some), "{seqs:?}");
    assert!(flows.hits >= 2 * 5 * 37, "{flows:?}");
    let mut engine = eager(&chain, Options::fused().hash);
    stimuli.iter().for_each(|stimulus| drop(step(&mut engine, stimulus)));
    let table = engine.flow_table().expect("flow records");
    let adds = |one: &&FlowTemplate| one.path.rewrites().any(|rewrite| !rewrite.adds.is_empty());
    let adding: Vec<_> = table.templates.iter().filter(adds).collect();
    // Two directions, with and without timestamps.
    assert_eq!(adding.len(), 4, "{adding:?}");
    let amounts = table.records.iter().flat_map(|record| &record.adds);
    let of_seq = amounts.filter(|(field, _)| *field == Field::TcpSeq);
    assert_eq!(of_seq.collect::<BTreeSet<_>>().len(), 5);
    assert!(engine.flows().expect("flow records").scripted >= 6);
}

#[test]
fn sums_that_saturate_and_constants_are_relative_writes() {
    let chain = chain(
        "nf count() {
           state n: u32 per ip.src = 0;
           match {
             has tcp and has ip => { n += 1; tcp.window = tcp.window + 100; ip.id = wrapping(ip.id + 40000); output; }
             else => output;
           }
         }
         chain c {
           interface lan { behind 10.0.0.0/8 }
           interface wan;
           path lan <-> count() <-> wan;
         }",
        &[],
    );
    let packet = |at: u64| {
        let window = if at % 9 == 8 { 65_500 } else { 1000 + at };
        enter(
            at,
            0,
            &format!("tcp 10.0.0.1:1 > 192.0.2.1:2 ipid={} A win={window}", at * 2000 % 65_536),
        )
    };
    let stimuli: Vec<Stimulus> = (0..60).map(packet).collect();
    let (trace, flows) = same(&chain, &stimuli);
    let windows = left(&trace, Field::TcpWindow);
    assert_eq!((windows[8], windows[9]), (Some(65_535), Some(1109)));
    assert!(flows.hits >= 45, "{flows:?}");
}

/// How many records there are.
fn live(flows: &Flows) -> u64 {
    flows.records.made - flows.records.ended
}

/// Packets of a connection, and how many milliseconds after the start they come.
fn connection(start: u64, lines: &[(u64, u16, &str)]) -> Vec<Stimulus> {
    let line = |(at, interface, rest): &(u64, u16, &str)| {
        let ends = ["10.0.0.1:1000 > 192.0.2.1:80", "192.0.2.1:80 > 10.0.0.1:1000"];
        let text = format!("tcp {} {rest}", ends[usize::from(*interface)]);
        enter(start + at, *interface, &text)
    };
    lines.iter().map(line).collect()
}

/// A handshake and data in both directions, enough for records.
fn opening() -> Vec<(u64, u16, &'static str)> {
    let mut lines = vec![(0, 0, "S seq=1"), (1, 1, "SA seq=7 ack=2"), (2, 0, "A seq=2 ack=8")];
    lines.extend(
        (3..12).flat_map(|at| [(at, 0, "PA seq=2 ack=8 \"data\""), (at, 1, "A seq=8 ack=6")]),
    );
    lines
}

#[test]
fn fins_and_resets_that_change_entries_end_the_records_of_both_directions() {
    let chain = chain(
        "chain c {
           interface lan { behind 10.0.0.0/8 }
           interface wan;
           fw = stateful_firewall(ok: rules(\"ok\"), tcp_closing: 5 s);
           path lan <-> fw <-> wan;
         }",
        &[("ok", "default pass\n")],
    );
    let ends: [&[(u64, u16, &str)]; 2] = [
        // The opener closes, the other side goes on to send, then closes. FINs come again, and so
        // does an old segment.
        &[
            (20, 0, "FA seq=6 ack=8"),
            (21, 1, "A seq=8 ack=7"),
            (22, 1, "PA seq=8 ack=7 \"more\""),
            (23, 0, "FA seq=6 ack=8"),
            (24, 1, "FA seq=12 ack=7"),
            (25, 1, "FA seq=12 ack=7"),
            (26, 0, "A seq=7 ack=13"),
            (27, 0, "PA seq=2 ack=8 \"data\""),
        ],
        &[(20, 1, "RA seq=8 ack=6"), (21, 0, "PA seq=2 ack=8 \"data\""), (22, 1, "R seq=8")],
    ];
    for end in ends {
        let open = opening();
        let mut stimuli = connection(0, &open);
        let flows = steps(&chain, &stimuli);
        let made = *flows.last().expect("packets");
        assert!(made.hits >= 12 && live(&made) == 2, "{made:?}");
        stimuli.extend(connection(0, &end[..1]));
        let ended = *steps(&chain, &stimuli).last().expect("packets");
        assert_eq!((live(&ended), ended.hits), (0, made.hits), "{ended:?}");
        stimuli.extend(connection(0, &end[1..]));
        // The same tuple opens again, while the old entry is there and after it.
        stimuli.extend(connection(1_000, &open));
        stimuli.extend(connection(60_000, &open));
        let (_, flows) = same(&chain, &stimuli);
        assert!(flows.hits >= 3 * 12, "{flows:?}");
    }
}

#[test]
fn records_of_functions_that_ignore_flags_outlive_fins_until_their_entries_end() {
    let chain = chain(
        "chain c {
           interface lan { behind 10.0.0.0/8 }
           interface wan;
           count = monitor(idle: 2 s);
           path lan <-> count <-> wan;
         }",
        &[],
    );
    let mut stimuli = connection(0, &opening());
    let before = *steps(&chain, &stimuli).last().expect("packets");
    let fins = [(20, 0, "FA seq=6 ack=8"), (21, 1, "FA seq=8 ack=7"), (22, 0, "A seq=7 ack=9")];
    stimuli.extend(connection(0, &fins));
    let after = *steps(&chain, &stimuli).last().expect("packets");
    assert_eq!((after.hits, live(&after)), (before.hits + 3, 2));
    stimuli.push(Stimulus::Advance(4_000 * MS));
    let late = *steps(&chain, &stimuli).last().expect("packets");
    assert_eq!(live(&late), 0, "{late:?}");
    stimuli.extend(connection(5_000, &opening()));
    same(&chain, &stimuli);
}
