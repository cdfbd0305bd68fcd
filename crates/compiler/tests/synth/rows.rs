//! Match tables with many rows: the work to make their program grows about linearly.

use super::common::presence;
use braid_compiler::synth::{fits, general};
use braid_ir::chain::Chain;
use braid_ir::graph::Graph;
use braid_ir::model::{BlockId, Target, Term};
use braid_ir::residual::{Extent, Point, Residual};
use braid_packet::Header::{Eth, Ip4, Tcp};
use braid_testkit::harness::{Form, compile};
use std::collections::BTreeMap;

/// A table of rows with three conditions each, on fields whose values are known once they match.
fn table(rows: usize) -> Chain {
    let mut source = "nf f() { match {\n".to_owned();
    for row in 0..rows {
        let (upper, lower) = (row >> 8, row & 255);
        source += &format!(
            "ip.src == 10.0.{upper}.{lower} and ip.dst == 11.0.{upper}.{lower} \
             and tcp.dport == {row} => drop \"a{row}\";\n"
        );
    }
    source += "else => output; } }\nchain c { path f(); }\n";
    compile(&source, &BTreeMap::new(), Form::AsWritten).unwrap_or_else(|errors| panic!("{errors}"))
}

fn make(chain: &Chain) -> (Residual, usize) {
    let graph = Graph::new(chain).expect("a graph");
    let point = Point { node: 0, backward: false, held: false };
    let shape = presence(&[Eth, Ip4, Tcp]);
    let (program, stats) = general(chain, &graph, point, shape, Extent::Chain);
    (program, stats.followed)
}

#[test]
fn work_for_a_table_grows_linearly_with_its_rows() {
    let [(small, less), (large, more)] = [300, 600].map(|rows| make(&table(rows)));
    // Each row has three tests and an end.
    assert_eq!(small.blocks.len(), 4 * 300 + 1);
    assert!(large.blocks.len() <= 5 * 600, "{} blocks", large.blocks.len());
    // Following each path alone to the end of the table would be 600 × 600 rows.
    assert!(less <= 110_000, "{less} blocks followed for 300 rows");
    assert!(more <= 110_000, "{more} blocks followed for 600 rows");
}

#[test]
fn function_that_is_too_large_has_no_program_and_ends_those_before_it() {
    let mut chain = super::common::row(&[&super::common::router(), &super::common::router()], &[]);
    let mut large = (*chain.nodes[1].model).clone();
    let first = large.packet.blocks[0].clone();
    for number in 0..60_000 {
        large.packet.blocks.push(first.clone());
        let target = Target { block: BlockId(number + 6), args: Vec::new() };
        if let Some(block) = large.packet.blocks.last_mut() {
            (block.ops, block.term) = (Vec::new(), Term::Jump(target));
        }
    }
    if let Some(block) = large.packet.blocks.last_mut() {
        block.term = chain.nodes[0].model.packet.blocks[4].term.clone();
    }
    assert!(fits(&chain.nodes[0].model));
    assert!(!fits(&large));
    chain.nodes[1].model = std::sync::Arc::new(large);
    let (program, _) = make(&chain);
    assert_eq!(program.visits, 1);
    let text = braid_ir::residual::print(&program, &chain);
    assert!(text.contains("go f1 forward"), "{text}");
}
