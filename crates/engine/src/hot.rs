//! The way of nearly all packets: from entering to leaving through programs that are machine code,
//! while nothing is due and nothing is sent beside them. Everything else is for the general walk, which
//! takes a packet over wherever it is.

use crate::Compiled;
use crate::act::Work;
use crate::program::{AtEnd, Program};
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
        let first = reached.len();
        while let at = reached.len() - first
            && let (Some(packet), Some(layout)) = (packets.get_mut(at), layouts.get_mut(at))
        {
            let known = self.programs.known(entry, layout.presence());
            if let Some(number) = known.filter(|number| self.programs.all[*number].is_last()) {
                let (packets, layouts) = (&mut packets[at..], &mut layouts[at..]);
                if let Some(halt) = self.alike((number, entry), packets, layouts, reached, walk) {
                    return Some(halt);
                }
            } else {
                match self.one(entry, packet, layout, walk) {
                    Ok(end) => reached.push(end),
                    Err(halt) => return Some(halt),
                }
            }
        }
        None
    }

    /// The same for packets of one shape, by the program in which all of them come to their ends, as long
    /// as they are of that shape. It takes one at least, if it does not halt.
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
        let Program { residual, stage, counts, ends, .. } = &mut self.programs.all[number];
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
                Some(AtEnd { reached: times, next: Some(At::End(end)), .. }) => {
                    *times += 1;
                    reached.push(*end);
                }
                Some(AtEnd { reached: times, next: Some(At::Leaves(interface)), .. }) => {
                    *times += 1;
                    self.tally.leave(*interface, 1);
                    reached.push(Reached::Interface(*interface));
                }
                _ => return Some(Halt::Ended { number, ended, before: 0 }),
            }
        }
        None
    }

    /// Takes one packet from where it enters to its end, through as many programs as that takes.
    fn one(
        &mut self,
        entry: Point,
        packet: &mut Packet,
        layout: &mut Layout,
        walk: &mut Walk<'_>,
    ) -> Result<Reached, Halt> {
        let drops_malformed = self.functions.chain.malformed == Malformed::Drop;
        let now = packet.time_ns.max(self.functions.now);
        if now >= self.wake.min(self.functions.store.next_due())
            || (drops_malformed && layout.malformed().is_some())
        {
            return Err(Halt::Entering);
        }
        self.functions.now = now;
        packet.time_ns = now;
        (walk.hops, walk.worker) = (0, worker(packet, self.workers));
        let mut point = entry;
        loop {
            let here = Halt::At(At::Point(point));
            let Some(number) = self.programs.known(point, layout.presence()) else {
                return Err(here);
            };
            let program = &mut self.programs.all[number];
            if !fits(walk.hops, program.residual.visits) {
                return Err(here);
            }
            let before = program.mark();
            let Some(native) = program.stage.native() else { return Err(here) };
            (packet.backward, packet.held) = (point.backward, point.held);
            let words = &mut self.programs.words;
            let work = Work { packet, layout, emissions: &mut self.emissions };
            let (functions, counts) = (&mut self.functions, &mut program.counts);
            let ended = native.run(&program.residual, words, functions, walk, work, counts);
            let Some(ended) = ended else { return Err(here) };
            let Ended::End(block) = ended else {
                return Err(Halt::Ended { number, ended, before });
            };
            let end = &mut program.ends[block as usize];
            match end.next.filter(|_| self.emissions.is_empty()) {
                // Of no consequence any more: how many functions it has visited.
                Some(At::End(reached)) => {
                    end.reached += 1;
                    return Ok(reached);
                }
                Some(At::Leaves(interface)) => {
                    end.reached += 1;
                    self.tally.leave(interface, 1);
                    return Ok(Reached::Interface(interface));
                }
                Some(At::Point(next)) => {
                    program.pass(block as usize, before, &mut walk.hops);
                    point = next;
                    packet.parse_to(layout);
                }
                Some(At::Unlinked) | None => return Err(Halt::Ended { number, ended, before }),
            }
        }
    }
}
