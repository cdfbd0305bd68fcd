//! Isolated functions run the packets of a batch ahead: while the engine is at one packet, the
//! process is at a later one. This holds for packets that enter such a function first, if nothing
//! else can reach it before they do ([`firsts`]).

use crate::exec_context::Functions;
use braid_compiler::parallel::stages::firsts;
use braid_ir::chain::{Chain, Malformed};
use braid_native::Instance;
use braid_native::isolated::Coming;
use braid_packet::{Layout, Packet};

/// The isolated functions that packets enter first, and what they run ahead.
pub(crate) struct Firsts {
    /// For each interface, the function, and whether packets go backward there.
    of: Vec<Option<(u16, bool)>>,
    /// The number of packets of later bursts that a function runs ahead.
    ahead: usize,
    /// The time of the last one (ns).
    last: u64,
}

impl Firsts {
    pub(crate) fn new(chain: &Chain) -> Self {
        Self { of: firsts(chain), ahead: 0, last: 0 }
    }

    /// Packets come. Returns how many of them a function runs ahead already.
    pub(crate) fn arrive(&mut self, packets: usize) -> usize {
        let known = self.ahead.min(packets);
        self.ahead -= known;
        known
    }

    /// Lets a function run the first of the packets from a place on ahead, which come next, unless
    /// that is done up to the place `told`. Afterwards it is done up to there.
    #[inline]
    pub(crate) fn announce(
        &self,
        functions: &mut Functions,
        (at, told): (usize, &mut usize),
        (packets, layouts): (&[Packet], &[Layout]),
    ) {
        if self.of.is_empty() || at < *told {
            return;
        }
        let rest = (packets.get(at..).unwrap_or_default(), layouts.get(at..).unwrap_or_default());
        // A single packet gains nothing.
        let count = if rest.0.len() < 2 { 1 } else { self.give(functions, 0, rest) };
        *told = at + count.max(1);
    }

    /// Lets a function run packets ahead that come behind those of earlier calls. Returns whether
    /// it runs all of them ahead.
    pub(crate) fn run_ahead(
        &mut self,
        functions: &mut Functions,
        (packets, layouts): (&[Packet], &[Layout]),
    ) -> bool {
        let node = self.of.iter().flatten().next().map(|(node, _)| *node);
        // If the process has failed, the earlier packets run one by one.
        let at_work = node.and_then(|node| native(functions, node)).map(|one| one.ahead());
        if at_work != Some(self.ahead) {
            return false;
        }
        let count = self.give(functions, self.last, (packets, layouts));
        self.ahead += count;
        let times = packets.iter().take(count).map(|packet| packet.time_ns);
        self.last = times.fold(self.last, u64::max);
        count == packets.len()
    }

    /// Lets a function run packets ahead: those at the front that enter it first, at this time or
    /// later.
    fn give(
        &self,
        functions: &mut Functions,
        from: u64,
        (packets, layouts): (&[Packet], &[Layout]),
    ) -> usize {
        let drops_malformed = functions.chain.malformed == Malformed::Drop;
        let first = |packet: &Packet, layout: &Layout| {
            let first = self.of.get(usize::from(packet.ingress)).copied().flatten();
            first.filter(|_| !drops_malformed || layout.malformed().is_none())
        };
        let mut all = packets.iter().zip(layouts).peekable();
        let node = all.peek().and_then(|(packet, layout)| first(packet, layout));
        let Some((node, _)) = node else { return 0 };
        let mut now = functions.now.max(from);
        let coming = all.map_while(|(packet, layout)| {
            let (_, backward) = first(packet, layout).filter(|(own, _)| *own == node)?;
            now = now.max(packet.time_ns);
            Some(Coming { packet, layout, backward, now })
        });
        native(functions, node).map_or(0, |function| function.announce(coming))
    }

    /// Lets functions check that all packets that they have run ahead have come.
    pub(crate) fn settle(&self, functions: &mut Functions) {
        if self.ahead > 0 {
            return;
        }
        for (node, _) in self.of.iter().flatten() {
            if let Some(function) = native(functions, *node) {
                function.settle();
            }
        }
    }
}

/// The instance of a native function for the packets of this engine.
fn native(functions: &mut Functions, node: u16) -> Option<&mut Instance> {
    let worker = functions.chain.only.unwrap_or(0);
    let instance = functions.instances.get_mut(usize::from(node))?;
    let shard = usize::from(instance.shard(worker));
    instance.shards.get_mut(shard)?.native.as_mut()
}
