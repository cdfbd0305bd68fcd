//! The way of nearly all packets: from entering to leaving through programs that are machine code,
//! while nothing is due and nothing is sent beside them. Everything else is for the general walk, which
//! takes a packet over wherever it is.

use crate::Compiled;
use crate::act::Work;
use crate::walk::{At, Reached, Walk, fits};
use braid_ir::chain::Malformed;
use braid_ir::engine::worker;
use braid_ir::residual::Point;
use braid_jit::Ended;
use braid_packet::{Layout, Packet};

/// Why packets go on by the general walk.
pub(crate) enum Halt {
    /// The next one has not entered yet.
    Entering,
    /// The next one is here, and its layout is right.
    At(At),
    /// A program has run on the next one, and its end is to be done.
    Ended {
        number: usize,
        ended: Ended,
        /// `Program::mark` before it.
        before: u64,
    },
}

impl Compiled {
    /// Takes packets that enter at a point, in order, to their ends, and tells `reached` of each; those
    /// before the one that has to go on by the general walk, with the reason, if there is one.
    pub(crate) fn hurry(
        &mut self,
        entry: Point,
        packets: &mut [Packet],
        layouts: &mut [Layout],
        reached: &mut Vec<Reached>,
        walk: &mut Walk<'_>,
    ) -> Option<Halt> {
        let drops_malformed = self.functions.chain.malformed == Malformed::Drop;
        for (packet, layout) in packets.iter_mut().zip(layouts) {
            let now = packet.time_ns.max(self.functions.now);
            if now >= self.wake.min(self.functions.store.next_due())
                || (drops_malformed && layout.malformed().is_some())
            {
                return Some(Halt::Entering);
            }
            self.functions.now = now;
            packet.time_ns = now;
            (walk.hops, walk.worker) = (0, worker(packet, self.workers));
            let mut point = entry;
            let end = loop {
                let presence = layout.presence();
                let Some(number) = self.programs.known(point, presence) else {
                    return Some(Halt::At(At::Point(point)));
                };
                let program = &mut self.programs.all[number];
                if !fits(walk.hops, program.residual.visits) {
                    return Some(Halt::At(At::Point(point)));
                }
                let before = program.mark();
                let Some(native) = program.stage.native() else {
                    return Some(Halt::At(At::Point(point)));
                };
                (packet.backward, packet.held) = (point.backward, point.held);
                let words = &mut self.programs.words;
                let work = Work { packet, layout, emissions: &mut self.emissions };
                let (functions, counts) = (&mut self.functions, &mut program.counts);
                let ended = native.run(&program.residual, words, functions, walk, work, counts);
                let Some(ended) = ended else { return Some(Halt::At(At::Point(point))) };
                if let Ended::End(block) = ended
                    && self.emissions.is_empty()
                    && let Some(at) = program.pass(block as usize, before, &mut walk.hops)
                {
                    match at {
                        At::End(reached) => break reached,
                        At::Point(next) => point = next,
                        At::Leaves(interface) => {
                            self.tally.leave(interface, 1);
                            break Reached::Interface(interface);
                        }
                        At::Unlinked => return Some(Halt::At(at)),
                    }
                } else {
                    return Some(Halt::Ended { number, ended, before });
                }
                packet.parse_to(layout);
            };
            reached.push(end);
        }
        None
    }
}
