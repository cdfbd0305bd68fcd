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
use crate::report;
use braid_externs::Rng;
use braid_ir::chain::Chain;
use braid_ir::engine::{Counters, NodeCounters};
use braid_ir::model::{Model, ParamId, ParamTy, QueueId};
use braid_ir::snapshot::{
    self, FunctionState, HeldState, ImportError, PoolState, ShardState, Snapshot, Transfer,
    transfer,
};
use braid_native::bridge;
use braid_state::Pool;
use std::borrow::Cow;
use std::cell::Cell;

/// Everything that the engine holds, except flow records, programs and machine code.
pub(crate) fn export(engine: &mut Compiled) -> Snapshot {
    let counters = report::counters(&engine.executor, engine.cache.as_deref());
    let Executor { functions, started, waiting, .. } = &mut engine.executor;
    let mut snapshot = snapshot::begin(&functions.chain, &counters);
    (snapshot.now_ns, snapshot.started) = (functions.now, *started);
    for (node, (state, instance)) in
        (0..).zip(snapshot.functions.iter_mut().zip(&mut functions.instances))
    {
        for (id, param) in (0..).zip(&mut state.params) {
            let configured = functions.configured.get(&(node, ParamId(id)));
            param.configured = configured.filter(|value| **value != param.value).cloned();
        }
        let tables = braid_state::entries(&functions.store, node);
        for (table, entries) in state.tables.iter_mut().zip(tables) {
            table.entries = entries;
        }
        for (timer, next) in state.timers.iter_mut().zip(&instance.timers) {
            timer.next_ns = *next;
        }
        let model = &instance.model;
        state.shards = instance.shards.iter_mut().map(|shard| export_shard(model, shard)).collect();
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

fn export_shard(model: &Model, shard: &mut Shard) -> ShardState {
    let pools = model.params.iter().zip(&shard.pools);
    let pools = pools.filter_map(|(decl, pool)| {
        let pool = pool.as_ref()?;
        Some(PoolState { name: decl.name.clone(), taken: pool.all_taken(), free: pool.queue() })
    });
    ShardState {
        random: shard.rng.state(),
        pools: pools.collect(),
        memory: shard.native.as_mut().and_then(braid_native::Instance::save),
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
    for (id, param) in (0..).map(ParamId).zip(&state.params) {
        functions.keep_configured(node, id);
        functions.chain.nodes[usize::from(node)].params[id.index()] = param.value.clone();
    }
    let Functions { chain, instances, store, .. } = functions;
    let (params, instance) =
        (&chain.nodes[usize::from(node)].params, &mut instances[usize::from(node)]);
    for (id, value) in (0..).map(ParamId).zip(params) {
        instance.take_value(id, value, &mut Structures::of(value));
        chain.steering.change(node, id, value);
    }
    for (rules, param) in instance.rules.iter_mut().zip(&state.params) {
        if let Some(rules) = rules {
            rules.counts = param.rule_counts.iter().copied().map(Cell::new).collect();
        }
    }
    import_shards(instance, chain, node, state);
    bridge::resume(instance.shards.iter_mut().map(|shard| shard.native.as_mut()), state)?;
    // Rules and tables have counters of their own.
    instance.counters = NodeCounters { rules: Default::default(), tables: Vec::new(), ..counters };
    instance.timers = state.timers.iter().map(|timer| timer.next_ns).collect();
    // Capacities and time-outs come before the entries, whose deadlines depend on them.
    store.change(node, params);
    store.parts().1.replace(node, &state.tables);
    Ok(())
}

fn import_shards(instance: &mut Instance, chain: &Chain, node: u16, state: &FunctionState) {
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
    for (shard, state) in instance.shards.iter_mut().zip(&state.shards) {
        shard.rng = Rng::new(state.random);
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
