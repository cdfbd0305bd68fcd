//! The state of the engine as data ([`braid_ir::snapshot`]).
#![expect(
    clippy::indexing_slicing,
    reason = "a transferred snapshot has the functions, tables and shards of the chain"
)]

use crate::chain_counters::ChainCounters;
use crate::compiled::Compiled;
use crate::control::{Structures, prepare};
use crate::exec_context::Functions;
use crate::executor::Executor;
use crate::held::Held;
use crate::instance::{Instance, Shard, pool_order, quotas};
use crate::moving::{self, settle};
use crate::report;
use braid_externs::Rng;
use braid_ir::chain::Chain;
use braid_ir::engine::{Counters, NodeCounters, Room};
use braid_ir::model::{Model, ParamId, ParamTy, QueueId};
use braid_ir::snapshot::{
    self, EntryState, FunctionState, HeldState, ImportError, PoolState, ShardState, Snapshot,
    Transfer, transfer,
};
use braid_native::bridge;
use braid_state::Pool;
use std::borrow::Cow;
use std::cell::Cell;

/// The pools of all shards of all functions.
type Pools = Vec<Vec<Vec<Option<Pool>>>>;

/// Copies everything that the engine holds, except flow records, programs and machine code. The
/// result is a closure that makes a snapshot from the copy.
pub(crate) fn copy(engine: &mut Compiled, room: Room) -> impl FnOnce() -> Snapshot + Send + use<> {
    let tables = moving::copy(engine, room, None);
    let mut snapshot = begin(engine);
    let instances = &engine.executor.functions.instances;
    let models: Vec<_> = instances.iter().map(|instance| instance.model.clone()).collect();
    let of = |shard: &Shard| shard.pools.clone();
    let pools: Pools = instances.iter().map(|one| one.shards.iter().map(of).collect()).collect();
    move || {
        let parts = snapshot.functions.iter_mut().zip(&models).zip(&pools);
        for (node, ((state, model), pools)) in (0..).zip(parts) {
            fill(state, braid_state::entries(&tables, node), model, pools.iter());
        }
        snapshot
    }
}

/// Everything that the engine holds, except flow records, programs and machine code, and the
/// entries and pools of the functions that stay.
pub(crate) fn outline(engine: &mut Compiled, staying: &[u16]) -> Snapshot {
    settle(engine, usize::MAX);
    let mut snapshot = begin(engine);
    let Functions { store, instances, .. } = &engine.executor.functions;
    for (node, (state, instance)) in (0..).zip(snapshot.functions.iter_mut().zip(instances)) {
        state.stays = staying.contains(&node);
        if !state.stays {
            let pools = instance.shards.iter().map(|shard| &shard.pools);
            let entries = braid_state::entries(store.tables(), node);
            fill(state, entries, &instance.model, pools);
        }
    }
    snapshot
}

/// Adds the entries and pools of a function.
fn fill<'a>(
    state: &mut FunctionState,
    tables: Vec<Vec<EntryState>>,
    model: &Model,
    pools: impl Iterator<Item = &'a Vec<Option<Pool>>>,
) {
    for (table, entries) in state.tables.iter_mut().zip(tables) {
        table.entries = entries;
    }
    for (shard, pools) in state.shards.iter_mut().zip(pools) {
        let pools = model.params.iter().zip(pools);
        let pools = pools.filter_map(|(decl, pool)| {
            let pool = pool.as_ref()?;
            Some(PoolState { name: decl.name.clone(), taken: pool.all_taken(), free: pool.queue() })
        });
        shard.pools = pools.collect();
    }
}

/// A snapshot without entries and pools.
fn begin(engine: &mut Compiled) -> Snapshot {
    let counters = report::counters(&engine.executor, engine.cache.as_deref());
    let Executor { functions, started, waiting, .. } = &mut engine.executor;
    let mut snapshot = snapshot::begin(&functions.chain, &counters);
    (snapshot.now_ns, snapshot.started) = (functions.now, *started);
    for (node, (state, instance)) in
        (0..).zip(snapshot.functions.iter_mut().zip(&mut functions.instances))
    {
        for (id, param) in (0..).zip(&mut state.params) {
            if let Some(configured) = functions.configured.get(&(node, ParamId(id))) {
                param.configure(configured);
            }
        }
        for (timer, next) in state.timers.iter_mut().zip(&instance.timers) {
            timer.next_ns = *next;
        }
        state.shards = instance.shards.iter_mut().map(begin_shard).collect();
        let stacks = functions.stacks.save(node).unwrap_or_default();
        for (shard, stack) in state.shards.iter_mut().zip(stacks) {
            shard.stack = stack;
        }
    }
    for ((until, node, queue, _), held) in waiting {
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

fn begin_shard(shard: &mut Shard) -> ShardState {
    ShardState {
        random: shard.rng.state(),
        pools: Vec::new(),
        memory: shard.native.as_mut().and_then(braid_native::Instance::save),
        stack: None,
    }
}

/// Goes on from a snapshot.
pub(crate) fn import(engine: &mut Compiled, snapshot: Snapshot) -> Result<(), ImportError> {
    let executor = &mut engine.executor;
    if executor.started || executor.functions.now > 0 {
        return Err(ImportError::HasRun);
    }
    // Programs contain values of parameters.
    report::forget_programs(executor, engine.cache.as_deref_mut());
    let Transfer { snapshot, changes, .. } = transfer(snapshot, &executor.functions.chain)?;
    let counters = snapshot.counters(&executor.functions.chain);
    executor.functions.now = snapshot.now_ns;
    executor.started = snapshot.started;
    executor.packets_before = counters.packets_in;
    executor.chain_counters.set(&counters);
    for ((node, state), own) in (0..).zip(&snapshot.functions).zip(counters.nodes) {
        import_function(&mut executor.functions, node, state, own)?;
    }
    for (node, state) in (0..).zip(snapshot.functions) {
        for (queue, state) in (0..).map(QueueId).zip(state.queues) {
            for HeldState { until_ns, hops, worker, packet } in state.packets {
                executor.hold(node, queue, until_ns, Held { packet, hops, worker });
            }
        }
    }
    executor.tell_workshop_all();
    // The next packet looks for due work.
    executor.wake = 0;
    for change in changes {
        let node = usize::from(change.node);
        engine.change(&mut prepare(change)).map_err(|why| {
            let function = engine.executor.functions.chain.nodes[node].name.clone();
            ImportError::Refused { function, why }
        })?;
    }
    Ok(())
}

fn import_function(
    functions: &mut Functions,
    node: u16,
    state: &FunctionState,
    counters: NodeCounters,
) -> Result<(), ImportError> {
    let mut changed = Vec::new();
    let params = (0..).map(ParamId).zip(&state.params);
    for (id, param) in params.filter(|(_, param)| !param.is_secret()) {
        if functions.chain.nodes[usize::from(node)].params[id.index()] != param.value {
            functions.keep_configured(node, id);
            functions.chain.nodes[usize::from(node)].params[id.index()] = param.value.clone();
            changed.push(id);
        }
    }
    let Functions { chain, instances, store, stacks, .. } = functions;
    let (params, instance) =
        (&chain.nodes[usize::from(node)].params, &mut instances[usize::from(node)]);
    for id in changed {
        let value = &params[id.index()];
        instance.take_value(id, value, &mut Structures::of(value));
        chain.steering.change(node, id, value);
    }
    for (rules, param) in instance.rules.iter_mut().zip(&state.params) {
        if let Some(rules) = rules {
            rules.counts = param.rule_counts.iter().copied().map(Cell::new).collect();
        }
    }
    for (shard, state) in instance.shards.iter_mut().zip(&state.shards) {
        shard.rng = Rng::new(state.random);
    }
    bridge::resume(instance.shards.iter_mut().map(|shard| shard.native.as_mut()), state)?;
    // A worker needs its own stacks only.
    let is_used = |worker| chain.only.is_none_or(|only| only == worker);
    let shards = (0..).zip(&state.shards);
    let of_stacks =
        shards.map(|(worker, shard)| shard.stack.as_deref().filter(|_| is_used(worker)));
    stacks.restore(node, params, of_stacks).map_err(|why| {
        let function = state.name.clone();
        ImportError::Refused { function, why }
    })?;
    // Rules and tables have counters of their own.
    instance.counters = NodeCounters { rules: Default::default(), tables: Vec::new(), ..counters };
    instance.timers = state.timers.iter().map(|timer| timer.next_ns).collect();
    // Capacities and time-outs come before the entries, whose deadlines depend on them.
    store.change(node, params);
    if !state.stays {
        import_pools(instance, chain, node, state);
        store.parts().1.replace(node, &state.tables);
    }
    Ok(())
}

fn import_pools(instance: &mut Instance, chain: &Chain, node: u16, state: &FunctionState) {
    let model = instance.model.clone();
    let params = model.params.iter().zip(&chain.nodes[usize::from(node)].params).enumerate();
    let mut place = 0;
    for (at, (decl, value)) in params {
        let ParamTy::Pool(_, order) = decl.ty else { continue };
        let quotas = quotas(value, instance.shard_count());
        for ((shard, quota), state) in instance.shards.iter_mut().zip(quotas).zip(&state.shards) {
            let PoolState { taken, free, .. } = &state.pools[place];
            shard.pools[at] = Some(Pool::restored(pool_order(order), &quota, taken, free));
        }
        place += 1;
    }
}

impl Functions {
    /// Remembers the value that the chain gives a parameter, before the value changes.
    pub(crate) fn keep_configured(&mut self, node: u16, param: ParamId) {
        let value = &self.chain.nodes[usize::from(node)].params[param.index()];
        self.configured.entry((node, param)).or_insert_with(|| value.clone());
    }
}

impl ChainCounters {
    /// Takes over counters of the chain as a whole.
    fn set(&mut self, counters: &Counters) {
        let Counters { packets_in, created, copied, consumed, out, lost, drops, .. } = counters;
        (self.packets_in, self.created) = (*packets_in, *created);
        (self.copied, self.consumed) = (*copied, *consumed);
        for (number, count) in (0..).zip(&mut self.out) {
            *count = out.get(&number).copied().unwrap_or(0);
        }
        let lost = lost.iter().map(|(reason, count)| (Cow::Owned(reason.clone()), *count));
        self.lost = lost.collect();
        self.drops.clone_from(drops);
    }
}
