//! Measures the memory of flows: the peak memory of a process with one engine while all flows send
//! packets.

use braid_packet::{BURST, Link};

use crate::check;
use crate::definition::{Case, Definition};
use crate::feed::Feed;
use crate::frames::{START_NS, STEP_NS};
use crate::report::Row;
use crate::setup::{Compile, Given, Setup};
use crate::subject::{Kind, Subject};
use crate::{Error, machine};

/// Number of packets that each flow sends. An engine then keeps everything that it will keep for a
/// flow.
const ROUNDS: usize = 6;
/// Number of packets on which the engine is compared with `reference`.
const CHECK: usize = 20_000;

/// Measures a case for one engine. The memory is the peak of the whole process since it started, so
/// a process should call this only once. Afterwards, a second engine of the same kind is compared
/// with `reference`.
///
/// # Errors
/// Returns an error when the chain is wrong, or when the engine refuses it or differs from
/// `reference`.
pub fn measure(
    definition: &Definition,
    case: &Case,
    given: &Given,
    compile: &Compile,
    kind: Kind,
) -> Result<Row, Error> {
    let setup = definition.set_up(case, given, compile)?;
    let name = || format!("{} {}", definition.name, case.label());
    let make = |kind: Kind| {
        let refused = |why| Error::Chain { name: name(), why };
        kind.make(&setup.chain, case.flows).map_err(refused)
    };
    let mut row = Row::of(definition, case, &setup);
    row.engine = kind.name().to_owned();
    row.frame_bytes = case.frame_bytes as usize;
    let before = machine::resident_bytes();
    let mut engine = make(kind)?;
    let packets = setup.headers.len() * ROUNDS;
    run(engine.as_mut(), definition, case, &setup, packets);
    row.resident_bytes = machine::peak_bytes();
    let grown =
        machine::resident_bytes().zip(before).map(|(now, before)| now.saturating_sub(before));
    row.engine_bytes = grown;
    row.packets_per_run = Some(packets as u64);
    row.add_flows(None, engine.flows());
    let counters = engine.counters().unwrap_or_default();
    let dropped: u64 = counters.drops.values().sum();
    row.forwarded = Some(1.0 - dropped as f64 / counters.packets_in.max(1) as f64);
    drop(engine);
    let outcome = |kind| {
        let mut next = feed(definition, case, &setup);
        let packets = packets.min(CHECK) as u64;
        Ok::<_, Error>(check::observe(make(kind)?.as_mut(), &mut next, packets))
    };
    let (reference, own) = (outcome(Kind::Reference)?, outcome(kind)?);
    match own.difference(&reference) {
        Some(why) => Err(Error::Differs { name: name(), engine: kind.name().to_owned(), why }),
        None => Ok(row),
    }
}

/// Makes packets one after another, without end: one of each flow in turn.
fn feed<'a>(
    definition: &'a Definition,
    case: &'a Case,
    setup: &'a Setup,
) -> impl FnMut(&mut Feed) + 'a {
    let mut headers = setup.headers.iter().cycle();
    let mut time_ns = START_NS;
    move |feed| {
        let Some(next) = headers.next() else { return };
        time_ns += STEP_NS;
        let frame = next.frame(case.frame_bytes as usize, &definition.payloads);
        feed.add(Link::Ethernet, time_ns, &frame, frame.len() as u32);
    }
}

fn run(
    engine: &mut dyn Subject,
    definition: &Definition,
    case: &Case,
    setup: &Setup,
    packets: usize,
) {
    let mut next = feed(definition, case, setup);
    let mut burst = Feed::new();
    let mut left = packets;
    while left > 0 {
        let count = left.min(BURST);
        (0..count).for_each(|_| next(&mut burst));
        engine.run(&mut burst);
        left -= count;
    }
}
