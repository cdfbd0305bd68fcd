//! Tests the driver: where packets enter, outputs, counters, failures.

mod support;

use braid_io::{CaptureReader, MemorySink, PacketSink, PacketSource, ReadError, WriteError};
use braid_ir::chain::{Chain, Change, Control, Source};
use braid_ir::engine::{Engine, Event, EventValue, Outputs};
use braid_ir::model::{Kind, ParamId};
use braid_ir::snapshot::{ImportError, Snapshot};
use braid_packet::{Burst, Field, Header, Link, Packet, Shape, build_fresh};
use braid_runtime::split::Splitter;
use braid_runtime::{Input, Progress, Run, RunError, Sinks};
use std::io::{BufWriter, Cursor, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use support::*;

fn ingress(interfaces: &[(&str, &[u8])], from: &str, to: &str) -> Option<u16> {
    let chain = chain(interfaces);
    let packet = udp(0, (from, 1), (to, 2));
    Splitter::new(&chain).ingress(&packet, &packet.parse())
}

#[test]
fn packets_enter_where_their_source_is() {
    let two: &[(&str, &[u8])] = &[("lan", &[10]), ("wan", &[])];
    assert_eq!(ingress(two, "10.1.1.1", "8.8.8.8"), Some(0));
    assert_eq!(ingress(two, "8.8.8.8", "10.1.1.1"), Some(1));
    assert_eq!(ingress(two, "10.1.1.1", "10.2.2.2"), Some(0));
    assert_eq!(ingress(two, "8.8.8.8", "9.9.9.9"), None);
}

#[test]
fn first_declared_interface_wins_where_prefixes_overlap() {
    assert_eq!(ingress(&[("a", &[10]), ("b", &[10, 11])], "10.0.0.1", "11.0.0.1"), Some(0));
    assert_eq!(ingress(&[("a", &[10]), ("b", &[10, 11])], "11.0.0.1", "10.0.0.1"), Some(1));
}

#[test]
fn rest_of_the_world_needs_exactly_one_interface_without_prefixes() {
    assert_eq!(ingress(&[("a", &[10]), ("b", &[11])], "8.8.8.8", "10.0.0.1"), None);
    let three: &[(&str, &[u8])] = &[("a", &[10]), ("b", &[]), ("c", &[])];
    assert_eq!(ingress(three, "8.8.8.8", "10.0.0.1"), None);
    let three: &[(&str, &[u8])] = &[("a", &[10]), ("b", &[]), ("c", &[12])];
    assert_eq!(ingress(three, "8.8.8.8", "12.0.0.1"), Some(1));
}

#[test]
fn all_packets_enter_the_only_or_the_implied_first_interface() {
    assert_eq!(ingress(&[("a", &[10])], "8.8.8.8", "9.9.9.9"), Some(0));
    assert_eq!(ingress(&[("in", &[]), ("out", &[])], "8.8.8.8", "9.9.9.9"), Some(0));
    assert_eq!(ingress(&[("in", &[]), ("out", &[10])], "8.8.8.8", "9.9.9.9"), None);
    assert_eq!(ingress(&[("a", &[]), ("b", &[])], "8.8.8.8", "9.9.9.9"), None);
}

#[test]
fn interfaces_that_only_send_are_no_places_to_enter() {
    let enters = |interfaces: &[(&str, &[u8])], receive: &[u16], from: &str, to: &str| {
        let mut chain = chain(interfaces);
        chain.links.retain(|(source, _)| match source {
            Source::Interface(at) => receive.contains(at),
            Source::Port(..) => true,
        });
        let packet = udp(0, (from, 1), (to, 2));
        Splitter::new(&chain).ingress(&packet, &packet.parse())
    };
    // `log` has no prefixes either, but nothing comes from there.
    let three: &[(&str, &[u8])] = &[("lan", &[10]), ("log", &[]), ("wan", &[])];
    assert_eq!(enters(three, &[0, 2], "8.8.8.8", "10.0.0.1"), Some(2));
    assert_eq!(enters(three, &[0, 1, 2], "8.8.8.8", "10.0.0.1"), None);
    let two: &[(&str, &[u8])] = &[("lan", &[10]), ("wan", &[])];
    assert_eq!(enters(two, &[0], "8.8.8.8", "10.0.0.1"), Some(1), "it is lost as unlinked");
    // Without prefixes, there is only one place to enter.
    let two: &[(&str, &[u8])] = &[("from", &[]), ("to", &[])];
    assert_eq!(enters(two, &[0], "8.8.8.8", "9.9.9.9"), Some(0));
}

#[test]
fn malformed_packets_enter_where_they_can() {
    let odd = |from: &str, to: &str| {
        let mut bytes = udp(0, (from, 1), (to, 1)).data().to_vec();
        bytes[16] = 0xff;
        Packet::new(Link::Ethernet, 0, bytes)
    };
    let runt = || Packet::new(Link::Ethernet, 0, vec![1; 9]);
    let ingress = |chain: &Chain, packet: Packet| {
        assert!(packet.parse().malformed().is_some());
        Splitter::new(chain).ingress(&packet, &packet.parse())
    };
    let one = lan_wan();
    assert_eq!(ingress(&one, odd("10.0.0.1", "8.8.8.8")), Some(0));
    assert_eq!(ingress(&one, odd("8.8.8.8", "10.0.0.1")), Some(1));
    assert_eq!(ingress(&one, odd("8.8.8.8", "9.9.9.9")), Some(1));
    assert_eq!(ingress(&one, runt()), Some(1));
    let all = chain(&[("a", &[10]), ("b", &[11])]);
    assert_eq!(ingress(&all, odd("11.0.0.1", "8.8.8.8")), Some(1));
    assert_eq!(ingress(&all, runt()), Some(0));
}

#[test]
fn arp_enters_by_its_protocol_addresses() {
    let arp = |spa: &str, tpa: &str| {
        let fields = [(Field::ArpSpa, addr(spa)), (Field::ArpTpa, addr(tpa))];
        build_fresh(Link::Ethernet, 0, Shape::Arp, &fields, b"").unwrap()
    };
    let chain = lan_wan();
    let splitter = Splitter::new(&chain);
    let ingress = |packet: Packet| splitter.ingress(&packet, &packet.parse());
    assert_eq!(ingress(arp("10.0.0.1", "10.0.0.2")), Some(0));
    assert_eq!(ingress(arp("8.8.8.8", "10.0.0.2")), Some(1));
    assert_eq!(ingress(arp("8.8.8.8", "9.9.9.9")), None);
    assert_eq!(ingress(Packet::new(Link::Ethernet, 0, vec![0; 60])), None);
}

#[test]
fn packets_that_enter_nowhere_are_counted() {
    let chain = lan_wan();
    let mut engine = Fake::new(through);
    let stray = udp(0, ("8.8.8.8", 1), ("9.9.9.9", 1));
    let inside = udp(0, ("10.0.0.1", 1), ("9.9.9.9", 1));
    let packets = [vec![stray.clone()], vec![inside; 28], vec![stray]].concat();
    let summary = Run::new(&chain, &mut engine).input(sources(packets)).run().unwrap();
    assert_eq!(summary.counters.packets_in, 30);
    assert_eq!(summary.counters.lost["no_interface"], 2);
    assert_eq!(summary.counters.out[&1], 28);
    assert!(summary.counters.balanced());
    assert_eq!(summary.warnings, Vec::<String>::new());
}

#[test]
fn run_that_loses_every_packet_says_so() {
    let chain = lan_wan();
    let mut engine = Fake::new(through);
    let stray = udp(0, ("8.8.8.8", 1), ("9.9.9.9", 1));
    let run = Run::new(&chain, &mut engine).input(sources(vec![stray.clone(), stray]));
    let summary = run.run().unwrap();
    assert_eq!(summary.counters.lost["no_interface"], 2);
    let [warning] = &summary.warnings[..] else { panic!("{:?}", summary.warnings) };
    assert!(warning.starts_with("no packet entered: all 2 were lost as no_interface"), "{warning}");
    assert!(warning.contains("chain `test`") && warning.contains("--in NAME=FILE"), "{warning}");
}

#[test]
fn run_that_loses_a_tenth_of_its_packets_says_where_they_come_from() {
    let mut chain = chain(&[("lan", &[10]), ("wan", &[]), ("log", &[])]);
    chain.links.truncate(2);
    let mut engine = Fake::new(through);
    let from = |source| udp(0, (source, 1), ("9.9.9.9", 1));
    let mut packets = vec![from("10.0.0.1"); 27];
    packets.extend([from("8.8.8.8"), from("7.1.1.1"), from("7.1.1.2")]);
    packets.push(Packet::new(Link::Ethernet, 0, vec![0; 60]));
    let summary = Run::new(&chain, &mut engine).input(sources(packets)).run().unwrap();
    let [warning] = &summary.warnings[..] else { panic!("{:?}", summary.warnings) };
    for part in [
        "4 of 31 packets did not enter: they were lost as no_interface, because",
        "; they come from 7.1.1.0/24 (2), 8.8.8.0/24 (1); without IP or ARP addresses: 1; the \
         first is 8.8.8.8",
        "`lan` is behind 10.0.0.0/8, `wan` has no `behind`, `log` only sends",
    ] {
        assert!(warning.contains(part), "no {part:?} in {warning}");
    }
}

#[test]
fn chain_without_prefixes_warns_that_nothing_can_be_split() {
    let chain = chain(&[("a", &[]), ("b", &[])]);
    let mut engine = Fake::new(through);
    let named = Input { interface: Some(1), name: "b.pcap".into(), ..sources(vec![]) };
    let packet = udp(0, ("10.0.0.1", 1), ("9.9.9.9", 1));
    let run = Run::new(&chain, &mut engine).input(sources(vec![packet])).input(named);
    let summary = run.run().unwrap();
    assert_eq!(summary.counters.lost["no_interface"], 1);
    assert_eq!(
        summary.warnings,
        ["in.pcap: no interface of chain `test` has `behind` prefixes, so Braid cannot \
          tell where packets enter; write `interface NAME { behind PREFIX }`, or name the \
          interface with --in NAME=FILE"]
    );
}

#[test]
fn named_inputs_enter_by_their_interfaces_in_time_order() {
    let chain = lan_wan();
    let mut engine = Fake::new(through);
    let packet = |time| udp(time, ("8.8.8.8", 1), ("9.9.9.9", 1));
    let at = |interface, times: &[u64]| Input {
        interface: Some(interface),
        ..sources(times.iter().map(|&time| packet(time)).collect())
    };
    let run = Run::new(&chain, &mut engine).input(at(1, &[2, 5])).input(at(0, &[1, 2, 9]));
    run.run().unwrap();
    let order: Vec<_> = engine.entered.iter().map(|(at, packet)| (*at, packet.time_ns)).collect();
    assert_eq!(order, [(0, 1), (1, 2), (0, 2), (1, 5), (0, 9)]);
}

#[test]
fn outputs_take_one_interface_or_all() {
    let chain = lan_wan();
    let mut engine = Fake::new(through);
    let up = udp(0, ("10.0.0.1", 1), ("9.9.9.9", 1));
    let down = udp(1, ("9.9.9.9", 1), ("10.0.0.1", 1));
    let (mut all, mut lan, mut wan) =
        (MemorySink::default(), MemorySink::default(), MemorySink::default());
    Run::new(&chain, &mut engine)
        .input(sources(vec![up.clone(), down.clone()]))
        .sinks(
            Sinks::default().output("all", None, &mut all).output("lan", Some(0), &mut lan).output(
                "wan",
                Some(1),
                &mut wan,
            ),
        )
        .run()
        .unwrap();
    assert_eq!(all.packets, [up.clone(), down.clone()]);
    assert_eq!(lan.packets, [down]);
    assert_eq!(wan.packets, [up]);
}

/// A sink that fails at a packet, or when it is finished.
#[derive(Default)]
struct Failing {
    written: usize,
    at: usize,
}

impl PacketSink for Failing {
    fn write_packet(&mut self, _packet: &Packet) -> Result<(), WriteError> {
        self.written += 1;
        match self.written == self.at {
            true => Err(WriteError::Io(std::io::Error::other("disk full"))),
            false => Ok(()),
        }
    }

    fn finish(&mut self) -> Result<(), WriteError> {
        match self.at {
            0 => Err(WriteError::Io(std::io::Error::other("disk full"))),
            _ => Ok(()),
        }
    }
}

#[test]
fn output_that_fails_ends_the_run_with_its_name_and_a_summary() {
    for at in [0, 1] {
        let chain = lan_wan();
        let mut engine = Fake::new(through);
        let packet = udp(0, ("10.0.0.1", 1), ("9.9.9.9", 1));
        let mut sink = Failing { at, written: 0 };
        let run = Run::new(&chain, &mut engine)
            .input(sources(vec![packet; 200_000]))
            .sinks(Sinks::default().output("out.pcap", None, &mut sink));
        let summary = run.run().unwrap();
        let unwritten: Vec<String> = summary.unwritten.iter().map(ToString::to_string).collect();
        assert_eq!(unwritten, ["out.pcap: cannot be written: disk full"]);
        let (entered, written) = (summary.counters.packets_in, sink.written);
        match at {
            0 => assert_eq!((entered, written), (200_000, 200_000)),
            // Packets that wait between the threads are processed before the failure is known.
            _ => assert!(written == 1 && (1..200_000).contains(&entered), "{written} {entered}"),
        }
    }
}

/// A file on a full disk.
struct Full;

impl Write for Full {
    fn write(&mut self, _bytes: &[u8]) -> std::io::Result<usize> {
        Err(std::io::Error::other("disk full"))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Err(std::io::Error::other("disk full"))
    }
}

#[test]
fn every_output_that_fails_is_named_and_the_others_are_finished() {
    let chain = lan_wan();
    let mut engine = Announcing;
    let packet = udp(0, ("10.0.0.1", 1), ("9.9.9.9", 1));
    let (mut broken, mut whole) = (Failing { at: 0, written: 0 }, Finished(false));
    let summary = Run::new(&chain, &mut engine)
        .input(sources(vec![packet]))
        .sinks(
            Sinks::default()
                .output("broken.pcap", None, &mut broken)
                .output("whole.pcap", None, &mut whole)
                .events("events.json", BufWriter::new(Full)),
        )
        .run()
        .unwrap();
    let unwritten: Vec<String> = summary.unwritten.iter().map(ToString::to_string).collect();
    let expected =
        ["broken.pcap: cannot be written: disk full", "events.json: cannot be written: disk full"];
    assert_eq!(unwritten, expected);
    assert!(whole.0);
}

/// A sink that remembers whether it was finished.
struct Finished(bool);

impl PacketSink for Finished {
    fn write_packet(&mut self, _packet: &Packet) -> Result<(), WriteError> {
        Ok(())
    }

    fn finish(&mut self) -> Result<(), WriteError> {
        self.0 = true;
        Ok(())
    }
}

#[test]
fn damaged_input_ends_the_run_after_its_whole_packets() {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 1, 0, 0, 1, 1] {
        file.extend(word.to_le_bytes());
    }
    file.push(7);
    let mut damaged = file.clone();
    damaged.extend([0xff; 16]);
    let run = |file: Vec<u8>| {
        let chain = chain(&[("a", &[])]);
        let mut engine = Fake::new(|_, packet| vec![(0, packet)]);
        let source = Box::new(CaptureReader::new(Cursor::new(file)).unwrap());
        let input = Input { source, ..sources(vec![]) };
        let mut sink = MemorySink::default();
        let ran = Run::new(&chain, &mut engine)
            .input(input)
            .sinks(Sinks::default().output("", None, &mut sink))
            .run();
        (ran, sink.packets.len())
    };
    let (error, written) = run(damaged);
    let message = error.unwrap_err().to_string();
    assert!(message.starts_with("in.pcap: damaged at byte 41: "), "{message}");
    assert_eq!(written, 1);

    // A file that is cut off leads to a warning only.
    file.extend([0; 5]);
    let (summary, written) = run(file);
    let warnings = summary.unwrap().warnings;
    assert!(warnings[0].starts_with("in.pcap: the file is cut off"), "{warnings:?}");
    assert_eq!((warnings.len(), written), (1, 1));
}

fn control(time_ns: u64) -> Control {
    Control { time_ns, node: 0, param: ParamId(0), change: Change::RemoveRule(7), line: None }
}

#[test]
fn control_changes_are_made_before_packets_of_equal_time() {
    let chain = lan_wan();
    let mut engine = Fake::new(through);
    let packets = [1, 5, 3, 9].map(|time| udp(time, ("10.0.0.1", 1), ("9.9.9.9", 1)));
    let run = Run::new(&chain, &mut engine).input(sources(packets.into())).control([
        control(9),
        control(10),
        control(2),
        control(1),
        control(4),
    ]);
    let summary = run.run().unwrap();
    // Each change with the number of packets before it.
    assert_eq!(engine.controls, [(1, 0), (2, 1), (4, 1), (9, 3)]);
    assert_eq!(
        summary.warnings,
        ["1 control line is later than the last packet and was not applied"]
    );
}

#[test]
fn control_change_that_cannot_be_made_is_noted_and_the_run_goes_on() {
    let chain = lan_wan();
    let mut engine = Fake::new(through);
    engine.refuse_control = true;
    let packet = udp(5, ("10.0.0.1", 1), ("9.9.9.9", 1));
    let change = Control { line: Some(4), ..control(3) };
    let run = Run::new(&chain, &mut engine).input(sources(vec![packet])).control([change]);
    let summary = run.run().unwrap();
    let [refused] = &summary.refused[..] else { panic!("{summary:?}") };
    assert_eq!((refused.line, refused.time_ns), (Some(4), 3));
    assert_eq!(refused.reason, "there is no rule 7");
    assert_eq!(summary.counters.out.values().sum::<u64>(), 1);
}

#[test]
fn engine_that_loses_packets_is_found_out() {
    let chain = lan_wan();
    let mut engine = Fake::new(through);
    engine.counters.created = 2;
    engine.counters.held = 1;
    let packet = udp(5, ("10.0.0.1", 1), ("9.9.9.9", 1));
    let error = Run::new(&chain, &mut engine).input(sources(vec![packet])).run().unwrap_err();
    assert!(matches!(error, RunError::Unbalanced(_)));
    assert_eq!(
        error.to_string(),
        "the packets do not add up: in 1 + created 2 + copied 0 is not out 1 + dropped 0 + \
         consumed 0 + held 1 + lost 0; please report this"
    );
}

#[test]
fn progress_is_told_now_and_then_and_at_the_end() {
    let chain = lan_wan();
    let mut engine = Fake::new(through);
    let packet = udp(5, ("10.0.0.1", 1), ("9.9.9.9", 1));
    let mut told = Vec::new();
    Run::new(&chain, &mut engine)
        .input(sources(vec![packet; 1_500]))
        .progress(|Progress { packets, .. }| told.push(packets))
        .run()
        .unwrap();
    assert_eq!(told, [0, 1_024, 1_500]);
}

/// An engine that publishes an event for each packet.
struct Announcing;

impl Engine for Announcing {
    fn burst(&mut self, burst: &mut Burst, out: &mut dyn Outputs) {
        burst.take_each(|_, packet| announce(&packet, out));
    }

    fn advance(&mut self, _time_ns: u64, _out: &mut dyn Outputs) {}

    fn begin(&mut self, _time_ns: u64, _out: &mut dyn Outputs) {}

    fn control(&mut self, _: &Control, _: &mut dyn Outputs) -> Result<(), String> {
        Ok(())
    }

    fn counters(&self) -> braid_ir::engine::Counters {
        braid_ir::engine::Counters::default()
    }

    fn state(&self) -> Vec<braid_ir::engine::StateEntry> {
        Vec::new()
    }

    fn export(&mut self) -> Snapshot {
        Snapshot::default()
    }

    fn import(&mut self, _: Snapshot) -> Result<(), ImportError> {
        Ok(())
    }
}

fn announce(packet: &Packet, out: &mut dyn Outputs) {
    let layout = packet.parse();
    assert!(layout.has(Header::Ip4));
    let source = packet.get(&layout, Field::IpSrc).unwrap();
    out.event(Event {
        time_ns: packet.time_ns,
        node: 3,
        name: "SCAN".into(),
        ancestors: vec!["ALERT".into(), "EVENT".into()],
        fields: vec![
            ("who".into(), EventValue::Scalar(Kind::Ip4, source)),
            ("note".into(), EventValue::Str("a \"b\"".into())),
            ("count".into(), EventValue::Scalar(Kind::Uint, 1 << 64)),
        ],
    });
}

#[test]
fn events_are_written_as_json_lines_with_sorted_keys() {
    let chain = lan_wan();
    let mut events = Vec::new();
    let packet = udp(5, ("10.0.0.1", 1), ("9.9.9.9", 1));
    let mut engine = Announcing;
    let run = Run::new(&chain, &mut engine)
        .input(sources(vec![packet]))
        .sinks(Sinks::default().events("events.json", &mut events));
    run.run().unwrap();
    let line = r#"{"event":"SCAN","extends":["ALERT","EVENT"],"fields":{"count":"18446744073709551616","note":"a \"b\"","who":"10.0.0.1"},"function":null,"time_ns":5}"#;
    assert_eq!(String::from_utf8(events).unwrap(), format!("{line}\n"));
}

/// A source without end, which sets a flag after some packets.
struct Endless {
    packet: Packet,
    left: u32,
    stop: Arc<AtomicBool>,
}

impl PacketSource for Endless {
    fn next_packet(&mut self) -> Result<Option<Packet>, ReadError> {
        self.left = self.left.saturating_sub(1);
        self.stop.fetch_or(self.left == 0, Ordering::Relaxed);
        Ok(Some(self.packet.clone()))
    }
}

#[test]
fn run_that_is_stopped_has_a_summary_and_its_output_is_whole() {
    let (chain, mut engine) = (lan_wan(), Fake::new(through));
    let stop = Arc::new(AtomicBool::new(false));
    let packet = udp(0, ("10.0.0.1", 1), ("9.9.9.9", 1));
    let source = Box::new(Endless { packet, left: 1_000, stop: Arc::clone(&stop) });
    let mut sink = MemorySink::default();
    let summary = Run::new(&chain, &mut engine)
        .input(Input { source, ..sources(vec![]) })
        .sinks(Sinks::default().output("out", None, &mut sink))
        .stop(&stop)
        .run()
        .unwrap();
    assert_eq!(sink.packets.len() as u64, summary.counters.packets_in);
    assert!(summary.warnings[0].starts_with("ended by a signal after "), "{summary:?}");
}
