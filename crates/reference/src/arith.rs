//! Arithmetic on values: unsigned integers of 1 to 128 bits.

use braid_ir::engine::Fault;
use braid_ir::model::{BinOp, CmpOp, Word};
use braid_ir::show::max_of;

/// The result of a binary operator on operands of this width.
pub(super) fn binary(op: BinOp, width: u16, a: Word, b: Word) -> Result<Word, Fault> {
    let max = max_of(width);
    let bits = u32::from(width);
    let shift = u32::try_from(b).unwrap_or(u32::MAX);
    Ok(match op {
        BinOp::AddSat => a.saturating_add(b).min(max),
        BinOp::SubSat => a.saturating_sub(b),
        BinOp::MulSat => a.saturating_mul(b).min(max),
        BinOp::AddWrap => a.wrapping_add(b) & max,
        BinOp::SubWrap => a.wrapping_sub(b) & max,
        BinOp::MulWrap => a.wrapping_mul(b) & max,
        BinOp::Div => a.checked_div(b).ok_or(Fault::Division)?,
        BinOp::Rem => a.checked_rem(b).ok_or(Fault::Division)?,
        BinOp::And => a & b,
        BinOp::Or => a | b,
        BinOp::Xor => a ^ b,
        BinOp::Shl if shift >= bits => 0,
        BinOp::Shl => (a << shift) & max,
        BinOp::Shr if shift >= bits => 0,
        BinOp::Shr => a >> shift,
        BinOp::Min => a.min(b),
        BinOp::Max => a.max(b),
    })
}

/// The result of a comparison.
pub(super) fn compare(op: CmpOp, a: Word, b: Word) -> bool {
    match op {
        CmpOp::Eq => a == b,
        CmpOp::Ne => a != b,
        CmpOp::Lt => a < b,
        CmpOp::Le => a <= b,
        CmpOp::Gt => a > b,
        CmpOp::Ge => a >= b,
    }
}

#[cfg(test)]
mod tests {
    use super::binary;
    use braid_ir::engine::Fault;
    use braid_ir::model::BinOp::*;

    #[test]
    fn saturating_operators_stop_at_the_ends_of_the_width() {
        assert_eq!(binary(AddSat, 8, 250, 10), Ok(255));
        assert_eq!(binary(AddSat, 128, u128::MAX, 1), Ok(u128::MAX));
        assert_eq!(binary(SubSat, 8, 3, 10), Ok(0));
        assert_eq!(binary(MulSat, 16, 300, 300), Ok(65_535));
        assert_eq!(binary(MulSat, 128, 1 << 127, 2), Ok(u128::MAX));
    }

    #[test]
    fn wrapping_operators_keep_the_low_bits() {
        assert_eq!(binary(AddWrap, 8, 250, 10), Ok(4));
        assert_eq!(binary(SubWrap, 8, 3, 10), Ok(249));
        assert_eq!(binary(MulWrap, 16, 300, 300), Ok(90_000 - 65_536));
        assert_eq!(binary(SubWrap, 128, 0, 1), Ok(u128::MAX));
    }

    #[test]
    fn division_by_zero_is_a_fault() {
        assert_eq!(binary(Div, 8, 7, 2), Ok(3));
        assert_eq!(binary(Rem, 8, 7, 2), Ok(1));
        assert_eq!(binary(Div, 8, 7, 0), Err(Fault::Division));
        assert_eq!(binary(Rem, 8, 7, 0), Err(Fault::Division));
    }

    #[test]
    fn shifts_by_the_width_or_more_give_zero() {
        assert_eq!(binary(Shl, 8, 0b1000_0001, 1), Ok(0b10));
        assert_eq!(binary(Shl, 8, 1, 8), Ok(0));
        assert_eq!(binary(Shr, 8, 0x80, 7), Ok(1));
        assert_eq!(binary(Shr, 8, 0x80, 8), Ok(0));
        assert_eq!(binary(Shl, 128, 1, 1 << 40), Ok(0));
    }
}
