//! The automata of a pattern set.

use super::pattern::{
    MAX_AUTOMATON_BYTES, MAX_LITERAL_BYTES, MAX_NESTED_LITERALS, MAX_PATTERNS,
    MAX_REGEX_BYTES_TOTAL, Matcher, Pattern, PatternError, parse,
};
use super::place::Places;
use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use regex_automata::PatternSet as Matched;
use regex_automata::meta::{self, Regex};
use regex_syntax::hir::Hir;

/// The automata of a set; `None` for a kind without patterns.
#[derive(Default)]
pub(super) struct Compiled {
    exact: Option<Literals>,
    nocase: Option<Literals>,
    regexes: Option<Regexes>,
    places: Places,
}

/// Literals with the same case rule.
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
            places: Places::new(patterns),
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

/// Lowers `best` to this number, if it is lower.
fn lower(best: &mut Option<u32>, number: u32) {
    *best = Some(best.map_or(number, |b| b.min(number)));
}

/// A literal to search for. Literals are ordered by their bytes from the last one to the first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Needle {
    reversed: Vec<u8>,
    number: u32,
    index: usize,
}

/// The literals of one case rule, without literals that can never be the lowest match, because they
/// end with (or equal) a literal with the same or a lower number.
#[expect(clippy::indexing_slicing, reason = "`nest` has places in `kept`")]
fn needles(patterns: &[Pattern], want_nocase: bool) -> Result<Vec<Needle>, PatternError> {
    let mut all: Vec<Needle> = (0..)
        .zip(patterns)
        .filter_map(|(index, pattern)| match &pattern.matcher {
            Matcher::Literal { bytes, nocase } if *nocase == want_nocase => {
                let mut reversed: Vec<u8> = bytes.iter().rev().copied().collect();
                if want_nocase {
                    reversed.make_ascii_lowercase();
                }
                Some(Needle { reversed, number: pattern.number, index })
            }
            _ => None,
        })
        .collect();
    all.sort_unstable();
    let mut kept: Vec<Needle> = Vec::with_capacity(all.len());
    // Places in `kept`: each literal ends with the one before. The order of reversed bytes puts all
    // literals that end with a literal directly after it.
    let mut nest: Vec<usize> = Vec::new();
    for needle in all {
        while let Some(&top) = nest.last()
            && !needle.reversed.starts_with(&kept[top].reversed)
        {
            nest.pop();
        }
        if nest.last().is_some_and(|&top| kept[top].number <= needle.number) {
            continue;
        }
        if nest.len() == MAX_NESTED_LITERALS {
            return Err(PatternError::LiteralsNested { index: needle.index });
        }
        nest.push(kept.len());
        kept.push(needle);
    }
    Ok(kept)
}

impl Literals {
    fn new(patterns: &[Pattern], nocase: bool) -> Result<Option<Self>, PatternError> {
        let needles = needles(patterns, nocase)?;
        let numbers: Vec<u32> = needles.iter().map(|needle| needle.number).collect();
        let Some(&lowest) = numbers.iter().min() else { return Ok(None) };
        let automaton = AhoCorasick::builder()
            .ascii_case_insensitive(nocase)
            .match_kind(MatchKind::Standard)
            // Never the DFA: a few long literals would make it gigabytes large.
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(
                needles
                    .iter()
                    .map(|needle| needle.reversed.iter().rev().copied().collect::<Vec<u8>>()),
            )
            .map_err(|e| PatternError::Build { message: e.to_string() })?;
        Ok(Some(Self { automaton, numbers, lowest }))
    }

    fn lower_match(&self, payload: &[u8], best: &mut Option<u32>) {
        // Overlapping matches, because another literal may cover a literal.
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
