//! Applies operators to values, and converts values to types.

use braid_ir::model::{BinOp as IrBin, Kind, Ty, ValueId};

use super::arith::{self, BIT_NANOS, How, Plan};
use super::build::Builder;
use super::facts::KeyPart;
use super::lower::Lower;
use super::scope::Value;
use super::types::{self, U64, U128};
use super::{addr, constant, say};
use crate::ast::{BinOp, Span};
use crate::diag::{Diagnostic, codes};

/// Converts a value to this type.
pub fn coerce(lower: &mut Lower<'_>, value: Value, ty: Ty, span: Span) -> Option<ValueId> {
    match value {
        Value::Const(constant) => {
            let word = say::fit(constant, ty, span, lower.diags)?;
            Some(lower.b.constant(ty, word))
        }
        Value::Scalar(id, found) if types::compatible(ty, found) => Some(id),
        Value::Scalar(id, found) if addr::widens(found, ty) => Some(lower.b.widen(id, found, ty)),
        Value::Scalar(_, found) => lower.fail(say::mismatch(ty, found, span)),
        Value::Record(_) => lower.fail(say::expected_type(&types::name(ty), "a record", span)),
        Value::Text(_) => lower.fail(say::expected_type(&types::name(ty), "a text", span)),
        Value::Mutable(_) => lower.fail(say::expected_type(&types::name(ty), "a local", span)),
        Value::Wrong => None,
    }
}

/// The types of two operands, which must be single values. A number without a type gives `None`.
pub fn operand_types(
    lower: &mut Lower<'_>,
    (x, x_span): (&Value, Span),
    (y, y_span): (&Value, Span),
) -> Option<(Option<Ty>, Option<Ty>)> {
    match (x.scalar_ty(), y.scalar_ty()) {
        (Some(a), Some(b)) => Some((a, b)),
        (None, _) => lower.fail(say::expected_type("a single value", x.describe(), x_span)),
        _ => lower.fail(say::expected_type("a single value", y.describe(), y_span)),
    }
}

/// Applies `op` to two values.
pub fn combine(
    lower: &mut Lower<'_>,
    op: BinOp,
    (x, x_span): (Value, Span),
    (y, y_span): (Value, Span),
    span: Span,
) -> Option<Value> {
    let (ta, tb) = operand_types(lower, (&x, x_span), (&y, y_span))?;
    if let (Value::Const(x), Value::Const(y)) = (&x, &y) {
        let wrapping = lower.wrapping;
        let found = constant::combine(op, wrapping, (*x, x_span), (*y, y_span), span, lower.diags)?;
        let is_size = found.ty.is_some_and(|ty| ty.kind == Kind::Size);
        if op == BinOp::Mul && is_size && found.value == 0 && x.value != 0 && y.value != 0 {
            let message = "this is less than a byte, and so 0 B";
            let wrong = Diagnostic::new(codes::ROUNDED_SUM, message, span, "rounded down");
            lower.say(wrong.help(WHOLE_BYTES));
        }
        return Some(Value::Const(found));
    }
    if matches!(op, BinOp::Div | BinOp::Rem)
        && let Value::Const(divisor) = &y
        && divisor.value == 0
    {
        return lower.fail(say::fault(arith::Fault::Division, y_span));
    }
    let plan = match arith::plan(op, ta, tb) {
        Ok(plan) => plan,
        Err(wrong) => return lower.fail(say::operands(wrong, op, ta, tb, span)),
    };
    let (left, right) = (coerce(lower, x, plan.left, x_span), coerce(lower, y, plan.right, y_span));
    let (left, right) = (left?, right?);
    if op == BinOp::Add {
        warn_of_rounding(lower, [(left, x_span), (right, y_span)]);
    }
    let time = match plan.how {
        How::RateTime => Some(right),
        How::TimeRate => Some(left),
        _ => None,
    };
    let op = ir_op(op, lower.wrapping);
    let id = planned(&mut lower.b, op, &plan, left, right);
    if time.is_some_and(|time| matches!(lower.b.key_part(time), KeyPart::Value(_))) {
        lower.rounded = Some(id);
    }
    Some(Value::Scalar(id, plan.result))
}

/// Warns of a sum with the product of a rate and a time that differs from packet to packet: each of
/// them is rounded down to whole bytes, and a sum of many may never grow.
fn warn_of_rounding(lower: &mut Lower<'_>, sides: [(ValueId, Span); 2]) {
    let Some((_, span)) = sides.into_iter().find(|(id, _)| Some(*id) == lower.rounded) else {
        return;
    };
    let message = "this adds sizes that are rounded down to whole bytes";
    let wrong = Diagnostic::new(codes::ROUNDED_SUM, message, span, "0 B for a short time");
    lower.say(wrong.help(WHOLE_BYTES));
}

/// The remedy for sizes that are rounded down.
pub(crate) const WHOLE_BYTES: &str = "use a state of the type `bucket` and `spend(…)`, or count in bits × \
                           nanoseconds a second: `credit + u128(rate) * u128(pkt.time - since)`, \
                           where a byte is 8_000_000_000";

/// Adds the operations of a plan.
fn planned(build: &mut Builder, op: IrBin, plan: &Plan, a: ValueId, b: ValueId) -> ValueId {
    match plan.how {
        How::Plain => build.bin(plan.result, op, a, b),
        How::Shift => {
            let by = build.clamp(b, plan.right, plan.left);
            build.bin(plan.result, op, a, by)
        }
        How::Scale => {
            let count = build.widen(b, plan.right, U64);
            build.bin(plan.result, op, a, count)
        }
        How::ScaleLeft => {
            let count = build.widen(a, plan.left, U64);
            build.bin(plan.result, op, count, b)
        }
        How::RateTime | How::TimeRate => {
            let (a, b) = (build.widen(a, plan.left, U128), build.widen(b, plan.right, U128));
            let product = build.bin(U128, IrBin::MulSat, a, b);
            let unit = build.constant(U128, BIT_NANOS);
            let wide = build.bin(U128, IrBin::Div, product, unit);
            build.clamp(wide, U128, plan.result)
        }
        How::PerSize => {
            let (a, b) = (build.widen(a, plan.left, U128), build.widen(b, plan.right, U128));
            let unit = build.constant(U128, BIT_NANOS);
            let scaled = build.bin(U128, IrBin::MulSat, a, unit);
            let wide = build.bin(U128, IrBin::Div, scaled, b);
            build.clamp(wide, U128, plan.result)
        }
    }
}

fn ir_op(op: BinOp, wrapping: bool) -> IrBin {
    match op {
        BinOp::Add if wrapping => IrBin::AddWrap,
        BinOp::Sub if wrapping => IrBin::SubWrap,
        BinOp::Mul if wrapping => IrBin::MulWrap,
        BinOp::Add => IrBin::AddSat,
        BinOp::Sub => IrBin::SubSat,
        BinOp::Mul => IrBin::MulSat,
        BinOp::Div => IrBin::Div,
        BinOp::Rem => IrBin::Rem,
        BinOp::BitAnd | BinOp::And => IrBin::And,
        BinOp::BitOr | BinOp::Or => IrBin::Or,
        BinOp::Shl => IrBin::Shl,
        BinOp::Shr => IrBin::Shr,
        _ => IrBin::Xor,
    }
}
