//! Inlining: which events have handlers that are part of the programs of their publishers.
//!
//! A residual program has the handlers of an event right behind the step that publishes it.
//! Programs must stay small, so handlers beyond a budget stay outside. The engine then runs them
//! behind the step. Native functions have no such programs, so the handlers of their events stay
//! outside, too, and so do handlers that decide about connections.

use super::subscriber::Subscriber;
use crate::model::{EventId, Model, Op, Program};

/// The most operations and blocks of all handlers that run for one event.
const MOST_OF_EVENT: usize = 256;

/// The most operations and blocks of handlers in the programs of all functions together: a residual
/// program may contain them all.
const MOST_OF_CHAIN: usize = 4096;

/// For each function and each of its event types, whether programs contain the handlers.
pub(super) fn inlined(models: &[&Model], of: &[Vec<Vec<Subscriber>>]) -> Vec<Vec<bool>> {
    let mut sizes =
        Sizes { models, of, known: of.iter().map(|of_node| vec![None; of_node.len()]).collect() };
    let mut inlined: Vec<Vec<bool>> = Vec::with_capacity(of.len());
    for (node, model) in (0..).zip(models) {
        let size = |event| sizes.of_event(node, event).filter(|size| *size <= MOST_OF_EVENT);
        let events = (0..).map(EventId).take(model.events.len());
        let is_inlined = |size: Option<usize>| size.is_some() && model.native.is_none();
        inlined.push(events.map(size).map(is_inlined).collect());
    }
    let mut left = MOST_OF_CHAIN;
    for ((node, model), inlined) in (0..).zip(models).zip(&mut inlined) {
        match left.checked_sub(sizes.of_program(node, &model.packet)) {
            Some(rest) => left = rest,
            None => inlined.fill(false),
        }
    }
    inlined
}

/// The sizes of the handlers of each event, with the handlers of their own events.
struct Sizes<'a> {
    models: &'a [&'a Model],
    of: &'a [Vec<Vec<Subscriber>>],
    /// `Some(None)`: the handlers must stay outside.
    known: Vec<Vec<Option<Option<usize>>>>,
}

impl Sizes<'_> {
    /// The size of the handlers of an event. `None` if they must stay outside.
    fn of_event(&mut self, node: u16, event: EventId) -> Option<usize> {
        let known = self.known.get(usize::from(node))?.get(event.index())?;
        if let Some(known) = known {
            return *known;
        }
        let takers = self.of.get(usize::from(node))?.get(event.index())?.clone();
        let mut size = Some(0);
        for taker in takers {
            let more = self.of_handler(taker);
            size = size.zip(more).map(|(size, more): (usize, usize)| size.saturating_add(more));
        }
        if let Some(of_node) = self.known.get_mut(usize::from(node))
            && let Some(known) = of_node.get_mut(event.index())
        {
            *known = Some(size);
        }
        size
    }

    /// The size of a handler. `None` if it must stay outside: it decides about a connection, or
    /// entries of its function live with the entry that a run has found last, and a step does not
    /// say to which run it belongs.
    fn of_handler(&mut self, Subscriber { node, handler }: Subscriber) -> Option<usize> {
        let model = *self.models.get(usize::from(node))?;
        if model.state.iter().any(|decl| decl.lives_with.is_some()) {
            return None;
        }
        let (_, program) = model.handlers.get(handler).filter(|(_, program)| !program.steers())?;
        let own = program.blocks.len() + ops(program).count();
        Some(self.of_program(node, program).saturating_add(own))
    }

    /// The size of the handlers that a program contains.
    fn of_program(&mut self, node: u16, program: &Program) -> usize {
        let mut size: usize = 0;
        for op in ops(program) {
            if let Op::Emit { event, .. } = op {
                let more = self.of_event(node, *event).filter(|size| *size <= MOST_OF_EVENT);
                size = size.saturating_add(more.unwrap_or(0));
            }
        }
        size
    }
}

fn ops(program: &Program) -> impl Iterator<Item = &Op> {
    program.blocks.iter().flat_map(|block| &block.ops)
}
