//! A stage: runs its functions on bundles in the order of their arrival, and sends each bundle on
//! by its part of the forwarding table.

use super::bell::Bell;
use super::bundle::{Bundle, Copier, Gathered, Handle, Target};
use super::options::Options;
use super::tables::Forwards;
use braid_ir::engine::{AHEAD, Engine};
use braid_packet::{Burst, Packet, Reached};
use rtrb::{Consumer, Producer, PushError};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The engine of a stage. While a burst runs, only the stage uses it. Otherwise only the hub does.
pub(super) struct Core {
    pub(super) engine: Box<dyn Engine>,
    /// The number of the latest burst with packets for this stage.
    burst: u64,
    /// The first place of that burst that no packet of this stage has had.
    after: u16,
}

impl Core {
    pub(super) fn new(engine: Box<dyn Engine>) -> Self {
        Self { engine, burst: 0, after: 0 }
    }

    /// The first place of a burst that no packet of this stage has had so far. From now on, it is
    /// the place `until` at least. Returns the old one.
    pub(super) fn pass(&mut self, burst: u64, until: u16) -> u16 {
        if self.burst != burst {
            (self.burst, self.after) = (burst, 0);
        }
        let after = self.after;
        self.after = after.max(until);
        after
    }
}

/// A core that threads share.
pub(super) type SharedCore = Arc<Mutex<Core>>;

/// The core. After a panic of its thread, the hub panics, too.
pub(super) fn lock(core: &Mutex<Core>) -> MutexGuard<'_, Core> {
    core.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What all threads of an engine share.
#[derive(Default)]
pub(super) struct Shared {
    /// The bells of threads: that of the hub, then those of the stages that have threads of their
    /// own.
    pub(super) bells: Vec<Bell>,
    /// By stage: the bell of the thread that runs it.
    pub(super) bell_of: Vec<usize>,
    /// Whether the threads must end.
    pub(super) ends: AtomicBool,
    /// Whether a stage's thread has panicked.
    pub(super) has_failed: AtomicBool,
}

impl Shared {
    /// For stages with these bells.
    pub(super) fn new(bell_of: Vec<usize>) -> Self {
        let last = bell_of.iter().copied().max().unwrap_or_default();
        let bells = (0..=last).map(|_| Bell::default()).collect();
        Self { bells, bell_of, ..Self::default() }
    }
}

/// The rings on which a thread sends bundles: to the hub, and to stages.
pub(super) struct Rings {
    pub(super) shared: Arc<Shared>,
    pub(super) hub: Option<Producer<Handle>>,
    pub(super) stages: Vec<Option<Producer<Handle>>>,
}

impl Rings {
    /// Sends a bundle to its target. A ring has room for all bundles of a burst.
    pub(super) fn send(&mut self, mut bundle: Handle) {
        let (ring, bell) = match bundle.target {
            Target::Stage(stage) => {
                let bell = self.shared.bell_of.get(stage).copied().unwrap_or_default();
                (self.stages.get_mut(stage).and_then(Option::as_mut), bell)
            }
            Target::Merger(_) | Target::End => (self.hub.as_mut(), 0),
        };
        let Some(ring) = ring else { return };
        while let Err(PushError::Full(back)) = ring.push(bundle) {
            bundle = back;
            std::thread::yield_now();
        }
        if let Some(bell) = self.shared.bells.get(bell) {
            bell.ring();
        }
    }
}

/// A stage at work.
pub(super) struct Stage {
    pub(super) number: usize,
    pub(super) core: SharedCore,
    pub(super) forwards: Arc<Vec<Forwards>>,
    /// The interface by which packets leave the engine that go on to another stage.
    pub(super) onward: u16,
    /// Whether due work runs separately, in front of each packet.
    pub(super) is_apart: bool,
    pub(super) inputs: Vec<Consumer<Handle>>,
    /// Copies that come back.
    pub(super) used: Consumer<Handle>,
    pub(super) rings: Rings,
    pub(super) copier: Copier,
    /// Bundles whose turn has not come.
    pub(super) waiting: Vec<Handle>,
    /// Whether it is an isolated function, which works in a process of its own.
    pub(super) is_process: bool,
    /// The bundles that it runs next, in order. A process runs them ahead.
    pub(super) begun: VecDeque<Handle>,
    /// Whether the process runs all of these ahead.
    pub(super) is_open: bool,
    /// The number of bundles whose turn has come.
    pub(super) turn: u64,
    /// Memory for packets while a bundle is sorted.
    pub(super) sorted: Vec<(Packet, Reached)>,
    pub(super) options: Options,
}

impl Stage {
    /// Whether there is anything to look at.
    pub(super) fn is_called(&self) -> bool {
        self.inputs.iter().any(|input| !input.is_empty())
    }

    /// Processes the bundle whose turn it is. Returns whether that bundle was there.
    pub(super) fn step(&mut self) -> bool {
        self.begin();
        self.end()
    }

    /// Takes the bundles whose turn it is: one, or as many as a process runs ahead. Returns whether
    /// there were any.
    pub(super) fn begin(&mut self) -> bool {
        let before = self.begun.len();
        while self.begun.is_empty() || self.is_open && !self.is_full() {
            let Some(mut bundle) = self.next() else { break };
            self.is_open = self.is_process && self.is_ahead(&mut bundle);
            self.begun.push_back(bundle);
        }
        self.begun.len() > before
    }

    /// Whether a process has no room for another bundle.
    pub(super) fn is_full(&self) -> bool {
        let packets: usize = self.begun.iter().map(|bundle| bundle.places.len()).sum();
        packets + self.options.bundle > AHEAD
    }

    /// Lets a process run a bundle ahead. Returns whether it runs all of it.
    fn is_ahead(&self, bundle: &mut Bundle) -> bool {
        self.place(bundle).is_some() && lock(&self.core).engine.ahead(&mut bundle.burst)
    }

    /// Processes the first bundle that was taken. Returns whether there was one.
    pub(super) fn end(&mut self) -> bool {
        let Some(bundle) = self.begun.pop_front() else { return false };
        self.process(bundle);
        true
    }

    /// The bundle whose turn it is, if it is there.
    fn next(&mut self) -> Option<Handle> {
        while let Ok(copy) = self.used.pop() {
            self.copier.take_back(copy);
        }
        for input in &mut self.inputs {
            while let Ok(bundle) = input.pop() {
                self.waiting.push(bundle);
            }
        }
        let Self { forwards, number, waiting, turn, .. } = self;
        let own = forwards.get(*number)?;
        let place = |bundle: &Bundle| Some(own.get(bundle.meta.route())?.as_ref()?.0);
        let is_next =
            |bundle: &Handle| place(bundle).and_then(|at| bundle.turns.get(at)) == Some(turn);
        let next = waiting.iter().position(is_next);
        let at = self.options.turn(next, waiting.len())?;
        *turn += 1;
        Some(waiting.swap_remove(at))
    }

    fn process(&mut self, mut bundle: Handle) {
        let place = self.place(&bundle);
        if let Some((place, is_merged)) = place {
            self.options.stall(self.number, bundle.turns.get(place).copied().unwrap_or_default());
            self.run(&mut bundle, place, is_merged);
        }
        let Self { forwards, number, rings, copier, .. } = self;
        let forward = forwards.get(*number).and_then(|own| own.get(bundle.meta.route()));
        if let Some(Some((_, actions))) = forward {
            actions.run(bundle, copier, |bundle| rings.send(bundle));
        }
    }

    /// The place of this stage in a bundle's route, and whether the bundle then goes to a merger.
    fn place(&self, bundle: &Bundle) -> Option<(usize, bool)> {
        let own = self.forwards.get(self.number)?;
        let (place, actions) = own.get(bundle.meta.route())?.as_ref()?;
        Some((*place, actions.is_merged()))
    }

    /// Runs the engine on a bundle. Afterwards the bundle has the packets that go on.
    fn run(&mut self, bundle: &mut Bundle, order: usize, is_merged: bool) {
        let Some(last) = bundle.places.last().copied() else { return };
        let mut core = lock(&self.core);
        let after = core.pass(bundle.burst_number, last + 1);
        let Bundle { burst, places, outs, .. } = bundle;
        let mut out = Gathered { places, after, order, is_due: false, first: 0, at: 0, outs };
        match self.is_apart {
            true => run_apart(core.engine.as_mut(), burst, &mut out),
            false => core.engine.burst(burst, &mut out),
        }
        drop(core);
        if last == bundle.last && self.number < Bundle::STAGES {
            bundle.seen |= 1 << self.number;
        }
        self.sort(bundle, is_merged);
    }

    /// Sorts the packets that do not go on out of a bundle. A packet that leaves the chain goes on
    /// to a merger first, if the bundle goes there.
    fn sort(&mut self, bundle: &mut Bundle, is_merged: bool) {
        let onward = Reached::Interface(self.onward);
        if bundle.burst.reached.iter().all(|reached| *reached == onward) {
            bundle.burst.reached.clear();
            return;
        }
        self.sorted.extend(bundle.burst.drain_reached());
        let mut places = std::mem::take(&mut bundle.places).into_iter();
        for (packet, reached) in self.sorted.drain(..) {
            let Some(place) = places.next() else { break };
            match reached {
                Reached::Interface(interface) if is_merged || reached == onward => {
                    bundle.burst.push(packet);
                    bundle.places.push(place);
                    if reached != onward {
                        bundle.exits.push((place, interface));
                    }
                }
                _ => bundle.ended.push((place, reached, packet)),
            }
        }
    }
}

/// Runs an engine on packets, and what is due before each of them separately, so that the outputs
/// of both are known.
fn run_apart(engine: &mut dyn Engine, burst: &mut Burst, out: &mut Gathered<'_>) {
    let packets: Vec<Packet> = burst.drain().collect();
    let mut reached = Vec::with_capacity(packets.len());
    let mut one = Burst::default();
    for packet in packets {
        let time_ns = packet.time_ns;
        (out.at, out.is_due) = (out.first, true);
        engine.pass_time(time_ns, out);
        out.is_due = false;
        one.push(packet);
        engine.burst(&mut one, out);
        for (packet, end) in one.drain_reached() {
            burst.push(packet);
            reached.push(end);
        }
        out.first += 1;
    }
    burst.reached = reached;
}

/// Runs a stage on its own thread until the engine ends.
pub(super) fn work(mut stage: Stage) {
    let shared = stage.rings.shared.clone();
    let _guard = Guard(&shared);
    let bell = shared.bell_of.get(stage.number).and_then(|bell| shared.bells.get(*bell));
    let Some(bell) = bell else { return };
    while !shared.ends.load(Ordering::Relaxed) {
        if !stage.step() {
            bell.wait(stage.options.spins, || {
                stage.is_called() || shared.ends.load(Ordering::Relaxed)
            });
        }
    }
}

/// Tells the hub if the thread panics.
struct Guard<'a>(&'a Shared);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.has_failed.store(true, Ordering::Release);
            if let Some(bell) = self.0.bells.first() {
                bell.ring();
            }
        }
    }
}
