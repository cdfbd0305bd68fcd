//! Runs packets through machine code: the path of nearly all packets without a flow record. Packets
//! enter, run through machine code and leave, while nothing is due and no program sends other
//! packets. The general walk handles everything else. It can take over a packet at any point.

use crate::chain_counters::ChainCounters;
use crate::executor::Executor;
use crate::machine_code::{Machine, MachineCode};
use crate::program::{AtEnd, Program};
use crate::programs::{ProgramSet, Programs};
use crate::work::Walk;
use braid_flowcache::{FlowCache, Onward, Rest};
use braid_ir::chain::Malformed;
use braid_ir::graph::Graph;
use braid_ir::residual::Point;
use braid_ir::walk::{At, Reached};
use braid_jit::{Ended, Runner};
use braid_packet::{Layout, Packet};

/// The place where the general walk must continue.
pub(crate) enum Halt {
    /// The next packet has not entered yet.
    Entering,
    /// The next packet is at this place.
    At(At),
    /// The next packet is at this point, where it may have a record for the rest of its path.
    Rest(Point),
    /// A program has run on the next packet, but the walk still has to carry out the program's end.
    Ended { number: usize, ended: Ended },
}

impl Halt {
    /// The place of a packet that has taken a record for a part of its path.
    pub(crate) fn behind(onward: Onward) -> Self {
        match onward.looks {
            true => Halt::Rest(onward.point),
            false => Halt::At(At::Point(onward.point)),
        }
    }
}

/// Runs packets that enter at a point to their ends, in order, and adds each destination to
/// `reached`. Stops at the first packet that the general walk must continue, and returns where.
/// `None` if all packets have ended. The flow cache, if there is one, comes with the length of
/// `reached` when the first packet of the batch entered. With `part`, there is one packet, which
/// has entered before and goes on at the point.
pub(crate) fn run_compiled(
    executor: &mut Executor,
    (entry, part): (Point, Option<Onward>),
    cache: Option<(&mut FlowCache, usize)>,
    (packets, layouts): (&mut [Packet], &mut [Layout]),
    reached: &mut Vec<Reached>,
    walk: &mut Walk<'_>,
) -> Option<Halt> {
    let presence = layouts.first()?.presence();
    let drops_malformed = executor.functions.chain.malformed == Malformed::Drop;
    let (wake, steers) = (executor.wake, executor.functions.chain.steers());
    let Executor { functions, programs, emissions, chain_counters, graph, .. } = executor;
    let Programs { set, words, .. } = programs;
    let stopped = || Some(part.map_or(Halt::Entering, Halt::behind));
    let hops = part.map_or(0, |onward| onward.hops);
    let Some(here) = Here::find(set, entry, presence, hops) else { return stopped() };
    let (program, code) = (here.program, here.code);
    let mut machine = code.machine(&program.residual, words, functions, walk.out, emissions);
    let Ok(runner) = code.code.runner(&mut machine, &program.counts) else { return stopped() };
    let number = here.number;
    let mut road =
        Road { runner, number, program, set, graph, wake, chain_counters, cache, rests: false };
    // The program that ran on the last packet when it entered, and its header shape.
    let (mut first, mut shape) = (number, program.residual.shape);
    for (packet, layout) in packets.iter_mut().zip(layouts) {
        let functions = &*road.runner.host().functions;
        let now = packet.time_ns.max(functions.now);
        let enters = part.is_none();
        let is_due = now >= wake.min(functions.store.next_due());
        if enters && (is_due || (drops_malformed && layout.malformed().is_some())) {
            return Some(Halt::Entering);
        }
        if road.number != first || !shape.fits(layout.presence()) {
            if !road.turn(entry, layout.presence(), 0) {
                return Some(Halt::Entering);
            }
            (first, shape) = (road.number, road.program.residual.shape);
        }
        packet.time_ns = now;
        let host = road.runner.host();
        if steers && enters {
            walk.worker = host.functions.chain.worker(packet, layout);
        }
        host.place = Some(reached.len());
        host.begin(now, walk.worker);
        road.rests = part.is_some();
        let ran = match part {
            Some(Onward { point, hops, looks }) => Ok((At::Point(point), hops, looks)),
            None => road.run(packet, layout, now),
        };
        let end = match ran {
            Ok((At::End(end), ..)) => end,
            Ok(ran) => match road.rest(ran, (packet, layout), now, reached) {
                Ok(Some(end)) => end,
                Ok(None) => continue,
                Err((halt, hops)) => {
                    (walk.hops, walk.rests) = (hops, road.rests);
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

/// A program in machine code, for which the place of a packet's end determines the number of
/// functions that the packet has visited.
struct Here<'a> {
    number: usize,
    program: &'a Program,
    code: &'a MachineCode,
}

impl<'a> Here<'a> {
    /// The program at a point for packets with these headers that have already visited `hops`
    /// functions.
    #[inline(always)]
    fn find(set: &'a ProgramSet, point: Point, presence: u128, hops: u32) -> Option<Self> {
        let number = set.points.known(point, presence)?;
        let program = set.all.get(number)?;
        let code = program.stage.machine_code().filter(|_| program.is_even(hops))?;
        Some(Here { number, program, code })
    }
}

/// The current machine code, and all programs that may run next.
struct Road<'a, 'm> {
    runner: Runner<'a, Machine<'m>>,
    number: usize,
    program: &'m Program,
    set: &'m ProgramSet,
    graph: &'a Graph,
    wake: u64,
    chain_counters: &'a mut ChainCounters,
    /// As for [`run_compiled`].
    cache: Option<(&'a mut FlowCache, usize)>,
    /// As in [`Walk`], for the packet that last ran through several programs.
    rests: bool,
}

impl<'a, 'm: 'a> Road<'a, 'm> {
    /// Switches to the program at a point for packets with these headers that have already visited
    /// `hops` functions. Returns false, without any change, if there is no such program.
    #[inline(always)]
    fn turn(&mut self, point: Point, presence: u128, hops: u32) -> bool {
        let Some(here) = Here::find(self.set, point, presence, hops) else {
            return false;
        };
        let Here { number, program, code } = here;
        if number == self.number {
            return true;
        }
        if self.runner.switch_to(&code.code, &program.counts).is_err() {
            return false;
        }
        self.runner.host().turn_to(&program.residual, code);
        (self.number, self.program) = (number, program);
        true
    }

    /// Runs the current program on a packet. Returns the packet's next place, which the layout then
    /// fits, the number of functions that it has visited, and whether it may have a record for the
    /// rest of its path. The error is the end that the general walk must carry out.
    #[inline(always)]
    fn run(
        &mut self,
        packet: &mut Packet,
        layout: &mut Layout,
        now: u64,
    ) -> Result<(At, u32, bool), Halt> {
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
                if let At::Point(_) = next {
                    packet.parse_to(layout);
                }
                Ok((*next, *visits, self.program.is_beyond_records))
            }
            _ => Err(Halt::Ended { number: self.number, ended }),
        }
    }

    /// Runs a packet that is at a place and has visited `hops` functions to its end; `looks` tells
    /// whether it may have a record for the rest of its path. Returns its destination, or `None` if
    /// the packet has taken a record, which has added the destination to `reached`. If the general
    /// walk must continue, returns where, and the number of functions that the packet has visited
    /// by then.
    #[inline(never)]
    fn rest(
        &mut self,
        (mut at, mut hops, mut looks): (At, u32, bool),
        (packet, layout): (&mut Packet, &mut Layout),
        now: u64,
        reached: &mut Vec<Reached>,
    ) -> Result<Option<Reached>, (Halt, u32)> {
        loop {
            match at {
                At::End(end) => return Ok(Some(end)),
                At::Leaves(interface) => {
                    self.chain_counters.leave(interface, 1);
                    return Ok(Some(Reached::Interface(interface)));
                }
                At::Point(point) => {
                    if looks {
                        match self.look(point, hops, (packet, layout), reached) {
                            Rest::Lacks => {}
                            Rest::Ended => return Ok(None),
                            Rest::Goes(onward) => {
                                (at, hops) = (At::Point(onward.point), onward.hops);
                                (looks, self.rests) = (onward.looks, true);
                                packet.parse_to(layout);
                                continue;
                            }
                        }
                    }
                    if !self.turn(point, layout.presence(), hops) {
                        return Err((Halt::At(at), hops));
                    }
                }
                At::Unlinked => return Err((Halt::At(at), hops)),
            }
            let ran = self.run(packet, layout, now).map_err(|halt| (halt, hops))?;
            (at, hops, looks) = (ran.0, hops.saturating_add(ran.1), ran.2);
        }
    }

    /// Looks for a flow record for the rest of the packet's path.
    fn look(
        &mut self,
        point: Point,
        hops: u32,
        (packet, layout): (&mut Packet, &Layout),
        reached: &mut Vec<Reached>,
    ) -> Rest {
        let Some((cache, first)) = &mut self.cache else { return Rest::Lacks };
        let at = reached.len() - *first;
        let host = &mut self.runner.host().cache_host(self.set, self.graph, self.wake);
        cache.run_rest(host, (point, at, hops), (packet, layout), reached)
    }
}
