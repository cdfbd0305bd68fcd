//! Chains of the library, the examples and the cases: programs compile for all shapes of typical
//! packets.

use super::common::presence;
use braid_compiler::synth::residual;
use braid_ir::chain::Chain;
use braid_ir::graph::Graph;
use braid_ir::residual::{Extent, Point, Residual, check};
use braid_packet::Header;
use braid_testkit::harness::{Form, compile_file};
use std::path::{Path, PathBuf};

/// Shapes of typical packets, with and without an Ethernet header and a tag.
pub fn shapes() -> Vec<u128> {
    use Header::*;
    let inner: [&[Header]; 16] = [
        &[],
        &[Arp],
        &[Mpls],
        &[Ip4],
        &[Ip4, Tcp],
        &[Ip4, Tcp, TcpMss, TcpTs],
        &[Ip4, Udp],
        &[Ip4, Udp, Vxlan],
        &[Icmp],
        &[IcmpEcho],
        &[Quoted4, QuotedL4],
        &[Quoted4, QuotedEcho],
        &[Ip6, Tcp],
        &[Ip6, Udp],
        &[Icmp6Echo],
        &[Quoted6, QuotedL4],
    ];
    let mut all = Vec::new();
    for link in [&[][..], &[Eth], &[Vlan], &[Vlan2]] {
        for inner in inner {
            all.push(presence(&[link, inner].concat()));
        }
    }
    all
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|end| end == "braid") {
            found.push(path);
        }
    }
}

/// All programs of a chain for these shapes.
pub fn programs(chain: &Chain, shapes: &[u128]) -> Vec<Residual> {
    let graph = Graph::new(chain).expect("a graph");
    let mut all = Vec::new();
    let count = u16::try_from(chain.nodes.len()).expect("few functions");
    let opaque = |node: &u16| chain.nodes[usize::from(*node)].model.is_opaque();
    for node in (0..count).filter(|node| !opaque(node)) {
        for backward in [false, true] {
            let point = Point { node, backward, held: false };
            for shape in shapes {
                for extent in [Extent::Function, Extent::Chain] {
                    let program = residual(chain, &graph, point, *shape, extent);
                    assert!(program.shape.fits(*shape));
                    all.push(program);
                }
            }
        }
    }
    all
}

/// The chains of the examples and of the cases, by file.
pub fn chains() -> Vec<(PathBuf, Chain)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = Vec::new();
    for folder in ["examples", "crates/testkit/cases"] {
        files(&root.join(folder), &mut found);
    }
    let chain =
        |path: PathBuf| compile_file(&path, Form::AsWritten).ok().map(|chain| (path, chain));
    found.into_iter().filter_map(chain).collect()
}

#[test]
fn all_chains_compile_for_all_shapes() {
    let chains = chains();
    for (path, chain) in &chains {
        for program in programs(chain, &shapes()) {
            if let Err(problems) = check(&program, chain) {
                panic!("{}: {problems:?}", path.display());
            }
        }
    }
    assert!(chains.len() >= 10, "{} chains", chains.len());
}
