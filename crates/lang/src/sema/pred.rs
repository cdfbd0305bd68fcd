//! Lowers predicates to short-circuit control flow, so the facts of an atom hold after it.
//!
//! An atom that reads something absent is false. Absent are a field of a header that the packet
//! lacks, and a missing entry of a state without a default.

use braid_ir::model::{
    BinOp as IrBin, BlockId, CmpOp, Kind, Model, Op, ParamTy, SetRef, Ty, ValueId,
};
use braid_ir::value::IntervalSet;
use braid_packet::field::HEADERS;
use braid_packet::{Field, Header};

use super::build::Builder;
use super::lower::Lower;
use super::scope::{Binding, Scope, Value};
use super::types::{self, BOOL};
use super::{
    addr, arith, bytes, calls, constant, expand, flow, headers, names, needs, operators, path, say,
    search, sides, state, strings, versions,
};
use crate::ast::{BinOp, Chunk, Expr, ExprKind, FnBody, Ident, Path, Span, is_comparison};
use crate::diag::{Diagnostic, codes, did_you_mean_help};

/// The result of an atom.
enum Truth {
    /// A constant result, known without the packet.
    Known(bool),
    /// A bool of the program.
    Value(ValueId),
}

/// Continues in both blocks. A predicate with errors does so, so that the code behind it is still
/// checked.
pub fn either(b: &mut Builder, yes: BlockId, no: BlockId) {
    let cond = b.constant(BOOL, 0);
    b.branch(cond, yes, no);
}

/// Lowers a predicate. `Lower::predicate` limits the nesting.
pub fn any_predicate(lower: &mut Lower<'_>, expr: &Expr, yes: BlockId, no: BlockId) {
    match &expr.kind {
        ExprKind::Not(inner) => lower.predicate(inner, no, yes),
        ExprKind::Binary(op @ (BinOp::And | BinOp::Or), a, b) => {
            let second = lower.b.block();
            if *op == BinOp::And {
                lower.predicate(a, second, no);
            } else {
                lower.predicate(a, yes, second);
            }
            lower.b.start(second);
            lower.predicate(b, yes, no);
        }
        ExprKind::If(cond, a, b) => {
            let (on_yes, on_no) = (lower.b.block(), lower.b.block());
            lower.predicate(cond, on_yes, on_no);
            lower.b.start(on_yes);
            lower.predicate(a, yes, no);
            lower.b.start(on_no);
            lower.predicate(b, yes, no);
        }
        ExprKind::Has(path) => has(lower, path, yes, no),
        ExprKind::From(side) => match sides::from(lower, side) {
            Some(cond) => lower.b.branch(cond, yes, no),
            None => either(&mut lower.b, yes, no),
        },
        ExprKind::Path(path) if is_forward(&lower.scope, path) => {
            forward(lower, expr.span, yes, no)
        }
        ExprKind::Exists(place) => {
            let done = lower.with_absent(Some(no), |this| state::exists(this, place, yes, no));
            if done.is_none() {
                either(&mut lower.b, yes, no);
            }
        }
        _ => atom(lower, expr, yes, no),
    }
}

fn is_forward(scope: &Scope<'_>, path: &Path) -> bool {
    matches!(path.parts.as_slice(), [word] if word.text == "forward"
        && !scope.knows("forward"))
}

fn forward(lower: &mut Lower<'_>, span: Span, yes: BlockId, no: BlockId) {
    match needs::packet(lower, span)
        .then(|| path::read_field(lower, Field::PktBackward, span))
        .flatten()
    {
        Some((backward, _)) => lower.b.branch(backward, no, yes),
        None => either(&mut lower.b, yes, no),
    }
}

fn atom(lower: &mut Lower<'_>, expr: &Expr, yes: BlockId, no: BlockId) {
    let truth = lower.with_absent(Some(no), |this| truth(this, expr, yes, no));
    match truth {
        Some(Some(Truth::Value(cond))) => lower.b.branch(cond, yes, no),
        Some(Some(Truth::Known(true))) => lower.b.jump(yes, Vec::new()),
        Some(Some(Truth::Known(false))) => lower.b.jump(no, Vec::new()),
        Some(None) => {}
        None => either(&mut lower.b, yes, no),
    }
}

/// The result of an atom. `Some(None)` when the atom already branched to `yes` and `no`. `None`
/// after an error, which is then reported.
fn truth(lower: &mut Lower<'_>, expr: &Expr, yes: BlockId, no: BlockId) -> Option<Option<Truth>> {
    match &expr.kind {
        ExprKind::Binary(op, a, b) if crate::ast::is_comparison(*op) => {
            comparison(lower, *op, a, b, expr.span).map(Some)
        }
        ExprKind::At(at) if let Chunk::Text(text) = &at.what => {
            bytes::text(lower, text, at, expr.span, (yes, no)).map(|()| None)
        }
        ExprKind::In(item, set) => membership(lower, item, set).map(Some),
        ExprKind::Matches(payload, set) => {
            search::lowest(lower, payload, set).map(|(found, _)| Some(Truth::Value(found)))
        }
        ExprKind::Call(name, args) => {
            if let Some(Binding::Fn(def)) = lower.scope.binding(&name.text)
                && let FnBody::Pure(ty, body) = &def.body
            {
                let ty = names::scalar_type(lower, ty)?;
                if ty == BOOL {
                    return expand::expand(lower, def, args, expr.span, |this| {
                        this.with_absent(None, |this| this.predicate(body, yes, no));
                        Some(None)
                    });
                }
            }
            condition(lower, expr).map(Some)
        }
        _ => condition(lower, expr).map(Some),
    }
}

/// The value of an expression that must be a bool.
fn condition(lower: &mut Lower<'_>, expr: &Expr) -> Option<Truth> {
    let value = lower.value(expr, Some(BOOL))?;
    match value {
        Value::Const(constant) if constant.ty == Some(BOOL) => {
            Some(Truth::Known(constant.value != 0))
        }
        Value::Scalar(id, ty) if ty == BOOL => Some(Truth::Value(id)),
        other => {
            let found = match other.scalar_ty() {
                Some(Some(ty)) => types::name(ty),
                Some(None) => "a number".into(),
                None => other.describe().into(),
            };
            let message = format!("expected a condition, found {found}");
            lower.fail(
                Diagnostic::new(codes::NOT_A_CONDITION, message, expr.span, "not a condition")
                    .help("compare it, such as `… != 0`"),
            )
        }
    }
}

fn comparison(lower: &mut Lower<'_>, op: BinOp, a: &Expr, b: &Expr, span: Span) -> Option<Truth> {
    if let Some(side) = [a, b].into_iter().find(|e| constant::prefix_range(&e.kind).is_some()) {
        let message = "a prefix stands for many addresses";
        return lower.fail(
            Diagnostic::new(codes::NOT_A_VALUE, message, side.span, "not a single value")
                .help("test membership: `ip.src in 10.0.0.0/8`"),
        );
    }
    let (x, y) = sides(lower, a, b);
    let (x, y) = (x?, y?);
    if let (Value::Record(x), Value::Record(y)) = (&x, &y) {
        return same_records(lower, op, x, y, span);
    }
    let (ta, tb) = operators::operand_types(lower, (&x, a.span), (&y, b.span))?;
    if let (Value::Const(x), Value::Const(y), None, None) = (&x, &y, ta, tb) {
        return Some(Truth::Known(arith::compare(op, x.value, y.value)));
    }
    let ty = match arith::common(ta, tb) {
        Ok(ty) => ty,
        Err(wrong) => return lower.fail(say::operands(wrong, op, ta, tb, span)),
    };
    if !ordered(ty.kind) && !matches!(op, BinOp::Eq | BinOp::Ne) {
        let wrong = arith::Wrong::Operator;
        return lower.fail(say::operands(wrong, op, Some(ty), Some(ty), span));
    }
    if let (Value::Const(x), Value::Const(y)) = (&x, &y) {
        let first = say::fit(*x, ty, a.span, lower.diags);
        let second = say::fit(*y, ty, b.span, lower.diags);
        return Some(Truth::Known(arith::compare(op, first?, second?)));
    }
    let (first, second) =
        (operators::coerce(lower, x, ty, a.span), operators::coerce(lower, y, ty, b.span));
    let (a, b) = (first?, second?);
    let op = cmp_op(op);
    Some(Truth::Value(lower.b.emit(BOOL, |out| Op::Cmp { out, op, a, b })))
}

/// The values of both sides of a comparison. A text is a number of the other side's type.
fn sides(lower: &mut Lower<'_>, a: &Expr, b: &Expr) -> (Option<Value>, Option<Value>) {
    if let ExprKind::Str(words) = &a.kind {
        let y = lower.value(b, None);
        return (text_beside(lower, (words, a), b, y.as_ref()), y);
    }
    let x = lower.value(a, None);
    let y = match &b.kind {
        ExprKind::Str(words) => text_beside(lower, (words, b), a, x.as_ref()),
        _ => lower.value(b, None),
    };
    (x, y)
}

/// The value of a text that is compared with another value.
fn text_beside(
    lower: &mut Lower<'_>,
    (words, expr): (&str, &Expr),
    beside: &Expr,
    other: Option<&Value>,
) -> Option<Value> {
    if let Some(field) = known_field(beside) {
        let message = format!("`{field}` is a number, not a text");
        let wrong = Diagnostic::new(codes::TYPE_MISMATCH, message, expr.span, "a text");
        return lower.fail(wrong.help(match field.ends_with("tcp.flags") {
            true => {
                format!("`{field} & SYN != 0` tests a flag, `{field} == SYN | ACK` all of them")
            }
            false => "write the number without quotes".to_owned(),
        }));
    }
    if let Some(Value::Record(parts)) = other
        && let [(_, _, types::LENGTH), words @ ..] = parts.as_slice()
    {
        let values = bytes::value(lower, expr, words.len())?;
        let named = parts.iter().zip(values);
        return Some(Value::Record(
            named.map(|((name, _, ty), id)| (name.clone(), id, *ty)).collect(),
        ));
    }
    let Some(ty) = other.and_then(Value::scalar_ty).flatten() else {
        return lower.value(expr, None);
    };
    if let Some(number) = constant::text(words, ty) {
        return Some(Value::Const(number));
    }
    let bytes = words.len();
    let message = format!("a text of {} is no {}", say::count(bytes, "byte"), types::name(ty));
    let wrong = Diagnostic::new(codes::TYPE_MISMATCH, message, expr.span, "");
    lower.fail(wrong.help(match bytes {
        1..=16 => format!("a `u{}` has as many bytes", 8 * bytes),
        _ => "write `\"…\" at payload` to test for a long text".to_owned(),
    }))
}

/// The name of a field of a header that Braid knows, also inside of tunnels and quotes.
fn known_field(expr: &Expr) -> Option<String> {
    let ExprKind::Path(path) = &expr.kind else { return None };
    let name = crate::ast::joined(path);
    let mut own = path.parts.iter().rev().map(|part| part.text.as_str());
    let (field, header) = (own.next()?, own.next()?);
    Field::by_name(&format!("{header}.{field}")).map(|_| name)
}

/// Compares records of one type, such as strings.
fn same_records(
    lower: &mut Lower<'_>,
    op: BinOp,
    x: &[(String, ValueId, Ty)],
    y: &[(String, ValueId, Ty)],
    span: Span,
) -> Option<Truth> {
    let alike = types::same_parts(x, y) || types::is_string(x) && types::is_string(y);
    if !alike || !matches!(op, BinOp::Eq | BinOp::Ne) {
        let message = "records are compared by `==` and `!=`, if they have the same parts";
        return lower.fail(Diagnostic::new(codes::BAD_OPERANDS, message, span, ""));
    }
    let mut all = lower.b.constant(BOOL, 1);
    let [x, y] = [x, y].map(|side| side.iter().map(|(_, id, _)| *id).collect::<Vec<_>>());
    let words = x.len().max(y.len()) - 1;
    let (x, y) = (bytes::padded(lower, x, words), bytes::padded(lower, y, words));
    for (a, b) in x.into_iter().zip(y) {
        let same = lower.b.emit(BOOL, |out| cmp(out, CmpOp::Eq, a, b));
        all = lower.b.bin(BOOL, IrBin::And, all, same);
    }
    Some(Truth::Value(match op {
        BinOp::Eq => all,
        _ => lower.b.complement(all, BOOL),
    }))
}

/// Lowers `has HEADER`.
fn has(lower: &mut Lower<'_>, path: &Path, yes: BlockId, no: BlockId) {
    let name = crate::ast::joined(path);
    if let Some(header) = lower.module.header(&name) {
        if headers::has(lower, header, path.span, yes, no).is_none() {
            either(&mut lower.b, yes, no);
        }
        return;
    }
    let Some(header) = Header::by_name(&name) else {
        let known = HEADERS.iter().map(|(_, name)| *name).chain(lower.module.header_names());
        lower.say(
            Diagnostic::new(
                codes::UNKNOWN_HEADER,
                format!("there is no header `{name}`"),
                path.span,
                "expected a header",
            )
            .help_if(header_help(&name).or_else(|| did_you_mean_help(&name, known))),
        );
        return either(&mut lower.b, yes, no);
    };
    if !flow::knows_header(lower, header) && !needs::packet(lower, path.span) {
        return either(&mut lower.b, yes, no);
    }
    if lower.b.facts.knows(header, false) {
        lower.b.jump(yes, Vec::new());
    } else if lower.b.facts.lacks(header, false) {
        lower.b.jump(no, Vec::new());
    } else {
        let cond = lower.b.emit(BOOL, |out| Op::Has { out, header });
        lower.b.branch_on_header(cond, header, yes, no);
    }
}

/// Lowers `ITEM in SET`.
fn membership(lower: &mut Lower<'_>, item: &Expr, set: &Expr) -> Option<Truth> {
    if let ExprKind::Binary(op, a, b) = &set.kind
        && (constant::is_set_operation(set, &lower.scope.consts)
            || is_bound_set(lower, a)
            || is_bound_set(lower, b))
    {
        return in_both(lower, item, (*op, a, b));
    }
    if names::is_word(item, "packet") {
        // A packet that is not IP matches no rule.
        if needs::packet(lower, item.span) {
            needs::header(lower, Header::Inet, false, item.span, "`packet in …`")?;
        }
        return calls::apply_rules(lower, set).map(|(pass, _)| Truth::Value(pass));
    }
    if let Some(Binding::Param(param)) = names::bare(&lower.scope, set) {
        let ty = lower.model.params.get(param.0 as usize)?.ty.clone();
        match ty {
            ParamTy::Routes => {
                return calls::route(lower, item, param).map(|(found, _)| Truth::Value(found));
            }
            ParamTy::Set(ty) => return in_set(lower, item, ty, SetRef::Param(param)),
            ParamTy::Strings(_) | ParamTy::Hosts => {
                return strings::in_param(lower, item, param).map(Truth::Value);
            }
            ParamTy::List(columns) | ParamTy::Backends(columns) => {
                if let [(name, ty)] = columns.as_slice()
                    && name.is_empty()
                {
                    return in_set(lower, item, *ty, SetRef::List(param, 0));
                }
                let message = "this list has several columns";
                let help =
                    format!("name one: `{}.{}`", param_name(&lower.model, param), columns[0].0);
                let wrong = Diagnostic::new(codes::WRONG_NAME, message, set.span, "which one?");
                return lower.fail(wrong.help(help));
            }
            ParamTy::Rules => {
                let message = "a rule set decides about packets";
                let wrong = Diagnostic::new(codes::WRONG_NAME, message, set.span, "");
                return lower.fail(wrong.help("write `packet in RULES`"));
            }
            _ => {}
        }
    }
    if let Some((ty, set)) = column(lower, set)? {
        return in_set(lower, item, ty, set);
    }
    in_written(lower, item, set)
}

/// Lowers `ITEM in A | B`, `ITEM in A & B` or `ITEM in A - B`.
fn in_both(lower: &mut Lower<'_>, item: &Expr, (op, a, b): (BinOp, &Expr, &Expr)) -> Option<Truth> {
    let ops = [BinOp::BitOr, BinOp::BitAnd, BinOp::Sub];
    if !ops.contains(&op) {
        let message = "sets are combined by `|`, `&` and `-`";
        return lower.fail(Diagnostic::new(codes::BAD_OPERANDS, message, a.span.to(b.span), ""));
    }
    // The item is computed once.
    if !matches!(item.kind, ExprKind::Path(_)) {
        let value = lower.value(item, None)?;
        let name = Ident { text: "(item)".to_owned(), span: item.span };
        let path = Path { parts: vec![name], span: item.span };
        let item = Expr { kind: ExprKind::Path(path), span: item.span };
        return lower.scoped(|lower| {
            lower.scope.bind("(item)", value);
            in_both(lower, &item, (op, a, b))
        });
    }
    let (x, y) = (membership(lower, item, a), membership(lower, item, b));
    let (x, mut y) = (truth_value(lower, x?), truth_value(lower, y?));
    if op == BinOp::Sub {
        y = lower.b.complement(y, BOOL);
    }
    let combine = if op == BinOp::BitOr { IrBin::Or } else { IrBin::And };
    Some(Truth::Value(lower.b.bin(BOOL, combine, x, y)))
}

fn truth_value(lower: &mut Lower<'_>, truth: Truth) -> ValueId {
    match truth {
        Truth::Known(known) => lower.b.constant(BOOL, known.into()),
        Truth::Value(value) => value,
    }
}

/// Whether an expression is a set or a list that a parameter has, or combines one with others.
fn is_bound_set(lower: &Lower<'_>, set: &Expr) -> bool {
    match &set.kind {
        ExprKind::Binary(_, a, b) => is_bound_set(lower, a) || is_bound_set(lower, b),
        ExprKind::Path(path) => {
            let first = path.parts.first().map(|part| part.text.as_str()).unwrap_or_default();
            let Some(Binding::Param(param)) = lower.scope.binding(first) else { return false };
            let ty = lower.model.params.get(param.0 as usize).map(|decl| &decl.ty);
            lower.scope.local(first).is_none()
                && ty.is_some_and(|ty| !matches!(ty, ParamTy::Scalar(_) | ParamTy::Str))
        }
        _ => false,
    }
}

fn param_name(model: &Model, param: braid_ir::model::ParamId) -> &str {
    model.params.get(param.0 as usize).map_or("", |decl| &decl.name)
}

/// Resolves `LIST.COLUMN` as a set. `Some(None)` when the expression is not of this form.
fn column(lower: &mut Lower<'_>, set: &Expr) -> Option<Option<(Ty, SetRef)>> {
    let ExprKind::Path(path) = &set.kind else { return Some(None) };
    let [list, part] = path.parts.as_slice() else { return Some(None) };
    let Some(Binding::Param(param)) = lower.scope.binding(&list.text) else { return Some(None) };
    let columns = match &lower.model.params.get(param.0 as usize)?.ty {
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
            lower.fail(diagnostic)
        }
    }
}

fn in_set(lower: &mut Lower<'_>, item: &Expr, ty: Ty, set: SetRef) -> Option<Truth> {
    let value = lower.value(item, Some(ty))?;
    if let Value::Scalar(address, types::ADDR) = value
        && let Some(found) = versions::in_set_of(&mut lower.b, address, ty, &set)
    {
        return Some(Truth::Value(found));
    }
    let a = operators::coerce(lower, value, ty, item.span)?;
    Some(Truth::Value(lower.b.emit(BOOL, |out| Op::InSet { out, a, set })))
}

/// Tests membership in a written set. Constants are tested together, other members one by one.
fn in_written(lower: &mut Lower<'_>, item: &Expr, set: &Expr) -> Option<Truth> {
    let (a, ty) = match lower.value(item, None)? {
        Value::Scalar(id, ty) => (id, ty),
        Value::Const(arith::Const { value, ty: Some(ty) }) => (lower.b.constant(ty, value), ty),
        Value::Const(_) => return lower.fail(say::unclear(item.span)),
        Value::Record(parts) if types::is_string(&parts) => {
            return strings::in_written(lower, &parts, set).map(Truth::Value);
        }
        other => {
            let found = other.describe();
            return lower.fail(say::expected_type("a single value", found, item.span));
        }
    };
    let mut constants = Vec::new();
    let mut tests = Vec::new();
    set_parts(lower, set, a, ty, &mut constants, &mut tests)?;
    let constants = IntervalSet::new(constants);
    if !constants.is_empty() {
        let set = SetRef::Const(constants);
        tests.push(lower.b.emit(BOOL, |out| Op::InSet { out, a, set }));
    }
    let mut tests = tests.into_iter();
    let Some(mut any) = tests.next() else { return Some(Truth::Known(false)) };
    for test in tests {
        any = lower.b.bin(BOOL, IrBin::Or, any, test);
    }
    Some(Truth::Value(any))
}

fn set_parts(
    lower: &mut Lower<'_>,
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
                whole = set_parts(lower, member, a, ty, constants, tests).and(whole);
            }
            whole
        }
        ExprKind::Prefix4(..) | ExprKind::Prefix6(..) => lower.eval().intervals(set, ty, constants),
        ExprKind::Range(from, to) => {
            let (low, high) = (lower.value(from, Some(ty)), lower.value(to, Some(ty)));
            match (low?, high?) {
                (Value::Const(low), Value::Const(high)) => {
                    let low = say::fit(low, ty, from.span, lower.diags)?;
                    let high = say::fit(high, ty, to.span, lower.diags)?;
                    if low > high {
                        return lower.fail(constant::empty_range(set.span));
                    }
                    if let Some(wrong) = addr::mixed(ty, low, high, set.span) {
                        return lower.fail(wrong);
                    }
                    constants.push((low, high));
                }
                (low, high) => {
                    let low = operators::coerce(lower, low, ty, from.span)?;
                    let high = operators::coerce(lower, high, ty, to.span)?;
                    let above = lower.b.emit(BOOL, |out| cmp(out, CmpOp::Ge, a, low));
                    let below = lower.b.emit(BOOL, |out| cmp(out, CmpOp::Le, a, high));
                    tests.push(lower.b.bin(BOOL, IrBin::And, above, below));
                }
            }
            Some(())
        }
        ExprKind::Path(_) if matches!(names::bare(&lower.scope, set), Some(Binding::Const(_))) => {
            lower.eval().intervals(set, ty, constants)
        }
        _ => {
            if let Some(wrong) = constant::difference(set) {
                return lower.fail(wrong);
            }
            match lower.value(set, Some(ty))? {
                Value::Const(constant) => {
                    let word = say::fit(constant, ty, set.span, lower.diags)?;
                    constants.push((word, word));
                }
                other => {
                    let b = operators::coerce(lower, other, ty, set.span)?;
                    tests.push(lower.b.emit(BOOL, |out| cmp(out, CmpOp::Eq, a, b)));
                }
            }
            Some(())
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

/// Whether an expression has the form of a predicate.
pub fn is_predicate(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Not(_)
        | ExprKind::In(..)
        | ExprKind::Matches(..)
        | ExprKind::Exists(_)
        | ExprKind::Has(_)
        | ExprKind::From(_) => true,
        ExprKind::At(at) => matches!(at.what, Chunk::Text(_)),
        ExprKind::Binary(op, ..) => is_comparison(*op) || matches!(op, BinOp::And | BinOp::Or),
        _ => false,
    }
}

/// Whether values of this kind are ordered.
fn ordered(kind: Kind) -> bool {
    kind != Kind::Bool
}
