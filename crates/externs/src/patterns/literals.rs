//! The literals of a pattern set: one automaton for each case rule.

use super::pattern::{MAX_NESTED_LITERALS, Matcher, Pattern, PatternError};
use super::starts::Starts;
use aho_corasick::automaton::{Automaton, StateID};
use aho_corasick::dfa::DFA;
use aho_corasick::nfa::contiguous::NFA;
use aho_corasick::{Anchored, BuildError, Input, MatchKind};

/// The most bytes of literals for which there is a DFA. It needs at most 1 KiB for each byte.
const MAX_DFA_LITERAL_BYTES: usize = 4 << 10;

/// A search for the next place where a literal may begin costs as much as the automaton needs for
/// this number of bytes.
const COST: usize = 16;

/// How many bytes such searches may cost in all beyond the bytes that they skip. Then the text has
/// too many of these places, and the automaton reads the rest.
const CREDIT: usize = 64;

/// The automaton of some literals.
enum Machine {
    /// Reads a byte in one step. For few literals, because many would need gigabytes.
    Dfa(DFA),
    Nfa(NFA),
}

/// Literals with the same case rule.
pub(super) struct Literals {
    machine: Machine,
    root: StateID,
    /// By byte: whether it leads from the root to the root, so that searches of streams skip it.
    is_skipped: Box<[bool; 256]>,
    /// Where literals may begin, so that searches of streams skip the bytes before.
    starts: Option<Starts>,
    numbers: Vec<u32>,
    lowest: u32,
    nocase: bool,
}

/// Lowers `best` to this number, if it is lower.
pub(super) fn lower(best: &mut Option<u32>, number: u32) {
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

/// Evaluates an expression for the machine's automaton, whichever it is.
macro_rules! with_automaton {
    ($machine:expr, $automaton:ident => $body:expr) => {
        match $machine {
            Machine::Dfa($automaton) => $body,
            Machine::Nfa($automaton) => $body,
        }
    };
}

impl Machine {
    fn new(literals: &[Vec<u8>], nocase: bool) -> Result<Self, BuildError> {
        let bytes: usize = literals.iter().map(Vec::len).sum();
        if bytes <= MAX_DFA_LITERAL_BYTES {
            let mut builder = DFA::builder();
            let builder = builder.ascii_case_insensitive(nocase).match_kind(MatchKind::Standard);
            builder.build(literals).map(Machine::Dfa)
        } else {
            let mut builder = NFA::builder();
            let builder = builder.ascii_case_insensitive(nocase).match_kind(MatchKind::Standard);
            builder.build(literals).map(Machine::Nfa)
        }
    }
}

impl Literals {
    pub(super) fn new(patterns: &[Pattern], nocase: bool) -> Result<Option<Self>, PatternError> {
        let needles = needles(patterns, nocase)?;
        let numbers: Vec<u32> = needles.iter().map(|needle| needle.number).collect();
        let Some(&lowest) = numbers.iter().min() else { return Ok(None) };
        let forwards = |needle: &Needle| needle.reversed.iter().rev().copied().collect();
        let literals: Vec<Vec<u8>> = needles.iter().map(forwards).collect();
        let build = |error: String| PatternError::Build { message: error };
        let machine = Machine::new(&literals, nocase).map_err(|e| build(e.to_string()))?;
        let root = with_automaton!(&machine, automaton => automaton.start_state(Anchored::No))
            .map_err(|e| build(e.to_string()))?;
        let next = |byte| with_automaton!(&machine, it => it.next_state(Anchored::No, root, byte));
        let mut is_skipped = Box::new([false; 256]);
        for (byte, is_skipped) in (0..=u8::MAX).zip(is_skipped.iter_mut()) {
            *is_skipped = next(byte) == root;
        }
        let starts = Starts::new(&literals, nocase);
        Ok(Some(Self { machine, root, is_skipped, starts, numbers, lowest, nocase }))
    }

    pub(super) fn lower_match(&self, payload: &[u8], best: &mut Option<u32>) {
        with_automaton!(&self.machine, automaton => self.lower_match_by(automaton, payload, best));
    }

    fn lower_match_by(&self, automaton: &impl Automaton, payload: &[u8], best: &mut Option<u32>) {
        // Overlapping matches, because another literal may cover a literal. The automaton supports
        // such searches, so that there is no error.
        let input = Input::new(payload);
        for found in automaton.try_find_overlapping_iter(input).into_iter().flatten() {
            if best.is_some_and(|b| b <= self.lowest) {
                return;
            }
            if let Some(&number) = self.numbers.get(found.pattern().as_usize()) {
                lower(best, number);
            }
        }
    }

    /// The automaton's states except for its root, in order. A state stands for the longest end of
    /// the bytes so far that begins a literal, so that the beginnings of all literals lead to all
    /// states.
    pub(super) fn states(&self, patterns: &[Pattern]) -> Vec<StateID> {
        let mut states = Vec::new();
        for pattern in patterns {
            let Matcher::Literal { bytes, nocase } = &pattern.matcher else { continue };
            if *nocase == self.nocase {
                let mut state = self.root;
                for &byte in bytes {
                    state = with_automaton!(&self.machine, automaton => {
                        automaton.next_state(Anchored::No, state, byte)
                    });
                    states.push(state);
                }
            }
        }
        states.sort_unstable();
        states.dedup();
        states.retain(|state| *state != self.root);
        states
    }

    /// Searches the next bytes of a stream. `at` is the place of the automaton's state: 0 for the
    /// root, then one more than the place in `states`.
    pub(super) fn scan(
        &self,
        states: &[StateID],
        at: &mut u32,
        bytes: &[u8],
        best: &mut Option<u32>,
    ) {
        let place = (*at as usize).checked_sub(1);
        let mut state = place.and_then(|at| states.get(at)).map_or(self.root, |state| *state);
        state = with_automaton!(&self.machine, automaton => {
            self.scan_by(automaton, state, bytes, best)
        });
        // The root is the only state that is not in the list. The limit on the bytes of literals
        // keeps the number small.
        let place = match state == self.root {
            true => 0,
            false => states.binary_search(&state).map_or(0, |place| place + 1),
        };
        *at = u32::try_from(place).unwrap_or(0);
    }

    /// Searches the next bytes from a state on, and returns the state behind them.
    fn scan_by(
        &self,
        automaton: &impl Automaton,
        mut state: StateID,
        mut bytes: &[u8],
        best: &mut Option<u32>,
    ) -> StateID {
        let mut credit = CREDIT;
        while !bytes.is_empty() {
            let starts = self
                .starts
                .as_ref()
                .filter(|starts| state == self.root && credit > 0 && bytes.len() >= starts.least());
            if let Some(starts) = starts {
                let skipped = starts.first(bytes);
                credit = (credit + skipped).saturating_sub(COST);
                bytes = bytes.get(skipped..).unwrap_or_default();
            }
            let least = self.starts.as_ref().filter(|_| credit > 0).map(Starts::least);
            (state, bytes) = self.walk(automaton, state, bytes, least, best);
        }
        state
    }

    /// Searches bytes from a state on. Stops behind the byte that leads to the root if `least`
    /// bytes are left then. Returns the state, and the bytes that are left.
    fn walk<'b>(
        &self,
        automaton: &impl Automaton,
        mut state: StateID,
        bytes: &'b [u8],
        least: Option<usize>,
        best: &mut Option<u32>,
    ) -> (StateID, &'b [u8]) {
        let last = least.map_or(0, |least| (bytes.len() + 1).saturating_sub(least));
        for (at, &byte) in bytes.iter().enumerate() {
            if state == self.root && 0 < at && at < last {
                return (state, bytes.get(at..).unwrap_or_default());
            }
            let is_skipped = self.is_skipped.get(usize::from(byte)).copied().unwrap_or(false);
            if is_skipped && state == self.root {
                continue;
            }
            state = automaton.next_state(Anchored::No, state, byte);
            if automaton.is_match(state) && best.is_none_or(|b| b > self.lowest) {
                for index in 0..automaton.match_len(state) {
                    let pattern = automaton.match_pattern(state, index).as_usize();
                    if let Some(&number) = self.numbers.get(pattern) {
                        lower(best, number);
                    }
                }
            }
        }
        (state, &[])
    }
}
