//! An instance of a model in a chain: its parameters, tables, pools, generator and counters.

use super::table::{Entry, EntryRef, Table};
use braid_externs::pool::{Order, Pool, split};
use braid_externs::{Cache, Rng};
use braid_ir::chain::Node;
use braid_ir::engine::{NodeCounters, TableCounters, Traffic, share};
use braid_ir::model::{
    Granularity, Model, ParamId, ParamTy, PoolOrder, QueueId, RowId, Setting, StateId, Word,
};
use braid_ir::value::ParamValue;
use braid_streams::Stack;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// An instance.
pub(super) struct Instance {
    pub(super) model: Arc<Model>,
    pub(super) params: Vec<ParamValue>,
    /// One shard, or one for each worker when a table is sharded. State that is not sharded is in
    /// the first.
    pub(super) shards: Vec<Shard>,
    /// The time at which each timer is due. `None` before the first packet, and past the end of
    /// time.
    pub(super) timers: Vec<Option<u64>>,
    pub(super) counters: NodeCounters,
}

/// The part of an instance that each shard has for itself.
pub(super) struct Shard {
    pub(super) tables: Vec<Table>,
    pub(super) pools: BTreeMap<ParamId, Pool>,
    pub(super) rng: Rng,
    pub(super) caches: HashMap<Option<ParamId>, Cache>,
    /// The number of packets in each queue.
    pub(super) held: Vec<u64>,
    /// The native function, if the model has one.
    pub(super) native: Option<braid_native::Instance>,
    /// The TCP stack of a stream function.
    pub(super) stack: Option<Stack>,
}

impl Instance {
    /// A new instance. `ids` numbers the entries of the whole chain.
    pub(super) fn new(node: &Node, position: u16, seed: u64, workers: u16, ids: &mut u64) -> Self {
        let model = &node.model;
        let count = model.shards(workers);
        let mut instance = Self {
            model: model.clone(),
            params: node.params.clone(),
            shards: (0..count).map(|shard| Shard::new(model, seed, position, shard)).collect(),
            timers: vec![None; model.timers.len()],
            counters: fresh_counters(model, &node.params),
        };
        instance.fill_pools();
        instance.create_globals(ids);
        instance
    }

    fn fill_pools(&mut self) {
        let model = self.model.clone();
        for (index, decl) in (0..).zip(&model.params) {
            if let ParamTy::Pool(_, order) = decl.ty {
                let id = ParamId(index);
                let quotas = self.pool_quotas(id);
                for (shard, quota) in self.shards.iter_mut().zip(quotas) {
                    shard.pools.insert(id, Pool::new(pool_order(order), &quota));
                }
            }
        }
    }

    /// For each shard, its members of a pool.
    pub(super) fn pool_quotas(&self, pool: ParamId) -> Vec<Vec<(Word, Word)>> {
        let members = match &self.params[pool.index()] {
            ParamValue::Pool(members) => members.intervals(),
            _ => &[],
        };
        split(members, self.shard_count())
    }

    /// Creates the entries of global state, which exist from the start.
    fn create_globals(&mut self, ids: &mut u64) {
        let model = self.model.clone();
        for (index, decl) in (0..).zip(&model.state) {
            if decl.granularity != Granularity::Global {
                continue;
            }
            let slots = self.default(StateId(index)).unwrap_or_default();
            let shards = if decl.sharded { self.shards.len() } else { 1 };
            for (number, shard) in self.shards[..shards].iter_mut().enumerate() {
                let entry = Entry {
                    key: Arc::new([]),
                    slots: slots.clone(),
                    created_ns: 0,
                    last_seen_ns: 0,
                    lives_with: None,
                    tied: Vec::new(),
                    shard: number,
                };
                shard.tables[index as usize].insert(*ids, entry);
                *ids += 1;
            }
        }
    }

    pub(super) fn shard_count(&self) -> u16 {
        u16::try_from(self.shards.len()).unwrap_or(u16::MAX)
    }

    /// The shard that holds a table's entries for a program that runs in this shard.
    pub(super) fn home(&self, state: StateId, shard: usize) -> usize {
        if self.model.state[state.index()].sharded { shard } else { 0 }
    }

    pub(super) fn table(&self, state: StateId, shard: usize) -> &Table {
        &self.shards[self.home(state, shard)].tables[state.index()]
    }

    pub(super) fn table_mut(&mut self, state: StateId, shard: usize) -> &mut Table {
        let home = self.home(state, shard);
        &mut self.shards[home].tables[state.index()]
    }

    pub(super) fn setting(&self, setting: Setting) -> Word {
        match setting {
            Setting::Const(value) => value,
            Setting::Param(param) => match self.params[param.index()] {
                ParamValue::Scalar(value) => value,
                _ => 0,
            },
        }
    }

    /// A setting as a time, size or count, limited to the largest 64-bit number.
    pub(super) fn setting64(&self, setting: Setting) -> u64 {
        u64::try_from(self.setting(setting)).unwrap_or(u64::MAX)
    }

    /// The slots that a table returns when it has no entry.
    pub(super) fn default(&self, state: StateId) -> Option<Vec<Word>> {
        let default = self.model.state[state.index()].default.as_ref()?;
        Some(default.iter().map(|slot| self.setting(*slot)).collect())
    }

    /// The maximum number of entries of a table in this shard.
    pub(super) fn capacity(&self, state: StateId, shard: usize) -> u64 {
        let decl = &self.model.state[state.index()];
        let total = self.setting64(decl.capacity);
        if !decl.sharded {
            return total;
        }
        share(total, self.shard_count(), u16::try_from(shard).unwrap_or(u16::MAX))
    }

    pub(super) fn queue_has_room(&self, queue: QueueId, shard: usize) -> bool {
        let total = self.setting64(self.model.queues[queue.index()].capacity);
        let part = u16::try_from(shard).unwrap_or(u16::MAX);
        self.shards[shard].held[queue.index()] < share(total, self.shard_count(), part)
    }

    /// The shard of a worker.
    pub(super) fn shard(&self, worker: u16) -> usize {
        usize::from(worker).min(self.shards.len() - 1)
    }

    /// The number of packets in a queue, in the shard of a worker.
    pub(super) fn held(&mut self, queue: QueueId, worker: u16) -> &mut u64 {
        let shard = self.shard(worker);
        &mut self.shards[shard].held[queue.index()]
    }

    /// The entry that all entries of a group live with, directly or indirectly.
    pub(super) fn root(&self, mut at: EntryRef, shard: usize) -> EntryRef {
        while let Some(up) = self.table(at.state, shard).get(at.id).and_then(|e| e.lives_with) {
            at = up;
        }
        at
    }

    /// The time at which an entry that lives with no other expires, unless a packet finds it. It is
    /// the earlier of the idle and the hard time-out, rounded up to a multiple of the tick.
    pub(super) fn deadline(&self, root: EntryRef, shard: usize) -> Option<u64> {
        let decl = &self.model.state[root.state.index()];
        let entry = self.table(root.state, shard).get(root.id)?;
        let after = |from: u64, setting: Option<Setting>| {
            setting.and_then(|setting| from.checked_add(self.setting64(setting)))
        };
        let idle = after(entry.last_seen_ns, decl.idle);
        let hard = after(entry.created_ns, decl.hard);
        let exact = idle.into_iter().chain(hard).min()?;
        let tick = self.setting64(decl.tick).max(1);
        exact.div_ceil(tick).checked_mul(tick)
    }

    pub(super) fn table_counters(&mut self, state: StateId) -> &mut TableCounters {
        &mut self.counters.tables[state.index()]
    }

    pub(super) fn count_row(&mut self, row: RowId, bytes: u64) {
        count(&mut self.counters.rows[row.index()], bytes);
    }
}

/// Counts a packet of this length.
pub(super) fn count(traffic: &mut Traffic, bytes: u64) {
    traffic.packets += 1;
    traffic.bytes += bytes;
}

pub(super) fn pool_order(order: PoolOrder) -> Order {
    match order {
        PoolOrder::Lowest => Order::Lowest,
        PoolOrder::Fifo => Order::Fifo,
        PoolOrder::Random => Order::Random,
    }
}

fn fresh_counters(model: &Model, params: &[ParamValue]) -> NodeCounters {
    let rules = (0..).zip(params).filter_map(|(index, value)| match value {
        ParamValue::Rules(rules) => Some((index, vec![0; rules.rules.len() + 1])),
        _ => None,
    });
    NodeCounters {
        rows: vec![Traffic::default(); model.rows.len()],
        rules: rules.collect(),
        tables: vec![TableCounters::default(); model.state.len()],
        ..NodeCounters::default()
    }
}

impl Shard {
    fn new(model: &Model, seed: u64, position: u16, shard: u16) -> Self {
        Self {
            tables: vec![Table::default(); model.state.len()],
            pools: BTreeMap::new(),
            rng: Rng::for_instance(seed, position, shard),
            caches: HashMap::new(),
            held: vec![0; model.queues.len()],
            native: None,
            stack: model.is_stream().then(|| Stack::new([model])),
        }
    }
}
