//! Bit vectors: arithmetic, slices, choices and comparisons. They are simplified when they are
//! built.

use crate::term::{BitOp, Node, Sort, Term, Terms, mask};

impl Terms {
    /// `cond ? a : b`, for terms of any sort.
    pub fn ite(&mut self, cond: Term, a: Term, b: Term) -> Term {
        if a == b {
            return a;
        }
        match self.node(cond) {
            Node::Bool(true) => return a,
            Node::Bool(false) => return b,
            Node::Not(inner) => {
                let inner = *inner;
                return self.ite(inner, b, a);
            }
            _ => {}
        }
        let sort = self.sort(a);
        if sort == Sort::Bool {
            return self.ite_bool(cond, a, b);
        }
        if let Node::Ite(inner, first, _) = *self.node(a)
            && inner == cond
        {
            return self.ite(cond, first, b);
        }
        match *self.node(b) {
            Node::Ite(inner, _, last) if inner == cond => return self.ite(cond, a, last),
            Node::Ite(inner, first, last) if first == a => {
                let either = self.or(&[cond, inner]);
                return self.ite(either, a, last);
            }
            _ => {}
        }
        self.make(Node::Ite(cond, a, b), sort)
    }

    fn ite_bool(&mut self, cond: Term, a: Term, b: Term) -> Term {
        let not = self.not(cond);
        match (self.decided(a), self.decided(b)) {
            (Some(true), _) => self.or(&[cond, b]),
            (Some(false), _) => self.and(&[not, b]),
            (_, Some(true)) => self.or(&[not, a]),
            (_, Some(false)) => self.and(&[cond, a]),
            _ => {
                let (yes, no) = (self.both(cond, a), self.both(not, b));
                self.or(&[yes, no])
            }
        }
    }

    /// A bit as a truth value.
    pub fn truth(&mut self, bit: Term) -> Term {
        if let Some(known) = self.truths.get(&bit) {
            return *known;
        }
        let value = match *self.node(bit) {
            Node::Bits(_, value) => self.bool(value != 0),
            Node::Ite(cond, a, b) => {
                let (a, b) = (self.truth(a), self.truth(b));
                self.ite(cond, a, b)
            }
            _ => {
                let one = self.bits(1, 1);
                self.make(Node::Eq(bit.min(one), bit.max(one)), Sort::Bool)
            }
        };
        self.truths.insert(bit, value);
        value
    }

    /// A truth value as a bit.
    pub fn bit(&mut self, truth: Term) -> Term {
        let (one, zero) = (self.bits(1, 1), self.bits(1, 0));
        if let Node::Eq(a, b) = *self.node(truth) {
            // If the truth value comes from a bit, returns that bit.
            if a == one && self.width(b) == 1 && self.sort(b) != Sort::Bool {
                return b;
            }
            if b == one && self.width(a) == 1 && self.sort(a) != Sort::Bool {
                return a;
            }
        }
        self.ite(truth, one, zero)
    }

    /// Whether two terms of the same sort are equal.
    pub fn eq(&mut self, a: Term, b: Term) -> Term {
        if a == b {
            return self.bool(true);
        }
        if let (Some(a), Some(b)) = (self.constant(a), self.constant(b)) {
            return self.bool(a == b);
        }
        match self.sort(a) {
            Sort::Bool => {
                let not_b = self.not(b);
                return self.ite(a, b, not_b);
            }
            Sort::Bits(1) => {
                let (a, b) = (self.truth(a), self.truth(b));
                return self.eq(a, b);
            }
            Sort::Bits(_) | Sort::Token => {}
        }
        if self.constant(a).is_some() {
            return self.eq_constant(b, a);
        }
        if self.constant(b).is_some() {
            return self.eq_constant(a, b);
        }
        if let (Node::Widen(_, x), Node::Widen(_, y)) = (self.node(a), self.node(b)) {
            let (x, y) = (*x, *y);
            if self.width(x) == self.width(y) {
                return self.eq(x, y);
            }
        }
        if let (Node::Ite(c, x, y), Node::Ite(d, v, w)) =
            (self.node(a).clone(), self.node(b).clone())
            && c == d
        {
            let (yes, no) = (self.eq(x, v), self.eq(y, w));
            return self.ite(c, yes, no);
        }
        self.make(Node::Eq(a.min(b), a.max(b)), Sort::Bool)
    }

    fn eq_constant(&mut self, a: Term, constant: Term) -> Term {
        let value = self.constant(constant).unwrap_or(0);
        match *self.node(a) {
            Node::Widen(_, inner) => {
                let width = self.width(inner);
                if value > mask(width) {
                    return self.bool(false);
                }
                let narrow = self.bits(width, value);
                self.eq(inner, narrow)
            }
            Node::Ite(cond, x, y) if self.constant(x).is_some() || self.constant(y).is_some() => {
                let (yes, no) = (self.eq(x, constant), self.eq(y, constant));
                self.ite(cond, yes, no)
            }
            Node::Join(high, low) => {
                let width = self.width(low);
                let high_width = self.width(high);
                let (h, l) = (self.bits(high_width, value >> width), self.bits(width, value));
                let (h, l) = (self.eq(high, h), self.eq(low, l));
                self.both(h, l)
            }
            _ => self.make(Node::Eq(a.min(constant), a.max(constant)), Sort::Bool),
        }
    }

    /// Whether all pairs are equal.
    pub fn all_eq(&mut self, a: &[Term], b: &[Term]) -> Term {
        if a.len() != b.len() {
            return self.bool(false);
        }
        let parts: Vec<_> = a.iter().zip(b).map(|(a, b)| self.eq(*a, *b)).collect();
        self.and(&parts)
    }

    /// Whether `a` is less than `b`, both unsigned.
    pub fn less(&mut self, a: Term, b: Term) -> Term {
        if a == b {
            return self.bool(false);
        }
        let width = self.width(a);
        match (self.constant(a), self.constant(b)) {
            (Some(a), Some(b)) => return self.bool(a < b),
            (_, Some(0)) => return self.bool(false),
            (_, Some(1)) => {
                let zero = self.bits(width, 0);
                return self.eq(a, zero);
            }
            (Some(value), _) if value == mask(width) => return self.bool(false),
            (Some(0), _) => {
                let zero = self.bits(width, 0);
                let none = self.eq(b, zero);
                return self.not(none);
            }
            _ => {}
        }
        if width == 1 {
            let (a, b) = (self.truth(a), self.truth(b));
            let not_a = self.not(a);
            return self.both(not_a, b);
        }
        let inner = |terms: &Self, term: Term| match *terms.node(term) {
            Node::Widen(_, inner) => Some(inner),
            _ => None,
        };
        match (inner(self, a), inner(self, b)) {
            (Some(x), Some(y)) if self.width(x) == self.width(y) => return self.less(x, y),
            (Some(x), None) => {
                if let Some(value) = self.constant(b) {
                    let narrow = self.width(x);
                    if value > mask(narrow) {
                        return self.bool(true);
                    }
                    let b = self.bits(narrow, value);
                    return self.less(x, b);
                }
            }
            (None, Some(y)) => {
                if let Some(value) = self.constant(a) {
                    let narrow = self.width(y);
                    if value >= mask(narrow) {
                        return self.bool(false);
                    }
                    let a = self.bits(narrow, value);
                    return self.less(a, y);
                }
            }
            _ => {}
        }
        let b = self.sole_addend(a, b);
        self.make(Node::Less(a, b), Sort::Bool)
    }

    /// A sum that is less than one of its addends is less than both. Of the two, this gives always
    /// the same one, so the comparison has one form.
    fn sole_addend(&self, sum: Term, addend: Term) -> Term {
        match *self.node(sum) {
            Node::Op(BitOp::Add, x, y) if addend == x || addend == y => {
                if self.constant(x).is_some() { y } else { x }
            }
            _ => addend,
        }
    }

    /// An upper bound of a term, computed from its form.
    pub(crate) fn most(&mut self, a: Term) -> u128 {
        if let Some(known) = self.bounds.get(&a) {
            return *known;
        }
        let full = mask(self.width(a));
        let bound = match *self.node(a) {
            Node::Bits(_, value) => value,
            Node::Widen(_, inner) => self.most(inner),
            Node::Ite(_, x, y) => self.most(x).max(self.most(y)),
            Node::Op(BitOp::Add, x, y) => self.most(x).checked_add(self.most(y)).unwrap_or(full),
            Node::Op(BitOp::Mul, x, y) => self.most(x).checked_mul(self.most(y)).unwrap_or(full),
            _ => full,
        };
        let bound = if bound > full { full } else { bound };
        self.bounds.insert(a, bound);
        bound
    }

    /// Whether `a` is at most `b`.
    pub fn at_most(&mut self, a: Term, b: Term) -> Term {
        let greater = self.less(b, a);
        self.not(greater)
    }

    /// Applies an operator.
    pub fn op(&mut self, op: BitOp, a: Term, b: Term) -> Term {
        let width = self.width(a);
        let (known_a, known_b) = (self.constant(a), self.constant(b));
        if let (Some(x), Some(y)) = (known_a, known_b) {
            return self.bits(width, fold(op, width, x, y));
        }
        let commutes = matches!(op, BitOp::Add | BitOp::And | BitOp::Or | BitOp::Xor | BitOp::Mul);
        if commutes && known_a.is_some() {
            return self.op(op, b, a);
        }
        let zero = matches!(known_b, Some(0));
        let full = known_b == Some(mask(width));
        match op {
            BitOp::And | BitOp::Mul if zero => return b,
            BitOp::Mul if known_b == Some(1) => return a,
            BitOp::And if full || a == b => return a,
            BitOp::Or if full => return b,
            BitOp::Or if a == b => return a,
            BitOp::Sub | BitOp::Xor if a == b => return self.bits(width, 0),
            BitOp::Add | BitOp::Sub | BitOp::Or | BitOp::Xor | BitOp::Shl | BitOp::Shr if zero => {
                return a;
            }
            _ => {}
        }
        if width == 1 && matches!(op, BitOp::And | BitOp::Or | BitOp::Xor) {
            let (x, y) = (self.truth(a), self.truth(b));
            let value = match op {
                BitOp::And => self.both(x, y),
                BitOp::Or => self.or(&[x, y]),
                _ => {
                    let same = self.eq(x, y);
                    self.not(same)
                }
            };
            return self.bit(value);
        }
        if let Some(sum) = self.sum(op, a, known_b) {
            return sum;
        }
        let (a, b) = if commutes { (a.min(b), a.max(b)) } else { (a, b) };
        self.make(Node::Op(op, a, b), Sort::Bits(width))
    }

    /// Writes `(x ± c) ± d` as `x + e`, and `x - c` as `x + (-c)`, so sums with constants have one
    /// form.
    fn sum(&mut self, op: BitOp, a: Term, known_b: Option<u128>) -> Option<Term> {
        let width = self.width(a);
        let value = known_b?;
        let add = match op {
            BitOp::Add => value,
            BitOp::Sub => value.wrapping_neg() & mask(width),
            _ => return None,
        };
        if let Node::Op(BitOp::Add, x, y) = *self.node(a) {
            for (rest, constant) in [(x, y), (y, x)] {
                if let Some(first) = self.constant(constant) {
                    let total = self.bits(width, first.wrapping_add(add));
                    return Some(self.op(BitOp::Add, rest, total));
                }
            }
        }
        if op == BitOp::Sub {
            let add = self.bits(width, add);
            return Some(self.op(BitOp::Add, a, add));
        }
        None
    }

    /// Inverts all bits.
    pub fn flip(&mut self, a: Term) -> Term {
        let width = self.width(a);
        if let Some(value) = self.constant(a) {
            return self.bits(width, !value);
        }
        if width == 1 {
            let value = self.truth(a);
            let value = self.not(value);
            return self.bit(value);
        }
        match *self.node(a) {
            Node::Flip(inner) => inner,
            _ => self.make(Node::Flip(a), Sort::Bits(width)),
        }
    }

    /// Cuts a term to its low bits, or extends it with leading zeros, to this width.
    pub fn resize(&mut self, a: Term, width: u16) -> Term {
        let from = self.width(a);
        if width == from {
            return a;
        }
        if width < from {
            return self.slice(a, width - 1, 0);
        }
        if let Some(value) = self.constant(a) {
            return self.bits(width, value);
        }
        match *self.node(a) {
            Node::Widen(_, inner) => self.resize(inner, width),
            Node::Ite(cond, x, y) if self.constant(x).is_some() || self.constant(y).is_some() => {
                let (x, y) = (self.resize(x, width), self.resize(y, width));
                self.ite(cond, x, y)
            }
            _ => self.make(Node::Widen(width, a), Sort::Bits(width)),
        }
    }

    /// Bits `high` to `low`.
    pub fn slice(&mut self, a: Term, high: u16, low: u16) -> Term {
        let (from, width) = (self.width(a), high - low + 1);
        if width == from {
            return a;
        }
        if let Some(value) = self.constant(a) {
            return self.bits(width, value >> low);
        }
        match *self.node(a) {
            Node::Join(first, second) => {
                let split = self.width(second);
                if low >= split {
                    return self.slice(first, high - split, low - split);
                }
                if high < split {
                    return self.slice(second, high, low);
                }
            }
            Node::Widen(_, inner) => {
                let inside = self.width(inner);
                if low >= inside {
                    return self.bits(width, 0);
                }
                if high < inside {
                    return self.slice(inner, high, low);
                }
                if low == 0 {
                    return self.resize(inner, width);
                }
            }
            Node::Slice(_, base, inner) => return self.slice(inner, high + base, low + base),
            _ => {}
        }
        self.make(Node::Slice(high, low, a), Sort::Bits(width))
    }

    /// Joins two terms. The first one becomes the high bits.
    pub fn join(&mut self, high: Term, low: Term) -> Term {
        let (wide, narrow) = (self.width(high), self.width(low));
        if let (Some(h), Some(l)) = (self.constant(high), self.constant(low)) {
            return self.bits(wide + narrow, h << narrow | l);
        }
        if let (Node::Slice(top, middle, a), Node::Slice(below, bottom, b)) =
            (self.node(high).clone(), self.node(low).clone())
            && a == b
            && middle == below + 1
        {
            return self.slice(a, top, bottom);
        }
        self.make(Node::Join(high, low), Sort::Bits(wide + narrow))
    }

    /// Whether a number is in a set of intervals.
    pub fn in_intervals(&mut self, a: Term, intervals: &[(u128, u128)]) -> Term {
        let width = self.width(a);
        let mut parts = Vec::with_capacity(intervals.len());
        for (low, high) in intervals.iter().filter(|(low, _)| *low <= mask(width)) {
            let (first, last) =
                (self.bits(width, *low), self.bits(width, (*high).min(mask(width))));
            let part = if first == last {
                self.eq(a, first)
            } else {
                let (above, below) = (self.at_most(first, a), self.at_most(a, last));
                self.both(above, below)
            };
            parts.push(part);
        }
        self.or(&parts)
    }
}

fn fold(op: BitOp, width: u16, a: u128, b: u128) -> u128 {
    let shift = u32::try_from(b).unwrap_or(u32::MAX);
    let inside = shift < u32::from(width);
    match op {
        BitOp::Add => a.wrapping_add(b),
        BitOp::Sub => a.wrapping_sub(b),
        BitOp::And => a & b,
        BitOp::Or => a | b,
        BitOp::Xor => a ^ b,
        BitOp::Shl if inside => a << shift,
        BitOp::Shr if inside => a >> shift,
        BitOp::Shl | BitOp::Shr => 0,
        BitOp::Mul => a.wrapping_mul(b),
    }
}

#[cfg(test)]
mod tests {
    use crate::term::{BitOp, Sort, Terms};

    #[test]
    fn parts_put_together_are_the_whole() {
        let mut terms = Terms::default();
        let tos = terms.var("tos", Sort::Bits(8));
        let (dscp, ecn) = (terms.slice(tos, 7, 2), terms.slice(tos, 1, 0));
        assert_eq!(terms.join(dscp, ecn), tos);
        let value = terms.var("value", Sort::Bits(6));
        let joined = terms.join(value, ecn);
        assert_eq!(terms.slice(joined, 7, 2), value);
        assert_eq!(terms.slice(joined, 1, 0), ecn);
    }

    #[test]
    fn sums_with_constants_have_one_form() {
        let mut terms = Terms::default();
        let ttl = terms.var("ttl", Sort::Bits(8));
        let (one, two) = (terms.bits(8, 1), terms.bits(8, 2));
        let once = terms.op(BitOp::Sub, ttl, one);
        let twice = terms.op(BitOp::Sub, once, one);
        assert_eq!(twice, terms.op(BitOp::Sub, ttl, two));
        assert_eq!(terms.op(BitOp::Add, twice, two), ttl);
    }

    #[test]
    fn bits_and_truth_values_turn_into_each_other() {
        let mut terms = Terms::default();
        let (bit, truth) = (terms.var("bit", Sort::Bits(1)), terms.var("truth", Sort::Bool));
        let there = terms.truth(bit);
        assert_eq!(terms.bit(there), bit);
        let there = terms.bit(truth);
        assert_eq!(terms.truth(there), truth);
    }

    #[test]
    fn wide_numbers_compare_as_the_narrow_ones_that_they_are() {
        let mut terms = Terms::default();
        let (a, b) = (terms.var("a", Sort::Bits(32)), terms.var("b", Sort::Bits(32)));
        let (wide_a, wide_b) = (terms.resize(a, 128), terms.resize(b, 128));
        assert_eq!(terms.eq(wide_a, wide_b), terms.eq(a, b));
        assert_eq!(terms.less(wide_a, wide_b), terms.less(a, b));
        let big = terms.bits(128, 1 << 32);
        let never = terms.eq(wide_a, big);
        assert_eq!(terms.decided(never), Some(false));
        let always = terms.less(wide_a, big);
        assert_eq!(terms.decided(always), Some(true));
    }

    #[test]
    fn sum_that_is_too_wide_has_one_form() {
        let mut terms = Terms::default();
        let (a, b) = (terms.var("a", Sort::Bits(64)), terms.var("b", Sort::Bits(64)));
        let one = terms.bits(64, 1);
        for other in [b, one] {
            let sum = terms.op(BitOp::Add, a, other);
            let too_wide = terms.less(sum, a);
            assert_eq!(terms.decided(too_wide), None);
            if other == b {
                assert_eq!(too_wide, terms.less(sum, b));
            }
        }
    }

    #[test]
    fn intervals_end_where_they_say() {
        let mut terms = Terms::default();
        let intervals = [(3, 5), (9, 9)];
        for (value, inside) in [(2, false), (3, true), (5, true), (6, false), (9, true)] {
            let number = terms.bits(8, value);
            let found = terms.in_intervals(number, &intervals);
            assert_eq!(terms.decided(found), Some(inside), "{value}");
        }
    }
}
