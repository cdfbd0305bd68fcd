//! The way of nearly all packets: from entering to leaving through programs that are machine code,
//! while nothing is due and nothing is sent beside them. Everything else is for the general walk, which
//! takes a packet over wherever it is.

use crate::compiled::Compiled;
use crate::native::{Machine, Native};
use crate::program::{AtEnd, Program};
use crate::programs::{Points, ProgramSet, Programs};
use crate::tally::Tally;
use crate::work::Walk;
use braid_ir::chain::Malformed;
use braid_ir::engine::worker;
use braid_ir::residual::Point;
use braid_ir::walk::{At, Reached};
use braid_jit::{Ended, Runner};
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
    pub(crate) fn run_compiled(
        &mut self,
        entry: Point,
        packets: &mut [Packet],
        layouts: &mut [Layout],
        reached: &mut Vec<Reached>,
        walk: &mut Walk<'_>,
    ) -> Option<Halt> {
        let presence = layouts.first()?.presence();
        let drops_malformed = self.functions.chain.malformed == Malformed::Drop;
        let (wake, workers) = (self.wake, self.workers);
        let Self { functions, programs, emissions, tally, .. } = self;
        let Programs { set: ProgramSet { all, points }, words, .. } = programs;
        let Some(here) = Here::find(all, points, entry, presence, 0) else {
            return Some(Halt::Entering);
        };
        let (program, native) = (here.program, here.native);
        let mut machine = native.machine(&program.residual, words, functions, walk.out, emissions);
        let Ok(runner) = native.code.runner(&mut machine, &program.counts) else {
            return Some(Halt::Entering);
        };
        let Here { number, program, .. } = here;
        let mut road = Road { runner, number, program, all, points, tally };
        // What ran on the last one when it entered.
        let (mut first, mut shape) = (number, program.residual.shape);
        for (packet, layout) in packets.iter_mut().zip(layouts) {
            let functions = &*road.runner.host().functions;
            let now = packet.time_ns.max(functions.now);
            if now >= wake.min(functions.store.next_due())
                || (drops_malformed && layout.malformed().is_some())
            {
                return Some(Halt::Entering);
            }
            if road.number != first || !shape.fits(layout.presence()) {
                if !road.turn(entry, layout.presence(), 0) {
                    return Some(Halt::Entering);
                }
                (first, shape) = (road.number, road.program.residual.shape);
            }
            packet.time_ns = now;
            walk.worker = worker(packet, workers);
            road.runner.host().begin(now, walk.worker);
            let end = match road.run(packet, layout, now) {
                Ok((At::End(end), _)) => end,
                Ok((at, visits)) => match road.rest(at, visits, packet, layout, now) {
                    Ok(end) => end,
                    Err((halt, hops)) => {
                        walk.hops = hops;
                        return Some(halt);
                    }
                },
                Err(halt) => {
                    walk.hops = 0;
                    return Some(halt);
                }
            };
            reached.push(end);
        }
        None
    }
}

/// A program that is machine code and tells by where packets come to an end how many functions they
/// have visited.
struct Here<'a> {
    number: usize,
    program: &'a Program,
    native: &'a Native,
}

impl<'a> Here<'a> {
    /// The program for packets with these headers at a point that have visited so many functions.
    #[inline(always)]
    fn find(
        all: &'a [Program],
        points: &Points,
        point: Point,
        presence: u128,
        hops: u32,
    ) -> Option<Self> {
        let number = points.known(point, presence)?;
        let program = all.get(number)?;
        let native = program.stage.native().filter(|_| program.is_even(hops))?;
        Some(Here { number, program, native })
    }
}

/// Machine code that runs, and all that can run next.
struct Road<'a, 'm> {
    runner: Runner<'a, Machine<'m>>,
    number: usize,
    program: &'m Program,
    all: &'m [Program],
    points: &'m Points,
    tally: &'a mut Tally,
}

impl<'a, 'm: 'a> Road<'a, 'm> {
    /// The program for packets with these headers at a point that have visited so many functions is the
    /// next to run; false, and nothing has changed, if there is none.
    #[inline(always)]
    fn turn(&mut self, point: Point, presence: u128, hops: u32) -> bool {
        let Some(here) = Here::find(self.all, self.points, point, presence, hops) else {
            return false;
        };
        let Here { number, program, native } = here;
        if self.runner.switch_to(&native.code, &program.counts).is_err() {
            return false;
        }
        self.runner.host().turn_to(&program.residual, native);
        (self.number, self.program) = (number, program);
        true
    }

    /// A packet runs by the program that is next: where it is then, and how many functions it has visited.
    #[inline(always)]
    fn run(
        &mut self,
        packet: &mut Packet,
        layout: &mut Layout,
        now: u64,
    ) -> Result<(At, u32), Halt> {
        let point = self.program.residual.point;
        (packet.backward, packet.held) = (point.backward, point.held);
        self.runner.host().start();
        let Ok(ended) = self.runner.run(packet, layout, now) else {
            return Err(Halt::At(At::Point(point)));
        };
        let end = match ended {
            Ended::End(block) => self.program.ends.get(block as usize),
            Ended::Hold { .. } | Ended::Fault { .. } => None,
        };
        match end.filter(|_| self.runner.host().emissions.is_empty()) {
            Some(AtEnd { reached, next: Some(next), visits: Some(visits), .. }) => {
                reached.update(|times| times.wrapping_add(1));
                Ok((*next, *visits))
            }
            _ => Err(Halt::Ended { number: self.number, ended }),
        }
    }

    /// A packet that has visited so many functions goes on to its end. If it cannot: why, and how many it
    /// has visited then.
    #[inline(never)]
    fn rest(
        &mut self,
        mut at: At,
        mut hops: u32,
        packet: &mut Packet,
        layout: &mut Layout,
        now: u64,
    ) -> Result<Reached, (Halt, u32)> {
        loop {
            match at {
                At::End(reached) => return Ok(reached),
                At::Leaves(interface) => {
                    self.tally.leave(interface, 1);
                    return Ok(Reached::Interface(interface));
                }
                At::Point(point) => {
                    packet.parse_to(layout);
                    if !self.turn(point, layout.presence(), hops) {
                        return Err((Halt::At(at), hops));
                    }
                }
                At::Unlinked => return Err((Halt::At(at), hops)),
            }
            let (next, visits) = self.run(packet, layout, now).map_err(|halt| (halt, hops))?;
            (at, hops) = (next, hops.saturating_add(visits));
        }
    }
}
