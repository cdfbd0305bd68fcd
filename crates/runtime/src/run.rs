//! The offline driver: captures through a chain on an engine.

use crate::follow::{Follow, FollowCounters};
use crate::merge::{Input, Merge, Unreadable};
use crate::outputs::{Failed, Leaving, Output};
use crate::split::{NO_INTERFACE, Splitter};
use braid_io::{PacketSink, ReadError, WriteError};
use braid_ir::chain::{Chain, Control};
use braid_ir::engine::{Counters, Engine};
use braid_packet::Packet;
use std::collections::VecDeque;
use std::io::Write;

/// Packets between two calls of the progress callback.
const PROGRESS_PERIOD: u64 = 1024;

/// A run that is being set up.
pub struct Run<'a> {
    chain: &'a Chain,
    engine: &'a mut dyn Engine,
    inputs: Vec<Input<'a>>,
    outputs: Vec<Output<'a>>,
    events: Option<Box<dyn Write + 'a>>,
    control: Vec<Control>,
    follow: bool,
    progress: Option<Box<dyn FnMut(Progress) + 'a>>,
}

/// How far a run is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Packets read.
    pub packets: u64,
    /// Bytes of input files read, as stored.
    pub read: u64,
    /// Bytes of input files in all; 0 when unknown.
    pub total: u64,
}

/// What a run came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Summary {
    /// The engine's counters, with what the driver lost.
    pub counters: Counters,
    /// What following came to, if it was asked for.
    pub follow: Option<FollowCounters>,
    /// What the person should know.
    pub warnings: Vec<String>,
}

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// An input can't be read (any further).
    #[error("{name}: {error}")]
    Read {
        /// What the input is called.
        name: String,
        /// Why.
        error: ReadError,
    },
    /// An output can't be written.
    #[error("{name}: {error}")]
    Write {
        /// What the output is called.
        name: String,
        /// Why.
        error: WriteError,
    },
    /// Events can't be written.
    #[error("events cannot be written: {0}")]
    Events(std::io::Error),
    /// A change of configuration can't be made.
    #[error("the change of `{function}` at {time_ns} ns cannot be made: {reason}")]
    Control {
        /// The function.
        function: String,
        /// When.
        time_ns: u64,
        /// Why.
        reason: String,
    },
    /// Packets are unaccounted for: a defect of the engine.
    #[error(
        "the packets do not add up: in {} + created {} + copied {} is not out {} + dropped {} + \
         consumed {} + held {} + lost {}; please report this",
        .0.packets_in, .0.created, .0.copied, .0.out.values().sum::<u64>(),
        .0.drops.values().sum::<u64>(), .0.consumed, .0.held, .0.lost.values().sum::<u64>()
    )]
    Unbalanced(Box<Counters>),
}

impl<'a> Run<'a> {
    /// A run of a chain on an engine that was made for it.
    pub fn new(chain: &'a Chain, engine: &'a mut dyn Engine) -> Self {
        Self {
            chain,
            engine,
            inputs: Vec::new(),
            outputs: Vec::new(),
            events: None,
            control: Vec::new(),
            follow: false,
            progress: None,
        }
    }

    /// Adds packets that enter.
    #[must_use]
    pub fn input(mut self, input: Input<'a>) -> Self {
        self.inputs.push(input);
        self
    }

    /// Adds a sink for what leaves by an interface, or by any; `name` is what messages call it.
    #[must_use]
    pub fn output(
        mut self,
        name: impl Into<String>,
        interface: Option<u16>,
        sink: impl PacketSink + 'a,
    ) -> Self {
        self.outputs.push(Output { name: name.into(), interface, sink: Box::new(sink) });
        self
    }

    /// Writes events as JSON lines (see [`crate::json::event`]).
    #[must_use]
    pub fn events(mut self, events: impl Write + 'a) -> Self {
        self.events = Some(Box::new(events));
        self
    }

    /// Changes of configuration, made before packets of equal time.
    #[must_use]
    pub fn control(mut self, control: impl IntoIterator<Item = Control>) -> Self {
        self.control.extend(control);
        self
    }

    /// Whether captured replies are rewritten by what their requests left with
    /// (see [`crate::follow`]).
    #[must_use]
    pub fn follow(mut self, follow: bool) -> Self {
        self.follow = follow;
        self
    }

    /// Is called now and then, and at the end.
    #[must_use]
    pub fn progress(mut self, progress: impl FnMut(Progress) + 'a) -> Self {
        self.progress = Some(Box::new(progress));
        self
    }

    /// Runs all packets through the chain.
    ///
    /// # Errors
    /// When an input can't be read, an output not written, a change not made, or when packets are
    /// unaccounted for. What left before the error is written.
    pub fn run(mut self) -> Result<Summary, RunError> {
        self.control.sort_by_key(|control| control.time_ns);
        let mut driver = Driver {
            engine: self.engine,
            splitter: Splitter::new(self.chain),
            control: self.control.into(),
            leaving: Leaving {
                chain: self.chain,
                outputs: self.outputs,
                events: self.events,
                follow: self.follow.then(Follow::default),
                failed: None,
            },
            packets: 0,
            no_interface: 0,
        };
        let mut warnings = driver.blind_split(&self.inputs);
        let ran = driver.packets(self.inputs, self.progress);
        let finished = driver.leaving.finish().map_err(RunError::from);
        warnings.extend(ran?);
        finished?;
        driver.summary(warnings)
    }
}

/// A run that is under way.
struct Driver<'a> {
    engine: &'a mut dyn Engine,
    splitter: Splitter<'a>,
    control: VecDeque<Control>,
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
            self.control_until(packet.time_ns)?;
            self.packet(interface, packet);
            if let Some(failed) = self.leaving.failed.take() {
                return Err(failed.into());
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

    fn control_until(&mut self, time_ns: u64) -> Result<(), RunError> {
        while let Some(control) = self.control.pop_front_if(|c| c.time_ns <= time_ns) {
            self.engine.control(&control, &mut self.leaving).map_err(|reason| {
                let node = self.leaving.chain.nodes.get(usize::from(control.node));
                let function = node.map_or_else(String::new, |node| node.name.clone());
                RunError::Control { function, time_ns: control.time_ns, reason }
            })?;
        }
        Ok(())
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
        if !self.control.is_empty() {
            warnings.push(format!(
                "{} control lines are later than the last packet and were not applied",
                self.control.len()
            ));
        }
        let mut counters = self.engine.counters();
        if self.no_interface > 0 {
            counters.packets_in += self.no_interface;
            *counters.lost.entry(NO_INTERFACE.into()).or_default() += self.no_interface;
        }
        if !counters.balanced() {
            return Err(RunError::Unbalanced(Box::new(counters)));
        }
        let follow = self.leaving.follow.as_ref().map(Follow::counters);
        Ok(Summary { counters, follow, warnings })
    }
}

impl From<Failed> for RunError {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Packet(name, error) => Self::Write { name, error },
            Failed::Event(error) => Self::Events(error),
        }
    }
}

impl From<Unreadable> for RunError {
    fn from((name, error): Unreadable) -> Self {
        Self::Read { name, error }
    }
}
