//! The general walk: takes a packet from function to function along the links. One walk at a time:
//! the next one begins when this one has ended.
#![expect(
    clippy::indexing_slicing,
    reason = "this engine and its chain number the programs, blocks and functions"
)]

use crate::branches;
use crate::deliver::deliver;
use crate::exec::Exec;
use crate::executor::Executor;
use crate::held::Held;
use crate::hot::Halt;
use crate::instance::count;
use crate::machine_code::Stage;
use crate::model_interpreter::{self, FOR_EVENTS, Outcome, Verdict};
use crate::passing::Passing;
use crate::streams;
use crate::work::{Emission, Origin, Walk, Work};
use braid_ir::chain::Malformed;
use braid_ir::engine::{LOST_HOP_LIMIT, LOST_UNLINKED, Outputs, malformed_loss};
use braid_ir::model::Dest;
use braid_ir::residual::{End, Exit, Fate, Point};
use braid_ir::walk::{At, ENDED, Reached, fits, onward};
use braid_jit::Ended;
use braid_packet::{Header, Layout, Packet};
use std::sync::Arc;

impl Executor {
    /// Begins the walk of another packet.
    pub(crate) fn begin_walk(&mut self) {
        self.functions.stacks.next_packet();
        self.functions.store.begin();
    }

    /// The first place of packets that enter at an interface.
    pub(crate) fn entry(&self, ingress: u16) -> At {
        onward(self.graph.entry(ingress))
    }

    /// Takes a packet on from where the compiled run stopped, by the general walk. Returns its
    /// destination. The error is a point where the packet may have a record for the rest of its
    /// path. The layout then fits the packet.
    #[inline(never)]
    pub(crate) fn go_on(
        &mut self,
        halt: Halt,
        entry: At,
        packet: &mut Packet,
        layout: &mut Layout,
        walk: &mut Walk<'_>,
    ) -> Result<Reached, Point> {
        match halt {
            Halt::Entering => {
                self.advance_to(packet.time_ns, walk.out);
                self.start_timers();
                self.begin_walk();
                packet.time_ns = self.functions.now;
                self.walk_in(entry, packet, layout, walk)
            }
            Halt::At(at) => {
                packet.parse_to(layout);
                self.travel_parsed(at, packet, layout, walk)
            }
            Halt::Rest(point) => {
                packet.parse_to(layout);
                Err(point)
            }
            Halt::Ended { number, ended } => {
                let at = self.ended(number, ended, 0, packet, walk);
                packet.parse_to(layout);
                self.travel_parsed(at, packet, layout, walk)
            }
        }
    }

    /// Walks a packet that has entered to its end. The error is as for [`Self::go_on`].
    fn walk_in(
        &mut self,
        entry: At,
        packet: &mut Packet,
        layout: &mut Layout,
        walk: &mut Walk<'_>,
    ) -> Result<Reached, Point> {
        (walk.hops, walk.worker) = (0, self.functions.chain.worker(packet, layout));
        if self.functions.chain.malformed == Malformed::Drop
            && let Some(reason) = layout.malformed()
        {
            self.chain_counters.lose(reason);
            return Ok(Reached::Ended);
        }
        self.travel_parsed(entry, packet, layout, walk)
    }

    /// Prefetches the memory that entering packets without a flow record will probably look up
    /// first.
    pub(crate) fn prefetch(
        &mut self,
        (packets, layouts): (&mut [Packet], &mut [Layout]),
        has_record: impl Fn(usize) -> bool,
        out: &mut dyn Outputs,
    ) {
        if !self.functions.store.is_large() && !self.functions.prefetch.is_used {
            return;
        }
        let mut from = 0;
        for run in packets.chunk_by_mut(|one, next| one.ingress == next.ingress) {
            let range = from..from + run.len();
            from = range.end;
            let entry = self.entry(run[0].ingress);
            let has_record = |at| has_record(range.start + at);
            self.prefetch_run(entry, (run, &mut layouts[range.clone()]), has_record, out);
        }
        self.functions.prefetch.answer(&self.functions.instances);
        self.functions.store.fetch();
    }

    /// Prefetches for packets that enter at one place.
    fn prefetch_run(
        &mut self,
        entry: At,
        (packets, layouts): (&mut [Packet], &mut [Layout]),
        has_record: impl Fn(usize) -> bool,
        out: &mut dyn Outputs,
    ) {
        let At::Point(point) = entry else { return };
        let Some((shape, program)) = self.programs.last(point) else { return };
        if !program.prefetches() {
            return;
        }
        let all = packets.iter_mut().zip(layouts).enumerate();
        let runs =
            all.filter(|(at, (_, layout))| !has_record(*at) && shape.fits(layout.presence()));
        let packets = runs.map(|(_, packet)| packet);
        program.prefetch(&mut self.functions, packets, out, &mut self.emissions);
    }

    /// Takes a packet further until it leaves or ends. Returns its destination.
    pub(crate) fn travel(
        &mut self,
        mut at: At,
        packet: &mut Packet,
        walk: &mut Walk<'_>,
    ) -> Reached {
        let mut layout = packet.parse();
        self.begin_walk();
        loop {
            match self.travel_parsed(at, packet, &mut layout, walk) {
                Ok(reached) => return reached,
                Err(point) => at = At::Point(point),
            }
        }
    }

    /// As [`Self::travel`], for a packet with a parsed layout. The layout is borrowed, because
    /// copying it right after the parse would cost more than the parse. The error is as for
    /// [`Self::go_on`].
    fn travel_parsed(
        &mut self,
        mut at: At,
        packet: &mut Packet,
        layout: &mut Layout,
        walk: &mut Walk<'_>,
    ) -> Result<Reached, Point> {
        loop {
            match at {
                At::Point(point) => {
                    let looks;
                    (at, looks) = self.visit(point, packet, layout, walk);
                    if let At::Point(next) = at
                        && looks
                        && walk.records
                    {
                        return Err(next);
                    }
                }
                At::End(reached) => return Ok(reached),
                At::Leaves(interface) => {
                    self.chain_counters.leave(interface, 1);
                    return Ok(Reached::Interface(interface));
                }
                At::Unlinked => {
                    self.chain_counters.lose(LOST_UNLINKED);
                    return Ok(Reached::Ended);
                }
            }
        }
    }

    /// Runs the function that a packet enters, or several functions under `Priority`. The layout
    /// fits the packet before and, if the packet enters another function, afterwards. Returns the
    /// packet's place, and whether it may have a record from there on.
    fn visit(
        &mut self,
        point: Point,
        packet: &mut Packet,
        layout: &mut Layout,
        walk: &mut Walk<'_>,
    ) -> (At, bool) {
        packet.backward = point.backward;
        packet.held = point.held;
        if walk.watcher.is_none()
            && !self.graph.goes_to_stack(point.node, layout.presence())
            && let Some(number) = self.find_program(point, layout.presence())
            && fits(walk.hops, self.programs.set.all[number].residual.visits)
        {
            let at = self.run_program(number, packet, layout, walk);
            let looks = self.programs.set.all[number].is_beyond_records;
            return (parsed(at, packet, layout), looks);
        }
        let node = point.node;
        let at = match self.graph.branches(node, point.backward) {
            None => {
                // A stream function does not change packets.
                if self.functions.chain.nodes[usize::from(node)].model.is_stream() {
                    let at = match walk.watcher.is_none() && layout.has(Header::Tcp) {
                        true => self.run_stream(node, packet, layout, walk),
                        false => self.run_plain(node, packet, Some(layout), walk),
                    };
                    return (at, true);
                }
                self.run_plain(node, packet, None, walk)
            }
            Some(all) => {
                let all = Arc::clone(all);
                branches::run(self, &all, packet, walk)
            }
        };
        let looks = walk.rests || self.records_nothing(point.node, walk.worker);
        (parsed(at, packet, layout), looks)
    }

    /// Whether a function is native and has recorded nothing, so that records end in front of it.
    fn records_nothing(&self, node: u16, worker: u16) -> bool {
        let instance = &self.functions.instances[usize::from(node)];
        let shard = instance.shards.get(usize::from(instance.shard(worker)));
        let native = shard.and_then(|shard| shard.native.as_ref());
        native.is_some_and(|native| !native.has_recorded())
    }

    /// Gives a TCP packet to the stack of a stream function. The interpreter runs only for packets
    /// that the stack does not let pass.
    fn run_stream(
        &mut self,
        node: u16,
        packet: &mut Packet,
        layout: &mut Layout,
        walk: &mut Walk<'_>,
    ) -> At {
        let passing = self.functions.stacks.passing(node).filter(|_| fits(walk.hops, 1));
        let Some(Passing { row, port }) = passing else {
            return self.run_plain(node, packet, Some(layout), walk);
        };
        let mut context = self.functions.context_of(node, walk.worker, walk.out);
        let answer = streams::pass(&mut context, (packet, layout), &FOR_EVENTS);
        if answer.verdict != 0 {
            self.functions.scratch.answer = Some(answer);
            return self.run_plain(node, packet, Some(layout), walk);
        }
        deliver(&mut self.functions, walk.out);
        walk.hops += 1;
        self.count_entry(node, packet);
        self.functions.instances[usize::from(node)].count_row(row, packet.wire_len.into());
        self.output(node, &[port], packet, walk)
    }

    /// Runs one function on a packet by the model interpreter, with the packet's layout if it is
    /// known.
    pub(crate) fn run_plain(
        &mut self,
        node: u16,
        packet: &mut Packet,
        layout: Option<&mut Layout>,
        walk: &mut Walk<'_>,
    ) -> At {
        if !fits(walk.hops, 1) {
            self.chain_counters.lose(LOST_HOP_LIMIT);
            return ENDED;
        }
        walk.hops += 1;
        self.count_entry(node, packet);
        walk.enters(node, packet);
        let outcome = self.plain_outcome(node, packet, layout, walk);
        self.send(node, outcome.emissions, packet.backward, walk);
        self.settle(node, outcome.verdict, packet, walk)
    }

    /// Counts a packet that enters a function, unless it comes from a queue of the function.
    pub(crate) fn count_entry(&mut self, node: u16, packet: &Packet) {
        let counters = &mut self.functions.instances[usize::from(node)].counters;
        match (packet.held, packet.backward) {
            (true, _) => {}
            (false, true) => count(&mut counters.backward, packet.wire_len.into()),
            (false, false) => count(&mut counters.forward, packet.wire_len.into()),
        }
    }

    pub(crate) fn plain_outcome(
        &mut self,
        node: u16,
        packet: &mut Packet,
        layout: Option<&mut Layout>,
        walk: &mut Walk<'_>,
    ) -> Outcome {
        let mut act = self.functions.context_of(node, walk.worker, walk.out);
        let mut own = None;
        let layout = layout.unwrap_or_else(|| own.insert(packet.parse()));
        let outcome = model_interpreter::on_packet(&mut act, packet, layout);
        deliver(&mut self.functions, walk.out);
        outcome
    }

    /// Runs the packets that a function sent during its run to their ends.
    pub(crate) fn send(
        &mut self,
        node: u16,
        emissions: Vec<Emission>,
        backward: bool,
        walk: &mut Walk<'_>,
    ) {
        for Emission { dest, mut packet, origin } in emissions {
            match origin {
                Origin::Copied => self.chain_counters.copied += 1,
                Origin::Built | Origin::Made => self.chain_counters.created += 1,
            }
            if origin == Origin::Made
                && let Some(reason) = malformed_loss(&packet, self.functions.chain.malformed)
            {
                self.chain_counters.lose(reason);
                continue;
            }
            self.deliver(node, dest, &mut packet, backward, walk);
        }
    }

    /// Runs a copy or a new packet from a function to its end.
    fn deliver(
        &mut self,
        node: u16,
        dest: Dest,
        packet: &mut Packet,
        backward: bool,
        walk: &mut Walk<'_>,
    ) {
        walk.leaves(node, packet);
        let at = onward(self.graph.leads(node, dest, backward));
        if let Reached::Interface(interface) = self.travel(at, packet, walk) {
            walk.out.packet(interface, std::mem::replace(packet, nothing()));
        }
    }

    /// Sends a packet out of a function's ports. All ports but the last get copies.
    pub(crate) fn output(
        &mut self,
        node: u16,
        ports: &[Dest],
        packet: &mut Packet,
        walk: &mut Walk<'_>,
    ) -> At {
        let backward = packet.backward;
        let Some((last, others)) = ports.split_last() else { return ENDED };
        for dest in others {
            self.chain_counters.copied += 1;
            self.deliver(node, *dest, &mut packet.clone(), backward, walk);
        }
        walk.leaves(node, packet);
        onward(self.graph.leads(node, *last, backward))
    }

    /// Carries out a function's verdict on a packet.
    pub(crate) fn settle(
        &mut self,
        node: u16,
        verdict: Verdict,
        packet: &mut Packet,
        walk: &mut Walk<'_>,
    ) -> At {
        match verdict {
            Verdict::Output(ports) => return self.output(node, &ports, packet, walk),
            Verdict::Drop(row, reason) => {
                let reason =
                    &self.functions.instances[usize::from(node)].model.reasons[reason.index()];
                self.chain_counters.count_drop(node, row, reason, 1);
            }
            Verdict::Fault(fault) => {
                let row = self.functions.instances[usize::from(node)].fault_row();
                self.chain_counters.count_drop(node, row, fault.reason(), 1);
            }
            Verdict::Consume => self.chain_counters.consumed += 1,
            Verdict::Hold { queue, until_ns } => {
                let packet = std::mem::replace(packet, nothing());
                let held = Held { packet, hops: walk.hops, worker: walk.worker };
                self.hold(node, queue, until_ns, held);
            }
        }
        ENDED
    }

    /// Runs a residual program on a packet.
    pub(crate) fn run_program(
        &mut self,
        number: usize,
        packet: &mut Packet,
        layout: &mut Layout,
        walk: &mut Walk<'_>,
    ) -> At {
        let program = &mut self.programs.set.all[number];
        let before = program.mark();
        let functions = &mut self.functions;
        let words = &mut *self.programs.words;
        let mut ended = None;
        let machine_code = match &self.workshop {
            None => program.stage.next(&program.residual, functions),
            Some(workshop) => {
                if program.stage.is_to_order() && workshop.order_code(number, &program.residual) {
                    program.stage = Stage::Ordered;
                }
                program.stage.machine_code()
            }
        };
        if let Some(machine_code) = machine_code {
            let work = Work { packet, layout, emissions: &mut self.emissions };
            let counts = &program.counts;
            ended = machine_code.run(&program.residual, words, functions, walk, work, counts);
        }
        let ended = ended.unwrap_or_else(|| {
            let mut exec = Exec {
                functions,
                worker: walk.worker,
                out: walk.out,
                work: Work { packet, layout, emissions: &mut self.emissions },
                counts: &program.counts,
            };
            exec.run(&program.residual, words)
        });
        if let Ended::End(block) = ended
            && self.emissions.is_empty()
            && let Some(at) = program.pass(block as usize, before, &mut walk.hops)
        {
            return at;
        }
        self.ended(number, ended, before, packet, walk)
    }

    /// Carries out the end of a program. The end has already been counted.
    pub(crate) fn ended(
        &mut self,
        number: usize,
        ended: Ended,
        before: u64,
        packet: &mut Packet,
        walk: &mut Walk<'_>,
    ) -> At {
        // The emissions are moved out, because programs that run on them use the same vector.
        let emissions = std::mem::take(&mut self.emissions);
        let program = &mut self.programs.set.all[number];
        match ended {
            Ended::End(block) => {
                let block = block as usize;
                program.ends[block].reached.update(|times| times + 1);
                walk.hops += program.hops(block, None, before);
                packet.backward = program.ends_backward(block);
                self.finish(number, block, packet, emissions, walk)
            }
            Ended::Hold { block, delay } => {
                let block = block as usize;
                walk.hops += program.hops(block, None, before);
                packet.backward = program.ends_backward(block);
                let End::Hold { node, queue, .. } = program.residual.blocks[block].end else {
                    return ENDED;
                };
                let until_ns = self.functions.now.saturating_add(delay);
                self.send(node, emissions, packet.backward, walk);
                self.settle(node, Verdict::Hold { queue, until_ns }, packet, walk)
            }
            Ended::Fault { block, step, fault } => {
                let (block, at) = (block as usize, step as usize);
                walk.hops += program.hops(block, Some(at), before);
                let step = &program.residual.blocks[block].steps[at];
                let node = step.site.node;
                packet.backward = program.faults_backward(node, step.fault);
                self.send(node, emissions, packet.backward, walk);
                self.settle(node, Verdict::Fault(fault), packet, walk)
            }
        }
    }

    /// Carries out a packet's fate at the end of a program. The end has already been counted.
    fn finish(
        &mut self,
        number: usize,
        block: usize,
        packet: &mut Packet,
        emissions: Vec<Emission>,
        walk: &mut Walk<'_>,
    ) -> At {
        let program = &self.programs.set.all[number].residual;
        let End::Exit(Exit { fate, .. }) = &program.blocks[block].end else { return ENDED };
        match fate {
            Fate::Output { node, ports } => {
                let node = *node;
                if let [port] = **ports {
                    self.send(node, emissions, packet.backward, walk);
                    return self.output(node, &[port], packet, walk);
                }
                let ports = ports.clone();
                self.send(node, emissions, packet.backward, walk);
                self.output(node, &ports, packet, walk)
            }
            Fate::Drop { node, .. } | Fate::Fault { node, .. } | Fate::Consume { node } => {
                let node = *node;
                self.send(node, emissions, packet.backward, walk);
                ENDED
            }
            Fate::Resubmit { node } => {
                let node = *node;
                packet.held = program.point.held && program.point.node == node;
                let mut layout = packet.parse();
                let mut act = self.functions.context_of(node, walk.worker, walk.out);
                let at_hand = (&mut *packet, &mut layout);
                let outcome = model_interpreter::on_resubmitted(&mut act, at_hand, 1, emissions);
                deliver(&mut self.functions, walk.out);
                self.send(node, outcome.emissions, packet.backward, walk);
                self.settle(node, outcome.verdict, packet, walk)
            }
            Fate::Leave { .. } | Fate::Go(_) => ENDED,
        }
    }
}

/// A placeholder for a packet that was moved.
fn nothing() -> Packet {
    Packet::new(braid_packet::Link::RawIp, 0, Vec::new())
}

/// The place of a packet, which is parsed if it enters another function.
fn parsed(at: At, packet: &Packet, layout: &mut Layout) -> At {
    if let At::Point(_) = at {
        packet.parse_to(layout);
    }
    at
}
