//! How packets pass through the engine. The engine parses packets and finds their flows. Each
//! packet then takes the fast path (its flow's record) or the slow path (its program).

use crate::compiled::Compiled;
use crate::flow_cache::host;
use crate::hot::Halt;
use crate::programs::Programs;
use crate::work::Walk;
use braid_flowcache::{BATCH, Host};
use braid_ir::chain::Control;
use braid_ir::engine::{Counters, Engine, Outputs, StateEntry};
use braid_ir::residual::Point;
use braid_ir::walk::{At, Reached};
use braid_native::{Noted, Profile};
use braid_packet::{Layout, Packet};

impl Compiled {
    /// Processes packets of one interface, in order and in place. The effect is the same as that of
    /// [`Engine::packet`] for each packet, except that a packet that leaves stays in its place and
    /// `reached` gets its destination. All other packets that leave (copies, built packets, held
    /// packets) go to `out`.
    ///
    /// A packet that is [`Reached::Ended`] has arbitrary bytes afterwards, or none.
    #[expect(clippy::indexing_slicing, reason = "a part has at most `BATCH` packets")]
    pub fn batch(
        &mut self,
        ingress: u16,
        packets: &mut [Packet],
        reached: &mut Vec<Reached>,
        out: &mut dyn Outputs,
    ) {
        reached.clear();
        reached.reserve(packets.len());
        let mut layouts = std::mem::take(&mut self.layouts);
        layouts.resize(BATCH, Layout::default());
        for part in packets.chunks_mut(BATCH) {
            self.enter(ingress, part, &mut layouts[..part.len()], reached, out);
        }
        self.layouts = layouts;
    }

    /// Takes packets one after the other to their ends, and adds each end to `reached`. `layouts`
    /// has one element for each packet. Its contents are overwritten.
    #[expect(
        clippy::indexing_slicing,
        reason = "`at` and `slow` end before the packets do, and each packet has a layout"
    )]
    fn enter(
        &mut self,
        ingress: u16,
        packets: &mut [Packet],
        layouts: &mut [Layout],
        reached: &mut Vec<Reached>,
        out: &mut dyn Outputs,
    ) {
        for (packet, layout) in packets.iter_mut().zip(&mut *layouts) {
            packet.parse_to(layout);
            packet.ingress = ingress;
        }
        let walk = &mut Walk { hops: 0, worker: 0, out };
        let entry = self.entry(ingress);
        self.chain_counters.packets_in += packets.len() as u64;
        let first = reached.len();
        if let At::Point(point) = entry {
            self.look_at(point, packets, layouts, walk.out);
        }
        self.prefetch(entry, packets, layouts, walk.out);
        while let at = reached.len() - first
            && at < packets.len()
        {
            let halt = match entry {
                At::Point(point) if self.started => {
                    let some = (&mut packets[at..], &layouts[at..]);
                    let taken = self.run_records(point, at, some, reached, walk.out);
                    let at = at + taken;
                    let slow = self.slow_path(at, &packets[at..], &layouts[at..], walk);
                    let some = at..at + slow;
                    self.run_compiled(
                        point,
                        &mut packets[some.clone()],
                        &mut layouts[some],
                        reached,
                        walk,
                    )
                }
                _ => Some(Halt::Entering),
            };
            let Some(halt) = halt else { continue };
            let at = reached.len() - first;
            reached.push(self.go_on(halt, entry, &mut packets[at], &mut layouts[at], walk));
        }
        self.functions.prefetch.forget();
    }

    /// Takes a packet further by the general walk.
    #[inline(never)]
    fn go_on(
        &mut self,
        halt: Halt,
        entry: At,
        packet: &mut Packet,
        layout: &mut Layout,
        walk: &mut Walk<'_>,
    ) -> Reached {
        match halt {
            Halt::Entering => {
                self.advance_to(packet.time_ns, walk.out);
                self.start_timers();
                packet.time_ns = self.functions.now;
                self.walk_in(entry, packet, layout, walk)
            }
            Halt::At(at) => self.travel(at, packet, walk),
            Halt::Ended { number, ended } => {
                let at = self.ended(number, ended, 0, packet, walk);
                self.travel(at, packet, walk)
            }
        }
    }

    /// Lets the flow cache find the flows and records of packets that are about to enter at a
    /// point.
    fn look_at(
        &mut self,
        entry: Point,
        packets: &[Packet],
        layouts: &[Layout],
        out: &mut dyn Outputs,
    ) {
        if let Some(cache) = &mut self.cache {
            cache.look_at(&mut host!(self, out), entry, packets, layouts);
        }
    }

    /// The fast path: applies the records of packets of the batch, starting with the packet at
    /// `from`. Returns the number of packets that took a record.
    fn run_records(
        &mut self,
        entry: Point,
        from: usize,
        packets: (&mut [Packet], &[Layout]),
        reached: &mut Vec<Reached>,
        out: &mut dyn Outputs,
    ) -> usize {
        let Some(cache) = &mut self.cache else { return 0 };
        cache.run_records(&mut host!(self, out), (entry, from), packets, reached)
    }

    /// The packet at `from` has no record that it can use. Returns the number of packets, starting
    /// with this packet, that run their programs.
    fn slow_path(
        &mut self,
        from: usize,
        packets: &[Packet],
        layouts: &[Layout],
        walk: &mut Walk<'_>,
    ) -> usize {
        let Some(cache) = &mut self.cache else { return packets.len() };
        cache.slow_path(&mut host!(self, walk.out), from, packets, layouts)
    }
}

impl Engine for Compiled {
    fn packet(&mut self, ingress: u16, mut packet: Packet, out: &mut dyn Outputs) {
        let mut reached = std::mem::take(&mut self.reached);
        reached.clear();
        let (packets, layouts) = (std::slice::from_mut(&mut packet), &mut [Layout::default()]);
        self.enter(ingress, packets, layouts, &mut reached, out);
        if let Some(Reached::Interface(interface)) = reached.first() {
            out.packet(*interface, packet);
        }
        self.reached = reached;
    }

    fn advance(&mut self, time_ns: u64, out: &mut dyn Outputs) {
        self.advance_to(time_ns, out);
        self.functions.advance_natives(out);
    }

    fn control(&mut self, control: &Control, out: &mut dyn Outputs) -> Result<(), String> {
        self.advance_to(control.time_ns, out);
        self.change(control)
    }

    fn counters(&self) -> Counters {
        self.report_counters()
    }

    fn state(&self) -> Vec<StateEntry> {
        let mut entries = self.functions.store.report();
        entries.extend(self.functions.native_state());
        // Native functions have no tables, so the order within each function is kept.
        entries.sort_by_key(|entry| entry.node);
        entries
    }

    fn problems(&self) -> Vec<(u16, Noted)> {
        self.functions.native_problems()
    }

    fn observed(&self) -> Vec<(u16, Profile)> {
        self.functions.native_profiles()
    }
}
