//! The live driver: it exchanges packets with network devices until it is told to stop.
//!
//! Each worker is a thread. It reads bursts of frames, runs its engine on them, and sends the
//! packets that leave, in bursts, too. It has a pool, devices and tables of its own. With several
//! workers, each packet goes to the worker that the chain's steering gives it. While no frames
//! arrive, a worker advances its engine's time, so that time-outs and timers run. A packet that a
//! device refuses is lost for a named reason, so that packets are accounted for as in captures.
//!
//! The thread that called [`Live::run`] is the control thread. It answers requests, saves state and
//! loads changed chains. It sends messages to the workers, which answer them between two bursts.

mod attend;
mod clock;
mod control;
mod exchange;
mod listing;
mod meter;
mod newcomers;
mod numbers;
mod operator;
mod polling;
mod results;
mod shared;
mod sink;
mod tracing;
mod watch;
mod watched;
mod worker;

pub use clock::Clock;
pub use operator::{Flags, Operator};
pub use results::Done;
pub use sink::Attached;
pub use watch::{Filter, Traced};
pub use worker::Limits;

use crate::ctl::Socket;
use crate::engines::Engines;
use crate::outputs::Sinks;
use braid_ir::chain::{Chain, Control};
use braid_packet::Pool;
use braid_packet::frame::FRAME;
use control::Controller;
use exchange::Exchange;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use shared::Shared;
use sink::Sink;
use std::io::{self, ErrorKind};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};
use tracing::Tracing;
use worker::{Worker, mailbox};

/// A live run that is being set up.
pub struct Live<'a> {
    chain: Chain,
    engines: Engines,
    clock: Clock,
    ports: Vec<Ports>,
    control: Vec<Control>,
    limits: Limits,
    saves: Option<Duration>,
    established_first: bool,
    sinks: Sinks<'a>,
    socket: Option<Socket>,
}

/// The ports of a worker to the devices of a run, with the pool with which they were opened.
pub struct Ports {
    /// The pool.
    pub pool: Pool,
    /// The ports.
    pub attached: Vec<Attached>,
}

impl<'a> Live<'a> {
    /// Creates a live run of a chain on engines that were made for this chain.
    pub fn new(chain: Chain, engines: impl Into<Engines>, clock: Clock) -> Self {
        Self {
            chain,
            engines: engines.into(),
            clock,
            ports: Vec::new(),
            control: Vec::new(),
            limits: Limits::default(),
            saves: None,
            established_first: false,
            sinks: Sinks::default(),
            socket: None,
        }
    }

    /// Adds the ports of the next worker. A worker whose ports are not added has none.
    #[must_use]
    pub fn ports(mut self, ports: Ports) -> Self {
        self.ports.push(ports);
        self
    }

    /// Sets where the packets that leave are written, and events.
    #[must_use]
    pub fn sinks(mut self, sinks: Sinks<'a>) -> Self {
        self.sinks = sinks;
        self
    }

    /// Adds changes of configuration, which are made when their time comes.
    #[must_use]
    pub fn control(mut self, control: impl IntoIterator<Item = Control>) -> Self {
        self.control.extend(control);
        self
    }

    /// Adds a socket through which clients look into the run and change it.
    #[must_use]
    pub fn socket(mut self, socket: Socket) -> Self {
        self.socket = Some(socket);
        self
    }

    /// Sets the limits at which the run ends.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Makes the operator save the state each time that this period has passed.
    #[must_use]
    pub fn save_every(mut self, period: Duration) -> Self {
        self.saves = Some(period);
        self
    }

    /// Sets whether packets of established flows go before packets of new flows when a worker has
    /// more packets than it can process. Some packets of new flows are then lost
    /// (`new_flow_refused`).
    #[must_use]
    pub fn established_first(mut self, comes_first: bool) -> Self {
        self.established_first = comes_first;
        self
    }

    /// Runs until `stop` is set or a limit is reached.
    ///
    /// # Errors
    /// The system has too few descriptors or threads.
    pub fn run(self, operator: &mut dyn Operator, flags: Flags<'_>) -> io::Result<Done> {
        let chain = Arc::new(self.chain);
        let (engines, steerer) = self.engines.into_parts();
        let shared = Shared::new(&chain, self.sinks, self.clock, engines.len());
        let shared = Arc::new(shared);
        let exchanges = steerer.map(|steerer| Exchange::between(engines.len(), &steerer));
        let mut exchanges = exchanges.transpose()?.into_iter().flatten();
        let mut ports = self.ports.into_iter();
        let (mut workers, mut mailboxes) = (Vec::new(), Vec::new());
        for engine in engines {
            let none = || Pool::new(0, FRAME).map(|pool| Ports { pool, attached: Vec::new() });
            let Ports { pool, attached } =
                ports.next().or_else(none).ok_or(ErrorKind::OutOfMemory)?;
            let sink = Sink::new(Arc::clone(&shared), attached, pool);
            let parts = (Arc::clone(&chain), engine);
            let mut worker = Worker::new(parts, self.control.clone(), sink, exchanges.next());
            if self.established_first {
                worker.prefer_established();
            }
            let (send, messages) = mailbox();
            workers.push((worker, messages));
            mailboxes.push(send);
        }
        let controller = Controller {
            chain,
            workers: mailboxes,
            shared: Arc::clone(&shared),
            operator,
            flags,
            socket: self.socket.map(Socket::serve),
            tracing: Tracing::default(),
            listing: None,
            drains_until: None,
            warned: 0,
            saves: self.saves.map(|period| (period, Instant::now() + period)),
        };
        let (stop, limits) = (flags.stop, self.limits);
        let ended = std::thread::scope(|scope| {
            let processors = processors(workers.len());
            let threads: Vec<_> = workers
                .into_iter()
                .zip(processors)
                .map(|((mut worker, messages), processor)| {
                    scope.spawn(move || {
                        pin(processor);
                        let ran = worker.run(messages, stop, limits);
                        (worker, ran)
                    })
                })
                .collect();
            controller.serve(|| threads.iter().all(|thread| thread.is_finished()));
            let join = |thread: ScopedJoinHandle<'_, _>| {
                thread.join().unwrap_or_else(|panic| resume_unwind(panic))
            };
            threads.into_iter().map(join).collect()
        });
        Ok(results::of(ended, &shared))
    }
}

/// The processor of each of several workers: the processors that this process may use, in turn.
/// A single worker runs where the system wants.
fn processors(workers: usize) -> impl Iterator<Item = Option<usize>> {
    let allowed = sched_getaffinity(None).ok().filter(|_| workers > 1);
    let numbers: Vec<usize> = allowed.map_or_else(Vec::new, |set| {
        (0..CpuSet::MAX_CPU).filter(|number| set.is_set(*number)).collect()
    });
    (0..workers).map(move |worker| numbers.get(worker % numbers.len().max(1)).copied())
}

/// Pins this thread to one processor. If the system refuses, the thread runs anywhere.
fn pin(processor: Option<usize>) {
    if let Some(processor) = processor {
        let mut only = CpuSet::new();
        only.set(processor);
        let _ = sched_setaffinity(None, &only);
    }
}
