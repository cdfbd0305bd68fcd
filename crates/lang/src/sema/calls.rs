//! Lowers calls: casts, built-in functions, operators in Rust, functions of the program.

use braid_externs::ops;
use braid_externs::signature::{ParamKind, ResultKind, Signature, Width};
use braid_ir::model::{BinOp as IrBin, CmpOp, Model, Op, ParamId, ParamTy, Ty, ValueId};
use braid_packet::{Field, FlowKey, Header};

use super::build::Builder;
use super::lower::Lower;
use super::names::{self, is_word};
use super::scope::{Binding, Value};
use super::types::{self, BOOL, PORT, U32, U128, uint};
use super::{arith, built_in, expand, library, needs, operators, say, search, strings, versions};
use crate::ast::{Arg, BinOp, Expr, FnBody, FnDef, Ident, Span};
use crate::diag::{Diagnostic, codes};

/// The built-in functions that may fail. They are allowed only in `let NAME = … else …`.
const FALLIBLE: &[&str] = &["take", "route", "which", "find"];

/// The value of a call.
pub fn call(
    lower: &mut Lower<'_>,
    name: &Ident,
    args: &[Arg],
    span: Span,
    expect: Option<Ty>,
) -> Option<Value> {
    if let Some(Binding::Fn(def)) = lower.scope.binding(&name.text) {
        return own(lower, def, name, args, span);
    }
    if let Some(arg) = args.iter().find_map(|arg| arg.name.as_ref()) {
        let message = format!("`{}` takes no names of arguments", name.text);
        return lower.fail(Diagnostic::new(codes::WRONG_ARGUMENTS, message, arg.span, ""));
    }
    if fallible(&name.text) {
        let message = format!("`{}` may fail", name.text);
        let diagnostic = Diagnostic::new(codes::NEEDS_ELSE, message, span, "and then has no value")
            .help(format!("write `let x = {}(…) else drop;`", name.text));
        return lower.fail(diagnostic);
    }
    if let Some(ty) = types::scalar(&name.text) {
        return cast(lower, ty, args, span);
    }
    match name.text.as_str() {
        "min" | "max" => extreme(lower, name, args, span, expect),
        "wrapping" => {
            let [arg] = arguments(lower, args, span, &name.text)?;
            let before = std::mem::replace(&mut lower.wrapping, true);
            let value = lower.value(arg, expect);
            lower.wrapping = before;
            value
        }
        "len" => length(lower, args, span),
        "lowercase" => {
            let [arg] = arguments(lower, args, span, &name.text)?;
            strings::lowercase(lower, arg)
        }
        "up" => up(lower, args, span),
        "rule" => {
            let (_, rule) = decide(lower, args, span)?;
            Some(Value::Scalar(rule, U32))
        }
        "release" | "encrypt" | "decrypt" | "to_ip4" | "to_ip6" => {
            let message = format!("`{}` gives no value", name.text);
            lower.fail(Diagnostic::new(codes::WRONG_NAME, message, name.span, ""))
        }
        other => match ops::lookup(other) {
            Some(operator) => {
                let (outs, tys) = call_operator(lower, &operator.signature, args, span)?;
                Some(Value::Scalar(*outs.first()?, *tys.first()?))
            }
            None => {
                let diagnostic = unknown_function(lower, name);
                lower.fail(diagnostic)
            }
        },
    }
}

/// The value of one of the program's own functions.
fn own<'a>(
    lower: &mut Lower<'a>,
    def: &'a FnDef,
    name: &Ident,
    args: &[Arg],
    span: Span,
) -> Option<Value> {
    match &def.body {
        FnBody::Pure(ty, body) => {
            let ty = names::scalar_type(lower, ty)?;
            expand::expand(lower, def, args, span, |this| {
                let id = this.typed(body, ty)?;
                Some(Value::Scalar(id, ty))
            })
        }
        FnBody::Library(ty, code) => {
            expand::expand(lower, def, args, span, |this| library::call(this, def, ty, code))
        }
        FnBody::Action(_) => {
            let message = format!("`{}` is an action and gives no value", name.text);
            lower.fail(Diagnostic::new(codes::WRONG_NAME, message, name.span, ""))
        }
    }
}

fn unknown_function(lower: &Lower<'_>, name: &Ident) -> Diagnostic {
    let known = lower.scope.functions().chain(built_in::functions());
    Diagnostic::new(
        codes::UNKNOWN_FUNCTION,
        format!("there is no function `{}`", name.text),
        name.span,
        "unknown here",
    )
    .help_if(lower.suggest(&name.text, known))
}

/// Whether a call may fail.
pub fn fallible(name: &str) -> bool {
    FALLIBLE.contains(&name)
        || ops::lookup(name).is_some_and(|operator| operator.signature.fallible())
}

/// A call that may fail. Returns whether it succeeded, and its value.
pub fn fallible_call(
    lower: &mut Lower<'_>,
    name: &Ident,
    args: &[Arg],
    span: Span,
) -> Option<(ValueId, Value)> {
    match name.text.as_str() {
        "take" => take(lower, args, span),
        "route" => {
            let [addr, table] = arguments(lower, args, span, "route")?;
            let param = names::special(lower, table, "routes", |ty| matches!(ty, ParamTy::Routes))?;
            let (found, hop) = route(lower, addr, param)?;
            Some((found, Value::Scalar(hop, U32)))
        }
        "which" => {
            let [payload, set] = arguments(lower, args, span, "which")?;
            let (found, number) = search::lowest(lower, payload, set)?;
            Some((found, Value::Scalar(number, U32)))
        }
        "find" => {
            let [payload, set] = arguments(lower, args, span, "find")?;
            search::find(lower, payload, set)
        }
        other => {
            let operator = ops::lookup(other)?;
            let (outs, tys) = call_operator(lower, &operator.signature, args, span)?;
            match (outs.as_slice(), tys.as_slice()) {
                ([found, value, ..], [_, ty, ..]) => Some((*found, Value::Scalar(*value, *ty))),
                _ => None,
            }
        }
    }
}

/// The arguments, if their number is right.
pub fn arguments<'e, const N: usize>(
    lower: &mut Lower<'_>,
    args: &'e [Arg],
    span: Span,
    name: &str,
) -> Option<[&'e Expr; N]> {
    let exprs: Vec<&Expr> = args.iter().map(|arg| &arg.value).collect();
    match <[&Expr; N]>::try_from(exprs) {
        Ok(exprs) => Some(exprs),
        Err(found) => {
            let takes = say::count(N, "argument");
            let message = format!("`{name}` takes {takes}, found {}", found.len());
            lower.fail(Diagnostic::new(codes::WRONG_ARGUMENTS, message, span, ""))
        }
    }
}

fn cast(lower: &mut Lower<'_>, ty: Ty, args: &[Arg], span: Span) -> Option<Value> {
    let [arg] = arguments(lower, args, span, &types::name(ty))?;
    let value = lower.value(arg, Some(ty))?;
    match (value.scalar_ty(), &value) {
        (Some(_), Value::Const(constant)) => {
            let word = constant.value.min(types::max(ty));
            Some(Value::Const(arith::Const::typed(word, ty)))
        }
        (Some(_), Value::Scalar(id, from)) => {
            Some(Value::Scalar(lower.b.clamp(*id, *from, ty), ty))
        }
        _ => lower.fail(say::expected_type("a single value", value.describe(), arg.span)),
    }
}

fn extreme(
    lower: &mut Lower<'_>,
    name: &Ident,
    args: &[Arg],
    span: Span,
    expect: Option<Ty>,
) -> Option<Value> {
    let [a, b] = arguments(lower, args, span, &name.text)?;
    let (x, y) = (lower.value(a, expect), lower.value(b, expect));
    let (x, y) = (x?, y?);
    let (ta, tb) = operators::operand_types(lower, (&x, a.span), (&y, b.span))?;
    let least = name.text == "min";
    if let (Value::Const(x), Value::Const(y), None, None) = (&x, &y, ta, tb) {
        let first = least == (x.value <= y.value);
        return Some(Value::Const(if first { *x } else { *y }));
    }
    let ty = match arith::common(ta, tb) {
        Ok(ty) => ty,
        Err(wrong) => return lower.fail(say::operands(wrong, BinOp::Lt, ta, tb, span)),
    };
    let (x, y) = (operators::coerce(lower, x, ty, a.span), operators::coerce(lower, y, ty, b.span));
    let op = if least { IrBin::Min } else { IrBin::Max };
    Some(Value::Scalar(lower.b.bin(ty, op, x?, y?), ty))
}

/// Lowers `len(LIST)` and `len(STATE)`.
fn length(lower: &mut Lower<'_>, args: &[Arg], span: Span) -> Option<Value> {
    let [arg] = arguments(lower, args, span, "len")?;
    let id = match names::bare(&lower.scope, arg) {
        Some(Binding::State(state)) => lower.b.emit(U32, |out| Op::StateLen { out, state }),
        Some(Binding::Param(param)) if is_list(&lower.model, param) => {
            lower.b.emit(U32, |out| Op::ListLen { out, param })
        }
        _ => {
            let message = "`len` needs a state, or a parameter of type list or backends";
            return lower.fail(Diagnostic::new(codes::WRONG_NAME, message, arg.span, ""));
        }
    };
    Some(Value::Scalar(id, U32))
}

/// Whether a parameter is a list or a list of backends.
fn is_list(model: &Model, param: ParamId) -> bool {
    let ty = model.params.get(param.0 as usize).map(|decl| &decl.ty);
    matches!(ty, Some(ParamTy::List(_) | ParamTy::Backends(_)))
}

fn up(lower: &mut Lower<'_>, args: &[Arg], span: Span) -> Option<Value> {
    let [backends, index] = arguments(lower, args, span, "up")?;
    let param =
        names::special(lower, backends, "backends", |ty| matches!(ty, ParamTy::Backends(_)))?;
    let index = lower.typed(index, U32)?;
    let id = lower.b.emit(BOOL, |out| Op::BackendUp { out, param, index });
    Some(Value::Scalar(id, BOOL))
}

/// Lowers `rule(packet, RULES)`: whether the packet passes, and the number of the rule.
fn decide(lower: &mut Lower<'_>, args: &[Arg], span: Span) -> Option<(ValueId, ValueId)> {
    let [packet, rules] = arguments(lower, args, span, "rule")?;
    word(lower, packet, "packet")?;
    apply_rules(lower, rules)
}

/// Evaluates a rule set for the packet.
pub fn apply_rules(lower: &mut Lower<'_>, rules: &Expr) -> Option<(ValueId, ValueId)> {
    let param = names::special(lower, rules, "rules", |ty| matches!(ty, ParamTy::Rules))?;
    if !needs::packet(lower, rules.span) {
        return None;
    }
    let (pass, rule) = (lower.b.value(BOOL), lower.b.value(U32));
    lower.b.op(Op::Rules { pass, rule, param });
    Some((pass, rule))
}

/// Checks that an expression is this word.
fn word(lower: &mut Lower<'_>, expr: &Expr, word: &str) -> Option<()> {
    if is_word(expr, word) {
        return Some(());
    }
    let message = format!("expected `{word}`");
    lower.fail(Diagnostic::new(codes::WRONG_NAME, message, expr.span, "found something else"))
}

/// Looks an address up in a route table.
pub fn route(lower: &mut Lower<'_>, addr: &Expr, param: ParamId) -> Option<(ValueId, ValueId)> {
    let (addr_id, ty) = lower.scalar(addr)?;
    if ty == types::ADDR {
        return Some(versions::route(&mut lower.b, addr_id, param));
    }
    if ty != types::IP4 && ty != types::IP6 {
        return lower.fail(say::expected_type("an address", &types::name(ty), addr.span));
    }
    let (found, hop) = (lower.b.value(BOOL), lower.b.value(U32));
    lower.b.op(Op::Route { found, hop, param, addr: addr_id });
    Some((found, hop))
}

/// Lowers `take(POOL)` and `take(POOL, VALUE)`.
fn take(lower: &mut Lower<'_>, args: &[Arg], span: Span) -> Option<(ValueId, Value)> {
    let Some(first) = args.first() else {
        let message = "`take` needs a pool";
        return lower.fail(Diagnostic::new(codes::WRONG_ARGUMENTS, message, span, ""));
    };
    let (pool, ty) = pool_param(lower, &first.value)?;
    if args.len() == 1 {
        let (ok, out) = (lower.b.value(BOOL), lower.b.value(ty));
        lower.b.op(Op::Take { ok, out, pool });
        return Some((ok, Value::Scalar(out, ty)));
    }
    let [_, wanted] = arguments(lower, args, span, "take")?;
    let a = lower.typed(wanted, ty)?;
    let ok = lower.b.emit(BOOL, |ok| Op::TakeThis { ok, pool, a });
    Some((ok, Value::Scalar(a, ty)))
}

/// Lowers `release(POOL, VALUE);`.
pub fn release(lower: &mut Lower<'_>, args: &[Arg], span: Span) -> Option<()> {
    let [pool, value] = arguments(lower, args, span, "release")?;
    let (pool, ty) = pool_param(lower, pool)?;
    let a = lower.typed(value, ty)?;
    lower.b.op(Op::Release { pool, a });
    Some(())
}

fn pool_param(lower: &mut Lower<'_>, expr: &Expr) -> Option<(ParamId, Ty)> {
    let param = names::special(lower, expr, "pool", |ty| matches!(ty, ParamTy::Pool(..)))?;
    match lower.model.params.get(param.0 as usize)?.ty {
        ParamTy::Pool(ty, _) => Some((param, ty)),
        _ => None,
    }
}

/// Calls an operator. Returns its results and their types.
fn call_operator(
    lower: &mut Lower<'_>,
    signature: &Signature,
    args: &[Arg],
    span: Span,
) -> Option<(Vec<ValueId>, Vec<Ty>)> {
    let (param, rest) = match (signature.takes_param, args) {
        (None, _) => (None, args),
        (Some(ParamKind::Backends), [first, rest @ ..]) => {
            let fits = |ty: &ParamTy| matches!(ty, ParamTy::Backends(_));
            (Some(names::special(lower, &first.value, "backends", fits)?), rest)
        }
        (Some(_), []) => return wrong_count(lower, signature, span),
    };
    if !signature.accepts(rest.len()) {
        return wrong_count(lower, signature, span);
    }
    let mut values = Vec::new();
    let mut whole = Some(());
    for (at, arg) in rest.iter().enumerate() {
        let width = signature.arg(at).map_or(Width::Any, |arg| arg.width);
        whole = argument(lower, &arg.value, width, &mut values).and(whole);
    }
    whole?;
    if signature.reads_payload() && !needs::packet(lower, span) {
        return None;
    }
    let tys: Vec<Ty> = signature
        .results
        .iter()
        .map(|result| match result.kind {
            ResultKind::Found => BOOL,
            ResultKind::Uint(width) => uint(width),
            ResultKind::Index => U32,
        })
        .collect();
    let outs: Vec<ValueId> = tys.iter().map(|ty| lower.b.value(*ty)).collect();
    let name = signature.name.to_owned();
    lower.b.op(Op::Extern { outs: outs.clone(), name, param, args: values });
    Some((outs, tys))
}

fn wrong_count<T>(lower: &mut Lower<'_>, signature: &Signature, span: Span) -> Option<T> {
    let message = format!("`{}` does not take these arguments", signature.name);
    lower.fail(
        Diagnostic::new(codes::WRONG_ARGUMENTS, message, span, "")
            .help(format!("usage: {}", signature.usage())),
    )
}

fn argument(
    lower: &mut Lower<'_>,
    expr: &Expr,
    width: Width,
    into: &mut Vec<ValueId>,
) -> Option<()> {
    match width {
        Width::Any if is_word(expr, "flow") => flow_key(lower, expr.span, false, into),
        Width::Any if is_word(expr, "biflow") => flow_key(lower, expr.span, true, into),
        Width::Any => {
            let (id, _) = lower.scalar(expr)?;
            into.push(id);
            Some(())
        }
        Width::Bits(bits) => {
            into.push(lower.typed(expr, uint(bits))?);
            Some(())
        }
    }
}

/// The parts of the implicit key `flow` or `biflow`, from the packet as it entered.
fn flow_key(lower: &mut Lower<'_>, span: Span, both: bool, into: &mut Vec<ValueId>) -> Option<()> {
    if !needs::packet(lower, span) {
        return None;
    }
    needs::header(lower, Header::Inet, true, span, if both { "`biflow`" } else { "`flow`" })?;
    let fields = FlowKey::FIELDS;
    let [version, src, dst, proto, sport, dport] =
        fields.map(|field| entry_field(&mut lower.b, field, types::of_field(field)));
    if !both {
        into.extend([version, src, dst, proto, sport, dport]);
        return Some(());
    }
    // The smaller (address, port) pair comes first.
    let cmp = |this: &mut Lower<'_>, op, a, b| this.b.emit(BOOL, |out| Op::Cmp { out, op, a, b });
    let less = cmp(lower, CmpOp::Lt, src, dst);
    let equal = cmp(lower, CmpOp::Eq, src, dst);
    let ports = cmp(lower, CmpOp::Le, sport, dport);
    let tie = lower.b.bin(BOOL, IrBin::And, equal, ports);
    let keep = lower.b.bin(BOOL, IrBin::Or, less, tie);
    let pick = |this: &mut Lower<'_>, ty, a, b| {
        this.b.emit(ty, |out| Op::Select { out, cond: keep, a, b })
    };
    let (low, high) = (pick(lower, U128, src, dst), pick(lower, U128, dst, src));
    let (lport, hport) = (pick(lower, PORT, sport, dport), pick(lower, PORT, dport, sport));
    into.extend([version, low, high, proto, lport, hport]);
    Some(())
}

/// A field of the packet as it entered. Its header was present then.
fn entry_field(b: &mut Builder, field: Field, ty: Ty) -> ValueId {
    if let Some(known) = b.facts.loaded(field, true) {
        return known;
    }
    let id = b.emit(ty, |out| Op::LoadEntry { out, field });
    b.facts.remember(field, true, id);
    id
}
