//! The state of workers: each has a part of the whole state, and all parts together are the state
//! of the chain. An engine that is one worker ([`crate::chain::Chain::only`]) has the shards of all
//! workers, but only its own shard is in use.

use super::data::{EntryState, FunctionState, Snapshot, TableState, Totals};
use super::schema::root_of;
use crate::chain::{Chain, Node};
use crate::counters::{Counters, NodeCounters, TableCounters, Traffic};
use crate::model::{Granularity, StateDecl, StateId};
use std::collections::BTreeMap;

impl Counters {
    /// The counters of a chain, from those of its workers in their order.
    #[must_use]
    pub fn united(parts: Vec<Counters>, chain: &Chain) -> Counters {
        let mut parts = parts.into_iter();
        let mut all = parts.next().unwrap_or_default();
        for part in parts {
            let Counters { packets_in, created, copied, out, consumed, held, lost, drops, nodes } =
                part;
            for (sum, more) in [
                (&mut all.packets_in, packets_in),
                (&mut all.created, created),
                (&mut all.copied, copied),
                (&mut all.consumed, consumed),
                (&mut all.held, held),
            ] {
                *sum += more;
            }
            add_all(&mut all.out, out);
            add_all(&mut all.lost, lost);
            add_all(&mut all.drops, drops);
            for ((sum, more), node) in all.nodes.iter_mut().zip(&nodes).zip(&chain.nodes) {
                sum.add(more, node);
            }
        }
        all
    }
}

impl NodeCounters {
    /// Adds the counters of another worker. Timers skip the same firings on all workers, and the
    /// entries of global state exist on all workers, so both are counted once.
    fn add(&mut self, more: &NodeCounters, node: &Node) {
        self.forward.add(more.forward);
        self.backward.add(more.backward);
        self.rows.iter_mut().zip(&more.rows).for_each(|(sum, more)| sum.add(*more));
        for (param, counts) in &mut self.rules {
            let more = more.rules.get(param).into_iter().flatten();
            counts.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        }
        let tables = self.tables.iter_mut().zip(&more.tables).zip(&node.model.state);
        tables.for_each(|((sum, more), decl)| sum.add_of(decl, *more));
        self.background_faults += more.background_faults;
    }
}

impl Traffic {
    fn add(&mut self, more: Traffic) {
        self.packets += more.packets;
        self.bytes += more.bytes;
    }
}

impl TableCounters {
    fn add_of(&mut self, decl: &StateDecl, more: TableCounters) {
        if decl.granularity != Granularity::Global {
            self.entries += more.entries;
        }
        self.created += more.created;
        self.refused += more.refused;
        self.evicted += more.evicted;
        self.expired += more.expired;
    }
}

impl Totals {
    fn add(&mut self, more: Totals) {
        let Totals { packets_in, created, copied, consumed, out, lost } = more;
        self.packets_in += packets_in;
        self.created += created;
        self.copied += copied;
        self.consumed += consumed;
        add_all(&mut self.out, out);
        add_all(&mut self.lost, lost);
    }
}

fn add_all<K: Ord>(all: &mut BTreeMap<K, u64>, more: BTreeMap<K, u64>) {
    more.into_iter().for_each(|(key, count)| *all.entry(key).or_default() += count);
}

/// The snapshot of a chain, from those of its workers in their order.
#[must_use]
#[expect(clippy::indexing_slicing, reason = "all parts have the functions of the chain")]
pub fn unite(mut parts: Vec<Snapshot>, chain: &Chain) -> Snapshot {
    let Some(mut all) = parts.first().cloned() else { return Snapshot::default() };
    for part in parts.iter_mut().skip(1) {
        all.now_ns = all.now_ns.max(part.now_ns);
        all.started |= part.started;
        all.totals.add(std::mem::take(&mut part.totals));
    }
    for (at, (function, node)) in all.functions.iter_mut().zip(&chain.nodes).enumerate() {
        let mut of: Vec<_> = parts.iter_mut().map(|part| &mut part.functions[at]).collect();
        take_entries(function, &mut of, node);
        take_packets(function, &mut of);
        of.iter_mut().skip(1).for_each(|part| add(function, part, node));
    }
    all
}

/// The part of a snapshot that a worker of a chain goes on from. Worker 0 has the counters.
#[must_use]
pub fn part(whole: &Snapshot, worker: u16, chain: &Chain) -> Snapshot {
    let mut part = whole.clone();
    if worker > 0 {
        part.totals = Totals::default();
    }
    for function in &mut part.functions {
        keep(function, worker, chain.workers.max(1) - 1);
    }
    part
}

/// Takes over the entries of all workers, in the order of their creation.
#[expect(clippy::indexing_slicing, reason = "the function has the same tables in all parts")]
fn take_entries(all: &mut FunctionState, of: &mut [&mut FunctionState], node: &Node) {
    let mut places = Vec::new();
    for (at, table) in all.tables.iter_mut().enumerate() {
        let mut entries = Vec::new();
        for (worker, function) in of.iter_mut().enumerate() {
            let of_one = (0_u64..).zip(std::mem::take(&mut function.tables[at].entries));
            let own = of_one.filter(|(_, entry)| usize::from(entry.shard) == worker);
            entries.extend(own.map(|(place, entry)| ((worker, place), entry)));
        }
        entries.sort_by_key(|(_, entry)| (entry.created_ns, entry.shard));
        let (known, entries): (Vec<_>, Vec<_>) = entries.into_iter().unzip();
        places.push(known.into_iter().zip(0..).collect::<BTreeMap<_, u64>>());
        table.entries = entries;
    }
    for (at, table) in (0..).map(StateId).zip(&mut all.tables) {
        let roots = places.get(root_of(&node.model, at).index());
        for entry in &mut table.entries {
            let root = entry.root.map(|root| (usize::from(entry.shard), root));
            entry.root = root.and_then(|root| roots?.get(&root).copied());
        }
    }
}

/// Takes over the held packets of all workers.
#[expect(
    clippy::indexing_slicing,
    reason = "the function has the same queues and shards in all parts"
)]
fn take_packets(all: &mut FunctionState, of: &mut [&mut FunctionState]) {
    for (at, queue) in all.queues.iter_mut().enumerate() {
        let packets = of.iter_mut().map(|one| std::mem::take(&mut one.queues[at].packets));
        queue.packets = packets.flatten().collect();
        queue.packets.sort_by_key(|held| held.until_ns);
    }
    for (at, shard) in all.shards.iter_mut().enumerate() {
        if let Some(function) = of.get_mut(at) {
            std::mem::swap(shard, &mut function.shards[at]);
        }
    }
}

/// Adds the counters of another worker, as in [`NodeCounters::add`].
fn add(all: &mut FunctionState, part: &mut FunctionState, node: &Node) {
    all.forward.add(part.forward);
    all.backward.add(part.backward);
    all.background_faults += part.background_faults;
    for (sum, more) in all.rows.iter_mut().zip(&mut part.rows) {
        sum.traffic.add(more.traffic);
        add_all(&mut sum.drops, std::mem::take(&mut more.drops));
    }
    for (sum, more) in all.params.iter_mut().zip(&part.params) {
        let counts = sum.rule_counts.iter_mut().zip(&more.rule_counts);
        counts.for_each(|(sum, more)| *sum += more);
    }
    let tables = all.tables.iter_mut().zip(&part.tables).zip(&node.model.state);
    tables.for_each(|((sum, more), decl)| sum.counters.add_of(decl, more.counters));
}

/// Keeps what belongs to a worker.
fn keep(all: &mut FunctionState, worker: u16, last: u16) {
    let of_tables: Vec<_> = all.tables.iter_mut().map(|table| table.keep(worker)).collect();
    let with: Vec<_> = all.tables.iter().map(|table| table.lives_with).collect();
    // A snapshot from a file may contradict itself, so the walk is bounded.
    let root = |from: usize| {
        with.iter().fold(from, |at, _| match with.get(at).copied().flatten() {
            Some(next) => next as usize,
            None => at,
        })
    };
    for (at, table) in all.tables.iter_mut().enumerate() {
        let places = of_tables.get(root(at));
        for entry in &mut table.entries {
            entry.root = entry.root.and_then(|root| places?.get(&root).copied());
        }
    }
    for queue in &mut all.queues {
        queue.packets.retain(|held| held.worker.min(last) == worker);
    }
    if worker == 0 {
        return;
    }
    (all.forward, all.backward) = (Traffic::default(), Traffic::default());
    (all.timers_skipped, all.background_faults) = (0, 0);
    for row in &mut all.rows {
        row.traffic = Traffic::default();
        row.drops.clear();
    }
    all.params.iter_mut().for_each(|param| param.rule_counts.fill(0));
    all.tables.iter_mut().for_each(|table| table.counters = TableCounters::default());
}

impl TableState {
    /// Keeps the entries of a worker's shard, and those of global state. Returns the new places of
    /// entries by their old ones.
    fn keep(&mut self, worker: u16) -> BTreeMap<u64, u64> {
        let all = (0_u64..).zip(std::mem::take(&mut self.entries));
        let is_kept = |entry: &EntryState| entry.shard == worker || entry.key.is_empty();
        let (places, entries): (Vec<_>, Vec<_>) = all.filter(|(_, one)| is_kept(one)).unzip();
        self.entries = entries;
        places.into_iter().zip(0..).collect()
    }
}
