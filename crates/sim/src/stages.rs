//! A discrete-event simulation of the engine `parallel`. It follows the engine's code: the hub
//! sends all bundles of a burst, and then takes bundles back and runs the first stage; each stage
//! takes its bundles in turn; copies are made where the tables say, and the hub merges.

use crate::cost::{Cost, Overheads};
use crate::load::{Load, Predicted, drive};
use braid_ir::service_graph::stages::Route;
use braid_ir::service_graph::{Extent, Step, Target};
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::mem::take;

/// The most packets of a bundle.
pub const BUNDLE: usize = 8;

/// A chain in stages, with their costs.
#[derive(Clone, Debug)]
pub struct Staged<'a> {
    /// The routes through the stages.
    pub routes: &'a [Route],
    /// By stage: its cost.
    pub costs: Vec<Cost>,
    /// By stage: the share of the packets on its routes that reach it.
    pub reach: Vec<f64>,
}

/// The packets that come.
#[derive(Clone, Debug, Default)]
pub struct Traffic {
    /// The routes of packets in sequence, by number, again and again. A packet without a route
    /// never reaches a stage.
    pub routes: Vec<Option<usize>>,
    /// The mean length of packets (bytes).
    pub bytes: f64,
}

/// A chain in stages, on a core for each stage.
///
/// # Panics
/// When a route names a stage that has no cost, or there is no stage.
#[must_use]
pub fn stages(
    staged: &Staged<'_>,
    overheads: &Overheads,
    traffic: &Traffic,
    load: Load,
    packets: usize,
) -> Predicted {
    let mut simulation = Simulation {
        staged,
        overheads,
        bytes: traffic.bytes,
        events: BinaryHeap::new(),
        threads: staged.costs.iter().map(|_| Thread::default()).collect(),
        given: vec![0; staged.costs.len()],
        bundles: Vec::new(),
        returned: Vec::new(),
        merging: Vec::new(),
        scheduled: 0,
    };
    drive(load, packets, |start, first, count| {
        simulation.burst(start, bundles(&traffic.routes, first, count))
    })
}

/// The bundles of a burst, each with its route and its number of packets.
fn bundles(routes: &[Option<usize>], first: usize, count: usize) -> Vec<(Option<usize>, usize)> {
    let mut all: Vec<(Option<usize>, usize)> = Vec::new();
    for at in first..first + count {
        let route = at.checked_rem(routes.len()).and_then(|at| routes[at]);
        match all.last_mut() {
            Some((last, packets)) if *last == route && *packets < BUNDLE => *packets += 1,
            _ => all.push((route, 1)),
        }
    }
    all
}

/// A bundle of the burst.
struct Bundle<'a> {
    route: &'a Route,
    packets: f64,
    /// By place in the route: the number of bundles that the stage gets before this one.
    turns: Vec<u64>,
}

/// A version of a bundle on its way.
#[derive(Clone, Copy)]
struct Version {
    /// The place of the bundle in the list.
    bundle: usize,
    version: u32,
    /// Whether it comes from another thread.
    is_moved: bool,
    to: To,
}

/// Where a version goes.
#[derive(Clone, Copy)]
enum To {
    /// The stage at this place of the route.
    Stage(usize),
    Merger(usize),
    End,
}

/// A stage's thread. The first one is the hub's.
#[derive(Default)]
struct Thread {
    is_busy: bool,
    idle_since: f64,
    waiting: Vec<Version>,
    /// The number of bundles that its stage has processed.
    turn: u64,
    /// The number of versions that were sent and have not arrived.
    coming: usize,
    /// The time before which nothing arrives, because the thread was woken.
    awake_at: f64,
}

enum What {
    Arrives {
        thread: usize,
        version: Version,
    },
    /// A stage has processed a version.
    IsProcessed {
        thread: usize,
        version: Version,
        by: Target,
    },
    IsFree {
        thread: usize,
    },
}

struct Event {
    time: f64,
    /// Events at one time happen in the order in which they were scheduled.
    number: u64,
    what: What,
}

impl Ord for Event {
    /// The greatest event is the first one.
    fn cmp(&self, other: &Self) -> Ordering {
        other.time.total_cmp(&self.time).then(other.number.cmp(&self.number))
    }
}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Event {}

struct Simulation<'a> {
    staged: &'a Staged<'a>,
    overheads: &'a Overheads,
    bytes: f64,
    events: BinaryHeap<Event>,
    threads: Vec<Thread>,
    /// By stage: the number of bundles that it has got or will get.
    given: Vec<u64>,
    /// The bundles of the burst.
    bundles: Vec<Bundle<'a>>,
    /// The versions that are back at the hub, in the order of their arrival.
    returned: Vec<Version>,
    /// Versions that wait for others: the bundle and the merger.
    merging: Vec<(usize, usize)>,
    /// The number of events so far.
    scheduled: u64,
}

impl<'a> Simulation<'a> {
    /// Runs a burst. Returns the time at which all of its bundles are back.
    fn burst(&mut self, start: f64, bundles: Vec<(Option<usize>, usize)>) -> f64 {
        self.bundles.clear();
        let mut now = start + self.overheads.burst_ns;
        for (number, packets) in bundles {
            #[expect(clippy::cast_precision_loss, reason = "at most 8")]
            let packets = packets as f64;
            now += self.overheads.packet_ns * packets;
            let route = number.and_then(|number| self.staged.routes.get(number));
            let Some(route) = route else { continue };
            now += self.overheads.bundle_ns;
            let turn = |stage: &usize| {
                self.given[*stage] += 1;
                self.given[*stage] - 1
            };
            let turns = route.stages.iter().map(turn).collect();
            self.bundles.push(Bundle { route, packets, turns });
            let bundle = self.bundles.len() - 1;
            let own = Version { bundle, version: 1, is_moved: false, to: To::End };
            now = self.forward(0, own, &route.tables.classification.steps, now);
        }
        self.threads[0].is_busy = true;
        self.schedule(now, What::IsFree { thread: 0 });
        while let Some(Event { time, what, .. }) = self.events.pop() {
            // The burst is done when the hub has taken the last bundle back.
            now = now.max(time);
            match what {
                What::Arrives { thread, version } => {
                    self.threads[thread].coming -= 1;
                    match version.to {
                        To::Stage(_) => self.threads[thread].waiting.push(version),
                        To::Merger(_) | To::End => self.returned.push(version),
                    }
                    self.look(thread, time);
                }
                What::IsProcessed { thread, version, by } => {
                    let steps = steps(self.bundles[version.bundle].route, by);
                    let end = self.forward(thread, version, steps, time);
                    self.schedule(end, What::IsFree { thread });
                }
                What::IsFree { thread } => {
                    let own = &mut self.threads[thread];
                    (own.is_busy, own.idle_since) = (false, time);
                    self.look(thread, time);
                }
            }
        }
        now
    }

    fn schedule(&mut self, time: f64, what: What) {
        self.scheduled += 1;
        self.events.push(Event { time, number: self.scheduled, what });
    }

    /// Lets a thread that is free begin its next work, if there is any.
    fn look(&mut self, thread: usize, time: f64) {
        if self.threads[thread].is_busy {
            return;
        }
        let event = match thread == 0 && !self.returned.is_empty() {
            true => {
                let returned = take(&mut self.returned);
                let end = returned.into_iter().fold(time, |now, one| self.take_back(one, now));
                Some((end, What::IsFree { thread }))
            }
            false => self.process(thread, time),
        };
        // A thread that finds only bundles of later turns looks again for some time.
        let own = &mut self.threads[thread];
        (own.is_busy, own.idle_since) = (event.is_some(), time);
        if let Some((end, what)) = event {
            self.schedule(end, what);
        }
    }

    /// Lets a stage process the version whose turn it is. Returns the end.
    fn process(&mut self, thread: usize, time: f64) -> Option<(f64, What)> {
        let own = &mut self.threads[thread];
        let place = |version: &Version| match version.to {
            To::Stage(place) => Some(place),
            To::Merger(_) | To::End => None,
        };
        let is_next = |version: &Version| {
            let turns = &self.bundles[version.bundle].turns;
            place(version).and_then(|place| turns.get(place)) == Some(&own.turn)
        };
        let next = own.waiting.iter().position(is_next)?;
        let version = own.waiting.swap_remove(next);
        let place = place(&version)?;
        own.turn += 1;
        let reach = self.staged.reach.get(thread).copied().unwrap_or(1.0);
        let packets = self.bundles[version.bundle].packets * reach;
        let cost = self.staged.costs.get(thread).copied().unwrap_or_default();
        let end = time + self.moving(version, packets) + cost.call(packets);
        Some((end, What::IsProcessed { thread, version, by: Target::Function(place) }))
    }

    /// The time that a version takes because another thread had it (ns).
    fn moving(&self, version: Version, packets: f64) -> f64 {
        let Overheads { taken_ns, moved_ns, .. } = *self.overheads;
        if version.is_moved { taken_ns + moved_ns * packets } else { 0.0 }
    }

    /// Takes a version back at the hub: for a merger, or for good. Returns the end of this work.
    fn take_back(&mut self, version: Version, time: f64) -> f64 {
        let Bundle { route, packets, .. } = self.bundles[version.bundle];
        let now = time + self.moving(version, packets);
        let To::Merger(number) = version.to else { return now };
        let Some(merging) = route.tables.merging.get(number) else { return now };
        let key = (version.bundle, number);
        self.merging.push(key);
        if self.merging.iter().filter(|other| **other == key).count() < merging.merge.expects {
            return now;
        }
        self.merging.retain(|other| *other != key);
        #[expect(clippy::cast_precision_loss, reason = "few operations")]
        let writes = merging.merge.operations.len() as f64;
        let now = now + self.overheads.write_ns * writes * packets;
        let merged = Version { version: merging.merge.into, is_moved: false, ..version };
        self.forward(0, merged, steps(route, Target::Merger(number)), now)
    }

    /// Carries out the steps of a thread with a version: makes copies and sends them, and then the
    /// version itself. Returns the end of this work.
    fn forward(&mut self, from: usize, own: Version, steps: &[Step], time: f64) -> f64 {
        let (mut now, mut sent) = (time, Vec::new());
        let packets = self.bundles[own.bundle].packets;
        for step in steps {
            match step {
                Step::Copy { extent, .. } => now += self.copying(*extent, packets),
                Step::Distribute { version, targets } => {
                    let to = match targets.first() {
                        Some(Target::Function(place)) => To::Stage(*place),
                        Some(Target::Merger(number)) => To::Merger(*number),
                        None => To::End,
                    };
                    sent.push((*version, to));
                }
                Step::Output { version } => sent.push((*version, To::End)),
            }
        }
        sent.sort_by_key(|(version, _)| *version == own.version);
        for (version, to) in sent {
            let version = Version { bundle: own.bundle, version, is_moved: false, to };
            // What the hub itself takes back does not travel.
            now = match (from, to) {
                (0, To::Merger(_) | To::End) => self.take_back(version, now),
                _ => self.send(from, version, now),
            };
        }
        now
    }

    /// Sends a version to another thread, or to the first stage on the hub, and wakes the thread if
    /// it sleeps. Returns the end of this work.
    fn send(&mut self, from: usize, version: Version, time: f64) -> f64 {
        let Overheads { hop_ns, wake_ns, unpark_ns, sleeps_after_ns, .. } = *self.overheads;
        let thread = match version.to {
            To::Stage(place) => {
                self.bundles[version.bundle].route.stages.get(place).copied().unwrap_or(0)
            }
            To::Merger(_) | To::End => 0,
        };
        let is_moved = thread != from;
        let version = Version { is_moved, ..version };
        let receiver = &mut self.threads[thread];
        let is_asleep = is_moved
            && !receiver.is_busy
            && receiver.coming == 0
            && time - receiver.idle_since > sleeps_after_ns;
        if is_asleep {
            receiver.awake_at = time + hop_ns + wake_ns;
        }
        receiver.coming += 1;
        let arrives = if is_moved { (time + hop_ns).max(receiver.awake_at) } else { time };
        self.schedule(arrives, What::Arrives { thread, version });
        if is_asleep { time + unpark_ns } else { time }
    }

    /// The time to copy a bundle, and to merge it later (ns).
    fn copying(&self, extent: Extent, packets: f64) -> f64 {
        let Overheads { copy_ns, copied_ns, byte_ns, .. } = *self.overheads;
        let bytes = if extent == Extent::Full { self.bytes } else { 0.0 };
        copy_ns + (copied_ns + byte_ns * bytes) * packets
    }
}

/// The steps behind a function or a merger.
fn steps(route: &Route, from: Target) -> &[Step] {
    let found = route.tables.forwarding.iter().find(|one| one.from == from);
    found.map_or(&[], |one| &one.steps)
}
