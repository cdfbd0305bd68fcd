//! Tests native functions in stages of their own, in Braid's process and in others.

use super::isolated::isolated;
use super::*;
use braid_compiler::parallel::stages::stages;
use braid_ir::service_graph::Node;
use braid_testkit::harness::USERS;

/// A chain of functions that publish events when packets come and when time passes.
fn ticking() -> Chain {
    let library = library("crates/testkit/tests/native/faulty.c");
    compile(&format!(
        r#"native nf one() from "{library}" function ticker;
        native nf two() from "{library}" function ticker;
        chain c {{ {INTERFACES} path lan <-> two() <-> monitor() <-> one() <-> wan; }}"#
    ))
}

/// Chains of native functions and models without workers.
fn undivided() -> Vec<Chain> {
    let all = chains().into_iter().chain(fused().into_iter().map(|(chain, _)| chain));
    let all = all.chain([ticking()]).chain(super::effects::chains());
    all.filter(|chain| chain.workers == 1).collect()
}

#[test]
fn native_functions_in_stages_do_what_they_do_in_sequence() {
    let mut staged = 0;
    let all = undivided();
    let count = all.len();
    for (at, chain) in (0..).zip(all) {
        let is_staged = stages(&chain, 8).stages.len() > 1;
        staged += usize::from(is_staged);
        for seed in 0..braid_cases::at_least(3).into() {
            let (stimuli, expected) = recorded(&chain, seed, STIMULI);
            let inner = USERS[usize::try_from(seed).unwrap() % USERS.len()];
            let apart = isolated(chain.clone());
            for (most, bundle) in [(2, 1), (8, 3), (8, 64)] {
                for chain in [&chain, &apart] {
                    let engine = inner.in_stages(most, bundle).stalled(seed);
                    let mut staged = engine.make(chain);
                    let found = engine.difference_of(staged.as_mut(), &stimuli, &expected);
                    assert!(found.is_none(), "{at}, seed {seed}, {engine}: {found:?}");
                    if !is_staged {
                        break;
                    }
                }
            }
        }
    }
    println!("{staged} of {count} chains have stages");
    assert!(staged > 5);
}

#[test]
fn functions_that_only_read_run_side_by_side() {
    let signatures = "signatures: patterns(\"signatures.txt\")";
    let chain = five(&format!("path lan <-> monitor() <-> ids5({signatures}) <-> wan;"));
    let plan = stages(&chain, 2);
    let forks = plan.routes.iter().filter(|route| matches!(route.root, Node::Parallel(_)));
    assert!(forks.count() > 0, "{:?}", plan.routes);
}
