//! Preselects rules by one of their contents each.
//!
//! One automaton searches a content of every rule at once, whatever the case of letters. Only rules
//! whose content occurs are evaluated. A long content is searched by its first bytes.

use crate::limits::MAX_SELECTOR;
use crate::rule::{Buffer, Rule, What};
use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use std::collections::HashMap;

/// The rules of a set that are evaluated at the same places.
#[derive(Debug, Default)]
pub struct Prefilter {
    automaton: Option<AhoCorasick>,
    /// For each pattern: the buffers in which it selects rules, and these rules, by number.
    selected: Vec<Vec<(Buffer, u32)>>,
    /// Rules without such a content.
    always: Vec<u32>,
}

/// The content by which a rule is preselected.
fn selector(rule: &Rule) -> Option<(Buffer, Vec<u8>)> {
    let contents = rule.buffers.iter().flat_map(|of| {
        let contents = of.tests.iter().filter(|test| !test.is_negated);
        contents.filter_map(|test| match &test.what {
            What::Content(content) => Some((of.buffer, content)),
            _ => None,
        })
    });
    let longest = contents.max_by_key(|(_, content)| content.bytes.len());
    longest.map(|(buffer, content)| {
        let first = content.bytes.iter().take(MAX_SELECTOR);
        (buffer, first.map(u8::to_ascii_lowercase).collect())
    })
}

impl Prefilter {
    /// Of no rules.
    pub const NONE: Self = Self { automaton: None, selected: Vec::new(), always: Vec::new() };

    /// Of the rules with these numbers.
    ///
    /// # Errors
    /// The automaton cannot be built.
    pub fn new<'a>(rules: impl Iterator<Item = (u32, &'a Rule)>) -> Result<Self, String> {
        let mut patterns: Vec<Vec<u8>> = Vec::new();
        let mut places: HashMap<Vec<u8>, usize> = HashMap::new();
        let mut made = Self::default();
        for (number, rule) in rules {
            let Some((buffer, bytes)) = selector(rule) else {
                made.always.push(number);
                continue;
            };
            let at = *places.entry(bytes).or_insert_with_key(|bytes| {
                patterns.push(bytes.clone());
                made.selected.push(Vec::new());
                patterns.len() - 1
            });
            made.selected.get_mut(at).into_iter().for_each(|of| of.push((buffer, number)));
        }
        if !patterns.is_empty() {
            let automaton = AhoCorasick::builder()
                .kind(Some(AhoCorasickKind::ContiguousNFA))
                .match_kind(MatchKind::Standard)
                .ascii_case_insensitive(true)
                .build(&patterns);
            made.automaton = Some(automaton.map_err(|error| error.to_string())?);
        }
        Ok(made)
    }

    /// Whether there are no rules.
    pub fn is_empty(&self) -> bool {
        self.always.is_empty() && self.selected.is_empty()
    }

    /// The rules without a content that preselects them.
    pub fn always(&self) -> &[u32] {
        &self.always
    }

    /// The patterns that occur in these bytes, by number. A pattern may come several times.
    pub fn patterns<'a>(&'a self, bytes: &'a [u8]) -> impl Iterator<Item = u32> + 'a {
        let found =
            self.automaton.iter().flat_map(move |automaton| automaton.find_overlapping_iter(bytes));
        found.map(|found| found.pattern().as_u32())
    }

    /// The rules that a pattern selects in a buffer.
    pub fn selected(&self, pattern: u32, buffer: Buffer) -> impl Iterator<Item = u32> {
        let of = usize::try_from(pattern).ok().and_then(|at| self.selected.get(at));
        let of = of.map(Vec::as_slice).unwrap_or_default();
        of.iter().filter(move |(of, _)| *of == buffer).map(|(_, number)| *number)
    }
}
