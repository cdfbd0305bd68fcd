//! Operations on values and parameters, as terms.

use braid_ir::chain::Chain;
use braid_ir::engine::Fault;
use braid_ir::model::{BinOp, CmpOp, Op, ParamId, SetRef, Ty, ValueId, Word};
use braid_ir::value::ParamValue;

use crate::term::{BitOp, Sort, Term, Terms, mask};

/// The most members of a constant list or set that are compared one by one. A longer list or set is
/// an unknown function.
const MAX_MEMBERS: usize = 64;

/// The conditions under which an operation ends in a fault.
pub(crate) type Faults = Vec<(Term, Fault)>;

/// The context of values: a function, and the values by number.
pub(crate) struct Values<'a> {
    pub(crate) chain: &'a Chain,
    pub(crate) node: u16,
    pub(crate) types: &'a [Ty],
    pub(crate) values: &'a [Option<Term>],
}

impl Values<'_> {
    /// The type of a value.
    pub(crate) fn ty(&self, id: ValueId) -> Result<Ty, String> {
        self.types.get(id.index()).copied().ok_or_else(|| format!("{id} has no type"))
    }

    /// A value. It must be defined.
    pub(crate) fn value(&self, id: ValueId) -> Result<Term, String> {
        let value = self.values.get(id.index()).copied().flatten();
        value.ok_or_else(|| format!("{id} is used where it has no value"))
    }

    fn param(&self, param: ParamId) -> Option<&ParamValue> {
        self.chain.nodes.get(usize::from(self.node))?.params.get(param.index())
    }

    fn name(&self, what: &str, param: ParamId) -> String {
        format!("{what} {}.{param}", self.node)
    }

    /// The value of an operation that uses only values and parameters, and its possible faults.
    /// `None` for other operations.
    pub(crate) fn value_op(
        &self,
        terms: &mut Terms,
        op: &Op,
    ) -> Result<Option<(ValueId, Term, Faults)>, String> {
        let mut faults = Faults::new();
        let (out, value) = match op {
            Op::Const { out, value } => (*out, terms.bits(self.ty(*out)?.width, *value)),
            Op::Param { out, param } => {
                let value = match self.param(*param) {
                    Some(ParamValue::Scalar(value)) => *value,
                    _ => 0,
                };
                (*out, terms.bits(self.ty(*out)?.width, value))
            }
            Op::ListLen { out, param } => (*out, self.list_len(terms, *param)),
            Op::ListGet { out, param, index, column } => {
                let index = self.value(*index)?;
                faults.push((self.past_end(terms, *param, index), Fault::Index));
                (*out, self.member(terms, *param, index, *column, self.ty(*out)?.width))
            }
            Op::BackendUp { out, param, index } => {
                let index = self.value(*index)?;
                faults.push((self.past_end(terms, *param, index), Fault::Index));
                (*out, terms.apply(self.name("up", *param), &[index], Sort::Bits(1)))
            }
            Op::Bin { out, op, a, b } => {
                let (a, b) = (self.value(*a)?, self.value(*b)?);
                if matches!(op, BinOp::Div | BinOp::Rem) {
                    let zero = terms.bits(terms.width(b), 0);
                    faults.push((terms.eq(b, zero), Fault::Division));
                }
                (*out, binary(terms, *op, a, b))
            }
            Op::Cmp { out, op, a, b } => {
                let (a, b) = (self.value(*a)?, self.value(*b)?);
                (*out, compare(terms, *op, a, b))
            }
            Op::Not { out, a } => {
                let a = self.value(*a)?;
                (*out, terms.flip(a))
            }
            Op::Resize { out, a } => {
                let a = self.value(*a)?;
                (*out, terms.resize(a, self.ty(*out)?.width))
            }
            Op::Clamp { out, a } => (*out, clamp(terms, self.value(*a)?, self.ty(*out)?.width)),
            Op::Select { out, cond, a, b } => {
                let (cond, a, b) = (self.value(*cond)?, self.value(*a)?, self.value(*b)?);
                let cond = terms.truth(cond);
                (*out, terms.ite(cond, a, b))
            }
            Op::InSet { out, a, set } => {
                let a = self.value(*a)?;
                let inside = self.in_set(terms, a, set);
                (*out, terms.bit(inside))
            }
            _ => return Ok(None),
        };
        faults.retain(|(when, _)| terms.decided(*when) != Some(false));
        Ok(Some((out, value, faults)))
    }

    fn list_len(&self, terms: &mut Terms, param: ParamId) -> Term {
        match self.param(param) {
            Some(ParamValue::List(rows)) => terms.bits(32, rows.len() as u128),
            _ => terms.var(self.name("members", param), Sort::Bits(32)),
        }
    }

    fn past_end(&self, terms: &mut Terms, param: ParamId, index: Term) -> Term {
        let len = self.list_len(terms, param);
        let width = terms.width(index).max(32);
        let (index, len) = (terms.resize(index, width), terms.resize(len, width));
        let inside = terms.less(index, len);
        terms.not(inside)
    }

    fn member(
        &self,
        terms: &mut Terms,
        param: ParamId,
        index: Term,
        column: u32,
        width: u16,
    ) -> Term {
        if let Some(ParamValue::List(rows)) = self.param(param) {
            let of = |row: &Vec<u128>| row.get(column as usize).copied().unwrap_or(0);
            if let Some(known) = terms.constant(index) {
                let row = usize::try_from(known).ok().and_then(|known| rows.get(known));
                return terms.bits(width, row.map_or(0, of));
            }
            if rows.len() <= MAX_MEMBERS {
                let mut value = terms.bits(width, rows.last().map_or(0, of));
                for (number, row) in rows.iter().enumerate().rev().skip(1) {
                    let this = terms.bits(terms.width(index), number as u128);
                    let (is, member) = (terms.eq(index, this), terms.bits(width, of(row)));
                    value = terms.ite(is, member, value);
                }
                return value;
            }
        }
        let index = terms.resize(index, 128);
        let name = format!("{} column {column}", self.name("member", param));
        terms.apply(name, &[index], Sort::Bits(width))
    }

    fn in_set(&self, terms: &mut Terms, a: Term, set: &SetRef) -> Term {
        let (known, name) = match set {
            SetRef::Const(members) => (Some(members.intervals().to_vec()), String::new()),
            SetRef::Param(param) => match self.param(*param) {
                Some(ParamValue::Set(members)) => {
                    (Some(members.intervals().to_vec()), self.name("in", *param))
                }
                _ => (Some(Vec::new()), String::new()),
            },
            SetRef::List(param, column) => match self.param(*param) {
                Some(ParamValue::List(rows)) => {
                    let of = |row: &Vec<u128>| row.get(*column as usize).copied().unwrap_or(0);
                    (Some(rows.iter().map(|row| (of(row), of(row))).collect()), String::new())
                }
                _ => (None, format!("{} column {column}", self.name("in", *param))),
            },
        };
        match known {
            Some(intervals) if intervals.len() <= MAX_MEMBERS || name.is_empty() => {
                terms.in_intervals(a, &intervals)
            }
            _ => terms.apply(name, &[a], Sort::Bool),
        }
    }
}

fn clamp(terms: &mut Terms, a: Term, width: u16) -> Term {
    let from = terms.width(a);
    if width >= from {
        return terms.resize(a, width);
    }
    let (most, limit) = (terms.bits(from, mask(width)), terms.bits(width, mask(width)));
    let (above, low) = (terms.less(most, a), terms.resize(a, width));
    terms.ite(above, limit, low)
}

fn compare(terms: &mut Terms, op: CmpOp, a: Term, b: Term) -> Term {
    let truth = match op {
        CmpOp::Eq => terms.eq(a, b),
        CmpOp::Ne => {
            let equal = terms.eq(a, b);
            terms.not(equal)
        }
        CmpOp::Lt => terms.less(a, b),
        CmpOp::Le => terms.at_most(a, b),
        CmpOp::Gt => terms.less(b, a),
        CmpOp::Ge => terms.at_most(b, a),
    };
    terms.bit(truth)
}

fn binary(terms: &mut Terms, op: BinOp, a: Term, b: Term) -> Term {
    let width = terms.width(a);
    match op {
        BinOp::AddWrap => terms.op(BitOp::Add, a, b),
        BinOp::SubWrap => terms.op(BitOp::Sub, a, b),
        BinOp::And => terms.op(BitOp::And, a, b),
        BinOp::Or => terms.op(BitOp::Or, a, b),
        BinOp::Xor => terms.op(BitOp::Xor, a, b),
        BinOp::Shl => terms.op(BitOp::Shl, a, b),
        BinOp::Shr => terms.op(BitOp::Shr, a, b),
        BinOp::AddSat => {
            let sum = terms.op(BitOp::Add, a, b);
            if terms.most(a).checked_add(terms.most(b)).is_some_and(|most| most <= mask(width)) {
                return sum;
            }
            let (over, most) = (terms.less(sum, a), terms.bits(width, mask(width)));
            terms.ite(over, most, sum)
        }
        BinOp::SubSat => {
            let (under, zero) = (terms.less(a, b), terms.bits(width, 0));
            let difference = terms.op(BitOp::Sub, a, b);
            terms.ite(under, zero, difference)
        }
        BinOp::Min => {
            let first = terms.less(a, b);
            terms.ite(first, a, b)
        }
        BinOp::Max => {
            let first = terms.less(a, b);
            terms.ite(first, b, a)
        }
        BinOp::MulSat | BinOp::MulWrap | BinOp::Div | BinOp::Rem => far(terms, op, a, b),
    }
}

/// The largest number whose quotients by constants solvers compute. Larger ones take them too long.
const MOST_DIVIDED: Word = 0xffff;

/// Products and quotients. With two unknown operands they are functions with few known facts,
/// because solvers are slow on them.
fn far(terms: &mut Terms, op: BinOp, a: Term, b: Term) -> Term {
    let width = terms.width(a);
    if matches!(op, BinOp::MulSat | BinOp::MulWrap) {
        let product = product(terms, a, b);
        if op == BinOp::MulWrap {
            return product;
        }
        let (over, most) = (overflows(terms, a, b), terms.bits(width, mask(width)));
        return terms.ite(over, most, product);
    }
    if let (Some(x), Some(y)) = (terms.constant(a), terms.constant(b)) {
        let value = if op == BinOp::Div { x.checked_div(y) } else { x.checked_rem(y) };
        return terms.bits(width, value.unwrap_or(0));
    }
    if op == BinOp::Div && terms.constant(b) == Some(1) {
        return a;
    }
    if let Some(y) = terms.constant(b).filter(|y| *y > 0)
        && terms.most(a) <= MOST_DIVIDED
    {
        return divided(terms, op, a, (b, y));
    }
    let result = terms.apply(format!("{op:?} {width}"), &[a, b], Sort::Bits(width));
    let zero = terms.bits(width, 0);
    let (by_zero, no_more) = (terms.eq(b, zero), terms.at_most(result, a));
    let mut facts = vec![no_more];
    if op == BinOp::Rem {
        facts.push(terms.less(result, b));
    }
    for fact in facts {
        let fact = terms.or(&[by_zero, fact]);
        terms.facts.push(fact);
    }
    result
}

/// The quotient or the remainder of a small number by a constant `b`, which is `y`. The facts leave
/// one value, so that solvers find it where they know the number.
fn divided(terms: &mut Terms, op: BinOp, a: Term, (b, y): (Term, Word)) -> Term {
    let width = terms.width(a);
    let quotient = terms.apply(format!("{:?} {width}", BinOp::Div), &[a, b], Sort::Bits(width));
    let most = terms.most(a) / y;
    let most = terms.bits(width, most);
    let product = product(terms, quotient, b);
    let rest = terms.op(BitOp::Sub, a, product);
    let facts = [terms.at_most(quotient, most), terms.at_most(product, a), terms.less(rest, b)];
    terms.facts.extend(facts);
    if op == BinOp::Div { quotient } else { rest }
}

fn product(terms: &mut Terms, a: Term, b: Term) -> Term {
    if terms.constant(a).is_some() || terms.constant(b).is_some() {
        return terms.op(BitOp::Mul, a, b);
    }
    let width = terms.width(a);
    terms.apply(format!("product {width}"), &[a.min(b), a.max(b)], Sort::Bits(width))
}

/// Whether a product exceeds the width.
fn overflows(terms: &mut Terms, a: Term, b: Term) -> Term {
    let width = terms.width(a);
    let fits = terms.most(a).checked_mul(terms.most(b)).is_some_and(|most| most <= mask(width));
    if fits {
        return terms.bool(false);
    }
    for (constant, other) in [(a, b), (b, a)] {
        if let Some(value) = terms.constant(constant) {
            let last = terms.bits(width, mask(width).checked_div(value).unwrap_or(mask(width)));
            return terms.less(last, other);
        }
    }
    terms.apply(format!("product is over {width}"), &[a.min(b), a.max(b)], Sort::Bool)
}
