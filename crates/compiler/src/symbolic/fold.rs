//! Constant folding and algebraic simplification of values. Both are exact for every operand.

use super::values::{Def, Pure, Values};
use braid_ir::arith::{binary, compare};
use braid_ir::model::{BinOp, CmpOp, Kind, Ty, ValueId, Word};

fn commutes(op: BinOp) -> bool {
    use BinOp::*;
    matches!(op, AddSat | MulSat | AddWrap | MulWrap | And | Or | Xor | Min | Max)
}

impl Values {
    /// A binary operation that cannot fault.
    pub(super) fn bin(&mut self, op: BinOp, ty: Ty, a: ValueId, b: ValueId) -> ValueId {
        let (mut a, mut b) = (a, b);
        if commutes(op)
            && (self.known(a).is_some() && self.known(b).is_none()
                || a > b && self.known(b).is_none())
        {
            (a, b) = (b, a);
        }
        if let (Some(x), Some(y)) = (self.known(a), self.known(b))
            && let Ok(result) = binary(op, ty.width, x, y)
        {
            return self.constant(ty, result);
        }
        if let Some(simpler) = self.simpler(op, ty, a, b) {
            return simpler;
        }
        match (op, self.known(b)) {
            (BinOp::AddWrap, Some(by)) => self.plus(ty, a, by),
            (BinOp::SubWrap, Some(by)) => self.plus(ty, a, by.wrapping_neg()),
            _ => self.pure(ty, Pure::Bin(op, a, b)),
        }
    }

    /// `a` plus a number modulo 2^width. Constants in a chain of additions are combined.
    pub(super) fn plus(&mut self, ty: Ty, a: ValueId, by: Word) -> ValueId {
        let max = ty.max();
        let (base, before) = self.split(a);
        let by = by.wrapping_add(before) & max;
        if by == 0 {
            return base;
        }
        if let Some(word) = self.known(base) {
            return self.constant(ty, word.wrapping_add(by));
        }
        let down = by.wrapping_neg() & max;
        let (op, by) = if down < by { (BinOp::SubWrap, down) } else { (BinOp::AddWrap, by) };
        let by = self.constant(ty, by);
        self.pure(ty, Pure::Bin(op, base, by))
    }

    /// Splits a value into another value and a number that is added to it modulo 2^width.
    pub(super) fn split(&self, a: ValueId) -> (ValueId, Word) {
        match self.def(a) {
            Def::Pure(Pure::Bin(BinOp::AddWrap, base, by)) => {
                self.known(*by).map_or((a, 0), |by| (*base, by))
            }
            Def::Pure(Pure::Bin(BinOp::SubWrap, base, by)) => {
                self.known(*by).map_or((a, 0), |by| (*base, by.wrapping_neg()))
            }
            _ => (a, 0),
        }
    }

    fn simpler(&mut self, op: BinOp, ty: Ty, a: ValueId, b: ValueId) -> Option<ValueId> {
        use BinOp::*;
        let max = ty.max();
        if a == b {
            match op {
                And | Or | Min | Max => return Some(a),
                Xor | SubSat | SubWrap => return Some(self.constant(ty, 0)),
                _ => {}
            }
        }
        let same = match (op, self.known(b)?) {
            (AddSat | SubSat | AddWrap | SubWrap | Or | Xor | Shl | Shr | Max, 0) => a,
            (And | Min, word) if word == max => a,
            (And | MulSat | MulWrap | Min, 0) => self.constant(ty, 0),
            (Or | Max, word) if word == max => self.constant(ty, max),
            (MulSat | MulWrap | Div, 1) => a,
            (Rem, 1) => self.constant(ty, 0),
            (Xor, word) if word == max => self.not(ty, a),
            (Shl | Shr, word) if word >= Word::from(ty.width) => self.constant(ty, 0),
            _ => return None,
        };
        Some(same)
    }

    pub(super) fn cmp(&mut self, op: CmpOp, a: ValueId, b: ValueId) -> ValueId {
        let bool = Ty::of(Kind::Bool);
        let (mut op, mut a, mut b) = (op, a, b);
        if self.known(b).is_none() && (self.known(a).is_some() || a > b) {
            (op, a, b) = (op.swapped(), b, a);
        }
        if let (Some(x), Some(y)) = (self.known(a), self.known(b)) {
            return self.truth(compare(op, x, y));
        }
        if a == b {
            return self.truth(compare(op, 0, 0));
        }
        if self.ty(a).width == 1
            && let Some(word) = self.known(b)
        {
            match (op, word) {
                (CmpOp::Eq, 1) | (CmpOp::Ne, 0) => return a,
                (CmpOp::Eq, 0) | (CmpOp::Ne, 1) => return self.not(bool, a),
                _ => {}
            }
        }
        self.pure(bool, Pure::Cmp(op, a, b))
    }
}
