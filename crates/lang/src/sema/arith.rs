//! Arithmetic: the operand and result types of operators, and operations on constants.
//!
//! A number without a unit has no type (`None`) until its context gives it one.

use braid_ir::model::{Kind, Ty};

use super::addr;
use super::types::{self, DURATION, SIZE, U32, U64};
use crate::ast::BinOp;

/// A constant. `ty` is `None` for a number without a unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Const {
    /// Its value.
    pub value: u128,
    /// Its type, if its notation gives one.
    pub ty: Option<Ty>,
}

impl Const {
    /// A constant with a type.
    #[must_use]
    pub const fn typed(value: u128, ty: Ty) -> Self {
        Self { value, ty: Some(ty) }
    }

    /// A number without a unit.
    #[must_use]
    pub const fn plain(value: u128) -> Self {
        Self { value, ty: None }
    }
}

/// How a binary operator works on its operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    /// The IR's operator. Both operands have the result's width.
    Plain,
    /// The right operand is clamped to the left one's width.
    Shift,
    /// The right operand is a number and is widened to 64 bits.
    Scale,
    /// Like `Scale`, with the number on the left.
    ScaleLeft,
    /// bitrate * duration gives a size.
    RateTime,
    /// duration * bitrate gives a size.
    TimeRate,
    /// size / duration gives a bitrate, and size / bitrate gives a duration.
    PerSize,
}

/// A binary operator on types: the operand types that it needs, and its result type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    /// Type of the left operand.
    pub left: Ty,
    /// Type of the right operand.
    pub right: Ty,
    /// How it works on the operands.
    pub how: How,
    /// Type of the result.
    pub result: Ty,
}

/// Why an operator cannot take operands of these types.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wrong {
    /// Different widths of one kind.
    Widths,
    /// Different kinds.
    Types,
    /// The operator is not defined for the types.
    Operator,
    /// No operand has a type.
    Unclear,
}

/// Nanoseconds in a second times bits in a byte: bitrate * duration / this constant = size.
pub const BIT_NANOS: u128 = 8_000_000_000;

fn quantity(kind: Kind) -> bool {
    matches!(kind, Kind::Duration | Kind::Size | Kind::Bitrate)
}

/// The common type of both sides of a comparison, `min` or `max`.
pub fn common(a: Option<Ty>, b: Option<Ty>) -> Result<Ty, Wrong> {
    match (a, b) {
        (None, None) => Err(Wrong::Unclear),
        (Some(ty), None) | (None, Some(ty)) => Ok(ty),
        (Some(a), Some(b)) if types::compatible(a, b) => {
            Ok(if matches!(b.kind, Kind::Port | Kind::Addr) { b } else { a })
        }
        (Some(a), Some(b)) if addr::widens(a, b) => Ok(b),
        (Some(a), Some(b)) if addr::widens(b, a) => Ok(a),
        (Some(a), Some(b)) if a.kind == b.kind => Err(Wrong::Widths),
        _ => Err(Wrong::Types),
    }
}

/// How `op` works on operands of these types. `op` is not a comparison, `and` or `or`.
pub fn plan(op: BinOp, a: Option<Ty>, b: Option<Ty>) -> Result<Plan, Wrong> {
    match op {
        BinOp::Shl | BinOp::Shr => shift(a, b),
        BinOp::Mul => product(a, b),
        BinOp::Div | BinOp::Rem => quotient(op, a, b),
        BinOp::Add | BinOp::Sub => sum(op, a, b),
        _ => common(a, b).map(plain),
    }
}

fn plain(ty: Ty) -> Plan {
    Plan { left: ty, right: ty, how: How::Plain, result: ty }
}

fn shift(a: Option<Ty>, b: Option<Ty>) -> Result<Plan, Wrong> {
    let left = a.ok_or(Wrong::Unclear)?;
    let right = b.unwrap_or(U32);
    let bits = matches!(
        left.kind,
        Kind::Uint | Kind::Port | Kind::Ip4 | Kind::Ip6 | Kind::Addr | Kind::Mac
    );
    if !bits || right.kind != Kind::Uint {
        return Err(Wrong::Operator);
    }
    Ok(Plan { left, right, how: How::Shift, result: left })
}

fn is_count(ty: Option<Ty>) -> bool {
    ty.is_none_or(|ty| ty.kind == Kind::Uint && ty.width <= 64)
}

fn product(a: Option<Ty>, b: Option<Ty>) -> Result<Plan, Wrong> {
    match (a, b) {
        (Some(x), Some(y)) if (x.kind, y.kind) == (Kind::Bitrate, Kind::Duration) => {
            Ok(Plan { left: x, right: y, how: How::RateTime, result: SIZE })
        }
        (Some(x), Some(y)) if (x.kind, y.kind) == (Kind::Duration, Kind::Bitrate) => {
            Ok(Plan { left: x, right: y, how: How::TimeRate, result: SIZE })
        }
        (Some(x), count) if quantity(x.kind) && is_count(count) => {
            Ok(Plan { left: x, right: count.unwrap_or(U64), how: How::Scale, result: x })
        }
        (count, Some(y)) if quantity(y.kind) && is_count(count) => {
            Ok(Plan { left: count.unwrap_or(U64), right: y, how: How::ScaleLeft, result: y })
        }
        _ => numbers(common(a, b)?),
    }
}

fn quotient(op: BinOp, a: Option<Ty>, b: Option<Ty>) -> Result<Plan, Wrong> {
    let kinds = (a.map(|ty| ty.kind), b.map(|ty| ty.kind));
    match (a, b, kinds) {
        (Some(x), Some(y), (Some(Kind::Size), Some(Kind::Duration))) if op == BinOp::Div => {
            Ok(Plan { left: x, right: y, how: How::PerSize, result: types::BITRATE })
        }
        (Some(x), Some(y), (Some(Kind::Size), Some(Kind::Bitrate))) if op == BinOp::Div => {
            Ok(Plan { left: x, right: y, how: How::PerSize, result: DURATION })
        }
        (Some(x), Some(y), (Some(Kind::Time), Some(Kind::Duration))) => {
            let result = if op == BinOp::Div { U64 } else { DURATION };
            Ok(Plan { left: x, right: y, how: How::Plain, result })
        }
        (Some(x), Some(y), _) if x.kind == y.kind && quantity(x.kind) => {
            let result = if op == BinOp::Div { U64 } else { x };
            Ok(Plan { left: x, right: y, how: How::Plain, result })
        }
        (Some(x), count, _) if quantity(x.kind) && is_count(count) => {
            Ok(Plan { left: x, right: count.unwrap_or(U64), how: How::Scale, result: x })
        }
        _ => numbers(common(a, b)?),
    }
}

/// The plan for products and quotients of plain numbers.
fn numbers(ty: Ty) -> Result<Plan, Wrong> {
    match ty.kind {
        Kind::Uint | Kind::Port => Ok(plain(ty)),
        _ => Err(Wrong::Operator),
    }
}

fn sum(op: BinOp, a: Option<Ty>, b: Option<Ty>) -> Result<Plan, Wrong> {
    let kinds = (a.map(|ty| ty.kind), b.map(|ty| ty.kind));
    let moved = |left: Ty, right: Ty, result: Ty| Ok(Plan { left, right, how: How::Plain, result });
    match (a, b, kinds) {
        (Some(x), Some(y), (Some(Kind::Time), Some(Kind::Duration))) => moved(x, y, x),
        (Some(x), Some(y), (Some(Kind::Duration), Some(Kind::Time))) if op == BinOp::Add => {
            moved(x, y, y)
        }
        (Some(x), Some(y), (Some(Kind::Time), Some(Kind::Time))) if op == BinOp::Sub => {
            moved(x, y, DURATION)
        }
        (Some(x), None, (Some(Kind::Time), _)) => moved(x, DURATION, x),
        _ => match common(a, b)? {
            Ty { kind: Kind::Bool | Kind::Time, .. } => Err(Wrong::Operator),
            ty => Ok(plain(ty)),
        },
    }
}

/// Why an operator on constants has no result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The result leaves the range of its type.
    Overflow,
    /// The divisor is 0.
    Division,
}

/// Applies the operator to constants that fit the plan's types. With `wrapping`, sums and products
/// wrap.
pub fn fold(plan: &Plan, op: BinOp, wrapping: bool, a: u128, b: u128) -> Result<u128, Fault> {
    let most = types::max(plan.result);
    let value = match plan.how {
        How::RateTime | How::TimeRate => a.checked_mul(b).ok_or(Fault::Overflow)? / BIT_NANOS,
        How::PerSize => {
            let scaled = a.checked_mul(BIT_NANOS).ok_or(Fault::Overflow)?;
            scaled.checked_div(b).ok_or(Fault::Division)?
        }
        How::Shift => return Ok(shifted(op, plan.left, a, b)),
        How::Plain | How::Scale | How::ScaleLeft => {
            return plain_fold(op, wrapping, most, a, b);
        }
    };
    if value > most { Err(Fault::Overflow) } else { Ok(value) }
}

/// Applies the operator to two numbers without a unit, which are 128 bits wide.
pub fn fold_plain(op: BinOp, a: u128, b: u128) -> Result<u128, Fault> {
    match op {
        BinOp::Shl => {
            let shifted = u32::try_from(b).ok().and_then(|b| a.checked_shl(b)).unwrap_or(0);
            let back = u32::try_from(b).ok().and_then(|b| shifted.checked_shr(b)).unwrap_or(0);
            if back == a { Ok(shifted) } else { Err(Fault::Overflow) }
        }
        BinOp::Shr => Ok(shifted(op, types::U128, a, b)),
        _ => plain_fold(op, false, u128::MAX, a, b),
    }
}

fn shifted(op: BinOp, ty: Ty, a: u128, b: u128) -> u128 {
    if b >= u128::from(ty.width) {
        return 0;
    }
    let by = u32::try_from(b).unwrap_or(127);
    let value = if op == BinOp::Shl { a << by } else { a >> by };
    value & types::max(ty)
}

fn plain_fold(op: BinOp, wrapping: bool, most: u128, a: u128, b: u128) -> Result<u128, Fault> {
    let value = match op {
        BinOp::Add if wrapping => return Ok(a.wrapping_add(b) & most),
        BinOp::Sub if wrapping => return Ok(a.wrapping_sub(b) & most),
        BinOp::Mul if wrapping => return Ok(a.wrapping_mul(b) & most),
        BinOp::Add => a.checked_add(b),
        BinOp::Sub => a.checked_sub(b),
        BinOp::Mul => a.checked_mul(b),
        BinOp::Div => return a.checked_div(b).ok_or(Fault::Division),
        BinOp::Rem => return a.checked_rem(b).ok_or(Fault::Division),
        BinOp::BitAnd => Some(a & b),
        BinOp::BitOr => Some(a | b),
        BinOp::BitXor => Some(a ^ b),
        _ => None,
    };
    value.filter(|value| *value <= most).ok_or(Fault::Overflow)
}

/// Compares constants.
#[must_use]
pub fn compare(op: BinOp, a: u128, b: u128) -> bool {
    match op {
        BinOp::Eq => a == b,
        BinOp::Ne => a != b,
        BinOp::Lt => a < b,
        BinOp::Le => a <= b,
        BinOp::Gt => a > b,
        _ => a >= b,
    }
}

/// The nanoseconds of a unit of durations, such as `ms` or `min`. `None` for other units.
#[must_use]
pub fn duration_unit_ns(unit: &str) -> Option<u128> {
    let one = with_unit(1, unit)?;
    (one.ty == Some(DURATION)).then_some(one.value)
}

/// A number with a unit. `None` when it does not fit into 64 bits (128 for plain counts).
#[must_use]
pub fn with_unit(number: u128, unit: &str) -> Option<Const> {
    let (factor, ty): (u128, Option<Ty>) = match unit {
        "ns" => (1, Some(DURATION)),
        "us" => (1_000, Some(DURATION)),
        "ms" => (1_000_000, Some(DURATION)),
        "s" => (1_000_000_000, Some(DURATION)),
        "min" => (60_000_000_000, Some(DURATION)),
        "h" => (3_600_000_000_000, Some(DURATION)),
        "d" => (86_400_000_000_000, Some(DURATION)),
        "B" => (1, Some(SIZE)),
        "KB" => (1_000, Some(SIZE)),
        "MB" => (1_000_000, Some(SIZE)),
        "GB" => (1_000_000_000, Some(SIZE)),
        "KiB" => (1 << 10, Some(SIZE)),
        "MiB" => (1 << 20, Some(SIZE)),
        "GiB" => (1 << 30, Some(SIZE)),
        "k" => (1_000, None),
        "M" => (1_000_000, None),
        "G" => (1_000_000_000, None),
        "Ki" => (1 << 10, None),
        "Mi" => (1 << 20, None),
        "Gi" => (1 << 30, None),
        "bit/s" => (1, Some(types::BITRATE)),
        "kbit/s" => (1_000, Some(types::BITRATE)),
        "Mbit/s" => (1_000_000, Some(types::BITRATE)),
        "Gbit/s" => (1_000_000_000, Some(types::BITRATE)),
        "B/s" => (8, Some(types::BITRATE)),
        "KB/s" => (8_000, Some(types::BITRATE)),
        "MB/s" => (8_000_000, Some(types::BITRATE)),
        "GB/s" => (8_000_000_000, Some(types::BITRATE)),
        _ => return None,
    };
    let value = number.checked_mul(factor)?;
    (value <= ty.map_or(u128::MAX, types::max)).then_some(Const { value, ty })
}

#[cfg(test)]
mod tests {
    use super::super::types::{BITRATE, IP4, PORT, TIME};
    use super::*;

    fn folded(op: BinOp, a: u128, ta: Ty, b: u128, tb: Ty) -> Option<(u128, Ty)> {
        let plan = plan(op, Some(ta), Some(tb)).ok()?;
        fold(&plan, op, false, a, b).ok().map(|value| (value, plan.result))
    }

    #[test]
    fn rate_times_duration_is_bytes_rounded_down() {
        // 100 Mbit/s for 10 ms are 1,000,000 bits, or 125,000 bytes.
        let bytes = folded(BinOp::Mul, 100_000_000, BITRATE, 10_000_000, DURATION);
        assert_eq!(bytes, Some((125_000, SIZE)));
        // 1 bit/s for 7 s is 7 bits, which is less than a whole byte.
        assert_eq!(folded(BinOp::Mul, 7_000_000_000, DURATION, 1, BITRATE), Some((0, SIZE)));
    }

    #[test]
    fn size_per_duration_is_a_bitrate() {
        let rate = folded(BinOp::Div, 125, SIZE, 1_000_000_000, DURATION);
        assert_eq!(rate, Some((1_000, BITRATE)));
        let time = folded(BinOp::Div, 125, SIZE, 1_000, BITRATE);
        assert_eq!(time, Some((1_000_000_000, DURATION)));
    }

    #[test]
    fn times_subtract_to_durations_and_do_not_add() {
        assert_eq!(folded(BinOp::Sub, 9, TIME, 4, TIME), Some((5, DURATION)));
        assert_eq!(plan(BinOp::Add, Some(TIME), Some(TIME)), Err(Wrong::Operator));
        assert_eq!(folded(BinOp::Add, 9, TIME, 4, DURATION), Some((13, TIME)));
    }

    #[test]
    fn widths_and_kinds_must_match() {
        assert_eq!(plan(BinOp::Add, Some(U32), Some(U64)), Err(Wrong::Widths));
        assert_eq!(plan(BinOp::Add, Some(U32), Some(IP4)), Err(Wrong::Types));
        assert_eq!(plan(BinOp::Mul, Some(IP4), Some(IP4)), Err(Wrong::Operator));
        assert_eq!(plan(BinOp::Add, Some(types::uint(16)), Some(PORT)).unwrap().result, PORT);
    }

    #[test]
    fn constants_overflow_unless_wrapping() {
        let plan = plan(BinOp::Sub, Some(PORT), Some(PORT)).unwrap();
        assert_eq!(fold(&plan, BinOp::Sub, false, 3, 5), Err(Fault::Overflow));
        assert_eq!(fold(&plan, BinOp::Sub, true, 3, 5), Ok(65_534));
        assert_eq!(fold_plain(BinOp::Shl, 1, 128), Err(Fault::Overflow));
        assert_eq!(fold_plain(BinOp::Rem, 1, 0), Err(Fault::Division));
    }

    #[test]
    fn units_scale() {
        assert_eq!(with_unit(2, "min"), Some(Const::typed(120_000_000_000, DURATION)));
        assert_eq!(with_unit(1, "KB/s"), Some(Const::typed(8_000, BITRATE)));
        assert_eq!(with_unit(64, "Ki"), Some(Const::plain(65_536)));
        assert_eq!(with_unit(u128::MAX, "s"), None);
    }
}
