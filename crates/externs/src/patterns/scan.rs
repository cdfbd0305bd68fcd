//! Searches of streams: bytes that come in parts, with matches that go across the parts.
//!
//! A stream keeps the states of the automata between two parts. A state says all that later bytes
//! need to know about earlier ones, so that no bytes are kept, and cuts make no difference.

use super::literals::Literals;
use super::pattern::{Matcher, Pattern, PatternError, parse};
use super::simulation::Simulation;
use aho_corasick::automaton::StateID;
use regex_syntax::hir::{Hir, Look, LookSet};

/// The place of a search in a stream. It belongs to one stream and one
/// [`PatternSet`](super::PatternSet).
///
/// Two searches of a set are equal if they find the same in all later bytes, as far as their
/// automata can tell. A search takes 24 bytes. With regular expressions, it also has one allocation
/// of at most one bit for each state of their automaton, and of four bytes for each state in use.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Scan {
    /// 0 at the start of the stream. Otherwise one more than the state of the exact literals.
    exact: u32,
    /// The state of the literals in either case.
    nocase: u32,
    /// The active states of the automaton of the regular expressions.
    active: Box<[u32]>,
}

impl Scan {
    /// Leaves out bytes of the stream. No match goes across them, and the next byte is not the
    /// first one of the text or of a line.
    pub fn skip(&mut self) {
        *self = Self { exact: 1, ..Self::default() };
    }

    /// The memory that the search has besides itself (bytes).
    #[must_use]
    pub fn memory(&self) -> usize {
        size_of_val(&*self.active)
    }

    /// The search as bytes, which [`PatternSet::read_scan`](super::PatternSet::read_scan) reads.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let words = [self.exact, self.nocase].into_iter().chain(self.active.iter().copied());
        words.flat_map(u32::to_le_bytes).collect()
    }
}

/// What a set needs for searches of streams.
pub(super) struct Streams {
    exact: Vec<StateID>,
    nocase: Vec<StateID>,
    regexes: Option<Simulation>,
    refused: Vec<PatternError>,
}

impl Streams {
    pub(super) fn new(
        patterns: &[Pattern],
        exact: Option<&Literals>,
        nocase: Option<&Literals>,
    ) -> Self {
        let (mut hirs, mut numbers, mut refused) = (Vec::new(), Vec::new(), Vec::new());
        for (index, pattern) in patterns.iter().enumerate() {
            let Matcher::Regex { source, nocase } = &pattern.matcher else { continue };
            match parse(index, source, *nocase) {
                Ok(hir) if needs_later_bytes(&hir) => {
                    refused.push(PatternError::NeedsLaterBytes { index });
                }
                Ok(hir) => {
                    hirs.push(hir);
                    numbers.push(pattern.number);
                }
                Err(error) => refused.push(error),
            }
        }
        let regexes = Simulation::new(&hirs, numbers).unwrap_or_else(|error| {
            refused.push(error);
            None
        });
        let states = |literals: &Literals| literals.states(patterns);
        Self {
            exact: exact.map_or_else(Vec::new, states),
            nocase: nocase.map_or_else(Vec::new, states),
            regexes,
            refused,
        }
    }

    /// Searches the next bytes. There is at least one.
    pub(super) fn scan(
        &self,
        exact: Option<&Literals>,
        nocase: Option<&Literals>,
        scan: &mut Scan,
        bytes: &[u8],
    ) -> Option<u32> {
        let mut best = None;
        if let Some(regexes) = &self.regexes {
            regexes.scan(scan.exact == 0, &mut scan.active, bytes, &mut best);
        }
        let mut state = scan.exact.saturating_sub(1);
        if let Some(exact) = exact {
            exact.scan(&self.exact, &mut state, bytes, &mut best);
        }
        scan.exact = state.saturating_add(1);
        if let Some(nocase) = nocase {
            nocase.scan(&self.nocase, &mut scan.nocase, bytes, &mut best);
        }
        best
    }

    /// Reads a search and checks its states.
    pub(super) fn read(&self, bytes: &[u8]) -> Option<Scan> {
        let (words, rest) = bytes.as_chunks::<4>();
        let mut words = words.iter().map(|word| u32::from_le_bytes(*word));
        let (exact, nocase) = (words.next()?, words.next()?);
        let scan = Scan { exact, nocase, active: words.collect() };
        let active_is_good = match &self.regexes {
            Some(regexes) => regexes.allows(&scan.active),
            None => scan.active.is_empty(),
        };
        let good = active_is_good
            && rest.is_empty()
            && exact as usize <= self.exact.len() + 1
            && nocase as usize <= self.nocase.len()
            && (exact > 0 || scan == Scan::default());
        good.then_some(scan)
    }

    /// The patterns that are never found.
    pub(super) fn refused(&self) -> &[PatternError] {
        &self.refused
    }
}

/// Whether the bytes behind a match can decide that it is none.
fn needs_later_bytes(hir: &Hir) -> bool {
    let earlier = LookSet::singleton(Look::Start).insert(Look::StartLF);
    !hir.properties().look_set().subtract(earlier).is_empty()
}
