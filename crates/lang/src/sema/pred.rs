//! Lowers predicates to short-circuit control flow, so the facts of an atom hold after it.
//!
//! An atom that reads something absent is false. Absent are a field of a header that the packet
//! lacks, and a missing entry of a state without a default.

use braid_ir::model::{BinOp as IrBin, BlockId, CmpOp, Op, ParamTy, SetRef, Ty, ValueId};
use braid_ir::value::IntervalSet;
use braid_packet::field::HEADERS;
use braid_packet::{Field, Header};

use super::lower::{Binding, Lower, Value};
use super::types::{self, BOOL};
use super::{arith, constant, say};
use crate::ast::{BinOp, Expr, ExprKind, FnBody, Path, Span};
use crate::diag::{Diagnostic, codes, did_you_mean_help};

/// The result of an atom.
enum Truth {
    /// A constant result, known without the packet.
    Known(bool),
    /// A bool of the program.
    Value(ValueId),
}

impl Lower<'_> {
    /// Continues in `yes` if the predicate holds, otherwise in `no`.
    pub fn predicate(&mut self, expr: &Expr, yes: BlockId, no: BlockId) {
        let done = self.deeper(expr.span, |this| {
            this.any_predicate(expr, yes, no);
            Some(())
        });
        if done.is_none() {
            self.either(yes, no);
        }
    }

    /// Continues in both blocks. A predicate with errors does so, so that the code behind it is
    /// still checked.
    fn either(&mut self, yes: BlockId, no: BlockId) {
        let cond = self.b.constant(BOOL, 0);
        self.b.branch(cond, yes, no);
    }

    fn any_predicate(&mut self, expr: &Expr, yes: BlockId, no: BlockId) {
        match &expr.kind {
            ExprKind::Not(inner) => self.predicate(inner, no, yes),
            ExprKind::Binary(op @ (BinOp::And | BinOp::Or), a, b) => {
                let second = self.b.block();
                if *op == BinOp::And {
                    self.predicate(a, second, no);
                } else {
                    self.predicate(a, yes, second);
                }
                self.b.start(second);
                self.predicate(b, yes, no);
            }
            ExprKind::If(cond, a, b) => {
                let (on_yes, on_no) = (self.b.block(), self.b.block());
                self.predicate(cond, on_yes, on_no);
                self.b.start(on_yes);
                self.predicate(a, yes, no);
                self.b.start(on_no);
                self.predicate(b, yes, no);
            }
            ExprKind::Has(path) => self.has(path, yes, no),
            ExprKind::Path(path) if self.is_forward(path) => self.forward(expr.span, yes, no),
            ExprKind::Exists(place) => {
                let done = self.with_absent(Some(no), |this| this.exists(place, yes, no));
                if done.is_none() {
                    self.either(yes, no);
                }
            }
            _ => self.atom(expr, yes, no),
        }
    }

    fn is_forward(&self, path: &Path) -> bool {
        matches!(path.parts.as_slice(), [word] if word.text == "forward"
            && self.local("forward").is_none() && self.binding("forward").is_none())
    }

    fn forward(&mut self, span: Span, yes: BlockId, no: BlockId) {
        match self.needs_packet(span).then(|| self.read_field(Field::PktBackward, span)).flatten() {
            Some((backward, _)) => self.b.branch(backward, no, yes),
            None => self.either(yes, no),
        }
    }

    fn atom(&mut self, expr: &Expr, yes: BlockId, no: BlockId) {
        let truth = self.with_absent(Some(no), |this| this.truth(expr, yes, no));
        match truth {
            Some(Some(Truth::Value(cond))) => self.b.branch(cond, yes, no),
            Some(Some(Truth::Known(true))) => self.b.jump(yes, Vec::new()),
            Some(Some(Truth::Known(false))) => self.b.jump(no, Vec::new()),
            Some(None) => {}
            None => self.either(yes, no),
        }
    }

    /// The result of an atom. `Some(None)` when the atom already branched to `yes` and `no`. `None`
    /// after an error, which is then reported.
    fn truth(&mut self, expr: &Expr, yes: BlockId, no: BlockId) -> Option<Option<Truth>> {
        match &expr.kind {
            ExprKind::Binary(op, a, b) if crate::ast::is_comparison(*op) => {
                self.comparison(*op, a, b, expr.span).map(Some)
            }
            ExprKind::In(item, set) => self.membership(item, set).map(Some),
            ExprKind::Matches(payload, set) => {
                self.patterns(payload, set).map(|(found, _)| Some(Truth::Value(found)))
            }
            ExprKind::Call(name, args) => {
                if let Some(Binding::Fn(def)) = self.binding(&name.text)
                    && let FnBody::Pure(ty, body) = &def.body
                {
                    let ty = self.scalar_type(ty)?;
                    if ty == BOOL {
                        return self.expand(def, args, expr.span, |this| {
                            this.with_absent(None, |this| this.predicate(body, yes, no));
                            Some(None)
                        });
                    }
                }
                self.condition(expr).map(Some)
            }
            _ => self.condition(expr).map(Some),
        }
    }

    /// The value of an expression that must be a bool.
    fn condition(&mut self, expr: &Expr) -> Option<Truth> {
        let value = self.value(expr, Some(BOOL))?;
        match value {
            Value::Const(constant) if constant.ty == Some(BOOL) => {
                Some(Truth::Known(constant.value != 0))
            }
            Value::Scalar(id, ty) if ty == BOOL => Some(Truth::Value(id)),
            other => {
                let found = match super::expr::scalar_ty(&other) {
                    Some(Some(ty)) => types::name(ty),
                    Some(None) => "a number".into(),
                    None => super::expr::describe(&other).into(),
                };
                let message = format!("expected a condition, found {found}");
                self.fail(
                    Diagnostic::new(codes::NOT_A_CONDITION, message, expr.span, "not a condition")
                        .help("compare it, such as `… != 0`"),
                )
            }
        }
    }

    fn comparison(&mut self, op: BinOp, a: &Expr, b: &Expr, span: Span) -> Option<Truth> {
        if let Some(side) = [a, b].into_iter().find(|e| constant::prefix_range(&e.kind).is_some()) {
            let message = "a prefix stands for many addresses";
            return self.fail(
                Diagnostic::new(codes::NOT_A_VALUE, message, side.span, "not a single value")
                    .help("test membership: `ip.src in 10.0.0.0/8`"),
            );
        }
        let (x, y) = (self.value(a, None), self.value(b, None));
        let (x, y) = (x?, y?);
        let (ta, tb) = self.operand_types((&x, a.span), (&y, b.span))?;
        if let (Value::Const(x), Value::Const(y), None, None) = (&x, &y, ta, tb) {
            return Some(Truth::Known(arith::compare(op, x.value, y.value)));
        }
        let ty = match arith::common(ta, tb) {
            Ok(ty) => ty,
            Err(wrong) => return self.fail(say::operands(wrong, op, ta, tb, span)),
        };
        if !super::expr::ordered(ty.kind) && !matches!(op, BinOp::Eq | BinOp::Ne) {
            let wrong = arith::Wrong::Operator;
            return self.fail(say::operands(wrong, op, Some(ty), Some(ty), span));
        }
        if let (Value::Const(x), Value::Const(y)) = (&x, &y) {
            let first = say::fit(*x, ty, a.span, self.diags);
            let second = say::fit(*y, ty, b.span, self.diags);
            return Some(Truth::Known(arith::compare(op, first?, second?)));
        }
        let (first, second) = (self.coerce(x, ty, a.span), self.coerce(y, ty, b.span));
        let (a, b) = (first?, second?);
        let op = cmp_op(op);
        Some(Truth::Value(self.b.emit(BOOL, |out| Op::Cmp { out, op, a, b })))
    }

    /// Lowers `has HEADER`.
    fn has(&mut self, path: &Path, yes: BlockId, no: BlockId) {
        let name = crate::ast::joined(path);
        let Some(header) = Header::by_name(&name) else {
            let known = HEADERS.iter().map(|(_, name)| *name);
            self.say(
                Diagnostic::new(
                    codes::UNKNOWN_HEADER,
                    format!("there is no header `{name}`"),
                    path.span,
                    "expected a header",
                )
                .help_if(header_help(&name).or_else(|| did_you_mean_help(&name, known))),
            );
            return self.either(yes, no);
        };
        if !self.needs_packet(path.span) {
            return self.either(yes, no);
        }
        if self.b.facts.knows(header, false) {
            self.b.jump(yes, Vec::new());
        } else if self.b.facts.lacks(header, false) {
            self.b.jump(no, Vec::new());
        } else {
            let cond = self.b.emit(BOOL, |out| Op::Has { out, header });
            self.branch_on_header(cond, header, yes, no);
        }
    }

    /// Branches on the presence of a header. Each target learns the result.
    pub fn branch_on_header(&mut self, cond: ValueId, header: Header, yes: BlockId, no: BlockId) {
        self.b.branch_learning(cond, yes, no, |facts, present| {
            if present {
                facts.learn(header);
            } else {
                facts.learn_absent(header);
            }
        });
    }

    /// Lowers `ITEM in SET`.
    fn membership(&mut self, item: &Expr, set: &Expr) -> Option<Truth> {
        if super::calls::is_word(item, "packet") {
            // A packet that is not IP matches no rule.
            if self.needs_packet(item.span) {
                self.need_header(Header::Inet, false, item.span, "`packet in …`")?;
            }
            return self.rules(set).map(|(pass, _)| Truth::Value(pass));
        }
        if let Some(Binding::Param(param)) = self.bare(set) {
            let ty = self.model.params.get(param.0 as usize)?.ty.clone();
            match ty {
                ParamTy::Routes => {
                    return self.route(item, param).map(|(found, _)| Truth::Value(found));
                }
                ParamTy::Set(ty) => return self.in_set(item, ty, SetRef::Param(param)),
                ParamTy::List(columns) | ParamTy::Backends(columns) => {
                    if let [(name, ty)] = columns.as_slice()
                        && name.is_empty()
                    {
                        return self.in_set(item, *ty, SetRef::List(param, 0));
                    }
                    let message = "this list has several columns";
                    let help = format!("name one: `{}.{}`", self.param_name(param), columns[0].0);
                    let wrong = Diagnostic::new(codes::WRONG_NAME, message, set.span, "which one?");
                    return self.fail(wrong.help(help));
                }
                ParamTy::Rules => {
                    let message = "a rule set decides about packets";
                    let wrong = Diagnostic::new(codes::WRONG_NAME, message, set.span, "");
                    return self.fail(wrong.help("write `packet in RULES`"));
                }
                _ => {}
            }
        }
        if let Some((ty, set)) = self.column(set)? {
            return self.in_set(item, ty, set);
        }
        self.in_written(item, set)
    }

    fn param_name(&self, param: braid_ir::model::ParamId) -> &str {
        self.model.params.get(param.0 as usize).map_or("", |decl| &decl.name)
    }

    /// Resolves `LIST.COLUMN` as a set. `Some(None)` when the expression is not of this form.
    fn column(&mut self, set: &Expr) -> Option<Option<(Ty, SetRef)>> {
        let ExprKind::Path(path) = &set.kind else { return Some(None) };
        let [list, part] = path.parts.as_slice() else { return Some(None) };
        let Some(Binding::Param(param)) = self.binding(&list.text) else { return Some(None) };
        let columns = match &self.model.params.get(param.0 as usize)?.ty {
            ParamTy::List(columns) | ParamTy::Backends(columns) => columns.clone(),
            _ => return Some(None),
        };
        match columns.iter().position(|(name, _)| *name == part.text) {
            Some(at) => {
                let column = u32::try_from(at).unwrap_or(u32::MAX);
                Some(Some((columns[at].1, SetRef::List(param, column))))
            }
            None => {
                let known = columns.iter().map(|(name, _)| name.as_str());
                let diagnostic = super::names::unknown_member(part, known);
                self.fail(diagnostic)
            }
        }
    }

    fn in_set(&mut self, item: &Expr, ty: Ty, set: SetRef) -> Option<Truth> {
        let a = self.typed(item, ty)?;
        Some(Truth::Value(self.b.emit(BOOL, |out| Op::InSet { out, a, set })))
    }

    /// Tests membership in a written set. Constants are tested together, other members one by one.
    fn in_written(&mut self, item: &Expr, set: &Expr) -> Option<Truth> {
        let (a, ty) = match self.value(item, None)? {
            Value::Scalar(id, ty) => (id, ty),
            Value::Const(arith::Const { value, ty: Some(ty) }) => (self.b.constant(ty, value), ty),
            Value::Const(_) => return self.fail(say::unclear(item.span)),
            other => {
                let found = super::expr::describe(&other);
                return self.fail(say::expected_type("a single value", found, item.span));
            }
        };
        let mut constants = Vec::new();
        let mut tests = Vec::new();
        self.set_parts(set, a, ty, &mut constants, &mut tests)?;
        let constants = IntervalSet::new(constants);
        if !constants.is_empty() {
            let set = SetRef::Const(constants);
            tests.push(self.b.emit(BOOL, |out| Op::InSet { out, a, set }));
        }
        let mut tests = tests.into_iter();
        let Some(mut any) = tests.next() else { return Some(Truth::Known(false)) };
        for test in tests {
            any = self.bin(BOOL, IrBin::Or, any, test);
        }
        Some(Truth::Value(any))
    }

    fn set_parts(
        &mut self,
        set: &Expr,
        a: ValueId,
        ty: Ty,
        constants: &mut Vec<(u128, u128)>,
        tests: &mut Vec<ValueId>,
    ) -> Option<()> {
        match &set.kind {
            ExprKind::Set(members) | ExprKind::List(members) => {
                let mut whole = Some(());
                for member in members {
                    whole = self.set_parts(member, a, ty, constants, tests).and(whole);
                }
                whole
            }
            ExprKind::Prefix4(..) | ExprKind::Prefix6(..) => {
                self.eval().intervals(set, ty, constants)
            }
            ExprKind::Range(from, to) => {
                let (low, high) = (self.value(from, Some(ty)), self.value(to, Some(ty)));
                match (low?, high?) {
                    (Value::Const(low), Value::Const(high)) => {
                        let low = say::fit(low, ty, from.span, self.diags)?;
                        let high = say::fit(high, ty, to.span, self.diags)?;
                        if low > high {
                            return self.fail(constant::empty_range(set.span));
                        }
                        constants.push((low, high));
                    }
                    (low, high) => {
                        let low = self.coerce(low, ty, from.span)?;
                        let high = self.coerce(high, ty, to.span)?;
                        let above = self.b.emit(BOOL, |out| cmp(out, CmpOp::Ge, a, low));
                        let below = self.b.emit(BOOL, |out| cmp(out, CmpOp::Le, a, high));
                        tests.push(self.bin(BOOL, IrBin::And, above, below));
                    }
                }
                Some(())
            }
            ExprKind::Path(_) if matches!(self.bare(set), Some(Binding::Const(_))) => {
                self.eval().intervals(set, ty, constants)
            }
            _ => {
                match self.value(set, Some(ty))? {
                    Value::Const(constant) => {
                        let word = say::fit(constant, ty, set.span, self.diags)?;
                        constants.push((word, word));
                    }
                    other => {
                        let b = self.coerce(other, ty, set.span)?;
                        tests.push(self.b.emit(BOOL, |out| cmp(out, CmpOp::Eq, a, b)));
                    }
                }
                Some(())
            }
        }
    }
}

fn cmp(out: ValueId, op: CmpOp, a: ValueId, b: ValueId) -> Op {
    Op::Cmp { out, op, a, b }
}

fn cmp_op(op: BinOp) -> CmpOp {
    match op {
        BinOp::Eq => CmpOp::Eq,
        BinOp::Ne => CmpOp::Ne,
        BinOp::Lt => CmpOp::Lt,
        BinOp::Le => CmpOp::Le,
        BinOp::Gt => CmpOp::Gt,
        _ => CmpOp::Ge,
    }
}

/// The usual name of a header that is called differently elsewhere.
fn header_help(name: &str) -> Option<String> {
    let right = match name {
        "ipv4" | "ip4" => "ip",
        "ipv6" => "ip6",
        "ethernet" => "eth",
        "icmpv6" => "icmp6",
        "dot1q" => "vlan",
        _ => return None,
    };
    Some(format!("did you mean `{right}`?"))
}
