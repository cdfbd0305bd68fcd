//! Lowers numbers in the payload: `u16 at payload + 2`, which may be read and assigned.
//!
//! The payload may be too short. In a predicate the atom is then false, like an atom that reads an
//! absent header. A statement needs an `else`, or must follow a test: a predicate that has read the
//! same bytes, or bytes behind them, at a constant offset.

use braid_ir::model::{Kind, Op, Ty, ValueId};
use braid_packet::Header;

use super::arith::Const;
use super::lower::Lower;
use super::scope::Value;
use super::types::{self, BOOL, U32};
use super::{needs, operators, say};
use crate::ast::{Expr, Ident, Span, Stmt};
use crate::diag::{Diagnostic, codes};

/// A number in the payload.
pub struct Number {
    /// Whether the payload has all of its bytes.
    pub found: ValueId,
    out: ValueId,
    ty: Ty,
    /// The end of its bytes in the payload, if that is constant.
    end: Option<u32>,
}

impl Number {
    /// Its value.
    #[must_use]
    pub fn value(&self) -> Value {
        Value::Scalar(self.out, self.ty)
    }
}

/// The value of `TYPE at payload + OFFSET` where it needs no `else`.
pub fn read(lower: &mut Lower<'_>, ty: &Ident, offset: Option<&Expr>, span: Span) -> Option<Value> {
    let number = number(lower, ty, offset, span)?;
    if number.end.is_some_and(|end| lower.b.facts.has_payload(end)) {
        return Some(number.value());
    }
    let Some(absent) = lower.absent else {
        let message = "the payload may be too short for this number";
        let wrong = Diagnostic::new(codes::NEEDS_ELSE, message, span, "and then has no value");
        let ty = &ty.text;
        return lower.fail(wrong.help(format!("write `let x = {ty} at payload + … else drop;`")));
    };
    let next = lower.b.block();
    lower.b.branch_on_payload(number.found, number.end, next, absent);
    lower.b.start(next);
    Some(number.value())
}

/// The number `TYPE at payload + OFFSET`.
pub fn number(
    lower: &mut Lower<'_>,
    ty: &Ident,
    offset: Option<&Expr>,
    span: Span,
) -> Option<Number> {
    let ty = whole_bytes(lower, ty)?;
    if !needs::packet(lower, span) {
        return None;
    }
    let (offset, end) = place(lower, offset, ty)?;
    let (found, out) = (lower.b.value(BOOL), lower.b.value(ty));
    lower.b.op(Op::LoadPayload { found, out, offset });
    Some(Number { found, out, ty, end })
}

/// Lowers `TYPE at payload + OFFSET = VALUE else STMT;`.
pub fn assign<'a>(
    lower: &mut Lower<'a>,
    (ty, offset): (&Ident, Option<&Expr>),
    value: &Expr,
    otherwise: Option<&'a Stmt>,
    span: Span,
) -> Option<()> {
    let ty = whole_bytes(lower, ty)?;
    if !needs::packet(lower, span) {
        return None;
    }
    needs::header(lower, Header::L4, false, span, "the payload's checksum")?;
    let a = lower.typed(value, ty);
    let (offset, end) = place(lower, offset, ty)?;
    let is_known = end.is_some_and(|end| lower.b.facts.has_payload(end));
    let ok = lower.b.value(BOOL);
    lower.b.op(Op::StorePayload { ok, offset, a: a? });
    lower.b.facts.stored_payload();
    let Some(otherwise) = otherwise else {
        if is_known {
            return Some(());
        }
        let message = "the payload may be too short for this number";
        let wrong = Diagnostic::new(codes::NEEDS_ELSE, message, span, "and then nothing changes");
        return lower.fail(wrong.help("write `… = VALUE else drop;`"));
    };
    let (done, gone) = (lower.b.block(), lower.b.block());
    lower.b.branch_on_payload(ok, end, done, gone);
    lower.b.start(gone);
    lower.scoped(|this| this.statement(otherwise));
    lower.b.jump(done, Vec::new());
    lower.b.start(done);
    Some(())
}

/// Reports `TYPE at payload += VALUE`, which does not say what happens if there is no old value.
pub fn no_sum(lower: &mut Lower<'_>, span: Span) -> Option<()> {
    let message = "a number in the payload is assigned with `=`";
    let wrong = Diagnostic::new(codes::NOT_ASSIGNABLE, message, span, "");
    lower.fail(wrong.help("read it first: `let x = … else drop;`"))
}

/// The type of a number in the payload.
fn whole_bytes(lower: &mut Lower<'_>, name: &Ident) -> Option<Ty> {
    let ty = types::scalar(&name.text).filter(|ty| ty.width.is_multiple_of(8));
    if ty.is_none() {
        let message = format!("`{}` is no type of whole bytes", name.text);
        let wrong = Diagnostic::new(codes::TYPE_MISMATCH, message, name.span, "");
        lower.say(wrong.help("write `u8`, `u16`, `u32`, …, `ip4`, `ip6`, `mac` or `port`"));
    }
    ty
}

/// The offset of a number in bytes (32 bits), and the end of its bytes if that is constant. A
/// larger offset becomes the largest one, where no payload has bytes.
fn place(lower: &mut Lower<'_>, offset: Option<&Expr>, ty: Ty) -> Option<(ValueId, Option<u32>)> {
    let end = |start: u32| start.checked_add(u32::from(ty.width / 8));
    let Some(offset) = offset else { return Some((lower.b.constant(U32, 0), end(0))) };
    let value = lower.value(offset, Some(U32))?;
    if let Value::Const(Const { value: word, .. }) = &value {
        let start = u32::try_from(*word).unwrap_or(u32::MAX);
        return Some((lower.b.constant(U32, start.into()), end(start)));
    }
    let Some(of) = value.scalar_ty() else {
        return lower.fail(say::expected_type("a number", value.describe(), offset.span));
    };
    let of = of.unwrap_or(U32);
    if !matches!(of.kind, Kind::Uint | Kind::Size) {
        return lower.fail(say::expected_type("a number", &types::name(of), offset.span));
    }
    let id = operators::coerce(lower, value, of, offset.span)?;
    Some((lower.b.clamp(id, of, U32), None))
}
