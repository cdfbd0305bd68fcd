//! A packet's walk from function to function along the links. Each walk runs to its end before the
//! next begins.

use super::branches;
use super::engine::{Reference, Walk};
use super::instance::count;
use super::others::Others;
use super::run::{Emission, Env, Origin, Outcome, on_packet};
use super::schedule::Held;
use crate::trace::Verdict;
use braid_ir::chain::Sink;
use braid_ir::engine::{LOST_HOP_LIMIT, LOST_UNLINKED, malformed_loss};
use braid_ir::model::{Dest, RIGHT, RowId};
use braid_packet::Packet;

impl Reference {
    /// Processes a packet that arrives behind a link.
    pub(super) fn arrive(&mut self, sink: Option<Sink>, mut packet: Packet, walk: &mut Walk<'_>) {
        match sink {
            None => self.lose(LOST_UNLINKED, walk),
            Some(Sink::Interface(interface)) => {
                *self.counters.out.entry(interface).or_default() += 1;
                walk.observer.leave(interface, &packet);
                walk.out.packet(interface, packet);
            }
            Some(Sink::Port(node, port)) => {
                packet.backward = port == RIGHT;
                packet.held = false;
                self.visit(node, packet, walk);
            }
        }
    }

    pub(super) fn lose(&mut self, reason: &str, walk: &mut Walk<'_>) {
        *self.counters.lost.entry(reason.to_owned()).or_default() += 1;
        walk.observer.lost(reason);
    }

    /// Lets a packet enter a function, or several functions side by side.
    fn visit(&mut self, node: u16, packet: Packet, walk: &mut Walk<'_>) {
        match self.graph.branches(node, packet.backward).cloned() {
            Some(all) => branches::run(self, &all, packet, walk),
            None => {
                if walk.fits(1) {
                    self.count_entry(node, &packet);
                }
                self.run_alone(node, packet, walk);
            }
        }
    }

    /// Counts a packet that enters a function.
    pub(super) fn count_entry(&mut self, node: u16, packet: &Packet) {
        let counters = &mut self.nodes[usize::from(node)].counters;
        let traffic = if packet.backward { &mut counters.backward } else { &mut counters.forward };
        count(traffic, packet.wire_len.into());
    }

    /// Runs one function on a packet.
    pub(super) fn run_alone(&mut self, node: u16, packet: Packet, walk: &mut Walk<'_>) {
        if !walk.fits(1) {
            return self.lose(LOST_HOP_LIMIT, walk);
        }
        walk.hops += 1;
        walk.observer.visit(node, &packet);
        let outcome = self.run_on_packet(node, packet, walk);
        self.account_emissions(node, outcome.emissions, outcome.packet.backward, walk);
        self.settle(node, outcome.verdict, outcome.packet, walk);
    }

    pub(super) fn run_on_packet(
        &mut self,
        node: u16,
        packet: Packet,
        walk: &mut Walk<'_>,
    ) -> Outcome {
        let all = Others::all(&mut self.nodes, &self.subscriptions);
        let (instance, others) = all.take(node).expect("it is a function of the chain");
        let shard = instance.shard(walk.worker);
        let env = Env {
            node,
            worker: walk.worker,
            shard,
            now: self.now,
            instance,
            others,
            expiries: &mut self.expiries,
            ids: &mut self.ids,
            out: walk.out,
            observer: walk.observer,
        };
        let outcome = on_packet(env, packet);
        if let Verdict::Fault(_) = outcome.verdict {
            let instance = &mut self.nodes[usize::from(node)];
            let row = fault_row(instance.model.rows.len());
            instance.count_row(row, outcome.packet.wire_len.into());
        }
        outcome
    }

    /// Counts and delivers the packets that a function sent before it finished the current one, or
    /// from a timer. `backward` is the direction of the current one.
    pub(super) fn account_emissions(
        &mut self,
        node: u16,
        emissions: Vec<Emission>,
        backward: bool,
        walk: &mut Walk<'_>,
    ) {
        for emission in emissions {
            match emission.origin {
                Origin::Copied => self.counters.copied += 1,
                Origin::Built | Origin::Made => self.counters.created += 1,
            }
            let is_checked = emission.origin == Origin::Made;
            let malformed = malformed_loss(&emission.packet, self.chain.malformed);
            if let Some(reason) = malformed.filter(|_| is_checked) {
                self.lose(reason, walk);
                continue;
            }
            self.deliver(node, emission.dest, emission.packet, backward, walk);
        }
    }

    fn deliver(
        &mut self,
        node: u16,
        dest: Dest,
        packet: Packet,
        backward: bool,
        walk: &mut Walk<'_>,
    ) {
        walk.observer.output(node, &packet);
        let sink = self.graph.leads(node, dest, backward);
        self.arrive(sink, packet, walk);
    }

    /// Carries out the verdict on the packet.
    pub(super) fn settle(
        &mut self,
        node: u16,
        verdict: Verdict,
        packet: Packet,
        walk: &mut Walk<'_>,
    ) {
        let backward = packet.backward;
        match verdict {
            Verdict::Output { ports, .. } => {
                let Some((last, others)) = ports.split_last() else { return };
                for dest in others {
                    self.counters.copied += 1;
                    self.deliver(node, *dest, packet.clone(), backward, walk);
                }
                self.deliver(node, *last, packet, backward, walk);
            }
            Verdict::Drop { reason, row } => self.count_drop(node, row, reason),
            Verdict::Fault(fault) => {
                let row = fault_row(self.nodes[usize::from(node)].model.rows.len());
                self.count_drop(node, row, fault.reason().to_owned());
            }
            Verdict::Consume { .. } => self.counters.consumed += 1,
            Verdict::Hold { queue, until_ns, .. } => {
                self.counters.held += 1;
                let held = Held { packet, hops: walk.hops, worker: walk.worker };
                self.hold(node, queue, until_ns, held);
            }
        }
    }

    fn count_drop(&mut self, node: u16, row: RowId, reason: String) {
        *self.counters.drops.entry((node, row.0, reason)).or_default() += 1;
    }
}

/// The row `fault`: the last one.
fn fault_row(rows: usize) -> RowId {
    RowId(u32::try_from(rows.saturating_sub(1)).unwrap_or(u32::MAX))
}
