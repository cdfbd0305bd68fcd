//! Lowers what needs secret keys: `encrypt(KEYS, NUMBER, IV, OFFSET) else …`,
//! `decrypt(KEYS, NUMBER, OFFSET) else …`, and the headers `esp` and `ah` of outer headers.

use braid_ir::model::{KeyRef, Op, ParamId, ParamTy, ValueId};
use braid_packet::Header;

use super::calls::arguments;
use super::lower::Lower;
use super::types::{BOOL, uint};
use super::{bytes, headers, names, needs};
use crate::ast::{Arg, Expr, Ident, Push, Span, Stmt};
use crate::diag::{Diagnostic, codes};

/// Whether a function encrypts or decrypts the payload.
pub fn is_crypt(name: &str) -> bool {
    matches!(name, "encrypt" | "decrypt")
}

/// Lowers `encrypt(KEYS, NUMBER, IV, OFFSET) else STMT;` or
/// `decrypt(KEYS, NUMBER, OFFSET) else STMT;`.
pub fn payload<'a>(
    lower: &mut Lower<'a>,
    name: &Ident,
    args: &[Arg],
    otherwise: Option<&'a Stmt>,
    span: Span,
) -> Option<()> {
    let (keys, number, iv, offset) = match name.text.as_str() {
        "encrypt" => {
            let [keys, number, iv, offset] = arguments(lower, args, span, "encrypt")?;
            (keys, number, Some(iv), offset)
        }
        _ => {
            let [keys, number, offset] = arguments(lower, args, span, "decrypt")?;
            (keys, number, None, offset)
        }
    };
    if !needs::packet(lower, span) {
        return None;
    }
    let keys = key_param(lower, keys);
    let number = lower.typed(number, uint(32));
    let iv = iv.map(|iv| lower.typed(iv, uint(64)));
    let offset = bytes::amount(lower, offset)?;
    let offset = headers::value(lower, offset);
    let key = KeyRef { keys: keys?, number: number? };
    let Some(otherwise) = otherwise else {
        let message = match iv {
            Some(_) => "the payload may be too short or too long, and the key may be missing",
            None => "the payload may be forged or too short, and the key may be missing",
        };
        let wrong = Diagnostic::new(codes::NEEDS_ELSE, message, span, "and then nothing changes");
        return lower.fail(wrong.help(format!("write `{}(…) else drop;`", name.text)));
    };
    let ok = lower.b.value(BOOL);
    lower.b.op(match iv {
        Some(number) => Op::Encrypt { ok, key, number: number?, offset },
        None => Op::Decrypt { ok, key, offset },
    });
    lower.b.facts.replaced_payload();
    lower.or_else(ok, otherwise);
    Some(())
}

fn key_param(lower: &mut Lower<'_>, expr: &Expr) -> Option<ParamId> {
    names::special(lower, expr, "keys", |ty| *ty == ParamTy::Keys)
}

/// The keys and the number of the vector that `push … esp { … }` or `push … ah { … }` gives, and
/// the header with its other fields. AH has no vector, so the number is 0.
pub fn seal(
    lower: &mut Lower<'_>,
    header: Header,
    push: &Push,
) -> Option<(Push, (ParamId, ValueId))> {
    let keys = own(lower, (header, push), "keys", "the parameter that holds its keys")?;
    let encrypts = header == Header::Esp;
    let what = "a number that its key has not been used with before";
    let iv = encrypts.then(|| own(lower, (header, push), "iv", what));
    let keys = key_param(lower, keys);
    let iv = match iv {
        Some(iv) => lower.typed(iv?, uint(64)),
        None => Some(lower.b.constant(uint(64), 0)),
    };
    let is_field = |(name, _): &&(Ident, Expr)| {
        let name = name.text.as_str();
        name != "keys" && !(name == "iv" && encrypts)
    };
    let fields = push.fields.iter().filter(is_field).cloned().collect();
    Some((Push { fields, ..push.clone() }, (keys?, iv?)))
}

/// The keys of `pop … esp { keys: KEYS }` or `pop … ah { keys: KEYS }`.
pub fn open(lower: &mut Lower<'_>, header: Header, pop: &Push) -> Option<ParamId> {
    let keys = own(lower, (header, pop), "keys", "the parameter that holds its keys")?;
    let other = pop.fields.iter().find(|(name, _)| name.text != "keys");
    if let Some((name, _)) = other.filter(|_| pop.args.is_empty()) {
        let message = format!("`pop … {}` takes no value for `{}`", header.name(), name.text);
        let wrong = Diagnostic::new(codes::UNKNOWN_FIELD, message, name.span, "unknown");
        return lower.fail(wrong.help("write `{ keys: … }`"));
    }
    key_param(lower, keys)
}

/// The value with this name, once.
fn own<'p>(
    lower: &mut Lower<'_>,
    (header, push): (Header, &'p Push),
    name: &str,
    what: &str,
) -> Option<&'p Expr> {
    let mut found = push.fields.iter().filter(|(field, _)| field.text == name);
    let Some((_, expr)) = found.next() else {
        let message = format!("`{}` needs `{name}`: {what}", header.name());
        return lower.fail(Diagnostic::new(codes::RECORD_PARTS, message, push.span, ""));
    };
    if let Some((field, _)) = found.next() {
        let message = format!("`{name}` is given twice");
        return lower.fail(Diagnostic::new(codes::RECORD_PARTS, message, field.span, "again"));
    }
    Some(expr)
}
