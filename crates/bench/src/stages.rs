//! Measures functions in stages: how long a packet takes, and how many packets get through, in
//! sequence and on several threads (NFP, Sun et al., SIGCOMM 2017, Figures 7, 9 and 11).
//!
//! Unlike other benches, this one needs several cores, and it measures elapsed time.

use std::hint::black_box;
use std::time::Instant;

use braid_compiler::parallel::stages::stages;
use braid_engine::{Compiled, Jit, Options};
use braid_ir::chain::Chain;
use braid_ir::engine::Engine;
use braid_ir::residual::Extent;
use braid_packet::frame::SPREAD_FRAME;
use braid_packet::{BURST, Burst, Field, Link, Packet, Pool, Shape, build_fresh};
use braid_runtime::parallel;

use crate::subject::Nowhere;

/// The number of flows.
const FLOWS: u32 = 64;
/// The number of packets before the measurement.
const BEFORE: usize = 20_000;
/// The number of packets that pass alone in a trial.
const ALONE: usize = 500;

/// A chain in at most this number of stages.
pub struct Subject {
    /// Its name in reports.
    pub name: String,
    /// The chain.
    pub chain: Chain,
    /// The most stages. With 1, the engine `fused` runs the chain.
    pub most: usize,
    /// The length of its packets (bytes).
    pub length: usize,
}

/// What was measured of a subject.
pub struct Measured {
    /// The number of stages.
    pub stages: usize,
    /// The time of a packet that passes alone (ns): the 10th, 50th and 90th percentile.
    pub alone_ns: [f64; 3],
    /// The time of a packet in bursts (ns): the same percentiles of trials.
    pub burst_ns: [f64; 3],
}

/// A subject at work.
pub(crate) struct Player {
    engine: Box<dyn Engine>,
    stages: usize,
    frames: Vec<Packet>,
    burst: Burst,
    pool: Pool,
    next: usize,
    now_ns: u64,
    alone: Vec<f64>,
    bursts: Vec<f64>,
}

/// Measures subjects in turn. `trials` is the number of trials of each, and `packets` is the number
/// of packets of a trial.
///
/// # Errors
/// Returns an error when an engine refuses a chain.
pub fn measure(
    subjects: &[Subject],
    trials: usize,
    packets: usize,
) -> Result<Vec<Measured>, String> {
    let mut players: Vec<Player> = subjects.iter().map(Player::new).collect::<Result<_, _>>()?;
    for player in &mut players {
        for _ in 0..BEFORE / BURST {
            player.run(BURST);
        }
    }
    for _ in 0..trials {
        for player in &mut players {
            let bursts = (packets / BURST).max(1);
            let nanos: f64 = (0..bursts).map(|_| player.run(BURST)).sum();
            #[expect(clippy::cast_precision_loss, reason = "small numbers")]
            player.bursts.push(nanos / (bursts * BURST) as f64);
            for _ in 0..ALONE {
                let nanos = player.run(1);
                player.alone.push(nanos);
            }
        }
    }
    Ok(players.into_iter().map(Player::measured).collect())
}

impl Player {
    fn new(subject: &Subject) -> Result<Self, String> {
        let plan = stages(&subject.chain, subject.most);
        let options = parallel::Options::default();
        let engine = parallel::engine(&subject.chain, &plan, options, make).map_err(|why| why.0)?;
        Self::of(engine, plan.stages.len().max(1), subject.length)
    }

    /// An engine with this number of stages, and packets of a length.
    pub(crate) fn of(
        engine: Box<dyn Engine>,
        stages: usize,
        length: usize,
    ) -> Result<Self, String> {
        let frames = (0..FLOWS).map(|flow| frame(flow, length)).collect::<Option<_>>();
        let room = u32::try_from(2 * BURST).unwrap_or(u32::MAX);
        Ok(Self {
            engine,
            stages,
            frames: frames.ok_or("no packets of this length")?,
            burst: Burst::new(),
            pool: Pool::new(room, SPREAD_FRAME).ok_or("no memory for packets")?,
            next: 0,
            now_ns: 1_000_000_000,
            alone: Vec::new(),
            bursts: Vec::new(),
        })
    }

    /// Runs a burst of packets. Returns its time (ns).
    pub(crate) fn run(&mut self, count: usize) -> f64 {
        for _ in 0..count {
            self.next = (self.next + 1) % self.frames.len();
            self.now_ns += 1_000;
            let packet = &self.frames[self.next];
            self.burst.add(packet.link, self.now_ns, packet.data(), 0, &mut self.pool);
        }
        let start = Instant::now();
        self.engine.burst(black_box(&mut self.burst), &mut Nowhere);
        let time = start.elapsed();
        self.burst.recycle(&mut self.pool);
        time.as_secs_f64() * 1e9
    }

    fn measured(mut self) -> Measured {
        let Self { stages, .. } = self;
        let [alone_ns, burst_ns] = [&mut self.alone, &mut self.bursts].map(|all| percentiles(all));
        Measured { stages, alone_ns, burst_ns }
    }
}

/// The 10th, 50th and 90th percentile.
fn percentiles(all: &mut [f64]) -> [f64; 3] {
    all.sort_by(f64::total_cmp);
    [1, 5, 9].map(|tenth| all.get(all.len() * tenth / 10).copied().unwrap_or(f64::NAN))
}

/// A packet of a flow.
fn frame(flow: u32, length: usize) -> Option<Packet> {
    let fields = [
        (Field::IpSrc, u128::from(0x0a00_0000 + flow)),
        (Field::IpDst, u128::from(0xc000_0201_u32)),
        (Field::IpTtl, 64),
        (Field::UdpSport, u128::from(1_000 + flow)),
        (Field::UdpDport, 53),
    ];
    let payload = vec![b'x'; length.saturating_sub(42)];
    build_fresh(Link::Ethernet, 0, Shape::Udp4, &fields, &payload)
}

/// Makes the engine `fused` of a chain, whose programs are compiled at their first packet.
pub(crate) fn make(chain: Chain) -> Result<Box<dyn Engine>, Unmade> {
    let options = Options { jit: Jit::After(0), ..Options::fused() };
    Ok(Box::new(Compiled::new(chain, Extent::Chain, options).map_err(Unmade)?))
}

/// The reason why there is no engine.
pub(crate) struct Unmade(pub(crate) String);

impl From<std::io::Error> for Unmade {
    fn from(why: std::io::Error) -> Self {
        Unmade(why.to_string())
    }
}
