//! Which steps have effects besides their results, and which steps may be moved.

use braid_ir::model::{BinOp, Op, ValueId};
use braid_ir::residual::{Residual, Step, What};

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
        What::Op(op) => matches!(
            op,
            Op::Const { .. }
                | Op::ListLen { .. }
                | Op::ListGet { .. }
                | Op::BackendUp { .. }
                | Op::Bin { .. }
                | Op::Cmp { .. }
                | Op::Not { .. }
                | Op::Resize { .. }
                | Op::Clamp { .. }
                | Op::Select { .. }
                | Op::InSet { .. }
                | Op::Has { .. }
                | Op::Load { .. }
                | Op::LoadTag { .. }
                | Op::Route { .. }
                | Op::InStrings { .. }
                | Op::StateLen { .. }
        ),
        _ => false,
    };
    !results_only || step.fault.is_some()
}

/// For each value, whether it is a constant other than 0.
pub(super) struct Divisors(Vec<bool>);

impl Divisors {
    pub(super) fn of(program: &Residual) -> Self {
        let mut found = vec![false; program.values.len()];
        for step in program.blocks.iter().flat_map(|block| &block.steps) {
            if let What::Op(Op::Const { out, value }) = step.what {
                found[out.index()] = value != 0;
            }
        }
        Self(found)
    }

    fn contains(&self, value: ValueId) -> bool {
        self.0[value.index()]
    }
}

/// Whether a step gives the same results wherever its operands are defined, so that it may be moved
/// and repeated. `changed` says whether the packet may have changed before the step.
pub(super) fn is_pure(step: &Step, changed: bool, divisors: &Divisors) -> bool {
    if step.fault.is_some() {
        return false;
    }
    match &step.what {
        What::Classify { .. } => true,
        What::Op(op) => match op {
            // A division by 0 faults. If the divisor is not constant, a condition before the step
            // excludes 0, so the step must not move before that condition.
            Op::Bin { op: BinOp::Div | BinOp::Rem, b, .. } => divisors.contains(*b),
            Op::Load { .. } => !changed,
            Op::Bin { .. }
            | Op::Const { .. }
            | Op::ListLen { .. }
            | Op::Cmp { .. }
            | Op::Not { .. }
            | Op::Resize { .. }
            | Op::Clamp { .. }
            | Op::Select { .. }
            | Op::InSet { .. }
            | Op::Route { .. } => true,
            _ => false,
        },
        _ => false,
    }
}
