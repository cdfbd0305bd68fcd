//! One engine that runs all packets, on the thread of the driver.

use crate::follow::Follow;
use crate::load::Load;
use crate::loads::{Loads, with_lost};
use crate::merge::UNKNOWN;
use crate::outcome::RunError;
use crate::script::Script;
use crate::split::Splitter;
use braid_ir::chain::Chain;
use braid_ir::engine::{Counters, Engine};
use braid_packet::{FlowKey, Packet};

/// An engine that runs loads.
pub(crate) struct One<'a> {
    chain: &'a Chain,
    engine: &'a mut dyn Engine,
    splitter: &'a Splitter,
    control: &'a mut Script,
    follow: Option<&'a mut Follow>,
    /// Takes the loads that have run.
    pass_on: &'a dyn Fn(Load),
    /// The part of a burst that is being put together.
    part: Load,
    /// The keys that packets of the part had in the capture. How their flows leave is not known
    /// before the part has been processed.
    pending: Vec<FlowKey>,
    /// Whether functions hold packets. Such a packet may leave with any later packet.
    holds: bool,
    /// Packets that entered nowhere.
    no_interface: u64,
}

impl Loads for One<'_> {
    fn load(&mut self, mut load: Load) -> Result<(), RunError> {
        let done = self.process(&mut load);
        (self.pass_on)(load);
        done
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
        pass_on: &'a dyn Fn(Load),
    ) -> Self {
        Self {
            chain,
            engine,
            splitter,
            control,
            follow,
            pass_on,
            part: Load::new(),
            pending: Vec::new(),
            holds: chain.nodes.iter().any(|node| !node.model.queues.is_empty()),
            no_interface: 0,
        }
    }

    fn process(&mut self, load: &mut Load) -> Result<(), RunError> {
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
}
