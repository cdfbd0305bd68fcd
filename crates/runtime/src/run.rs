//! The offline driver: runs captures through a chain on an engine, or on the engines of its
//! workers.

use crate::follow::Follow;
use crate::load::Load;
use crate::loads::{Loads, with_lost};
use crate::merge::Input;
use crate::one::One;
use crate::outcome::{RunError, Shown, Summary};
use crate::outputs::Sinks;
use crate::reading::{End, LOADS, Reader};
use crate::script::Script;
use crate::sharded::Sharded;
use crate::split::{NO_INTERFACE, Splitter};
use crate::stray::Strays;
use crate::team;
use braid_ir::chain::{Chain, Control};
use braid_ir::engine::Engine;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

/// The number of packets between two calls of the progress callback.
const PROGRESS_PERIOD: u64 = 1024;

/// A run that is being set up.
pub struct Run<'a> {
    chain: &'a Chain,
    engines: Runners<'a>,
    inputs: Vec<Input>,
    sinks: Sinks<'a>,
    control: Vec<Control>,
    follow: bool,
    progress: Option<Box<dyn FnMut(Progress) + 'a>>,
    stop: Option<&'a AtomicBool>,
    shown: Option<Shown<'a>>,
}

/// The engines of a run.
enum Runners<'a> {
    One(&'a mut dyn Engine),
    /// Each runs on a thread of its own.
    Workers(&'a mut Sharded),
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
        Self::on(chain, Runners::One(engine))
    }

    /// Creates a run of a divided chain on the engines of its workers, each on a thread of its own.
    /// With [`Self::follow`], they run one after the other on one thread.
    pub fn on_workers(chain: &'a Chain, workers: &'a mut Sharded) -> Self {
        Self::on(chain, Runners::Workers(workers))
    }

    fn on(chain: &'a Chain, engines: Runners<'a>) -> Self {
        Self {
            chain,
            engines,
            inputs: Vec::new(),
            sinks: Sinks::default(),
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

    /// Sets where the packets that leave are written, and events.
    #[must_use]
    pub fn sinks(mut self, sinks: Sinks<'a>) -> Self {
        self.sinks = sinks;
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

    /// Sets a flag that ends the run when it is set. Packets that were already read still run.
    #[must_use]
    pub fn stop(mut self, stop: &'a AtomicBool) -> Self {
        self.stop = Some(stop);
        self
    }

    /// Calls `show` with the counters so far whenever `flag` is set.
    #[must_use]
    pub fn show(mut self, flag: &'a AtomicBool, show: impl FnMut(&Summary) + 'a) -> Self {
        self.shown = Some(Shown::new(flag, show));
        self
    }

    /// Runs all packets through the chain.
    ///
    /// # Errors
    /// Returns an error when an input cannot be read, or packets are unaccounted for. Packets
    /// that left before the error are written. If an output cannot be written, the run ends early
    /// with a summary that contains the failure ([`Summary::unwritten`]). A change that cannot be
    /// made is left out ([`Summary::refused`]).
    pub fn run(self) -> Result<Summary, RunError> {
        let Self { chain, engines, mut sinks, .. } = self;
        let splitter = Splitter::new(chain);
        let mut warnings = blind_split(chain, &splitter, &self.inputs);
        let is_team = matches!(engines, Runners::Workers(_)) && !self.follow;
        let loads = if is_team { LOADS } else { 1 };
        let mut reader =
            Reader::start(self.inputs, (!self.follow).then(|| splitter.clone()), loads);
        let used = reader.used();
        let mut feed = Feed::new(self.progress, self.shown);
        let is_stopped = || self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed));
        let mut control = Script::new(self.control);
        let mut follow = self.follow.then(Follow::default);
        let (ran, unwritten, counters) = match engines {
            Runners::Workers(workers) if is_team => {
                let (ran, unwritten) =
                    team::run(workers, &mut control, (chain, sinks), &used, |team, has_ended| {
                        let goes_on = || !is_stopped() && !has_ended.load(Ordering::Relaxed);
                        feed.packets(&mut reader, team, goes_on)
                    });
                (ran, unwritten, workers.counters())
            }
            engines => {
                let engine: &mut dyn Engine = match engines {
                    Runners::One(engine) => engine,
                    Runners::Workers(workers) => workers,
                };
                let has_failed = Cell::new(false);
                let mut pass_on = |mut load: Load| {
                    sinks.write_load(chain, &mut load);
                    has_failed.set(sinks.has_failed());
                    // The reader may have ended.
                    used.send(load, false);
                };
                let goes_on = || !is_stopped() && !has_failed.get();
                let follow = follow.as_mut();
                let mut one =
                    One::new(chain, engine, &splitter, &mut control, follow, &mut pass_on);
                let ran = feed.packets(&mut reader, &mut one, goes_on);
                let counters = one.counters();
                sinks.finish();
                (ran, sinks.failed, counters)
            }
        };
        warnings.extend(ran?);
        let Feed { packets, strays, .. } = feed;
        let counters = with_lost(counters, strays.count);
        if is_stopped() {
            warnings.push(format!("ended by a signal after {packets} packets"));
        }
        match control.left() {
            0 => {}
            1 => warnings.push(
                "1 control line is later than the last packet and was not applied".to_owned(),
            ),
            left => warnings.push(format!(
                "{left} control lines are later than the last packet and were not applied"
            )),
        }
        let lost = counters.lost.get(NO_INTERFACE).copied().unwrap_or(0);
        if !splitter.is_blind() {
            warnings.extend(strays.warning(chain, lost, packets));
        }
        if !counters.balanced() {
            return Err(RunError::Unbalanced(Box::new(counters)));
        }
        let follow = follow.as_ref().map(Follow::counters);
        let refused = control.refused;
        Ok(Summary { counters, follow, warnings, refused, unwritten })
    }
}

/// Feeds the packets of all inputs to the engines.
struct Feed<'a> {
    progress: Option<Box<dyn FnMut(Progress) + 'a>>,
    shown: Option<Shown<'a>>,
    packets: u64,
    strays: Strays,
}

impl<'a> Feed<'a> {
    fn new(progress: Option<Box<dyn FnMut(Progress) + 'a>>, shown: Option<Shown<'a>>) -> Self {
        Self { progress, shown, packets: 0, strays: Strays::default() }
    }

    /// Feeds packets while `goes_on` is true. Returns the inputs' warnings.
    fn packets(
        &mut self,
        reader: &mut Reader,
        to: &mut dyn Loads,
        goes_on: impl Fn() -> bool,
    ) -> Result<Vec<String>, RunError> {
        let mut due = 0;
        while goes_on() {
            let is_asked = || self.shown.as_ref().is_some_and(Shown::is_asked);
            let mut load = match reader.next_while(|| goes_on() && !is_asked()) {
                Ok(Some(load)) => load,
                Ok(None) => {
                    self.show(to);
                    continue;
                }
                Err(End { read: ended, progress: (read, total) }) => {
                    if let Some(progress) = &mut self.progress {
                        progress(Progress { packets: self.packets, read, total });
                    }
                    return Ok(ended?);
                }
            };
            if let Some(progress) = &mut self.progress
                && self.packets >= due
            {
                let (read, total) = load.progress;
                progress(Progress { packets: self.packets, read, total });
                due = self.packets + PROGRESS_PERIOD;
            }
            self.packets += load.read;
            self.strays.take(&mut load.strays);
            to.load(load);
            self.show(to);
        }
        Ok(Vec::new())
    }

    /// Shows the results so far, if the flag for it is set.
    fn show(&mut self, to: &mut dyn Loads) {
        if let Some(shown) = self.shown.as_mut().filter(|shown| shown.is_asked()) {
            shown.show(&Summary::so_far(with_lost(to.counters(), self.strays.count)));
        }
    }
}

fn blind_split(chain: &Chain, splitter: &Splitter, inputs: &[Input]) -> Vec<String> {
    if !splitter.is_blind() {
        return Vec::new();
    }
    let common = inputs.iter().filter(|input| input.interface.is_none());
    let warn = |input: &Input| {
        format!(
            "{}: no interface of chain `{}` has `behind` prefixes, so Braid cannot tell \
             where packets enter; write `interface NAME {{ behind PREFIX }}`, or name the \
             interface with --in NAME=FILE",
            input.name, chain.name
        )
    };
    common.map(warn).collect()
}
