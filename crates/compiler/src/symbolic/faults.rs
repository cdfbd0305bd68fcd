//! Operations of handlers that may fault. A fault ends only the handler, not the packet. So a
//! branch in front of the operation leads to the end of the handler.

use super::build::Path;
use super::draft::{Draft, Flow};
use super::keys::key_parts;
use super::split::split;
use super::tables::find;
use super::values::Pure;
use super::visit::Visit;
use braid_ir::engine::Fault;
use braid_ir::model::{BinOp, CmpOp, Op, ParamId, Ty, ValueId, Word};
use braid_ir::value::ParamValue;

/// Splits off the paths on which a handler's operation faults. With [`Flow::Next`], the operation
/// runs on the other paths.
pub(super) fn lead_off(draft: &mut Draft, visit: &mut Visit<'_>, path: &mut Path, op: &Op) -> Flow {
    let (works, fault) = match op {
        Op::Bin { op: BinOp::Div | BinOp::Rem, b, .. } => {
            let b = path.value(*b);
            let zero = draft.values.constant(draft.values.ty(b), 0);
            (draft.values.cmp(CmpOp::Ne, b, zero), Fault::Division)
        }
        Op::ListGet { param, index, .. } | Op::BackendUp { param, index, .. } => {
            let index = path.value(*index);
            let len = len(draft, visit, *param);
            (draft.values.cmp(CmpOp::Lt, index, len), Fault::Index)
        }
        Op::StatePut { state, key, .. } if visit.default(*state).is_none() => {
            match key_parts(draft, visit, path, *state, key) {
                Some(key) => (find(draft, visit, path, *state, &key).0, Fault::NoEntry),
                None => return draft.fault(visit, path, Fault::Truncated),
            }
        }
        _ => return Flow::Next,
    };
    match path.state.facts.only(&draft.values, works) {
        Some(0) => draft.fault(visit, path, fault),
        Some(_) => Flow::Next,
        None => {
            let here = Path { at: path.at, state: path.state.clone() };
            let (rest, mut failed) = split(draft, here, works);
            draft.fault(visit, &mut failed, fault);
            *path = rest;
            Flow::Next
        }
    }
}

/// The number of members of a list or of backends.
fn len(draft: &mut Draft, visit: &Visit<'_>, param: ParamId) -> ValueId {
    let ty = Ty::uint(32);
    match &visit.params[param.index()] {
        ParamValue::List(rows) => draft.values.constant(ty, rows.len() as Word),
        _ => draft.values.pure(ty, Pure::Len(visit.node(), param)),
    }
}
