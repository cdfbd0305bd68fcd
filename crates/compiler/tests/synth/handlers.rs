//! Programs contain the handlers of the events that they publish.

use super::common::{expect, row, text};
use braid_packet::Header::Ip4;

const SEEN: &str = "event SEEN { src: ip4, ttl: u8 }";

/// Publishes the source and the TTL of each packet.
fn publisher() -> String {
    format!(
        "model a {{ {SEEN} row \"1\" row \"fault\" packet {{
         b0: v0:bool = has ip branch v0, b1, b2
         b1: v1:ip4 = load ip.src v2:u8 = load ip.ttl emit SEEN(v1, v2) output onward at row0
         b2: output onward at row0 }} }}"
    )
}

/// Drops the packets of sources that a table has. The handler consists of these blocks.
fn taker(declarations: &str, handler: &str) -> String {
    format!(
        "model b {{ state s: u8 per [ip4] {declarations} capacity 10 {SEEN}
         event AGAIN {{ src: ip4, ttl: u8 }} row \"1\" row \"fault\" reason \"no\" packet {{
         b0: v0:bool = has ip branch v0, b1, b3
         b1: v1:ip4 = load ip.src v2:bool = exists s[v1] branch v2, b2, b3
         b2: drop \"no\" at row0
         b3: output onward at row0 }}
         on SEEN {{ {handler} }} }}"
    )
}

#[test]
fn handler_follows_on_its_event_before_the_next_function() {
    let taker = taker(
        "",
        "b0: v0:ip4 = load_event 0 v1:u8 = load_event 1 v2:bool = set s[v0], (v1) return",
    );
    expect(
        &text(&row(&[&publisher(), &taker], &[]), &[Ip4]),
        "at f0 forward for ip, 2 functions
         b0:
           f0: v0:ip4 = load ip.src
           f0: v1:u8 = load ip.ttl
           f0: emit SEEN(v0, v1)
           f1: v2:bool = set s[v0], (v1)
           f1: v3:bool, v4:u64 = find s[v0]
           branch v3, b1, b2
         b1:
           f1: drop \"no\" at row0 [f0:forward f1:forward]
         b2:
           leave wan [f0:forward f1:forward]",
    );
}

#[test]
fn nested_events_and_handlers_come_in_the_order_of_the_reference_engine() {
    let first = taker(
        "",
        "b0: v0:ip4 = load_event 0 v1:u8 = const 1 emit AGAIN(v0, v1) v2:bool = set s[v0], (v1) return",
    );
    let handler = "b0: v0:ip4 = load_event 0 delete s[v0] return";
    let again = "on AGAIN { b0: v0:ip4 = load_event 0 v1:u8 = load_event 1
                 v2:bool = set s[v0], (v1) return }";
    let second = taker("", handler).replace("on SEEN {", &format!("{again} on SEEN {{"));
    let found = text(&row(&[&publisher(), &first, &second], &[]), &[Ip4]);
    let effects: Vec<&str> = found
        .lines()
        .map(str::trim)
        .filter(|line| ["emit", "set", "delete"].iter().any(|word| line.contains(word)))
        .collect();
    assert_eq!(
        effects,
        [
            "f0: emit SEEN(v0, v1)",
            "f1: emit AGAIN(v0, v2)",
            "f2: v3:bool = set s[v0], (v2)",
            "f1: v4:bool = set s[v0], (v2)",
            "f2: delete s[v0]",
        ],
        "{found}"
    );
}

#[test]
fn fault_of_a_handler_ends_the_handler_alone() {
    let taker = taker(
        "",
        "b0: v0:ip4 = load_event 0 v1:u8 = load_event 1 v2:u8 = const 100 v3:u8 = div v2, v1
         v4:bool = set s[v0], (v3) return",
    );
    expect(
        &text(&row(&[&publisher(), &taker], &[]), &[Ip4]),
        "at f0 forward for ip, 2 functions
         b0:
           f0: v0:ip4 = load ip.src
           f0: v1:u8 = load ip.ttl
           f0: emit SEEN(v0, v1)
           f1: v2:u8 = const 0
           f1: v3:bool = ne v1, v2
           branch v3, b1, b2
         b1:
           f1: v4:u8 = const 100
           f1: v5:u8 = div v4, v1
           f1: v6:bool = set s[v0], (v5)
           jump b3
         b2:
           f1: count [f1:background]
           jump b3
         b3:
           f1: v7:bool, v8:u64 = find s[v0]
           branch v7, b4, b5
         b4:
           f1: drop \"no\" at row0 [f0:forward f1:forward]
         b5:
           leave wan [f0:forward f1:forward]",
    );
}

#[test]
fn missing_entry_and_missing_member_end_the_handler_alone() {
    let put = taker(
        "",
        "b0: v0:ip4 = load_event 0 v1:u8 = load_event 1 v2:bool = put s[v0], 0, v1 return",
    );
    let get =
        taker("", "b0: v0:ip4 = load_event 0 v1:u8 = get s[v0] v2:bool = set s[v0], (v1) return");
    for taker in [put, get] {
        let found = text(&row(&[&publisher(), &taker], &[]), &[Ip4]);
        assert_eq!(found.matches("count [f1:background]").count(), 1, "{found}");
        assert!(!found.contains("else ["), "{found}");
    }
}

#[test]
fn handlers_beyond_the_budget_stay_outside() {
    let many = |count: usize| {
        let sets = (0..count).map(|at| format!("v{}:bool = set s[v0], (v1)", at + 2));
        let sets: Vec<String> = sets.collect();
        let handler =
            format!("b0: v0:ip4 = load_event 0 v1:u8 = load_event 1 {} return", sets.join(" "));
        let found = text(&row(&[&publisher(), &taker("", &handler)], &[]), &[Ip4]);
        found.matches("= set s").count()
    };
    assert_eq!(many(253), 253);
    assert_eq!(many(254), 0);
}

#[test]
fn handlers_of_functions_whose_entries_live_with_others_stay_outside() {
    let taker = taker(
        "",
        "b0: v0:ip4 = load_event 0 v1:u8 = load_event 1 v2:bool = set s[v0], (v1) return",
    );
    let tied = "capacity 10 state t: u8 per [ip4] capacity 10 lives with s event";
    let found =
        text(&row(&[&publisher(), &taker.replacen("capacity 10 event", tied, 1)], &[]), &[Ip4]);
    assert!(found.contains("emit SEEN") && !found.contains("set s"), "{found}");
}
