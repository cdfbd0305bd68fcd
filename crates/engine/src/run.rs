//! Runs of residual programs: what is done where they end.

use crate::Compiled;
use crate::act::{Emission, Work};
use crate::exec::Exec;
use crate::plain::{self, Verdict};
use crate::walk::Walk;
use braid_ir::residual::{End, Exit, Fate};
use braid_ir::walk::{At, GONE};
use braid_jit::Ended;
use braid_packet::{Layout, Packet};

impl Compiled {
    /// A residual program runs on a packet.
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
        if let Some(native) = program.stage.next(&program.residual, functions) {
            let work = Work { packet, layout, emissions: &mut self.emissions };
            let counts = &program.counts;
            ended = native.run(&program.residual, words, functions, walk, work, counts);
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

    /// Does what the end of a program says. What it counts is counted.
    pub(crate) fn ended(
        &mut self,
        number: usize,
        ended: Ended,
        before: u64,
        packet: &mut Packet,
        walk: &mut Walk<'_>,
    ) -> At {
        // Taken, since what is sent meets programs as well.
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
                    return GONE;
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

    /// Does what the end of a program says where a function is done with a packet. What the end
    /// counts is counted.
    fn finish(
        &mut self,
        number: usize,
        block: usize,
        packet: &mut Packet,
        emissions: Vec<Emission>,
        walk: &mut Walk<'_>,
    ) -> At {
        let program = &self.programs.set.all[number].residual;
        let End::Exit(Exit { fate, .. }) = &program.blocks[block].end else { return GONE };
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
                GONE
            }
            Fate::Resubmit { node } => {
                let node = *node;
                packet.held = program.point.held && program.point.node == node;
                let mut act = self.functions.act_on(node, walk.worker, walk.out);
                let outcome = plain::on_resubmitted(&mut act, packet, 1, emissions);
                self.send(node, outcome.emissions, packet.backward, walk);
                self.settle(node, outcome.verdict, packet, walk)
            }
            Fate::Leave { .. } | Fate::Go(_) => GONE,
        }
    }
}
