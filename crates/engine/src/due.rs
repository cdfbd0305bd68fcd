//! Time: what is due runs in the order (time, expiry before timer before held packet, position in
//! the chain, table or timer or queue, creation).

use crate::Compiled;
use crate::act::{Act, Role};
use crate::plain;
use crate::tables::EntryRef;
use crate::walk::{At, Reached, Walk};
use braid_ir::engine::{CATCH_UP, Outputs};
use braid_ir::model::{QueueId, StateId};
use braid_ir::residual::Point;
use braid_packet::Packet;
use std::collections::BTreeMap;

/// A held packet.
pub(crate) struct Held {
    pub(crate) packet: Packet,
    /// Visits of functions so far.
    pub(crate) hops: u32,
    pub(crate) worker: u16,
}

/// Held packets: by (time, function, queue, order of arrival).
pub(crate) type Waiting = BTreeMap<(u64, u16, QueueId, u64), Held>;

/// What is due next; the order of variants is that at equal times.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Expiry(u16, StateId, u64, usize),
    Timer(u16, usize),
    Release(u16, QueueId, u64),
}

impl Compiled {
    /// Runs everything that is due by a time, which is then the time, unless it is later already:
    /// then by that later one, since a change or a wait of nothing can make things due by now.
    pub(crate) fn advance_to(&mut self, time: u64, out: &mut dyn Outputs) {
        let time = time.max(self.now);
        if time >= self.wake {
            self.run_due(time, out);
        }
        self.now = time;
    }

    fn run_due(&mut self, time: u64, out: &mut dyn Outputs) {
        self.skip_firings(time);
        loop {
            let next = self.next_due();
            self.wake = next.map_or(u64::MAX, |(at, _)| at);
            // A deadline at the end of time is still one.
            let Some((at, due)) = next.filter(|(at, _)| *at <= time) else { break };
            self.now = self.now.max(at);
            match due {
                Due::Expiry(node, state, id, shard) => {
                    self.act(node, shard, Role::Timer, out, |act| {
                        act.expire(at, EntryRef { state, id });
                    });
                }
                Due::Timer(node, timer) => self.fire(at, node, timer, out),
                Due::Release(node, queue, id) => self.release((at, node, queue, id), out),
            }
        }
    }

    fn next_due(&self) -> Option<(u64, Due)> {
        let mut next: Option<(u64, Due)> = None;
        let mut take = |found: Option<(u64, Due)>| {
            next = found.into_iter().chain(next).min();
        };
        for (node, instance) in (0..).zip(&self.nodes) {
            take(instance.tables.next_due().map(|(at, EntryRef { state, id }, shard)| {
                (at, Due::Expiry(node, state, id, shard))
            }));
            for (timer, at) in instance.timers.iter().enumerate() {
                take(at.map(|at| (at, Due::Timer(node, timer))));
            }
        }
        let release = self.waiting.first_key_value();
        take(release.map(|((at, node, queue, id), _)| (*at, Due::Release(*node, *queue, *id))));
        next
    }

    /// A function's state has changed: something may be due earlier than was known.
    pub(crate) fn note_due(&mut self, node: u16) {
        if let Some((at, ..)) = self.nodes[usize::from(node)].tables.next_due() {
            self.wake = self.wake.min(at);
        }
    }

    /// Lets a function work on its state.
    fn act(
        &mut self,
        node: u16,
        shard: usize,
        role: Role,
        out: &mut dyn Outputs,
        work: impl FnOnce(&mut Act<'_>),
    ) {
        let instance = &mut self.nodes[usize::from(node)];
        let model = instance.model.clone();
        let params = &self.chain.nodes[usize::from(node)].params;
        let now = self.now;
        work(&mut Act { node, shard, now, model: &model, params, instance, out, role });
    }

    /// The first packet starts the timers.
    pub(crate) fn start_timers(&mut self) {
        if self.started {
            return;
        }
        self.started = true;
        for (instance, node) in self.nodes.iter_mut().zip(&self.chain.nodes) {
            for timer in 0..instance.timers.len() {
                let period = instance.period(&node.params, timer);
                instance.timers[timer] = self.now.checked_add(period);
                self.wake = self.wake.min(instance.timers[timer].unwrap_or(u64::MAX));
            }
        }
    }

    /// Timers that are too far behind a time skip their earliest firings.
    fn skip_firings(&mut self, time: u64) {
        for (instance, node) in self.nodes.iter_mut().zip(&self.chain.nodes) {
            for timer in 0..instance.timers.len() {
                let Some(due) = instance.timers[timer].filter(|due| *due <= time) else { continue };
                let period = instance.period(&node.params, timer);
                let behind = (time - due) / period + 1;
                let skipped = behind.saturating_sub(CATCH_UP);
                instance.timers[timer] = Some(due + skipped * period);
                let total = &mut instance.counters.timers_skipped;
                *total = total.saturating_add(skipped);
            }
        }
    }

    /// A timer runs, once for each shard.
    fn fire(&mut self, at: u64, node: u16, timer: usize, out: &mut dyn Outputs) {
        let params = &self.chain.nodes[usize::from(node)].params;
        let instance = &mut self.nodes[usize::from(node)];
        instance.timers[timer] = at.checked_add(instance.period(params, timer));
        for shard in 0..instance.shards.len() {
            self.act(node, shard, Role::Timer, out, |act| {
                plain::on_timer(act, &act.model.timers[timer].body);
            });
        }
    }

    /// A packet waits in a queue.
    pub(crate) fn hold(&mut self, node: u16, queue: QueueId, until: u64, held: Held) {
        self.nodes[usize::from(node)].held[queue.index()] += 1;
        self.waiting.insert((until, node, queue, self.ids), held);
        self.ids += 1;
        self.wake = self.wake.min(until);
    }

    /// A packet comes back from a queue: its function runs on it anew.
    fn release(&mut self, key: (u64, u16, QueueId, u64), out: &mut dyn Outputs) {
        let Some(Held { mut packet, hops, worker }) = self.waiting.remove(&key) else { return };
        let (_, node, queue, _) = key;
        self.nodes[usize::from(node)].held[queue.index()] -= 1;
        packet.time_ns = self.now;
        let mut walk = Walk { hops, worker, out };
        let point = Point { node, backward: packet.backward, held: true };
        if let Reached::Interface(interface) = self.travel(At::Point(point), &mut packet, &mut walk)
        {
            out.packet(interface, packet);
        }
    }
}
