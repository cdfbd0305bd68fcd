//! The transfer of a snapshot to a chain, which may have changed since.

use super::check::check;
use super::data::{FunctionState, ImportError, ParamState, Snapshot, TableState, Totals};
use super::fresh::fresh;
use super::plan::{FunctionPlan, Part, Plan, What};
use crate::chain::{Chain, Change, Control, Node};
use crate::model::ParamId;

/// The loss of packets that were held in queues that do not move.
const LOST_HELD: &str = "reload";
/// What became of packets before the transfer, in functions, rows and interfaces that the chain no
/// longer has. Packets stay accounted for.
const LOST_BEFORE: &str = "before_reload";

/// The state that an engine takes.
#[derive(Debug)]
pub struct Transfer {
    /// The complete state of the chain. Functions, tables and all other parts are those of the
    /// chain, in its order. Parts that do not move are as before the first packet.
    pub snapshot: Snapshot,
    /// The parameters whose values in the chain have changed since. They apply after the state.
    pub changes: Vec<Control>,
    /// What moved.
    pub plan: Plan,
}

/// Transfers a snapshot to a chain.
///
/// # Errors
/// The snapshot contradicts itself.
pub fn transfer(mut old: Snapshot, chain: &Chain) -> Result<Transfer, ImportError> {
    let plan = Plan::new(&old, chain);
    let mut new = fresh(chain);
    (new.now_ns, new.started) = (old.now_ns, old.started);
    new.totals = totals(std::mem::take(&mut old.totals), chain);
    let mut changes = Vec::new();
    let functions = new.functions.iter_mut().zip(&plan.functions);
    for (node, (config, (function, plan))) in (0..).zip(chain.nodes.iter().zip(functions)) {
        if let Some(old) = plan.from.and_then(|from| old.functions.get_mut(from)) {
            function.take(old, plan, config, chain.workers, &mut new.totals);
            let changed = changed_params(old, function, config);
            changes.extend(changed.map(|(param, change)| Control {
                time_ns: new.now_ns,
                node,
                param,
                change,
                line: None,
            }));
        }
        if new.started {
            function.start_timers(plan, config, new.now_ns);
        }
    }
    for (at, function) in old.functions.iter().enumerate() {
        if !plan.functions.iter().any(|plan| plan.from == Some(at)) {
            function.forget(&mut new.totals);
        }
    }
    check(&new, chain)?;
    Ok(Transfer { snapshot: new, changes, plan })
}

/// The counters of the chain as a whole, with the interfaces of the chain only.
fn totals(mut old: Totals, chain: &Chain) -> Totals {
    let out = std::mem::take(&mut old.out);
    for (name, count) in out {
        if chain.interfaces.iter().any(|one| one.name == name) {
            old.out.insert(name, count);
        } else {
            old.lose(LOST_BEFORE, count);
        }
    }
    old
}

/// The parameters whose values in the chain are not the ones that the snapshot's chain had.
fn changed_params(
    old: &FunctionState,
    new: &FunctionState,
    config: &Node,
) -> impl Iterator<Item = (ParamId, Change)> {
    let params = (0..).map(ParamId).zip(new.params.iter().zip(&config.params));
    let params = params.filter(|_| config.model.native.is_none());
    let params = params.filter(|(_, (param, _))| !param.is_secret());
    params.filter_map(|(id, (param, value))| {
        let old = old.params.iter().find(|one| is_same(one, param))?;
        let configured = old.configured.as_ref().unwrap_or(&param.value);
        (configured != value).then(|| (id, Change::Set(value.clone())))
    })
}

/// Whether the chain gives a parameter the value that the snapshot's chain gave it.
fn is_configured(old: &ParamState, config: &Node) -> bool {
    let configured = old.configured.as_ref().unwrap_or(&old.value);
    let mut params = config.model.params.iter().zip(&config.params);
    params.any(|(decl, value)| decl.name == old.name && value == configured)
}

fn is_same(a: &ParamState, b: &ParamState) -> bool {
    (&a.name, &a.ty) == (&b.name, &b.ty)
}

impl Totals {
    fn lose(&mut self, reason: &str, packets: u64) {
        if packets > 0 {
            *self.lost.entry(reason.to_owned()).or_default() += packets;
        }
    }
}

impl FunctionState {
    /// Takes over the parts that move.
    fn take(
        &mut self,
        old: &mut FunctionState,
        plan: &FunctionPlan,
        config: &Node,
        workers: u16,
        totals: &mut Totals,
    ) {
        (self.forward, self.backward, self.stays) = (old.forward, old.backward, old.stays);
        self.timers_skipped = old.timers_skipped;
        self.background_faults = old.background_faults;
        let is_native = config.model.native.is_some();
        let moving = |what| {
            let parts = plan.parts.iter().filter(move |part| part.what == what);
            parts.filter(|part| part.fate.moves())
        };
        for part in moving(What::Table) {
            let table = self.tables.iter_mut().find(|table| table.name == part.name);
            let from = part.from.and_then(|from| old.tables.get_mut(from));
            if let Some((table, from)) = table.zip(from) {
                table.take(from, self.shards.len());
            }
        }
        for part in moving(What::Param) {
            let param = self.params.iter_mut().find(|param| param.name == part.name);
            let from = part.from.and_then(|from| old.params.get_mut(from));
            // A native function reads the chain's values when it is made.
            let from = from.filter(|from| !is_native || is_configured(from, config));
            if let Some((param, from)) = param.zip(from) {
                param.value = from.value.clone();
                param.rule_counts = std::mem::take(&mut from.rule_counts);
            }
        }
        for part in moving(What::Queue) {
            let queue = self.queues.iter_mut().find(|queue| queue.name == part.name);
            let from = part.from.and_then(|from| old.queues.get_mut(from));
            if let Some((queue, from)) = queue.zip(from) {
                queue.packets = std::mem::take(&mut from.packets);
                let last = workers.max(1) - 1;
                queue.packets.iter_mut().for_each(|held| held.worker = held.worker.min(last));
            }
        }
        let left = old.queues.iter().map(|queue| queue.packets.len() as u64).sum();
        totals.lose(LOST_HELD, left);
        for at in moving(What::Timer).filter_map(|part| part.from) {
            if let Some((timer, from)) = self.timers.get_mut(at).zip(old.timers.get(at)) {
                timer.next_ns = from.next_ns;
            }
        }
        if moving(What::Rows).next().is_some() {
            self.rows = std::mem::take(&mut old.rows);
        } else {
            totals.lose(LOST_BEFORE, old.dropped());
        }
        if moving(What::Shards).next().is_some() {
            self.take_pools(old);
        }
        let (memory, stack) =
            (moving(What::Memory).next().is_some(), moving(What::Stack).next().is_some());
        for (shard, old) in self.shards.iter_mut().zip(&mut old.shards) {
            shard.memory = old.memory.take().filter(|_| memory);
            shard.stack = old.stack.take().filter(|_| stack);
        }
        for (param, value) in self.params.iter_mut().zip(&config.params) {
            param.configure(value);
        }
    }

    /// Takes over the pools and random states of all workers.
    fn take_pools(&mut self, old: &mut FunctionState) {
        for (shard, old) in self.shards.iter_mut().zip(&mut old.shards) {
            shard.random = old.random;
            for pool in &mut shard.pools {
                if let Some(old) = old.pools.iter_mut().find(|one| one.name == pool.name) {
                    *pool = std::mem::take(old);
                }
            }
        }
    }

    /// Starts the timers that do not move, because the chain already runs.
    fn start_timers(&mut self, plan: &FunctionPlan, config: &Node, now: u64) {
        let timers = self.timers.iter_mut().zip(&config.model.timers).enumerate();
        for (at, (timer, decl)) in timers {
            let is_it = |part: &&Part| part.what == What::Timer && part.from == Some(at);
            if plan.parts.iter().find(is_it).is_none_or(|part| !part.fate.moves()) {
                let period = decl.period.value(&config.params);
                let period = u64::try_from(period).unwrap_or(u64::MAX).max(1);
                timer.next_ns = now.checked_add(period);
            }
        }
    }

    /// Accounts for the packets of a function that does not move.
    fn forget(&self, totals: &mut Totals) {
        totals.lose(LOST_BEFORE, self.dropped());
        totals.lose(LOST_HELD, self.queues.iter().map(|queue| queue.packets.len() as u64).sum());
    }

    /// The number of dropped packets.
    fn dropped(&self) -> u64 {
        self.rows.iter().flat_map(|row| row.drops.values()).sum()
    }
}

impl TableState {
    fn take(&mut self, old: &mut TableState, shards: usize) {
        self.counters = old.counters;
        self.entries = std::mem::take(&mut old.entries);
        let last = u16::try_from(shards.saturating_sub(1)).unwrap_or(u16::MAX);
        self.entries.iter_mut().for_each(|entry| entry.creator = entry.creator.min(last));
    }
}
