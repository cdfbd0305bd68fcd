//! Measures the functions of a chain on packets, for the choice between run-to-completion and
//! stages: each stage of a plan as a chain of its own on the engine `fused`, on one core.
//!
//! The engines are made for this and thrown away afterwards, so that no run is affected.

use std::hint::black_box;
use std::time::{Duration, Instant};

use braid_ir::chain::Chain;
use braid_ir::engine::Engine;
use braid_ir::service_graph::stages::{Entry, Stages};
use braid_packet::frame::SPREAD_FRAME;
use braid_packet::{BURST, Burst, Packet, Pool, Reached};
use braid_sim::{Calls, Cost, Traffic};

use crate::stages::make;
use crate::subject::Nowhere;

/// The number of packets of a stage's calls: few, and as many as a bundle has.
const OF_STAGE: [usize; 2] = [1, 8];
/// The number of packets of the calls of a whole chain.
const OF_CHAIN: [usize; 2] = [1, BURST];
/// The least number of packets before the measurement.
const BEFORE: usize = 1_024;
/// The number of packets of a part, which is measured at a time. The median of the parts counts, so
/// that other work on the machine matters less.
const PART: usize = 192;
/// The time between the last packet and the first one when it comes again (ns).
const PAUSE_NS: u64 = 1_000_000;
/// The least and the most number of parts.
const LEAST: usize = 4;
const PARTS: usize = 1_024;

/// What was measured of a plan.
#[derive(Clone, Debug)]
pub struct Measured {
    /// By stage: its cost.
    pub costs: Vec<Cost>,
    /// By stage: the share of the packets on its routes that reach it.
    pub reach: Vec<f64>,
    /// The routes of the packets.
    pub traffic: Traffic,
}

/// Measures the cost of a chain on the engine `fused`. `limit` is about the time that this takes.
///
/// # Errors
/// The engine refuses the chain, or there are no packets.
pub fn whole(chain: &Chain, sample: &[Packet], limit: Duration) -> Result<Cost, String> {
    let engine = make(chain.clone()).map_err(|why| why.0)?;
    // One stage takes packets of all interfaces.
    let routes = vec![Some(0); sample.len()];
    let mut walk = Walk::new(sample, routes, vec![engine], vec![vec![0]], OF_CHAIN)?;
    walk.measure(limit);
    walk.cost(0).ok_or_else(|| "no packet could be measured".to_owned())
}

/// Measures the stages of a plan on packets, each with the number of the interface where it enters.
/// `limit` is about the time that this takes.
///
/// # Errors
/// The engine refuses a stage, or there are no packets.
pub fn stages(
    chain: &Chain,
    plan: &Stages,
    sample: &[Packet],
    limit: Duration,
) -> Result<Measured, String> {
    let engines = plan.stages.iter().map(|stage| make(stage.chain.clone()));
    let engines = engines.collect::<Result<Vec<_>, _>>().map_err(|why| why.0)?;
    let routes: Vec<Option<usize>> = sample.iter().map(|packet| route(plan, packet)).collect();
    let ways = plan.routes.iter().map(|route| route.stages.clone()).collect();
    let mut walk = Walk::new(sample, routes.clone(), engines, ways, OF_STAGE)?;
    walk.onward = u16::try_from(chain.interfaces.len()).unwrap_or(u16::MAX);
    walk.measure(limit);
    let stages = 0..plan.stages.len();
    let bytes: usize = sample.iter().map(|packet| packet.data().len()).sum();
    #[expect(clippy::cast_precision_loss, reason = "a sample is small")]
    let bytes = bytes as f64 / sample.len() as f64;
    Ok(Measured {
        costs: stages.clone().map(|stage| walk.cost(stage).unwrap_or_default()).collect(),
        reach: stages.map(|stage| walk.reach(stage)).collect(),
        traffic: Traffic { routes, bytes },
    })
}

/// The route that a packet takes.
#[must_use]
pub fn route(plan: &Stages, packet: &Packet) -> Option<usize> {
    match plan.entries.get(usize::from(packet.ingress))? {
        Entry::Routes { graph, sequence } => {
            let layout = packet.parse();
            let is_cut = packet.wire_len as usize > packet.data().len();
            let is_odd = is_cut || layout.malformed().is_some() || layout.is_fragment();
            Some(if is_odd { *sequence } else { *graph })
        }
        Entry::Unlinked | Entry::Leaves(_) => None,
    }
}

/// Measures the mean time of a packet in an engine (ns), in bursts of up to this number of packets:
/// the median of parts of the packets. `limit` is about the time that this takes.
///
/// # Errors
/// There are no packets.
pub fn elapsed(
    engine: Box<dyn Engine>,
    sample: &[Packet],
    size: usize,
    limit: Duration,
) -> Result<f64, String> {
    let routes = vec![Some(0); sample.len()];
    let mut walk = Walk::new(sample, routes, vec![engine], vec![vec![0]], [size, size])?;
    walk.measure(limit);
    let cost = walk.cost(0).ok_or("no packet could be measured")?;
    Ok(cost.packet_ns)
}

/// Packets that walk through stages in sequence.
struct Walk<'a> {
    sample: &'a [Packet],
    /// The packet that is next.
    next: usize,
    /// For each packet: its route.
    routes: Vec<Option<usize>>,
    engines: Vec<Box<dyn Engine>>,
    /// By route: its stages.
    ways: Vec<Vec<usize>>,
    /// The interface by which packets go on to another stage.
    onward: u16,
    /// The number of packets of calls: few, and many.
    sizes: [usize; 2],
    burst: Burst,
    pool: Pool,
    /// What is added to the times of packets, so that time goes on (ns).
    later_ns: u64,
    span_ns: u64,
    /// What reading the clock takes (ns).
    clock_ns: f64,
    /// By stage: the calls of the current part.
    calls: Vec<Calls>,
    /// By stage: the packets that should reach it.
    sent: Vec<f64>,
    /// By size and stage: the calls of each part.
    parts: [Vec<Vec<Calls>>; 2],
}

impl<'a> Walk<'a> {
    fn new(
        sample: &'a [Packet],
        routes: Vec<Option<usize>>,
        engines: Vec<Box<dyn Engine>>,
        ways: Vec<Vec<usize>>,
        sizes: [usize; 2],
    ) -> Result<Self, String> {
        if sample.is_empty() {
            return Err("there are no packets to measure with".to_owned());
        }
        let times = || sample.iter().map(|packet| packet.time_ns);
        let span_ns = times().max().unwrap_or(0) - times().min().unwrap_or(0);
        let room = u32::try_from(2 * BURST).unwrap_or(u32::MAX);
        let stages = engines.len();
        Ok(Self {
            sample,
            next: 0,
            routes,
            engines,
            ways,
            onward: u16::MAX,
            sizes,
            burst: Burst::new(),
            pool: Pool::new(room, SPREAD_FRAME).ok_or("there is no memory for packets")?,
            later_ns: 0,
            span_ns: span_ns.saturating_add(PAUSE_NS),
            clock_ns: clock_ns(),
            calls: vec![Calls::default(); stages],
            sent: vec![0.0; stages],
            parts: [vec![Vec::new(); stages], vec![Vec::new(); stages]],
        })
    }

    /// Lets the packets walk until the time is over: first to warm up, then with few and with many
    /// packets in a call, in turn.
    fn measure(&mut self, limit: Duration) {
        let begin = Instant::now();
        let [few, many] = self.sizes;
        let mut warmed = 0;
        while warmed < BEFORE && begin.elapsed() < limit / 4 {
            warmed += self.part(many);
        }
        self.sent.fill(0.0);
        for part in 0..PARTS {
            for (at, size) in [few, many].into_iter().enumerate() {
                self.calls.fill(Calls::default());
                self.part(size);
                let stages = self.parts[at].iter_mut().zip(&self.calls);
                stages.for_each(|(parts, calls)| parts.push(*calls));
            }
            if part >= LEAST && begin.elapsed() > limit {
                return;
            }
        }
    }

    /// Lets the next part of the packets walk. Behind the last packet comes the first one, at a
    /// later time. Returns the number of packets.
    fn part(&mut self, size: usize) -> usize {
        let mut walked = 0;
        while walked < PART {
            if self.next == self.sample.len() {
                self.next = 0;
                self.later_ns = self.later_ns.saturating_add(self.span_ns);
            }
            let route = self.routes[self.next];
            let rest = self.routes[self.next..].iter().take(size);
            let count = rest.take_while(|other| **other == route).count();
            self.group(self.next, count, route);
            self.next += count;
            walked += count;
        }
        walked
    }

    /// Lets packets of one route walk.
    fn group(&mut self, at: usize, count: usize, route: Option<usize>) {
        let Some(stages) = route.and_then(|route| self.ways.get(route)).cloned() else { return };
        for packet in &self.sample[at..at + count] {
            let Packet { link, time_ns, wire_len, .. } = *packet;
            let time_ns = time_ns.saturating_add(self.later_ns);
            self.burst.add(link, time_ns, packet.data(), wire_len, &mut self.pool);
            if let Some(last) = self.burst.last_mut() {
                last.ingress = packet.ingress;
            }
        }
        let mut ended = Vec::new();
        for stage in stages {
            #[expect(clippy::cast_precision_loss, reason = "at most 64")]
            let (sent, packets) = (count as f64, self.burst.packets().len() as f64);
            self.sent[stage] += sent;
            if packets == 0.0 {
                continue;
            }
            let start = Instant::now();
            self.engines[stage].burst(black_box(&mut self.burst), &mut Nowhere);
            let nanos = start.elapsed().as_secs_f64() * 1e9 - self.clock_ns;
            let calls = &mut self.calls[stage];
            calls.calls += 1.0;
            calls.packets += packets;
            calls.nanos += nanos.max(0.0);
            let all: Vec<_> = self.burst.drain_reached().collect();
            for (packet, reached) in all {
                match reached == Reached::Interface(self.onward) {
                    true => self.burst.push(packet),
                    false => ended.push(packet),
                }
            }
        }
        ended.into_iter().for_each(|packet| self.burst.push(packet));
        self.burst.recycle(&mut self.pool);
    }

    /// The cost of a stage, if packets reached it: by the parts that took a median time.
    fn cost(&self, stage: usize) -> Option<Cost> {
        let [few, many] = [0, 1].map(|size| {
            let mut parts = self.parts[size].get(stage).cloned().unwrap_or_default();
            parts.retain(|calls| calls.packets > 0.0);
            let each = |calls: &Calls| calls.nanos / calls.packets;
            parts.sort_by(|a, b| each(a).total_cmp(&each(b)));
            parts.get(parts.len() / 2).copied()
        });
        Some(Cost::between(few?, many?))
    }

    /// The share of packets that reach a stage.
    fn reach(&self, stage: usize) -> f64 {
        let all = self.parts.iter().flat_map(|parts| &parts[stage]);
        let reached: f64 = all.map(|calls| calls.packets).sum();
        if self.sent[stage] > 0.0 { reached / self.sent[stage] } else { 0.0 }
    }
}

/// The median time of reading the clock (ns).
fn clock_ns() -> f64 {
    let mut all: Vec<Duration> = (0..101)
        .map(|_| {
            let start = Instant::now();
            black_box(start).elapsed()
        })
        .collect();
    all.sort_unstable();
    all[all.len() / 2].as_secs_f64() * 1e9
}
