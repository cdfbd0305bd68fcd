//! The manual's page of operators, generated from their signatures so that it can't go out of date.

use crate::ops;
use crate::signature::{Example, Signature, Touch};
use std::fmt::Write as _;

const HEAD: &str = "\
# Operators

Operators are written in Rust and called like functions. Each declares what it touches beside its
arguments (its action profile), so that analyses see through it. Where results start with `found`,
the call may have no answer and needs an `else`:
`let b = maglev(servers, h) else drop \"no server\";`.

This page is generated from the operators' signatures (`BLESS=1 cargo test -p braid-externs`); each
example runs as a test.
";

/// The page, in Markdown.
#[must_use]
pub fn page() -> String {
    let mut page = HEAD.to_owned();
    for op in ops::all() {
        // Writing to a string can't fail.
        let _ = section(&mut page, &op.signature);
    }
    page
}

fn section(page: &mut String, signature: &Signature) -> std::fmt::Result {
    writeln!(page, "\n## {}\n\n    {}\n", signature.name, signature.usage())?;
    writeln!(page, "{}\n\nTouches: {}.\n", wrapped(signature.doc), touches(signature))?;
    for example in signature.examples {
        writeln!(page, "    {}", line(signature, example))?;
    }
    Ok(())
}

/// A text in lines of at most 100 columns.
fn wrapped(text: &str) -> String {
    let mut lines = String::new();
    let mut column = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        let (gap, start) = match column {
            0 => ("", 0),
            _ if column + 1 + length > 100 => ("\n", 0),
            _ => (" ", column + 1),
        };
        lines += gap;
        lines += word;
        column = start + length;
    }
    lines
}

fn touches(signature: &Signature) -> String {
    let part = |touch, what: &str| match touch {
        Touch::No => None,
        Touch::Reads => Some(format!("reads {what}")),
        Touch::Writes => Some(format!("reads and writes {what}")),
    };
    let state =
        if signature.takes_param.is_some() { "the backends' health" } else { "the generator" };
    let profile = signature.profile;
    let parts: Vec<String> = [part(profile.payload, "the payload"), part(profile.state, state)]
        .into_iter()
        .flatten()
        .collect();
    if parts.is_empty() { "nothing but its arguments".to_owned() } else { parts.join(", ") }
}

fn line(signature: &Signature, example: &Example) -> String {
    let results: Vec<String> = signature
        .results
        .iter()
        .zip(example.results)
        .map(|(result, value)| match value {
            1_000.. => format!("{} = {value:#x}", result.name),
            value => format!("{} = {value}", result.name),
        })
        .collect();
    let payload = match example.payload {
        [] => String::new(),
        bytes => {
            bytes.iter().fold("  // payload".to_owned(), |text, byte| format!("{text} {byte:02x}"))
        }
    };
    format!("{}{payload}  // {}", example.call, results.join(", "))
}
