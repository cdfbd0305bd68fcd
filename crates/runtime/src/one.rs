//! One engine that runs all packets, on the thread of the driver.

use crate::follow::Follow;
use crate::load::Load;
use crate::loads::{Loads, with_lost};
use crate::merge::UNKNOWN;
use crate::script::Script;
use crate::split::Splitter;
use braid_ir::chain::Chain;
use braid_ir::engine::{Counters, Engine};
use braid_packet::{Burst, Packet};

/// An engine that runs loads.
pub(crate) struct One<'a> {
    chain: &'a Chain,
    engine: &'a mut dyn Engine,
    splitter: &'a Splitter,
    control: &'a mut Script,
    follow: Option<&'a mut Follow>,
    /// Takes the loads that have run.
    pass_on: &'a mut dyn FnMut(Load),
    /// A part of a burst.
    part: Load,
    /// Whether functions hold packets. Such a packet may leave with any later packet.
    holds: bool,
    /// Packets that entered nowhere.
    no_interface: u64,
}

impl Loads for One<'_> {
    fn load(&mut self, mut load: Load) {
        self.process(&mut load);
        (self.pass_on)(load);
    }

    fn counters(&mut self) -> Counters {
        with_lost(self.engine.counters(), self.no_interface)
    }
}

impl<'a> One<'a> {
    pub(crate) fn new(
        chain: &'a Chain,
        engine: &'a mut dyn Engine,
        splitter: &'a Splitter,
        control: &'a mut Script,
        follow: Option<&'a mut Follow>,
        pass_on: &'a mut dyn FnMut(Load),
    ) -> Self {
        Self {
            chain,
            engine,
            splitter,
            control,
            follow,
            pass_on,
            part: Load::new(),
            holds: chain.nodes.iter().any(|node| !node.model.queues.is_empty()),
            no_interface: 0,
        }
    }

    fn process(&mut self, load: &mut Load) {
        let last = load.burst.packets().iter().map(|packet| packet.time_ns).max();
        let changes = last.is_some_and(|time_ns| self.control.is_due(time_ns));
        if self.follow.is_some() || changes {
            self.in_parts(load);
        } else {
            let (burst, mut out) = load.parts();
            self.engine.burst(burst, &mut out);
        }
    }

    /// Processes a load in several bursts, because the configuration changes between them, or
    /// because replies depend on packets that have left.
    fn in_parts(&mut self, load: &mut Load) {
        let (all, mut from) = (load.burst.packets().len(), 0);
        while let Some(first) = load.burst.packets().get(from) {
            let time_ns = first.time_ns;
            if self.control.is_due(time_ns) {
                let (_, mut out) = load.parts();
                let (chain, engine) = (self.chain, &mut *self.engine);
                self.control.until(time_ns, chain, engine, &mut out, |_| {});
            }
            let count = self.enter(&mut load.burst, from);
            if count == all {
                return self.run(load);
            }
            let mut part = std::mem::take(&mut self.part);
            load.burst.give(from..from + count, &mut part.burst);
            self.run(&mut part);
            load.take(&mut part);
            self.part = part;
            from += count;
        }
        load.burst.clear();
    }

    /// Prepares packets to enter, from a place of the burst on, until a change of configuration is
    /// due or a packet's rewrite depends on the packets before it. Returns their number.
    fn enter(&mut self, burst: &mut Burst, from: usize) -> usize {
        let Self { splitter, control, follow, holds, .. } = self;
        let mut count = 0;
        burst.visit(from, |packet, layout| {
            if count > 0 && control.is_due(packet.time_ns) {
                return false;
            }
            if let Some(follow) = follow {
                let captured = follow.look(packet, layout);
                if count > 0 && (*holds || follow.waits(&captured)) {
                    return false;
                }
                let named = Some(packet.ingress).filter(|ingress| *ingress != UNKNOWN);
                let reply = follow.reply_of(&captured, packet, layout);
                let told = || splitter.ingress(packet, layout);
                packet.ingress = named.or(reply).or_else(told).unwrap_or(UNKNOWN);
                let ingress = packet.ingress;
                if reply.is_some() {
                    packet.parse_to(layout);
                } else if ingress != UNKNOWN {
                    follow.enter_as(&captured, packet, ingress);
                }
            }
            count += 1;
            true
        });
        count
    }

    /// Processes a burst whose packets enter.
    fn run(&mut self, load: &mut Load) {
        if self.follow.is_some() && load.burst.packets().iter().any(|p| p.ingress == UNKNOWN) {
            let is_unknown = |packet: &mut Packet, _: &_| (packet.ingress == UNKNOWN).then_some(());
            load.burst.remove(is_unknown, |(), _| self.no_interface += 1);
        }
        let (burst, mut out) = load.parts();
        self.engine.burst(burst, &mut out);
        if let Some(follow) = &mut self.follow {
            load.each_leaving(|interface, packet| follow.leave(packet, interface));
            follow.settle(!self.holds);
        }
    }
}
