//! Checksums in declared headers: the ones that a program names, and the ones of packets inside of
//! tunnels. They follow assignments of fields by difference (RFC 1624), as checksums of other
//! headers do.

use braid_ir::model::{Area, BinOp, CmpOp, Op, Ty, ValueId};

use super::contents::{self, WORD};
use super::declared::DeclaredField;
use super::facts::Amount;
use super::headers;
use super::inner;
use super::lower::Lower;
use super::types::{BOOL, U32, uint};
use crate::ast::Span;

/// An assignment of a field: the bytes that it touches, before and after.
#[derive(Clone, Copy)]
struct Change {
    /// The first byte, counted from the header's start.
    first: u32,
    /// The number of bytes.
    count: u32,
    /// The bytes as they were.
    old: ValueId,
    /// The bytes as they are now.
    new: ValueId,
}

/// Assigns a field of a declared header, as [`headers::write`].
pub fn write(
    lower: &mut Lower<'_>,
    place: (usize, usize),
    new: impl FnOnce(&mut Lower<'_>, Ty) -> Option<ValueId>,
    span: Span,
) -> Option<()> {
    headers::write(
        lower,
        place,
        new,
        |lower, at, field, new| follow(lower, at, field, new, span),
        span,
    )
}

fn is_address(field: &str) -> bool {
    matches!(field, "src" | "dst")
}

/// Lets the checksums that cover a field follow its assignment.
fn follow(
    lower: &mut Lower<'_>,
    (header, start): (usize, Amount),
    field: &DeclaredField,
    new: ValueId,
    span: Span,
) -> Option<()> {
    let module = lower.module;
    let own = &module.headers[header];
    if let Some(sum) = own.checksum {
        if own.fields[sum].bits() != field.bits() {
            let change = change(lower, field, start, new);
            update(lower, (header, sum), start, change);
        }
        return Some(());
    }
    let full = &own.def.name.text;
    let Some(name) = inner::short(full) else { return Some(()) };
    let has_sum = matches!(name, "ip" | "tcp" | "udp" | "icmp" | "icmp6");
    let is_covered =
        has_sum && field.name != "checksum" || name == "ip6" && is_address(&field.name);
    if !is_covered {
        return Some(());
    }
    let change = change(lower, field, start, new);
    if name != "ip6" {
        update_inner(lower, header, start, change)?;
    }
    if matches!(name, "ip" | "ip6") && is_address(&field.name) {
        let level = full.strip_suffix(name)?;
        // ICMP over IPv4 has no pseudo header.
        let all: &[&str] = if name == "ip" { &["tcp", "udp"] } else { &["tcp", "udp", "icmp6"] };
        for transport in all {
            if let Some(transport) = module.header(&format!("{level}{transport}")) {
                let (absent, done) = (lower.b.block(), lower.b.block());
                let found = headers::test(lower, transport, span, absent)?;
                update_inner(lower, transport, found.start, change)?;
                lower.b.jump(done, Vec::new());
                lower.b.start(absent);
                lower.b.jump(done, Vec::new());
                lower.b.start(done);
            }
        }
    }
    Some(())
}

/// The change of a field that gets these bytes.
fn change(lower: &mut Lower<'_>, field: &DeclaredField, start: Amount, new: ValueId) -> Change {
    let (first, count) = field.bytes();
    let (old, _) = headers::load(lower, field, start);
    Change { first, count, old, new }
}

/// Updates the checksum of a header inside of a tunnel.
fn update_inner(lower: &mut Lower<'_>, header: usize, start: Amount, change: Change) -> Option<()> {
    let fields = &lower.module.headers[header].fields;
    let sum = fields.iter().position(|field| field.name == "checksum")?;
    update(lower, (header, sum), start, change);
    Some(())
}

/// Updates the checksum in a field of a header.
fn update(lower: &mut Lower<'_>, (header, at): (usize, usize), start: Amount, change: Change) {
    let module = lower.module;
    let own = &module.headers[header];
    let sum = &own.fields[at];
    let is_udp = own.checksum.is_none() && own.def.name.text.ends_with("udp");
    let (first, _) = sum.bytes();
    let offset = headers::add(lower, start, Amount::Const(first));
    let offset = headers::value(lower, offset);
    let word = uint(WORD);
    let (found, old) = (lower.b.value(BOOL), lower.b.value(word));
    lower.b.op(Op::LoadBytes { found, out: old, area: Area::Payload, offset });
    // The complement of the new checksum is the complement of the old one, plus the complements of
    // the old words, plus the new words.
    let mut total = complement(lower, old);
    for (value, is_old) in [(change.old, true), (change.new, false)] {
        for part in words(lower, change, value) {
            let part = if is_old { complement(lower, part) } else { contents::widen(lower, part) };
            total = lower.b.bin(U32, BinOp::AddSat, total, part);
        }
    }
    let mut new = contents::folded(lower, total);
    if is_udp {
        // 0 says that there is no checksum (RFC 768).
        let (none, all) = (lower.b.constant(word, 0), lower.b.constant(word, 0xffff));
        let is_zero = lower.b.emit(BOOL, |out| Op::Cmp { out, op: CmpOp::Eq, a: new, b: none });
        new = lower.b.emit(word, |out| Op::Select { out, cond: is_zero, a: all, b: new });
        let had_none = lower.b.emit(BOOL, |out| Op::Cmp { out, op: CmpOp::Eq, a: old, b: none });
        new = lower.b.emit(word, |out| Op::Select { out, cond: had_none, a: none, b: new });
    }
    let ok = lower.b.value(BOOL);
    lower.b.op(Op::StoreBytes { ok, area: Area::Payload, offset, a: new });
    lower.b.facts.stored_declared(header, at);
}

/// The words of 16 bits that a field's bytes are in, with zeros in place of other bytes. Headers
/// begin with a whole word.
fn words(lower: &mut Lower<'_>, change: Change, value: ValueId) -> Vec<ValueId> {
    let Change { first, count, .. } = change;
    let behind = (first + count) % 2;
    let bytes = (first % 2 + count + behind).min(16);
    let ty = uint(u16::try_from(8 * bytes).unwrap_or(128));
    let mut value = lower.b.emit(ty, |out| Op::Resize { out, a: value });
    if behind == 1 {
        let by = lower.b.constant(ty, 8);
        value = lower.b.bin(ty, BinOp::Shl, value, by);
    }
    let part = |lower: &mut Lower<'_>, number: u32| {
        let by = lower.b.constant(ty, (16 * number).into());
        let word = lower.b.bin(ty, BinOp::Shr, value, by);
        lower.b.emit(uint(WORD), |out| Op::Resize { out, a: word })
    };
    (0..bytes / 2).map(|number| part(lower, number)).collect()
}

/// The complement of a word, as a number of 32 bits.
fn complement(lower: &mut Lower<'_>, word: ValueId) -> ValueId {
    let inverse = lower.b.emit(uint(WORD), |out| Op::Not { out, a: word });
    contents::widen(lower, inverse)
}
