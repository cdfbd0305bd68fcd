//! The offline driver: runs captures through a chain on an engine.

use crate::follow::Follow;
use crate::merge::{Input, Merge};
use crate::outcome::{RunError, Summary};
use crate::outputs::{Leaving, Output};
use crate::script::Script;
use crate::split::{NO_INTERFACE, Splitter};
use braid_io::PacketSink;
use braid_ir::chain::{Chain, Control};
use braid_ir::engine::Engine;
use braid_packet::Packet;
use std::io::Write;

/// The number of packets between two calls of the progress callback.
const PROGRESS_PERIOD: u64 = 1024;

/// A run that is being set up.
pub struct Run<'a> {
    chain: &'a Chain,
    engine: &'a mut dyn Engine,
    inputs: Vec<Input<'a>>,
    leaving: Leaving<'a>,
    control: Vec<Control>,
    follow: bool,
    progress: Option<Box<dyn FnMut(Progress) + 'a>>,
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
            leaving: Leaving::new(chain),
            control: Vec::new(),
            follow: false,
            progress: None,
        }
    }

    /// Adds an input of packets that enter.
    #[must_use]
    pub fn input(mut self, input: Input<'a>) -> Self {
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

    /// Runs all packets through the chain.
    ///
    /// # Errors
    /// Returns an error when an input cannot be read, a change cannot be made, or packets are
    /// unaccounted for. Packets that left before the error are written. If an output cannot be
    /// written, the run ends early with a summary that contains the failure
    /// ([`Summary::unwritten`]).
    pub fn run(mut self) -> Result<Summary, RunError> {
        self.leaving.follow = self.follow.then(Follow::default);
        let mut driver = Driver {
            engine: self.engine,
            splitter: Splitter::new(self.chain),
            control: Script::new(self.leaving.chain, self.control),
            leaving: self.leaving,
            packets: 0,
            no_interface: 0,
        };
        let mut warnings = driver.blind_split(&self.inputs);
        let ran = driver.packets(self.inputs, self.progress);
        driver.leaving.finish();
        warnings.extend(ran?);
        driver.summary(warnings)
    }
}

/// A run in progress.
struct Driver<'a> {
    engine: &'a mut dyn Engine,
    splitter: Splitter<'a>,
    control: Script<'a>,
    leaving: Leaving<'a>,
    packets: u64,
    no_interface: u64,
}

impl<'a> Driver<'a> {
    fn packets(
        &mut self,
        inputs: Vec<Input<'a>>,
        mut progress: Option<Box<dyn FnMut(Progress) + 'a>>,
    ) -> Result<Vec<String>, RunError> {
        let mut merge = Merge::new(inputs);
        loop {
            let next = merge.next()?;
            if let Some(progress) = &mut progress
                && (next.is_none() || self.packets.is_multiple_of(PROGRESS_PERIOD))
            {
                let (read, total) = merge.progress();
                progress(Progress { packets: self.packets, read, total });
            }
            let Some((interface, packet)) = next else {
                return Ok(merge.warnings());
            };
            self.packets += 1;
            self.control.until(packet.time_ns, self.engine, &mut self.leaving)?;
            self.packet(interface, packet);
            if self.leaving.has_failed() {
                return Ok(merge.warnings());
            }
        }
    }

    fn packet(&mut self, interface: Option<u16>, mut packet: Packet) {
        let layout = packet.parse();
        let follow = self.leaving.follow.as_mut();
        let reply = follow.and_then(|follow| follow.reply(&mut packet, &layout));
        let told = || self.splitter.ingress(&packet, &layout);
        let Some(ingress) = interface.or(reply).or_else(told) else {
            self.no_interface += 1;
            return;
        };
        if let (Some(follow), None) = (&self.leaving.follow, reply) {
            follow.enter(&mut packet, &layout, ingress);
        }
        self.engine.packet(ingress, packet, &mut self.leaving);
    }

    fn blind_split(&self, inputs: &[Input<'_>]) -> Vec<String> {
        if !self.splitter.is_blind() {
            return Vec::new();
        }
        let common = inputs.iter().filter(|input| input.interface.is_none());
        let warn = |input: &Input<'_>| {
            format!(
                "{}: no interface of chain `{}` says which prefixes are behind it, so no packet \
                 can be told to enter anywhere; write `interface NAME {{ behind PREFIX }}`, or \
                 name the interface with --in NAME=FILE",
                input.name, self.leaving.chain.name
            )
        };
        common.map(warn).collect()
    }

    fn summary(self, mut warnings: Vec<String>) -> Result<Summary, RunError> {
        if self.control.left() > 0 {
            warnings.push(format!(
                "{} control lines are later than the last packet and were not applied",
                self.control.left()
            ));
        }
        let mut counters = self.engine.counters();
        if self.no_interface > 0 {
            counters.packets_in += self.no_interface;
            *counters.lost.entry(NO_INTERFACE.into()).or_default() += self.no_interface;
            if self.no_interface == self.packets && !self.splitter.is_blind() {
                warnings.push(self.lost_everything());
            }
        }
        if !counters.balanced() {
            return Err(RunError::Unbalanced(Box::new(counters)));
        }
        let follow = self.leaving.follow.as_ref().map(Follow::counters);
        Ok(Summary { counters, follow, warnings, unwritten: self.leaving.failed })
    }

    fn lost_everything(&self) -> String {
        format!(
            "no packet entered: all {} were lost as {NO_INTERFACE}, because neither their source \
             nor their destination address belongs to an interface of chain `{}`; correct the \
             `behind` prefixes, or name the interface with --in NAME=FILE",
            self.packets, self.leaving.chain.name
        )
    }
}
