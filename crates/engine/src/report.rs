//! The engine's reports: counters.

use crate::chain_counters::ChainCounters;
use crate::compiled::Compiled;
use crate::instance::Instance;
use braid_ir::engine::{Counters, NodeCounters};
use std::cell::Cell;
use std::collections::BTreeMap;

impl Compiled {
    pub(crate) fn report_counters(&self) -> Counters {
        if let Some(cache) = &self.cache {
            cache.settle(&self.programs.set, &self.functions);
        }
        let (nodes, chain_counters) = self.totals();
        let some = |(number, count): (u16, &u64)| (*count > 0).then_some((number, *count));
        let lost = chain_counters.lost.iter();
        let held = self.functions.instances.iter().flat_map(|instance| &instance.held);
        let nodes = (0..).zip(nodes).zip(&self.functions.instances);
        let nodes = nodes.map(|((node, counters), instance)| NodeCounters {
            tables: self.functions.store.counters(node),
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
            lost: lost.map(|(reason, count)| ((*reason).to_owned(), *count)).collect(),
            drops: chain_counters.drops,
            nodes: nodes.collect(),
        }
    }

    /// All counts, including the counts of programs that stand for several functions.
    fn totals(&self) -> (Vec<NodeCounters>, ChainCounters) {
        let instances = self.functions.instances.iter();
        let mut nodes: Vec<_> = instances.map(|instance| instance.counters.clone()).collect();
        let mut chain_counters = self.chain_counters.clone();
        for program in &self.programs.set.all {
            program.add_to(&self.functions, &mut nodes, &mut chain_counters);
        }
        if let Some(cache) = &self.cache {
            let counted = cache.counted();
            chain_counters.copied += counted.copied();
            counted.left().for_each(|(interface, count)| chain_counters.leave(interface, count));
            let drop = |node, row, reason: &str, count| {
                chain_counters.count_drop(node, row, reason, count)
            };
            counted.add_to(&self.functions.chain, &mut nodes, drop);
        }
        (nodes, chain_counters)
    }

    /// Forgets all programs after a change of values that they contain as constants.
    pub(crate) fn forget_programs(&mut self) {
        if let Some(cache) = &mut self.cache {
            cache.end_all(&self.programs.set, &mut self.functions);
        }
        let (nodes, chain_counters) = self.totals();
        for (instance, counters) in self.functions.instances.iter_mut().zip(nodes) {
            instance.counters = counters;
        }
        self.chain_counters = chain_counters;
        if let Some(cache) = &mut self.cache {
            cache.forget_counted();
        }
        self.programs.clear();
    }
}

fn rules(instance: &Instance) -> BTreeMap<u32, Vec<u64>> {
    let rules = (0..).zip(&instance.rules);
    rules
        .filter_map(|(param, rules)| {
            Some((param, rules.as_ref()?.counts.iter().map(Cell::get).collect()))
        })
        .collect()
}
