//! The live driver: it exchanges packets with network devices until it is told to stop.
//!
//! A worker thread reads bursts of frames, runs the engine on them, and sends the packets that
//! leave, in bursts, too. Packets stay in frames of one pool. While no frames arrive, the worker
//! advances the engine's time, so that time-outs and timers run. A packet that a device refuses is
//! lost for a named reason, so that packets are accounted for as in captures.
//!
//! The thread that called [`Live::run`] is the control thread. It answers requests, saves state and
//! loads changed chains. All that it asks of the worker is a message, which the worker answers
//! between two bursts.

mod attend;
mod clock;
mod control;
mod meter;
mod operator;
mod sink;
mod tracing;
mod watch;
mod watched;
mod worker;

pub use clock::Clock;
pub use operator::{Flags, Operator};
pub use sink::Attached;
pub use watch::{Filter, Traced};
pub use worker::Limits;

use crate::ctl::Socket;
use crate::outcome::{RunError, Summary};
use crate::outputs::{Leaving, Output};
use braid_io::PacketSink;
use braid_ir::chain::{Chain, Control};
use braid_ir::engine::Engine;
use braid_packet::Pool;
use control::Controller;
use sink::Sink;
use std::io::Write;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracing::Tracing;
use worker::{Worker, mailbox};

/// A live run that is being set up.
pub struct Live<'a> {
    chain: Chain,
    engine: Box<dyn Engine>,
    clock: Clock,
    pool: Pool,
    devices: Vec<Attached>,
    control: Vec<Control>,
    limits: Limits,
    saves: Option<Duration>,
    leaving: Leaving<'a>,
    socket: Option<Socket>,
}

/// A live run that has ended.
pub struct Done {
    /// The chain that ran last, as it was loaded.
    pub chain: Arc<Chain>,
    /// Its engine.
    pub engine: Box<dyn Engine>,
    /// The results. If an output cannot be written, the run ends with a summary that contains the
    /// failure ([`Summary::unwritten`]). An error says that a device cannot be read, a change cannot
    /// be made, or packets are unaccounted for.
    pub result: Result<Summary, RunError>,
}

impl<'a> Live<'a> {
    /// Creates a live run of a chain on an engine that was made for this chain. The devices were
    /// opened with this pool.
    pub fn new(chain: Chain, engine: Box<dyn Engine>, clock: Clock, pool: Pool) -> Self {
        Self {
            chain,
            engine,
            clock,
            pool,
            devices: Vec::new(),
            control: Vec::new(),
            limits: Limits::default(),
            saves: None,
            leaving: Leaving::default(),
            socket: None,
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

    /// Sets the limits at which the run ends.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Has the operator save the state each time that this period has passed.
    #[must_use]
    pub fn save_every(mut self, period: Duration) -> Self {
        self.saves = Some(period);
        self
    }

    /// Runs until `stop` is set or a limit is reached.
    pub fn run(self, operator: &mut dyn Operator, flags: Flags<'_>) -> Done {
        let chain = Arc::new(self.chain);
        let sink = Sink::new(&chain, self.leaving, self.devices, self.pool);
        let parts = (Arc::clone(&chain), self.engine);
        let mut worker = Worker::new(parts, self.clock, self.control, sink);
        let (mailbox, mut messages) = mailbox();
        let controller = Controller {
            chain,
            worker: mailbox,
            operator,
            flags,
            socket: self.socket.map(Socket::serve),
            tracing: Tracing::default(),
            saves: self.saves.map(|period| (period, Instant::now() + period)),
        };
        let (stop, limits) = (flags.stop, self.limits);
        let (mut worker, ran) = std::thread::scope(|scope| {
            let packets = scope.spawn(move || {
                let ran = worker.run(&mut messages, stop, limits);
                worker.sink.end_hosts();
                worker.sink.leaving.finish();
                (worker, ran)
            });
            controller.serve(|| packets.is_finished());
            packets.join().unwrap_or_else(|panic| resume_unwind(panic))
        });
        let result = ran.and_then(|()| worker.summary());
        let Worker { chain, engine, .. } = worker;
        Done { chain, engine, result }
    }
}
