//! The identity of a function's parts: their names, and their schemas as text.

use crate::chain::Chain;
use crate::model::{Granularity, Model, ParamTy, PoolOrder, StateId};
use crate::show::steering_rule;
use braid_packet::FlowKey;

/// The table whose entries are the roots of a table's groups.
#[must_use]
pub fn root_of(model: &Model, state: StateId) -> StateId {
    let mut at = state;
    while let Some(with) = model.state.get(at.index()).and_then(|decl| decl.lives_with) {
        at = with;
    }
    at
}

/// The rule that gives packets their workers, as text. Empty if there is one worker.
pub(super) fn steering(chain: &Chain) -> String {
    if chain.workers <= 1 {
        return String::new();
    }
    let rules = (0..).zip(&chain.interfaces).map(|(number, interface)| {
        format!("{}: {}", interface.name, steering_rule(chain, chain.steering.by(number)))
    });
    let errors = chain.steering.errors_follow.then(|| "errors follow".to_owned());
    rules.chain(errors).collect::<Vec<_>>().join(", ")
}

/// The widths of the parts of a table's keys.
pub(super) fn key_widths(granularity: &Granularity) -> Vec<u16> {
    match granularity {
        Granularity::Global => Vec::new(),
        Granularity::Key(types) => types.iter().map(|ty| ty.width).collect(),
        Granularity::Fields(fields) => fields.iter().map(|field| field.info().width).collect(),
        Granularity::Flow | Granularity::Biflow => FlowKey::WIDTHS.to_vec(),
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
