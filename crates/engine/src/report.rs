//! The engine's reports: counters.

use crate::compiled::Compiled;
use crate::instance::Instance;
use crate::tally::Tally;
use braid_ir::engine::{Counters, NodeCounters};
use std::cell::Cell;
use std::collections::BTreeMap;

impl Compiled {
    pub(crate) fn report_counters(&self) -> Counters {
        if let Some(cache) = &self.cache {
            cache.settle(&self.programs.set, &self.functions);
        }
        let (nodes, tally) = self.totals();
        let some = |(number, count): (u16, &u64)| (*count > 0).then_some((number, *count));
        let lost = tally.lost.iter();
        let held = self.functions.instances.iter().flat_map(|instance| &instance.held);
        let nodes = (0..).zip(nodes).zip(&self.functions.instances);
        let nodes = nodes.map(|((node, counters), instance)| NodeCounters {
            tables: self.functions.store.counters(node),
            rules: rules(instance),
            ..counters
        });
        Counters {
            packets_in: tally.packets_in,
            created: tally.created,
            copied: tally.copied,
            out: (0..).zip(&tally.out).filter_map(some).collect(),
            consumed: tally.consumed,
            held: held.sum(),
            lost: lost.map(|(reason, count)| ((*reason).to_owned(), *count)).collect(),
            drops: tally.drops,
            nodes: nodes.collect(),
        }
    }

    /// All counts, including those that programs count for several functions at once.
    fn totals(&self) -> (Vec<NodeCounters>, Tally) {
        let instances = self.functions.instances.iter();
        let mut nodes: Vec<_> = instances.map(|instance| instance.counters.clone()).collect();
        let mut tally = self.tally.clone();
        for program in &self.programs.set.all {
            program.add_to(&self.functions, &mut nodes, &mut tally);
        }
        if let Some(cache) = &self.cache {
            let counted = cache.counted();
            tally.copied += counted.copied();
            counted.left().for_each(|(interface, count)| tally.leave(interface, count));
            let drop = |node, row, reason: &str, count| tally.count_drop(node, row, reason, count);
            counted.add_to(&self.functions.chain, &mut nodes, drop);
        }
        (nodes, tally)
    }

    /// Forgets all programs after a change of values that they contain as constants.
    pub(crate) fn forget_programs(&mut self) {
        if let Some(cache) = &mut self.cache {
            cache.end_all(&self.programs.set, &mut self.functions);
        }
        let (nodes, tally) = self.totals();
        for (instance, counters) in self.functions.instances.iter_mut().zip(nodes) {
            instance.counters = counters;
        }
        self.tally = tally;
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
