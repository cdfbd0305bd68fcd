//! The rules that packets of one IP version can match, and the structure that finds the first.

use crate::flat::{FlatSet, Query};
use crate::grid::{Grid, Plan};
use crate::packed::{Ask, NONE, Packed};
use crate::tree::Tree;
use crate::trie::{Key, Trie};
use crate::tuples::Tuples;
use braid_ir::value::Rule;

/// Packets looked up side by side.
pub const LANES: usize = 8;

/// A kind of structure.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Family {
    /// Rules one by one.
    Linear,
    /// Equivalence classes of both addresses in one table of cells.
    Table,
    /// The same, divided by how many address intervals a rule reaches over: up to so many sources;
    /// else up to so many destinations; else a table.
    Split(u32),
    /// A tree of cuts.
    Tree,
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
    Grid { src: Trie<K>, dst: Trie<K>, grid: Grid },
    Tree { src: Trie<K>, dst: Trie<K>, tree: Tree },
    Tuples(Tuples<K>),
}

/// Sets with no more rules than this are tried rule by rule.
const FEW: usize = 8;

impl<K: Key + std::hash::Hash> Side<K> {
    /// The structure that fits these rules.
    #[must_use]
    pub fn new(rules: &[Rule]) -> Self {
        let packed: Vec<_> = rules.iter().map(Packed::new).collect();
        if packed.iter().flatten().count() <= FEW {
            return Self::linear(&packed);
        }
        [Family::Table, Family::Split(64), Family::Split(8)]
            .into_iter()
            .find_map(|family| Self::ranked(&packed, family))
            .unwrap_or_else(|| Self::linear(&packed))
    }

    /// A structure of this kind; `None` if it would take too much time or memory.
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
        let (src, dst) = (src.trie(), dst.trie());
        let index = match family {
            Family::Tree => Index::Tree { src, dst, tree: Tree::new(&flat) },
            Family::Split(widest) => {
                Index::Grid { src, dst, grid: Grid::new(&flat, Plan::Split(widest))? }
            }
            _ => Index::Grid { src, dst, grid: Grid::new(&flat, Plan::Table)? },
        };
        Some(Self { index, family })
    }

    /// The number of the first rule that matches, or [`NONE`].
    #[inline]
    pub fn find(&self, src: K, dst: K, ask: &Ask) -> u32 {
        match &self.index {
            Index::Linear(rules) => rules
                .iter()
                .find(|(_, rule)| rule.matches(src, dst, ask))
                .map_or(NONE, |(number, _)| *number),
            Index::Grid { src: srcs, dst: dsts, grid } => {
                grid.find(&Query { src: srcs.get(src), dst: dsts.get(dst), ask: *ask })
            }
            Index::Tree { src: srcs, dst: dsts, tree } => {
                tree.find(&Query { src: srcs.get(src), dst: dsts.get(dst), ask: *ask })
            }
            Index::Tuples(tuples) => tuples.find(src, dst, ask),
        }
    }

    /// As [`Self::find`] for several packets, whose memory accesses overlap.
    #[inline]
    pub fn find_each(
        &self,
        src: &[K; LANES],
        dst: &[K; LANES],
        ask: &[Ask; LANES],
    ) -> [u32; LANES] {
        match &self.index {
            Index::Linear(_) | Index::Tuples(_) => {
                std::array::from_fn(|lane| self.find(src[lane], dst[lane], &ask[lane]))
            }
            Index::Grid { src: srcs, dst: dsts, grid } => {
                let (src, dst) = (srcs.get_each(src), dsts.get_each(dst));
                std::array::from_fn(|lane| {
                    grid.find(&Query { src: src[lane], dst: dst[lane], ask: ask[lane] })
                })
            }
            Index::Tree { src: srcs, dst: dsts, tree } => {
                let (src, dst) = (srcs.get_each(src), dsts.get_each(dst));
                std::array::from_fn(|lane| {
                    tree.find(&Query { src: src[lane], dst: dst[lane], ask: ask[lane] })
                })
            }
        }
    }

    /// Which kind of structure it is.
    #[must_use]
    pub fn family(&self) -> Family {
        self.family
    }

    /// Bytes of memory.
    #[must_use]
    pub fn memory(&self) -> usize {
        match &self.index {
            Index::Linear(rules) => size_of_val(rules.as_slice()),
            Index::Grid { src, dst, grid } => src.memory() + dst.memory() + grid.memory(),
            Index::Tree { src, dst, tree } => src.memory() + dst.memory() + tree.memory(),
            Index::Tuples(tuples) => tuples.memory(),
        }
    }
}
