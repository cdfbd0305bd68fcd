//! Checks which functions of a chain take the events of others.

use braid_ir::model::Model;
use braid_ir::subscriptions::{Problem, Step, Subscriptions};

use super::draft::Draft;
use crate::diag::{Diagnostic, Diagnostics, codes};

/// Reports event types that two functions declare differently, events that go round in a circle,
/// and handlers to which no event comes.
pub(super) fn check(draft: &Draft<'_>, diags: &mut Diagnostics) {
    let models: Option<Vec<&Model>> =
        draft.nodes.iter().map(|node| node.model.as_deref()).collect();
    // A function that is unknown or has errors may publish anything.
    let Some(models) = models else { return };
    match Subscriptions::of_models(&models) {
        Ok(found) => found.idle(&models).into_iter().for_each(|(node, event)| {
            let name = &models[usize::from(node)].events[event.index()].name;
            let message =
                format!("no event comes to the handler of {name} of `{}`", draft.node_name(node));
            let span = draft.nodes[usize::from(node)].span;
            diags.push(Diagnostic::new(
                codes::SUBSCRIPTION_IDLE,
                message,
                span,
                "its handler never runs",
            ));
        }),
        Err(problem) => diags.push(describe(draft, &problem)),
    }
}

fn describe(draft: &Draft<'_>, problem: &Problem) -> Diagnostic {
    let span = |node: u16| draft.nodes[usize::from(node)].span;
    match problem {
        Problem::Unlike { event, publisher, subscriber } => {
            let (from, to) = (draft.node_name(*publisher), draft.node_name(*subscriber));
            let message = format!("`{from}` and `{to}` declare the event {event} differently");
            Diagnostic::new(codes::EVENT_TYPES_DIFFER, message, span(*subscriber), "takes it")
                .label(span(*publisher), "publishes it")
                .help("declare the type with the same parent and the same fields as the other function")
        }
        Problem::Circle(steps) => {
            let words = steps.iter().map(|Step { node, event }| {
                format!("`{}` publishes {event}", draft.node_name(*node))
            });
            let words: Vec<String> = words.collect();
            let first = steps.first().map_or(0, |step| step.node);
            let message = format!(
                "events go round in a circle: {}, which `{}` takes",
                words.join(", then "),
                draft.node_name(first)
            );
            let mut found = Diagnostic::new(codes::SUBSCRIPTION_CIRCLE, message, span(first), "");
            for step in &steps[1..] {
                found = found.label(span(step.node), "part of the circle");
            }
            found.help("let one of them not publish its event, or not take it")
        }
    }
}
