//! Membership in constant sets.

use super::emitter::Emitter;
use crate::error::Error;
use braid_ir::model::{ValueId, Word};
use braid_ir::value::IntervalSet;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, BlockArg, InstBuilder, Value, types};

/// The largest number of intervals that become code. The host tests larger sets.
const MOST: usize = 128;
/// The largest number of intervals that are tested one after the other.
const FEW: usize = 4;

pub(super) fn is_compiled(set: &IntervalSet) -> bool {
    set.intervals().len() <= MOST
}

pub(super) fn member_of(
    e: &mut Emitter<'_, '_>,
    out: ValueId,
    a: ValueId,
    set: &IntervalSet,
) -> Result<(), Error> {
    let wide = e.is_wide(a);
    let value = e.sized(a, wide)?;
    // Intervals above the largest possible value need no test.
    let most = braid_ir::show::max_of(e.bits(a));
    let inside = set.intervals().iter().filter(|(low, _)| *low <= most);
    let intervals: Vec<_> = inside.map(|(low, high)| (*low, (*high).min(most))).collect();
    let is_in = if intervals.len() <= FEW {
        test_each(e, value, &intervals, wide)
    } else {
        let done = e.build.create_block();
        let result = e.build.append_block_param(done, types::I64);
        search_tree(e, value, &intervals, wide, done);
        e.build.switch_to_block(done);
        result
    };
    e.set(out, is_in);
    Ok(())
}

/// Tests intervals one after the other.
fn test_each(
    e: &mut Emitter<'_, '_>,
    value: Value,
    intervals: &[(Word, Word)],
    wide: bool,
) -> Value {
    let mut is_in = e.imm(0);
    for (low, high) in intervals {
        let start = e.constant(*low, wide);
        let offset = e.build.ins().isub(value, start);
        let length = e.constant(high - low, wide);
        let one = e.build.ins().icmp(IntCC::UnsignedLessThanOrEqual, offset, length);
        let one = e.narrowed(one);
        is_in = e.build.ins().bor(is_in, one);
    }
    is_in
}

/// Halves the intervals until few are left, tests these, and jumps to `done` with the result. The
/// depth of the recursion is at most the logarithm of [`MOST`].
#[expect(
    clippy::indexing_slicing,
    reason = "there are more than `FEW` intervals, so both halves have at least one"
)]
fn search_tree(
    e: &mut Emitter<'_, '_>,
    value: Value,
    intervals: &[(Word, Word)],
    wide: bool,
    done: Block,
) {
    if intervals.len() <= FEW {
        let is_in = test_each(e, value, intervals, wide);
        e.build.ins().jump(done, &[BlockArg::Value(is_in)]);
        return;
    }
    let (below, above) = intervals.split_at(intervals.len() / 2);
    let (low, high) = (e.build.create_block(), e.build.create_block());
    let start = e.constant(above[0].0, wide);
    let less = e.build.ins().icmp(IntCC::UnsignedLessThan, value, start);
    e.build.ins().brif(less, low, &[], high, &[]);
    for (block, part) in [(low, below), (high, above)] {
        e.build.switch_to_block(block);
        search_tree(e, value, part, wide, done);
    }
}
