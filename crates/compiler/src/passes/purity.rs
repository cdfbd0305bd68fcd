//! Which steps have effects besides their results, and which steps may be moved.

use braid_ir::model::{Haystack, Op};
use braid_ir::residual::{Step, What};

/// Whether a step changes the packet's bytes, or how they are read.
pub(super) fn changes_packet(what: &What) -> bool {
    match what {
        What::Write(_) | What::Parse => true,
        What::Op(op) => op.changes_bytes(),
        _ => false,
    }
}

/// Whether a step has an effect, so that it stays even if nothing needs its results.
pub(super) fn has_effect(step: &Step) -> bool {
    let results_only = match &step.what {
        What::Read { .. } | What::Classify { .. } => true,
        What::Op(op) if op.is_arithmetic() => true,
        What::Op(op) => matches!(
            op,
            Op::ListLen { .. }
                | Op::ListGet { .. }
                | Op::BackendUp { .. }
                | Op::InSet { .. }
                | Op::Has { .. }
                | Op::Load { .. }
                | Op::LoadTag { .. }
                | Op::Route { .. }
                | Op::InStrings { .. }
                | Op::FindPatterns { of: Haystack::Text(..), .. }
                | Op::StateLen { .. }
        ),
        _ => false,
    };
    !results_only || step.fault.is_some()
}

/// Whether a step gives the same results behind its place, so that it may be moved there and
/// repeated. `changed` says whether the packet may have changed before the step.
pub(super) fn is_pure(step: &Step, changed: bool) -> bool {
    if step.fault.is_some() {
        return false;
    }
    match &step.what {
        What::Classify { .. } => true,
        What::Op(op) => match op {
            Op::Load { .. } => !changed,
            Op::ListLen { .. } | Op::InSet { .. } | Op::Route { .. } => true,
            op => op.is_arithmetic(),
        },
        _ => false,
    }
}
