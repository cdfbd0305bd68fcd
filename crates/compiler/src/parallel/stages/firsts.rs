//! The isolated functions that packets enter first, and enter in no other way while a burst runs.
//! Such a function can run the packets of a burst before an engine gets to them.

use super::visits::{Visit, Visits};
use braid_ir::chain::Chain;
use braid_ir::graph::is_isolated;
use braid_ir::model::Model;

/// For each interface, the function that its packets enter first, and whether they go backward
/// there: if the function is isolated, and gets these packets in the order of their arrival with
/// nothing in between. So no packet comes to it behind a function that packets of this interface
/// reach, and none at times of its own. Empty if there is no such function.
#[must_use]
pub fn firsts(chain: &Chain) -> Vec<Option<(u16, bool)>> {
    let mut models = chain.nodes.iter().map(|node| &node.model);
    // Events make stream functions send packets, and so do their timeouts.
    let sends_by_itself = |model: &Model| model.is_stream() || !model.handlers.is_empty();
    if !models.clone().any(|model| is_isolated(model)) || models.any(|model| sends_by_itself(model))
    {
        return Vec::new();
    }
    // This fails if functions hold packets, if packets come back, or if the engine gives packets
    // their workers.
    let Ok(visits) = Visits::new(chain) else { return Vec::new() };
    let is_first = |(function, backward): &Visit| {
        let behind = visits.behind((*function, *backward));
        is_isolated(&chain.nodes[usize::from(*function)].model)
            && visits.graph.group(*function).len() == 1
            && behind.iter().filter(|(node, _)| node == function).count() == 1
    };
    let interfaces = (0..).zip(&chain.interfaces);
    let firsts = interfaces
        .map(|(interface, _)| visits.visit(visits.graph.entry(interface)).filter(is_first));
    let firsts: Vec<_> = firsts.collect();
    if firsts.iter().all(Option::is_none) { Vec::new() } else { firsts }
}
