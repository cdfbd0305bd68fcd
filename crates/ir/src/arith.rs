//! Arithmetic on values, for compilers and compiled engines: unsigned integers of 1 to 128 bits.
//! The reference engine has its own arithmetic, so that tests can compare the two.

use crate::engine::Fault;
use crate::model::{BinOp, CmpOp, Word};
use crate::show::max_of;

impl BinOp {
    /// All binary operators.
    pub const ALL: [BinOp; 15] = [
        BinOp::AddSat,
        BinOp::SubSat,
        BinOp::MulSat,
        BinOp::AddWrap,
        BinOp::SubWrap,
        BinOp::MulWrap,
        BinOp::Div,
        BinOp::Rem,
        BinOp::And,
        BinOp::Or,
        BinOp::Xor,
        BinOp::Shl,
        BinOp::Shr,
        BinOp::Min,
        BinOp::Max,
    ];
}

/// The result of a binary operator on operands of this width.
///
/// # Errors
/// A division by 0.
pub fn binary(op: BinOp, width: u16, a: Word, b: Word) -> Result<Word, Fault> {
    let max = max_of(width);
    // A count of at least the width shifts out all bits.
    let count = || u32::try_from(b).ok().filter(|count| *count < u32::from(width));
    let result = match op {
        BinOp::AddSat => a.saturating_add(b).min(max),
        BinOp::MulSat => a.saturating_mul(b).min(max),
        BinOp::SubSat => a.saturating_sub(b),
        BinOp::AddWrap => a.wrapping_add(b) & max,
        BinOp::SubWrap => a.wrapping_sub(b) & max,
        BinOp::MulWrap => a.wrapping_mul(b) & max,
        BinOp::Div => return a.checked_div(b).ok_or(Fault::Division),
        BinOp::Rem => return a.checked_rem(b).ok_or(Fault::Division),
        BinOp::And => a & b,
        BinOp::Or => a | b,
        BinOp::Xor => a ^ b,
        BinOp::Shl => count().map_or(0, |count| a << count & max),
        BinOp::Shr => count().map_or(0, |count| a >> count),
        BinOp::Min => a.min(b),
        BinOp::Max => a.max(b),
    };
    Ok(result)
}

/// As [`binary`], for operands and results of at most 64 bits, the largest result being `most`. A
/// division gives 0.
#[must_use]
#[inline(always)]
pub fn narrow(op: BinOp, most: u64, a: u64, b: u64) -> u64 {
    let count = || u32::try_from(b).unwrap_or(u32::MAX);
    match op {
        BinOp::AddSat => a.saturating_add(b).min(most),
        BinOp::MulSat => a.saturating_mul(b).min(most),
        BinOp::SubSat => a.saturating_sub(b),
        BinOp::AddWrap => a.wrapping_add(b) & most,
        BinOp::SubWrap => a.wrapping_sub(b) & most,
        BinOp::MulWrap => a.wrapping_mul(b) & most,
        BinOp::And => a & b,
        BinOp::Or => a | b,
        BinOp::Xor => a ^ b,
        BinOp::Shl => a.checked_shl(count()).unwrap_or(0) & most,
        BinOp::Shr => a.checked_shr(count()).unwrap_or(0),
        BinOp::Min => a.min(b),
        BinOp::Max => a.max(b),
        BinOp::Div | BinOp::Rem => 0,
    }
}

/// The result of a comparison.
#[must_use]
pub fn compare(op: CmpOp, a: Word, b: Word) -> bool {
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
    use super::{binary, narrow};
    use crate::engine::Fault;
    use crate::model::BinOp;
    use crate::show::max_of;
    use braid_externs::Rng;

    #[test]
    fn results_stay_within_the_width() {
        let cases = [
            (BinOp::AddSat, 8, 200, 100, 255),
            (BinOp::MulSat, 128, u128::MAX, 2, u128::MAX),
            (BinOp::SubSat, 8, 1, 2, 0),
            (BinOp::AddWrap, 8, 200, 100, 44),
            (BinOp::SubWrap, 8, 1, 2, 255),
            (BinOp::MulWrap, 128, u128::MAX, 2, u128::MAX - 1),
            (BinOp::Shl, 8, 0b1100_0000, 1, 0b1000_0000),
            (BinOp::Shl, 8, 1, 8, 0),
            (BinOp::Shl, 128, 1, 1 << 32, 0),
            (BinOp::Shr, 8, 0x80, 7, 1),
            (BinOp::Shr, 8, 0x80, 8, 0),
        ];
        for (op, width, a, b, expected) in cases {
            assert_eq!(binary(op, width, a, b), Ok(expected), "{op:?} {a} {b}");
        }
    }

    #[test]
    fn narrow_results_are_those_of_wide_words() {
        let mut rng = Rng::new(1);
        for _ in 0..braid_cases::at_least(20_000) {
            for op in BinOp::ALL.into_iter().filter(|op| !matches!(op, BinOp::Div | BinOp::Rem)) {
                let width = 1 + u16::try_from(rng.next_u64() % 64).unwrap();
                let most = u64::try_from(max_of(width)).unwrap();
                // Small numbers are shift counts.
                let [a, b] = [(); 2].map(|()| rng.next_u64() >> (rng.next_u64() % 64) & most);
                let found = narrow(op, most, a, b).into();
                assert_eq!(Ok(found), binary(op, width, a.into(), b.into()), "{op:?} {a} {b}");
            }
        }
    }

    #[test]
    fn division_by_zero_is_a_fault() {
        assert_eq!(binary(BinOp::Div, 8, 7, 0), Err(Fault::Division));
        assert_eq!(binary(BinOp::Rem, 8, 7, 0), Err(Fault::Division));
        assert_eq!(binary(BinOp::Rem, 8, 7, 4), Ok(3));
    }
}
