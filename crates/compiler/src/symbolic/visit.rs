//! The visit of one function: the program that runs (for all packets, or a handler for the paths
//! that publish its event), and the paths that wait at its blocks.

use super::build::{Edge, Path};
use super::headers::Headers;
use super::reads::TagChanges;
use braid_ir::model::{
    BlockId, Model, ParamId, Program, RowId, Setting, StateId, Target, Ty, ValueId, Word,
};
use braid_ir::residual::{Point, Site};
use braid_ir::value::ParamValue;
use std::collections::{BTreeMap, BTreeSet};

/// The visit of one function.
pub(super) struct Visit<'a> {
    pub(super) point: Point,
    /// The number of the point in [`super::points::Points`].
    pub(super) number: usize,
    /// Whether the program ends behind the function if it does what no record contains.
    pub(super) may_end: bool,
    /// How this function and later ones change VLAN tags.
    pub(super) tag_changes: TagChanges,
    pub(super) model: &'a Model,
    pub(super) params: &'a [ParamValue],
    /// The packet program or a handler.
    pub(super) program: &'a Program,
    /// The event, if a handler runs.
    pub(super) event: Option<Handled>,
    /// The headers of the packets on entry, as far as they are known.
    pub(super) entry: Headers,
    /// For each block, the values that it or a later block uses and that are defined before it.
    pub(super) live: Vec<BTreeSet<ValueId>>,
    /// The edges that wait at each block.
    pub(super) inbox: BTreeMap<BlockId, Vec<Edge>>,
}

/// The values of an event's fields. Texts have none.
pub(super) type Fields = Vec<Option<ValueId>>;

/// The event that a handler runs for.
pub(super) struct Handled {
    pub(super) fields: Fields,
    /// The number of the handler's first block in a [`Site`].
    pub(super) first_block: u32,
    /// The paths that have come to the end of the handler.
    pub(super) ended: Vec<Edge>,
}

impl Visit<'_> {
    /// Notes that the function has done with the packet what no record contains.
    pub(super) fn beyond_records(&self, path: &mut Path) {
        path.state.ends |= self.may_end;
    }

    /// A field of the event that a handler runs for.
    pub(super) fn field(&self, field: u32) -> Option<ValueId> {
        *self.event.as_ref()?.fields.get(field as usize)?
    }

    /// The site of an operation.
    pub(super) fn site(&self, block: BlockId, op: usize) -> Site {
        let first = self.event.as_ref().map_or(0, |event| event.first_block);
        let op = u32::try_from(op).unwrap_or(u32::MAX);
        Site { node: self.node(), block: first.saturating_add(block.0), op }
    }

    pub(super) fn node(&self) -> u16 {
        self.point.node
    }

    pub(super) fn scalar(&self, param: ParamId) -> Word {
        match self.params.get(param.index()) {
            Some(ParamValue::Scalar(value)) => *value,
            _ => 0,
        }
    }

    pub(super) fn setting(&self, setting: Setting) -> Word {
        match setting {
            Setting::Const(value) => value,
            Setting::Param(param) => self.scalar(param),
        }
    }

    /// The slots that a table returns when it has no entry.
    pub(super) fn default(&self, state: StateId) -> Option<Vec<Word>> {
        let default = self.model.state[state.index()].default.as_ref()?;
        Some(default.iter().map(|slot| self.setting(*slot)).collect())
    }

    /// The type of a value of the model.
    pub(super) fn ty(&self, value: ValueId) -> Ty {
        self.program.values[value.index()]
    }

    /// The row for packets that end with a fault: the last one.
    pub(super) fn fault_row(&self) -> RowId {
        let rows = self.model.rows.len();
        RowId(u32::try_from(rows.saturating_sub(1)).unwrap_or(u32::MAX))
    }

    /// Gives a block its arguments.
    pub(super) fn pass(&self, path: &mut Path, target: &Target) {
        let args: Vec<ValueId> = target.args.iter().map(|arg| path.state.env[arg]).collect();
        let params = &self.program.blocks[target.block.index()].params;
        for (param, arg) in params.iter().zip(args) {
            path.state.env.insert(*param, arg);
        }
    }

    /// Adds an edge to a block of the function.
    pub(super) fn send(&mut self, block: BlockId, edge: Edge) {
        self.inbox.entry(block).or_default().push(edge);
    }
}
