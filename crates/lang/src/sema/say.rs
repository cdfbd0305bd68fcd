//! Messages that several checks share.

use braid_ir::model::{Kind, Ty};

use super::arith::{Const, Fault, Wrong};
use super::{addr, types};
use crate::ast::{BinOp, Span};
use crate::diag::{Diagnostic, Diagnostics, MAX_DIAGNOSTICS, codes, did_you_mean_help};

/// The message for a value of one type where another type is needed.
pub fn mismatch(expected: Ty, found: Ty, span: Span) -> Diagnostic {
    let (want, have) = (types::name(expected), types::name(found));
    if expected.kind == found.kind {
        return Diagnostic::new(
            codes::WIDTH_MISMATCH,
            format!("expected {want}, found {have}"),
            span,
            format!("this has {} bits", found.width),
        )
        .help(format!("write `{want}(…)` to convert it"));
    }
    Diagnostic::new(
        codes::TYPE_MISMATCH,
        format!("expected {want}, found {have}"),
        span,
        format!("this is of type {have}"),
    )
    .help_if(
        versions(expected, found).or_else(|| {
            castable(expected, found).then(|| format!("write `{want}(…)` to convert it"))
        }),
    )
}

/// The help where addresses of different types meet.
pub fn versions(a: Ty, b: Ty) -> Option<String> {
    let one = |ty| ty == types::IP4 || ty == types::IP6;
    let help = match (a, b) {
        (x, y) if one(x) && one(y) => "the type `addr` holds addresses of both IP versions",
        (types::ADDR, y) | (y, types::ADDR) if one(y) => {
            "`ip4(…)` gives the IPv4 address; for one IP version, write `has ip and ip.src …`"
        }
        (number, y) | (y, number) if one(y) && number == types::U128 => {
            "if the number is an address of either IP version, give it the type `addr`"
        }
        _ => return None,
    };
    Some(help.to_owned())
}

fn castable(to: Ty, from: Ty) -> bool {
    let bool_in = to.kind == Kind::Bool || from.kind == Kind::Bool;
    !bool_in && (to.kind == Kind::Uint || from.kind == Kind::Uint)
}

/// The message for something other than a single value where one is needed.
pub fn expected_type(expected: &str, found: &str, span: Span) -> Diagnostic {
    Diagnostic::new(
        codes::TYPE_MISMATCH,
        format!("expected {expected}, found {found}"),
        span,
        format!("this is {found}"),
    )
}

/// The message for operands that an operator cannot combine.
pub fn operands(wrong: Wrong, op: BinOp, a: Option<Ty>, b: Option<Ty>, span: Span) -> Diagnostic {
    let name = |ty: Option<Ty>| ty.map_or_else(|| "a number".to_owned(), types::name);
    let (left, right) = (name(a), name(b));
    let symbol = symbol(op);
    match wrong {
        Wrong::Widths => Diagnostic::new(
            codes::WIDTH_MISMATCH,
            format!("both sides of `{symbol}` need one width, found {left} and {right}"),
            span,
            "different widths",
        )
        .help_if(wider(a, b).map(|wide| format!("convert the narrower one: `{wide}(…)`"))),
        Wrong::Types => {
            Diagnostic::new(
                codes::TYPE_MISMATCH,
                format!("both sides of `{symbol}` need one type, found {left} and {right}"),
                span,
                "different types",
            )
            .help_if(a.zip(b).and_then(|(a, b)| versions(a, b)).or_else(|| {
                number_side(a, b).map(|other| format!("convert the number: `{other}(…)`"))
            }))
        }
        Wrong::Operator => Diagnostic::new(
            codes::BAD_OPERANDS,
            format!("`{symbol}` is not defined for {left} and {right}"),
            span,
            "",
        )
        .help_if(as_numbers(a, b)),
        Wrong::Unclear => unclear(span),
    }
}

/// The help to calculate with the numbers behind values of other types.
fn as_numbers(a: Option<Ty>, b: Option<Ty>) -> Option<String> {
    let sides = [a, b].into_iter().flatten();
    let mut others = sides.filter(|ty| !matches!(ty.kind, Kind::Uint | Kind::Bool));
    let number = types::name(Ty::uint(others.next()?.width));
    Some(format!("to calculate with the number behind a value, write `{number}(…)`"))
}

fn wider(a: Option<Ty>, b: Option<Ty>) -> Option<String> {
    let (a, b) = (a?, b?);
    Some(types::name(if a.width > b.width { a } else { b }))
}

fn number_side(a: Option<Ty>, b: Option<Ty>) -> Option<String> {
    match (a?, b?) {
        (a, b) if a.kind == Kind::Uint => Some(types::name(b)),
        (a, b) if b.kind == Kind::Uint => Some(types::name(a)),
        _ => None,
    }
}

/// The message for a number without a known width.
pub fn unclear(span: Span) -> Diagnostic {
    Diagnostic::new(codes::UNCLEAR_TYPE, "how wide is this number?", span, "no type")
        .help("write a cast, such as `u32(…)`")
}

/// The message for constant arithmetic without a result.
pub fn fault(fault: Fault, span: Span) -> Diagnostic {
    match fault {
        Fault::Overflow => Diagnostic::new(
            codes::CONSTANT_OVERFLOW,
            "the result leaves the range of its type",
            span,
            "overflows",
        )
        .help("constants do not wrap or stop at the ends of their range"),
        Fault::Division => {
            Diagnostic::new(codes::DIVISION_BY_ZERO, "division by zero", span, "divides by 0")
                .help("expected a divisor that is not 0")
        }
    }
}

/// The constant's bits as this type. `None` when the constant does not fit, which is then reported.
pub fn fit(constant: Const, ty: Ty, span: Span, diags: &mut Diagnostics) -> Option<u128> {
    if let Some(found) = constant.ty {
        if types::compatible(ty, found) {
            return Some(constant.value);
        }
        if addr::widens(found, ty) {
            let range = addr::range(found, constant.value, constant.value, span);
            return range.map(|(value, _)| value).map_err(|wrong| diags.push(wrong)).ok();
        }
        diags.push(mismatch(ty, found, span));
        return None;
    }
    let unit = match ty.kind {
        Kind::Duration => Some("30 s"),
        Kind::Bitrate => Some("10 Mbit/s"),
        Kind::Time => Some("pkt.time + 30 s"),
        _ => None,
    };
    if let Some(example) = unit.filter(|_| constant.value != 0) {
        let message = format!("a {} needs a unit, found a plain number", types::name(ty));
        diags.push(
            Diagnostic::new(codes::NEEDS_UNIT, message, span, "without a unit")
                .help(format!("write it like `{example}`")),
        );
        return None;
    }
    if constant.value > types::max(ty) {
        let message = format!(
            "{} does not fit {}, whose largest value is {}",
            constant.value,
            types::name(ty),
            types::max(ty)
        );
        diags.push(Diagnostic::new(codes::NUMBER_TOO_LARGE, message, span, "too large"));
        return None;
    }
    Some(constant.value)
}

/// A number of things, as text.
pub fn count(number: usize, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// The symbol of an operator.
pub fn symbol(op: BinOp) -> &'static str {
    match op {
        BinOp::Or => "or",
        BinOp::And => "and",
        BinOp::Eq => "==",
        BinOp::Ne => "!=",
        BinOp::Lt => "<",
        BinOp::Le => "<=",
        BinOp::Gt => ">",
        BinOp::Ge => ">=",
        BinOp::BitOr => "|",
        BinOp::BitXor => "^",
        BinOp::BitAnd => "&",
        BinOp::Shl => "<<",
        BinOp::Shr => ">>",
        BinOp::Add => "+",
        BinOp::Sub => "-",
        BinOp::Mul => "*",
        BinOp::Div => "/",
        BinOp::Rem => "%",
    }
}

/// The most names that are compared with a misspelt name.
const MAX_CANDIDATES: usize = 2000;

/// Like `did_you_mean_help`, but bounded: a file may have many names and many mistakes.
pub fn suggest<'s>(
    diags: &Diagnostics,
    name: &str,
    known: impl IntoIterator<Item = &'s str>,
) -> Option<String> {
    if diags.len() >= MAX_DIAGNOSTICS {
        return None;
    }
    did_you_mean_help(name, known.into_iter().take(MAX_CANDIDATES))
}
