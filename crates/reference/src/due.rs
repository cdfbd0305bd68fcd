//! Time. Due work runs in the order (time, expiry before timer before held packet, position in the
//! chain, table or timer or queue, creation).

use super::engine::{Reference, Walk};
use super::instance::Instance;
use super::native;
use super::others::Others;
use super::run::{Env, Role, in_background};
use super::schedule::Held;
use super::state::{Cause, end_group};
use super::table::EntryRef;
use crate::trace::{Observer, Silent};
use braid_ir::engine::{CATCH_UP, Outputs};
use braid_ir::model::{QueueId, StateId};

/// The next due work, with its time. The order of the variants is their order at equal times.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Expiry(u16, StateId, u64, usize),
    Timer(u16, usize),
    Release(u16, QueueId, u64),
}

impl Reference {
    /// Runs everything that is due by a time, and sets the current time to it. If the current time
    /// is already later, it stays, and everything that is due by then runs. A change of
    /// configuration or a wait of 0 can make something due at the current time.
    pub(super) fn advance_to(
        &mut self,
        time: u64,
        out: &mut dyn Outputs,
        observer: &mut dyn Observer,
    ) {
        let time = time.max(self.now);
        self.skip_firings(time);
        while let Some((at, due)) = self.next_due().filter(|(at, _)| *at <= time) {
            self.now = self.now.max(at);
            match due {
                Due::Expiry(node, state, id, shard) => {
                    let root = EntryRef { state, id };
                    self.expire(at, node, shard, root, out, observer);
                }
                Due::Timer(node, timer) => self.fire(at, node, timer, out, observer),
                Due::Release(node, queue, id) => {
                    self.release((at, node, queue, id), out, observer);
                }
            }
        }
        self.now = time;
    }

    fn next_due(&self) -> Option<(u64, Due)> {
        let expiry = self.expiries.first();
        let expiry = expiry.map(|(at, node, state, id, shard)| {
            (at, Due::Expiry(node, state, id, usize::from(shard)))
        });
        let release = self.waiting.first_key_value();
        let release =
            release.map(|(&(at, node, queue, id), _)| (at, Due::Release(node, queue, id)));
        let timers = (0..).zip(&self.nodes).flat_map(|(node, instance)| {
            let timers = instance.timers.iter().enumerate();
            timers.filter_map(move |(timer, at)| at.map(|at| (at, Due::Timer(node, timer))))
        });
        timers.chain(expiry).chain(release).min()
    }

    /// Ends an entry, unless a packet has found it since.
    fn expire(
        &mut self,
        at: u64,
        node: u16,
        shard: usize,
        root: EntryRef,
        out: &mut dyn Outputs,
        observer: &mut dyn Observer,
    ) {
        self.expiries.cancel(root.id);
        let instance = &mut self.nodes[usize::from(node)];
        match instance.deadline(root, shard) {
            None => {}
            Some(deadline) if deadline > at => {
                self.expiries.schedule(instance, node, shard, root);
            }
            Some(_) => {
                let mut env = self.env(node, shard, out, observer);
                end_group(&mut env, root, Cause::Expired);
            }
        }
    }

    pub(super) fn env<'a>(
        &'a mut self,
        node: u16,
        shard: usize,
        out: &'a mut dyn Outputs,
        observer: &'a mut dyn Observer,
    ) -> Env<'a> {
        let all = Others::all(&mut self.nodes, &self.subscriptions);
        let (instance, others) = all.take(node).expect("it is a function of the chain");
        Env {
            node,
            worker: u16::try_from(shard).unwrap_or(u16::MAX),
            shard,
            now: self.now,
            instance,
            others,
            expiries: &mut self.expiries,
            ids: &mut self.ids,
            out,
            observer,
        }
    }

    /// Runs the work of native functions that is due by now. The packets that their timers send run
    /// to their ends.
    pub(super) fn advance_natives(&mut self, out: &mut dyn Outputs) {
        for node in 0..self.nodes.len() {
            for shard in 0..self.nodes[node].shards.len() {
                let Some(function) = &mut self.nodes[node].shards[shard].native else { continue };
                function.advance(self.now);
                let outputs = function.take_outputs();
                let node = u16::try_from(node).unwrap_or(u16::MAX);
                let silent = &mut Silent;
                let sent = native::sent_by_timers(&outputs, self.now);
                native::publish(&mut self.env(node, shard, out, silent), outputs);
                let worker = u16::try_from(shard).unwrap_or(u16::MAX);
                let mut walk = Walk { hops: 0, worker, out: &mut *out, observer: silent };
                self.account_emissions(node, sent, false, &mut walk);
            }
        }
    }

    /// Starts the timers with the first packet.
    pub(super) fn start_timers(&mut self) {
        if self.started {
            return;
        }
        self.started = true;
        for instance in &mut self.nodes {
            for timer in 0..instance.timers.len() {
                let period = instance.period(timer);
                instance.timers[timer] = self.now.checked_add(period);
            }
        }
    }

    /// Skips the earliest firings of timers that are too far behind.
    fn skip_firings(&mut self, time: u64) {
        for instance in &mut self.nodes {
            for timer in 0..instance.timers.len() {
                let Some(due) = instance.timers[timer].filter(|due| *due <= time) else { continue };
                let period = instance.period(timer);
                let behind = (time - due) / period + 1;
                let skipped = behind.saturating_sub(CATCH_UP);
                instance.timers[timer] = Some(due + skipped * period);
                let total = &mut instance.counters.timers_skipped;
                *total = total.saturating_add(skipped);
            }
        }
    }

    /// Runs a timer, once for each shard.
    fn fire(
        &mut self,
        at: u64,
        node: u16,
        timer: usize,
        out: &mut dyn Outputs,
        observer: &mut dyn Observer,
    ) {
        let instance = &mut self.nodes[usize::from(node)];
        instance.timers[timer] = at.checked_add(instance.period(timer));
        let model = instance.model.clone();
        for shard in self.chain.timer_shards(node) {
            let shard = usize::from(shard);
            let env = self.env(node, shard, out, observer);
            in_background(env, Role::Timer, &model.timers[timer].body);
        }
    }

    /// Puts a packet into a queue.
    pub(super) fn hold(&mut self, node: u16, queue: QueueId, until: u64, held: Held) {
        *self.nodes[usize::from(node)].held(queue, held.worker) += 1;
        self.waiting.insert((until, node, queue, self.ids), held);
        self.ids += 1;
    }

    /// Takes a packet from a queue. Its function runs on it again.
    fn release(
        &mut self,
        key: (u64, u16, QueueId, u64),
        out: &mut dyn Outputs,
        observer: &mut dyn Observer,
    ) {
        let Some(held) = self.waiting.remove(&key) else { return };
        let (_, node, queue, _) = key;
        *self.nodes[usize::from(node)].held(queue, held.worker) -= 1;
        self.counters.held -= 1;
        let mut packet = held.packet;
        packet.time_ns = self.now;
        packet.held = true;
        let mut walk = Walk { hops: held.hops, worker: held.worker, out, observer };
        self.run_alone(node, packet, &mut walk);
    }
}

impl Instance {
    /// A timer's period, at least 1 ns.
    fn period(&self, timer: usize) -> u64 {
        self.setting64(self.model.timers[timer].period).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_ir::chain::{Chain, Interface, Malformed, Node, Sink, Source};
    use braid_ir::engine::{Engine, Event};
    use braid_ir::model::LEFT;
    use braid_ir::steering::Steering;
    use braid_packet::{Field, Link, Packet, Shape, build_fresh};

    struct Nothing;

    impl Outputs for Nothing {
        fn packet(&mut self, _: u16, _: Packet) {}
        fn event(&mut self, _: Event) {}
    }

    /// One function that stores the source ports of all packets.
    fn memory(full: &str) -> Reference {
        let text = format!(
            "model test {{
             state seen: u8 per (inet.sport) idle 1000000 capacity 2 full {full} tick 1
             row \"body\" row \"fault\"
             packet {{
             b0: v0:bool = has inet
                 branch v0, b1, b2
             b1: v1:u8 = const 1
                 v2:bool = set seen[entry], (v1)
                 jump b2
             b2: consume at row0 }} }}"
        );
        let model = std::sync::Arc::new(braid_ir::text::parse(&text).unwrap());
        Reference::new(Chain {
            name: "test".into(),
            interfaces: vec![Interface { name: "in".into(), ..Interface::default() }],
            nodes: vec![Node { name: "f".into(), model, params: Vec::new() }],
            links: vec![(Source::Interface(0), Sink::Port(0, LEFT))],
            priorities: Vec::new(),
            policy: Vec::new(),
            malformed: Malformed::Drop,
            seed: 1,
            workers: 1,
            steering: Steering::by_connection(),
            only: None,
            by_rules: false,
        })
        .unwrap()
    }

    fn send(engine: &mut Reference, time: u64, port: u16) {
        let fields = [(Field::UdpSport, port.into())];
        let packet = build_fresh(Link::RawIp, time, Shape::Udp4, &fields, &[]).unwrap();
        engine.packet(0, packet, &mut Nothing);
    }

    #[test]
    fn deadlines_of_evicted_entries_are_not_kept() {
        let mut engine = memory("evict_oldest");
        for port in 0..100 {
            send(&mut engine, 1, port);
        }
        assert_eq!(engine.expiries.lens(), (2, 2));
    }

    #[test]
    fn deadline_of_an_entry_that_is_often_found_is_kept_once() {
        let mut engine = memory("refuse");
        for time in 0..100 {
            send(&mut engine, time * 1000, 7);
        }
        assert_eq!(engine.expiries.lens(), (1, 1));
        engine.advance(u64::MAX, &mut Nothing);
        assert!(engine.expiries.lens() == (0, 0));
        assert_eq!(engine.counters().nodes[0].tables[0].expired, 1);
    }
}
