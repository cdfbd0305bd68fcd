//! Terminators of a model's blocks: branches are decided or kept, and packets end or go on.

use super::Synth;
use super::build::{Edge, Slot, Way, nowhere};
use super::mutants::SynthMutant;
use super::range::ends;
use super::values::{Def, Pure};
use super::visit::Visit;
use braid_ir::chain::Sink;
use braid_ir::graph::port;
use braid_ir::model::{CmpOp, Dest, RIGHT, Target, Term, ValueId};
use braid_ir::residual::{End, Fate, Point};

impl<'a> Synth<'a> {
    pub(super) fn term(&mut self, visit: &mut Visit<'a>, mut way: Way, term: &Term) {
        let node = visit.node();
        match term {
            Term::Jump(target) => {
                pass(visit, &mut way, target);
                visit.send(target.block, way.edge());
            }
            Term::Branch { cond, yes, no } => {
                let cond = self.value(&way, *cond);
                self.branch(visit, way, cond, yes, no);
            }
            Term::Output { ports, .. } => self.output(visit, way, ports),
            Term::Drop { reason, row } => {
                self.stats.unwritten += way.state.dirty();
                self.blocks.exit(&way, Fate::Drop { node, row: *row, reason: *reason });
            }
            Term::Consume { .. } => {
                self.stats.unwritten += way.state.dirty();
                self.blocks.exit(&way, Fate::Consume { node });
            }
            Term::Hold { queue, delay, full, .. } => {
                self.freshen(&mut way);
                let delay = self.value(&way, *delay);
                let counters = self.blocks.counters(way.state.counters());
                let (queue, to) = (*queue, nowhere());
                self.blocks.all[way.at].end = End::Hold { node, queue, delay, counters, full: to };
                pass(visit, &mut way, full);
                visit.send(full.block, Edge { from: way.at, slot: Slot::Full, state: way.state });
            }
            Term::Resubmit { .. } => self.leave(&mut way, Fate::Resubmit { node }),
            // Not in packet programs.
            Term::Return => self.blocks.exit(&way, Fate::Consume { node }),
        }
    }

    fn branch(
        &mut self,
        visit: &mut Visit<'a>,
        mut way: Way,
        cond: ValueId,
        yes: &Target,
        no: &Target,
    ) {
        let mut other = way.state.clone();
        let mut possible = [
            way.state.facts.decide(&self.values, cond, true),
            other.facts.decide(&self.values, cond, false),
        ];
        if self.has_mutant(SynthMutant::BoundOffByOne)
            && let Def::Pure(Pure::Cmp(CmpOp::Le, a, b)) = self.values.def(cond)
            && let Some((low, _)) = ends(&way.state.facts.range(&self.values, *a))
            && low > 0
            && self.values.known(*b) == Some(low)
        {
            possible[0] = false;
        }
        if let [true, true] = possible {
            let (to_yes, to_no) = (nowhere(), nowhere());
            self.blocks.all[way.at].end = End::Branch { cond, yes: to_yes, no: to_no };
            let mut gone = Way { at: way.at, state: other };
            pass(visit, &mut way, yes);
            pass(visit, &mut gone, no);
            visit.send(yes.block, Edge { from: way.at, slot: Slot::Yes, state: way.state });
            visit.send(no.block, Edge { from: gone.at, slot: Slot::No, state: gone.state });
            return;
        }
        self.stats.decided += 1;
        let target = if possible[0] { yes } else { no };
        if !possible[0] {
            way.state = other;
        }
        pass(visit, &mut way, target);
        visit.send(target.block, way.edge());
    }

    /// Sends the packet to these ports.
    fn output(&mut self, visit: &Visit<'_>, mut way: Way, ports: &[Dest]) {
        let node = visit.node();
        let sink = match ports {
            [dest] if !way.state.sent => self.graph.next(node, port(*dest, visit.point.backward)),
            _ => None,
        };
        match sink {
            None => self.leave(&mut way, Fate::Output { node, ports: ports.to_vec() }),
            Some(Sink::Interface(interface)) => self.leave(&mut way, Fate::Leave { interface }),
            Some(Sink::Port(next, to)) => {
                let point = Point { node: next, backward: to == RIGHT, held: false };
                match self.place.get(&point).copied().filter(|at| *at > visit.number) {
                    Some(at) => self.inbox[at].push(way.edge()),
                    None => self.leave(&mut way, Fate::Go(point)),
                }
            }
        }
    }

    /// Ends the program for a packet that continues elsewhere. Its bytes are brought up to date
    /// first.
    pub(super) fn leave(&mut self, way: &mut Way, fate: Fate) {
        match fate {
            Fate::Leave { .. } => self.flush(way),
            _ => self.freshen(way),
        }
        self.asked |= way.state.headers.asked;
        self.blocks.exit(way, fate);
    }
}

/// Gives a block its arguments.
pub(super) fn pass(visit: &Visit<'_>, way: &mut Way, target: &Target) {
    let args: Vec<ValueId> = target.args.iter().map(|arg| way.state.env[arg]).collect();
    let params = &visit.model.packet.blocks[target.block.index()].params;
    for (param, arg) in params.iter().zip(args) {
        way.state.env.insert(*param, arg);
    }
}
