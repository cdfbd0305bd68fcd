//! Lowers searches for patterns: in the payload, in a part of it, in a string, and in the bytes of
//! a stream.

use braid_externs::PatternSet;
use braid_ir::model::{Haystack, Op, ParamDecl, ParamId, ParamTy, StreamText, ValueId};
use braid_ir::value::ParamValue;

use super::facts::Amount;
use super::lower::Lower;
use super::names::{self, is_word};
use super::scope::{Binding, Value};
use super::types::{BOOL, U32};
use super::{bytes, flow, headers, messages, needs, patterns, strings};
use crate::ast::{Expr, ExprKind, joined};
use crate::diag::{Diagnostic, codes};

/// What a search looks at.
enum Searched {
    /// Bytes that the packet brings, or a string of the program.
    Here(Haystack),
    /// The bytes of a stream, or a string of its HTTP messages.
    Stream(Option<StreamText>),
}

/// Lowers `PLACE matches PATTERNS` and `which(PLACE, PATTERNS)`: whether a pattern matches, and the
/// lowest number of one that does.
pub fn lowest(lower: &mut Lower<'_>, place: &Expr, set: &Expr) -> Option<(ValueId, ValueId)> {
    let of = match searched(lower, place)? {
        Searched::Here(Haystack::Payload) => None,
        Searched::Here(of) => {
            let [found, number, ..] = find_in(lower, of, set)?;
            return Some((found, number));
        }
        Searched::Stream(text) => Some(text),
    };
    let param = pattern_set(lower, set, of == Some(None))?;
    let (found, number) = (lower.b.value(BOOL), lower.b.value(U32));
    lower.b.op(match of {
        Some(text) => Op::StreamMatch { found, number, param, text },
        None => Op::Patterns { found, number, param },
    });
    Some((found, number))
}

/// Lowers `find(PLACE, PATTERNS)`. The value says which pattern matches, and where.
pub fn find(lower: &mut Lower<'_>, place: &Expr, set: &Expr) -> Option<(ValueId, Value)> {
    let part = |(name, id): (&str, ValueId)| (name.to_owned(), id, U32);
    match searched(lower, place)? {
        Searched::Here(of) => {
            let [found, number, start, end] = find_in(lower, of, set)?;
            let parts = [("number", number), ("start", start), ("end", end)];
            Some((found, Value::Record(parts.map(part).to_vec())))
        }
        // A match may begin in bytes that came before, so it has no place here.
        Searched::Stream(text) => {
            let param = pattern_set(lower, set, text.is_none())?;
            let (found, number) = (lower.b.value(BOOL), lower.b.value(U32));
            lower.b.op(Op::StreamMatch { found, number, param, text });
            Some((found, Value::Record(vec![part(("number", number))])))
        }
    }
}

/// A search for a place: whether there is a match, the pattern's number, and the match's start and
/// end.
fn find_in(lower: &mut Lower<'_>, of: Haystack, set: &Expr) -> Option<[ValueId; 4]> {
    let param = pattern_set(lower, set, false)?;
    let outs = [BOOL, U32, U32, U32].map(|ty| lower.b.value(ty));
    lower.b.op(Op::FindPatterns { outs, param, of });
    Some(outs)
}

/// What the first operand of a search stands for.
fn searched(lower: &mut Lower<'_>, place: &Expr) -> Option<Searched> {
    if let Some(text) = messages::searched(lower, place) {
        return Some(Searched::Stream(Some(text?)));
    }
    let is_data = matches!(&place.kind, ExprKind::Path(path) if joined(path) == "stream.data");
    if lower.mode.is_stream() && is_data {
        return flow::has_bytes(lower, place.span).then_some(Searched::Stream(None));
    }
    if is_word(place, "payload") {
        return needs::packet(lower, place.span).then_some(Searched::Here(Haystack::Payload));
    }
    if let ExprKind::Index(base, index) = &place.kind
        && is_word(base, "payload")
    {
        return part(lower, index, place).map(Searched::Here);
    }
    let mut values = strings::string(lower, place)?.into_iter().map(|(_, id, _)| id);
    Some(Searched::Here(Haystack::Text(values.next()?, values.collect())))
}

/// The part of the payload that `payload[FIRST..LAST]` names.
fn part(lower: &mut Lower<'_>, index: &[Expr], place: &Expr) -> Option<Haystack> {
    let [Expr { kind: ExprKind::Range(first, last), .. }] = index else {
        let message = "a part of the payload has a first and a last byte";
        let wrong = Diagnostic::new(codes::BAD_OPERANDS, message, place.span, "");
        return lower.fail(wrong.help("write `payload[FIRST..LAST]`, such as `payload[0..99]`"));
    };
    if !needs::packet(lower, place.span) {
        return None;
    }
    let (from, to) = (bytes::amount(lower, first), bytes::amount(lower, last));
    let (from, to) = (from?, to?);
    if let (Amount::Const(from), Amount::Const(to)) = (from, to)
        && from > to
    {
        let message = "this part of the payload has no bytes";
        let wrong = Diagnostic::new(codes::BAD_OPERANDS, message, place.span, "");
        return lower.fail(wrong.help("write the smaller number first: `payload[0..99]`"));
    }
    Some(Haystack::Part(headers::value(lower, from), headers::value(lower, to)))
}

/// The parameter with the patterns of a search. Patterns that are written in the program become the
/// value of a parameter without a name that programs can write.
fn pattern_set(lower: &mut Lower<'_>, set: &Expr, of_stream: bool) -> Option<ParamId> {
    let written = match names::bare(&lower.scope, set) {
        Some(Binding::Const(value)) => value.clone(),
        _ => set.clone(),
    };
    let (ExprKind::Set(members) | ExprKind::List(members)) = &written.kind else {
        return names::special(lower, set, "patterns", |ty| matches!(ty, ParamTy::Patterns));
    };
    let found = patterns::of(members, set.span, lower.diags)?;
    if of_stream && let Err(errors) = found.check_streams() {
        for error in errors {
            let place = error.index().and_then(|index| members.get(index)).unwrap_or(set);
            let message = "this pattern cannot be searched in streams";
            let wrong =
                Diagnostic::new(codes::STREAM_PATTERN, message, place.span, "needs later bytes");
            lower.say(wrong.note(error.to_string()));
        }
        return None;
    }
    Some(param_of(lower, found))
}

/// The parameter for patterns that are written in the program.
fn param_of(lower: &mut Lower<'_>, patterns: PatternSet) -> ParamId {
    let params = &mut lower.model.params;
    let default = Some(ParamValue::Patterns(patterns));
    let is_it = |param: &ParamDecl| param.is_written() && param.default == default;
    let at = params.iter().position(is_it).unwrap_or_else(|| {
        let number = 1 + params.iter().filter(|param| param.is_written()).count();
        let name = format!("patterns.{number}");
        params.push(ParamDecl { name, ty: ParamTy::Patterns, default });
        params.len() - 1
    });
    ParamId(u32::try_from(at).unwrap_or(u32::MAX))
}
