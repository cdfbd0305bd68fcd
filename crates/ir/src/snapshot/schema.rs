//! The identity of a function's parts: their names, and their schemas as text.

use crate::engine::FLOW_WIDTHS;
use crate::model::{Granularity, Model, ParamTy, PoolOrder, StateId};

/// The number of shards of a function, if this number of workers share the chain's state.
#[must_use]
pub fn shards(model: &Model, workers: u16) -> u16 {
    let sharded = model.native.is_some() || model.state.iter().any(|decl| decl.sharded);
    if sharded { workers.max(1) } else { 1 }
}

/// The table whose entries are the roots of a table's groups.
#[must_use]
pub fn root_of(model: &Model, state: StateId) -> StateId {
    let mut at = state;
    while let Some(with) = model.state.get(at.index()).and_then(|decl| decl.lives_with) {
        at = with;
    }
    at
}

/// The widths of the parts of a table's keys.
pub(super) fn key_widths(granularity: &Granularity) -> Vec<u16> {
    match granularity {
        Granularity::Global => Vec::new(),
        Granularity::Key(types) => types.iter().map(|ty| ty.width).collect(),
        Granularity::Fields(fields) => fields.iter().map(|field| field.info().width).collect(),
        Granularity::Flow | Granularity::Biflow => FLOW_WIDTHS.to_vec(),
    }
}

/// Whether entries may hold members of a parameter of this type, or numbers of its members.
pub(super) fn is_held(ty: &ParamTy) -> bool {
    matches!(ty, ParamTy::Pool(..) | ParamTy::Backends(_))
}

/// Whether a parameter is a pool.
pub(super) fn is_pool(ty: &ParamTy) -> bool {
    matches!(ty, ParamTy::Pool(..))
}

/// Whether a parameter is a pool whose free members have an order of their own.
pub(super) fn is_fifo(ty: &ParamTy) -> bool {
    matches!(ty, ParamTy::Pool(_, PoolOrder::Fifo))
}
