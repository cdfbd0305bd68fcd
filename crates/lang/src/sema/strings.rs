//! Lowers what strings have besides bytes: membership in sets, and their letters in lower case.

use braid_ir::model::{BinOp, CmpOp, Op, ParamId, Ty, ValueId};

use super::lower::Lower;
use super::scope::{Binding, Value};
use super::types::{self, BOOL, BYTES};
use super::{bytes, names, say};
use crate::ast::{Expr, ExprKind};
use crate::diag::{Diagnostic, codes};

/// The parts of a string: its length, and its words.
pub type Parts = Vec<(String, ValueId, Ty)>;

/// Lowers `STRING in PARAMETER`, where the parameter is a set of strings or of host names.
pub fn in_param(lower: &mut Lower<'_>, item: &Expr, param: ParamId) -> Option<ValueId> {
    let mut values = string(lower, item)?.into_iter().map(|(_, id, _)| id);
    let (len, words) = (values.next()?, values.collect());
    Some(lower.b.emit(BOOL, |out| Op::InStrings { out, param, len, words }))
}

/// Lowers `STRING in { A, B }` for a string with these parts: compares it with each member.
pub fn in_written(lower: &mut Lower<'_>, parts: &Parts, set: &Expr) -> Option<ValueId> {
    let resolved = match names::bare(&lower.scope, set) {
        Some(Binding::Const(value)) => value.clone(),
        _ => set.clone(),
    };
    let (ExprKind::Set(members) | ExprKind::List(members)) = &resolved.kind else {
        let message = "a string is in a set of strings";
        let wrong = Diagnostic::new(codes::TYPE_MISMATCH, message, set.span, "is no such set");
        return lower.fail(wrong.help(
            "write `{ \"A\", \"B\" }`, or name a parameter of type `set<bytes<64>>` or `hosts`",
        ));
    };
    let mut any = lower.b.constant(BOOL, 0);
    let mut whole = Some(());
    for member in members {
        let Some(values) = bytes::value(lower, member, parts.len() - 1) else {
            whole = None;
            continue;
        };
        let mut same = lower.b.constant(BOOL, 1);
        for ((_, a, _), b) in parts.iter().zip(values) {
            let part = lower.b.emit(BOOL, |out| Op::Cmp { out, op: CmpOp::Eq, a: *a, b });
            same = lower.b.bin(BOOL, BinOp::And, same, part);
        }
        any = lower.b.bin(BOOL, BinOp::Or, any, same);
    }
    whole.map(|()| any)
}

/// The string with ASCII letters in lower case. Each word's bytes are treated at once: adding to
/// the low 7 bits of a byte sets its highest bit if the byte is at least `A`, or above `Z`.
pub fn lowercase(lower: &mut Lower<'_>, item: &Expr) -> Option<Value> {
    let mut parts = string(lower, item)?;
    let each = |byte: u8| u128::from_be_bytes([byte; types::WORD]);
    let [low, from_a, above_z, high, two] =
        [each(0x7f), each(0x80 - b'A'), each(0x7f - b'Z'), each(0x80), 2]
            .map(|word| lower.b.constant(BYTES, word));
    for (_, word, _) in parts.iter_mut().skip(1) {
        let mut bin = |op, a, b| lower.b.bin(BYTES, op, a, b);
        let rest = bin(BinOp::And, *word, low);
        let (from, above) = (bin(BinOp::AddWrap, rest, from_a), bin(BinOp::AddWrap, rest, above_z));
        let letters = bin(BinOp::Xor, from, above);
        let ascii = lower.b.complement(*word, BYTES);
        let mut bin = |op, a, b| lower.b.bin(BYTES, op, a, b);
        let letters = bin(BinOp::And, letters, ascii);
        let letters = bin(BinOp::And, letters, high);
        let bits = bin(BinOp::Shr, letters, two);
        *word = bin(BinOp::Or, *word, bits);
    }
    Some(Value::Record(parts))
}

/// The parts of an expression that must be a string.
pub fn string(lower: &mut Lower<'_>, item: &Expr) -> Option<Parts> {
    match lower.value(item, None)? {
        Value::Record(parts) if types::is_string(&parts) => Some(parts),
        Value::Record(parts) => {
            let found = name(&parts);
            lower.fail(say::expected_type("a string", &found, item.span))
        }
        other => {
            let found = match other.scalar_ty() {
                Some(Some(ty)) => types::name(ty),
                _ => other.describe().to_owned(),
            };
            let wrong = say::expected_type("a string", &found, item.span);
            lower.fail(wrong.help("read one: `bytes<64> at payload + OFFSET for LEN`"))
        }
    }
}

fn name(parts: &Parts) -> String {
    let parts: Vec<_> = parts.iter().map(|(name, _, ty)| (name.clone(), *ty)).collect();
    types::record_name(&parts)
}
