//! Tests `braid graph`: the paths of chains, their graphs, and the formats.

mod common;

use common::{Folder, braid};
use serde_json::{Value, json};

/// A chain of the library's functions between `lan` and `wan`, and a file for every parameter.
fn chain(instances: &str, rest: &str) -> Folder {
    let folder = Folder::new();
    folder.write("r", "pass proto tcp\n").write("p", "\"x\"\n");
    let text = format!(
        "chain c {{\n interface lan {{ behind 10.0.0.0/8 }}\n interface wan;\n {instances}\n {rest}\n}}\n"
    );
    folder.write("c.braid", &text);
    folder
}

const FOUR: &str = "mon = monitor();
    ids = ids(signatures: patterns(\"p\"), scope: rules(\"r\"));
    fw = stateless_firewall(allow: rules(\"r\"));
    lb = hash_load_balancer(vip: 10.0.0.1, servers: [10.0.0.2]);";

fn four() -> Folder {
    chain(FOUR, "path lan <-> mon <-> ids <-> fw <-> lb <-> wan;")
}

#[test]
fn text_shows_chain_and_graph_and_why() {
    let text = four().braid(&["graph", "c.braid"]).code(0).out;
    let expected = "\
chain c

from lan to wan, forward
  chain   mon -> ids -> fw -> lb
  graph   (mon | ids) -> fw -> lb
          equivalent length 3 of 4, no copies
  merge   2 into v1; dropped if any drops it, else as ids says
  packets whose payload the capture has cut take the chain
  mon, ids: parallel
          nothing that one changes matters to the other
  mon, fw: parallel
          nothing that one changes matters to the other
  mon, lb: parallel with a copy
          mon reads inet.dst, lb writes ip.dst
  ids, fw: in sequence
          ids may drop packets, fw keeps account of the packets that it sees
";
    assert!(text.starts_with(expected), "{text}");
    let backward = "from wan to lan, backward\n  chain   lb -> fw -> ids -> mon\n  \
                    graph   lb -> fw -> ids -> mon\n          equivalent length 4 of 4, no copies\n";
    assert!(text.contains(backward), "{text}");
}

#[test]
fn copies_and_merge_operations_are_shown() {
    let two = "mon = monitor(); lb = hash_load_balancer(vip: 10.0.0.1, servers: [10.0.0.2]);";
    let folder = chain(two, "path lan -> mon -> lb -> wan;");
    folder
        .braid(&["graph", "c.braid"])
        .code(0)
        .says("graph   (mon | lb)\n")
        .says("equivalent length 1 of 2, 1 copy\n")
        .says("copy    v2 is the headers of v1\n")
        .says("merge   2 into v1; dropped if any drops it, else as lb says\n");
}

#[test]
fn priority_is_parallel_in_both_directions() {
    let instances = "fw = stateless_firewall(allow: rules(\"r\"));
        lim = rate_limiter(rate: 1 Mbit/s, burst: 1 KB);";
    let folder =
        chain(instances, "path lan <-> fw <-> lim <-> wan; policy { Priority(fw > lim); }");
    folder
        .braid(&["graph", "c.braid"])
        .code(0)
        .says("from lan to wan, forward\n  chain   fw -> lim\n  graph   (lim | fw)\n")
        .says("from wan to lan, backward\n  chain   lim -> fw\n  graph   (lim | fw)\n")
        .says("the verdict is that of the first that may drop of fw, lim")
        .says("lim, fw: parallel by Priority(fw > lim)");
}

#[test]
fn functions_between_those_of_a_priority_are_on_the_branch_in_front() {
    let instances = "fw = stateless_firewall(allow: rules(\"r\")); mon = monitor();
        ids = ids(signatures: patterns(\"p\"), scope: rules(\"r\"));";
    for rest in [
        "path lan <-> fw <-> mon <-> ids <-> wan; policy { Priority(fw > ids); }",
        "policy { Priority(fw > ids); Order(fw, before, mon); Order(mon, before, ids); }",
    ] {
        let folder = chain(instances, rest);
        folder
            .braid(&["graph", "c.braid"])
            .code(0)
            .says("forward\n  chain   fw -> mon -> ids\n  graph   (ids | fw -> mon)\n")
            .says("backward\n  chain   ids -> mon -> fw\n  graph   (ids -> mon | fw)\n")
            .says("that of mon if the packet ends there or goes elsewhere, else that of the first")
            .says("ids, fw: parallel by Priority(fw > ids)")
            .says("fw, mon: in sequence");
        folder
            .braid(&["graph", "c.braid", "--plan"])
            .code(0)
            .says("fw, mon, ids: Priority relates them, or they are between such functions");
    }
}

#[test]
fn positions_turn_round_on_the_way_back() {
    let instances = "a = monitor(); b = monitor(); c = monitor();";
    let policy = "path lan <-> a <-> b <-> c <-> wan; policy { Position(a, first); }";
    let folder = chain(instances, policy);
    folder
        .braid(&["graph", "c.braid"])
        .code(0)
        .says("graph   a -> (b | c)\n")
        .says("graph   (c | b) -> a\n");
}

#[test]
fn branches_are_ways_of_their_own() {
    braid(&["graph", concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/branch.braid")])
        .code(0)
        .says("from lan to wan, forward\n  chain   split -> count\n")
        .says("split may send packets elsewhere than onward, count keeps account")
        .says("from split.inspect to wan, forward\n  chain   inspect\n");
}

#[test]
fn json_holds_the_tables() {
    let folder = four();
    let value = folder.braid(&["graph", "c.braid", "--json"]).code(0).json();
    let same = folder.braid(&["graph", "c.braid", "--format", "json"]).code(0).json();
    assert_eq!(value, same);
    let path = &value["paths"][0];
    assert_eq!(
        (&value["chain"], &path["entries"]),
        (&json!("c"), &json!([{ "interface": "lan" }]))
    );
    assert_eq!(path["functions"], json!(["mon", "ids", "fw", "lb"]));
    assert_eq!((&path["exit"], &path["whole_payload"]), (&json!("wan"), &json!(true)));
    let graph = &path["graph"];
    assert_eq!(graph["equivalent_length"], 3);
    let first = json!([
        { "action": "distribute", "version": 1, "targets": [{ "function": 0 }, { "function": 1 }] },
    ]);
    assert_eq!(graph["tables"]["classification"]["steps"], first);
    assert_eq!(graph["tables"]["merging"][0]["expects"], 2);
    let pairs = graph["representation"]["pairs"].as_array().unwrap();
    let found = |pair: &Value| (pair["first"].as_u64(), pair["second"].as_u64());
    let copy = pairs.iter().find(|pair| found(pair) == (Some(0), Some(3))).unwrap();
    assert_eq!(copy["finding"]["parallel"], "with_copy");
    let conflict = json!({
        "first": { "read": "inet.dst" }, "second": { "write": "ip.dst" },
        "parallel": "with_copy", "beside": null,
    });
    assert_eq!(copy["finding"]["conflicts"], json!([conflict]));
    assert_eq!(pairs[0]["rule"], "the path, where mon comes before ids");
}

/// Checks that tags are closed in the right order, and that text is escaped.
fn assert_well_formed(xml: &str) {
    let body = xml.strip_prefix("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n").unwrap();
    let mut open: Vec<&str> = Vec::new();
    for piece in body.split('<').skip(1) {
        let (tag, text) = piece.split_once('>').unwrap_or_else(|| panic!("{piece}"));
        assert!(!text.contains('>') && !text.contains("&&"), "{piece}");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "{xml}");
        } else if !tag.ends_with('/') {
            open.push(tag.split(' ').next().unwrap());
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn svg_is_well_formed_and_names_every_function_twice() {
    let svg = four().braid(&["graph", "c.braid", "--format", "svg"]).code(0).out;
    assert_well_formed(&svg);
    // Each name appears in the chain and in the graph, in both directions.
    for name in ["mon", "ids", "fw", "lb"] {
        assert_eq!(svg.matches(&format!(">{name}</text>")).count(), 4, "{name}\n{svg}");
    }
    assert_eq!(svg.matches("class=\"merge\"").count(), 1);
}

#[test]
fn dot_draws_chain_and_graph_of_each_way() {
    let dot = four().braid(&["graph", "c.braid", "--format", "dot"]).code(0).out;
    assert!(dot.starts_with("digraph \"c\" {\n") && dot.ends_with("}\n"), "{dot}");
    for cluster in ["chain_1", "graph_1", "chain_2", "graph_2"] {
        assert!(dot.contains(&format!("subgraph cluster_{cluster} {{")), "{dot}");
    }
    assert!(dot.contains("g1_fork1 -> g1_1;") && dot.contains("g1_merge1 -> g1_2;"), "{dot}");
}

#[test]
fn contradicting_rules_are_named() {
    let instances = "a = monitor(); b = monitor();";
    let folder = chain(instances, "path lan <-> a <-> b <-> wan; policy { Order(b, before, a); }");
    folder.braid(&["graph", "c.braid"]).code(3).warns("Order(b, before, a)");
    let folder = four();
    folder.braid(&["graph", "c.braid", "--chain", "d"]).code(2).warns("no chain `d`");
    folder.braid(&["graph", "c.braid", "--format", "png"]).code(2);
}

#[test]
fn rules_alone_order_the_functions_of_a_chain() {
    let instances = "mon = monitor(); lb = hash_load_balancer(vip: 10.0.0.1, servers: [10.0.0.2]);
        spread = forwarder();";
    let rules = "policy { Order(lb, before, mon); Position(spread, first); }";
    let by_rules = chain(instances, rules);
    let by_path = chain(instances, "path lan <-> spread <-> lb <-> mon <-> wan;");
    let pass = |folder: &Folder| folder.braid(&["ir", "c.braid"]).code(0).out;
    assert_eq!(pass(&by_rules), pass(&by_path));
    let found: Value = by_rules.braid(&["graph", "c.braid", "--json"]).code(0).json();
    let path = &found["paths"][0];
    assert_eq!(path["functions"], json!(["spread", "lb", "mon"]));
    let free = chain("a = monitor(); b = monitor();", "policy { }");
    let found: Value = free.braid(&["graph", "c.braid", "--json"]).code(0).json();
    assert_eq!(found["paths"][0]["graph"]["representation"]["free"], json!([0, 1]));
}

#[test]
fn policies_that_leave_an_order_open_are_errors() {
    let folder = chain(FOUR, "policy { Order(ids, before, fw); Order(mon, before, lb); }");
    for (command, code) in [("check", 1), ("graph", 3), ("ir", 3)] {
        let error = folder.braid(&[command, "c.braid"]).code(code).err;
        assert!(error.contains("[E0815]") && error.contains("add Order("), "{error}");
    }
    let rules = "Order(mon, before, ids); Order(ids, before, fw); Order(fw, before, lb);";
    chain(FOUR, &format!("policy {{ {rules} }}")).braid(&["check", "c.braid"]).code(0);
}

#[test]
fn plan_shows_stages_and_what_runs_side_by_side() {
    let text = four().braid(&["graph", "c.braid", "--plan", "--stages", "4"]).code(0).out;
    let expected = "\
chain c in 4 stages

stage 1  mon
stage 2  ids
stage 3  fw
stage 4  lb

from lan  (stage 1 | stage 2 -> stage 3 -> stage 4)
  copy    the headers for stage 1
  cut and malformed packets, and fragments: stage 1 -> stage 2 -> stage 3 -> stage 4
  merge   2 versions, 0 parts if they were written

from wan  stage 4 -> stage 3 -> stage 2 -> stage 1
";
    assert_eq!(text, expected);
    let plan = four().braid(&["graph", "c.braid", "--plan", "--stages", "2", "--json"]).json();
    assert_eq!(plan["stages"].as_array().map(Vec::len), Some(2));
    assert_eq!(plan["one_stage"][0]["why"], "no more stages were asked for");
    assert_eq!(plan["entries"][1], json!({ "routes": { "graph": 2, "sequence": 2 } }));
}

#[test]
fn plan_says_why_functions_are_one_stage() {
    let small = "event END extends EVENT { n: u8 }
        nf back() { match { l4.dport == 7 => output back; else => output; } }
        nf wait() { queue q capacity 9; match { pkt.held => output; else => { hold q for 1 ms; } } }
        nf tell() { state n: u8 per flow = 0, idle 1 s; on expire n { emit END { n: n }; }
          match { has inet => { n += 1; output; } else => output; } }
        nf pass() { output; }";
    let reason = |path: &str, policy: &str| {
        let folder = Folder::new();
        let chain = format!(
            "{small}\nchain c {{ interface lan; interface wan; path lan <-> {path} <-> wan; {policy} }}"
        );
        folder.write("c.braid", &chain);
        folder.braid(&["graph", "c.braid", "--plan", "--stages", "9"]).code(0).out
    };
    for (path, policy, expected) in [
        ("pass() <-> back()", "", "back sends the others more than the packet itself"),
        ("pass() <-> wait()", "", "all functions: wait may hold packets"),
        ("tell() <-> pass() <-> x", "x = tell();", "publish events, whose order is one"),
        ("tell() <-> pass() <-> x", "x = tell();", "a path leaves a stage only once"),
        ("a <-> b", "a = pass(); b = pass(); policy { Priority(a > b); }", "Priority relates them"),
    ] {
        let text = reason(path, policy);
        assert!(text.contains(expected), "{path}: {text}");
        assert!(text.starts_with("chain c in 1 stage\n"), "{text}");
    }
}

#[test]
fn plan_has_no_pictures() {
    let failed = four().braid(&["graph", "c.braid", "--plan", "--format", "dot"]).code(2);
    assert!(failed.err.contains("a plan is text or JSON"), "{}", failed.err);
}
