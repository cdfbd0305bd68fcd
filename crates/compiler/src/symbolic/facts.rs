//! Facts about values on a path: a set of possible values for each.

use super::range::{ends, full, is_full, one, only, shifted, union};
use super::values::{Def, Pure, Values};
use braid_ir::arith::binary;
use braid_ir::model::{BinOp, CmpOp, ValueId, Word};
use braid_ir::show::max_of;
use braid_ir::value::IntervalSet;
use std::collections::BTreeMap;

/// The depth to which expressions are examined.
const DEPTH: u32 = 8;

/// The largest number of values with facts, and the largest number of intervals of a fact. States
/// are copied where paths part, so their size must not grow with the number of conditions on a
/// path.
const MOST_FACTS: usize = 512;
const MOST_INTERVALS: usize = 512;

/// Values and the sets that contain them.
#[derive(Clone, Default)]
pub(super) struct Facts(BTreeMap<ValueId, IntervalSet>);

impl Facts {
    /// A set that contains a value.
    pub(super) fn range(&self, values: &Values, value: ValueId) -> IntervalSet {
        self.range_to(values, value, DEPTH)
    }

    /// The value, if only one is possible.
    pub(super) fn only(&self, values: &Values, value: ValueId) -> Option<Word> {
        let known = values.known(value);
        if known.is_some() || !self.sees(values, value) {
            return known;
        }
        only(&self.range(values, value))
    }

    fn range_to(&self, values: &Values, value: ValueId, depth: u32) -> IntervalSet {
        let width = values.ty(value).width;
        let fact = self.0.get(&value);
        let shape = match values.def(value) {
            Def::Pure(Pure::Const(word)) => return one(*word),
            Def::Pure(pure) if depth > 0 => self.of_pure(values, pure, width, depth - 1),
            _ => return fact.cloned().unwrap_or_else(|| full(width)),
        };
        match fact {
            Some(fact) => fact.intersection(&shape),
            None => shape,
        }
    }

    /// Whether a condition holds, if that is known.
    fn truth(&self, values: &Values, cond: ValueId, depth: u32) -> Option<bool> {
        if !self.sees(values, cond) {
            return None;
        }
        only(&self.range_to(values, cond, depth)).map(|word| word != 0)
    }

    /// Whether more than its width can be known about a value.
    fn sees(&self, values: &Values, value: ValueId) -> bool {
        matches!(values.def(value), Def::Pure(_)) || self.0.contains_key(&value)
    }

    fn of_pure(&self, values: &Values, pure: &Pure, width: u16, depth: u32) -> IntervalSet {
        let range = |value: &ValueId| self.range_to(values, *value, depth);
        let truth = |known: Option<bool>| known.map_or_else(|| full(1), |t| one(Word::from(t)));
        match pure {
            Pure::Bin(BinOp::AddWrap, a, b) => match values.known(*b) {
                Some(by) => shifted(&range(a), by, width),
                None => full(width),
            },
            Pure::Bin(BinOp::SubWrap, a, b) => match values.known(*b) {
                Some(by) => shifted(&range(a), by.wrapping_neg(), width),
                None => full(width),
            },
            Pure::Bin(op @ (BinOp::And | BinOp::Or), a, b) if width == 1 => {
                // One operand may decide the result alone.
                let decides = *op == BinOp::Or;
                match self.truth(values, *a, depth) {
                    Some(word) if word == decides => truth(Some(decides)),
                    Some(_) => truth(self.truth(values, *b, depth)),
                    None => truth(self.truth(values, *b, depth).filter(|word| *word == decides)),
                }
            }
            Pure::Bin(op, a, b) => {
                let (a, b) = (range(a), range(b));
                each(*op, width, &a, &b).unwrap_or_else(|| bounds(*op, width, &a, &b))
            }
            Pure::Cmp(op, a, b) => truth(decided(*op, &range(a), &range(b))),
            Pure::Not(a) if width == 1 => truth(self.truth(values, *a, depth).map(|word| !word)),
            Pure::Resize(a) if values.ty(*a).width <= width => range(a),
            Pure::Retype(a, _) => range(a),
            Pure::Select(cond, a, b) => match self.truth(values, *cond, depth) {
                Some(false) => range(b),
                Some(true) => range(a),
                None => union(&range(a), &range(b)),
            },
            Pure::InSet(a, set) => {
                let (range, set) = (range(a), values.set(*set));
                let inside = range.intersection(set);
                truth(if inside.is_empty() {
                    Some(false)
                } else if inside == range {
                    Some(true)
                } else {
                    None
                })
            }
            _ => full(width),
        }
    }

    /// Records that a value is in a set, and the consequences for other values. Returns false if
    /// that is impossible, so that no packet takes the path.
    pub(super) fn learn(&mut self, values: &Values, value: ValueId, set: &IntervalSet) -> bool {
        self.learn_to(values, value, set, DEPTH)
    }

    /// Records the outcome of a condition. Returns false if that is impossible.
    pub(super) fn decide(&mut self, values: &Values, cond: ValueId, truth: bool) -> bool {
        self.learn(values, cond, &one(Word::from(truth)))
    }

    fn learn_to(&mut self, values: &Values, value: ValueId, set: &IntervalSet, depth: u32) -> bool {
        let width = values.ty(value).width;
        let before = self.range(values, value);
        let now = before.intersection(set);
        if now.is_empty() {
            return false;
        }
        if values.known(value).is_some() || now == before && self.0.contains_key(&value) {
            return true;
        }
        self.keep(value, width, &now);
        let Some(depth) = depth.checked_sub(1) else { return true };
        let Def::Pure(pure) = values.def(value) else { return true };
        let possible = self.learn_operands(values, pure, width, &now, depth);
        if width == 1 && self.0.contains_key(&value) && self.of_pure(values, pure, 1, DEPTH) == now
        {
            // The fact about the condition follows from the facts about its operands.
            self.0.remove(&value);
        }
        possible
    }

    /// Keeps a fact if it restricts the value and the limits allow it.
    fn keep(&mut self, value: ValueId, width: u16, set: &IntervalSet) {
        let small = set.intervals().len() <= MOST_INTERVALS;
        let room = self.0.len() < MOST_FACTS || self.0.contains_key(&value);
        if small && room && !is_full(set, width) {
            self.0.insert(value, set.clone());
        }
    }

    /// Records the consequences for the operands of a value that is in a set. Returns false if that
    /// is impossible.
    fn learn_operands(
        &mut self,
        values: &Values,
        pure: &Pure,
        width: u16,
        now: &IntervalSet,
        depth: u32,
    ) -> bool {
        match pure {
            Pure::Bin(BinOp::AddWrap, a, b) => match values.known(*b) {
                Some(by) => {
                    let set = shifted(now, by.wrapping_neg(), width);
                    self.learn_to(values, *a, &set, depth)
                }
                None => true,
            },
            Pure::Bin(BinOp::SubWrap, a, b) => match values.known(*b) {
                Some(by) => self.learn_to(values, *a, &shifted(now, by, width), depth),
                None => true,
            },
            Pure::Resize(a) if values.ty(*a).width <= width => {
                let set = now.intersection(&full(values.ty(*a).width));
                self.learn_to(values, *a, &set, depth)
            }
            Pure::Retype(a, _) => self.learn_to(values, *a, now, depth),
            _ => match only(now).filter(|_| width == 1) {
                Some(truth) => self.learn_truth(values, pure, truth != 0, depth),
                None => true,
            },
        }
    }

    fn learn_truth(&mut self, values: &Values, pure: &Pure, truth: bool, depth: u32) -> bool {
        let word = |truth: bool| one(Word::from(truth));
        match pure {
            Pure::Not(a) => self.learn_to(values, *a, &word(!truth), depth),
            Pure::Bin(op @ (BinOp::And | BinOp::Or), a, b) => {
                let all = *op == BinOp::And;
                if truth == all {
                    return self.learn_to(values, *a, &word(truth), depth)
                        && self.learn_to(values, *b, &word(truth), depth);
                }
                // At most one of the operands has the value `all`. If one has it, the other does
                // not.
                let known = |value: ValueId| self.only(values, value) == Some(Word::from(all));
                match (known(*a), known(*b)) {
                    (true, _) => self.learn_to(values, *b, &word(truth), depth),
                    (_, true) => self.learn_to(values, *a, &word(truth), depth),
                    _ => true,
                }
            }
            Pure::Cmp(op, a, b) => {
                let right = self.range(values, *b);
                let left = self.range(values, *a);
                self.learn_to(values, *a, &allowed(*op, &right, values.ty(*a).width, truth), depth)
                    && self.learn_to(
                        values,
                        *b,
                        &allowed(op.swapped(), &left, values.ty(*b).width, truth),
                        depth,
                    )
            }
            Pure::InSet(a, set) => {
                let set = values.set(*set);
                let width = values.ty(*a).width;
                let set = if truth { set.clone() } else { set.complement(max_of(width)) };
                self.learn_to(values, *a, &set, depth)
            }
            _ => true,
        }
    }

    /// The facts that hold on all of several paths.
    pub(super) fn meet<'a>(values: &Values, all: impl Iterator<Item = &'a Facts> + Clone) -> Facts {
        let Some(first) = all.clone().next() else { return Facts::default() };
        let mut met = Facts::default();
        for value in first.0.keys() {
            let mut sets = all.clone().map(|facts| facts.range(values, *value));
            let Some(mut set) = sets.next() else { continue };
            for other in sets {
                set = union(&set, &other);
            }
            if !is_full(&set, values.ty(*value).width) {
                met.0.insert(*value, set);
            }
        }
        met
    }

    /// Records a fact about a new value.
    pub(super) fn note(&mut self, values: &Values, value: ValueId, set: IntervalSet) {
        if !is_full(&set, values.ty(value).width) {
            self.0.insert(value, set);
        }
    }
}

/// The values of `a` for which `a op b` can have this outcome for some member of `b`.
pub(crate) fn allowed(op: CmpOp, b: &IntervalSet, width: u16, truth: bool) -> IntervalSet {
    let max = max_of(width);
    let Some((low, high)) = ends(b) else { return full(width) };
    let op = if truth { op } else { negated(op) };
    match op {
        CmpOp::Eq => b.clone(),
        CmpOp::Ne => match only(b) {
            Some(word) => one(word).complement(max_of(width)),
            None => full(width),
        },
        CmpOp::Lt => match high.checked_sub(1) {
            Some(high) => IntervalSet::new([(0, high)]),
            None => IntervalSet::default(),
        },
        CmpOp::Le => IntervalSet::new([(0, high)]),
        CmpOp::Gt => match low.checked_add(1) {
            Some(low) => IntervalSet::new([(low, max)]),
            None => IntervalSet::default(),
        },
        CmpOp::Ge => IntervalSet::new([(low, max)]),
    }
}

fn negated(op: CmpOp) -> CmpOp {
    match op {
        CmpOp::Eq => CmpOp::Ne,
        CmpOp::Ne => CmpOp::Eq,
        CmpOp::Lt => CmpOp::Ge,
        CmpOp::Le => CmpOp::Gt,
        CmpOp::Gt => CmpOp::Le,
        CmpOp::Ge => CmpOp::Lt,
    }
}

/// The outcome of a comparison. `None` if it depends on the members.
fn decided(op: CmpOp, a: &IntervalSet, b: &IntervalSet) -> Option<bool> {
    let ((a_low, a_high), (b_low, b_high)) = (ends(a)?, ends(b)?);
    match op {
        CmpOp::Eq if a.intersection(b).is_empty() => Some(false),
        CmpOp::Eq => (only(a)? == only(b)?).then_some(true),
        CmpOp::Ne => decided(CmpOp::Eq, a, b).map(|equal| !equal),
        CmpOp::Lt if a_high < b_low => Some(true),
        CmpOp::Lt if a_low >= b_high => Some(false),
        CmpOp::Lt => None,
        CmpOp::Ge => decided(CmpOp::Lt, a, b).map(|less| !less),
        CmpOp::Gt => decided(CmpOp::Lt, b, a),
        CmpOp::Le => decided(CmpOp::Lt, b, a).map(|less| !less),
    }
}

/// The largest number of values that are computed one by one.
const FEW: Word = 16;

/// The results of an operation on each of a few values and a constant.
fn each(op: BinOp, width: u16, a: &IntervalSet, b: &IntervalSet) -> Option<IntervalSet> {
    let by = only(b).filter(|_| a.len() <= FEW)?;
    let results: Option<Vec<_>> =
        a.iter().map(|value| binary(op, width, value, by).ok().map(|word| (word, word))).collect();
    Some(IntervalSet::new(results?))
}

/// The bounds of an operation's results, computed from the bounds of its operands.
fn bounds(op: BinOp, width: u16, a: &IntervalSet, b: &IntervalSet) -> IntervalSet {
    let max = max_of(width);
    let (Some((a_low, a_high)), Some((b_low, b_high))) = (ends(a), ends(b)) else {
        return full(width);
    };
    let set = |low: Word, high: Word| IntervalSet::new([(low, high)]);
    match op {
        BinOp::And => set(0, a_high.min(b_high)),
        BinOp::AddSat => {
            set(a_low.saturating_add(b_low).min(max), a_high.saturating_add(b_high).min(max))
        }
        BinOp::SubSat => set(a_low.saturating_sub(b_high), a_high.saturating_sub(b_low)),
        BinOp::MulSat => {
            set(a_low.saturating_mul(b_low).min(max), a_high.saturating_mul(b_high).min(max))
        }
        BinOp::Min => set(a_low.min(b_low), a_high.min(b_high)),
        BinOp::Max => set(a_low.max(b_low), a_high.max(b_high)),
        BinOp::Div => set(a_low / b_high.max(1), a_high / b_low.max(1)),
        BinOp::Rem => set(0, a_high.min(b_high.saturating_sub(1))),
        BinOp::Shr => {
            let by = |count: Word| u32::try_from(count).ok().filter(|count| *count < 128);
            let shr = |word: Word, count: Word| by(count).map_or(0, |count| word >> count);
            set(shr(a_low, b_high), shr(a_high, b_low))
        }
        _ => full(width),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_ir::arith::compare;

    #[test]
    fn decided_comparisons_agree_with_all_members() {
        let sets: Vec<IntervalSet> = [(0, 0), (0, 2), (1, 3), (3, 3), (2, 7)]
            .into_iter()
            .map(|pair| IntervalSet::new([pair]))
            .collect();
        use CmpOp::*;
        for op in [Eq, Ne, Lt, Le, Gt, Ge] {
            for a in &sets {
                for b in &sets {
                    let all: Vec<bool> =
                        a.iter().flat_map(|x| b.iter().map(move |y| compare(op, x, y))).collect();
                    let same = all.iter().all(|t| *t == all[0]).then_some(all[0]);
                    assert_eq!(decided(op, a, b), same, "{op:?} {a:?} {b:?}");
                    for x in 0..8 {
                        for truth in [false, true] {
                            let possible = b.iter().any(|y| compare(op, x, y) == truth);
                            let says = allowed(op, b, 3, truth).contains(x);
                            assert!(says || !possible, "{op:?} {x} {b:?} {truth}");
                        }
                    }
                }
            }
        }
    }
}
