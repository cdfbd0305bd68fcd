//! Claims about state tables: "the worker that holds an entry is this function of the entry".

use super::facts::{Fact, Facts, Law, Term};
use braid_ir::model::{Granularity, StateId, Word};
use braid_packet::Header;
use std::collections::{BTreeMap, BTreeSet};

/// A table: the function's number, and the table's.
pub(super) type Table = (u16, StateId);

/// The worker of an entry is `law` of these parts of the entry: first the parts of its key, then
/// its slots.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Claim {
    pub(super) law: Law,
    pub(super) parts: Vec<usize>,
}

/// A set of claims.
pub(super) type Claims = BTreeSet<Claim>;

/// The claims that hold for all entries of each table. A table that is missing here has no entries
/// yet.
pub(super) type Invariants = BTreeMap<Table, Known>;

/// The claims that hold for all entries of a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Known {
    pub(super) claims: Claims,
    /// For each part, the constants that it can be. `None`: it can be anything.
    pub(super) words: Vec<Option<BTreeSet<Word>>>,
}

impl Known {
    /// The knowledge about an entry with these parts at a place where these facts hold.
    pub(super) fn new(facts: &Facts, parts: &[Option<Term>]) -> Self {
        let words = |part: &Option<Term>| match part {
            Some(Term::Word(word)) => Some(BTreeSet::from([*word])),
            _ => None,
        };
        Self { claims: claims(facts, parts), words: parts.iter().map(words).collect() }
    }

    /// Keeps the claims that also hold for other entries.
    pub(super) fn meet(&mut self, other: &Known) {
        self.claims.retain(|claim| other.claims.contains(claim));
        for (mine, theirs) in self.words.iter_mut().zip(&other.words) {
            match (mine.as_mut(), theirs) {
                (Some(mine), Some(theirs)) => mine.extend(theirs),
                _ => *mine = None,
            }
        }
    }

    /// Whether no entry has a key with these parts. `is_other` says that a value differs from the
    /// numbers of all protocols that the parser knows.
    pub(super) fn excludes(&self, key: &[Option<Term>], is_other: &dyn Fn(Term) -> bool) -> bool {
        let numbers =
            |header: Header| header.info().follows.iter().flat_map(|(_, numbers)| *numbers);
        let is_known = |word: &Word| {
            Header::transports().flat_map(numbers).any(|one| Word::from(*one) == *word)
        };
        self.words.iter().zip(key).any(|(words, part)| match (words, part) {
            (Some(words), Some(Term::Word(word))) => !words.contains(word),
            (Some(words), Some(part)) => is_other(*part) && words.iter().all(is_known),
            _ => false,
        })
    }
}

/// The claims that follow from facts about an entry with these parts. `None`: nothing is known
/// about the part.
pub(super) fn claims(facts: &Facts, parts: &[Option<Term>]) -> Claims {
    let mut found = Claims::new();
    for fact in facts {
        let mut orders = vec![fact.terms.clone()];
        if let (Law::Connection, [version, proto, a, p, b, q]) = (fact.law, &*fact.terms) {
            orders.push(vec![*version, *proto, *b, *q, *a, *p]);
        }
        for terms in orders {
            let mut all: Vec<Vec<usize>> = vec![Vec::new()];
            for term in &terms {
                let places = || (0..parts.len()).filter(|at| parts[*at] == Some(*term));
                let longer = |start: &Vec<usize>| {
                    places().map(|place| [&**start, &[place]].concat()).collect::<Vec<_>>()
                };
                all = all.iter().flat_map(longer).collect();
            }
            found.extend(all.into_iter().map(|parts| Claim { law: fact.law, parts }));
        }
    }
    found
}

/// The facts that claims give about an entry with these parts.
pub(super) fn facts(claims: &Claims, parts: &[Option<Term>]) -> Facts {
    let fact = |claim: &Claim| {
        let terms: Option<Vec<Term>> =
            claim.parts.iter().map(|part| parts.get(*part).copied().flatten()).collect();
        Some(Fact::new(claim.law, terms?))
    };
    claims.iter().filter_map(fact).collect()
}

/// From the claims about a key, the ones that can decide the worker of its entry. The key of a
/// flow has two ends, and a claim may be about one of them. If the steering looks at the same end
/// in both directions (`one_sided`), this is the end that the steering looks at, wherever it stands
/// in the key. Otherwise it is the end at one place of the key. Such a claim decides nothing for
/// `biflow` keys, where either end may stand at this place.
pub(super) fn of_key(claims: Claims, granularity: &Granularity, one_sided: bool) -> Claims {
    let biflow = *granularity == Granularity::Biflow;
    let flow = biflow || *granularity == Granularity::Flow;
    let kept = |claim: Claim| match claim.law {
        Law::First => Some(claim),
        Law::Connection if flow => Some(Claim { parts: Vec::new(), ..claim }),
        _ if flow && one_sided => Some(Claim { parts: Vec::new(), ..claim }),
        _ if biflow => None,
        _ => Some(claim),
    };
    claims.into_iter().filter_map(kept).collect()
}
