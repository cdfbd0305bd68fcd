//! Tests functions in processes of their own: they do the same there, they see and change only what
//! they declare, and their failures are theirs alone.

use super::*;
use braid_ir::engine::Counters;
use braid_native::OnFailure;
use braid_native::isolated::start_by;
use braid_testkit::record::{Detail, Trace, record};

/// A chain whose native functions run in processes of their own.
pub fn isolated(mut chain: Chain) -> Chain {
    start_by(vec![env!("CARGO_BIN_EXE_isolate").into()]);
    for node in &mut chain.nodes {
        if let Some(native) = &mut Arc::make_mut(&mut node.model).native {
            native.reference.isolated = Some(OnFailure::Drop);
        }
    }
    chain
}

/// A chain of one function of `faulty.c`. What packets cross is declared as a chain file declares
/// it.
fn faulty(function: &str, isolation: &str) -> Chain {
    start_by(vec![env!("CARGO_BIN_EXE_isolate").into()]);
    let library = library("crates/testkit/tests/native/faulty.c");
    compile(&format!(
        r#"native nf f() from "{library}" function {function} {isolation};
        chain c {{ {INTERFACES} path lan <-> f() <-> wan; }}"#
    ))
}

#[test]
fn functions_do_the_same_in_processes_of_their_own() {
    for chain in chains() {
        for seed in 0..braid_cases::at_least(2).into() {
            let (stimuli, expected) = recorded(&chain, seed, STIMULI);
            let apart = isolated(chain.clone());
            for engine in ENGINES.iter().filter(|engine| seed == 0 || !engine.has_machine_code()) {
                let found = engine.check(&apart, &stimuli, &expected);
                assert!(found.is_ok(), "{} seed {seed}: {}", chain.name, found.unwrap_err());
            }
        }
    }
}

/// A packet to each of these ports, a millisecond apart.
fn to_ports(ports: &[u16]) -> Vec<Stimulus> {
    let packet = |(at, port): (usize, &u16)| {
        let text = format!("udp 10.0.0.1:1000 > 192.0.2.1:{port} \"SECRET\"");
        Stimulus::Packet(0, packet(&text).at(1_000_000_000 + at as u64 * 1_000_000))
    };
    ports.iter().enumerate().map(packet).collect()
}

/// All engines' common trace.
fn trace(chain: &Chain, stimuli: &[Stimulus]) -> Trace {
    let run = |engine: &mut dyn braid_ir::engine::Engine| record(engine, stimuli, Detail::End);
    let expected = run(harness::reference(chain).as_mut());
    for engine in ENGINES {
        let found = run(engine.make(chain).as_mut());
        assert_eq!(found, expected, "{engine:?}");
    }
    expected
}

/// Which packets left.
fn left(trace: &Trace) -> Vec<bool> {
    let is_packet = |output: &Output| matches!(output, Output::Packet(..));
    trace.outputs.iter().map(|outputs| outputs.iter().any(is_packet)).collect()
}

/// The texts of messages.
fn messages(trace: &Trace) -> Vec<String> {
    let text = |output: &Output| match output {
        Output::Event(event) => event
            .fields
            .iter()
            .find(|(name, _)| name == "text")
            .map(|(_, text)| format!("{text:?}")),
        Output::Packet(..) | Output::Refused(_) => None,
    };
    trace.outputs.iter().flatten().filter_map(text).collect()
}

/// The number of packets at the rows `body`, `bypassed` (if there is one) and `fault`.
fn rows(trace: &Trace) -> Vec<u64> {
    let counters: &Counters = trace.counters.last().unwrap();
    counters.nodes[0].rows.iter().map(|row| row.packets).collect()
}

#[test]
fn packets_of_a_crashed_function_are_dropped_or_go_on() {
    let stimuli = to_ports(&[80, 666, 80, 25, 668, 80]);
    let dropped = trace(&faulty("forgetful", "isolated"), &stimuli);
    // The second failure comes soon after the first, so the packet behind it has no process.
    assert_eq!(left(&dropped), [true, false, true, false, false, false]);
    let bypassed = trace(&faulty("forgetful", "isolated on failure bypass"), &stimuli);
    assert_eq!(left(&bypassed), [true, true, true, false, true, true]);
    assert_eq!((rows(&dropped), rows(&bypassed)), (vec![3, 3], vec![3, 3, 0]));
    assert_eq!(
        messages(&bypassed),
        [
            "Str(\"the process crashed (SIGSEGV); the next one comes in 0 ms\")",
            "Str(\"a new process begins anew\")",
            "Str(\"the process ended with exit status 3; the next one comes in 10 ms\")",
        ]
    );
}

/// The packets of a connection whose client sends these bytes, one in each packet.
fn connection(bytes: &str) -> Vec<Stimulus> {
    let send = |at: usize, from_client: bool, text: String| {
        let packet = packet(&text).at(1_000_000_000 + at as u64 * 1_000_000);
        Stimulus::Packet(u16::from(!from_client), packet)
    };
    let (client, server) = ("tcp 10.0.0.1:1000 > 192.0.2.1:80", "tcp 192.0.2.1:80 > 10.0.0.1:1000");
    let mut all = vec![
        send(0, true, format!("{client} S seq=100")),
        send(1, false, format!("{server} SA seq=500 ack=101")),
        send(2, true, format!("{client} A seq=101 ack=501")),
    ];
    all.extend(bytes.char_indices().map(|(at, byte)| {
        let text = format!("{client} PA seq={} ack=501 \"{byte}\"", 101 + at);
        send(3 + 20 * at, true, text)
    }));
    all
}

#[test]
fn connections_of_a_crashed_function_go_on() {
    let stimuli = connection("a!b?c");
    for (isolation, expected, faults) in [
        // The calls of `body`, `packets` and `fault`: two openings, `a`, `b`, `?`.
        ("isolated", vec![4, 8, 0], 1),
        ("isolated on failure bypass", vec![4, 1, 8, 0], 0),
    ] {
        let trace = trace(&faulty("fragile", isolation), &stimuli);
        assert_eq!(left(&trace), [true, true, true, true, true, true, true, true], "{isolation}");
        assert_eq!(rows(&trace), expected, "{isolation}");
        let counters = trace.counters.last().unwrap();
        assert_eq!(counters.nodes[0].background_faults, faults, "{isolation}");
        // Both ends get a RST, and so does the sender of the last packet.
        assert_eq!((counters.created, counters.drops.values().sum::<u64>()), (3, 2));
        let messages = messages(&trace);
        assert!(messages[0].contains("crashed (SIGSEGV)"), "{messages:?}");
    }
}

#[test]
fn new_process_goes_on_from_the_memory_of_the_last_one() {
    // A process is asked for its memory each second: before packet 1 and before packet 1,001.
    let ports: Vec<u16> = (0..1_500).map(|at| if at == 1_400 { 666 } else { 80 }).collect();
    let counted = |function| {
        let trace = trace(&faulty(function, "isolated"), &to_ports(&ports));
        let entry = trace.state.iter().find(|entry| entry.table == "counted").unwrap();
        entry.slots[0].2
    };
    assert_eq!(counted("faulty"), 1_000 + 99);
    assert_eq!(counted("forgetful"), 99);
}

#[test]
fn function_without_end_holds_packets_up_only_once() {
    let start = std::time::Instant::now();
    let chain = faulty("faulty", "isolated on failure bypass");
    let mut engine = harness::reference(&chain);
    let ports: Vec<u16> = (0..300).map(|at| if at >= 100 { 667 } else { 80 }).collect();
    let trace = record(engine.as_mut(), &to_ports(&ports), Detail::End);
    assert!(left(&trace).iter().all(|left| *left));
    let problems: Vec<_> = engine.problems().iter().map(|(_, noted)| noted.to_string()).collect();
    assert_eq!(
        problems,
        [
            "lost its process, which does not answer (its packet 101)",
            "had no process for a packet (its packet 102), 199 times"
        ]
    );
    let took = start.elapsed();
    assert!((1.0..5.0).contains(&took.as_secs_f64()), "{took:?}");
}

#[test]
fn function_changes_only_what_it_declares() {
    let stimuli = to_ports(&[80]);
    let Stimulus::Packet(_, before) = &stimuli[0] else { panic!() };
    let after = |isolation| {
        let trace = trace(&faulty("greedy", isolation), &stimuli);
        let [Output::Packet(_, packet)] = &trace.outputs[0][..] else { panic!("{trace:?}") };
        packet.clone()
    };
    let mut expected = before.clone();
    expected.set(&before.parse(), Field::UdpSport, 4242);
    assert_eq!(after("isolated").data(), expected.data());
    // In the same process, nothing keeps it from changing the rest.
    let other = after("");
    assert_eq!(other.data()[..12], [0xee; 12]);
    assert_eq!(other.data().last(), Some(&0xee));
}

#[test]
fn function_has_no_payload_in_its_memory_unless_it_reads_payloads() {
    let stimuli = to_ports(&[80]);
    let run = |function| {
        let chain = faulty(function, "isolated");
        left(&record(harness::reference(&chain).as_mut(), &stimuli, Detail::End))
    };
    assert_eq!(run("curious"), [true]);
    assert_eq!(run("reader"), [false]);
}

#[test]
fn library_is_not_loaded_into_this_process() {
    let chain = faulty("faulty", "isolated");
    let stimuli = to_ports(&[80]);
    record(harness::reference(&chain).as_mut(), &stimuli, Detail::End);
    let native = chain.nodes[0].model.native.as_ref().unwrap();
    let path = std::fs::canonicalize(&native.reference.library).unwrap();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    assert!(!maps.contains(&*path.to_string_lossy()));
}
