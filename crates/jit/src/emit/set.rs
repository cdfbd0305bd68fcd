//! Membership in constant sets.

use super::Emitter;
use crate::error::Error;
use braid_ir::model::{ValueId, Word};
use braid_ir::value::IntervalSet;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, BlockArg, InstBuilder, Value, types};

/// Most intervals that become code; larger sets are looked up by the host.
const MOST: usize = 128;
/// So few are compared one after the other.
const FEW: usize = 4;

impl Emitter<'_, '_> {
    pub(super) fn fits(&self, set: &IntervalSet) -> bool {
        set.intervals().len() <= MOST
    }

    pub(super) fn member_of(
        &mut self,
        out: ValueId,
        a: ValueId,
        set: &IntervalSet,
    ) -> Result<(), Error> {
        let wide = self.is_wide(a);
        let value = self.sized(a, wide)?;
        // What the value cannot reach need not be compared.
        let most = braid_ir::show::max_of(self.bits(a));
        let inside = set.intervals().iter().filter(|(low, _)| *low <= most);
        let intervals: Vec<_> = inside.map(|(low, high)| (*low, (*high).min(most))).collect();
        let is_in = if intervals.len() <= FEW {
            self.any(value, &intervals, wide)
        } else {
            let done = self.build.create_block();
            let result = self.build.append_block_param(done, types::I64);
            self.tree(value, &intervals, wide, done);
            self.build.switch_to_block(done);
            result
        };
        self.set(out, is_in);
        Ok(())
    }

    /// Compares with intervals one after the other.
    fn any(&mut self, value: Value, intervals: &[(Word, Word)], wide: bool) -> Value {
        let mut is_in = self.imm(0);
        for (low, high) in intervals {
            let start = self.constant(*low, wide);
            let offset = self.build.ins().isub(value, start);
            let length = self.constant(high - low, wide);
            let one = self.build.ins().icmp(IntCC::UnsignedLessThanOrEqual, offset, length);
            let one = self.narrowed(one);
            is_in = self.build.ins().bor(is_in, one);
        }
        is_in
    }

    /// Halves the intervals until they are few; jumps to `done` with the result. The depth is at most
    /// the logarithm of [`MOST`].
    fn tree(&mut self, value: Value, intervals: &[(Word, Word)], wide: bool, done: Block) {
        if intervals.len() <= FEW {
            let is_in = self.any(value, intervals, wide);
            self.build.ins().jump(done, &[BlockArg::Value(is_in)]);
            return;
        }
        let (below, above) = intervals.split_at(intervals.len() / 2);
        let (low, high) = (self.build.create_block(), self.build.create_block());
        let start = self.constant(above[0].0, wide);
        let less = self.build.ins().icmp(IntCC::UnsignedLessThan, value, start);
        self.build.ins().brif(less, low, &[], high, &[]);
        for (block, part) in [(low, below), (high, above)] {
            self.build.switch_to_block(block);
            self.tree(value, part, wide, done);
        }
    }
}
