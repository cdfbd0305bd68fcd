//! What the store says about itself.

use crate::bugs::RecordBug;
use crate::store::Store;
use crate::table::Table;
use braid_ir::engine::{StateEntry, TableCounters};

impl Store {
    /// Counters of a function's tables, by number; shards added up.
    #[must_use]
    pub fn counters(&self, node: u16) -> Vec<TableCounters> {
        let function = &self.functions[usize::from(node)];
        let states = function.model.state.len();
        let mut counters = vec![TableCounters::default(); states];
        let tables = &self.tables[function.first..][..usize::from(function.shards) * states];
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

    /// All entries, in the order function, table, creation (over all shards).
    #[must_use]
    pub fn report(&self) -> Vec<StateEntry> {
        let mut all = Vec::new();
        for function in &self.functions {
            let states = function.model.state.len();
            for state in 0..states {
                let shards = (0..usize::from(function.shards))
                    .map(|shard| &self.tables[function.first + shard * states + state]);
                let mut entries: Vec<_> = shards
                    .flat_map(|table| table.places().map(move |place| (table, place)))
                    .map(|(table, place)| (table.cold(place).id, table, place))
                    .collect();
                entries.sort_unstable_by_key(|(id, ..)| *id);
                let entries = entries.into_iter();
                all.extend(entries.map(|(_, table, place)| self.entry(table, place)));
            }
        }
        all
    }

    pub(crate) fn entry(&self, table: &Table, place: u32) -> StateEntry {
        let model = &self.functions[usize::from(table.site.node)].model;
        let decl = &model.state[table.site.state.index()];
        let (up, root) = (&self.tables[table.site.root], table.head(place) as u32);
        let group = (table.site.root, up.number(root));
        let seen = up.last_seen(root).max(self.records.seen(group).unwrap_or(0));
        let mut words = table.slots(place).to_vec();
        if table.is_lazy && !self.has_bug(RecordBug::ReportUnsettled) {
            let state = table.site.state.index();
            self.records.bring_up((table.site.row + state, place), group, &table.slots, &mut words);
        }
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
}
