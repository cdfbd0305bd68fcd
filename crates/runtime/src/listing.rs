//! State entries in the form of listings: if a table's function only counts, the entries of all
//! workers for one key become one entry. So do the counters of native functions.

use braid_ir::chain::Chain;
use braid_ir::engine::StateEntry;
use braid_ir::model::{Sum, Word};
use braid_ir::native::COUNTERS;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// How listings combine the values of an entry with those of other workers. `None` if they do not.
pub(crate) fn sums<'c>(chain: &'c Chain, entry: &StateEntry) -> Option<&'c [Sum]> {
    let node = chain.nodes.get(usize::from(entry.node)).filter(|_| chain.workers > 1)?;
    if node.model.native.is_some() {
        return (entry.table == COUNTERS && entry.key.is_empty()).then_some(&[Sum::Add]);
    }
    let decl = node.model.state.iter().find(|decl| decl.name == entry.table)?;
    (!decl.sums.is_empty()).then_some(&decl.sums)
}

/// Combines the entries of all workers. The combined entry has the place of the first one.
pub(crate) fn united(chain: &Chain, entries: Vec<StateEntry>) -> Vec<StateEntry> {
    let mut places = HashMap::new();
    let mut all: Vec<StateEntry> = Vec::with_capacity(entries.len());
    for entry in entries {
        if let Some(sums) = sums(chain, &entry) {
            let words: Vec<Word> = entry.key.iter().map(|(_, word)| *word).collect();
            // Each counter of a native function is an entry, whose value has the counter's name.
            let first = entry.slots.first().map(|(name, ..)| name.clone());
            match places.entry((entry.node, entry.table.clone(), first, words)) {
                Entry::Occupied(place) => {
                    #[expect(clippy::indexing_slicing, reason = "the map has places in `all`")]
                    add(&mut all[*place.get()], &entry, sums);
                    continue;
                }
                Entry::Vacant(place) => drop(place.insert(all.len())),
            }
        }
        all.push(entry);
    }
    all
}

/// Adds an entry to another one for the same key.
fn add(to: &mut StateEntry, entry: &StateEntry, sums: &[Sum]) {
    to.created_ns = to.created_ns.min(entry.created_ns);
    to.last_seen_ns = to.last_seen_ns.max(entry.last_seen_ns);
    // An entry that never expires counts as the last to expire.
    to.expires_ns = to.expires_ns.zip(entry.expires_ns).map(|(a, b)| a.max(b));
    for (((_, _, to), (_, _, word)), sum) in to.slots.iter_mut().zip(&entry.slots).zip(sums) {
        *to = match sum {
            Sum::Add => to.saturating_add(*word),
            Sum::First => (*to).min(*word),
            Sum::Last => (*to).max(*word),
        };
    }
}
