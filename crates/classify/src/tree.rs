//! A binary tree of cuts over ranks and ports, in the manner of HyperSplit (Qi et al., 2009).
//!
//! Each node cuts its region of the rule space at the median of the ends of its rules, in the field
//! where the two sides have the fewest rules. As in CutSplit there is one tree for rules with few
//! sources, one for rules with few destinations and one for all others. A lookup skips a tree whose
//! best rule is no better than the rule found so far. A rule that crosses a cut is in both sides.
//! The number of copies is bounded; the price is long leaves in hostile sets. The tree is slower
//! than the grid where the grid fits.

use crate::flat::{Flat, FlatSet, Query};
use crate::packed::{NONE, Range, Service};

/// A region with at most this many rules is not cut.
const LEAF: usize = 6;

/// The most cuts from the root to a leaf.
const DEPTH: u32 = 40;

/// The most copies of rules in a tree, per rule.
const COPIES: usize = 24;

/// The most rules that fill a region and are compared with later rules, which they may cover.
const FILLING: usize = 8;

const IS_LEAF: u32 = 1 << 31;

/// The structure.
#[derive(Clone, Debug)]
pub struct Tree {
    services: Vec<Service>,
    roots: Vec<Root>,
    nodes: Vec<Node>,
    /// The rules of all leaves. A leaf ends where the number of a rule does not grow.
    leaves: Vec<Flat>,
}

#[derive(Clone, Copy, Debug)]
struct Root {
    node: u32,
    /// The number of its first rule.
    best: u32,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    field: u8,
    /// The first value of the right side.
    cut: u32,
    /// For each side a node, or the start of a leaf.
    sides: [u32; 2],
}

type Region = [Range<u32>; 4];

struct Builder<'a> {
    flat: &'a FlatSet,
    nodes: Vec<Node>,
    leaves: Vec<Flat>,
    copies: usize,
    /// The most rules of a leaf.
    longest: usize,
}

impl Tree {
    /// Builds the structure for these rules; `None` if a leaf would have more rules than `longest`.
    #[must_use]
    pub fn new(flat: &FlatSet, longest: usize) -> Option<Self> {
        let mut builder =
            Builder { flat, nodes: Vec::new(), leaves: Vec::new(), copies: 0, longest };
        let narrow = |range: Range<u32>, ranks: u32| range.1 - range.0 <= ranks / 16;
        let kind = |rule: &Flat| {
            if narrow(rule.src, flat.src_ranks) {
                0
            } else if narrow(rule.dst, flat.dst_ranks) {
                1
            } else {
                2
            }
        };
        let region = [
            (0, flat.src_ranks.saturating_sub(1)),
            (0, flat.dst_ranks.saturating_sub(1)),
            (0, u16::MAX.into()),
            (0, u16::MAX.into()),
        ];
        let mut roots = Vec::new();
        for part in 0..3 {
            let rules: Vec<Flat> =
                flat.rules.iter().filter(|rule| kind(rule) == part).copied().collect();
            if let Some(first) = rules.first() {
                let best = first.number;
                builder.copies = COPIES * rules.len() + 1024;
                roots.push(Root { node: builder.build(rules, region, 0)?, best });
            }
        }
        roots.sort_by_key(|root| root.best);
        let Builder { nodes, leaves, .. } = builder;
        Some(Self { services: flat.services.clone(), roots, nodes, leaves })
    }

    /// The number of the first rule that matches, or [`NONE`].
    #[must_use]
    #[inline]
    #[expect(
        clippy::indexing_slicing,
        reason = "sides have numbers of nodes, and a comparison gives one of two sides"
    )]
    pub fn find(&self, query: &Query) -> u32 {
        let point = [query.src, query.dst, query.ask.sport().into(), query.ask.dport().into()];
        let mut best = NONE;
        for root in self.roots.iter().take_while(|root| root.best < NONE) {
            if root.best >= best {
                break;
            }
            let mut at = root.node;
            while at & IS_LEAF == 0 {
                let node = &self.nodes[at as usize];
                at = node.sides[usize::from(point[usize::from(node.field & 3)] >= node.cut)];
            }
            best = self.first(at & !IS_LEAF, query, best);
        }
        best
    }

    #[inline]
    #[expect(clippy::indexing_slicing, reason = "a leaf's number is the place of its first rule")]
    fn first(&self, leaf: u32, query: &Query, best: u32) -> u32 {
        let mut last = None;
        for rule in &self.leaves[leaf as usize..] {
            if rule.number >= best || last.is_some_and(|last| rule.number <= last) {
                break;
            }
            if rule.matches(query, &self.services) {
                return rule.number;
            }
            last = Some(rule.number);
        }
        best
    }

    /// Bytes of memory.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.services.len() * size_of::<Service>()
            + self.nodes.len() * size_of::<Node>()
            + self.leaves.len() * size_of::<Flat>()
    }
}

impl Builder<'_> {
    /// Builds a node or a leaf for some rules (in order) within a region.
    #[expect(
        clippy::indexing_slicing,
        reason = "`field` is one of the region's fields, and `place` is a node made here"
    )]
    fn build(&mut self, mut rules: Vec<Flat>, region: Region, depth: u32) -> Option<u32> {
        self.drop_covered(&mut rules, &region);
        let cut =
            if rules.len() <= LEAF || depth == DEPTH { None } else { self.cut(&rules, &region) };
        let Some((field, cut)) = cut else { return self.leaf(&rules) };
        let side = |low: bool| -> Vec<Flat> {
            let has = |rule: &&Flat| {
                let (lo, hi) = self.range(rule, field);
                if low { lo < cut } else { hi >= cut }
            };
            rules.iter().filter(has).copied().collect()
        };
        let (left, right) = (side(true), side(false));
        let copies = (left.len() + right.len()).saturating_sub(rules.len());
        let Some(copies) = self.copies.checked_sub(copies) else { return self.leaf(&rules) };
        self.copies = copies;
        drop(rules);
        let (mut low, mut high) = (region, region);
        low[field].1 = cut - 1;
        high[field].0 = cut;
        let place = self.nodes.len();
        self.nodes.push(Node { field: u8::try_from(field).unwrap_or(0), cut, sides: [0; 2] });
        let sides = [self.build(left, low, depth + 1)?, self.build(right, high, depth + 1)?];
        self.nodes[place].sides = sides;
        u32::try_from(place).ok()
    }

    /// Drops the rules that earlier ones cover in this region.
    fn drop_covered(&self, rules: &mut Vec<Flat>, region: &Region) {
        let mut filling: Vec<Service> = Vec::new();
        rules.retain(|rule| {
            let service = self.flat.service(rule);
            if filling.iter().any(|filling| filling.covers_bits(service)) {
                return false;
            }
            let fills = (0..).zip(region).all(|(field, region)| {
                let (lo, hi) = self.range(rule, field);
                lo <= region.0 && region.1 <= hi
            });
            if fills && filling.len() < FILLING {
                filling.push(*service);
            }
            true
        });
    }

    /// The field and the place of the cut that leaves the fewest rules on both sides.
    fn cut(&self, rules: &[Flat], region: &Region) -> Option<(usize, u32)> {
        let mut best: Option<(usize, usize, u32)> = None;
        for (field, &(low, high)) in region.iter().enumerate() {
            let mut ends = Vec::with_capacity(rules.len() * 2);
            for rule in rules {
                let (lo, hi) = self.range(rule, field);
                ends.extend((lo > low).then_some(lo));
                ends.extend((hi < high).then(|| hi + 1));
            }
            if ends.is_empty() {
                continue;
            }
            let middle = ends.len() / 2;
            let cut = *ends.select_nth_unstable(middle).1;
            let left = rules.iter().filter(|rule| self.range(rule, field).0 < cut).count();
            let right = rules.iter().filter(|rule| self.range(rule, field).1 >= cut).count();
            let cost = left.max(right) * 2 + left + right;
            if left.max(right) < rules.len() && best.is_none_or(|(least, ..)| cost < least) {
                best = Some((cost, field, cut));
            }
        }
        best.map(|(_, field, cut)| (field, cut))
    }

    fn leaf(&mut self, rules: &[Flat]) -> Option<u32> {
        if rules.len() > self.longest {
            return None;
        }
        let start = self.leaves.len();
        self.leaves.extend(rules);
        // Ends the leaf, or is the whole of an empty leaf: numbers grow within a leaf, and this
        // entry matches nothing.
        self.leaves.push(Flat { number: 0, src: (1, 0), dst: (1, 0), service: 0 });
        u32::try_from(start).ok().map(|start| IS_LEAF | start)
    }

    fn range(&self, rule: &Flat, field: usize) -> Range<u32> {
        let service = self.flat.service(rule);
        let wide = |range: Range<u16>| (u32::from(range.0), u32::from(range.1));
        match field {
            0 => rule.src,
            1 => rule.dst,
            2 => wide(service.sport()),
            _ => wide(service.dport()),
        }
    }
}
