//! The numbers and examples that the paper prints.

use super::{function, graph, row, said, shown};
use braid_compiler::parallel::action::{Action, Kind};
use braid_compiler::parallel::depend::{Parallel, Reading, dependency, identify};
use braid_compiler::parallel::paper::{TABLE_2, statistic};
use braid_compiler::parallel::plan::Shape;
use braid_compiler::parallel::policy::Function;
use braid_ir::chain::PolicyRule::{First, Order, Priority};
use braid_ir::service_graph::Extent;

/// A function of Table 2.
fn line(name: &str) -> Function {
    let line = TABLE_2.iter().find(|line| line.name == name).unwrap();
    Function { name: name.into(), actions: line.actions() }
}

#[track_caller]
fn assert_percent(shares: [f64; 3], expected: [f64; 3]) {
    for (share, expected) in shares.iter().zip(expected) {
        assert!((share - expected).abs() < 0.05, "{shares:?} instead of {expected:?}");
    }
}

#[test]
fn statistic_of_table_2_is_that_of_the_paper_under_every_reading() {
    // §4.3: 53.8 % of the pairs work in parallel, 41.5 % without a copy. No two of the six
    // functions write the same part. Each writer writes a part that all others read. The readings
    // of write→write and write→read therefore make no difference.
    for reading in [Reading::Parts, Reading::Algorithm, Reading::Table] {
        let shares = statistic(reading);
        assert_percent(shares, [41.5, 12.3, 46.2]);
        assert!((shares[0] + shares[1] - 53.8).abs() < 0.05, "{shares:?}");
    }
}

#[test]
fn statistic_weighs_the_30_pairs_by_hand() {
    // Sum of percentages 92, of their squares 26²+20²+19²+10²+10²+7² = 1686: 92² - 1686 = 6778.
    // Not parallel: Firewall, Load Balance, VPN in front of any other: 26·66 + 10·82 + 7·85 = 3131.
    // With a copy: a reader in front of Load Balance or VPN: (20+19+10)·(10+7) = 833.
    let [without, with, no] = statistic(Reading::Parts);
    assert_percent([no, with, without], [3131.0, 833.0, 2814.0].map(|w| w / 67.78));
}

#[test]
fn dependency_table_is_table_3() {
    use Kind::{AddRemove, Drop, Read, Write};
    let kinds = [Read, Write, AddRemove, Drop];
    let row = |first: Kind| kinds.map(|second| dependency(first, second));
    use Parallel::{No, WithCopy, WithoutCopy};
    assert_eq!(row(Read), [WithoutCopy, WithCopy, WithCopy, WithoutCopy]);
    assert_eq!(row(Write), [No, No, WithCopy, WithoutCopy]);
    assert_eq!(row(AddRemove), [No, No, WithCopy, WithoutCopy]);
    assert_eq!(row(Drop), [No, No, No, WithoutCopy]);
}

#[test]
fn writes_of_one_field_are_read_as_the_algorithm_or_the_table_says() {
    let (a, b) = (function("a", "w ip.src").actions, function("b", "w ip.src").actions);
    assert_eq!(identify(&a, &b, Reading::Parts).parallel, Parallel::WithCopy);
    assert_eq!(identify(&a, &b, Reading::Algorithm).parallel, Parallel::WithCopy);
    assert_eq!(identify(&a, &b, Reading::Table).parallel, Parallel::No);
    let reads = function("c", "r eth.src").actions;
    assert_eq!(identify(&a, &reads, Reading::Parts).parallel, Parallel::WithoutCopy);
    assert_eq!(identify(&a, &reads, Reading::Algorithm).parallel, Parallel::No);
}

#[test]
fn conflicting_actions_name_the_pair() {
    let found =
        identify(&line("Monitor").actions, &line("Load Balance").actions, Reading::default());
    assert_eq!(found.parallel, Parallel::WithCopy);
    let texts: Vec<String> = found.conflicts.iter().map(|c| c.text("a", "b")).collect();
    let expected = ["a reads inet.src, b writes inet.src", "a reads inet.dst, b writes inet.dst"];
    assert_eq!(texts, expected);
}

#[test]
fn north_south_chain_of_figure_1_has_length_3_and_no_copies() {
    let functions = ["VPN", "Monitor", "Firewall", "Load Balance"].map(line);
    let found = graph(&functions, &row(4));
    assert_eq!(shown(&functions, &found), "VPN -> (Monitor | Firewall) -> Load Balance");
    assert_eq!((found.equivalent_length, found.copies.len()), (3, 0));
    // The last row of Table 1 describes the same graph.
    let policy = [First(0), Order(2, 3), Order(1, 3)].map(said);
    let policy: Vec<_> = policy.into_iter().chain([said(Order(1, 2))]).collect();
    let same = graph(&functions, &policy);
    assert_eq!(shown(&functions, &same), shown(&functions, &found));
    assert_eq!(same.representation.first, Some(0));
    let shapes: Vec<Shape> = same.micrographs.iter().map(|m| m.shape).collect();
    assert_eq!(shapes, [Shape::Tree, Shape::Single]);
}

#[test]
fn west_east_chain_runs_monitor_and_balancer_on_a_copy_of_the_headers() {
    // §6.4: IDS, Monitor, Load Balancer; 8.8 % more memory is one copy of the headers.
    let functions = ["NIDS", "Monitor", "Load Balance"].map(line);
    let found = graph(&functions, &row(3));
    assert_eq!(shown(&functions, &found), "(NIDS | Monitor | Load Balance)");
    assert_eq!(found.equivalent_length, 1);
    let [copy] = found.copies.as_slice() else { panic!("{:?}", found.copies) };
    assert_eq!((copy.from, copy.to, copy.extent), (1, 2, Extent::Headers));
}

#[test]
fn priority_runs_firewall_and_ips_side_by_side() {
    let ips = function("IPS", "r payload, drop");
    let functions = [ips, Function { name: "FW".into(), ..line("Firewall") }];
    let found = graph(&functions, &[said(Priority(0, 1))]);
    assert_eq!(shown(&functions, &found), "(FW | IPS)");
    let text = serde_json::to_string(&found.tables.merging[0]).unwrap();
    assert!(text.contains(r#""verdict":{"first_that_may_drop":[0,1]}"#), "{text}");
    assert!(found.copies.is_empty());
    assert!(line("Firewall").actions.contains(&Action::Drop));
}
