//! Free members of a pool in the order `Random`: counts of taken members in a sparse binary tree.
//!
//! Members have ranks 0, 1, … in ascending order. A leaf of the tree is a rank, and an inner node
//! counts the taken ranks below it. Nodes without taken ranks are absent. One walk from the root
//! finds the k-th free rank: time and memory per taken member grow with the logarithm of the size
//! of the pool.

use super::interval::{Interval, count};
use crate::rng::Rng;
use std::collections::BTreeMap;

/// Free members.
#[derive(Clone, Debug)]
pub(super) struct FreeRanks {
    /// Intervals in ascending order, each with its first rank.
    members: Vec<(u128, Interval)>,
    /// The number of members.
    size: u128,
    /// The number of levels below the root: all ranks are below 2^levels.
    levels: u32,
    /// The number of taken ranks below each node (level above the leaves, rank without its low
    /// bits).
    taken: BTreeMap<(u32, u128), u128>,
    /// The number of taken ranks.
    taken_count: u128,
}

impl FreeRanks {
    pub(super) fn new(members: &[Interval]) -> Self {
        let mut first_rank = 0;
        let ranked = members
            .iter()
            .map(|&(lo, hi)| {
                let entry = (first_rank, (lo, hi));
                // At most the number of members, which is below 2^128.
                first_rank += hi - lo + 1;
                entry
            })
            .collect();
        let size = count(members);
        let levels = u128::BITS - size.saturating_sub(1).leading_zeros();
        Self { members: ranked, size, levels, taken: BTreeMap::new(), taken_count: 0 }
    }

    pub(super) fn take(&mut self, rng: &mut Rng) -> Option<u128> {
        let free = self.size - self.taken_count;
        if free == 0 {
            return None;
        }
        let rank = self.free_rank(rng.below(free));
        self.add(rank);
        self.value(rank)
    }

    /// Removes a free member.
    pub(super) fn remove(&mut self, value: u128) {
        if let Some(rank) = self.rank(value) {
            self.add(rank);
        }
    }

    /// Adds a member that is not free.
    pub(super) fn insert(&mut self, value: u128) {
        let Some(rank) = self.rank(value) else { return };
        self.taken_count -= 1;
        for node in self.path(rank) {
            if let Some(taken) = self.taken.get_mut(&node) {
                *taken -= 1;
                if *taken == 0 {
                    self.taken.remove(&node);
                }
            }
        }
    }

    fn add(&mut self, rank: u128) {
        self.taken_count += 1;
        for node in self.path(rank) {
            *self.taken.entry(node).or_insert(0) += 1;
        }
    }

    /// The nodes from the root's children down to the leaf.
    fn path(&self, rank: u128) -> impl Iterator<Item = (u32, u128)> + use<> {
        (0..self.levels).rev().map(move |level| (level, rank >> level))
    }

    /// The rank of the free member that has `skip` free members below it.
    fn free_rank(&self, mut skip: u128) -> u128 {
        let mut node = 0;
        for level in (0..self.levels).rev() {
            let left = node << 1;
            // Ranks after the last member are to the right of it. They count as free here, which
            // can't mislead the walk while `skip` is below the number of free members.
            let taken = self.taken.get(&(level, left)).copied().unwrap_or(0);
            let free = (1_u128 << level) - taken;
            node = if skip < free {
                left
            } else {
                skip -= free;
                left | 1
            };
        }
        node
    }

    fn value(&self, rank: u128) -> Option<u128> {
        let after = self.members.partition_point(|&(first, _)| first <= rank);
        let &(first, (lo, _)) = self.members.get(after.checked_sub(1)?)?;
        Some(lo + (rank - first))
    }

    fn rank(&self, value: u128) -> Option<u128> {
        let after = self.members.partition_point(|&(_, (lo, _))| lo <= value);
        let &(first, (lo, hi)) = self.members.get(after.checked_sub(1)?)?;
        (value <= hi).then(|| first + (value - lo))
    }
}
