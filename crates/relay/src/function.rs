//! Proxies as native functions.

use crate::application::{Application, Side, Unchanged};
use crate::connection::{Connection, Opening};
use crate::http;
use crate::wire::{Ends, Frame, TooLong};
use braid_endpoint::Settings;
use braid_http::wire::{list, number, read_list, read_number};
use braid_native::{Flow, Full, Function, Host, Info, PacketRef, ProfileInfo, Scope, Verdict, may};
use braid_packet::{Field, Header};
use braid_tcp::Flags;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState};

/// How often the function looks for connections for which time has passed (ns).
const TICK: u64 = 2_000_000;
/// After this time (ns), a connection answers the segments that have come. In a live run, the
/// segments of a burst come at the same time, so it answers them together.
const TURN: u64 = 1;
/// The number of the timer of a turn.
const TURN_TIMER: u32 = 1;
/// The most frames that leave in a call.
const MOST_FRAMES: u32 = 64;
/// The most memory of all connections, unless it is configured (bytes).
const MEMORY: u128 = 1 << 30;
/// The initial sequence numbers go up by one in this time (ns), as RFC 6528 §3 asks.
const ISN_TICK: u64 = 4_000;

/// Drops for the function's reasons, by their numbers.
const TOO_MANY: Verdict = Verdict::Drop(0);
const WRONG_CHECKSUM: Verdict = Verdict::Drop(1);
const NOT_WHOLE: Verdict = Verdict::Drop(2);

/// It reads whole packets. It changes none: it drops them, takes them, or lets them pass.
static PROFILE: ProfileInfo = ProfileInfo::new(c"*", c"", may::DROP | may::REDIRECT);

/// A proxy that leaves the bytes as they are.
pub type Tcp = Relay<Unchanged>;
/// A proxy that compresses HTTP responses.
pub type Http = Relay<http::Http>;

/// A proxy for the connections to some ports.
pub struct Relay<A: Application> {
    /// The first and the last one of each interval of ports.
    ports: Vec<(u16, u16)>,
    settings: Settings,
    secret: Secret,
    /// The connections by their ends, from the client to the server.
    flows: HashMap<Ends, Flow>,
    /// The connections that have something to do, by its time (ns).
    due: BTreeSet<(u64, Flow)>,
    /// Whether a timer has been set after which connections answer.
    has_turn: bool,
    /// The connections that only wait for late segments, the oldest first; and some that have gone.
    waiting: VecDeque<Flow>,
    shared: A::Shared,
    counters: Vec<i32>,
    /// The counter of connections, that of connections that servers have refused, and that of
    /// connections that were ended because of their memory.
    connections: i32,
    refused: i32,
    too_large: i32,
    /// The most memory of all connections, and what they take now (bytes).
    most_memory: usize,
    memory: usize,
    /// The bytes of the packet.
    bytes: Vec<u8>,
}

/// On what initial sequence numbers depend besides the ends of a connection and the time.
enum Secret {
    /// A number that nobody knows, drawn for this instance.
    Random(RandomState),
    /// A configured number: all instances with it give the same numbers.
    Seed(u128),
}

impl Secret {
    fn hash(&self, ends: Ends) -> u64 {
        match self {
            Self::Random(state) => state.hash_one(ends),
            Self::Seed(seed) => {
                let mut hasher = DefaultHasher::new();
                (seed, ends).hash(&mut hasher);
                hasher.finish()
            }
        }
    }
}

/// A connection and the time of its item in `due`.
pub struct Kept<A> {
    connection: Connection<A>,
    due: Option<u64>,
    /// Whether it only waits for late segments.
    waits: bool,
    /// Its part of the memory of all connections (bytes).
    memory: usize,
}

impl<A: Application> Kept<A> {
    fn new(connection: Connection<A>) -> Box<Self> {
        Box::new(Self { connection, due: None, waits: false, memory: 0 })
    }
}

impl<A: Application> Relay<A> {
    /// Whether connections to this port are proxied.
    fn has(&self, port: u16) -> bool {
        self.ports.iter().any(|(first, last)| (*first..=*last).contains(&port))
    }

    /// The initial sequence numbers of a connection (RFC 6528).
    fn isns(&self, frame: &Frame<'_>, now: u64) -> [u32; 2] {
        [frame.ends, frame.ends.reversed()].map(|ends| {
            let number = self.secret.hash(ends).wrapping_add(now / ISN_TICK);
            let [a, b, c, d, ..] = number.to_le_bytes();
            u32::from_le_bytes([a, b, c, d])
        })
    }

    /// Enters when a connection is to be looked at again.
    fn schedule(&mut self, flow: Flow, kept: &mut Kept<A>, due: Option<u64>) {
        if kept.due != due {
            self.forget(flow, kept.due);
            self.due.extend(due.map(|at| (at, flow)));
            kept.due = due;
        }
    }

    /// Enters how much memory a connection takes.
    fn measure(&mut self, kept: &mut Kept<A>) {
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
        (flow, kept): (Flow, &mut Kept<A>),
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

    /// Ends the oldest connection that only waits. Returns whether there is one.
    fn make_room(&mut self, host: &mut Host<'_>) -> bool {
        while let Some(flow) = self.waiting.pop_front() {
            if waits::<A>(flow, host) {
                host.end_flow(flow);
                return true;
            }
        }
        false
    }

    /// Tells the host what has been counted.
    fn count(&mut self, host: &mut Host<'_>) {
        for (count, counter) in A::counts(&mut self.shared).iter_mut().zip(&self.counters) {
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
    fn leave(&mut self, flow: Flow, kept: &Kept<A>) {
        self.memory -= kept.memory;
        self.flows.remove(&kept.connection.ends());
        self.forget(flow, kept.due);
    }

    /// A connection is over.
    fn end(&mut self, flow: Flow, kept: &Kept<A>, host: &mut Host<'_>) {
        self.leave(flow, kept);
        if kept.connection.was_refused() {
            host.count(self.refused, 1);
        }
        host.end_flow(flow);
    }

    /// The packet is of this flow. Returns what becomes of it.
    fn take(&mut self, flow: Flow, packet: &mut PacketRef<'_, Self>) -> Verdict {
        let now = packet.host().now();
        let is_from_left = packet.get(Field::PktBackward) != Some(1);
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
            (None, Some(frame)) if self.begins(&frame) => {
                packet.host().count(self.connections, 1);
                let opening = Opening {
                    settings: self.settings,
                    isns: self.isns(&frame, now),
                    client_is_left: is_from_left,
                    now,
                };
                let connection = Connection::new(&frame, opening, &self.shared);
                self.flows.insert(frame.ends, flow);
                self.answer_soon(flow, Kept::new(connection), packet, now);
                Verdict::Consume
            }
            (None, _) => {
                packet.host().end_flow(flow);
                Verdict::Forward
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

    /// The packet is an ICMP message. It ends here if it tells of a segment that was too long for a
    /// link, and that a proxied connection may have sent.
    fn hear_icmp(&mut self, packet: &mut PacketRef<'_, Self>) -> Verdict {
        let bytes: Vec<u8> = packet.bytes().into();
        let Some(message) = TooLong::of(&bytes) else { return Verdict::Forward };
        let flow =
            self.flows.get(&message.ends).or_else(|| self.flows.get(&message.ends.reversed()));
        let Some(flow) = flow.copied() else { return Verdict::Forward };
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

    /// Whether a segment begins a connection that is proxied.
    fn begins(&self, frame: &Frame<'_>) -> bool {
        let Flags(flags) = frame.segment.flags;
        let is_syn = flags & (Flags::SYN.0 | Flags::ACK.0 | Flags::RST.0 | Flags::FIN.0);
        frame.is_right && is_syn == Flags::SYN.0 && self.has(frame.ends.to.1)
    }

    /// Keeps a connection that answers in the next turn.
    fn answer_soon(
        &mut self,
        flow: Flow,
        mut kept: Box<Kept<A>>,
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

    /// Keeps a connection for the next packets of its flow.
    fn keep(&mut self, packet: &mut PacketRef<'_, Self>, kept: Box<Kept<A>>) {
        if let Some(place) = packet.kept() {
            *place = Some(kept);
        }
    }
}

/// The way from a timer to a side.
fn way(to: Side, client_is_left: bool) -> Verdict {
    let is_to_left = (to == Side::Client) == client_is_left;
    if is_to_left { Verdict::Back } else { Verdict::Forward }
}

/// Keeps a connection for the next packets of its flow.
fn put<A: Application>(kept: Box<Kept<A>>, flow: Flow, host: &mut Host<'_>) {
    if let Some(place) = host.flow::<Relay<A>>(flow) {
        *place = Some(kept);
    }
}

/// Whether a flow has a connection that only waits for late segments.
fn waits<A: Application>(flow: Flow, host: &mut Host<'_>) -> bool {
    matches!(host.flow::<Relay<A>>(flow), Some(Some(kept)) if kept.waits)
}

impl<A: Application> Function for Relay<A> {
    const INFO: Info = Info {
        scope: Scope::Biflow,
        full: Full::Refuse,
        idle_ns: 3_600_000_000_000,
        profile: Some(&PROFILE),
        reasons: c"too many connections\nwrong checksum\nnot a whole segment",
        sends: MOST_FRAMES,
        keeps: A::KEEPS,
        ..Info::new(A::ABOUT)
    };
    type Flow = Option<Box<Kept<A>>>;

    fn new(host: &mut Host<'_>) -> Result<Self, String> {
        let port = |port: u128| u16::try_from(port).map_err(|_| "`ports` has other numbers");
        let ports = host.config_rows::<2>("ports").into_iter();
        let ports = ports.map(|[first, last]| Ok((port(first)?, port(last)?)));
        let ports = ports.collect::<Result<Vec<_>, &str>>()?;
        if ports.is_empty() {
            return Err("it needs a parameter `ports`: the set of the servers' ports".to_owned());
        }
        let mss = host.config("mss").unwrap_or(1_440);
        let mss = u16::try_from(mss).map_err(|_| "`mss` is at most 65535")?;
        let most_memory = host.config("memory").unwrap_or(MEMORY);
        let most_memory = u64::try_from(most_memory).map_err(|_| "`memory` is too large")?;
        let most_memory = usize::try_from(host.share(most_memory)).unwrap_or(usize::MAX);
        host.every::<Self>(TICK, 0).map_err(|_| "it needs a timer")?;
        Ok(Self {
            ports,
            settings: Settings { mss, ..Settings::default() },
            secret: match host.config("seed") {
                Ok(seed) if seed > 0 => Secret::Seed(seed),
                _ => Secret::Random(RandomState::new()),
            },
            flows: HashMap::new(),
            due: BTreeSet::new(),
            has_turn: false,
            waiting: VecDeque::new(),
            shared: A::shared(host)?,
            connections: host.counter("connections"),
            refused: host.counter("refused"),
            too_large: host.counter("ended for memory"),
            most_memory,
            memory: 0,
            counters: A::COUNTERS.iter().map(|name| host.counter(name)).collect(),
            bytes: Vec::new(),
        })
    }

    fn packet(&mut self, packet: &mut PacketRef<'_, Self>) -> Verdict {
        if packet.has(Header::Icmp) || packet.has(Header::Icmp6) {
            return self.hear_icmp(packet);
        }
        let port = |field| packet.get(field).and_then(|port| u16::try_from(port).ok());
        let ports = [port(Field::L4Sport), port(Field::L4Dport)];
        let is_proxied = ports.into_iter().flatten().any(|port| self.has(port));
        if !is_proxied || !packet.has(Header::Tcp) {
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
        let now = host.now();
        let mut left = MOST_FRAMES as usize;
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
            let client_is_left = kept.connection.client_is_left;
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
        while self.waiting.pop_front_if(|flow| !waits::<A>(*flow, host)).is_some() {}
        self.count(host);
    }

    fn flow_end(&mut self, flow: Flow, kept: Self::Flow, _host: &mut Host<'_>) {
        if let Some(kept) = kept {
            self.leave(flow, &kept);
        }
    }

    fn save(&mut self, host: &mut Host<'_>) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        for flow in host.flows() {
            if let Some(Some(kept)) = host.flow::<Self>(flow) {
                let mut bytes = Vec::new();
                kept.connection.put(&mut bytes);
                number(flow.0, &mut out);
                list(&bytes, &mut out);
            }
        }
        Some(out)
    }

    fn restore(&mut self, mut bytes: &[u8], host: &mut Host<'_>) -> Result<(), String> {
        let damaged = || "its memory is damaged".to_owned();
        let now = host.now();
        while !bytes.is_empty() {
            let flow = Flow(read_number(&mut bytes).ok_or_else(damaged)?);
            let mut one = read_list(&mut bytes, usize::MAX).ok_or_else(damaged)?;
            let connection = Connection::read(&mut one, &self.shared);
            let connection = connection.filter(|_| one.is_empty()).ok_or_else(damaged)?;
            let mut kept = Kept::new(connection);
            self.flows.insert(kept.connection.ends(), flow);
            self.measure(&mut kept);
            self.schedule(flow, &mut kept, Some(now));
            *host.flow::<Self>(flow).ok_or_else(damaged)? = Some(kept);
        }
        Ok(())
    }
}
