//! Truth values with and, or, not. They are simplified when they are built.

use crate::term::{Node, Sort, Term, Terms};

/// The most parts for which pairs are compared.
const MAX_PAIRS: usize = 24;

impl Terms {
    /// The negation of a term.
    pub fn not(&mut self, a: Term) -> Term {
        match self.node(a).clone() {
            Node::Bool(value) => self.bool(!value),
            Node::Not(inner) => inner,
            Node::And(parts) => {
                let parts: Vec<_> = parts.iter().map(|part| self.not(*part)).collect();
                self.or(&parts)
            }
            Node::Or(parts) => {
                let parts: Vec<_> = parts.iter().map(|part| self.not(*part)).collect();
                self.and(&parts)
            }
            _ => self.make(Node::Not(a), Sort::Bool),
        }
    }

    /// Whether the form of one term is the negation of the other.
    fn opposite(&self, a: Term, b: Term) -> bool {
        *self.node(a) == Node::Not(b) || *self.node(b) == Node::Not(a)
    }

    /// The conjunction of all terms.
    pub fn and(&mut self, parts: &[Term]) -> Term {
        let mut flat = Vec::with_capacity(parts.len());
        for part in parts {
            match self.node(*part) {
                Node::Bool(true) => {}
                Node::Bool(false) => return *part,
                Node::And(inner) => flat.extend(inner.iter().copied()),
                _ => flat.push(*part),
            }
        }
        self.gather(flat, true)
    }

    /// The disjunction of all terms.
    pub fn or(&mut self, parts: &[Term]) -> Term {
        let mut flat = Vec::with_capacity(parts.len());
        for part in parts {
            match self.node(*part) {
                Node::Bool(false) => {}
                Node::Bool(true) => return *part,
                Node::Or(inner) => flat.extend(inner.iter().copied()),
                _ => flat.push(*part),
            }
        }
        self.gather(flat, false)
    }

    /// The conjunction of two terms.
    pub fn both(&mut self, a: Term, b: Term) -> Term {
        self.and(&[a, b])
    }

    /// Makes a conjunction (with `all`) or a disjunction from a flat list.
    fn gather(&mut self, mut flat: Vec<Term>, all: bool) -> Term {
        flat.sort_unstable();
        flat.dedup();
        if self.has_opposites(&flat) {
            return self.bool(!all);
        }
        if let Some(simpler) = self.absorb(&flat, all) {
            return if all { self.and(&simpler) } else { self.or(&simpler) };
        }
        if !all && flat.len() > 1 {
            if let Some(factored) = self.factored(&flat) {
                return factored;
            }
            if let Some(joined) = self.join_pair(&flat) {
                return self.or(&joined);
            }
        }
        match flat.as_slice() {
            [] => self.bool(all),
            [one] => *one,
            _ if all => self.make(Node::And(flat.into()), Sort::Bool),
            _ => self.make(Node::Or(flat.into()), Sort::Bool),
        }
    }

    fn has_opposites(&self, sorted: &[Term]) -> bool {
        sorted.iter().any(|term| match self.node(*term) {
            Node::Not(inner) => sorted.binary_search(inner).is_ok(),
            _ => false,
        })
    }

    /// Simplifies parts of the other kind. A part that a sibling makes superfluous is removed. In
    /// the others, inner parts that a sibling decides are removed. `None` when nothing changes.
    fn absorb(&mut self, flat: &[Term], all: bool) -> Option<Vec<Term>> {
        for (place, term) in flat.iter().enumerate() {
            let inner = match (self.node(*term), all) {
                (Node::Or(inner), true) | (Node::And(inner), false) => inner.clone(),
                _ => continue,
            };
            let mut rest = flat.to_vec();
            rest.remove(place);
            if inner.iter().any(|part| rest.binary_search(part).is_ok()) {
                return Some(rest);
            }
            let kept: Vec<_> = inner
                .iter()
                .copied()
                .filter(|part| match self.node(*part) {
                    Node::Not(positive) => rest.binary_search(positive).is_err(),
                    _ => !rest.iter().any(|other| *self.node(*other) == Node::Not(*part)),
                })
                .collect();
            if kept.len() < inner.len() {
                let smaller = if all { self.or(&kept) } else { self.and(&kept) };
                rest.push(smaller);
                return Some(rest);
            }
        }
        None
    }

    /// The parts of a conjunction.
    pub(crate) fn parts(&self, term: Term) -> Vec<Term> {
        match self.node(term) {
            Node::And(parts) => parts.to_vec(),
            Node::Bool(true) => Vec::new(),
            _ => vec![term],
        }
    }

    /// The common factor of these conjunctions, and the remainder of each.
    pub(crate) fn factor(&mut self, terms: &[Term]) -> (Vec<Term>, Vec<Term>) {
        let lists: Vec<_> = terms.iter().map(|term| self.parts(*term)).collect();
        let Some((first, others)) = lists.split_first() else { return (Vec::new(), Vec::new()) };
        let shared: Vec<_> = first
            .iter()
            .copied()
            .filter(|part| others.iter().all(|list| list.binary_search(part).is_ok()))
            .collect();
        let rests = lists
            .iter()
            .map(|list| {
                let rest: Vec<_> =
                    list.iter().copied().filter(|p| shared.binary_search(p).is_err()).collect();
                self.and(&rest)
            })
            .collect();
        (shared, rests)
    }

    /// Writes `a·x + a·y` as `a·(x + y)`.
    fn factored(&mut self, flat: &[Term]) -> Option<Term> {
        if !flat.iter().all(|term| matches!(self.node(*term), Node::And(_))) {
            return None;
        }
        let (mut shared, rests) = self.factor(flat);
        if shared.is_empty() {
            return None;
        }
        shared.push(self.or(&rests));
        Some(self.and(&shared))
    }

    /// Writes `a·x + a·¬x` as `a`.
    fn join_pair(&mut self, flat: &[Term]) -> Option<Vec<Term>> {
        if flat.len() > MAX_PAIRS {
            return None;
        }
        let lists: Vec<_> = flat.iter().map(|term| self.parts(*term)).collect();
        for (i, first) in lists.iter().enumerate() {
            for (j, second) in lists.iter().enumerate().skip(i + 1) {
                if first.len() != second.len() || first.len() < 2 {
                    continue;
                }
                let ([a], [b]) = (&*only(first, second), &*only(second, first)) else { continue };
                if self.opposite(*a, *b) {
                    let shorter: Vec<_> = first.iter().copied().filter(|p| p != a).collect();
                    let mut joined: Vec<_> = (0..flat.len())
                        .filter(|at| *at != i && *at != j)
                        .map(|at| flat[at])
                        .collect();
                    joined.push(self.and(&shorter));
                    return Some(joined);
                }
            }
        }
        None
    }
}

/// At most two terms of the first list that are not in the second list, which is sorted.
fn only(a: &[Term], b: &[Term]) -> Vec<Term> {
    a.iter().copied().filter(|part| b.binary_search(part).is_err()).take(2).collect()
}

#[cfg(test)]
mod tests {
    use crate::term::{Sort, Terms};

    #[test]
    fn paths_that_meet_again_have_the_guard_from_before_they_parted() {
        let mut terms = Terms::default();
        let [g, a, b] = ["g", "a", "b"].map(|name| terms.var(name, Sort::Bool));
        let (not_a, not_b) = (terms.not(a), terms.not(b));
        let paths = [terms.and(&[g, a]), terms.and(&[g, not_a, b]), terms.and(&[g, not_a, not_b])];
        assert_eq!(terms.or(&paths), g);
    }

    #[test]
    fn what_a_sibling_decides_goes() {
        let mut terms = Terms::default();
        let [a, b, c] = ["a", "b", "c"].map(|name| terms.var(name, Sort::Bool));
        let not_a = terms.not(a);
        let either = terms.or(&[a, b]);
        let (left, right) = (terms.and(&[not_a, either]), terms.and(&[not_a, b]));
        assert_eq!(left, right);
        let absorbed = terms.and(&[a, either]);
        assert_eq!(absorbed, a);
        let inner = terms.and(&[a, c]);
        let outer = terms.or(&[inner, a]);
        assert_eq!(outer, a);
    }

    #[test]
    fn negation_of_both_is_either_negation() {
        let mut terms = Terms::default();
        let [a, b] = ["a", "b"].map(|name| terms.var(name, Sort::Bool));
        let both = terms.both(a, b);
        let not_both = terms.not(both);
        let (not_a, not_b) = (terms.not(a), terms.not(b));
        assert_eq!(not_both, terms.or(&[not_a, not_b]));
        let never = terms.both(both, not_both);
        assert_eq!(terms.decided(never), Some(false));
    }
}
