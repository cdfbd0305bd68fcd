//! Evaluates the values of parameters: from a chain, from a default, or from a control line.

use braid_ir::model::{ParamTy, Ty};
use braid_ir::strings::{StringError, StringSet};
use braid_ir::value::{Backend, MAX_MEMBERS, ParamValue};

use super::constant::{Eval, prefix_range};
use super::env::Env;
use super::{files, patterns, say, types};
use crate::ast::{Expr, ExprKind, Ident, Span};
use crate::diag::{Diagnostic, Diagnostics, codes};

/// The most members of a pool.
pub const MAX_POOL: u128 = 1 << 24;

/// The value of a parameter of type `ty`. `None` after an error, which is then reported.
pub fn param_value(
    ty: &ParamTy,
    expr: &Expr,
    env: &Env<'_>,
    diags: &mut Diagnostics,
) -> Option<ParamValue> {
    let resolved = resolve(expr, env);
    let expr = resolved.unwrap_or(expr);
    if let ExprKind::Call(name, args) = &expr.kind
        && files::is_file_value(&name.text)
    {
        return files::value(ty, name, args, expr.span, env, diags);
    }
    match ty {
        ParamTy::Scalar(ty) => {
            Eval::new(env.constants, diags).number(expr, *ty).map(ParamValue::Scalar)
        }
        ParamTy::Set(ty) => Eval::new(env.constants, diags).set(expr, *ty).map(ParamValue::Set),
        ParamTy::Pool(ty, _) => pool(*ty, expr, env, diags),
        ParamTy::List(columns) => rows(columns, expr, env, diags).map(ParamValue::List),
        ParamTy::Backends(columns) => {
            let rows = rows(columns, expr, env, diags)?;
            Some(ParamValue::Backends(rows.into_iter().map(Backend::up).collect()))
        }
        ParamTy::Str => match &expr.kind {
            ExprKind::Str(text) => Some(ParamValue::Str(text.clone())),
            _ => wrong("a text in quotes", expr, diags),
        },
        ParamTy::Rules => wrong("rules(\"FILE\") or classbench(\"FILE\", …)", expr, diags),
        ParamTy::Signatures => wrong("signatures(\"FILE\")", expr, diags),
        ParamTy::Keys => wrong("keys(\"FILE\")", expr, diags),
        ParamTy::Routes => wrong("routes(\"FILE\")", expr, diags),
        ParamTy::Patterns => {
            let (ExprKind::Set(members) | ExprKind::List(members)) = &expr.kind else {
                return wrong("patterns(\"FILE\") or texts { \"A\", \"B\" }", expr, diags);
            };
            patterns::of(members, expr.span, diags).map(ParamValue::Patterns)
        }
        ParamTy::Strings(most) => {
            let wanted = "strings(\"FILE\") or texts { \"A\", \"B\" }";
            let all = texts(expr, wanted, diags)?;
            let most = usize::from(*most);
            if let Some((text, span)) = all.iter().find(|(text, _)| text.len() > most) {
                let len = say::count(text.len(), "byte");
                let message = format!("a text of {len} is no bytes<{most}>");
                diags.push(Diagnostic::new(codes::BAD_PARAMETER_VALUE, message, *span, ""));
                return None;
            }
            let set = StringSet::exact(all.iter().map(|(text, _)| text.as_bytes().to_vec()));
            string_set(set, &all, diags)
        }
        ParamTy::Hosts => {
            let wanted = "hosts(\"FILE\") or names { \"example.org\", \"*.example.org\" }";
            let all = texts(expr, wanted, diags)?;
            string_set(StringSet::hosts(all.iter().map(|(text, _)| text.as_bytes())), &all, diags)
        }
    }
}

/// The texts of a set.
fn texts<'e>(
    expr: &'e Expr,
    wanted: &str,
    diags: &mut Diagnostics,
) -> Option<Vec<(&'e str, Span)>> {
    let (ExprKind::Set(members) | ExprKind::List(members)) = &expr.kind else {
        return wrong(wanted, expr, diags);
    };
    let text = |member: &'e Expr| match &member.kind {
        ExprKind::Str(text) => Some((text.as_str(), member.span)),
        _ => wrong("texts in quotes", member, diags),
    };
    members.iter().map(text).collect()
}

/// The value of a set of strings, or an error at the text that it cannot hold.
fn string_set(
    set: Result<StringSet, (usize, StringError)>,
    texts: &[(&str, Span)],
    diags: &mut Diagnostics,
) -> Option<ParamValue> {
    match set {
        Ok(set) => Some(ParamValue::Strings(set)),
        Err((at, why)) => {
            let span = texts.get(at)?.1;
            let message = why.to_string();
            diags.push(Diagnostic::new(codes::BAD_PARAMETER_VALUE, message, span, ""));
            None
        }
    }
}

/// Follows a name to its constant.
fn resolve<'a>(expr: &'a Expr, env: &Env<'a>) -> Option<&'a Expr> {
    let mut found = None;
    let mut at = expr;
    for _ in 0..64 {
        let ExprKind::Path(path) = &at.kind else { break };
        let [name] = path.parts.as_slice() else { break };
        let Some(value) = env.constants.find(&name.text) else { break };
        found = Some(value);
        at = value;
    }
    found
}

fn wrong<T>(expected: &str, expr: &Expr, diags: &mut Diagnostics) -> Option<T> {
    if expr.kind != ExprKind::Error {
        let message = format!("the parameter needs {expected}");
        diags.push(Diagnostic::new(codes::BAD_PARAMETER_VALUE, message, expr.span, "is not that"));
    }
    None
}

fn pool(ty: Ty, expr: &Expr, env: &Env<'_>, diags: &mut Diagnostics) -> Option<ParamValue> {
    if matches!(expr.kind, ExprKind::Str(_) | ExprKind::Record(_)) {
        return wrong("a set or range for the pool", expr, diags);
    }
    let members = Eval::new(env.constants, diags).set(expr, ty)?;
    let count = members.len();
    if count == 0 || count > MAX_POOL {
        let message = format!("a pool has 1 to {MAX_POOL} members, found {count}");
        diags.push(Diagnostic::new(codes::BAD_PARAMETER_VALUE, message, expr.span, ""));
        return None;
    }
    Some(ParamValue::Pool(members))
}

/// The members of a list, with one value for each column.
fn rows(
    columns: &[(String, Ty)],
    expr: &Expr,
    env: &Env<'_>,
    diags: &mut Diagnostics,
) -> Option<Vec<Vec<u128>>> {
    let members = match &expr.kind {
        ExprKind::List(members) => members.as_slice(),
        // `{ a, b }` is a list too, unless the members are records.
        ExprKind::Set(members) if is_scalar(columns) => members.as_slice(),
        _ => {
            let member = if is_scalar(columns) { "A, B" } else { "{ … }, { … }" };
            return wrong(&format!("a list `[{member}]`"), expr, diags);
        }
    };
    let mut rows = Vec::with_capacity(members.len());
    let mut whole = true;
    for member in members {
        whole &= row(columns, member, env, diags, &mut rows).is_some();
        if rows.len() > MAX_MEMBERS {
            let message = format!("a list has at most {MAX_MEMBERS} members");
            diags.push(Diagnostic::new(codes::BAD_PARAMETER_VALUE, message, member.span, ""));
            return None;
        }
    }
    whole.then_some(rows)
}

fn is_scalar(columns: &[(String, Ty)]) -> bool {
    matches!(columns, [(name, _)] if name.is_empty())
}

/// Adds the rows of a list's member: one row, or one row for each number of a range.
fn row(
    columns: &[(String, Ty)],
    member: &Expr,
    env: &Env<'_>,
    diags: &mut Diagnostics,
    rows: &mut Vec<Vec<u128>>,
) -> Option<()> {
    if let ([(_, ty)], true) = (columns, is_scalar(columns)) {
        if matches!(member.kind, ExprKind::Range(..)) || prefix_range(&member.kind).is_some() {
            let mut intervals = Vec::new();
            Eval::new(env.constants, diags).intervals(member, *ty, &mut intervals)?;
            let room = MAX_MEMBERS + 1;
            let numbers = intervals.iter().flat_map(|&(low, high)| low..=high);
            rows.extend(numbers.take(room.saturating_sub(rows.len())).map(|number| vec![number]));
        } else {
            rows.push(vec![Eval::new(env.constants, diags).number(member, *ty)?]);
        }
        return Some(());
    }
    let parts = record_parts(columns, member, diags)?;
    let values: Vec<Option<u128>> = columns
        .iter()
        .zip(parts)
        .map(|((_, ty), part)| Eval::new(env.constants, diags).number(part, *ty))
        .collect();
    rows.push(values.into_iter().collect::<Option<_>>()?);
    Some(())
}

/// The expression for each part of a record, by name or in order. `None` when the parts do not fit,
/// which is then reported.
pub fn record_parts<'e>(
    parts: &[(String, Ty)],
    expr: &'e Expr,
    diags: &mut Diagnostics,
) -> Option<Vec<&'e Expr>> {
    match &expr.kind {
        ExprKind::Record(given) => named_parts(parts, given, expr, diags),
        ExprKind::Set(given) if given.len() == parts.len() => Some(given.iter().collect()),
        ExprKind::Set(given) => {
            let message = format!(
                "expected {} of {}, found {}",
                say::count(parts.len(), "part"),
                types::record_name(parts),
                given.len()
            );
            diags.push(Diagnostic::new(codes::RECORD_PARTS, message, expr.span, ""));
            None
        }
        ExprKind::Error => None,
        _ => {
            let record = types::record_name(parts);
            diags.push(say::expected_type(&record, "a single value", expr.span));
            None
        }
    }
}

fn named_parts<'e>(
    parts: &[(String, Ty)],
    given: &'e [(Ident, Expr)],
    expr: &Expr,
    diags: &mut Diagnostics,
) -> Option<Vec<&'e Expr>> {
    if let Some((name, _)) = given.get(types::MAX_PARTS) {
        let message = format!("a record has at most {} parts", types::MAX_PARTS);
        diags.push(Diagnostic::new(codes::RECORD_PARTS, message, name.span, "one too many"));
        return None;
    }
    let before = diags.len() + diags.left_out();
    for (at, (name, _)) in given.iter().enumerate() {
        if !parts.iter().any(|(known, _)| *known == name.text) {
            let known = parts.iter().map(|(known, _)| known.as_str());
            let help = crate::diag::did_you_mean_help(&name.text, known);
            let message = format!("{} has no part `{}`", types::record_name(parts), name.text);
            diags.push(
                Diagnostic::new(codes::RECORD_PARTS, message, name.span, "unknown").help_if(help),
            );
        } else if given[..at].iter().any(|(earlier, _)| earlier.text == name.text) {
            let message = format!("the part `{}` is given twice", name.text);
            diags.push(Diagnostic::new(codes::RECORD_PARTS, message, name.span, "again"));
        }
    }
    let found: Vec<Option<&Expr>> = parts
        .iter()
        .map(|(name, _)| given.iter().find(|(n, _)| n.text == *name).map(|(_, value)| value))
        .collect();
    let missing: Vec<String> = parts
        .iter()
        .zip(&found)
        .filter(|(_, found)| found.is_none())
        .map(|((name, _), _)| format!("`{name}`"))
        .collect();
    if !missing.is_empty() {
        let message = format!("the record lacks {}", missing.join(", "));
        diags.push(Diagnostic::new(codes::RECORD_PARTS, message, expr.span, "give every part"));
    }
    if diags.len() + diags.left_out() > before { None } else { found.into_iter().collect() }
}
