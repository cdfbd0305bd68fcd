//! The automata of a pattern set.

use super::literals::{Literals, lower};
use super::pattern::{
    MAX_AUTOMATON_BYTES, MAX_LITERAL_BYTES, MAX_PATTERNS, MAX_REGEX_BYTES_TOTAL, Matcher, Pattern,
    PatternError, parse,
};
use super::place::Places;
use super::scan::{Scan, Streams};
use regex_automata::PatternSet as Matched;
use regex_automata::meta::{self, Regex};
use regex_syntax::hir::Hir;
use std::sync::OnceLock;

/// The automata of a set; `None` for a kind without patterns.
#[derive(Default)]
pub(super) struct Compiled {
    exact: Option<Literals>,
    nocase: Option<Literals>,
    regexes: Option<Regexes>,
    places: Places,
    /// The first search of a stream makes it.
    streams: OnceLock<Streams>,
}

/// Regular expressions.
struct Regexes {
    automaton: Regex,
    numbers: Vec<u32>,
    lowest: u32,
}

impl Compiled {
    pub(super) fn new(patterns: &[Pattern]) -> Result<Self, Vec<PatternError>> {
        if patterns.len() > MAX_PATTERNS {
            return Err(vec![PatternError::TooMany { count: patterns.len() }]);
        }
        let hirs = check(patterns)?;
        let one = |error| vec![error];
        Ok(Self {
            exact: Literals::new(patterns, false).map_err(one)?,
            nocase: Literals::new(patterns, true).map_err(one)?,
            regexes: Regexes::new(patterns, &hirs).map_err(one)?,
            places: Places::new(patterns),
            streams: OnceLock::new(),
        })
    }

    /// The place of the first match of a pattern with this number.
    pub(super) fn first_place(
        &self,
        patterns: &[Pattern],
        number: u32,
        payload: &[u8],
    ) -> Option<(usize, usize)> {
        self.places.first(patterns, number, payload)
    }

    pub(super) fn lowest_match(&self, payload: &[u8]) -> Option<u32> {
        let mut best = None;
        for literals in [&self.exact, &self.nocase].into_iter().flatten() {
            literals.lower_match(payload, &mut best);
        }
        if let Some(regexes) = &self.regexes {
            regexes.lower_match(payload, &mut best);
        }
        best
    }

    /// Searches the next bytes of a stream.
    pub(super) fn scan(&self, patterns: &[Pattern], scan: &mut Scan, bytes: &[u8]) -> Option<u32> {
        let streams = self.streams(patterns);
        streams.scan(self.exact.as_ref(), self.nocase.as_ref(), scan, bytes)
    }

    /// What only searches of streams need.
    pub(super) fn streams(&self, patterns: &[Pattern]) -> &Streams {
        let make = || Streams::new(patterns, self.exact.as_ref(), self.nocase.as_ref());
        self.streams.get_or_init(make)
    }
}

/// Checks each pattern alone and returns the parsed regular expressions with their places in the
/// list.
fn check(patterns: &[Pattern]) -> Result<Vec<(usize, Hir)>, Vec<PatternError>> {
    let (mut errors, mut hirs) = (Vec::new(), Vec::new());
    let mut literals = Budget { used: 0, most: MAX_LITERAL_BYTES };
    let mut regexes = Budget { used: 0, most: MAX_REGEX_BYTES_TOTAL };
    for (index, pattern) in patterns.iter().enumerate() {
        match &pattern.matcher {
            Matcher::Literal { bytes, .. } if bytes.is_empty() => {
                errors.push(PatternError::EmptyLiteral { index });
            }
            Matcher::Literal { bytes, .. } => {
                if literals.crossed_by(bytes.len()) {
                    errors.push(PatternError::LiteralsTooLong { index });
                }
            }
            Matcher::Regex { source, nocase } => {
                if regexes.crossed_by(source.len()) {
                    errors.push(PatternError::RegexesTooLong { index });
                }
                // Regular expressions past the limit are not parsed: the set is refused anyway.
                if regexes.used <= regexes.most {
                    match parse(index, source, *nocase) {
                        Ok(hir) => hirs.push((index, hir)),
                        Err(error) => errors.push(error),
                    }
                }
            }
        }
    }
    if errors.is_empty() { Ok(hirs) } else { Err(errors) }
}

/// A sum with a limit.
struct Budget {
    used: usize,
    most: usize,
}

impl Budget {
    /// Whether this addition is the first that exceeds the limit.
    fn crossed_by(&mut self, more: usize) -> bool {
        let before = self.used;
        self.used = before.saturating_add(more);
        before <= self.most && self.used > self.most
    }
}

impl Regexes {
    fn new(patterns: &[Pattern], hirs: &[(usize, Hir)]) -> Result<Option<Self>, PatternError> {
        let numbers: Vec<u32> =
            hirs.iter().filter_map(|(i, _)| patterns.get(*i)).map(|p| p.number).collect();
        let Some(&lowest) = numbers.iter().min() else { return Ok(None) };
        let all: Vec<&Hir> = hirs.iter().map(|(_, hir)| hir).collect();
        let automaton = build(&all).map_err(|error| {
            if error.size_limit().is_none() {
                return PatternError::Build { message: error.to_string() };
            }
            // Finds the first prefix of the list that is too big. There are few builds, and the
            // limit bounds each.
            let fits = |count: usize| all.get(..count).is_some_and(|some| build(some).is_ok());
            let (mut good, mut bad) = (0, all.len());
            while bad - good > 1 {
                let middle = good.midpoint(bad);
                if fits(middle) { good = middle } else { bad = middle }
            }
            PatternError::RegexesTooBig { index: hirs.get(good).map_or(0, |(index, _)| *index) }
        })?;
        Ok(Some(Self { automaton, numbers, lowest }))
    }

    fn lower_match(&self, payload: &[u8], best: &mut Option<u32>) {
        if best.is_some_and(|b| b <= self.lowest) {
            return;
        }
        let mut matched = Matched::new(self.automaton.pattern_len());
        let input = regex_automata::Input::new(payload);
        self.automaton.which_overlapping_matches(&input, &mut matched);
        for number in matched.iter().filter_map(|id| self.numbers.get(id.as_usize())) {
            lower(best, *number);
        }
    }
}

fn build(hirs: &[&Hir]) -> Result<Regex, Box<meta::BuildError>> {
    let config = Regex::config()
        .match_kind(regex_automata::MatchKind::All)
        .utf8_empty(false)
        .nfa_size_limit(Some(MAX_AUTOMATON_BYTES));
    Ok(Regex::builder().configure(config).build_many_from_hir(hirs)?)
}
