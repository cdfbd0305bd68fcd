//! The contents of declared headers that are pushed: the values of their fields, in words, and
//! their checksums.

use braid_ir::model::{BinOp, Op, Ty, ValueId};

use super::declared::DeclaredHeader;
use super::lower::Lower;
use super::types::{self, U32, uint};
use crate::ast::{Expr, Ident};
use crate::diag::{Diagnostic, codes};

/// The bits of a word of a checksum.
pub const WORD: u16 = 16;

/// Values with their places: the numbers of the first bit and of the first bit behind.
pub type Placed = Vec<((u32, u32), ValueId)>;

/// The values of the fields of a declared header, with their places in it. Its checksum is computed
/// unless it is given.
pub fn of(
    lower: &mut Lower<'_>,
    own: &DeclaredHeader<'_>,
    given: &[(Ident, Expr)],
) -> Option<Placed> {
    let mut values: Placed = Vec::new();
    let mut whole = true;
    for (name, expr) in given {
        let Some(field) = own.fields.iter().find(|field| field.name == name.text) else {
            lower.say(own.unknown(name));
            whole = false;
            continue;
        };
        if values.iter().any(|(bits, _)| *bits == field.bits()) {
            let message = format!("the field `{}` is given twice", name.text);
            lower.say(Diagnostic::new(codes::RECORD_PARTS, message, name.span, "again"));
            whole = false;
        }
        match lower.typed(expr, field.ty) {
            Some(id) => values.push((field.bits(), id)),
            None => whole = false,
        }
    }
    if let Some(sum) = own.checksum.and_then(|sum| own.fields.get(sum))
        && values.iter().all(|(bits, _)| *bits != sum.bits())
    {
        values.push((sum.bits(), checksum(lower, own, &values)));
    }
    whole.then_some(values)
}

/// The words of a number of bytes with these values in them.
pub fn words(lower: &mut Lower<'_>, bytes: u32, values: &Placed) -> Vec<ValueId> {
    (0..bytes.div_ceil(16)).map(|word| filled(lower, word, types::BYTES, values)).collect()
}

/// A word of a type, by its number, of a header with these values.
fn filled(lower: &mut Lower<'_>, word: u32, ty: Ty, values: &Placed) -> ValueId {
    const WIDE: Ty = types::U128;
    let mut sum = lower.b.constant(WIDE, 0);
    let width = u32::from(ty.width);
    let (first, end) = (width * word, width * (word + 1));
    for ((start, behind), a) in values {
        if *behind <= first || end <= *start {
            continue;
        }
        let a = lower.b.emit(WIDE, |out| Op::Resize { out, a: *a });
        // A field may continue in the next word.
        let op = if *behind <= end { BinOp::Shl } else { BinOp::Shr };
        let by = lower.b.constant(WIDE, end.abs_diff(*behind).into());
        let placed = lower.b.bin(WIDE, op, a, by);
        sum = lower.b.bin(WIDE, BinOp::Or, sum, placed);
    }
    lower.b.emit(ty, |out| Op::Resize { out, a: sum })
}

/// The checksum of a header with these values. None of them is the checksum itself.
fn checksum(lower: &mut Lower<'_>, own: &DeclaredHeader<'_>, values: &Placed) -> ValueId {
    let mut total = lower.b.constant(U32, 0);
    for word in 0..own.least.div_ceil(2) {
        let filled = filled(lower, word, uint(WORD), values);
        let part = widen(lower, filled);
        total = lower.b.bin(U32, BinOp::AddSat, total, part);
    }
    folded(lower, total)
}

/// The checksum of a sum of words: the complement of the sum modulo 65,535 (RFC 1071).
pub fn folded(lower: &mut Lower<'_>, mut total: ValueId) -> ValueId {
    for _ in 0..2 {
        let by = lower.b.constant(U32, WORD.into());
        let high = lower.b.bin(U32, BinOp::Shr, total, by);
        let mask = lower.b.constant(U32, 0xffff);
        let low = lower.b.bin(U32, BinOp::And, total, mask);
        total = lower.b.bin(U32, BinOp::AddSat, low, high);
    }
    let folded = lower.b.emit(uint(WORD), |out| Op::Resize { out, a: total });
    lower.b.emit(uint(WORD), |out| Op::Not { out, a: folded })
}

/// A word as a number of 32 bits.
pub fn widen(lower: &mut Lower<'_>, word: ValueId) -> ValueId {
    lower.b.emit(U32, |out| Op::Resize { out, a: word })
}
