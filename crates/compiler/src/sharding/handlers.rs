//! Handlers of events. Residual programs contain the handlers of the events that they publish, so
//! the analysis sees what these do with state. It does not see what other handlers do.

use braid_ir::chain::Chain;
use braid_ir::model::{EventId, Model, Op, Program};
use braid_ir::subscriptions::Subscriptions;

/// Makes sure that handlers run as parts of residual programs only.
///
/// # Errors
/// A handler may run otherwise, and the worker of the state that it changes is not known.
pub(super) fn follow_packets(chain: &Chain) -> Result<(), String> {
    let subscriptions = Subscriptions::new(chain)?;
    let name = |node: u16| chain.nodes[usize::from(node)].name.as_str();
    for (node, of) in (0..).zip(&chain.nodes) {
        for event in background(&of.model) {
            if let Some(taker) = subscriptions.of(node, event).first() {
                return Err(format!(
                    "{} takes events that {} publishes without a packet, and the worker of the \
                     state that the handler changes is not known",
                    name(taker.node),
                    name(node)
                ));
            }
        }
        let programs = of.model.handlers.iter().map(|(_, program)| program);
        for event in programs.chain([&of.model.packet]).flat_map(published) {
            if subscriptions.stays_outside(node, event) {
                return Err(format!(
                    "the handlers of events that {} publishes are too large for its programs, or \
                     are those of a function with entries that live with others",
                    name(node)
                ));
            }
        }
    }
    Ok(())
}

/// Makes sure that no function takes events of native functions, which publish events at any time.
///
/// # Errors
/// A function takes such events, and the worker of the state that the handler changes is not known.
pub(super) fn follow_no_natives(chain: &Chain) -> Result<(), String> {
    let subscriptions = Subscriptions::new(chain)?;
    let natives = (0..).zip(&chain.nodes).filter(|(_, node)| node.model.native.is_some());
    for (number, node) in natives {
        for event in (0..).map(EventId).take(node.model.events.len()) {
            if let Some(taker) = subscriptions.of(number, event).first() {
                return Err(format!(
                    "{} takes events of {}, which is native code, and the worker of the state that \
                     the handler changes is not known",
                    chain.nodes[usize::from(taker.node)].name,
                    node.name
                ));
            }
        }
    }
    Ok(())
}

/// The events that a function publishes without a packet.
fn background(model: &Model) -> impl Iterator<Item = EventId> {
    let timers = model.timers.iter().map(|timer| &timer.body);
    let expiries = model.expire.iter().map(|(_, program)| program);
    timers.chain(expiries).flat_map(published)
}

fn published(program: &Program) -> impl Iterator<Item = EventId> {
    program.blocks.iter().flat_map(|block| &block.ops).filter_map(|op| match op {
        Op::Emit { event, .. } => Some(*event),
        _ => None,
    })
}
