//! Isolated functions run the packets of a batch ahead: while the engine is at one packet, the
//! process is at a later one. This holds for packets that enter such a function first, if nothing
//! else can reach it before they do ([`firsts`]).
//!
//! [`firsts`]: braid_compiler::parallel::stages::firsts

use crate::executor::Executor;
use braid_ir::chain::Malformed;
use braid_native::Instance;
use braid_native::isolated::Coming;
use braid_packet::{Layout, Packet};

impl Executor {
    /// Lets an isolated function run the first of these packets ahead, which come next. Returns the
    /// number of packets after which to ask again.
    #[inline]
    pub(crate) fn announce(&mut self, packets: &[Packet], layouts: &[Layout]) -> usize {
        if self.firsts.is_empty() {
            return usize::MAX;
        }
        // A single packet gains nothing.
        let is_alone = packets.len() < 2;
        if is_alone { 1 } else { self.announce_from(self.functions.now, packets, layouts).max(1) }
    }

    /// Lets an isolated function run packets ahead that come behind those of earlier calls. Returns
    /// whether it runs all of them ahead.
    pub(crate) fn run_ahead(&mut self, packets: &[Packet], layouts: &[Layout]) -> bool {
        let (earlier, last) = self.ahead;
        let node = self.firsts.iter().flatten().next().map(|(node, _)| *node);
        // If the process has failed, the earlier packets run one by one.
        let at_work = node.and_then(|node| self.isolated(node)).map(|one| one.ahead());
        if at_work != Some(earlier) {
            return false;
        }
        let count = self.announce_from(self.functions.now.max(last), packets, layouts);
        let times = packets.iter().take(count).map(|packet| packet.time_ns);
        self.ahead = (earlier + count, times.fold(last, u64::max));
        count == packets.len()
    }

    /// Packets come. Returns how many of them an isolated function runs ahead already.
    pub(crate) fn arrive(&mut self, packets: usize) -> usize {
        let known = self.ahead.0.min(packets);
        self.ahead.0 -= known;
        known
    }

    /// Lets an isolated function run packets ahead: those at the front that enter it first.
    fn announce_from(&mut self, mut now: u64, packets: &[Packet], layouts: &[Layout]) -> usize {
        let Self { firsts, functions, .. } = self;
        let drops_malformed = functions.chain.malformed == Malformed::Drop;
        let first = |packet: &Packet, layout: &Layout| {
            let first = firsts.get(usize::from(packet.ingress)).copied().flatten();
            first.filter(|_| !drops_malformed || layout.malformed().is_none())
        };
        let mut all = packets.iter().zip(layouts).peekable();
        let Some((node, _)) = all.peek().and_then(|(packet, layout)| first(packet, layout)) else {
            return 0;
        };
        let coming = all.map_while(|(packet, layout)| {
            let (_, backward) = first(packet, layout).filter(|(own, _)| *own == node)?;
            now = now.max(packet.time_ns);
            Some(Coming { packet, layout, backward, now })
        });
        let worker = functions.chain.only.unwrap_or(0);
        native(&mut functions.instances, node, worker).map_or(0, |one| one.announce(coming))
    }

    /// Lets isolated functions check that all announced packets have come.
    pub(crate) fn settle_announced(&mut self) {
        if self.ahead.0 > 0 {
            return;
        }
        for at in 0..self.firsts.len() {
            let node = self.firsts.get(at).copied().flatten().map(|(node, _)| node);
            if let Some(function) = node.and_then(|node| self.isolated(node)) {
                function.settle();
            }
        }
    }

    /// The instance of an isolated function.
    fn isolated(&mut self, node: u16) -> Option<&mut Instance> {
        let worker = self.functions.chain.only.unwrap_or(0);
        native(&mut self.functions.instances, node, worker)
    }
}

/// The instance of a native function for a worker.
fn native(
    instances: &mut [crate::instance::Instance],
    node: u16,
    worker: u16,
) -> Option<&mut Instance> {
    let instance = instances.get_mut(usize::from(node))?;
    let shard = usize::from(instance.shard(worker));
    instance.shards.get_mut(shard)?.native.as_mut()
}
