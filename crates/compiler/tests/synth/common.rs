//! Chains of models in the IR's text form, in a row between two interfaces.

use braid_compiler::synth::residual;
use braid_ir::chain::{Chain, Interface, Malformed, Node, Sink, Source};
use braid_ir::graph::Graph;
use braid_ir::model::{LEFT, RIGHT};
use braid_ir::residual::{Extent, Point, Residual, print};
use braid_ir::steering::Steering;
use braid_ir::value::ParamValue;
use braid_packet::Header;
use std::sync::Arc;

/// The presence bits of these headers and of the headers that they imply.
pub fn presence(headers: &[Header]) -> u128 {
    headers.iter().fold(Header::Pkt.bit(), |bits, header| bits | header.closure())
}

/// `lan`, the models, `wan` in a row.
pub fn row(models: &[&str], params: &[Vec<ParamValue>]) -> Chain {
    let nodes: Vec<Node> = models
        .iter()
        .enumerate()
        .map(|(number, text)| {
            let model = braid_ir::text::parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
            braid_ir::verify::verify(&model).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
            let params = params.get(number).cloned().unwrap_or_default();
            Node { name: format!("f{number}"), model: Arc::new(model), params }
        })
        .collect();
    let count = u16::try_from(nodes.len()).expect("few");
    let mut links = vec![
        (Source::Interface(0), Sink::Port(0, LEFT)),
        (Source::Interface(1), Sink::Port(count - 1, RIGHT)),
        (Source::Port(0, LEFT), Sink::Interface(0)),
        (Source::Port(count - 1, RIGHT), Sink::Interface(1)),
    ];
    for node in 1..count {
        links.push((Source::Port(node - 1, RIGHT), Sink::Port(node, LEFT)));
        links.push((Source::Port(node, LEFT), Sink::Port(node - 1, RIGHT)));
    }
    let interface = |name: &str| Interface { name: name.into(), ..Interface::default() };
    Chain {
        name: "c".into(),
        interfaces: vec![interface("lan"), interface("wan")],
        nodes,
        links,
        priorities: Vec::new(),
        policy: Vec::new(),
        malformed: Malformed::Drop,
        seed: 0,
        workers: 1,
        steering: Steering::by_connection(),
        only: None,
        by_rules: false,
    }
}

/// The program from the first function on.
pub fn forward(chain: &Chain, headers: &[Header]) -> Residual {
    let graph = Graph::new(chain).expect("a graph");
    let point = Point { node: 0, backward: false, held: false };
    residual(chain, &graph, point, presence(headers), Extent::Chain)
}

/// As [`forward`], as text.
pub fn text(chain: &Chain, headers: &[Header]) -> String {
    print(&forward(chain, headers), chain)
}

/// A model with this packet program and the rows `row0`, `row1` and `row2`. The last row is for
/// faults.
pub fn model(declarations: &str, blocks: &str) -> String {
    format!(
        "model m {{ {declarations} row \"1\" row \"2\" row \"fault\" reason \"no\" packet {{ {blocks} }} }}"
    )
}

/// Drops packets whose TTL is 1 or less, and decrements the TTL of other packets.
pub fn router() -> String {
    model(
        "",
        "b0: v0:bool = has ip branch v0, b1, b4
         b1: v1:u8 = load ip.ttl v2:u8 = const 1 v3:bool = le v1, v2 branch v3, b3, b2
         b2: v4:u8 = sub_sat v1, v2 store ip.ttl, v4 output onward at row0
         b3: count row1 drop \"no\" at row1
         b4: output onward at row0",
    )
}

/// Compares line by line, without blanks at the ends.
#[track_caller]
pub fn expect(found: &str, expected: &str) {
    let lines = |text: &str| -> Vec<String> {
        text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
    };
    assert_eq!(lines(found), lines(expected), "\n{found}");
}
