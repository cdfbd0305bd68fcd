//! The state moves to another engine by ownership: tables with their entries, and pools.

use crate::compiled::Compiled;
use crate::exec_context::Functions;
use crate::instance::quotas;
use braid_ir::engine::Room;
use braid_state::{MoveMutant, Tables};

/// Moves the counts of up to `most` flow records to their entries. Returns whether all records have
/// done so.
pub(crate) fn settle(engine: &mut Compiled, most: usize) -> bool {
    let (records, tables) = engine.executor.functions.store.parts();
    tables.has_mutant(MoveMutant::Unsettled) || records.settle_some(tables, most)
}

/// Copies the tables of all functions or of one, with the counts of flow records, to memory that
/// [`Tables::room`] has made.
pub(crate) fn copy(engine: &mut Compiled, room: Room, function: Option<u16>) -> Tables {
    settle(engine, usize::MAX);
    let room = room.and_then(|room| room.downcast().ok()).map(|room| *room);
    engine.executor.functions.store.tables().copy(room.unwrap_or_default(), function)
}

/// Takes over the entries and pools of functions: pairs of a function of `new` and a function of
/// `old`.
pub(crate) fn take_over(new: &mut Compiled, old: &mut Compiled, functions: &[(u16, u16)]) {
    settle(old, usize::MAX);
    let (new, old) = (&mut new.executor.functions, &mut old.executor.functions);
    new.store.parts().1.take_over(old.store.parts().1, functions);
    functions.iter().for_each(|(node, from)| take_pools(new, *node, old, *from));
}

/// Takes over the pools of a function. They get the members that this engine's chain gives them.
#[expect(
    clippy::indexing_slicing,
    reason = "callers name functions of both chains, and each parameter has a value and a pool's place"
)]
fn take_pools(new: &mut Functions, node: u16, old: &mut Functions, from: u16) {
    let (at, from) = (usize::from(node), usize::from(from));
    let (params, old_params) = (&new.chain.nodes[at].params, &old.chain.nodes[from].params);
    let (instance, old) = (&mut new.instances[at], &mut old.instances[from]);
    let count = instance.shard_count();
    for (param, decl) in instance.model.params.iter().enumerate() {
        let Some(old_param) = old.model.params.iter().position(|one| one.name == decl.name) else {
            continue;
        };
        let quotas = quotas(&params[param], count);
        let has_changed = params[param] != old_params[old_param];
        let shards = instance.shards.iter_mut().zip(&mut old.shards);
        for ((shard, old), quota) in shards.zip(quotas) {
            let pools = (&mut shard.pools[param], &mut old.pools[old_param]);
            let (Some(pool), Some(old)) = pools else { continue };
            if new.store.tables().has_mutant(MoveMutant::PoolsLeft) {
                continue;
            }
            std::mem::swap(pool, old);
            if has_changed && !new.store.tables().has_mutant(MoveMutant::MembersKept) {
                pool.set_members(&quota);
            }
        }
    }
}
