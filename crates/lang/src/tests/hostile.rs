//! Tests the parser and the formatter on text that nobody would write. They must not panic or
//! overflow the stack, and must always give a result.

use super::support::entropy::Entropy;
use super::support::{gen_chain, print_item};
use crate::diag::{Style, render, to_json};
use crate::fmt::format;
use crate::lexer::lex;
use crate::parse::state::MAX_DEPTH;
use crate::parse::{parse, parse_expr};
use crate::source::SourceMap;
use proptest::prelude::*;

/// Reads a text in all ways. Formatted text must be a fixed point of the formatter.
fn survive(text: &str) {
    let (_, diagnostics) = parse(text, 0);
    let (_, of_expr) = parse_expr(text, 0, 7);
    let mut sources = SourceMap::new();
    sources.add("hostile", text);
    for all in [&diagnostics, &of_expr] {
        let said = render(all, &sources, Style { color: true, ..Style::default() });
        assert_eq!(said.is_empty(), all.is_empty());
        assert_eq!(to_json(all, &sources).as_array().map(Vec::len), Some(all.len()));
    }
    match format(text) {
        Ok(once) => assert_eq!(format(&once).as_deref(), Ok(once.as_str()), "from\n{text}"),
        Err(wrong) => assert!(wrong.has_errors()),
    }
}

const WORDS: [&str; 82] = [
    "nf",
    "chain",
    "f",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    "<",
    ">",
    ",",
    ";",
    ":",
    ".",
    "..",
    "=",
    "==",
    "=>",
    "->",
    "<->",
    "+",
    "-",
    "*",
    "/",
    "%",
    "&",
    "|",
    "~",
    "!",
    "&&",
    "||",
    "<<",
    ">>",
    ">=",
    "+=",
    ">>=",
    "match",
    "if",
    "else",
    "for",
    "in",
    "let",
    "output",
    "drop",
    "state",
    "per",
    "global",
    "flow",
    "exists",
    "has",
    "not",
    "and",
    "or",
    "send",
    "emit",
    "push",
    "on",
    "expire",
    "every",
    "stream",
    "use",
    "const",
    "fn",
    "action",
    "event",
    "extends",
    "policy",
    "Order",
    "interface",
    "behind",
    "address",
    "gateway",
    "too_long",
    "10.0.0.1/24",
    "10.0.0.1",
    "::1",
    "1..5",
    "100 Mbit/s",
    "\"x\"",
    "// c\n",
    "\n",
];

fn soup(bytes: Vec<u8>) -> String {
    let mut e = Entropy::new(bytes);
    let count = 1 + usize::from(e.byte());
    (0..count).map(|_| e.of(&WORDS).to_owned() + if e.below(4) == 0 { "" } else { " " }).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: braid_cases::cases(256), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_survived(text in any::<String>()) {
        survive(&text);
    }

    #[test]
    fn any_ascii_is_survived(bytes in prop::collection::vec(0_u8..128, 0..200)) {
        survive(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn token_soup_is_survived(bytes in prop::collection::vec(any::<u8>(), 0..512)) {
        survive(&soup(bytes));
    }

    #[test]
    fn damaged_program_is_survived(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        cuts in prop::collection::vec((any::<u16>(), 0_usize..4, 0_usize..78), 1..6),
    ) {
        let mut text = print_item::file(&gen_chain::file(&mut Entropy::new(bytes)));
        for (at, cut, word) in cuts {
            let tokens = lex(&text, 0, 0).tokens;
            let token = tokens[usize::from(at) % tokens.len()];
            let end = tokens[(usize::from(at) % tokens.len() + cut).min(tokens.len() - 1)].end;
            let range = token.start as usize..end.max(token.start) as usize;
            text.replace_range(range, WORDS[word]);
        }
        survive(&text);
    }
}

#[test]
fn deep_nesting_is_refused_without_overflow() {
    let many = 200_000;
    let rows = [
        ("const A = ", "(", "1"),
        ("const A = ", "[", "1"),
        ("const A = ", "{", "1"),
        ("const A = ", "!", "a"),
        ("const A = ", "~", "a"),
        ("const A = ", "-", "1"),
        ("const A = ", "not ", "a"),
        ("const A = ", "exists ", "a"),
        ("const A = ", "f(", "1"),
        ("const A = ", "a[", "1"),
        ("const A = ", "{a: ", "1"),
        ("const A = a", "[1]", ";"),
        ("const A = a[1]", ".b", ";"),
        ("const A = 1", " + 1", ";"),
        ("const A = 1", " or 1", ";"),
        ("const A = 1", " < 1", ";"),
        ("const A = 1", "..1", ";"),
        ("const A = ", "if a { 1 } else ", "1"),
        ("const A = ", "if ", "1"),
        ("nf f(a: ", "list<", "ip4"),
        ("nf f(a: ", "{ a: ", "ip4"),
        ("nf f() { ", "{ ", "output;"),
        ("nf f() { ", "if a { ", "output;"),
        ("nf f() { ", "if a { } else ", "{ }"),
        ("nf f() { ", "match { else => ", "output;"),
        ("nf f() { ", "x = 1 else ", "drop;"),
        ("nf f() { ", "for i in 1..2 { ", "drop;"),
        ("", "nf f() { ", "output;"),
        ("chain c { a = ", "f(x: ", "1"),
    ];
    for (before, part, after) in rows {
        let text = format!("{before}{}{after}", part.repeat(many));
        let (_, diagnostics) = parse(&text, 0);
        assert!(diagnostics.has_errors(), "{before}{part}…");
    }
}

#[test]
fn nesting_up_to_the_limit_is_read() {
    let depth = MAX_DEPTH as usize - 1;
    let nested = format!("const A = {}1{};", "(".repeat(depth), ")".repeat(depth));
    assert!(parse(&nested, 0).1.is_empty());
    assert_eq!(format(&nested).map(|text| text.trim_end().to_owned()), Ok(nested.clone()));
    let row = format!("const A = 1{};", " + 1".repeat(depth - 1));
    assert!(parse(&row, 0).1.is_empty());
    let deeper = format!("const A = {}1{};", "(".repeat(depth + 1), ")".repeat(depth + 1));
    let codes: Vec<u16> = parse(&deeper, 0).1.iter().map(|d| d.code.number()).collect();
    assert_eq!(codes, [118]);
}

#[test]
fn flood_of_errors_is_bounded() {
    let (_, diagnostics) = parse(&"nf f() { x y; }\n".repeat(10_000), 0);
    assert!(diagnostics.len() <= crate::diag::MAX_DIAGNOSTICS);
    assert!(diagnostics.left_out() > 9_000);
}
