//! Each mutant changes some program, so the checks for wrong programs have one to find.

use super::common::{presence, router, row};
use braid_compiler::synth::{SYNTH_MUTANTS, SynthMutant, residual, residual_with_mutant};
use braid_ir::chain::Chain;
use braid_ir::graph::Graph;
use braid_ir::residual::{Extent, Point};
use braid_packet::Header::{Eth, Icmp, Ip4, Tcp, Udp};
use braid_testkit::generate::program::program;
use braid_testkit::harness::{Form, compile};

/// Keeps only the mutants that do not change a chain's program.
fn sift(chain: &Chain, shape: u128, unseen: &mut Vec<SynthMutant>) {
    let graph = Graph::new(chain).expect("a graph");
    let point = Point { node: 0, backward: false, held: false };
    let right = residual(chain, &graph, point, shape, Extent::Chain);
    unseen.retain(|bug| {
        residual_with_mutant(chain, &graph, point, shape, Extent::Chain, *bug) == right
    });
}

#[test]
fn each_bug_makes_some_program_another() {
    let shapes = [presence(&[Eth, Ip4, Udp]), presence(&[Ip4, Tcp]), presence(&[Eth, Icmp])];
    let mut unseen = SYNTH_MUTANTS.to_vec();
    let router = router();
    sift(&row(&[&router, &router], &[]), presence(&[Ip4]), &mut unseen);
    for seed in 0..200 {
        let source = program(seed);
        let chain = compile(&source.source, &source.files, Form::AsWritten).expect("compiles");
        for shape in shapes {
            sift(&chain, shape, &mut unseen);
        }
        if unseen.is_empty() {
            return;
        }
    }
    panic!("{unseen:?} change nothing");
}
