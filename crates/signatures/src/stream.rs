//! One direction of a connection for rules about the bytes of streams.
//!
//! The bytes are kept up to a depth, so that rules see them whole, however they were cut. A rule that
//! more bytes cannot make false is evaluated whenever bytes have come, unless there are very many
//! small segments. All others are evaluated when the last byte has come.

use crate::eval::{self, Work};
use crate::limits::{LATER, MAX_SELECTOR, STREAM_DEPTH, STREAM_WORK, TRIES};
use crate::outcome::{Alert, Context};
use crate::rule::{Buffer, Stage};

/// A direction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Direction {
    pub from_client: bool,
    /// The bytes from the start of the stream on.
    pub kept: Vec<u8>,
    /// No more bytes are taken: the depth is reached, or bytes are missing.
    pub is_over: bool,
    pub work: Work,
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
            scanned: 0,
            found: Vec::new(),
            candidates: Vec::new(),
        }
    }

    /// The next bytes have come.
    pub fn data(&mut self, bytes: &[u8], context: &mut Context<'_>) {
        if self.is_over {
            return;
        }
        let room = STREAM_DEPTH - self.kept.len().min(STREAM_DEPTH);
        self.kept.extend(bytes.iter().take(room));
        self.select(context);
        self.evaluate(Stage::Stream, context);
        if bytes.len() > room {
            context.counts.depths += 1;
            self.finish(context);
        }
    }

    /// No more bytes are inspected.
    pub fn finish(&mut self, context: &mut Context<'_>) {
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
        self.kept.capacity() + 4 * self.found.capacity() + candidates
    }

    /// Selects the rules whose content occurs in the new bytes.
    fn select(&mut self, context: &Context<'_>) {
        let rules = context.set.streams();
        let applies = |number: &u32| {
            let rule = context.set.rule(*number);
            rule.is_some_and(|rule| {
                rule.applies(&context.flow, self.from_client)
                    && !context.done.has(rule.signature.key())
            })
        };
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
        self.scanned = self.kept.len();
    }

    /// Evaluates the selected rules. The rules that hold alert.
    fn evaluate(&mut self, stage: Stage, context: &mut Context<'_>) {
        let Self { kept, work, candidates, from_client, .. } = self;
        let (mut is_used_up, mut held) = (false, Vec::new());
        candidates.retain_mut(|one| {
            let Some(rule) = context.set.rule(one.rule) else { return false };
            let is_early = stage == Stage::Stream && kept.len() < one.next;
            if rule.stage > stage || is_early || is_used_up {
                return true;
            }
            if work.is_used_up() {
                is_used_up = true;
                return true;
            }
            let mut work = work.of_rule();
            let tests = rule.buffers.iter().map(|of| eval::holds(&of.tests, kept, &mut work));
            match eval::all(tests) {
                Ok(true) => held.push(one.rule),
                Ok(false) => {
                    one.tries = one.tries.saturating_add(1);
                    let wait = if one.tries > TRIES { kept.len() / LATER } else { 0 };
                    one.next = kept.len() + wait;
                    return true;
                }
                Err(_) => context.counts.exhausted += 1,
            }
            false
        });
        held.sort_unstable();
        for rule in held {
            let Some(signature) = context.set.get(rule) else { continue };
            if context.done.add(signature.key(), context.counts) {
                context.alerts.push(Alert { rule, from_client: *from_client });
            }
        }
        if is_used_up {
            context.counts.exhausted += 1;
            self.leave();
        }
    }
}
