//! Expands templates: the arrivals and packets of all open connections, in order of time.

use super::config::{Config, Entry, OwnGaps};
use super::conversation::{Conversation, Role, Step};
use super::options::Options;
use super::tuples::{Tuple, Tuples};
use crate::arrivals::Clock;
use crate::random::Random;
use crate::{Error, Progress, Traffic, later};
use braid_packet::{Field, Packet};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::PathBuf;
use std::sync::Arc;

/// The most connections that are open at once.
pub const MAX_CONNECTIONS: usize = 1 << 18;
/// The most connections a second of one template, after scaling.
const MAX_RATE: f64 = 1e8;
/// Rates below this count as zero. At this rate a connection comes once in 30 years.
const MIN_RATE: f64 = 1e-9;

/// Traffic from templates.
pub struct Template {
    kinds: Vec<Kind>,
    tuples: Tuples,
    upper6: [Option<u128>; 2],
    own_gaps: Option<OwnGaps>,
    /// The next events: the time from the start, the number in the order of planning, and the
    /// event.
    plan: BinaryHeap<Reverse<(u64, u64, What)>>,
    planned: u64,
    open: Vec<Connection>,
    /// Free places in `open`.
    free: Vec<u32>,
    start_ns: u64,
    end_ns: Option<u64>,
    packets: Option<u64>,
    given: u64,
    now_ns: u64,
    flows: u64,
    /// The captures of the templates.
    pub(super) captures: Vec<PathBuf>,
}

/// A template and its progress.
struct Kind {
    entry: Entry,
    conversation: Arc<Conversation>,
    clock: Clock,
    /// The number of connections so far.
    count: u64,
    /// Client and server of the current burst, and the number of its connections still to come.
    burst: (u32, u32, u32),
    /// The first connections, if the template has a limit.
    first: Vec<Tuple>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// A connection of a template begins.
    Arrival(u32),
    /// The next packet of an open connection.
    Packet(u32),
}

struct Connection {
    kind: u32,
    step: u32,
    tuple: Tuple,
}

impl Template {
    /// Expands templates, each with its capture.
    pub(super) fn new(
        config: Config,
        conversations: Vec<Arc<Conversation>>,
        options: &Options,
    ) -> Result<Self, Error> {
        let end_ns = match (options.duration_ns, options.packets) {
            (None, None) => Some(config.duration_ns.ok_or_else(|| {
                let what = "the file has no `duration`; say how long (--seconds, --packets)";
                Error::Options(what.to_owned())
            })?),
            (duration, _) => duration,
        };
        let mut expansion = Template {
            tuples: Tuples::new(&config, options.seed),
            kinds: Vec::with_capacity(conversations.len()),
            upper6: config.upper6,
            own_gaps: config.own_gaps,
            plan: BinaryHeap::new(),
            planned: 0,
            open: Vec::new(),
            free: Vec::new(),
            start_ns: options.start_ns,
            end_ns,
            packets: options.packets,
            given: 0,
            now_ns: 0,
            flows: 0,
            captures: Vec::new(),
        };
        for (entry, conversation) in config.entries.into_iter().zip(conversations) {
            expansion.add(entry, conversation, options)?;
        }
        if expansion.kinds.is_empty() {
            return Err(Error::Options("every `cps` is 0, so that there is no traffic".to_owned()));
        }
        Ok(expansion)
    }

    fn add(
        &mut self,
        entry: Entry,
        conversation: Arc<Conversation>,
        options: &Options,
    ) -> Result<(), Error> {
        let rate = entry.cps * options.scale;
        if rate > MAX_RATE {
            return Err(Error::Options(format!(
                "`{}` would have {rate:e} connections a second; at most {MAX_RATE:e} are made",
                entry.name
            )));
        }
        if rate < MIN_RATE {
            return Ok(());
        }
        let number = self.kinds.len() as u32;
        let mut clock =
            Clock::new(options.arrivals, rate, Random::new(options.seed, u64::from(number)));
        self.arrive(number, clock.next_ns());
        self.kinds.push(Kind {
            entry,
            conversation,
            clock,
            count: 0,
            burst: (0, 0, 0),
            first: Vec::new(),
        });
        Ok(())
    }

    fn plan(&mut self, at_ns: u64, what: What) {
        self.plan.push(Reverse((at_ns, self.planned, what)));
        self.planned += 1;
    }

    /// Plans an arrival, unless it would come after the end.
    fn arrive(&mut self, kind: u32, at_ns: u64) {
        if self.end_ns.is_none_or(|end| at_ns < end) {
            self.plan(at_ns, What::Arrival(kind));
        }
    }

    fn begin(&mut self, number: u32, now_ns: u64) -> Result<(), Error> {
        let Some(kind) = self.kinds.get_mut(number as usize) else { return Ok(()) };
        let (tuple, is_new) = kind.tuple(&mut self.tuples);
        if is_new {
            self.flows += kind.conversation.flows;
        }
        let next_ns = kind.clock.next_ns();
        let connection = Connection { kind: number, step: 0, tuple };
        let place = match self.free.pop() {
            Some(place) => place,
            None if self.open.len() == MAX_CONNECTIONS => {
                let after = now_ns / 1_000_000_000;
                return Err(Error::Crowded { limit: MAX_CONNECTIONS, after });
            }
            None => self.open.len() as u32,
        };
        match self.open.get_mut(place as usize) {
            Some(free) => *free = connection,
            None => self.open.push(connection),
        }
        self.plan(now_ns, What::Packet(place));
        self.arrive(number, next_ns);
        Ok(())
    }

    /// Returns the packet of a connection that is due, and plans the connection's next packet.
    fn packet(&mut self, place: u32, now_ns: u64) -> Result<Option<Packet>, Error> {
        let Some(connection) = self.open.get_mut(place as usize) else { return Ok(None) };
        let Some(kind) = self.kinds.get(connection.kind as usize) else { return Ok(None) };
        let steps = &kind.conversation.steps;
        let Some(step) = steps.get(connection.step as usize) else { return Ok(None) };
        let packet = write(step, connection.tuple, self.upper6, later(self.start_ns, now_ns)?);
        connection.step += 1;
        match steps.get(connection.step as usize) {
            Some(next) => {
                let gap_ns = gap(next, &kind.entry, self.own_gaps);
                self.plan(now_ns.saturating_add(gap_ns), What::Packet(place));
            }
            None => self.free.push(place),
        }
        Ok(Some(packet))
    }
}

impl Kind {
    /// Addresses and ports of the next connection, and whether they are new.
    fn tuple(&mut self, tuples: &mut Tuples) -> (Tuple, bool) {
        if let Some(limit) = self.entry.limit
            && self.first.len() == limit
        {
            let again = self.count % limit as u64;
            self.count += 1;
            return (self.first[again as usize], false);
        }
        let (client, server, left) = match self.burst {
            (_, _, 0) => {
                let server = self.entry.server.unwrap_or_else(|| tuples.server());
                (tuples.client(), server, self.entry.burst)
            }
            burst => burst,
        };
        self.burst = (client, server, left - 1);
        let port = tuples.port(client, self.conversation.slots);
        let tuple = Tuple { client, server, port };
        self.count += 1;
        if self.entry.limit.is_some() {
            self.first.push(tuple);
        }
        (tuple, true)
    }
}

/// The time from the previous packet to this one.
fn gap(step: &Step, entry: &Entry, own: Option<OwnGaps>) -> u64 {
    match own {
        Some(own) if step.gap_ns < own.least_ns => own.instead_ns,
        Some(_) => step.gap_ns,
        None if step.turns => entry.turn_ns,
        None => entry.gap_ns,
    }
}

/// Makes a packet from the capture's packet, with a connection's addresses and ports.
fn write(step: &Step, tuple: Tuple, upper6: [Option<u128>; 2], time_ns: u64) -> Packet {
    let mut packet = step.packet.clone();
    packet.time_ns = time_ns;
    for (field, role) in &step.writes {
        let value = match role {
            Role::Port(slot) => u128::from(tuple.port(*slot)),
            Role::Client => address(step, *field, tuple.client, upper6[0]),
            Role::Server => address(step, *field, tuple.server, upper6[1]),
        };
        packet.set(&step.layout, *field, value);
    }
    packet
}

/// The value of an address field. An IPv6 address ends with the 32 bits of the IPv4 address. Its
/// upper bits come from the template file or, without them, from the capture.
fn address(step: &Step, field: Field, address: u32, upper6: Option<u128>) -> u128 {
    let low = u128::from(address);
    if field.info().width == 32 {
        return low;
    }
    let captured = step.packet.get(&step.layout, field).unwrap_or(0);
    upper6.map_or(captured & !u128::from(u32::MAX), |upper| upper << 32) | low
}

impl Traffic for Template {
    fn next_packet(&mut self) -> Result<Option<Packet>, Error> {
        while self.packets.is_none_or(|most| self.given < most) {
            let Some(Reverse((now_ns, _, what))) = self.plan.pop() else { return Ok(None) };
            self.now_ns = now_ns;
            match what {
                What::Arrival(kind) => self.begin(kind, now_ns)?,
                What::Packet(place) => {
                    let packet = self.packet(place, now_ns)?;
                    self.given += 1;
                    return Ok(packet);
                }
            }
        }
        Ok(None)
    }

    fn flows(&self) -> Option<u64> {
        Some(self.flows)
    }

    fn progress(&self) -> Progress {
        match (self.packets, self.end_ns) {
            (Some(total), _) => Progress { done: self.given, total },
            (None, Some(end)) => Progress { done: self.now_ns.min(end), total: end },
            (None, None) => Progress { done: 0, total: 0 },
        }
    }
}
