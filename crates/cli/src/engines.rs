//! The engines that run a chain, by name.

use braid_compiler::parallel::stages::stages;
use braid_engine::{Compiled, Hashing, Jit, Options};
use braid_ir::chain::Chain;
use braid_ir::engine::Engine;
use braid_ir::residual::Extent;
use braid_lang::diag::did_you_mean_help;
use braid_reference::Reference;
use braid_runtime::{Engines, parallel};
use braid_sim::Goal;

use crate::answer::Failure;
use crate::native;

/// The engine that runs unless the user names another.
pub const DEFAULT: &str = "fused";
/// The engine that defines the meaning of chains.
pub const REFERENCE: &str = "reference";

/// Names that stand for a choice between engines, each with a description.
const CHOICES: &[(&str, &str)] = &[
    ("auto", "fused, or parallel:N where measured costs promise more packets a second"),
    ("auto:latency", "the same, where they promise packets that leave sooner"),
];

/// The names of the engines, each with a description.
const ENGINES: &[(&str, &str)] = &[
    ("fused", "the whole chain compiled as one program, with a record for each flow"),
    ("synth", "the same, without flow records"),
    ("sequential", "each function compiled on its own, one after the other"),
    ("parallel", "functions on several threads, each thread as fused; parallel:N for N threads"),
    (REFERENCE, "function by function, interpreted; this engine defines what a chain does"),
];

/// The names of the engines. The reference engine is the last.
pub fn names() -> impl DoubleEndedIterator<Item = &'static str> {
    ENGINES.iter().map(|(name, _)| *name)
}

/// The goal of a name that asks for a choice between run-to-completion and stages: `auto`,
/// `auto:throughput`, `auto:latency`.
pub fn goal(name: &str) -> Option<Goal> {
    match name {
        "auto" | "auto:throughput" => Some(Goal::Throughput),
        "auto:latency" => Some(Goal::Latency),
        _ => None,
    }
}

/// The number of cores, at least 2.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(2, |count| count.get().max(2))
}

/// The most stages that a name of an engine asks for: `parallel`, `parallel:3`.
fn most_stages(name: &str) -> Option<usize> {
    match name.strip_prefix("parallel")? {
        "" => Some(cores()),
        number => number.strip_prefix(':')?.parse().ok().filter(|most| *most > 0),
    }
}

/// Refuses unknown names of engines.
pub fn check(name: &str) -> Result<(), Failure> {
    check_among(name, &[])
}

/// As [`check`], where `auto` was possible, too.
pub fn check_or_auto(name: &str) -> Result<(), Failure> {
    check_among(name, CHOICES)
}

fn check_among(name: &str, choices: &[(&str, &str)]) -> Result<(), Failure> {
    if most_stages(name).is_some() || ENGINES.iter().any(|(known, _)| *known == name) {
        return Ok(());
    }
    let all = || ENGINES.iter().chain(choices);
    let list: Vec<String> = all().map(|(name, what)| format!("  {name}  {what}")).collect();
    let help = did_you_mean_help(name, all().map(|(name, _)| *name));
    let help = help.map_or_else(String::new, |help| format!("; {help}"));
    Err(Failure::usage(format!("there is no engine `{name}`{help}\nengines:\n{}", list.join("\n"))))
}

/// When programs are compiled if many packets will run them.
const SOON: Jit = Jit::After(64);

/// A capture of this size (bytes) has many packets.
const LARGE: u64 = 1 << 24;

/// Makes the engine of this name for a chain over captures, or for each of its workers. `bytes` is
/// the size of the captures.
pub fn offline(name: &str, chain: &Chain, bytes: u64) -> Result<Engines, Failure> {
    let jit = if bytes < LARGE { Jit::default() } else { SOON };
    Engines::new(chain, |chain| with(name, &chain, Options { jit, ..Options::default() }))
}

/// Makes the engine of this name for a live chain, or for each of its workers. No packet waits for
/// the compiler.
pub fn live(name: &str, chain: &Chain) -> Result<Engines, Failure> {
    let options = Options { jit: SOON, workshop: true, ..Options::default() };
    Engines::new(chain, |chain| with(name, &chain, options))
}

/// Makes the engine of this name for a chain. Packets wait while their program is compiled.
pub fn make(name: &str, chain: &Chain) -> Result<Box<dyn Engine>, Failure> {
    with(name, chain, Options::default())
}

/// Makes the engine of this name for a measurement: programs are compiled at their first packet.
pub fn measured(name: &str, chain: &Chain) -> Result<Box<dyn Engine>, Failure> {
    with(name, chain, Options { jit: Jit::After(0), ..Options::default() })
}

fn with(name: &str, chain: &Chain, options: Options) -> Result<Box<dyn Engine>, Failure> {
    check(name)?;
    let (extent, records) = match name {
        "sequential" => (Extent::Function, 0),
        "synth" => (Extent::Chain, 0),
        "fused" => (Extent::Chain, Options::fused().records),
        _ if let Some(most) = most_stages(name) => return in_stages(chain, most, options),
        _ => return Ok(Box::new(reference(chain)?)),
    };
    let engine = Compiled::new(chain.clone(), extent, Options { records, ..options });
    Ok(Box::new(engine.map_err(|why| refused(chain, why))?))
}

/// Makes the engine of a chain in at most this number of stages.
fn in_stages(chain: &Chain, most: usize, options: Options) -> Result<Box<dyn Engine>, Failure> {
    let make = |chain: Chain| with("fused", &chain, options).map_err(Unmade::Chain);
    let made = parallel::engine(chain, &stages(chain, most), parallel::Options::default(), make);
    made.map_err(|unmade| match unmade {
        Unmade::Chain(failure) => failure,
        Unmade::Thread(why) => Failure::input(format!("a stage has no thread: {why}")),
    })
}

/// The reason why there is no engine in stages.
enum Unmade {
    Chain(Failure),
    Thread(std::io::Error),
}

impl From<std::io::Error> for Unmade {
    fn from(why: std::io::Error) -> Self {
        Unmade::Thread(why)
    }
}

/// Makes the engine with flow records, for `flows` and `trace`. Its hash is seeded, so that runs
/// repeat exactly.
pub fn fused(chain: &Chain) -> Result<Compiled, Failure> {
    let options = Options { hash: Hashing::Seeded(0), ..Options::fused() };
    Compiled::new(chain.clone(), Extent::Chain, options).map_err(|why| refused(chain, why))
}

/// Makes the reference engine, which `trace` watches.
pub fn reference(chain: &Chain) -> Result<Reference, Failure> {
    Reference::new(chain.clone()).map_err(|why| refused(chain, why))
}

fn refused(chain: &Chain, why: String) -> Failure {
    // A native function may find another system than when the chain was checked.
    if native::any(chain) {
        return Failure::input(why);
    }
    Failure::inconsistent(format!("the engine refuses a chain that passed its checks: {why}"))
}
