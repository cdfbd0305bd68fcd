//! Pools: their free members, and the order in which they are taken.
//!
//! A pool is NFD's non-replacing sampling (§III-B) with an explicit order. A pool may have 2^32
//! members and more: members stay intervals. Memory grows with the number of taken members (and,
//! for `Fifo`, with the fragmentation of the free members), never with the size of the pool.

mod fifo;
mod interval;
mod lowest;
mod ranks;

use crate::rng::Rng;
use fifo::FreeQueue;
pub use interval::{Interval, joined};
use interval::{contains, count, minus, normalised};
use lowest::FreeIntervals;
use ranks::FreeRanks;
use std::collections::BTreeSet;

/// The order in which free members are taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// The lowest free member.
    Lowest,
    /// The member that has been free for the longest time. Members that were free from the start
    /// come before released ones, lower ones first. Members that a change adds come last, lower
    /// ones first.
    Fifo,
    /// The k-th lowest free member (from 0). [`Rng::below`] draws k below the number of free
    /// members.
    Random,
}

/// A pool. Operations take time logarithmic in its size, except [`Pool::set_members`].
#[derive(Clone, Debug)]
pub struct Pool {
    members: Vec<Interval>,
    taken: BTreeSet<u128>,
    free: Free,
    free_count: u128,
}

/// The free members, in the form that their order needs.
#[derive(Clone, Debug)]
enum Free {
    Lowest(FreeIntervals),
    Fifo(FreeQueue),
    Random(FreeRanks),
}

impl Pool {
    /// Makes a pool of these members, all free. Intervals may overlap and come in any order. An
    /// interval whose lower end is above its upper end is empty. (The pool of all 2^128 numbers
    /// lacks the last one.)
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

    /// Takes the next member; `None` when no member is free. Only pools in random order draw from
    /// `rng`, and only when a member is free.
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

    /// Takes this member. Returns false when it is taken already or is not a member.
    pub fn take_this(&mut self, value: u128) -> bool {
        if self.taken.contains(&value) || !contains(&self.members, value) {
            return false;
        }
        self.remove_free(value);
        self.taken.insert(value);
        self.free_count -= 1;
        true
    }

    /// Releases a member. Returns false, without a change, when it is not taken. If a change has
    /// removed the member from the pool since it was taken, the pool forgets it.
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

    /// Changes the members. Taken values stay taken until they are released, even if they are no
    /// members any more. Free values that stay members keep their turn. Time grows with the number
    /// of intervals and of taken values.
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

    /// The number of free members.
    #[must_use]
    pub fn free(&self) -> u128 {
        self.free_count
    }

    /// The number of taken values, including values that are no members any more.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.taken.len()
    }

    /// Whether this value is taken.
    #[must_use]
    pub fn is_taken(&self, value: u128) -> bool {
        self.taken.contains(&value)
    }

    /// All taken values as ascending intervals, including values that are no members any more.
    #[must_use]
    pub fn all_taken(&self) -> Vec<Interval> {
        joined(self.taken.iter().map(|&value| (value, value)))
    }

    /// The free members in their order, for a pool in the order of release. Otherwise nothing.
    #[must_use]
    pub fn queue(&self) -> Vec<Interval> {
        match &self.free {
            Free::Fifo(free) => joined(free.intervals()),
            Free::Lowest(_) | Free::Random(_) => Vec::new(),
        }
    }

    /// Makes a pool of these members as it was when [`Pool::all_taken`] and [`Pool::queue`] gave
    /// the other arguments. The members in `queue` are all members that are not taken.
    #[must_use]
    pub fn restored(
        order: Order,
        members: &[Interval],
        taken: &[Interval],
        queue: &[Interval],
    ) -> Self {
        let mut pool = Self::new(order, members);
        for value in taken.iter().flat_map(|&(lo, hi)| lo..=hi) {
            if !pool.take_this(value) {
                pool.taken.insert(value);
            }
        }
        if let Free::Fifo(free) = &mut pool.free {
            *free = FreeQueue::in_order(queue);
        }
        pool
    }

    fn remove_free(&mut self, value: u128) {
        match &mut self.free {
            Free::Lowest(free) => free.remove(value),
            Free::Fifo(free) => free.remove(value),
            Free::Random(free) => free.remove(value),
        }
    }
}

/// Divides members into quotas for sharded pools: contiguous, in ascending order, and as equal as
/// possible (the first ones are larger by one). `parts` of 0 counts as 1.
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
                // `wanted` is at least 1, so `lo + (wanted - 1)` is the last member that fits.
                let end = hi.min(lo.saturating_add(wanted - 1));
                quota.push((lo, end));
                wanted -= end - lo + 1;
                current = if end < hi { Some((end + 1, hi)) } else { rest.next() };
            }
            quota
        })
        .collect()
}
