//! Changes of configuration while packets flow.

use crate::generate::{Boundaries, Rng};
use braid_ir::chain::{Chain, Change, Control};
use braid_ir::model::{Kind, ParamId, ParamTy};
use braid_ir::value::ParamValue;

/// A change that makes sense for some parameter of the chain.
pub(super) fn change(
    rng: &mut Rng,
    chain: &Chain,
    boundaries: &Boundaries,
    time_ns: u64,
) -> Option<Control> {
    let at = rng.below(chain.nodes.len());
    let node = chain.nodes.get(at)?;
    let param = rng.below(node.model.params.len());
    let change = match (&node.model.params.get(param)?.ty, node.params.get(param)?) {
        (ParamTy::Backends(_), ParamValue::Backends(members)) => {
            let name = *members.get(rng.below(members.len()))?.columns.first()?;
            match rng.below(8) {
                0 => Change::RemoveBackend(name),
                1 => Change::AddBackend(vec![name.wrapping_add(100); members[0].columns.len()]),
                _ => Change::BackendUp(name, rng.one_in(2)),
            }
        }
        (ParamTy::Rules, ParamValue::Rules(set)) => {
            let number = rng.below(set.rules.len() + 2);
            match boundaries.rules.get(rng.below(boundaries.rules.len())) {
                Some(rule) if rng.one_in(2) => Change::AddRule(number, rule.clone()),
                _ => Change::RemoveRule(number),
            }
        }
        (ParamTy::Scalar(ty), ParamValue::Scalar(value)) if ty.kind == Kind::Ip4 => {
            Change::Set(ParamValue::Scalar(value ^ u128::from(rng.byte() & 1)))
        }
        _ => return None,
    };
    let node = u16::try_from(at).ok()?;
    Some(Control { time_ns, node, param: ParamId(u32::try_from(param).ok()?), change })
}
