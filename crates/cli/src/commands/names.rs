//! Names for the numbers of functions, interfaces and the parts of models.

use braid_ir::chain::{Chain, Interface, Node};
use braid_ir::model::{Dest, EventId, ParamId, QueueId, RowId, StateId};

/// Names for a chain's numbers.
#[derive(Clone, Copy)]
pub struct Names<'c>(pub &'c Chain);

impl<'c> Names<'c> {
    /// A function.
    pub fn node(self, node: u16) -> Option<&'c Node> {
        self.0.nodes.get(usize::from(node))
    }

    /// A function's name.
    pub fn name(self, node: u16) -> &'c str {
        self.node(node).map_or("?", |node| &node.name)
    }

    /// The name of a function's model.
    pub fn model(self, node: u16) -> &'c str {
        self.node(node).map_or("?", |node| &node.model.name)
    }

    /// An interface's name.
    pub fn interface(self, at: u16) -> &'c str {
        let found: Option<&'c Interface> = self.0.interfaces.get(usize::from(at));
        found.map_or("?", |interface| &interface.name)
    }

    /// A row's label and text.
    pub fn row(self, node: u16, row: RowId) -> (&'c str, &'c str) {
        let decl = self.node(node).and_then(|node| node.model.rows.get(row.index()));
        decl.map_or(("?", ""), |decl| (&decl.label, &decl.text))
    }

    /// The name of a slot: empty if the table has only one.
    pub fn slot(self, node: u16, table: &str, slot: u32) -> &'c str {
        let states = self.node(node).map(|node| &*node.model.state);
        let decl = states.and_then(|all| all.iter().find(|decl| decl.name == table));
        decl.and_then(|decl| decl.slots.get(slot as usize)).map_or("", |(name, _)| name)
    }

    /// An event's name.
    pub fn event(self, node: u16, event: EventId) -> &'c str {
        let decl = self.node(node).and_then(|node| node.model.events.get(event.index()));
        decl.map_or("?", |decl| &decl.name)
    }

    /// A queue's name.
    pub fn queue(self, node: u16, queue: QueueId) -> &'c str {
        let decl = self.node(node).and_then(|node| node.model.queues.get(queue.index()));
        decl.map_or("?", |decl| &decl.name)
    }

    /// A port's name.
    pub fn dest(self, node: u16, dest: Dest) -> &'c str {
        match dest {
            Dest::Onward => "onward",
            Dest::Back => "back",
            Dest::Port(port) => {
                let name = self.node(node).and_then(|node| node.model.ports.get(port.index()));
                name.map_or("", |name| name)
            }
        }
    }

    /// A reason for drops.
    pub fn reason(self, node: u16, reason: usize) -> Option<&'c str> {
        self.node(node)?.model.reasons.get(reason).map(String::as_str)
    }

    /// The name of a table: `nat.map`
    pub fn table(self, node: u16, state: StateId) -> String {
        let decl = self.node(node).and_then(|node| node.model.state.get(state.index()));
        format!("{}.{}", self.name(node), decl.map_or("?", |decl| &decl.name))
    }

    /// The name of a parameter.
    pub fn param(self, node: u16, param: ParamId) -> &'c str {
        let decl = self.node(node).and_then(|node| node.model.params.get(param.index()));
        decl.map_or("?", |decl| &decl.name)
    }
}
