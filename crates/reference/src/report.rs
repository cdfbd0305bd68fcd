//! Reports of the engine: counters and state.

use super::instance::Instance;
use super::table::{Entry, EntryRef};
use braid_ir::engine::{Counters, StateEntry};
use braid_ir::model::{Granularity, Kind, StateDecl, StateId, Word};
use braid_ir::show::field_kind;

/// All counters: `chain` holds those of the chain as a whole.
pub(super) fn counters(nodes: &[Instance], chain: &Counters) -> Counters {
    let nodes = nodes.iter().map(|instance| {
        let mut counters = instance.counters.clone();
        for (index, table) in counters.tables.iter_mut().enumerate() {
            table.entries = instance.shards.iter().map(|shard| shard.tables[index].len()).sum();
        }
        counters
    });
    Counters { nodes: nodes.collect(), ..chain.clone() }
}

/// All entries, by function, table and creation.
pub(super) fn state(nodes: &[Instance]) -> Vec<StateEntry> {
    let mut all = Vec::new();
    for (node, instance) in (0..).zip(nodes) {
        for state in (0..).map(StateId).take(instance.model.state.len()) {
            let mut entries: Vec<_> = (0..instance.shards.len())
                .flat_map(|shard| {
                    let table = &instance.shards[shard].tables[state.index()];
                    table.iter().map(move |(id, entry)| (id, shard, entry))
                })
                .collect();
            entries.sort_unstable_by_key(|(id, ..)| *id);
            all.extend(entries.into_iter().map(|(id, shard, entry)| {
                report_entry(node, instance, EntryRef { state, id }, shard, entry)
            }));
        }
        for (shard, part) in (0..).zip(&instance.shards) {
            let function = part.native.iter();
            all.extend(function.flat_map(|f| braid_native::bridge::report(node, shard, f)));
        }
    }
    all
}

fn report_entry(
    node: u16,
    instance: &Instance,
    at: EntryRef,
    shard: usize,
    entry: &Entry,
) -> StateEntry {
    let decl = &instance.model.state[at.state.index()];
    let root = instance.root(at, shard);
    let root_entry = instance.table(root.state, shard).get(root.id);
    let slots = decl.slots.iter().zip(&entry.slots);
    StateEntry {
        node,
        table: decl.name.clone(),
        shard: u16::try_from(shard).unwrap_or(u16::MAX),
        key: key_parts(decl, &entry.key),
        slots: slots.map(|((name, ty), value)| (name.clone(), ty.kind, *value)).collect(),
        created_ns: entry.created_ns,
        last_seen_ns: root_entry.map_or(entry.last_seen_ns, |root| root.last_seen_ns),
        expires_ns: instance.deadline(root, shard),
    }
}

/// The parts of a key with their kinds.
fn key_parts(decl: &StateDecl, key: &[Word]) -> Vec<(Kind, Word)> {
    let kinds: Vec<Kind> = match &decl.granularity {
        Granularity::Global => Vec::new(),
        Granularity::Key(types) => types.iter().map(|ty| ty.kind).collect(),
        Granularity::Fields(fields) => fields.iter().map(|field| field_kind(*field)).collect(),
        Granularity::Flow | Granularity::Biflow => {
            let addr = if key.first() == Some(&4) { Kind::Ip4 } else { Kind::Ip6 };
            vec![Kind::Uint, addr, addr, Kind::Uint, Kind::Port, Kind::Port]
        }
    };
    kinds.into_iter().zip(key.iter().copied()).collect()
}
