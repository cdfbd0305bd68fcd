//! Gates of functions with more than two sides: packets to such a side get its number, and enter
//! the function by its left port.

use braid_ir::chain::{PolicyRule, Sink, Source};
use braid_ir::model::{LEFT, PortId, RIGHT};
use std::collections::BTreeMap;
use std::sync::Arc;

use super::draft::{Draft, Link, Node};
use super::links::port_name;
use crate::sema::sides;

/// Puts gates between the links to sides and their functions. A gate has the name of its side,
/// such as `fw.dmz`. Each instance has a tag of its own, so that functions that `Priority` relates
/// do not take each other's. Returns the order of gates and functions.
pub(super) fn add_gates(draft: &mut Draft<'_>) -> Vec<PolicyRule> {
    for node in &mut draft.nodes {
        if let Some(model) = &mut node.model
            && sides::tag(model).is_some()
        {
            sides::name_tag(Arc::make_mut(model), &node.name);
        }
    }
    let mut gates: BTreeMap<(u16, PortId), u16> = BTreeMap::new();
    for at in 0..draft.links.len() {
        let Sink::Port(node, port) = draft.links[at].sink else { continue };
        let model = draft.nodes.get(usize::from(node)).and_then(|node| node.model.as_ref());
        let tag = model.and_then(|model| sides::tag(model)).cloned();
        let Some(tag) = tag.filter(|_| port != LEFT && port != RIGHT) else { continue };
        let span = draft.links[at].span;
        let gate = *gates.entry((node, port)).or_insert_with(|| {
            let gate = u16::try_from(draft.nodes.len()).unwrap_or(u16::MAX);
            let name = format!("{}.{}", draft.node_name(node), port_name(draft, node, port));
            let model = Some(Arc::new(sides::gate(tag, port)));
            draft.nodes.push(Node { name, span, model, params: Vec::new() });
            let (source, sink) = (Source::Port(gate, RIGHT), Sink::Port(node, LEFT));
            draft.links.push(Link { source, sink, span });
            gate
        });
        draft.links[at].sink = Sink::Port(gate, LEFT);
    }
    gates.iter().map(|((node, _), gate)| PolicyRule::Order(*gate, *node)).collect()
}
