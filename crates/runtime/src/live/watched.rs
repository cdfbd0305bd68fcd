//! A worker's side of captures and traces: it runs the packets that clients watch.

use super::exchange::Exchange;
use super::watch::{Between, Traced};
use super::worker::Worker;
use crate::ctl::Sighting;
use braid_ir::chain::Chain;
use braid_ir::engine::{Counters, Later, Room};
use braid_packet::Packet;
use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

/// The mark of a packet that is watched. Packets that functions build have none.
const WATCHED: u32 = 1;

impl Worker<'_> {
    /// Runs the engine on the packets of the load one by one, because a client may watch them.
    /// Sends the packets that leave.
    pub(super) fn run_watched(&mut self, now: u64) {
        let packets: Vec<Packet> = self.load.burst.drain().collect();
        for packet in packets {
            // Packets of work that is due before this packet leave before it.
            let (_, mut out) = self.load.parts();
            self.engine.advance(now, &mut out);
            self.sink.deliver(&self.chain, &mut self.load);
            let is_watched = self.sink.watch.enters(packet.ingress);
            match is_watched {
                true => self.run_one(packet, now),
                false => self.run_plain(packet),
            }
            self.sink.deliver(&self.chain, &mut self.load);
        }
    }

    fn run_plain(&mut self, packet: Packet) {
        let (burst, mut out) = self.load.parts();
        burst.push(packet);
        self.engine.burst(burst, &mut out);
    }

    /// Runs the engine on a packet that a client may watch.
    fn run_one(&mut self, mut packet: Packet, now: u64) {
        let sightings = self.sink.watch.sightings(&packet);
        let trace = self.begin_trace(&packet);
        if self.sink.watch.is_between() {
            return self.run_between(packet, sightings, trace);
        }
        if sightings.is_empty() && trace.is_none() {
            return self.run_plain(packet);
        }
        let looks = !sightings.is_empty() && self.sink.watch.may_look(now);
        let before = looks.then(|| self.engine.counters());
        packet.mark = WATCHED;
        let (_, mut out) = self.load.parts();
        let path = self.engine.explained(packet.ingress, packet, &mut out);
        let left = self.left();
        if !sightings.is_empty() {
            let what = self.what_happened(before.as_ref(), &left);
            self.sink.watch.show(sightings, &what);
        }
        if let Some(traced) = trace {
            self.traced(traced, path, left);
        }
    }

    /// Runs the engine on a packet function by function, because clients watch functions.
    fn run_between(
        &mut self,
        mut packet: Packet,
        mut sightings: Vec<(usize, Sighting)>,
        trace: Option<Traced>,
    ) {
        packet.mark = WATCHED;
        let (_, mut out) = self.load.parts();
        let mut between = Between::new(&mut self.sink.watch);
        self.engine.watched(packet.ingress, packet, &mut out, &mut between);
        sightings.append(&mut between.sightings);
        let last = between.last;
        let left = self.left();
        if !sightings.is_empty() {
            let mut what = self.what_happened(None, &left);
            if left.is_empty()
                && let Some(node) = last.and_then(|last| self.chain.nodes.get(usize::from(last)))
            {
                what = format!("did not leave {}", node.name);
            }
            self.sink.watch.show(sightings, &what);
        }
        if let Some(traced) = trace {
            self.traced(traced, None, left);
        }
    }

    /// The packets that leave because of a packet: each with its interface, whether it is the
    /// packet itself or a copy, and its bytes.
    fn left(&mut self) -> Vec<(u16, bool, Vec<u8>)> {
        let mut left = Vec::new();
        self.load.each_leaving(|interface, packet| {
            let mark = std::mem::take(&mut packet.mark);
            left.push((interface, mark == WATCHED, packet.data().to_vec()));
        });
        left
    }

    /// Hands a packet that was traced to the control thread.
    fn traced(
        &mut self,
        mut traced: Traced,
        path: Option<Box<dyn Any + Send>>,
        left: Vec<(u16, bool, Vec<u8>)>,
    ) {
        traced.path = path;
        traced.left = left.into_iter().map(|(to, _, bytes)| (to, bytes)).collect();
        self.sink.watch.found(Ok(traced));
    }

    /// The fate of a packet, as text. `left` has the packets that left because of it, each with its
    /// interface, and whether it is the packet itself or a copy.
    fn what_happened(&self, before: Option<&Counters>, left: &[(u16, bool, Vec<u8>)]) -> String {
        let interfaces = &self.chain.interfaces;
        let name = |at: &u16| interfaces.get(usize::from(*at)).map_or("?", |one| &one.name);
        let mut told: Vec<String> = left
            .iter()
            .map(|(to, is_own, _)| match is_own {
                true => format!("left the chain for {}", name(to)),
                false => format!("was answered by a packet for {}", name(to)),
            })
            .collect();
        match before {
            Some(before) => told.extend(ends(&self.chain, before, &self.engine.counters())),
            None if told.is_empty() => told.push("did not leave".to_owned()),
            None => {}
        }
        told.join(", ")
    }

    /// The number of state entries.
    fn entries(&self) -> u64 {
        let nodes = self.engine.counters().nodes;
        nodes.iter().flat_map(|node| &node.tables).map(|table| table.entries).sum()
    }

    /// Prepares the allocation of memory for the copy of the state that a trace needs. The result
    /// allocates the memory, on any thread.
    pub(super) fn room_for_trace(&self) -> Later<Room> {
        let trace = self.sink.watch.trace.as_ref();
        match trace.is_some_and(|trace| self.entries() <= trace.most_entries) {
            true => self.engine.room(None),
            false => Box::new(|| None),
        }
    }

    /// Copies the state if this packet is to be traced.
    fn begin_trace(&mut self, packet: &Packet) -> Option<Traced> {
        let (most, room) = self.sink.watch.take_trace(packet)?;
        let entries = self.entries();
        if entries > most {
            let why = format!(
                "the chain has {entries} state entries, and packets wait while they \
                               are copied; `--most-entries {entries}` permits it"
            );
            self.sink.watch.found(Err(why));
            return None;
        }
        let start = Instant::now();
        let before = self.engine.exporter(room);
        Some(Traced {
            chain: Arc::clone(&self.chain),
            worker: self.exchange.as_ref().map(Exchange::own),
            before,
            packet: packet.clone(),
            path: None,
            left: Vec::new(),
            pause_us: u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX),
        })
    }
}

/// How packets ended between two counts, as text.
fn ends(chain: &Chain, before: &Counters, after: &Counters) -> Vec<String> {
    let mut told = Vec::new();
    for ((node, row, reason), count) in &after.drops {
        if *count > before.drops.get(&(*node, *row, reason.clone())).copied().unwrap_or(0) {
            let name = chain.nodes.get(usize::from(*node)).map_or("?", |node| &node.name);
            told.push(format!("was dropped by {name}: {reason}"));
        }
    }
    for (reason, count) in &after.lost {
        if *count > before.lost.get(reason).copied().unwrap_or(0) {
            told.push(format!("was lost: {reason}"));
        }
    }
    if after.consumed > before.consumed {
        told.push("was consumed".to_owned());
    }
    if after.held > before.held {
        told.push("waits in a queue".to_owned());
    }
    told
}
