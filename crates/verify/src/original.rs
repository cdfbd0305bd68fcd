//! The original chain: the models' packet programs, function by function along the links.

use std::collections::BTreeMap;

use braid_ir::chain::{Chain, Sink};
use braid_ir::graph::{Graph, port};
use braid_ir::model::{Op, RIGHT, RowId, Term as Ending};
use braid_ir::residual::{Counter, Point};
use braid_ir::subscriptions::Subscriptions;

use crate::ends::{Done, Path, Stop};
use crate::handlers::deliver;
use crate::join::{Arrival, go, merge, queue_has_room};
use crate::ops::{Run, State};
use crate::packet::Kind;
use crate::term::{Term, Terms};
use crate::world::Touch;

/// A walk along the chain.
pub(crate) struct Walk<'a> {
    pub(crate) terms: &'a mut Terms,
    pub(crate) chain: &'a Chain,
    pub(crate) subscriptions: &'a Subscriptions,
    pub(crate) graph: &'a Graph,
    pub(crate) kind: &'a Kind,
    /// The paths of the program to compare with. The walk stops where they stop.
    pub(crate) paths: &'a [Path],
    /// The most functions to visit.
    pub(crate) most: u32,
    pub(crate) touches: Vec<Touch>,
    pub(crate) stops: Vec<Stop>,
}

/// Packets that enter functions, by the point where they enter.
type Arrivals = BTreeMap<Point, Vec<(Term, State)>>;

impl Walk<'_> {
    /// Walks from a point until every packet has stopped.
    pub(crate) fn run(&mut self, point: Point, state: State) -> Result<(), String> {
        let always = self.terms.bool(true);
        let mut now = Arrivals::from([(point, vec![(always, state)])]);
        let mut visits = u32::from(!point.held);
        while !now.is_empty() {
            let mut next = Arrivals::new();
            for (point, arrivals) in now {
                self.visit(point, arrivals, visits, &mut next)?;
            }
            now = next;
            visits += 1;
        }
        Ok(())
    }

    fn visit(
        &mut self,
        point: Point,
        arrivals: Vec<(Term, State)>,
        visits: u32,
        next: &mut Arrivals,
    ) -> Result<(), String> {
        let (guard, mut state) = meet(self.terms, self.chain, &arrivals);
        if self.terms.decided(guard) == Some(false) {
            return Ok(());
        }
        self.enter(point, &mut state);
        for (guard, state, done) in self.function(point, guard, state)? {
            let sink = match &done {
                Done::Output(ports) if ports.len() == 1 => {
                    self.graph.next(point.node, port(ports[0], point.backward))
                }
                _ => None,
            };
            let stop = Stop {
                guard,
                state,
                node: point.node,
                backward: point.backward,
                visits: u128::from(visits),
                done,
                next: sink,
            };
            self.settle(stop, visits, next);
        }
        Ok(())
    }

    /// Applies the counts and resets of a packet's entry into a function.
    fn enter(&mut self, point: Point, state: &mut State) {
        let (terms, chain) = (&mut *self.terms, self.chain);
        state.packet.backward = terms.bits(1, u128::from(point.backward));
        state.packet.held = terms.bits(1, u128::from(point.held));
        state.world.sends = terms.bool(false);
        state.world.keep(terms, chain, point.node);
        let keep = state.world.keeps.get_mut(&point.node);
        if let Some(keep) = keep {
            keep.forget(terms);
        }
        if !point.held {
            let counter = if point.backward { Counter::Backward } else { Counter::Forward };
            let grown = state.packet.grown;
            state.world.count(terms, chain, (point.node, counter), grown);
        }
    }

    /// Decides where the walk stops and where it continues.
    fn settle(&mut self, stop: Stop, visits: u32, next: &mut Arrivals) {
        let mut left = stop.guard;
        for path in self.paths.iter().filter(|path| path.stops_at(&stop)) {
            let number = self.terms.bits(16, stop.visits);
            let here = self.terms.eq(path.visits, number);
            let stops = self.terms.both(path.guard, here);
            let goes_on = self.terms.not(stops);
            left = self.terms.both(left, goes_on);
        }
        let entered = match stop.next {
            Some(Sink::Port(node, at)) if self.graph.has_programs(node) => {
                Some(Point { node, backward: at == RIGHT, held: false })
            }
            _ => None,
        };
        if let Some(point) = entered
            && self.terms.decided(left) != Some(false)
            && visits < self.most
        {
            // Programs leave packets to the stack of a stream function.
            let mut left = left;
            for header in self.graph.stacked(point.node) {
                let has = self.kind.has(self.terms, &stop.state.packet, *header);
                let lacks = self.terms.not(has);
                left = self.terms.both(left, lacks);
            }
            // A function that sends packets is the last function of a program that reaches it.
            let quiet = self.terms.not(stop.state.world.sends);
            let guard = self.terms.both(left, quiet);
            next.entry(point).or_default().push((guard, stop.state.clone()));
        }
        self.stops.push(stop);
    }

    /// Runs one function. Returns its ends with their conditions and states.
    fn function(
        &mut self,
        point: Point,
        guard: Term,
        state: State,
    ) -> Result<Vec<(Term, State, Done)>, String> {
        let chain = self.chain;
        let program = &chain.nodes[usize::from(point.node)].model.packet;
        let entry = state.packet.clone();
        let mut values = vec![None; program.values.len()];
        let mut arrivals: Vec<Vec<Arrival>> = program.blocks.iter().map(|_| Vec::new()).collect();
        if let Some(first) = arrivals.first_mut() {
            first.push(Arrival { guard, state, args: Vec::new() });
        }
        let mut ends = Vec::new();
        for (block, here) in program.blocks.iter().zip(0..) {
            let come = std::mem::take(&mut arrivals[here]);
            let Some((guard, state, args)) = merge(self.terms, self.chain, come) else { continue };
            let mut run = Run {
                terms: self.terms,
                chain: self.chain,
                subscriptions: self.subscriptions,
                kind: self.kind,
                node: point.node,
                types: &program.values,
                values: std::mem::take(&mut values),
                guard,
                state,
                entry: Some(entry.clone()),
                touches: &mut self.touches,
            };
            for (param, arg) in block.params.iter().zip(args) {
                run.define(*param, arg)?;
            }
            for op in &block.ops {
                let before = run.state.clone();
                let faults = run.op(op)?;
                for (when, fault) in faults {
                    let fails = run.terms.both(run.guard, when);
                    let holds = run.terms.not(when);
                    run.guard = run.terms.both(run.guard, holds);
                    let mut state = before.clone();
                    count_fault(run.terms, run.chain, point.node, &mut state);
                    ends.push((fails, state, Done::Fault(fault)));
                }
                if let Op::Emit { event, args } = op {
                    deliver(&mut run, *event, args)?;
                }
            }
            leave(&mut run, &block.term, point, &mut arrivals, &mut ends)?;
            values = run.values;
        }
        ends.retain(|(guard, _, _)| self.terms.decided(*guard) != Some(false));
        Ok(ends)
    }
}

/// Counts a fault at the last row.
fn count_fault(terms: &mut Terms, chain: &Chain, node: u16, state: &mut State) {
    let rows = chain.nodes[usize::from(node)].model.rows.len();
    let row = RowId(u32::try_from(rows.saturating_sub(1)).unwrap_or(u32::MAX));
    let grown = state.packet.grown;
    state.world.count(terms, chain, (node, Counter::Row(row)), grown);
}

/// Applies the end of a block.
fn leave(
    run: &mut Run<'_>,
    end: &Ending,
    point: Point,
    arrivals: &mut [Vec<Arrival>],
    ends: &mut Vec<(Term, State, Done)>,
) -> Result<(), String> {
    let done = match end {
        Ending::Jump(target) => return go(run, None, target, arrivals),
        Ending::Branch { cond, yes, no } => {
            let cond = run.value(*cond)?;
            let cond = run.terms.truth(cond);
            let not = run.terms.not(cond);
            go(run, Some(cond), yes, arrivals)?;
            return go(run, Some(not), no, arrivals);
        }
        Ending::Hold { queue, delay, full, .. } => {
            let room = queue_has_room(run.terms, point.node, *queue);
            let not = run.terms.not(room);
            let waits = run.terms.both(run.guard, room);
            let delay = run.value(*delay)?;
            ends.push((waits, run.state.clone(), Done::Hold(*queue, delay)));
            return go(run, Some(not), full, arrivals);
        }
        Ending::Output { ports, .. } => Done::Output(ports.clone()),
        Ending::Drop { reason, row } => Done::Drop(*row, *reason),
        Ending::Consume { .. } => Done::Consume,
        Ending::Resubmit { .. } => Done::Resubmit,
        Ending::Return | Ending::Reset { .. } | Ending::Bypass { .. } | Ending::Resume { .. } => {
            return Err("a packet's program that decides about no packet".to_owned());
        }
    };
    ends.push((run.guard, run.state.clone(), done));
    Ok(())
}

fn meet(terms: &mut Terms, chain: &Chain, arrivals: &[(Term, State)]) -> (Term, State) {
    let come = arrivals
        .iter()
        .map(|(guard, state)| Arrival { guard: *guard, state: state.clone(), args: Vec::new() })
        .collect();
    match merge(terms, chain, come) {
        Some((guard, state, _)) => (guard, state),
        None => (terms.bool(false), arrivals[0].1.clone()),
    }
}
