//! What an engine says about itself: counters and state.

use crate::Compiled;
use braid_ir::chain::Chain;
use braid_ir::engine::{Counters, StateEntry};
use braid_ir::model::{Granularity, Kind, RowId, StateDecl, StateId, Word};
use braid_ir::show::field_kind;
use std::collections::BTreeMap;

/// What is counted for the chain as a whole.
pub(crate) struct Tally {
    pub(crate) packets_in: u64,
    pub(crate) created: u64,
    pub(crate) copied: u64,
    pub(crate) consumed: u64,
    /// By interface.
    out: Vec<u64>,
    lost: BTreeMap<&'static str, u64>,
    drops: BTreeMap<(u16, u32, String), u64>,
}

impl Tally {
    pub(crate) fn new(chain: &Chain) -> Self {
        Self {
            packets_in: 0,
            created: 0,
            copied: 0,
            consumed: 0,
            out: vec![0; chain.interfaces.len()],
            lost: BTreeMap::new(),
            drops: BTreeMap::new(),
        }
    }

    /// A packet leaves by an interface.
    pub(crate) fn leave(&mut self, interface: u16) {
        self.out[usize::from(interface)] += 1;
    }

    /// A packet is lost for a reason.
    pub(crate) fn lose(&mut self, reason: &'static str) {
        *self.lost.entry(reason).or_default() += 1;
    }

    /// A packet is dropped at a row of a function.
    pub(crate) fn count_drop(&mut self, node: u16, row: RowId, reason: &str) {
        *self.drops.entry((node, row.0, reason.to_owned())).or_default() += 1;
    }
}

impl Compiled {
    pub(crate) fn report_counters(&self) -> Counters {
        let nodes = self.nodes.iter().map(|instance| {
            let mut counters = instance.counters.clone();
            counters.tables.clone_from(&instance.tables.counters);
            for (state, table) in (0..).map(StateId).zip(&mut counters.tables) {
                table.entries = instance.tables.entries(state);
            }
            counters
        });
        let some = |(number, count): (u16, &u64)| (*count > 0).then_some((number, *count));
        let lost = self.tally.lost.iter();
        Counters {
            packets_in: self.tally.packets_in,
            created: self.tally.created,
            copied: self.tally.copied,
            out: (0..).zip(&self.tally.out).filter_map(some).collect(),
            consumed: self.tally.consumed,
            held: self.nodes.iter().flat_map(|instance| &instance.held).sum(),
            lost: lost.map(|(reason, count)| ((*reason).to_owned(), *count)).collect(),
            drops: self.tally.drops.clone(),
            nodes: nodes.collect(),
        }
    }

    pub(crate) fn report_state(&self) -> Vec<StateEntry> {
        let mut all = Vec::new();
        for (node, instance) in (0..).zip(&self.nodes) {
            let params = &self.chain.nodes[usize::from(node)].params;
            for (state, decl) in (0..).map(StateId).zip(&instance.model.state) {
                let entries = instance.tables.list(params, state).into_iter();
                all.extend(entries.map(|(_, shard, entry, last_seen_ns, expires_ns)| StateEntry {
                    node,
                    table: decl.name.clone(),
                    shard: u16::try_from(shard).unwrap_or(u16::MAX),
                    key: key_parts(decl, &entry.key),
                    slots: slots(decl, &entry.slots),
                    created_ns: entry.created_ns,
                    last_seen_ns,
                    expires_ns,
                }));
            }
        }
        all
    }
}

fn slots(decl: &StateDecl, values: &[Word]) -> Vec<(String, Kind, Word)> {
    let slots = decl.slots.iter().zip(values);
    slots.map(|((name, ty), value)| (name.clone(), ty.kind, *value)).collect()
}

/// The parts of a key with what they denote.
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
