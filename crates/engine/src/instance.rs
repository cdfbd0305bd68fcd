//! An instance of a model in a chain: its pools, random generators, timers and queues, and the
//! structures of its parameters.
#![expect(
    clippy::indexing_slicing,
    reason = "a verified model refers only to its declarations, and each has an element here"
)]

use crate::releases::{self, Release};
use braid_classify::{Lpm, RuleTable};
use braid_externs::pool::{Order, split};
use braid_externs::{Cache, Rng};
use braid_ir::chain::{Chain, Node};
use braid_ir::engine::{NodeCounters, Traffic, share};
use braid_ir::model::{
    Model, ParamDecl, ParamId, ParamTy, PoolOrder, QueueId, RowId, Setting, Word,
};
use braid_ir::rules::{RulePacket, RuleWords};
use braid_ir::value::ParamValue;
use braid_state::{EndedEntry, Pool};
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

/// A function of a chain at run time.
pub(crate) struct Instance {
    pub(crate) model: Arc<Model>,
    /// The position of the instance's first state table in the list of all tables.
    pub(crate) first_locator: usize,
    /// One shard, or one for each worker if a table of the function is sharded.
    pub(crate) shards: Vec<Shard>,
    /// The number of the last shard.
    last_shard: u16,
    /// The next firing of each timer (ns). `None` before the first packet, and when no firing is
    /// left before the end of time.
    pub(crate) timers: Vec<Option<u64>>,
    /// The rule set of each rule-set parameter.
    pub(crate) rules: Vec<Option<Rules>>,
    /// The search structure of each route-table parameter.
    pub(crate) routes: Vec<Option<Lpm>>,
    /// By table: what its `expire` program does, if it only returns members to pools.
    pub(crate) releases: Vec<Option<Vec<Release>>>,
    /// The function's counts, without the counts that residual programs still hold.
    pub(crate) counters: NodeCounters,
}

/// A rule set with its counts.
pub(crate) struct Rules {
    pub(crate) table: RuleTable,
    /// The number of packets that each rule decided. The last element is the default.
    pub(crate) counts: Vec<Cell<u64>>,
    /// The TCP flags that any rule tests or has ever tested.
    pub(crate) flags: u8,
}

/// The data of one shard of an instance, except its state tables.
pub(crate) struct Shard {
    /// The pool of each pool parameter.
    pub(crate) pools: Vec<Option<Pool>>,
    pub(crate) rng: Rng,
    pub(crate) caches: HashMap<Option<ParamId>, Cache>,
    /// The number of packets in each queue.
    pub(crate) held: Vec<u64>,
    /// The native function, if the model has one.
    pub(crate) native: Option<braid_native::Instance>,
}

impl Instance {
    /// Creates an instance for a position of a chain.
    pub(crate) fn new(chain: &Chain, position: u16, first_locator: usize) -> Self {
        let node = &chain.nodes[usize::from(position)];
        let model = &node.model;
        let count = model.shards(chain.workers);
        let shard = |number| Shard {
            pools: pools(node, count, number),
            rng: Rng::for_instance(chain.seed, position, number),
            caches: HashMap::new(),
            held: vec![0; model.queues.len()],
            native: None,
        };
        Self {
            model: model.clone(),
            first_locator,
            shards: (0..count).map(shard).collect(),
            last_shard: count.saturating_sub(1),
            timers: vec![None; model.timers.len()],
            rules: node.params.iter().map(Rules::new).collect(),
            routes: node.params.iter().map(routes).collect(),
            releases: releases::all(model),
            counters: NodeCounters {
                rows: vec![Traffic::default(); model.rows.len()],
                ..NodeCounters::default()
            },
        }
    }

    /// The shard of a worker.
    #[inline(always)]
    pub(crate) fn shard(&self, worker: u16) -> u16 {
        worker.min(self.last_shard)
    }

    /// Takes a member of a shard's pool. `None` if none is free.
    #[inline(always)]
    pub(crate) fn take(&mut self, shard: u16, pool: ParamId) -> Option<u128> {
        let Shard { pools, rng, .. } = &mut self.shards[usize::from(shard)];
        pools[pool.index()].as_mut()?.take(rng)
    }

    /// Returns a member to a shard's pool. A value that is not taken, or not in the pool, is
    /// ignored.
    pub(crate) fn release(&mut self, shard: u16, pool: ParamId, member: Word) {
        if let Some(pool) = &mut self.shards[usize::from(shard)].pools[pool.index()] {
            pool.release(member);
        }
    }

    /// Returns the slots of an ended entry to their pools, if that is all that the entry's `expire`
    /// program does. Otherwise returns false.
    #[inline(always)]
    pub(crate) fn release_slots(&mut self, entry: &EndedEntry<'_>) -> bool {
        let Self { releases, shards, .. } = self;
        let Some(known) = &releases[entry.state.index()] else { return false };
        let pools = &mut shards[usize::from(entry.shard)].pools;
        for Release { pool, word, is_wide } in known {
            let member = Word::from(entry.slots[*word]);
            let high = if *is_wide { Word::from(entry.slots[word + 1]) << 64 } else { 0 };
            if let Some(pool) = &mut pools[pool.index()] {
                pool.release(member | high);
            }
        }
        true
    }

    pub(crate) fn shard_count(&self) -> u16 {
        u16::try_from(self.shards.len()).unwrap_or(u16::MAX)
    }

    pub(crate) fn queue_has_room(&self, params: &[ParamValue], queue: QueueId, shard: u16) -> bool {
        let total = setting64(params, self.model.queues[queue.index()].capacity);
        let held = self.shards[usize::from(shard)].held[queue.index()];
        held < share(total, self.shard_count(), shard)
    }

    /// The number of packets in a queue, in the shard of a worker.
    pub(crate) fn held(&mut self, queue: QueueId, worker: u16) -> &mut u64 {
        let shard = self.shard(worker);
        &mut self.shards[usize::from(shard)].held[queue.index()]
    }

    /// A timer's period, at least 1 ns.
    pub(crate) fn period(&self, params: &[ParamValue], timer: usize) -> u64 {
        setting64(params, self.model.timers[timer].period).max(1)
    }

    /// Whether a packet passes a rule set, and the number of the deciding rule. A packet that is
    /// not IP does not pass, and no rule decides.
    #[expect(clippy::cast_possible_truncation, reason = "a rule set has fewer than 2^32 rules")]
    pub(crate) fn classify(&self, param: ParamId, packet: Option<&RulePacket>) -> (bool, u32) {
        match (&self.rules[param.index()], packet) {
            (Some(rules), Some(packet)) => rules.table.lookup(packet),
            (Some(rules), None) => (false, (rules.counts.len() - 1) as u32),
            (None, _) => (false, 0),
        }
    }

    /// As [`Self::classify`] for an IPv4 packet. `known` is the result if a prefetch has found it.
    /// With `count`, also counts the packet for the rule.
    #[inline(always)]
    pub(crate) fn classify4(
        &mut self,
        param: ParamId,
        words: &RuleWords,
        known: Option<(bool, u32)>,
        count: bool,
    ) -> (bool, u32) {
        let Some(rules) = &mut self.rules[param.index()] else { return (false, 0) };
        let (pass, rule) = known.unwrap_or_else(|| rules.table.lookup4(words));
        if count && let Some(count) = rules.counts.get(rule as usize) {
            count.update(|times| times + 1);
        }
        (pass, rule)
    }

    /// Counts one packet for the rule that decided.
    pub(crate) fn count_rule(&self, param: ParamId, rule: u32) {
        self.count_rules(param, rule, 1);
    }

    /// Counts `times` packets for a rule.
    pub(crate) fn count_rules(&self, param: ParamId, rule: u32, times: u64) {
        let rules = self.rules[param.index()].as_ref();
        if let Some(count) = rules.and_then(|rules| rules.counts.get(rule as usize)) {
            count.update(|before| before + times);
        }
    }

    /// The next hop for an address of 32 or 128 bits.
    pub(crate) fn route(&self, param: ParamId, width: u16, addr: Word) -> Option<u32> {
        let routes = self.routes[param.index()].as_ref()?;
        match width {
            32 => routes.lookup4(u32::try_from(addr).ok()?),
            _ => routes.lookup6(addr),
        }
    }

    /// Counts a packet of `bytes` bytes at a row.
    pub(crate) fn count_row(&mut self, row: RowId, bytes: u64) {
        count(&mut self.counters.rows[row.index()], bytes);
    }

    /// The row that counts faults: the function's last row.
    pub(crate) fn fault_row(&self) -> RowId {
        RowId(u32::try_from(self.model.rows.len().saturating_sub(1)).unwrap_or(u32::MAX))
    }
}

/// Counts a packet of `bytes` bytes.
pub(crate) fn count(traffic: &mut Traffic, bytes: u64) {
    traffic.packets += 1;
    traffic.bytes += bytes;
}

/// A setting as a time, size or count. Values of 2^64 and more become 2^64 - 1.
pub(crate) fn setting64(params: &[ParamValue], of: Setting) -> u64 {
    u64::try_from(of.value(params)).unwrap_or(u64::MAX)
}

/// The values of a pool that each of `shards` shards gets, as intervals.
pub(crate) fn quotas(value: &ParamValue, shards: u16) -> Vec<Vec<(Word, Word)>> {
    let members = match value {
        ParamValue::Pool(members) => members.intervals(),
        _ => &[],
    };
    split(members, shards)
}

/// The order of a pool.
pub(crate) fn pool_order(order: PoolOrder) -> Order {
    match order {
        PoolOrder::Lowest => Order::Lowest,
        PoolOrder::Fifo => Order::Fifo,
        PoolOrder::Random => Order::Random,
    }
}

fn pools(node: &Node, shards: u16, shard: u16) -> Vec<Option<Pool>> {
    let params = node.model.params.iter().zip(&node.params);
    let pool = |(decl, value): (&ParamDecl, &ParamValue)| {
        let ParamTy::Pool(_, order) = decl.ty else { return None };
        Some(Pool::new(pool_order(order), &quotas(value, shards)[usize::from(shard)]))
    };
    params.map(pool).collect()
}

/// The search structure for a parameter's routes. `None` if the parameter has none.
pub(crate) fn routes(value: &ParamValue) -> Option<Lpm> {
    match value {
        ParamValue::Routes(table) => Some(Lpm::new(table)),
        _ => None,
    }
}

impl Rules {
    /// Creates the rules of a parameter, with all counts 0. `None` if the parameter has none.
    pub(crate) fn new(value: &ParamValue) -> Option<Self> {
        let ParamValue::Rules(set) = value else { return None };
        Some(Self {
            table: RuleTable::new(set),
            counts: vec![Cell::default(); set.rules.len() + 1],
            flags: set.rules.iter().fold(0, |flags, rule| flags | rule.tcp_flags.1),
        })
    }
}
