//! A rule set made fast to look up, live.
//!
//! # Which structure
//!
//! Tried in this order; the first that stays within its limits is taken, for IPv4 and IPv6 apart:
//!
//! 1. up to 8 rules: one by one;
//! 2. `grid.rs` with one table of address classes, up to 4 million cells;
//! 3. the same divided by how widely rules reach; both within a number of steps and cells that grows
//!    with the rules, and without lists of more than 256 rules;
//! 4. `tree.rs`, without leaves of more than 256 rules;
//! 5. `bits.rs`, which takes any set.
//!
//! `examples/compare.rs` measures all of them. On ClassBench's sets from 250 to 58,000 rules, and on
//! made-up ones to 100,000, the grid is the fastest by a factor of two and more, and its time grows
//! least: an access list of 8,550 rules takes 1.5 times as long as its first 251. Trees come second, at
//! two to five times the time. Tuple space search is faster for the few sets with two or three pairs of
//! prefix lengths and many times slower for others, so it is never taken. Sets made to hurt (ranges
//! nested or at random in all fields) have more cells than fit and leaves that do not get short; bit
//! vectors take a tenth of a microsecond for 10,000 such rules and up to a few for 100,000.
//!
//! In a grid a lookup for IPv4 is six accesses to small arrays for the ranks of both addresses, side by side
//! (`steps.rs`; `trie.rs` where these would take too many blocks), then one for the cell, which has the first rule
//! of its list (`sparse.rs`), and one for that rule's service: a hundred instructions, and no branches but
//! for what is rare.
//!
//! # Changes
//!
//! A change does not touch the structure. Added rules are tried one by one besides. Where a removed
//! rule would have decided, those are tried that come after it and overlap with it, or if there are
//! more than [`HEIRS`] of them all are searched by tuple space search, whose tables are made once, in a
//! millisecond for 10,000 rules (in structures that keep covered rules a removed one is just forgotten).
//! Present numbers of rules are kept in an array. A change therefore costs some steps for each rule of
//! the set, tens of microseconds for 10,000 rules; until the structure is made anew a lookup costs an
//! access more, up to [`PENDING`] comparisons, and a microsecond where a removed rule with many
//! overlaps would have decided. The structure is made anew, tens of milliseconds for 10,000 rules,
//! when more than [`PENDING`] rules were added or removed, or when [`RuleTable::settle`] asks for it. A
//! table can be cloned, settled on another thread and put in the place of the first one.

use crate::packed::{Ask, NONE, Packed};
use crate::side::{Family, Side};
use crate::trie::Key;
use crate::tuples::Tuples;
use braid_ir::rules::{RulePacket, RuleWords};
use braid_ir::value::{Rule, RuleSet};
use std::collections::HashMap;

/// Rules added since the structure was made. Each lookup tries them in order.
const PENDING: usize = 64;

/// Rules that may take the place of a removed one and are tried in order. If there are more, all
/// rules are searched by their prefix lengths.
const HEIRS: usize = 64;

/// A rule set made fast to look up. Answers are those of [`RuleSet::decide`].
#[derive(Clone, Debug)]
pub struct RuleTable {
    set: RuleSet,
    /// By rule, whether packets that it decides pass; behind them the default. Lookups need nothing else
    /// of the set.
    passes: Vec<bool>,
    v4: Side<u32>,
    v6: Side<u128>,
    changes: Option<Box<Changes>>,
}

/// What has changed since the structures were made. Those go on naming rules by the numbers that
/// they had then.
#[derive(Clone, Debug, Default)]
struct Changes {
    /// Present numbers of the rules that there were; [`NONE`] for those removed.
    numbers: Vec<u32>,
    /// What to try, by their numbers then, where a removed rule would have decided: all later rules
    /// that overlap with it.
    heirs: HashMap<u32, Vec<u32>>,
    /// What to search where a removed rule has too many of them: the rules that there were.
    rest: Option<Box<Rest>>,
    /// How many rules were removed.
    removed: usize,
    /// Rules added since, by their present numbers, in order.
    added: Vec<u32>,
    added4: Vec<(u32, Packed<u32>)>,
    added6: Vec<(u32, Packed<u128>)>,
}

/// The rules that there were, by prefix lengths.
#[derive(Clone, Debug)]
struct Rest {
    v4: Tuples<u32>,
    v6: Tuples<u128>,
}

impl RuleTable {
    /// A table of these rules, of the kind of structure that fits them.
    #[must_use]
    pub fn new(set: &RuleSet) -> Self {
        Self::over(set, Side::new(&set.rules), Side::new(&set.rules))
    }

    /// A table of this kind of structure, for comparisons; `None` if it would take too much time or
    /// memory. Changes may turn it into another kind.
    #[must_use]
    pub fn of_family(set: &RuleSet, family: Family) -> Option<Self> {
        let v4 = Side::of_family(&set.rules, family)?;
        let v6 = Side::of_family(&set.rules, family)?;
        Some(Self::over(set, v4, v6))
    }

    fn over(set: &RuleSet, v4: Side<u32>, v6: Side<u128>) -> Self {
        let rules = set.rules.iter().map(|rule| rule.pass);
        let passes = rules.chain([set.default_pass]).collect();
        Self { set: set.clone(), passes, v4, v6, changes: None }
    }

    /// Whether an IP packet passes, and the number of the rule that decides.
    #[must_use]
    #[inline]
    pub fn lookup(&self, packet: &RulePacket) -> (bool, u32) {
        let found = match packet.version {
            4 => return self.lookup4(&RuleWords::new(packet)),
            6 => self.v6.find(packet.src, packet.dst, &Ask::new(packet)),
            _ => return self.set.decide(packet),
        };
        self.answer(packet, found)
    }

    /// The same for an IPv4 packet.
    #[must_use]
    #[inline(always)]
    pub fn lookup4(&self, words: &RuleWords) -> (bool, u32) {
        let [src, dst] = [words.addrs >> 32, words.addrs].map(|addr| u32::cut(addr.into()));
        let found = self.v4.find(src, dst, &Ask::of(words));
        match self.changes {
            None => self.verdict(found),
            Some(_) => self.changed(*words, found),
        }
    }

    /// What it means that the structure found this rule.
    #[inline]
    fn answer(&self, packet: &RulePacket, found: u32) -> (bool, u32) {
        self.verdict(match &self.changes {
            None => found,
            Some(changes) => changes.now(packet, found, &self.set),
        })
    }

    /// The same for an IPv4 packet. Not part of the caller's code, which is faster without it.
    #[inline(never)]
    fn changed(&self, words: RuleWords, found: u32) -> (bool, u32) {
        self.answer(&words.packet(), found)
    }

    /// What a rule says, by its present number.
    #[inline]
    fn verdict(&self, number: u32) -> (bool, u32) {
        let number = number.min(count(&self.set));
        (self.passes[number as usize], number)
    }

    /// Adds a rule so that it has this number; past the end, after the last one. Those from there
    /// on move up by one.
    pub fn insert(&mut self, at: usize, rule: Rule) {
        let at = at.min(self.set.rules.len());
        let (four, six) = (Packed::new(&rule), Packed::new(&rule));
        self.changes().insert(u32::try_from(at).unwrap_or(NONE), four, six);
        self.passes.insert(at, rule.pass);
        self.set.rules.insert(at, rule);
        if self.changes().added.len() > PENDING {
            self.settle();
        }
    }

    /// Removes a rule, and gives it back if there was one. Those after it move down by one.
    pub fn remove(&mut self, at: usize) -> Option<Rule> {
        if at >= self.set.rules.len() {
            return None;
        }
        let changes = self.changes.get_or_insert_with(|| Changes::new(&self.set));
        let number = u32::try_from(at).unwrap_or(NONE);
        if let Some(then) = changes.then(number) {
            let forgot = [self.v4.forget(then), self.v6.forget(then)];
            if forgot != [true; 2] {
                changes.leave(then, &self.set, forgot);
            }
        }
        changes.remove(number);
        let many = changes.removed > PENDING;
        self.passes.remove(at);
        let rule = self.set.rules.remove(at);
        if many {
            self.settle();
        }
        Some(rule)
    }

    fn changes(&mut self) -> &mut Changes {
        self.changes.get_or_insert_with(|| Changes::new(&self.set))
    }

    /// Sets whether packets pass that match no rule.
    pub fn set_default(&mut self, pass: bool) {
        self.set.default_pass = pass;
        self.passes[self.set.rules.len()] = pass;
    }

    /// The rules as they are now.
    #[must_use]
    pub fn set(&self) -> &RuleSet {
        &self.set
    }

    /// Takes pending changes into the structure itself, which is made anew. Answers are the same
    /// before and after.
    pub fn settle(&mut self) {
        if self.changes.take().is_some() {
            (self.v4, self.v6) = (Side::new(&self.set.rules), Side::new(&self.set.rules));
        }
    }

    /// The kinds of structure for IPv4 and IPv6.
    #[must_use]
    pub fn families(&self) -> [Family; 2] {
        [self.v4.family(), self.v6.family()]
    }

    /// Bytes of memory that lookups use.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.v4.memory() + self.v6.memory()
    }
}

fn count(set: &RuleSet) -> u32 {
    u32::try_from(set.rules.len()).unwrap_or(NONE)
}

impl Changes {
    fn new(set: &RuleSet) -> Box<Self> {
        Box::new(Self { numbers: (0..count(set)).collect(), ..Self::default() })
    }

    /// The present number of the rule that decides, if there is one.
    #[inline(never)]
    fn now(&self, packet: &RulePacket, found: u32, set: &RuleSet) -> u32 {
        let mut best = self.numbers.get(found as usize).copied().unwrap_or(NONE);
        if best == NONE && found != NONE {
            best = self.heir(packet, found, set);
        }
        let ask = Ask::new(packet);
        let added = if packet.version == 4 {
            first(&self.added4, u32::cut(packet.src), u32::cut(packet.dst), &ask, best)
        } else {
            first(&self.added6, packet.src, packet.dst, &ask, best)
        };
        added.unwrap_or(best)
    }

    /// The present number of the rule that decides in the place of a removed one.
    fn heir(&self, packet: &RulePacket, found: u32, set: &RuleSet) -> u32 {
        let present = |then: u32| self.numbers.get(then as usize).copied().unwrap_or(NONE);
        if let Some(heirs) = self.heirs.get(&found) {
            let mut alive = heirs.iter().map(|heir| present(*heir)).filter(|now| *now != NONE);
            let matches = |now: u32| set.rules.get(now as usize)?.matches(packet).then_some(now);
            return alive.find_map(matches).unwrap_or(NONE);
        }
        let Some(rest) = &self.rest else { return NONE };
        let (ask, alive) = (Ask::new(packet), |then| present(then) != NONE);
        present(if packet.version == 4 {
            rest.v4.find_where(u32::cut(packet.src), u32::cut(packet.dst), &ask, alive)
        } else {
            rest.v6.find_where(packet.src, packet.dst, &ask, alive)
        })
    }

    fn insert(&mut self, at: u32, four: Option<Packed<u32>>, six: Option<Packed<u128>>) {
        let up = |number: &mut u32| *number += u32::from(*number >= at && *number != NONE);
        self.numbers.iter_mut().for_each(up);
        self.added.iter_mut().for_each(up);
        self.added4.iter_mut().for_each(|added| up(&mut added.0));
        self.added6.iter_mut().for_each(|added| up(&mut added.0));
        let place = |numbers: &[u32]| numbers.partition_point(|number| *number < at);
        self.added.insert(place(&self.added), at);
        put(&mut self.added4, at, four);
        put(&mut self.added6, at, six);
    }

    /// The number that a rule had when the structures were made, if there was one.
    fn then(&self, at: u32) -> Option<u32> {
        if self.added.binary_search(&at).is_ok() {
            return None;
        }
        (0..).zip(&self.numbers).find(|(_, number)| **number == at).map(|(then, _)| then)
    }

    fn remove(&mut self, at: u32) {
        if let Some(then) = self.then(at) {
            self.numbers[then as usize] = NONE;
            self.removed += 1;
        } else {
            self.added.retain(|added| *added != at);
            self.added4.retain(|added| added.0 != at);
            self.added6.retain(|added| added.0 != at);
        }
        let down = |number: &mut u32| *number -= u32::from(*number > at && *number != NONE);
        self.numbers.iter_mut().for_each(down);
        self.added.iter_mut().for_each(down);
        self.added4.iter_mut().for_each(|added| down(&mut added.0));
        self.added6.iter_mut().for_each(|added| down(&mut added.0));
    }

    /// Notes which rules come into the place of one, but for IP versions whose structure `forgot` it.
    fn leave(&mut self, then: u32, set: &RuleSet, forgot: [bool; 2]) {
        let rule = |number: u32| set.rules.get(number as usize);
        let Some(left) = self.numbers.get(then as usize).and_then(|number| rule(*number)) else {
            return;
        };
        let four = Packed::<u32>::new(left).filter(|_| !forgot[0]);
        let six = Packed::<u128>::new(left).filter(|_| !forgot[1]);
        let overlaps = |number: u32| {
            let other = rule(number);
            let in4 = four.zip(other.and_then(Packed::new)).is_some_and(|(a, b)| a.overlaps(&b));
            in4 || six.zip(other.and_then(Packed::new)).is_some_and(|(a, b)| a.overlaps(&b))
        };
        let later = (0..).zip(&self.numbers).skip(then as usize + 1);
        let heirs: Vec<u32> = later
            .filter(|(_, number)| **number != NONE && overlaps(**number))
            .map(|(then, _)| then)
            .take(HEIRS + 1)
            .collect();
        if heirs.len() <= HEIRS {
            self.heirs.insert(then, heirs);
        } else if self.rest.is_none() {
            self.rest = Some(Box::new(Rest { v4: self.tuples(set), v6: self.tuples(set) }));
        }
    }

    /// The rules that there were and still are.
    fn tuples<K: Key + std::hash::Hash>(&self, set: &RuleSet) -> Tuples<K> {
        let now = |number: &u32| set.rules.get(*number as usize).and_then(Packed::new);
        Tuples::new(&self.numbers.iter().map(now).collect::<Vec<_>>())
    }
}

/// The first of these rules that matches, if it is better than this one.
fn first<K: Key>(rules: &[(u32, Packed<K>)], src: K, dst: K, ask: &Ask, best: u32) -> Option<u32> {
    let better = rules.iter().take_while(|(number, _)| *number < best);
    better.filter(|(_, rule)| rule.matches(src, dst, ask)).map(|(number, _)| *number).next()
}

fn put<K>(rules: &mut Vec<(u32, Packed<K>)>, at: u32, rule: Option<Packed<K>>) {
    if let Some(rule) = rule {
        let place = rules.partition_point(|(number, _)| *number < at);
        rules.insert(place, (at, rule));
    }
}
