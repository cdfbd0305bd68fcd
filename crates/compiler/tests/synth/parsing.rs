//! The text form of residual programs: printing and parsing are inverse, and errors have their
//! position.

use super::common::{forward, model, presence, router, row};
use super::library::{chains, programs};
use braid_compiler::passes::PASSES;
use braid_compiler::synth::{SYMBOLIC, residual_after};
use braid_ir::chain::Chain;
use braid_ir::graph::Graph;
use braid_ir::residual::{Extent, Point, Residual, check, parse, print, print_with_sites};
use braid_packet::Header::{Eth, Icmp, Ip4, Ip6, Quoted4, QuotedL4, Tcp, Udp, Vlan};
use braid_testkit::generate::program::program;
use braid_testkit::harness::budget::seeds;
use braid_testkit::harness::{Form, compile};

#[track_caller]
fn round_trip(program: &Residual, chain: &Chain) {
    let text = print_with_sites(program, chain);
    let parsed = parse(&text, chain).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert!(parsed == *program, "{text}\n{}", print_with_sites(&parsed, chain));
    let text = print(program, chain);
    let parsed = parse(&text, chain).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(print(&parsed, chain), text);
    assert_eq!(check(&parsed, chain), Ok(()));
}

fn shapes() -> Vec<u128> {
    let all: [&[_]; 6] =
        [&[Eth, Ip4, Udp], &[Vlan, Ip4, Tcp], &[Eth, Icmp], &[Ip6, Tcp], &[Quoted4, QuotedL4], &[]];
    all.iter().map(|headers| presence(headers)).collect()
}

#[test]
fn programs_of_the_library_and_of_examples_parse_as_they_were() {
    for (_, chain) in chains() {
        for program in programs(&chain, &shapes()) {
            round_trip(&program, &chain);
        }
    }
}

#[test]
fn programs_of_generated_chains_parse_as_they_were() {
    for seed in seeds(12) {
        let source = program(seed);
        let chain = compile(&source.source, &source.files, Form::AsWritten).expect("compiles");
        for program in programs(&chain, &shapes()) {
            round_trip(&program, &chain);
        }
    }
}

#[test]
fn programs_between_passes_print_and_parse() {
    for seed in seeds(12) {
        let source = program(seed);
        let chain = compile(&source.source, &source.files, Form::AsWritten).expect("compiles");
        let graph = Graph::new(&chain).expect("a graph");
        let point = Point { node: 0, backward: false, held: false };
        let stages = std::iter::once(SYMBOLIC).chain(PASSES.iter().map(|pass| pass.name));
        for stage in stages {
            let shape = presence(&[Eth, Ip4, Tcp]);
            let made = residual_after(&chain, &graph, point, shape, Extent::Chain, stage);
            let text = print(&made.expect("a stage"), &chain);
            let parsed = parse(&text, &chain).unwrap_or_else(|error| panic!("{error}\n{text}"));
            assert_eq!(print(&parsed, &chain), text);
        }
    }
    let chain = row(&[&router()], &[]);
    let graph = Graph::new(&chain).expect("a graph");
    let point = Point { node: 0, backward: false, held: false };
    assert_eq!(residual_after(&chain, &graph, point, 1, Extent::Chain, "nothing"), None);
}

#[test]
fn rules_with_all_their_fields_parse_as_they_were() {
    let filter = model(
        "param p: rules",
        "b0: v0:bool, v1:u32 = rules p branch v0, b1, b2
         b1: output onward at row0
         b2: drop \"no\" at row1",
    );
    let rules = braid_ir::value::RuleSet { rules: Vec::new(), default_pass: true };
    let rules = braid_ir::value::ParamValue::Rules(rules);
    let chain = row(&[&filter], &[vec![rules]]);
    for headers in [&[Ip4, Tcp][..], &[Ip4, Udp], &[Icmp], &[Ip6, Tcp], &[Ip4], &[Eth]] {
        let program = forward(&chain, headers);
        assert!(print(&program, &chain).contains("classify p"));
        round_trip(&program, &chain);
    }
}

#[test]
fn functions_whose_names_are_no_words_parse_by_number() {
    let router = router();
    let mut chain = row(&[&router, &router], &[]);
    chain.nodes[0].name = "two words".into();
    chain.nodes[1].name = "jump".into();
    round_trip(&forward(&chain, &[Ip4]), &chain);
}

#[test]
fn errors_name_line_column_and_reason() {
    let chain = row(&[&router()], &[]);
    let head = "at f0 forward for ip, 1 functions\nb0:\n";
    for (text, place, message) in [
        ("at g forward for ip, 1 functions", (1, 4), "no function `g`"),
        ("at f0 sideways for ip, 1 functions", (1, 7), "expected `forward` or `backward`"),
        ("at f0 forward for ipx, 1 functions", (1, 19), "no header `ipx`"),
        ("at f0 forward for ip not ip, 1 functions", (1, 26), "`ip` stands twice in the shape"),
        (
            &format!("{head}  f0: v0:u8 = lod ip.ttl"),
            (3, 15),
            "`lod` is no operation with one result",
        ),
        (&format!("{head}  f1: v0:u8 = load ip.ttl"), (3, 3), "no function `f1`"),
        (&format!("{head}  f0: write ip.tttl = v0"), (3, 13), "no field `ip.tttl`"),
        (&format!("{head}  leave moon [f0:forward]"), (3, 9), "no interface `moon`"),
        (&format!("{head}  f0: fault bug [f0:forward]"), (3, 13), "no fault `bug`"),
        (&format!("{head}  leave wan [f0:sideways]"), (3, 17), "expected a number such as `row0`"),
        (&format!("{head}  leave wan [f0:forward]\nb2:"), (4, 1), "expected `b1`"),
        (
            &format!("{head}  branch v1, b1, b1\nb1:\n  leave wan []"),
            (5, 15),
            "v1 is used and defined nowhere",
        ),
    ] {
        let error = parse(text, &chain).expect_err(text);
        assert_eq!(((error.line, error.column), &*error.message), (place, message), "{text}");
    }
}
