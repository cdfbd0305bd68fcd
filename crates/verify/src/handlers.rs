//! The handlers of events, in the original chain: they run right behind the operation that
//! publishes the event.

use braid_ir::chain::Chain;
use braid_ir::model::{EventArg, EventId, Op, Term as Ending};
use braid_ir::residual::Counter;
use braid_ir::subscriptions::Subscriber;

use crate::join::{Arrival, go, merge};
use crate::ops::{Run, State};
use crate::term::{Term, Terms};

/// Runs the handlers of an event that a program has just published.
pub(crate) fn deliver(run: &mut Run<'_>, event: EventId, args: &[EventArg]) -> Result<(), String> {
    let field = |arg: &EventArg| match arg {
        EventArg::Value(id) => run.value(*id).map(Some),
        EventArg::Str(_) | EventArg::Bytes(_) | EventArg::Param(_) => Ok(None),
    };
    let fields = args.iter().map(field).collect::<Result<Vec<_>, _>>()?;
    for taker in run.subscriptions.inlined(run.node, event) {
        handler(run, *taker, &fields)?;
    }
    Ok(())
}

/// Runs one handler for an event with these fields. Texts have no value.
fn handler(
    run: &mut Run<'_>,
    Subscriber { node, handler }: Subscriber,
    fields: &[Option<Term>],
) -> Result<(), String> {
    let chain = run.chain;
    let (_, program) =
        chain.nodes[usize::from(node)].model.handlers.get(handler).ok_or("no such handler")?;
    let mut arrivals: Vec<Vec<Arrival>> = program.blocks.iter().map(|_| Vec::new()).collect();
    let first = arrivals.first_mut().ok_or("a handler without blocks")?;
    first.push(Arrival { guard: run.guard, state: run.state.clone(), args: Vec::new() });
    let mut values = vec![None; program.values.len()];
    let mut ended = Vec::new();
    for (block, here) in program.blocks.iter().zip(0..) {
        let come = std::mem::take(&mut arrivals[here]);
        let Some((guard, state, args)) = merge(run.terms, chain, come) else { continue };
        let mut inner = Run {
            terms: run.terms,
            chain,
            subscriptions: run.subscriptions,
            kind: run.kind,
            node,
            types: &program.values,
            values: std::mem::take(&mut values),
            guard,
            entry: Some(state.packet.clone()),
            state,
            touches: run.touches,
        };
        for (param, arg) in block.params.iter().zip(args) {
            inner.define(*param, arg)?;
        }
        for op in &block.ops {
            step(&mut inner, op, fields, &mut ended)?;
        }
        match &block.term {
            Ending::Jump(target) => go(&mut inner, None, target, &mut arrivals)?,
            Ending::Branch { cond, yes, no } => {
                let cond = inner.value(*cond)?;
                let cond = inner.terms.truth(cond);
                let not = inner.terms.not(cond);
                go(&mut inner, Some(cond), yes, &mut arrivals)?;
                go(&mut inner, Some(not), no, &mut arrivals)?;
            }
            _ => ended.push(Arrival {
                guard: inner.guard,
                state: inner.state.clone(),
                args: Vec::new(),
            }),
        }
        values = inner.values;
    }
    if let Some((_, state, _)) = merge(run.terms, chain, ended) {
        run.state = state;
    }
    Ok(())
}

/// Runs an operation of a handler. Its faults end the handler.
fn step(
    run: &mut Run<'_>,
    op: &Op,
    fields: &[Option<Term>],
    ended: &mut Vec<Arrival>,
) -> Result<(), String> {
    if let Op::LoadEvent { out, field } = op {
        let value = fields.get(*field as usize).copied().flatten();
        return run.define(*out, value.ok_or("a handler reads a text")?);
    }
    let before = run.state.clone();
    for (when, _) in run.op(op)? {
        let fails = run.terms.both(run.guard, when);
        let holds = run.terms.not(when);
        run.guard = run.terms.both(run.guard, holds);
        let mut state = before.clone();
        count_fault(run.terms, run.chain, run.node, &mut state);
        ended.push(Arrival { guard: fails, state, args: Vec::new() });
    }
    match op {
        Op::Emit { event, args } => deliver(run, *event, args),
        _ => Ok(()),
    }
}

/// Counts a fault of a handler.
fn count_fault(terms: &mut Terms, chain: &Chain, node: u16, state: &mut State) {
    let grown = state.packet.grown;
    state.world.count(terms, chain, (node, Counter::Background), grown);
}
