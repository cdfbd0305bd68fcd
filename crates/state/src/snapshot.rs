//! The entries of a store as data ([`braid_ir::snapshot`]).
#![expect(
    clippy::indexing_slicing,
    reason = "functions, tables and shards have the numbers that the store gave them"
)]

use crate::handle::TableRef;
use crate::memory::NONE;
use crate::report::current;
use crate::table::{Fresh, root_in};
use crate::tables::Tables;
use braid_ir::engine::TableCounters;
use braid_ir::snapshot::{EntryState, TableState};
use std::collections::HashMap;

/// The entries of a function, by table: each table's entries in the order of their creation.
/// Dependents have no counts that are not in the entries.
#[must_use]
pub fn entries(tables: &Tables, node: u16) -> Vec<Vec<EntryState>> {
    let by_state: Vec<_> = (0..states(tables, node)).map(|at| tables.ordered(node, at)).collect();
    let places = by_state.iter().flat_map(|entries| (0_u64..).zip(entries));
    let places: HashMap<(usize, u32), u64> = places.map(|(at, entry)| (*entry, at)).collect();
    let describe = |entry: (usize, u32)| {
        let (mut made, root) = describe(tables, entry);
        made.root = root.and_then(|root| places.get(&root).copied());
        made
    };
    by_state.into_iter().map(|all| all.into_iter().map(describe).collect()).collect()
}

fn states(tables: &Tables, node: u16) -> usize {
    tables.functions[usize::from(node)].model.state.len()
}

/// An entry, and the entry that it lives with.
fn describe(tables: &Tables, (at, place): (usize, u32)) -> (EntryState, Option<(usize, u32)>) {
    let table = &tables.all[at];
    let (seen, words) = current(tables, &(), (TableRef::at(at), place));
    let root = (!table.site.is_root).then(|| (table.site.root, root_in(table.head(place))));
    let made = EntryState {
        key: table.keys.unpack(table.key(place)).collect(),
        slots: table.slots.unpack(&words).collect(),
        shard: table.site.shard,
        creator: table.cold(place).creator,
        created_ns: table.cold(place).created_ns,
        last_seen_ns: if root.is_some() { 0 } else { seen },
        root: None,
    };
    (made, root)
}

impl Tables {
    /// Replaces all entries and counters of a function. The entries fit the function
    /// ([`braid_ir::snapshot::transfer`]), and nothing depends on earlier entries.
    pub fn replace(&mut self, node: u16, states: &[TableState]) {
        let function = &self.functions[usize::from(node)];
        let (first, shards) = (function.first, usize::from(function.shards));
        for table in &mut self.all[first..][..shards * states.len()] {
            table.counters = TableCounters::default();
            let places: Vec<u32> = table.places().collect();
            for place in places {
                let spot = table.cold(place).spot;
                table.remove((place, table.number(place)), spot, &self.hash);
            }
        }
        // An entry's id comes from its table and its place in the list, because roots come first.
        let mut ids = Vec::new();
        for (state, table) in states.iter().enumerate() {
            self.all[first + state].counters = table.counters;
            ids.push(self.ids);
            self.ids += table.entries.len() as u64;
        }
        let is_root = |state: &usize| states[*state].lives_with.is_none();
        let (roots, others): (Vec<_>, Vec<_>) = (0..states.len()).partition(is_root);
        let mut places: HashMap<(usize, u64), u32> = HashMap::new();
        for state in roots.into_iter().chain(others) {
            for (at, entry) in (0_u64..).zip(&states[state].entries) {
                let table = first + usize::from(entry.shard) * states.len() + state;
                let root = entry
                    .root
                    .and_then(|root| places.get(&(self.all[table].site.root, root)).copied());
                let place = self.put_back(table, entry, (ids[state] + at, root));
                if entry.root.is_none() {
                    places.insert((table, at), place);
                }
            }
        }
        self.find_next();
    }

    /// Adds an entry with its id, and the place of the root of its group if it is no root itself.
    fn put_back(&mut self, at: usize, entry: &EntryState, (id, root): (u64, Option<u32>)) -> u32 {
        let next = root.map_or((NONE, 0), |root| self.join(at, root, None));
        let Self { all, hash, .. } = self;
        let table = &mut all[at];
        let (mut key, mut slots) = (vec![0; table.keys.words()], vec![0; table.slots.words()]);
        table.keys.pack(&entry.key, &mut key);
        table.slots.pack(&entry.slots, &mut slots);
        let fresh = Fresh {
            key: &key,
            slots: &slots,
            absent: table.index.absent(hash.hash(&key)),
            now: entry.created_ns,
            id,
            shard: entry.creator,
            root,
            next,
        };
        let (place, _, number) = table.insert(&fresh, hash);
        if root.is_none() {
            table.renew(place, entry.last_seen_ns);
            table.schedule(number, entry.last_seen_ns);
        }
        place
    }
}
