//! A rule set with fast lookups that can change.
//!
//! # Choice of the structure
//!
//! The structures are tried in this order, separately for IPv4 and IPv6. The first one that stays
//! within its limits is taken:
//!
//! 1. up to 8 rules: the rules one by one;
//! 2. `grid.rs` with one table over equivalence classes of addresses, up to 4 million
//!    cells;
//! 3. the same, divided by how many addresses a rule covers;
//! 4. `tree.rs`, without leaves of more than 256 rules;
//! 5. `bits.rs`, which takes any set.
//!
//! Both grids have a limit of steps and cells, which grows with the rules, and no list of more than
//! 256 rules.
//!
//! `examples/compare.rs` measures all structures. On ClassBench's sets from 250 to 58,000 rules,
//! and on generated sets up to 100,000, the grid is the fastest by a factor of two and more, and
//! its time grows least: an access list of 8,550 rules takes 1.5 times as long as its first 251
//! rules. Trees come second and take two to five times as long. Tuple space search is faster for
//! the few sets with two or three pairs of prefix lengths and many times slower for others, so it
//! is never chosen. Hostile sets (nested or random ranges in all fields) have more cells than the
//! grid allows and leaves that stay long. Bit vectors take a tenth of a microsecond for 10,000
//! hostile rules and up to a few microseconds for 100,000.
//!
//! A lookup in a grid for IPv4 makes six accesses to small arrays, side by side, for the ranks of
//! both addresses (`steps.rs`; `trie.rs` if that would take too many blocks). One access reads the
//! cell, which has the first rule of its list (`sparse.rs`), and one reads the service of that
//! rule. This takes a hundred instructions, and branches only for rare cases.
//!
//! # Changes
//!
//! A change leaves the structure as it is. Added rules are tried one by one after the lookup. When
//! a lookup finds a removed rule, the later rules that overlap with it are tried. If there are more
//! than [`HEIRS`] of them, tuple space search searches all rules; its tables are built once, in a
//! millisecond for 10,000 rules. Structures that keep covered rules simply forget a removed rule.
//! An array has the present numbers of the rules.
//!
//! A change therefore costs some steps for each rule of the set: tens of microseconds for 10,000
//! rules. Until the structure is rebuilt, a lookup costs one more access, up to [`PENDING`]
//! comparisons, and a microsecond if it finds a removed rule with many overlaps. The structure is
//! rebuilt (in tens of milliseconds for 10,000 rules) when more than [`PENDING`] rules were added
//! or removed, or when [`RuleTable::settle`] is called. A table can be cloned, settled on another
//! thread and put in the place of the original.

use crate::packed::{Ask, NONE, Packed};
use crate::side::{Family, Side};
use crate::trie::Key;
use crate::tuples::Tuples;
use braid_ir::rules::{RulePacket, RuleWords};
use braid_ir::value::{Rule, RuleSet};
use std::collections::HashMap;

/// The most rules that may be added before the structure is rebuilt. Each lookup tries them in
/// order.
const PENDING: usize = 64;

/// The most rules that are tried in order in place of a removed one. If there are more, all rules
/// are searched by their prefix lengths.
const HEIRS: usize = 64;

/// A rule set with fast lookups. Its answers are the same as those of [`RuleSet::decide`].
#[derive(Clone, Debug)]
pub struct RuleTable {
    set: RuleSet,
    /// For each rule, whether packets that it decides pass; the last element is the default.
    /// Lookups read nothing else of the set.
    passes: Vec<bool>,
    v4: Side<u32>,
    v6: Side<u128>,
    changes: Option<Box<Changes>>,
}

/// The changes since the structures were built. The structures keep the numbers that rules had
/// then.
#[derive(Clone, Debug, Default)]
struct Changes {
    /// The present number of each old rule; [`NONE`] for a removed one.
    numbers: Vec<u32>,
    /// For a removed rule that would have decided: the later rules that overlap with it. Keys and
    /// values are old numbers.
    heirs: HashMap<u32, Vec<u32>>,
    /// The old rules, to be searched if a removed rule has too many later rules that overlap with
    /// it.
    rest: Option<Box<Rest>>,
    /// The number of rules removed.
    removed: usize,
    /// The present numbers of the rules added since, in order.
    added: Vec<u32>,
    added4: Vec<(u32, Packed<u32>)>,
    added6: Vec<(u32, Packed<u128>)>,
}

/// The old rules, by prefix lengths.
#[derive(Clone, Debug)]
struct Rest {
    v4: Tuples<u32>,
    v6: Tuples<u128>,
}

impl RuleTable {
    /// Builds a table of these rules with the structure that fits them.
    #[must_use]
    pub fn new(set: &RuleSet) -> Self {
        Self::over(set, Side::new(&set.rules), Side::new(&set.rules))
    }

    /// Builds a table with this kind of structure, for comparisons; `None` if it would take too
    /// much time or memory. Changes may turn it into another kind.
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

    /// The answer when the structure found this rule.
    #[inline]
    fn answer(&self, packet: &RulePacket, found: u32) -> (bool, u32) {
        self.verdict(match &self.changes {
            None => found,
            Some(changes) => changes.now(packet, found, &self.set),
        })
    }

    /// The same for an IPv4 packet. It is kept out of the caller's code, which is faster without
    /// it.
    #[inline(never)]
    fn changed(&self, words: RuleWords, found: u32) -> (bool, u32) {
        self.answer(&words.packet(), found)
    }

    /// The answer of a rule, by its present number.
    #[inline]
    #[expect(
        clippy::indexing_slicing,
        reason = "`passes` has an element for each rule and one for the default"
    )]
    fn verdict(&self, number: u32) -> (bool, u32) {
        let number = number.min(count(&self.set));
        (self.passes[number as usize], number)
    }

    /// Adds a rule with this number, or after the last rule if the number is past the end. The
    /// rules from this number on move up by one.
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

    /// Removes a rule and returns it, if there was one. The rules after it move down by one.
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
        if let Some(default) = self.passes.last_mut() {
            *default = pass;
        }
    }

    /// The present rules.
    #[must_use]
    pub fn set(&self) -> &RuleSet {
        &self.set
    }

    /// Rebuilds the structure with the pending changes. The answers stay the same.
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

    /// The present number of the rule that decides, or [`NONE`].
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

    /// The present number of the rule that decides in place of a removed one.
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

    /// The number that a rule had when the structures were built; `None` for an added rule.
    fn then(&self, at: u32) -> Option<u32> {
        if self.added.binary_search(&at).is_ok() {
            return None;
        }
        (0..).zip(&self.numbers).find(|(_, number)| **number == at).map(|(then, _)| then)
    }

    fn remove(&mut self, at: u32) {
        let then = self.then(at);
        if let Some(number) = then.and_then(|then| self.numbers.get_mut(then as usize)) {
            *number = NONE;
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

    /// Records the rules that may decide in place of a removed one, except for IP versions whose
    /// structure forgot the rule.
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

    /// The old rules that still exist.
    fn tuples<K: Key + std::hash::Hash>(&self, set: &RuleSet) -> Tuples<K> {
        let now = |number: &u32| set.rules.get(*number as usize).and_then(Packed::new);
        Tuples::new(&self.numbers.iter().map(now).collect::<Vec<_>>())
    }
}

/// The first of these rules that matches, if it comes before `best`.
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
