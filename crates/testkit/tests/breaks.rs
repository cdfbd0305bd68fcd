//! Tests that a run goes on as if nothing had happened when its state moves to a new engine: of the
//! same kind or another, at random places of generated traffic.

use braid_engine::{Compiled, MOVE_MUTANTS, MoveMutant};
use braid_ir::chain::Chain;
use braid_ir::engine::Engine as AnyEngine;
use braid_ir::engine::{TableCounters, Traffic};
use braid_ir::snapshot::{FunctionState, Snapshot};
use braid_ir::value::ParamValue;
use braid_testkit::breaks::{RIGHT, Step, differs, snapshots_differ, with_breaks};
use braid_testkit::compare::shrink;
use braid_testkit::generate::program::any;
use braid_testkit::generate::traffic::stimuli;
use braid_testkit::harness::{self, Engine, Form, budget};

/// Number of stimuli of each case.
const STIMULI: usize = 150;
/// Number of cases, unless `BRAID_CASES` sets it.
const CASES: u64 = 60;
/// One case of this number runs machine code, unless `BRAID_CASES` is set.
const MACHINE_CODE_EVERY: u64 = 12;

/// The most cases that look for a mistake, unless `BRAID_CASES` asks for more.
const FOR_MISTAKES: u32 = 600;

/// Changes a snapshot.
type Changes = Box<dyn Fn(&mut Snapshot)>;

/// A generated chain, and steps with breaks.
struct Case {
    seed: u64,
    chain: Chain,
    steps: Vec<Step>,
}

/// The generated chain of a seed, and steps with breaks.
fn case(seed: u64) -> Case {
    let program = any(seed);
    let chain = harness::compile(&program.source, &program.files, Form::AsWritten);
    let chain = chain.unwrap_or_else(|errors| panic!("seed {seed}\n{program}\n{errors}"));
    let steps = with_breaks(&stimuli(&chain, seed, STIMULI), seed, seed % MACHINE_CODE_EVERY == 1);
    Case { seed, chain, steps }
}

/// The cases of a test.
fn cases() -> impl Iterator<Item = Case> {
    budget::seeds(CASES).map(case)
}

impl Case {
    /// Panics with the smallest part of the steps for which `fails` finds something.
    fn check(&self, fails: &dyn Fn(&Chain, &[Step]) -> Option<String>) {
        let fails = |steps: &[Step]| fails(&self.chain, steps);
        if let Some(found) = fails(&self.steps) {
            let (steps, found) = shrink(&self.steps, found, &fails);
            panic!("seed {}: {found}\n{steps:#?}\n{}", self.seed, any(self.seed));
        }
    }
}

#[test]
fn run_with_breaks_does_what_a_run_without_breaks_does() {
    cases().for_each(|case| case.check(&|chain, steps| differs(chain, steps, &|_| (), RIGHT)));
}

#[test]
fn all_engines_give_the_same_state_and_give_back_what_they_took() {
    cases().for_each(|case| case.check(&|chain, steps| snapshots_differ(chain, steps)));
}

/// A mistake of an engine that gives or takes its state, or a part of it.
type Mistake<T> = (&'static str, fn(&mut T));

/// Mistakes. Each leaves a snapshot that an engine takes.
const MISTAKES: &[Mistake<FunctionState>] = &[
    ("an entry is lost", |function| {
        let is_free = |at: usize| function.tables.iter().all(|t| t.lives_with != Some(at as u32));
        let free: Vec<bool> = (0..function.tables.len()).map(is_free).collect();
        for (table, _) in function.tables.iter_mut().zip(free).filter(|(_, free)| *free) {
            table.entries.pop();
        }
    }),
    ("entries change places", |function| {
        for table in function.tables.iter_mut().filter(|table| table.entries.len() > 1) {
            if table.lives_with.is_none() {
                table.entries.swap(0, 1);
            }
        }
        // The members of a group name their root by its place.
        for at in 0..function.tables.len() {
            for entry in &mut function.tables[at].entries {
                entry.root = entry.root.map(|root| if root < 2 { 1 - root } else { root });
            }
        }
    }),
    ("a slot is wrong", |function| {
        for entry in function.tables.iter_mut().flat_map(|table| &mut table.entries) {
            entry.slots.iter_mut().for_each(|slot| *slot ^= 1);
        }
    }),
    ("an entry is younger", |function| {
        for entry in function.tables.iter_mut().flat_map(|table| &mut table.entries) {
            entry.created_ns += 1;
        }
    }),
    ("an entry was seen later", |function| {
        let roots = function.tables.iter_mut().filter(|table| table.lives_with.is_none());
        roots.flat_map(|table| &mut table.entries).for_each(|entry| entry.last_seen_ns += 1);
    }),
    ("random numbers repeat", |function| {
        function.shards.iter_mut().for_each(|shard| shard.random = 0);
    }),
    ("a taken member is free", |function| {
        for pool in function.shards.iter_mut().flat_map(|shard| &mut shard.pools) {
            let is_fifo = !pool.free.is_empty();
            let last = pool.taken.pop();
            pool.free.extend(last.filter(|_| is_fifo));
        }
    }),
    ("a timer is late", |function| {
        let timers = function.timers.iter_mut().filter_map(|timer| timer.next_ns.as_mut());
        timers.for_each(|next| *next += 1_000_000_000);
    }),
    ("a held packet is lost", |function| {
        function.queues.iter_mut().for_each(|queue| drop(queue.packets.pop()));
    }),
    ("a held packet is late", |function| {
        let packets = function.queues.iter_mut().flat_map(|queue| &mut queue.packets);
        packets.for_each(|held| held.until_ns += 1);
    }),
    ("a change of a parameter is lost", |function| {
        for param in function.params.iter_mut().filter(|param| param.rule_counts.is_empty()) {
            if let Some(configured) = param.configured.take() {
                param.value = configured;
            }
        }
    }),
    ("a backend loses its number", |function| {
        for param in &mut function.params {
            if let ParamValue::Backends(all) = &mut param.value {
                all.retain(|one| !one.is_removed());
            }
        }
    }),
    ("counts of rules are lost", |function| {
        function.params.iter_mut().for_each(|param| param.rule_counts.fill(0));
    }),
    ("counts of rows are lost", |function| {
        function.rows.iter_mut().for_each(|row| row.traffic = Traffic::default());
    }),
    ("counts of drops are lost", |function| {
        function.rows.iter_mut().for_each(|row| row.drops.clear());
    }),
    ("counters of tables are lost", |function| {
        function.tables.iter_mut().for_each(|table| table.counters = TableCounters::default());
    }),
];

/// Mistakes about the chain as a whole.
const CHAIN_MISTAKES: &[Mistake<Snapshot>] = &[
    ("the time goes back", |snapshot| snapshot.now_ns = snapshot.now_ns.saturating_sub(1_000_000)),
    ("timers start again", |snapshot| snapshot.started = false),
    ("packets are counted twice", |snapshot| snapshot.totals.packets_in *= 2),
    ("losses are lost", |snapshot| snapshot.totals.lost.clear()),
    ("packets that left are forgotten", |snapshot| snapshot.totals.out.clear()),
];

#[test]
fn breaks_find_each_mistake_of_giving_and_taking_state() {
    let of_chains =
        CHAIN_MISTAKES.iter().map(|(name, change)| (*name, Box::new(*change) as Changes));
    let of_functions = MISTAKES.iter().map(|(name, change)| {
        let all = move |snapshot: &mut Snapshot| snapshot.functions.iter_mut().for_each(change);
        (*name, Box::new(all) as Changes)
    });
    let mut left: Vec<(&str, Changes)> = of_chains.chain(of_functions).collect();
    for case in (0..braid_cases::at_least(FOR_MISTAKES).into()).map(case) {
        left.retain(|(name, change)| {
            let found = differs(&case.chain, &case.steps, change, RIGHT);
            // A state that an engine refuses proves nothing.
            let found = found.filter(|text| !text.contains("refuses"));
            if found.is_some() {
                eprintln!("{name}: seed {}", case.seed);
            }
            found.is_none()
        });
        if left.is_empty() {
            return;
        }
    }
    let left: Vec<_> = left.iter().map(|(name, _)| name).collect();
    panic!("not found: {left:?}");
}

#[test]
fn breaks_find_each_mutant_of_state() {
    let mut left = MOVE_MUTANTS.to_vec();
    // These need a chain with new values, as in `reload.rs`.
    left.retain(|one| !matches!(one, MoveMutant::DeadlinesKept | MoveMutant::MembersKept));
    for case in (0..braid_cases::at_least(FOR_MISTAKES).into()).map(case) {
        left.retain(|mutant| {
            let make = |engine: Engine, chain: &Chain| {
                let (extent, options) = engine.options();
                let made = Compiled::with_move_mutant(chain.clone(), extent, options, *mutant);
                Box::new(made.expect("an engine")) as Box<dyn AnyEngine>
            };
            let found = differs(&case.chain, &case.steps, &|_| (), &make).is_some();
            if found {
                eprintln!("{mutant:?}: seed {}", case.seed);
            }
            !found
        });
        if left.is_empty() {
            return;
        }
    }
    panic!("not found: {left:?}");
}
