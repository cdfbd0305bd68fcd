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
    /// Tells an isolated function which of the next packets enter it first. Returns the number of
    /// packets until there is something to tell again.
    #[inline]
    pub(crate) fn announce(&mut self, packets: &[Packet], layouts: &[Layout]) -> usize {
        match self.firsts.is_empty() {
            true => usize::MAX,
            false => self.announce_first(packets, layouts).max(1),
        }
    }

    fn announce_first(&mut self, packets: &[Packet], layouts: &[Layout]) -> usize {
        let Self { firsts, functions, .. } = self;
        let drops_malformed = functions.chain.malformed == Malformed::Drop;
        let first = |(packet, layout): (&Packet, &Layout)| {
            let first = firsts.get(usize::from(packet.ingress)).copied().flatten();
            first.filter(|_| !drops_malformed || layout.malformed().is_none())
        };
        let enters = |at: usize| first((packets.get(at)?, layouts.get(at)?));
        // A single packet gains nothing.
        let (Some((node, _)), Some(_)) = (enters(0), enters(1)) else { return 0 };
        let mut now = functions.now;
        let coming = packets.iter().zip(layouts).map_while(|(packet, layout)| {
            let (_, backward) = first((packet, layout)).filter(|(own, _)| *own == node)?;
            now = now.max(packet.time_ns);
            Some(Coming { packet, layout, backward, now })
        });
        let worker = functions.chain.only.unwrap_or(0);
        native(&mut functions.instances, node, worker).map_or(0, |one| one.announce(coming))
    }

    /// Lets isolated functions check that all announced packets have come.
    pub(crate) fn settle_announced(&mut self) {
        let Self { firsts, functions, .. } = self;
        let worker = functions.chain.only.unwrap_or(0);
        for (node, _) in firsts.iter().flatten() {
            if let Some(function) = native(&mut functions.instances, *node, worker) {
                function.settle();
            }
        }
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
