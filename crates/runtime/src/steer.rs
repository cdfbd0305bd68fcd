//! Steering at run time: each packet gets its worker where it enters the chain.

use braid_ir::chain::{Chain, Change, Control};
use braid_ir::model::ParamId;
use braid_ir::snapshot::{ImportError, Snapshot, transfer};
use braid_packet::{Layout, Packet};

/// Gives each packet its worker. It has the clock of the chain: packets come to all workers in the
/// order of one clock, which never goes back.
#[derive(Clone)]
pub struct Steerer {
    pub(crate) chain: Chain,
    now_ns: u64,
    started: bool,
}

impl Steerer {
    /// A steerer for the packets of a chain, before the first one.
    #[must_use]
    pub fn new(chain: Chain) -> Self {
        Self { chain, now_ns: 0, started: false }
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
        }
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
            }
        }
        moved.changes.iter().for_each(|change| self.change(change));
        Ok(())
    }
}

/// The chains of the engines that are the workers of a divided chain, by worker.
pub fn workers(chain: &Chain) -> impl Iterator<Item = Chain> {
    (0..chain.workers.max(1)).map(|worker| Chain { only: Some(worker), ..chain.clone() })
}
