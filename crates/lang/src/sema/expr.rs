//! Gives every expression a type and lowers it to operations.

use braid_ir::model::{BinOp as IrBin, Kind, Op, ParamId, ParamTy, Ty, ValueId};
use braid_packet::Header;

use super::arith::{self, BIT_NANOS, How, Plan};
use super::lower::{Binding, Lower, Mode, Value};
use super::names::Named;
use super::types::{self, BOOL, U32, U64, U128};
use super::{constant, say};
use crate::ast::is_comparison;
use crate::ast::{BinOp, Expr, ExprKind, Ident, Span};
use crate::diag::{Diagnostic, codes};

impl Lower<'_> {
    /// The value of an expression. `expect` is the type that the context needs, for numbers without
    /// a type of their own. `None` after an error, which is then reported.
    pub fn value(&mut self, expr: &Expr, expect: Option<Ty>) -> Option<Value> {
        self.deeper(expr.span, |this| this.any_value(expr, expect))
    }

    fn any_value(&mut self, expr: &Expr, expect: Option<Ty>) -> Option<Value> {
        match &expr.kind {
            ExprKind::Path(path) => self.path_value(path),
            ExprKind::Str(text) => Some(Value::Text(braid_ir::model::EventArg::Str(text.clone()))),
            ExprKind::Index(base, index) => self.indexed(base, index, &[], expr.span),
            ExprKind::Member(base, part) => self.member(base, part, expr.span),
            ExprKind::Call(name, args) => self.call(name, args, expr.span, expect),
            ExprKind::Complement(inner) => self.complemented(inner, expect),
            ExprKind::If(cond, yes, no) => self.if_value(cond, yes, no, expect, expr.span),
            ExprKind::Record(_) => {
                self.fail(say::expected_type("a single value", "a record", expr.span))
            }
            _ if is_predicate(expr) => self.predicate_value(expr),
            ExprKind::Binary(op, a, b) => self.arithmetic(*op, a, b, expect, expr.span),
            _ => constant::literal(expr, self.diags).flatten().map(Value::Const),
        }
    }

    /// The value of an expression that must have this type.
    pub fn typed(&mut self, expr: &Expr, ty: Ty) -> Option<ValueId> {
        let value = self.value(expr, Some(ty))?;
        self.coerce(value, ty, expr.span)
    }

    /// Converts a value to this type.
    pub fn coerce(&mut self, value: Value, ty: Ty, span: Span) -> Option<ValueId> {
        match value {
            Value::Const(constant) => {
                let word = say::fit(constant, ty, span, self.diags)?;
                Some(self.b.constant(ty, word))
            }
            Value::Scalar(id, found) if types::compatible(ty, found) => Some(id),
            Value::Scalar(_, found) => self.fail(say::mismatch(ty, found, span)),
            Value::Record(_) => self.fail(say::expected_type(&types::name(ty), "a record", span)),
            Value::Text(_) => self.fail(say::expected_type(&types::name(ty), "a text", span)),
            Value::Wrong => None,
        }
    }

    /// The value of an expression with its own type. The type of a number without a unit is
    /// unclear.
    pub fn scalar(&mut self, expr: &Expr) -> Option<(ValueId, Ty)> {
        let value = self.value(expr, None)?;
        match scalar_ty(&value) {
            Some(Some(ty)) => Some((self.coerce(value, ty, expr.span)?, ty)),
            Some(None) => self.fail(say::unclear(expr.span)),
            None => self.fail(say::expected_type("a single value", describe(&value), expr.span)),
        }
    }

    /// The types of two operands, which must be single values. A number without a type gives
    /// `None`.
    pub fn operand_types(
        &mut self,
        (x, x_span): (&Value, Span),
        (y, y_span): (&Value, Span),
    ) -> Option<(Option<Ty>, Option<Ty>)> {
        match (scalar_ty(x), scalar_ty(y)) {
            (Some(a), Some(b)) => Some((a, b)),
            (None, _) => self.fail(say::expected_type("a single value", describe(x), x_span)),
            _ => self.fail(say::expected_type("a single value", describe(y), y_span)),
        }
    }

    fn arithmetic(
        &mut self,
        op: BinOp,
        a: &Expr,
        b: &Expr,
        expect: Option<Ty>,
        span: Span,
    ) -> Option<Value> {
        let (x, y) = (self.value(a, expect), self.value(b, expect));
        self.combine(op, (x?, a.span), (y?, b.span), span)
    }

    /// Applies `op` to two values.
    pub fn combine(
        &mut self,
        op: BinOp,
        (x, x_span): (Value, Span),
        (y, y_span): (Value, Span),
        span: Span,
    ) -> Option<Value> {
        let (ta, tb) = self.operand_types((&x, x_span), (&y, y_span))?;
        if let (Value::Const(x), Value::Const(y)) = (&x, &y) {
            let wrapping = self.wrapping;
            return constant::combine(op, wrapping, (*x, x_span), (*y, y_span), span, self.diags)
                .map(Value::Const);
        }
        if matches!(op, BinOp::Div | BinOp::Rem)
            && let Value::Const(divisor) = &y
            && divisor.value == 0
        {
            return self.fail(say::fault(arith::Fault::Division, y_span));
        }
        let plan = match arith::plan(op, ta, tb) {
            Ok(plan) => plan,
            Err(wrong) => return self.fail(say::operands(wrong, op, ta, tb, span)),
        };
        let (left, right) = (self.coerce(x, plan.left, x_span), self.coerce(y, plan.right, y_span));
        Some(Value::Scalar(self.planned(op, &plan, left?, right?), plan.result))
    }

    fn planned(&mut self, op: BinOp, plan: &Plan, a: ValueId, b: ValueId) -> ValueId {
        let ir = ir_op(op, self.wrapping);
        match plan.how {
            How::Plain => self.bin(plan.result, ir, a, b),
            How::Shift => {
                let by = self.clamp(b, plan.right, plan.left);
                self.bin(plan.result, ir, a, by)
            }
            How::Scale => {
                let count = self.widen(b, plan.right, U64);
                self.bin(plan.result, ir, a, count)
            }
            How::ScaleLeft => {
                let count = self.widen(a, plan.left, U64);
                self.bin(plan.result, ir, count, b)
            }
            How::RateTime | How::TimeRate => {
                let (a, b) = (self.widen(a, plan.left, U128), self.widen(b, plan.right, U128));
                let product = self.bin(U128, IrBin::MulSat, a, b);
                let unit = self.b.constant(U128, BIT_NANOS);
                let wide = self.bin(U128, IrBin::Div, product, unit);
                self.clamp(wide, U128, plan.result)
            }
            How::PerSize => {
                let (a, b) = (self.widen(a, plan.left, U128), self.widen(b, plan.right, U128));
                let unit = self.b.constant(U128, BIT_NANOS);
                let scaled = self.bin(U128, IrBin::MulSat, a, unit);
                let wide = self.bin(U128, IrBin::Div, scaled, b);
                self.clamp(wide, U128, plan.result)
            }
        }
    }

    /// Adds a binary operation of the IR.
    pub fn bin(&mut self, ty: Ty, op: IrBin, a: ValueId, b: ValueId) -> ValueId {
        self.b.emit(ty, |out| Op::Bin { out, op, a, b })
    }

    fn widen(&mut self, a: ValueId, from: Ty, to: Ty) -> ValueId {
        if from.width == to.width { a } else { self.b.emit(to, |out| Op::Resize { out, a }) }
    }

    /// Converts a value to another width. A larger value becomes the largest value of that width.
    pub fn clamp(&mut self, a: ValueId, from: Ty, to: Ty) -> ValueId {
        if from.width <= to.width {
            return self.widen(a, from, to);
        }
        self.b.emit(to, |out| Op::Clamp { out, a })
    }

    /// Inverts all bits of a value.
    pub fn complement(&mut self, a: ValueId, ty: Ty) -> ValueId {
        self.b.emit(ty, |out| Op::Not { out, a })
    }

    fn complemented(&mut self, inner: &Expr, expect: Option<Ty>) -> Option<Value> {
        let value = self.value(inner, expect)?;
        let ty = match scalar_ty(&value) {
            Some(ty) => ty.or(expect),
            None => return self.fail(say::expected_type("bits", describe(&value), inner.span)),
        };
        let Some(ty) = ty else { return self.fail(say::unclear(inner.span)) };
        if !constant::has_bits(ty) {
            let message = format!("`~` is not defined for {}", types::name(ty));
            return self.fail(Diagnostic::new(codes::BAD_OPERANDS, message, inner.span, ""));
        }
        if let Value::Const(constant) = value {
            let word = say::fit(constant, ty, inner.span, self.diags)?;
            return Some(Value::Const(arith::Const::typed(!word & types::max(ty), ty)));
        }
        let id = self.coerce(value, ty, inner.span)?;
        Some(Value::Scalar(self.complement(id, ty), ty))
    }

    /// Lowers `if COND { A } else { B }`.
    fn if_value(
        &mut self,
        cond: &Expr,
        yes: &Expr,
        no: &Expr,
        expect: Option<Ty>,
        span: Span,
    ) -> Option<Value> {
        let (on_yes, on_no) = (self.b.block(), self.b.block());
        self.predicate(cond, on_yes, on_no);
        self.b.start(on_yes);
        let x = self.value(yes, expect);
        let yes_end = self.b.pause();
        self.b.start(on_no);
        let y = self.value(no, expect);
        let no_end = self.b.pause();
        let both = x.zip(y).and_then(|(x, y)| {
            let common = self.both_ways((&x, yes.span), (&y, no.span), expect, span)?;
            Some((x, y, common))
        });
        let Some((x, y, common)) = both else {
            // The code behind it is still checked.
            self.b.resume(yes_end);
            return None;
        };
        let (join, value) = self.b.block_with(common);
        let mut whole = true;
        for (end, found, at) in [(yes_end, x, yes.span), (no_end, y, no.span)] {
            self.b.resume(end);
            let id = self.coerce(found, common, at);
            whole &= id.is_some();
            self.b.jump(join, id.into_iter().collect());
        }
        self.b.start(join);
        whole.then_some(Value::Scalar(value, common))
    }

    /// The common type of both branches of an `if`.
    fn both_ways(
        &mut self,
        (x, x_span): (&Value, Span),
        (y, y_span): (&Value, Span),
        expect: Option<Ty>,
        span: Span,
    ) -> Option<Ty> {
        let (tx, ty) = self.operand_types((x, x_span), (y, y_span))?;
        match (arith::common(tx, ty), expect) {
            (Ok(ty), _) | (Err(arith::Wrong::Unclear), Some(ty)) => Some(ty),
            (Err(arith::Wrong::Unclear), None) => self.fail(say::unclear(span)),
            (Err(_), _) => {
                let found = (types::name(tx.unwrap_or(U32)), types::name(ty.unwrap_or(U32)));
                let message = format!("one branch gives {}, the other {}", found.0, found.1);
                self.fail(
                    Diagnostic::new(codes::TYPE_MISMATCH, message, x_span, "this")
                        .label(y_span, "and this"),
                )
            }
        }
    }

    /// Lowers a predicate to a value of type bool.
    fn predicate_value(&mut self, expr: &Expr) -> Option<Value> {
        let (yes, no) = (self.b.block(), self.b.block());
        let (join, value) = self.b.block_with(BOOL);
        self.predicate(expr, yes, no);
        for (block, word) in [(yes, 1), (no, 0)] {
            self.b.start(block);
            let id = self.b.constant(BOOL, word);
            self.b.jump(join, vec![id]);
        }
        self.b.start(join);
        Some(Value::Scalar(value, BOOL))
    }

    /// Lowers `BASE[INDEX]` and the parts behind it: an entry of a state, or a member of a list.
    pub fn indexed(
        &mut self,
        base: &Expr,
        index: &[Expr],
        parts: &[Ident],
        span: Span,
    ) -> Option<Value> {
        let ExprKind::Path(path) = &base.kind else {
            return self.not_indexable(base.span);
        };
        if path.parts.len() == 1 && path.parts[0].text == "key" && self.key_in_sight() {
            return self.expired_key(index, span);
        }
        match self.resolve(path)? {
            Named::Bound(Binding::State(state)) if path.parts.len() == 1 => {
                self.read_state(state, Some(index), parts, span)
            }
            Named::Bound(Binding::Param(param)) => {
                let columns = match &self.model.params.get(param.0 as usize)?.ty {
                    ParamTy::List(columns) | ParamTy::Backends(columns) => columns.clone(),
                    _ => return self.not_indexable(base.span),
                };
                let [index] = index else {
                    let message = format!("a list takes one index, found {}", index.len());
                    let wrong = Diagnostic::new(codes::WRONG_ARGUMENTS, message, span, "");
                    return self.fail(wrong);
                };
                self.list_member(param, &columns, index, parts)
            }
            _ => self.not_indexable(base.span),
        }
    }

    fn not_indexable<T>(&mut self, span: Span) -> Option<T> {
        self.fail(
            Diagnostic::new(codes::WRONG_NAME, "this takes no `[…]`", span, "")
                .note("an index goes with a state, or a parameter of type list or backends"),
        )
    }

    fn list_member(
        &mut self,
        param: ParamId,
        columns: &[(String, Ty)],
        index: &Expr,
        parts: &[Ident],
    ) -> Option<Value> {
        let index = self.typed(index, U32)?;
        let get = |this: &mut Self, column: usize, ty: Ty| {
            let column = u32::try_from(column).unwrap_or(u32::MAX);
            this.b.emit(ty, |out| Op::ListGet { out, param, index, column })
        };
        if let [(name, ty)] = columns
            && name.is_empty()
        {
            let value = Value::Scalar(get(self, 0, *ty), *ty);
            return self.members(value, parts);
        }
        if let [part, rest @ ..] = parts {
            let Some(at) = columns.iter().position(|(name, _)| *name == part.text) else {
                let known = columns.iter().map(|(name, _)| name.as_str());
                let diagnostic = super::names::unknown_member(part, known);
                return self.fail(diagnostic);
            };
            let ty = columns[at].1;
            let value = Value::Scalar(get(self, at, ty), ty);
            return self.members(value, rest);
        }
        let slots = columns.iter().enumerate();
        let slots = slots.map(|(at, (name, ty))| (name.clone(), get(self, at, *ty), *ty));
        Some(Value::Record(slots.collect()))
    }

    fn member(&mut self, base: &Expr, part: &Ident, span: Span) -> Option<Value> {
        if let ExprKind::Index(list, index) = &base.kind {
            return self.indexed(list, index, std::slice::from_ref(part), span);
        }
        let value = self.value(base, None)?;
        self.members(value, std::slice::from_ref(part))
    }

    /// Checks that there is a packet here.
    pub fn needs_packet(&mut self, span: Span) -> bool {
        if self.mode == Mode::Packet {
            return true;
        }
        if self.mode == Mode::Stream {
            let message = "a stream function sees no packets";
            self.say(Diagnostic::new(codes::MIXED_STREAM, message, span, "needs a packet"));
            return false;
        }
        let place = if self.mode == Mode::Timer { "a timer" } else { "`on expire`" };
        let message = format!("{place} runs without a packet");
        let mut diagnostic = Diagnostic::new(codes::NO_PACKET, message, span, "needs a packet");
        if self.mode != Mode::Timer {
            diagnostic = diagnostic.help(
                "the state's name gives the ending entry, the fields of its key give the key",
            );
        }
        self.say(diagnostic);
        false
    }

    /// Makes sure that a header is present: it is known to be, or an atom tests it, or its absence
    /// is reported. `what` names the construct that needs it. With `entry`, the packet as it
    /// entered needs it.
    pub fn need_header(
        &mut self,
        header: Header,
        entry: bool,
        span: Span,
        what: &str,
    ) -> Option<()> {
        if self.b.facts.knows(header, entry) {
            return Some(());
        }
        if entry && self.b.facts.is_touched(header) {
            return self.fail(header_changed(header, span, what));
        }
        let Some(absent) = self.absent else {
            self.say(may_be_absent(header, span, what));
            // One message for each header is enough.
            self.b.facts.learn(header);
            return None;
        };
        let next = self.b.block();
        if self.b.facts.lacks(header, entry) {
            self.b.jump(absent, Vec::new());
        } else {
            let has = self.b.emit(BOOL, |out| Op::Has { out, header });
            self.branch_on_header(has, header, next, absent);
        }
        self.b.start(next);
        Some(())
    }
}

fn may_be_absent(header: Header, span: Span, what: &str) -> Diagnostic {
    let name = header.name();
    Diagnostic::new(
        codes::HEADER_MAY_BE_ABSENT,
        format!("{what} needs the header `{name}`, which the packet may lack"),
        span,
        format!("no test of `{name}` on the way here"),
    )
    .help(format!("test it first: `if has {name} {{ … }}`, or `has {name}` in the row's predicate"))
}

fn header_changed(header: Header, span: Span, what: &str) -> Diagnostic {
    let name = header.name();
    Diagnostic::new(
        codes::HEADER_CHANGED,
        format!("{what} needs the header `{name}` of the packet as it entered"),
        span,
        format!("`{name}` was changed on the way here"),
    )
    .help(format!("test `has {name}` before the change"))
}

/// The type of a single value. `Some(None)` for a number without a type, `None` for anything but a
/// single value.
pub fn scalar_ty(value: &Value) -> Option<Option<Ty>> {
    match value {
        Value::Const(constant) => Some(constant.ty),
        Value::Scalar(_, ty) => Some(Some(*ty)),
        Value::Record(_) | Value::Text(_) | Value::Wrong => None,
    }
}

/// Describes a value in words.
pub fn describe(value: &Value) -> &'static str {
    match value {
        Value::Const(_) | Value::Scalar(..) => "a single value",
        Value::Record(_) => "a record",
        Value::Text(_) => "a text",
        Value::Wrong => "nothing",
    }
}

/// Whether an expression has the form of a predicate.
pub fn is_predicate(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Not(_)
        | ExprKind::In(..)
        | ExprKind::Matches(..)
        | ExprKind::Exists(_)
        | ExprKind::Has(_) => true,
        ExprKind::Binary(op, ..) => is_comparison(*op) || matches!(op, BinOp::And | BinOp::Or),
        _ => false,
    }
}

fn ir_op(op: BinOp, wrapping: bool) -> IrBin {
    match op {
        BinOp::Add if wrapping => IrBin::AddWrap,
        BinOp::Sub if wrapping => IrBin::SubWrap,
        BinOp::Mul if wrapping => IrBin::MulWrap,
        BinOp::Add => IrBin::AddSat,
        BinOp::Sub => IrBin::SubSat,
        BinOp::Mul => IrBin::MulSat,
        BinOp::Div => IrBin::Div,
        BinOp::Rem => IrBin::Rem,
        BinOp::BitAnd | BinOp::And => IrBin::And,
        BinOp::BitOr | BinOp::Or => IrBin::Or,
        BinOp::Shl => IrBin::Shl,
        BinOp::Shr => IrBin::Shr,
        _ => IrBin::Xor,
    }
}

/// Whether values of this kind are ordered.
pub fn ordered(kind: Kind) -> bool {
    kind != Kind::Bool
}
