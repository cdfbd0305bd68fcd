//! All engines do what the reference engine does: bytes, outcomes, counters, events, state.

use braid_engine::{Compiled, Jit, Options, Reached};
use braid_ir::chain::Chain;
use braid_ir::engine::{Engine as _, Event, Outputs};
use braid_ir::residual::Extent;
use braid_packet::Packet;
use braid_runtime::split::Splitter;
use braid_testkit::case::{list, replay};
use braid_testkit::compare::compare;
use braid_testkit::generate::program::program;
use braid_testkit::generate::traffic::stimuli;
use braid_testkit::harness::{self, ENGINES, Form, budget};
use braid_testkit::record::Stimulus;
use std::path::{Path, PathBuf};

/// Stimuli for each generated chain, and for each chain of library functions.
const STIMULI: usize = 150;
const LIBRARY_STIMULI: usize = 500;

/// Of the generated cases, one in so many also runs on engines with machine code.
const NATIVE_EVERY: u64 = 12;

/// Compares all engines with the reference, those with machine code if asked for; how they differ.
fn differences(what: &str, chain: &Chain, stimuli: &[Stimulus], native: bool) -> Vec<String> {
    let mut all = Vec::new();
    for engine in ENGINES.iter().filter(|engine| native || !engine.is_native()) {
        let make = |chain: &Chain| engine.make(chain);
        if let Err(report) = compare(chain, &harness::reference, &make, stimuli) {
            all.push(format!("{what}: reference and {}: {report}", engine.name));
        }
    }
    all
}

fn folder(below: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(below)
}

#[test]
fn engines_are_equal_on_generated_chains() {
    for seed in budget::seeds(240) {
        let program = program(seed);
        let chain = harness::compile(&program.source, &program.files, Form::AsWritten);
        let chain = chain.unwrap_or_else(|errors| panic!("{program}\n{errors}"));
        let stimuli = stimuli(&chain, seed, STIMULI);
        let what = format!("seed {seed}");
        let wrong = differences(&what, &chain, &stimuli, budget::in_full(seed, NATIVE_EVERY));
        assert!(wrong.is_empty(), "{}\n{program}", wrong.join("\n"));
    }
}

#[test]
fn engines_are_equal_on_chains_of_library_functions() {
    for (name, chain) in harness::library_chains().expect("chains compile") {
        for seed in budget::seeds(3) {
            let stimuli = stimuli(&chain, seed, LIBRARY_STIMULI);
            let what = format!("{name}, seed {seed}");
            let wrong = differences(&what, &chain, &stimuli, budget::in_full(seed, 3));
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
            wrong.extend(differences(&case.name, &chain, &stimuli, true));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Files in a folder, and in its folders, whose names have one of these endings before `.gz`.
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

/// A capture's packets where they enter a chain; those that belong nowhere at the first interface.
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
    for path in files(&folder("examples"), &[".braid"]) {
        let chain = harness::compile_file(&path, Form::AsWritten);
        let chain = chain.unwrap_or_else(|errors| panic!("{errors}"));
        let mut stimuli = entering(&chain, &capture, usize::MAX);
        assert!(stimuli.len() > 100);
        stimuli.push(Stimulus::Advance(u64::MAX));
        let wrong = differences(&path.display().to_string(), &chain, &stimuli, true);
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

/// Takes what leaves beside the packets of a batch.
#[derive(Default)]
struct Beside(Vec<(u16, Packet)>);

impl Outputs for Beside {
    fn packet(&mut self, interface: u16, packet: Packet) {
        self.0.push((interface, packet));
    }

    fn event(&mut self, _: Event) {}
}

/// Batches leave the packets where they are, and are otherwise packet after packet.
#[test]
fn batches_do_what_packets_one_by_one_do() {
    for (name, chain) in harness::library_chains().expect("chains compile") {
        let packets: Vec<Packet> = stimuli(&chain, 7, 300)
            .into_iter()
            .filter_map(|stimulus| match stimulus {
                Stimulus::Packet(0, packet) => Some(packet),
                _ => None,
            })
            .collect();
        let options = Options { jit: Jit::After(3) };
        let make = || Compiled::new(chain.clone(), Extent::Chain, options);
        let (mut single, mut batch) = (make().expect("an engine"), make().expect("an engine"));
        let mut one_by_one = Beside::default();
        for packet in &packets {
            single.packet(0, packet.clone(), &mut one_by_one);
        }
        let (mut beside, mut reached) = (Beside::default(), Vec::new());
        let mut all = Vec::new();
        for part in packets.chunks(32) {
            let mut part = part.to_vec();
            batch.batch(0, &mut part, &mut reached, &mut beside);
            assert_eq!(reached.len(), part.len(), "{name}");
            let left = part.into_iter().zip(&reached).filter_map(|(packet, at)| match at {
                Reached::Interface(interface) => Some((*interface, packet)),
                Reached::Gone => None,
            });
            all.extend(left);
        }
        assert!(!all.is_empty(), "{name}: nothing left");
        assert_eq!(single.counters(), batch.counters(), "{name}");
        assert_eq!(single.state(), batch.state(), "{name}");
        // What leaves beside a batch comes at another place in the order.
        all.extend(beside.0);
        let sorted = |mut all: Vec<(u16, Packet)>| {
            all.sort_by_key(|(interface, packet)| {
                (packet.time_ns, *interface, packet.data().to_vec())
            });
            all.into_iter().map(|(interface, packet)| (interface, packet.into_data()))
        };
        assert!(sorted(all).eq(sorted(one_by_one.0)), "{name}");
    }
}

/// Captures below the folder that `BRAID_DATA` names, if it names one.
#[test]
fn engines_are_equal_on_captures() {
    let Some(data) = std::env::var_os("BRAID_DATA") else { return };
    let chains = harness::library_chains().expect("chains compile");
    let most = budget::captured(2_000);
    for path in files(Path::new(&data), &[".pcap", ".pcapng", ".cap"]) {
        for (name, chain) in &chains {
            let stimuli = entering(chain, &path, most);
            let what = format!("{name}, {}", path.display());
            let wrong = differences(&what, chain, &stimuli, true);
            assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        }
    }
}
