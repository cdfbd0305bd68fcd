//! Tests of native stream functions: in random chains, a function in C does on all engines, also in
//! a process of its own, what the same function in the language does.

use crate::{PACKETS, compile};
use braid_compiler::sharding::{Verdict, divide};
use braid_ir::chain::{Chain, Change, Control};
use braid_ir::engine::{Counters, Event, EventValue};
use braid_ir::model::ParamId;
use braid_ir::value::ParamValue;
use braid_native::OnFailure;
use braid_native::isolated::start_by;
use braid_testkit::breaks::{RIGHT, differs, snapshots_differ, with_breaks};
use braid_testkit::generate::Rng;
use braid_testkit::generate::program::Program;
use braid_testkit::generate::program::streams;
use braid_testkit::generate::traffic::conversations::recorded;
use braid_testkit::harness::{self, ENGINES, USERS};
use braid_testkit::record::{Detail, Output, Stimulus, Trace, record};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The example.
const WATCHWORD: &str = "examples/native/watchword.c";

/// The words of functions. Traffic has many of them.
const WORDS: &[&str] = &[
    "{ \"evil\", nocase(\"GET /a\") }",
    "{ \"aba\", \"ab\", \"xx\" }",
    "{ \"zz\", \"aab\", nocase(\"HTTP/1\") }",
];

/// The example's folder.
fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// Builds a library of a C file.
fn library(source: &str) -> String {
    harness::c_library(source, env!("CARGO_TARGET_TMPDIR"))
}

/// The example, with the library at its place. It has the function in C and in the language.
fn example(library: &str) -> String {
    let path = examples().join("native/watchword.braid");
    let text = std::fs::read_to_string(path).expect("the example");
    text.replace("./watchword.so", library)
}

/// The example without its chains.
fn declarations(library: &str) -> String {
    let text = example(library);
    text.split("chain in_c {").next().expect("a part in front of the chains").to_owned()
}

/// The generated program of a seed with a further function at a place that the seed chooses: once
/// in C, and once in the language.
fn programs(seed: u64, library: &str) -> [Program; 2] {
    let mut rng = Rng::new(seed ^ 0x776f_7264);
    let most = if rng.one_in(2) { 1 + rng.below(60) } else { 10_000 };
    let words = *rng.pick(WORDS);
    let block = rng.one_in(3);
    ["watchword", "watchword_nf"].map(|name| {
        let call = format!("{name}(words: {words}, most: {most} B, block: {block})");
        with(seed, &declarations(library), &call)
    })
}

/// The generated program of a seed with a further function at a place that the seed chooses.
fn with(seed: u64, declarations: &str, call: &str) -> Program {
    let mut rng = Rng::new(seed ^ 0x7769_7468);
    let Program { source, files } = streams::program(seed);
    let (before, path) = source.split_once("path lan").expect("a path");
    let at = rng.below(path.matches(" <-> ").count());
    let (place, _) = path.match_indices(" <-> ").nth(at).expect("a link");
    let (front, behind) = path.split_at(place);
    let source = format!("{declarations}{before}path lan{front} <-> {call}{behind}");
    Program { source, files }
}

/// The words that a chain gives the function, as a value.
fn words(of: &str) -> ParamValue {
    let path = examples().join("native/watchword.braid");
    let text = std::fs::read_to_string(path).expect("the example");
    let (_, rest) = text.split_once("stream nf").expect("the function in the language");
    let (function, _) = rest.split_once("chain in_c {").expect("its end");
    let source = format!(
        "event WORD extends FLOW {{ number: u32, offset: size }}
        event SENT extends FLOW {{ bytes: size, missing: size }}
        stream nf{function} chain c {{ path watchword_nf(words: {of}); }}"
    );
    compile(&Program { source, files: BTreeMap::new() }).nodes[0].params[0].clone()
}

/// Adds changes of the function's parameters: other words, and then resets.
fn change(chain: &Chain, stimuli: &mut Vec<Stimulus>, seed: u64) {
    let node = chain.nodes.iter().position(|node| node.model.name.starts_with("watchword"));
    let node = u16::try_from(node.expect("the function")).expect("a small number");
    let other = WORDS[usize::try_from(seed).expect("a small number") % WORDS.len()];
    let block = (ParamId(2), ParamValue::Scalar(1));
    let len = stimuli.len();
    for (at, (param, value)) in [(len * 3 / 4, block), (len / 2, (ParamId(0), words(other)))] {
        let Some(Stimulus::Packet(_, packet)) = stimuli.get(at) else { continue };
        let time_ns = packet.time_ns;
        let change = Change::Set(value);
        let control = Control { time_ns, node, param, change, line: None };
        stimuli.insert(at, Stimulus::Control(control));
    }
}

/// What packets, bytes and drops counted, by function, row and reason.
type Counted = BTreeMap<(usize, String), (u64, u64)>;

/// The counters by the names of rows, without the rows that counted nothing.
fn counted(chain: &Chain, counters: &Counters) -> Counted {
    let mut all = Counted::new();
    for (at, (node, own)) in chain.nodes.iter().zip(&counters.nodes).enumerate() {
        let rows = node.model.rows.iter().zip(&own.rows);
        all.extend(rows.map(|(row, of)| ((at, row.label.clone()), (of.packets, of.bytes))));
        all.insert((at, "forward".into()), (own.forward.packets, own.forward.bytes));
        all.insert((at, "backward".into()), (own.backward.packets, own.backward.bytes));
        all.insert((at, "faults".into()), (own.background_faults, 0));
    }
    for ((node, row, reason), packets) in &counters.drops {
        let at = usize::from(*node);
        let row = &chain.nodes[at].model.rows[*row as usize].label;
        all.insert((at, format!("{row} {reason}")), (*packets, 0));
    }
    all.retain(|_, counted| *counted != (0, 0));
    all
}

/// Two chains that differ in one function did the same.
fn is_same((one, a): (&Chain, &Trace), (other, b): (&Chain, &Trace), what: &str) {
    for (step, (a, b)) in a.outputs.iter().zip(&b.outputs).enumerate() {
        assert_eq!(a, b, "{what}: step {step}");
    }
    let last = |trace: &Trace| trace.counters.last().expect("counters").clone();
    let (a, b) = (last(a), last(b));
    assert_eq!(counted(one, &a), counted(other, &b), "{what}");
    let totals = |counters: Counters| {
        let Counters { packets_in, created, copied, consumed, out, lost, .. } = counters;
        (packets_in, created, copied, consumed, out, lost)
    };
    assert_eq!(totals(a), totals(b), "{what}");
}

/// The number of events of a type.
fn events(trace: &Trace, of: &str) -> usize {
    let is_it = |output: &&Output| matches!(output, Output::Event(event) if event.name == of);
    trace.outputs.iter().flatten().filter(is_it).count()
}

/// Whether this is the end of a connection that lacks bytes.
fn has_gap(output: &Output) -> bool {
    let Output::Event(Event { name, fields, .. }) = output else { return false };
    let is_gap = |(field, value): &(String, EventValue)| {
        field == "missing" && matches!(value, EventValue::Scalar(_, missing) if *missing > 0)
    };
    name == "SENT" && fields.iter().any(is_gap)
}

#[test]
fn functions_in_c_do_on_all_engines_what_they_do_in_the_language() {
    let library = library(WATCHWORD);
    let (mut words, mut sent, mut gaps, mut resets) = (0, 0, 0, 0);
    for seed in 0..braid_cases::at_least(40).into() {
        let programs = programs(seed, &library);
        let [in_c, in_braid] = programs.each_ref().map(compile);
        let (mut stimuli, mut expected) = recorded(&in_c, seed, PACKETS);
        if seed % 2 == 0 {
            change(&in_c, &mut stimuli, seed);
            expected = record(harness::reference(&in_c).as_mut(), &stimuli, Detail::End);
        }
        let other = record(harness::reference(&in_braid).as_mut(), &stimuli, Detail::End);
        let what = format!("seed {seed}\n{}", programs[0]);
        is_same((&in_c, &expected), (&in_braid, &other), &what);
        words += events(&expected, "WORD");
        sent += events(&expected, "SENT");
        gaps += expected.outputs.iter().flatten().filter(|output| has_gap(output)).count();
        let drops = expected.counters.iter().flat_map(|counters| &counters.drops);
        resets += drops.filter(|((.., reason), _)| reason == "word").count();
        let is_compiled = seed % 4 == 0;
        let engines = ENGINES.iter().chain(USERS);
        for engine in engines.filter(|engine| is_compiled || !engine.has_machine_code()) {
            if let Err(found) = engine.compare(&in_c, &stimuli, &expected) {
                panic!("{engine}: {found} {what}");
            }
        }
    }
    println!("{words} words, {sent} ends, {gaps} with gaps, {resets} chains with resets");
    assert!(
        words > 100 && sent > 20 && gaps > 0 && resets > 3,
        "{words}, {sent}, {gaps}, {resets}"
    );
}

/// A program with a function that has a timer, and fails now and then.
fn pulsing(seed: u64, library: &str) -> Program {
    with(seed, &format!("native nf pulse() from \"{library}\";\n"), "pulse()")
}

#[test]
fn functions_with_timers_and_failures_do_the_same_on_all_engines() {
    let library = library("crates/testkit/tests/streams/pulse.c");
    let (mut faults, mut resets) = (0, 0);
    for seed in 0..braid_cases::at_least(30).into() {
        let program = pulsing(seed, &library);
        let chain = compile(&program);
        let (stimuli, expected) = recorded(&chain, seed, PACKETS);
        for engine in ENGINES.iter().filter(|engine| seed == 0 || !engine.has_machine_code()) {
            if let Err(found) = engine.compare(&chain, &stimuli, &expected) {
                panic!("seed {seed}, {engine}: {found}\n{program}");
            }
        }
        let counters = expected.counters.last().expect("counters");
        faults += counters.nodes.iter().map(|node| node.background_faults).sum::<u64>();
        resets += counters.drops.keys().filter(|(.., reason)| reason == "pulse").count();
    }
    assert!(faults > 100 && resets > 5, "{faults}, {resets}");
}

#[test]
fn functions_in_c_go_on_in_other_engines() {
    let libraries = [WATCHWORD, "crates/testkit/tests/streams/pulse.c"].map(library);
    for seed in 0..braid_cases::at_least(16).into() {
        let program = match seed % 2 {
            0 => pulsing(seed, &libraries[1]),
            _ => programs(seed, &libraries[0])[0].clone(),
        };
        let chain = compile(&program);
        let (stimuli, _) = recorded(&chain, seed, PACKETS);
        let steps = with_breaks(&stimuli, seed, false);
        let found = differs(&chain, &steps, &|_| (), RIGHT);
        let found = found.or_else(|| snapshots_differ(&chain, &steps));
        assert_eq!(found, None, "seed {seed}\n{program}");
    }
}

#[test]
fn functions_in_c_do_the_same_in_processes_of_their_own() {
    start_by(vec![env!("CARGO_BIN_EXE_isolate").into()]);
    let library = library(WATCHWORD);
    for seed in 0..braid_cases::at_least(4).into() {
        let [program, _] = programs(seed, &library);
        let chain = compile(&program);
        let (stimuli, expected) = recorded(&chain, seed, PACKETS);
        let mut apart = chain.clone();
        for node in &mut apart.nodes {
            if let Some(native) = &mut Arc::make_mut(&mut node.model).native {
                native.reference.isolated = Some(OnFailure::Drop);
            }
        }
        let engines = ENGINES.iter().filter(|engine| !engine.has_machine_code());
        for engine in engines {
            if let Err(found) = engine.compare(&apart, &stimuli, &expected) {
                panic!("seed {seed}, {engine}: {found}\n{program}");
            }
        }
    }
}

/// One of the example's chains.
fn one(library: &str, name: &str) -> Chain {
    let other = if name == "in_c" { "in_braid" } else { "in_c" };
    let source = example(library);
    let (front, rest) = source.split_once(&format!("chain {other} {{")).expect("a chain");
    let (_, behind) = rest.split_once("\n}\n").expect("its end");
    compile(&Program { source: format!("{front}{behind}"), files: BTreeMap::new() })
}

/// A capture in which some packets are missing, and others come after the next one.
fn damaged(packets: &[braid_packet::Packet]) -> Vec<Stimulus> {
    let mut all: Vec<_> = packets.to_vec();
    for at in (5..all.len()).step_by(7) {
        let (first, second) = (all[at - 1].time_ns, all[at].time_ns);
        all.swap(at - 1, at);
        (all[at - 1].time_ns, all[at].time_ns) = (first, second);
    }
    let left = all.into_iter().enumerate().filter(|(at, _)| at % 13 != 0);
    let outside = |packet: &braid_packet::Packet| packet.data().get(26..30) != Some(&CLIENT[..]);
    left.map(|(_, packet)| Stimulus::Packet(outside(&packet).into(), packet)).collect()
}

/// The computer at the centre of the example's capture.
const CLIENT: [u8; 4] = [192, 168, 122, 145];

#[test]
fn example_finds_words_in_a_capture_with_late_and_lost_segments() {
    let capture = examples().join("captures/domain-client.pcap.gz");
    let stimuli = damaged(&harness::read_capture(&capture).expect("the capture"));
    let library = library(WATCHWORD);
    let [in_c, in_braid] = ["in_c", "in_braid"].map(|name| one(&library, name));
    let run = |chain: &Chain| record(harness::reference(chain).as_mut(), &stimuli, Detail::End);
    let (expected, other) = (run(&in_c), run(&in_braid));
    is_same((&in_c, &expected), (&in_braid, &other), "the capture");
    assert!(events(&expected, "WORD") > 20, "{}", events(&expected, "WORD"));
    assert!(events(&expected, "SENT") > 5, "{}", events(&expected, "SENT"));
    assert!(expected.outputs.iter().flatten().any(has_gap), "no byte is missing");
    for engine in ENGINES.iter().chain(USERS) {
        if let Err(found) = engine.compare(&in_c, &stimuli, &expected) {
            panic!("{engine}: {found}");
        }
    }
}

#[test]
fn functions_that_keep_connections_run_on_several_workers() {
    let library = library(WATCHWORD);
    let chain = one(&library, "in_c");
    let (divided, found) = divide(Chain { workers: 3, ..chain.clone() }).expect("a good chain");
    assert_ne!(found.verdict, Verdict::OneWorker, "{:?}", found.why_not);
    let mut words = 0;
    for seed in braid_cases::seeds(4) {
        let (stimuli, expected) = recorded(&chain, seed, PACKETS);
        let actual = record(harness::reference(&divided).as_mut(), &stimuli, Detail::End);
        assert_eq!(settled(actual), settled(expected.clone()), "seed {seed}");
        words += events(&expected, "WORD");
        for kind in harness::Engine::drawn(seed, seed == 0).into_iter().chain([USERS[0]]) {
            let traffic = recorded(&divided, seed, PACKETS);
            let differs = harness::differs_from_shards(&divided, kind, traffic);
            assert_eq!(differs, None, "seed {seed}");
        }
    }
    assert!(words > 10, "{words}");
    // A function that does not say what it keeps stays on one worker.
    let library = self::library("crates/testkit/tests/streams/pulse.c");
    let (divided, found) =
        divide(Chain { workers: 3, ..compile(&pulsing(1, &library)) }).expect("a good chain");
    assert_eq!((divided.workers, found.verdict), (1, Verdict::OneWorker));
}

/// The outputs of a run over workers, whose events of the same time have no order.
fn settled(trace: Trace) -> Vec<Vec<Output>> {
    trace.outputs.into_iter().map(harness::settled).collect()
}
