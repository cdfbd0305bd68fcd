//! The example of docs/ir.md runs as the page describes.

mod common;

use braid_ir::text::parse;
use braid_ir::value::{IntervalSet, ParamValue};
use braid_packet::Field;
use common::{Bench, LAN, S, field, line, udp};
use std::sync::Arc;

fn example() -> &'static str {
    let page = include_str!("../../../docs/ir.md");
    let (_, rest) = page.split_once("```ir\n").expect("an example");
    rest.split_once("```").expect("its end").0
}

#[test]
fn example_translates_until_ports_run_out_and_frees_them() {
    let model = Arc::new(parse(example()).unwrap());
    let pool = IntervalSet::new([(1024, 1025)]);
    let params =
        vec![ParamValue::Scalar(7), ParamValue::Pool(pool), ParamValue::Scalar(u128::from(S))];
    let mut bench = Bench::new(line(vec![(model, params)]));
    for port in [1, 2, 1] {
        bench.send(LAN, udp(0, 10, port, 20, 53));
    }
    let ports: Vec<_> =
        bench.got.packets.iter().map(|(_, p)| field(p, Field::L4Sport).unwrap()).collect();
    assert_eq!(ports, [1024, 1025, 1024]);
    assert_eq!(field(bench.last(), Field::IpSrc), Some(7));
    bench.send(LAN, udp(0, 10, 3, 20, 53));
    assert_eq!(bench.drops(), [(0, 2, "ports exhausted".to_owned(), 1)]);
    bench.advance(S);
    assert!(bench.state().is_empty());
    bench.send(LAN, udp(S, 10, 3, 20, 53));
    assert_eq!(field(bench.last(), Field::L4Sport), Some(1024));
}
