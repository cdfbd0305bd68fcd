//! Pools: the three orders, taking a given member, release, quotas, new members.

mod common;

use braid_ir::chain::{Chain, Change};
use braid_ir::value::{IntervalSet, ParamValue};
use common::{Bench, LAN, from_port, line, nf, worker};

fn set(intervals: &[(u128, u128)]) -> IntervalSet {
    IntervalSet::new(intervals.iter().copied())
}

/// Packets to port 1 take a member and report it. Packets to port 2 return their source port, and
/// packets to port 3 take it. The report is 0 if no member is free.
fn pool(order: &str, sharded: &str) -> Chain {
    let model = nf(
        &format!(
            "param ports: pool<port, {order}>
             state unused: u8 global default (0) {sharded}
             event SAYS {{ port: port }}"
        ),
        "b0: v0:bool = has udp
             branch v0, b1, b6
         b1: v1:port = load udp.sport
             v2:port = load udp.dport
             v3:port = const 1
             v4:bool = eq v2, v3
             branch v4, b2, b3
         b2: v5:bool, v6:port = take ports
             emit SAYS(v6)
             jump b6
         b3: v7:port = const 2
             v8:bool = eq v2, v7
             branch v8, b4, b5
         b4: release ports, v1
             jump b6
         b5: v9:bool = take_this ports, v1
             v10:port = const 0
             v11:port = select v9, v1, v10
             emit SAYS(v11)
             jump b6
         b6: output onward at row0",
    );
    line(vec![(model, vec![ParamValue::Pool(set(&[(5, 8)]))])])
}

const TAKE: u16 = 1;
const RELEASE: u16 = 2;
const TAKE_THIS: u16 = 3;

fn act(bench: &mut Bench, what: u16, port: u16) -> Vec<u128> {
    bench.send(LAN, common::udp(1, 1, port, 2, what));
    bench.events().into_iter().map(|(_, port)| port).collect()
}

fn take(bench: &mut Bench, times: usize) -> Vec<u128> {
    (0..times).flat_map(|_| act(bench, TAKE, 0)).collect()
}

#[test]
fn lowest_pool_hands_out_the_lowest_free_member() {
    let mut bench = Bench::new(pool("lowest", ""));
    assert_eq!(take(&mut bench, 3), [5, 6, 7]);
    act(&mut bench, RELEASE, 6);
    act(&mut bench, RELEASE, 5);
    assert_eq!(take(&mut bench, 4), [5, 6, 8, 0]);
}

#[test]
fn fifo_pool_hands_out_what_has_been_free_for_longest() {
    let mut bench = Bench::new(pool("fifo", ""));
    assert_eq!(take(&mut bench, 2), [5, 6]);
    act(&mut bench, RELEASE, 6);
    act(&mut bench, RELEASE, 5);
    assert_eq!(take(&mut bench, 5), [7, 8, 6, 5, 0]);
}

#[test]
fn random_pool_hands_out_each_once_and_follows_the_seed() {
    let run = |seed| {
        let mut chain = pool("random", "");
        chain.seed = seed;
        take(&mut Bench::new(chain), 5)
    };
    let first = run(1);
    let mut sorted = first.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, [0, 5, 6, 7, 8]);
    assert_eq!(first, run(1));
    assert!((2..20).any(|seed| run(seed) != first));
}

#[test]
fn given_member_is_taken_if_it_is_free_and_of_the_pool() {
    let mut bench = Bench::new(pool("lowest", ""));
    assert_eq!(act(&mut bench, TAKE_THIS, 6), [6]);
    assert_eq!(act(&mut bench, TAKE_THIS, 6), [0]);
    assert_eq!(act(&mut bench, TAKE_THIS, 9), [0]);
    assert_eq!(take(&mut bench, 2), [5, 7]);
}

#[test]
fn release_of_what_is_not_taken_changes_nothing() {
    let mut bench = Bench::new(pool("fifo", ""));
    act(&mut bench, RELEASE, 5);
    act(&mut bench, RELEASE, 99);
    assert_eq!(take(&mut bench, 5), [5, 6, 7, 8, 0]);
}

#[test]
fn new_members_leave_those_taken_until_released() {
    let mut bench = Bench::new(pool("lowest", ""));
    assert_eq!(take(&mut bench, 2), [5, 6]);
    bench.control(1, 0, Change::Set(ParamValue::Pool(set(&[(6, 6), (20, 20)])))).unwrap();
    assert_eq!(take(&mut bench, 2), [20, 0]);
    act(&mut bench, RELEASE, 5);
    act(&mut bench, RELEASE, 6);
    assert_eq!(take(&mut bench, 2), [6, 0]);
}

#[test]
fn pools_of_a_sharded_function_are_split_by_worker() {
    let mut chain = pool("lowest", "sharded");
    chain.workers = 2;
    let mut bench = Bench::new(chain);
    // Members 5 to 8: worker 0 has 5 and 6, worker 1 has 7 and 8.
    let mut expected = [[5, 6, 0, 0].into_iter(), [7, 8, 0, 0].into_iter()];
    let (mut taken, mut wanted) = (Vec::new(), Vec::new());
    for sport in 0..4 {
        let packet = common::udp(1, 1, sport, 2, TAKE);
        wanted.extend(expected[usize::from(worker(&packet, 2))].next());
        taken.extend(act(&mut bench, TAKE, sport));
    }
    assert_eq!(taken, wanted);
}

#[test]
fn pools_of_other_functions_are_whole_however_many_workers() {
    let mut chain = pool("lowest", "");
    chain.workers = 4;
    assert_eq!(take(&mut Bench::new(chain), 4), [5, 6, 7, 8]);
}

#[test]
fn random_operator_follows_seed_and_position() {
    let dice = || {
        nf(
            "event SAYS { n: u32 }",
            "b0: v0:u32 = const 1000000
                 v1:u32 = extern random(v0)
                 emit SAYS(v1)
                 output onward at row0",
        )
    };
    let run = |seed| {
        let mut chain = line(vec![(dice(), vec![]), (dice(), vec![])]);
        chain.seed = seed;
        let mut bench = Bench::new(chain);
        bench.send(LAN, from_port(1, 1));
        bench.events()
    };
    let events = run(1);
    assert_ne!(events[0], events[1], "each function has a generator of its own");
    assert_eq!(events, run(1));
    assert_ne!(events, run(2));
}

/// Takes a member for each source port, and reports it. The report is 0 if there is no room or no
/// free member. The port's entry returns the member when it ends.
fn leases(state: &str, members: (u128, u128)) -> Chain {
    let model = common::nf_with(
        &format!(
            "param ports: pool<port, lowest>
             {state}
             event SAYS {{ port: port }}"
        ),
        "b0: v0:bool = has udp
             branch v0, b1, b4
         b1: v1:bool = exists lease[entry]
             branch v1, b4, b2
         b2: v2:bool, v3:port = take ports
             emit SAYS(v3)
             branch v2, b3, b4
         b3: v4:bool = set lease[entry], (v3)
             jump b4
         b4: output onward at row0",
        "expire lease { b0: v0:port = expiring release ports, v0 return }",
    );
    line(vec![(model, vec![ParamValue::Pool(set(&[members]))])])
}

#[test]
fn what_expires_by_a_packets_time_is_free_for_it() {
    let state = "state lease: port per (inet.sport) idle 100 capacity 1 full refuse tick 10";
    let mut bench = Bench::new(leases(state, (5, 5)));
    bench.send(LAN, from_port(1000, 1)).send(LAN, from_port(1099, 2));
    assert_eq!(bench.events(), [(1000, 5), (1099, 0)]);
    bench.send(LAN, from_port(1100, 3));
    assert_eq!(bench.events(), [(1100, 5)]);
    let ports: Vec<_> = bench.state().iter().map(|entry| entry.key[0].1).collect();
    assert_eq!(ports, [3], "the entry made room as well");
}

#[test]
fn member_goes_back_to_the_worker_that_took_it_whoever_ends_its_entry() {
    // One table for two workers. Their pools have one member each: 5 and 6.
    let state = "state lease: port per (inet.sport) capacity 1 full evict_oldest tick 1
                 state own: u8 global default (0) sharded";
    let of = |wanted: u16, after: u16| {
        (after..).find(|port| worker(&from_port(1, *port), 2) == wanted).unwrap()
    };
    let (first, other) = (of(0, 1), of(1, 1));
    let again = of(0, first + 1);
    let mut chain = leases(state, (5, 6));
    chain.workers = 2;
    let mut bench = Bench::new(chain);
    bench.send(LAN, from_port(1, first)).send(LAN, from_port(2, other));
    assert_eq!(bench.events(), [(1, 5), (2, 6)]);
    // The entry of `other` has evicted the entry of `first`.
    bench.send(LAN, from_port(3, again));
    assert_eq!(bench.events(), [(3, 5)]);
    bench.send(LAN, from_port(4, other));
    assert_eq!(bench.events(), [(4, 6)]);
}
