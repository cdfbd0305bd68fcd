//! A worker: a thread that moves packets. Between two bursts it serves its mailbox.

use super::clock::nanoseconds;
use super::exchange::{Exchange, WORKER_QUEUE_FULL};
use super::meter::{Meter, Rates};
use super::newcomers::{NEW_FLOW_REFUSED, Newcomers};
use super::numbers::renumber;
use super::polling::Polling;
use super::shared::{Reading, Shared};
use super::sink::{Sink, Unsent};
use crate::engines::type_of;
use crate::hosts::new_addresses;
use crate::load::Load;
use crate::outcome::RunError;
use crate::script::Script;
use crate::steer::Steerer;
use braid_io::{Unreceived, wait, wakers};
use braid_ir::chain::{Chain, Control};
use braid_ir::engine::{Compilation, Counters, Engine, Prepared};
use braid_ir::snapshot::{Snapshot, staying};
use braid_packet::{BURST, Burst, Frame, Packet};
use serde_json::Value;
use std::any::TypeId;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

/// The longest wait for a frame. Timers and time-outs may run this much too late while no frames
/// arrive.
const PATIENCE: Duration = Duration::from_millis(10);

/// The reason for which packets that arrive while the run drains are lost.
const DRAINED: &str = "drained";

/// The least time between two messages (ns), so that many messages do not delay packets.
const PAUSE_NS: u64 = 1_000_000;

/// The limits at which a live run ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Limits {
    /// After this time.
    pub time: Option<Duration>,
    /// After this many packets have been read. Packets that are read together are all processed.
    pub packets: Option<u64>,
}

/// A request to a worker.
type Message = Box<dyn for<'w> FnOnce(&mut Worker<'w>) + Send>;

/// The sender's end of a worker's mailbox.
pub(super) struct Mailbox(SyncSender<Message>);

/// The worker's end of its mailbox.
pub(super) struct Messages {
    waiting: Receiver<Message>,
    /// The time before which the worker takes no message.
    next_ns: u64,
}

/// A mailbox for a worker.
pub(super) fn mailbox() -> (Mailbox, Messages) {
    let (send, waiting) = sync_channel(1);
    (Mailbox(send), Messages { waiting, next_ns: 0 })
}

impl Mailbox {
    /// Asks the worker to run `work` between two bursts. The answer comes through the receiver.
    /// `None` if the worker has ended.
    pub(super) fn send<T: Send + 'static>(
        &self,
        work: impl for<'w> FnOnce(&mut Worker<'w>) -> T + Send + 'static,
    ) -> Option<Receiver<T>> {
        let (answer, done) = sync_channel(1);
        let message: Message = Box::new(move |worker| {
            // The sender may have given up, because another worker has ended.
            let _ = answer.send(work(worker));
        });
        self.0.send(message).ok()?;
        Some(done)
    }

    /// As [`Self::send`], and waits for the answer.
    pub(super) fn ask<T: Send + 'static>(
        &self,
        work: impl for<'w> FnOnce(&mut Worker<'w>) -> T + Send + 'static,
    ) -> Option<T> {
        self.send(work)?.recv().ok()
    }
}

/// The replacement of a worker's chain.
pub(super) struct Next {
    pub(super) chain: Arc<Chain>,
    /// The new engine, which goes on from the state of the old one.
    pub(super) engine: Box<dyn Engine>,
    /// With several workers.
    pub(super) steerer: Option<Steerer>,
    /// The number of each interface of the chain before, by its number there.
    pub(super) numbers: BTreeMap<u16, u16>,
    /// The functions whose entries come from the engine before ([`staying`]).
    pub(super) staying: Vec<(u16, u16)>,
}

/// The state that a worker hands over for another chain.
pub(super) struct HandedOver {
    /// The state, without the entries of the functions that stay.
    pub(super) snapshot: Snapshot,
    /// The number of each interface in the other chain, by its number here.
    pub(super) numbers: BTreeMap<u16, u16>,
    /// The functions whose entries stay in the engine until the other one takes them over.
    pub(super) staying: Vec<(u16, u16)>,
}

/// The counters of a worker.
pub(super) struct Counted {
    pub(super) counters: Counters,
    pub(super) unsent: Unsent,
}

/// The status of a worker.
pub(super) struct Status {
    /// The number of frames that it has read.
    pub(super) packets: u64,
    /// The number of packets that it has read for other workers. `None` for a single worker.
    pub(super) passed_on: Option<u64>,
    /// The longest time between two polls of its devices since the last request for the status.
    pub(super) longest_pause_us: u64,
    pub(super) rates: Rates,
    pub(super) devices: Vec<Value>,
    pub(super) compilation: Option<Compilation>,
}

/// A worker and all that it owns.
pub(super) struct Worker<'a> {
    pub(super) chain: Arc<Chain>,
    pub(super) engine: Box<dyn Engine>,
    pub(super) shared: Arc<Shared<'a>>,
    pub(super) control: Script,
    pub(super) sink: Sink<'a>,
    /// With several workers.
    pub(super) exchange: Option<Exchange>,
    /// The timers have started.
    has_begun: bool,
    /// The number of frames read, including frames that were lost on reading.
    packets: u64,
    /// The packets lost before they entered the chain, by reason.
    lost: BTreeMap<&'static str, u64>,
    frames: Vec<Frame>,
    pub(super) load: Load,
    /// The longest time between two polls of the devices (ns) since the last request for the
    /// status.
    longest_ns: u64,
    meter: Meter,
    polling: Polling,
    /// If established flows come first.
    newcomers: Option<Newcomers>,
    /// No packet enters any more.
    drains: bool,
    /// The sender of a message that waits until the engine has prepared a copy of its state.
    preparing: Option<SyncSender<()>>,
    /// Further messages follow at once, so the worker does not sleep.
    is_awake: bool,
}

impl<'a> Worker<'a> {
    pub(super) fn new(
        (chain, engine): (Arc<Chain>, Box<dyn Engine>),
        control: Vec<Control>,
        sink: Sink<'a>,
        exchange: Option<Exchange>,
    ) -> Self {
        Self {
            chain,
            engine,
            shared: Arc::clone(&sink.shared),
            control: Script::new(control),
            sink,
            has_begun: exchange.is_none(),
            exchange,
            packets: 0,
            lost: BTreeMap::new(),
            frames: Vec::new(),
            load: Load::new(),
            longest_ns: 0,
            meter: Meter::default(),
            polling: Polling::default(),
            newcomers: None,
            drains: false,
            preparing: None,
            is_awake: false,
        }
    }

    /// From now on, packets of established flows go first when there are too many packets.
    pub(super) fn prefer_established(&mut self) {
        self.newcomers = Some(Newcomers::new());
    }

    /// Moves packets until `stop` is set, a limit is reached, an output cannot be written, or
    /// another worker has ended. Then runs the packets that other workers have passed on.
    pub(super) fn run(
        &mut self,
        messages: Messages,
        stop: &AtomicBool,
        limits: Limits,
    ) -> Result<(), RunError> {
        let reading = Reading::begin(&self.shared);
        let read = self.read(messages, stop, limits);
        // This tells the control thread that there will be no copy of the state.
        self.preparing = None;
        read?;
        drop(reading);
        loop {
            let is_last = self.exchange.is_none() || !self.shared.is_read();
            let any = self.take_in();
            self.admit(true);
            if !any {
                if is_last {
                    return Ok(());
                }
                std::thread::yield_now();
            }
        }
    }

    /// Moves packets until the run is over.
    fn read(
        &mut self,
        mut messages: Messages,
        stop: &AtomicBool,
        limits: Limits,
    ) -> Result<(), RunError> {
        let clock = self.shared.clock;
        let end_ns = limits.time.map(|time| clock.start_ns().saturating_add(nanoseconds(time)));
        // The time of the last poll of the devices, unless the worker has slept since then.
        let mut looked_ns = None;
        loop {
            let now = clock.now_ns();
            let gone_ns = looked_ns.map_or(0, |looked| now.saturating_sub(looked));
            self.longest_ns = self.longest_ns.max(gone_ns);
            looked_ns = Some(now);
            if self.meter.note(now, gone_ns, self.packets) {
                self.shared.flush_events();
                self.sink.count_dropped();
            }
            let is_late = end_ns.is_some_and(|end| now >= end);
            if is_late || stop.load(Ordering::Relaxed) || self.shared.is_over() {
                return Ok(());
            }
            let before = self.packets;
            let has_found = self.turn(now)?;
            self.prepare_more();
            if has_found {
                self.polling.found(now);
            }
            if let Some(most) = limits.packets
                && self.shared.count(self.packets - before) >= most
            {
                return Ok(());
            }
            if self.open(&mut messages, now) || has_found || self.is_awake {
                continue;
            }
            match self.polling.sleeps(now) {
                true => self.idle(end_ns)?,
                false => {
                    self.advance(now);
                    std::thread::yield_now();
                }
            }
            looked_ns = None;
        }
    }

    /// Serves a message, if one waits and the pause since the last one is over. Returns whether it
    /// served one.
    fn open(&mut self, messages: &mut Messages, now: u64) -> bool {
        if now < messages.next_ns {
            return false;
        }
        let Ok(message) = messages.waiting.try_recv() else { return false };
        message(self);
        messages.next_ns = now + PAUSE_NS;
        true
    }

    /// Reads the frames that have arrived at each interface, and takes the packets that other
    /// workers have passed on. Returns whether there were any.
    fn turn(&mut self, now: u64) -> Result<bool, RunError> {
        let mut any = self.attend(now);
        any |= self.take_in();
        for at in 0..self.sink.devices.len() {
            let Self { sink, frames, lost, packets, .. } = self;
            let Some(device) = sink.devices.get_mut(at) else { break };
            let interface = device.interface;
            let mut note = |why: Unreceived| {
                *packets += 1;
                *lost.entry(why.reason()).or_default() += 1;
            };
            let received = device.port.receive(&mut sink.pool, frames, &mut note);
            any |= received.map_err(|error| self.unreadable(at, error))? > 0;
            self.packets += self.sink.hear(interface, &mut self.frames);
            match self.drains {
                true => self.refuse(),
                false => self.process(interface),
            }
        }
        self.admit(false);
        Ok(any)
    }

    /// Runs the engine on packets of new flows that need not wait any longer; on all with `is_end`.
    fn admit(&mut self, is_end: bool) {
        let Some(newcomers) = &mut self.newcomers else { return };
        let mut admitted = newcomers.admit(is_end).into_iter();
        while admitted.len() > 0 {
            let some = admitted.by_ref().take(BURST);
            let now = self.arrive(|burst, now| push_all(burst, now, some));
            self.execute(now);
        }
    }

    /// Runs the engine on frames that entered at an interface.
    fn process(&mut self, interface: u16) {
        let mut frames = std::mem::take(&mut self.frames);
        self.packets += frames.len() as u64;
        for some in frames.chunks_mut(BURST) {
            self.enter_all(|burst, now| {
                some.iter_mut().for_each(|frame| burst.add_frame(interface, now, frame));
            });
        }
        frames.clear();
        self.frames = frames;
    }

    /// Runs the engine on packets that other workers have passed on: as many bursts as they read in
    /// a turn. Returns whether there were any.
    fn take_in(&mut self) -> bool {
        let Some(exchange) = &self.exchange else { return false };
        for count in 0..exchange.others() * self.sink.devices.len().max(1) {
            let Some(packets) = self.exchange.as_mut().and_then(Exchange::receive) else {
                return count > 0;
            };
            self.enter(packets.into_iter());
        }
        true
    }

    /// Runs the engine on a burst of packets, and sends the packets that leave. Packets of other
    /// workers, and of flows that must wait, do not enter.
    pub(super) fn enter(&mut self, packets: impl Iterator<Item = Packet>) {
        self.enter_all(|burst, now| push_all(burst, now, packets));
    }

    /// As [`Self::enter`]. `fill` adds the packets to the burst, with the time that it gets.
    fn enter_all(&mut self, fill: impl FnOnce(&mut Burst, u64)) {
        let now = self.arrive(fill);
        if let Some(newcomers) = &mut self.newcomers {
            let lost = newcomers.hold_back(&mut self.load.burst, &mut self.sink.pool);
            if lost > 0 {
                *self.lost.entry(NEW_FLOW_REFUSED).or_default() += lost;
            }
        }
        self.execute(now);
    }

    /// Fills the load's burst with packets, which get the current time. Passes those of other
    /// workers on. Returns the time.
    fn arrive(&mut self, fill: impl FnOnce(&mut Burst, u64)) -> u64 {
        let now = self.shared.clock.now_ns();
        self.change_until(now, true);
        let burst = &mut self.load.burst;
        fill(burst, now);
        if let Some(exchange) = &mut self.exchange {
            let lost = exchange.pass_on(burst, &mut self.sink.pool);
            if lost > 0 {
                *self.lost.entry(WORKER_QUEUE_FULL).or_default() += lost;
            }
        }
        now
    }

    /// Runs the engine on the load's burst, and sends the packets that leave.
    fn execute(&mut self, now: u64) {
        if self.sink.watch.is_empty() {
            let (burst, mut out) = self.load.parts();
            self.engine.burst(burst, &mut out);
            self.sink.deliver(&self.chain, &mut self.load);
        } else {
            self.run_watched(now);
        }
    }

    /// Starts the timers if it is time, and makes the changes of configuration that are due.
    /// `has_packets` says that packets follow.
    fn change_until(&mut self, now: u64, has_packets: bool) {
        let Self { chain, engine, shared, control, exchange, load, .. } = self;
        let (_, mut out) = load.parts();
        if !self.has_begun
            && let Some(begun) = shared.begun_ns(has_packets.then_some(now))
        {
            engine.begin(begun, &mut out);
            self.has_begun = true;
        }
        control.until(now, chain, &mut **engine, &mut out, |change| {
            shared.changed(change);
            exchange.iter_mut().for_each(|exchange| exchange.changed(change));
        });
        // All workers have the same configuration, so all refuse a change, or none does.
        if exchange.as_ref().is_none_or(|exchange| exchange.own() == 0) {
            shared.note_refused(&mut control.refused);
        }
    }

    /// Advances the engine's time, and waits for frames.
    fn idle(&mut self, end_ns: Option<u64>) -> Result<(), RunError> {
        let now = self.shared.clock.now_ns();
        self.advance(now);
        self.shared.flush_events();
        let ends = [end_ns, self.engine.next_release()].into_iter().flatten().min();
        let left = ends.map_or(u64::MAX, |end| end.saturating_sub(now));
        let patience = PATIENCE.min(Duration::from_nanos(left));
        self.exchange.iter().for_each(Exchange::doze);
        if let Some(packets) = self.exchange.as_mut().and_then(Exchange::receive) {
            self.exchange.iter().for_each(Exchange::wake);
            self.enter(packets.into_iter());
            return Ok(());
        }
        let ports = self.sink.devices.iter().map(|device| device.port.descriptor());
        let bell = self.exchange.as_ref().map(Exchange::bell);
        // What functions on this worker wait for.
        let wakers = wakers();
        let others = wakers.iter().map(|waker| waker.as_fd());
        let waited = wait(ports.chain(bell).chain(others), patience);
        self.exchange.iter().for_each(Exchange::wake);
        let unready = |error: io::Error| RunError::Read {
            name: "the devices".to_owned(),
            error: error.into(),
        };
        waited.map_err(unready)
    }

    /// Runs the due work.
    fn advance(&mut self, now: u64) {
        self.change_until(now, false);
        let (_, mut out) = self.load.parts();
        self.engine.advance(now, &mut out);
        self.sink.deliver(&self.chain, &mut self.load);
    }

    /// Counts the frames that were read as lost, because the run drains. Runs the due work.
    fn refuse(&mut self) {
        let Self { frames, sink, packets, lost, .. } = self;
        if !frames.is_empty() {
            *packets += frames.len() as u64;
            *lost.entry(DRAINED).or_default() += frames.len() as u64;
            frames.drain(..).for_each(|frame| sink.pool.put(frame));
        }
        self.advance(self.shared.clock.now_ns());
    }

    /// From now on, no packet enters. Returns the number of packets that wait in queues of
    /// functions.
    pub(super) fn drain(&mut self) -> u64 {
        self.drains = true;
        self.engine.counters().held
    }

    fn unreadable(&self, at: usize, error: io::Error) -> RunError {
        let name = self.sink.devices.get(at).map_or_else(String::new, |device| device.name.clone());
        RunError::Read { name, error: error.into() }
    }

    /// Counts the remaining packets as lost, because all workers have ended.
    pub(super) fn end(&mut self) {
        while let Some(packets) = self.exchange.as_mut().and_then(Exchange::receive) {
            *self.lost.entry(WORKER_QUEUE_FULL).or_default() += packets.len() as u64;
        }
        self.sink.end_hosts();
    }

    /// Makes the engine prepare a copy of its state between bursts. Drops `preparing` when the copy
    /// is prepared. The worker stays awake until [`Self::resume`].
    pub(super) fn prepare(&mut self, preparing: SyncSender<()>) {
        self.preparing = Some(preparing);
        self.is_awake = true;
    }

    fn prepare_more(&mut self) {
        if self.preparing.is_some() && self.engine.prepare_copy() {
            self.preparing = None;
        }
    }

    /// The state is copied, or is not needed any more.
    pub(super) fn resume(&mut self) {
        self.engine.resume();
        self.is_awake = false;
    }

    /// The counters of the engine and of the worker.
    pub(super) fn counted(&self) -> Counted {
        let mut counters = self.engine.counters();
        for (reason, count) in &self.lost {
            counters.packets_in += count;
            *counters.lost.entry((*reason).into()).or_default() += count;
        }
        Counted { counters, unsent: self.sink.unsent.clone() }
    }

    /// The status of the worker.
    pub(super) fn status(&mut self) -> Status {
        Status {
            packets: self.packets,
            passed_on: self.exchange.as_ref().map(Exchange::passed_on),
            longest_pause_us: std::mem::take(&mut self.longest_ns) / 1_000,
            rates: self.meter.rates(),
            devices: self.sink.devices(&self.chain),
            compilation: self.engine.compilation(),
        }
    }

    /// Changes the configuration now.
    pub(super) fn change(&mut self, changes: &mut [Prepared]) -> Result<(), String> {
        let now = self.shared.clock.now_ns();
        let Self { engine, shared, exchange, load, .. } = self;
        let (_, mut out) = load.parts();
        let made = changes.iter_mut().try_for_each(|change| {
            change.control.time_ns = now;
            // The engine takes the new value out.
            let addresses = new_addresses(&change.control);
            engine.control_prepared(change, &mut out)?;
            if let Some(change) = addresses {
                shared.changed(&change);
                exchange.iter_mut().for_each(|exchange| exchange.changed(&change));
            }
            Ok(())
        });
        self.sink.deliver(&self.chain, &mut self.load);
        made
    }

    /// The state for a chain that will replace this one, with engines of this type.
    ///
    /// # Errors
    /// The reason why this chain stays.
    pub(super) fn hand_over(
        &mut self,
        next: &Chain,
        engines: Option<TypeId>,
    ) -> Result<HandedOver, String> {
        let numbers = self.sink.interfaces_in(&self.chain, next)?;
        if self.control.left() > 0 {
            return Err("changes of the control file still wait for their time".to_owned());
        }
        let staying = match type_of(&mut *self.engine) {
            Some(own) if engines == Some(own) => staying(&self.chain, next),
            _ => Vec::new(),
        };
        let here: Vec<u16> = staying.iter().map(|(_, here)| *here).collect();
        Ok(HandedOver { snapshot: self.engine.export_without(&here), numbers, staying })
    }

    /// Switches to another chain. Returns the old engine, because dropping it takes time. With
    /// `is_first`, the worker also replaces the data that all workers share.
    pub(super) fn replace(&mut self, next: Next, is_first: bool) -> Box<dyn Engine> {
        let Next { chain, engine, steerer, numbers, staying } = next;
        if is_first {
            self.sink.end_hosts_not_in(&chain);
            self.shared.replace_hosts(&chain);
            self.shared.record(|record| {
                let outputs = record.sinks.outputs.iter_mut();
                let named = outputs.filter_map(|output| output.interface.as_mut());
                named.for_each(|interface| renumber(interface, &numbers));
            });
        }
        self.sink.renumber(&numbers, &chain);
        self.newcomers.iter_mut().for_each(|newcomers| newcomers.renumber(&numbers));
        if let (Some(exchange), Some(steerer)) = (&mut self.exchange, steerer) {
            exchange.replace(steerer, &numbers);
        }
        self.chain = chain;
        let mut old = std::mem::replace(&mut self.engine, engine);
        self.engine.take_over(&mut *old, &staying);
        self.is_awake = false;
        old
    }
}

/// Adds packets that arrive now to a burst.
fn push_all(burst: &mut Burst, now: u64, packets: impl Iterator<Item = Packet>) {
    for mut packet in packets {
        packet.time_ns = now;
        burst.push(packet);
    }
}
