//! Tests isolated functions that run the packets of a burst ahead: everything is as if they ran one
//! packet after the other.

use super::isolated::isolated;
use super::*;
use braid_compiler::parallel::stages::firsts;
use braid_ir::engine::Engine;
use braid_native::isolated::{Coming, start_by};
use braid_native::{Config, Failed, Part, Verdict};
use braid_packet::{Burst, Layout};
use braid_testkit::compare::difference;
use braid_testkit::generate::Rng;
use braid_testkit::packet::udp;
use braid_testkit::record::{Detail, Trace, record, record_bursts};

/// Engines that get bursts.
fn engines() -> impl Iterator<Item = harness::Engine> {
    let all = ENGINES.iter().filter(|engine| engine.burst().is_some()).copied();
    all.chain([ENGINES[7].in_stages(2, 8), ENGINES[5].in_stages(2, 3)])
}

/// A chain that begins with a function of `ahead.c`. `isolation` is as in a declaration.
fn chain(function: &str, isolation: &str, behind: &str) -> Chain {
    start_by(vec![env!("CARGO_BIN_EXE_isolate").into()]);
    let library = library("crates/testkit/tests/native/ahead.c");
    compile(&format!(
        r#"native nf f() from "{library}" function {function} {isolation};
        nf by_colour() {{
          tag colour: u8;
          state seen: u64 global = 0;
          match {{
            colour > 200 => drop "colour";
            else => {{ seen = seen + u64(colour); output; }}
          }}
        }}
        chain c {{
          {INTERFACES} interface spy;
          one = f(); link one.tap -> spy;
          path lan <-> one {behind} <-> wan;
        }}"#
    ))
}

/// Packets of many lengths from both sides, some of them at the same time.
fn traffic(seed: u64, count: usize) -> Vec<Stimulus> {
    let mut rng = Rng::new(seed);
    let mut now = 1_000_000_000;
    let mut packet = |_| {
        now += *rng.pick(&[0, 0, 1_000, 300_000, 2_000_000, 40_000_000]);
        let length = *rng.pick(&[0, 1, 1, 18, 18, 18, 300, 1_400, 1_990, 2_006, 2_007, 8_000]);
        let bytes: Vec<u8> = (0..length).map(|_| rng.byte()).collect();
        let (interface, from, to) = match rng.one_in(3) {
            true => (1, "192.0.2.1", "10.0.0.1"),
            false => (0, "10.0.0.1", "192.0.2.1"),
        };
        let port = rng.short() % 600;
        // Captures have packets with earlier times, too.
        let at = if rng.one_in(8) { now - 500_000 } else { now };
        let packet = udp(&format!("{from}:{port} > {to}:80")).payload(&bytes).at(at);
        Stimulus::Packet(interface, packet)
    };
    (0..count).map(&mut packet).collect()
}

/// What an engine does, and its problems.
type Done = (Trace, Vec<String>);

fn done(mut engine: Box<dyn Engine>, run: impl FnOnce(&mut dyn Engine) -> Trace) -> Done {
    let trace = run(engine.as_mut());
    (trace, engine.problems().iter().map(|(_, noted)| noted.to_string()).collect())
}

/// What an engine does with bursts.
fn bursts(engine: &harness::Engine, chain: &Chain, stimuli: &[Stimulus]) -> Done {
    let most = engine.burst().unwrap_or(32);
    done(engine.make(chain), |engine| record_bursts(engine, stimuli, most))
}

/// What the reference engine does with one packet after the other.
fn in_turn(chain: &Chain, stimuli: &[Stimulus]) -> Done {
    done(harness::reference(chain), |engine| record(engine, stimuli, Detail::End))
}

#[track_caller]
fn assert_same(found: &Done, expected: &Done, what: &str) {
    let different = difference(&expected.0, &found.0);
    assert!(different.is_none(), "{what}: {different:?}");
    assert_eq!(found.1, expected.1, "{what}");
}

#[test]
fn functions_that_run_ahead_do_what_they_do_in_turn() {
    for function in ["everything", "quiet", "telling"] {
        for behind in ["", "<-> monitor()", "<-> by_colour()"] {
            let [here, apart] = ["", "isolated"].map(|place| chain(function, place, behind));
            let firsts = firsts(&apart);
            assert_eq!(firsts[..2], [Some((0, false)), behind.is_empty().then_some((0, true))]);
            for seed in 0..braid_cases::at_least(3).into() {
                let generated = recorded(&here, seed, STIMULI).0;
                for stimuli in [traffic(seed, 300), generated] {
                    let expected = in_turn(&here, &stimuli);
                    for engine in engines().filter(|one| seed == 0 || !one.has_machine_code()) {
                        let found = bursts(&engine, &apart, &stimuli);
                        let what = format!("{function} {behind}, seed {seed}: {engine}");
                        assert_same(&found, &expected, &what);
                    }
                }
            }
        }
    }
}

#[test]
fn crash_within_a_burst_concerns_its_packet_only() {
    let engines: Vec<_> = engines().filter(|engine| !engine.has_machine_code()).collect();
    assert!(!engines.is_empty());
    let mut crashes = 0;
    for place in 0..34 {
        for (function, isolation) in [
            ("everything", "isolated"),
            ("telling", "isolated on failure bypass"),
            ("forgetful", "isolated on failure bypass"),
        ] {
            let mut stimuli = traffic(place, 40);
            // Each second crash comes soon after the first.
            for at in [place, place + 3].into_iter().take(1 + place as usize % 2) {
                let Stimulus::Packet(_, packet) = &mut stimuli[at as usize] else { panic!() };
                *packet = udp("10.0.0.1:1 > 192.0.2.1:666").payload(b"!").at(packet.time_ns);
            }
            let chain = chain(function, isolation, "<-> by_colour()");
            let expected = in_turn(&chain, &stimuli);
            crashes += usize::from(expected.1.iter().any(|text| text.contains("crashed")));
            for engine in &engines {
                let found = bursts(engine, &chain, &stimuli);
                let what = format!("{function} {isolation}, packet {place}: {engine}");
                assert_same(&found, &expected, &what);
            }
        }
    }
    assert_eq!(crashes, 34 * 3);
}

/// Discards events.
struct Nowhere;

impl Outputs for Nowhere {
    fn packet(&mut self, _: u16, _: Packet) {}
    fn event(&mut self, _: Event) {}
}

#[test]
fn bursts_behind_a_crash_do_not_overtake_others() {
    let chain = chain("quiet", "isolated", "");
    let mut engine = ENGINES[1].make(&chain);
    let burst = |number: u64| {
        let mut burst = Burst::new();
        for at in 0..4 {
            let port = if number == 0 && at == 1 { 666 } else { 80 };
            let packet = udp(&format!("10.0.0.1:1 > 192.0.2.1:{port}"));
            burst.push(packet.payload(b"some").at(1_000_000_000 + number * 4 + at));
        }
        burst
    };
    let [mut first, mut second, mut third] = [0, 1, 2].map(burst);
    assert!(engine.ahead(&mut first) && engine.ahead(&mut second));
    let run = |burst: &mut Burst, engine: &mut dyn Engine| {
        engine.burst(burst, &mut Nowhere);
    };
    run(&mut first, engine.as_mut());
    // The second burst runs in the next process, and has not come yet.
    assert!(!engine.ahead(&mut third));
    run(&mut second, engine.as_mut());
    assert!(engine.ahead(&mut third));
    run(&mut third, engine.as_mut());
    assert_eq!(engine.problems().len(), 1);
}

/// An instance of a function of `ahead.c` in a process of its own.
fn instance(function: &str) -> Instance {
    let chain = chain(function, "isolated", "");
    let config = Config::default();
    Instance::of(&chain.nodes[0].model, "one", config, Part::WHOLE).expect("an instance")
}

/// Packets, with their layouts.
fn packets(count: u64) -> Vec<(Packet, Layout)> {
    let packet = |at| udp("10.0.0.1:1 > 192.0.2.1:80").payload(b"some").at(1_000_000_000 + at);
    (0..count).map(packet).map(|packet| (packet.clone(), packet.parse())).collect()
}

/// Says that packets come, at the times that they have.
fn announce(instance: &mut Instance, packets: &[(Packet, Layout)]) -> usize {
    instance.announce(packets.iter().map(|(packet, layout)| Coming {
        packet,
        layout,
        backward: false,
        now: packet.time_ns,
    }))
}

#[test]
fn memory_has_room_for_a_batch_of_packets() {
    let mut instance = instance("quiet");
    let mut all = packets(40);
    for round in 0..3 {
        assert_eq!(announce(&mut instance, &all), 32, "{round}");
        for (packet, _) in &mut all {
            let now = packet.time_ns;
            assert!(instance.packet(packet, now).is_ok());
        }
        instance.settle();
    }
    assert_eq!(instance.problems(), []);
}

#[test]
fn announced_packets_that_do_not_come_are_a_failure() {
    let strays = "lost its process, which has run packets that did not come";
    let problem = |instance: &Instance| instance.problems().first().map(ToString::to_string);
    // None comes.
    let mut first = instance("quiet");
    let mut all = packets(3);
    announce(&mut first, &all);
    first.settle();
    assert!(problem(&first).is_some_and(|text| text.starts_with(strays)));
    // The second comes first.
    let mut second = instance("quiet");
    announce(&mut second, &all);
    let now = all[1].0.time_ns;
    assert_eq!(second.packet(&mut all[1].0, now), Err(Failed::Drop));
    assert!(problem(&second).is_some_and(|text| text.starts_with(strays)));
    // Something else is asked.
    let mut third = instance("quiet");
    announce(&mut third, &all);
    assert!(third.report().is_empty());
    assert!(problem(&third).is_some_and(|text| text.starts_with(strays)));
}

#[test]
fn outputs_that_nobody_takes_do_not_stop_a_process() {
    let mut instance = instance("everything");
    let mut passed = 0;
    for _ in 0..4 {
        let mut all = packets(32);
        assert_eq!(announce(&mut instance, &all), 32);
        for (packet, _) in &mut all {
            let now = packet.time_ns;
            passed += usize::from(instance.packet(packet, now) == Ok(Verdict::Forward));
        }
    }
    assert!(passed > 0 && !instance.take_outputs().is_empty());
}

/// The first functions of a chain of isolated functions by the interface of packets.
fn firsts_of(path: &str, rules: &str) -> [Option<(u16, bool)>; 2] {
    let good = library("crates/native/tests/c/good.c");
    let chain = compile(&format!(
        r#"native nf f() from "{good}" function dos isolated;
        native nf small() from "{good}" function tunnel isolated;
        nf turner() {{ match {{ l4.dport == 7 => output back; else => output; }} }}
        nf holder() {{
          queue some capacity 4;
          match {{ pkt.held == 1 => output; else => hold some for 1 ms else drop "full"; }}
        }}
        stream nf reader() {{ on data from client {{ forward; }} }}
        chain c {{ {INTERFACES} {rules} path lan <-> {path} <-> wan; }}"#
    ));
    let found = firsts(&isolated(chain));
    [0, 1].map(|interface| found.get(interface).copied().flatten())
}

#[test]
fn only_functions_that_nothing_else_reaches_run_ahead() {
    for (path, expected) in [
        ("f()", [Some((0, false)), Some((0, true))]),
        ("f() <-> monitor()", [Some((0, false)), None]),
        ("monitor() <-> f()", [None, Some((1, true))]),
        ("small() <-> small()", [Some((0, false)), Some((1, true))]),
        // Packets come back to it, or may do so: `f` may do anything.
        ("f() <-> f()", [None, None]),
        ("f() <-> turner()", [None, None]),
        ("f() <-> monitor() <-> turner()", [None, None]),
        // Packets come at times of their own.
        ("f() <-> holder()", [None, None]),
        ("f() <-> reader()", [None, None]),
    ] {
        assert_eq!(firsts_of(path, ""), expected, "{path}");
    }
    let rules = "a = small(); b = small(); policy { Priority(b > a); }";
    assert_eq!(firsts_of("a <-> b", rules), [None, None]);
}
