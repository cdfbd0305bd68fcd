//! Evaluates constant expressions: numbers and sets that are known before any packet arrives.

use braid_ir::model::{Kind, Ty};
use braid_ir::value::IntervalSet;

use super::addr;
use super::arith::{self, Const};
use super::env::Constants;
use super::files;
use super::patterns::is_pattern;
use super::say;
use super::types::{self, IP4, IP6, MAC};
use crate::ast::{Arg, BinOp, Expr, ExprKind, Ident, Span};
use crate::diag::{Diagnostic, Diagnostics, codes};

/// How deep constants may refer to constants. A deeper reference counts as a circle.
const MAX_DEPTH: u32 = 64;
/// The most references to constants that one evaluation follows.
const MAX_REFERENCES: u32 = 1 << 20;

/// Names that stand for numbers everywhere: TCP flags, protocols, IPv4 options, extension headers.
const BUILT_IN: &[(&str, u128)] = &[
    ("FIN", 0x01),
    ("SYN", 0x02),
    ("RST", 0x04),
    ("PSH", 0x08),
    ("ACK", 0x10),
    ("URG", 0x20),
    ("ECE", 0x40),
    ("CWR", 0x80),
    ("ICMP", 1),
    ("TCP", 6),
    ("UDP", 17),
    ("GRE", 47),
    ("ESP", 50),
    ("AH", 51),
    ("ICMP6", 58),
    ("SCTP", 132),
    ("RECORD_ROUTE", 7),
    ("TIMESTAMP", 68),
    ("LOOSE_ROUTE", 131),
    ("STRICT_ROUTE", 137),
    ("ROUTER_ALERT", 148),
    ("HOP_BY_HOP", 0),
    ("ROUTING", 43),
    ("FRAGMENT", 44),
    ("DESTINATION", 60),
];

/// The number of a built-in name.
#[must_use]
pub fn built_in(name: &str) -> Option<Const> {
    BUILT_IN.iter().find(|(known, _)| *known == name).map(|(_, value)| Const::plain(*value))
}

/// Evaluates constant expressions.
pub struct Eval<'a> {
    constants: &'a dyn Constants,
    diags: &'a mut Diagnostics,
    depth: u32,
    references: u32,
}

impl<'a> Eval<'a> {
    /// An evaluator with these named constants in scope.
    pub fn new(constants: &'a dyn Constants, diags: &'a mut Diagnostics) -> Self {
        Self { constants, diags, depth: 0, references: 0 }
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        self.diags.push(diagnostic);
    }

    /// A number of this type. `None` after an error, which is then reported.
    pub fn number(&mut self, expr: &Expr, ty: Ty) -> Option<u128> {
        if let ExprKind::Str(words) = &expr.kind
            && let Some(number) = text(words, ty)
        {
            return Some(number.value);
        }
        let constant = self.scalar(expr)?;
        say::fit(constant, ty, expr.span, self.diags)
    }

    /// One number. `None` after an error, which is then reported.
    pub fn scalar(&mut self, expr: &Expr) -> Option<Const> {
        if let Some(literal) = literal(expr, self.diags) {
            return literal;
        }
        match &expr.kind {
            ExprKind::Path(path) => match path.parts.as_slice() {
                [name] => self.named(name, expr.span, Self::scalar),
                _ => self.not_constant(expr.span),
            },
            ExprKind::Binary(op, a, b) => self.binary(*op, a, b, expr.span),
            ExprKind::Complement(inner) => {
                let value = self.scalar(inner)?;
                let Some(ty) = value.ty else {
                    self.report(say::unclear(inner.span));
                    return None;
                };
                Some(Const::typed(!value.value & types::max(ty), ty))
            }
            ExprKind::Not(inner) => {
                let value = self.number(inner, types::BOOL)?;
                Some(Const::typed(1 - value, types::BOOL))
            }
            ExprKind::Call(name, args) => self.call(name, args, expr.span),
            _ => self.not_constant(expr.span),
        }
    }

    fn not_constant<T>(&mut self, span: Span) -> Option<T> {
        self.report(
            Diagnostic::new(codes::NOT_CONSTANT, "expected a constant", span, "not a constant")
                .note("it must be known before packets arrive"),
        );
        None
    }

    /// Evaluates a named constant.
    fn named<T>(
        &mut self,
        name: &Ident,
        span: Span,
        inner: impl FnOnce(&mut Self, &Expr) -> Option<T>,
    ) -> Option<T>
    where
        T: FromBuiltIn,
    {
        let constants = self.constants;
        let Some(value) = constants.find(&name.text) else {
            if let Some(known) = built_in(&name.text) {
                return Some(T::from_built_in(known));
            }
            return self.not_constant(span);
        };
        if self.depth >= MAX_DEPTH {
            let message = format!("the constant `{}` leads back to itself", name.text);
            self.report(Diagnostic::new(codes::RECURSION, message, span, "in a circle"));
            return None;
        }
        if self.references >= MAX_REFERENCES {
            let message = format!("more than {MAX_REFERENCES} references to constants");
            self.report(Diagnostic::new(codes::TOO_LARGE, message, span, "one too many"));
            return None;
        }
        self.references += 1;
        self.depth += 1;
        let result = inner(self, value);
        self.depth -= 1;
        result
    }

    fn binary(&mut self, op: BinOp, a: &Expr, b: &Expr, span: Span) -> Option<Const> {
        let (x, y) = (self.scalar(a), self.scalar(b));
        let (x, y) = (x?, y?);
        match op {
            BinOp::And | BinOp::Or => {
                let x = say::fit(x, types::BOOL, a.span, self.diags)?;
                let y = say::fit(y, types::BOOL, b.span, self.diags)?;
                let value = if op == BinOp::And { x & y } else { x | y };
                Some(Const::typed(value, types::BOOL))
            }
            BinOp::Eq | BinOp::Ne | BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge => {
                self.comparison(op, (x, a.span), (y, b.span), span)
            }
            _ => combine(op, false, (x, a.span), (y, b.span), span, self.diags),
        }
    }

    fn comparison(
        &mut self,
        op: BinOp,
        (x, x_span): (Const, Span),
        (y, y_span): (Const, Span),
        span: Span,
    ) -> Option<Const> {
        if x.ty.is_some() || y.ty.is_some() {
            match arith::common(x.ty, y.ty) {
                Ok(ty) => {
                    say::fit(x, ty, x_span, self.diags)?;
                    say::fit(y, ty, y_span, self.diags)?;
                }
                Err(wrong) => {
                    self.report(say::operands(wrong, op, x.ty, y.ty, span));
                    return None;
                }
            }
        }
        Some(Const::typed(u128::from(arith::compare(op, x.value, y.value)), types::BOOL))
    }

    /// Evaluates casts, `min` and `max`.
    fn call(&mut self, name: &Ident, args: &[Arg], span: Span) -> Option<Const> {
        let values: Option<Vec<Const>> = args.iter().map(|arg| self.scalar(&arg.value)).collect();
        match (types::scalar(&name.text), name.text.as_str(), values?.as_slice()) {
            (Some(ty), _, [value]) => Some(Const::typed(value.value.min(types::max(ty)), ty)),
            (None, "min" | "max", [a, b]) => {
                let ty = match arith::common(a.ty, b.ty) {
                    Ok(ty) => Some(ty),
                    Err(arith::Wrong::Unclear) => None,
                    Err(wrong) => {
                        self.report(say::operands(wrong, BinOp::Lt, a.ty, b.ty, span));
                        return None;
                    }
                };
                let smaller = (name.text == "min") == (a.value <= b.value);
                Some(Const { value: if smaller { a.value } else { b.value }, ty })
            }
            _ => self.not_constant(span),
        }
    }

    /// Checks a constant whose type its use will give. `None` after an error, which is then
    /// reported.
    pub fn check(&mut self, expr: &Expr) -> Option<()> {
        match &expr.kind {
            ExprKind::Str(_) | ExprKind::Prefix4(..) | ExprKind::Prefix6(..) => Some(()),
            ExprKind::Range(from, to) => {
                let (low, high) = (self.scalar(from), self.scalar(to));
                let ends = ((low?, from.span), (high?, to.span));
                let order = self.comparison(BinOp::Le, ends.0, ends.1, expr.span)?;
                if order.value == 0 {
                    self.report(empty_range(expr.span));
                    return None;
                }
                Some(())
            }
            ExprKind::Set(members) | ExprKind::List(members) => self.check_all(members.iter()),
            ExprKind::Record(parts) => self.check_all(parts.iter().map(|(_, value)| value)),
            ExprKind::Path(path) if path.parts.len() == 1 => {
                self.named(&path.parts[0], expr.span, |eval, inner| {
                    eval.check(inner)?;
                    Some(Checked)
                })?;
                Some(())
            }
            ExprKind::Binary(_, a, b) if is_set_operation(expr, self.constants) => {
                self.check_all([&**a, &**b].into_iter())
            }
            ExprKind::Call(name, args) if files::is_file_value(&name.text) => {
                files::check_arguments(name, args, expr.span, self.diags)
            }
            ExprKind::Call(..) if is_pattern(expr) => Some(()),
            _ => self.scalar(expr).map(|_| ()),
        }
    }

    /// Checks all values, also behind one with an error.
    fn check_all<'e>(&mut self, all: impl Iterator<Item = &'e Expr>) -> Option<()> {
        let wrong = all.filter(|one| self.check(one).is_none()).count();
        (wrong == 0).then_some(())
    }

    /// A set of numbers of this type. It consists of prefixes, ranges, numbers and other sets.
    pub fn set(&mut self, expr: &Expr, ty: Ty) -> Option<IntervalSet> {
        let mut intervals = Vec::new();
        self.intervals(expr, ty, &mut intervals).map(|()| IntervalSet::new(intervals))
    }

    /// Adds the intervals of a set, in written order.
    pub fn intervals(&mut self, expr: &Expr, ty: Ty, into: &mut Vec<(u128, u128)>) -> Option<()> {
        match &expr.kind {
            ExprKind::Prefix4(..) | ExprKind::Prefix6(..) => {
                into.push(self.prefix(expr, ty)?);
                Some(())
            }
            ExprKind::Range(from, to) => {
                let (low, high) = (self.number(from, ty), self.number(to, ty));
                let (low, high) = (low?, high?);
                if low > high {
                    self.report(empty_range(expr.span));
                    return None;
                }
                if let Some(wrong) = addr::mixed(ty, low, high, expr.span) {
                    self.report(wrong);
                    return None;
                }
                into.push((low, high));
                Some(())
            }
            ExprKind::Set(members) | ExprKind::List(members) => {
                let mut whole = Some(());
                for member in members {
                    whole = self.intervals(member, ty, into).and(whole);
                }
                whole
            }
            ExprKind::Binary(op, a, b) if is_set_operation(expr, self.constants) => {
                let (a, b) = (self.set(a, ty), self.set(b, ty));
                let (a, b) = (a?, b?);
                let found = match op {
                    BinOp::BitOr => a.union(&b),
                    BinOp::BitAnd => a.intersection(&b),
                    _ => a.intersection(&b.complement(types::max(ty))),
                };
                into.extend(found.intervals());
                Some(())
            }
            ExprKind::Path(path) if path.parts.len() == 1 => {
                let found = self.named(&path.parts[0], expr.span, |eval, inner| {
                    let mut inner_intervals = Vec::new();
                    eval.intervals(inner, ty, &mut inner_intervals)?;
                    Some(Intervals(inner_intervals))
                })?;
                into.extend(found.0);
                Some(())
            }
            _ => {
                if let Some(wrong) = difference(expr) {
                    self.report(wrong);
                    return None;
                }
                let value = self.number(expr, ty)?;
                into.push((value, value));
                Some(())
            }
        }
    }

    fn prefix(&mut self, expr: &Expr, ty: Ty) -> Option<(u128, u128)> {
        let (family, low, high) = prefix_range(&expr.kind)?;
        if family == ty {
            return Some((low, high));
        }
        if addr::widens(family, ty) {
            return addr::range(family, low, high, expr.span).map_err(|e| self.report(e)).ok();
        }
        let found = if family == IP4 { "an IPv4 prefix" } else { "an IPv6 prefix" };
        let wrong = say::expected_type(&types::name(ty), found, expr.span);
        self.report(wrong.help_if(say::versions(ty, family)));
        None
    }
}

/// The error of a member of a set that is a difference of two written numbers or addresses: its
/// author means a range.
pub fn difference(expr: &Expr) -> Option<Diagnostic> {
    let ExprKind::Binary(BinOp::Sub, a, b) = &expr.kind else { return None };
    let is_literal = |side: &Expr| {
        use ExprKind::{Int, Ip4, Ip6, Mac, Quantity};
        matches!(side.kind, Int(_) | Quantity(..) | Ip4(_) | Ip6(_) | Mac(_))
    };
    if !is_literal(a) || !is_literal(b) {
        return None;
    }
    let message = "a difference of two literals is one number, not a range";
    let code = codes::DIFFERENCE_AS_RANGE;
    let wrong = Diagnostic::new(code, message, expr.span, "a range has two dots");
    Some(wrong.help(
        "write a range with its smaller end first, such as `1978..2000` or `10.0.0.1..10.0.0.9`",
    ))
}

/// Whether an expression is a union, an intersection or a difference of sets: `a | b`, `a & b` or
/// `a - b`, where one of both is a set.
pub fn is_set_operation(expr: &Expr, constants: &dyn Constants) -> bool {
    let ExprKind::Binary(BinOp::BitOr | BinOp::BitAnd | BinOp::Sub, a, b) = &expr.kind else {
        return false;
    };
    [a, b].into_iter().any(|side| is_set(side, constants, 0))
}

/// Whether an expression is a set of constants.
fn is_set(expr: &Expr, constants: &dyn Constants, depth: u32) -> bool {
    match &expr.kind {
        ExprKind::Set(_)
        | ExprKind::List(_)
        | ExprKind::Range(..)
        | ExprKind::Prefix4(..)
        | ExprKind::Prefix6(..) => true,
        ExprKind::Binary(BinOp::BitOr | BinOp::BitAnd | BinOp::Sub, a, b) => {
            [a, b].into_iter().any(|side| is_set(side, constants, depth))
        }
        ExprKind::Path(path) if path.parts.len() == 1 && depth < MAX_DEPTH => {
            let found = constants.find(&path.parts[0].text);
            found.is_some_and(|inner| is_set(inner, constants, depth + 1))
        }
        _ => false,
    }
}

/// A value that a built-in constant can give.
trait FromBuiltIn {
    fn from_built_in(known: Const) -> Self;
}

impl FromBuiltIn for Const {
    fn from_built_in(known: Const) -> Self {
        known
    }
}

/// A constant of any type, without errors.
struct Checked;

impl FromBuiltIn for Checked {
    fn from_built_in(_known: Const) -> Self {
        Self
    }
}

struct Intervals(Vec<(u128, u128)>);

impl FromBuiltIn for Intervals {
    fn from_built_in(known: Const) -> Self {
        Self(vec![(known.value, known.value)])
    }
}

/// The type and both ends of a prefix. Host bits are ignored.
#[must_use]
pub fn prefix_range(kind: &ExprKind) -> Option<(Ty, u128, u128)> {
    match *kind {
        ExprKind::Prefix4(addr, len) => {
            let host = u32::MAX.checked_shr(u32::from(len)).unwrap_or(0);
            Some((IP4, u128::from(addr & !host), u128::from(addr | host)))
        }
        ExprKind::Prefix6(addr, len) => {
            let host = u128::MAX.checked_shr(u32::from(len)).unwrap_or(0);
            Some((IP6, addr & !host, addr | host))
        }
        _ => None,
    }
}

/// The message for a range whose lower end is above the upper end.
pub fn empty_range(span: Span) -> Diagnostic {
    Diagnostic::new(codes::EMPTY_RANGE, "the range is empty", span, "lower end above upper end")
}

/// The number in network byte order in at most 16 bytes.
#[must_use]
pub fn number(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0, |number, byte| number << 8 | u128::from(*byte))
}

/// The number that a text is as bytes in network byte order, if it has as many bytes as this type.
#[must_use]
pub fn text(text: &str, ty: Ty) -> Option<Const> {
    let is_it = ty.kind == Kind::Uint && usize::from(ty.width) == 8 * text.len();
    is_it.then(|| Const::typed(number(text.as_bytes()), ty))
}

/// The value of a literal. `Some(None)` for a wrong literal, which is then reported.
pub fn literal(expr: &Expr, diags: &mut Diagnostics) -> Option<Option<Const>> {
    let constant = match &expr.kind {
        ExprKind::Int(value) => Const::plain(*value),
        ExprKind::Quantity(number, unit) => match arith::with_unit(*number, unit) {
            Some(constant) => constant,
            None => {
                let message = format!("`{number} {unit}` is too large");
                diags.push(Diagnostic::new(codes::NUMBER_TOO_LARGE, message, expr.span, ""));
                return Some(None);
            }
        },
        ExprKind::Bool(value) => Const::typed(u128::from(*value), types::BOOL),
        ExprKind::Ip4(addr) => Const::typed(u128::from(*addr), IP4),
        ExprKind::Ip6(addr) => Const::typed(*addr, IP6),
        ExprKind::Mac(addr) => Const::typed(u128::from(*addr), MAC),
        ExprKind::Str(_) => return not_value("a text", expr.span, diags),
        ExprKind::Prefix4(..) | ExprKind::Prefix6(..) => {
            return not_value("a prefix", expr.span, diags);
        }
        ExprKind::Range(..) => return not_value("a range", expr.span, diags),
        ExprKind::Set(_) => return not_value("a set", expr.span, diags),
        ExprKind::List(_) => return not_value("a list", expr.span, diags),
        ExprKind::Error => return Some(None),
        _ => return None,
    };
    Some(Some(constant))
}

fn not_value<T>(found: &str, span: Span, diags: &mut Diagnostics) -> Option<Option<T>> {
    let message = format!("expected a single value, found {found}");
    let help =
        (found != "a text" && found != "a list").then(|| "test membership with `in`".to_owned());
    diags.push(Diagnostic::new(codes::NOT_A_VALUE, message, span, "").help_if(help));
    Some(None)
}

/// Arithmetic on two constants. `None` after an error, which is then reported.
pub fn combine(
    op: BinOp,
    wrapping: bool,
    (x, x_span): (Const, Span),
    (y, y_span): (Const, Span),
    span: Span,
    diags: &mut Diagnostics,
) -> Option<Const> {
    let faulty = |found, diags: &mut Diagnostics| {
        let place = if found == arith::Fault::Division { y_span } else { span };
        diags.push(say::fault(found, place));
    };
    if x.ty.is_none() && y.ty.is_none() {
        return match arith::fold_plain(op, x.value, y.value) {
            Ok(value) => Some(Const::plain(value)),
            Err(found) => {
                faulty(found, diags);
                None
            }
        };
    }
    let plan = match arith::plan(op, x.ty, y.ty) {
        Ok(plan) => plan,
        Err(wrong) => {
            diags.push(say::operands(wrong, op, x.ty, y.ty, span));
            return None;
        }
    };
    let a = say::fit(x, plan.left, x_span, diags);
    let b = say::fit(y, plan.right, y_span, diags);
    match arith::fold(&plan, op, wrapping, a?, b?) {
        Ok(value) => Some(Const::typed(value, plan.result)),
        Err(found) => {
            faulty(found, diags);
            None
        }
    }
}

/// Whether values of a type are bits that can be complemented.
#[must_use]
pub fn has_bits(ty: Ty) -> bool {
    !matches!(ty.kind, Kind::Bool | Kind::Time | Kind::Duration | Kind::Bitrate)
}
