//! Graphs: which functions wait for others, copies, merge operations, tables.

use super::{function, graph, row, shown};
use braid_compiler::parallel::ServiceGraph;
use braid_compiler::parallel::policy::Function;
use braid_ir::service_graph::{Extent, Node, Operation};
use serde_json::{Value, json};

/// The graph of functions in a row.
fn in_a_row(functions: &[Function]) -> ServiceGraph {
    graph(functions, &row(u16::try_from(functions.len()).unwrap()))
}

#[track_caller]
fn assert_graph(functions: &[Function], expected: &str) {
    assert_eq!(shown(functions, &in_a_row(functions)), expected);
}

#[test]
fn functions_behind_one_that_may_end_or_divert_the_packet_wait() {
    for ends in ["drop", "steer", "emit"] {
        assert_graph(&[function("a", ends), function("b", "")], "a -> b");
        assert_graph(&[function("a", ""), function("b", ends)], "(a | b)");
    }
    assert_graph(&[function("a", "hold"), function("b", "")], "a -> b");
    assert_graph(&[function("a", ""), function("b", "hold")], "a -> b");
}

#[test]
fn tags_are_like_fields() {
    assert_graph(&[function("a", "w #x"), function("b", "r #x")], "a -> b");
    assert_graph(&[function("a", "w #x"), function("b", "r #y")], "(a | b)");
    let both = [function("a", "r #x"), function("b", "w #x")];
    assert_eq!(in_a_row(&both).copies.len(), 1);
}

#[test]
fn mirror_waits_for_all_that_is_written() {
    assert_graph(&[function("a", "w eth.src"), function("b", "r whole, emit")], "a -> b");
}

#[test]
fn functions_that_write_the_payload_go_in_sequence() {
    assert_graph(&[function("a", "w payload"), function("b", "w payload")], "a -> b");
}

#[test]
fn function_that_conflicts_with_a_later_stage_is_put_before_it() {
    // Beside the other two, the monitor would need a copy. In front of the balancer it needs none.
    let functions = [
        function("monitor", "r ip.dst"),
        function("firewall", "r ip.src, drop"),
        function("balancer", "w ip.dst"),
    ];
    let found = in_a_row(&functions);
    assert_eq!(shown(&functions, &found), "(monitor | firewall) -> balancer");
    assert!(found.copies.is_empty());
    // Without a dependency, it need not wait.
    let functions = [function("monitor", "r ip.src"), functions[1].clone(), functions[2].clone()];
    assert_graph(&functions, "(monitor | firewall -> balancer)");
}

#[test]
fn function_is_never_put_behind_one_that_changes_what_it_sees() {
    // c waits for a, and reads a field that d writes: d must not come first.
    let functions = [
        function("a", "w ip.src"),
        function("c", "r ip.src, r l4.sport"),
        function("d", "r ip.src, w l4.sport"),
    ];
    assert_graph(&functions, "a -> (c | d)");
    // b may drop, so it must not come before c.
    let functions = [function("a", "w ip.src"), function("c", "r ip.src"), function("b", "drop")];
    let found = shown(&functions, &in_a_row(&functions));
    assert!(["a -> (c | b)", "(a -> c | b)"].contains(&found.as_str()), "{found}");
}

#[test]
fn readers_share_a_version_and_the_payload_stays_where_it_is() {
    let functions = [
        function("ids", "r payload, r ip.src"),
        function("monitor", "r ip.src"),
        function("nat", "w ip.src"),
    ];
    let found = in_a_row(&functions);
    let Node::Parallel(fork) = &found.root else { panic!("{found:?}") };
    let versions: Vec<u32> = fork.branches.iter().map(|branch| branch.version).collect();
    assert_eq!(versions, [1, 1, 2]);
    assert_eq!(fork.copies[0].extent, Extent::Headers);
    let expected = vec![json!({
        "operation": "modify", "part": "ip.src", "from": 2, "by": 2, "unless": [],
    })];
    assert_eq!(serde_json::to_value(&fork.merge.operations).unwrap(), json!(expected));
    assert_eq!((fork.merge.into, fork.merge.expects), (1, 3));
}

#[test]
fn copy_for_a_reader_is_thrown_away() {
    let functions = [function("monitor", "r ip.src"), function("nat", "w ip.src")];
    let found = in_a_row(&functions);
    let Node::Parallel(fork) = &found.root else { panic!("{found:?}") };
    assert_eq!([fork.branches[0].version, fork.branches[1].version], [2, 1]);
    assert!(fork.merge.operations.is_empty(), "{:?}", fork.merge);
}

#[test]
fn second_reader_of_the_payload_needs_a_full_copy() {
    let functions = [function("a", "r payload, w ip.src"), function("b", "r payload, w ip.src")];
    let found = in_a_row(&functions);
    assert_eq!(found.copies[0].extent, Extent::Full);
}

#[test]
fn later_of_two_writers_counts_where_it_wrote() {
    // The later function works on the remaining version, so the earlier function's value must
    // yield.
    let functions = [function("a", "w ip.ttl"), function("b", "w inet.ttl, r payload")];
    let found = in_a_row(&functions);
    let Node::Parallel(fork) = &found.root else { panic!("{found:?}") };
    assert_eq!(fork.branches[1].version, 1);
    let [Operation::Modify { by: 0, unless, .. }] = fork.merge.operations.as_slice() else {
        panic!("{:?}", fork.merge)
    };
    assert_eq!(unless, &[1]);
}

#[test]
fn added_header_is_merged_into_what_others_read() {
    let functions = [function("a", "r payload, r ip.src"), function("push", "add vlan")];
    let found = in_a_row(&functions);
    let Node::Parallel(fork) = &found.root else { panic!("{found:?}") };
    let operations = serde_json::to_value(&fork.merge.operations).unwrap();
    let expected =
        json!([{ "operation": "add", "header": "vlan", "from": 2, "by": 1, "unless": [] }]);
    assert_eq!(operations, expected);
}

#[test]
fn write_to_a_tag_goes_before_a_change_of_the_tags() {
    // If the write were merged later, it would go to the new outermost tag.
    assert_graph(&[function("a", "w vlan.pcp"), function("b", "add vlan")], "a -> b");
    assert_graph(&[function("a", "w vlan2.id"), function("b", "remove vlan")], "a -> b");
    assert_graph(&[function("a", "w ip.ttl"), function("b", "add vlan")], "(a | b)");
    assert_graph(&[function("a", "r vlan.id"), function("b", "add vlan")], "(a | b)");
}

#[test]
fn tables_steer_a_packet_through_copy_and_merger() {
    let functions = [
        function("ids", "r ip.src, w #seen"),
        function("nat", "w ip.src"),
        function("fw", "r ip.src, r #seen, drop"),
    ];
    let found = in_a_row(&functions);
    assert_eq!(shown(&functions, &found), "(ids | nat) -> fw");
    let tables = serde_json::to_value(&found.tables).unwrap();
    let distribute = |version: u32, targets: Value| json!({ "action": "distribute", "version": version, "targets": targets });
    let function = |number: usize| json!({ "function": number });
    let merger = json!({ "merger": 0 });
    let first = json!({
        "graph": 1, "copies": 1, "steps": [
            { "action": "copy", "from": 1, "to": 2, "extent": "headers" },
            distribute(1, json!([function(0)])),
            distribute(2, json!([function(1)])),
        ],
    });
    assert_eq!(tables["classification"], first);
    let entry = |from: &Value, steps: Value, nil: Value| json!({ "graph": 1, "from": from, "steps": steps, "nil_to": nil });
    let forwarding = json!([
        entry(&function(0), json!([distribute(1, json!([merger]))]), json!(0)),
        entry(&function(1), json!([distribute(2, json!([merger]))]), json!(0)),
        entry(&function(2), json!([{ "action": "output", "version": 1 }]), Value::Null),
        entry(&merger, json!([distribute(1, json!([function(2)]))]), Value::Null),
    ]);
    assert_eq!(tables["forwarding"], forwarding);
    let merging = json!([{
        "graph": 1, "merger": 0, "into": 1, "expects": 2, "verdict": { "any_drops": 1 },
        "operations": [
            { "operation": "modify", "part": "ip.src", "from": 2, "by": 1, "unless": [] },
        ],
    }]);
    assert_eq!(tables["merging"], merging);
}
