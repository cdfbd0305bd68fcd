//! The headers inside of tunnels, such as `inner.ip.src`. They are declared in the language, as a
//! program would declare them: `inner.braid` has those of one level, behind the headers of the
//! level outside of it.

use super::declared::MAX_NESTING;
use crate::ast::{After, BinOp, Expr, ExprKind, File, HeaderDef, Item, Path, joined};

/// The name of the file that declares them, in messages.
pub const FILE: &str = "library/inner.braid";

/// The declarations, where `OUT` stands for what is in front of the names of headers outside, and
/// `IN` for what is in front of those inside.
const LEVEL: &str = include_str!("inner.braid");

/// The levels inside, from the outside in.
const LEVELS: [&str; 2] = ["inner.", "inner2."];

/// Whether a text names a header inside of a tunnel. It may say so where it has no such header.
#[must_use]
pub fn is_named(text: &str) -> bool {
    LEVELS.iter().any(|level| text.contains(level))
}

/// The name of a header inside of a tunnel, without its level. `None` for other headers.
#[must_use]
pub fn short(name: &str) -> Option<&str> {
    LEVELS.iter().find_map(|level| name.strip_prefix(level))
}

/// The declarations of all levels.
#[must_use]
pub fn declarations() -> String {
    let outside = [""].into_iter().chain(LEVELS);
    let level = |(out, inside): (&str, &str)| {
        // The parser takes a stack of labels as one header; here, a label is one.
        let last = if out.is_empty() { "when" } else { "when OUTmpls.bos == 1 and" };
        let text = LEVEL.replace("OUTmpls when", &format!("OUTmpls {last}"));
        // Behind the outermost IP header, the parser walks over AH.
        let (ip, ip6) = if out.is_empty() { ("inet", "inet") } else { ("OUTip", "OUTip6") };
        let text = text.replace("OUTip.proto", &format!("{ip}.proto"));
        let text = text.replace("OUTip6.proto", &format!("{ip6}.proto"));
        text.replace("OUT", out).replace("IN", inside)
    };
    outside.zip(LEVELS).map(level).collect()
}

/// The declarations of headers inside of tunnels for these files, whose declared headers may hold
/// packets and frames.
#[must_use]
pub fn held_by(inside: &[File], files: &[File]) -> Vec<File> {
    let mut inside = inside.to_vec();
    let items = files.iter().flat_map(|file| &file.items);
    let own: Vec<&HeaderDef> = items
        .filter_map(|item| if let Item::Header(def) = item { Some(def) } else { None })
        .collect();
    for def in &own {
        let Some(((is_frame, when), level)) = def.holds.as_ref().zip(level(def, &own, MAX_NESTING))
        else {
            continue;
        };
        let names: &[&str] = if *is_frame { &["eth"] } else { &["ip", "ip6"] };
        let names: Vec<String> = names.iter().map(|name| format!("{level}{name}")).collect();
        for item in inside.iter_mut().flat_map(|file| &mut file.items) {
            let Item::Header(inner) = item else { continue };
            if names.contains(&inner.name.text) {
                let version = if *is_frame { None } else { version(inner) };
                let when = match (when.clone(), version) {
                    (Some(when), Some(version)) => {
                        let span = when.span;
                        let (when, version) = (Box::new(when), Box::new(version));
                        Some(Expr { kind: ExprKind::Binary(BinOp::And, when, version), span })
                    }
                    (when, version) => when.or(version),
                };
                let header = Path { parts: vec![def.name.clone()], span: def.name.span };
                inner.after.push(After { header, when });
            }
        }
    }
    inside
}

/// What the names of headers behind this one begin with. `None` if they are too deep inside.
fn level(def: &HeaderDef, own: &[&HeaderDef], depth: usize) -> Option<&'static str> {
    let front = def.after.first().map(|after| joined(&after.header))?;
    let [outer, inner] = LEVELS;
    if front.starts_with(inner) {
        return None;
    }
    if front.starts_with(outer) {
        return Some(inner);
    }
    match own.iter().find(|other| other.name.text == front) {
        Some(parent) => level(parent, own, depth.checked_sub(1)?),
        None => Some(outer),
    }
}

/// The test of a version of IP that ends each condition of a header inside.
fn version(inner: &HeaderDef) -> Option<Expr> {
    let mut last = inner.after.last()?.when.as_ref()?;
    while let ExprKind::Binary(BinOp::And, _, right) = &last.kind {
        last = right;
    }
    Some(last.clone())
}
