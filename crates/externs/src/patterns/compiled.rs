//! The automata of a pattern set.

use super::{
    MAX_AUTOMATON_BYTES, MAX_LITERAL_BYTES, MAX_PATTERNS, MAX_REGEX_BYTES, Matcher, Pattern,
    PatternError,
};
use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use regex_automata::PatternSet as Matched;
use regex_automata::meta::{self, Regex};
use regex_automata::util::syntax;
use regex_syntax::hir::Hir;

/// Deepest nesting of groups in a regular expression: the parser's recursion stays shallow.
const MAX_NESTING: u32 = 100;

/// Automata; those without patterns are absent.
#[derive(Default)]
pub(super) struct Compiled {
    exact: Option<Literals>,
    nocase: Option<Literals>,
    regexes: Option<Regexes>,
}

/// Literals of one case rule.
struct Literals {
    automaton: AhoCorasick,
    numbers: Vec<u32>,
    lowest: u32,
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
        })
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
}

/// Checks each pattern by itself; gives the regular expressions (place in the list, parsed).
fn check(patterns: &[Pattern]) -> Result<Vec<(usize, Hir)>, Vec<PatternError>> {
    let (mut errors, mut hirs, mut literal_bytes) = (Vec::new(), Vec::new(), 0_usize);
    for (index, pattern) in patterns.iter().enumerate() {
        match &pattern.matcher {
            Matcher::Literal { bytes, .. } if bytes.is_empty() => {
                errors.push(PatternError::EmptyLiteral { index });
            }
            Matcher::Literal { bytes, .. } => {
                let before = literal_bytes;
                literal_bytes = literal_bytes.saturating_add(bytes.len());
                // Reported once: all later literals are past the limit too.
                if before <= MAX_LITERAL_BYTES && literal_bytes > MAX_LITERAL_BYTES {
                    errors.push(PatternError::LiteralsTooLong { index });
                }
            }
            Matcher::Regex { source, nocase } => match parse(index, source, *nocase) {
                Ok(hir) => hirs.push((index, hir)),
                Err(error) => errors.push(error),
            },
        }
    }
    if errors.is_empty() { Ok(hirs) } else { Err(errors) }
}

fn parse(index: usize, source: &str, nocase: bool) -> Result<Hir, PatternError> {
    if source.len() > MAX_REGEX_BYTES {
        return Err(PatternError::RegexTooLong { index, length: source.len() });
    }
    let config = syntax::Config::new()
        .unicode(false)
        .utf8(false)
        .case_insensitive(nocase)
        .nest_limit(MAX_NESTING);
    syntax::parse_with(source, &config).map_err(|error| {
        let (offset, message) = match &error {
            regex_syntax::Error::Parse(e) => (e.span().start.offset, e.kind().to_string()),
            regex_syntax::Error::Translate(e) => (e.span().start.offset, e.kind().to_string()),
            other => (0, other.to_string()),
        };
        PatternError::RegexSyntax { index, offset, message }
    })
}

/// Keeps the lower one.
fn lower(best: &mut Option<u32>, number: u32) {
    *best = Some(best.map_or(number, |b| b.min(number)));
}

impl Literals {
    fn new(patterns: &[Pattern], want_nocase: bool) -> Result<Option<Self>, PatternError> {
        let (numbers, literals): (Vec<u32>, Vec<&[u8]>) = patterns
            .iter()
            .filter_map(|pattern| match &pattern.matcher {
                Matcher::Literal { bytes, nocase } if *nocase == want_nocase => {
                    Some((pattern.number, bytes.as_slice()))
                }
                _ => None,
            })
            .unzip();
        let Some(&lowest) = numbers.iter().min() else { return Ok(None) };
        let automaton = AhoCorasick::builder()
            .ascii_case_insensitive(want_nocase)
            .match_kind(MatchKind::Standard)
            // Never the DFA, which a few long literals would make gigabytes large.
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(literals)
            .map_err(|e| PatternError::Build { message: e.to_string() })?;
        Ok(Some(Self { automaton, numbers, lowest }))
    }

    fn lower_match(&self, payload: &[u8], best: &mut Option<u32>) {
        // Overlapping matches: a literal may hide behind another one that covers it.
        for found in self.automaton.find_overlapping_iter(payload) {
            if best.is_some_and(|b| b <= self.lowest) {
                return;
            }
            if let Some(&number) = self.numbers.get(found.pattern().as_usize()) {
                lower(best, number);
            }
        }
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
            let alone = hirs.iter().find(|(_, hir)| build(&[hir]).is_err());
            match alone {
                Some(&(index, _)) => PatternError::RegexTooBig { index },
                None => PatternError::RegexesTooBig,
            }
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
