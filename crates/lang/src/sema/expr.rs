//! Gives every expression a type and lowers it to operations. `Lower::value` and `Lower::predicate`
//! are where other modules lower the expressions inside their own.

use braid_ir::model::{BlockId, Op, ParamId, ParamTy, Ty, ValueId};

use super::build::Paused;
use super::lower::Lower;
use super::names::{self, Named};
use super::pred::{self, is_predicate};
use super::scope::{Binding, Value};
use super::types::{self, BOOL, U32};
use super::{arith, bytes, calls, constant, operators, path, say, state};
use crate::ast::{BinOp, Expr, ExprKind, Ident, Span};
use crate::diag::{Diagnostic, codes};

impl Lower<'_> {
    /// The value of an expression. `expect` is the type that the context needs, for numbers without
    /// a type of their own. `None` after an error, which is then reported.
    pub fn value(&mut self, expr: &Expr, expect: Option<Ty>) -> Option<Value> {
        self.deeper(expr.span, |this| any_value(this, expr, expect))
    }

    /// Continues in `yes` if the predicate holds, otherwise in `no`.
    pub fn predicate(&mut self, expr: &Expr, yes: BlockId, no: BlockId) {
        let done = self.deeper(expr.span, |this| {
            pred::any_predicate(this, expr, yes, no);
            Some(())
        });
        if done.is_none() {
            pred::either(&mut self.b, yes, no);
        }
    }

    /// The value of an expression that must have this type.
    pub fn typed(&mut self, expr: &Expr, ty: Ty) -> Option<ValueId> {
        let value = self.value(expr, Some(ty))?;
        operators::coerce(self, value, ty, expr.span)
    }

    /// The value of an expression with its own type. The type of a number without a unit is
    /// unclear.
    pub fn scalar(&mut self, expr: &Expr) -> Option<(ValueId, Ty)> {
        let value = self.value(expr, None)?;
        match value.scalar_ty() {
            Some(Some(ty)) => Some((operators::coerce(self, value, ty, expr.span)?, ty)),
            Some(None) => self.fail(say::unclear(expr.span)),
            None => self.fail(say::expected_type("a single value", value.describe(), expr.span)),
        }
    }
}

fn any_value(lower: &mut Lower<'_>, expr: &Expr, expect: Option<Ty>) -> Option<Value> {
    match &expr.kind {
        ExprKind::Path(path) => path::value(lower, path),
        ExprKind::Str(text) => Some(match expect.and_then(|ty| constant::text(text, ty)) {
            Some(number) => Value::Const(number),
            None => Value::Text(braid_ir::model::EventArg::Str(text.clone())),
        }),
        ExprKind::Index(base, index) => indexed(lower, base, index, &[], expr.span),
        ExprKind::Member(base, part) => member(lower, base, part, expr.span),
        ExprKind::Call(name, args) => calls::call(lower, name, args, expr.span, expect),
        ExprKind::At(at) if !is_predicate(expr) => bytes::read(lower, at, expr.span),
        ExprKind::Complement(inner) => complemented(lower, inner, expect),
        ExprKind::If(cond, yes, no) => if_value(lower, cond, yes, no, expect, expr.span),
        ExprKind::Record(parts) if expect.is_none() => written_record(lower, parts),
        ExprKind::Record(_) => {
            lower.fail(say::expected_type("a single value", "a record", expr.span))
        }
        _ if is_predicate(expr) => predicate_value(lower, expr),
        ExprKind::Binary(op, a, b) => arithmetic(lower, *op, a, b, expect, expr.span),
        _ => constant::literal(expr, lower.diags).flatten().map(Value::Const),
    }
}

/// The value of `{ NAME: EXPR, … }`, whose parts have types of their own.
fn written_record(lower: &mut Lower<'_>, parts: &[(Ident, Expr)]) -> Option<Value> {
    let mut found: Vec<(String, ValueId, Ty)> = Vec::new();
    for (name, value) in parts {
        if found.iter().any(|(before, ..)| *before == name.text) {
            let message = format!("the part `{}` is given twice", name.text);
            return lower.fail(Diagnostic::new(codes::RECORD_PARTS, message, name.span, "again"));
        }
        let (id, ty) = lower.scalar(value)?;
        found.push((name.text.clone(), id, ty));
    }
    Some(Value::Record(found))
}

fn arithmetic(
    lower: &mut Lower<'_>,
    op: BinOp,
    a: &Expr,
    b: &Expr,
    expect: Option<Ty>,
    span: Span,
) -> Option<Value> {
    // The width of a complement is that of the other side: `ip.tos & ~3`.
    let is_open = |side: &Expr| matches!(side.kind, ExprKind::Complement(_));
    let of = |value: &Option<Value>| value.as_ref().and_then(Value::scalar_ty).flatten();
    let (x, y) = if is_open(a) && !is_open(b) {
        let y = lower.value(b, expect);
        (lower.value(a, of(&y).or(expect)), y)
    } else {
        let x = lower.value(a, expect);
        let wide = if is_open(b) { of(&x).or(expect) } else { expect };
        (x, lower.value(b, wide))
    };
    operators::combine(lower, op, (x?, a.span), (y?, b.span), span)
}

fn complemented(lower: &mut Lower<'_>, inner: &Expr, expect: Option<Ty>) -> Option<Value> {
    let value = lower.value(inner, expect)?;
    let ty = match value.scalar_ty() {
        Some(ty) => ty.or(expect),
        None => return lower.fail(say::expected_type("bits", value.describe(), inner.span)),
    };
    let Some(ty) = ty else { return lower.fail(say::unclear(inner.span)) };
    if !constant::has_bits(ty) {
        let message = format!("`~` is not defined for {}", types::name(ty));
        return lower.fail(Diagnostic::new(codes::BAD_OPERANDS, message, inner.span, ""));
    }
    if let Value::Const(constant) = value {
        let word = say::fit(constant, ty, inner.span, lower.diags)?;
        return Some(Value::Const(arith::Const::typed(!word & types::max(ty), ty)));
    }
    let id = operators::coerce(lower, value, ty, inner.span)?;
    Some(Value::Scalar(lower.b.complement(id, ty), ty))
}

/// Lowers `if COND { A } else { B }`.
fn if_value(
    lower: &mut Lower<'_>,
    cond: &Expr,
    yes: &Expr,
    no: &Expr,
    expect: Option<Ty>,
    span: Span,
) -> Option<Value> {
    let (on_yes, on_no) = (lower.b.block(), lower.b.block());
    lower.predicate(cond, on_yes, on_no);
    lower.b.start(on_yes);
    let x = lower.value(yes, expect);
    let yes_end = lower.b.pause();
    lower.b.start(on_no);
    let y = lower.value(no, expect);
    let no_end = lower.b.pause();
    if let (Some(Value::Record(x)), Some(Value::Record(y))) = (&x, &y) {
        return record_of_ways(lower, (yes_end, x), (no_end, y), span);
    }
    let both = x.zip(y).and_then(|(x, y)| {
        let common = both_ways(lower, (&x, yes.span), (&y, no.span), expect, span)?;
        Some((x, y, common))
    });
    let Some((x, y, common)) = both else {
        // The code behind it is still checked.
        lower.b.resume(yes_end);
        return None;
    };
    let (join, value) = lower.b.block_with_one(common);
    let mut whole = true;
    for (end, found, at) in [(yes_end, x, yes.span), (no_end, y, no.span)] {
        lower.b.resume(end);
        let id = operators::coerce(lower, found, common, at);
        whole &= id.is_some();
        lower.b.jump(join, id.into_iter().collect());
    }
    lower.b.start(join);
    whole.then_some(Value::Scalar(value, common))
}

/// A record that is one of two records with the same parts.
fn record_of_ways(
    lower: &mut Lower<'_>,
    (yes_end, x): (Paused, &[(String, ValueId, Ty)]),
    (no_end, y): (Paused, &[(String, ValueId, Ty)]),
    span: Span,
) -> Option<Value> {
    if !types::same_parts(x, y) {
        // The code behind it is still checked.
        lower.b.resume(yes_end);
        let message = "the branches give records with different parts";
        return lower.fail(Diagnostic::new(codes::TYPE_MISMATCH, message, span, ""));
    }
    let types: Vec<Ty> = x.iter().map(|(_, _, ty)| *ty).collect();
    let (join, values) = lower.b.block_with(&types);
    for (end, parts) in [(yes_end, x), (no_end, y)] {
        lower.b.resume(end);
        lower.b.jump(join, parts.iter().map(|(_, id, _)| *id).collect());
    }
    lower.b.start(join);
    let parts = x.iter().zip(values).map(|((name, _, ty), id)| (name.clone(), id, *ty));
    Some(Value::Record(parts.collect()))
}

/// The common type of both branches of an `if`.
fn both_ways(
    lower: &mut Lower<'_>,
    (x, x_span): (&Value, Span),
    (y, y_span): (&Value, Span),
    expect: Option<Ty>,
    span: Span,
) -> Option<Ty> {
    let (tx, ty) = operators::operand_types(lower, (x, x_span), (y, y_span))?;
    match (arith::common(tx, ty), expect) {
        (Ok(ty), _) | (Err(arith::Wrong::Unclear), Some(ty)) => Some(ty),
        (Err(arith::Wrong::Unclear), None) => lower.fail(say::unclear(span)),
        (Err(_), _) => {
            let found = (types::name(tx.unwrap_or(U32)), types::name(ty.unwrap_or(U32)));
            let message = format!("one branch gives {}, the other {}", found.0, found.1);
            lower.fail(
                Diagnostic::new(codes::TYPE_MISMATCH, message, x_span, "this")
                    .label(y_span, "and this"),
            )
        }
    }
}

/// Lowers a predicate to a value of type bool.
fn predicate_value(lower: &mut Lower<'_>, expr: &Expr) -> Option<Value> {
    let (yes, no) = (lower.b.block(), lower.b.block());
    let (join, value) = lower.b.block_with_one(BOOL);
    lower.predicate(expr, yes, no);
    for (block, word) in [(yes, 1), (no, 0)] {
        lower.b.start(block);
        let id = lower.b.constant(BOOL, word);
        lower.b.jump(join, vec![id]);
    }
    lower.b.start(join);
    Some(Value::Scalar(value, BOOL))
}

/// Lowers `BASE[INDEX]` and the parts behind it: an entry of a state, or a member of a list.
fn indexed(
    lower: &mut Lower<'_>,
    base: &Expr,
    index: &[Expr],
    parts: &[Ident],
    span: Span,
) -> Option<Value> {
    let ExprKind::Path(path) = &base.kind else {
        return not_indexable(lower, base.span);
    };
    if path.parts.len() == 1 && path.parts[0].text == "key" && state::key_in_sight(lower) {
        return state::expired_key(lower, index, span);
    }
    match names::resolve(lower, path)? {
        Named::Bound(Binding::State(state)) if path.parts.len() == 1 => {
            state::read_state(lower, state, Some(index), parts, span)
        }
        Named::Bound(Binding::Param(param)) => {
            let columns = match &lower.model.params.get(param.0 as usize)?.ty {
                ParamTy::List(columns) | ParamTy::Backends(columns) => columns.clone(),
                _ => return not_indexable(lower, base.span),
            };
            let [index] = index else {
                let message = format!("a list takes one index, found {}", index.len());
                let wrong = Diagnostic::new(codes::WRONG_ARGUMENTS, message, span, "");
                return lower.fail(wrong);
            };
            list_member(lower, param, &columns, index, parts)
        }
        _ => not_indexable(lower, base.span),
    }
}

fn not_indexable<T>(lower: &mut Lower<'_>, span: Span) -> Option<T> {
    lower.fail(
        Diagnostic::new(codes::WRONG_NAME, "this takes no `[…]`", span, "")
            .note("an index goes with a state, or a parameter of type list or backends"),
    )
}

fn list_member(
    lower: &mut Lower<'_>,
    param: ParamId,
    columns: &[(String, Ty)],
    index: &Expr,
    parts: &[Ident],
) -> Option<Value> {
    let index = lower.typed(index, U32)?;
    let get = |this: &mut Lower<'_>, column: usize, ty: Ty| {
        let column = u32::try_from(column).unwrap_or(u32::MAX);
        this.b.emit(ty, |out| Op::ListGet { out, param, index, column })
    };
    if let [(name, ty)] = columns
        && name.is_empty()
    {
        let value = Value::Scalar(get(lower, 0, *ty), *ty);
        return names::members(lower, value, parts);
    }
    if let [part, rest @ ..] = parts {
        let Some(at) = columns.iter().position(|(name, _)| *name == part.text) else {
            let known = columns.iter().map(|(name, _)| name.as_str());
            let diagnostic = super::names::unknown_member(part, known);
            return lower.fail(diagnostic);
        };
        let ty = columns[at].1;
        let value = Value::Scalar(get(lower, at, ty), ty);
        return names::members(lower, value, rest);
    }
    let slots = columns.iter().enumerate();
    let slots = slots.map(|(at, (name, ty))| (name.clone(), get(lower, at, *ty), *ty));
    Some(Value::Record(slots.collect()))
}

fn member(lower: &mut Lower<'_>, base: &Expr, part: &Ident, span: Span) -> Option<Value> {
    if let ExprKind::Index(list, index) = &base.kind {
        return indexed(lower, list, index, std::slice::from_ref(part), span);
    }
    let value = lower.value(base, None)?;
    names::members(lower, value, std::slice::from_ref(part))
}
