//! The places of matches: a searcher for each pattern, made when a payload first needs it.
//!
//! Searches for the number of a match need no places, and one pass does for all patterns. A place
//! is only searched for behind such a search, and only for the patterns with the number found.

use super::pattern::{MAX_AUTOMATON_BYTES, Matcher, Pattern, parse};
use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use regex_automata::meta::Regex;
use std::collections::HashMap;
use std::sync::OnceLock;

/// The searchers of a set.
#[derive(Default)]
pub(super) struct Places {
    /// For each number, the places in the list of the patterns with it, in order.
    by_number: HashMap<u32, Vec<usize>>,
    searchers: Vec<OnceLock<Option<Searcher>>>,
}

/// Finds the first match of one pattern.
enum Searcher {
    Literal(AhoCorasick),
    Regex(Regex),
}

impl Places {
    pub(super) fn new(patterns: &[Pattern]) -> Self {
        let mut by_number: HashMap<u32, Vec<usize>> = HashMap::new();
        for (index, pattern) in patterns.iter().enumerate() {
            by_number.entry(pattern.number).or_default().push(index);
        }
        Self { by_number, searchers: patterns.iter().map(|_| OnceLock::new()).collect() }
    }

    /// The match of these patterns that begins first.
    pub(super) fn first(
        &self,
        patterns: &[Pattern],
        number: u32,
        payload: &[u8],
    ) -> Option<(usize, usize)> {
        let found = self.by_number.get(&number)?.iter().filter_map(|index| {
            let pattern = patterns.get(*index)?;
            let searcher = self.searchers.get(*index)?;
            searcher.get_or_init(|| Searcher::new(pattern)).as_ref()?.first(payload)
        });
        // Of several least ones, this is the first.
        found.min_by_key(|(start, _)| *start)
    }
}

impl Searcher {
    /// `None` for a pattern that does not compile. The set has none: it compiled all of them.
    fn new(pattern: &Pattern) -> Option<Self> {
        match &pattern.matcher {
            Matcher::Literal { bytes, nocase } => AhoCorasick::builder()
                .ascii_case_insensitive(*nocase)
                .match_kind(MatchKind::LeftmostFirst)
                .kind(Some(AhoCorasickKind::ContiguousNFA))
                .build([bytes])
                .ok()
                .map(Self::Literal),
            Matcher::Regex { source, nocase } => {
                let hir = parse(0, source, *nocase).ok()?;
                let config =
                    Regex::config().utf8_empty(false).nfa_size_limit(Some(MAX_AUTOMATON_BYTES));
                Regex::builder().configure(config).build_from_hir(&hir).ok().map(Self::Regex)
            }
        }
    }

    fn first(&self, payload: &[u8]) -> Option<(usize, usize)> {
        match self {
            Self::Literal(one) => one.find(payload).map(|found| (found.start(), found.end())),
            Self::Regex(one) => one.find(payload).map(|found| (found.start(), found.end())),
        }
    }
}
