//! Arithmetic, exactly as the model IR defines it.
//!
//! A value with at most 64 significant bits is computed in 64 bits, whatever its type. In 64 bits,
//! only values of types with at most 64 bits can overflow.

use super::emitter::{Emitter, Place, at};
use super::load;
use crate::error::Error;
use crate::sys::{self, Wide};
use braid_ir::engine::Fault;
use braid_ir::model::{BinOp, CmpOp, ValueId};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};

pub(super) fn binary(
    e: &mut Emitter<'_, '_>,
    place: Place,
    out: ValueId,
    op: BinOp,
    (a, b): (ValueId, ValueId),
) -> Result<(), Error> {
    if matches!(op, BinOp::Div | BinOp::Rem) {
        check_divisor(e, place, b)?;
    }
    if op == BinOp::And
        && let Some(value) = load::part_of_field(e, a, b).or_else(|| load::part_of_field(e, b, a))
    {
        e.set(out, value);
        return Ok(());
    }
    let wide = e.is_wide(a) || e.is_wide(b) || e.is_wide(out);
    let (x, y) = (e.sized(a, wide)?, e.sized(b, wide)?);
    let bits = (e.bits(a), e.bits(b));
    let width = e.width(out);
    let value = match op {
        BinOp::AddSat => add_sat(e, x, y, bits.0.max(bits.1) + 1, width, wide),
        BinOp::AddWrap => {
            let sum = e.build.ins().iadd(x, y);
            if bits.0.max(bits.1) < width { sum } else { e.masked(sum, width) }
        }
        BinOp::SubSat => {
            let less = e.build.ins().icmp(IntCC::UnsignedLessThan, x, y);
            let difference = e.build.ins().isub(x, y);
            let zero = e.constant(0, wide);
            e.pick(less, zero, difference)
        }
        BinOp::SubWrap => {
            let difference = e.build.ins().isub(x, y);
            e.masked(difference, width)
        }
        BinOp::MulSat => mul_sat(e, (x, y), bits.0 + bits.1, width, wide),
        BinOp::MulWrap => {
            let product = e.build.ins().imul(x, y);
            if bits.0 + bits.1 <= width { product } else { e.masked(product, width) }
        }
        BinOp::Div if wide => call_wide(e, Wide::Div, x, y),
        BinOp::Div => e.build.ins().udiv(x, y),
        BinOp::Rem if wide => call_wide(e, Wide::Rem, x, y),
        BinOp::Rem => e.build.ins().urem(x, y),
        BinOp::And => e.build.ins().band(x, y),
        BinOp::Or => e.build.ins().bor(x, y),
        BinOp::Xor => e.build.ins().bxor(x, y),
        BinOp::Shl | BinOp::Shr => shift(e, op, (x, y), b, width, wide),
        BinOp::Min => e.min(x, y),
        BinOp::Max => e.max(x, y),
    };
    e.set(out, value);
    Ok(())
}

/// Emits a test that ends with a fault if the divisor is 0.
fn check_divisor(e: &mut Emitter<'_, '_>, place: Place, b: ValueId) -> Result<(), Error> {
    if e.constant_of(b).is_some_and(|b| b != 0) {
        return Ok(());
    }
    let (low, high) = e.halves(b)?;
    let any = e.build.ins().bor(low, high);
    let is_zero = e.build.ins().icmp_imm_u(IntCC::Equal, any, 0);
    let (code, zero) = (e.imm(sys::code(Fault::Division)), e.imm(0));
    let code = e.build.ins().select(is_zero, code, zero);
    e.fault_if(place, code);
    Ok(())
}

fn add_sat(
    e: &mut Emitter<'_, '_>,
    x: Value,
    y: Value,
    bits: u16,
    width: u16,
    wide: bool,
) -> Value {
    let sum = e.build.ins().iadd(x, y);
    if bits <= width {
        return sum;
    }
    if width < if wide { 128 } else { 64 } {
        return e.limited(sum, width);
    }
    let carried = e.build.ins().icmp(IntCC::UnsignedLessThan, sum, x);
    let max = e.constant(u128::MAX, wide);
    e.pick(carried, max, sum)
}

fn mul_sat(
    e: &mut Emitter<'_, '_>,
    (x, y): (Value, Value),
    bits: u16,
    width: u16,
    wide: bool,
) -> Value {
    if bits <= if wide { 128 } else { 64 } {
        let product = e.build.ins().imul(x, y);
        return if bits <= width { product } else { e.limited(product, width) };
    }
    if wide {
        let product = call_wide(e, Wide::MulSat, x, y);
        return e.limited(product, width);
    }
    let (low, high) = (e.build.ins().imul(x, y), e.build.ins().umulhi(x, y));
    let max = e.constant(braid_ir::show::max_of(width), false);
    let fits = e.build.ins().icmp_imm_u(IntCC::Equal, high, 0);
    let low = e.build.ins().umin(low, max);
    e.build.ins().select(fits, low, max)
}

/// Emits a shift. A shift by the width or more gives 0. (The machine's instruction shifts by the
/// remainder.)
fn shift(
    e: &mut Emitter<'_, '_>,
    op: BinOp,
    (x, y): (Value, Value),
    b: ValueId,
    width: u16,
    wide: bool,
) -> Value {
    // The model also loses the bits that are shifted out of the machine word.
    let limit = u128::from(width.min(if wide { 128 } else { 64 }));
    let by = e.narrowed(y);
    let shifted = match op {
        BinOp::Shl => {
            let shifted = e.build.ins().ishl(x, by);
            e.masked(shifted, width)
        }
        _ => e.build.ins().ushr(x, by),
    };
    match e.constant_of(b) {
        Some(by) if by < limit => shifted,
        Some(_) => e.constant(0, wide),
        None => {
            let limit = e.constant(limit, wide);
            let inside = e.build.ins().icmp(IntCC::UnsignedLessThan, y, limit);
            let zero = e.constant(0, wide);
            e.pick(inside, shifted, zero)
        }
    }
}

/// Calls the function for an operation on 128 bits that has no machine instruction.
fn call_wide(e: &mut Emitter<'_, '_>, op: Wide, x: Value, y: Value) -> Value {
    let number = e.build.ins().iconst(types::I32, op as i64);
    let ((a, b), (c, d)) = (e.split(x), e.split(y));
    let [low, high] = e.call(at::WIDE, &[number, a, b, c, d]);
    e.build.ins().iconcat(low, high)
}

pub(super) fn compare(
    e: &mut Emitter<'_, '_>,
    out: ValueId,
    op: CmpOp,
    (a, b): (ValueId, ValueId),
) -> Result<(), Error> {
    let value = condition(e, op, (a, b))?;
    e.set(out, value);
    Ok(())
}

/// The result of a comparison.
pub(super) fn condition(
    e: &mut Emitter<'_, '_>,
    op: CmpOp,
    (a, b): (ValueId, ValueId),
) -> Result<Value, Error> {
    let wide = e.is_wide(a) || e.is_wide(b);
    let (mut x, mut y) = (e.sized(a, wide)?, e.sized(b, wide)?);
    if e.bits(a).max(e.bits(b)) <= 32 {
        // An instruction can hold 32-bit constants but no larger 64-bit ones.
        x = e.build.ins().ireduce(types::I32, x);
        y = e.build.ins().ireduce(types::I32, y);
    }
    let condition = match op {
        CmpOp::Eq => IntCC::Equal,
        CmpOp::Ne => IntCC::NotEqual,
        CmpOp::Lt => IntCC::UnsignedLessThan,
        CmpOp::Le => IntCC::UnsignedLessThanOrEqual,
        CmpOp::Gt => IntCC::UnsignedGreaterThan,
        CmpOp::Ge => IntCC::UnsignedGreaterThanOrEqual,
    };
    Ok(e.build.ins().icmp(condition, x, y))
}

pub(super) fn not(e: &mut Emitter<'_, '_>, out: ValueId, a: ValueId) -> Result<(), Error> {
    let wide = e.is_wide(out);
    let value = e.sized(a, wide)?;
    let value = e.build.ins().bnot(value);
    let value = e.masked(value, e.width(out));
    e.set(out, value);
    Ok(())
}

/// Changes the width of a value. Keeps the low bits or, if `stops`, limits the value to the largest
/// one of the new width.
pub(super) fn convert(
    e: &mut Emitter<'_, '_>,
    out: ValueId,
    a: ValueId,
    stops: bool,
) -> Result<(), Error> {
    let (width, bits) = (e.width(out), e.bits(a));
    let value = if bits <= width {
        e.sized(a, e.is_wide(a))?
    } else if stops {
        let value = e.sized(a, e.is_wide(a))?;
        e.limited(value, width)
    } else {
        let value = e.sized(a, width > 64)?;
        e.masked(value, width)
    };
    e.set(out, value);
    Ok(())
}

pub(super) fn select(
    e: &mut Emitter<'_, '_>,
    out: ValueId,
    cond: ValueId,
    (a, b): (ValueId, ValueId),
) -> Result<(), Error> {
    let wide = e.is_wide(out);
    let cond = e.low(cond)?;
    let (x, y) = (e.sized(a, wide)?, e.sized(b, wide)?);
    let value = e.pick(cond, x, y);
    e.set(out, value);
    Ok(())
}
