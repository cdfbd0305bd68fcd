//! Compares `docs/grammar.md` with the parser. Random programs from its rules must parse, and its
//! lists of words must be those of the parser.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use super::support::entropy::Entropy;
use crate::diag::{Style, render};
use crate::parse::parse;
use crate::parse::words::{KEYWORDS, RATES, UNITS};
use crate::source::SourceMap;
use proptest::prelude::*;

const NAMES: [&str; 7] = ["a", "map", "flow", "idle", "per", "global", "x1"];
const WORDS: [&str; 6] = ["a", "drop", "match", "left", "in", "_x"];
const NUMBERS: [&str; 4] = ["0", "1_000", "0x1f", "0b101"];
const STRINGS: [&str; 3] = ["\"\"", "\"denied\"", "\"a\\\"\\u{e9}\""];
const ADDRESSES: [&str; 6] =
    ["192.0.2.1", "2001:db8::1", "::", "02:00:00:00:00:01", "10.0.0.0/8", "2001:db8::/32"];

/// The right side of a rule.
#[derive(Clone, Debug)]
enum Rule {
    Text(String),
    Name(String),
    All(Vec<Rule>),
    Either(Vec<Rule>),
    Maybe(Box<Rule>),
    Many(Box<Rule>),
}

fn document() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/grammar.md");
    std::fs::read_to_string(path).expect("docs/grammar.md")
}

/// The text of all code blocks of a language.
fn blocks(document: &str, kind: &str) -> String {
    let fence = format!("```{kind}\n");
    let starts = document.split(fence.as_str()).skip(1);
    starts.filter_map(|rest| rest.split_once("```")).map(|(block, _)| block).collect()
}

fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let len = if first == '"' {
            2 + rest[1..].find('"').expect("a closing quote")
        } else if first.is_alphanumeric() {
            rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())
        } else {
            1
        };
        tokens.push(rest[..len].to_owned());
        rest = rest[len..].trim_start();
    }
    tokens
}

/// Reads alternatives up to a closing bracket or the end of the rule, and consumes that too.
fn alternatives(tokens: &mut std::vec::IntoIter<String>) -> Rule {
    let mut either = Vec::new();
    let mut all = Vec::new();
    for_each(tokens, |token, tokens| {
        match token {
            "|" => either.push(Rule::All(std::mem::take(&mut all))),
            "[" => all.push(Rule::Maybe(Box::new(alternatives(tokens)))),
            "{" => all.push(Rule::Many(Box::new(alternatives(tokens)))),
            "(" => all.push(alternatives(tokens)),
            "]" | "}" | ")" | ";" => return false,
            _ => all.push(match token.strip_prefix('"') {
                Some(text) => Rule::Text(text.trim_end_matches('"').to_owned()),
                None => Rule::Name(token.to_owned()),
            }),
        }
        true
    });
    either.push(Rule::All(all));
    Rule::Either(either)
}

fn for_each(
    tokens: &mut std::vec::IntoIter<String>,
    mut step: impl FnMut(&str, &mut std::vec::IntoIter<String>) -> bool,
) {
    while let Some(token) = tokens.next() {
        if !step(&token, tokens) {
            return;
        }
    }
}

fn rules() -> BTreeMap<String, Rule> {
    let mut tokens = tokens(&blocks(&document(), "ebnf")).into_iter();
    let mut rules = BTreeMap::new();
    while let Some(name) = tokens.next() {
        assert_eq!(tokens.next().as_deref(), Some("="), "after {name}");
        let before = rules.insert(name.clone(), alternatives(&mut tokens));
        assert!(before.is_none(), "{name} has two rules");
    }
    rules
}

/// The contents of the document.
struct Grammar {
    rules: BTreeMap<String, Rule>,
    depths: BTreeMap<String, u32>,
    units: Vec<String>,
}

/// The document, read once for all cases.
static GRAMMAR: LazyLock<Grammar> = LazyLock::new(|| {
    let rules = rules();
    let units = words(&blocks(&document(), "units")).into_iter().collect();
    let depths = depths(&rules);
    Grammar { rules, depths, units }
});

/// Writes random texts of rules.
struct Writer {
    e: Entropy,
    out: String,
}

impl Writer {
    fn new(bytes: Vec<u8>) -> Self {
        Self { e: Entropy::new(bytes), out: String::new() }
    }

    /// Writes a part. With less `fuel` left, the part is smaller.
    fn write(&mut self, rule: &Rule, fuel: u32) {
        match rule {
            Rule::Text(text) => self.token(text),
            Rule::Name(name) => self.name(name, fuel),
            Rule::All(all) => all.iter().for_each(|part| self.write(part, fuel)),
            Rule::Either(either) if fuel == 0 => {
                let least = either.iter().min_by_key(|part| depth(part, &GRAMMAR.depths));
                self.write(least.expect("an alternative"), 0);
            }
            Rule::Either(either) => {
                let at = self.e.below(either.len());
                self.write(&either[at], fuel);
            }
            Rule::Maybe(part) if fuel > 0 && self.e.coin() => self.write(part, fuel),
            Rule::Many(part) if fuel > 0 => {
                (0..self.e.below(3)).for_each(|_| self.write(part, fuel - 1));
            }
            Rule::Maybe(_) | Rule::Many(_) => {}
        }
    }

    fn token(&mut self, text: &str) {
        self.out += text;
        self.out.push(' ');
    }

    fn name(&mut self, name: &str, fuel: u32) {
        let token = match name {
            "NAME" => self.e.of(&NAMES),
            "WORD" => self.e.of(&WORDS),
            "NUMBER" => self.e.of(&NUMBERS),
            "STRING" => self.e.of(&STRINGS),
            "ADDRESS" => self.e.of(&ADDRESSES),
            "UNIT" => &GRAMMAR.units[self.e.below(GRAMMAR.units.len())],
            _ => return self.rule(name, fuel.saturating_sub(1)),
        };
        self.token(token);
    }

    fn rule(&mut self, name: &str, fuel: u32) {
        let start = self.out.len();
        self.write(&GRAMMAR.rules[name], fuel);
        // This rule cannot be expressed in the notation.
        if name == "condition" && self.out[start..].starts_with('{') {
            self.out.insert_str(start, "( ");
            self.out.push_str(") ");
        }
    }
}

/// The least nesting depth of the rules below a part, as far as it is known. Tokens do not count.
fn depth(rule: &Rule, known: &BTreeMap<String, u32>) -> u32 {
    match rule {
        Rule::Text(_) | Rule::Maybe(_) | Rule::Many(_) => 0,
        Rule::Name(name) if name.chars().all(char::is_uppercase) => 0,
        Rule::Name(name) => known.get(name).map_or(u32::MAX, |depth| depth.saturating_add(1)),
        Rule::All(all) => all.iter().map(|part| depth(part, known)).max().unwrap_or(0),
        Rule::Either(either) => either.iter().map(|part| depth(part, known)).min().unwrap_or(0),
    }
}

/// The least depth of each rule.
fn depths(rules: &BTreeMap<String, Rule>) -> BTreeMap<String, u32> {
    let mut known: BTreeMap<String, u32> = BTreeMap::new();
    for _ in rules {
        let next = rules.iter().map(|(name, rule)| (name.clone(), depth(rule, &known)));
        known = next.filter(|(_, depth)| *depth < u32::MAX).collect();
    }
    assert_eq!(known.len(), rules.len(), "some rules never end");
    known
}

fn words(text: &str) -> BTreeSet<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn names(rule: &Rule, found: &mut BTreeSet<String>) {
    match rule {
        Rule::Text(_) => {}
        Rule::Name(name) => drop(found.insert(name.clone())),
        Rule::All(parts) | Rule::Either(parts) => parts.iter().for_each(|part| names(part, found)),
        Rule::Maybe(part) | Rule::Many(part) => names(part, found),
    }
}

#[test]
fn every_rule_is_used_and_defined() {
    let rules = rules();
    let mut used = BTreeSet::from(["file".to_owned()]);
    rules.values().for_each(|rule| names(rule, &mut used));
    let tokens = ["NAME", "WORD", "NUMBER", "STRING", "ADDRESS", "UNIT"].map(str::to_owned);
    let defined: BTreeSet<String> = rules.into_keys().chain(tokens).collect();
    assert_eq!(used, defined);
}

#[test]
fn lists_of_words_are_the_parsers() {
    let document = document();
    let own = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(words(&blocks(&document, "keywords")), own(KEYWORDS));
    let units = words(&blocks(&document, "units"));
    let rates = RATES.iter().map(|rate| format!("{rate}/s"));
    assert_eq!(units, own(UNITS).into_iter().chain(rates).collect());
    for unit in units {
        let text = format!("const A = 1 {unit};");
        assert!(parse(&text, 0).1.is_empty(), "{unit}");
    }
}

/// Parts of a file with the text around them. A file alone seldom has the rarer parts with all that
/// may stand in them.
const PARTS: [(&str, &str, &str); 5] = [
    ("", "file", ""),
    ("nf a() { ", "nf_item", "}"),
    ("chain a { ", "chain_item", "}"),
    ("chain a { interface a { ", "of_if", "} }"),
    ("const A = ", "expr", ";"),
];

proptest! {
    #![proptest_config(ProptestConfig {
        cases: braid_cases::cases(1024),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn what_the_rules_make_is_parsed(
        part in prop::sample::select(&PARTS),
        bytes in prop::collection::vec(any::<u8>(), 0..600),
    ) {
        let (before, rule, after) = part;
        let mut writer = Writer::new(bytes);
        writer.out += before;
        writer.rule(rule, 26);
        let text = writer.out + after;
        let mut sources = SourceMap::new();
        let file = sources.add("grammar", text.clone());
        let said = render(&parse(&text, file).1, &sources, Style::default());
        prop_assert!(said.is_empty(), "{}\n{}", said, text);
    }
}
