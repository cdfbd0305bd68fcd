//! The state of the engine as data ([`braid_ir::snapshot`]).

use crate::control;
use crate::engine::Reference;
use crate::instance::{Instance, Shard, pool_order};
use crate::report;
use crate::schedule::Held;
use crate::table::{Entry, EntryRef, Table};
use braid_externs::Rng;
use braid_externs::pool::Pool;
use braid_ir::model::{Model, ParamId, ParamTy, QueueId, StateId};
use braid_ir::snapshot::{
    self, EntryState, FunctionState, HeldState, ImportError, PoolState, ShardState, Snapshot,
    Transfer, transfer,
};
use braid_native::bridge;
use std::collections::{BTreeMap, HashMap};

/// Everything that the engine holds.
pub(crate) fn export(engine: &mut Reference) -> Snapshot {
    let mut chain = engine.chain.clone();
    for (node, instance) in chain.nodes.iter_mut().zip(&engine.nodes) {
        node.params.clone_from(&instance.params);
    }
    let mut snapshot = snapshot::begin(&chain, &report::counters(&engine.nodes, &engine.counters));
    (snapshot.now_ns, snapshot.started) = (engine.now, engine.started);
    for ((state, instance), node) in
        snapshot.functions.iter_mut().zip(&mut engine.nodes).zip(&engine.chain.nodes)
    {
        for (param, configured) in state.params.iter_mut().zip(&node.params) {
            param.configure(configured);
        }
        export_tables(instance, state);
        let model = &instance.model;
        state.shards = instance.shards.iter_mut().map(|shard| export_shard(model, shard)).collect();
        for (timer, next) in state.timers.iter_mut().zip(&instance.timers) {
            timer.next_ns = *next;
        }
    }
    for ((until, node, queue, _), held) in &engine.waiting {
        let Held { packet, hops, worker } = held;
        let queue = &mut snapshot.functions[usize::from(*node)].queues[queue.index()];
        queue.packets.push(HeldState {
            until_ns: *until,
            hops: *hops,
            worker: *worker,
            packet: packet.clone(),
        });
    }
    snapshot
}

fn export_tables(instance: &Instance, state: &mut FunctionState) {
    // The place of each entry in the list of its table.
    let mut places = HashMap::new();
    let mut all = Vec::new();
    for table in (0..).map(StateId).take(state.tables.len()) {
        let mut entries: BTreeMap<u64, (usize, &Entry)> = BTreeMap::new();
        for (shard, part) in instance.shards.iter().enumerate() {
            entries.extend(part.tables[table.index()].iter().map(|(id, e)| (id, (shard, e))));
        }
        places.extend((0_u64..).zip(entries.keys()).map(|(place, id)| (*id, place)));
        all.push(entries);
    }
    for (table, entries) in (0..).map(StateId).zip(all) {
        let describe = |(id, (shard, entry)): (u64, (usize, &Entry))| {
            let root =
                entry.lives_with.map(|_| instance.root(EntryRef { state: table, id }, shard));
            EntryState {
                key: entry.key.to_vec(),
                slots: entry.slots.clone(),
                shard: shard as u16,
                creator: entry.shard as u16,
                created_ns: entry.created_ns,
                last_seen_ns: if root.is_some() { 0 } else { entry.last_seen_ns },
                root: root.and_then(|root| places.get(&root.id).copied()),
            }
        };
        state.tables[table.index()].entries = entries.into_iter().map(describe).collect();
    }
}

fn export_shard(model: &Model, shard: &mut Shard) -> ShardState {
    let pools = shard.pools.iter().map(|(param, pool)| PoolState {
        name: model.params[param.index()].name.clone(),
        taken: pool.all_taken(),
        free: pool.queue(),
    });
    ShardState {
        random: shard.rng.state(),
        pools: pools.collect(),
        memory: shard.native.as_mut().and_then(braid_native::Instance::save),
        stack: shard.stack.as_ref().map(|stack| stack.save(0)),
    }
}

/// Goes on from a snapshot.
pub(crate) fn import(engine: &mut Reference, snapshot: Snapshot) -> Result<(), ImportError> {
    if engine.started || engine.now > 0 {
        return Err(ImportError::HasRun);
    }
    let Transfer { snapshot, changes, .. } = transfer(snapshot, &engine.chain)?;
    let counters = snapshot.counters(&engine.chain);
    (engine.now, engine.started) = (snapshot.now_ns, snapshot.started);
    for (((node, instance), state), own) in
        (0..).zip(&mut engine.nodes).zip(&snapshot.functions).zip(&counters.nodes)
    {
        instance.counters = own.clone();
        for (value, param) in instance.params.iter_mut().zip(&state.params) {
            if !param.is_secret() {
                value.clone_from(&param.value);
            }
        }
        for (param, value) in (0..).map(ParamId).zip(&instance.params) {
            engine.chain.steering.change(node, param, value);
        }
        import_tables(instance, state, &mut engine.ids);
        import_shards(instance, state);
        let natives = instance.shards.iter_mut().map(|shard| shard.native.as_mut());
        bridge::resume(natives, state)?;
        import_stacks(instance, state)?;
        instance.timers = state.timers.iter().map(|timer| timer.next_ns).collect();
    }
    (engine.counters, engine.counters.nodes) = (counters, Vec::new());
    for (node, state) in (0..).zip(snapshot.functions) {
        control::reschedule(&engine.nodes[usize::from(node)], node, &mut engine.expiries);
        for (queue, state) in (0..).map(QueueId).zip(state.queues) {
            for HeldState { until_ns, hops, worker, packet } in state.packets {
                engine.hold(node, queue, until_ns, Held { packet, hops, worker });
            }
        }
    }
    for change in &changes {
        control::change(&mut engine.nodes, &mut engine.expiries, change).map_err(|why| {
            let function = engine.chain.nodes[usize::from(change.node)].name.clone();
            ImportError::Refused { function, why }
        })?;
    }
    Ok(())
}

fn import_tables(instance: &mut Instance, state: &FunctionState, ids: &mut u64) {
    for shard in &mut instance.shards {
        shard.tables.fill(Table::default());
    }
    // Entries get their numbers table by table, in the order of their creation.
    let first: Vec<u64> = state
        .tables
        .iter()
        .map(|table| {
            let first = *ids;
            *ids += table.entries.len() as u64;
            first
        })
        .collect();
    let model = instance.model.clone();
    let mut tied = Vec::new();
    for (table, part) in (0..).map(StateId).zip(&state.tables) {
        let root_table = snapshot::root_of(&model, table);
        for (id, entry) in (first[table.index()]..).zip(&part.entries) {
            let root = |at| EntryRef { state: root_table, id: first[root_table.index()] + at };
            let lives_with = entry.root.map(root);
            tied.extend(lives_with.map(|root| (entry.shard, root, EntryRef { state: table, id })));
            let shard = &mut instance.shards[usize::from(entry.shard)];
            let made = Entry {
                key: entry.key.clone().into(),
                slots: entry.slots.clone(),
                created_ns: entry.created_ns,
                last_seen_ns: entry.last_seen_ns,
                lives_with,
                tied: Vec::new(),
                shard: usize::from(entry.creator),
            };
            shard.tables[table.index()].insert(id, made);
        }
    }
    for (shard, root, member) in tied {
        let table = &mut instance.shards[usize::from(shard)].tables[root.state.index()];
        if let Some(root) = table.get_mut(root.id) {
            root.tied.push(member);
        }
    }
}

fn import_stacks(instance: &mut Instance, state: &FunctionState) -> Result<(), ImportError> {
    for (shard, saved) in instance.shards.iter_mut().zip(&state.shards) {
        if let (Some(stack), Some(saved)) = (&mut shard.stack, &saved.stack) {
            let refused = |why| ImportError::Refused { function: state.name.clone(), why };
            stack.restore(0, &instance.params, saved).map_err(refused)?;
        }
    }
    Ok(())
}

fn import_shards(instance: &mut Instance, state: &FunctionState) {
    let params = instance.model.params.iter().enumerate();
    let pools: Vec<_> = params
        .filter_map(|(at, decl)| match decl.ty {
            ParamTy::Pool(_, order) => Some((ParamId(at as u32), pool_order(order))),
            _ => None,
        })
        .collect();
    for (at, (param, order)) in pools.into_iter().enumerate() {
        let quotas = instance.pool_quotas(param);
        for ((shard, quota), state) in instance.shards.iter_mut().zip(quotas).zip(&state.shards) {
            let PoolState { taken, free, .. } = &state.pools[at];
            shard.pools.insert(param, Pool::restored(order, &quota, taken, free));
        }
    }
    for (shard, state) in instance.shards.iter_mut().zip(&state.shards) {
        shard.rng = Rng::new(state.random);
    }
}
