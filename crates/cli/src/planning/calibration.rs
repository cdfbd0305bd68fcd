//! The chains that measure what stages cost on this machine.

use braid_bench::overheads::{Chains, overheads};
use braid_ir::chain::Chain;
use braid_lang::Loader;
use braid_sim::Overheads;
use std::time::Duration;

/// Functions that do next to nothing.
const FUNCTIONS: &str = "
nf idle() { state n: u32 global = 0; match { has ip => { n += 1; output; } else => output; } }
nf gate() { state n: u32 global = 0; match {
  has ip => { n += 1; if n == 0 { drop \"none\"; } output; } else => output; } }
nf ttl() { state n: u32 global = 0; match {
  has ip => { n += 1; if ip.ttl > 1 { ip.ttl = ip.ttl - 1; } output; } else => output; } }
";

/// The functions need no files.
struct NoFiles;

impl Loader for NoFiles {
    fn read(&self, path: &str, _: &str) -> Result<Vec<u8>, String> {
        Err(format!("{path} is not there"))
    }
}

/// The time for measuring the machine before a run, and before a simulation.
const LIMITS: [Duration; 2] = [Duration::from_millis(80), Duration::from_millis(300)];

/// Measures what stages cost with the other work that the machine now has: medians.
pub fn now() -> Result<Overheads, String> {
    measure(LIMITS[0], 50)
}

/// Measures what stages cost where other work does not disturb them: 10th percentiles.
pub fn undisturbed() -> Result<Overheads, String> {
    measure(LIMITS[1], 10)
}

fn measure(limit: Duration, percentile: usize) -> Result<Overheads, String> {
    let chains = Chains {
        sequence: chain("gate() <-> idle()")?,
        beside: chain("idle() <-> idle()")?,
        writes: chain("idle() <-> ttl()")?,
    };
    overheads(&chains, limit, percentile)
}

fn chain(path: &str) -> Result<Chain, String> {
    let text = format!(
        "{FUNCTIONS}\nchain c {{ interface lan; interface wan; path lan <-> {path} <-> wan; }}"
    );
    let compiled = braid_lang::compile(("calibration.braid", &text), &[], &NoFiles);
    let chain = compiled.unit.and_then(|mut unit| unit.chains.pop());
    chain.ok_or_else(|| "the functions of the measurement have errors".to_owned())
}
