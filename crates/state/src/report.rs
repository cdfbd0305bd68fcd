//! Reports of a store: its counters and entries.
#![expect(
    clippy::indexing_slicing,
    reason = "functions, tables and states have the numbers that the store gave them"
)]

use crate::dependents::Dependents;
use crate::handle::TableRef;
use crate::store::Store;
use crate::table::root_in;
use crate::tables::Tables;
use braid_ir::engine::{StateEntry, TableCounters};

impl<D: Dependents> Store<D> {
    /// The counters of a function's tables, by number, with the sum over all shards.
    #[must_use]
    pub fn counters(&self, node: u16) -> Vec<TableCounters> {
        let function = &self.tables().functions[usize::from(node)];
        let states = function.model.state.len();
        let mut counters = vec![TableCounters::default(); states];
        let tables = &self.tables().all[function.first..][..usize::from(function.shards) * states];
        for table in tables {
            let sum = &mut counters[table.site.state.index()];
            sum.entries += table.len();
            sum.created += table.counters.created;
            sum.refused += table.counters.refused;
            sum.evicted += table.counters.evicted;
            sum.expired += table.counters.expired;
        }
        counters
    }

    /// All entries of all shards, in the order of function, table and creation.
    #[must_use]
    pub fn report(&self) -> Vec<StateEntry> {
        report(self.tables(), self.dependents())
    }
}

/// All entries of all shards, in the order of function, table and creation, with the counts of
/// their dependents.
#[must_use]
pub fn report(tables: &Tables, dependents: &impl Dependents) -> Vec<StateEntry> {
    let nodes = (0..).zip(&tables.functions);
    let states = nodes.flat_map(|(node, function)| {
        (0..function.model.state.len()).map(move |state| (node, state))
    });
    let entries = states.flat_map(|(node, state)| tables.ordered(node, state));
    entries.map(|(at, place)| describe(tables, dependents, (TableRef::at(at), place))).collect()
}

/// An entry with its current values, including the counts of its dependents.
#[must_use]
pub fn describe(
    tables: &Tables,
    dependents: &impl Dependents,
    (at, place): (TableRef, u32),
) -> StateEntry {
    let table = tables.at(at);
    let model = &tables.functions[usize::from(table.site.node)].model;
    let decl = &model.state[table.site.state.index()];
    let (up, root) = (&tables.all[table.site.root], root_in(table.head(place)));
    let (seen, words) = current(tables, dependents, (at, place));
    let slots = decl.slots.iter().zip(table.slots.unpack(&words));
    StateEntry {
        node: table.site.node,
        table: decl.name.clone(),
        shard: table.site.shard,
        key: table.keys.describe(table.key(place)),
        slots: slots.map(|((name, ty), value)| (name.clone(), ty.kind, value)).collect(),
        created_ns: table.cold(place).created_ns,
        last_seen_ns: seen,
        expires_ns: up.deadline(root, seen),
    }
}

/// When an entry's group was last seen (ns), and the entry's slots, both with the counts of its
/// dependents.
pub(crate) fn current(
    tables: &Tables,
    dependents: &impl Dependents,
    (at, place): (TableRef, u32),
) -> (u64, Vec<u64>) {
    let table = tables.at(at);
    let (up, root) = (&tables.all[table.site.root], root_in(table.head(place)));
    let group = (table.site.root, up.number(root));
    let seen = up.last_seen(root).max(dependents.last_used(group).unwrap_or(0));
    let mut words = table.slots(place).to_vec();
    if table.is_lazy {
        dependents.settle_copy((at, place), group, &table.slots, &mut words);
    }
    (seen, words)
}
