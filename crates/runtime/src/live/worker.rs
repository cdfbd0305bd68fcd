//! A worker: the thread that moves packets. Between two bursts it does what its mailbox says.

use super::clock::{Clock, nanoseconds};
use super::meter::{Meter, Rates};
use super::sink::Sink;
use crate::hosts::new_addresses;
use crate::load::Load;
use crate::outcome::{RunError, Summary};
use crate::script::Script;
use braid_io::{Unreceived, wait};
use braid_ir::chain::{Chain, Control};
use braid_ir::engine::{Counters, Engine, Prepared};
use braid_ir::snapshot::Plan;
use braid_packet::{BURST, Frame, Link, Packet};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// The longest wait for a frame. A time-out may run this much too late while no frames arrive.
const PATIENCE: Duration = Duration::from_millis(10);

/// The reason for which packets that arrive while a worker drains are lost.
const DRAINED: &str = "drained";

/// The least time between two messages (ns), so that many messages do not hold up packets.
const PAUSE_NS: u64 = 1_000_000;

/// The limits at which a live run ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Limits {
    /// After this time.
    pub time: Option<Duration>,
    /// After this many packets have been read. Packets that are read together are all processed.
    pub packets: Option<u64>,
}

/// What a worker is asked to do.
type Message = Box<dyn for<'w> FnOnce(&mut Worker<'w>) + Send>;

/// The sender's end of a worker's mailbox.
pub(super) struct Mailbox(SyncSender<Message>);

/// The worker's end of its mailbox.
pub(super) struct Messages {
    waiting: Receiver<Message>,
    /// Before this time, the worker looks at no message.
    next_ns: u64,
}

/// A mailbox for a worker.
pub(super) fn mailbox() -> (Mailbox, Messages) {
    let (send, waiting) = sync_channel(1);
    (Mailbox(send), Messages { waiting, next_ns: 0 })
}

impl Mailbox {
    /// Has the worker do something between two bursts. `None` if the worker has ended.
    pub(super) fn ask<T: Send + 'static>(
        &self,
        work: impl for<'w> FnOnce(&mut Worker<'w>) -> T + Send + 'static,
    ) -> Option<T> {
        let (answer, done) = sync_channel(1);
        let message: Message = Box::new(move |worker| {
            // The one who asks waits for the answer.
            let _ = answer.send(work(worker));
        });
        self.0.send(message).ok()?;
        done.recv().ok()
    }
}

/// A chain with an engine that has not run yet.
pub(super) struct Next {
    pub(super) chain: Arc<Chain>,
    pub(super) engine: Box<dyn Engine>,
}

/// A chain that has taken the place of another one.
pub(super) struct Replaced {
    pub(super) plan: Plan,
    /// How long packets waited.
    pub(super) pause: Duration,
    /// The engine from before. To drop it takes time.
    pub(super) _before: Box<dyn Engine>,
}

/// A worker and all that it owns.
pub(super) struct Worker<'a> {
    pub(super) chain: Arc<Chain>,
    pub(super) engine: Box<dyn Engine>,
    pub(super) clock: Clock,
    pub(super) control: Script,
    pub(super) sink: Sink<'a>,
    /// The number of frames read, including frames that were lost on reading.
    packets: u64,
    /// The frames lost on reading, by reason.
    lost: BTreeMap<&'static str, u64>,
    frames: Vec<Frame>,
    pub(super) load: Load,
    /// The longest time from one look at the devices to the next one (ns) since somebody asked.
    longest_ns: u64,
    meter: Meter,
    /// No packet may enter, and the worker ends at this time (ns) at the latest.
    drains_until_ns: Option<u64>,
}

impl<'a> Worker<'a> {
    pub(super) fn new(
        (chain, engine): (Arc<Chain>, Box<dyn Engine>),
        clock: Clock,
        control: Vec<Control>,
        sink: Sink<'a>,
    ) -> Self {
        Self {
            chain,
            engine,
            clock,
            control: Script::new(control),
            sink,
            packets: 0,
            lost: BTreeMap::new(),
            frames: Vec::new(),
            load: Load::new(),
            longest_ns: 0,
            meter: Meter::default(),
            drains_until_ns: None,
        }
    }

    /// Moves packets until `stop` is set, a limit is reached, or an output cannot be written.
    pub(super) fn run(
        &mut self,
        messages: &mut Messages,
        stop: &AtomicBool,
        limits: Limits,
    ) -> Result<(), RunError> {
        let end_ns =
            limits.time.map(|time| self.clock.start_ns().saturating_add(nanoseconds(time)));
        // The time of the last look at the devices, unless the worker has slept since.
        let mut looked_ns = None;
        loop {
            let now = self.clock.now_ns();
            let gone_ns = looked_ns.map_or(0, |looked| now.saturating_sub(looked));
            self.longest_ns = self.longest_ns.max(gone_ns);
            looked_ns = Some(now);
            self.meter.note(now, gone_ns, self.packets);
            let over = end_ns.is_some_and(|end| now >= end)
                || limits.packets.is_some_and(|most| self.packets >= most)
                || self.has_drained(now)?;
            if over || stop.load(Ordering::Relaxed) || self.sink.leaving.has_failed() {
                return Ok(());
            }
            let is_busy = self.turn()?;
            if !self.open(messages, now) && !is_busy {
                self.idle(end_ns)?;
                looked_ns = None;
            }
        }
    }

    /// Does what a message says, if one waits and it is time for one. Returns whether it was so.
    fn open(&mut self, messages: &mut Messages, now: u64) -> bool {
        if now < messages.next_ns {
            return false;
        }
        let Ok(message) = messages.waiting.try_recv() else { return false };
        message(self);
        messages.next_ns = now + PAUSE_NS;
        true
    }

    /// Reads the frames that have arrived at each interface. Returns whether there were any.
    fn turn(&mut self) -> Result<bool, RunError> {
        let mut any = self.attend();
        for at in 0..self.sink.devices.len() {
            let Self { sink, frames, lost, packets, .. } = self;
            let mut note = |why: Unreceived| {
                *packets += 1;
                *lost.entry(why.reason()).or_default() += 1;
            };
            let received = sink.devices[at].port.receive(&mut sink.pool, frames, &mut note);
            any |= received.map_err(|error| self.unreadable(at, error))? > 0;
            let interface = self.sink.devices[at].interface;
            self.packets += self.sink.hear(interface, &mut self.frames);
            match self.drains_until_ns {
                None => self.process(interface)?,
                Some(_) => self.refuse(),
            }
        }
        Ok(any)
    }

    /// Runs the engine on frames that entered at an interface, and sends what leaves. The packets
    /// of a burst have the same time.
    fn process(&mut self, interface: u16) -> Result<(), RunError> {
        let mut frames = std::mem::take(&mut self.frames);
        self.packets += frames.len() as u64;
        let is_watched = !self.sink.watch.is_empty() && self.sink.watch.enters(interface);
        let mut rest = frames.drain(..).peekable();
        while rest.peek().is_some() {
            let now = self.clock.now_ns();
            let (burst, mut out) = self.load.parts();
            for frame in rest.by_ref().take(if is_watched { 1 } else { BURST }) {
                let mut packet = Packet::in_frame(Link::Ethernet, now, frame, 0);
                packet.ingress = interface;
                burst.push(packet);
            }
            let made = |change: &Control| self.sink.changed(change);
            self.control.until(now, &self.chain, &mut *self.engine, &mut out, made)?;
            match is_watched {
                true => self.run_watched(now),
                false => self.engine.burst(burst, &mut out),
            }
            self.sink.deliver(&self.chain, &mut self.load);
        }
        drop(rest);
        self.frames = frames;
        Ok(())
    }

    /// Advances the engine's time, and waits for frames.
    fn idle(&mut self, end_ns: Option<u64>) -> Result<(), RunError> {
        let now = self.clock.now_ns();
        self.advance(now)?;
        self.sink.leaving.flush_events();
        let left = end_ns.map_or(u64::MAX, |end| end.saturating_sub(now));
        let patience = PATIENCE.min(Duration::from_nanos(left));
        let ports = self.sink.devices.iter().map(|device| &*device.port);
        wait(ports, patience).map_err(|error| self.unreadable(0, error))
    }

    pub(super) fn advance(&mut self, now: u64) -> Result<(), RunError> {
        let (_, mut out) = self.load.parts();
        let made = |change: &Control| self.sink.changed(change);
        self.control.until(now, &self.chain, &mut *self.engine, &mut out, made)?;
        self.engine.advance(now, &mut out);
        self.sink.deliver(&self.chain, &mut self.load);
        Ok(())
    }

    fn unreadable(&self, at: usize, error: io::Error) -> RunError {
        let name = self.sink.devices.get(at).map_or_else(String::new, |device| device.name.clone());
        RunError::Read { name, error: error.into() }
    }

    /// The counters of the engine and of the worker.
    pub(super) fn counters(&self) -> Counters {
        let mut counters = self.engine.counters();
        for (reason, count) in &self.lost {
            counters.packets_in += count;
            *counters.lost.entry((*reason).into()).or_default() += count;
        }
        self.sink.settle(&mut counters);
        counters
    }

    /// How the worker is, for a client of the control socket.
    pub(super) fn status(&mut self) -> Value {
        let since_ns = self.clock.now_ns().saturating_sub(self.clock.start_ns());
        json!({
            "chain": self.chain.name,
            "seconds": since_ns / 1_000_000_000,
            "packets": self.packets,
            "workers": [self.load()],
            "longest_pause_us": std::mem::take(&mut self.longest_ns) / 1_000,
            "devices": self.sink.devices(&self.chain),
            "hosts": self.sink.hosts_status(&self.chain),
        })
    }

    /// How busy the worker is.
    fn load(&self) -> Value {
        let Rates { busy_percent, packets_per_second } = self.meter.rates();
        json!({ "busy_percent": busy_percent, "packets_per_second": packets_per_second })
    }

    /// Changes the configuration now.
    pub(super) fn change(&mut self, changes: &mut [Prepared]) -> Result<(), String> {
        let now = self.clock.now_ns();
        let (_, mut out) = self.load.parts();
        let made = changes.iter_mut().try_for_each(|change| {
            change.control.time_ns = now;
            // The engine takes the new value out.
            let addresses = new_addresses(&change.control);
            self.engine.control_prepared(change, &mut out)?;
            addresses.iter().for_each(|change| self.sink.changed(change));
            Ok(())
        });
        self.sink.deliver(&self.chain, &mut self.load);
        made
    }

    /// What moves if a chain takes the place of this one.
    pub(super) fn plan(&mut self, next: &Chain) -> Result<Plan, String> {
        self.sink.interfaces_in(&self.chain, next)?;
        Ok(Plan::new(&self.engine.export(), next))
    }

    /// Puts a chain in the place of this one. Its engine goes on from this one's state.
    ///
    /// # Errors
    /// The reason why this chain stays.
    pub(super) fn replace(&mut self, next: Next) -> Result<Replaced, String> {
        let start = Instant::now();
        let numbers = self.sink.interfaces_in(&self.chain, &next.chain)?;
        if self.control.left() > 0 {
            return Err("changes of the control file still wait for their time".to_owned());
        }
        let Next { chain, mut engine } = next;
        let snapshot = self.engine.export();
        let plan = Plan::new(&snapshot, &chain);
        engine.import(snapshot).map_err(|why| why.to_string())?;
        self.sink.end_hosts_not_in(&chain);
        self.sink.renumber(&numbers);
        self.sink.replace_hosts(&chain);
        self.chain = chain;
        let before = std::mem::replace(&mut self.engine, engine);
        Ok(Replaced { plan, pause: start.elapsed(), _before: before })
    }

    /// Lets no packet enter from now on. The worker ends when no packet waits in it any more, or
    /// after this time. Returns the number of packets that wait.
    pub(super) fn drain(&mut self, within_ns: u64) -> u64 {
        self.drains_until_ns = Some(self.clock.now_ns().saturating_add(within_ns));
        self.waiting()
    }

    /// Whether the worker drains and has nothing left to do. Runs what is due by this time.
    fn has_drained(&mut self, now: u64) -> Result<bool, RunError> {
        let Some(until) = self.drains_until_ns else { return Ok(false) };
        self.advance(now)?;
        Ok(now >= until || self.waiting() == 0)
    }

    /// Loses the frames that were read, as frames that may not enter.
    fn refuse(&mut self) {
        let Self { frames, sink, packets, lost, .. } = self;
        if !frames.is_empty() {
            *packets += frames.len() as u64;
            *lost.entry(DRAINED).or_default() += frames.len() as u64;
            frames.drain(..).for_each(|frame| sink.pool.put(frame));
        }
    }

    /// The number of packets that wait in queues of functions and for their next hops.
    fn waiting(&self) -> u64 {
        let for_hops = self.sink.hosts.as_ref().map_or(0, |hosts| hosts.waiting() as u64);
        self.engine.counters().held + for_hops
    }

    /// The results at the end.
    pub(super) fn summary(&mut self) -> Result<Summary, RunError> {
        let counters = self.counters();
        if !counters.balanced() {
            return Err(RunError::Unbalanced(Box::new(counters)));
        }
        let warnings = self.sink.warnings(&counters);
        let unwritten = std::mem::take(&mut self.sink.leaving.failed);
        Ok(Summary { counters, follow: None, warnings, unwritten })
    }
}
