//! Patterns that are written in a file.

use braid_externs::PatternSet;
use braid_externs::patterns::{Matcher, Pattern};

use crate::ast::{Arg, Expr, ExprKind, Span};
use crate::diag::{Diagnostic, Diagnostics, codes};

/// The patterns of a set of texts, of `nocase("TEXT")` and of `regex("EXPRESSION")`. Their numbers
/// are their places, from 1.
pub fn of(members: &[Expr], span: Span, diags: &mut Diagnostics) -> Option<PatternSet> {
    let mut literals = Vec::new();
    for (number, member) in (1..).zip(members) {
        let Some(matcher) = matcher(member) else {
            let message =
                "a pattern is a text in quotes, nocase(\"TEXT\") or regex(\"EXPRESSION\")";
            let wrong = Diagnostic::new(codes::BAD_PARAMETER_VALUE, message, member.span, "");
            diags.push(wrong);
            return None;
        };
        literals.push(Pattern { number, matcher });
    }
    PatternSet::new(literals)
        .map_err(|errors| {
            for error in errors {
                let place = error.index().and_then(|index| members.get(index));
                let place = place.map_or(span, |member| member.span);
                let message = error.to_string();
                diags.push(Diagnostic::new(codes::BAD_PARAMETER_VALUE, message, place, ""));
            }
        })
        .ok()
}

/// Whether an expression is a pattern that is no plain text.
pub fn is_pattern(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::Call(..)) && matcher(expr).is_some()
}

/// What a member of a set of patterns matches. `None` if it is no pattern.
fn matcher(member: &Expr) -> Option<Matcher> {
    let literal = |text: &str, nocase| Matcher::Literal { bytes: text.into(), nocase };
    match &member.kind {
        ExprKind::Str(text) => Some(literal(text, false)),
        ExprKind::Call(name, args) => {
            let [Arg { name: None, value }] = args.as_slice() else { return None };
            let ExprKind::Str(text) = &value.kind else { return None };
            match name.text.as_str() {
                "nocase" => Some(literal(text, true)),
                "regex" => Some(Matcher::Regex { source: text.clone(), nocase: false }),
                _ => None,
            }
        }
        _ => None,
    }
}
