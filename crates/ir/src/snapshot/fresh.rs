//! The snapshot of a chain before its first packet.

use super::counted::begin;
use super::data::{EntryState, FunctionState, PoolState, ShardState, Snapshot};
use super::schema::{is_fifo, is_pool};
use crate::chain::{Chain, Node};
use crate::counters::Counters;
use crate::model::{Granularity, StateDecl, Word};
use crate::value::ParamValue;
use braid_externs::Rng;
use braid_externs::pool::split;

/// The snapshot of a chain before its first packet: only the entries of global state exist.
pub(super) fn fresh(chain: &Chain) -> Snapshot {
    let mut snapshot = begin(chain, &Counters::default());
    for (position, (state, node)) in (0..).zip(snapshot.functions.iter_mut().zip(&chain.nodes)) {
        state.start(node, position, chain);
    }
    snapshot
}

impl FunctionState {
    fn start(&mut self, node: &Node, position: u16, chain: &Chain) {
        let count = node.model.shards(chain.workers);
        for (param, value) in self.params.iter_mut().zip(&node.params) {
            if let ParamValue::Rules(rules) = value {
                param.rule_counts = vec![0; rules.rules.len() + 1];
            }
        }
        for (table, decl) in self.tables.iter_mut().zip(&node.model.state) {
            if decl.granularity == Granularity::Global {
                let shards = if decl.sharded { count } else { 1 };
                table.entries =
                    (0..shards).map(|shard| global(decl, &node.params, shard)).collect();
            }
        }
        self.shards = (0..count)
            .map(|shard| ShardState {
                random: Rng::for_instance(chain.seed, position, shard).state(),
                pools: pools(node, count, usize::from(shard)),
                memory: None,
                stack: None,
            })
            .collect();
    }
}

/// The entry of global state in a shard.
fn global(decl: &StateDecl, params: &[ParamValue], shard: u16) -> EntryState {
    let slots = decl.default.iter().flatten().map(|slot| slot.value(params));
    EntryState { slots: slots.collect(), shard, creator: shard, ..EntryState::default() }
}

/// The members of a pool that each of `shards` shards gets, as intervals.
pub(super) fn quotas(value: &ParamValue, shards: u16) -> Vec<Vec<(Word, Word)>> {
    match value {
        ParamValue::Pool(members) => split(members.intervals(), shards),
        _ => vec![Vec::new(); usize::from(shards)],
    }
}

fn pools(node: &Node, shards: u16, shard: usize) -> Vec<PoolState> {
    let params = node.model.params.iter().zip(&node.params);
    let params = params.filter(|(decl, _)| is_pool(&decl.ty));
    params
        .map(|(decl, value)| PoolState {
            name: decl.name.clone(),
            taken: Vec::new(),
            free: match is_fifo(&decl.ty) {
                true => quotas(value, shards).swap_remove(shard),
                false => Vec::new(),
            },
        })
        .collect()
}
