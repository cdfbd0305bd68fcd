//! Regular expressions, with the work that their searches take.
//!
//! Most expressions are searched in linear time, by automata. Backreferences and assertions about
//! what surrounds a match need backtracking, which may take exponential time. So a search by
//! backtracking has a limit, and pays for its steps before it takes them.

use crate::limits::{BACKTRACK_STEPS, MAX_REGEX, REGEX_CACHE};
use crate::work::{Exhausted, RuleWork};
use fancy_regex::{BytesMode, RegexBuilder, RegexInput};
use regex_automata::Input;
use regex_automata::meta::Regex;
use regex_syntax::hir::{Hir, Look};

/// How costly a step back is, in bytes to search.
const STEP: usize = 8;
/// A step may compare a group with so long a part of the bytes that this many of them cost as much
/// as one to search.
const COMPARED: usize = 1_024;
/// An assertion that always holds. Behind a group, it keeps the library from handing the group to
/// an automaton, whose searches the limit does not count.
pub const ALWAYS: &str = "(?=)";
/// The most instructions of the program of one expression.
const MAX_PROGRAM: usize = 1 << 14;

/// A regular expression.
#[derive(Clone, Debug)]
pub struct Expression {
    search: Search,
    /// No assertion stands at the begin of a match, so that the same text matches behind any start.
    pub is_free: bool,
}

/// How an expression is searched.
#[derive(Clone, Debug)]
enum Search {
    Automaton(Automaton),
    Backtracking(Backtracking),
}

#[derive(Clone, Debug)]
struct Automaton {
    regex: Regex,
    /// It matches only at the start.
    is_anchored: bool,
    /// The most bytes of a match.
    most: Option<usize>,
    /// How costly it is to search a byte.
    weight: usize,
}

/// The same expression with each limit of [`BACKTRACK_STEPS`].
#[derive(Clone, Debug)]
struct Backtracking(Box<[fancy_regex::Regex]>);

/// What an expression for backtracking says, and its flags.
#[derive(Clone, Copy, Debug, Default)]
pub struct Source<'a> {
    pub text: &'a str,
    pub is_nocase: bool,
    pub is_dot_all: bool,
    pub is_multi_line: bool,
    pub is_extended: bool,
    /// See [`Expression::is_free`].
    pub is_free: bool,
}

impl Expression {
    /// A compiled expression. `states` is the size of its automaton.
    pub fn automaton(regex: Regex, hir: &Hir, states: usize) -> Self {
        let properties = hir.properties();
        let automaton = Automaton {
            regex,
            is_anchored: properties.look_set_prefix().contains(Look::Start),
            most: properties.maximum_len(),
            weight: 1 + states / 32,
        };
        let is_free = properties.look_set_prefix_any().is_empty();
        Self { search: Search::Automaton(automaton), is_free }
    }

    /// Compiles an expression for backtracking.
    ///
    /// # Errors
    /// The expression is malformed or too large.
    pub fn backtracking(source: &Source<'_>) -> Result<Self, String> {
        let line_end = if source.is_extended { "\n" } else { "" };
        let text = format!("(?:{}{line_end}){ALWAYS}", source.text);
        let compile = |limit: &usize| {
            RegexBuilder::new(&text)
                .bytes_mode(BytesMode::Ascii)
                .unicode_mode(false)
                .case_insensitive(source.is_nocase)
                .dot_matches_new_line(source.is_dot_all)
                .multi_line(source.is_multi_line)
                .ignore_whitespace(source.is_extended)
                .optimize(false)
                .delegate_size_limit(MAX_REGEX)
                .delegate_dfa_size_limit(REGEX_CACHE)
                .delegate_dfa_skip_cache_capacity_check(false)
                .max_prog_size(MAX_PROGRAM)
                .backtrack_limit(*limit)
                .build()
        };
        let tries: Result<Box<[_]>, _> = BACKTRACK_STEPS.iter().map(compile).collect();
        let tries = tries.map_err(|error| error.to_string())?;
        let search = Search::Backtracking(Backtracking(tries));
        Ok(Self { search, is_free: source.is_free })
    }

    /// Whether it matches, from this place on.
    pub fn is_match(
        &self,
        bytes: &[u8],
        from: usize,
        work: &mut RuleWork<'_>,
    ) -> Result<bool, Exhausted> {
        match &self.search {
            Search::Automaton(of) => {
                of.pay(bytes, from, work)?;
                Ok(of.regex.is_match(Input::new(bytes).range(from.min(bytes.len())..)))
            }
            Search::Backtracking(of) => Ok(of.find(bytes, from, work)?.is_some()),
        }
    }

    /// Gives the ends of its matches from this place on, one behind the other.
    pub fn ends(
        &self,
        bytes: &[u8],
        from: usize,
        work: &mut RuleWork<'_>,
        mut found: impl FnMut(usize),
    ) -> Result<(), Exhausted> {
        match &self.search {
            Search::Automaton(of) => {
                of.pay(bytes, from, work)?;
                let input = Input::new(bytes).range(from.min(bytes.len())..);
                for one in of.regex.find_iter(input) {
                    work.spend(of.look_ahead(bytes.len() - one.start()), of.weight)?;
                    found(one.end());
                }
            }
            Search::Backtracking(of) => {
                let mut from = from;
                while let Some((start, end)) = of.find(bytes, from, work)? {
                    found(end);
                    from = if end > start { end } else { end + 1 };
                }
            }
        }
        Ok(())
    }

    /// Its memory, and that of its searches (bytes).
    pub fn memory(&self) -> usize {
        match &self.search {
            Search::Automaton(of) => of.regex.memory_usage() + REGEX_CACHE,
            Search::Backtracking(_) => MAX_REGEX,
        }
    }
}

impl Automaton {
    /// Takes the work of a search.
    fn pay(&self, bytes: &[u8], from: usize, work: &mut RuleWork<'_>) -> Result<(), Exhausted> {
        let len = bytes.len().saturating_sub(from);
        work.spend(if self.is_anchored { self.look_ahead(len) } else { len }, self.weight)
    }

    /// The most bytes that a search reads from the start of a match on, if `len` bytes follow.
    fn look_ahead(&self, len: usize) -> usize {
        self.most.map_or(len, |most| most.saturating_add(1).min(len))
    }
}

impl Backtracking {
    /// Its first match from this place on: where it begins and ends. The number of steps cannot be
    /// seen, only whether a limit was reached. So the search begins with a low limit, and begins
    /// anew with a higher one where that was too low.
    fn find(
        &self,
        bytes: &[u8],
        from: usize,
        work: &mut RuleWork<'_>,
    ) -> Result<Option<(usize, usize)>, Exhausted> {
        if from > bytes.len() {
            return Ok(None);
        }
        let step = STEP + (bytes.len() - from) / COMPARED;
        for (regex, steps) in self.0.iter().zip(BACKTRACK_STEPS) {
            work.spend(steps, step)?;
            let input = RegexInput::new(bytes).from_pos(from);
            if let Ok(found) = regex.find_input(input) {
                return Ok(found.map(|found| (found.start(), found.end())));
            }
        }
        Err(Exhausted)
    }
}
