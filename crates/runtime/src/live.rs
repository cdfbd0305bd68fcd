//! The live driver: it exchanges packets with network devices until it is told to stop.
//!
//! One thread reads frames, runs the engine on each, and sends the packets that leave. While no
//! frames arrive, the driver advances the engine's time, so that time-outs and timers run. A packet
//! that a device refuses is lost for a named reason, so that packets are accounted for as in
//! captures.

use crate::outcome::{RunError, Summary};
use crate::outputs::{Leaving, Output};
use crate::script::Script;
use braid_io::{Interface, PacketSink, Received, wait};
use braid_ir::chain::{Chain, Control};
use braid_ir::engine::{Counters, Engine, Event, Outputs};
use braid_packet::{Link, Packet};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// The longest wait for a frame. A time-out may run this much too late while no frames arrive.
const PATIENCE: Duration = Duration::from_millis(10);

/// The most frames to read from an interface before the next one has its turn.
const TURN: usize = 64;

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
pub struct Port {
    /// The interface, by number.
    pub interface: u16,
    /// The device's name in messages.
    pub name: String,
    /// The device.
    pub device: Box<dyn Interface>,
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
    ports: Vec<Port>,
    control: Vec<Control>,
    limits: Limits,
    chore: Option<Chore<'a>>,
    leaving: Leaving<'a>,
}

impl<'a> Live<'a> {
    /// Creates a live run of a chain on an engine that was made for this chain.
    pub fn new(chain: &'a Chain, engine: &'a mut dyn Engine, clock: Clock) -> Self {
        let leaving = Leaving::new(chain);
        let (ports, control) = (Vec::new(), Vec::new());
        Self { engine, clock, ports, control, limits: Limits::default(), chore: None, leaving }
    }

    /// Adds a device.
    #[must_use]
    pub fn port(mut self, port: Port) -> Self {
        self.ports.push(port);
        self
    }

    /// Adds a sink for copies of the packets that leave by an interface, or by any interface.
    /// Messages use `name` for the sink.
    #[must_use]
    pub fn output(
        mut self,
        name: impl Into<String>,
        interface: Option<u16>,
        sink: impl PacketSink + 'a,
    ) -> Self {
        self.leaving.outputs.push(Output { name: name.into(), interface, sink: Box::new(sink) });
        self
    }

    /// Writes events as JSON lines (see [`crate::json::event`]). Messages use `name` for the file.
    #[must_use]
    pub fn events(mut self, name: impl Into<String>, events: impl Write + 'a) -> Self {
        self.leaving.events = Some((name.into(), Box::new(events)));
        self
    }

    /// Adds changes of configuration, which are made when their time comes.
    #[must_use]
    pub fn control(mut self, control: impl IntoIterator<Item = Control>) -> Self {
        self.control.extend(control);
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
        let sink = Sink { leaving: self.leaving, ports: self.ports, unsent: BTreeMap::new() };
        let mut driver = Driver {
            engine: self.engine,
            clock: self.clock,
            control,
            chore: self.chore,
            sink,
            packets: 0,
            lost: BTreeMap::new(),
            frames: Vec::new(),
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
    frames: Vec<Vec<u8>>,
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
            if !self.turn()? {
                self.idle(end_ns)?;
            }
            if self.sink.leaving.has_failed() {
                return Ok(());
            }
        }
    }

    /// Reads the frames that have arrived at each interface. Returns whether there were any.
    fn turn(&mut self) -> Result<bool, RunError> {
        let mut any = false;
        for at in 0..self.sink.ports.len() {
            for _ in 0..TURN {
                let received = self.sink.ports[at].device.receive(&mut self.frames);
                match received.map_err(|error| self.sink.unreadable(at, error))? {
                    Received::Nothing => break,
                    Received::Something => self.process(self.sink.ports[at].interface)?,
                    Received::Lost(why) => {
                        self.packets += 1;
                        *self.lost.entry(why.reason()).or_default() += 1;
                    }
                }
                any = true;
            }
        }
        Ok(any)
    }

    fn process(&mut self, interface: u16) -> Result<(), RunError> {
        let mut frames = std::mem::take(&mut self.frames);
        for frame in frames.drain(..) {
            let now = self.clock.now_ns();
            self.control.until(now, self.engine, &mut self.sink)?;
            self.packets += 1;
            let packet = Packet::new(Link::Ethernet, now, frame);
            self.engine.packet(interface, packet, &mut self.sink);
        }
        self.frames = frames;
        Ok(())
    }

    /// Advances the engine's time, and waits for frames.
    fn idle(&mut self, end_ns: Option<u64>) -> Result<(), RunError> {
        let now = self.clock.now_ns();
        self.control.until(now, self.engine, &mut self.sink)?;
        self.engine.advance(now, &mut self.sink);
        self.sink.leaving.flush_events();
        let left = end_ns.map_or(u64::MAX, |end| end.saturating_sub(now));
        let patience = PATIENCE.min(Duration::from_nanos(left));
        let devices = self.sink.ports.iter().map(|port| &*port.device as &dyn Interface);
        wait(devices, patience).map_err(|error| self.sink.unreadable(0, error))
    }

    fn summary(mut self) -> Result<Summary, RunError> {
        let mut counters = self.engine.counters();
        for (reason, count) in &self.lost {
            counters.packets_in += count;
            *counters.lost.entry((*reason).into()).or_default() += count;
        }
        self.sink.settle(&mut counters);
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
    ports: Vec<Port>,
    /// Packets that left the chain and were not sent, by interface and reason.
    unsent: BTreeMap<(u16, &'static str), u64>,
}

impl Outputs for Sink<'_> {
    fn packet(&mut self, interface: u16, packet: Packet) {
        let port = self.ports.iter_mut().find(|port| port.interface == interface);
        let sent = match port {
            Some(port) => port.device.send(packet.data()).map_err(|why| why.reason()),
            None => Err(NO_DEVICE),
        };
        match sent {
            Ok(()) => self.leaving.packet(interface, packet),
            Err(reason) => *self.unsent.entry((interface, reason)).or_default() += 1,
        }
    }

    fn event(&mut self, event: Event) {
        self.leaving.event(event);
    }
}

impl Sink<'_> {
    fn unreadable(&self, at: usize, error: io::Error) -> RunError {
        let name = self.ports.get(at).map_or_else(String::new, |port| port.name.clone());
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
        for port in &mut self.ports {
            let dropped = port.device.overrun();
            if dropped > 0 {
                let name = &port.name;
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
