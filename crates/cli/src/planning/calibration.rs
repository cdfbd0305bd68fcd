//! The chains that measure what stages cost on this machine.

use braid_bench::overheads::{Chains, overheads};
use braid_ir::chain::Chain;
use braid_lang::Loader;
use braid_sim::Overheads;
use std::time::Duration;

/// The time that the measurement takes in a command that has time.
pub const LIMIT: Duration = Duration::from_millis(300);

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

/// Measures the overheads of stages. `limit` is about the time that this takes.
pub fn measure(limit: Duration) -> Result<Overheads, String> {
    let chains = Chains {
        sequence: chain("gate() <-> idle()")?,
        beside: chain("idle() <-> idle()")?,
        writes: chain("idle() <-> ttl()")?,
    };
    overheads(&chains, limit)
}

fn chain(path: &str) -> Result<Chain, String> {
    let text = format!(
        "{FUNCTIONS}\nchain c {{ interface lan; interface wan; path lan <-> {path} <-> wan; }}"
    );
    let compiled = braid_lang::compile(("calibration.braid", &text), &[], &NoFiles);
    let chain = compiled.unit.and_then(|mut unit| unit.chains.pop());
    chain.ok_or_else(|| "the functions of the measurement have errors".to_owned())
}
