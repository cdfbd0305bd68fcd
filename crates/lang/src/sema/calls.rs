//! Lowers calls: casts, built-in functions, operators in Rust, functions of the program.

use braid_externs::ops;
use braid_externs::signature::{ParamKind, ResultKind, Signature, Width};
use braid_ir::model::{BinOp as IrBin, CmpOp, Op, ParamId, ParamTy, Ty, ValueId};
use braid_packet::{Field, Header};

use super::expr::{describe, scalar_ty};
use super::lower::{Binding, Lower, Mode, Value};
use super::types::{self, BOOL, PORT, U32, U128, uint};
use super::{arith, say};
use crate::ast::{Arg, BinOp, Expr, ExprKind, FnBody, Ident, Span};
use crate::diag::{Diagnostic, codes};

/// The built-in functions, without casts and operators.
const BUILT_IN: &[&str] =
    &["min", "max", "len", "up", "rule", "wrapping", "take", "route", "which", "release"];
/// The built-in functions that may fail. They are allowed only in `let NAME = … else …`.
const FALLIBLE: &[&str] = &["take", "route", "which"];

impl<'a> Lower<'a> {
    /// The value of a call.
    pub fn call(
        &mut self,
        name: &Ident,
        args: &[Arg],
        span: Span,
        expect: Option<Ty>,
    ) -> Option<Value> {
        if let Some(Binding::Fn(def)) = self.binding(&name.text) {
            return match &def.body {
                FnBody::Pure(ty, body) => {
                    let ty = self.scalar_type(ty)?;
                    self.expand(def, args, span, |this| {
                        let id = this.typed(body, ty)?;
                        Some(Value::Scalar(id, ty))
                    })
                }
                FnBody::Action(_) => {
                    let message = format!("`{}` is an action and gives no value", name.text);
                    self.fail(Diagnostic::new(codes::WRONG_NAME, message, name.span, ""))
                }
            };
        }
        if let Some(arg) = args.iter().find_map(|arg| arg.name.as_ref()) {
            let message = format!("`{}` takes no names of arguments", name.text);
            return self.fail(Diagnostic::new(codes::WRONG_ARGUMENTS, message, arg.span, ""));
        }
        if self.fallible(&name.text) {
            let message = format!("`{}` may fail", name.text);
            let diagnostic =
                Diagnostic::new(codes::NEEDS_ELSE, message, span, "and then has no value")
                    .help(format!("write `let x = {}(…) else drop;`", name.text));
            return self.fail(diagnostic);
        }
        if let Some(ty) = types::scalar(&name.text) {
            return self.cast(ty, args, span);
        }
        match name.text.as_str() {
            "min" | "max" => self.extreme(name, args, span, expect),
            "wrapping" => {
                let [arg] = self.arguments(args, span, &name.text)?;
                let before = std::mem::replace(&mut self.wrapping, true);
                let value = self.value(arg, expect);
                self.wrapping = before;
                value
            }
            "len" => self.length(args, span),
            "up" => self.up(args, span),
            "rule" => {
                let (_, rule) = self.decide(args, span)?;
                Some(Value::Scalar(rule, U32))
            }
            "release" => {
                let message = "`release` gives no value";
                self.fail(Diagnostic::new(codes::WRONG_NAME, message, name.span, ""))
            }
            other => match ops::lookup(other) {
                Some(operator) => {
                    let (outs, tys) = self.operator(&operator.signature, args, span)?;
                    Some(Value::Scalar(*outs.first()?, *tys.first()?))
                }
                None => {
                    let diagnostic = self.unknown_function(name);
                    self.fail(diagnostic)
                }
            },
        }
    }

    fn unknown_function(&self, name: &Ident) -> Diagnostic {
        let own = self.names.iter().filter(|(_, b)| matches!(b, Binding::Fn(_))).map(|(n, _)| *n);
        let file = self.module.fns.keys().copied();
        let operators = ops::all().iter().map(|op| op.signature.name);
        let known = own.chain(file).chain(BUILT_IN.iter().copied()).chain(operators);
        Diagnostic::new(
            codes::UNKNOWN_FUNCTION,
            format!("there is no function `{}`", name.text),
            name.span,
            "unknown here",
        )
        .help_if(self.suggest(&name.text, known))
    }

    /// Whether a call may fail.
    pub fn fallible(&self, name: &str) -> bool {
        FALLIBLE.contains(&name)
            || ops::lookup(name).is_some_and(|operator| operator.signature.fallible())
    }

    /// A call that may fail. Returns whether it succeeded, and its value.
    pub fn fallible_call(
        &mut self,
        name: &Ident,
        args: &[Arg],
        span: Span,
    ) -> Option<(ValueId, Value)> {
        match name.text.as_str() {
            "take" => self.take(args, span),
            "route" => {
                let [addr, table] = self.arguments(args, span, "route")?;
                let param = self.special(table, "routes", |ty| matches!(ty, ParamTy::Routes))?;
                let (found, hop) = self.route(addr, param)?;
                Some((found, Value::Scalar(hop, U32)))
            }
            "which" => {
                let [payload, set] = self.arguments(args, span, "which")?;
                let (found, number) = self.patterns(payload, set)?;
                Some((found, Value::Scalar(number, U32)))
            }
            other => {
                let operator = ops::lookup(other)?;
                let (outs, tys) = self.operator(&operator.signature, args, span)?;
                match (outs.as_slice(), tys.as_slice()) {
                    ([found, value, ..], [_, ty, ..]) => Some((*found, Value::Scalar(*value, *ty))),
                    _ => None,
                }
            }
        }
    }

    /// The arguments, if their number is right.
    pub fn arguments<'e, const N: usize>(
        &mut self,
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
                self.fail(Diagnostic::new(codes::WRONG_ARGUMENTS, message, span, ""))
            }
        }
    }

    fn cast(&mut self, ty: Ty, args: &[Arg], span: Span) -> Option<Value> {
        let [arg] = self.arguments(args, span, &types::name(ty))?;
        let value = self.value(arg, Some(ty))?;
        match (scalar_ty(&value), &value) {
            (Some(_), Value::Const(constant)) => {
                let word = constant.value.min(types::max(ty));
                Some(Value::Const(arith::Const::typed(word, ty)))
            }
            (Some(_), Value::Scalar(id, from)) => {
                Some(Value::Scalar(self.clamp(*id, *from, ty), ty))
            }
            _ => self.fail(say::expected_type("a single value", describe(&value), arg.span)),
        }
    }

    fn extreme(
        &mut self,
        name: &Ident,
        args: &[Arg],
        span: Span,
        expect: Option<Ty>,
    ) -> Option<Value> {
        let [a, b] = self.arguments(args, span, &name.text)?;
        let (x, y) = (self.value(a, expect), self.value(b, expect));
        let (x, y) = (x?, y?);
        let (ta, tb) = self.operand_types((&x, a.span), (&y, b.span))?;
        let least = name.text == "min";
        if let (Value::Const(x), Value::Const(y), None, None) = (&x, &y, ta, tb) {
            let first = least == (x.value <= y.value);
            return Some(Value::Const(if first { *x } else { *y }));
        }
        let ty = match arith::common(ta, tb) {
            Ok(ty) => ty,
            Err(wrong) => return self.fail(say::operands(wrong, BinOp::Lt, ta, tb, span)),
        };
        let (x, y) = (self.coerce(x, ty, a.span), self.coerce(y, ty, b.span));
        let op = if least { IrBin::Min } else { IrBin::Max };
        Some(Value::Scalar(self.bin(ty, op, x?, y?), ty))
    }

    /// Lowers `len(LIST)` and `len(STATE)`.
    fn length(&mut self, args: &[Arg], span: Span) -> Option<Value> {
        let [arg] = self.arguments(args, span, "len")?;
        let id = match self.bare(arg) {
            Some(Binding::State(state)) => self.b.emit(U32, |out| Op::StateLen { out, state }),
            Some(Binding::Param(param)) if self.is_list(param) => {
                self.b.emit(U32, |out| Op::ListLen { out, param })
            }
            _ => {
                let message = "`len` needs a state, or a parameter of type list or backends";
                return self.fail(Diagnostic::new(codes::WRONG_NAME, message, arg.span, ""));
            }
        };
        Some(Value::Scalar(id, U32))
    }

    /// Whether a parameter is a list or a list of backends.
    pub fn is_list(&self, param: ParamId) -> bool {
        let ty = self.model.params.get(param.0 as usize).map(|decl| &decl.ty);
        matches!(ty, Some(ParamTy::List(_) | ParamTy::Backends(_)))
    }

    /// The binding of an expression that is only a name.
    pub fn bare(&self, expr: &Expr) -> Option<Binding<'a>> {
        match &expr.kind {
            ExprKind::Path(path) if path.parts.len() == 1 => {
                let name = &path.parts[0].text;
                if self.local(name).is_some() { None } else { self.binding(name) }
            }
            _ => None,
        }
    }

    /// A parameter of a special type, given by its name.
    pub fn special(
        &mut self,
        expr: &Expr,
        wanted: &str,
        fits: impl Fn(&ParamTy) -> bool,
    ) -> Option<ParamId> {
        if let Some(Binding::Param(param)) = self.bare(expr)
            && self.model.params.get(param.0 as usize).is_some_and(|decl| fits(&decl.ty))
        {
            return Some(param);
        }
        if let ExprKind::Path(path) = &expr.kind {
            let known = path.parts.first().is_some_and(|first| {
                self.local(&first.text).is_some() || self.binding(&first.text).is_some()
            });
            if !known {
                self.resolve(path)?;
            }
        }
        let (found, label) = self.describe(expr);
        let message = format!("expected a parameter of type {wanted}, found {found}");
        self.fail(Diagnostic::new(codes::WRONG_NAME, message, expr.span, label))
    }

    /// Describes an expression for a message: the description, and the label beside it.
    fn describe(&self, expr: &Expr) -> (String, String) {
        let what = match self.bare(expr) {
            Some(Binding::Param(param)) => {
                let ty = self.model.params.get(param.0 as usize).map(|decl| &decl.ty);
                format!("one of type {}", ty.map_or_else(String::new, types::param_name))
            }
            Some(Binding::State(_)) => "a state".into(),
            Some(Binding::Const(_)) => "a constant".into(),
            Some(Binding::Tag(_)) => "a tag".into(),
            Some(Binding::Queue(_)) => "a queue".into(),
            Some(Binding::Fn(_)) => "a function".into(),
            None => "something else".into(),
        };
        let label = format!("this is {what}");
        (what, label)
    }

    fn up(&mut self, args: &[Arg], span: Span) -> Option<Value> {
        let [backends, index] = self.arguments(args, span, "up")?;
        let param = self.special(backends, "backends", |ty| matches!(ty, ParamTy::Backends(_)))?;
        let index = self.typed(index, U32)?;
        let id = self.b.emit(BOOL, |out| Op::BackendUp { out, param, index });
        Some(Value::Scalar(id, BOOL))
    }

    /// Lowers `rule(packet, RULES)`: whether the packet passes, and the number of the rule.
    fn decide(&mut self, args: &[Arg], span: Span) -> Option<(ValueId, ValueId)> {
        let [packet, rules] = self.arguments(args, span, "rule")?;
        self.word(packet, "packet")?;
        self.rules(rules)
    }

    /// Evaluates a rule set for the packet.
    pub fn rules(&mut self, rules: &Expr) -> Option<(ValueId, ValueId)> {
        let param = self.special(rules, "rules", |ty| matches!(ty, ParamTy::Rules))?;
        if !self.needs_packet(rules.span) {
            return None;
        }
        let (pass, rule) = (self.b.value(BOOL), self.b.value(U32));
        self.b.op(Op::Rules { pass, rule, param });
        Some((pass, rule))
    }

    /// Checks that an expression is this word.
    pub fn word(&mut self, expr: &Expr, word: &str) -> Option<()> {
        if is_word(expr, word) {
            return Some(());
        }
        let message = format!("expected `{word}`");
        self.fail(Diagnostic::new(codes::WRONG_NAME, message, expr.span, "found something else"))
    }

    /// Looks an address up in a route table.
    pub fn route(&mut self, addr: &Expr, param: ParamId) -> Option<(ValueId, ValueId)> {
        if let ExprKind::Path(path) = &addr.kind {
            let name = crate::ast::joined(path);
            if let Some(side) = name.strip_prefix("inet.").filter(|s| matches!(*s, "src" | "dst")) {
                let message = format!("`{name}` may be an IPv4 or an IPv6 address");
                let help = format!("write `ip.{side}` or `ip6.{side}`");
                let wrong = Diagnostic::new(codes::EITHER_FAMILY, message, addr.span, "which?");
                return self.fail(wrong.help(help));
            }
        }
        let (addr_id, ty) = self.scalar(addr)?;
        if ty != types::IP4 && ty != types::IP6 {
            return self.fail(say::expected_type("ip4 or ip6", &types::name(ty), addr.span));
        }
        let (found, hop) = (self.b.value(BOOL), self.b.value(U32));
        self.b.op(Op::Route { found, hop, param, addr: addr_id });
        Some((found, hop))
    }

    /// Searches the payload for patterns.
    pub fn patterns(&mut self, payload: &Expr, set: &Expr) -> Option<(ValueId, ValueId)> {
        let is_stream = self.mode == Mode::Stream && is_stream_data(payload);
        if !is_stream {
            self.word(payload, "payload")?;
        }
        let param = self.special(set, "patterns", |ty| matches!(ty, ParamTy::Patterns))?;
        if !is_stream && !self.needs_packet(payload.span) {
            return None;
        }
        let (found, number) = (self.b.value(BOOL), self.b.value(U32));
        self.b.op(Op::Patterns { found, number, param });
        Some((found, number))
    }

    /// Lowers `take(POOL)` and `take(POOL, VALUE)`.
    fn take(&mut self, args: &[Arg], span: Span) -> Option<(ValueId, Value)> {
        let Some(first) = args.first() else {
            let message = "`take` needs a pool";
            return self.fail(Diagnostic::new(codes::WRONG_ARGUMENTS, message, span, ""));
        };
        let (pool, ty) = self.pool(&first.value)?;
        if args.len() == 1 {
            let (ok, out) = (self.b.value(BOOL), self.b.value(ty));
            self.b.op(Op::Take { ok, out, pool });
            return Some((ok, Value::Scalar(out, ty)));
        }
        let [_, wanted] = self.arguments(args, span, "take")?;
        let a = self.typed(wanted, ty)?;
        let ok = self.b.emit(BOOL, |ok| Op::TakeThis { ok, pool, a });
        Some((ok, Value::Scalar(a, ty)))
    }

    /// Lowers `release(POOL, VALUE);`.
    pub fn release(&mut self, args: &[Arg], span: Span) -> Option<()> {
        let [pool, value] = self.arguments(args, span, "release")?;
        let (pool, ty) = self.pool(pool)?;
        let a = self.typed(value, ty)?;
        self.b.op(Op::Release { pool, a });
        Some(())
    }

    fn pool(&mut self, expr: &Expr) -> Option<(ParamId, Ty)> {
        let param = self.special(expr, "pool", |ty| matches!(ty, ParamTy::Pool(..)))?;
        match self.model.params.get(param.0 as usize)?.ty {
            ParamTy::Pool(ty, _) => Some((param, ty)),
            _ => None,
        }
    }

    /// Calls an operator. Returns its results and their types.
    fn operator(
        &mut self,
        signature: &Signature,
        args: &[Arg],
        span: Span,
    ) -> Option<(Vec<ValueId>, Vec<Ty>)> {
        let (param, rest) = match (signature.takes_param, args) {
            (None, _) => (None, args),
            (Some(ParamKind::Backends), [first, rest @ ..]) => {
                let fits = |ty: &ParamTy| matches!(ty, ParamTy::Backends(_));
                (Some(self.special(&first.value, "backends", fits)?), rest)
            }
            (Some(_), []) => return self.wrong_count(signature, span),
        };
        if !signature.accepts(rest.len()) {
            return self.wrong_count(signature, span);
        }
        let mut values = Vec::new();
        let mut whole = Some(());
        for (at, arg) in rest.iter().enumerate() {
            let width = signature.arg(at).map_or(Width::Any, |arg| arg.width);
            whole = self.argument(&arg.value, width, &mut values).and(whole);
        }
        whole?;
        if signature.reads_payload() && !self.needs_packet(span) {
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
        let outs: Vec<ValueId> = tys.iter().map(|ty| self.b.value(*ty)).collect();
        let name = signature.name.to_owned();
        self.b.op(Op::Extern { outs: outs.clone(), name, param, args: values });
        Some((outs, tys))
    }

    fn wrong_count<T>(&mut self, signature: &Signature, span: Span) -> Option<T> {
        let message = format!("`{}` does not take these arguments", signature.name);
        self.fail(
            Diagnostic::new(codes::WRONG_ARGUMENTS, message, span, "")
                .help(format!("usage: {}", signature.usage())),
        )
    }

    fn argument(&mut self, expr: &Expr, width: Width, into: &mut Vec<ValueId>) -> Option<()> {
        match width {
            Width::Any if is_word(expr, "flow") => self.flow_key(expr.span, false, into),
            Width::Any if is_word(expr, "biflow") => self.flow_key(expr.span, true, into),
            Width::Any => {
                let (id, _) = self.scalar(expr)?;
                into.push(id);
                Some(())
            }
            Width::Bits(bits) => {
                into.push(self.typed(expr, uint(bits))?);
                Some(())
            }
        }
    }

    /// The parts of the implicit key `flow` or `biflow`, from the packet as it entered.
    fn flow_key(&mut self, span: Span, both: bool, into: &mut Vec<ValueId>) -> Option<()> {
        if !self.needs_packet(span) {
            return None;
        }
        self.need_header(Header::Inet, true, span, if both { "`biflow`" } else { "`flow`" })?;
        let version = self.entry_field(Field::InetVersion, uint(8));
        let src = self.entry_field(Field::InetSrc, U128);
        let dst = self.entry_field(Field::InetDst, U128);
        let proto = self.entry_field(Field::InetProto, uint(8));
        let sport = self.entry_field(Field::InetSport, PORT);
        let dport = self.entry_field(Field::InetDport, PORT);
        if !both {
            into.extend([version, src, dst, proto, sport, dport]);
            return Some(());
        }
        // The smaller (address, port) pair comes first.
        let cmp = |this: &mut Self, op, a, b| this.b.emit(BOOL, |out| Op::Cmp { out, op, a, b });
        let less = cmp(self, CmpOp::Lt, src, dst);
        let equal = cmp(self, CmpOp::Eq, src, dst);
        let ports = cmp(self, CmpOp::Le, sport, dport);
        let tie = self.bin(BOOL, IrBin::And, equal, ports);
        let keep = self.bin(BOOL, IrBin::Or, less, tie);
        let pick =
            |this: &mut Self, ty, a, b| this.b.emit(ty, |out| Op::Select { out, cond: keep, a, b });
        let (low, high) = (pick(self, U128, src, dst), pick(self, U128, dst, src));
        let (lport, hport) = (pick(self, PORT, sport, dport), pick(self, PORT, dport, sport));
        into.extend([version, low, high, proto, lport, hport]);
        Some(())
    }

    /// A field of the packet as it entered. Its header was present then.
    pub fn entry_field(&mut self, field: Field, ty: Ty) -> ValueId {
        if let Some(known) = self.b.facts.loaded(field, true) {
            return known;
        }
        let id = self.b.emit(ty, |out| Op::LoadEntry { out, field });
        self.b.facts.remember(field, true, id);
        id
    }
}

fn is_stream_data(expr: &Expr) -> bool {
    matches!(&expr.kind, ExprKind::Path(path) if crate::ast::joined(path) == "stream.data")
}

/// Whether an expression is only this word.
pub fn is_word(expr: &Expr, word: &str) -> bool {
    matches!(&expr.kind, ExprKind::Path(path)
        if path.parts.len() == 1 && path.parts[0].text == word)
}
