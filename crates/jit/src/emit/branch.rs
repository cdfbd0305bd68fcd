//! Branches by how their conditions are defined: each part of one is a branch of its own, so that the first
//! one that decides is the last one that is looked at, and nothing need be a number in between.

use super::{Emitter, Way};
use crate::error::Error;
use braid_ir::model::{BinOp, Op, SetRef, ValueId};
use braid_ir::residual::What;
use braid_ir::show::max_of;
use braid_ir::value::IntervalSet;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};

/// Most parts of a condition.
const PARTS: usize = 32;
/// Most intervals that are tried one after the other.
const FEW: usize = 6;

impl Emitter<'_, '_> {
    /// Notes how true-or-false values are defined, and how often values are used.
    pub(super) fn note_tests(&mut self) {
        let uses = &mut self.uses;
        let mut count = |value: &ValueId| uses[value.index()] += 1;
        for block in &self.residual.blocks {
            block.steps.iter().for_each(|step| step.what.visit_uses(&mut count));
            block.end.visit_uses(&mut count);
            for target in block.end.targets() {
                target.args.iter().for_each(&mut count);
            }
        }
        let steps = self.residual.blocks.iter().flat_map(|block| &block.steps);
        for step in steps {
            let What::Op(op) = &step.what else { continue };
            let (Op::Bin { out, .. }
            | Op::Cmp { out, .. }
            | Op::Not { out, .. }
            | Op::InSet { out, .. }) = op
            else {
                continue;
            };
            if self.width(*out) == 1 {
                self.tests.insert(*out, op);
            }
        }
    }

    /// Goes one way if a condition holds, and the other one if not.
    pub(super) fn branch(&mut self, cond: ValueId, yes: &Way, no: &Way) -> Result<(), Error> {
        self.branch_on(cond, yes, no, &mut PARTS.clone())
    }

    fn branch_on(
        &mut self,
        cond: ValueId,
        yes: &Way,
        no: &Way,
        parts: &mut usize,
    ) -> Result<(), Error> {
        *parts = parts.saturating_sub(1);
        // What it is made of is not at hand behind a region.
        let whole = *parts == 0 || self.records.variables.contains_key(&cond);
        let test = self.tests.get(&cond).copied().filter(|_| !whole);
        match test {
            Some(Op::Bin { op: BinOp::And, a, b, .. }) => {
                let both = (self.build.create_block(), Vec::new());
                self.branch_on(*a, &both, no, parts)?;
                self.build.switch_to_block(both.0);
                self.branch_on(*b, yes, no, parts)
            }
            Some(Op::Bin { op: BinOp::Or, a, b, .. }) => {
                let neither = (self.build.create_block(), Vec::new());
                self.branch_on(*a, yes, &neither, parts)?;
                self.build.switch_to_block(neither.0);
                self.branch_on(*b, yes, no, parts)
            }
            Some(Op::Not { a, .. }) => self.branch_on(*a, no, yes, parts),
            Some(Op::InSet { a, set: SetRef::Const(set), .. }) if set.intervals().len() <= FEW => {
                self.branch_in(*a, set, yes, no)
            }
            Some(Op::Cmp { op, a, b, .. }) => {
                let cond = self.condition(*op, (*a, *b))?;
                self.either(cond, yes, no);
                Ok(())
            }
            _ => {
                let cond = self.low(cond)?;
                self.either(cond, yes, no);
                Ok(())
            }
        }
    }

    fn either(&mut self, cond: Value, yes: &Way, no: &Way) {
        self.build.ins().brif(cond, yes.0, &yes.1, no.0, &no.1);
    }

    /// Tries intervals one after the other, large ones first.
    fn branch_in(
        &mut self,
        a: ValueId,
        set: &IntervalSet,
        yes: &Way,
        no: &Way,
    ) -> Result<(), Error> {
        let most = max_of(self.bits(a));
        let inside = set.intervals().iter().filter(|(low, _)| *low <= most);
        let mut intervals: Vec<_> = inside.map(|(low, high)| (*low, (*high).min(most))).collect();
        intervals.sort_by_key(|(low, high)| std::cmp::Reverse(high - low));
        let wide = self.is_wide(a);
        let mut value = self.sized(a, wide)?;
        if self.bits(a) <= 32 {
            value = self.build.ins().ireduce(types::I32, value);
        }
        for (low, high) in intervals {
            let other = (self.build.create_block(), Vec::new());
            let is_in = if low == high {
                let low = self.like(value, low);
                self.build.ins().icmp(IntCC::Equal, value, low)
            } else {
                let start = self.like(value, low);
                let offset = if low == 0 { value } else { self.build.ins().isub(value, start) };
                let length = self.like(value, high - low);
                self.build.ins().icmp(IntCC::UnsignedLessThanOrEqual, offset, length)
            };
            self.either(is_in, yes, &other);
            self.build.switch_to_block(other.0);
        }
        self.build.ins().jump(no.0, &no.1);
        Ok(())
    }

    /// A number, of the type of a value.
    fn like(&mut self, value: Value, number: u128) -> Value {
        let ty = self.build.func.dfg.value_type(value);
        if ty == types::I32 {
            return self.build.ins().iconst(types::I32, i64::from(number as u32));
        }
        self.constant(number, ty == types::I128)
    }
}
