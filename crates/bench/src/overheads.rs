//! Measures what the engine `parallel` costs on this machine besides the work of functions: the
//! hub's work, hops between threads, copies, merges, waking a thread.
//!
//! Functions that do next to nothing run in one stage and in two, in bursts of 1, 8 and 64 packets.
//! The differences of the times are the overheads.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use braid_compiler::parallel::stages::stages;
use braid_ir::chain::Chain;
use braid_packet::frame::SPREAD_FRAME;
use braid_packet::{BURST, Burst, Link, Pool};
use braid_runtime::parallel::{Options, Parallel};
use braid_sim::{Cost, Overheads};

use crate::stages::{Player, Unmade, make};

/// The chains to measure with. Each has two functions that do next to nothing.
pub struct Chains {
    /// The functions run one behind the other.
    pub sequence: Chain,
    /// They run side by side.
    pub beside: Chain,
    /// They run side by side, and the second one writes a field.
    pub writes: Chain,
}

/// What is wrong with a chain that does not have two stages.
const UNDIVIDED: &str = "the functions of the measurement cannot be divided";
/// The length of packets (bytes).
const LENGTH: usize = 64;
/// The lengths of packets whose copies are compared (bytes).
const COPIED: [usize; 2] = [64, 1_500];
/// The number of packets before the measurement.
const BEFORE: usize = 2_048;
/// A pause after which threads sleep.
const PAUSE: Duration = Duration::from_micros(50);
/// The time for which two threads answer each other.
const HOPPING: Duration = Duration::from_millis(3);
/// The numbers of packets of bursts: one, a bundle, and as many as there can be.
const SIZES: [usize; 3] = [1, 8, BURST];

/// Measures the overheads. `limit` is about the time that this takes. `percentile` says which of
/// the measured times count: 50 for the machine with the other work on it, less for the machine
/// without.
///
/// # Errors
/// An engine cannot be made, or a chain cannot be divided.
pub fn overheads(chains: &Chains, limit: Duration, percentile: usize) -> Result<Overheads, String> {
    let of = |times| at(percentile, times);
    let Chains { sequence, beside, writes } = chains;
    let begin = Instant::now();
    let mut fused = Player::of(make(sequence.clone()).map_err(|why| why.0)?, 1, LENGTH)?;
    let mut hub = in_stages(sequence, 1)?;
    let plan = stages(sequence, 2);
    let alone = |at: usize| -> Result<Player, String> {
        let stage = plan.stages.get(at).ok_or(UNDIVIDED)?;
        Player::of(make(stage.chain.clone()).map_err(|why| why.0)?, 1, LENGTH)
    };
    let (mut first, mut second) = (alone(0)?, alone(1)?);
    let mut two = in_stages(sequence, 2)?;
    let mut beside = in_stages(beside, 2)?;
    let mut writes = in_stages(writes, 2)?;
    let mut players =
        [&mut fused, &mut hub, &mut first, &mut second, &mut two, &mut beside, &mut writes];
    for player in &mut players {
        for _ in 0..BEFORE / BURST {
            player.run(BURST);
        }
    }
    let mut times: [[Vec<f64>; 3]; 7] = Default::default();
    let mut woken = Vec::new();
    while woken.len() < 3 || begin.elapsed() < limit && woken.len() < 200 {
        for (player, times) in players.iter_mut().zip(&mut times) {
            for (size, times) in SIZES.into_iter().zip(times) {
                // The first one brings the engine back into the caches.
                player.run(size);
                times.extend((0..4).map(|_| player.run(size)));
            }
        }
        pause(PAUSE);
        woken.push(players[4].run(1));
    }
    let times = times.map(|times| times.map(of));
    let copies = COPIED.map(copying);
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    let byte_ns = (copies[1] - copies[0]).max(0.0) / (COPIED[1] - COPIED[0]) as f64;
    let found = solve(times, of(hopping()));
    let wake_ns = (of(woken) - times[4][0]).max(0.0);
    let sleeps_after_ns = falling_asleep(&mut two, times[4][0], wake_ns);
    Ok(Overheads { byte_ns, sleeps_after_ns, wake_ns, unpark_ns: of(unparking()), ..found })
}

/// The time after which a thread of an engine with two stages sleeps (ns): the shortest pause
/// behind which a packet takes longer than `awake_ns` by half of `wake_ns`.
fn falling_asleep(two: &mut Player, awake_ns: f64, wake_ns: f64) -> f64 {
    let is_asleep = |time: &Duration| {
        let woken = |_| {
            two.run(1);
            pause(*time);
            two.run(1)
        };
        median((0..5).map(woken).collect()) > awake_ns + wake_ns / 2.0
    };
    let found = (1..50).map(Duration::from_micros).find(is_asleep);
    found.unwrap_or(PAUSE).as_secs_f64() * 1e9
}

/// Times until another thread sees what this one has written (ns): two threads answer each other.
fn hopping() -> Vec<f64> {
    let turns = Arc::new(AtomicU32::new(0));
    let until = Instant::now() + HOPPING;
    let other = std::thread::spawn({
        let turns = turns.clone();
        move || while answer(&turns, 1, until) {}
    });
    let mut times = Vec::new();
    let mut start = Instant::now();
    while answer(&turns, 0, until) {
        times.push(nanos(start) / 2.0);
        start = Instant::now();
    }
    drop(other.join());
    times
}

/// Waits for a turn, and passes it on. Returns whether it came in time.
fn answer(turns: &AtomicU32, own: u32, until: Instant) -> bool {
    for spins in 1_u32.. {
        if turns.load(Ordering::Acquire) % 2 == own {
            turns.fetch_add(1, Ordering::AcqRel);
            return true;
        }
        if spins.is_multiple_of(1_024) && Instant::now() > until {
            return false;
        }
        std::hint::spin_loop();
    }
    false
}

/// Times of waking a thread that sleeps, for the one that wakes it (ns).
fn unparking() -> Vec<f64> {
    let ends = Arc::new(AtomicBool::new(false));
    let sleeper = std::thread::spawn({
        let ends = ends.clone();
        move || {
            while !ends.load(Ordering::Relaxed) {
                std::thread::park();
            }
        }
    });
    let unpark = |_| {
        pause(PAUSE);
        let start = Instant::now();
        sleeper.thread().unpark();
        nanos(start)
    };
    let found = (0..30).map(unpark).collect();
    ends.store(true, Ordering::Relaxed);
    sleeper.thread().unpark();
    drop(sleeper.join());
    found
}

/// Lets a time pass.
fn pause(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}

fn nanos(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e9
}

/// The engine of a chain in this number of stages, even if it is one.
fn in_stages(chain: &Chain, most: usize) -> Result<Player, String> {
    let plan = stages(chain, most);
    if plan.stages.len() != most || plan.routes.is_empty() {
        return Err(UNDIVIDED.to_owned());
    }
    let engine = Parallel::new::<Unmade>(chain, &plan, Options::default(), make);
    Player::of(Box::new(engine.map_err(|why| why.0)?), most, LENGTH)
}

/// The overheads that explain times (ns), by engine and by size of bursts. The engines are: `fused`
/// with both functions, the same as one stage behind the hub, `fused` with each function alone, and
/// two stages: in sequence, side by side, and side by side with one that writes. `hop_ns` is the
/// time until another thread sees a cache line.
fn solve(
    [fused, one, first, second, two, beside, writes]: [[f64; 3]; 7],
    hop_ns: f64,
) -> Overheads {
    let both = |found: &dyn Fn(usize) -> f64| Cost::line(found(0), found(1));
    // A burst of 64 packets has 8 bundles.
    let packet_ns = both(&|at| one[at] - fused[at]).packet_ns;
    let hub = |at: usize| one[at] - fused[at];
    let bundle_ns = ((one[2] - 8.0 * fused[1] - hub(1) - 56.0 * packet_ns) / 7.0).max(0.0);
    let burst_ns = (hub(0) - bundle_ns - packet_ns).max(0.0);
    // A bundle moves to the second stage and back.
    let moves = |at: usize| (two[at] - hub(at) - first[at] - second[at]).max(0.0);
    let moved = both(&moves);
    let hop_ns = hop_ns.min(moved.call_ns / 2.0);
    // Side by side, the hub runs its function while the other one is away.
    let copy = both(&|at| beside[at] - hub(at) - moves(at) - second[at]);
    Overheads {
        burst_ns,
        bundle_ns,
        packet_ns,
        hop_ns,
        taken_ns: moved.call_ns / 2.0 - hop_ns,
        moved_ns: moved.packet_ns / 2.0,
        copy_ns: copy.call_ns,
        copied_ns: copy.packet_ns,
        write_ns: ((writes[1] - beside[1]) / 8.0).max(0.0),
        ..Overheads::default()
    }
}

/// The time to copy the bytes of a packet into a frame (ns).
fn copying(bytes: usize) -> f64 {
    let packet = vec![0; bytes];
    let room = u32::try_from(2 * BURST).unwrap_or(u32::MAX);
    let Some(mut pool) = Pool::new(room, SPREAD_FRAME) else { return 0.0 };
    let mut burst = Burst::new();
    let mut times = Vec::new();
    for _ in 0..100 {
        let start = Instant::now();
        for time_ns in 0..BURST as u64 {
            burst.add(Link::Ethernet, time_ns, black_box(&packet), 0, &mut pool);
        }
        times.push(nanos(start) / BURST as f64);
        burst.recycle(&mut pool);
    }
    median(times)
}

fn median(all: Vec<f64>) -> f64 {
    at(50, all)
}

/// A percentile.
fn at(percentile: usize, mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all.get(all.len() * percentile / 100).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use braid_runtime::parallel::Options;

    #[test]
    fn simulated_bursts_and_bundles_are_as_large_as_real_ones() {
        assert_eq!(braid_sim::BURST, braid_packet::BURST);
        assert_eq!(braid_sim::BUNDLE, Options::default().bundle);
    }
}
