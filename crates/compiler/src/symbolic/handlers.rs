//! The handlers of events: they follow, as steps, on the step that publishes the event.
//!
//! A handler is a program of another function. Its paths start where the event is published. A
//! handler cannot change the packet. So all its paths know the same about the packet, and join into
//! one behind the handler. Subscriptions form no circles, so no handler runs within itself.

use super::build::{Edge, Path, Slot};
use super::follow::Synth;
use super::join::join;
use super::mutants::SynthMutant;
use super::reads::live;
use super::state::State;
use super::visit::{Fields, Handled, Visit};
use braid_ir::chain::Node;
use braid_ir::model::{BlockId, EventArg, EventId};
use braid_ir::residual::Point;
use braid_ir::subscriptions::Subscriber;
use std::collections::{BTreeMap, BTreeSet};

impl Synth<'_> {
    /// Runs the handlers of an event that a path has just published. Returns whether the path goes
    /// on.
    pub(super) fn deliver(
        &mut self,
        visit: &Visit<'_>,
        path: &mut Path,
        event: EventId,
        args: &[EventArg],
    ) -> bool {
        let mut takers = self.subscriptions.inlined(visit.node(), event).to_vec();
        if self.draft.has_mutant(SynthMutant::HandlersReversed) {
            takers.reverse();
        }
        let field = |arg: &EventArg| match arg {
            EventArg::Value(value) => Some(path.value(*value)),
            EventArg::Str(_) | EventArg::Bytes(_) | EventArg::Param(_) => None,
        };
        let fields: Fields = args.iter().map(field).collect();
        if visit.event.is_some() && self.draft.has_mutant(SynthMutant::NestedLater) {
            self.postponed.extend(takers.into_iter().map(|taker| (taker, fields.clone())));
            return true;
        }
        let goes_on = takers.into_iter().all(|taker| self.handler(visit, path, taker, &fields));
        goes_on && self.postponed(visit, path)
    }

    /// Runs the handlers that a mutant has postponed.
    fn postponed(&mut self, visit: &Visit<'_>, path: &mut Path) -> bool {
        while let Some((taker, fields)) = self.postponed.pop() {
            if !self.handler(visit, path, taker, &fields) {
                return false;
            }
        }
        true
    }

    /// Runs one handler. Returns whether the path goes on.
    fn handler(
        &mut self,
        visit: &Visit<'_>,
        path: &mut Path,
        Subscriber { node, handler }: Subscriber,
        fields: &Fields,
    ) -> bool {
        let nodes = &self.points.chain.nodes;
        let of = &nodes[usize::from(node)];
        let node = match self.draft.has_mutant(SynthMutant::OtherInstance) {
            true => instance(nodes, node),
            false => node,
        };
        let (_, program) = &of.model.handlers[handler];
        let before = of.model.handlers.iter().take(handler).map(|(_, program)| program);
        let first: usize =
            before.chain([&of.model.packet]).map(|program| program.blocks.len()).sum();
        let mut state =
            std::mem::replace(&mut path.state, State::new(self.draft.entering.headers()));
        // Expiry programs may have published events that a handler of this function has taken.
        state.forget_state(node);
        let env = std::mem::take(&mut state.env);
        let mut inner = Visit {
            point: Point { node, backward: false, held: false },
            number: visit.number,
            may_end: visit.may_end,
            tag_changes: visit.tag_changes,
            model: &of.model,
            params: &of.params,
            program,
            event: Some(Handled {
                fields: fields.clone(),
                first_block: u32::try_from(first).unwrap_or(u32::MAX),
                ended: Vec::new(),
            }),
            entry: state.headers,
            live: live(program),
            inbox: BTreeMap::new(),
        };
        inner.send(BlockId(0), Edge { from: path.at, slot: Slot::Open, state });
        self.blocks(&mut inner);
        let ended = inner.event.map(|event| event.ended).unwrap_or_default();
        let Some(behind) = join(&mut self.draft, ended, &BTreeSet::new()) else { return false };
        *path = behind;
        path.state.env = env;
        true
    }
}

/// Another instance of a function, or the function if there is none.
fn instance(nodes: &[Node], node: u16) -> u16 {
    let mut others = (0..).zip(nodes).filter(|(other, _)| *other != node);
    let model = &nodes[usize::from(node)].model;
    others.find(|(_, other)| other.model == *model).map_or(node, |(other, _)| other)
}
