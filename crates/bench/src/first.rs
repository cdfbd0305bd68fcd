//! Measures the first and the second packets of flows: new engines process flows that they have not
//! seen.

use braid_packet::BURST;

use crate::clock::thread_ns;
use crate::definition::Case;
use crate::feed::Feed;
use crate::frames::Cursor;
use crate::plan::Plan;
use crate::setup::Setup;
use crate::spread::Spread;
use crate::subject::{Kind, Source, Subject};

/// The largest number of new engines of each kind (`PASSES`). Fewer are made if they would process
/// more than `FLOWS` flows together.
const PASSES: u64 = 9;
const FLOWS: u64 = 1 << 20;
/// One flow in `KNOWN_SHARE`, but at most `KNOWN` flows, sends packets before the measurement, so
/// that programs are compiled and in the caches.
const KNOWN_SHARE: u64 = 4;
const KNOWN: u64 = 4_096;
/// Number of packets that these flows send before the measurement.
const BEFORE: u64 = 1 << 14;
/// The least number of flows. With fewer, nothing is measured.
const LEAST: u64 = 8;

/// Times per packet (ns), without the time of the source.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct First {
    /// Time of a packet that is the first of its flow.
    pub first: f64,
    /// Time of a packet that is the second of its flow.
    pub second: f64,
}

/// Measures engines and floors in turns. Leaves out `reference`, and cases with too few flows.
///
/// # Errors
/// Returns an error when an engine refuses the chain.
pub fn measure(
    case: &Case,
    setup: &Setup,
    plan: &Plan,
    kinds: &[Kind],
) -> Result<Vec<(Kind, First)>, String> {
    let kinds: Vec<Kind> = kinds.iter().copied().filter(|kind| *kind != Kind::Reference).collect();
    if case.flows < LEAST || kinds.is_empty() {
        return Ok(Vec::new());
    }
    let passes = (FLOWS / case.flows).clamp(1, PASSES) as usize;
    let mut sources = Vec::new();
    let mut found: Vec<Vec<First>> = vec![Vec::new(); kinds.len()];
    for round in 0..passes.min(plan.runs) {
        sources.push(pass(&mut Source, case, setup, plan));
        for turn in 0..kinds.len() {
            let at = (round + turn) % kinds.len();
            let mut subject = kinds[at].make_hot(&setup.chain, case.flows)?;
            found[at].push(pass(subject.as_mut(), case, setup, plan));
        }
    }
    let middle = |passes: &[First], value: fn(&First) -> f64| {
        Spread::of(passes.iter().map(value).collect()).map_or(0.0, |spread| spread.median)
    };
    let net = |passes: &[First], value| middle(passes, value) - middle(&sources, value);
    let of = |passes: &[First]| First {
        first: net(passes, |pass| pass.first),
        second: net(passes, |pass| pass.second),
    };
    Ok(kinds.into_iter().zip(found).map(|(kind, passes)| (kind, of(&passes))).collect())
}

fn pass(subject: &mut dyn Subject, case: &Case, setup: &Setup, plan: &Plan) -> First {
    let known = (case.flows / KNOWN_SHARE).clamp(1, KNOWN);
    let new = case.flows - known;
    let mut cursor = setup.ring.cursor(u64::MAX);
    cursor.only(0..known as usize);
    run(subject, &mut cursor, BEFORE.min(plan.warm).max(known));
    let mut timed = || {
        cursor.only(known as usize..case.flows as usize);
        let start = thread_ns();
        run(subject, &mut cursor, new);
        thread_ns().saturating_sub(start) as f64 / new as f64
    };
    let first = timed();
    First { first, second: timed() }
}

fn run(subject: &mut dyn Subject, cursor: &mut Cursor, packets: u64) {
    let mut feed = Feed::new();
    let mut left = packets as usize;
    while left > 0 {
        let count = left.min(BURST);
        (0..count).for_each(|_| cursor.add(&mut feed));
        subject.run(&mut feed);
        left -= count;
    }
}
