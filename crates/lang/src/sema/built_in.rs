//! The built-in functions, as editors show them. Operators describe themselves.

use crate::ast::Ident;
use crate::diag::{Diagnostic, Diagnostics, codes};
use braid_externs as ops;

/// A built-in function.
struct BuiltIn {
    name: &'static str,
    /// How it is called.
    usage: &'static str,
    /// What it does: sentences in Markdown.
    doc: &'static str,
}

/// The built-in functions, without casts and operators.
const ALL: &[BuiltIn] = &[
    BuiltIn { name: "min", usage: "min(a, b)", doc: "The smaller one of two numbers." },
    BuiltIn { name: "max", usage: "max(a, b)", doc: "The larger one of two numbers." },
    BuiltIn {
        name: "len",
        usage: "len(LIST) -> u32",
        doc: "The number of members of a list or of backends, or of entries of a state table.",
    },
    BuiltIn {
        name: "lowercase",
        usage: "lowercase(s)",
        doc: "A string with its letters A to Z in lower case.",
    },
    BuiltIn {
        name: "up",
        usage: "up(BACKENDS, i) -> bool",
        doc: "Whether a backend can be used. An index past the end is the fault `index`.",
    },
    BuiltIn {
        name: "rule",
        usage: "rule(packet, RULES) -> u32",
        doc: "The number of the first rule that matches the packet, from 0. The number of rules if \
              none does.",
    },
    BuiltIn {
        name: "wrapping",
        usage: "wrapping(EXPR)",
        doc: "The value of an expression whose sums, differences and products wrap around instead \
              of stopping at the largest or smallest number.",
    },
    BuiltIn {
        name: "take",
        usage: "let x = take(POOL) else …\nlet x = take(POOL, x) else …",
        doc: "Takes a free member of a pool, or this one. Without a free one, the statement after \
              `else` runs.",
    },
    BuiltIn {
        name: "route",
        usage: "let hop = route(ADDR, ROUTES) else …",
        doc: "The number of the next hop of the longest prefix that has the address. Without a \
              route, the statement after `else` runs.",
    },
    BuiltIn {
        name: "which",
        usage: "let n = which(payload, PATTERNS) else …",
        doc: "The lowest number of a pattern that matches the payload, a part of it \
              (`payload[0..99]`) or a string. Without a match, the statement after `else` runs.",
    },
    BuiltIn {
        name: "find",
        usage: "let m = find(payload, PATTERNS) else …",
        doc: "The lowest `number` of a pattern that matches the payload, a part of it \
              (`payload[0..99]`) or a string, and where its first match begins (`start`) and ends \
              (`end`). Without a match, the statement after `else` runs.",
    },
    BuiltIn {
        name: "release",
        usage: "release(POOL, x);",
        doc: "Gives a member back to a pool. A member that is not taken is ignored.",
    },
    BuiltIn {
        name: "encrypt",
        usage: "encrypt(KEYS, NUMBER, IV, FROM) else …",
        doc: "Encrypts the payload of TCP or UDP from byte FROM on, with the key of this number. IV \
              is a number that the key has not been used with before.",
    },
    BuiltIn {
        name: "decrypt",
        usage: "decrypt(KEYS, NUMBER, FROM) else …",
        doc: "Decrypts the payload from byte FROM on, as `encrypt` made it. If the check value is \
              wrong, nothing changes and the statement after `else` runs.",
    },
    BuiltIn {
        name: "to_ip4",
        usage: "to_ip4(SRC, DST) else …\nto_ip4(SRC, DST, QUOTED_SRC, QUOTED_DST) else …",
        doc: "Translates an IPv6 packet to IPv4 (RFC 7915), with these addresses. An ICMP error \
              needs those of the packet that it quotes, too. If that is not possible, nothing \
              changes and the statement after `else` runs.",
    },
    BuiltIn {
        name: "to_ip6",
        usage: "to_ip6(SRC, DST) else …\nto_ip6(SRC, DST, QUOTED_SRC, QUOTED_DST) else …",
        doc: "Translates an IPv4 packet to IPv6, as `to_ip4` does the other way.",
    },
    BuiltIn {
        name: "spend",
        usage: "spend(BUCKET, SIZE, RATE, BURST) else …",
        doc: "Takes SIZE from a token bucket, which fills with RATE up to BURST. If it holds less, \
              nothing is taken and the statement after `else` runs.",
    },
];

/// The names of the built-in functions and of the operators.
pub fn functions<'a>() -> impl Iterator<Item = &'a str> + Clone {
    let operators = ops::all().iter().map(|op| op.signature.name);
    ALL.iter().map(|one| one.name).chain(operators)
}

/// Warns if one of the program's own functions has the name of a built-in one.
pub fn warn_if_hides(name: &Ident, diags: &mut Diagnostics) {
    if functions().any(|one| one == name.text) {
        let message = format!("`{}` is also a built-in function", name.text);
        let found = Diagnostic::new(codes::HIDES_BUILT_IN, message, name.span, "hides it");
        diags.push(found.help("give it another name"));
    }
}

/// How a built-in function or an operator is called, and what it does in Markdown. `None` if there
/// is none with this name.
#[must_use]
pub fn described(name: &str) -> Option<(String, String)> {
    match ALL.iter().find(|one| one.name == name) {
        Some(one) => Some((one.usage.to_owned(), one.doc.to_owned())),
        None => {
            let signature = &ops::lookup(name)?.signature;
            Some((signature.usage(), signature.doc.to_owned()))
        }
    }
}
