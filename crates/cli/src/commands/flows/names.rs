//! The parts that the text and the JSON of `braid flows` share: the choice of records to show, and
//! the names for a chain's numbers.

use braid_engine::Payload;
use braid_ir::chain::{Chain, Interface, Node};
use braid_ir::model::RowId;

/// The choice of records to show.
#[derive(Clone, Copy)]
pub enum Shown {
    /// No records, only record templates.
    Templates,
    /// At most this many records.
    Records(usize),
}

/// The strongest access of a state function to the payload (SpeedyBox §IV-A2), as a word.
pub fn payload_word(payload: Payload) -> &'static str {
    match payload {
        Payload::Ignore => "ignore",
        Payload::Read => "read",
        Payload::Write => "write",
    }
}

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

    /// The name of a parameter.
    pub fn param(self, node: u16, param: braid_ir::model::ParamId) -> &'c str {
        let decl = self.node(node).and_then(|node| node.model.params.get(param.index()));
        decl.map_or("?", |decl| &decl.name)
    }
}
