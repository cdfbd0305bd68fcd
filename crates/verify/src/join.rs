//! Joins paths: several jumps to one block, and one state for all of them.

use braid_ir::chain::Chain;
use braid_ir::model::{QueueId, Target};

use crate::ops::{Run, State};
use crate::term::{Sort, Term, Terms};

/// A jump to a block: its condition, state and arguments.
pub(crate) struct Arrival {
    pub(crate) guard: Term,
    pub(crate) state: State,
    pub(crate) args: Vec<Term>,
}

/// Merges several paths into one.
pub(crate) fn merge(
    terms: &mut Terms,
    chain: &Chain,
    come: Vec<Arrival>,
) -> Option<(Term, State, Vec<Term>)> {
    let guards: Vec<_> = come.iter().map(|one| one.guard).collect();
    let guard = terms.or(&guards);
    if come.is_empty() || terms.decided(guard) == Some(false) {
        return None;
    }
    let (_, conds) = terms.factor(&guards);
    let states: Vec<_> = conds.iter().copied().zip(come.iter().map(|one| &one.state)).collect();
    let state = State::choose(terms, chain, &states);
    let mut args = come.last().map(|one| one.args.clone()).unwrap_or_default();
    for (cond, one) in conds.iter().zip(&come).rev().skip(1) {
        for (arg, other) in args.iter_mut().zip(&one.args) {
            *arg = terms.ite(*cond, *other, *arg);
        }
    }
    Some((guard, state, args))
}

/// Lets a program's run go on in another block, if a condition holds.
pub(crate) fn go(
    run: &mut Run<'_>,
    cond: Option<Term>,
    target: &Target,
    arrivals: &mut [Vec<Arrival>],
) -> Result<(), String> {
    let guard = match cond {
        Some(cond) => run.terms.both(run.guard, cond),
        None => run.guard,
    };
    if run.terms.decided(guard) == Some(false) {
        return Ok(());
    }
    let args = run.all(&target.args)?;
    let place = arrivals.get_mut(target.block.index()).ok_or("a jump to no block")?;
    place.push(Arrival { guard, state: run.state.clone(), args });
    Ok(())
}

/// Whether a queue has room.
pub(crate) fn queue_has_room(terms: &mut Terms, node: u16, queue: QueueId) -> Term {
    terms.var(format!("room in {node}.{queue}"), Sort::Bool)
}
