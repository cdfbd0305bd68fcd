//! Tests that rate limiters keep their rate to within a burst, for any rate and tick (NFD, figure
//! 11: if more than the rate is offered, the rate passes).

use braid_testkit::generate::Rng;
use braid_testkit::harness::{self, Form};
use braid_testkit::packet::udp;
use braid_testkit::record::{Output, Stimulus, step};
use std::collections::BTreeMap;

/// Bits times nanoseconds per second in a byte.
const BYTE: u128 = 8_000_000_000;

/// A limiter to test.
#[derive(Clone, Copy)]
struct Limit {
    /// The rate in bit/s.
    rate: u64,
    /// The burst in bytes.
    burst: u64,
    /// The period in which tokens arrive (ns). `None`: tokens arrive continuously, for each source.
    tick_ns: Option<u64>,
}

/// An offered packet: its time (ns), its bytes, and whether it passed.
type Offer = (u64, u64, bool);

impl Limit {
    fn chain(self) -> String {
        let Limit { rate, burst, tick_ns } = self;
        let function = match tick_ns {
            Some(tick) => {
                format!("rate_limiter(rate: {rate} bit/s, burst: {burst} B, tick: {tick} ns)")
            }
            None => format!("source_rate_limiter(rate: {rate} bit/s, burst: {burst} B)"),
        };
        format!("chain limited {{ path {function}; }}")
    }

    /// Offers packets of odd sizes for this time, at `load` times the rate.
    fn offer(self, load: u64, for_ns: u64) -> Vec<Offer> {
        let chain = harness::compile(&self.chain(), &BTreeMap::new(), Form::AsWritten);
        let chain = chain.unwrap_or_else(|errors| panic!("{errors}"));
        let mut engine = harness::reference(&chain);
        let mut rng = Rng::new(self.rate);
        let (mut now, mut offers) = (0, Vec::new());
        while now < for_ns {
            let payload = rng.below(400);
            let packet = udp("10.0.0.1:1 > 10.0.0.2:2").payload(&vec![0; payload]).at(now);
            let bytes = u64::from(packet.wire_len);
            let out = step(engine.as_mut(), &Stimulus::Packet(0, packet));
            offers.push((now, bytes, matches!(out[..], [Output::Packet(..)])));
            now += bytes * 8_000_000_000 / (self.rate * load);
        }
        offers
    }

    /// The tokens that the rate adds in a time, rounded down to ticks (bits × ns per second).
    fn brings(self, ns: u64) -> u128 {
        let tick = self.tick_ns.unwrap_or(1);
        u128::from(self.rate) * u128::from(ns / tick * tick)
    }
}

/// The limits: 1.25 bytes per tick; less than a byte per tick; a prime rate with a prime tick; the
/// default with whole ticks; continuous tokens.
const LIMITS: [Limit; 5] = [
    Limit { rate: 1_000_000, burst: 2000, tick_ns: Some(10_000) },
    Limit { rate: 64_000, burst: 1000, tick_ns: Some(50_000) },
    Limit { rate: 999_983, burst: 1500, tick_ns: Some(99_991) },
    Limit { rate: 10_000_000, burst: 65_536, tick_ns: Some(10_000_000) },
    Limit { rate: 999_983, burst: 1500, tick_ns: None },
];

#[test]
fn limiters_never_let_more_pass_than_burst_and_rate() {
    for limit in LIMITS {
        let mut passed = 0_u128;
        for (now, bytes, passes) in limit.offer(3, 1_000_000_000) {
            passed += u128::from(passes) * u128::from(bytes) * BYTE;
            let most = u128::from(limit.burst) * BYTE + limit.brings(now);
            assert!(passed <= most, "{} bit/s at {now} ns: {passed} > {most}", limit.rate);
        }
    }
}

#[test]
fn limiters_let_all_pass_that_the_rate_brings() {
    // The offered load is always too high, so a bucket never becomes full again and no token is
    // lost. Every token is used, except a rest too small for the next packet.
    for limit in LIMITS {
        let (mut passed, mut dropped) = (0_u128, 0);
        for (now, bytes, passes) in limit.offer(3, 1_000_000_000) {
            if passes {
                passed += u128::from(bytes) * BYTE;
                continue;
            }
            dropped += 1;
            let came = u128::from(limit.burst) * BYTE + limit.brings(now);
            let left = came - passed;
            assert!(left < u128::from(bytes) * BYTE, "{} bit/s at {now} ns: {left}", limit.rate);
        }
        assert!(dropped > 20, "{} bit/s: too little was offered", limit.rate);
    }
}

#[test]
fn a_megabit_in_ticks_of_ten_microseconds_is_125_000_bytes_a_second() {
    let limit = LIMITS[0];
    let passed: u64 =
        limit.offer(2, 2_000_000_000).iter().filter(|offer| offer.2).map(|offer| offer.1).sum();
    // The rate gives 250,000 bytes in two seconds, and the burst 2,000. Two amounts may be missing:
    // less than a packet of at most 441 bytes, and the tokens after the last packet, which comes at
    // most 441 × 8 bits / 2 Mbit/s before the end.
    assert!((252_000 - 441 - 221..=252_000).contains(&passed), "{passed}");
}
