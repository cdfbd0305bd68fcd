//! The knowledge at one place of a program, and its changes along the program.

use super::facts::{Facts, Term};
use braid_ir::model::ValueId;
use braid_packet::Field;
use std::collections::{BTreeMap, BTreeSet};

/// The knowledge at one place of a program.
#[derive(Clone, Default, Debug)]
pub(super) struct Place {
    pub(super) facts: Facts,
    /// Fields that the program has written, with their values where these are known.
    pub(super) written: BTreeMap<Field, Option<Term>>,
    /// Headers whose presence the program may have changed, as bits.
    pub(super) changed: u128,
    /// Whether all packets that reach this place have passed a comparison of an address with a
    /// constant, such as the address that a NAT owns.
    pub(super) own_address: bool,
    /// Whether no later fragment reaches this place.
    pub(super) whole: bool,
}

/// An edge into a block: the block's parameters with the values that they get, and the knowledge on
/// this edge.
pub(super) struct Edge {
    pub(super) args: Vec<(ValueId, Term)>,
    pub(super) place: Place,
}

impl Place {
    /// The current value of a field, if it is known.
    pub(super) fn value(&self, field: Field) -> Option<Term> {
        self.written.get(&field).copied().unwrap_or(Some(Term::Field(field)))
    }

    /// The fields that now hold this value. Constants stay constants.
    pub(super) fn holders(&self, value: Term) -> Vec<Term> {
        let written = self.written.iter().filter(|(_, now)| **now == Some(value));
        let mut found: Vec<Term> = written.map(|(field, _)| Term::Field(*field)).collect();
        match value {
            Term::Word(_) | Term::Param(..) => found.push(value),
            Term::Field(field) if !self.written.contains_key(&field) => found.push(value),
            Term::Field(_) | Term::Value(_) => {}
        }
        found
    }

    /// The facts in terms of the packet's fields as they are now, for the program that goes on.
    pub(super) fn carried(&self) -> Facts {
        self.facts.iter().flat_map(|fact| fact.renamed(&|term| self.holders(term))).collect()
    }
}

impl Edge {
    /// The names of a value after the edge.
    fn names(&self, term: Term) -> Vec<Term> {
        let params = self.args.iter().filter(|(_, arg)| *arg == term);
        let params = params.map(|(param, _)| Term::Value(*param));
        std::iter::once(term).chain(params).collect()
    }

    fn facts(&self) -> Facts {
        if self.args.is_empty() {
            return self.place.facts.clone();
        }
        self.place.facts.iter().flat_map(|fact| fact.renamed(&|term| self.names(term))).collect()
    }
}

/// The knowledge that holds after all edges. `None` if there is no edge: no packet gets there.
pub(super) fn join(mut edges: Vec<Edge>) -> Option<Place> {
    if let [Edge { args, .. }] = &*edges
        && args.is_empty()
    {
        return edges.pop().map(|edge| edge.place);
    }
    let edges = &*edges;
    let (first, rest) = edges.split_first()?;
    let mut facts = first.facts();
    for edge in rest {
        let others = edge.facts();
        facts.retain(|fact| others.contains(fact));
    }
    let fields: BTreeSet<Field> =
        edges.iter().flat_map(|edge| edge.place.written.keys().copied()).collect();
    let written = fields.into_iter().map(|field| (field, common(edges, field))).collect();
    Some(Place {
        facts,
        written,
        changed: edges.iter().fold(0, |bits, edge| bits | edge.place.changed),
        own_address: edges.iter().all(|edge| edge.place.own_address),
        whole: edges.iter().all(|edge| edge.place.whole),
    })
}

/// A name for the value of a field that is valid after all edges.
fn common(edges: &[Edge], field: Field) -> Option<Term> {
    let names = |edge: &Edge| edge.place.value(field).map(|term| edge.names(term));
    let mut left = names(edges.first()?)?;
    for edge in edges {
        let others = names(edge)?;
        left.retain(|name| others.contains(name));
    }
    left.last().copied()
}
