//! Terminators of a model's blocks: branches are decided or kept, and packets leave the function or
//! end.

use super::build::{Edge, Slot, Way, nowhere};
use super::draft::Draft;
use super::mutants::SynthMutant;
use super::points::Points;
use super::range::ends;
use super::values::{Def, Pure};
use super::visit::Visit;
use super::write::{freshen, leave};
use braid_ir::chain::Sink;
use braid_ir::model::{CmpOp, Dest, RIGHT, Target, Term, ValueId};
use braid_ir::residual::{End, Fate, Point};

/// Ends a block of the function. The path goes on to later blocks or points, or ends.
pub(super) fn term(
    draft: &mut Draft,
    points: &mut Points<'_>,
    visit: &mut Visit<'_>,
    mut way: Way,
    term: &Term,
) {
    let node = visit.node();
    match term {
        Term::Jump(target) => {
            visit.pass(&mut way, target);
            visit.send(target.block, way.edge());
        }
        Term::Branch { cond, yes, no } => {
            let cond = way.value(*cond);
            branch(draft, visit, way, cond, yes, no);
        }
        Term::Output { ports, .. } => output(draft, points, visit, way, ports),
        Term::Drop { reason, row } => {
            draft.stats.unwritten += way.state.dirty();
            draft.blocks.exit(&way, Fate::Drop { node, row: *row, reason: *reason });
        }
        Term::Consume { .. } => {
            draft.stats.unwritten += way.state.dirty();
            draft.blocks.exit(&way, Fate::Consume { node });
        }
        Term::Hold { queue, delay, full, .. } => {
            freshen(draft, &mut way);
            let delay = way.value(*delay);
            let counters = draft.blocks.counters(way.state.counters());
            let (queue, to) = (*queue, nowhere());
            draft.blocks.all[way.at].end = End::Hold { node, queue, delay, counters, full: to };
            visit.pass(&mut way, full);
            visit.send(full.block, Edge { from: way.at, slot: Slot::Full, state: way.state });
        }
        Term::Resubmit { .. } => leave(draft, &mut way, Fate::Resubmit { node }),
        // Not in packet programs.
        Term::Return => draft.blocks.exit(&way, Fate::Consume { node }),
    }
}

fn branch(
    draft: &mut Draft,
    visit: &mut Visit<'_>,
    mut way: Way,
    cond: ValueId,
    yes: &Target,
    no: &Target,
) {
    let mut other = way.state.clone();
    let mut possible = [
        way.state.facts.decide(&draft.values, cond, true),
        other.facts.decide(&draft.values, cond, false),
    ];
    if draft.has_mutant(SynthMutant::BoundOffByOne)
        && let Def::Pure(Pure::Cmp(CmpOp::Le, a, b)) = draft.values.def(cond)
        && let Some((low, _)) = ends(&way.state.facts.range(&draft.values, *a))
        && low > 0
        && draft.values.known(*b) == Some(low)
    {
        possible[0] = false;
    }
    if let [true, true] = possible {
        let (to_yes, to_no) = (nowhere(), nowhere());
        draft.blocks.all[way.at].end = End::Branch { cond, yes: to_yes, no: to_no };
        let mut gone = Way { at: way.at, state: other };
        visit.pass(&mut way, yes);
        visit.pass(&mut gone, no);
        visit.send(yes.block, Edge { from: way.at, slot: Slot::Yes, state: way.state });
        visit.send(no.block, Edge { from: gone.at, slot: Slot::No, state: gone.state });
        return;
    }
    draft.stats.decided += 1;
    let target = if possible[0] { yes } else { no };
    if !possible[0] {
        way.state = other;
    }
    visit.pass(&mut way, target);
    visit.send(target.block, way.edge());
}

/// Sends the packet to these ports.
fn output(
    draft: &mut Draft,
    points: &mut Points<'_>,
    visit: &Visit<'_>,
    mut way: Way,
    ports: &[Dest],
) {
    let node = visit.node();
    let sink = match ports {
        [dest] if !way.state.sent => points.sink(visit.number, *dest),
        _ => None,
    };
    match sink {
        None => leave(draft, &mut way, Fate::Output { node, ports: ports.to_vec() }),
        Some(Sink::Interface(interface)) => leave(draft, &mut way, Fate::Leave { interface }),
        Some(Sink::Port(next, to)) => {
            let point = Point { node: next, backward: to == RIGHT, held: false };
            match points.later(visit.number, point) {
                Some(at) => points.send(at, way.edge()),
                None => leave(draft, &mut way, Fate::Go(point)),
            }
        }
    }
}
