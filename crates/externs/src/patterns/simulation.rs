//! Regular expressions over streams: all at once, byte by byte, in linear time.
//!
//! The state of a search is the set of active states of a nondeterministic automaton. The states in
//! which every match starts are active at every byte, so that sets leave them out. A cache keeps
//! the sets that were met and the steps between them: a deterministic automaton that is built as
//! far as streams need it. Numbers of sets differ from cache to cache, so that streams keep their
//! active states and not the number of their set.

use super::literals::lower;
use super::pattern::{MAX_AUTOMATON_BYTES, PatternError};
use regex_automata::nfa::thompson::{Compiler, Config, NFA, State, WhichCaptures};
use regex_automata::util::look::Look;
use regex_syntax::hir::Hir;
use std::borrow::Cow;
use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

/// The most bytes of a cache, up to one more set. As many caches are made as threads search at the
/// same time.
const MAX_CACHE_BYTES: usize = 4 << 20;
/// About the bytes of a set in a cache besides its states and steps.
const SET_BYTES: usize = 128;

/// The set at the start of a stream.
const START: u32 = 0;
/// The empty set.
const EMPTY: u32 = 1;
/// A step that is not known yet. No step leads back to the start.
const UNKNOWN: u32 = START;

/// The automaton of regular expressions.
pub(super) struct Simulation {
    nfa: NFA,
    /// The number of each regular expression.
    numbers: Vec<u32>,
    /// The states that read a byte and that are active at every byte.
    always: Vec<u32>,
    /// For each state, whether it is one of these.
    is_always: Vec<bool>,
    start: Set,
    caches: Mutex<Vec<Cache>>,
}

/// Active states that read a byte, in order. If matches end here, one of their states is in the
/// set, too: the state of the pattern with the lowest number.
type Set = Arc<[u32]>;

/// What is in front of a place in a stream.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    Nothing,
    Newline,
    Other,
}

impl Simulation {
    /// `None` if there are no regular expressions. `numbers` has the number of each.
    pub(super) fn new(hirs: &[Hir], numbers: Vec<u32>) -> Result<Option<Self>, PatternError> {
        if hirs.is_empty() {
            return Ok(None);
        }
        let config = Config::new()
            .utf8(false)
            .which_captures(WhichCaptures::None)
            .nfa_size_limit(Some(MAX_AUTOMATON_BYTES));
        let nfa = Compiler::new()
            .configure(config)
            .build_many_from_hir(hirs)
            .map_err(|e| PatternError::Build { message: e.to_string() })?;
        let mut seen = vec![false; nfa.states().len()];
        let (start, is_always) = (Arc::new([]), seen.clone());
        let caches = Mutex::default();
        let mut new = Self { nfa, numbers, always: Vec::new(), is_always, start, caches };
        let from = vec![new.nfa.start_anchored().as_u32()];
        let every = new.closure(from.clone(), Before::Other, &mut seen);
        new.always = every.iter().copied().filter(|id| new.reads(*id)).collect();
        for id in &new.always {
            if let Some(always) = new.is_always.get_mut(*id as usize) {
                *always = true;
            }
        }
        new.start = new.closure(from, Before::Nothing, &mut seen).into();
        Ok(Some(new))
    }

    /// Searches the next bytes of a stream. `active` is as [`pack`] writes it, and is not used at
    /// the start of a stream.
    pub(super) fn scan(
        &self,
        at_start: bool,
        active: &mut Box<[u32]>,
        bytes: &[u8],
        best: &mut Option<u32>,
    ) {
        let mut cache = self.lock().pop().unwrap_or_else(|| self.cache());
        let mut at = if at_start {
            START
        } else {
            cache.place(self, &unpack(active, self.nfa.states().len()))
        };
        if at_start && let Some(number) = cache.lowest(START) {
            lower(best, number);
        }
        let classes = self.nfa.byte_classes();
        for &byte in bytes {
            at = match cache.known(at, classes.get(byte)) {
                UNKNOWN => {
                    let from = cache.make_room(self, at);
                    self.step(&mut cache, from, byte)
                }
                known => known,
            };
            if let Some(number) = cache.lowest(at) {
                lower(best, number);
            }
        }
        pack(&cache.set(at), self.nfa.states().len(), active);
        self.lock().push(cache);
    }

    /// Whether a search can have these active states.
    pub(super) fn allows(&self, active: &[u32]) -> bool {
        let states = self.nfa.states().len();
        if active.len() > states.div_ceil(32) {
            return false;
        }
        let ids = unpack(active, states);
        let mut again = Box::default();
        pack(&ids, states, &mut again);
        *again == *active
            && ids.is_sorted_by(|a, b| a < b)
            && ids.iter().all(|&id| self.number(id).is_some() || self.reads(id))
            && !ids.iter().any(|&id| self.is_always(id))
    }

    /// The set behind a set and a byte.
    fn step(&self, cache: &mut Cache, from: u32, byte: u8) -> u32 {
        let class = self.nfa.byte_classes().get(byte);
        let known = cache.known(from, class);
        if known != UNKNOWN {
            return known;
        }
        let active = cache.set(from);
        let mut next = Vec::new();
        if from == EMPTY {
            next.extend(self.always.iter().filter_map(|id| self.read(*id, byte)));
            next.push(self.nfa.start_anchored().as_u32());
        } else {
            // The step from several states is the union of their steps, and the states that are
            // always active have their step in the cache.
            let others = self.step(cache, EMPTY, byte);
            next.extend_from_slice(&cache.set(others));
        }
        next.extend(active.iter().filter_map(|id| self.read(*id, byte)));
        let before = if byte == b'\n' { Before::Newline } else { Before::Other };
        let set = self.closure(next, before, &mut cache.seen);
        let to = cache.place(self, &set);
        cache.learn(from, class, to);
        to
    }

    /// The state behind a state that reads this byte.
    fn read(&self, id: u32, byte: u8) -> Option<u32> {
        let next = match self.nfa.states().get(id as usize)? {
            State::ByteRange { trans } => trans.matches_byte(byte).then_some(trans.next),
            State::Sparse(transitions) => transitions.matches_byte(byte),
            State::Dense(transitions) => transitions.matches_byte(byte),
            _ => None,
        };
        next.map(|id| id.as_u32())
    }

    /// Whether a state reads a byte.
    fn reads(&self, id: u32) -> bool {
        let state = self.nfa.states().get(id as usize);
        matches!(state, Some(State::ByteRange { .. } | State::Sparse(_) | State::Dense(_)))
    }

    /// The number of the pattern that matches in a state.
    fn number(&self, id: u32) -> Option<u32> {
        match self.nfa.states().get(id as usize)? {
            State::Match { pattern_id } => self.numbers.get(pattern_id.as_usize()).copied(),
            _ => None,
        }
    }

    fn is_always(&self, id: u32) -> bool {
        self.is_always.get(id as usize).is_some_and(|always| *always)
    }

    /// All states that these states lead to without a byte. `seen` is false before and after, for
    /// all states.
    fn closure(&self, mut todo: Vec<u32>, before: Before, seen: &mut [bool]) -> Vec<u32> {
        let mut list = Vec::new();
        while let Some(id) = todo.pop() {
            let place = id as usize;
            let (Some(seen), Some(state)) = (seen.get_mut(place), self.nfa.states().get(place))
            else {
                continue;
            };
            if mem::replace(seen, true) {
                continue;
            }
            list.push(id);
            match state {
                State::Union { alternates } => todo.extend(alternates.iter().map(|id| id.as_u32())),
                State::BinaryUnion { alt1, alt2 } => todo.extend([alt1.as_u32(), alt2.as_u32()]),
                State::Capture { next, .. } => todo.push(next.as_u32()),
                State::Look { look, next } if holds(*look, before) => todo.push(next.as_u32()),
                _ => {}
            }
        }
        for id in &list {
            if let Some(seen) = seen.get_mut(*id as usize) {
                *seen = false;
            }
        }
        let matches = list.iter().filter_map(|&id| Some((self.number(id)?, id)));
        let lowest = matches.min().map(|(_, id)| id);
        list.retain(|id| self.reads(*id) && !self.is_always(*id));
        list.extend(lowest);
        list.sort_unstable();
        list
    }

    fn cache(&self) -> Cache {
        let mut cache = Cache {
            width: self.nfa.byte_classes().alphabet_len(),
            seen: vec![false; self.nfa.states().len()],
            ..Cache::default()
        };
        cache.clear(self);
        cache
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Cache>> {
        // A push or a pop leaves no half-made list.
        self.caches.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether an assertion holds. No assertion about later bytes is in the automaton.
fn holds(look: Look, before: Before) -> bool {
    match look {
        Look::Start => before == Before::Nothing,
        Look::StartLF => before != Before::Other,
        _ => false,
    }
}

/// Sets that were met and the steps between them.
#[derive(Default)]
struct Cache {
    sets: Vec<Set>,
    /// The lowest number of the matches that end at each set.
    lowest: Vec<Option<u32>>,
    /// For each set and class of bytes, the next set.
    steps: Vec<u32>,
    /// The classes of bytes.
    width: usize,
    places: HashMap<Set, u32>,
    bytes: usize,
    /// Memory of closures, with a place for each state.
    seen: Vec<bool>,
}

impl Cache {
    /// The set with this number.
    fn set(&self, at: u32) -> Set {
        self.sets.get(at as usize).map_or_else(|| Arc::new([]), Arc::clone)
    }

    fn lowest(&self, at: u32) -> Option<u32> {
        self.lowest.get(at as usize).copied().flatten()
    }

    fn known(&self, at: u32, class: u8) -> u32 {
        let place = at as usize * self.width + usize::from(class);
        self.steps.get(place).copied().unwrap_or(UNKNOWN)
    }

    fn learn(&mut self, at: u32, class: u8, to: u32) {
        if let Some(step) = self.steps.get_mut(at as usize * self.width + usize::from(class)) {
            *step = to;
        }
    }

    /// The number of a set, which is added if it is new.
    fn place(&mut self, of: &Simulation, set: &[u32]) -> u32 {
        if let Some(&at) = self.places.get(set) {
            return at;
        }
        let set: Set = set.into();
        let at = self.add(of, &set);
        self.places.insert(set, at);
        at
    }

    fn add(&mut self, of: &Simulation, set: &Set) -> u32 {
        // The limit keeps the number small.
        let at = u32::try_from(self.sets.len()).unwrap_or(EMPTY);
        self.bytes += SET_BYTES + (set.len() + self.width) * size_of::<u32>();
        self.lowest.push(set.iter().find_map(|id| of.number(*id)));
        self.steps.resize(self.steps.len() + self.width, UNKNOWN);
        self.sets.push(Arc::clone(set));
        at
    }

    /// Forgets all sets but this one if they take too much memory. Returns its number.
    fn make_room(&mut self, of: &Simulation, at: u32) -> u32 {
        if self.bytes <= MAX_CACHE_BYTES {
            return at;
        }
        let set = self.set(at);
        self.clear(of);
        if at == START { START } else { self.place(of, &set) }
    }

    fn clear(&mut self, of: &Simulation) {
        self.sets.clear();
        self.lowest.clear();
        self.steps.clear();
        self.places.clear();
        self.bytes = 0;
        // The order of their numbers. A set that equals the first one has its own number.
        self.add(of, &of.start);
        self.place(of, &[]);
    }
}

/// Writes states in their order: as a list, or as one bit for each state of the automaton if that
/// is not longer. The length tells which.
fn pack(ids: &[u32], states: usize, packed: &mut Box<[u32]>) {
    let words = states.div_ceil(32);
    let length = ids.len().min(words);
    if packed.len() != length {
        *packed = vec![0; length].into();
    }
    if length < words {
        packed.copy_from_slice(ids);
        return;
    }
    packed.fill(0);
    for id in ids {
        if let Some(word) = packed.get_mut(*id as usize / 32) {
            *word |= 1 << (id % 32);
        }
    }
}

/// The states that [`pack`] wrote.
fn unpack(packed: &[u32], states: usize) -> Cow<'_, [u32]> {
    if packed.len() < states.div_ceil(32) {
        return packed.into();
    }
    let bits = |(first, word): (u32, &u32)| {
        let word = *word;
        (0..32).filter(move |bit| word >> bit & 1 == 1).map(move |bit| first + bit)
    };
    (0..).step_by(32).zip(packed).flat_map(bits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patterns::pattern::parse;

    #[test]
    fn cache_has_a_limit() {
        let hir = parse(0, "(?s)x.{300}y", false).expect("a good regex");
        let simulation = Simulation::new(&[hir], vec![1]).expect("small").expect("one regex");
        let mut random = crate::Rng::new(1);
        let (mut active, mut best, mut largest) = (Box::default(), None, 0);
        for _ in 0..400 {
            let bytes: Vec<u8> = (0..50).map(|_| b"xz"[(random.next_u64() & 1) as usize]).collect();
            simulation.scan(false, &mut active, &bytes, &mut best);
            let caches = simulation.lock();
            assert_eq!(caches.len(), 1);
            largest = largest.max(caches[0].bytes);
        }
        // Without a limit, 20,000 sets of some 150 states would take 14 MiB.
        let limit = MAX_CACHE_BYTES + 10_000;
        assert!((MAX_CACHE_BYTES - 200_000..limit).contains(&largest), "{largest}");
    }
}
