//! Prints the cost of operations of the state store and of pools:
//! `cargo run --release -p braid-state --example lookups`.

use braid_externs::Rng;
use braid_externs::pool::Order;
use braid_ir::model::StateId;
use braid_state::{Created, Ended, HashKey, New, Pool, Store, TableRef, example_chain};
use std::hint::black_box;
use std::time::Instant;

/// A function like NAPT (with its two tables) and a table per connection.
const MODEL: &str = r#"model bench {
    param idle: duration = 120000000000
    state map: port per [u8, ip4, port] idle idle capacity 4000000 full refuse tick 100000000
    state back: { addr: ip4, port: port } per [u8, u32] capacity 4000000 full refuse tick 1 lives with map
    state flow: u64 per biflow idle idle capacity 4000000 full evict_oldest tick 100000000
    row "fault"
    packet { b0: consume at row0 }
    expire map { b0: return }
}"#;

const FIND: usize = 1 << 20;
const BATCH: usize = 32;

/// Runs `run`, and returns the nanoseconds for each of `count` operations.
fn time(count: usize, run: impl FnOnce()) -> f64 {
    let start = Instant::now();
    run();
    start.elapsed().as_nanos() as f64 / count as f64
}

/// The fastest of nine runs. Disturbances only add time.
fn best(count: usize, mut run: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..9).map(|_| time(count, &mut run)).collect();
    times.sort_by(f64::total_cmp);
    times[0]
}

fn new<'a>(key: &'a [u64], slots: &'a [u64], now: u64) -> New<'a> {
    New { key, slots, partner: None, now, shard: 0, renews: true }
}

/// Fills a table, and returns the nanoseconds for each entry.
fn fill<const N: usize>(store: &mut Store, table: TableRef, keys: &[[u64; N]]) -> f64 {
    let mut ended = Ended::default();
    time(keys.len(), || {
        for key in keys {
            let created = store.create(table, &new(key, &[1], 0), &mut ended);
            assert!(matches!(created, Created::Entry(_)));
        }
    })
}

fn find<const N: usize>(name: &str, store: &mut Store, table: TableRef, keys: &[[u64; N]]) {
    let filled = fill(store, table, keys);
    let mut rng = Rng::new(2);
    let mut draw = || keys[rng.below(keys.len() as u128) as usize];
    let order: Vec<[u64; N]> = (0..FIND).map(|_| draw()).collect();
    let one = best(order.len(), || {
        for key in &order {
            let entry = store.find_seen(table, key, 1);
            black_box(entry.and_then(|entry| store.slots(table, entry)).map(|slots| slots[0]));
        }
    });
    let direct = best(order.len(), || {
        for key in &order {
            store.begin();
            black_box(store.find_hinted(table, key, 1).map(|(_, slots)| slots[0]));
        }
    });
    let batch = best(order.len(), || {
        for batch in order.chunks_exact(BATCH) {
            for key in batch {
                store.prefetch(table, key);
            }
            store.fetch();
            for key in batch {
                store.begin();
                black_box(store.find_hinted(table, key, 1).map(|(_, slots)| slots[0]));
            }
        }
    });
    let none = best(order.len(), || {
        for key in &order {
            let mut key = *key;
            key[0] ^= 1 << 63;
            black_box(store.find_seen(table, &key, 1));
        }
    });
    let size = keys.len();
    println!(
        "{name:5} {size:8} entries: create {filled:6.1} ns, find {one:6.1}, {direct:6.1}, in batches {batch:6.1}, \
         not there {none:6.1}"
    );
}

fn store() -> (Store, impl Fn(&Store, u32) -> TableRef) {
    let store = Store::with_hash(&example_chain(MODEL), HashKey::seeded(7));
    (store, |store: &Store, state| store.table(0, StateId(state), 0))
}

/// Measures connections through a NAPT: both entries are created, found, and expire.
fn translations(size: u64) {
    let (mut store, table) = store();
    let (map, back) = (table(&store, 0), table(&store, 1));
    let mut ended = Ended::default();
    let key = |at: u64| (6 | (0x0a00_0000 + at / 60_000) << 8 | (at % 60_000) << 40, 6 | at << 8);
    let mut slowest = 0;
    let created = time(size as usize, || {
        for at in 0..size {
            let (start, (there, here)) = (Instant::now(), key(at));
            let first = store.create(map, &new(&[there], &[at], at), &mut ended);
            let Created::Entry(first) = first else { return };
            let (here, slots) = ([here], [at, at]);
            let second = New { partner: Some(first), ..new(&here, &slots, at) };
            black_box(store.create(back, &second, &mut ended));
            slowest = slowest.max(start.elapsed().as_nanos());
        }
    });
    let bytes = (store.bytes(map) + store.bytes(back)) as f64 / size as f64;
    let answered = best(size as usize, || {
        for at in 0..size {
            let at = at.wrapping_mul(0x9e37_79b9) % size;
            black_box(store.find_seen(back, &[key(at).1], 1_000_000_000));
        }
    });
    let expired = time(size as usize, || {
        while store.expire(u64::MAX, &mut ended).is_some() {
            black_box(ended.entries().count());
        }
    });
    println!(
        "napt  {size:8} flows: create {created:6.1} ns (slowest {slowest}), answer {answered:6.1}, \
         expire {expired:6.1}, {bytes:.0} bytes a flow"
    );
}

/// Measures a release and a take, in a pool of `size` members with `taken` of them taken.
fn pool(order: Order, size: u128, taken: u128) {
    let (mut pool, mut rng) = (Pool::new(order, &[(1024, 1023 + size)]), Rng::new(1));
    let mut held: Vec<_> = (0..taken).map_while(|_| pool.take(&mut rng)).collect();
    let pair = best(1 << 20, || {
        for _ in 0..1 << 20 {
            let at = rng.below(taken) as usize;
            pool.release(held[at]);
            held[at] = pool.take(&mut rng).unwrap_or(0);
        }
    });
    println!("pool  {size:8} members, {taken:7} taken, {order:?}: release and take {pair:6.1} ns");
}

fn main() {
    for order in [Order::Lowest, Order::Fifo, Order::Random] {
        pool(order, 60_000, 30_000);
        pool(order, 4_000_000, 1_000_000);
    }
    for size in [1_000_000, 100_000, 1_000] {
        translations(size);
    }
    for size in [1_000_usize, 100_000, 1_000_000] {
        let mut rng = Rng::new(1);
        let (mut store, table) = store();
        let keys: Vec<[u64; 1]> = (0..size).map(|_| [rng.next_u64() >> 8]).collect();
        let map = table(&store, 0);
        find("map", &mut store, map, &keys);
        let flow = |_| {
            let (ip, ports) = (rng.next_u64() & 0xffff_ffff, rng.next_u64());
            [4 | ip << 8, 0, 10 << 8, 0, ports >> 16]
        };
        let keys: Vec<[u64; 5]> = (0..size).map(flow).collect();
        let flow = table(&store, 2);
        find("flow", &mut store, flow, &keys);
    }
}
