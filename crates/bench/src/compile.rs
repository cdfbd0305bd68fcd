//! Measures the cost of compiling: the time until the first packets have been processed, and the
//! largest memory until then.

use braid_packet::BURST;
use std::time::Instant;

use crate::definition::{Case, Definition};
use crate::feed::Feed;
use crate::report::Row;
use crate::setup::{Compile, Given};
use crate::subject::Kind;
use crate::{Error, machine};

/// Number of packets after which all programs that a case needs have been compiled.
const FIRST_PACKETS: u64 = 4_096;

/// Compiles a case for one engine. The memory is the peak of the whole process since it started, so
/// a process should call this only once.
///
/// # Errors
/// Returns an error when the chain is wrong or the engine refuses it.
pub fn measure(
    definition: &Definition,
    case: &Case,
    given: &Given,
    compile: &Compile,
    kind: Kind,
) -> Result<Row, Error> {
    let setup = definition.set_up(case, given, compile)?;
    let start = Instant::now();
    let refused = |why| Error::Chain { name: definition.name.clone(), why };
    let mut engine = kind.make(&setup.chain, case.flows).map_err(refused)?;
    let mut cursor = setup.ring.cursor(u64::MAX);
    let mut feed = Feed::new();
    for _ in 0..FIRST_PACKETS / BURST as u64 {
        (0..BURST).for_each(|_| cursor.add(&mut feed));
        engine.run(&mut feed);
    }
    let compile_seconds = start.elapsed().as_secs_f64();
    let mut row = Row::of(definition, case, &setup);
    row.engine = kind.name().to_owned();
    row.load_ms = Some(setup.load_seconds * 1e3);
    row.compile_ms = Some(compile_seconds * 1e3);
    row.resident_bytes = machine::peak_bytes();
    Ok(row)
}
