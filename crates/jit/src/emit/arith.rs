//! Arithmetic, exactly as the model IR has it.
//!
//! What can have at most 64 bits is computed in 64, whatever its type: overflow of the type is then
//! only possible where the type has at most 64 bits itself.

use super::{Emitter, Place, at};
use crate::error::Error;
use crate::sys::{self, Wide};
use braid_ir::engine::Fault;
use braid_ir::model::{BinOp, CmpOp, ValueId};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};

impl Emitter<'_, '_> {
    pub(super) fn binary(
        &mut self,
        place: Place,
        out: ValueId,
        op: BinOp,
        (a, b): (ValueId, ValueId),
    ) -> Result<(), Error> {
        if matches!(op, BinOp::Div | BinOp::Rem) {
            self.divisor(place, b)?;
        }
        if op == BinOp::And
            && let Some(value) = self.part_of_field(a, b).or_else(|| self.part_of_field(b, a))
        {
            self.set(out, value);
            return Ok(());
        }
        let wide = self.is_wide(a) || self.is_wide(b) || self.is_wide(out);
        let (x, y) = (self.sized(a, wide)?, self.sized(b, wide)?);
        let bits = (self.bits(a), self.bits(b));
        let width = self.width(out);
        let value = match op {
            BinOp::AddSat => self.add_sat(x, y, bits.0.max(bits.1) + 1, width, wide),
            BinOp::AddWrap => {
                let sum = self.build.ins().iadd(x, y);
                if bits.0.max(bits.1) < width { sum } else { self.masked(sum, width) }
            }
            BinOp::SubSat => {
                let less = self.build.ins().icmp(IntCC::UnsignedLessThan, x, y);
                let difference = self.build.ins().isub(x, y);
                let zero = self.constant(0, wide);
                self.pick(less, zero, difference)
            }
            BinOp::SubWrap => {
                let difference = self.build.ins().isub(x, y);
                self.masked(difference, width)
            }
            BinOp::MulSat => self.mul_sat((x, y), bits.0 + bits.1, width, wide),
            BinOp::MulWrap => {
                let product = self.build.ins().imul(x, y);
                if bits.0 + bits.1 <= width { product } else { self.masked(product, width) }
            }
            BinOp::Div if wide => self.function(Wide::Div, x, y),
            BinOp::Div => self.build.ins().udiv(x, y),
            BinOp::Rem if wide => self.function(Wide::Rem, x, y),
            BinOp::Rem => self.build.ins().urem(x, y),
            BinOp::And => self.build.ins().band(x, y),
            BinOp::Or => self.build.ins().bor(x, y),
            BinOp::Xor => self.build.ins().bxor(x, y),
            BinOp::Shl | BinOp::Shr => self.shift(op, (x, y), b, width, wide),
            BinOp::Min => self.lesser(x, y),
            BinOp::Max => self.greater(x, y),
        };
        self.set(out, value);
        Ok(())
    }

    /// Division by 0 is a fault.
    fn divisor(&mut self, place: Place, b: ValueId) -> Result<(), Error> {
        if self.facts.consts[b.index()].is_some_and(|b| b != 0) {
            return Ok(());
        }
        let (low, high) = self.halves(b)?;
        let any = self.build.ins().bor(low, high);
        let is_zero = self.build.ins().icmp_imm_u(IntCC::Equal, any, 0);
        let (code, zero) = (self.imm(sys::code(Fault::Division)), self.imm(0));
        let code = self.build.ins().select(is_zero, code, zero);
        self.fault_if(place, code);
        Ok(())
    }

    fn add_sat(&mut self, x: Value, y: Value, bits: u16, width: u16, wide: bool) -> Value {
        let sum = self.build.ins().iadd(x, y);
        if bits <= width {
            return sum;
        }
        if width < if wide { 128 } else { 64 } {
            return self.limited(sum, width);
        }
        let carried = self.build.ins().icmp(IntCC::UnsignedLessThan, sum, x);
        let max = self.constant(u128::MAX, wide);
        self.pick(carried, max, sum)
    }

    fn mul_sat(&mut self, (x, y): (Value, Value), bits: u16, width: u16, wide: bool) -> Value {
        if bits <= if wide { 128 } else { 64 } {
            let product = self.build.ins().imul(x, y);
            return if bits <= width { product } else { self.limited(product, width) };
        }
        if wide {
            let product = self.function(Wide::MulSat, x, y);
            return self.limited(product, width);
        }
        let (low, high) = (self.build.ins().imul(x, y), self.build.ins().umulhi(x, y));
        let max = self.constant(braid_ir::show::max_of(width), false);
        let fits = self.build.ins().icmp_imm_u(IntCC::Equal, high, 0);
        let low = self.build.ins().umin(low, max);
        self.build.ins().select(fits, low, max)
    }

    /// Shifts by the width or more give 0, which is not what the machine does.
    fn shift(
        &mut self,
        op: BinOp,
        (x, y): (Value, Value),
        b: ValueId,
        width: u16,
        wide: bool,
    ) -> Value {
        // What is shifted out of the bits in which this is computed is gone as well.
        let limit = u128::from(width.min(if wide { 128 } else { 64 }));
        let by = self.narrowed(y);
        let shifted = match op {
            BinOp::Shl => {
                let shifted = self.build.ins().ishl(x, by);
                self.masked(shifted, width)
            }
            _ => self.build.ins().ushr(x, by),
        };
        match self.facts.consts[b.index()] {
            Some(by) if by < limit => shifted,
            Some(_) => self.constant(0, wide),
            None => {
                let limit = self.constant(limit, wide);
                let inside = self.build.ins().icmp(IntCC::UnsignedLessThan, y, limit);
                let zero = self.constant(0, wide);
                self.pick(inside, shifted, zero)
            }
        }
    }

    /// An operation on 128 bits that is a function.
    fn function(&mut self, op: Wide, x: Value, y: Value) -> Value {
        let number = self.build.ins().iconst(types::I32, op as i64);
        let ((a, b), (c, d)) = (self.split(x), self.split(y));
        let results = self.call(at::WIDE, &[number, a, b, c, d], 2);
        self.build.ins().iconcat(results[0], results[1])
    }

    pub(super) fn compare(
        &mut self,
        out: ValueId,
        op: CmpOp,
        (a, b): (ValueId, ValueId),
    ) -> Result<(), Error> {
        let value = self.condition(op, (a, b))?;
        self.set(out, value);
        Ok(())
    }

    /// How a comparison comes out.
    pub(super) fn condition(
        &mut self,
        op: CmpOp,
        (a, b): (ValueId, ValueId),
    ) -> Result<Value, Error> {
        let wide = self.is_wide(a) || self.is_wide(b);
        let (mut x, mut y) = (self.sized(a, wide)?, self.sized(b, wide)?);
        if self.bits(a).max(self.bits(b)) <= 32 {
            // Larger constants fit into instructions.
            x = self.build.ins().ireduce(types::I32, x);
            y = self.build.ins().ireduce(types::I32, y);
        }
        let condition = match op {
            CmpOp::Eq => IntCC::Equal,
            CmpOp::Ne => IntCC::NotEqual,
            CmpOp::Lt => IntCC::UnsignedLessThan,
            CmpOp::Le => IntCC::UnsignedLessThanOrEqual,
            CmpOp::Gt => IntCC::UnsignedGreaterThan,
            CmpOp::Ge => IntCC::UnsignedGreaterThanOrEqual,
        };
        Ok(self.build.ins().icmp(condition, x, y))
    }

    pub(super) fn complement(&mut self, out: ValueId, a: ValueId) -> Result<(), Error> {
        let wide = self.is_wide(out);
        let value = self.sized(a, wide)?;
        let value = self.build.ins().bnot(value);
        let value = self.masked(value, self.width(out));
        self.set(out, value);
        Ok(())
    }

    /// A change of width: keeps the low bits, or stops at the largest value.
    pub(super) fn convert(&mut self, out: ValueId, a: ValueId, stops: bool) -> Result<(), Error> {
        let (width, bits) = (self.width(out), self.bits(a));
        let value = if bits <= width {
            self.sized(a, self.is_wide(a))?
        } else if stops {
            let value = self.sized(a, self.is_wide(a))?;
            self.limited(value, width)
        } else {
            let value = self.sized(a, width > 64)?;
            self.masked(value, width)
        };
        self.set(out, value);
        Ok(())
    }

    pub(super) fn choose(
        &mut self,
        out: ValueId,
        cond: ValueId,
        (a, b): (ValueId, ValueId),
    ) -> Result<(), Error> {
        let wide = self.is_wide(out);
        let cond = self.low(cond)?;
        let (x, y) = (self.sized(a, wide)?, self.sized(b, wide)?);
        let value = self.pick(cond, x, y);
        self.set(out, value);
        Ok(())
    }
}
