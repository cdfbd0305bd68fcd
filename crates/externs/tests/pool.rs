//! Pools against a naive model: a list of free members and a list of taken ones.

use braid_externs::Rng;
use braid_externs::pool::{Interval, Order, Pool, split};
use proptest::prelude::*;

/// A pool that lists every member.
struct Naive {
    order: Order,
    members: Vec<u128>,
    /// For `Fifo`, in the order in which they are taken.
    free: Vec<u128>,
    taken: Vec<u128>,
}

fn expand(intervals: &[Interval]) -> Vec<u128> {
    let mut all: Vec<u128> = intervals.iter().flat_map(|&(lo, hi)| lo..=hi).collect();
    all.sort_unstable();
    all.dedup();
    all
}

impl Naive {
    fn new(order: Order, members: &[Interval]) -> Self {
        let members = expand(members);
        Self { order, free: members.clone(), members, taken: Vec::new() }
    }

    fn take(&mut self, rng: &mut Rng) -> Option<u128> {
        let mut sorted = self.free.clone();
        sorted.sort_unstable();
        let value = match self.order {
            Order::Lowest => *sorted.first()?,
            Order::Fifo => *self.free.first()?,
            Order::Random if sorted.is_empty() => return None,
            Order::Random => {
                sorted[usize::try_from(rng.below(sorted.len() as u128)).expect("an index")]
            }
        };
        self.take_this(value).then_some(value)
    }

    fn take_this(&mut self, value: u128) -> bool {
        let Some(at) = self.free.iter().position(|&free| free == value) else { return false };
        self.free.remove(at);
        self.taken.push(value);
        true
    }

    fn release(&mut self, value: u128) -> bool {
        let Some(at) = self.taken.iter().position(|&taken| taken == value) else { return false };
        self.taken.remove(at);
        if self.members.contains(&value) {
            self.free.push(value);
        }
        true
    }

    fn set_members(&mut self, members: &[Interval]) {
        let members = expand(members);
        self.free.retain(|value| members.contains(value));
        for &value in &members {
            if !self.members.contains(&value) && !self.taken.contains(&value) {
                self.free.push(value);
            }
        }
        self.members = members;
    }
}

#[derive(Clone, Debug)]
enum Step {
    Take,
    TakeThis(u128),
    Release(u128),
    SetMembers(Vec<Interval>),
}

fn intervals() -> impl Strategy<Value = Vec<Interval>> {
    proptest::collection::vec((0_u128..40, 0_u128..8).prop_map(|(lo, more)| (lo, lo + more)), 0..5)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Take),
        2 => (0_u128..48).prop_map(Step::TakeThis),
        5 => (0_u128..48).prop_map(Step::Release),
        1 => intervals().prop_map(Step::SetMembers),
    ]
}

fn order() -> impl Strategy<Value = Order> {
    prop_oneof![Just(Order::Lowest), Just(Order::Fifo), Just(Order::Random)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(braid_cases::cases(1_000)))]

    #[test]
    fn pool_agrees_with_naive_model(
        order in order(),
        members in intervals(),
        steps in proptest::collection::vec(step(), 0..80),
        seed: u64,
    ) {
        let (mut pool, mut naive) = (Pool::new(order, &members), Naive::new(order, &members));
        let (mut rng, mut naive_rng) = (Rng::new(seed), Rng::new(seed));
        for step in steps {
            match &step {
                Step::Take => {
                    prop_assert_eq!(pool.take(&mut rng), naive.take(&mut naive_rng));
                }
                Step::TakeThis(value) => {
                    prop_assert_eq!(pool.take_this(*value), naive.take_this(*value));
                }
                Step::Release(value) => {
                    prop_assert_eq!(pool.release(*value), naive.release(*value));
                }
                Step::SetMembers(members) => {
                    pool.set_members(members);
                    naive.set_members(members);
                }
            }
            prop_assert_eq!(pool.free(), naive.free.len() as u128, "after {:?}", step);
            prop_assert_eq!(pool.taken(), naive.taken.len());
            prop_assert_eq!(&rng, &naive_rng);
        }
    }

    #[test]
    fn split_gives_all_members_once_in_equal_shares(members in intervals(), parts in 1_u16..9) {
        let quotas = split(&members, parts);
        prop_assert_eq!(quotas.len(), usize::from(parts));
        let each: Vec<Vec<u128>> = quotas.iter().map(|quota| expand(quota)).collect();
        prop_assert_eq!(each.concat(), expand(&members), "ascending, none twice");
        let sizes: Vec<usize> = each.iter().map(Vec::len).collect();
        prop_assert!(sizes.is_sorted_by(|a, b| a >= b));
        prop_assert!(sizes.first().zip(sizes.last()).is_some_and(|(most, least)| most - least <= 1));
    }
}

#[test]
fn orders_differ_as_documented() {
    let mut rng = Rng::new(0);
    let mut run = |order| {
        let mut pool = Pool::new(order, &[(1, 4)]);
        let first = [pool.take(&mut rng), pool.take(&mut rng)];
        pool.release(first[0].expect("free"));
        (first, pool.take(&mut rng))
    };
    assert_eq!(run(Order::Lowest), ([Some(1), Some(2)], Some(1)));
    assert_eq!(run(Order::Fifo), ([Some(1), Some(2)], Some(3)));
}

#[test]
fn huge_pools_cost_only_what_is_taken() {
    let mut rng = Rng::new(1);
    for order in [Order::Lowest, Order::Fifo, Order::Random] {
        let mut pool = Pool::new(order, &[(0, u128::from(u32::MAX)), (1 << 64, u128::MAX)]);
        let taken: Vec<u128> = (0..1_000).map_while(|_| pool.take(&mut rng)).collect();
        assert_eq!(taken.len(), 1_000);
        assert!(pool.take_this(u128::MAX) && !pool.take_this(u128::MAX));
        assert!(taken.iter().all(|&value| pool.release(value)));
        assert!(!pool.release(taken[0]));
        assert!(pool.release(u128::MAX) && pool.taken() == 0);
    }
}

#[test]
fn pool_of_all_numbers_lacks_the_last() {
    for order in [Order::Lowest, Order::Fifo, Order::Random] {
        let mut pool = Pool::new(order, &[(0, u128::MAX)]);
        assert_eq!(pool.free(), u128::MAX);
        assert!(!pool.take_this(u128::MAX) && pool.take_this(u128::MAX - 1));
        assert!(pool.take(&mut Rng::new(3)).is_some());
    }
    assert_eq!(split(&[(0, u128::MAX)], 2), [[(0, u128::MAX / 2)], [(1 << 127, u128::MAX - 1)]]);
}

#[test]
fn random_order_is_uniform_over_free_members() {
    // 5 of 8 members free; 10,000 takes: 2,000 each, sigma 40.
    let mut rng = Rng::new(11);
    let mut pool = Pool::new(Order::Random, &[(0, 7)]);
    assert!([1, 2, 6].into_iter().all(|value| pool.take_this(value)));
    let mut seen = [0_i32; 8];
    for _ in 0..10_000 {
        let value = pool.take(&mut rng).expect("five are free");
        seen[usize::try_from(value).expect("below 8")] += 1;
        pool.release(value);
    }
    assert_eq!((seen[1], seen[2], seen[6]), (0, 0, 0));
    let free = [0, 3, 4, 5, 7];
    assert!(free.iter().all(|&value: &usize| (seen[value] - 2_000).abs() < 160), "{seen:?}");
}

#[test]
fn empty_pool_gives_nothing_and_draws_nothing() {
    let mut rng = Rng::new(5);
    let mut pool = Pool::new(Order::Random, &[(9, 3)]);
    assert_eq!((pool.take(&mut rng), pool.free(), pool.is_taken(3)), (None, 0, false));
    assert_eq!(rng, Rng::new(5));
}
