//! The rules that packets of one IP version can match, and the structure that finds the first of
//! them.

use crate::bits::Bits;
use crate::flat::{FlatSet, Query, Starts};
use crate::grid::Grid;
use crate::grid::build::Plan;
use crate::packed::{Ask, NONE, Packed};
use crate::steps::Steps;
use crate::tree::Tree;
use crate::trie::{Key, Trie};
use crate::tuples::Tuples;
use braid_ir::value::Rule;

/// A kind of structure.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Family {
    /// The rules one by one.
    Linear,
    /// Equivalence classes of both addresses in one table of cells.
    Table,
    /// The same, divided by the number of address intervals that a rule covers: up to this many
    /// sources; up to this many destinations; all others in a table.
    Split(u32),
    /// A tree of cuts.
    Tree,
    /// Bit vectors: each part of a field has a row with a bit for each rule.
    Bits,
    /// Hash tables by prefix lengths.
    Tuples,
}

/// The rules of one IP version.
#[derive(Clone, Debug)]
pub struct Side<K> {
    index: Index<K>,
    family: Family,
}

/// The structure.
#[derive(Clone, Debug)]
enum Index<K> {
    Linear(Vec<(u32, Packed<K>)>),
    Tuples(Tuples<K>),
    Ranked(Box<Ranked<K>>),
    /// The same as `Ranked`, for IPv4 only, with a faster map from addresses to ranks.
    Fast(Box<Fast>),
}

/// A structure over ranks, and the maps from addresses to ranks.
#[derive(Clone, Debug)]
struct Ranked<K> {
    src: Trie<K>,
    dst: Trie<K>,
    over: Over,
}

/// The fastest structure over ranks, with the fastest maps from addresses to ranks.
#[derive(Clone, Debug)]
struct Fast {
    src: Steps,
    dst: Steps,
    grid: Grid,
}

/// A structure over ranks.
#[derive(Clone, Debug)]
enum Over {
    Grid(Grid),
    Tree(Tree),
    Bits(Bits),
}

/// Sets with at most this many rules are tried rule by rule.
const FEW: usize = 8;

/// The most rules that may be tried one after another in a list or leaf of a structure.
const LONG: usize = 256;

impl<K: Key + std::hash::Hash> Side<K> {
    /// Builds the structure that fits these rules.
    #[must_use]
    pub fn new(rules: &[Rule]) -> Self {
        let packed: Vec<_> = rules.iter().map(Packed::new).collect();
        if packed.iter().flatten().count() <= FEW {
            return Self::linear(&packed);
        }
        let (flat, src, dst) = FlatSet::new(&packed);
        let (family, over) = Over::fitting(&flat);
        Self { index: Index::ranked(&src, &dst, over), family }
    }

    /// Builds a structure of this kind; `None` if it would take too much time or memory.
    #[must_use]
    pub fn of_family(rules: &[Rule], family: Family) -> Option<Self> {
        let packed: Vec<_> = rules.iter().map(Packed::new).collect();
        match family {
            Family::Linear => Some(Self::linear(&packed)),
            Family::Tuples => Some(Self { index: Index::Tuples(Tuples::new(&packed)), family }),
            _ => Self::ranked(&packed, family),
        }
    }

    fn linear(packed: &[Option<Packed<K>>]) -> Self {
        let rules = (0..).zip(packed).filter_map(|(number, rule)| Some((number, (*rule)?)));
        Self { index: Index::Linear(rules.collect()), family: Family::Linear }
    }

    fn ranked(packed: &[Option<Packed<K>>], family: Family) -> Option<Self> {
        let (flat, src, dst) = FlatSet::new(packed);
        let over = Over::of_family(&flat, family, usize::MAX)?;
        Some(Self { index: Index::ranked(&src, &dst, over), family })
    }

    /// The number of the first rule that matches, or [`NONE`].
    #[inline(always)]
    pub fn find(&self, src: K, dst: K, ask: &Ask) -> u32 {
        match &self.index {
            Index::Fast(fast) => fast.find(u32::cut(src.into()), u32::cut(dst.into()), ask),
            _ => self.find_otherwise(src, dst, *ask),
        }
    }

    /// The same in any other structure. It is kept out of the caller's code, which is faster
    /// without it.
    #[inline(never)]
    fn find_otherwise(&self, src: K, dst: K, ask: Ask) -> u32 {
        match &self.index {
            Index::Linear(rules) => rules
                .iter()
                .find(|(_, rule)| rule.matches(src, dst, &ask))
                .map_or(NONE, |(number, _)| *number),
            Index::Ranked(ranked) => {
                let (src, dst) = (ranked.src.get(src), ranked.dst.get(dst));
                ranked.over.find(&Query { src, dst, ask })
            }
            Index::Tuples(tuples) => tuples.find(src, dst, &ask),
            Index::Fast(_) => NONE,
        }
    }

    /// Makes a rule match nothing, if that is simple: in structures that keep every rule, even a
    /// rule that earlier ones cover. Returns whether it did.
    pub fn forget(&mut self, number: u32) -> bool {
        match &mut self.index {
            Index::Linear(rules) => rules.retain(|rule| rule.0 != number),
            Index::Ranked(ranked) => match &mut ranked.over {
                Over::Bits(bits) => bits.forget(number),
                Over::Grid(_) | Over::Tree(_) => return false,
            },
            Index::Tuples(_) | Index::Fast(_) => return false,
        }
        true
    }

    /// The kind of structure.
    #[must_use]
    pub fn family(&self) -> Family {
        self.family
    }

    /// Bytes of memory.
    #[must_use]
    pub fn memory(&self) -> usize {
        match &self.index {
            Index::Linear(rules) => size_of_val(rules.as_slice()),
            Index::Tuples(tuples) => tuples.memory(),
            Index::Ranked(ranked) => {
                ranked.src.memory() + ranked.dst.memory() + ranked.over.memory()
            }
            Index::Fast(fast) => fast.src.memory() + fast.dst.memory() + fast.grid.memory(),
        }
    }
}

impl<K: Key> Index<K> {
    fn ranked(src: &Starts, dst: &Starts, over: Over) -> Self {
        let over = match (over, src.steps::<K>(), dst.steps::<K>()) {
            (Over::Grid(grid), Some(srcs), Some(dsts)) => {
                return Self::Fast(Box::new(Fast { src: srcs, dst: dsts, grid }));
            }
            (over, ..) => over,
        };
        Self::Ranked(Box::new(Ranked { src: src.trie(), dst: dst.trie(), over }))
    }
}

impl Fast {
    #[inline(always)]
    fn find(&self, src: u32, dst: u32, ask: &Ask) -> u32 {
        self.grid.find(self.src.get(src).into(), self.dst.get(dst).into(), ask)
    }
}

impl Over {
    /// The fastest structure that stays within limits for these rules.
    fn fitting(flat: &FlatSet) -> (Family, Self) {
        for family in [Family::Table, Family::Split(64), Family::Tree] {
            if let Some(over) = Self::of_family(flat, family, LONG) {
                return (family, over);
            }
        }
        (Family::Bits, Self::Bits(Bits::new(flat)))
    }

    /// Builds a structure of this kind; `None` if it would take too much time or memory, or if more
    /// than `longest` rules might be tried one after another.
    fn of_family(flat: &FlatSet, family: Family, longest: usize) -> Option<Self> {
        match family {
            Family::Split(widest) => Grid::new(flat, Plan::Split(widest), longest).map(Self::Grid),
            Family::Tree => Tree::new(flat, longest).map(Self::Tree),
            Family::Bits => Some(Self::Bits(Bits::new(flat))),
            _ => Grid::new(flat, Plan::Table, longest).map(Self::Grid),
        }
    }

    #[inline]
    fn find(&self, query: &Query) -> u32 {
        match self {
            Self::Grid(grid) => grid.find(query.src, query.dst, &query.ask),
            Self::Tree(tree) => tree.find(query),
            Self::Bits(bits) => bits.find(query),
        }
    }

    fn memory(&self) -> usize {
        match self {
            Self::Grid(grid) => grid.memory(),
            Self::Tree(tree) => tree.memory(),
            Self::Bits(bits) => bits.memory(),
        }
    }
}
