//! The native function: a table of connections.

use crate::connection::{Connection, First, Opening, Side};
use crate::secret::Secret;
use crate::wanted::Wanted;
use crate::wire::{Ends, Frame, TooLong};
use braid_endpoint::Settings;
use braid_native::{
    Dump, Flow, Full, Function, Host, Info, PacketRef, ProfileInfo, Scope, Verdict, may,
};
use braid_packet::{Field, Header};
use braid_tcp::{Flags, Reader, Stored as _, put_bytes};
use std::collections::{BTreeSet, HashMap, VecDeque};

/// How often the function looks for connections for which time has passed (ns).
const TICK: u64 = 2_000_000;
/// After this time (ns), a connection answers the segments that have come. In a live run, the
/// segments of a burst come at the same time, so it answers them together.
const TURN: u64 = 1;
/// The number of the timer of a turn.
const TURN_TIMER: u32 = 1;
/// The number of the timer with which the function asks for what has happened outside.
const WATCH_TIMER: u32 = 2;
/// The most frames that leave in a call.
const MOST_FRAMES: u32 = 64;
/// The most memory of all connections, unless it is configured (bytes).
const MEMORY: u128 = 1 << 30;

/// Drops for the function's reasons, by their numbers.
const TOO_MANY: Verdict = Verdict::Drop(0);
const WRONG_CHECKSUM: Verdict = Verdict::Drop(1);
const NOT_WHOLE: Verdict = Verdict::Drop(2);

/// It reads whole packets. It changes none: it drops them, takes them, or lets them pass.
static PROFILE: ProfileInfo = ProfileInfo::new(c"*", c"", may::DROP | may::REDIRECT);

/// The connections to some ports, as a native function with the parameters `ports`, `flows`,
/// `idle`, `memory`, `mss` and `seed`.
pub struct Connections<C: Connection> {
    wanted: Wanted,
    settings: Settings,
    secret: Secret,
    /// The connections by their ends, from the client to the server.
    flows: HashMap<Ends, Flow>,
    /// The connections that have something to do, by its time (ns).
    due: BTreeSet<(u64, Flow)>,
    /// Whether a timer has been set after which connections answer.
    has_turn: bool,
    /// Whether a timer has been set with which the function asks for what has happened outside.
    has_watch: bool,
    /// The connections that only wait for late segments, the oldest first; and some that have gone.
    waiting: VecDeque<Flow>,
    shared: C::Shared,
    counters: Vec<i32>,
    /// The counter of connections, and that of connections that were ended because of their memory.
    connections: i32,
    too_large: i32,
    /// The most memory of all connections, and what they take now (bytes).
    most_memory: usize,
    memory: usize,
    /// The bytes of the packet.
    bytes: Vec<u8>,
}

/// A connection and the time of its item in `due`.
#[derive(Debug)]
pub struct Kept<C> {
    connection: C,
    due: Option<u64>,
    /// Whether it only waits for late segments.
    waits: bool,
    /// Its part of the memory of all connections (bytes).
    memory: usize,
}

impl<C: Connection> Kept<C> {
    fn new(connection: C) -> Box<Self> {
        Box::new(Self { connection, due: None, waits: false, memory: 0 })
    }
}

impl<C: Connection> Connections<C> {
    /// Enters when a connection is to be looked at again.
    fn schedule(&mut self, flow: Flow, kept: &mut Kept<C>, due: Option<u64>) {
        if kept.due != due {
            self.forget(flow, kept.due);
            self.due.extend(due.map(|at| (at, flow)));
            kept.due = due;
        }
    }

    /// Enters how much memory a connection takes.
    fn measure(&mut self, kept: &mut Kept<C>) {
        let memory = kept.connection.memory();
        self.memory = self.memory - kept.memory + memory;
        kept.memory = memory;
    }

    /// Removes a connection's item.
    fn forget(&mut self, flow: Flow, due: Option<u64>) {
        if let Some(at) = due {
            self.due.remove(&(at, flow));
        }
    }

    /// Lets a connection do what it has to do. Returns how many frames it has sent; `false` if it
    /// is over.
    fn run(
        &mut self,
        (flow, kept): (Flow, &mut Kept<C>),
        (now, most): (u64, usize),
        out: &mut dyn FnMut(Side, &[u8]),
    ) -> (usize, bool) {
        let sent = kept.connection.run((now, most), &mut self.shared, out);
        let is_over = kept.connection.is_over();
        let due = match sent == most {
            _ if is_over => None,
            true => Some(now),
            false => kept.connection.deadline().map(|at| at.max(now.saturating_add(1))),
        };
        self.schedule(flow, kept, due);
        if !kept.waits && !is_over && kept.connection.waits() {
            kept.waits = true;
            self.waiting.push_back(flow);
        }
        (sent, !is_over)
    }

    /// Lets connections that belong to no client do what they have to do. Returns how many frames
    /// they have sent.
    fn run_own(&mut self, (now, most): (u64, usize), host: &mut Host<'_>) -> usize {
        if C::own_deadline(&self.shared).is_none_or(|at| at > now) {
            return 0;
        }
        let mut out = |to_left: bool, frame: &[u8]| {
            let way = if to_left { Verdict::Back } else { Verdict::Forward };
            // Refused only beyond the limit, which `most` keeps.
            let _ = host.send_from_timer(frame, way);
        };
        C::run_own((now, most), &mut self.shared, &mut out)
    }

    /// Ends the oldest connection that only waits. Returns whether there is one.
    fn make_room(&mut self, host: &mut Host<'_>) -> bool {
        while let Some(flow) = self.waiting.pop_front() {
            if waits::<C>(flow, host) {
                host.end_flow(flow);
                return true;
            }
        }
        false
    }

    /// Tells the host what has been counted.
    fn count(&mut self, host: &mut Host<'_>) {
        for (count, counter) in C::counts(&mut self.shared).zip(&self.counters) {
            if *count > 0 {
                host.count(*counter, std::mem::take(count));
            }
        }
    }

    /// If all connections together take too much memory, ends the largest ones, until an eighth
    /// is free.
    fn relieve(&mut self, now: u64, host: &mut Host<'_>) {
        if self.memory <= self.most_memory {
            return;
        }
        let flows = host.flows().into_iter();
        let memory = |flow| Some((host.flow::<Self>(flow)?.as_ref()?.memory, flow));
        let mut largest: Vec<(usize, Flow)> = flows.filter_map(memory).collect();
        largest.sort_unstable_by(|one, other| other.cmp(one));
        for (memory, flow) in largest {
            if self.memory <= self.most_memory / 8 * 7 {
                break;
            }
            if let Some(mut kept) = host.flow::<Self>(flow).and_then(Option::take) {
                kept.connection.abort();
                self.memory -= memory;
                kept.memory = 0;
                self.schedule(flow, &mut kept, Some(now));
                put(kept, flow, host);
                host.count(self.too_large, 1);
            }
        }
        self.take_turn(host);
    }

    /// Forgets a connection.
    fn leave(&mut self, flow: Flow, kept: &Kept<C>) {
        self.memory -= kept.memory;
        self.flows.remove(&kept.connection.ends());
        self.forget(flow, kept.due);
    }

    /// A connection is over.
    fn end(&mut self, flow: Flow, kept: &Kept<C>, host: &mut Host<'_>) {
        self.leave(flow, kept);
        kept.connection.end(&mut self.shared);
        host.end_flow(flow);
    }

    /// The packet is of this flow. Returns what becomes of it.
    fn take(&mut self, flow: Flow, packet: &mut PacketRef<'_, Self>) -> Verdict {
        let now = packet.host().now();
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        bytes.extend(packet.bytes());
        let frame = Frame::of(&bytes);
        let mut kept = packet.kept().and_then(Option::take);
        if let Some((one, frame)) = kept.as_mut().zip(frame)
            && self.begins(&frame)
            && one.connection.may_begin_anew(&frame)
        {
            self.leave(flow, one);
            kept = None;
        }
        let verdict = match (kept, frame) {
            (None, Some(frame)) if frame.is_right => self.first(&frame, flow, packet),
            (None, _) if !C::IS_END => {
                packet.host().end_flow(flow);
                Verdict::Forward
            }
            (None, frame) => {
                packet.host().end_flow(flow);
                if frame.is_some() { WRONG_CHECKSUM } else { NOT_WHOLE }
            }
            (Some(mut kept), Some(frame)) if frame.is_right => {
                kept.connection.segment(&frame, now);
                self.answer_soon(flow, kept, packet, now);
                Verdict::Consume
            }
            (Some(kept), frame) => {
                self.keep(packet, kept);
                if frame.is_some() { WRONG_CHECKSUM } else { NOT_WHOLE }
            }
        };
        self.bytes = bytes;
        verdict
    }

    /// A right segment has come for which there is no connection. Returns what becomes of it.
    fn first(
        &mut self,
        frame: &Frame<'_>,
        flow: Flow,
        packet: &mut PacketRef<'_, Self>,
    ) -> Verdict {
        let now = packet.host().now();
        let opening = Opening {
            settings: self.settings,
            secret: &self.secret,
            client_is_left: packet.get(Field::PktBackward) != Some(1),
            flow,
            now,
            begins: self.begins(frame),
        };
        let answer = match C::first(frame, &opening, &mut self.shared) {
            First::Begin(connection) => {
                packet.host().count(self.connections, 1);
                self.flows.insert(frame.ends, flow);
                self.answer_soon(flow, Kept::new(connection), packet, now);
                return Verdict::Consume;
            }
            First::Pass => None,
            First::Answer(answer) => Some(answer),
        };
        packet.host().end_flow(flow);
        let Some(answer) = answer else { return Verdict::Forward };
        if let Some(frame) = answer {
            // It is the only one, and no longer than a frame may be.
            let _ = packet.send(&frame, Verdict::Back);
        }
        self.count(packet.host());
        Verdict::Consume
    }

    /// If the packet is a segment of a connection that another one has opened, that one gets it.
    fn take_opened(&mut self, packet: &mut PacketRef<'_, Self>) -> Option<Verdict> {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        bytes.extend(packet.bytes());
        let verdict = self.take_frame(&bytes, packet);
        self.bytes = bytes;
        verdict
    }

    /// As [`Self::take_opened`], for a packet with these bytes.
    fn take_frame(&mut self, bytes: &[u8], packet: &mut PacketRef<'_, Self>) -> Option<Verdict> {
        let frame = Frame::of(bytes)?;
        if C::is_own(&self.shared, frame.ends) {
            if !frame.is_right {
                return Some(WRONG_CHECKSUM);
            }
            let host = packet.host();
            C::own_segment(&frame, host.now(), &mut self.shared);
            self.take_turn(host);
            return Some(Verdict::Consume);
        }
        let flow = C::opener(&self.shared, frame.ends)?;
        let host = packet.host();
        let now = host.now();
        let mut kept = host.flow::<Self>(flow).and_then(Option::take)?;
        if frame.is_right {
            kept.connection.segment(&frame, now);
            self.measure(&mut kept);
            self.schedule(flow, &mut kept, Some(now));
            self.take_turn(host);
        }
        put(kept, flow, host);
        Some(if frame.is_right { Verdict::Consume } else { WRONG_CHECKSUM })
    }

    /// The packet is an ICMP message. It ends here if it tells of a segment that was too long for a
    /// link, and that a connection here may have sent.
    fn hear_icmp(&mut self, packet: &mut PacketRef<'_, Self>) -> Verdict {
        let bytes: Vec<u8> = packet.bytes().into();
        let Some(message) = TooLong::of(&bytes) else { return Verdict::Forward };
        let (ends, reversed) = (message.ends, message.ends.reversed());
        let flow = self.flows.get(&ends).or_else(|| self.flows.get(&reversed)).copied();
        let flow = flow.or_else(|| C::opener(&self.shared, reversed));
        let Some(flow) = flow else { return Verdict::Forward };
        let host = packet.host();
        let now = host.now();
        let Some(mut kept) = host.flow::<Self>(flow).and_then(Option::take) else {
            return Verdict::Forward;
        };
        if kept.connection.too_long(&message) {
            self.schedule(flow, &mut kept, Some(now));
            self.take_turn(host);
        }
        put(kept, flow, host);
        Verdict::Consume
    }

    /// Whether a segment begins a connection that is wanted.
    fn begins(&self, frame: &Frame<'_>) -> bool {
        let Flags(flags) = frame.segment.flags;
        let is_syn = flags & (Flags::SYN.0 | Flags::ACK.0 | Flags::RST.0 | Flags::FIN.0);
        frame.is_right && is_syn == Flags::SYN.0 && self.wanted.has_port(frame.ends.to.1)
    }

    /// Keeps a connection that answers in the next turn.
    fn answer_soon(
        &mut self,
        flow: Flow,
        mut kept: Box<Kept<C>>,
        packet: &mut PacketRef<'_, Self>,
        now: u64,
    ) {
        self.measure(&mut kept);
        self.schedule(flow, &mut kept, Some(now));
        self.keep(packet, kept);
        self.take_turn(packet.host());
    }

    /// Sets the timer after which connections answer.
    fn take_turn(&mut self, host: &mut Host<'_>) {
        // Without the timer they answer at the next tick.
        self.has_turn = self.has_turn || host.after::<Self>(TURN, TURN_TIMER).is_ok();
    }

    /// Lets the connections act to which something has happened outside.
    fn look_outside(&mut self, now: u64, host: &mut Host<'_>) {
        if !C::watches(&self.shared) {
            return;
        }
        for flow in C::woken(&mut self.shared, now) {
            if let Some(mut kept) = host.flow::<Self>(flow).and_then(Option::take) {
                self.schedule(flow, &mut kept, Some(now));
                put(kept, flow, host);
            }
        }
    }

    /// Reads what [`Function::save`] has written. `None` if the bytes are damaged.
    fn read(&mut self, bytes: &mut Reader<'_>, host: &mut Host<'_>) -> Option<()> {
        let now = host.now();
        C::read_shared(&mut Reader(bytes.bytes()?), &mut self.shared)?;
        while !bytes.is_at_end() {
            let flow = Flow(u64::get(bytes)?);
            let mut one = Reader(bytes.bytes()?);
            let connection = C::read(&mut one, flow, &mut self.shared);
            let mut kept = Kept::new(connection.filter(|_| one.is_at_end())?);
            self.flows.insert(kept.connection.ends(), flow);
            self.measure(&mut kept);
            self.schedule(flow, &mut kept, Some(now));
            *host.flow::<Self>(flow)? = Some(kept);
        }
        Some(())
    }

    /// Keeps a connection for the next packets of its flow.
    fn keep(&mut self, packet: &mut PacketRef<'_, Self>, kept: Box<Kept<C>>) {
        if let Some(place) = packet.kept() {
            *place = Some(kept);
        }
    }
}

/// The settings of endpoints, by the configuration.
///
/// # Errors
/// The configuration cannot be used.
pub fn settings(host: &Host<'_>) -> Result<Settings, String> {
    let mss = host.config("mss").unwrap_or(1_440);
    let mss = u16::try_from(mss).map_err(|_| "`mss` is at most 65535")?;
    Ok(Settings { mss, ..Settings::default() })
}

/// The way from a timer to a side.
fn way(to: Side, client_is_left: bool) -> Verdict {
    let is_to_left = (to == Side::Client) == client_is_left;
    if is_to_left { Verdict::Back } else { Verdict::Forward }
}

/// Keeps a connection for the next packets of its flow.
fn put<C: Connection>(kept: Box<Kept<C>>, flow: Flow, host: &mut Host<'_>) {
    if let Some(place) = host.flow::<Connections<C>>(flow) {
        *place = Some(kept);
    }
}

/// Whether a flow has a connection that only waits for late segments.
fn waits<C: Connection>(flow: Flow, host: &mut Host<'_>) -> bool {
    matches!(host.flow::<Connections<C>>(flow), Some(Some(kept)) if kept.waits)
}

impl<C: Connection> Function for Connections<C> {
    const INFO: Info = Info {
        scope: Scope::Biflow,
        full: Full::Refuse,
        idle_ns: 3_600_000_000_000,
        profile: Some(&PROFILE),
        reasons: c"too many connections\nwrong checksum\nnot a whole segment",
        sends: MOST_FRAMES,
        keeps: C::KEEPS,
        ..Info::new(C::ABOUT)
    };
    type Flow = Option<Box<Kept<C>>>;

    fn new(host: &mut Host<'_>) -> Result<Self, String> {
        let wanted = Wanted::new(host, C::IS_END)?;
        let most_memory = host.config("memory").unwrap_or(MEMORY);
        let most_memory = u64::try_from(most_memory).map_err(|_| "`memory` is too large")?;
        let most_memory = usize::try_from(host.share(most_memory)).unwrap_or(usize::MAX);
        host.every::<Self>(TICK, 0).map_err(|_| "it needs a timer")?;
        Ok(Self {
            wanted,
            settings: settings(host)?,
            secret: Secret::new(host.config("seed").ok()),
            flows: HashMap::new(),
            due: BTreeSet::new(),
            has_turn: false,
            has_watch: false,
            waiting: VecDeque::new(),
            shared: C::shared(host)?,
            connections: host.counter("connections"),
            too_large: host.counter("ended for memory"),
            most_memory,
            memory: 0,
            counters: C::counters().map(|name| host.counter(name)).collect(),
            bytes: Vec::new(),
        })
    }

    fn packet(&mut self, packet: &mut PacketRef<'_, Self>) -> Verdict {
        if packet.has(Header::Icmp) || packet.has(Header::Icmp6) {
            return self.hear_icmp(packet);
        }
        if !packet.has(Header::Tcp) {
            return Verdict::Forward;
        }
        if C::OPENS
            && let Some(verdict) = self.take_opened(packet)
        {
            return verdict;
        }
        if !self.wanted.has(packet) {
            return Verdict::Forward;
        }
        let mut flow = packet.flow();
        if flow.is_none() && self.make_room(packet.host()) {
            flow = packet.flow();
        }
        match flow {
            Some(flow) => self.take(flow, packet),
            None => TOO_MANY,
        }
    }

    fn timer(&mut self, number: u32, host: &mut Host<'_>) {
        self.has_turn = self.has_turn && number != TURN_TIMER;
        self.has_watch = self.has_watch && number != WATCH_TIMER;
        let now = host.now();
        self.look_outside(now, host);
        let mut left = MOST_FRAMES as usize;
        left -= self.run_own((now, left), host);
        // Each connection has one turn.
        let due: Vec<(u64, Flow)> = self.due.range(..=(now, Flow(u64::MAX))).copied().collect();
        for (at, flow) in due {
            if left == 0 {
                self.take_turn(host);
                break;
            }
            let Some(mut kept) = host.flow::<Self>(flow).and_then(Option::take) else {
                self.due.remove(&(at, flow));
                continue;
            };
            let client_is_left = kept.connection.client_is_left();
            let mut out = |side: Side, frame: &[u8]| {
                // Refused only beyond the limit, which `most` keeps.
                let _ = host.send_from_timer(frame, way(side, client_is_left));
            };
            let (sent, goes_on) = self.run((flow, &mut kept), (now, left), &mut out);
            left -= sent;
            match goes_on {
                true => {
                    self.measure(&mut kept);
                    put(kept, flow, host);
                }
                false => self.end(flow, &kept, host),
            }
        }
        self.relieve(now, host);
        while self.waiting.pop_front_if(|flow| !waits::<C>(*flow, host)).is_some() {}
        self.count(host);
        if C::watches(&self.shared) && !self.has_watch {
            self.has_watch = host.soon::<Self>(WATCH_TIMER).is_ok();
        }
    }

    fn flow_end(&mut self, flow: Flow, kept: Self::Flow, _host: &mut Host<'_>) {
        if let Some(kept) = kept {
            self.leave(flow, &kept);
        }
    }

    fn dump(&self, into: &mut Dump<'_>) {
        C::dump(&self.shared, into);
    }

    fn save(&mut self, host: &mut Host<'_>) -> Option<Vec<u8>> {
        let (mut out, mut shared) = (Vec::new(), Vec::new());
        C::put_shared(&self.shared, &mut shared);
        put_bytes(&shared, &mut out);
        for flow in host.flows() {
            if let Some(Some(kept)) = host.flow::<Self>(flow) {
                let mut bytes = Vec::new();
                kept.connection.put(&self.shared, &mut bytes);
                flow.0.put(&mut out);
                put_bytes(&bytes, &mut out);
            }
        }
        Some(out)
    }

    fn restore(&mut self, bytes: &[u8], host: &mut Host<'_>) -> Result<(), String> {
        self.read(&mut Reader(bytes), host).ok_or_else(|| "its memory is damaged".to_owned())
    }
}
