//! Lowers bytes of the packet that are no fields: numbers in the payload or in a TCP option, such
//! as `u16 at payload + 2`, which may be read and assigned, and texts there, which may be tested
//! for.
//!
//! The payload or the option may be too short. In a predicate the atom is then false, like an atom
//! that reads an absent header. A statement needs an `else`, or must follow a test: a predicate
//! that has read the same bytes of the payload, or bytes behind them, at a constant offset.

use braid_ir::model::{Area, BinOp, BlockId, CmpOp, Kind, Op, Ty, ValueId};
use braid_packet::Header;

use super::arith::Const;
use super::facts::Amount;
use super::lower::Lower;
use super::scope::Value;
use super::types::{self, BOOL, U32, uint};
use super::{constant, headers, needs, operators, say};
use crate::ast::{At, Chunk, Expr, ExprKind, Ident, OptionOf, Span, Stmt, Within};
use crate::diag::{Diagnostic, codes};

/// The most bytes of a text that a predicate tests for.
const MOST_TEXT: usize = 256;

/// The most bytes that one operation reads.
const STRIDE: usize = types::WORD;

/// Bytes of the payload or of an option.
pub struct Found {
    /// Whether all of them are there.
    pub found: ValueId,
    /// Their value: a number or a string.
    pub value: Value,
    /// Their end in the payload, if that is constant.
    end: Option<u32>,
}

fn is_option(at: &At) -> bool {
    matches!(at.within, Within::Option(..))
}

/// The name of the place of bytes, in messages.
#[must_use]
pub fn place_name(at: &At) -> &'static str {
    if is_option(at) { "the option" } else { "the payload" }
}

/// The value of `TYPE at payload + OFFSET` where it needs no `else`.
pub fn read(lower: &mut Lower<'_>, at: &At, span: Span) -> Option<Value> {
    let Found { found, value, end } = load(lower, at, span)?;
    if end.is_some_and(|end| lower.b.facts.has_payload(end)) {
        return Some(value);
    }
    let Some(absent) = lower.absent else {
        let wrong = may_be_short(at, span, "and then has no value");
        let ty = match &at.what {
            Chunk::Number(ty) => ty.text.clone(),
            Chunk::Bytes(count, _) => format!("bytes<{count}>"),
            Chunk::Text(_) => String::new(),
        };
        let place = match &at.within {
            Within::Payload => "payload",
            Within::Option(of, _) => of.name(),
            Within::Header(name) => &name.text,
        };
        return lower.fail(wrong.help(format!("write `let x = {ty} at {place} + … else drop;`")));
    };
    let next = lower.b.block();
    lower.b.branch_on_payload(found, end, next, absent);
    lower.b.start(next);
    Some(value)
}

/// The number `TYPE at payload + OFFSET`, or a string there.
pub fn load(lower: &mut Lower<'_>, at: &At, span: Span) -> Option<Found> {
    if let Chunk::Bytes(count, len) = &at.what {
        return string(lower, (*count, len.as_ref()), at, span);
    }
    let ty = number_type(lower, at, span)?;
    let ty = whole_bytes(lower, ty)?;
    if !needs::packet(lower, span) {
        return None;
    }
    let area = area(lower, at)?;
    let (offset, end) = place(lower, at, ty.width)?;
    let (found, out) = (lower.b.value(BOOL), lower.b.value(ty));
    lower.b.op(Op::LoadBytes { found, out, area, offset });
    Some(Found { found, value: Value::Scalar(out, ty), end })
}

/// The string `bytes<COUNT> at payload + OFFSET for LEN`.
fn string(
    lower: &mut Lower<'_>,
    (count, len): (u128, Option<&Expr>),
    at: &At,
    span: Span,
) -> Option<Found> {
    let parts = types::bytes(count, span, lower.diags)?;
    if !needs::packet(lower, span) {
        return None;
    }
    let area = area(lower, at)?;
    let (offset, _) = place(lower, at, 8)?;
    let len = match len {
        Some(len) => {
            let len = amount(lower, len)?;
            headers::value(lower, len)
        }
        None => lower.b.constant(U32, count),
    };
    let short = lower.b.clamp(len, U32, types::LENGTH);
    let found = lower.b.value(BOOL);
    let outs: Vec<_> = parts.iter().skip(1).map(|(_, ty)| lower.b.value(*ty)).collect();
    lower.b.op(Op::LoadString { found, outs: outs.clone(), area, offset, len });
    let values = [short].into_iter().chain(outs);
    let value = parts.into_iter().zip(values).map(|((name, ty), id)| (name, id, ty)).collect();
    Some(Found { found, value: Value::Record(value), end: None })
}

/// The length and the words of a string with this number of words: an expression, or a text. A
/// string with fewer words gets empty ones.
pub fn value(lower: &mut Lower<'_>, expr: &Expr, words: usize) -> Option<Vec<ValueId>> {
    if let ExprKind::Str(text) = &expr.kind {
        return text_value(lower, text, words, expr.span);
    }
    let found = lower.value(expr, None)?;
    if let Value::Record(parts) = &found
        && let [(_, _, types::LENGTH), rest @ ..] = parts.as_slice()
        && rest.len() <= words
    {
        let parts = parts.iter().map(|(_, id, _)| *id).collect();
        return Some(padded(lower, parts, words));
    }
    let wanted = format!("bytes<{}>", words * types::WORD);
    let found = match found {
        Value::Record(parts) => {
            let parts: Vec<_> = parts.into_iter().map(|(name, _, ty)| (name, ty)).collect();
            types::record_name(&parts)
        }
        other => other.describe().to_owned(),
    };
    lower.fail(say::expected_type(&wanted, &found, expr.span))
}

/// The length and the words of a string, with empty words up to this number of words.
pub fn padded(lower: &mut Lower<'_>, mut values: Vec<ValueId>, words: usize) -> Vec<ValueId> {
    if values.len() <= words {
        let empty = lower.b.constant(types::BYTES, 0);
        values.resize(1 + words, empty);
    }
    values
}

/// The length and the words of a text.
fn text_value(lower: &mut Lower<'_>, text: &str, words: usize, span: Span) -> Option<Vec<ValueId>> {
    let most = words * types::WORD;
    if text.len() > most {
        let message = format!("a text of {} is no bytes<{most}>", say::count(text.len(), "byte"));
        return lower.fail(Diagnostic::new(codes::TYPE_MISMATCH, message, span, ""));
    }
    let mut padded = text.as_bytes().to_vec();
    padded.resize(most, 0);
    let len = lower.b.constant(types::LENGTH, text.len() as u128);
    let words = padded
        .chunks(types::WORD)
        .map(|word| lower.b.constant(types::BYTES, constant::number(word)));
    Some([len].into_iter().chain(words).collect())
}

/// Lowers the atom `TEXT at payload + OFFSET`, which branches.
pub fn text(
    lower: &mut Lower<'_>,
    text: &str,
    at: &At,
    span: Span,
    (yes, no): (BlockId, BlockId),
) -> Option<()> {
    if text.is_empty() || text.len() > MOST_TEXT {
        let message = format!("a text that is tested for has 1 to {MOST_TEXT} bytes");
        let label = format!("has {}", text.len());
        return lower.fail(Diagnostic::new(codes::BAD_OPERANDS, message, span, label));
    }
    if !needs::packet(lower, span) {
        return None;
    }
    let area = area(lower, at)?;
    let width = u16::try_from(8 * text.len()).unwrap_or(u16::MAX);
    let (start, end) = place(lower, at, width)?;
    for (nth, chunk) in text.as_bytes().chunks(STRIDE).enumerate() {
        let ty = uint(u16::try_from(8 * chunk.len()).unwrap_or(8));
        let ahead = u128::try_from(nth * STRIDE).unwrap_or(0);
        let ahead = lower.b.constant(U32, ahead);
        let offset = lower.b.bin(U32, BinOp::AddSat, start, ahead);
        let (found, out) = (lower.b.value(BOOL), lower.b.value(ty));
        lower.b.op(Op::LoadBytes { found, out, area, offset });
        let (there, next) = (lower.b.block(), lower.b.block());
        lower.b.branch(found, there, no);
        lower.b.start(there);
        let words = lower.b.constant(ty, constant::number(chunk));
        let same =
            lower.b.emit(BOOL, |same| Op::Cmp { out: same, op: CmpOp::Eq, a: out, b: words });
        lower.b.branch(same, next, no);
        lower.b.start(next);
    }
    if let Some(end) = end {
        lower.b.facts.learn_payload(end);
    }
    lower.b.jump(yes, Vec::new());
    Some(())
}

/// Lowers `TYPE at payload + OFFSET = VALUE else STMT;`.
pub fn assign<'a>(
    lower: &mut Lower<'a>,
    at: &At,
    value: &Expr,
    otherwise: Option<&'a Stmt>,
    span: Span,
) -> Option<()> {
    if let Chunk::Bytes(count, len) = &at.what {
        return replace(lower, (*count, len.as_ref()), at, value, otherwise, span);
    }
    let ty = number_type(lower, at, span)?;
    let ty = whole_bytes(lower, ty)?;
    if !needs::packet(lower, span) {
        return None;
    }
    match at.within {
        Within::Option(OptionOf::Tcp, _) => {
            needs::header(lower, Header::Tcp, false, span, "a TCP option")?;
        }
        Within::Option(of, _) => {
            let message = format!("`{}` can only be read", of.name());
            return lower.fail(Diagnostic::new(codes::NOT_ASSIGNABLE, message, span, ""));
        }
        _ => {}
    }
    let a = lower.typed(value, ty);
    let area = area(lower, at)?;
    let (offset, end) = place(lower, at, ty.width)?;
    // Other packets may be fragments, or errors that quote a packet.
    let may = is_option(at) || lower.b.facts.knows(Header::L4, false);
    let is_known = may && end.is_some_and(|end| lower.b.facts.has_payload(end));
    let ok = lower.b.value(BOOL);
    lower.b.op(Op::StoreBytes { ok, area, offset, a: a? });
    match area {
        Area::Payload => lower.b.facts.stored_payload(),
        _ => lower.b.facts.stored_option(),
    }
    let Some(otherwise) = otherwise else {
        if is_known {
            return Some(());
        }
        let wrong = may_be_short(at, span, "and then nothing changes");
        return lower.fail(wrong.help("write `… = VALUE else drop;`"));
    };
    let (done, gone) = (lower.b.block(), lower.b.block());
    lower.b.branch_on_payload(ok, end, done, gone);
    lower.refused(gone, done, otherwise);
    Some(())
}

/// Lowers `bytes<COUNT> at payload + OFFSET for LEN = STRING else STMT;`.
fn replace<'a>(
    lower: &mut Lower<'a>,
    (count, len): (u128, Option<&Expr>),
    at: &At,
    value: &Expr,
    otherwise: Option<&'a Stmt>,
    span: Span,
) -> Option<()> {
    let parts = types::bytes(count, span, lower.diags)?;
    if is_option(at) {
        let message = "a string in a TCP option cannot be assigned";
        let wrong = Diagnostic::new(codes::NOT_ASSIGNABLE, message, span, "");
        return lower.fail(wrong.help("assign numbers, such as `u32 at tcp.option(…) = …`"));
    }
    if !needs::packet(lower, span) {
        return None;
    }
    let new = self::value(lower, value, parts.len() - 1)?;
    let (offset, _) = place(lower, at, 8)?;
    let old = match len {
        Some(len) => amount(lower, len)?,
        None => Amount::Const(u32::try_from(count).unwrap_or(u32::MAX)),
    };
    let old = headers::value(lower, old);
    let (new, words) = (*new.first()?, new.get(1..)?.to_vec());
    let Some(otherwise) = otherwise else {
        let message = "the payload may be too short, or have no room for more bytes";
        let label = "and then nothing changes";
        let wrong = Diagnostic::new(codes::NEEDS_ELSE, message, span, label);
        return lower.fail(wrong.help("write `… = VALUE else drop;`"));
    };
    let ok = lower.b.value(BOOL);
    lower.b.op(Op::ReplaceBytes { ok, offset, old, new, words });
    lower.b.facts.replaced_payload();
    lower.or_else(ok, otherwise);
    Some(())
}

/// Reports `TYPE at payload += VALUE`, which does not say what happens if there is no old value.
pub fn no_sum(lower: &mut Lower<'_>, span: Span) -> Option<()> {
    let message = "bytes of the packet are assigned with `=`";
    let wrong = Diagnostic::new(codes::NOT_ASSIGNABLE, message, span, "");
    lower.fail(wrong.help("read them first: `let x = … else drop;`"))
}

fn may_be_short(at: &At, span: Span, label: &str) -> Diagnostic {
    let message = match at.what {
        _ if is_option(at) => "the packet may lack this option, or the option may be too short",
        Chunk::Bytes(..) => {
            "the payload may be too short for this string, or the string too long for its type"
        }
        _ => "the payload may be too short for this number",
    };
    Diagnostic::new(codes::NEEDS_ELSE, message, span, label)
}

/// The type of a number. A text is no number, and no place.
fn number_type<'a>(lower: &mut Lower<'_>, at: &'a At, span: Span) -> Option<&'a Ident> {
    let Chunk::Number(ty) = &at.what else {
        let message = "a text cannot be assigned";
        let wrong = Diagnostic::new(codes::NOT_ASSIGNABLE, message, span, "");
        return lower.fail(wrong.help("assign numbers, such as `u32 at payload = …`"));
    };
    Some(ty)
}

/// The type of a number in the packet.
fn whole_bytes(lower: &mut Lower<'_>, name: &Ident) -> Option<Ty> {
    let ty = types::scalar(&name.text).filter(|ty| ty.width.is_multiple_of(8));
    if ty.is_none() {
        let message = format!("`{}` is no type of whole bytes", name.text);
        let wrong = Diagnostic::new(codes::TYPE_MISMATCH, message, name.span, "");
        lower.say(wrong.help("write `u8`, `u16`, `u32`, …, `ip4`, `ip6`, `mac` or `port`"));
    }
    ty
}

/// The area that the bytes are in. Behind a predicate that has read an option, the header that has
/// it is known to be there.
fn area(lower: &mut Lower<'_>, at: &At) -> Option<Area> {
    let Within::Option(of, kind) = &at.within else { return Some(Area::Payload) };
    let (header, what) = match of {
        OptionOf::Tcp => (Header::Tcp, "a TCP option"),
        OptionOf::Ip => (Header::Ip4, "an IPv4 option"),
        OptionOf::Ip6 => (Header::Ip6, "an extension header"),
    };
    if lower.absent.is_some() {
        needs::header(lower, header, false, kind.span, what)?;
    }
    let number = lower.eval().number(kind, uint(8))?;
    match (of, u8::try_from(number).ok()?) {
        (OptionOf::Ip6, number) => Some(Area::Ip6Extension(number)),
        (OptionOf::Tcp, kind @ 2..) => Some(Area::TcpOption(kind)),
        (OptionOf::Ip, kind @ 2..) => Some(Area::IpOption(kind)),
        _ => {
            let message = "options of the kinds 0 and 1 have no value";
            let label = "expected 2 to 255";
            lower.fail(Diagnostic::new(codes::BAD_OPERANDS, message, kind.span, label))
        }
    }
}

/// The offset of bytes in their area (32 bits), and the end of these `width` bits in the payload if
/// that is constant. A larger offset becomes the largest one, where no area has bytes.
fn place(lower: &mut Lower<'_>, at: &At, width: u16) -> Option<(ValueId, Option<u32>)> {
    let first = match &at.within {
        Within::Payload | Within::Option(..) => Amount::Const(0),
        Within::Header(name) => headers::start(lower, name)?,
    };
    let offset = match &at.offset {
        None => Amount::Const(0),
        Some(offset) => amount(lower, offset)?,
    };
    let start = headers::add(lower, first, offset);
    let end = match start {
        Amount::Const(start) => start.checked_add(u32::from(width / 8)),
        Amount::Value(_) => None,
    };
    Some((headers::value(lower, start), end.filter(|_| !is_option(at))))
}

/// A number of bytes. A larger number becomes the largest one.
pub fn amount(lower: &mut Lower<'_>, expr: &Expr) -> Option<Amount> {
    let value = lower.value(expr, Some(U32))?;
    if let Value::Const(Const { value: word, .. }) = &value {
        return Some(Amount::Const(u32::try_from(*word).unwrap_or(u32::MAX)));
    }
    let Some(of) = value.scalar_ty() else {
        return lower.fail(say::expected_type("a number", value.describe(), expr.span));
    };
    let of = of.unwrap_or(U32);
    if !matches!(of.kind, Kind::Uint | Kind::Size | Kind::Length) {
        return lower.fail(say::expected_type("a number", &types::name(of), expr.span));
    }
    let id = operators::coerce(lower, value, of, expr.span)?;
    Some(Amount::Value(lower.b.clamp(id, of, U32)))
}
