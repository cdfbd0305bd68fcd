//! Free ranks in the order in which they became free. Bits hold the ranks that are free from the
//! start, lowest first. A list links the other free ranks.

use super::first::First;

#[derive(Clone, Debug)]
pub(super) struct Queue {
    /// The ranks that have been free from the start.
    fresh: First,
    /// For each rank in the list: the rank before it and the rank after it, plus 1. 0 means none.
    links: Vec<[u32; 2]>,
    /// The first and the last rank of the list, plus 1.
    ends: [u32; 2],
}

const BEFORE: usize = 0;
const BEHIND: usize = 1;

#[expect(
    clippy::indexing_slicing,
    reason = "`links` has an element for each rank, and a link is a rank plus 1"
)]
impl Queue {
    /// Creates a queue of `count` free ranks, lowest first.
    pub(super) fn ascending(count: u32) -> Self {
        Self { fresh: First::new(count), links: vec![[0; 2]; count as usize], ends: [0; 2] }
    }

    /// Creates an empty queue for `count` ranks.
    pub(super) fn empty(count: u32) -> Self {
        let mut new = Self::ascending(count);
        (0..count).for_each(|rank| new.fresh.remove(rank));
        new
    }

    pub(super) fn first(&self) -> Option<u32> {
        self.fresh.first().or_else(|| self.ends[0].checked_sub(1))
    }

    /// Removes a rank that is in the queue.
    pub(super) fn remove(&mut self, rank: u32) {
        if self.fresh.has(rank) {
            return self.fresh.remove(rank);
        }
        let [before, behind] = std::mem::take(&mut self.links[rank as usize]);
        match before.checked_sub(1) {
            Some(before) => self.links[before as usize][BEHIND] = behind,
            None => self.ends[0] = behind,
        }
        match behind.checked_sub(1) {
            Some(behind) => self.links[behind as usize][BEFORE] = before,
            None => self.ends[1] = before,
        }
    }

    /// Appends a rank that is not in the queue.
    pub(super) fn push(&mut self, rank: u32) {
        let last = self.ends[1];
        self.links[rank as usize] = [last, 0];
        match last.checked_sub(1) {
            Some(last) => self.links[last as usize][BEHIND] = rank + 1,
            None => self.ends[0] = rank + 1,
        }
        self.ends[1] = rank + 1;
    }

    /// All ranks in the queue, in order.
    #[expect(clippy::cast_possible_truncation, reason = "ranks have 32 bits")]
    pub(super) fn all(&self) -> impl Iterator<Item = u32> + '_ {
        let fresh = (0..self.links.len() as u32).filter(|rank| self.fresh.has(*rank));
        let first = self.ends[0].checked_sub(1);
        let listed =
            std::iter::successors(first, |rank| self.links[*rank as usize][BEHIND].checked_sub(1));
        fresh.chain(listed)
    }
}
