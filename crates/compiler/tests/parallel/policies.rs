//! Contradictory rules, and the interpretation of rules.

use super::{function, graph, row, said, shown};
use braid_compiler::parallel::policy::{MAX_FUNCTIONS, Problem};
use braid_compiler::parallel::service_graph;
use braid_ir::chain::PolicyRule::{self, First, Last, Order, Priority};

/// The error for rules over functions a to d, which only count.
fn problem(rules: &[PolicyRule]) -> String {
    let functions = ["a", "b", "c", "d"].map(|name| function(name, ""));
    let rules: Vec<_> = rules.iter().map(|rule| said(*rule)).collect();
    match service_graph(1, &functions, &rules) {
        Ok(found) => panic!("{}", shown(&functions, &found)),
        Err(problem) => problem.to_string(),
    }
}

#[test]
fn circles_of_orders_name_their_rules_only() {
    let text = problem(&[Order(3, 0), Order(0, 1), Order(1, 2), Order(2, 0)]);
    let expected = "rules go round in a circle: ";
    let circle = text.strip_prefix(expected).unwrap();
    for rule in ["Order(a, before, b)", "Order(b, before, c)", "Order(c, before, a)"] {
        assert!(circle.contains(rule), "{text}");
    }
    assert!(!circle.contains("(d") && !circle.contains("d)"), "{text}");
}

#[test]
fn circles_of_priorities_and_of_orders_through_them_are_found() {
    let text = problem(&[Priority(0, 1), Priority(1, 0)]);
    assert!(text.contains("Priority(a > b)") && text.contains("Priority(b > a)"), "{text}");
    // b and c are one unit, so a comes before and after it.
    let text = problem(&[Priority(1, 2), Order(0, 1), Order(2, 0)]);
    assert!(text.contains("Order(a, before, b)") && text.contains("Order(c, before, a)"), "{text}");
}

#[test]
fn contradicting_rules_are_named_both() {
    for (a, b, expected) in [
        (First(0), Last(0), "Position(a, first) contradicts Position(a, last)"),
        (First(0), First(1), "Position(a, first) contradicts Position(b, first)"),
        (Order(1, 0), First(0), "Order(b, before, a) contradicts Position(a, first)"),
        (Last(2), Order(2, 0), "Position(c, last) contradicts Order(c, before, a)"),
        (Priority(0, 1), Last(1), "Priority(a > b) contradicts Position(b, last)"),
        (Order(0, 1), Priority(1, 0), "Order(a, before, b) contradicts Priority(b > a)"),
    ] {
        assert_eq!(problem(&[a, b]), expected);
    }
    assert_eq!(problem(&[Order(0, 9)]), "Order(a, before, 9) names a function that is not there");
}

#[test]
fn too_many_functions_are_refused() {
    let functions = vec![function("f", ""); MAX_FUNCTIONS + 1];
    assert_eq!(service_graph(1, &functions, &[]), Err(Problem::TooMany(MAX_FUNCTIONS + 1)));
    let most = graph(&functions[1..], &[]);
    assert_eq!(most.equivalent_length, 1);
}

#[test]
fn free_functions_run_beside_all_else() {
    let functions =
        [function("a", "r ip.src"), function("b", "w eth.src"), function("free", "r l4.sport")];
    let found = graph(&functions, &row(2));
    assert_eq!(shown(&functions, &found), "(a | b | free)");
    assert_eq!(found.representation.free, [2]);
}

#[test]
fn functions_whose_order_matters_and_is_not_given_are_reported() {
    let functions = [function("a", "w ip.src"), function("b", "r ip.src")];
    let text = service_graph(1, &functions, &[]).unwrap_err().to_string();
    assert!(text.contains("a writes ip.src, b reads ip.src"), "{text}");
    assert!(text.contains("Order(a, before, b)"), "{text}");
    // One direction is enough: if b came first, a copy would be necessary.
    let swapped = [functions[1].clone(), functions[0].clone()];
    assert!(matches!(service_graph(1, &swapped, &[]), Err(Problem::Undecided(..))));
}

#[test]
fn positions_are_in_sequence_at_both_ends() {
    let functions = [function("a", ""), function("b", ""), function("c", ""), function("d", "")];
    let found = graph(&functions, &[First(2), Last(0)].map(said));
    assert_eq!(shown(&functions, &found), "c -> (b | d) -> a");
    assert_eq!(found.equivalent_length, 3);
}

#[test]
fn of_losers_that_no_rule_compares_the_one_in_front_wins() {
    let functions =
        [function("a", "w ip.ttl"), function("b", "w ip.ttl"), function("c", "w ip.ttl")];
    let found = graph(&functions, &[Priority(1, 0), Priority(1, 2)].map(said));
    // Lowest first: c, then a, then b.
    let order: Vec<usize> =
        found.representation.pairs.iter().map(|pair| pair.first * 10 + pair.second).collect();
    assert_eq!(order, [20, 21, 1]);
}
