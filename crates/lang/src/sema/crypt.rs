//! Lowers what needs secret keys: `encrypt(KEYS, NUMBER, IV, OFFSET) else …`,
//! `decrypt(KEYS, NUMBER, OFFSET) else …`, and the headers `esp` and `ah` of outer headers.

use braid_ir::model::{Association, KeyRef, Op, ParamId, ParamTy, ValueId};
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

/// The values that `push` gives `esp` or `ah` beside the fields of the header.
#[must_use]
pub fn own_values(header: Header) -> &'static [&'static str] {
    match header {
        Header::Esp => &["keys", "iv", "high"],
        Header::Ah => &["keys", "high"],
        _ => &[],
    }
}

/// What the ends of a tunnel by ESP or AH know, without the key's number.
#[derive(Clone, Copy)]
pub struct Known {
    keys: ParamId,
    high: Option<ValueId>,
}

impl Known {
    /// With the key's number.
    #[must_use]
    pub fn with(self, number: ValueId) -> Association {
        Association { key: KeyRef { keys: self.keys, number }, high: self.high }
    }
}

/// What `push … esp { … }` or `push … ah { … }` gives beside the header's fields: the keys, the
/// upper half of the sequence number, and the number of the vector. The header with its fields
/// alone comes first. AH has no vector, so the number is 0.
pub fn seal(
    lower: &mut Lower<'_>,
    header: Header,
    push: &Push,
) -> Option<(Push, (Known, ValueId))> {
    let what = "a number that its key has not been used with before";
    let iv = (header == Header::Esp).then(|| own(lower, (header, push), "iv", what));
    let known = known(lower, header, push);
    let iv = match iv {
        Some(iv) => lower.typed(iv?, uint(64)),
        None => Some(lower.b.constant(uint(64), 0)),
    };
    let names = own_values(header);
    let is_field = |(name, _): &&(Ident, Expr)| !names.contains(&name.text.as_str());
    let fields = push.fields.iter().filter(is_field).cloned().collect();
    Some((Push { fields, ..push.clone() }, (known?, iv?)))
}

/// What `pop … esp { keys: KEYS }` or `pop … ah { keys: KEYS }` gives.
pub fn open(lower: &mut Lower<'_>, header: Header, pop: &Push) -> Option<Known> {
    let is_other = |name: &str| !matches!(name, "keys" | "high");
    let other = pop.fields.iter().find(|(name, _)| is_other(&name.text));
    if let Some((name, _)) = other.filter(|_| pop.args.is_empty()) {
        let message = format!("`pop … {}` takes no value for `{}`", header.name(), name.text);
        let wrong = Diagnostic::new(codes::UNKNOWN_FIELD, message, name.span, "unknown");
        return lower.fail(wrong.help("write `{ keys: … }` or `{ keys: …, high: … }`"));
    }
    known(lower, header, pop)
}

/// The keys and the upper half of the sequence number.
fn known(lower: &mut Lower<'_>, header: Header, push: &Push) -> Option<Known> {
    let keys = own(lower, (header, push), "keys", "the parameter that holds its keys")?;
    let high = once(lower, push, "high")?;
    let keys = key_param(lower, keys);
    let high = high.map(|high| lower.typed(high, uint(32)));
    Some(Known { keys: keys?, high: high.map_or(Some(None), |high| high.map(Some))? })
}

/// The value with this name, once.
fn own<'p>(
    lower: &mut Lower<'_>,
    (header, push): (Header, &'p Push),
    name: &str,
    what: &str,
) -> Option<&'p Expr> {
    let found = once(lower, push, name)?;
    if found.is_none() {
        let message = format!("`{}` needs `{name}`: {what}", header.name());
        lower.say(Diagnostic::new(codes::RECORD_PARTS, message, push.span, ""));
    }
    found
}

/// The value with this name, if it is given. Reports a second one, and then returns `None`.
fn once<'p>(lower: &mut Lower<'_>, push: &'p Push, name: &str) -> Option<Option<&'p Expr>> {
    let mut found = push.fields.iter().filter(|(field, _)| field.text == name);
    let first = found.next();
    if let Some((field, _)) = found.next() {
        let message = format!("`{name}` is given twice");
        return lower.fail(Diagnostic::new(codes::RECORD_PARTS, message, field.span, "again"));
    }
    Some(first.map(|(_, expr)| expr))
}
