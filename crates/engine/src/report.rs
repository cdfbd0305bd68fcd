//! The counters of the chain, and how they survive a change of programs.

use crate::chain_counters::ChainCounters;
use crate::executor::Executor;
use crate::instance::Instance;
use braid_flowcache::FlowCache;
use braid_ir::engine::{Counters, NodeCounters, StateEntry};
use std::cell::Cell;
use std::collections::BTreeMap;

/// All counters of the chain.
pub(crate) fn counters(executor: &Executor, cache: Option<&FlowCache>) -> Counters {
    let Executor { functions, programs, .. } = executor;
    if let Some(cache) = cache {
        cache.settle(&programs.set, functions);
    }
    let (nodes, chain_counters) = totals(executor, cache);
    let some = |(number, count): (u16, &u64)| (*count > 0).then_some((number, *count));
    let lost = chain_counters.lost.iter();
    let shards = functions.instances.iter().flat_map(|instance| &instance.shards);
    let held = shards.flat_map(|shard| &shard.held);
    let nodes = (0..).zip(nodes).zip(&functions.instances);
    let nodes = nodes.map(|((node, counters), instance)| NodeCounters {
        tables: functions.store.counters(node),
        rules: rules(instance),
        ..counters
    });
    Counters {
        packets_in: chain_counters.packets_in,
        created: chain_counters.created,
        copied: chain_counters.copied,
        out: (0..).zip(&chain_counters.out).filter_map(some).collect(),
        consumed: chain_counters.consumed,
        held: held.sum(),
        lost: lost.map(|(reason, count)| (reason.to_string(), *count)).collect(),
        drops: chain_counters.drops,
        nodes: nodes.collect(),
    }
}

/// The state entries of tables and of native functions, by function.
pub(crate) fn state(mut entries: Vec<StateEntry>, natives: Vec<StateEntry>) -> Vec<StateEntry> {
    entries.extend(natives);
    // Native functions have no tables, so the order within each function is kept.
    entries.sort_by_key(|entry| entry.node);
    entries
}

/// All counts by function and for the chain. They include the counts of programs that cover several
/// functions.
fn totals(executor: &Executor, cache: Option<&FlowCache>) -> (Vec<NodeCounters>, ChainCounters) {
    let Executor { functions, programs, .. } = executor;
    let instances = functions.instances.iter();
    let mut nodes: Vec<_> = instances.map(|instance| instance.counters.clone()).collect();
    let mut chain_counters = executor.chain_counters.clone();
    for program in &programs.set.all {
        program.add_to(functions, &mut nodes, &mut chain_counters);
    }
    if let Some(cache) = cache {
        let counted = cache.counted();
        chain_counters.copied += counted.copied();
        counted.left().for_each(|(interface, count)| chain_counters.leave(interface, count));
        let drop = |node, row, reason: &str, count| {
            chain_counters.count_drop(node, row, reason, count);
        };
        counted.add_to(&functions.chain, &mut nodes, drop);
    }
    (nodes, chain_counters)
}

/// Removes all programs after a change of values that they contain as constants. Their counts are
/// kept.
pub(crate) fn forget_programs(executor: &mut Executor, mut cache: Option<&mut FlowCache>) {
    if let Some(cache) = cache.as_deref_mut() {
        cache.end_all(&executor.programs.set, &mut executor.functions);
    }
    let (nodes, chain_counters) = totals(executor, cache.as_deref());
    for (instance, counters) in executor.functions.instances.iter_mut().zip(nodes) {
        instance.counters = counters;
    }
    executor.chain_counters = chain_counters;
    if let Some(cache) = cache {
        cache.forget_counted();
    }
    executor.programs.clear();
}

fn rules(instance: &Instance) -> BTreeMap<u32, Vec<u64>> {
    let rules = (0..).zip(&instance.rules);
    rules
        .filter_map(|(param, rules)| {
            Some((param, rules.as_ref()?.counts.iter().map(Cell::get).collect()))
        })
        .collect()
}
