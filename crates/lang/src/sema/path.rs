//! Lowers dotted names to values.

use braid_ir::model::{EventArg, Op, ParamTy, StreamField, StreamText, TEXT_WORDS, Ty, ValueId};
use braid_packet::Field;

use super::facts;
use super::lower::{Lower, Mode};
use super::names::{self, Named};
use super::scope::{Binding, Value};
use super::types::{self, BOOL};
use super::{flow, headers, locals, needs, state};
use crate::ast::{Expr, ExprKind, Ident, Path, Span};
use crate::diag::{Diagnostic, codes};

/// The value of a dotted name.
pub fn value(lower: &mut Lower<'_>, path: &Path) -> Option<Value> {
    match names::resolve(lower, path)? {
        Named::Field(field) => {
            read_field(lower, field, path.span).map(|(id, ty)| Value::Scalar(id, ty))
        }
        Named::Declared(field) => headers::read(lower, field, path.span),
        Named::Local(Value::Wrong) => None,
        Named::Local(Value::Mutable(parts)) => {
            let now = locals::current(lower, &parts);
            names::members(lower, now, &path.parts[1..])
        }
        Named::Local(value) => names::members(lower, value, &path.parts[1..]),
        Named::BuiltIn(known) => Some(Value::Const(known)),
        Named::Stream(field, ty) => {
            let id = lower.b.emit(ty, |out| Op::LoadStream { out, field });
            Some(Value::Scalar(id, ty))
        }
        Named::Event(field, ty) => {
            let known = lower.b.facts.event_field(field);
            let id = known.unwrap_or_else(|| {
                let id = lower.b.emit(ty, |out| Op::LoadEvent { out, field });
                lower.b.facts.remember_event(field, id);
                id
            });
            Some(Value::Scalar(id, ty))
        }
        Named::Text(of) => Some(text(lower, of)),
        Named::Direction(forward) => {
            if !needs::packet(lower, path.span) {
                return None;
            }
            let (backward, _) = read_field(lower, Field::PktBackward, path.span)?;
            if !forward {
                return Some(Value::Scalar(backward, BOOL));
            }
            Some(Value::Scalar(lower.b.complement(backward, BOOL), BOOL))
        }
        Named::Bound(binding) => bound_value(lower, binding, path),
    }
}

/// A string of an alert or of an HTTP message.
fn text(lower: &mut Lower<'_>, text: StreamText) -> Value {
    let words =
        (0..TEXT_WORDS).map(|word| (word.to_string(), StreamField::Text(text, word), types::BYTES));
    let len = ("len".to_owned(), StreamField::TextLen(text), types::LENGTH);
    let parts = [len]
        .into_iter()
        .chain(words)
        .map(|(name, field, ty)| (name, lower.b.emit(ty, |out| Op::LoadStream { out, field }), ty));
    Value::Record(parts.collect())
}

fn bound_value<'a>(lower: &mut Lower<'a>, binding: Binding<'a>, path: &Path) -> Option<Value> {
    let rest = &path.parts[1..];
    let value = match binding {
        Binding::Param(param) => {
            let ty = lower.model.params.get(param.0 as usize)?.ty.clone();
            match ty {
                ParamTy::Scalar(ty) => Value::Scalar(lower.b.param(ty, param), ty),
                ParamTy::Str => Value::Text(EventArg::Param(param)),
                other => {
                    let found = types::param_name(&other);
                    return not_single(lower, &path.parts[0], &format!("a {found}"));
                }
            }
        }
        Binding::State(state) => return state::read_state(lower, state, None, rest, path.span),
        Binding::Const(expr) => match &expr.kind {
            ExprKind::Str(text) => Value::Text(EventArg::Str(text.clone())),
            _ => Value::Const(lower.eval().scalar(&name_expr(path))?),
        },
        Binding::Tag(tag) => {
            let ty = lower.model.tags.get(tag.0 as usize)?.ty;
            if !needs::packet(lower, path.span) {
                return None;
            }
            let id = lower.b.emit(ty, |out| Op::LoadTag { out, tag });
            Value::Scalar(id, ty)
        }
        Binding::Queue(_) => return not_single(lower, &path.parts[0], "a queue"),
        Binding::Fn(_) => return not_single(lower, &path.parts[0], "a function"),
    };
    names::members(lower, value, rest)
}

fn not_single<T>(lower: &mut Lower<'_>, name: &Ident, found: &str) -> Option<T> {
    let message = format!("expected a value, but `{}` is {found}", name.text);
    lower.fail(Diagnostic::new(codes::WRONG_NAME, message, name.span, "not a value"))
}

/// Reads a field as it is now. Its header must be known to be present. In an atom, the header is
/// tested.
pub fn read_field(lower: &mut Lower<'_>, field: Field, span: Span) -> Option<(ValueId, Ty)> {
    // Timers and ending entries have no packet, but they have a time.
    if field != Field::PktTime {
        if let Mode::Expire(state) = lower.mode {
            return state::expired_key_field(lower, state, field, span);
        }
        if !flow::is_of_flow(lower, field) && !needs::packet(lower, span) {
            return None;
        }
    }
    let info = field.info();
    lower.reads.extend(facts::parts(field));
    needs::header(lower, info.header, false, span, &format!("`{}`", info.name))?;
    let ty = types::of_field(field);
    let loaded = lower.b.load(field);
    if info.width == ty.width {
        return Some((loaded, ty));
    }
    let wide = lower.b.emit(ty, |out| Op::Resize { out, a: loaded });
    Some((wide, ty))
}

fn name_expr(path: &Path) -> Expr {
    let first = path.parts[..1].to_vec();
    let span = path.span;
    Expr { kind: ExprKind::Path(Path { parts: first, span }), span }
}
