//! Programs of the chains of examples and cases, against the interpreter.

use crate::host::{Asked, Recorder};
use crate::interp::Interp;
use crate::packets;
use crate::random::Random;
use braid_compiler::synth::residual;
use braid_ir::chain::Chain;
use braid_ir::engine::Fault;
use braid_ir::graph::Graph;
use braid_ir::model::Op;
use braid_ir::residual::{Extent, Point, Residual, What};
use braid_jit::{Code, Count, Work, compile};
use braid_packet::Packet;
use braid_testkit::harness::{Form, compile_file};
use std::path::{Path, PathBuf};

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|end| end == "braid") {
            found.push(path);
        }
    }
}

/// Chains of the examples and the cases, by file.
pub fn all() -> Vec<(String, Chain)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = Vec::new();
    for folder in ["examples", "crates/testkit/cases"] {
        files(&root.join(folder), &mut found);
    }
    found.sort();
    let chain = |path: PathBuf| {
        let chain = compile_file(&path, Form::AsWritten).ok()?;
        if chain.nodes.is_empty() {
            return None;
        }
        Some((path.file_name()?.to_string_lossy().into_owned(), chain))
    };
    found.into_iter().filter_map(chain).collect()
}

/// Runs a program on a packet. The seed determines the results of host calls.
fn run(residual: &Residual, code: Option<&Code>, packet: &Packet, seed: u64) -> String {
    let mut host = Recorder { seed, ..Recorder::new(residual) };
    let mut random = Random::new(seed);
    for (number, block) in (0..).zip(&residual.blocks) {
        for (step, what) in (0..).zip(&block.steps) {
            if what.fault.is_some() && random.chance(10) {
                host.faults.insert((number, step), Fault::NoEntry);
            }
        }
    }
    host.room = random.chance(50);
    host.tags = vec![0; 64];
    let mut packet = packet.clone();
    let mut layout = packet.parse();
    let mut counts = vec![Count::default(); residual.counter_lists.len()];
    let now = 1_000_000_007;
    let ended = {
        let (packet, layout, counts) = (&mut packet, &mut layout, &mut counts[..]);
        match code {
            Some(code) => code.run(&mut host, Work { packet, layout, now, counts }).unwrap(),
            None => {
                let (host, values) = (&mut host, Vec::new());
                Interp { residual, host, packet, layout, now, counts, values, entered: Vec::new() }
                    .run()
            }
        }
    };
    // Code reads and writes by itself where it can.
    host.asked.retain(|asked| match asked {
        Asked::Step(block, step, _) => {
            let steps = &residual.blocks[*block as usize].steps;
            let what = steps.get(*step as usize).map(|step| &step.what);
            !matches!(what, Some(What::Write(_) | What::Op(Op::Load { .. })))
        }
        _ => true,
    });
    let kept: Vec<_> = counts.iter().map(|count| (count.packets, count.bytes)).collect();
    format!("{ended:?}\n{kept:?}\n{packet:?}\n{layout:?}\n{:?}", host.asked)
}

#[test]
fn programs_of_chains_do_what_they_do_when_interpreted() {
    let mut compared = 0;
    for (number, (name, chain)) in (0..).zip(all()) {
        let graph = Graph::new(&chain).unwrap();
        let mut random = Random::new(number);
        for _ in 0..braid_cases::at_least(24) {
            let (kind, packet) = packets::some(&mut random);
            let node = random.below(chain.nodes.len()) as u16;
            if chain.nodes[usize::from(node)].model.is_opaque() {
                continue;
            }
            let point = Point { node, backward: random.chance(40), held: random.chance(10) };
            let extent = random.one_of(&[Extent::Function, Extent::Chain, Extent::Chain]);
            let presence = packet.parse().presence();
            let residual = residual(&chain, &graph, point, presence, extent);
            let code = compile(&residual, &mut |_, _| None)
                .unwrap_or_else(|why| panic!("{name} at {point:?} for {kind}: {why}"));
            // With numbers, programs have other code, which the tests of host calls run.
            let numbered = compile(&residual, &mut |_, _| Some(1));
            assert!(numbered.is_ok(), "{name} at {point:?} for {kind}: {numbered:?}");
            for seed in 0..8 {
                let machine = run(&residual, Some(&code), &packet, seed);
                let plain = run(&residual, None, &packet, seed);
                assert_eq!(machine, plain, "{name} at {point:?} for {kind}, seed {seed}");
                compared += 1;
            }
        }
    }
    assert!(compared > 2_000, "{compared}");
}
