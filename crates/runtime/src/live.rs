//! The live driver: it exchanges packets with network devices until it is told to stop.
//!
//! One thread reads bursts of frames, runs the engine on them, and sends the packets that leave, in
//! bursts, too. Packets stay in frames of one pool. While no frames arrive, the driver advances the
//! engine's time, so that time-outs and timers run. A packet that a device refuses is lost for a
//! named reason, so that packets are accounted for as in captures.

use crate::ctl::{Job, Request, Serving, Socket, state};
use crate::load::Load;
use crate::outcome::{RunError, Shown, Summary};
use crate::outputs::{Leaving, Output};
use crate::report::report;
use crate::script::Script;
use braid_io::{PacketSink, State, Unreceived, wait};
use braid_ir::chain::{Chain, Control};
use braid_ir::engine::{Counters, Engine, Outputs};
use braid_packet::{BURST, Frame, Link, Packet, Pool};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// The longest wait for a frame. A time-out may run this much too late while no frames arrive.
const PATIENCE: Duration = Duration::from_millis(10);

/// The reason for which packets that leave by an interface without a device are lost.
pub const NO_DEVICE: &str = "no_device";

/// A clock in nanoseconds since the epoch. It never goes back, even if someone sets the machine's
/// clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start_ns: u64,
    since: Instant,
}

impl Clock {
    /// Reads the machine's clock once; from then on time passes evenly.
    #[must_use]
    pub fn start() -> Self {
        let epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Self { start_ns: nanoseconds(epoch.unwrap_or_default()), since: Instant::now() }
    }

    /// The time at which the clock was started.
    #[must_use]
    pub fn start_ns(&self) -> u64 {
        self.start_ns
    }

    /// The current time.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.start_ns.saturating_add(nanoseconds(self.since.elapsed()))
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// A device at an interface of the chain.
pub struct Attached {
    /// The interface, by number.
    pub interface: u16,
    /// The device's name in messages.
    pub name: String,
    /// The device.
    pub port: Box<dyn braid_io::Port>,
}

/// The limits at which a live run ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Limits {
    /// After this time.
    pub time: Option<Duration>,
    /// After this many packets have been read. Packets that are read together are all processed.
    pub packets: Option<u64>,
}

/// Work on the engine between packets.
type Work<'a> = Box<dyn FnMut(&mut dyn Engine) + 'a>;

/// Work that is done every so often while a run goes on.
struct Chore<'a> {
    period_ns: u64,
    next_ns: u64,
    work: Work<'a>,
}

/// A live run that is being set up.
pub struct Live<'a> {
    engine: &'a mut dyn Engine,
    clock: Clock,
    pool: Pool,
    devices: Vec<Attached>,
    control: Vec<Control>,
    limits: Limits,
    chore: Option<Chore<'a>>,
    leaving: Leaving<'a>,
    socket: Option<Socket>,
    shown: Option<Shown<'a>>,
}

impl<'a> Live<'a> {
    /// Creates a live run of a chain on an engine that was made for this chain. The devices were
    /// opened with this pool.
    pub fn new(chain: &'a Chain, engine: &'a mut dyn Engine, clock: Clock, pool: Pool) -> Self {
        let leaving = Leaving::new(chain);
        let (devices, control) = (Vec::new(), Vec::new());
        Self {
            engine,
            clock,
            pool,
            devices,
            control,
            limits: Limits::default(),
            chore: None,
            leaving,
            socket: None,
            shown: None,
        }
    }

    /// Adds a device.
    #[must_use]
    pub fn device(mut self, device: Attached) -> Self {
        self.devices.push(device);
        self
    }

    /// Adds a sink for copies of the packets that leave by an interface, or by any interface.
    /// Messages use `name` for the sink.
    #[must_use]
    pub fn output(
        mut self,
        name: impl Into<String>,
        interface: Option<u16>,
        sink: impl PacketSink + Send + 'a,
    ) -> Self {
        self.leaving.outputs.push(Output { name: name.into(), interface, sink: Box::new(sink) });
        self
    }

    /// Writes events as JSON lines (see [`crate::json::event`]). Messages use `name` for the file.
    #[must_use]
    pub fn events(mut self, name: impl Into<String>, events: impl Write + Send + 'a) -> Self {
        self.leaving.events = Some((name.into(), Box::new(events)));
        self
    }

    /// Adds changes of configuration, which are made when their time comes.
    #[must_use]
    pub fn control(mut self, control: impl IntoIterator<Item = Control>) -> Self {
        self.control.extend(control);
        self
    }

    /// Adds a socket by which the run can be looked at and changed.
    #[must_use]
    pub fn socket(mut self, socket: Socket) -> Self {
        self.socket = Some(socket);
        self
    }

    /// Calls `show` with the counters so far whenever somebody sets `flag`.
    #[must_use]
    pub fn show(mut self, flag: &'a AtomicBool, show: impl FnMut(&Summary) + 'a) -> Self {
        self.shown = Some(Shown::new(flag, show));
        self
    }

    /// Sets the limits at which the run ends.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Calls `work` with the engine each time that this period has passed, between packets.
    #[must_use]
    pub fn every(mut self, period: Duration, work: impl FnMut(&mut dyn Engine) + 'a) -> Self {
        let period_ns = nanoseconds(period);
        let next_ns = self.clock.start_ns().saturating_add(period_ns);
        self.chore = Some(Chore { period_ns, next_ns, work: Box::new(work) });
        self
    }

    /// Runs until `stop` is set or a limit is reached.
    ///
    /// # Errors
    /// Returns an error when a device cannot be read, a change cannot be made, or packets are
    /// unaccounted for. If an output cannot be written, the run ends with a summary that contains
    /// the failure ([`Summary::unwritten`]).
    pub fn run(self, stop: &AtomicBool) -> Result<Summary, RunError> {
        let control = Script::new(self.leaving.chain, self.control);
        let sink = Sink {
            leaving: self.leaving,
            devices: self.devices,
            pool: self.pool,
            queues: Vec::new(),
            copies: Vec::new(),
            failed: Vec::new(),
            unsent: BTreeMap::new(),
            serving: self.socket.map(Serving::new),
        };
        let mut driver = Driver {
            engine: self.engine,
            clock: self.clock,
            control,
            chore: self.chore,
            sink,
            packets: 0,
            lost: BTreeMap::new(),
            frames: Vec::new(),
            load: Load::new(),
            shown: self.shown,
        };
        let ran = driver.until(stop, self.limits);
        driver.sink.leaving.finish();
        ran?;
        driver.summary()
    }
}

/// A live run in progress.
struct Driver<'a> {
    engine: &'a mut dyn Engine,
    clock: Clock,
    control: Script<'a>,
    chore: Option<Chore<'a>>,
    sink: Sink<'a>,
    /// The number of frames read, including frames that were lost on reading.
    packets: u64,
    /// The frames lost on reading, by reason.
    lost: BTreeMap<&'static str, u64>,
    frames: Vec<Frame>,
    load: Load,
    shown: Option<Shown<'a>>,
}

impl Driver<'_> {
    fn until(&mut self, stop: &AtomicBool, limits: Limits) -> Result<(), RunError> {
        let end_ns =
            limits.time.map(|time| self.clock.start_ns().saturating_add(nanoseconds(time)));
        loop {
            let now = self.clock.now_ns();
            let over = end_ns.is_some_and(|end| now >= end)
                || limits.packets.is_some_and(|most| self.packets >= most);
            if over || stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            if let Some(chore) = self.chore.as_mut().filter(|chore| now >= chore.next_ns) {
                (chore.work)(self.engine);
                chore.next_ns = self.clock.now_ns().saturating_add(chore.period_ns);
            }
            if self.shown.as_ref().is_some_and(Shown::is_asked) {
                let so_far = self.so_far();
                self.shown.iter_mut().for_each(|shown| shown.show(&so_far));
            }
            let is_busy = self.turn()?;
            if !self.serve(stop) && !is_busy {
                self.idle(end_ns)?;
            }
            if self.sink.leaving.has_failed() {
                return Ok(());
            }
        }
    }

    /// Answers a request, if one waits. Returns whether there was one.
    fn serve(&mut self, stop: &AtomicBool) -> bool {
        let now = self.clock.now_ns();
        let job = self.sink.serving.as_mut().and_then(|serving| serving.next(now));
        let Some(Job { request, answer }) = job else { return false };
        let value = self.answer(request, stop, now);
        // The client may have gone.
        let _ = answer.try_send(value);
        true
    }

    fn answer(&mut self, request: Request, stop: &AtomicBool, now: u64) -> Value {
        let chain = self.sink.leaving.chain;
        let done = json!({ "ok": true });
        match request {
            Request::Status => self.sink.status(&self.clock, self.packets),
            Request::Counters { text } => {
                let so_far = self.so_far();
                match self.sink.serving.as_ref().filter(|_| text) {
                    Some(serving) => json!({ "text": serving.text(&so_far) }),
                    None => report(chain, &so_far),
                }
            }
            Request::State(page) => state(chain, self.engine, &page),
            Request::Change(changes) => {
                let (_, mut out) = self.load.parts();
                let made = changes.into_iter().try_for_each(|mut change| {
                    change.time_ns = now;
                    self.engine.control(&change, &mut out)
                });
                self.sink.deliver(&mut self.load);
                made.map_or_else(|why| json!({ "error": why }), |()| done)
            }
            Request::Events(listener) => {
                self.sink.serving.iter_mut().for_each(|serving| serving.listen(listener.clone()));
                done
            }
            Request::Stop => {
                stop.store(true, Ordering::Relaxed);
                done
            }
        }
    }

    /// The results so far.
    fn so_far(&self) -> Summary {
        Summary::so_far(self.counters())
    }

    /// The counters of the engine and of the driver.
    fn counters(&self) -> Counters {
        let mut counters = self.engine.counters();
        for (reason, count) in &self.lost {
            counters.packets_in += count;
            *counters.lost.entry((*reason).into()).or_default() += count;
        }
        self.sink.settle(&mut counters);
        counters
    }

    /// Reads the frames that have arrived at each interface. Returns whether there were any.
    fn turn(&mut self) -> Result<bool, RunError> {
        let mut any = false;
        for at in 0..self.sink.devices.len() {
            let Self { sink, frames, lost, packets, .. } = self;
            let mut note = |why: Unreceived| {
                *packets += 1;
                *lost.entry(why.reason()).or_default() += 1;
            };
            let received = sink.devices[at].port.receive(&mut sink.pool, frames, &mut note);
            any |= received.map_err(|error| sink.unreadable(at, error))? > 0;
            self.process(self.sink.devices[at].interface)?;
        }
        Ok(any)
    }

    /// Runs the engine on frames that entered at an interface, and sends what leaves. The packets
    /// of a burst have the same time.
    fn process(&mut self, interface: u16) -> Result<(), RunError> {
        let mut frames = std::mem::take(&mut self.frames);
        self.packets += frames.len() as u64;
        let mut rest = frames.drain(..).peekable();
        while rest.peek().is_some() {
            let now = self.clock.now_ns();
            let (burst, mut out) = self.load.parts();
            for frame in rest.by_ref().take(BURST) {
                let mut packet = Packet::in_frame(Link::Ethernet, now, frame, 0);
                packet.ingress = interface;
                burst.push(packet);
            }
            self.control.until(now, self.engine, &mut out)?;
            self.engine.burst(burst, &mut out);
            self.sink.deliver(&mut self.load);
        }
        drop(rest);
        self.frames = frames;
        Ok(())
    }

    /// Advances the engine's time, and waits for frames.
    fn idle(&mut self, end_ns: Option<u64>) -> Result<(), RunError> {
        let now = self.clock.now_ns();
        let (_, mut out) = self.load.parts();
        self.control.until(now, self.engine, &mut out)?;
        self.engine.advance(now, &mut out);
        self.sink.deliver(&mut self.load);
        self.sink.leaving.flush_events();
        let left = end_ns.map_or(u64::MAX, |end| end.saturating_sub(now));
        let patience = PATIENCE.min(Duration::from_nanos(left));
        let ports = self.sink.devices.iter().map(|device| &*device.port);
        wait(ports, patience).map_err(|error| self.sink.unreadable(0, error))
    }

    fn summary(mut self) -> Result<Summary, RunError> {
        let counters = self.counters();
        if !counters.balanced() {
            return Err(RunError::Unbalanced(Box::new(counters)));
        }
        let warnings = self.sink.warnings(&counters);
        let unwritten = self.sink.leaving.failed;
        Ok(Summary { counters, follow: None, warnings, unwritten })
    }
}

/// Sends the packets that leave the chain.
struct Sink<'a> {
    leaving: Leaving<'a>,
    devices: Vec<Attached>,
    pool: Pool,
    /// By device, the frames that leave by it.
    queues: Vec<Vec<Frame>>,
    /// Copies of leaving packets, for the outputs: each with its device and its place in the
    /// device's queue.
    copies: Vec<(usize, usize, Packet)>,
    /// The devices and places of frames that were not sent.
    failed: Vec<(usize, usize)>,
    /// Packets that left the chain and were not sent, by interface and reason.
    unsent: BTreeMap<(u16, &'static str), u64>,
    serving: Option<Serving>,
}

impl Sink<'_> {
    /// How the run is, for a client of the control socket.
    fn status(&mut self, clock: &Clock, packets: u64) -> Value {
        let chain = self.leaving.chain;
        let device = |device: &mut Attached| {
            let name = chain.interfaces.get(usize::from(device.interface));
            json!({
                "interface": name.map(|interface| interface.name.as_str()),
                "device": device.name,
                "state": match device.port.state() {
                    State::Up => "up",
                    State::Down => "down",
                    State::Missing => "missing",
                },
                "port": device.port.facts(),
                "notes": device.port.notes(),
            })
        };
        json!({
            "chain": chain.name,
            "seconds": clock.now_ns().saturating_sub(clock.start_ns()) / 1_000_000_000,
            "packets": packets,
            "devices": self.devices.iter_mut().map(device).collect::<Vec<_>>(),
        })
    }

    /// Sends all that a load has made leave.
    fn deliver(&mut self, load: &mut Load) {
        let Self { leaving, devices, queues, copies, unsent, serving, .. } = self;
        for event in load.events.drain(..) {
            if let Some(serving) = serving {
                serving.event(leaving.chain, &event);
            }
            leaving.event(event);
        }
        let is_copied = !leaving.outputs.is_empty();
        queues.resize_with(devices.len(), Vec::new);
        load.deliver(|interface, packet| {
            let device = devices.iter().position(|device| device.interface == interface);
            let Some(device) = device else {
                *unsent.entry((interface, NO_DEVICE)).or_default() += 1;
                return;
            };
            if is_copied {
                copies.push((device, queues[device].len(), packet.clone()));
            }
            let packet = std::mem::replace(packet, Packet::empty(packet.link));
            queues[device].push(packet.into_frame());
        });
        load.burst.recycle(&mut self.pool);
        self.send();
    }

    /// Sends the frames of all queues.
    fn send(&mut self) {
        let Self { devices, queues, pool, failed, unsent, .. } = self;
        let waiting = devices.iter_mut().zip(queues).enumerate();
        for (at, (Attached { interface, port, .. }, queue)) in waiting {
            if !queue.is_empty() {
                port.send(pool, queue, &mut |place, why| {
                    failed.push((at, place));
                    *unsent.entry((*interface, why.reason())).or_default() += 1;
                });
            }
        }
        for (device, place, packet) in self.copies.drain(..) {
            if !self.failed.contains(&(device, place)) {
                self.leaving.packet(self.devices[device].interface, packet);
            }
        }
        self.failed.clear();
    }

    fn unreadable(&self, at: usize, error: io::Error) -> RunError {
        let name = self.devices.get(at).map_or_else(String::new, |device| device.name.clone());
        RunError::Read { name, error: error.into() }
    }

    /// Counts packets that were not sent as lost instead of out.
    fn settle(&self, counters: &mut Counters) {
        for ((interface, reason), count) in &self.unsent {
            if let Some(out) = counters.out.get_mut(interface) {
                *out = out.saturating_sub(*count);
            }
            *counters.lost.entry((*reason).into()).or_default() += count;
        }
        counters.out.retain(|_, count| *count > 0);
    }

    fn warnings(&mut self, counters: &Counters) -> Vec<String> {
        let mut found = Vec::new();
        for Attached { name, port, .. } in &mut self.devices {
            found.extend(port.notes().iter().map(|note| format!("{name}: {note}")));
            let dropped = port.overrun();
            if dropped > 0 {
                found.push(format!(
                    "{name}: the kernel dropped {dropped} frames that arrived too fast"
                ));
            }
        }
        let remedies = [
            (
                "received_offload",
                "were merged by the kernel or a network card and could not be split; run \
                 `ethtool -K DEVICE gro off gso off tso off` where the packets come from",
            ),
            (
                "send_too_long",
                "were longer than the device allows; give both sides one MTU, or add a function \
                 that answers them",
            ),
            (NO_DEVICE, "left by an interface without a device; give it one with --if"),
        ];
        for (reason, remedy) in remedies {
            if let Some(count) = counters.lost.get(reason) {
                found.push(format!("{count} packets {remedy}"));
            }
        }
        found
    }
}
