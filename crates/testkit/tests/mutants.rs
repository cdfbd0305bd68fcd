//! Tests the mutants of flow records: generated chains and traffic find each mutant within a number
//! of pairs. In runs that `BRAID_CASES` does not lengthen, a case may find the mutant instead; a
//! mutant that no case finds gets more pairs.

use braid_engine::{Compiled, RECORD_MUTANTS, RecordMutant};
use braid_ir::chain::Chain;
use braid_testkit::case::{list, replay};
use braid_testkit::generate::program::{Kind, any};
use braid_testkit::generate::traffic::recorded;
use braid_testkit::harness::{self, ENGINES, Engine, Form, budget};
use braid_testkit::record::{Detail, Stimulus, Trace, record};
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

/// Number of stimuli, as in the comparison of engines.
const STIMULI: usize = 150;
/// Number of seeds, unless `BRAID_CASES` sets it.
const SEEDS: u64 = 100;
/// Number of seeds for mutants that neither these seeds nor a case find.
const MORE_SEEDS: u64 = 400;

/// A mutant that is not yet found.
struct Hunt {
    bug: RecordMutant,
    pairs: u64,
    time: Duration,
}

/// The engine with flow records that the comparison draws for a seed, if any.
fn engine(seed: u64) -> Option<Engine> {
    Engine::drawn(seed, false).into_iter().find(Engine::has_records).map(Engine::eagerly)
}

/// Whether a mutant of flow records makes a difference.
fn is_found(
    bug: RecordMutant,
    engine: Engine,
    chain: &Chain,
    (stimuli, expected): &(Vec<Stimulus>, Trace),
) -> bool {
    let (extent, options) = engine.options();
    let wrong = Compiled::with_record_mutant(chain.clone(), extent, options, bug);
    let mut wrong = wrong.expect("an engine");
    engine.difference_of(&mut wrong, stimuli, expected).is_some()
}

#[test]
fn generated_chains_find_each_mutant_of_flow_records() {
    let wanted = std::env::var("BUG").unwrap_or_default();
    let is_wanted = |name: String| wanted.split(',').any(|one| name.contains(one));
    let mut left: Vec<Hunt> = RECORD_MUTANTS
        .into_iter()
        .filter(|bug| is_wanted(format!("{bug:?}")))
        .map(|bug| Hunt { bug, pairs: 0, time: Duration::ZERO })
        .collect();
    let seeds = budget::seeds(SEEDS);
    hunt(&mut left, seeds.clone());
    if !budget::is_asked() {
        left.retain(|hunt| !found_by_cases(hunt.bug));
        hunt(&mut left, seeds.end..seeds.start + MORE_SEEDS);
    }
    let left: Vec<RecordMutant> = left.into_iter().map(|hunt| hunt.bug).collect();
    assert!(left.is_empty(), "not found: {left:?}");
}

/// Removes the mutants that the pairs of these seeds find.
fn hunt(left: &mut Vec<Hunt>, seeds: Range<u64>) {
    let kind = std::env::var("BRAID_KIND").unwrap_or_default();
    for seed in seeds.filter(|seed| format!("{:?}", Kind::of(*seed)).contains(&kind)) {
        if left.is_empty() {
            return;
        }
        let start = Instant::now();
        let Some(engine) = engine(seed) else { continue };
        let program = any(seed);
        let chain = harness::compile(&program.source, &program.files, Form::AsWritten);
        let chain = chain.unwrap_or_else(|errors| panic!("seed {seed}\n{program}\n{errors}"));
        let traffic = recorded(&chain, seed, STIMULI);
        let made = start.elapsed();
        left.retain_mut(|hunt| {
            let start = Instant::now();
            let found = is_found(hunt.bug, engine, &chain, &traffic);
            hunt.pairs += 1;
            hunt.time += made + start.elapsed();
            if found {
                let (bug, pairs, seconds) = (hunt.bug, hunt.pairs, hunt.time.as_secs_f64());
                eprintln!("{bug:?}: {pairs} pairs, {seconds:.1} s, by seed {seed}, {engine}");
            }
            !found
        });
    }
}

/// Whether a case finds a mutant.
fn found_by_cases(bug: RecordMutant) -> bool {
    let engine = ENGINES.iter().find(|engine| engine.has_records()).expect("one with records");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates");
    // Cases of whole chains come last. Some of them are about records.
    for case in list(&folder).expect("folders of cases").iter().rev() {
        let (chain, stimuli) = replay(case).unwrap_or_else(|error| panic!("{error}"));
        let trace = record(harness::reference(&chain).as_mut(), &stimuli, Detail::End);
        if is_found(bug, *engine, &chain, &(stimuli, trace)) {
            eprintln!("{bug:?}: case {}", case.name);
            return true;
        }
    }
    false
}
