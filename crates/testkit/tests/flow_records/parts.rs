//! Records for parts of paths: in front of functions that do what no record contains, and behind
//! them.

use crate::{chain, eager, enter, left, same};
use braid_engine::{Compiled, Options, RecordMutant, Subpath};
use braid_ir::chain::Chain;
use braid_ir::residual::Extent;
use braid_packet::Field;
use braid_testkit::compare::difference;
use braid_testkit::harness;
use braid_testkit::record::{Detail, Stimulus, record};

const FLOWS: u64 = 20;
const ROUNDS: u64 = 8;

/// Packets of flows to a port, in rounds. The payload tells the packets of a flow apart.
fn traffic(port: u16) -> Vec<Stimulus> {
    let one = |round: u64, flow: u64| {
        let text = format!("udp 10.0.0.{flow}:1000 > 10.9.9.9:{port} \"{round} and more\"");
        enter(round * FLOWS + flow, 0, &text)
    };
    (0..ROUNDS).flat_map(|round| (0..FLOWS).map(move |flow| one(round, flow))).collect()
}

/// A chain of two NAPTs around functions.
fn between_napts(functions: &str, declared: &str, files: &[(&str, &str)]) -> Chain {
    let text = format!(
        "{declared}
         chain c {{
           interface lan {{ behind 10.0.0.0/8 }}
           interface wan;
           first = napt(public: 203.0.113.1);
           last = napt(public: 203.0.113.2);
           path lan <-> monitor() <-> first <-> {functions} <-> last <-> wan;
         }}"
    );
    chain(&text, files)
}

/// Writes the payload of packets to port 53.
const WRITER: &str = "nf writes() {
  state n: u32 per ip.src = 0, capacity 100;
  match {
    forward and has udp and udp.dport == 53 => {
      n += 1;
      let first = u8 at payload else drop \"empty\";
      u16 at payload = u16(first) + u16(n) else drop \"short\";
      output;
    }
    else => output;
  }
}";

/// Where the records of each template end: the function at which packets go on, by number.
fn ends(engine: &Compiled) -> Vec<Option<u16>> {
    let table = engine.flow_table().expect("records");
    table.templates.iter().map(|one| one.onward.map(|onward| onward.point.node)).collect()
}

#[test]
fn records_surround_a_function_that_writes_payloads() {
    let chain = between_napts("writes()", WRITER, &[]);
    let (trace, flows) = same(&chain, &traffic(53));
    assert_eq!(left(&trace, Field::IpSrc), vec![Some(0xcb00_7102); trace.outputs.len()]);
    // The first flow to ask for a record finds that there is no program for the part yet.
    assert!(flows.hits >= FLOWS * (ROUNDS - 3), "{flows:?}");
    assert!(flows.part_hits == flows.hits && flows.rest_hits >= flows.hits, "{flows:?}");
    let mut engine = eager(&chain, Options::fused().hash);
    record(&mut engine, &traffic(53), Detail::End);
    let mut found = ends(&engine);
    found.sort_unstable();
    assert_eq!(found, [None, Some(3)]);
    // Other packets take records for their whole paths.
    let (_, flows) = same(&chain, &traffic(80));
    assert_eq!((flows.part_hits, flows.rest_hits), (0, 0), "{flows:?}");
    assert!(flows.hits >= FLOWS * (ROUNDS - 2), "{flows:?}");
}

#[test]
fn packets_behind_a_part_stay_with_the_worker_that_they_entered_at() {
    let text = "
        nf counts() {
          state n: { packets: u32, bytes: u64 } global = { packets: 0, bytes: 0 };
          match {
            has inet => { n.packets += 1; n.bytes += u64(pkt.len); output; }
            else => output;
          }
        }
        nf copies() {
          state seen: { n: u4, bytes: size, at: time } per flow = { n: 0, bytes: 0, at: 0 },
              idle 21 ms, capacity 2, full evict_oldest;
          match {
            has ip6 and ip6.dst == 2001:db8::1 and not exists seen => output;
            else => { mirror back; output; }
          }
        }
        chain c {
          interface lan { behind 10.0.0.0/8, 2001:db8::/125 }
          interface wan;
          path lan <-> counts() <-> copies() <-> wan;
          seed 612;
          workers 2;
        }";
    let chain = chain(text, &[]);
    // The two directions belong to different workers.
    let there = "udp 10.0.0.2:1002 > 192.0.2.1:80";
    let back = "udp 192.0.2.1:80 > 10.0.0.2:1002";
    let packets = [(0, there), (1, back), (1, back), (0, there), (1, back)];
    let stimuli: Vec<_> =
        (0..).zip(packets).map(|(nth, (interface, text))| enter(nth, interface, text)).collect();
    let expected = record(harness::reference(&chain).as_mut(), &stimuli, Detail::End);
    let shards: Vec<_> = expected.state.iter().map(|one| (one.shard, one.slots[0].2)).collect();
    // The copies of forward packets come back.
    assert_eq!(shards, [(0, 3), (1, 4)]);
    for engine in harness::ENGINES {
        if let Err(why) = engine.check(&chain, &stimuli, &expected) {
            panic!("{why}");
        }
    }
}

#[test]
fn flows_that_skip_the_function_keep_records_for_their_whole_paths() {
    let chain = between_napts("writes()", WRITER, &[]);
    let mut both = traffic(53);
    let others = traffic(80);
    both = both.into_iter().zip(others).flat_map(|(one, other)| [one, other]).collect();
    let (_, flows) = same(&chain, &both);
    assert!(flows.hits >= 2 * FLOWS * (ROUNDS - 3), "{flows:?}");
    assert!(flows.part_hits <= flows.hits / 2, "{flows:?}");
}

#[test]
fn records_follow_each_other_through_tunnels() {
    let tunnels = "nf into() {
      match {
        forward and has ip => {
          push ip { src: 192.0.2.1, dst: 192.0.2.2 }, gre { key: 7 } else drop \"long\";
          output;
        }
        else => output;
      }
    }
    nf out() {
      match { forward and has gre => { pop ip, gre else drop \"none\"; output; } else => output; }
    }";
    let chain = between_napts("into() <-> monitor() <-> out()", tunnels, &[]);
    let (trace, flows) = same(&chain, &traffic(53));
    assert_eq!(left(&trace, Field::IpSrc), vec![Some(0xcb00_7102); trace.outputs.len()]);
    // One record up to the tunnel, which it begins; one inside of it; and one behind it. Inside,
    // all packets are one flow.
    assert!(flows.hits >= FLOWS * (ROUNDS - 2), "{flows:?}");
    assert!(flows.part_hits >= 2 * FLOWS * (ROUNDS - 2), "{flows:?}");
    assert!(flows.rest_hits >= 2 * FLOWS * (ROUNDS - 2), "{flows:?}");
    let mut engine = eager(&chain, Options::fused().hash);
    record(&mut engine, &traffic(53), Detail::End);
    let table = engine.flow_table().expect("records");
    let into = table.templates.iter().find(|one| !one.path.effects.outer.is_empty());
    let into = into.expect("a record begins the tunnel");
    assert_eq!(into.onward.map(|onward| (onward.point.node, onward.looks)), Some((4, true)));
    assert_eq!(into.records, FLOWS);
}

#[test]
fn a_record_ends_in_front_of_a_gateway_that_encrypts() {
    let chain = chain(
        "chain c {
           interface lan { behind 10.0.0.0/8 }
           interface wan;
           gateway = esp_gateway(
             own: 192.0.2.1,
             sites: [{ gateway: 192.0.2.2, spi: 0x1000 }],
             networks: routes(\"routes\"),
             sending: keys(\"keys\"),
             receiving: keys(\"keys\"),
           );
           path lan <-> monitor() <-> napt(public: 203.0.113.1) <-> gateway <-> wan;
         }",
        &[
            ("routes", "10.9.0.0/16 0\n"),
            ("keys", "0x1000 aes-128-gcm 0102030405060708090a0b0c0d0e0f10a1a2a3a4\n"),
        ],
    );
    let (trace, flows) = same(&chain, &traffic(53));
    let numbers: Vec<_> = left(&trace, Field::EspSeq).into_iter().flatten().collect();
    assert_eq!(numbers, (1..=u128::from(FLOWS * ROUNDS)).collect::<Vec<_>>());
    assert!(flows.hits >= FLOWS * (ROUNDS - 3), "{flows:?}");
    assert_eq!(flows.part_hits, flows.hits, "{flows:?}");
}

/// A tag that the first part of the path sets decides behind the function.
#[test]
fn tags_of_a_part_stay_with_the_packet() {
    let declared = format!(
        "nf paints() {{
           tag color: u8;
           state seen: u32 per l4.sport = 0, capacity 100;
           match {{ forward and has l4 and has ip => {{ seen += 1; color = u8(u32(ip.src) & 3); output; }}
                    else => output; }}
         }}
         nf judges() {{ tag color: u8; match {{ forward and color == 1 => drop \"one\"; else => output; }} }}
         {WRITER}"
    );
    let chain = between_napts("paints() <-> writes() <-> judges()", &declared, &[]);
    let (trace, flows) = same(&chain, &traffic(53));
    let gone = left(&trace, Field::IpSrc).iter().filter(|from| from.is_none()).count() as u64;
    // The NAPT in front has changed the address, so all packets have the same color: 0x01 & 3.
    assert_eq!(gone, ROUNDS * FLOWS);
    assert!(flows.part_hits >= FLOWS * (ROUNDS - 3), "{flows:?}");
}

#[test]
fn packets_go_on_behind_a_record_for_a_part() {
    let chain = between_napts("writes()", WRITER, &[]);
    let stimuli = traffic(53);
    let expected = record(harness::reference(&chain).as_mut(), &stimuli, Detail::End);
    let options = Options { eager: true, ..Options::fused() };
    let lost =
        Compiled::with_record_mutant(chain, Extent::Chain, options, RecordMutant::OnwardLost);
    let found = record(&mut lost.expect("an engine"), &stimuli, Detail::End);
    assert!(difference(&expected, &found).is_some());
}

#[test]
fn records_surround_a_stream_function() {
    let chain = between_napts(
        "stream_ids(signatures: patterns(\"words\"))",
        "",
        &[("words", "1 \"forbidden\"\n")],
    );
    let mut stimuli = Vec::new();
    for round in 0..ROUNDS {
        for flow in 0..FLOWS {
            let (flags, seq, text) = match round {
                0 => ("S", 99, ""),
                _ => ("A", 100 + 4 * (round - 1), " \"text\""),
            };
            let text = format!("tcp 10.0.0.{flow}:1000 > 10.9.9.9:80 {flags} seq={seq}{text}");
            stimuli.push(enter(round * FLOWS + flow, 0, &text));
        }
    }
    let (_, flows) = same(&chain, &stimuli);
    assert!(flows.hits >= FLOWS * (ROUNDS - 3), "{flows:?}");
    assert_eq!(flows.part_hits, flows.hits, "{flows:?}");
    assert!(flows.rest_hits >= FLOWS * (ROUNDS - 4), "{flows:?}");
    let mut engine = eager(&chain, Options::fused().hash);
    record(&mut engine, &stimuli, Detail::End);
    let table = engine.flow_table().expect("records");
    let subpaths = table.templates.iter().map(|one| one.path.subpaths.len());
    assert!(subpaths.into_iter().all(|subpaths| subpaths == 1));
    let is_program = |one: &Subpath| matches!(one, Subpath::Program(_));
    assert!(table.templates.iter().all(|one| one.path.subpaths.iter().all(is_program)));
}
