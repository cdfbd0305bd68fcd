//! Runs the checks of the fuzz targets `chain`, `engines`, `headers`, `tcp_options`, `state` and
//! `requests` on random input.

use braid_testkit::generate::Rng;
use braid_testkit::harness::budget;
use braid_testkit::{hostile, requests, saved};

/// Runs a check of hostile packets on random bytes.
fn on_random_bytes(cases: u64, check: impl Fn(&[u8]) -> Result<(), String>) {
    for seed in budget::seeds(cases) {
        let mut rng = Rng::new(seed ^ 0x686f_7374);
        let bytes: Vec<u8> = (0..rng.below(400)).map(|_| rng.byte()).collect();
        if let Err(report) = check(&bytes) {
            panic!("seed {seed}, {bytes:?}: {report}");
        }
    }
}

#[test]
fn engines_are_equal_on_hostile_packets() {
    on_random_bytes(40, hostile::check);
}

#[test]
fn engines_of_users_are_equal_on_hostile_packets() {
    on_random_bytes(20, hostile::check_users);
}

#[test]
fn engines_are_equal_on_hostile_headers_and_options() {
    on_random_bytes(40, hostile::check_headers);
    on_random_bytes(40, hostile::check_tcp_options);
}

#[test]
fn engines_are_equal_after_changed_states() {
    for seed in budget::seeds(40) {
        let mut rng = Rng::new(seed ^ 0x7361_7665);
        let mut bytes: Vec<u8> = (0..2 + 3 * rng.below(4)).map(|_| rng.byte()).collect();
        // Any bytes alone hardly ever are a state.
        bytes[1] &= 0xfe;
        if let Err(report) = saved::check(&bytes) {
            panic!("seed {seed}, {bytes:?}: {report}");
        }
    }
}

#[test]
fn run_answers_after_any_requests_or_ends() {
    let verbs = ["status", "counters", "state", "flows", "change", "events", "reload", "trace"];
    for seed in budget::seeds(10) {
        let mut rng = Rng::new(seed ^ 0x7265_7175);
        let mut lines = String::new();
        for _ in 0..rng.below(6) {
            let (verb, number) = (rng.pick(&verbs), rng.byte());
            let given = *rng.pick(&["\"text\":true", "\"limit\":5", "\"plan\":true", "\"x\":1"]);
            lines += &format!("{{\"do\":\"{verb}\",{given},\"from\":{number}}}\n");
            lines += &format!("{{\"do\":\"{verb}\"}}\n");
        }
        requests::check(lines.as_bytes()).unwrap_or_else(|why| panic!("{lines}: {why}"));
    }
    requests::check(b"{\"do\":\"stop\"}\n").expect("the run ends");
    requests::check(b"\xff\n{}\n").expect("a new run answers");
}
