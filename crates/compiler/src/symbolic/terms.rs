//! Terminators of a model's blocks: branches are decided or kept, and packets leave the function or
//! end.

use super::build::{Edge, Path, Slot, nowhere};
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
    mut path: Path,
    term: &Term,
) {
    let node = visit.node();
    match term {
        Term::Jump(target) => {
            visit.pass(&mut path, target);
            visit.send(target.block, path.edge());
        }
        Term::Branch { cond, yes, no } => {
            let cond = path.value(*cond);
            branch(draft, visit, path, cond, yes, no);
        }
        Term::Output { ports, .. } => output(draft, points, visit, path, ports),
        Term::Drop { reason, row } => {
            draft.stats.unwritten += path.state.dirty();
            draft.blocks.exit(&path, Fate::Drop { node, row: *row, reason: *reason });
        }
        Term::Consume { .. } => {
            draft.stats.unwritten += path.state.dirty();
            draft.blocks.exit(&path, Fate::Consume { node });
        }
        Term::Hold { queue, delay, full, .. } => {
            freshen(draft, &mut path);
            let delay = path.value(*delay);
            let counters = draft.blocks.counters(path.state.counters());
            let (queue, to) = (*queue, nowhere());
            draft.blocks.all[path.at].end = End::Hold { node, queue, delay, counters, full: to };
            visit.pass(&mut path, full);
            visit.send(full.block, Edge { from: path.at, slot: Slot::Full, state: path.state });
        }
        Term::Resubmit { .. } => leave(draft, &mut path, Fate::Resubmit { node }),
        Term::Return if let Some(event) = &mut visit.event => event.ended.push(path.edge()),
        // Not in packet programs.
        Term::Return | Term::Reset { .. } | Term::Bypass { .. } | Term::Resume { .. } => {
            draft.blocks.exit(&path, Fate::Consume { node })
        }
    }
}

fn branch(
    draft: &mut Draft,
    visit: &mut Visit<'_>,
    mut path: Path,
    cond: ValueId,
    yes: &Target,
    no: &Target,
) {
    let mut other = path.state.clone();
    let mut possible = [
        path.state.facts.decide(&draft.values, cond, true),
        other.facts.decide(&draft.values, cond, false),
    ];
    if draft.has_mutant(SynthMutant::BoundOffByOne)
        && let Def::Pure(Pure::Cmp(CmpOp::Le, a, b)) = draft.values.def(cond)
        && let Some((low, _)) = ends(&path.state.facts.range(&draft.values, *a))
        && low > 0
        && draft.values.known(*b) == Some(low)
    {
        possible[0] = false;
    }
    if let [true, true] = possible {
        let (to_yes, to_no) = (nowhere(), nowhere());
        draft.blocks.all[path.at].end = End::Branch { cond, yes: to_yes, no: to_no };
        let mut gone = Path { at: path.at, state: other };
        visit.pass(&mut path, yes);
        visit.pass(&mut gone, no);
        visit.send(yes.block, Edge { from: path.at, slot: Slot::Yes, state: path.state });
        visit.send(no.block, Edge { from: gone.at, slot: Slot::No, state: gone.state });
        return;
    }
    draft.stats.decided += 1;
    let target = if possible[0] { yes } else { no };
    if !possible[0] {
        path.state = other;
    }
    visit.pass(&mut path, target);
    visit.send(target.block, path.edge());
}

/// Sends the packet to these ports.
fn output(
    draft: &mut Draft,
    points: &mut Points<'_>,
    visit: &Visit<'_>,
    mut path: Path,
    ports: &[Dest],
) {
    let node = visit.node();
    let sink = match ports {
        [dest] if !path.state.sent => points.sink(visit.number, *dest),
        _ => None,
    };
    match sink {
        None => leave(draft, &mut path, Fate::Output { node, ports: ports.to_vec() }),
        Some(Sink::Interface(interface)) => leave(draft, &mut path, Fate::Leave { interface }),
        Some(Sink::Port(next, to)) => {
            let point = Point { node: next, backward: to == RIGHT, held: false };
            match points.later(visit.number, point) {
                Some(at) => points.send(at, path.edge()),
                None => leave(draft, &mut path, Fate::Go(point)),
            }
        }
    }
}
