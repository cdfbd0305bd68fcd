//! Expiries, timers and held packets. Due work runs in the order of time, kind (expiry, timer, held
//! packet), position in the chain, number of the table, timer or queue, and creation.
#![expect(
    clippy::indexing_slicing,
    reason = "the chain and its models number the functions, timers and queues"
)]

use crate::deliver::deliver;
use crate::exec_context::Functions;
use crate::executor::Executor;
use crate::held::Held;
use crate::model_interpreter;
use crate::work::{Role, Walk};
use braid_ir::engine::{CATCH_UP, Outputs};
use braid_ir::model::QueueId;
use braid_ir::residual::Point;
use braid_ir::walk::{At, Reached};
use braid_state::EndedEntry;

/// The kinds of due work besides expiries. The order of the variants is the order at equal times.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Job {
    Timer(u16, usize),
    Release(u16, QueueId, u64),
}

impl Executor {
    /// Runs all work that is due by `time`, and sets the clock to `time`. If the clock is already
    /// later, it runs the work that is due by the clock, because a change or a hold of zero length
    /// can make work due immediately.
    pub(crate) fn advance_to(&mut self, time: u64, out: &mut dyn Outputs) {
        let time = time.max(self.functions.now);
        if time >= self.wake.min(self.functions.store.next_due()) {
            self.run_due(time, out);
        }
        self.functions.now = time;
    }

    fn run_due(&mut self, time: u64, out: &mut dyn Outputs) {
        self.skip_firings(time);
        loop {
            let next = self.next_job();
            self.wake = next.map_or(u64::MAX, |(at, _)| at);
            self.run_expiries(time.min(self.wake), out);
            let Some((at, job)) = next.filter(|(at, _)| *at <= time) else { break };
            self.functions.now = self.functions.now.max(at);
            match job {
                Job::Timer(node, timer) => self.fire(at, node, timer, out),
                Job::Release(node, queue, id) => self.release((at, node, queue, id), out),
            }
        }
    }

    /// Ends all entries that are due by a time, and runs their programs.
    fn run_expiries(&mut self, until: u64, out: &mut dyn Outputs) {
        let mut ended = std::mem::take(&mut self.functions.scratch.ended);
        loop {
            let Functions { store, instances, .. } = &mut self.functions;
            let mut release =
                |entry: EndedEntry<'_>| instances[usize::from(entry.node)].release_slots(&entry);
            let next = store.expire_until_program(until, &mut ended, &mut release);
            let Some(at) = next else { break };
            self.functions.now = self.functions.now.max(at);
            // All entries of a group belong to one function.
            if let Some(node) = ended.entries().next().map(|entry| entry.node) {
                self.functions.context(node, 0, Role::Expire, out).run_ended(&ended);
                deliver(&mut self.functions, out);
            }
        }
        self.functions.scratch.ended = ended;
    }

    /// The next timer or held packet and its time.
    fn next_job(&self) -> Option<(u64, Job)> {
        let instances = (0..).zip(&self.functions.instances);
        let timers = instances.flat_map(|(node, instance)| {
            let timers = instance.timers.iter().enumerate();
            timers.filter_map(move |(timer, at)| at.map(|at| (at, Job::Timer(node, timer))))
        });
        let release = self.waiting.first_key_value();
        let release =
            release.map(|((at, node, queue, id), _)| (*at, Job::Release(*node, *queue, *id)));
        timers.chain(release).min()
    }

    /// Starts the timers. This happens at the first packet.
    pub(crate) fn start_timers(&mut self) {
        if self.started {
            return;
        }
        self.started = true;
        let now = self.functions.now;
        let Functions { chain, instances, .. } = &mut self.functions;
        for (instance, node) in instances.iter_mut().zip(&chain.nodes) {
            for timer in 0..instance.timers.len() {
                let period = instance.period(&node.params, timer);
                instance.timers[timer] = now.checked_add(period);
                self.wake = self.wake.min(instance.timers[timer].unwrap_or(u64::MAX));
            }
        }
    }

    /// Skips the earliest firings of each timer that has more than `CATCH_UP` firings due by
    /// `time`.
    fn skip_firings(&mut self, time: u64) {
        let Functions { chain, instances, .. } = &mut self.functions;
        for (instance, node) in instances.iter_mut().zip(&chain.nodes) {
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

    /// Runs a timer's program, once for each shard.
    fn fire(&mut self, at: u64, node: u16, timer: usize, out: &mut dyn Outputs) {
        let Functions { chain, instances, .. } = &mut self.functions;
        let instance = &mut instances[usize::from(node)];
        let period = instance.period(&chain.nodes[usize::from(node)].params, timer);
        instance.timers[timer] = at.checked_add(period);
        for shard in self.functions.chain.timer_shards(node) {
            let mut context = self.functions.context(node, shard, Role::Timer, out);
            let model = context.model;
            model_interpreter::on_timer(&mut context, &model.timers[timer].body);
            deliver(&mut self.functions, out);
        }
    }

    /// Runs the due work of native functions, and takes the packets that their timers send to their
    /// ends.
    pub(crate) fn advance_natives(&mut self, out: &mut dyn Outputs) {
        for node in 0..self.functions.instances.len() {
            let node = u16::try_from(node).unwrap_or(u16::MAX);
            for worker in 0..self.functions.shard_count(node) {
                let emissions = self.functions.advance_native(node, worker, out);
                if !emissions.is_empty() {
                    let (watcher, records, rests) = (None, false, false);
                    let mut walk = Walk { hops: 0, worker, out, watcher, records, rests };
                    self.begin_walk();
                    self.send(node, emissions, false, &mut walk);
                }
            }
        }
    }

    /// Puts a packet into a queue.
    pub(crate) fn hold(&mut self, node: u16, queue: QueueId, until: u64, held: Held) {
        *self.functions.instances[usize::from(node)].held(queue, held.worker) += 1;
        self.waiting.insert((until, node, queue, self.ids), held);
        self.ids += 1;
        self.wake = self.wake.min(until);
    }

    /// Takes a packet out of a queue and runs its function on the packet again.
    fn release(&mut self, key: (u64, u16, QueueId, u64), out: &mut dyn Outputs) {
        let Some(Held { mut packet, hops, worker }) = self.waiting.remove(&key) else { return };
        let (_, node, queue, _) = key;
        *self.functions.instances[usize::from(node)].held(queue, worker) -= 1;
        packet.time_ns = self.functions.now;
        let mut walk = Walk { hops, worker, out, watcher: None, records: false, rests: false };
        let point = Point { node, backward: packet.backward, held: true };
        if let Reached::Interface(interface) = self.travel(At::Point(point), &mut packet, &mut walk)
        {
            out.packet(interface, packet);
        }
    }
}
