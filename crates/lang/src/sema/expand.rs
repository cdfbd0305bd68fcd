//! Expands the program's own functions where they are called.

use rustc_hash::FxHashMap;

use super::lower::Lower;
use super::scope::Value;
use super::types::Type;
use super::{names, say, state};
use crate::ast::{self, Arg, Expr, FnDef, Span};
use crate::diag::{Diagnostic, codes};

/// Expands one of the program's functions: binds the arguments and runs `inner` on its body.
pub fn expand<'a, T>(
    lower: &mut Lower<'a>,
    def: &'a FnDef,
    args: &[Arg],
    span: Span,
    inner: impl FnOnce(&mut Lower<'a>) -> Option<T>,
) -> Option<T> {
    if lower.calls.contains(&def.name.text) {
        let message = format!("`{}` calls itself", def.name.text);
        return lower.fail(
            Diagnostic::new(codes::RECURSION, message, span, "here")
                .help("functions are expanded where they are called, so none may call itself"),
        );
    }
    let bound = bind_arguments(lower, def, args, span)?;
    expand_bound(lower, def, bound, span, inner)
}

/// Runs `inner` on the body of one of the program's functions, whose parameters have these values.
pub fn expand_bound<'a, T>(
    lower: &mut Lower<'a>,
    def: &'a FnDef,
    bound: FxHashMap<String, Value>,
    span: Span,
    inner: impl FnOnce(&mut Lower<'a>) -> Option<T>,
) -> Option<T> {
    lower.module.expanded(def);
    lower.scope.enter(def, bound);
    lower.calls.push(def.name.text.clone());
    let wrapping = std::mem::replace(&mut lower.wrapping, false);
    let result = lower.deeper(span, inner);
    lower.wrapping = wrapping;
    lower.calls.pop();
    lower.scope.leave();
    result
}

fn bind_arguments(
    lower: &mut Lower<'_>,
    def: &FnDef,
    args: &[Arg],
    span: Span,
) -> Option<FxHashMap<String, Value>> {
    if args.len() != def.params.len() {
        let takes = say::count(def.params.len(), "argument");
        let message = format!("`{}` takes {takes}, found {}", def.name.text, args.len());
        let diagnostic = Diagnostic::new(codes::WRONG_ARGUMENTS, message, span, "")
            .label(def.name.span, "declared here");
        return lower.fail(diagnostic);
    }
    let mut bound = FxHashMap::default();
    let mut whole = true;
    for (at, arg) in args.iter().enumerate() {
        let place = match &arg.name {
            None => Some(at),
            Some(name) => def.params.iter().position(|(param, _)| param.text == name.text),
        };
        let Some((param, ty)) = place.and_then(|place| def.params.get(place)) else {
            let message = format!("`{}` has no such parameter", def.name.text);
            lower.say(Diagnostic::new(codes::WRONG_ARGUMENTS, message, arg.value.span, ""));
            whole = false;
            continue;
        };
        if bound.contains_key(&param.text) {
            let message = format!("`{}` is given twice", param.text);
            lower.say(Diagnostic::new(codes::WRONG_ARGUMENTS, message, arg.value.span, ""));
            whole = false;
            continue;
        }
        match argument_of(lower, ty, &arg.value) {
            Some(value) => {
                bound.insert(param.text.clone(), value);
            }
            None => whole = false,
        }
    }
    whole.then_some(bound)
}

fn argument_of(lower: &mut Lower<'_>, ty: &ast::Type, expr: &Expr) -> Option<Value> {
    match names::resolve_type(lower, ty)? {
        Type::Scalar(ty) => lower.typed(expr, ty).map(|id| Value::Scalar(id, ty)),
        Type::Record(parts) => state::record(lower, &parts, expr).map(Value::Record),
        Type::Param(_) => {
            let message = "arguments are scalars or records";
            lower.fail(Diagnostic::new(codes::BAD_TYPE, message, ty.span, "neither"))
        }
    }
}
