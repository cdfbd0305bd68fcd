//! Compares pools with those of the crate `externs`, which define them.

use braid_externs::Rng;
use braid_externs::pool::{Interval, Order, Pool as Defined};
use braid_state::Pool;
use proptest::collection::vec;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Take,
    TakeThis(u128),
    Release(u128),
    /// Releases one of the taken values.
    Return(prop::sample::Index),
    SetMembers(Vec<Interval>),
    /// Each pool takes the place of the other one.
    Restore,
}

fn member() -> impl Strategy<Value = u128> {
    prop_oneof![8 => 0..150_u128, 1 => (0..40_u128).prop_map(|n| (1 << 90) + n * 100)]
}

fn intervals() -> impl Strategy<Value = Vec<Interval>> {
    let interval = (member(), 0..60_u128).prop_map(|(lo, size)| (lo, lo + size));
    let huge = Just(vec![(10, 1 << 40), (1 << 90, (1 << 90) + 30)]);
    prop_oneof![20 => vec(interval, 0..4), 1 => huge]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => Just(Step::Take),
        2 => member().prop_map(Step::TakeThis),
        1 => member().prop_map(Step::Release),
        4 => any::<prop::sample::Index>().prop_map(Step::Return),
        1 => intervals().prop_map(Step::SetMembers),
        1 => Just(Step::Restore),
    ]
}

fn compare(order: Order, members: &[Interval], steps: &[Step]) {
    let (mut pool, mut defined) = (Pool::new(order, members), Defined::new(order, members));
    let (mut rng, mut taken) = (Rng::new(3), Vec::new());
    let mut members = members;
    for step in steps {
        match step {
            Step::Take => {
                let mut same = rng.clone();
                let value = pool.take(&mut rng);
                assert_eq!(value, defined.take(&mut same));
                assert_eq!(rng, same);
                taken.extend(value);
            }
            Step::TakeThis(value) => {
                let done = pool.take_this(*value);
                assert_eq!(done, defined.take_this(*value));
                taken.extend(done.then_some(*value));
            }
            Step::Release(value) => {
                assert_eq!(pool.release(*value), defined.release(*value));
                taken.retain(|other| other != value);
            }
            Step::Return(at) if !taken.is_empty() => {
                let value = taken.swap_remove(at.index(taken.len()));
                assert!(pool.release(value) && defined.release(value));
            }
            Step::Return(_) => {}
            Step::SetMembers(new) => {
                members = new;
                pool.set_members(members);
                defined.set_members(members);
            }
            Step::Restore => {
                let (taken, queue) = (pool.all_taken(), pool.queue());
                assert_eq!((&taken, &queue), (&defined.all_taken(), &defined.queue()));
                pool = Pool::restored(order, members, &taken, &queue);
                defined = Defined::restored(order, members, &taken, &queue);
            }
        }
        assert_eq!(pool.free(), defined.free());
        assert!(taken.iter().all(|value| pool.is_taken(*value)));
    }
    // The remaining members, in order. Only some of them in a huge pool.
    let mut same = rng.clone();
    for _ in 0..300 {
        assert_eq!(pool.take(&mut rng), defined.take(&mut same));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(braid_cases::cases(256)))]

    #[test]
    fn lowest_first_as_defined(members in intervals(), steps in vec(step(), 0..200)) {
        compare(Order::Lowest, &members, &steps);
    }

    #[test]
    fn longest_free_first_as_defined(members in intervals(), steps in vec(step(), 0..200)) {
        compare(Order::Fifo, &members, &steps);
    }

    #[test]
    fn random_ones_as_defined(members in intervals(), steps in vec(step(), 0..200)) {
        compare(Order::Random, &members, &steps);
    }
}

#[test]
fn large_pools_are_as_defined() {
    // The members need three levels of bits and many blocks. They include both ends of a block and
    // of a word.
    for order in [Order::Lowest, Order::Fifo, Order::Random] {
        let members = [(1024, 65_535), (1 << 60, (1 << 60) + 300_000)];
        let (mut pool, mut defined) = (Pool::new(order, &members), Defined::new(order, &members));
        let (mut rng, mut same) = (Rng::new(1), Rng::new(1));
        for value in (1024..65_536).filter(|value| value % 3 > 0) {
            assert!(pool.take_this(value) && defined.take_this(value));
        }
        for round in 0..3_000 {
            let value = pool.take(&mut rng);
            assert_eq!(value, defined.take(&mut same));
            let back = 1024 + round * 7 % 64_512;
            assert_eq!(pool.release(back), defined.release(back));
        }
    }
}
