//! The engine's main loop. It parses packets and finds their flows. Each packet then takes the fast
//! path (its flow's record) or the slow path (its program).

use crate::compiled::Compiled;
use crate::hot::{Halt, run_compiled};
use crate::report;
use crate::snapshot;
use crate::work::Walk;
use braid_flowcache::{BATCH, PacketPath, foresee};
use braid_ir::chain::Control;
use braid_ir::engine::{Counters, Engine, Outputs, StateEntry};
use braid_ir::snapshot::{ImportError, Snapshot};
use braid_ir::walk::{At, Reached};
use braid_native::{Noted, Profile};
use braid_packet::{Layout, Packet};

impl Compiled {
    /// Processes packets of one interface, in order and in place. The effect is the same as that of
    /// [`Engine::packet`] for each packet, except for the packets that leave: they stay in
    /// `packets`, and `reached` gets the destination of each packet. Copies, built packets and held
    /// packets still leave through `out`.
    ///
    /// The bytes of a packet that is [`Reached::Ended`] have no meaning afterwards.
    #[expect(
        clippy::indexing_slicing,
        reason = "a part has at most `BATCH` packets, and `layouts` has `BATCH` elements"
    )]
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

    /// Runs packets to their ends, one after the other, and adds the destination of each to
    /// `reached`. `layouts` has one element for each packet, which is overwritten.
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
        let Self { executor, cache, .. } = self;
        let entry = executor.entry(ingress);
        executor.chain_counters.packets_in += packets.len() as u64;
        let first = reached.len();
        if let (At::Point(point), Some(cache)) = (entry, &mut *cache) {
            cache.look_at(&mut executor.host(walk.out), point, packets, layouts);
        }
        let has_record = |at| cache.as_ref().is_some_and(|cache| cache.has_record(at));
        executor.prefetch(entry, (packets, layouts), has_record, walk.out);
        while let at = reached.len() - first
            && at < packets.len()
        {
            let halt = match entry {
                At::Point(point) if executor.started => {
                    // The packets that must run their programs.
                    let slow = match cache {
                        Some(cache) => {
                            let host = &mut executor.host(walk.out);
                            let rest = (&mut packets[at..], &layouts[at..]);
                            let at = at + cache.run_records(host, (point, at), rest, reached);
                            if at == packets.len() {
                                break;
                            }
                            at..at + cache.slow_path(host, at, &packets[at..], &layouts[at..])
                        }
                        None => at..packets.len(),
                    };
                    let slow = (&mut packets[slow.clone()], &mut layouts[slow]);
                    run_compiled(executor, point, slow, reached, walk)
                }
                _ => Some(Halt::Entering),
            };
            let Some(halt) = halt else { continue };
            let at = reached.len() - first;
            reached.push(executor.go_on(halt, entry, &mut packets[at], &mut layouts[at], walk));
        }
        executor.functions.prefetch.forget();
    }

    /// Processes a packet as [`Engine::packet`] does. Returns the path that it took, or `None` if
    /// the engine makes no flow records.
    pub fn packet_by_path(
        &mut self,
        ingress: u16,
        packet: Packet,
        out: &mut dyn Outputs,
    ) -> Option<PacketPath> {
        let before = self.flows();
        let foreseen =
            before.and_then(|before| Some((before, self.foresee(ingress, &packet, out)?)));
        self.packet(ingress, packet, out);
        let (before, path) = foreseen?;
        Some(path.corrected(before, self.flows()?))
    }

    /// The path that a packet would take now.
    fn foresee(
        &mut self,
        ingress: u16,
        packet: &Packet,
        out: &mut dyn Outputs,
    ) -> Option<PacketPath> {
        let (mut packet, mut layout) = (packet.clone(), Layout::default());
        packet.parse_to(&mut layout);
        packet.ingress = ingress;
        let At::Point(point) = self.executor.entry(ingress) else {
            return Some(PacketPath::miss("no function is where it enters"));
        };
        if !self.executor.started {
            return Some(PacketPath::miss("it is the first packet of all"));
        }
        let cache = self.cache.as_mut()?;
        Some(foresee(cache, self.executor.host(out), point, (&packet, &layout)))
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
        self.executor.advance_to(time_ns, out);
        self.executor.functions.advance_natives(out);
    }

    fn control(&mut self, control: &Control, out: &mut dyn Outputs) -> Result<(), String> {
        self.executor.advance_to(control.time_ns, out);
        self.change(control)
    }

    fn counters(&self) -> Counters {
        report::counters(&self.executor, self.cache.as_deref())
    }

    fn state(&self) -> Vec<StateEntry> {
        let mut entries = self.executor.functions.store.report();
        entries.extend(self.executor.functions.native_state());
        // Native functions have no tables, so the order within each function is kept.
        entries.sort_by_key(|entry| entry.node);
        entries
    }

    fn export(&mut self) -> Snapshot {
        snapshot::export(self)
    }

    fn import(&mut self, snapshot: Snapshot) -> Result<(), ImportError> {
        snapshot::import(self, snapshot)
    }

    fn problems(&self) -> Vec<(u16, Noted)> {
        self.executor.functions.native_problems()
    }

    fn observed(&self) -> Vec<(u16, Profile)> {
        self.executor.functions.native_profiles()
    }
}
