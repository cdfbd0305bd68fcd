//! State: creation, refusal, eviction, entries that live together, shards.

mod common;

use braid_ir::chain::{Chain, Change};
use braid_ir::engine::{TableCounters, share};
use braid_ir::model::{Kind, Model};
use braid_ir::value::ParamValue;
use common::{Bench, LAN, WAN, alone, from_port, line, nf, nf_with, udp, worker};
use std::sync::Arc;

/// Stores source ports. Drops a packet at row 1 if its entry is refused.
fn memory(capacity: &str, full: &str) -> Arc<Model> {
    nf_with(
        &format!(
            "param capacity: u32 = 2
             state seen: u8 per (inet.sport) capacity {capacity} full {full} tick 1
             event ENDED {{ port: port }}
             reason \"table full\""
        ),
        "b0: v0:bool = has inet
             branch v0, b1, b3
         b1: v1:u8 = const 1
             v2:bool = set seen[entry], (v1)
             branch v2, b3, b2
         b2: drop \"table full\" at row1
         b3: output onward at row0",
        "expire seen { b0: v0:port = expiring_key emit ENDED(v0) return }",
    )
}

fn with_capacity(model: Arc<Model>, capacity: u128) -> Chain {
    line(vec![(model, vec![ParamValue::Scalar(capacity)])])
}

fn ports(bench: &Bench) -> Vec<u128> {
    bench.state().iter().map(|entry| entry.key[0].1).collect()
}

#[test]
fn full_table_refuses_new_entries_and_counts() {
    let mut bench = Bench::new(with_capacity(memory("capacity", "refuse"), 2));
    for port in [1, 2, 3, 1] {
        bench.send(LAN, from_port(10, port));
    }
    assert_eq!(ports(&bench), [1, 2]);
    assert_eq!(bench.drops(), [(0, 1, "table full".to_owned(), 1)]);
    let counters = bench.counters().nodes[0].tables[0];
    let expected = TableCounters { entries: 2, created: 2, refused: 1, ..TableCounters::default() };
    assert_eq!(counters, expected);
}

#[test]
fn full_table_evicts_the_entry_created_first() {
    let mut bench = Bench::new(with_capacity(memory("capacity", "evict_oldest"), 2));
    // Port 1 is found again, but it is still the oldest by creation.
    for port in [1, 2, 1, 3] {
        bench.send(LAN, from_port(10, port));
    }
    assert_eq!(ports(&bench), [2, 3]);
    assert_eq!(bench.events(), [(10, 1)]);
    let counters = bench.counters().nodes[0].tables[0];
    assert_eq!((counters.evicted, counters.expired, counters.created), (1, 0, 3));
}

#[test]
fn capacity_zero_refuses_even_where_eviction_is_allowed() {
    let mut bench = Bench::new(with_capacity(memory("capacity", "evict_oldest"), 0));
    bench.send(LAN, from_port(10, 1));
    assert_eq!(bench.drops().len(), 1);
}

#[test]
fn smaller_capacity_ends_nothing_until_the_next_new_entry() {
    let mut bench = Bench::new(with_capacity(memory("capacity", "evict_oldest"), 4));
    for port in [1, 2, 3, 4] {
        bench.send(LAN, from_port(10, port));
    }
    bench.control(11, 0, Change::Set(ParamValue::Scalar(2))).unwrap();
    assert_eq!(ports(&bench), [1, 2, 3, 4]);
    bench.send(LAN, from_port(12, 5));
    assert_eq!(ports(&bench), [4, 5]);
    bench.control(13, 0, Change::Set(ParamValue::Scalar(0))).unwrap();
    bench.send(LAN, from_port(14, 6));
    assert_eq!(ports(&bench), [4, 5], "no room can be made, so none is");
}

#[test]
fn state_is_listed_by_function_table_creation_with_what_it_denotes() {
    let flows = nf(
        "state seen: { first: time, count: u32 } per biflow idle 100 capacity 9 full refuse tick 1
         state all: u32 global default (7)",
        "b0: v0:bool = has inet
             branch v0, b1, b2
         b1: v1:time = load pkt.time
             v2:u32 = const 5
             v3:bool = set seen[entry], (v1, v2)
             jump b2
         b2: output onward at row0",
    );
    let mut bench = Bench::new(alone(flows));
    bench.send(LAN, udp(50, 0x0a00_0002, 9, 0x0a00_0001, 7));
    let state = bench.state();
    assert_eq!(state.len(), 2);
    let entry = &state[0];
    // The smaller (address, port) pair comes first.
    let key: Vec<_> = entry.key.iter().map(|(kind, value)| kind.show(*value)).collect();
    assert_eq!(key, ["4", "10.0.0.1", "10.0.0.2", "17", "7", "9"]);
    assert_eq!(entry.slots[0], ("first".to_owned(), Kind::Time, 50));
    assert_eq!(entry.slots[1], ("count".to_owned(), Kind::Uint, 5));
    assert_eq!((entry.created_ns, entry.last_seen_ns, entry.expires_ns), (50, 50, Some(150)));
    assert_eq!((state[1].table.as_str(), state[1].slots[0].2), ("all", 7));
    // The other direction finds the same entry.
    bench.send(WAN, udp(60, 0x0a00_0001, 7, 0x0a00_0002, 9));
    assert_eq!(bench.state().len(), 2);
    assert_eq!(bench.state()[0].last_seen_ns, 60);
}

#[test]
fn missing_entry_reads_as_default_or_is_a_fault() {
    let read = |default: &str| {
        nf(
            &format!(
                "state s: u8 per [u8] {default} capacity 1 full refuse tick 1
                      event SAYS {{ value: u8 }}"
            ),
            "b0: v0:u8 = const 3
                 v1:u8 = get s[v0]
                 emit SAYS(v1)
                 output onward at row0",
        )
    };
    let mut bench = Bench::new(alone(read("default (9)")));
    bench.send(LAN, from_port(1, 1));
    assert_eq!(bench.events(), [(1, 9)]);
    let mut bench = Bench::new(alone(read("")));
    bench.send(LAN, from_port(1, 1));
    assert_eq!(bench.drops(), [(0, 2, "no_entry".to_owned(), 1)]);
    assert_eq!(bench.counters().nodes[0].rows[2].packets, 1);
}

#[test]
fn put_changes_one_slot_and_creates_from_the_default() {
    let put = |default: &str| {
        nf(
            &format!(
                "state s: {{ a: u8, b: u8 }} per [u8] {default} capacity 1 full refuse tick 1"
            ),
            "b0: v0:u8 = const 3
                 v1:u8 = const 8
                 v2:bool = put s[v0], 1, v1
                 output onward at row0",
        )
    };
    let mut bench = Bench::new(alone(put("default (4, 5)")));
    bench.send(LAN, from_port(1, 1));
    let slots: Vec<_> = bench.state()[0].slots.iter().map(|slot| slot.2).collect();
    assert_eq!(slots, [4, 8]);
    let mut bench = Bench::new(alone(put("")));
    bench.send(LAN, from_port(1, 1));
    assert_eq!(bench.drops(), [(0, 2, "no_entry".to_owned(), 1)]);
}

#[test]
fn default_follows_its_parameter_when_read() {
    let model = nf(
        "param p: u8
         state s: u8 per [u8] default (p) capacity 1 full refuse tick 1
         event SAYS { value: u8 }",
        "b0: v0:u8 = const 3
             v1:u8 = get s[v0]
             emit SAYS(v1)
             output onward at row0",
    );
    let mut bench = Bench::new(line(vec![(model, vec![ParamValue::Scalar(1)])]));
    bench.send(LAN, from_port(1, 1));
    bench.control(2, 0, Change::Set(ParamValue::Scalar(2))).unwrap();
    bench.send(LAN, from_port(3, 1));
    assert_eq!(bench.events(), [(1, 1), (3, 2)]);
}

/// `a` by source port, and `b` by destination port. `b` lives with `a`. Both report their end.
fn couple(a: &str, b: &str, body: &str) -> Arc<Model> {
    nf_with(
        &format!(
            "state a: u8 per (inet.sport) {a} full refuse tick 1
             state b: u8 per (inet.dport) {b} tick 1 lives with a
             event ENDED {{ which: u8 }}
             reason \"refused\""
        ),
        body,
        "expire a { b0: v0:u8 = const 1 emit ENDED(v0) return }
         expire b { b0: v0:u8 = const 2 emit ENDED(v0) return }",
    )
}

const BOTH: &str = "
    b0: v0:bool = has inet
        branch v0, b1, b3
    b1: v1:u8 = const 1
        v2:bool = set a[entry], (v1)
        v3:bool = set b[entry], (v1)
        branch v3, b3, b2
    b2: drop \"refused\" at row0
    b3: output onward at row0";

#[test]
fn entries_that_live_together_share_last_seen_and_end_together() {
    // A packet from port 9 to port 53 finds only `b` of the first flow.
    let body = "
        b0: v0:bool = has inet
            branch v0, b1, b3
        b1: v1:bool = exists b[entry]
            branch v1, b3, b2
        b2: v2:u8 = const 1
            v3:bool = set a[entry], (v2)
            v4:bool = set b[entry], (v2)
            jump b3
        b3: output onward at row0";
    let model = couple("idle 100 capacity 9", "capacity 9 full refuse", body);
    let mut bench = Bench::new(alone(model));
    bench.send(LAN, from_port(1000, 1)).send(LAN, from_port(1060, 9));
    let seen: Vec<_> = bench.state().iter().map(|e| (e.last_seen_ns, e.expires_ns)).collect();
    assert_eq!(seen, [(1060, Some(1160)), (1060, Some(1160))]);
    bench.advance(1159);
    assert_eq!(bench.events(), []);
    bench.advance(1160);
    assert_eq!(bench.events(), [(1160, 1), (1160, 2)], "the one that is lived with first");
    assert!(bench.state().is_empty());
    let tables = &bench.counters().nodes[0].tables;
    assert_eq!((tables[0].expired, tables[1].expired), (1, 1));
}

#[test]
fn eviction_of_either_removes_both() {
    let model = couple("capacity 9", "capacity 1 full evict_oldest", BOTH);
    let mut bench = Bench::new(alone(model));
    bench.send(LAN, udp(1, 1, 1, 2, 51)).send(LAN, udp(2, 1, 2, 2, 52));
    assert_eq!(bench.events(), [(2, 1), (2, 2)]);
    let left: Vec<_> = bench.state().iter().map(|e| (e.table.clone(), e.key[0].1)).collect();
    assert_eq!(left, [("a".to_owned(), 2), ("b".to_owned(), 52)]);
    let tables = &bench.counters().nodes[0].tables;
    assert_eq!((tables[0].evicted, tables[1].evicted), (1, 1));
}

#[test]
fn new_entry_is_refused_when_room_for_it_costs_the_entry_that_it_would_live_with() {
    // Both flows share `a`. Making room for the second `b` ends the first `b`, and `a` with it.
    let model = couple("capacity 9", "capacity 1 full evict_oldest", BOTH);
    let mut bench = Bench::new(alone(model));
    bench.send(LAN, udp(1, 1, 1, 2, 51)).send(LAN, udp(2, 1, 1, 2, 52));
    assert_eq!(bench.drops(), [(0, 0, "refused".to_owned(), 1)]);
    assert!(bench.state().is_empty());
    assert_eq!(bench.counters().nodes[0].tables[1].refused, 1);
}

#[test]
fn entry_without_one_to_live_with_is_refused() {
    let body = "
        b0: v0:bool = has inet
            branch v0, b1, b3
        b1: v1:u8 = const 1
            v2:bool = set b[entry], (v1)
            branch v2, b3, b2
        b2: drop \"refused\" at row0
        b3: output onward at row0";
    let mut bench = Bench::new(alone(couple("capacity 9", "capacity 9 full refuse", body)));
    bench.send(LAN, from_port(1, 1));
    assert_eq!(bench.drops(), [(0, 0, "refused".to_owned(), 1)]);
}

#[test]
fn entry_found_before_a_resubmit_is_none_to_live_with() {
    // The first run creates `a`. The second run only tries to create `b`.
    let body = "
        b0: v0:bool = has inet
            branch v0, b1, b5
        b1: v1:u8 = const 1
            v2:u8 = load inet.ttl
            v3:u8 = const 9
            v4:bool = eq v2, v3
            branch v4, b3, b2
        b2: v5:bool = set a[entry], (v1)
            store inet.ttl, v3
            resubmit at row0
        b3: v6:bool = set b[entry], (v1)
            branch v6, b5, b4
        b4: drop \"refused\" at row0
        b5: output onward at row0";
    let mut bench = Bench::new(alone(couple("capacity 9", "capacity 9 full refuse", body)));
    bench.send(LAN, from_port(1, 1));
    assert_eq!(bench.drops(), [(0, 0, "refused".to_owned(), 1)]);
}

#[test]
fn deletion_removes_both_without_their_programs() {
    let body = "
        b0: v0:bool = has inet
            branch v0, b1, b4
        b1: v1:u8 = const 1
            v2:bool = exists b[entry]
            branch v2, b2, b3
        b2: delete b[entry]
            jump b4
        b3: v3:bool = set a[entry], (v1)
            v4:bool = set b[entry], (v1)
            jump b4
        b4: output onward at row0";
    let mut bench = Bench::new(alone(couple("capacity 9", "capacity 9 full refuse", body)));
    bench.send(LAN, from_port(1, 1));
    assert_eq!(bench.state().len(), 2);
    bench.send(LAN, from_port(2, 1));
    assert!(bench.state().is_empty());
    assert_eq!(bench.events(), []);
}

#[test]
fn expiry_program_changes_entries_but_creates_none() {
    let model = nf_with(
        "state flows: u8 per (inet.sport) idle 100 capacity 9 full refuse tick 1
         state count: u32 per [u8] capacity 9 full refuse tick 1
         state total: u32 global default (0)",
        "b0: v0:bool = has inet
             branch v0, b1, b2
         b1: v1:u8 = const 1
             v2:bool = set flows[entry], (v1)
             v3:u32 = const 5
             v4:bool = set count[v1], (v3)
             jump b2
         b2: output onward at row0",
        "expire flows {
         b0: v0:u8 = const 1
             v1:u8 = const 2
             v2:u32 = const 4
             v3:bool = set count[v0], (v2)
             v4:bool = set count[v1], (v2)
             v5:u32 = resize v4
             v6:bool = set total[entry], (v5)
             return }",
    );
    let mut bench = Bench::new(alone(model));
    bench.send(LAN, from_port(1, 1)).advance(101);
    let state: Vec<_> =
        bench.state().iter().map(|e| (e.table.clone(), e.slots[0].2, e.last_seen_ns)).collect();
    // The expiry program's access renews nothing.
    assert_eq!(state, [("count".to_owned(), 4, 1), ("total".to_owned(), 0, 0)]);
    assert_eq!(bench.counters().nodes[0].tables[1].refused, 1);
}

#[test]
fn quoted_and_reversed_keys_mean_the_other_packets_flow() {
    let model = nf(
        "state flows: u8 per flow capacity 9 full refuse tick 1
         event SAYS { what: u8 }",
        "b0: v0:bool = has quoted
             branch v0, b1, b3
         b1: v1:bool = exists flows[quoted]
             branch v1, b2, b7
         b2: v2:u8 = const 1
             emit SAYS(v2)
             jump b7
         b3: v3:bool = has inet
             branch v3, b4, b7
         b4: v4:bool = exists flows[reverse]
             branch v4, b5, b6
         b5: v5:u8 = const 2
             emit SAYS(v5)
             jump b7
         b6: v6:u8 = const 0
             v7:bool = set flows[entry], (v6)
             jump b7
         b7: output onward at row0",
    );
    let mut bench = Bench::new(alone(model));
    let request = udp(1, 1, 10, 2, 20);
    bench.send(LAN, request.clone());
    bench.send(WAN, udp(2, 2, 20, 1, 10));
    assert_eq!(bench.events(), [(2, 2)]);
    let error = braid_packet::build_new(
        &request,
        braid_packet::Shape::Icmp,
        true,
        &[(braid_packet::Field::IcmpType, 3), (braid_packet::Field::IcmpCode, 3)],
        braid_packet::NewPayload::Quote(28),
    );
    bench.send(WAN, error.unwrap());
    assert_eq!(bench.events(), [(2, 1)]);
}

#[test]
fn expiring_values_are_those_of_the_entry() {
    let model = nf_with(
        "state s: { a: u8, b: u16 } per [u8, ip4] idle 1 capacity 9 full refuse tick 1
         event SAYS { a: u8, b: u16, k: u8, l: ip4 }",
        "b0: v0:u8 = const 3
             v1:ip4 = const 10.0.0.1
             v2:u8 = const 4
             v3:u16 = const 500
             v4:bool = set s[v0, v1], (v2, v3)
             output onward at row0",
        "expire s {
         b0: v0:u8, v1:u16 = expiring
             v2:u8, v3:ip4 = expiring_key
             emit SAYS(v0, v1, v2, v3)
             return }",
    );
    let mut bench = Bench::new(alone(model));
    bench.send(LAN, from_port(1, 1)).advance(2);
    let fields: Vec<_> = bench.got.events[0].fields.iter().map(|field| field.1.clone()).collect();
    let scalar = braid_ir::engine::EventValue::Scalar;
    let expected = [(Kind::Uint, 4), (Kind::Uint, 500), (Kind::Uint, 3), (Kind::Ip4, 0x0a00_0001)];
    assert_eq!(fields, expected.map(|(kind, value)| scalar(kind, value)));
}

#[test]
fn shares_are_as_equal_as_possible_the_first_larger() {
    let shares: Vec<_> = (0..3).map(|part| share(8, 3, part)).collect();
    assert_eq!(shares, [3, 3, 2]);
    assert_eq!(share(8, 0, 0), 8);
}

#[test]
fn both_directions_belong_to_one_worker() {
    let mut workers = std::collections::BTreeSet::new();
    for port in 0..64 {
        let there = udp(1, 1, port, 2, 20);
        let back = udp(1, 2, 20, 1, port);
        assert_eq!(worker(&there, 4), worker(&back, 4));
        assert_eq!(worker(&there, 1), 0);
        workers.insert(worker(&there, 4));
    }
    assert_eq!(workers.len(), 4, "64 flows reach all four");
}

#[test]
fn sharded_state_is_split_by_worker_with_quotas() {
    let model = nf(
        "state seen: u8 per (inet.sport) capacity 5 full refuse tick 1 sharded
         state all: u32 global default (0) sharded
         reason \"full\"",
        "b0: v0:bool = has inet
             branch v0, b1, b3
         b1: v1:u32 = get all[entry]
             v2:u32 = const 1
             v3:u32 = add_sat v1, v2
             v4:bool = set all[entry], (v3)
             v5:u8 = const 1
             v6:bool = set seen[entry], (v5)
             branch v6, b3, b2
         b2: drop \"full\" at row1
         b3: output onward at row0",
    );
    let mut chain = alone(model);
    chain.workers = 2;
    let mut bench = Bench::new(chain);
    let mut expected = [0_u64; 2];
    for port in 0..40 {
        let packet = from_port(1, port);
        expected[usize::from(worker(&packet, 2))] += 1;
        bench.send(LAN, packet);
    }
    let state = bench.state();
    let count = |shard| state.iter().filter(|e| e.table == "seen" && e.shard == shard).count();
    assert_eq!((count(0), count(1)), (3, 2), "capacity 5 as 3 and 2");
    let all: Vec<_> = state.iter().filter(|e| e.table == "all").collect();
    let sums: Vec<_> = all.iter().map(|e| (e.shard, e.slots[0].2)).collect();
    assert_eq!(sums, [(0, expected[0].into()), (1, expected[1].into())]);
    for entry in state.iter().filter(|e| e.table == "seen") {
        let port = u16::try_from(entry.key[0].1).unwrap();
        assert_eq!(worker(&from_port(1, port), 2), entry.shard);
    }
}

#[test]
fn sharded_state_is_listed_by_creation() {
    let model = nf(
        "state seen: u8 per (inet.sport) capacity 50 full refuse tick 1 sharded",
        "b0: v0:bool = has inet
             branch v0, b1, b2
         b1: v1:u8 = const 1
             v2:bool = set seen[entry], (v1)
             jump b2
         b2: output onward at row0",
    );
    let mut chain = alone(model);
    chain.workers = 2;
    let mut bench = Bench::new(chain);
    for port in 0..10 {
        bench.send(LAN, from_port(1, port));
    }
    assert_eq!(ports(&bench), Vec::from_iter(0..10));
    assert!(bench.state().iter().any(|entry| entry.shard == 1));
    assert!(bench.state().iter().any(|entry| entry.shard == 0));
}

#[test]
fn timer_of_a_sharded_function_runs_in_each_shard() {
    let model = nf_with(
        "state all: u32 global default (0) sharded",
        "b0: output onward at row0",
        "every 10 {
         b0: v0:u32 = get all[entry]
             v1:u32 = const 1
             v2:u32 = add_sat v0, v1
             v3:bool = set all[entry], (v2)
             return }",
    );
    let mut chain = alone(model);
    chain.workers = 3;
    let mut bench = Bench::new(chain);
    bench.send(LAN, from_port(0, 1)).advance(20);
    let sums: Vec<_> = bench.state().iter().map(|entry| entry.slots[0].2).collect();
    assert_eq!(sums, [2, 2, 2]);
}

/// Stores flows.
fn flows() -> Chain {
    alone(nf(
        "state seen: u8 per flow capacity 9 full refuse tick 1",
        "b0: v0:bool = has inet
             branch v0, b1, b2
         b1: v1:u8 = const 1
             v2:bool = set seen[entry], (v1)
             jump b2
         b2: output onward at row0",
    ))
}

#[test]
fn flows_of_equal_hash_have_entries_of_their_own() {
    let hash = |packet: &braid_packet::Packet| {
        let words = packet.flow_key(&packet.parse()).unwrap().words();
        let args: Vec<_> = words.into_iter().zip(braid_packet::FlowKey::WIDTHS).collect();
        braid_externs::ops::hash::of_args(&args)
    };
    // Among n flows, about n² / 2^33 pairs share a 32-bit hash.
    let mut by_hash = std::collections::HashMap::new();
    let numbered = |n: u32| {
        let [high, low] = [n >> 16, n & 0xffff].map(|half| u16::try_from(half).unwrap());
        udp(1, 1, low, 2, high)
    };
    let found = (0..1_000_000).find_map(|n| by_hash.insert(hash(&numbered(n)), n).map(|m| (m, n)));
    let (m, n) = found.unwrap();
    let mut bench = Bench::new(flows());
    bench.send(LAN, numbered(m)).send(LAN, numbered(n));
    assert_eq!(bench.state().len(), 2);
}

#[test]
fn flows_that_differ_in_one_part_alone_have_entries_of_their_own() {
    use braid_packet::{Field, Link, Shape, build_fresh};
    let build = |shape, fields: &[(Field, u128)]| {
        build_fresh(Link::Ethernet, 1, shape, fields, b"data").unwrap()
    };
    let ip4 = [(Field::IpSrc, 1), (Field::IpDst, 2), (Field::L4Sport, 3), (Field::L4Dport, 4)];
    let ip6 = [(Field::Ip6Src, 1), (Field::Ip6Dst, 2), (Field::L4Sport, 3), (Field::L4Dport, 4)];
    let mut bench = Bench::new(flows());
    bench.send(LAN, build(Shape::Udp4, &ip4));
    bench.send(LAN, build(Shape::Tcp4, &ip4));
    bench.send(LAN, build(Shape::Udp6, &ip6));
    for (part, _) in ip4 {
        let changed = ip4.map(|(field, value)| (field, if field == part { 77 } else { value }));
        bench.send(LAN, build(Shape::Udp4, &changed));
    }
    assert_eq!(bench.state().len(), 7);
    bench.send(LAN, build(Shape::Udp4, &ip4));
    assert_eq!(bench.state().len(), 7);
}
