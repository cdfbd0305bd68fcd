//! A TCP stack for stream functions.

use crate::datagrams::Flows;
use crate::events::{Bytes, Collector, Event, What};
use crate::follower::{Data, Follower, Part};
use crate::function::Function;
use crate::inspections::{Lately, Run};
use crate::missed::Missed;
use crate::orders::Orders;
use crate::packets::{self, OfFlow};
use crate::program::{End, Matches};
use braid_ir::model::{Model, ParamId, ReasonId, Word};
use braid_ir::native::{Noted, Problem};
use braid_ir::value::ParamValue;
use braid_packet::{Field, FlowKey, Header, Layout, Packet};
use braid_signatures::Kind;
use braid_tcp::{
    Checksums, ConnectionId, Direction, Monitor, Options, Pair, Progress, Seq, Status,
};
use foldhash::fast::RandomState;
use slab::Slab;
use std::collections::HashMap;

/// The flag FIN of TCP.
const FIN: Word = 1;

/// The results of [`braid_ir::model::Op::Stream`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Answer {
    /// 0, or 1 plus the number of a reason.
    pub verdict: Word,
    /// Whether the function has reset the connection just now.
    pub is_new: bool,
    /// The sequence number of a RST for the packet's receiver.
    pub seq: Word,
    /// The sequence number of a RST for the packet's sender.
    pub ack: Word,
}

impl Answer {
    /// The packet is dropped for a reason. Nobody gets a RST.
    fn dropped(reason: ReasonId) -> Self {
        Self { verdict: verdict(reason), ..Self::default() }
    }

    /// The results in their order.
    #[must_use]
    pub fn words(self) -> [Word; 4] {
        [self.verdict, self.is_new.into(), self.seq, self.ack]
    }
}

/// What a stack keeps of a connection.
#[derive(Debug)]
pub struct Known {
    /// One for each function.
    pub followers: Box<[Follower]>,
    /// The client's flow, if a function has reset the connection.
    pub aborted: Option<FlowKey>,
    /// The memory of the followers, which counts towards the limit of the monitor (bytes).
    pub memory: usize,
}

impl Known {
    pub fn new(functions: usize) -> Self {
        let followers: Box<[Follower]> = (0..functions).map(|_| Follower::default()).collect();
        let memory = followers.iter().map(Follower::memory).sum();
        Self { followers, aborted: None, memory }
    }
}

/// What the last packet has brought.
#[derive(Debug, Default)]
struct Brought {
    /// The packet's number.
    number: Option<u64>,
    /// By function: whether it has had the packet.
    had: Vec<bool>,
    /// Its connection.
    connection: Option<ConnectionId>,
    /// The place of what the stack keeps of the connection.
    known: Option<usize>,
    /// If it has a FIN: how far its connection was before.
    before: Option<Pair<Progress>>,
    events: Vec<Event>,
    forgotten: Vec<ConnectionId>,
}

/// A TCP stack, for one stream function or for several.
#[derive(Debug)]
pub struct Stack {
    pub(crate) monitor: Monitor,
    pub(crate) functions: Vec<Function>,
    /// The connections that have brought events.
    pub(crate) known: Slab<Known>,
    /// Their places.
    pub(crate) places: HashMap<ConnectionId, usize, RandomState>,
    brought: Brought,
    /// Ends of connections that functions have not learned of: the function, the client's flow, and
    /// what is kept for the function.
    owed: Vec<(usize, FlowKey, Follower)>,
    /// For each function: what it has missed.
    missed: Vec<Missed>,
    /// For each function: how often its signatures have held lately.
    pub(crate) lately: Vec<Lately>,
    /// For each function: the flows of datagrams that it inspects.
    pub(crate) flows: Vec<Flows>,
    /// For each function: the orders for flows that it has not obeyed yet.
    pub(crate) orders: Vec<Orders>,
    /// The results of searches, whose memory is used again.
    matches: Matches,
}

impl Stack {
    /// A stack for functions with these models.
    #[must_use]
    pub fn new<'a>(models: impl IntoIterator<Item = &'a Model>) -> Self {
        let options =
            Options { is_inline: true, checksums: Checksums::Learned, ..Options::default() };
        let functions: Vec<Function> = models.into_iter().map(Function::of).collect();
        Self {
            monitor: Monitor::new(options),
            missed: functions.iter().map(|_| Missed::default()).collect(),
            lately: functions.iter().map(|_| Lately::default()).collect(),
            flows: functions.iter().map(|_| Flows::default()).collect(),
            orders: functions.iter().map(|_| Orders::default()).collect(),
            brought: Brought { had: vec![false; functions.len()], ..Brought::default() },
            functions,
            known: Slab::new(),
            places: HashMap::default(),
            owed: Vec::new(),
            matches: Matches::new(),
        }
    }

    /// What a function has missed because the stack could not follow it or signatures could not
    /// inspect it, and what the stack did not verify.
    #[must_use]
    pub fn problems(&self, function: usize) -> Vec<Noted> {
        let (Some(Missed { inspected, http }), Some(flows), Some(orders)) =
            (self.missed.get(function), self.flows.get(function), self.orders.get(function))
        else {
            return Vec::new();
        };
        let counts = self.monitor.counts();
        let all = [
            (counts.wrong_checksums, "does not follow packets with a wrong checksum"),
            (
                counts.unverified,
                "follows packets with a wrong checksum, whose senders have no right ones",
            ),
            (counts.fragments, "does not follow IP fragments"),
            (counts.cut, "does not follow bytes that the capture lacks"),
            (counts.given_up, "has no memory for connections"),
            (counts.memory_gaps, "has no memory for bytes that wait"),
            (inspected.gaps, "does not inspect streams behind missing bytes"),
            (inspected.depths, "inspects only the first bytes of long streams"),
            (inspected.malformed, "does not inspect HTTP behind malformed messages"),
            (inspected.exhausted, "gives up inspections that take too long"),
            (inspected.left_out, "leaves out alerts of connections with too many"),
            (inspected.windows, "forgets how often signatures have held for old addresses"),
            (flows.forgotten, "has no memory for flows of datagrams"),
            (flows.fragments, "does not inspect IP fragments"),
            (flows.cut, "inspects only the bytes of packets that the capture has"),
            (inspected.bits, "does not set all bits of connections with too many"),
            (orders.forgotten, "does not obey all events about connections: there are too many"),
            (http.gaps, "does not parse HTTP behind missing bytes"),
            (http.malformed, "does not parse HTTP behind malformed messages"),
            (http.crowded, "does not parse responses where too many requests wait for them"),
        ];
        let noted = all.into_iter().filter(|(times, _)| *times > 0);
        let noted = noted.map(|(times, what)| Noted {
            problem: Problem::Traffic(what.to_owned()),
            times,
            packet: 0,
        });
        noted.collect()
    }

    /// A parameter of a function has changed. If its patterns are searched, the searches begin
    /// anew.
    pub fn changed(&mut self, function: usize, param: ParamId) {
        if let Some(function) = self.functions.get_mut(function)
            && (function.scanned.contains(&param) || function.inspected.contains(&param))
        {
            function.changes += 1;
        }
    }

    /// Gives a packet to one of the functions, and runs its programs by `run`. `number` tells the
    /// packets apart: the first function that gets a packet lets the stack take it. If a function
    /// gets a packet again, another one has turned the packet around, so the stack takes it again.
    pub fn packet(
        &mut self,
        number: u64,
        (packet, layout): (&Packet, &Layout),
        (function, params): (usize, &[ParamValue]),
        run: &mut Run<'_>,
    ) -> Answer {
        if !layout.has(Header::Tcp) {
            return self.other(packet, layout, (function, params), run);
        }
        let dropped = self.fragment(packet, layout, (function, params), run);
        if self.brought.number != Some(number) || self.brought.had.get(function) == Some(&true) {
            self.take(packet, layout);
            self.brought.number = Some(number);
            self.brought.had.fill(false);
        }
        if let Some(had) = self.brought.had.get_mut(function) {
            *had = true;
        }
        let was_reset = self.reset_by(function);
        let is_reset = self.obey(function, packet, layout);
        if was_reset.is_none() && !is_reset {
            self.inspect(packet, layout, (function, params), run);
        }
        let now = packet.time_ns;
        let (Some(of), Some(lately), Some(missed)) = (
            self.functions.get(function),
            self.lately.get_mut(function),
            self.missed.get_mut(function),
        ) else {
            return Answer::default();
        };
        let mut inspected = of.inspected(params, lately, now, missed);
        for (_, flow, mut follower) in self.owed.extract_if(.., |(of, ..)| *of == function) {
            follower.close(flow, &mut inspected, run);
        }
        if let Some(reason) = was_reset {
            return Answer { verdict: verdict(reason), ..Answer::default() };
        }
        if !is_reset
            && let Some(known) = self.brought.known.and_then(|at| self.known.get_mut(at))
            && let Some(follower) = known.followers.get_mut(function)
            && let Some(flow) = known.aborted
        {
            // Another function has reset the connection, and this is the RST.
            follower.close(flow, &mut inspected, run);
        }
        if !is_reset && !self.brought.events.is_empty() {
            self.publish((packet.payload(layout), now), function, params, run);
        }
        match self.reset_by(function) {
            Some(reason) => self.reset(packet, layout, reason),
            None => dropped.map_or_else(Answer::default, Answer::dropped),
        }
    }

    /// Gives a fragment to a function's rules about packets. Returns the reason for which it is
    /// dropped.
    fn fragment(
        &mut self,
        packet: &Packet,
        layout: &Layout,
        (function, params): (usize, &[ParamValue]),
        run: &mut Run<'_>,
    ) -> Option<ReasonId> {
        if !layout.is_fragment() {
            return None;
        }
        let (of, lately) = (self.functions.get(function)?, self.lately.get_mut(function)?);
        let missed = self.missed.get_mut(function)?;
        let mut inspected = of.inspected(params, lately, packet.time_ns, missed);
        let flow = packet.flow_key(layout).filter(|_| inspected.has_packets(Kind::Fragment))?;
        match packets::alone(packet, layout, flow, &mut inspected, run) {
            End::Reset(reason) => Some(reason),
            End::Forward | End::Bypass | End::Resume => None,
        }
    }

    /// An event names this flow, and the function's handler wants this of it. It holds from the
    /// flow's next packet on that the function gets.
    pub fn order(&mut self, function: usize, flow: FlowKey, end: End, now: u64) {
        let orders = self.orders.get_mut(function);
        orders.into_iter().for_each(|orders| orders.add(flow, end, now));
    }

    /// Obeys a function's order for the packet's connection, and drops those for connections that
    /// have ended. Returns whether this has reset the connection.
    fn obey(&mut self, function: usize, packet: &Packet, layout: &Layout) -> bool {
        let Self { monitor, known, brought, orders, owed, .. } = self;
        let Some(orders) = orders.get_mut(function).filter(|orders| !orders.is_empty()) else {
            return false;
        };
        let closed = brought.events.iter().filter(|event| matches!(event.what, What::Close));
        let owed = owed.iter().filter(|(of, ..)| *of == function).map(|(_, flow, _)| *flow);
        closed.map(|event| event.flow).chain(owed).for_each(|flow| orders.remove(flow));
        let (Some(connection), Some(flow)) = (brought.connection, packet.flow_key(layout)) else {
            return false;
        };
        let of = brought.known.and_then(|at| known.get(at));
        let part = of.and_then(|of| of.followers.get(function)).map_or(Part::New, |one| one.part);
        if part == Part::New && orders.resumes(flow) {
            // It waits for the function to learn of the connection.
            return false;
        }
        let Some(end) = orders.take(flow, packet.time_ns, |_| part != Part::New) else {
            return false;
        };
        let is_over = monitor.status(flow).is_none_or(|status| status.is_over);
        let is_aborted = of.is_some_and(|of| of.aborted.is_some());
        if is_over || is_aborted || matches!(part, Part::Over | Part::Reset(_)) {
            return false;
        }
        let at = brought.known.unwrap_or_else(|| self.keep(connection));
        if let Some(of) = self.known.get_mut(at)
            && let Some(follower) = of.followers.get_mut(function)
        {
            let memory = follower.memory();
            follower.ended(end);
            of.memory = of.memory + follower.memory() - memory;
            self.monitor.charge(flow, of.memory);
        }
        matches!(end, End::Reset(_))
    }

    /// Keeps something of the packet's connection, and returns its place.
    fn keep(&mut self, connection: ConnectionId) -> usize {
        let at = self.known.insert(Known::new(self.functions.len()));
        self.places.insert(connection, at);
        self.brought.known = Some(at);
        at
    }

    /// The reason for which a function has reset the packet's connection.
    fn reset_by(&self, function: usize) -> Option<ReasonId> {
        let known = self.brought.known.and_then(|at| self.known.get(at));
        match known.and_then(|known| known.followers.get(function))?.part {
            Part::Reset(reason) => Some(reason),
            _ => None,
        }
    }

    /// As [`Self::packet`], for a stack of one function: each packet is a new one.
    pub fn next_packet(
        &mut self,
        packet: (&Packet, &Layout),
        function: (usize, &[ParamValue]),
        run: &mut Run<'_>,
    ) -> Answer {
        let number = self.brought.number.map_or(0, |last| last.wrapping_add(1));
        self.packet(number, packet, function, run)
    }

    /// Gives a packet that is not TCP to one of the functions.
    fn other(
        &mut self,
        packet: &Packet,
        layout: &Layout,
        (function, params): (usize, &[ParamValue]),
        run: &mut Run<'_>,
    ) -> Answer {
        let (Some(of), Some(lately), Some(flows), Some(missed), Some(orders)) = (
            self.functions.get(function),
            self.lately.get_mut(function),
            self.flows.get_mut(function),
            self.missed.get_mut(function),
            self.orders.get_mut(function),
        ) else {
            return Answer::default();
        };
        let mut inspected = of.inspected(params, lately, packet.time_ns, missed);
        let Some(flow) = packet.flow_key(layout) else { return Answer::default() };
        let kind = packets::kind(flow.proto);
        let is_inspected = inspected.has_packets(kind);
        if layout.is_fragment() {
            // Those of TCP are missing in its streams.
            flows.fragments += u64::from(is_inspected && kind != Kind::Tcp);
            let dropped = self.fragment(packet, layout, (function, params), run);
            return dropped.map_or_else(Answer::default, Answer::dropped);
        }
        flows.cut += u64::from(is_inspected && layout.payload_truncated());
        let reset = match kind {
            Kind::Udp if layout.has(Header::Udp) => {
                flows.packet((packet, layout), orders, &mut inspected, run)
            }
            Kind::Icmp | Kind::Other if is_inspected => {
                match packets::alone(packet, layout, flow, &mut inspected, run) {
                    End::Reset(reason) => Some((reason, true)),
                    End::Forward | End::Bypass | End::Resume => None,
                }
            }
            // A packet without its whole header belongs to no flow.
            _ => None,
        };
        reset.map_or_else(Answer::default, |(reason, is_new)| Answer {
            verdict: verdict(reason),
            is_new,
            ..Answer::default()
        })
    }

    /// Gives the packet of a connection to a function's rules about packets.
    fn inspect(
        &mut self,
        packet: &Packet,
        layout: &Layout,
        (function, params): (usize, &[ParamValue]),
        run: &mut Run<'_>,
    ) {
        let Self { monitor, functions, known, brought, missed, lately, .. } = self;
        let (Some(of), Some(lately), Some(missed), Some(connection)) = (
            functions.get(function),
            lately.get_mut(function),
            missed.get_mut(function),
            brought.connection,
        ) else {
            return;
        };
        let mut inspected = of.inspected(params, lately, packet.time_ns, missed);
        if !inspected.has_packets(Kind::Tcp) {
            return;
        }
        let Some(flow) = packet.flow_key(layout) else { return };
        let Some(Status { client, is_established, is_over }) = monitor.status(flow) else { return };
        let of_flow = OfFlow { packet, layout, flow, from_client: flow == client, is_established };
        let mut new = None;
        let known_one = brought.known.and_then(|at| known.get_mut(at));
        let follower = match known_one.and_then(|known| known.followers.get_mut(function)) {
            Some(Follower { part: Part::Left | Part::Reset(_), .. }) => return,
            Some(follower) if follower.part != Part::Over => follower,
            // Nothing is kept of a connection that is over.
            _ => new.insert(Follower::default()),
        };
        follower.learn(of.changes);
        let memory = follower.memory();
        let end = of_flow.inspect_connection(&mut follower.inspections, &mut inspected, run);
        if !is_over {
            follower.ended(end);
        }
        let changed = follower.memory();
        if let Some(new) = new {
            if is_over || end == End::Forward && !new.inspections.has_bits() {
                return;
            }
            let at = self.keep(connection);
            let known = self.known.get_mut(at);
            if let Some(place) = known.and_then(|known| known.followers.get_mut(function)) {
                *place = new;
            }
        }
        if let Some(of) = self.brought.known.and_then(|at| self.known.get_mut(at)) {
            of.memory = of.memory + changed - memory;
            self.monitor.charge(flow, of.memory);
        }
    }

    /// Takes a packet, and forgets what the packet before has brought.
    fn take(&mut self, packet: &Packet, layout: &Layout) {
        self.forget();
        self.brought.events.clear();
        let has_fin = packet.get(layout, Field::TcpFlags).is_some_and(|flags| flags & FIN != 0);
        let flow = has_fin.then(|| packet.flow_key(layout)).flatten();
        self.brought.before = flow.and_then(|flow| self.monitor.progress(flow));
        let Brought { events, forgotten, .. } = &mut self.brought;
        let mut collector = Collector { payload: packet.payload(layout), events, forgotten };
        let connection = self.monitor.packet(packet, layout, &mut collector);
        let known = connection.and_then(|it| self.places.get(&it).copied());
        (self.brought.connection, self.brought.known) = (connection, known);
        for number in 0..self.brought.events.len() {
            self.place(number);
        }
    }

    /// Forgets the connections that the monitor has forgotten. Functions that did not get the
    /// packet still learn of the end.
    fn forget(&mut self) {
        for connection in self.brought.forgotten.drain(..) {
            let gone = self.places.remove(&connection).and_then(|at| self.known.try_remove(at));
            let of_it = |event: &&Event| event.connection == connection;
            let event = self.brought.events.iter().find(of_it);
            let flow = event.map(|event| event.flow);
            let had_it = self.brought.had.iter().zip(&mut self.orders);
            let others = had_it.filter(|(had_it, _)| !**had_it);
            others.for_each(|(_, orders)| flow.into_iter().for_each(|flow| orders.remove(flow)));
            let (Some(gone), Some(event)) = (gone, event) else { continue };
            let follows = gone.followers.into_iter().enumerate();
            let follows = follows.filter(|(_, follower)| follower.part == Part::Follows);
            self.owed.extend(follows.map(|(function, follower)| (function, event.flow, follower)));
        }
    }

    /// Finds what the stack keeps of the connection of an event. Keeps something of the connections
    /// that functions learn of.
    fn place(&mut self, number: usize) {
        let Self { monitor, functions, known, places, brought, .. } = self;
        let Some(event) = brought.events.get_mut(number) else { return };
        let is_of_packet = Some(event.connection) == brought.connection;
        event.known = match is_of_packet {
            true => brought.known,
            false => places.get(&event.connection).copied(),
        };
        if event.known.is_none() && matches!(event.what, What::Open | What::Data(..)) {
            let new = Known::new(functions.len());
            monitor.charge(event.flow, new.memory);
            let at = known.insert(new);
            places.insert(event.connection, at);
            event.known = Some(at);
            if is_of_packet {
                brought.known = Some(at);
            }
        }
    }

    /// Runs a function's programs for what the packet has brought.
    fn publish(
        &mut self,
        (payload, now): (&[u8], u64),
        at: usize,
        params: &[ParamValue],
        run: &mut Run<'_>,
    ) {
        let Self { monitor, functions, known, brought, matches, missed, lately, orders, .. } = self;
        let (Some(function), Some(lately), Some(missed), Some(orders)) =
            (functions.get(at), lately.get_mut(at), missed.get_mut(at), orders.get_mut(at))
        else {
            return;
        };
        let mut inspected = function.inspected(params, lately, now, missed);
        for Event { flow, what, known: place, .. } in &brought.events {
            let Some(of) = place.and_then(|place| known.get_mut(place)) else { continue };
            let Some(follower) = of.followers.get_mut(at) else { continue };
            if let Part::Over | Part::Left = follower.part {
                continue;
            }
            let memory = follower.memory();
            if follower.part == Part::New && matches!(what, What::Open | What::Data(..)) {
                follower.open(*flow, run);
                if orders.resumes(*flow)
                    && let Some(end) = orders.take(*flow, now, |_| false)
                {
                    follower.ended(end);
                }
            }
            match what {
                What::Open => {}
                What::Gap(direction, _) => follower.skip(*direction),
                What::Data(direction, offset, bytes) => {
                    let bytes = match bytes {
                        Bytes::Payload(range) => payload.get(range.clone()).unwrap_or_default(),
                        Bytes::Waited(bytes) => bytes,
                    };
                    let data = Data { flow: *flow, direction: *direction, offset: *offset, bytes };
                    follower.data(&data, function, matches, &mut inspected, run);
                }
                What::Close => follower.close(*flow, &mut inspected, run),
            }
            let changed = follower.memory();
            if changed != memory {
                of.memory = of.memory + changed - memory;
                monitor.charge(*flow, of.memory);
            }
        }
    }

    /// A function has just reset the packet's connection. No other function gets the packet. They
    /// learn of the end by the RST that comes next.
    fn reset(&mut self, packet: &Packet, layout: &Layout, reason: ReasonId) -> Answer {
        let connection = self.brought.connection;
        let of_it = |event: &&Event| Some(event.connection) == connection;
        let flow = packet.flow_key(layout);
        let status = flow.and_then(|flow| self.monitor.status(flow));
        let (Some(Status { client, .. }), Some(flow)) = (status, flow) else {
            return Answer { verdict: verdict(reason), ..Answer::default() };
        };
        let direction = if flow == client { Direction::Forward } else { Direction::Backward };
        let (mut events, mut forgotten) = (Vec::new(), Vec::new());
        let mut ignored =
            Collector { payload: &[], events: &mut events, forgotten: &mut forgotten };
        let reached = self.monitor.abort(flow, &mut ignored);
        if let Some(known) = self.brought.known.and_then(|at| self.known.get_mut(at)) {
            known.aborted = Some(client);
        }
        // The receiver does not get the packet, so it still waits for the packet's first new byte,
        // or for its FIN.
        let first = self.brought.events.iter().filter(of_it).find_map(|event| match event.what {
            What::Data(of, offset, _) | What::Gap(of, offset) if of == direction => Some(offset),
            _ => None,
        });
        let first = first.or_else(|| Some(self.brought.before?.of(direction).frontier));
        let (from, to) = (reached.of(direction), reached.of(direction.reversed()));
        let number = |seq: Option<Seq>| seq.map_or(0, |Seq(number)| number.into());
        let seq = from.seq(first.unwrap_or(from.frontier));
        Answer {
            verdict: verdict(reason),
            // No end takes a RST without the right number.
            is_new: seq.is_some(),
            seq: number(seq),
            ack: number(to.seq(to.frontier)),
        }
    }
}

/// The verdict for packets of a connection that was reset for a reason.
fn verdict(reason: ReasonId) -> Word {
    Word::from(reason.0) + 1
}
