//! Tests of chains that the analysis divides over workers. The engines of the workers do what the
//! reference engine with shards does. Where the analysis says that workers share nothing, one
//! worker does the same, and no entry is used by packets of two workers. Limits in portions are
//! those of chains of their own.

use braid_compiler::sharding::{Placement, Sharding, Verdict, divide, sharding};
use braid_ir::chain::{Chain, Change, Control};
use braid_ir::engine::{Event, Outputs};
use braid_ir::model::{Granularity, Model, Op, ParamTy, Word};
use braid_ir::steering::Steering;
use braid_ir::value::ParamValue;
use braid_packet::Packet;
use braid_testkit::convert::packet_of;
use braid_testkit::generate::program::any;
use braid_testkit::generate::traffic::recorded;
use braid_testkit::harness::{
    self, Engine as Kind, Form, USERS, budget, by_sender, roomy, settled,
};
use braid_testkit::packet::packet;
use braid_testkit::record::{Detail, Output, Stimulus, Trace, record, step};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::{Arc, LazyLock};

/// Number of stimuli of each chain.
const STIMULI: usize = 150;

/// A generated chain that the analysis divides: undivided, and how it is divided.
struct Generated {
    seed: u64,
    chain: Chain,
    found: Sharding,
}

impl Generated {
    fn of(seed: u64) -> Option<Self> {
        let drawn = any(seed);
        let unit = harness::unit("test.braid", &drawn.source, &drawn.files, Form::AsWritten);
        let unit = unit.unwrap_or_else(|errors| panic!("seed {seed}\n{drawn}\n{errors}"));
        let mut chain = unit.chains.into_iter().next_back().expect("a chain");
        chain.workers = 2 + u16::try_from(seed % 3).expect("small");
        let mut blocks = 0;
        for node in &mut chain.nodes {
            let model = Arc::make_mut(&mut node.model);
            blocks += model.packet.blocks.len();
            // No steering divides global state, and most chains have some.
            let globals = model
                .state
                .iter_mut()
                .filter(|decl| decl.granularity == Granularity::Global && decl.portions.is_empty());
            globals.for_each(|decl| decl.sharded = true);
        }
        // The analysis of large chains takes long.
        if blocks > 50 {
            return None;
        }
        let found = sharding(&chain).expect("a chain with a graph");
        (found.verdict == Verdict::Split).then_some(Self { seed, chain, found })
    }

    /// The chain over its workers.
    fn divided(&self) -> Chain {
        divide(self.chain.clone()).expect("a chain that can be divided").0
    }
}

impl std::fmt::Display for Generated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "seed {}\n{}\n{:?}", self.seed, any(self.seed), self.found)
    }
}

/// The generated chains of all tests.
fn generated() -> &'static [Generated] {
    static ALL: LazyLock<Vec<Generated>> =
        LazyLock::new(|| budget::seeds(budget::PAIRS / 3).filter_map(Generated::of).collect());
    &ALL
}

/// The first difference between the engines of the workers and the reference engine with shards.
fn differs_from_shards(divided: &Chain, kind: Kind, seed: u64, count: usize) -> Option<String> {
    harness::differs_from_shards(divided, kind, recorded(divided, seed, count))
}

#[test]
fn workers_of_divided_chains_are_equal_to_shards() {
    for one in generated() {
        for kind in Kind::drawn(one.seed, false) {
            let differs = differs_from_shards(&one.divided(), kind, one.seed, STIMULI);
            assert!(differs.is_none(), "{}\n{one}", differs.unwrap_or_default());
        }
    }
    let count = generated().len();
    println!("{count} chains are divided");
    assert!(count >= 10 || budget::is_asked(), "only {count} chains are divided");
}

#[test]
fn workers_of_chains_with_limits_are_equal_to_shards() {
    let (limits, _) = divide(limits()).expect("a chain that can be divided");
    for seed in budget::seeds(8) {
        for kind in Kind::drawn(seed, seed == 0).into_iter().chain([USERS[0]]) {
            let differs = differs_from_shards(&limits, kind, seed, 600);
            assert!(differs.is_none(), "seed {seed}: {}", differs.unwrap_or_default());
        }
    }
    for name in ["datacentre", "edge", "nfd"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        let file = folder.join(name).with_extension("braid");
        let chain = harness::compile_file(&file, Form::AsWritten).expect("an example");
        let (chain, found) = divide(Chain { workers: 4, ..chain }).expect("a chain with a graph");
        assert!(
            found.tables.iter().any(|table| table.placement == Placement::Portions),
            "{found:?}"
        );
        let differs = differs_from_shards(&chain, USERS[0], 1, 600);
        assert!(differs.is_none(), "{name}: {}", differs.unwrap_or_default());
    }
}

/// Two functions that count in handlers what others of their own kind publish.
const HANDLERS: &str = "
event SEEN extends EVENT { src: u128 }
event OFTEN extends SEEN;
event DROPS extends EVENT { src: u128 }

nf source() {
  state known: u8 per inet.src = 0;
  match {
    has inet => {
      known += 1;
      if known > 1 { emit OFTEN { src: inet.src }; }
      output;
    }
    else => output;
  }
}
nf gate(most: u32) {
  state seen: u32 per (u128) = 0;
  on SEEN {
    seen[event.src] += 1;
    if seen[event.src] > most { emit DROPS { src: event.src }; }
  }
  match {
    has inet and seen[inet.src] > most => drop \"often\";
    else => output;
  }
}
nf ledger() {
  state drops: u32 KEY = 0;
  on DROPS { drops[INDEX] += 1; }
  match {
    has inet and drops[OWN] > 9 => drop \"full\";
    else => output;
  }
}
chain handlers {
  interface lan { behind 10.0.0.0/8 }
  interface wan;
  path lan <-> source() <-> gate(most: 2) <-> ledger() <-> wan;
  workers 3;
}
";

/// The chain of handlers. The ledger counts for each source, or in one entry for all.
fn handlers(alone: bool) -> Chain {
    let source = match alone {
        true => HANDLERS.replace("KEY", "global").replace("[INDEX]", "").replace("[OWN]", ""),
        false => HANDLERS
            .replace("KEY", "per (u128)")
            .replace("INDEX", "event.src")
            .replace("OWN", "inet.src"),
    };
    let unit = harness::unit("test.braid", &source, &BTreeMap::new(), Form::AsWritten);
    unit.unwrap_or_else(|errors| panic!("{errors}")).chains.pop().expect("a chain")
}

#[test]
fn handlers_run_on_the_worker_of_the_packet_and_do_what_one_worker_does() {
    let (divided, found) = divide(handlers(false)).expect("a chain with a graph");
    assert_eq!(found.verdict, Verdict::Split, "{found:?}");
    assert!(found.tables.iter().all(|table| table.placement == Placement::Local), "{found:?}");
    let mut wrong = 0;
    for seed in budget::seeds(6) {
        for kind in Kind::drawn(seed, seed == 0).into_iter().chain([USERS[0]]) {
            let differs = differs_from_shards(&divided, kind, seed, 300);
            assert!(differs.is_none(), "seed {seed}: {}", differs.unwrap_or_default());
        }
        let one = Generated { seed, chain: handlers(false), found: found.clone() };
        assert_eq!(differs_from_one(&divided, &one), None, "seed {seed}");
        assert_eq!(conflict(&one, &divided.steering), None, "seed {seed}");
        // Under another steering, handlers change entries that packets do not find.
        let other = Chain { steering: Steering::by_connection(), ..divided.clone() };
        wrong += usize::from(differs_from_one(&other, &one).is_some());
    }
    assert!(wrong > 0, "another steering makes no difference");
}

#[test]
fn table_that_only_handlers_change_belongs_to_one_worker() {
    let found = sharding(&handlers(true)).expect("a chain with a graph");
    assert_eq!(found.verdict, Verdict::OneWorker, "{found:?}");
    let owned = found.tables.iter().filter(|table| table.placement == Placement::Owner);
    assert_eq!(owned.map(|table| &*table.table).collect::<Vec<_>>(), ["drops"], "{found:?}");
}

/// Whether functions of a chain have something of their own on each worker besides tables.
fn is_apart(chain: &Chain) -> bool {
    let apart = |model: &Model| {
        let pool = |ty: &ParamTy| matches!(ty, ParamTy::Pool(..));
        let handlers = model.handlers.iter().map(|(_, program)| program);
        let programs = handlers.chain([&model.packet]);
        let blocks = programs.flat_map(|program| &program.blocks).flat_map(|block| &block.ops);
        let is_random = |op: &Op| matches!(op, Op::Extern { name, .. } if name == "random");
        model.params.iter().any(|param| pool(&param.ty))
            || !model.timers.is_empty()
            || blocks.into_iter().any(is_random)
    };
    chain.nodes.iter().any(|node| apart(&node.model))
}

/// Whether one worker does what many do: each entry belongs to one of them, and no function has
/// anything else of its own on each worker.
fn is_as_one(chain: &Chain, found: &Sharding) -> bool {
    let alone = |placement| matches!(placement, Placement::Local | Placement::Replicated);
    found.assumes.is_empty()
        && found.tables.iter().all(|table| alone(table.placement) && table.exceptions.is_empty())
        && !is_apart(chain)
}

/// The first stimulus on which the shards of a chain do something else than one worker.
fn differs_from_one(divided: &Chain, one: &Generated) -> Option<usize> {
    let whole = roomy(Chain { workers: 1, ..one.chain.clone() });
    let (stimuli, expected) = recorded(&whole, one.seed, STIMULI);
    let mut engine = harness::reference(&roomy(divided.clone()));
    let actual = stimuli.iter().map(|stimulus| step(engine.as_mut(), stimulus));
    actual.zip(expected.outputs).position(|(a, b)| settled(a) != settled(b))
}

#[test]
fn workers_that_share_nothing_do_what_one_worker_does() {
    let (mut count, mut wrong) = (0, 0);
    for one in generated().iter().filter(|one| is_as_one(&one.chain, &one.found)) {
        let differs = differs_from_one(&one.divided(), one);
        assert!(differs.is_none(), "stimulus {differs:?}\n{one}");
        // Under another steering, some packets do not find their entries.
        let other = Chain { steering: by_sender(&one.chain), ..one.divided() };
        wrong += usize::from(differs_from_one(&other, one).is_some());
        count += 1;
    }
    println!("{count} chains share nothing, and {wrong} need their steering");
    assert!(count >= 5 || budget::is_asked(), "only {count} chains share nothing");
    assert!(wrong >= 1 || budget::is_asked(), "another steering makes no difference");
}

/// Forgets what leaves.
struct Nothing;

impl Outputs for Nothing {
    fn packet(&mut self, _: u16, _: Packet) {}
    fn event(&mut self, _: Event) {}
}

/// An entry that packets of two workers use, if generated traffic finds one.
fn conflict(one: &Generated, steering: &Steering) -> Option<String> {
    let Generated { seed, chain, found } = one;
    let whole = Chain { workers: 1, ..chain.clone() };
    let (stimuli, _) = recorded(&whole, *seed, STIMULI);
    harness::conflict(&whole, found, (steering, chain.workers), &stimuli)
}

#[test]
fn no_two_workers_use_an_entry_of_a_generated_chain() {
    let (mut count, mut wrong) = (0, 0);
    // Held packets, timers and changes of pools do not say on which worker they run.
    let apart = |model: &Model| {
        let pool = model.params.iter().any(|param| matches!(param.ty, ParamTy::Pool(..)));
        pool || !model.queues.is_empty() || !model.timers.is_empty()
    };
    let is_sure = |one: &&Generated| {
        one.found.assumes.is_empty() && !one.chain.nodes.iter().any(|node| apart(&node.model))
    };
    for one in generated().iter().filter(is_sure) {
        let steering = one.found.steering.as_ref().expect("a steering");
        assert_eq!(conflict(one, steering), None, "{one}");
        wrong += usize::from(conflict(one, &by_sender(&one.chain)).is_some());
        count += 1;
    }
    println!("{count} chains have no conflict, {wrong} have one under another steering");
    assert!(count >= 5 || budget::is_asked(), "only {count} chains were searched");
    assert!(wrong >= 1 || budget::is_asked(), "no conflict is found under another steering");
}

/// Limits in portions: a rate, amounts that begin at a limit, and a count by source that other
/// packets read.
const LIMITS: &str = "
nf bucket(most: size, refresh: duration = 10 ms) {
  state tokens: size global = most, portions (most);
  every refresh { tokens = most; }
  match {
    size(pkt.len) <= tokens => { tokens -= size(pkt.len); output; }
    else => drop \"over rate\";
  }
}
nf quota(most: u32) {
  state sent: u32 per inet.src = 0, portions (most);
  state received: u32 per inet.dst = 0, portions (most);
  match {
    has inet => {
      sent += 1;
      received += 1;
      if sent > most { drop \"sent\"; }
      if received > most { drop \"received\"; }
      output;
    }
    else => output;
  }
}
chain limits {
  interface lan { behind 10.0.0.0/8 }
  interface wan;
  rate = rate_limiter(rate: 800 kbit/s, burst: 20 KB);
  amount = bucket(most: 8001 B);
  each = quota(most: 50);
  path lan <-> rate <-> amount <-> each <-> wan;
  workers 3;
}
";

/// The chain of limits.
fn limits() -> Chain {
    let unit = harness::unit("test.braid", LIMITS, &BTreeMap::new(), Form::AsWritten);
    unit.expect("a program").chains.pop().expect("a chain")
}

/// The limits that are divided: functions and parameters, by number.
type Limits = BTreeSet<(u16, usize)>;

/// The limits of a chain that the analysis divides.
fn limits_of(chain: &Chain, found: &Sharding) -> Limits {
    let tables = (0..).zip(&chain.nodes).flat_map(|(number, node)| {
        node.model.state.iter().map(move |decl| (number, &decl.portions))
    });
    let divided =
        tables.zip(&found.tables).filter(|(_, table)| table.placement == Placement::Portions);
    divided
        .flat_map(|((node, all), _)| all.iter().map(move |param| (node, param.index())))
        .collect()
}

/// The value of a parameter that a worker has: a portion, if it is a limit.
fn value(workers: u16, limits: &Limits, at: (u16, usize), value: &ParamValue) -> ParamValue {
    match value {
        ParamValue::Scalar(whole) if limits.contains(&at) => {
            ParamValue::Scalar(whole / Word::from(workers))
        }
        other => other.clone(),
    }
}

/// What chains of one worker do that have these limits divided: each has the packets of a worker.
fn in_portions(
    mut chain: Chain,
    divided: &Chain,
    limits: &Limits,
    stimuli: &[Stimulus],
) -> Vec<Vec<Output>> {
    let portion = |at, whole: &_| value(divided.workers, limits, at, whole);
    for (node, of) in (0..).zip(&mut chain.nodes) {
        for (param, of) in of.params.iter_mut().enumerate() {
            *of = portion((node, param), of);
        }
    }
    let one = Chain { workers: 1, ..chain };
    let mut engines: Vec<_> = (0..divided.workers).map(|_| harness::reference(&one)).collect();
    let mut is_first = true;
    let run = |stimulus: &Stimulus| match stimulus {
        Stimulus::Packet(interface, packet) => {
            let by = &divided.steering;
            let worker = by.worker(packet, &packet.parse(), *interface, divided.workers);
            for engine in engines.iter_mut().filter(|_| is_first) {
                engine.begin(packet.time_ns, &mut Nothing);
            }
            is_first = false;
            for engine in &mut engines {
                engine.advance(packet.time_ns, &mut Nothing);
            }
            step(engines[usize::from(worker)].as_mut(), stimulus)
        }
        Stimulus::Advance(_) => {
            engines.iter_mut().flat_map(|engine| step(engine.as_mut(), stimulus)).collect()
        }
        Stimulus::Control(control) => {
            let mut control: Control = control.clone();
            if let Change::Set(new) = &control.change {
                let at = (control.node, control.param.index());
                control.change = Change::Set(portion(at, new));
            }
            let stimulus = Stimulus::Control(control);
            let mut outputs = engines.iter_mut().map(|engine| step(engine.as_mut(), &stimulus));
            let first = outputs.next().unwrap_or_default();
            outputs.for_each(drop);
            first
        }
    };
    stimuli.iter().map(run).map(settled).collect()
}

#[test]
fn limits_in_portions_are_those_of_chains_of_their_own() {
    let (chain, found) = divide(limits()).expect("a chain with a graph");
    assert_eq!(found.verdict, Verdict::Split, "{found:?}");
    let placements: Vec<_> = found.tables.iter().map(|table| table.placement).collect();
    // A steering fits `sent` or `received`, but not both.
    assert_eq!(
        placements.iter().filter(|placement| **placement == Placement::Portions).count(),
        3,
        "{found:?}"
    );
    let all = limits_of(&limits(), &found);
    // The rate and the burst of `rate_limiter`, and `most` of the others.
    assert_eq!(all.len(), 4, "{all:?}");
    let mut wrong = [0; 4];
    for seed in budget::seeds(8) {
        let (stimuli, expected) = recorded(&chain, seed, 600);
        let expected: Vec<_> = expected.outputs.into_iter().map(settled).collect();
        let differs = |all: &Limits| {
            let actual = in_portions(limits(), &chain, all, &stimuli);
            actual.iter().zip(&expected).position(|(a, b)| a != b)
        };
        assert_eq!(differs(&all), None, "seed {seed}");
        // A limit that is not divided makes a difference.
        for (one, count) in all.iter().zip(&mut wrong) {
            let rest = all.iter().filter(|other| *other != one).copied().collect();
            *count += usize::from(differs(&rest).is_some());
        }
    }
    assert!(wrong.iter().all(|count| *count > 0) || budget::is_asked(), "{wrong:?}");
}

#[test]
fn limits_of_generated_chains_are_those_of_chains_of_their_own() {
    let (mut count, mut wrong) = (0, 0);
    // Few chains have limits, so these are drawn from many.
    let limited = budget::seeds(8 * budget::PAIRS)
        .filter(|seed| any(*seed).source.contains("portions ("))
        .filter_map(Generated::of);
    // Chains of their own lose packets that wait when the time goes on for all of them.
    let holds = |chain: &Chain| chain.nodes.iter().any(|node| !node.model.queues.is_empty());
    for one in limited.filter(|one| !is_apart(&one.chain) && !holds(&one.chain)) {
        let limits = limits_of(&one.chain, &one.found);
        if limits.is_empty() {
            continue;
        }
        let (whole, divided) = (roomy(one.chain.clone()), roomy(one.divided()));
        let (stimuli, expected) = recorded(&divided, one.seed, STIMULI);
        let expected: Vec<_> = expected.outputs.into_iter().map(settled).collect();
        let differs = |limits| {
            let actual = in_portions(whole.clone(), &divided, limits, &stimuli);
            actual.iter().zip(&expected).position(|(a, b)| a != b)
        };
        assert_eq!(differs(&limits), None, "{one}");
        wrong += usize::from(differs(&Limits::new()).is_some());
        count += 1;
    }
    println!(
        "{count} chains have limits in portions, and {wrong} do something else with whole ones"
    );
    assert!(wrong >= 1 || budget::is_asked(), "no limit matters");
}

#[test]
fn all_workers_together_keep_a_limit() {
    let (chain, _) = divide(limits()).expect("a chain with a graph");
    for seed in budget::seeds(8) {
        let (stimuli, _) = recorded(&chain, seed, 600);
        let changes = |stimulus: &Stimulus| matches!(stimulus, Stimulus::Control(_));
        let stimuli: Vec<_> = stimuli.into_iter().filter(|one| !changes(one)).collect();
        let mut engine = harness::reference(&chain);
        let trace: Trace = record(engine.as_mut(), &stimuli, Detail::End);
        // `quota` lets a source send 50 packets, over all workers.
        let mut sent: HashMap<u128, u32> = HashMap::new();
        for output in trace.outputs.iter().flatten() {
            if let Output::Packet(_, packet) = output
                && let Some(key) = packet.flow_key(&packet.parse())
            {
                *sent.entry(key.src).or_default() += 1;
            }
        }
        assert!(sent.values().all(|count| *count <= 50), "{sent:?}");
    }
}

/// Lets those packets from the right pass whose connection has been opened from the left.
const OPENED: &str = "
nf opened() {
  state seen: bool per biflow, idle 30 s, capacity 1 k;
  match {
    forward and has inet => { seen = true else drop \"full\"; output; }
    backward and exists seen => output;
    else => drop \"closed\";
  }
}
chain fragments {
  interface lan { behind 10.0.0.0/8 }
  interface wan;
  path lan <-> opened() <-> wan;
  workers 4;
}
";

/// Functions and rules see the ports 0 in later fragments: an entry for these fragments belongs to
/// a pair of hosts. So all later fragments between two hosts have one worker, whatever the first
/// fragments' workers are.
#[test]
fn later_fragments_have_the_worker_of_their_entry() {
    let unit = harness::unit("test.braid", OPENED, &BTreeMap::new(), Form::AsWritten);
    let whole = unit.expect("a program").chains.pop().expect("a chain");
    let (divided, found) = divide(whole.clone()).expect("a chain with a graph");
    assert_eq!(found.verdict, Verdict::Split, "{found:?}");
    // Only replies on another connection than the requests are in fragments.
    let (mut datagrams, data) = (Vec::new(), "x".repeat(64));
    for host in 1..=20 {
        let (inner, outer) = (format!("10.0.0.{host}"), "192.0.2.1:53");
        datagrams.push((0, format!("udp {inner}:1000 > {outer} \"{data}\""), 24));
        datagrams.push((0, format!("udp {inner}:2000 > {outer} \"{data}\""), 80));
        datagrams.push((1, format!("udp {outer} > {inner}:2000 \"{data}\""), 24));
    }
    let one = Chain { workers: 1, ..whole };
    let mut engine = harness::reference(&one);
    let mut shards = harness::reference(&divided);
    let mut followers: Vec<_> = (0..4).map(|_| harness::reference(&one)).collect();
    let (mut others, mut wrong) = (0, 0);
    for (interface, text, size) in datagrams {
        let mut first = None;
        for spec in packet(&text).fragments(size) {
            let packet = packet_of(&spec.frame(), 1_000_000_000);
            let by = &divided.steering;
            let worker = by.worker(&packet, &packet.parse(), interface, divided.workers);
            let first = *first.get_or_insert(worker);
            others += usize::from(worker != first);
            let stimulus = Stimulus::Packet(interface, packet);
            let expected = step(engine.as_mut(), &stimulus);
            assert!(matches!(expected[..], [Output::Packet(..)]), "{text}: {expected:?}");
            assert_eq!(step(shards.as_mut(), &stimulus), expected, "{text}");
            // If later fragments went to the first one's worker, functions would not know them.
            let followed = step(followers[usize::from(first)].as_mut(), &stimulus);
            wrong += usize::from(followed != expected);
        }
    }
    assert!(others > 0 && wrong > 0, "{others} fragments elsewhere, {wrong} would be lost");
}
