//! Tests of chains: their resolved form, and all errors in them. The functions are handmade models,
//! so the tests depend on chains only.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ast::{Expr, Item};
use crate::chain::{Found, Functions, Scope, resolve};
use crate::diag::Diagnostics;
use crate::parse::parse;
use crate::sema::env::{Env, Loader};
use crate::source::SourceMap;
use braid_ir::chain::{
    Chain, Interface, Malformed, OwnAddress, PolicyRule, Priority, Sink, Source, TooLong,
};
use braid_ir::model::{
    Block, BlockId, Dest, LEFT, Model, Op, ParamDecl, ParamTy, PortId, Program, QueueDecl, QueueId,
    RIGHT, ReasonId, RowDecl, RowId, Setting, Target, Term, Timer, Ty, ValueId,
};
use braid_ir::value::{IntervalSet, ParamValue};
use braid_packet::Field;

struct Fakes;

impl Functions for Fakes {
    fn find(&mut self, name: &str, _diags: &mut Diagnostics) -> Found {
        let end = |dest: Dest| Term::Output { ports: vec![dest], row: RowId(0) };
        let param = |name: &str, default| ParamDecl {
            name: name.into(),
            ty: ParamTy::Scalar(Ty::uint(32)),
            default,
        };
        let mut model = one_block(name, end(Dest::Onward));
        match name {
            "pass" => {}
            "drop" => {
                model.packet.blocks[0].term = Term::Drop { reason: ReasonId(0), row: RowId(0) }
            }
            "bounce" => model.packet.blocks[0].term = end(Dest::Back),
            "tap" => {
                model.ports.push("copy".into());
                model.packet.blocks[0].ops.push(Op::Mirror { port: Dest::Port(PortId(2)) });
            }
            "diode" => model.packet = diode(),
            "two" => {
                let default = Some(ParamValue::Scalar(7));
                model.params = vec![param("most", None), param("least", default)];
            }
            "timer" => {
                model.params = vec![param("tick", None)];
                let period = Setting::Param(braid_ir::model::ParamId(0));
                model.timers.push(Timer { period, body: Program::default() });
            }
            "late" => {
                let queue = QueueDecl { name: "q".into(), capacity: Setting::Const(1) };
                model.queues.push(queue);
                let full = Target { block: BlockId(1), args: vec![] };
                let (queue, delay) = (QueueId(0), ValueId(0));
                model.packet.blocks[0].term = Term::Hold { queue, delay, row: RowId(0), full };
                model.packet.blocks.push(block(vec![], end(Dest::Onward)));
            }
            "broken" => return Found::Broken,
            _ => return Found::Unknown,
        }
        Found::Model(Arc::new(model))
    }

    fn names(&self) -> Vec<String> {
        ["pass", "drop", "bounce", "tap", "diode", "two"].map(String::from).to_vec()
    }
}

fn block(ops: Vec<Op>, term: Term) -> Block {
    Block { params: vec![], ops, term }
}

fn one_block(name: &str, term: Term) -> Model {
    Model {
        rows: vec![RowDecl { label: "body".into(), text: String::new(), line: 1 }],
        reasons: vec!["denied".into()],
        packet: Program { blocks: vec![block(vec![], term)], values: vec![] },
        ..Model::new(name)
    }
}

/// A program that outputs forward packets and drops backward ones.
fn diode() -> Program {
    let to = |block| Target { block: BlockId(block), args: vec![] };
    let load = Op::Load { out: ValueId(0), field: Field::PktBackward };
    let branch = Term::Branch { cond: ValueId(0), yes: to(1), no: to(2) };
    let drop = Term::Drop { reason: ReasonId(0), row: RowId(0) };
    let output = Term::Output { ports: vec![Dest::Onward], row: RowId(0) };
    Program {
        blocks: vec![block(vec![load], branch), block(vec![], drop), block(vec![], output)],
        values: vec![Ty::uint(1)],
    }
}

struct NoFiles;

impl Loader for NoFiles {
    fn read(&self, _path: &str, _relative_to: &str) -> Result<Vec<u8>, String> {
        Err("there are no files here".into())
    }
}

/// The chain of `chain c { … }`, or the codes and messages of its errors.
fn chain(body: &str) -> Result<Chain, Vec<String>> {
    let text = format!("chain c {{ {body} }}");
    let mut sources = SourceMap::new();
    let file = sources.add("test.braid", text.clone());
    let (tree, found) = parse(&text, file);
    assert!(found.is_empty(), "{:?}", found.iter().collect::<Vec<_>>());
    let Some(Item::Chain(ast)) = tree.items.first() else { panic!("no chain in {text}") };
    let constants: BTreeMap<String, Expr> = BTreeMap::new();
    let env = Env { constants: &constants, loader: &NoFiles, sources: &sources };
    let mut scope = Scope { functions: &mut Fakes, env, doubt: false };
    let mut diags = Diagnostics::new();
    let resolved = resolve(ast, &mut scope, &mut diags);
    let messages = || diags.iter().map(|d| format!("{} {}", d.code, d.message)).collect();
    resolved.ok_or_else(messages)
}

fn errors(body: &str) -> Vec<String> {
    chain(body).expect_err("this chain is wrong")
}

/// Checks that a chain has exactly one error, with this code and this text.
#[track_caller]
fn error(body: &str, code: &str, says: &str) {
    let found = errors(body);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0].starts_with(code) && found[0].contains(says), "{found:#?}");
}

fn node(at: u16, port: PortId) -> Source {
    Source::Port(at, port)
}

fn into(at: u16, port: PortId) -> Sink {
    Sink::Port(at, port)
}

#[test]
fn two_way_path_links_both_directions() {
    let c = chain("interface a; interface b; f = pass(); path a <-> f <-> b;").unwrap();
    let expected = [
        (Source::Interface(0), into(0, LEFT)),
        (node(0, LEFT), Sink::Interface(0)),
        (node(0, RIGHT), Sink::Interface(1)),
        (Source::Interface(1), into(0, RIGHT)),
    ];
    assert_eq!(c.links, expected);
    assert_eq!((c.malformed, c.seed, c.workers), (Malformed::Drop, 0, 1));
}

#[test]
fn one_way_path_links_one_direction() {
    let c = chain("path in -> pass() -> out;").unwrap();
    let expected = [(Source::Interface(0), into(0, LEFT)), (node(0, RIGHT), Sink::Interface(1))];
    assert_eq!(c.links, expected);
}

#[test]
fn lone_path_of_functions_gets_in_and_out_around_it() {
    let c = chain("path pass();").unwrap();
    assert_eq!(c.interfaces.iter().map(|i| &i.name[..]).collect::<Vec<_>>(), ["in", "out"]);
    assert_eq!(c.links.len(), 4);
    assert_eq!(c.links[0], (Source::Interface(0), into(0, LEFT)));
    assert_eq!(c.links[2], (node(0, RIGHT), Sink::Interface(1)));
    let one_way = chain("path pass() -> pass();").unwrap();
    assert_eq!(one_way.links.len(), 3);
    assert_eq!(one_way.nodes.iter().map(|n| &n.name[..]).collect::<Vec<_>>(), ["pass", "pass_2"]);
}

#[test]
fn chain_without_functions_passes_on() {
    let c = chain("path in <-> out;").unwrap();
    assert_eq!(c.links[0], (Source::Interface(0), Sink::Interface(1)));
    error("", "E0517", "neither a path nor a link");
}

#[test]
fn named_ports_link_to_the_left_of_others() {
    let c = chain(
        "interface a; interface b; interface log; t = tap();
         path a <-> t <-> b; link t.copy -> log;",
    )
    .unwrap();
    assert_eq!(c.links[4], (node(0, PortId(2)), Sink::Interface(2)));
    let two = chain(
        "interface a; interface b; t = tap(); f = pass();
         link a -> t; link t.copy <-> f; link t.right -> b; link f -> b;
         link b -> t.right; link t.left -> a;",
    )
    .unwrap();
    assert_eq!(two.links[1], (node(0, PortId(2)), into(1, LEFT)));
    assert_eq!(two.links[2], (node(1, LEFT), into(0, PortId(2))));
}

#[test]
fn prefixes_behind_interfaces_become_intervals() {
    let c =
        chain("interface a { behind 10.0.0.0/8, 192.0.2.7, fd00::/16 } interface b; path a <-> b;")
            .unwrap();
    let v4 = IntervalSet::new([(0x0a00_0000, 0x0aff_ffff), (0xc000_0207, 0xc000_0207)]);
    let v6 = IntervalSet::new([(0xfd00 << 112, (0xfd01 << 112) - 1)]);
    assert_eq!((&c.interfaces[0].behind4, &c.interfaces[0].behind6), (&v4, &v6));
    let body = "interface a { behind 10.0.0.0/8; } interface b { behind fd00::/8, 10.9.0.0/16; }
        path a <-> b;";
    error(body, "E0515", "10.9.0.0 is behind both `a` and `b`");
    error("interface a { behind 10; } interface b; path a <-> b;", "E0516", "prefix");
}

#[test]
fn interfaces_have_addresses_gateways_a_mac_and_a_way_with_long_packets() {
    let c = chain(
        "interface a { address 10.0.0.1/24, fd00::1/64; gateway 10.0.0.9, fe80::1;
         mac 02:00:00:00:00:0a; too_long fragment } interface b; path a <-> b;",
    )
    .unwrap();
    let own =
        |address: &str, prefix_len| OwnAddress { address: address.parse().unwrap(), prefix_len };
    let expected = Interface {
        name: "a".into(),
        addresses: vec![own("10.0.0.1", 24), own("fd00::1", 64)],
        gateways: vec!["10.0.0.9".parse().unwrap(), "fe80::1".parse().unwrap()],
        mac: Some([2, 0, 0, 0, 0, 10]),
        too_long: TooLong::Fragment,
        ..Interface::default()
    };
    assert_eq!(c.interfaces[0], expected);
    assert_eq!(c.interfaces[1], Interface { name: "b".into(), ..Interface::default() });
}

#[test]
fn wrong_parts_of_interfaces_are_refused() {
    let wrong = |part: &str, says: &str| {
        let body = format!("interface a {{ {part} }} interface b; path a <-> b;");
        error(&body, "E0522", says);
    };
    wrong("address 10.0.0.1", "with the length of its prefix");
    wrong("address 10.0.0.0/24", "it is the prefix itself");
    wrong("address fd00::/64", "it is the prefix itself");
    wrong("address 10.0.0.255/24", "broadcast");
    wrong("address 224.0.0.1/24", "multicast");
    wrong("address ff02::1/64", "multicast");
    wrong("address 127.0.0.1/8", "loopback");
    wrong("address 0.0.0.1/8", "reserved");
    wrong("address ::/0", "no address");
    wrong("address 10.0.0.1/24; address 10.1.0.1/24", "`address` is given twice");
    wrong("address 10.0.0.1/24; gateway 10.0.1.1", "in no prefix");
    wrong("address 10.0.0.1/24; gateway fe80::1", "in no prefix");
    wrong("address 10.0.0.1/24; gateway 10.0.0.1", "own address");
    wrong("address 10.0.0.1/24; gateway 10.0.0.2, 10.0.0.3", "one gateway for IPv4");
    wrong("address 10.0.0.1/24; gateway 10.0.0.0/24", "expected an address");
    wrong("mac 03:00:00:00:00:00", "one host");
    wrong("mac 00:00:00:00:00:00", "one host");
    wrong("mac 10.0.0.1", "one MAC address");
    wrong("address 10.0.0.1/24; too_long ping", "`icmp`, `fragment` or `drop`");
    wrong("too_long icmp", "no address");
    for fine in
        ["address 10.0.0.0/31", "address 10.0.0.0/32", "address fd00::/127", "too_long drop"]
    {
        let body = format!("interface a {{ {fine} }} interface b; path a <-> b;");
        assert!(chain(&body).is_ok(), "{fine}");
    }
    let common = "interface a { address fe80::1/64, 10.0.0.1/24 }
        interface b { address fe80::1/64, 10.0.0.1/8 } path a <-> b;";
    error(common, "E0522", "10.0.0.1 is the address of both `a` and `b`");
    let many: Vec<String> = (1..=17).map(|host| format!("10.0.0.{host}/24")).collect();
    let body = format!("interface a {{ address {} }} interface b; path a <-> b;", many.join(", "));
    error(&body, "E0520", "at most 16 addresses");
}

#[test]
fn arguments_fill_parameters_by_place_name_and_default() {
    let params = |body: &str| chain(body).unwrap().nodes[0].params.clone();
    let scalars = |a, b| vec![ParamValue::Scalar(a), ParamValue::Scalar(b)];
    assert_eq!(params("path two(3);"), scalars(3, 7));
    assert_eq!(params("path two(3, 4);"), scalars(3, 4));
    assert_eq!(params("path two(least: 4, most: 3);"), scalars(3, 4));
    error("path two();", "E0505", "`two` lacks `most`");
    error("path two(3, mots: 4);", "E0504", "no parameter `mots`");
    error("path two(3, most: 4);", "E0506", "`most` is given twice");
    error("path two(3, 4, 5);", "E0507", "takes 2 arguments");
    error("path two(most: 3, 4);", "E0507", "comes after one with a name");
    error("path timer(0);", "E0314", "period of a timer");
}

#[test]
fn unknown_names_are_reported_with_what_was_meant() {
    error("path passs();", "E0501", "no function `passs`");
    error("f = pass(); path in <-> g <-> out; path f;", "E0502", "`g` is neither");
    error("f = pass(); path in <-> f <-> otu;", "E0502", "`otu` is neither");
    assert_eq!(errors("path broken();"), Vec::<String>::new(), "reported elsewhere");
}

#[test]
fn names_are_declared_once() {
    error("f = pass(); f = pass(); path in <-> f <-> out;", "E0503", "`f` is declared twice");
    error("interface f; interface b; f = pass(); path f <-> b;", "E0503", "declared twice");
}

#[test]
fn ports_are_checked() {
    error("f = pass(); path in <-> f; link f.rihgt <-> out;", "E0508", "no port `rihgt`");
    error("path in.left <-> out;", "E0508", "is an interface");
    let inside = "t = tap(); path in <-> t.copy <-> out;";
    error(inside, "E0509", "inside a path");
}

#[test]
fn sources_are_linked_once() {
    let body = "interface a; interface b; f = pass(); path a <-> f <-> b; link f.right -> a;";
    error(body, "E0510", "`f.right` is linked to two places");
    let same = "interface a; interface b; path a -> b; path a -> b;";
    error(same, "E0510", "same place twice");
}

#[test]
fn port_that_a_reachable_row_may_use_must_be_linked() {
    error("t = tap(); path in <-> t <-> out;", "E0511", "the port `copy` of `t` leads nowhere");
    error("path in -> pass() <-> out; ", "E0511", "the port `left` of `pass`");
    assert!(chain("path in <-> pass() -> out;").is_ok());
    assert!(chain("path in -> pass() -> out;").is_ok(), "nothing goes backward");
    assert!(chain("path in -> drop();").is_ok(), "nothing goes on");
    assert!(chain("f = diode(); path in <-> f <-> out;").is_ok());
    let half = "f = diode(); path in -> f -> out; link out -> f.right;";
    assert!(chain(half).is_ok(), "a diode never sends by its left port");
    error("f = pass(); path in -> f -> out; link out -> f.right;", "E0511", "port `left`");
    error("path in -> bounce() -> out;", "E0511", "port `left`");
}

#[test]
fn loops_are_errors_and_two_ways_are_none() {
    let f = "f = pass(); g = pass(); ";
    error(&format!("{f} path in -> f -> g -> f;"), "E0512", "f -> g -> f");
    error("f = pass(); path in -> f -> f;", "E0512", "f -> f");
    assert!(chain(&format!("{f} path in <-> f <-> g <-> out;")).is_ok());
    let apart = "link in -> f; link f -> g; link g -> out; link out -> g.right; \
                 link g.left -> f.right; link f.left -> in;";
    assert!(chain(&format!("{f} {apart}")).is_ok(), "a two-way path written link by link");
    assert!(chain("path in <-> bounce() <-> bounce() <-> out;").is_ok(), "answers are no loop");
}

#[test]
fn functions_and_interfaces_without_links_are_errors() {
    error("f = pass(); g = pass(); path in <-> f <-> out;", "E0513", "no packet reaches `g`");
    let island = "f = pass(); g = pass(); h = pass(); path in <-> f <-> out; link g -> h;";
    assert_eq!(errors(island).len(), 2);
    error("interface a; interface b; interface d; path a <-> b;", "E0514", "interface `d`");
}

#[test]
fn settings_are_checked() {
    let c = chain("path in <-> out; malformed pass; seed 9; workers 4;").unwrap();
    assert_eq!((c.malformed, c.seed, c.workers), (Malformed::Pass, 9, 4));
    error("path in <-> out; malformed keep;", "E0519", "expected `drop` or `pass`");
    error("path in <-> out; workers 0;", "E0519", "not in 1 to 1024");
    error("path in <-> out; workers 1025;", "E0519", "not in 1 to 1024");
    error("path in <-> out; seed 1; seed 2;", "E0519", "set twice");
}

/// A chain of three functions with these policy rules.
fn policy(rules: &str) -> String {
    format!("f = pass(); g = pass(); h = pass(); path f <-> g <-> h; policy {{ {rules} }}")
}

#[test]
fn policy_rules_become_numbers() {
    let c = chain(&policy("Order(f, before, h); Position(f, first); Priority(h > g);")).unwrap();
    let rules = [PolicyRule::Order(0, 2), PolicyRule::First(0), PolicyRule::Priority(2, 1)];
    assert_eq!(c.policy, rules);
    assert_eq!(c.priorities, [Priority { winner: 2, loser: 1 }]);
}

#[test]
fn policy_names_are_checked() {
    error(&policy("Order(f, before, x);"), "E0801", "no function `x`");
    error(&policy("Priority(f > f);"), "E0802", "`f` to itself");
    error(&policy("Position(f, frist);"), "E0803", "found `frist`");
}

#[test]
fn order_cycles_name_their_rules() {
    let islands = "interface a; interface b; f = pass(); g = pass(); h = pass();
        link a -> f; link b -> g; link f -> b; link g -> h; link h -> a; ";
    let rules = "Order(f, before, g); Order(g, before, h); Order(h, before, f);";
    let found = errors(&format!("{islands} policy {{ {rules} }}"));
    assert_eq!(found.len(), 1, "{found:#?}");
    let all = "Order(f, before, g), Order(g, before, h) and Order(h, before, f)";
    assert!(found[0].starts_with("E0804") && found[0].contains(all), "{found:#?}");
}

#[test]
fn order_against_the_path_is_an_error() {
    error(&policy("Order(h, before, f);"), "E0805", "where `f` comes before `h`");
}

#[test]
fn positions_are_checked_against_each_other_and_the_path() {
    let two = errors(&policy("Position(f, first); Position(g, first);"));
    assert!(two.iter().any(|m| m.starts_with("E0806")), "{two:#?}");
    let both = errors(&policy("Position(f, first); Position(f, last);"));
    assert!(both.iter().any(|m| m.starts_with("E0806")), "{both:#?}");
    error(&policy("Position(g, first);"), "E0808", "`f` comes before `g`");
    error(&policy("Position(g, last);"), "E0808", "`h` comes after `g`");
    let order = errors(&policy("Position(f, last); Order(f, before, g);"));
    assert!(order.iter().any(|m| m.starts_with("E0807")), "{order:#?}");
}

#[test]
fn priorities_are_checked() {
    let ways = errors(&policy("Priority(f > g); Priority(g > f);"));
    assert!(ways.iter().any(|m| m.starts_with("E0809")), "{ways:#?}");
    error(&policy("Priority(f > g); Order(f, before, g);"), "E0811", "contradicts");
    error(&policy("Priority(f > g); Position(f, first);"), "E0812", "contradicts");
    let through = policy("Priority(f > g); Priority(g > h); Order(f, before, h);");
    assert!(errors(&through).iter().all(|m| m.starts_with("E0811")));
    assert!(chain(&policy("Priority(f > g); Priority(g > h);")).is_ok());
    let held = "f = late(); g = pass(); path f <-> g; policy { Priority(g > f); }";
    error(held, "E0813", "`f` holds packets");
}

#[test]
fn priority_reaches_over_functions_between() {
    let c = chain(&policy("Priority(h > f);")).unwrap();
    assert_eq!(c.priorities, [Priority { winner: 2, loser: 0 }]);
    let held =
        "f = pass(); g = late(); h = pass(); path f <-> g <-> h; policy { Priority(f > h); }";
    error(held, "E0813", "`g` holds packets, so it cannot be between the functions of Priority(f");
    let split =
        "interface a; interface b; f = tap(); g = pass(); h = pass(); path a -> f -> g -> b;
        path f.copy -> h -> b; policy { Priority(g > h); }";
    error(split, "E0810", "not on one path");
}

#[test]
fn groups_under_priority_do_not_overlap_on_a_path() {
    let four = |rules: &str| {
        format!(
            "f = pass(); g = pass(); h = pass(); i = pass(); path f <-> g <-> h <-> i; \
             policy {{ {rules} }}"
        )
    };
    error(&four("Priority(f > h); Priority(g > i);"), "E0810", "overlap on the path at `g`");
    error(&four("Priority(f > i); Priority(g > h);"), "E0810", "overlap on the path at `g`");
    assert!(chain(&four("Priority(f > g); Priority(i > h);")).is_ok());
    assert!(chain(&four("Priority(f > h); Priority(f > i);")).is_ok());
}

#[test]
fn orders_put_functions_between_others_where_a_policy_is_enough() {
    let fields = "f = pass(); g = pass(); h = pass(); i = pass();";
    let rules = "Priority(h > f); Order(f, before, g); Order(g, before, h); Order(i, before, f);";
    let c = chain(&format!("{fields} policy {{ {rules} }}")).unwrap();
    let row: Vec<u16> = (0..4)
        .scan(Source::Interface(0), |at, _| {
            let sink = c.links.iter().find(|(source, _)| source == at).map(|(_, sink)| *sink);
            let Some(Sink::Port(node, _)) = sink else { return None };
            *at = Source::Port(node, RIGHT);
            Some(node)
        })
        .collect();
    assert_eq!(row, [3, 0, 1, 2], "g is between f and h, and i in front of them");
    let two = "Priority(f > h); Priority(g > i); Order(f, before, g); Order(g, before, h);";
    error(&format!("{fields} policy {{ {two} }}"), "E0811", "between those of another");
}

#[test]
fn packets_that_leave_or_enter_between_the_functions_of_a_priority_are_an_error() {
    let three = "interface a; interface b; interface d; f = pass(); g = pass(); h = pass();";
    let rule = "policy { Priority(f > h); }";
    let enters = format!("{three} path a <-> f <-> g <-> h <-> b; link d -> h; {rule}");
    error(&enters, "E0810", "packets enter between `g` and `h`");
    let leaves = format!(
        "{three} path a <-> f <-> g -> h <-> b; link h.left -> d; link d -> g.right; {rule}"
    );
    error(&leaves, "E0810", "packets enter between `g` and `h`");
    let leaves =
        format!("{three} path a -> f -> g -> h <-> b; link h.left -> d; link d -> b; {rule}");
    error(&leaves, "E0810", "backward packets from `h` do not go to `g`");
}

#[test]
fn packets_that_enter_between_parallel_functions_are_an_error() {
    let body = "interface a; interface b; interface d; f = pass(); g = pass();
        path a <-> f <-> g <-> b; link d -> g; policy { Priority(f > g); }";
    error(body, "E0810", "packets enter between `f` and `g`");
}

#[test]
fn chains_beyond_the_limits_are_errors_and_those_at_them_are_not() {
    let row = |count: usize| vec!["pass()"; count].join(" -> ");
    assert_eq!(chain(&format!("path {};", row(1024))).unwrap().nodes.len(), 1024);
    let found = errors(&format!("path {};", row(1025)));
    assert!(found.iter().any(|m| m.starts_with("E0520")), "{found:#?}");
    let names: Vec<String> = (0..257).map(|at| format!("i{at}")).collect();
    let interfaces: String = names.iter().map(|name| format!("interface {name}; ")).collect();
    let found = errors(&format!("{interfaces} path {};", names.join(" -> ")));
    assert!(found.iter().any(|m| m.starts_with("E0520")), "{found:#?}");
}
