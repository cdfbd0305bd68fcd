//! Steering at run time: each packet gets its worker where it enters the chain.

use braid_ir::chain::{Chain, Change, Control};
use braid_ir::engine::CATCH_UP;
use braid_ir::model::{ParamId, Setting};
use braid_ir::snapshot::{ImportError, Snapshot, transfer};
use braid_ir::value::ParamValue;
use braid_packet::{Layout, Packet};

/// Gives each packet its worker. It has the clock of the chain: packets come to all workers in the
/// order of one clock, which never goes back.
#[derive(Clone)]
pub struct Steerer {
    pub(crate) chain: Chain,
    now_ns: u64,
    started: bool,
    leaps: Leaps,
}

impl Steerer {
    /// A steerer for the packets of a chain, before the first one.
    #[must_use]
    pub fn new(chain: Chain) -> Self {
        let leaps = Leaps::of(&chain, 0);
        Self { chain, now_ns: 0, started: false, leaps }
    }

    /// The worker of a packet that enters at its ingress. The packet gets the time of the clock.
    pub fn steer(&mut self, packet: &mut Packet, layout: &Layout) -> u16 {
        self.now_ns = self.now_ns.max(packet.time_ns);
        packet.time_ns = self.now_ns;
        self.chain.worker(packet, layout)
    }

    /// As [`Self::steer`], for packets in order. Gives the worker of each.
    pub(crate) fn steer_each(
        &mut self,
        packets: &mut [Packet],
        layouts: &[Layout],
        mut give: impl FnMut(u16),
    ) {
        for packet in &mut *packets {
            self.now_ns = self.now_ns.max(packet.time_ns);
            packet.time_ns = self.now_ns;
        }
        let Chain { steering, workers, .. } = &self.chain;
        match self.chain.steers() {
            true => steering.each_worker(packets, layouts, *workers, give),
            false => (0..packets.len()).for_each(|_| give(self.chain.only.unwrap_or(0))),
        }
    }

    /// Whether the next packet is the first of all. The other workers' timers start with it
    /// ([`braid_ir::engine::Engine::begin`]).
    pub fn begins(&mut self) -> bool {
        !std::mem::replace(&mut self.started, true)
    }

    /// Takes over a change of configuration, which may change the shares of a pool.
    pub fn change(&mut self, control: &Control) {
        self.now_ns = self.now_ns.max(control.time_ns);
        if let Change::Set(value) = &control.change {
            self.chain.steering.change(control.node, control.param, value);
            self.set_period(control.node, control.param, value);
        }
    }

    /// Takes over a parameter that is the period of a timer.
    fn set_period(&mut self, node: u16, param: ParamId, value: &ParamValue) {
        let Some(node) = self.chain.nodes.get_mut(usize::from(node)) else { return };
        let period = Setting::Param(param);
        if node.model.timers.iter().any(|timer| timer.period == period)
            && let Some(own) = node.params.get_mut(param.index())
        {
            own.clone_from(value);
            self.leaps = Leaps::of(&self.chain, self.leaps.since_ns);
        }
    }

    /// Whether the work of workers must be cut before a packet that has been steered, so that all
    /// workers have advanced to the packets before it. Must be asked about each packet, in order.
    ///
    /// A timer that is far behind skips firings, and how many depends on the times at which an
    /// engine does anything. A worker does not see the times of the packets of other workers.
    pub(crate) fn cuts(&mut self, time_ns: u64) -> bool {
        self.leaps.cuts(time_ns)
    }

    /// The time of the clock (ns).
    pub(crate) fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Whether a packet has entered yet.
    pub(crate) fn has_started(&self) -> bool {
        self.started
    }

    /// Sets the clock to a time, unless it is later.
    pub fn advance(&mut self, time_ns: u64) {
        self.now_ns = self.now_ns.max(time_ns);
    }

    /// Goes on from the state of the chain's workers.
    pub(crate) fn resume(&mut self, snapshot: Snapshot) -> Result<(), ImportError> {
        let moved = transfer(snapshot, &self.chain)?;
        (self.now_ns, self.started) = (moved.snapshot.now_ns, moved.snapshot.started);
        for (node, function) in (0..).zip(&moved.snapshot.functions) {
            for (param, state) in (0..).zip(&function.params) {
                let param = ParamId(param);
                self.chain.steering.change(node, param, &state.value);
                self.set_period(node, param, &state.value);
            }
        }
        moved.changes.iter().for_each(|change| self.change(change));
        self.leaps = Leaps::of(&self.chain, self.now_ns);
        Ok(())
    }
}

/// Finds the places where time has gone on so far that timers may skip firings.
#[derive(Clone)]
struct Leaps {
    /// Time to which all workers have advanced.
    since_ns: u64,
    /// Time of the last packet.
    last_ns: u64,
    /// No timer skips firings in this time (ns).
    most_ns: u64,
}

impl Leaps {
    fn of(chain: &Chain, since_ns: u64) -> Self {
        let periods = chain.nodes.iter().flat_map(|node| {
            node.model.timers.iter().map(|timer| timer.period.value(&node.params).max(1))
        });
        let most_ns = periods.map(|period| u64::try_from(period).unwrap_or(u64::MAX)).min();
        let most_ns = most_ns.map_or(u64::MAX, |period| period.saturating_mul(CATCH_UP));
        Self { since_ns, last_ns: since_ns, most_ns }
    }

    fn cuts(&mut self, time_ns: u64) -> bool {
        let last_ns = std::mem::replace(&mut self.last_ns, time_ns);
        // A cut brings all workers to the packet before it. After one long step, the next packet is
        // cut off, too, so that all workers have seen the end of the step.
        let is_behind = time_ns - self.since_ns >= self.most_ns;
        if is_behind {
            self.since_ns = last_ns;
        }
        is_behind
    }
}

/// The chains of the engines that are the workers of a divided chain, by worker.
pub fn workers(chain: &Chain) -> impl Iterator<Item = Chain> {
    (0..chain.workers.max(1)).map(|worker| Chain { only: Some(worker), ..chain.clone() })
}
