//! `braid sim --compare`: the same runs on this machine.

use std::time::Duration;

use braid_bench::costs::elapsed;
use braid_ir::chain::Chain;
use braid_packet::BURST;
use braid_sim::Load;

use super::rows::{Real, Row};
use crate::answer::Failure;
use crate::engines;
use crate::planning::sample::Sample;

/// The time of a run.
const LIMIT: Duration = Duration::from_millis(300);

/// Adds real runs to the rows of stages for which this machine has cores.
pub fn add(rows: &mut [Row], chain: &Chain, sample: &Sample) -> Result<(), Failure> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    for row in rows.iter_mut().filter(|row| row.stages <= cores) {
        let engine = match row.stages {
            1 => engines::measured("fused", chain)?,
            stages => engines::measured(&format!("parallel:{stages}"), chain)?,
        };
        let size = if row.load == Load::Alone { 1 } else { BURST };
        let packet_ns = elapsed(engine, &sample.packets, size, LIMIT).map_err(Failure::input)?;
        let difference = row.predicted.packet_ns / packet_ns - 1.0;
        row.real = Some(Real { packet_ns, difference });
    }
    Ok(())
}
