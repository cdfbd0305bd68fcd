//! Pools: which members are free and in which order they are handed out.
//!
//! NFD's non-replacing sampling (§III-B) with the order made explicit. A pool may span 2^32 members
//! and more: members stay intervals, and memory grows with what is taken (and, for `Fifo`, with how
//! scattered the free ones have become), never with the pool's size.

mod fifo;
mod lowest;
mod ranks;

use crate::rng::Rng;
use fifo::FreeQueue;
use lowest::FreeIntervals;
use ranks::FreeRanks;
use std::collections::BTreeSet;

/// In which order a pool hands out its free members.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// The lowest one.
    Lowest,
    /// The one that has been free for longest. Members that have been free from the start come
    /// before released ones, lower ones first; members that a change adds come last, lower ones first.
    Fifo,
    /// The k-th lowest one (from 0), where k is drawn by [`Rng::below`] the number of free ones.
    Random,
}

/// An interval, inclusive.
pub type Interval = (u128, u128);

/// A pool. Operations take time logarithmic in its size, apart from [`Pool::set_members`].
#[derive(Clone, Debug)]
pub struct Pool {
    members: Vec<Interval>,
    taken: BTreeSet<u128>,
    free: Free,
    free_count: u128,
}

/// The free members, as their order needs them.
#[derive(Clone, Debug)]
enum Free {
    Lowest(FreeIntervals),
    Fifo(FreeQueue),
    Random(FreeRanks),
}

impl Pool {
    /// A pool of these members, all free. Intervals may overlap and come in any order; those with
    /// a lower end above the upper are empty. (The pool of all 2^128 numbers lacks the last one.)
    #[must_use]
    pub fn new(order: Order, members: &[Interval]) -> Self {
        let members = normalised(members);
        let free = match order {
            Order::Lowest => Free::Lowest(FreeIntervals::new(&members)),
            Order::Fifo => Free::Fifo(FreeQueue::new(&members)),
            Order::Random => Free::Random(FreeRanks::new(&members)),
        };
        let free_count = count(&members);
        Self { members, taken: BTreeSet::new(), free, free_count }
    }

    /// Takes the member whose turn it is; `None` when none is free. Only pools in random order
    /// draw from `rng`, and only when a member is free.
    pub fn take(&mut self, rng: &mut Rng) -> Option<u128> {
        let value = match &mut self.free {
            Free::Lowest(free) => free.take()?,
            Free::Fifo(free) => free.take()?,
            Free::Random(free) => free.take(rng)?,
        };
        self.taken.insert(value);
        self.free_count -= 1;
        Some(value)
    }

    /// Takes this member; false when it is taken or not a member.
    pub fn take_this(&mut self, value: u128) -> bool {
        if self.taken.contains(&value) || !contains(&self.members, value) {
            return false;
        }
        self.remove_free(value);
        self.taken.insert(value);
        self.free_count -= 1;
        true
    }

    /// Gives a member back; false (and nothing changes) when it is not taken. One that a change
    /// has removed from the pool since it was taken is forgotten.
    pub fn release(&mut self, value: u128) -> bool {
        if !self.taken.remove(&value) {
            return false;
        }
        if contains(&self.members, value) {
            self.free_count += 1;
            match &mut self.free {
                Free::Lowest(free) => free.insert(value),
                Free::Fifo(free) => free.push(value),
                Free::Random(free) => free.insert(value),
            }
        }
        true
    }

    /// Changes the members. Those taken stay taken until they are released, members or not. Free
    /// ones that stay members keep their turn. Time grows with the number of intervals and of
    /// taken members.
    pub fn set_members(&mut self, members: &[Interval]) {
        let members = normalised(members);
        let taken: Vec<u128> =
            self.taken.iter().copied().filter(|&value| contains(&members, value)).collect();
        match &mut self.free {
            Free::Lowest(free) => {
                *free = FreeIntervals::new(&members);
                taken.iter().for_each(|&value| free.remove(value));
            }
            Free::Random(free) => {
                *free = FreeRanks::new(&members);
                taken.iter().for_each(|&value| free.remove(value));
            }
            Free::Fifo(free) => {
                free.retain(&members);
                free.append(&minus(&members, &self.members), &self.taken);
            }
        }
        self.free_count = count(&members) - taken.len() as u128;
        self.members = members;
    }

    /// Number of free members.
    #[must_use]
    pub fn free(&self) -> u128 {
        self.free_count
    }

    /// Number of taken ones, members or not.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.taken.len()
    }

    /// Whether this one is taken.
    #[must_use]
    pub fn is_taken(&self, value: u128) -> bool {
        self.taken.contains(&value)
    }

    fn remove_free(&mut self, value: u128) {
        match &mut self.free {
            Free::Lowest(free) => free.remove(value),
            Free::Fifo(free) => free.remove(value),
            Free::Random(free) => free.remove(value),
        }
    }
}

/// Splits members into quotas for sharded pools: contiguous in ascending order, as equal as
/// possible, the first ones larger by one. `parts` of 0 counts as 1.
#[must_use]
pub fn split(members: &[Interval], parts: u16) -> Vec<Vec<Interval>> {
    let members = normalised(members);
    let parts = u128::from(parts.max(1));
    let (size, larger) = (count(&members) / parts, count(&members) % parts);
    let mut rest = members.iter().copied();
    let mut current = rest.next();
    (0..parts)
        .map(|part| {
            let mut wanted = size + u128::from(part < larger);
            let mut quota = Vec::new();
            while let (1.., Some((lo, hi))) = (wanted, current) {
                // `wanted` is at least 1, so `lo + (wanted - 1)` is the last one that fits.
                let end = hi.min(lo.saturating_add(wanted - 1));
                quota.push((lo, end));
                wanted -= end - lo + 1;
                current = if end < hi { Some((end + 1, hi)) } else { rest.next() };
            }
            quota
        })
        .collect()
}

/// Sorted, disjoint, not adjacent intervals with the same members, fewer than 2^128 of them.
fn normalised(intervals: &[Interval]) -> Vec<Interval> {
    let mut sorted: Vec<_> = intervals.iter().copied().filter(|(lo, hi)| lo <= hi).collect();
    sorted.sort_unstable();
    let mut merged: Vec<Interval> = Vec::with_capacity(sorted.len());
    for (lo, hi) in sorted {
        match merged.last_mut() {
            Some(last) if lo <= last.1 || lo - 1 == last.1 => last.1 = last.1.max(hi),
            _ => merged.push((lo, hi)),
        }
    }
    if let [(0, hi)] = merged.as_mut_slice() {
        *hi = (*hi).min(u128::MAX - 1);
    }
    merged
}

/// Whether a value is in one of these normalised intervals.
fn contains(intervals: &[Interval], value: u128) -> bool {
    let after = intervals.partition_point(|&(lo, _)| lo <= value);
    after > 0 && value <= intervals[after - 1].1
}

/// Number of members of normalised intervals.
fn count(intervals: &[Interval]) -> u128 {
    intervals.iter().map(|(lo, hi)| hi - lo + 1).sum()
}

/// Members of `a` that are not in `b`; both normalised.
fn minus(a: &[Interval], b: &[Interval]) -> Vec<Interval> {
    let mut out = Vec::new();
    for &(lo, hi) in a {
        let mut from = Some(lo);
        let first = b.partition_point(|&(_, b_hi)| b_hi < lo);
        for &(b_lo, b_hi) in b[first..].iter().take_while(|&&(b_lo, _)| b_lo <= hi) {
            let Some(start) = from else { break };
            if b_lo > start {
                out.push((start, b_lo - 1));
            }
            from = b_hi.checked_add(1).filter(|&next| next <= hi);
        }
        if let Some(start) = from {
            out.push((start, hi));
        }
    }
    out
}

/// Members that both hold; both normalised.
fn common(a: &[Interval], b: &[Interval]) -> Vec<Interval> {
    let mut out = Vec::new();
    for &(lo, hi) in a {
        let first = b.partition_point(|&(_, b_hi)| b_hi < lo);
        for &(b_lo, b_hi) in b[first..].iter().take_while(|&&(b_lo, _)| b_lo <= hi) {
            out.push((lo.max(b_lo), hi.min(b_hi)));
        }
    }
    out
}
