//! Time: it never goes back, due work runs in the specified order, and time jumps end quickly.

mod common;

use braid_ir::chain::Change;
use braid_ir::engine::CATCH_UP;
use braid_ir::value::ParamValue;
use braid_packet::Field;
use common::{Bench, LAN, MS, S, WAN, alone, field, from_port, line, nf, nf_with};
use std::sync::Arc;

/// Stores source ports for `idle` nanoseconds, with ticks of `tick`, and reports each port that
/// expires.
fn memory(idle: u64, tick: u64) -> Arc<braid_ir::model::Model> {
    nf_with(
        &format!(
            "state seen: u8 per (inet.sport) default (0) idle {idle} capacity 100 full refuse \
             tick {tick} event ENDED {{ port: port }}"
        ),
        "b0: v0:bool = has inet
             branch v0, b1, b2
         b1: v1:u8 = const 1
             v2:bool = set seen[entry], (v1)
             jump b2
         b2: output onward at row0",
        "expire seen {
         b0: v0:port = expiring_key
             emit ENDED(v0)
             return }",
    )
}

#[test]
fn time_of_processing_never_goes_back() {
    let mut bench = Bench::new(alone(memory(10 * S, 1)));
    bench.send(LAN, from_port(5 * S, 1)).send(LAN, from_port(3 * S, 2));
    assert_eq!(bench.last().time_ns, 5 * S);
    assert_eq!(bench.state()[1].created_ns, 5 * S);
}

#[test]
fn deadline_is_rounded_up_to_a_tick() {
    // Last seen at 150 ms and idle for 100 ms gives 250 ms. With ticks of 100 ms, that is 300 ms.
    let mut bench = Bench::new(alone(memory(100 * MS, 100 * MS)));
    bench.send(LAN, from_port(150 * MS, 1));
    assert_eq!(bench.state()[0].expires_ns, Some(300 * MS));
    bench.advance(300 * MS - 1);
    assert_eq!(bench.state().len(), 1);
    bench.advance(300 * MS);
    assert_eq!(bench.state().len(), 0);
    assert_eq!(bench.events(), [(300 * MS, 1)]);
    assert_eq!(bench.counters().nodes[0].tables[0].expired, 1);
}

#[test]
fn deadline_that_is_a_multiple_of_the_tick_is_kept() {
    let mut bench = Bench::new(alone(memory(100 * MS, 100 * MS)));
    bench.send(LAN, from_port(200 * MS, 1)).advance(300 * MS);
    assert_eq!(bench.events(), [(300 * MS, 1)]);
}

#[test]
fn entry_that_expires_at_a_packets_time_is_gone_for_it() {
    let exists = nf(
        "state seen: u8 per (inet.sport) default (0) idle 100 capacity 9 full refuse tick 1
         reason \"known\"",
        "b0: v0:bool = has inet
             branch v0, b1, b4
         b1: v1:bool = exists seen[entry]
             branch v1, b2, b3
         b2: drop \"known\" at row1
         b3: v2:u8 = const 1
             v3:bool = set seen[entry], (v2)
             jump b4
         b4: output onward at row0",
    );
    let mut bench = Bench::new(alone(exists));
    bench.send(LAN, from_port(1000, 1));
    bench.send(LAN, from_port(1099, 1));
    assert_eq!(bench.drops().len(), 1, "found one nanosecond before its end, which renews it");
    bench.send(LAN, from_port(1199, 1));
    assert_eq!(bench.drops()[0].3, 1, "expired at 1099 + 100");
}

#[test]
fn finding_an_entry_renews_it_and_expiry_order_follows() {
    let mut bench = Bench::new(alone(memory(100, 1)));
    bench.send(LAN, from_port(1000, 1)).send(LAN, from_port(1001, 2)).send(LAN, from_port(1050, 1));
    bench.advance(2000);
    assert_eq!(bench.events(), [(1101, 2), (1150, 1)]);
}

#[test]
fn equal_deadlines_expire_by_position_then_creation() {
    // The function on the right is entered second, yet all deadlines fall on the same tick.
    let chain = line(vec![(memory(100, 1000), vec![]), (memory(100, 1000), vec![])]);
    let mut bench = Bench::new(chain);
    bench.send(WAN, from_port(100, 7)).send(LAN, from_port(101, 8));
    bench.advance(1000);
    let events = std::mem::take(&mut bench.got.events);
    let order: Vec<_> = events.iter().map(|event| event.node).collect();
    assert_eq!(order, [0, 0, 1, 1]);
    let ports: Vec<_> = events.iter().map(|event| event.fields[0].1.clone()).collect();
    assert_eq!(ports[0], ports[2], "by creation within a table");
    assert_ne!(ports[0], ports[1]);
}

#[test]
fn equal_deadlines_expire_by_table_before_creation() {
    // Table `late` is declared second; its entry is created first.
    let model = nf_with(
        "state early: u8 per [u8] idle 100 capacity 9 full refuse tick 1000
         state late: u8 per [u8] idle 100 capacity 9 full refuse tick 1000
         event ENDED { table: u8 }",
        "b0: v0:u8 = const 1
             v1:bool = set late[v0], (v0)
             v2:bool = set early[v0], (v0)
             output onward at row0",
        "expire early { b0: v0:u8 = const 0 emit ENDED(v0) return }
         expire late { b0: v0:u8 = const 1 emit ENDED(v0) return }",
    );
    let mut bench = Bench::new(alone(model));
    bench.send(LAN, from_port(1, 1)).advance(1000);
    assert_eq!(bench.events(), [(1000, 0), (1000, 1)]);
}

#[test]
fn hard_timeout_is_not_renewed() {
    let model = nf(
        "state seen: u8 per (inet.sport) idle 100 hard 150 capacity 9 full refuse tick 1",
        "b0: v0:bool = has inet
             branch v0, b1, b2
         b1: v1:u8 = const 1
             v2:bool = set seen[entry], (v1)
             jump b2
         b2: output onward at row0",
    );
    let mut bench = Bench::new(alone(model));
    bench.send(LAN, from_port(1000, 1)).send(LAN, from_port(1090, 1));
    assert_eq!(bench.state()[0].expires_ns, Some(1150));
    bench.advance(1150);
    assert!(bench.state().is_empty());
}

/// Publishes `TICK` once a period.
fn clock(period: u64) -> Arc<braid_ir::model::Model> {
    nf_with(
        "event TICK { at: time }",
        "b0: output onward at row0",
        &format!("every {period} {{ b0: v0:time = load pkt.time emit TICK(v0) return }}"),
    )
}

#[test]
fn timer_fires_a_period_after_the_first_packet_and_before_packets() {
    let mut bench = Bench::new(alone(clock(10)));
    bench.send(LAN, from_port(1003, 1));
    assert_eq!(bench.events(), []);
    bench.send(LAN, from_port(1013, 1));
    assert_eq!(bench.events(), [(1013, 1013)]);
    bench.send(LAN, from_port(1040, 1));
    assert_eq!(bench.events(), [(1023, 1023), (1033, 1033)]);
}

#[test]
fn timer_does_not_start_before_the_first_packet() {
    let mut bench = Bench::new(alone(clock(10)));
    bench.advance(5000);
    assert_eq!(bench.events(), []);
    bench.send(LAN, from_port(4000, 1)).advance(5010);
    assert_eq!(bench.events(), [(5010, 5010)]);
}

#[test]
fn timer_that_is_far_behind_skips_its_earliest_firings() {
    let mut bench = Bench::new(alone(clock(10)));
    bench.send(LAN, from_port(0, 1));
    // Due at 10, 20, ..., 10 * (CATCH_UP + 3): three firings too many.
    bench.advance(10 * (CATCH_UP + 3));
    let events = bench.events();
    assert_eq!(events.len() as u64, CATCH_UP);
    assert_eq!(events[0], (40, 40));
    assert_eq!(bench.counters().nodes[0].timers_skipped, 3);
    // The timer is in step again.
    bench.advance(10 * (CATCH_UP + 4));
    assert_eq!(bench.events().len(), 1);
}

#[test]
fn jump_of_centuries_ends_soon() {
    let mut bench = Bench::new(alone(clock(1)));
    bench.send(LAN, from_port(0, 1)).send(LAN, from_port(u64::MAX - 1, 1));
    assert_eq!(bench.counters().nodes[0].timers_skipped, u64::MAX - 1 - CATCH_UP);
    bench.send(LAN, from_port(u64::MAX, 1));
    assert_eq!(bench.events().last(), Some(&(u64::MAX, u128::from(u64::MAX))));
}

/// A function that reports 1 when its entry has been idle for `idle`, and 3 when the packet comes
/// back that it held for `held`. A timer may report something else.
fn reporter(idle: u64, held: u64, timer: &str) -> Arc<braid_ir::model::Model> {
    nf_with(
        &format!(
            "state seen: u8 per [u8] idle {idle} capacity 9 full refuse tick 1
             queue q capacity 9
             event SAYS {{ what: u8 }}
             reason \"q full\""
        ),
        &format!(
            "b0: v0:bool = load pkt.held
                 branch v0, b1, b2
             b1: v1:u8 = const 3
                 emit SAYS(v1)
                 output onward at row0
             b2: v2:u8 = const 1
                 v3:bool = set seen[v2], (v2)
                 v4:duration = const {held}
                 hold q for v4 at row0 else b3
             b3: drop \"q full\" at row0"
        ),
        &format!("expire seen {{ b0: v0:u8 = const 1 emit SAYS(v0) return }} {timer}"),
    )
}

#[test]
fn expiry_runs_before_timer_before_held_packet_at_equal_times() {
    let model = reporter(100, 100, "every 100 { b0: v0:u8 = const 2 emit SAYS(v0) return }");
    let mut bench = Bench::new(alone(model));
    bench.send(LAN, from_port(1000, 1)).advance(1100);
    assert_eq!(bench.events(), [(1100, 1), (1100, 2), (1100, 3)]);
}

#[test]
fn earlier_held_packet_comes_before_later_expiry() {
    let model = reporter(100, 99, "");
    let mut bench = Bench::new(alone(model));
    bench.send(LAN, from_port(1000, 1)).advance(1200);
    assert_eq!(bench.events(), [(1099, 3), (1100, 1)]);
    assert_eq!(bench.last().time_ns, 1099);
    assert_eq!(field(bench.last(), Field::PktTime), Some(1099));
}

#[test]
fn new_idle_time_moves_deadlines_at_once() {
    let model = nf(
        "param idle: duration
         state seen: u8 per (inet.sport) default (0) idle idle capacity 100 full refuse tick 1",
        "b0: v0:bool = has inet
             branch v0, b1, b2
         b1: v1:u8 = const 1
             v2:bool = set seen[entry], (v1)
             jump b2
         b2: output onward at row0",
    );
    let mut bench = Bench::new(line(vec![(model, vec![ParamValue::Scalar(1000)])]));
    bench.send(LAN, from_port(1000, 1)).send(LAN, from_port(1050, 2));
    bench.control(1060, 0, Change::Set(ParamValue::Scalar(50))).unwrap();
    assert_eq!(bench.state().len(), 2, "due now, but only what comes next runs it");
    bench.advance(1060);
    assert_eq!(bench.state().len(), 1, "the first was last seen 60 ns ago");
    assert_eq!(bench.state()[0].expires_ns, Some(1100));
    bench.control(1070, 0, Change::Set(ParamValue::Scalar(500))).unwrap();
    bench.advance(1549);
    assert_eq!(bench.state().len(), 1);
    bench.advance(1550);
    assert_eq!(bench.state().len(), 0);
}

#[test]
fn idle_time_past_the_end_of_time_never_comes() {
    let mut bench = Bench::new(alone(memory(u64::MAX, 1)));
    bench.send(LAN, from_port(1000, 1));
    assert_eq!(bench.state()[0].expires_ns, None);
    bench.advance(u64::MAX);
    assert_eq!(bench.state().len(), 1);
}

#[test]
fn timer_with_period_zero_is_refused() {
    let model = nf_with(
        "param period: duration",
        "b0: output onward at row0",
        "every period { b0: return }",
    );
    let chain = |period| line(vec![(model.clone(), vec![ParamValue::Scalar(period)])]);
    assert!(braid_reference::Reference::new(chain(0)).is_err());
    let mut bench = Bench::new(chain(5));
    assert!(bench.control(1, 0, Change::Set(ParamValue::Scalar(0))).is_err());
}

#[test]
fn changed_period_holds_from_the_next_firing_on() {
    let model = nf_with(
        "param period: duration event TICK { at: time }",
        "b0: output onward at row0",
        "every period { b0: v0:time = load pkt.time emit TICK(v0) return }",
    );
    let mut bench = Bench::new(line(vec![(model, vec![ParamValue::Scalar(100)])]));
    bench.send(LAN, from_port(1000, 1));
    bench.control(1001, 0, Change::Set(ParamValue::Scalar(10))).unwrap();
    bench.advance(1120);
    assert_eq!(bench.events(), [(1100, 1100), (1110, 1110), (1120, 1120)]);
}

#[test]
fn what_is_due_by_now_runs_before_a_packet_with_an_earlier_stamp() {
    // The change makes the entry of port 1 due at 1050, but the time is already 1060. A packet of
    // the same port with time 1000 is processed at 1060, so it creates a new entry.
    let model = nf(
        "param idle: duration
         state seen: u8 per (inet.sport) default (0) idle idle capacity 100 full refuse tick 1",
        "b0: v0:bool = has inet
             branch v0, b1, b2
         b1: v1:u8 = const 1
             v2:bool = set seen[entry], (v1)
             jump b2
         b2: output onward at row0",
    );
    let mut bench = Bench::new(line(vec![(model, vec![ParamValue::Scalar(1000)])]));
    bench.send(LAN, from_port(1000, 1));
    bench.control(1060, 0, Change::Set(ParamValue::Scalar(50))).unwrap();
    bench.send(LAN, from_port(1000, 1));
    assert_eq!(bench.counters().nodes[0].tables[0].expired, 1);
    assert_eq!(bench.state()[0].created_ns, 1060);
}

#[test]
fn packet_held_for_no_time_is_released_before_a_packet_with_an_earlier_stamp() {
    let model = nf(
        "queue q capacity 1 reason \"q full\"",
        "b0: v0:bool = load pkt.held
             branch v0, b1, b2
         b1: output onward at row0
         b2: v1:duration = const 0
             hold q for v1 at row0 else b3
         b3: drop \"q full\" at row1",
    );
    let mut bench = Bench::new(alone(model));
    bench.send(LAN, from_port(500, 1)).send(LAN, from_port(400, 2));
    assert_eq!(bench.drops(), [], "the queue of one was free again");
    assert_eq!(bench.left_by(), [WAN]);
}

#[test]
fn equal_deadlines_expire_by_creation_neither_by_key_nor_by_last_use() {
    let mut bench = Bench::new(alone(memory(100, 1000)));
    for (time, port) in [(101, 9), (102, 3), (103, 5), (104, 9), (105, 3)] {
        bench.send(LAN, from_port(time, port));
    }
    bench.advance(1000);
    assert_eq!(bench.events(), [(1000, 9), (1000, 3), (1000, 5)]);
}

#[test]
fn earlier_tick_expires_first_whatever_the_position() {
    // Idle times of 1500 in the first function and of 100 in the second, with ticks of 1000.
    let chain = line(vec![(memory(1500, 1000), vec![]), (memory(100, 1000), vec![])]);
    let mut bench = Bench::new(chain);
    bench.send(LAN, from_port(1, 7)).advance(5000);
    let ends: Vec<_> = bench.got.events.iter().map(|e| (e.time_ns, e.node)).collect();
    assert_eq!(ends, [(1000, 1), (2000, 0)]);
}

#[test]
fn timers_expiries_and_held_packets_take_turns_within_one_jump() {
    // A timer reports 2 every 10. The entry, idle for 25, reports 1. The packet, held for 35,
    // reports 3.
    let model = reporter(25, 35, "every 10 { b0: v0:u8 = const 2 emit SAYS(v0) return }");
    let mut bench = Bench::new(alone(model));
    bench.send(LAN, from_port(1000, 1)).advance(1045);
    let said = [(1010, 2), (1020, 2), (1025, 1), (1030, 2), (1035, 3), (1040, 2)];
    assert_eq!(bench.events(), said);
}

#[test]
fn two_timers_of_a_nanosecond_skip_more_firings_than_fit_a_counter() {
    let model =
        nf_with("", "b0: output onward at row0", "every 1 { b0: return } every 1 { b0: return }");
    let mut bench = Bench::new(alone(model));
    bench.send(LAN, from_port(0, 1)).send(LAN, from_port(u64::MAX, 1));
    assert_eq!(bench.counters().nodes[0].timers_skipped, u64::MAX);
}

#[test]
fn reading_renews_and_timers_do_not() {
    // Packets from port 7 only read (with the 8-bit key 1). Other packets assign.
    let model = nf_with(
        "state seen: u8 per [u8] default (0) idle 100 capacity 9 full refuse tick 1",
        "b0: v0:bool = has udp
             branch v0, b1, b4
         b1: v1:u8 = const 1
             v2:port = load udp.sport
             v3:port = const 7
             v4:bool = eq v2, v3
             branch v4, b2, b3
         b2: v5:u8 = get seen[v1]
             jump b4
         b3: v6:bool = set seen[v1], (v1)
             jump b4
         b4: output onward at row0",
        "every 10 { b0: v0:u8 = const 1 v1:bool = set seen[v0], (v0) return }",
    );
    let mut bench = Bench::new(alone(model));
    bench.send(LAN, from_port(1000, 1)).send(LAN, from_port(1050, 7));
    assert_eq!(bench.state()[0].expires_ns, Some(1150));
    bench.advance(1149);
    assert_eq!(bench.state()[0].last_seen_ns, 1050, "the timer assigned it at 1140");
    assert_eq!(bench.state()[0].expires_ns, Some(1150));
    bench.advance(1150);
    assert_eq!(bench.counters().nodes[0].tables[0].expired, 1);
}
