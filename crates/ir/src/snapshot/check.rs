//! Checks that a snapshot fits its chain, so that an engine can take it without further checks.

use super::data::{
    EntryState, FunctionState, ImportError, PoolState, Snapshot, TableState, Totals,
};
use super::fresh::quotas;
use super::schema::{is_fifo, is_pool, key_widths, root_of};
use crate::chain::{Chain, HOP_LIMIT, Node};
use crate::model::{Model, StateDecl, StateId, Word};
use crate::show::max_of;
use crate::value::{IntervalSet, ParamValue};
use std::collections::HashSet;

/// A contradiction, with the name of the part if the function alone does not say it.
type Wrong = (String, String);

/// The largest count. Sums of counts stay far below 2^64.
const MOST_COUNT: u64 = 1 << 56;

/// Checks a snapshot whose functions, tables and other parts are those of the chain.
pub(super) fn check(snapshot: &Snapshot, chain: &Chain) -> Result<(), ImportError> {
    if !counts(snapshot).all(|count| count <= MOST_COUNT) {
        let (part, why) = (chain.name.clone(), "a count is too large".to_owned());
        return Err(ImportError::Damaged { part, why });
    }
    for (state, node) in snapshot.functions.iter().zip(&chain.nodes) {
        check_function(state, node, chain.workers.max(1)).map_err(|(part, why)| {
            ImportError::Damaged { part: format!("{}.{part}", node.name), why }
        })?;
    }
    Ok(())
}

/// All counts of packets and bytes.
fn counts(snapshot: &Snapshot) -> impl Iterator<Item = u64> {
    let Totals { packets_in, created, copied, consumed, out, lost } = &snapshot.totals;
    let own = [*packets_in, *created, *copied, *consumed].into_iter();
    let own = own.chain(out.values().chain(lost.values()).copied());
    own.chain(snapshot.functions.iter().flat_map(|function| {
        let rows = function.rows.iter().flat_map(|row| {
            let drops = row.drops.values().copied();
            drops.chain([row.traffic.packets, row.traffic.bytes])
        });
        let tables = function
            .tables
            .iter()
            .map(|table| table.counters)
            .flat_map(|table| [table.created, table.refused, table.evicted, table.expired]);
        let rules = function.params.iter().flat_map(|param| &param.rule_counts).copied();
        let sides = [function.forward, function.backward];
        let sides = sides.into_iter().flat_map(|traffic| [traffic.packets, traffic.bytes]);
        rows.chain(tables).chain(rules).chain(sides).chain([function.background_faults])
    }))
}

fn check_function(state: &FunctionState, node: &Node, workers: u16) -> Result<(), Wrong> {
    let model = &*node.model;
    for (param, decl) in state.params.iter().zip(&model.params) {
        let wrong = |why| (decl.name.clone(), why);
        param.value.check(&decl.ty).map_err(wrong)?;
        if let ParamValue::Rules(rules) = &param.value
            && param.rule_counts.len() != rules.rules.len() + 1
        {
            return Err(wrong("its rules and their counts differ in number".to_owned()));
        }
    }
    for (at, table) in (0..).map(StateId).zip(&state.tables).filter(|_| !state.stays) {
        check_table(state, model, at).map_err(|why| (table.name.clone(), why))?;
    }
    for queue in &state.queues {
        if queue.packets.iter().any(|held| held.worker >= workers || held.hops > HOP_LIMIT) {
            return Err((queue.name.clone(), "a held packet does not fit".to_owned()));
        }
    }
    if state.stays { Ok(()) } else { check_pools(state) }
}

#[expect(
    clippy::indexing_slicing,
    reason = "the snapshot has the tables of its chain, and the caller names one"
)]
fn check_table(state: &FunctionState, model: &Model, at: StateId) -> Result<(), String> {
    let (table, decl) = (&state.tables[at.index()], &model.state[at.index()]);
    let root = root_of(model, at);
    let roots = (root != at).then(|| &state.tables[root.index()]);
    let widths = key_widths(&decl.granularity);
    let mut known = HashSet::with_capacity(table.entries.len());
    for entry in &table.entries {
        check_entry(entry, decl, &widths, state.shards.len())?;
        check_root(entry, roots)?;
        if !known.insert((entry.shard, &entry.key)) {
            return Err("two entries have the same key".to_owned());
        }
    }
    Ok(())
}

fn check_entry(
    entry: &EntryState,
    decl: &StateDecl,
    widths: &[u16],
    shards: usize,
) -> Result<(), String> {
    let fits = |value: &Word, width: u16| *value <= max_of(width);
    let key = entry.key.len() == widths.len()
        && entry.key.iter().zip(widths).all(|(part, width)| fits(part, *width));
    let slots = entry.slots.len() == decl.slots.len()
        && entry.slots.iter().zip(&decl.slots).all(|(slot, (_, ty))| fits(slot, ty.width));
    let shard = usize::from(entry.shard) < if decl.sharded { shards } else { 1 }
        && usize::from(entry.creator) < shards;
    match (key, slots, shard) {
        (true, true, true) => Ok(()),
        (false, ..) => Err("a key does not fit".to_owned()),
        (_, false, _) => Err("a slot does not fit".to_owned()),
        (.., false) => Err("an entry belongs to no shard".to_owned()),
    }
}

/// Checks that an entry has a root exactly if it needs one, in the same shard.
fn check_root(entry: &EntryState, roots: Option<&TableState>) -> Result<(), String> {
    let shard = match (entry.root, roots) {
        (None, None) => return Ok(()),
        (Some(at), Some(roots)) => usize::try_from(at).ok().and_then(|at| roots.entries.get(at)),
        _ => None,
    };
    match shard {
        Some(root) if root.shard == entry.shard => Ok(()),
        _ => Err("an entry lives with no other entry".to_owned()),
    }
}

fn check_pools(state: &FunctionState) -> Result<(), Wrong> {
    let count = u16::try_from(state.shards.len()).unwrap_or(u16::MAX);
    for (place, param) in state.params.iter().filter(|param| is_pool(&param.ty)).enumerate() {
        let quotas = quotas(&param.value, count);
        for (shard, members) in state.shards.iter().zip(quotas) {
            let pool = shard.pools.get(place).filter(|pool| pool.name == param.name);
            let fits = pool.is_some_and(|pool| pool_fits(pool, &members, is_fifo(&param.ty)));
            if !fits {
                return Err((param.name.clone(), "its taken and free members differ".to_owned()));
            }
        }
    }
    Ok(())
}

/// The most taken members of a pool.
const MOST_TAKEN: u128 = 1 << 28;

/// Whether each member of a pool is either taken or free, and whether taken values are ascending.
fn pool_fits(pool: &PoolState, members: &[(Word, Word)], fifo: bool) -> bool {
    let taken = IntervalSet::new(pool.taken.iter().copied());
    if taken.intervals() != pool.taken || taken.len() > MOST_TAKEN {
        return false;
    }
    if !fifo {
        return pool.free.is_empty();
    }
    let free = IntervalSet::new(pool.free.iter().copied());
    let size = |(lo, hi): &(Word, Word)| hi.checked_sub(*lo).map(|size| size.saturating_add(1));
    let listed = pool.free.iter().try_fold(0_u128, |sum, part| sum.checked_add(size(part)?));
    let all: IntervalSet = IntervalSet::new(members.iter().copied());
    listed == Some(free.len()) && without(&all, &taken) == free
}

/// The members of a set that are not in another set.
fn without(set: &IntervalSet, other: &IntervalSet) -> IntervalSet {
    let mut rest = Vec::new();
    for &(lo, hi) in set.intervals() {
        let mut from = Some(lo);
        let cut = other.intervals().iter().filter(|part| part.1 >= lo && part.0 <= hi);
        for &(cut_lo, cut_hi) in cut {
            let Some(start) = from else { break };
            if cut_lo > start {
                rest.push((start, cut_lo - 1));
            }
            from = cut_hi.checked_add(1).filter(|next| *next <= hi);
        }
        rest.extend(from.map(|start| (start, hi)));
    }
    IntervalSet::new(rest)
}
