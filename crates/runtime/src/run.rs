//! The offline driver: runs captures through a chain on an engine.

use crate::follow::Follow;
use crate::load::Load;
use crate::merge::{Input, UNKNOWN};
use crate::outcome::{RunError, Shown, Summary};
use crate::outputs::{Leaving, Output, Unwritten};
use crate::queue::{Sender, queue};
use crate::reading::{ENOUGH, End, LOADS, Reader};
use crate::script::Script;
use crate::split::{NO_INTERFACE, Splitter};
use braid_io::PacketSink;
use braid_ir::chain::{Chain, Control};
use braid_ir::engine::{Counters, Engine};
use braid_packet::{FlowKey, Packet};
use std::io::Write;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};

/// The number of packets between two calls of the progress callback.
const PROGRESS_PERIOD: u64 = 1024;

/// A run that is being set up.
pub struct Run<'a> {
    chain: &'a Chain,
    engine: &'a mut dyn Engine,
    inputs: Vec<Input>,
    leaving: Leaving<'a>,
    control: Vec<Control>,
    follow: bool,
    progress: Option<Box<dyn FnMut(Progress) + 'a>>,
    stop: Option<&'a AtomicBool>,
    shown: Option<Shown<'a>>,
}

/// The progress of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// The number of packets read.
    pub packets: u64,
    /// The number of bytes read from input files, as stored.
    pub read: u64,
    /// The number of bytes in the input files; 0 if unknown.
    pub total: u64,
}

impl<'a> Run<'a> {
    /// Creates a run of a chain on an engine that was made for this chain.
    pub fn new(chain: &'a Chain, engine: &'a mut dyn Engine) -> Self {
        Self {
            chain,
            engine,
            inputs: Vec::new(),
            leaving: Leaving::default(),
            control: Vec::new(),
            follow: false,
            progress: None,
            stop: None,
            shown: None,
        }
    }

    /// Adds an input of packets that enter.
    #[must_use]
    pub fn input(mut self, input: Input) -> Self {
        self.inputs.push(input);
        self
    }

    /// Adds a sink for the packets that leave by an interface, or by any interface. Messages use
    /// `name` for the sink.
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

    /// Adds configuration changes. A change is made before packets of the same time.
    #[must_use]
    pub fn control(mut self, control: impl IntoIterator<Item = Control>) -> Self {
        self.control.extend(control);
        self
    }

    /// Sets whether captured replies are rewritten, so that they answer the requests as these left
    /// the chain (see [`crate::follow`]).
    #[must_use]
    pub fn follow(mut self, follow: bool) -> Self {
        self.follow = follow;
        self
    }

    /// Sets a callback that is called periodically and at the end.
    #[must_use]
    pub fn progress(mut self, progress: impl FnMut(Progress) + 'a) -> Self {
        self.progress = Some(Box::new(progress));
        self
    }

    /// Sets a flag that ends the run when somebody sets it. Packets that were read before leave.
    #[must_use]
    pub fn stop(mut self, stop: &'a AtomicBool) -> Self {
        self.stop = Some(stop);
        self
    }

    /// Calls `show` with the counters so far whenever somebody sets `flag`.
    #[must_use]
    pub fn show(mut self, flag: &'a AtomicBool, show: impl FnMut(&Summary) + 'a) -> Self {
        self.shown = Some(Shown::new(flag, show));
        self
    }

    /// Runs all packets through the chain.
    ///
    /// # Errors
    /// Returns an error when an input cannot be read, a change cannot be made, or packets are
    /// unaccounted for. Packets that left before the error are written. If an output cannot be
    /// written, the run ends early with a summary that contains the failure
    /// ([`Summary::unwritten`]).
    pub fn run(self) -> Result<Summary, RunError> {
        let splitter = Splitter::new(self.chain);
        let mut driver = Driver {
            chain: self.chain,
            engine: self.engine,
            splitter: splitter.clone(),
            control: Script::new(self.control),
            follow: self.follow.then(Follow::default),
            part: Load::new(),
            pending: Vec::new(),
            holds: self.chain.nodes.iter().any(|node| !node.model.queues.is_empty()),
            packets: 0,
            no_interface: 0,
            shown: self.shown,
        };
        let mut warnings = driver.blind_split(&self.inputs);
        let reader = Reader::start(self.inputs, (!self.follow).then_some(splitter));
        let used = reader.used();
        let is_stopped = || self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed));
        let progress = self.progress;
        let (ran, unwritten) = if self.leaving.is_used() {
            write_beside((self.chain, self.leaving), &used, |pass_on, has_failed| {
                let goes_on = || !is_stopped() && !has_failed.load(Ordering::Relaxed);
                driver.packets(&reader, progress, pass_on, goes_on)
            })
        } else {
            let pass_on = |load| {
                // The reader may have ended.
                used.send(load, false);
            };
            (driver.packets(&reader, progress, pass_on, || !is_stopped()), Vec::new())
        };
        warnings.extend(ran?);
        if is_stopped() {
            warnings.push(format!("ended by a signal after {} packets", driver.packets));
        }
        driver.summary(warnings, unwritten)
    }
}

/// Runs the engine's part of a run, while another thread writes what leaves. Returns the result of
/// the engine's part, and the outputs that could not be written.
fn write_beside<'a, T>(
    (chain, mut leaving): (&Chain, Leaving<'a>),
    used: &Sender<Load>,
    engine: impl FnOnce(&dyn Fn(Load), &AtomicBool) -> T,
) -> (T, Vec<Unwritten>) {
    let (send, loads) = queue::<Load>(LOADS, ENOUGH);
    let has_failed = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            while let Some(mut load) = loads.next() {
                leaving.write_load(chain, &mut load);
                if leaving.has_failed() {
                    has_failed.store(true, Ordering::Relaxed);
                }
                // The reader may have ended.
                used.send(load, false);
            }
            leaving.finish();
            leaving.failed
        });
        // The writer takes loads until this sender ends.
        let pass_on = |load| {
            send.send(load, false);
        };
        let done = engine(&pass_on, &has_failed);
        drop(send);
        let unwritten = writer.join().unwrap_or_else(|panic| resume_unwind(panic));
        (done, unwritten)
    })
}

/// The counters of an engine and of the packets that entered nowhere.
fn counters(engine: &dyn Engine, no_interface: u64) -> Counters {
    let mut counters = engine.counters();
    if no_interface > 0 {
        counters.packets_in += no_interface;
        *counters.lost.entry(NO_INTERFACE.into()).or_default() += no_interface;
    }
    counters
}

/// A run in progress, on the engine's thread.
struct Driver<'a> {
    chain: &'a Chain,
    engine: &'a mut dyn Engine,
    splitter: Splitter,
    control: Script,
    follow: Option<Follow>,
    /// The part of a burst that is being put together.
    part: Load,
    /// The keys that packets of the part had in the capture. How their flows leave is not known
    /// before the part has been processed.
    pending: Vec<FlowKey>,
    /// Whether functions hold packets. Such a packet may leave with any later packet.
    holds: bool,
    packets: u64,
    no_interface: u64,
    shown: Option<Shown<'a>>,
}

impl<'a> Driver<'a> {
    /// Processes the packets of all inputs, while `goes_on` is true. `pass_on` takes the loads.
    /// Returns the inputs' warnings.
    fn packets(
        &mut self,
        reader: &Reader,
        mut progress: Option<Box<dyn FnMut(Progress) + 'a>>,
        pass_on: impl Fn(Load),
        goes_on: impl Fn() -> bool,
    ) -> Result<Vec<String>, RunError> {
        let mut due = 0;
        while goes_on() {
            let is_asked = || self.shown.as_ref().is_some_and(Shown::is_asked);
            let mut load = match reader.next_while(|| goes_on() && !is_asked()) {
                Ok(Some(load)) => load,
                Ok(None) => {
                    self.show();
                    continue;
                }
                Err(End { read: ended, progress: (read, total) }) => {
                    if let Some(progress) = &mut progress {
                        progress(Progress { packets: self.packets, read, total });
                    }
                    return Ok(ended?);
                }
            };
            if let Some(progress) = &mut progress
                && self.packets >= due
            {
                let (read, total) = load.progress;
                progress(Progress { packets: self.packets, read, total });
                due = self.packets + PROGRESS_PERIOD;
            }
            self.packets += load.read;
            self.no_interface += load.no_interface;
            let done = self.load(&mut load);
            pass_on(load);
            done?;
            self.show();
        }
        Ok(Vec::new())
    }

    /// Shows how the run stands, if somebody has asked for it.
    fn show(&mut self) {
        if let Some(shown) = self.shown.as_mut().filter(|shown| shown.is_asked()) {
            shown.show(&Summary::so_far(counters(&*self.engine, self.no_interface)));
        }
    }

    /// Processes a load.
    fn load(&mut self, load: &mut Load) -> Result<(), RunError> {
        let last = load.burst.packets().iter().map(|packet| packet.time_ns).max();
        let changes = last.is_some_and(|time_ns| self.control.is_due(time_ns));
        if self.follow.is_some() || changes {
            return self.in_parts(load);
        }
        let (burst, mut out) = load.parts();
        self.engine.burst(burst, &mut out);
        Ok(())
    }

    /// Processes a load in several bursts, between which configuration changes or replies depend on
    /// what has left.
    fn in_parts(&mut self, load: &mut Load) -> Result<(), RunError> {
        let mut burst = std::mem::take(&mut load.burst);
        let mut done = Ok(());
        for packet in burst.drain() {
            if self.control.is_due(packet.time_ns) {
                self.finish_part(load);
                let (_, mut out) = load.parts();
                let (chain, engine) = (self.chain, &mut *self.engine);
                done = self.control.until(packet.time_ns, chain, engine, &mut out, |_| {});
                if done.is_err() {
                    break;
                }
            }
            self.enter(packet, load);
        }
        self.finish_part(load);
        load.burst = burst;
        done
    }

    /// Adds a packet to the current part.
    fn enter(&mut self, mut packet: Packet, load: &mut Load) {
        let Some(follow) = &self.follow else {
            self.part.burst.push(packet);
            return;
        };
        let layout = packet.parse();
        let asked = follow.asked(&packet, &layout);
        if self.holds || asked.is_some_and(|asked| self.pending.contains(&asked)) {
            self.finish_part(load);
        }
        let Some(follow) = &mut self.follow else { return };
        let named = Some(packet.ingress).filter(|ingress| *ingress != UNKNOWN);
        let reply = follow.reply(&mut packet, &layout);
        let told = || self.splitter.ingress(&packet, &layout);
        let Some(ingress) = named.or(reply).or_else(told) else {
            self.no_interface += 1;
            return;
        };
        if reply.is_none() {
            follow.enter(&mut packet, &layout, ingress);
            self.pending.extend(packet.flow_key(&layout));
        }
        packet.ingress = ingress;
        self.part.burst.push(packet);
    }

    /// Processes the current part, and adds what leaves to the load.
    fn finish_part(&mut self, load: &mut Load) {
        let (burst, mut out) = self.part.parts();
        self.engine.burst(burst, &mut out);
        if let Some(follow) = &mut self.follow {
            self.part.each_leaving(|interface, packet| follow.leave(packet, interface));
        }
        load.take(&mut self.part);
        self.pending.clear();
    }

    fn blind_split(&self, inputs: &[Input]) -> Vec<String> {
        if !self.splitter.is_blind() {
            return Vec::new();
        }
        let common = inputs.iter().filter(|input| input.interface.is_none());
        let warn = |input: &Input| {
            format!(
                "{}: no interface of chain `{}` says which prefixes are behind it, so no packet \
                 can be told to enter anywhere; write `interface NAME {{ behind PREFIX }}`, or \
                 name the interface with --in NAME=FILE",
                input.name, self.chain.name
            )
        };
        common.map(warn).collect()
    }

    fn summary(
        self,
        mut warnings: Vec<String>,
        unwritten: Vec<Unwritten>,
    ) -> Result<Summary, RunError> {
        if self.control.left() > 0 {
            warnings.push(format!(
                "{} control lines are later than the last packet and were not applied",
                self.control.left()
            ));
        }
        let counters = counters(&*self.engine, self.no_interface);
        let has_lost = self.no_interface > 0 && self.no_interface == self.packets;
        if has_lost && !self.splitter.is_blind() {
            warnings.push(self.lost_everything());
        }
        if !counters.balanced() {
            return Err(RunError::Unbalanced(Box::new(counters)));
        }
        let follow = self.follow.as_ref().map(Follow::counters);
        Ok(Summary { counters, follow, warnings, unwritten })
    }

    fn lost_everything(&self) -> String {
        format!(
            "no packet entered: all {} were lost as {NO_INTERFACE}, because neither their source \
             nor their destination address belongs to an interface of chain `{}`; correct the \
             `behind` prefixes, or name the interface with --in NAME=FILE",
            self.packets, self.chain.name
        )
    }
}
