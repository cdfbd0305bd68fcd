//! The state of regions and their outcomes while a function is written.

use crate::regions::Regions;
use braid_ir::model::ValueId;
use cranelift_codegen::ir::{Block, Value};
use cranelift_frontend::Variable;
use std::collections::HashMap;

/// The state of regions while a function is written.
pub(super) struct Outcomes<'a> {
    pub(super) regions: &'a Regions,
    /// The address of the first outcome.
    pub(super) start: u64,
    /// Values that are defined at each exit of their region, as variables.
    pub(super) variables: HashMap<ValueId, Variable>,
    /// By address that is looked up: the address group of the packet's address.
    pub(super) groups: Vec<Variable>,
    /// By region: the address of the outcome that the current steps determine, while they run for
    /// the first packet of an address group.
    pub(super) open: Vec<Option<Value>>,
    /// The blocks that follow exits inside blocks, by region and exit.
    pub(super) behind: HashMap<(usize, usize), Block>,
}

impl<'a> Outcomes<'a> {
    pub(super) fn new(regions: &'a Regions, start: u64) -> Self {
        Outcomes {
            regions,
            start,
            variables: HashMap::new(),
            groups: Vec::new(),
            open: vec![None; regions.all.len()],
            behind: HashMap::new(),
        }
    }
}
