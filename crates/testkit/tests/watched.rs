//! Tests packets that are shown between functions: all engines show the same ones, and results stay
//! the same, whichever packets are shown.

use braid_ir::chain::{Chain, Control};
use braid_ir::engine::{Counters, Engine, Event, Outputs, StateEntry, Watcher};
use braid_ir::snapshot::{ImportError, Snapshot};
use braid_packet::{Burst, Field, Link, Packet, Shape, build_fresh};
use braid_testkit::compare::difference;
use braid_testkit::generate::program::any;
use braid_testkit::generate::traffic::stimuli;
use braid_testkit::harness::{self, Form, budget};
use braid_testkit::record::{Detail, record};
use std::collections::BTreeMap;

/// Number of stimuli of each case.
const STIMULI: usize = 150;
/// Number of cases, unless `BRAID_CASES` sets it.
const CASES: u64 = 60;

/// A packet between functions: where it was, its direction there, its time and its bytes.
#[derive(PartialEq, Eq, Debug)]
struct Sight {
    place: (&'static str, u16),
    backward: bool,
    time_ns: u64,
    bytes: Vec<u8>,
}

#[derive(Default)]
struct Sights(Vec<Sight>);

impl Sights {
    fn add(&mut self, place: (&'static str, u16), packet: &Packet, backward: bool) {
        let (time_ns, bytes) = (packet.time_ns, packet.data().to_vec());
        self.0.push(Sight { place, backward, time_ns, bytes });
    }
}

impl Watcher for Sights {
    fn enters(&mut self, node: u16, packet: &Packet) {
        self.add(("enters", node), packet, packet.backward);
    }

    fn leaves(&mut self, node: u16, packet: &Packet) {
        self.add(("leaves", node), packet, false);
    }
}

/// An engine that shows some of its packets.
struct Shown {
    inner: Box<dyn Engine>,
    shows: fn(usize) -> bool,
    packets: usize,
    sights: Sights,
}

impl Engine for Shown {
    fn burst(&mut self, burst: &mut Burst, out: &mut dyn Outputs) {
        let Self { inner, shows, packets, sights } = self;
        burst.take_each(|at, packet| {
            out.at(at);
            *packets += 1;
            if shows(*packets) {
                inner.watched(packet.ingress, packet, out, sights);
            } else {
                inner.packet(packet.ingress, packet, out);
            }
        });
    }

    fn advance(&mut self, time_ns: u64, out: &mut dyn Outputs) {
        self.inner.advance(time_ns, out);
    }

    fn begin(&mut self, time_ns: u64, out: &mut dyn Outputs) {
        self.inner.begin(time_ns, out);
    }

    fn control(&mut self, control: &Control, out: &mut dyn Outputs) -> Result<(), String> {
        self.inner.control(control, out)
    }

    fn counters(&self) -> Counters {
        self.inner.counters()
    }

    fn state(&self) -> Vec<StateEntry> {
        self.inner.state()
    }

    fn export(&mut self) -> Snapshot {
        self.inner.export()
    }

    fn import(&mut self, snapshot: Snapshot) -> Result<(), ImportError> {
        self.inner.import(snapshot)
    }
}

/// The end of packets that left.
struct Nowhere;

impl Outputs for Nowhere {
    fn packet(&mut self, _: u16, _: Packet) {}

    fn event(&mut self, _: Event) {}
}

fn generated(seed: u64) -> Chain {
    let program = any(seed);
    let chain = harness::compile(&program.source, &program.files, Form::AsWritten);
    chain.unwrap_or_else(|errors| panic!("seed {seed}\n{program}\n{errors}"))
}

/// The packets that are shown, by number: some, or all.
const SHOWS: [fn(usize) -> bool; 2] = [|number| number % 7 < 3, |_| true];

#[test]
fn all_engines_show_the_same_packets_and_give_the_same_results() {
    let mut shown = 0;
    for seed in budget::seeds(CASES) {
        let chain = generated(seed);
        let stimuli = stimuli(&chain, seed, STIMULI);
        let mut plain = harness::reference(&chain);
        let expected = record(plain.as_mut(), &stimuli, Detail::Steps);
        for shows in SHOWS {
            let run = |inner: Box<dyn Engine>| {
                let mut engine = Shown { inner, shows, packets: 0, sights: Sights::default() };
                let trace = record(&mut engine, &stimuli, Detail::Steps);
                (trace, engine.sights.0)
            };
            let (trace, sights) = run(harness::reference(&chain));
            let told = |what: Option<_>| assert!(what.is_none(), "{seed}: {what:?}\n{}", any(seed));
            told(difference(&expected, &trace));
            shown += sights.len();
            for engine in harness::Engine::drawn(seed, true) {
                let (trace, other) = run(engine.make(&chain));
                told(difference(&expected, &trace));
                assert_eq!(sights, other, "seed {seed}, {engine:?}\n{}", any(seed));
            }
        }
    }
    assert!(shown > 1000, "{shown} packets were shown");
}

#[test]
fn each_function_sees_the_packet_as_the_one_before_it_left_it() {
    let source = "
        nf mark() { match { forward and has ip => { ip.ttl -= 1; output; } else => output; } }
        chain c { interface a; interface b; first = mark(); second = mark();
                  path a <-> first <-> second <-> b; }";
    let chain = harness::compile(source, &BTreeMap::new(), Form::AsWritten).unwrap();
    let fields = [(Field::IpTtl, 64)];
    let packet = build_fresh(Link::Ethernet, 0, Shape::Udp4, &fields, &[]).unwrap();
    let mut engine = Shown {
        inner: harness::reference(&chain),
        shows: |_| true,
        packets: 0,
        sights: Sights::default(),
    };
    engine.packet(0, packet, &mut Nowhere);
    // The TTL is behind 14 bytes of Ethernet and 8 bytes of IP.
    let ttl = engine.sights.0.iter().map(|sight| (sight.place, sight.bytes[22]));
    let places = [("enters", 0), ("leaves", 0), ("enters", 1), ("leaves", 1)];
    assert_eq!(
        ttl.collect::<Vec<_>>(),
        places.into_iter().zip([64, 63, 63, 62]).collect::<Vec<_>>()
    );
}
