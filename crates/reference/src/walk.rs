//! A packet's walk from function to function along the links. Each walk runs to its end before the
//! next begins.

use super::engine::{Reference, Walk};
use super::instance::count;
use super::others::Others;
use super::run::{Emission, Env, Origin, Outcome, Write, on_packet};
use super::schedule::Held;
use crate::trace::Verdict;
use braid_ir::chain::Sink;
use braid_ir::engine::{HOP_LIMIT, LOST_HOP_LIMIT, LOST_UNLINKED, malformed_loss};
use braid_ir::graph::{may_drop, port};
use braid_ir::model::{Dest, RIGHT, RowId};
use braid_packet::{Field, Packet, bytes, options, replace};

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
        let members = self.graph.group(node).to_vec();
        let room = fits(walk.hops, members.len());
        for member in &members {
            let counters = &mut self.nodes[usize::from(*member)].counters;
            let traffic =
                if packet.backward { &mut counters.backward } else { &mut counters.forward };
            if room {
                count(traffic, packet.wire_len.into());
            }
        }
        match members.as_slice() {
            [node] => self.run_alone(*node, packet, walk),
            _ => self.run_group(&members, packet, walk),
        }
    }

    /// Runs one function on a packet.
    pub(super) fn run_alone(&mut self, node: u16, packet: Packet, walk: &mut Walk<'_>) {
        if !fits(walk.hops, 1) {
            return self.lose(LOST_HOP_LIMIT, walk);
        }
        walk.hops += 1;
        walk.observer.visit(node, &packet);
        let outcome = self.run_on_packet(node, packet, walk);
        self.account_emissions(node, outcome.emissions, &outcome.packet, walk);
        self.settle(node, outcome.verdict, outcome.packet, walk);
    }

    fn run_on_packet(&mut self, node: u16, packet: Packet, walk: &mut Walk<'_>) -> Outcome {
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

    /// Runs functions under `Priority` on the same packet, and merges their writes. The first
    /// function that may drop packets, or that dropped this packet by a fault, gives the verdict.
    /// Otherwise the last function gives it.
    fn run_group(&mut self, members: &[u16], packet: Packet, walk: &mut Walk<'_>) {
        if !fits(walk.hops, members.len()) {
            return self.lose(LOST_HOP_LIMIT, walk);
        }
        walk.hops += u32::try_from(members.len()).unwrap_or(HOP_LIMIT);
        let mut merged = packet.clone();
        let mut outcomes = Vec::with_capacity(members.len());
        for node in members {
            walk.observer.visit(*node, &packet);
            outcomes.push((*node, self.run_on_packet(*node, packet.clone(), walk)));
        }
        let writes: Vec<_> = outcomes.iter().map(|(_, outcome)| &*outcome.writes).collect();
        merge(&mut merged, &writes);
        let stands = outcomes.iter().position(|(node, outcome)| {
            matches!(outcome.verdict, Verdict::Fault(_))
                || may_drop(&self.nodes[usize::from(*node)].model)
        });
        let stands = stands.unwrap_or(outcomes.len() - 1);
        let mut verdict = None;
        walk.observer.stands(outcomes[stands].0);
        for (place, (node, outcome)) in outcomes.into_iter().enumerate() {
            self.account_emissions(node, outcome.emissions, &packet, walk);
            if place == stands {
                verdict = Some((node, outcome.verdict));
            }
        }
        if let Some((node, verdict)) = verdict {
            self.settle(node, verdict, merged, walk);
        }
    }

    /// Counts and delivers the packets that a function sent before it finished the current one.
    fn account_emissions(
        &mut self,
        node: u16,
        emissions: Vec<Emission>,
        current: &Packet,
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
            self.deliver(node, emission.dest, emission.packet, current.backward, walk);
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
        let sink = self.graph.next(node, port(dest, backward));
        self.arrive(sink, packet, walk);
    }

    /// Carries out the verdict on the packet.
    fn settle(&mut self, node: u16, verdict: Verdict, packet: Packet, walk: &mut Walk<'_>) {
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

/// Whether this number of further visits stays within the limit.
fn fits(hops: u32, visits: usize) -> bool {
    u32::try_from(visits).is_ok_and(|visits| hops.saturating_add(visits) <= HOP_LIMIT)
}

/// The row `fault`: the last one.
fn fault_row(rows: usize) -> RowId {
    RowId(u32::try_from(rows.saturating_sub(1)).unwrap_or(u32::MAX))
}

/// Merges the writes of functions under `Priority`. Winners come first in the list. Where two
/// functions wrote the same bits, the winner's bits stay. The winner's added and removed headers
/// decide the layout. Fields of the others are written where they still exist.
fn merge(packet: &mut Packet, writes: &[&[Write]]) {
    // The function whose header changes apply: the first one that made any.
    let shaper = writes.iter().position(|log| log.iter().any(Write::changes_headers));
    for (place, log) in writes.iter().enumerate().rev() {
        if Some(place) == shaper && place == 0 {
            log.iter().for_each(|write| replay(packet, write));
        } else {
            let aimed = (0..log.len()).filter_map(|at| at_arrival(log, at));
            aimed.for_each(|write| replay(packet, &write));
        }
    }
    // A winner that changed no header wrote to the headers that arrived. So a loser's header
    // changes come after the winner's writes, together with the loser's writes to the tags that it
    // added.
    if let Some(shaper) = shaper.filter(|place| *place > 0) {
        let log = writes[shaper];
        let own = (0..log.len()).filter(|at| at_arrival(log, *at).is_none());
        own.for_each(|at| replay(packet, &log[at]));
    }
}

impl Write {
    fn changes_headers(&self) -> bool {
        matches!(self, Write::PushVlan(_) | Write::PopVlan)
    }
}

/// A write of a log as a write to the packet that arrived. `None`: a header change, or a write to a
/// tag that the log added.
fn at_arrival(log: &[Write], at: usize) -> Option<Write> {
    let Write::Field(field, value) = log[at] else {
        return (!log[at].changes_headers()).then(|| log[at].clone());
    };
    let Some((nth, names)) = vlan_names(field) else { return Some(log[at].clone()) };
    // The tags that the log has already added in front, and the arriving tags that it has removed.
    let (mut added, mut removed) = (0_usize, 0);
    for write in &log[..at] {
        match write {
            Write::PushVlan(_) => added += 1,
            Write::PopVlan if added > 0 => added -= 1,
            Write::PopVlan => removed += 1,
            _ => {}
        }
    }
    let field = *names.get(nth.checked_sub(added)? + removed)?;
    Some(Write::Field(field, value))
}

/// For a field of a VLAN tag: the number of the tag, counted from the outermost, and the names of
/// the field in the first and the second tag.
fn vlan_names(field: Field) -> Option<(usize, [Field; 2])> {
    use Field::{Vlan2Dei, Vlan2Id, Vlan2Pcp, VlanDei, VlanId, VlanPcp};
    let names = [[VlanId, Vlan2Id], [VlanDei, Vlan2Dei], [VlanPcp, Vlan2Pcp]];
    names.into_iter().find_map(|names| {
        let nth = names.iter().position(|name| *name == field)?;
        Some((nth, names))
    })
}

fn replay(packet: &mut Packet, write: &Write) {
    match write {
        Write::Field(field, value) => {
            let layout = packet.parse();
            packet.set(&layout, *field, *value);
        }
        Write::Tag(name, value) => {
            packet.tags.insert(name.as_str().into(), *value);
        }
        Write::PushVlan(id) => {
            packet.push_vlan(*id);
        }
        Write::PopVlan => {
            packet.pop_vlan();
        }
        Write::Option(option, values) => {
            let layout = packet.parse();
            options::change(packet, &layout, *option, values.as_deref());
        }
        Write::Bytes(place, len, value) => {
            let layout = packet.parse();
            let _ = bytes::store(packet, &layout, *place, *len, *value);
        }
        Write::Replace(place, (new, words)) => {
            let layout = packet.parse();
            let _ = replace::replace(packet, &layout, *place, (*new, words));
        }
        Write::AnyOption(kind, value) => {
            let layout = packet.parse();
            options::set(packet, &layout, *kind, value.as_deref());
        }
        Write::Tunnel(change) => {
            let layout = packet.parse();
            let _ = change.apply(packet, &layout);
        }
        Write::Crypt(change) => {
            let layout = packet.parse();
            let _ = change.apply(packet, &layout);
        }
    }
}
