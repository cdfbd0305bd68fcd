//! An instance of a model in a chain: its state, pools, generators, timers, queues.

use braid_classify::{Lpm, RuleTable};
use braid_externs::pool::{Order, split};
use braid_externs::{Cache, Rng};
use braid_ir::chain::{Chain, Node};
use braid_ir::engine::{NodeCounters, Traffic};
use braid_ir::model::{
    Model, ParamDecl, ParamId, ParamTy, PoolOrder, QueueId, RowId, Setting, Word,
};
use braid_ir::rules::{RulePacket, RuleWords};
use braid_ir::value::ParamValue;
use braid_state::Pool;
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

/// An instance.
pub(crate) struct Instance {
    pub(crate) model: Arc<Model>,
    /// Where its first state table is among those of all functions.
    pub(crate) first_locator: usize,
    /// One, or as many as workers when a table is sharded.
    pub(crate) shards: Vec<Shard>,
    /// When each timer is due; `None` before the first packet and past the end of time.
    pub(crate) timers: Vec<Option<u64>>,
    /// Packets in each queue.
    pub(crate) held: Vec<u64>,
    /// By parameter.
    pub(crate) rules: Vec<Option<Rules>>,
    /// By parameter.
    pub(crate) routes: Vec<Option<Lpm>>,
    /// What was counted other than by residual programs.
    pub(crate) counters: NodeCounters,
}

/// A rule set.
pub(crate) struct Rules {
    pub(crate) table: RuleTable,
    /// Packets that each rule decided; the last is the default.
    pub(crate) counts: Vec<Cell<u64>>,
    /// TCP flags that some rule looks at, or has looked at.
    pub(crate) flags: u8,
}

/// What each shard of an instance has for itself, beside state.
pub(crate) struct Shard {
    /// By parameter.
    pub(crate) pools: Vec<Option<Pool>>,
    pub(crate) rng: Rng,
    pub(crate) caches: HashMap<Option<ParamId>, Cache>,
    /// The native function, if the model has one.
    pub(crate) native: Option<braid_native::Instance>,
}

impl Instance {
    /// A fresh instance at a position of a chain.
    pub(crate) fn new(chain: &Chain, position: u16, first_locator: usize) -> Self {
        let node = &chain.nodes[usize::from(position)];
        let model = &node.model;
        let sharded = model.native.is_some() || model.state.iter().any(|decl| decl.sharded);
        let count = if sharded { chain.workers.max(1) } else { 1 };
        let shard = |number| Shard {
            pools: pools(node, count, number),
            rng: Rng::for_instance(chain.seed, position, number),
            caches: HashMap::new(),
            native: None,
        };
        Self {
            model: model.clone(),
            first_locator,
            shards: (0..count).map(shard).collect(),
            timers: vec![None; model.timers.len()],
            held: vec![0; model.queues.len()],
            rules: node.params.iter().map(Rules::new).collect(),
            routes: node.params.iter().map(routes).collect(),
            counters: NodeCounters {
                rows: vec![Traffic::default(); model.rows.len()],
                ..NodeCounters::default()
            },
        }
    }

    /// The shard of a worker.
    pub(crate) fn shard(&self, worker: u16) -> u16 {
        worker.min(self.shard_count() - 1)
    }

    pub(crate) fn shard_count(&self) -> u16 {
        u16::try_from(self.shards.len()).unwrap_or(u16::MAX)
    }

    pub(crate) fn queue_has_room(&self, params: &[ParamValue], queue: QueueId) -> bool {
        let capacity = setting64(params, self.model.queues[queue.index()].capacity);
        self.held[queue.index()] < capacity
    }

    /// A timer's period, at least 1 ns.
    pub(crate) fn period(&self, params: &[ParamValue], timer: usize) -> u64 {
        setting64(params, self.model.timers[timer].period).max(1)
    }

    /// Whether a packet passes a rule set, and the number of the rule that decides; a packet that is
    /// not IP does not pass, by no rule.
    pub(crate) fn classify(&self, param: ParamId, packet: Option<&RulePacket>) -> (bool, u32) {
        match (&self.rules[param.index()], packet) {
            (Some(rules), Some(packet)) => rules.table.lookup(packet),
            (Some(rules), None) => (false, (rules.counts.len() - 1) as u32),
            (None, _) => (false, 0),
        }
    }

    /// As [`Self::classify`] for an IPv4 packet, whose rule is counted at once if `count`; the answer may be
    /// known.
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

    /// Counts a rule that decided.
    pub(crate) fn count_rule(&self, param: ParamId, rule: u32) {
        self.count_rules(param, rule, 1);
    }

    /// The same, so many times.
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

    /// Counts a packet at a row.
    pub(crate) fn count_row(&mut self, row: RowId, bytes: u64) {
        count(&mut self.counters.rows[row.index()], bytes);
    }

    /// The row `fault`: the last one.
    pub(crate) fn fault_row(&self) -> RowId {
        RowId(u32::try_from(self.model.rows.len().saturating_sub(1)).unwrap_or(u32::MAX))
    }
}

/// Counts a packet of so many bytes.
pub(crate) fn count(traffic: &mut Traffic, bytes: u64) {
    traffic.packets += 1;
    traffic.bytes += bytes;
}

/// A setting's value now.
pub(crate) fn setting(params: &[ParamValue], setting: Setting) -> Word {
    match setting {
        Setting::Const(value) => value,
        Setting::Param(param) => match params[param.index()] {
            ParamValue::Scalar(value) => value,
            _ => 0,
        },
    }
}

/// A setting as a time, size or count; what is above 2^64 counts as the largest.
pub(crate) fn setting64(params: &[ParamValue], of: Setting) -> u64 {
    u64::try_from(setting(params, of)).unwrap_or(u64::MAX)
}

/// The members of a pool that each of so many shards has.
pub(crate) fn quotas(value: &ParamValue, shards: u16) -> Vec<Vec<(Word, Word)>> {
    let members = match value {
        ParamValue::Pool(members) => members.intervals(),
        _ => &[],
    };
    split(members, shards)
}

fn pools(node: &Node, shards: u16, shard: u16) -> Vec<Option<Pool>> {
    let params = node.model.params.iter().zip(&node.params);
    let pool = |(decl, value): (&ParamDecl, &ParamValue)| {
        let ParamTy::Pool(_, order) = decl.ty else { return None };
        let order = match order {
            PoolOrder::Lowest => Order::Lowest,
            PoolOrder::Fifo => Order::Fifo,
            PoolOrder::Random => Order::Random,
        };
        Some(Pool::new(order, &quotas(value, shards)[usize::from(shard)]))
    };
    params.map(pool).collect()
}

/// The structure in which a parameter's routes are looked up.
pub(crate) fn routes(value: &ParamValue) -> Option<Lpm> {
    match value {
        ParamValue::Routes(table) => Some(Lpm::new(table)),
        _ => None,
    }
}

impl Rules {
    /// A parameter's rules, none of which has decided yet.
    pub(crate) fn new(value: &ParamValue) -> Option<Self> {
        let ParamValue::Rules(set) = value else { return None };
        Some(Self {
            table: RuleTable::new(set),
            counts: vec![Cell::default(); set.rules.len() + 1],
            flags: set.rules.iter().fold(0, |flags, rule| flags | rule.tcp_flags.1),
        })
    }
}
