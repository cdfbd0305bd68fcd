//! Lowers locals: `let`, and assignments to locals that were declared with `let mut`.

use braid_ir::model::Ty;

use super::build::Var;
use super::lower::Lower;
use super::scope::{Scope, Value};
use super::{bytes, calls, names, operators, say, state, types};
use crate::ast::{BinOp, Chunk, Expr, ExprKind, Ident, Path, Span, Stmt};
use crate::diag::{Diagnostic, codes};

/// The message for a name that is already in use.
pub fn duplicate(scope: &Scope<'_>, name: &Ident) -> Diagnostic {
    let message = format!("`{}` is declared twice", name.text);
    let found = Diagnostic::new(codes::DUPLICATE_NAME, message, name.span, "again here");
    match scope.place(&name.text) {
        Some(first) => found.label(first, "first here"),
        None => found,
    }
    .help("give one of them another name")
}

/// Lowers `let NAME = VALUE else STMT;`, and with `mutable` the statement `let mut NAME = …`.
pub fn declare<'a>(
    lower: &mut Lower<'a>,
    (name, mutable): (&'a Ident, bool),
    value: &Expr,
    otherwise: Option<&'a Stmt>,
) {
    let span = value.span;
    if lower.scope.is_taken(&name.text) {
        let diagnostic = duplicate(&lower.scope, name);
        lower.say(diagnostic);
    }
    let value = match otherwise {
        None => lower.value(value, None),
        Some(otherwise) => let_else(lower, value, otherwise),
    };
    let value = match value {
        Some(value) if mutable => changing(lower, value, span),
        value => value,
    };
    // Uses of a local with a wrong value are not reported again.
    lower.scope.bind(&name.text, value.unwrap_or(Value::Wrong));
}

/// A local that begins with a value.
fn changing(lower: &mut Lower<'_>, value: Value, span: Span) -> Option<Value> {
    let parts = match value {
        Value::Record(parts) => parts,
        Value::Wrong => return None,
        value => match value.scalar_ty() {
            Some(Some(ty)) => {
                vec![(String::new(), operators::coerce(lower, value, ty, span)?, ty)]
            }
            Some(None) => return lower.fail(say::unclear(span)),
            None => {
                let found = value.describe();
                return lower.fail(say::expected_type("a value that can change", found, span));
            }
        },
    };
    let vars = parts.into_iter().map(|(name, id, ty)| (name, lower.b.var(ty, id), ty));
    Some(Value::Mutable(vars.collect()))
}

/// The current value of a local.
pub fn current(lower: &mut Lower<'_>, parts: &[(String, Var, Ty)]) -> Value {
    match parts {
        [(name, var, ty)] if name.is_empty() => Value::Scalar(lower.b.get(*var), *ty),
        parts => {
            let now = parts.iter().map(|(name, var, ty)| (name.clone(), lower.b.get(*var), *ty));
            Value::Record(now.collect())
        }
    }
}

/// Lowers `NAME = VALUE else STMT;` and, with `op`, `NAME op= VALUE;`, where NAME is a local that
/// was declared with `let mut`, or a part of one.
pub fn assign<'a>(
    lower: &mut Lower<'a>,
    (parts, path): (&[(String, Var, Ty)], &Path),
    op: Option<BinOp>,
    value: &Expr,
    otherwise: Option<&'a Stmt>,
) -> Option<()> {
    match (parts, path.parts.as_slice()) {
        ([(name, var, ty)], [_]) if name.is_empty() => {
            assign_single(lower, (*var, *ty, path.span), op, value, otherwise)
        }
        (_, [_]) => assign_record(lower, (parts, path.span), op, value, otherwise),
        (_, [_, part]) => match parts.iter().find(|(name, ..)| *name == part.text) {
            Some((_, var, ty)) => {
                assign_single(lower, (*var, *ty, path.span), op, value, otherwise)
            }
            None => {
                let known = parts.iter().map(|(name, ..)| name.as_str());
                let diagnostic = names::unknown_member(part, known);
                lower.fail(diagnostic)
            }
        },
        _ => {
            let message = "this local has no such part";
            lower.fail(Diagnostic::new(codes::NOT_ASSIGNABLE, message, path.span, ""))
        }
    }
}

/// Assigns a single value.
fn assign_single<'a>(
    lower: &mut Lower<'a>,
    (var, ty, place): (Var, Ty, Span),
    op: Option<BinOp>,
    value: &Expr,
    otherwise: Option<&'a Stmt>,
) -> Option<()> {
    let new = match (otherwise, op) {
        (None, None) => lower.value(value, Some(ty))?,
        (Some(otherwise), None) => let_else(lower, value, otherwise)?,
        (None, Some(op)) => {
            let old = Value::Scalar(lower.b.get(var), ty);
            let by = lower.value(value, Some(ty))?;
            operators::combine(lower, op, (old, place), (by, value.span), place)?
        }
        (Some(otherwise), Some(_)) => {
            let message = "a sum always has a value";
            let label = "this `else` is never reached";
            let wrong =
                Diagnostic::new(codes::UNREACHABLE_STATEMENT, message, otherwise.span, label);
            return lower.fail(wrong.help("leave the `else` out"));
        }
    };
    let id = operators::coerce(lower, new, ty, value.span)?;
    lower.b.set(var, id);
    Some(())
}

/// Assigns all parts of a record.
fn assign_record<'a>(
    lower: &mut Lower<'a>,
    (parts, place): (&[(String, Var, Ty)], Span),
    op: Option<BinOp>,
    value: &Expr,
    otherwise: Option<&'a Stmt>,
) -> Option<()> {
    if op.is_some() {
        let message = "a record is assigned as a whole or part by part";
        return lower.fail(Diagnostic::new(codes::BAD_OPERANDS, message, place, "a record"));
    }
    let types: Vec<_> = parts.iter().map(|(name, _, ty)| (name.clone(), *ty)).collect();
    let new = match otherwise {
        None => state::record(lower, &types, value)?,
        Some(otherwise) => match let_else(lower, value, otherwise)? {
            Value::Record(new) => new,
            other => {
                let wanted = types::record_name(&types);
                return lower.fail(say::expected_type(&wanted, other.describe(), value.span));
            }
        },
    };
    let found: Vec<_> = new.iter().map(|(name, _, ty)| (name.clone(), *ty)).collect();
    if found != types {
        let (wanted, found) = (types::record_name(&types), types::record_name(&found));
        return lower.fail(say::expected_type(&wanted, &found, value.span));
    }
    for ((_, var, _), (_, id, _)) in parts.iter().zip(new) {
        lower.b.set(*var, id);
    }
    Some(())
}

fn let_else<'a>(lower: &mut Lower<'a>, value: &Expr, otherwise: &'a Stmt) -> Option<Value> {
    let (ok, value, what) = match &value.kind {
        ExprKind::Call(name, args) if calls::fallible(&name.text) => {
            let (ok, found) = calls::fallible_call(lower, name, args, value.span)?;
            (ok, found, name.text.as_str())
        }
        ExprKind::At(at) if !matches!(at.what, Chunk::Text(_)) => {
            let loaded = bytes::load(lower, at, value.span)?;
            (loaded.found, loaded.value, bytes::place_name(at))
        }
        _ => {
            lower.value(value, None)?;
            return lower.fail(
                Diagnostic::new(
                    codes::UNREACHABLE_STATEMENT,
                    "this value is always there",
                    otherwise.span,
                    "this `else` is never reached",
                )
                .help("leave the `else` out"),
            );
        }
    };
    let (there, gone) = (lower.b.block(), lower.b.block());
    lower.b.branch(ok, there, gone);
    lower.b.start(gone);
    lower.scoped(|this| this.statement(otherwise));
    if lower.b.live() {
        let message = format!("the `else` must end the packet's way: `{what}` has no value");
        lower.say(
            Diagnostic::new(codes::ELSE_CONTINUES, message, otherwise.span, "goes on")
                .help("end it with `drop`, `output` or the like"),
        );
    }
    lower.b.start(there);
    Some(value)
}
