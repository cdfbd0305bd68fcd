//! Measures whole flows. In some passes, each packet of a trace is processed and timed alone. The
//! time of a flow is the sum over its packets. In other passes, packets come in batches, which
//! gives the time per packet.

use std::time::Instant;

use braid_packet::BURST;

use crate::Error;
use crate::definition::{Case, Definition};
use crate::feed::Feed;
use crate::plan::Plan;
use crate::report::{FlowTime, Measured, Row, saved};

use crate::selection::Selection;
use crate::setup::Setup;
use crate::spread::Spread;
use crate::subject::{Kind, Source, Subject};
use crate::trace::Trace;

/// Number of trials of other benches that take as long as one pass.
const TRIALS: usize = 3;
/// The largest number of passes.
const PASSES: usize = 7;

/// The measurements of one engine or floor.
#[derive(Default)]
struct Player {
    /// The engine or floor. `None` for the source, which measures only the clock.
    kind: Option<Kind>,
    /// The extent of the check: packets, and hits if the engine makes records.
    checked: Option<(u64, Option<u64>)>,
    /// For each pass, the time of each packet (ns).
    alone: Vec<Vec<u32>>,
    /// For each pass, the time per packet (ns).
    batches: Vec<f64>,
}

/// Measures a case.
///
/// # Errors
/// Returns an error when an engine refuses the chain.
pub fn measure(
    definition: &Definition,
    case: &Case,
    setup: &Setup,
    trace: &Trace,
    plan: &Plan,
) -> Result<Measured, Error> {
    let name = format!("{} {}", definition.name, case.label());
    let refused = |why| Error::Chain { name: name.clone(), why };
    let make = |kind: Kind| kind.make(&setup.chain, u64::from(trace.flows)).map_err(refused);
    let selection = Selection::new(setup, plan.check);
    let expected = selection.observe(make(Kind::Reference)?.as_mut());
    let mut players = vec![Player::default()];
    let mut wrong = Vec::new();
    for kind in &plan.kinds {
        let mut checked = None;
        if kind.is_compiled() {
            let found = selection.compare(*kind, make(*kind)?.as_mut(), &expected, definition.hits);
            match found.map_err(|why| why.of(&name)) {
                Ok(outcome) => checked = Some((outcome.packets, outcome.hits)),
                Err(why) => {
                    wrong.push(why);
                    continue;
                }
            }
        }
        players.push(Player { kind: Some(*kind), checked, ..Player::default() });
    }
    for pass in 0..plan.runs.div_ceil(TRIALS).min(PASSES) {
        let count = players.len();
        for turn in 0..count {
            let player = &mut players[(pass + turn) % count];
            if player.kind == Some(Kind::Reference) && pass > 0 {
                continue;
            }
            let subject = || player.kind.map_or(Ok(Box::new(Source) as _), make);
            let (mut one, mut other) = (subject()?, subject()?);
            player.alone.push(alone(one.as_mut(), trace));
            player.batches.push(batches(other.as_mut(), trace));
        }
    }
    let rows = rows(definition, case, setup, trace, &players, expected.forwarded());
    Ok(Measured { rows, wrong })
}

/// Processes the packets of other flows that come before the trace.
fn before(subject: &mut dyn Subject, trace: &Trace) {
    let mut feed = Feed::new();
    for packets in trace.before.chunks(BURST) {
        packets.iter().for_each(|packet| feed.add_copy(packet));
        subject.run(&mut feed);
    }
}

fn alone(subject: &mut dyn Subject, trace: &Trace) -> Vec<u32> {
    before(subject, trace);
    let mut feed = Feed::new();
    let mut timed = |packet| {
        feed.add_copy(packet);
        let start = Instant::now();
        subject.run(&mut feed);
        u32::try_from(start.elapsed().as_nanos()).unwrap_or(u32::MAX)
    };
    trace.packets.iter().map(&mut timed).collect()
}

fn batches(subject: &mut dyn Subject, trace: &Trace) -> f64 {
    before(subject, trace);
    let (mut feed, mut total) = (Feed::new(), 0.0);
    for packets in trace.packets.chunks(BURST) {
        packets.iter().for_each(|packet| feed.add_copy(packet));
        let start = Instant::now();
        subject.run(&mut feed);
        total += start.elapsed().as_nanos() as f64;
    }
    total / trace.packets.len().max(1) as f64
}

impl Player {
    /// The time of each packet: the median over the passes.
    fn packets(&self) -> Vec<f64> {
        let count = self.alone.first().map_or(0, Vec::len);
        let middle = |at: usize| {
            let times = self.alone.iter().map(|pass| f64::from(pass[at])).collect();
            Spread::of(times).map_or(0.0, |spread| spread.median)
        };
        (0..count).map(middle).collect()
    }
}

fn rows(
    definition: &Definition,
    case: &Case,
    setup: &Setup,
    trace: &Trace,
    players: &[Player],
    forwarded: f64,
) -> Vec<Row> {
    let Some((source, measured)) = players.split_first() else { return Vec::new() };
    let clock = source.packets();
    let source_ns = Spread::of(source.batches.clone()).map_or(0.0, |spread| spread.median);
    let mut rows = Vec::new();
    for player in measured {
        let (Some(kind), Some(spread)) = (player.kind, Spread::of(player.batches.clone())) else {
            continue;
        };
        let spread = spread.less(source_ns);
        let times: Vec<f64> =
            player.packets().iter().zip(&clock).map(|(ns, clock)| (ns - clock).max(0.0)).collect();
        let mut row = Row::of(definition, case, setup);
        row.engine = kind.name().to_owned();
        row.runs = Some(player.batches.len());
        row.packets_per_run = Some(trace.packets.len() as u64);
        row.ns_per_packet_median = Some(spread.median);
        row.ns_per_packet_min = Some(spread.min);
        row.ns_per_packet_max = Some(spread.max);
        row.source_ns = Some(source_ns);
        row.add_check(player.checked);
        row.forwarded = Some(forwarded);
        let nth = |n| nth(trace, &times, n);
        row.first_ns_per_packet = nth(0);
        row.second_ns_per_packet = nth(1);
        row.new_flows_per_second =
            row.first_ns_per_packet.filter(|ns| *ns > 0.0).map(|ns| 1e9 / ns);
        row.flow_time = FlowTime::of(&of_flows(trace, &times));
        rows.push(row);
    }
    compare(definition, &mut rows);
    rows
}

/// Computes ratios and savings of rows, which depend on other rows.
fn compare(definition: &Definition, rows: &mut [Row]) {
    let value = |rows: &[Row], name: &str, value: fn(&Row) -> Option<f64>| {
        rows.iter().find(|row| row.engine == name).and_then(value)
    };
    let floor_ns = value(rows, definition.floor.kind().name(), |row| row.ns_per_packet_median);
    let sequential = value(rows, Kind::Sequential.name(), |row| row.ns_per_packet_median);
    let median = |row: &Row| row.flow_time.as_ref().map(|time| time.percentile(50));
    let flow_sequential = value(rows, Kind::Sequential.name(), median);
    for row in rows {
        row.floor_ns = floor_ns;
        let ns = row.ns_per_packet_median;
        let ratio = |other: Option<f64>| other.filter(|ns| *ns >= 0.1).zip(ns).map(|(b, a)| a / b);
        row.ratio_to_floor = ratio(floor_ns);
        if !row.engine.starts_with("floor") {
            row.ratio_to_sequential = ratio(sequential);
        }
        if Kind::ALL.iter().any(|kind| kind.is_compiled() && kind.name() == row.engine) {
            row.saved_percent = saved(median(row), flow_sequential);
        }
        row.add_paper(definition);
    }
}

/// The median time of the n-th packets of flows. n counts from 0. `None` if no flow has an n-th
/// packet.
fn nth(trace: &Trace, times: &[f64], n: u32) -> Option<f64> {
    let mut seen = vec![0; trace.flows as usize];
    let mut found = Vec::new();
    for (flow, ns) in trace.flow.iter().zip(times) {
        let Some(count) = flow.and_then(|flow| seen.get_mut(flow as usize)) else { continue };
        if *count == n {
            found.push(*ns);
        }
        *count += 1;
    }
    Spread::of(found).map(|spread| spread.median)
}

/// Number of packets and time (ns) of each flow.
fn of_flows(trace: &Trace, times: &[f64]) -> Vec<(u64, f64)> {
    let mut flows = vec![(0, 0.0); trace.flows as usize];
    for (flow, ns) in trace.flow.iter().zip(times) {
        if let Some(entry) = flow.and_then(|flow| flows.get_mut(flow as usize)) {
            entry.0 += 1;
            entry.1 += ns;
        }
    }
    flows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(flow: &[Option<u32>], flows: u32) -> Trace {
        Trace { packets: Vec::new(), flow: flow.to_vec(), flows, before: Vec::new() }
    }

    #[test]
    fn time_of_a_flow_is_that_of_its_packets_and_packets_without_flow_count_nowhere() {
        let trace = trace(&[Some(0), Some(1), None, Some(0)], 2);
        let times = [10.0, 20.0, 5.0, 3.0];
        assert_eq!(of_flows(&trace, &times), [(2, 13.0), (1, 20.0)]);
        assert_eq!(nth(&trace, &times, 0), Some(15.0));
        assert_eq!(nth(&trace, &times, 1), Some(3.0));
        assert_eq!(nth(&trace, &times, 2), None);
    }

    #[test]
    fn time_of_a_packet_is_the_median_of_the_passes() {
        let alone = vec![vec![1, 9], vec![3, 7], vec![2, 8]];
        let player = Player { alone, ..Player::default() };
        assert_eq!(player.packets(), [2.0, 8.0]);
    }
}
