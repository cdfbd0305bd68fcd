//! The way of nearly all packets: from entering to leaving through programs that are machine code,
//! while nothing is due and nothing is sent beside them. Everything else is for the general walk, which
//! takes a packet over wherever it is.

use crate::Compiled;
use crate::program::{AtEnd, Program};
use crate::walk::{At, Reached, Walk};
use braid_ir::chain::Malformed;
use braid_ir::engine::worker;
use braid_ir::residual::Point;
use braid_jit::Ended;
use braid_packet::{Layout, Packet};

/// Why packets go on by the general walk.
pub(crate) enum Halt {
    /// The next one has not entered yet.
    Entering,
    /// The next one is here.
    At(At),
    /// A program has run on the next one, and its end is to be done.
    Ended { number: usize, ended: Ended },
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
        let first = reached.len();
        while let at = reached.len() - first
            && let Some(layout) = layouts.get(at)
        {
            let Some(number) = self.programs.known(entry, layout.presence()) else {
                return Some(Halt::Entering);
            };
            let (packets, layouts) = (&mut packets[at..], &mut layouts[at..]);
            if let Some(halt) = self.alike((number, entry), packets, layouts, reached, walk) {
                return Some(halt);
            }
        }
        None
    }

    /// The same for packets of one shape, by the program that is theirs, as long as they are of that
    /// shape. It takes one at least, if it does not halt.
    fn alike(
        &mut self,
        (number, entry): (usize, Point),
        packets: &mut [Packet],
        layouts: &mut [Layout],
        reached: &mut Vec<Reached>,
        walk: &mut Walk<'_>,
    ) -> Option<Halt> {
        let wake = self.wake;
        let drops_malformed = self.functions.chain.malformed == Malformed::Drop;
        let program = &mut self.programs.all[number];
        if !program.is_even() {
            return Some(Halt::Entering);
        }
        let Program { residual, stage, counts, ends, .. } = program;
        let Some(native) = stage.native() else { return Some(Halt::Entering) };
        let words = &mut *self.programs.words;
        let (functions, emissions) = (&mut self.functions, &mut self.emissions);
        let shape = residual.shape;
        let mut machine = native.machine(residual, words, functions, walk.out, emissions);
        let Ok(mut runner) = native.code.runner(&mut machine, counts) else {
            return Some(Halt::Entering);
        };
        for (packet, layout) in packets.iter_mut().zip(layouts) {
            if !shape.fits(layout.presence()) {
                return None;
            }
            let machine = runner.host();
            let now = packet.time_ns.max(machine.functions.now);
            if now >= wake.min(machine.functions.store.next_due())
                || (drops_malformed && layout.malformed().is_some())
            {
                return Some(Halt::Entering);
            }
            (walk.hops, walk.worker) = (0, worker(packet, self.workers));
            machine.begin(now, walk.worker);
            packet.time_ns = now;
            (packet.backward, packet.held) = (entry.backward, entry.held);
            let Ok(ended) = runner.run(packet, layout, now) else {
                return Some(Halt::At(At::Point(entry)));
            };
            let end = match ended {
                Ended::End(block) => ends.get_mut(block as usize),
                Ended::Hold { .. } | Ended::Fault { .. } => None,
            };
            match end.filter(|_| runner.host().emissions.is_empty()) {
                // Of no consequence any more: how many functions it has visited.
                Some(AtEnd { reached: times, next: Some(At::End(end)), .. }) => {
                    *times += 1;
                    reached.push(*end);
                }
                Some(AtEnd { reached: times, next: Some(next), visits: Some(visits), .. }) => {
                    *times += 1;
                    walk.hops = *visits;
                    return Some(Halt::At(*next));
                }
                _ => return Some(Halt::Ended { number, ended }),
            }
        }
        None
    }
}
