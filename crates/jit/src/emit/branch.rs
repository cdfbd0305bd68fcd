//! Branches on a condition that is a combination of tests.
//!
//! Each test becomes a branch. So no test runs after the deciding one, and no intermediate result
//! needs a register.

use super::arith;
use super::emitter::{Edge, Emitter};
use crate::error::Error;
use braid_ir::model::{BinOp, Op, SetRef, ValueId};
use braid_ir::residual::What;
use braid_ir::show::max_of;
use braid_ir::value::IntervalSet;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};

/// The largest number of tests of a condition that become branches.
const PARTS: usize = 32;
/// The largest number of intervals that are tested one after the other.
const FEW: usize = 6;

/// Records the definitions of booleans and the number of uses of each value.
#[expect(
    clippy::indexing_slicing,
    reason = "`Facts` has checked the values and jumps of blocks that the program reaches"
)]
pub(super) fn record_definitions(e: &mut Emitter<'_, '_>) {
    let uses = &mut e.uses;
    let mut count = |value: &ValueId| uses[value.index()] += 1;
    for (_, block) in e.facts.reached(e.residual) {
        block.steps.iter().for_each(|step| step.what.visit_uses(&mut count));
        block.end.visit_uses(&mut count);
        for target in block.end.targets() {
            target.args.iter().for_each(&mut count);
        }
    }
    let steps = e.facts.reached(e.residual).flat_map(|(_, block)| &block.steps);
    for step in steps {
        let What::Op(op) = &step.what else { continue };
        let (Op::Bin { out, .. }
        | Op::Cmp { out, .. }
        | Op::Not { out, .. }
        | Op::InSet { out, .. }) = op
        else {
            continue;
        };
        if e.width(*out) == 1 {
            e.tests.insert(*out, op);
        }
    }
}

/// Jumps to `yes` if a condition holds and to `no` otherwise.
pub(super) fn branch(
    e: &mut Emitter<'_, '_>,
    cond: ValueId,
    yes: &Edge,
    no: &Edge,
) -> Result<(), Error> {
    branch_on(e, cond, yes, no, &mut PARTS.clone())
}

fn branch_on(
    e: &mut Emitter<'_, '_>,
    cond: ValueId,
    yes: &Edge,
    no: &Edge,
    parts: &mut usize,
) -> Result<(), Error> {
    *parts = parts.saturating_sub(1);
    // If the condition comes out of a region, its parts are not available here.
    let whole = *parts == 0 || e.outcomes.variables.contains_key(&cond);
    let test = e.tests.get(&cond).copied().filter(|_| !whole);
    match test {
        Some(Op::Bin { op: BinOp::And, a, b, .. }) => {
            let both = (e.build.create_block(), Vec::new());
            branch_on(e, *a, &both, no, parts)?;
            e.build.switch_to_block(both.0);
            branch_on(e, *b, yes, no, parts)
        }
        Some(Op::Bin { op: BinOp::Or, a, b, .. }) => {
            let neither = (e.build.create_block(), Vec::new());
            branch_on(e, *a, yes, &neither, parts)?;
            e.build.switch_to_block(neither.0);
            branch_on(e, *b, yes, no, parts)
        }
        Some(Op::Not { a, .. }) => branch_on(e, *a, no, yes, parts),
        Some(Op::InSet { a, set: SetRef::Const(set), .. }) if set.intervals().len() <= FEW => {
            branch_in(e, *a, set, yes, no)
        }
        Some(Op::Cmp { op, a, b, .. }) => {
            let cond = arith::condition(e, *op, (*a, *b))?;
            branch_to(e, cond, yes, no);
            Ok(())
        }
        _ => {
            let cond = e.low(cond)?;
            branch_to(e, cond, yes, no);
            Ok(())
        }
    }
}

fn branch_to(e: &mut Emitter<'_, '_>, cond: Value, yes: &Edge, no: &Edge) {
    e.build.ins().brif(cond, yes.0, &yes.1, no.0, &no.1);
}

/// Tests intervals one after the other, the largest ones first.
fn branch_in(
    e: &mut Emitter<'_, '_>,
    a: ValueId,
    set: &IntervalSet,
    yes: &Edge,
    no: &Edge,
) -> Result<(), Error> {
    let most = max_of(e.bits(a));
    let inside = set.intervals().iter().filter(|(low, _)| *low <= most);
    let mut intervals: Vec<_> = inside.map(|(low, high)| (*low, (*high).min(most))).collect();
    intervals.sort_by_key(|(low, high)| std::cmp::Reverse(high - low));
    let wide = e.is_wide(a);
    let mut value = e.sized(a, wide)?;
    if e.bits(a) <= 32 {
        value = e.build.ins().ireduce(types::I32, value);
    }
    for (low, high) in intervals {
        let other = (e.build.create_block(), Vec::new());
        let is_in = if low == high {
            let low = constant_like(e, value, low);
            e.build.ins().icmp(IntCC::Equal, value, low)
        } else {
            let start = constant_like(e, value, low);
            let offset = if low == 0 { value } else { e.build.ins().isub(value, start) };
            let length = constant_like(e, value, high - low);
            e.build.ins().icmp(IntCC::UnsignedLessThanOrEqual, offset, length)
        };
        branch_to(e, is_in, yes, &other);
        e.build.switch_to_block(other.0);
    }
    e.build.ins().jump(no.0, &no.1);
    Ok(())
}

/// A constant of the type that another value has.
#[expect(
    clippy::cast_possible_truncation,
    reason = "callers compare 32-bit values only with 32-bit numbers"
)]
fn constant_like(e: &mut Emitter<'_, '_>, value: Value, number: u128) -> Value {
    let ty = e.build.func.dfg.value_type(value);
    if ty == types::I32 {
        return e.build.ins().iconst(types::I32, i64::from(number as u32));
    }
    e.constant(number, ty == types::I128)
}
