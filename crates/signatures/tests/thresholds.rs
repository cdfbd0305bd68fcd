//! Thresholds over connections: a rule holds once for each of generated connections, and an oracle,
//! which has the whole list of them, says which of these times are alerts.

mod support;

use braid_signatures::{Flow, Inspection, Signatures, Thresholds, limits, load};
use proptest::prelude::*;
use support::Said;

const SECOND: u64 = 1_000_000_000;

fn flow(src: u8, dst: u8) -> Flow {
    Flow { version: 4, src: src.into(), dst: dst.into(), sport: 1, dport: 2 }
}

fn rule(options: &str) -> Signatures {
    let text = format!("alert tcp any any -> any any (content:\"a\"; {options}; sid:1;)");
    let loaded = load(&text);
    assert_eq!(loaded.refused, [], "{options}");
    loaded.set
}

/// A connection for which the rule holds. Whether it alerts.
fn connection(set: &Signatures, flow: Flow, time: u64, said: &mut Said) -> bool {
    (said.now, said.alerts) = (time, Vec::new());
    Inspection::default().data(&mut said.by(set), (flow, true), (0, b"a"));
    !said.alerts.is_empty()
}

/// For each time that a rule has held, by its time and by what counts together with it: whether it
/// is an alert.
fn oracle(kind: &str, count: usize, length: u64, times: &[(u64, [u8; 2])]) -> Vec<bool> {
    let number_in_window = |at: usize| {
        let (mut begin, mut number) = (None, 0);
        for (time, of) in &times[..=at] {
            if *of != times[at].1 {
                continue;
            }
            match begin {
                Some(begin) if *time <= begin + length => number += 1,
                _ => (begin, number) = (Some(*time), 1),
            }
        }
        number
    };
    let numbers = (0..times.len()).map(number_in_window);
    let alerts = numbers.map(|number: usize| match kind {
        "limit" => number <= count,
        "threshold" => number.is_multiple_of(count),
        "both" => number == count,
        _ => number > count,
    });
    alerts.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(braid_cases::cases(1_000)))]

    #[test]
    fn alerts_are_as_the_oracle_says(
        kind in prop::sample::select(vec!["limit", "threshold", "both", "filter"]),
        track in prop::sample::select(vec!["by_src", "by_dst", "by_both", "by_rule"]),
        count in 1..5_usize,
        seconds in 1..6_u64,
        held in prop::collection::vec((0..3 * SECOND, 0..3_u8, 0..3_u8), 1..40),
        saved in 0..40_usize,
    ) {
        let rest = format!("track {track}, count {count}, seconds {seconds}");
        let set = rule(&match kind {
            "filter" => format!("detection_filter: {rest}"),
            kind => format!("threshold: type {kind}, {rest}"),
        });
        let mut time = 0;
        let times: Vec<(u64, [u8; 2], Flow)> = held.iter().map(|(after, src, dst)| {
            time += after;
            let of = match track {
                "by_src" => [*src, 0],
                "by_dst" => [*dst, 0],
                "by_both" => [*src.min(dst), *src.max(dst)],
                _ => [0, 0],
            };
            (time, of, flow(*src, *dst))
        }).collect();
        let mut said = Said::default();
        let found = times.iter().enumerate().map(|(at, (time, _, flow))| {
            if at == saved {
                said.thresholds = Thresholds::from_bytes(&said.thresholds.to_bytes()).expect("whole");
            }
            connection(&set, *flow, *time, &mut said)
        });
        let found: Vec<bool> = found.collect();
        let times: Vec<_> = times.into_iter().map(|(time, of, _)| (time, of)).collect();
        prop_assert_eq!(found, oracle(kind, count, seconds * SECOND, &times));
        prop_assert_eq!(said.counts, braid_signatures::Counts::default());
    }

    #[test]
    fn saved_thresholds(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
        if let Some(read) = Thresholds::from_bytes(&bytes) {
            prop_assert_eq!(read.to_bytes(), bytes);
        }
    }
}

#[test]
fn window_that_ends_first_is_forgotten_and_counted() {
    let set = rule("threshold: type limit, track by_src, count 1, seconds 60");
    let mut said = Said::default();
    let from = |number: usize| Flow { src: number as u128, ..flow(0, 1) };
    for number in 0..limits::MAX_WINDOWS {
        assert!(connection(&set, from(number), number as u64, &mut said));
    }
    // All windows are open, and the first address still has its own.
    assert!(!connection(&set, from(0), 0, &mut said));
    assert_eq!(said.counts.windows, 0);
    assert!(connection(&set, from(limits::MAX_WINDOWS), 1, &mut said));
    assert_eq!(said.counts.windows, 1);
    assert!(connection(&set, from(0), 1, &mut said), "the first one is forgotten");
    // A window that is over is not missed.
    let later = limits::MAX_WINDOWS as u64 + 61 * SECOND;
    assert!(connection(&set, from(limits::MAX_WINDOWS + 1), later, &mut said));
    assert_eq!(said.counts.windows, 2);
}

#[test]
fn closed_windows_give_way_to_open_ones() {
    let rules = "alert tcp any any -> any any (content:\"a\"; \
        threshold:type limit, track by_src, count 1, seconds 3600; sid:1;)\n\
        alert tcp any any -> any any (content:\"b\"; \
        threshold:type limit, track by_src, count 1, seconds 1; sid:2;)";
    let set = load(rules).set;
    let mut said = Said::default();
    let alerts = |number: usize, text: &[u8], time: u64, said: &mut Said| {
        (said.now, said.alerts) = (time, Vec::new());
        let flow = Flow { src: number as u128, ..flow(0, 1) };
        Inspection::default().data(&mut said.by(&set), (flow, true), (0, text));
        said.alerts.len()
    };
    assert_eq!(alerts(0, b"a", 0, &mut said), 1);
    for number in 1..=limits::MAX_WINDOWS + 10 {
        assert_eq!(alerts(number, b"b", number as u64 * SECOND / 50, &mut said), 1);
    }
    assert_eq!((alerts(0, b"a", 3_000 * SECOND, &mut said), said.counts.windows), (0, 0));
}

#[test]
fn another_threshold_begins_a_new_window() {
    let one = rule("threshold: type limit, track by_src, count 1, seconds 100");
    let mut said = Said::default();
    for (other, wanted) in [
        ("threshold: type limit, track by_src, count 3, seconds 1", [true, true, true, false]),
        ("threshold: type limit, track by_src, count 2, seconds 100", [true, true, false, false]),
        ("threshold: type both, track by_src, count 2, seconds 100", [false, true, false, false]),
        ("detection_filter: track by_src, count 2, seconds 100", [false, false, true, true]),
    ] {
        said.thresholds = Thresholds::default();
        assert!(connection(&one, flow(0, 1), 0, &mut said));
        assert!(!connection(&one, flow(0, 1), 1, &mut said));
        let other = rule(other);
        said.thresholds = Thresholds::from_bytes(&said.thresholds.to_bytes()).expect("whole");
        let found = [2, 3, 4, 5].map(|time| connection(&other, flow(0, 1), time, &mut said));
        assert_eq!(found, wanted);
    }
}

#[test]
fn end_of_the_window_belongs_to_it_and_time_may_go_back() {
    let set = rule("threshold: type limit, track by_src, count 1, seconds 10");
    let mut said = Said::default();
    let times = [(5, true), (15, false), (3, false), (16, true), (26, false), (27, true)];
    for (time, alerts) in times {
        assert_eq!(connection(&set, flow(1, 2), time * SECOND, &mut said), alerts, "{time} s");
    }
}

#[test]
fn messages_of_a_connection_count_each_and_streams_once() {
    let text = "alert http any any -> any any (http.uri; content:\"/a\"; \
        threshold:type threshold, track by_dst, count 2, seconds 60; sid:1;)\n\
        alert tcp any any -> any any (content:\"GET\"; \
        threshold:type threshold, track by_dst, count 2, seconds 60; sid:2;)";
    let set = load(text).set;
    let mut said = Said::default();
    let requests = b"GET /a HTTP/1.1\r\n\r\n".repeat(5);
    Inspection::default().data(&mut said.by(&set), (flow(1, 2), true), (0, &requests));
    assert_eq!(said.sids(&set), [1, 1]);
    Inspection::default().data(&mut said.by(&set), (flow(1, 2), true), (0, b"GET"));
    assert_eq!(said.sids(&set), [1, 1, 2]);
}
