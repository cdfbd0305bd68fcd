//! What operations of programs need, and what they can do.

use braid_ir::model::{Op, ValueId};

/// Whether an operation only computes a value, and has no faults.
pub(crate) fn is_harmless(op: &Op) -> bool {
    op.is_arithmetic() && !op.divides()
}

/// Whether an operation on values can fault.
pub(crate) fn can_fault(op: &Op) -> bool {
    op.divides() || matches!(op, Op::ListGet { .. } | Op::BackendUp { .. })
}

/// Whether an operation only computes a value, and an operand is unknown. A selection does not
/// count, because it may take its other operand.
pub(crate) fn is_unknown(op: &Op, is_unknown: impl Fn(ValueId) -> bool) -> bool {
    let mut found = false;
    op.visit_uses(&mut |id| found |= is_unknown(*id));
    found && is_harmless(op) && !matches!(op, Op::Select { .. })
}

/// The result and the operands of an operation that needs only values and parameters.
#[inline(always)]
pub(crate) fn simple(op: &Op) -> Option<(ValueId, [Option<ValueId>; 3])> {
    Some(match *op {
        Op::Const { out, .. } | Op::Param { out, .. } | Op::ListLen { out, .. } => (out, [None; 3]),
        Op::Not { out, a } | Op::Resize { out, a } | Op::Clamp { out, a } => {
            (out, [Some(a), None, None])
        }
        Op::InSet { out, a, .. }
        | Op::ListGet { out, index: a, .. }
        | Op::BackendUp { out, index: a, .. } => (out, [Some(a), None, None]),
        Op::Bin { out, a, b, .. } | Op::Cmp { out, a, b, .. } => (out, [Some(a), Some(b), None]),
        Op::Select { out, cond, a, b } => (out, [Some(cond), Some(a), Some(b)]),
        _ => return None,
    })
}
