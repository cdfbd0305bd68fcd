//! One direction of a connection for rules about the bytes of streams.
//!
//! The bytes are kept up to a depth, so that rules see them whole, however they were cut. A rule
//! that more bytes cannot make false is evaluated whenever bytes have come, unless there are very
//! many small segments and it has no bits. All others are evaluated when the last byte has come.

use crate::eval;
use crate::limits::{LATER, MAX_DONE, MAX_SELECTOR, STREAM_DEPTH, STREAM_WORK, TRIES};
use crate::outcome::Context;
use crate::rule::{Buffer, Rule, Stage};
use crate::work::Work;
use braid_http::wire::{list, number, read_list, read_number};

/// A direction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Direction {
    pub from_client: bool,
    /// The bytes from the start of the stream on.
    pub kept: Vec<u8>,
    /// No more bytes are taken: the depth is reached, or bytes are missing.
    pub is_over: bool,
    pub work: Work,
    pub passed: Passed,
    /// How many bytes the automaton has seen, the patterns that it has found, and the rules that
    /// these select.
    scanned: usize,
    found: Vec<u32>,
    candidates: Vec<Candidate>,
}

/// A rule that may hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Candidate {
    rule: u32,
    /// How often it was evaluated and did not hold.
    tries: u8,
    /// The length of the stream from which on it is evaluated again.
    next: usize,
}

impl Candidate {
    fn new(rule: u32) -> Self {
        Self { rule, tries: 0, next: 0 }
    }
}

impl Direction {
    pub fn new(from_client: bool) -> Self {
        Self {
            from_client,
            kept: Vec::new(),
            is_over: false,
            work: Work(STREAM_WORK),
            passed: Passed::default(),
            scanned: 0,
            found: Vec::new(),
            candidates: Vec::new(),
        }
    }

    /// The next bytes have come.
    pub fn data(&mut self, bytes: &[u8], context: &mut Context<'_, '_>) {
        if self.is_over {
            return;
        }
        let room = STREAM_DEPTH - self.kept.len().min(STREAM_DEPTH);
        self.kept.extend(bytes.iter().take(room));
        self.select(context);
        self.evaluate(Stage::Stream, context);
        if bytes.len() > room {
            context.rules.counts.depths += 1;
            self.finish(context);
        }
    }

    /// No more bytes are inspected.
    pub fn finish(&mut self, context: &mut Context<'_, '_>) {
        if !self.kept.is_empty() {
            self.select(context);
            self.evaluate(Stage::StreamEnd, context);
        }
        self.leave();
    }

    /// Bytes are not inspected from now on.
    pub fn leave(&mut self) {
        *self = Self { is_over: true, ..Self::new(self.from_client) };
    }

    /// The rules are others now. They are selected again from the bytes that are kept.
    pub fn select_anew(&mut self) {
        self.scanned = 0;
        self.found = Vec::new();
        self.candidates = Vec::new();
    }

    pub fn memory(&self) -> usize {
        let candidates = size_of::<Candidate>() * self.candidates.capacity();
        let passed = size_of::<(u64, usize)>() * self.passed.0.capacity();
        self.kept.capacity() + 4 * self.found.capacity() + candidates + passed
    }

    /// Selects the rules whose content occurs in the new bytes.
    fn select(&mut self, context: &Context<'_, '_>) {
        let set = context.rules.set;
        let rules = set.streams();
        let applies = |number: &u32| {
            set.rule(*number).is_some_and(|rule| {
                let is_over = rule.bits.writes.is_empty() && context.done.has(rule.signature.key());
                !is_over && rule.applies(&context.flow, self.from_client)
            })
        };
        let before = self.candidates.len();
        if self.scanned == 0 {
            let always = rules.always().iter().copied().filter(applies);
            self.candidates.extend(always.map(Candidate::new));
        }
        let from = self.scanned.saturating_sub(MAX_SELECTOR - 1);
        let bytes = self.kept.get(from..).unwrap_or_default();
        for pattern in rules.patterns(bytes) {
            if let Err(at) = self.found.binary_search(&pattern) {
                self.found.insert(at, pattern);
                let selected = rules.selected(pattern, Buffer::Raw).filter(applies);
                self.candidates.extend(selected.map(Candidate::new));
            }
        }
        if self.candidates.len() != before {
            self.candidates.sort_unstable_by_key(|one| one.rule);
        }
        self.scanned = self.kept.len();
    }

    /// Evaluates the selected rules, in their order. The rules that hold alert.
    fn evaluate(&mut self, stage: Stage, context: &mut Context<'_, '_>) {
        let mut candidates = std::mem::take(&mut self.candidates);
        let mut is_used_up = false;
        candidates.retain_mut(|one| {
            let Some(rule) = context.rules.set.rule(one.rule) else { return false };
            if rule.stage > stage || is_used_up {
                return true;
            }
            if rule.bits.writes.is_empty() && context.done.has(rule.signature.key()) {
                // The other direction has alerted.
                return false;
            }
            if stage == Stage::Stream && self.is_later(one, rule) {
                return true;
            }
            if self.work.is_used_up() {
                is_used_up = true;
                return true;
            }
            self.work.look_up(&rule.bits);
            let since = context.bits.allow(&rule.bits, self.from_client);
            let Some(since) = since.and_then(|since| usize::try_from(since).ok()) else {
                return true;
            };
            self.candidate(one, (rule, since), context)
        });
        self.candidates = candidates;
        if is_used_up {
            context.rules.counts.exhausted += 1;
            self.leave();
        }
    }

    /// Whether a rule waits for more bytes. A rule with bits does so only if the work gets short:
    /// other rules depend on when it holds.
    fn is_later(&self, one: &Candidate, rule: &Rule) -> bool {
        let is_spaced = rule.bits.is_empty() || self.work.0 < STREAM_WORK / 2;
        is_spaced && self.kept.len() < one.next
    }

    /// Evaluates a rule whose bits are as it asks behind this number of bytes. Returns whether it
    /// may hold with later bytes.
    fn candidate(
        &mut self,
        one: &mut Candidate,
        (rule, since): (&Rule, usize),
        context: &mut Context<'_, '_>,
    ) -> bool {
        let passed = self.passed.of(rule);
        if passed.is_some() && !rule.has_match() {
            return false;
        }
        let (kept, from) = (self.kept.as_slice(), passed.unwrap_or(0).max(since));
        let mut work = self.work.of_rule();
        let tests = rule.buffers.iter().map(|of| eval::holds(&of.tests, kept, from, &mut work));
        match eval::all(tests) {
            Ok(true) => (one.tries, one.next) = (0, 0),
            Ok(false) => {
                one.tries = one.tries.saturating_add(1);
                let wait = if one.tries > TRIES { kept.len() / LATER } else { 0 };
                one.next = kept.len() + wait;
                return true;
            }
            Err(_) => {
                context.rules.counts.exhausted += 1;
                return false;
            }
        }
        let counts = &mut *context.rules.counts;
        context.bits.write(&rule.bits, context.before, counts);
        if !rule.is_silent && context.done.add(rule.signature.key(), counts) {
            context.alert(one.rule, rule, self.from_client);
        }
        !rule.bits.writes.is_empty() && self.passed.pass(rule, self.kept.len(), context)
    }
}

/// How many bytes rules that write bits have passed over, by the rules' keys, in order. Such a rule
/// has held for these bytes, and it may hold again for a match in the bytes behind.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Passed(Vec<(u64, usize)>);

impl Passed {
    /// The bytes that a rule has passed over, if it has held.
    fn of(&self, rule: &Rule) -> Option<usize> {
        if rule.bits.writes.is_empty() {
            return None;
        }
        let key = rule.signature.key();
        let at = self.0.binary_search_by_key(&key, |(key, _)| *key);
        at.ok().and_then(|at| self.0.get(at)).map(|(_, len)| *len)
    }

    /// A rule passes over the bytes up to here. Without room it is left out, and false is returned.
    fn pass(&mut self, rule: &Rule, len: usize, context: &mut Context<'_, '_>) -> bool {
        let key = rule.signature.key();
        match self.0.binary_search_by_key(&key, |(key, _)| *key) {
            Ok(at) => self.0.get_mut(at).into_iter().for_each(|(_, passed)| *passed = len),
            Err(_) if self.0.len() >= MAX_DONE => {
                context.rules.counts.left_out += 1;
                return false;
            }
            Err(at) => self.0.insert(at, (key, len)),
        }
        true
    }

    pub fn put(&self, out: &mut Vec<u8>) {
        let mut all = Vec::new();
        for (key, len) in &self.0 {
            number(*key, &mut all);
            number(*len as u64, &mut all);
        }
        list(&all, out);
    }

    /// Reads what a direction with this number of bytes has written.
    pub fn read(from: &mut &[u8], most: usize) -> Option<Self> {
        let all = &mut read_list(from, 16 * MAX_DONE)?;
        let mut passed = Self::default();
        while !all.is_empty() {
            let key = read_number(all)?;
            let len = usize::try_from(read_number(all)?).ok().filter(|len| *len <= most)?;
            if passed.0.last().is_some_and(|(last, _)| *last >= key) {
                return None;
            }
            passed.0.push((key, len));
        }
        Some(passed)
    }
}
