//! Tests that all engines do what the reference engine does: bytes, outcomes, counters, events,
//! state.

use braid_ir::chain::Chain;
use braid_packet::Packet;
use braid_runtime::split::Splitter;
use braid_testkit::case::{list, replay};
use braid_testkit::generate::Rng;
use braid_testkit::generate::program::Kind;
use braid_testkit::generate::traffic::recorded;
use braid_testkit::harness::budget::{self, Progress};
use braid_testkit::harness::{self, ENGINES, Engine, Form, USERS};
use braid_testkit::pairs::Pair;
use braid_testkit::record::{Detail, Stimulus, Trace, record};
use std::path::{Path, PathBuf};

/// Number of stimuli for each chain of library functions.
const LIBRARY_STIMULI: usize = 500;

/// Compares engines with the trace of the reference engine. Returns the differences.
fn differences(
    what: &str,
    chain: &Chain,
    (stimuli, expected): &(Vec<Stimulus>, Trace),
    engines: impl IntoIterator<Item = Engine>,
) -> Vec<String> {
    let mut all = Vec::new();
    for engine in engines {
        if let Err(report) = engine.check(chain, stimuli, expected) {
            all.push(format!("{what}: {report}"));
        }
    }
    all
}

/// The stimuli, and the trace of the reference engine on them.
fn expected(chain: &Chain, stimuli: Vec<Stimulus>) -> (Vec<Stimulus>, Trace) {
    let trace = record(harness::reference(chain).as_mut(), &stimuli, Detail::End);
    (stimuli, trace)
}

/// All engines. Engines with machine code are included only with `machine_code`.
fn all(machine_code: bool) -> impl Iterator<Item = Engine> {
    ENGINES
        .iter()
        .chain(USERS)
        .copied()
        .filter(move |engine| machine_code || !engine.has_machine_code())
}

fn folder(below: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(below)
}

/// Whether the pair of a seed runs as machine code. By default few pairs do, because builds are not
/// optimised. In long runs more do, and most of all pairs whose machine code handles tables of
/// several functions together.
fn runs_machine_code(seed: u64) -> bool {
    let every = match (budget::is_asked(), Kind::of(seed)) {
        (false, _) => 12,
        (true, Kind::Library) => 4,
        (true, Kind::Limits | Kind::Random) => 6,
    };
    // The draw is independent of the kind of chain.
    Rng::new(seed).below(1 << 16).is_multiple_of(every)
}

#[test]
fn engines_are_equal_on_generated_chains() {
    let seeds = budget::seeds(budget::PAIRS);
    let mut progress = Progress::new(seeds.clone());
    let wanted = std::env::var("BRAID_KIND").unwrap_or_default();
    for seed in seeds.filter(|seed| format!("{:?}", Kind::of(*seed)).contains(&wanted)) {
        let machine_code = runs_machine_code(seed);
        let pair = Pair::draw(seed).unwrap_or_else(|error| panic!("{error}"));
        let found = pair.check(pair.engines(machine_code));
        progress.done(seed, machine_code, found.map(|found| found.to_string()));
    }
    progress.end();
}

#[test]
fn engines_are_equal_on_chains_of_library_functions() {
    for (name, chain) in harness::library_chains().expect("chains compile") {
        for seed in budget::seeds(3) {
            let traffic = recorded(&chain, seed, LIBRARY_STIMULI);
            let what = format!("{name}, seed {seed}");
            let wrong = differences(&what, &chain, &traffic, all(budget::in_full(seed, 3)));
            assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        }
    }
}

#[test]
fn engines_are_equal_on_all_cases() {
    let wanted = std::env::var("CASE").unwrap_or_default();
    let mut wrong = Vec::new();
    for case in list(&folder("crates")).expect("folders of cases") {
        if case.name.contains(&wanted) {
            let (chain, stimuli) = replay(&case).unwrap_or_else(|error| panic!("{error}"));
            let traffic = expected(&chain, stimuli);
            wrong.extend(differences(&case.name, &chain, &traffic, all(true)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The files in a folder and its subfolders whose names have one of these endings before `.gz`.
fn files(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            found.extend(files(&path, endings));
        } else if endings.iter().any(|ending| name.trim_end_matches(".gz").ends_with(ending)) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// A capture's packets at the interfaces where they enter a chain. Packets that belong to no
/// interface enter at the first one.
fn entering(chain: &Chain, capture: &Path, most: usize) -> Vec<Stimulus> {
    let splitter = Splitter::new(chain);
    let packets = harness::read_capture(capture).unwrap_or_default().into_iter().take(most);
    let enter = |packet: Packet| {
        let ingress = splitter.ingress(&packet, &packet.parse()).unwrap_or(0);
        Stimulus::Packet(ingress, packet)
    };
    packets.map(enter).collect()
}

#[test]
fn engines_are_equal_on_examples() {
    let capture = folder("examples/captures/domain-client.pcap.gz");
    // Each instance of a proxy or a server draws its sequence numbers at random, and the library of
    // the other example is not built here. Other tests run what they have.
    let elsewhere = ["proxy", "pages", "sockets", "balance", "watchword"];
    let is_here = |path: &PathBuf| {
        !elsewhere.iter().any(|name| path.ends_with(format!("native/{name}.braid")))
    };
    for path in files(&folder("examples"), &[".braid"]).into_iter().filter(is_here) {
        let chain = harness::compile_file(&path, Form::AsWritten);
        let chain = chain.unwrap_or_else(|errors| panic!("{errors}"));
        let mut stimuli = entering(&chain, &capture, usize::MAX);
        assert!(stimuli.len() > 100);
        stimuli.push(Stimulus::Advance(u64::MAX));
        let traffic = expected(&chain, stimuli);
        let wrong = differences(&path.display().to_string(), &chain, &traffic, all(true));
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

/// Uses captures below the folder in `BRAID_DATA`, if that is set.
#[test]
fn engines_are_equal_on_captures() {
    let Some(data) = std::env::var_os("BRAID_DATA") else { return };
    let chains = harness::library_chains().expect("chains compile");
    let most = budget::captured(2_000);
    for path in files(Path::new(&data), &[".pcap", ".pcapng", ".cap"]) {
        for (name, chain) in &chains {
            let traffic = expected(chain, entering(chain, &path, most));
            let what = format!("{name}, {}", path.display());
            let wrong = differences(&what, chain, &traffic, all(true));
            assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        }
    }
}
