//! The engines that are compared with the reference engine, and the way they run.

use crate::compare::{Mismatch, Report, check, difference};
use crate::record::{Detail, Stimulus, Trace, record, record_bursts};
use crate::rng::Rng;
use braid_compiler::parallel::stages::stages;
use braid_engine::{Compiled, Hashing, Jit, Options};
use braid_ir::chain::Chain;
use braid_ir::engine;
use braid_ir::residual::Extent;
use braid_reference::Reference;
use braid_runtime::parallel;
use std::fmt;

/// An engine's configuration, and the way it receives packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Engine {
    extent: Extent,
    jit: Jit,
    /// The most flow records.
    records: usize,
    /// The most packets in a burst. `None`: one by one.
    burst: Option<usize>,
    hash: Hashing,
    /// Whether records are made at once, even if they do not pay.
    eager: bool,
    /// Whether a thread of its own compiles.
    workshop: bool,
    /// The most stages, if each of them has such an engine.
    stages: Option<Stages>,
}

/// How a chain is divided into stages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stages {
    /// The most stages.
    pub most: usize,
    /// The most packets in a bundle.
    pub bundle: usize,
    /// The seed of delays between stages.
    pub stalls: Option<u64>,
}

const fn engine(extent: Extent, jit: Jit, burst: Option<usize>) -> Engine {
    Engine {
        extent,
        jit,
        records: 0,
        burst,
        hash: Hashing::Drawn,
        eager: true,
        workshop: false,
        stages: None,
    }
}

/// The engine `fused` with room for this number of flow records.
const fn fused(records: usize, jit: Jit, burst: Option<usize>) -> Engine {
    Engine {
        extent: Extent::Chain,
        jit,
        records,
        burst,
        hash: Hashing::Drawn,
        eager: true,
        workshop: false,
        stages: None,
    }
}

/// The engines for cases, captures and library functions.
pub const ENGINES: &[Engine] = &[
    engine(Extent::Function, Jit::Off, None),
    engine(Extent::Chain, Jit::Off, None),
    engine(Extent::Function, Jit::After(0), None),
    engine(Extent::Chain, Jit::After(0), None),
    engine(Extent::Function, Jit::After(0), Some(32)),
    engine(Extent::Chain, Jit::After(0), Some(32)),
    fused(1 << 16, Jit::Off, None),
    fused(1 << 16, Jit::After(0), Some(32)),
    fused(1 << 16, Jit::After(0), Some(32)).workshop(),
    fused(1 << 16, Jit::Off, Some(64)).in_stages(3, 5),
];

/// An engine with the options of users.
const fn user(extent: Extent, records: usize, burst: Option<usize>) -> Engine {
    let jit = Jit::After(500);
    Engine { eager: false, ..engine(extent, jit, burst).with_records(records) }
}

/// The engines with the options of users. Records are made at a flow's fourth packet if they pay,
/// and few packets are sampled if hardly any flow sends more.
pub const USERS: &[Engine] = &[
    user(Extent::Chain, 1 << 20, Some(32)),
    user(Extent::Chain, 1 << 20, Some(32)).workshop(),
    user(Extent::Chain, 1 << 20, None),
    user(Extent::Chain, 0, Some(32)),
    user(Extent::Function, 0, Some(32)),
    user(Extent::Chain, 1 << 20, Some(64)).in_stages(2, 16),
];

/// The engines for hostile packets.
pub const HOSTILE: &[Engine] = &[
    fused(1 << 16, Jit::After(0), Some(32)),
    fused(1 << 16, Jit::Off, None),
    fused(2, Jit::After(3), Some(7)),
    fused(1 << 16, Jit::After(0), Some(32)).workshop(),
    user(Extent::Chain, 1 << 20, Some(32)),
    engine(Extent::Chain, Jit::After(0), Some(32)),
    engine(Extent::Function, Jit::After(0), None),
];

impl Engine {
    /// The engines for a generated chain, run in a way that the seed chooses.
    /// - There is always `synth`, which runs the programs of several functions combined, or
    ///   `fused`, which also makes flow records. Every other time there is also `sequential`.
    /// - Packets come one by one or in bursts.
    /// - Programs are interpreted or, with `machine_code`, run as machine code from the first or a
    ///   later packet on.
    /// - Sometimes all hashes are equal.
    /// - One of eight compiles on a thread of its own, so that runs differ in when programs are
    ///   there.
    /// - Every third time, one more engine runs the chain in stages.
    /// - One of four makes records at the same time as users' engines.
    #[must_use]
    pub fn drawn(seed: u64, machine_code: bool) -> Vec<Self> {
        let mut rng = Rng::new(seed ^ 0x656e_6769_6e65_7321);
        let eager = !Rng::new(seed ^ 0x6561_6765_7221).one_in(4);
        let workshop = Rng::new(seed ^ 0x6173_6964_6521).one_in(8);
        let extents =
            if rng.one_in(2) { &[Extent::Chain][..] } else { &[Extent::Function, Extent::Chain] };
        let engines = extents.iter().map(|extent| {
            let records = match extent {
                Extent::Function => 0,
                _ => *rng.pick(&[0, 0, 0, 2, 1 << 16, 1 << 16]),
            };
            let jit = if machine_code { Jit::After(*rng.pick(&[0, 3, 8])) } else { Jit::Off };
            let burst = *rng.pick(&[None, None, Some(32), Some(32), Some(7), Some(64)]);
            let hash = if rng.one_in(8) { Hashing::Colliding } else { Hashing::Seeded(seed) };
            Engine { extent: *extent, jit, records, burst, hash, eager, workshop, stages: None }
        });
        let mut engines: Vec<Engine> = engines.collect();
        let staged = engines.first().filter(|_| seed.is_multiple_of(3)).copied();
        let mut rng = Rng::new(seed ^ 0x7374_6167_6573);
        engines.extend(staged.map(|engine| {
            let (most, bundle) = (*rng.pick(&[2, 2, 3, 8]), *rng.pick(&[1, 3, 16, 64]));
            let stalls = rng.one_in(4).then_some(seed);
            Engine { stages: Some(Stages { most, bundle, stalls }), ..engine }
        }));
        engines
    }

    /// The same engine, which compiles on a thread of its own.
    const fn workshop(self) -> Self {
        Self { workshop: true, ..self }
    }

    /// The same engine with this number of flow records.
    const fn with_records(self, records: usize) -> Self {
        Self { records, ..self }
    }

    /// The same engine in each of several stages.
    #[must_use]
    pub const fn in_stages(self, most: usize, bundle: usize) -> Self {
        Self { stages: Some(Stages { most, bundle, stalls: None }), ..self }
    }

    /// The same engine with delays between its stages.
    #[must_use]
    pub fn stalled(self, seed: u64) -> Self {
        let stages = self.stages.map(|stages| Stages { stalls: Some(seed), ..stages });
        Self { stages, ..self }
    }

    /// The same engine with another hash, unless all its hashes are equal.
    #[must_use]
    pub fn hashed(self, seed: u64) -> Self {
        match self.hash {
            Hashing::Colliding => self,
            _ => Self { hash: Hashing::Seeded(seed), ..self },
        }
    }

    /// Whether it makes machine code, which takes long in unoptimised builds.
    #[must_use]
    pub fn has_machine_code(&self) -> bool {
        self.jit != Jit::Off
    }

    /// Whether a thread of its own compiles.
    #[must_use]
    pub fn has_workshop(&self) -> bool {
        self.workshop
    }

    /// The engine for a chain, in stages if it has any.
    ///
    /// # Panics
    /// When the engine refuses the chain. It never refuses chains from the language.
    #[must_use]
    pub fn make(&self, chain: &Chain) -> Box<dyn engine::Engine> {
        let Some(Stages { most, bundle, stalls }) = self.stages else {
            return Box::new(self.compiled(chain));
        };
        // The hub runs the stages of processes if bundles are even, and threads do otherwise.
        let cores = if bundle.is_multiple_of(2) { 1 } else { usize::MAX };
        let options = parallel::Options { bundle, stalls, cores, ..parallel::Options::default() };
        let make = |chain: Chain| -> Result<Box<dyn engine::Engine>, std::io::Error> {
            Ok(Box::new(self.compiled(&chain)))
        };
        match parallel::engine(chain, &stages(chain, most), options, make) {
            Ok(engine) => engine,
            Err(error) => panic!("{self} has no threads: {error}"),
        }
    }

    /// The engine for a chain, without stages.
    ///
    /// # Panics
    /// As [`Self::make`].
    #[must_use]
    pub fn compiled(&self, chain: &Chain) -> Compiled {
        let (extent, options) = self.options();
        match Compiled::new(chain.clone(), extent, options) {
            Ok(engine) => engine,
            Err(error) => panic!("{self} refuses a chain: {error}"),
        }
    }

    /// The most packets in a burst. `None`: packets come one by one.
    #[must_use]
    pub fn burst(&self) -> Option<usize> {
        self.burst
    }

    /// Whether it makes flow records.
    #[must_use]
    pub fn has_records(&self) -> bool {
        self.records > 0
    }

    /// The same engine, which makes records at once and even if they do not pay.
    #[must_use]
    pub fn eagerly(self) -> Self {
        Self { eager: true, ..self }
    }

    /// The extent of its programs, and its options.
    #[must_use]
    pub fn options(&self) -> (Extent, Options) {
        let Self { extent, jit, records, hash, eager, workshop, .. } = *self;
        (extent, Options { jit, records, eager, hash, workshop })
    }

    /// Checks that it does on these stimuli what the reference engine did.
    ///
    /// # Errors
    /// The first difference, with a smallest set of stimuli that shows it.
    pub fn check(
        &self,
        chain: &Chain,
        stimuli: &[Stimulus],
        expected: &Trace,
    ) -> Result<(), String> {
        self.compare(chain, stimuli, expected)
            .map_err(|report| format!("reference and {self}: {report}"))
    }

    /// Does the same as [`Self::check`].
    ///
    /// # Errors
    /// The first difference, together with its stimuli.
    pub fn compare(
        &self,
        chain: &Chain,
        stimuli: &[Stimulus],
        expected: &Trace,
    ) -> Result<(), Box<Report>> {
        let wrong =
            |stimuli: &[Stimulus], expected: &Trace| self.difference(chain, stimuli, expected);
        check(chain, &reference, &wrong, stimuli, expected)
    }

    fn difference(
        &self,
        chain: &Chain,
        stimuli: &[Stimulus],
        expected: &Trace,
    ) -> Option<Mismatch> {
        self.difference_of(self.make(chain).as_mut(), stimuli, expected)
    }

    /// The difference between an engine and the expected trace. Packets are handed to the engine as
    /// to this one.
    #[must_use]
    pub fn difference_of(
        &self,
        engine: &mut dyn engine::Engine,
        stimuli: &[Stimulus],
        expected: &Trace,
    ) -> Option<Mismatch> {
        match self.burst {
            None => difference(expected, &record(engine, stimuli, Detail::End)),
            Some(most) => difference(expected, &record_bursts(engine, stimuli, most)),
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.extent {
            Extent::Function => "sequential",
            _ if self.records > 0 => "fused",
            _ => "synth",
        })?;
        if let Jit::After(packets) = self.jit {
            write!(f, ", machine code after {packets} packets")?;
        }
        if self.records > 0 && !self.eager {
            f.write_str(", records as users get them")?;
        }
        if self.workshop {
            f.write_str(", with a workshop")?;
        }
        if self.hash == Hashing::Colliding {
            f.write_str(", all hashes equal")?;
        }
        if let Some(Stages { most, bundle, stalls }) = self.stages {
            let with = if stalls.is_some() { ", with stalls" } else { "" };
            write!(f, ", in at most {most} stages with bundles of {bundle}{with}")?;
        }
        match self.burst {
            Some(most) => write!(f, ", in bursts of {most}"),
            None => Ok(()),
        }
    }
}

/// The reference engine.
///
/// # Panics
/// When the engine refuses the chain. It never refuses chains from the language.
#[must_use]
pub fn reference(chain: &Chain) -> Box<dyn engine::Engine> {
    match Reference::new(chain.clone()) {
        Ok(engine) => Box::new(engine),
        Err(error) => panic!("the reference engine refuses a chain: {error}"),
    }
}
