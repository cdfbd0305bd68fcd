//! Delivers events to the functions that take them.

use crate::exec_context::Functions;
use crate::model_interpreter;
use crate::mutants::DeliveryMutant;
use crate::scratch::Published;
use crate::work::Role;
use braid_ir::engine::Outputs;
use braid_ir::model::{EventId, Word};
use braid_ir::subscriptions::Subscriber;

/// Publishes the events of the program that has just run, and runs their handlers. A program
/// cannot see what handlers of other functions do, so this gives the same results as handlers
/// that run before the program goes on.
#[inline]
pub(crate) fn deliver(functions: &mut Functions, out: &mut dyn Outputs) {
    if !functions.scratch.published.is_empty() {
        deliver_all(functions, out);
    }
}

/// As [`deliver`], after a step of a residual program.
#[inline]
pub(crate) fn deliver_now(functions: &mut Functions, out: &mut dyn Outputs) {
    if !functions.mutants.has(DeliveryMutant::DeliveredLater) {
        deliver(functions, out);
    }
}

#[inline(never)]
fn deliver_all(functions: &mut Functions, out: &mut dyn Outputs) {
    // A residual program goes on with the entries that it has found.
    let run = functions.touched.run;
    for published in std::mem::take(&mut functions.scratch.published) {
        let Published { node, worker, event, fields, made } = published;
        out.event(made);
        for taker in event.map_or_else(Vec::new, |event| takers(functions, node, event)) {
            handle(functions, taker, worker, &fields, out);
        }
        deliver(functions, out);
    }
    if !functions.mutants.has(DeliveryMutant::FoundForgotten) {
        functions.touched.run = run;
    }
}

/// The handlers of an event, in their order.
fn takers(functions: &Functions, node: u16, event: EventId) -> Vec<Subscriber> {
    let mut takers = functions.subscriptions.of(node, event).to_vec();
    if functions.mutants.has(DeliveryMutant::DescendantsIgnored) {
        let name = |node: u16, event: EventId| {
            let model = &functions.chain.nodes.get(usize::from(node))?.model;
            model.events.get(event.index()).map(|decl| decl.name.as_str())
        };
        takers.retain(|Subscriber { node: taker, handler }| {
            let model = functions.chain.nodes.get(usize::from(*taker)).map(|node| &node.model);
            let taken = model.and_then(|model| model.handlers.get(*handler));
            taken.is_some_and(|(taken, _)| name(*taker, *taken) == name(node, event))
        });
    }
    if functions.mutants.has(DeliveryMutant::OthersIgnored) {
        takers.truncate(1);
    }
    if functions.mutants.has(DeliveryMutant::HandlersReversed) {
        takers.reverse();
    }
    takers
}

/// Runs a handler for an event with these fields, and then the handlers of its own events.
fn handle(
    functions: &mut Functions,
    Subscriber { node, handler }: Subscriber,
    worker: u16,
    fields: &[Word],
    out: &mut dyn Outputs,
) {
    let mutants = functions.mutants;
    let mut context = functions.context_of(node, worker, out);
    if mutants.has(DeliveryMutant::NothingRenewed) {
        context.role = Role::Timer;
    }
    if let Some((_, program)) = context.model.handlers.get(handler) {
        model_interpreter::on_event(&mut context, program, fields);
    }
    if !mutants.has(DeliveryMutant::NestedLast) {
        deliver(functions, out);
    }
}
