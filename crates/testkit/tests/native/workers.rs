//! Tests of native functions over several workers: what functions say that they keep decides which
//! packets need the same worker.

use super::*;
use braid_compiler::sharding::{Sharding, Verdict, divide};
use braid_ir::engine::StateEntry;
use std::collections::BTreeSet;

/// A chain over three workers, and how it is divided.
fn divided(chain: Chain) -> (Chain, Sharding) {
    divide(Chain { workers: 3, ..chain }).expect("a chain with a graph")
}

/// Chains of functions that keep nothing, or something for each flow.
fn chains() -> Vec<Chain> {
    [
        "ipfilter5(filter: rules(\"some.rules\"))",
        "monitor5(flows: 100) <-> ids5(signatures: patterns(\"signatures.txt\"), block: true)",
        "monitor5(flows: 100) <-> napt(public: 203.0.113.1, ports: 1024..1026)",
        "stateful_firewall(ok: rules(\"some.rules\")) <-> monitor5(flows: 100) <-> \
         maglev(vip: 192.0.2.4, backends: [10.0.4.1, 10.0.4.2])",
    ]
    .map(|path| five(&format!("path lan <-> {path} <-> wan;")))
    .into()
}

#[test]
fn functions_that_say_what_they_keep_run_on_several_workers() {
    let mut compared = 0;
    for (at, chain) in chains().into_iter().enumerate() {
        let (divided, found) = divided(chain.clone());
        assert_ne!(found.verdict, Verdict::OneWorker, "chain {at}: {:?}", found.why_not);
        for seed in braid_cases::seeds(4) {
            let (stimuli, expected) = recorded(&chain, seed, STIMULI);
            let mut engine = harness::reference(&divided);
            let actual: Vec<Vec<Output>> =
                stimuli.iter().map(|stimulus| step(engine.as_mut(), stimulus)).collect();
            // Each worker has a share of a NAT's ports, so it gives other ones away.
            let takes_ports = chain.nodes.iter().any(|node| node.model.name == "napt");
            if !takes_ports && found.assumes.is_empty() {
                compared += 1;
                let settled =
                    |all: Vec<_>| -> Vec<_> { all.into_iter().map(harness::settled).collect() };
                assert_eq!(settled(actual), settled(expected.outputs), "chain {at}, seed {seed}");
            }
            // No flow has packets on two workers, but for ICMP errors, which come to any of them.
            let mut known = BTreeSet::new();
            let is_error = |entry: &StateEntry| match entry.key.as_slice() {
                [.., (_, proto), (_, sport), (_, dport)] => {
                    [1, 58].contains(proto) && (*sport, *dport) == (0, 0)
                }
                _ => false,
            };
            let flows = engine.state().into_iter();
            for entry in flows.filter(|entry| entry.table == "flows" && !is_error(entry)) {
                let flow = (entry.node, format!("{:?}", entry.key));
                assert!(known.insert(flow), "chain {at}, seed {seed}: two of {entry:?}");
            }
        }
    }
    assert!(compared > 0);
}

#[test]
fn engines_of_workers_do_what_shards_do() {
    for (at, chain) in chains().into_iter().enumerate() {
        let (divided, _) = divided(chain);
        for seed in braid_cases::seeds(2) {
            for kind in
                harness::Engine::drawn(seed, seed == 0).into_iter().chain([harness::USERS[0]])
            {
                let differs =
                    harness::differs_from_shards(&divided, kind, recorded(&divided, seed, STIMULI));
                assert!(
                    differs.is_none(),
                    "chain {at}, seed {seed}: {}",
                    differs.unwrap_or_default()
                );
            }
        }
    }
}

/// The reasons for which a chain stays on one worker.
fn why_not(chain: Chain) -> String {
    let (divided, found) = divided(chain);
    assert_eq!((divided.workers, found.verdict), (1, Verdict::OneWorker));
    found.why_not.join("; ")
}

/// Behind a function that may write a port, nothing decides the worker of an entry for the port.
#[test]
fn fields_that_functions_write_decide_no_worker() {
    let keeping = library("crates/testkit/tests/native/keeping.c");
    let chain = |writer: &str| {
        compile(&format!(
            "native nf {writer}() from \"{keeping}\";
             nf limit() {{
               state n: u32 per (u16) = 0, capacity 1 k;
               match {{
                 forward and has l4 => {{
                   n[l4.dport] += 1;
                   if n[l4.dport] > 3 {{ drop \"often\"; }}
                   output;
                 }}
                 else => output;
               }}
             }}
             chain c {{
               interface lan {{ behind 10.0.0.0/8 }}
               interface wan;
               path lan <-> {writer}() <-> limit() <-> wan;
             }}"
        ))
    };
    assert_eq!(divided(chain("ttl_writer")).1.verdict, Verdict::Split);
    assert_eq!(divided(chain("port_writer")).1.verdict, Verdict::OneWorker);
}

#[test]
fn other_functions_stay_on_one_worker() {
    assert_eq!(
        why_not(five("path lan <-> mazunat5(public: 203.0.113.1, ports: 1024..1030) <-> wan;")),
        "mazunat5 is native code that does not say what it keeps"
    );
    assert_eq!(
        why_not(effects::chain("herald() <-> wall()")),
        "wall takes events of herald, which is native code, and the worker of the state that the \
         handler changes is not known"
    );
    let keeping = library("crates/testkit/tests/native/keeping.c");
    let one = |name: &str| {
        compile(&format!(
            "native nf {name}() from \"{keeping}\"; \
             chain c {{ {INTERFACES} path lan <-> {name}() <-> wan; }}"
        ))
    };
    assert_eq!(
        why_not(one("wrapper")),
        "wrapper is native code that may change other bytes than fields"
    );
    assert_eq!(
        why_not(one("sender")),
        "sender is native code that sends packets and does not keep connections"
    );
}
