//! Loads: when packets come. What a load shows: throughput and latency.

use crate::cost::Cost;
use braid_externs::Rng;
use serde::Serialize;

/// The most packets of a burst.
pub const BURST: usize = 64;

/// When packets come.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Load {
    /// Each packet comes when the one before it has left.
    Alone,
    /// There are always packets that wait: bursts are full.
    Saturated,
    /// This number of packets in a second on average, independent of each other (a Poisson
    /// process). A burst has the packets that have come by then, at most 64. None is lost.
    Rate(f64),
}

/// What a simulation has found.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Predicted {
    /// The time of a packet on average (ns): the whole time divided by the packets.
    pub packet_ns: f64,
    /// From the arrival of a packet until the engine gives its burst back. Where packets always
    /// wait, a packet arrives when its burst begins.
    pub latency: Latency,
}

/// Times of packets (ns).
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Latency {
    /// The mean.
    pub mean_ns: f64,
    /// The median.
    pub p50_ns: f64,
    /// The 99th percentile.
    pub p99_ns: f64,
}

/// A chain that one core runs to completion.
#[must_use]
pub fn run_to_completion(cost: Cost, load: Load, packets: usize) -> Predicted {
    drive(load, packets, |start, _, count| {
        #[expect(clippy::cast_precision_loss, reason = "at most 64")]
        let packets = count as f64;
        start + cost.call(packets)
    })
}

/// Lets packets come. `burst` takes the time at which a burst begins, the number of its first
/// packet, and the number of its packets. It returns the time at which the burst is done.
#[expect(clippy::cast_precision_loss, reason = "memory does not hold that many packets")]
pub(crate) fn drive(
    load: Load,
    packets: usize,
    mut burst: impl FnMut(f64, usize, usize) -> f64,
) -> Predicted {
    let arrivals = arrivals(load, packets);
    let mut latencies = Vec::with_capacity(packets);
    let (mut now, mut first) = (0.0_f64, 0);
    while first < packets {
        let count = match arrivals.get(first) {
            Some(next) => {
                now = now.max(*next);
                arrivals[first..].iter().take(BURST).take_while(|time| **time <= now).count()
            }
            None if load == Load::Alone => 1,
            None => BURST.min(packets - first),
        };
        let end = burst(now, first, count);
        latencies.extend((first..first + count).map(|at| end - arrivals.get(at).unwrap_or(&now)));
        (now, first) = (end, first + count);
    }
    let count = latencies.len().max(1) as f64;
    let mean_ns = latencies.iter().sum::<f64>() / count;
    latencies.sort_by(f64::total_cmp);
    let percentile = |percent: usize| {
        let at = (latencies.len() * percent).div_ceil(100).saturating_sub(1);
        latencies.get(at).copied().unwrap_or(0.0)
    };
    let latency = Latency { mean_ns, p50_ns: percentile(50), p99_ns: percentile(99) };
    let begin = arrivals.first().copied().unwrap_or(0.0);
    Predicted { packet_ns: (now - begin) / count, latency }
}

/// The times at which packets come (ns), if the load says them.
fn arrivals(load: Load, packets: usize) -> Vec<f64> {
    let Load::Rate(rate) = load else { return Vec::new() };
    let (mut rng, mut now) = (Rng::new(1), 0.0);
    let next = || {
        // From 53 bits: more than 0, at most 1.
        #[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
        let share = ((rng.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        now -= share.ln() * 1e9 / rate;
        now
    };
    std::iter::repeat_with(next).take(packets).collect()
}
