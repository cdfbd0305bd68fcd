//! Lowers headers that a program declares. They are views of the payload: reading a field reads
//! bytes of the payload, at an offset that the headers in front of it decide.
//!
//! A declared header is present if the header in front of it is, the packet announces no other
//! header behind that one, the condition behind `when` holds, and the payload has all of its bytes.

use std::collections::BTreeMap;

use braid_ir::model::{
    Area, BinOp, BlockId, CmpOp, Kind, MAX_STRING_WORDS, Op, SetRef, Ty, ValueId,
};
use braid_ir::value::IntervalSet;
use braid_packet::field::HEADERS;
use braid_packet::{Field, Header};

use super::declared::{DeclaredField, DeclaredHeader, Parent};
use super::facts::{Amount, AnyField, Declared};
use super::lower::Lower;
use super::scope::Value;
use super::types::{self, BOOL, U32, uint};
use super::{contents, inner, needs, operators, say};
use crate::ast::{After, ExprKind, Ident, Push, Span, Stmt};
use crate::diag::{Diagnostic, codes, did_you_mean_help};

/// Lowers `has HEADER` for a declared header.
pub fn has(
    lower: &mut Lower<'_>,
    header: usize,
    span: Span,
    yes: BlockId,
    no: BlockId,
) -> Option<()> {
    if !needs::packet(lower, span) {
        return None;
    }
    warn_of_absence(lower, header, span);
    test(lower, header, span, no)?;
    lower.b.jump(yes, Vec::new());
    Some(())
}

/// What is known of a declared header that must be present: it is known to be, or an atom tests it,
/// or its absence is reported.
fn need(lower: &mut Lower<'_>, header: usize, span: Span) -> Option<Declared> {
    if !needs::packet(lower, span) {
        return None;
    }
    if let Some(start) = tested_at(lower, header) {
        return Some(Declared { start, ..Declared::default() });
    }
    if let Some(known) = known(lower, header) {
        return Some(known);
    }
    if let Some(absent) = lower.absent {
        warn_of_absence(lower, header, span);
        return test(lower, header, span, absent);
    }
    let name = &lower.module.headers[header].def.name.text;
    let what = lower.sources.slice(span);
    let message = format!("`{what}` needs the header `{name}`, which the packet may lack");
    let label = format!("no test of `{name}` on the way here");
    let wrong = Diagnostic::new(codes::HEADER_MAY_BE_ABSENT, message, span, label);
    let test = format!("`if has {name} {{ … }}`, or `has {name}` in the row's predicate");
    lower.say(wrong.help(format!("test it first: {test}")));
    // One message for each header is enough.
    lower.b.facts.learn_declared(header, Declared::default());
    known(lower, header)
}

/// Warns of a test of a header inside of a tunnel that can't be there, because the packet has a
/// declared header that does not say what it holds.
fn warn_of_absence(lower: &mut Lower<'_>, header: usize, span: Span) {
    let headers = &lower.module.headers;
    let name = &headers[header].def.name.text;
    if inner::short(name).is_none() || lower.b.facts.nowhere {
        return;
    }
    let holds = |at: usize| {
        let mut holders = (0..headers.len()).filter(|other| headers[*other].def.holds.is_some());
        holders.any(|holder| is_behind(headers, holder, at))
    };
    let empty = (0..headers.len()).find(|at| {
        let own = &headers[*at].def.name.text;
        inner::short(own).is_none() && lower.b.facts.declared(*at).is_some() && !holds(*at)
    });
    let Some(empty) = empty else { return };
    let own = &headers[empty].def.name.text;
    let message = format!("`{name}` is never there: `{own}` does not say that it holds a packet");
    let wrong = Diagnostic::new(codes::HOLDS_NOTHING, message, span, "always false");
    let help = format!("end the declaration of `{own}` with `holds packet;` or `holds frame;`");
    lower.say(wrong.help(help));
}

/// Whether a declared header is this one, or may follow it.
fn is_behind(headers: &[DeclaredHeader<'_>], header: usize, front: usize) -> bool {
    header == front
        || headers[header].parents.iter().any(|parent| match parent {
            // Each header is behind the ones that it follows.
            Parent::Declared(parent) => *parent < header && is_behind(headers, *parent, front),
            Parent::Known(_) => false,
        })
}

/// Where a declared header begins that is being tested.
fn tested_at(lower: &Lower<'_>, header: usize) -> Option<Amount> {
    let found = lower.testing.iter().find(|(number, _)| *number == header);
    found.map(|(_, start)| *start)
}

/// What is known of a declared header, if it is known to be present.
fn known(lower: &Lower<'_>, header: usize) -> Option<Declared> {
    if lower.b.facts.nowhere {
        return Some(Declared::default());
    }
    lower.b.facts.declared(header).map(|known| known.as_ref().clone())
}

/// Tests whether a declared header is present. Continues in `absent` if it is not.
pub fn test(lower: &mut Lower<'_>, header: usize, span: Span, absent: BlockId) -> Option<Declared> {
    if let Some(known) = known(lower, header) {
        return Some(known);
    }
    let module = lower.module;
    let own = &module.headers[header];
    if tested_at(lower, header).is_some() {
        let message = format!("whether `{}` is there depends on itself", own.def.name.text);
        return lower.fail(Diagnostic::new(codes::RECURSION, message, span, "leads back"));
    }
    lower.module.tested(header);
    let outer = std::mem::take(&mut lower.reads);
    let start = behind_any(lower, (header, own), span, absent);
    let found = start.and_then(|start| measured(lower, own, (header, start), absent));
    let reads = std::mem::replace(&mut lower.reads, outer);
    let (start, len) = found?;
    let known = Declared { start, len, reads };
    lower.b.facts.learn_declared(header, known.clone());
    Some(known)
}

/// Where a declared header begins: behind the first of the headers in front of it that is there and
/// whose condition holds. Continues in `absent` if there is none.
fn behind_any(
    lower: &mut Lower<'_>,
    (header, own): (usize, &DeclaredHeader<'_>),
    span: Span,
    absent: BlockId,
) -> Option<Amount> {
    let mut ways = own.parents.iter().zip(&own.def.after);
    if let [parent] = own.parents.as_slice() {
        let (_, after) = ways.next()?;
        let start = behind(lower, *parent, span, absent)?;
        condition(lower, (own, after), (header, start), absent)?;
        return Some(start);
    }
    let (found, start) = lower.b.block_with_one(U32);
    while let Some((parent, after)) = ways.next() {
        let next = if ways.len() == 0 { absent } else { lower.b.block() };
        let at = behind(lower, *parent, span, next)?;
        condition(lower, (own, after), (header, at), next)?;
        let at = value(lower, at);
        lower.b.jump(found, vec![at]);
        if next != absent {
            lower.b.start(next);
        }
    }
    lower.b.start(found);
    Some(Amount::Value(start))
}

/// Where a header that follows this one begins. Continues in `absent` if this one is not there, or
/// if the packet announces another header behind it.
fn behind(lower: &mut Lower<'_>, parent: Parent, span: Span, absent: BlockId) -> Option<Amount> {
    match parent {
        Parent::Known(parent) => lower.with_absent(Some(absent), |lower| {
            needs::header(lower, parent, false, span, "")?;
            nothing_announced(lower, parent, absent);
            Some(Amount::Const(0))
        }),
        Parent::Declared(parent) => {
            let front = test(lower, parent, span, absent)?;
            lower.reads.extend(front.reads);
            Some(add(lower, front.start, front.len))
        }
    }
}

/// Tests the condition under which a declared header would begin at `start`. Continues in `absent`
/// if it does not hold.
fn condition(
    lower: &mut Lower<'_>,
    (own, after): (&DeclaredHeader<'_>, &After),
    at: (usize, Amount),
    absent: BlockId,
) -> Option<()> {
    let Some(when) = &after.when else { return Some(()) };
    lower.scope.enter_file();
    lower.testing.push(at);
    let done = lower.deeper(own.def.span, |lower| {
        let next = lower.b.block();
        lower.predicate(when, next, absent);
        lower.b.start(next);
        Some(())
    });
    lower.testing.pop();
    lower.scope.leave();
    done
}

/// Makes sure that the header table has no header behind this one.
fn nothing_announced(lower: &mut Lower<'_>, parent: Header, absent: BlockId) {
    let mut tests: Vec<(Field, Vec<(u128, u128)>)> = Vec::new();
    if matches!(parent, Header::Ip4 | Header::Ip6) {
        tests.push((Field::PktLaterFragment, vec![(1, 1)]));
    }
    // The parser walks over AH, and a payload begins behind it.
    let all = HEADERS.iter().filter(|(header, _)| *header != Header::Ah);
    let all = all.flat_map(|(header, _)| header.info().follows);
    for (field, values) in all.filter(|(field, _)| field.info().header == parent) {
        let field = if *field == Field::IpProto { Field::InetProto } else { *field };
        let values = values.iter().map(|value| (u128::from(*value), u128::from(*value)));
        match tests.iter_mut().find(|(known, _)| *known == field) {
            Some((_, known)) => known.extend(values),
            None => tests.push((field, values.collect())),
        }
    }
    for (field, values) in tests {
        let a = lower.b.load(field);
        lower.reads.insert(AnyField::Known(field));
        let set = SetRef::Const(IntervalSet::new(values));
        let announced = lower.b.emit(BOOL, |out| Op::InSet { out, a, set });
        let next = lower.b.block();
        lower.b.branch(announced, absent, next);
        lower.b.start(next);
    }
}

/// Tests the length of a declared header that would begin at `start`. Returns its start and its
/// length.
fn measured(
    lower: &mut Lower<'_>,
    own: &DeclaredHeader<'_>,
    (header, start): (usize, Amount),
    absent: BlockId,
) -> Option<(Amount, Amount)> {
    lower.scope.enter_file();
    lower.testing.push((header, start));
    let def = own.def;
    let found = lower.deeper(def.span, |lower| {
        let least = Amount::Const(own.least);
        has_bytes(lower, start, least, absent);
        let Some(length) = &def.length else { return Some((start, least)) };
        let value = lower.with_absent(None, |lower| lower.value(length, Some(U32)))?;
        let of = value.scalar_ty().flatten().unwrap_or(U32);
        if of.kind != Kind::Uint {
            let found = types::name(of);
            return lower.fail(say::expected_type("a number of bytes", &found, length.span));
        }
        if of.width < 16 && matches!(length.kind, ExprKind::Binary(..)) {
            let message =
                format!("this is computed as {}, and stops at {}", types::name(of), types::max(of));
            let wrong = Diagnostic::new(codes::TYPE_MISMATCH, message, length.span, "");
            return lower.fail(wrong.help("compute with more bits, such as `4 * u32(…)`"));
        }
        let id = operators::coerce(lower, value, of, length.span)?;
        let len = lower.b.clamp(id, of, U32);
        let enough = lower.b.block();
        let least = lower.b.constant(U32, own.least.into());
        let short = lower.b.emit(BOOL, |out| Op::Cmp { out, op: CmpOp::Lt, a: len, b: least });
        lower.b.branch(short, absent, enough);
        lower.b.start(enough);
        has_bytes(lower, start, Amount::Value(len), absent);
        Some((start, Amount::Value(len)))
    });
    lower.testing.pop();
    lower.scope.leave();
    found
}

/// Makes sure that the payload has these bytes.
fn has_bytes(lower: &mut Lower<'_>, start: Amount, len: Amount, absent: BlockId) {
    let behind = add(lower, start, len);
    let end = match behind {
        Amount::Const(end) if lower.b.facts.has_payload(end) => return,
        Amount::Const(end) => Some(end),
        Amount::Value(_) => None,
    };
    let (behind, one) = (value(lower, behind), lower.b.constant(U32, 1));
    let offset = lower.b.bin(U32, BinOp::SubSat, behind, one);
    let (found, out) = (lower.b.value(BOOL), lower.b.value(uint(8)));
    lower.b.op(Op::LoadBytes { found, out, area: Area::Payload, offset });
    let next = lower.b.block();
    lower.b.branch_on_payload(found, end, next, absent);
    lower.b.start(next);
}

/// The sum of two numbers of bytes. A larger sum becomes the largest number, where no payload has
/// bytes.
pub fn add(lower: &mut Lower<'_>, a: Amount, b: Amount) -> Amount {
    match (a, b) {
        (Amount::Const(a), Amount::Const(b)) => Amount::Const(a.saturating_add(b)),
        (a, Amount::Const(0)) | (Amount::Const(0), a) => a,
        (a, b) => {
            let (a, b) = (value(lower, a), value(lower, b));
            Amount::Value(lower.b.bin(U32, BinOp::AddSat, a, b))
        }
    }
}

/// A number of bytes as a value of the program.
pub fn value(lower: &mut Lower<'_>, amount: Amount) -> ValueId {
    match amount {
        Amount::Const(bytes) => lower.b.constant(U32, bytes.into()),
        Amount::Value(id) => id,
    }
}

/// Where a declared header begins in the payload.
pub fn start(lower: &mut Lower<'_>, name: &Ident) -> Option<Amount> {
    let Some(header) = lower.module.header(&name.text) else {
        let message = format!("there is no header `{}` in this program", name.text);
        let wrong = Diagnostic::new(codes::UNKNOWN_HEADER, message, name.span, "");
        let known = lower.module.header_names().chain(["payload"]);
        let help = did_you_mean_help(&name.text, known)
            .unwrap_or_else(|| "write `at payload`, or declare it with `header`".to_owned());
        return lower.fail(wrong.help(help));
    };
    Some(need(lower, header, name.span)?.start)
}

/// Reads a field of a declared header.
pub fn read(lower: &mut Lower<'_>, (header, field): (usize, usize), span: Span) -> Option<Value> {
    let known = need(lower, header, span)?;
    lower.reads.insert(AnyField::Declared(header, field));
    let module = lower.module;
    let field = &module.headers[header].fields[field];
    let (whole, found) = load(lower, field, known.start);
    if tested_at(lower, header).is_some()
        && let Some(absent) = lower.absent
    {
        let next = lower.b.block();
        lower.b.branch(found, next, absent);
        lower.b.start(next);
    }
    Some(Value::Scalar(extract(lower, field, whole), field.ty))
}

/// The bytes that a field touches, and whether the payload has them.
pub fn load(lower: &mut Lower<'_>, field: &DeclaredField, start: Amount) -> (ValueId, ValueId) {
    let (first, count) = field.bytes();
    let offset = add(lower, start, Amount::Const(first));
    let offset = value(lower, offset);
    let ty = if field.is_whole() { field.ty } else { uint(bits(count)) };
    let (found, out) = (lower.b.value(BOOL), lower.b.value(ty));
    lower.b.op(Op::LoadBytes { found, out, area: Area::Payload, offset });
    (out, found)
}

/// The number of bits of bytes of a field.
fn bits(bytes: u32) -> u16 {
    u16::try_from(8 * bytes).unwrap_or(u16::MAX)
}

/// A field's value in the bytes that it touches.
fn extract(lower: &mut Lower<'_>, field: &DeclaredField, whole: ValueId) -> ValueId {
    if field.is_whole() {
        return whole;
    }
    let wide = uint(bits(field.bytes().1));
    let by = lower.b.constant(wide, field.shift().into());
    let low = lower.b.bin(wide, BinOp::Shr, whole, by);
    let mask = lower.b.constant(wide, types::max(field.ty));
    let masked = lower.b.bin(wide, BinOp::And, low, mask);
    if field.ty == BOOL {
        let zero = lower.b.constant(wide, 0);
        return lower.b.emit(BOOL, |out| Op::Cmp { out, op: CmpOp::Ne, a: masked, b: zero });
    }
    lower.b.emit(field.ty, |out| Op::Clamp { out, a: masked })
}

/// Assigns a field of a declared header. Its header must be known to be present. `before` adds what
/// is to be done before, with the header, its start, the field, and the bytes that it gets.
pub fn write(
    lower: &mut Lower<'_>,
    (header, at): (usize, usize),
    new: impl FnOnce(&mut Lower<'_>, Ty) -> Option<ValueId>,
    before: impl FnOnce(&mut Lower<'_>, (usize, Amount), &DeclaredField, ValueId) -> Option<()>,
    span: Span,
) -> Option<()> {
    let known = need(lower, header, span)?;
    let module = lower.module;
    let field = &module.headers[header].fields[at];
    let a = new(lower, field.ty)?;
    let a = insert(lower, field, known.start, a);
    let (first, _) = field.bytes();
    before(lower, (header, known.start), field, a)?;
    let offset = add(lower, known.start, Amount::Const(first));
    let offset = value(lower, offset);
    let ok = lower.b.value(BOOL);
    lower.b.op(Op::StoreBytes { ok, area: Area::Payload, offset, a });
    lower.b.facts.stored_declared(header, at);
    Some(())
}

/// The bytes that a field touches, with a new value of the field in them.
fn insert(lower: &mut Lower<'_>, field: &DeclaredField, start: Amount, a: ValueId) -> ValueId {
    if field.is_whole() {
        return a;
    }
    let (whole, _) = load(lower, field, start);
    let wide = uint(bits(field.bytes().1));
    let keep = types::max(wide) & !(types::max(field.ty) << field.shift());
    let mask = lower.b.constant(wide, keep);
    let rest = lower.b.bin(wide, BinOp::And, whole, mask);
    let a = lower.b.emit(wide, |out| Op::Resize { out, a });
    let by = lower.b.constant(wide, field.shift().into());
    let high = lower.b.bin(wide, BinOp::Shl, a, by);
    lower.b.bin(wide, BinOp::Or, rest, high)
}

/// Lowers `push HEADER { field: EXPR, … } else STMT;` for a declared header. It gets behind the
/// header that it follows. Fields without a value are 0.
pub fn push<'a>(
    lower: &mut Lower<'a>,
    header: usize,
    push: &Push,
    otherwise: Option<&'a Stmt>,
) -> Option<()> {
    let module = lower.module;
    let own = &module.headers[header];
    let name = &own.def.name.text;
    if !push.args.is_empty() {
        let message = format!("`push {name}` takes values with names");
        let wrong = Diagnostic::new(codes::WRONG_ARGUMENTS, message, push.span, "");
        return lower
            .fail(wrong.help(format!("write `push {name} {{ field: value }} else drop;`")));
    }
    let most = u32::try_from(MAX_STRING_WORDS * types::WORD).unwrap_or(u32::MAX);
    if own.least > most {
        let message = format!("headers of more than {most} bytes cannot be pushed");
        return lower.fail(Diagnostic::new(codes::WRONG_ARGUMENTS, message, push.span, ""));
    }
    if !needs::packet(lower, push.span) {
        return None;
    }
    let values = contents::of(lower, own, &push.fields)?;
    let words = contents::words(lower, own.least, &values);
    let Some(otherwise) = otherwise else { return needs_else(lower, "push", own, push.span) };
    let (refused, done) = (lower.b.block(), lower.b.block());
    let start = match in_front(lower, own)? {
        Parent::Known(parent) => {
            needs::header(lower, parent, false, push.span, &format!("`push {name}`"))?;
            nothing_announced(lower, parent, refused);
            Amount::Const(0)
        }
        Parent::Declared(parent) => {
            let front = need(lower, parent, push.span)?;
            add(lower, front.start, front.len)
        }
    };
    let new = lower.b.constant(types::LENGTH, own.least.into());
    let ok = replace(lower, header, (start, Amount::Const(0)), (new, words));
    lower.b.branch(ok, done, refused);
    lower.refused(refused, done, otherwise);
    Some(())
}

/// The header behind which a declared one is put: the first of those in front of it that is known
/// to be there, or simply the first.
fn in_front(lower: &Lower<'_>, own: &DeclaredHeader<'_>) -> Option<Parent> {
    let is_there = |parent: &&Parent| match parent {
        Parent::Known(header) => lower.b.facts.knows(*header, false),
        Parent::Declared(header) => known(lower, *header).is_some(),
    };
    own.parents.iter().find(is_there).or(own.parents.first()).copied()
}

/// Lowers `pop HEADER else STMT;` for a declared header.
pub fn pop<'a>(
    lower: &mut Lower<'a>,
    header: usize,
    otherwise: Option<&'a Stmt>,
    span: Span,
) -> Option<()> {
    let known = need(lower, header, span)?;
    let module = lower.module;
    let Some(otherwise) = otherwise else {
        return needs_else(lower, "pop", &module.headers[header], span);
    };
    let nothing = lower.b.constant(types::LENGTH, 0);
    let ok = replace(lower, header, (known.start, known.len), (nothing, Vec::new()));
    lower.or_else(ok, otherwise);
    Some(())
}

fn needs_else(
    lower: &mut Lower<'_>,
    word: &str,
    own: &DeclaredHeader<'_>,
    span: Span,
) -> Option<()> {
    let name = &own.def.name.text;
    let message = "the packet may be a fragment, or have no room for the header";
    let wrong = Diagnostic::new(codes::NEEDS_ELSE, message, span, "and then nothing changes");
    lower.fail(wrong.help(format!("write `{word} {name} … else drop;`")))
}

/// Replaces bytes of the payload where a declared header begins. The result says whether it was
/// possible.
fn replace(
    lower: &mut Lower<'_>,
    header: usize,
    (start, old): (Amount, Amount),
    (new, words): (ValueId, Vec<ValueId>),
) -> ValueId {
    let (offset, old) = (value(lower, start), value(lower, old));
    let ok = lower.b.value(BOOL);
    lower.b.op(Op::ReplaceBytes { ok, offset, old, new, words });
    // The headers in front of it stay where they are.
    let (mut front, mut next) = (BTreeMap::new(), vec![header]);
    while let Some(at) = next.pop() {
        for parent in &lower.module.headers[at].parents {
            if let Parent::Declared(parent) = *parent
                && !front.contains_key(&parent)
            {
                front.insert(parent, known(lower, parent));
                next.push(parent);
            }
        }
    }
    lower.b.facts.replaced_payload();
    for (header, known) in front {
        known.into_iter().for_each(|known| lower.b.facts.learn_declared(header, known));
    }
    ok
}
