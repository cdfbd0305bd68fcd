//! Pools for compiled engines. They behave as [`braid_externs::pool::Pool`], which defines pools.
//! Pools of moderate size have bits for their members instead of trees of intervals.

mod counts;
mod first;
mod queue;

use braid_externs::Rng;
use braid_externs::pool::{Interval, Order, Pool as Sparse, joined, split};
use counts::Counts;
use first::First;
use queue::Queue;
use std::collections::BTreeSet;

/// The largest number of members of a pool with bits. Such a pool uses at most a quarter of a byte
/// for each member, and 8 bytes more if members are taken in the order of their release.
const MOST: u128 = 1 << 22;

/// A set of values that functions take and return. Both operations take logarithmic time in the
/// size of the pool, to the base 64 for the order `Lowest`.
#[derive(Clone, Debug)]
pub struct Pool(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Dense(Dense),
    Sparse(Sparse),
}

/// A pool with bits. It numbers its members in ascending order: a member's number is its rank.
#[derive(Clone, Debug)]
struct Dense {
    order: Order,
    members: Members,
    /// A bit for each rank that is taken. Empty if `free` has these bits itself.
    taken: Vec<u64>,
    free: Free,
    free_count: u32,
    /// Taken values that a change has removed from the pool.
    strays: BTreeSet<u128>,
}

/// The free members, in a structure for their order.
#[derive(Clone, Debug)]
enum Free {
    Lowest(First),
    Fifo(Queue),
    Random(Counts),
}

impl Pool {
    /// Creates a pool of these members, all free. Intervals may overlap and come in any order. An
    /// interval whose lower end is above its upper end is empty.
    #[must_use]
    pub fn new(order: Order, members: &[Interval]) -> Self {
        Self(match Members::new(members) {
            Some(members) => Kind::Dense(Dense::new(order, members)),
            None => Kind::Sparse(Sparse::new(order, members)),
        })
    }

    /// Takes the member whose turn it is; `None` when none is free. Only pools in random order draw
    /// from `rng`, and only when a member is free.
    #[inline(always)]
    pub fn take(&mut self, rng: &mut Rng) -> Option<u128> {
        if let Kind::Dense(pool) = &mut self.0
            && let Free::Lowest(free) = &mut pool.free
        {
            let rank = free.first()?;
            free.remove(rank);
            pool.free_count = pool.free_count.wrapping_sub(1);
            return Some(pool.members.value(rank));
        }
        self.take_in_order(rng)
    }

    /// As [`Pool::take`], for any order.
    #[inline(never)]
    fn take_in_order(&mut self, rng: &mut Rng) -> Option<u128> {
        match &mut self.0 {
            Kind::Dense(pool) => pool.take(rng),
            Kind::Sparse(pool) => pool.take(rng),
        }
    }

    /// Takes this member. Returns false when it is taken or not a member.
    pub fn take_this(&mut self, value: u128) -> bool {
        match &mut self.0 {
            Kind::Dense(pool) => pool.take_this(value),
            Kind::Sparse(pool) => pool.take_this(value),
        }
    }

    /// Returns a member. The result is false, without any change, when the member is not taken. A
    /// member that a change has removed from the pool since it was taken is forgotten.
    #[inline(always)]
    pub fn release(&mut self, value: u128) -> bool {
        if let Kind::Dense(pool) = &mut self.0
            && let Free::Lowest(free) = &mut pool.free
            && let Some(rank) = pool.members.rank(value)
        {
            let was_taken = free.insert(rank);
            pool.free_count = pool.free_count.wrapping_add(was_taken.into());
            return was_taken;
        }
        self.release_in_order(value)
    }

    /// As [`Pool::release`], for any order.
    #[inline(never)]
    fn release_in_order(&mut self, value: u128) -> bool {
        match &mut self.0 {
            Kind::Dense(pool) => pool.release(value),
            Kind::Sparse(pool) => pool.release(value),
        }
    }

    /// Replaces the members. Taken values stay taken until they are released, whether they are
    /// still members or not. Free values that stay members keep their turn. The time is linear in
    /// the number of members.
    pub fn set_members(&mut self, members: &[Interval]) {
        match &mut self.0 {
            Kind::Dense(pool) => match Members::new(members) {
                Some(members) => pool.set_members(members),
                None => {
                    let mut sparse = pool.to_sparse();
                    sparse.set_members(members);
                    self.0 = Kind::Sparse(sparse);
                }
            },
            Kind::Sparse(pool) => pool.set_members(members),
        }
    }

    /// All taken values as ascending intervals, including values that are no members any more.
    #[must_use]
    pub fn all_taken(&self) -> Vec<Interval> {
        match &self.0 {
            Kind::Dense(pool) => {
                let mut taken = pool.all_taken();
                taken.sort_unstable();
                joined(taken.into_iter().map(|value| (value, value)))
            }
            Kind::Sparse(pool) => pool.all_taken(),
        }
    }

    /// The free members in their order, for a pool in the order of release. Otherwise nothing.
    #[must_use]
    pub fn queue(&self) -> Vec<Interval> {
        match &self.0 {
            Kind::Dense(pool) => joined(pool.queue().into_iter().map(|value| (value, value))),
            Kind::Sparse(pool) => pool.queue(),
        }
    }

    /// Makes a pool as [`Sparse::restored`] does.
    #[must_use]
    pub fn restored(
        order: Order,
        members: &[Interval],
        taken: &[Interval],
        queue: &[Interval],
    ) -> Self {
        Self(match Members::new(members) {
            Some(members) => Kind::Dense(Dense::restored(order, members, taken, queue)),
            None => Kind::Sparse(Sparse::restored(order, members, taken, queue)),
        })
    }

    /// The number of free members.
    #[must_use]
    pub fn free(&self) -> u128 {
        match &self.0 {
            Kind::Dense(pool) => pool.free_count.into(),
            Kind::Sparse(pool) => pool.free(),
        }
    }

    /// Whether this value is taken.
    #[must_use]
    pub fn is_taken(&self, value: u128) -> bool {
        match &self.0 {
            Kind::Dense(pool) => pool.is_taken(value),
            Kind::Sparse(pool) => pool.is_taken(value),
        }
    }
}

#[expect(clippy::indexing_slicing, reason = "`taken` has a bit for each rank")]
impl Dense {
    fn new(order: Order, members: Members) -> Self {
        let count = members.count;
        let free = match order {
            Order::Lowest => Free::Lowest(First::new(count)),
            Order::Fifo => Free::Fifo(Queue::ascending(count)),
            Order::Random => Free::Random(Counts::new(count)),
        };
        let bits = if order == Order::Lowest { 0 } else { count };
        let taken = vec![0; bits.div_ceil(64) as usize];
        Self { order, members, taken, free, free_count: count, strays: BTreeSet::new() }
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "the random number is below the number of free members"
    )]
    fn take(&mut self, rng: &mut Rng) -> Option<u128> {
        let rank = match &mut self.free {
            Free::Lowest(free) => free.first()?,
            Free::Fifo(free) => free.first()?,
            Free::Random(_) if self.free_count == 0 => return None,
            Free::Random(free) => {
                free.free_one(&self.taken, rng.below(self.free_count.into()) as u32)
            }
        };
        self.mark(rank);
        Some(self.members.value(rank))
    }

    /// Marks a free member as taken.
    #[inline]
    fn mark(&mut self, rank: u32) {
        self.free_count = self.free_count.wrapping_sub(1);
        match &mut self.free {
            Free::Lowest(free) => return free.remove(rank),
            Free::Fifo(free) => free.remove(rank),
            Free::Random(free) => free.remove(rank),
        }
        self.taken[rank as usize / 64] |= 1 << (rank % 64);
    }

    #[inline]
    fn is_marked(&self, rank: u32) -> bool {
        match &self.free {
            Free::Lowest(free) => !free.has(rank),
            Free::Fifo(_) | Free::Random(_) => {
                self.taken[rank as usize / 64] >> (rank % 64) & 1 == 1
            }
        }
    }

    fn take_this(&mut self, value: u128) -> bool {
        let rank = self.members.rank(value).filter(|rank| !self.is_marked(*rank));
        rank.is_some_and(|rank| {
            self.mark(rank);
            true
        })
    }

    fn release(&mut self, value: u128) -> bool {
        let Some(rank) = self.members.rank(value) else { return self.strays.remove(&value) };
        if !self.is_marked(rank) {
            return false;
        }
        self.free_count = self.free_count.wrapping_add(1);
        match &mut self.free {
            Free::Lowest(free) => return free.insert(rank),
            Free::Fifo(free) => free.push(rank),
            Free::Random(free) => free.insert(rank),
        }
        self.taken[rank as usize / 64] &= !(1 << (rank % 64));
        true
    }

    fn is_taken(&self, value: u128) -> bool {
        match self.members.rank(value) {
            Some(rank) => self.is_marked(rank),
            None => self.strays.contains(&value),
        }
    }

    /// All taken values: members first, then values that are no longer members.
    fn all_taken(&self) -> Vec<u128> {
        let ranks = (0..self.members.count).filter(|rank| self.is_marked(*rank));
        ranks.map(|rank| self.members.value(rank)).chain(self.strays.iter().copied()).collect()
    }

    /// The free members in their order, if they have one of their own.
    fn queue(&self) -> Vec<u128> {
        match &self.free {
            Free::Fifo(free) => free.all().map(|rank| self.members.value(rank)).collect(),
            Free::Lowest(_) | Free::Random(_) => Vec::new(),
        }
    }

    fn restored(order: Order, members: Members, taken: &[Interval], queue: &[Interval]) -> Self {
        let mut pool = Self::new(order, members);
        for value in taken.iter().flat_map(|&(lo, hi)| lo..=hi) {
            if !pool.take_this(value) {
                pool.strays.insert(value);
            }
        }
        if let Free::Fifo(free) = &mut pool.free {
            *free = Queue::empty(pool.members.count);
            let values = queue.iter().flat_map(|&(lo, hi)| lo..=hi);
            values.filter_map(|value| pool.members.rank(value)).for_each(|rank| free.push(rank));
        }
        pool
    }

    fn set_members(&mut self, members: Members) {
        let mut new = Self::new(self.order, members);
        for value in self.all_taken() {
            if !new.take_this(value) {
                new.strays.insert(value);
            }
        }
        if let (Free::Fifo(old), Free::Fifo(free)) = (&self.free, &mut new.free) {
            let stay = old.all().map(|rank| self.members.value(rank));
            let stay: Vec<u32> = stay.filter_map(|value| new.members.rank(value)).collect();
            let added = (0..new.members.count).filter(|rank| {
                let is_taken = new.taken[*rank as usize / 64] >> (rank % 64) & 1 == 1;
                !is_taken && self.members.rank(new.members.value(*rank)).is_none()
            });
            let mut queue = Queue::empty(new.members.count);
            stay.into_iter().chain(added).for_each(|rank| queue.push(rank));
            *free = queue;
        }
        *self = new;
    }

    /// The same pool as trees of intervals, which have no limit of size.
    fn to_sparse(&self) -> Sparse {
        let strays = self.strays.iter().map(|&stray| (stray, stray));
        let all: Vec<Interval> = self.members.intervals().chain(strays).collect();
        let mut sparse = Sparse::new(self.order, &all);
        for value in self.all_taken() {
            sparse.take_this(value);
        }
        let queue = self.queue();
        for value in &queue {
            sparse.take_this(*value);
        }
        for value in queue {
            sparse.release(value);
        }
        // Values that are no longer members stay taken.
        sparse.set_members(&self.members.intervals().collect::<Vec<_>>());
        sparse
    }
}

/// Members as ascending intervals, each with the rank of its first member.
#[derive(Clone, Debug)]
struct Members {
    intervals: Vec<(u32, Interval)>,
    count: u32,
}

#[expect(clippy::cast_possible_truncation, reason = "there are at most `MOST` members")]
impl Members {
    /// `None` if there are too many members for bits.
    fn new(members: &[Interval]) -> Option<Self> {
        let mut count = 0_u128;
        let mut intervals = Vec::new();
        // Splitting into one part makes the intervals sorted, disjoint and not adjacent.
        for (lo, hi) in split(members, 1).into_iter().flatten() {
            intervals.push((count as u32, (lo, hi)));
            count = count.checked_add(hi - lo)?.checked_add(1).filter(|count| *count <= MOST)?;
        }
        Some(Self { intervals, count: count as u32 })
    }

    fn intervals(&self) -> impl Iterator<Item = Interval> + '_ {
        self.intervals.iter().map(|(_, interval)| *interval)
    }

    #[inline(always)]
    fn value(&self, rank: u32) -> u128 {
        match *self.intervals {
            [(_, (lo, _))] => lo.wrapping_add(rank.into()),
            _ => self.value_of_many(rank),
        }
    }

    #[expect(clippy::indexing_slicing, reason = "the first interval begins at rank 0")]
    #[inline(never)]
    fn value_of_many(&self, rank: u32) -> u128 {
        let after = self.intervals.partition_point(|&(first, _)| first <= rank);
        let (first, (lo, _)) = self.intervals[after - 1];
        lo + u128::from(rank - first)
    }

    #[inline(always)]
    fn rank(&self, value: u128) -> Option<u32> {
        match *self.intervals {
            [(_, (lo, _))] => {
                let rank = value.wrapping_sub(lo);
                (rank < self.count.into()).then_some(rank as u32)
            }
            _ => self.rank_of_many(value),
        }
    }

    #[inline(never)]
    fn rank_of_many(&self, value: u128) -> Option<u32> {
        let after = self.intervals.partition_point(|&(_, (lo, _))| lo <= value);
        let &(first, (lo, hi)) = self.intervals.get(after.checked_sub(1)?)?;
        (value <= hi).then(|| first + (value - lo) as u32)
    }
}
