//! Measures a case: engines and floors take turns, each for a trial of some milliseconds.

use braid_packet::BURST;

use braid_engine::Flows;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::clock::thread_ns;
use crate::definition::{Case, Definition};
use crate::feed::Feed;
use crate::first;
use crate::flow_time;
use crate::frames::Cursor;

use crate::perf::Counters;
pub use crate::plan::Plan;
pub use crate::report::Measured;
use crate::report::{Row, saved};
use crate::selection::Selection;
use crate::sequence::{Once, Sequence};
use crate::setup::Setup;
use crate::spread::Spread;
use crate::subject::{Kind, Source, Subject};
use crate::{Error, machine};

/// Number of packets with which `reference` is measured. They are sent repeatedly.
const REFERENCE_PACKETS: u64 = 2_000;
/// Number of packets that each flow sends before the measurement.
const EACH_FLOW: u64 = 8;
/// The least number of packets in which no record is made before the measurement, and the most
/// packets to wait for that.
const SETTLE_STEP: u64 = 2_048;
const SETTLE: u64 = 1 << 21;
/// Number of packets that estimate the speed, which determines the length of trials.
const ESTIMATE: u64 = 2_048;

/// Pins this thread to a core: to `core`, or to the last core that the thread may use. Returns the
/// core.
///
/// # Errors
/// Returns an error when the kernel refuses.
pub fn pin(core: Option<usize>) -> Result<usize, Error> {
    let refused = |what: &str, why| Error::Machine(format!("{what}: {why}"));
    let allowed = sched_getaffinity(None).map_err(|why| refused("sched_getaffinity", why))?;
    let last = (0..CpuSet::MAX_CPU).rev().find(|core| allowed.is_set(*core));
    let core = core.or(last).unwrap_or(0);
    if core >= CpuSet::MAX_CPU || !allowed.is_set(core) {
        return Err(Error::Machine(format!("this process may not run on core {core}")));
    }
    let mut one = CpuSet::new();
    one.set(core);
    sched_setaffinity(None, &one).map_err(|why| refused("sched_setaffinity", why))?;
    Ok(core)
}

/// An engine or floor that takes its turns.
struct Player<'a> {
    kind: Option<Kind>,
    subject: Box<dyn Subject>,
    cursor: Packets<'a>,
    packets: u64,
    /// The extent of the check: packets, and hits if the engine makes records.
    checked: Option<(u64, Option<u64>)>,
    /// The counts of the flow cache before the first trial. `None` if the engine makes no
    /// records.
    before: Option<Flows>,
    samples: Vec<Sample>,
}

/// Where a player's packets come from.
enum Packets<'a> {
    /// A round of frames without end.
    Ring(Cursor<'a>),
    /// A sequence that is sent once.
    Once(Once<'a>),
}

impl<'a> Packets<'a> {
    /// The packets of a case, or the first ones of a round.
    fn new(setup: &'a Setup, window: u64) -> Self {
        match &setup.sequence {
            Some(sequence) => Packets::Once(sequence.cursor()),
            None => Packets::Ring(setup.ring.cursor(window)),
        }
    }

    #[inline]
    fn add(&mut self, feed: &mut Feed) {
        match self {
            Packets::Ring(cursor) => cursor.add(feed),
            Packets::Once(cursor) => cursor.add(feed),
        }
    }
}

/// The measurements of one trial, per packet.
#[derive(Clone, Copy)]
struct Sample {
    ns: f64,
    cycles: Option<f64>,
    instructions: Option<f64>,
}

/// Measures a case.
///
/// # Errors
/// Returns an error when an engine refuses the chain.
pub fn measure(
    definition: &Definition,
    case: &Case,
    setup: &Setup,
    plan: &Plan,
) -> Result<Measured, Error> {
    if let Some(trace) = &setup.trace {
        return flow_time::measure(definition, case, setup, trace, plan);
    }
    let name = format!("{} {}", definition.name, case.label());
    let refused = |why| Error::Chain { name: name.clone(), why };
    let mut wrong = Vec::new();
    let mut counters = Counters::open();
    let mut players = vec![Player::new(None, Box::new(Source), Packets::new(setup, u64::MAX))];
    let selection = Selection::new(setup, plan.check);
    let flows = setup.sequence.as_ref().map_or(case.flows, |all| u64::from(all.flows()));
    let make = |kind: Kind| kind.make(&setup.chain, flows).map_err(refused);
    let expected = selection.observe(make(Kind::Reference)?.as_mut());
    for kind in &plan.kinds {
        let window = if *kind == Kind::Reference { REFERENCE_PACKETS } else { u64::MAX };
        // `reference` would take too long to come to the packets that are measured.
        if *kind == Kind::Reference && setup.sequence.is_some() {
            continue;
        }
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
        let player = Player::new(Some(*kind), make(*kind)?, Packets::new(setup, window));
        players.push(Player { checked, ..player });
    }
    let mut firsts = Vec::new();
    if definition.first {
        let kinds: Vec<Kind> = players.iter().filter_map(|player| player.kind).collect();
        firsts = first::measure(case, setup, plan, &kinds).map_err(refused)?;
    }
    for player in &mut players {
        player.prepare(setup, plan);
    }
    for round in 0..rounds(setup, plan) {
        let count = players.len();
        // Each round begins with another player, so that no player always follows the same other
        // one.
        for turn in 0..count {
            players[(round + turn) % count].trial(counters.as_mut());
        }
    }
    let mut rows = rows(definition, case, setup, &players, expected.forwarded());
    for row in &mut rows {
        row.add_first(&firsts);
        row.add_paper(definition);
    }
    Ok(Measured { rows, wrong })
}

impl<'a> Player<'a> {
    fn new(kind: Option<Kind>, subject: Box<dyn Subject>, cursor: Packets<'a>) -> Self {
        let samples = Vec::new();
        Self { kind, subject, cursor, packets: 0, checked: None, before: None, samples }
    }

    /// Sends packets of all flows, so that records exist and programs are compiled. Then determines
    /// the length of this player's trials.
    fn prepare(&mut self, setup: &Setup, plan: &Plan) {
        if let Some(sequence) = &setup.sequence {
            // All players measure the same packets.
            self.run(sequence.before());
            self.packets = sequence.trial(rounds(setup, plan)).min(plan.packets);
            self.before = self.subject.flows();
            return;
        }
        let few = self.kind == Some(Kind::Reference);
        let rounds = EACH_FLOW.div_ceil(setup.ring.train());
        let all = setup.ring.packets().saturating_mul(rounds).max(plan.warm);
        self.run(if few { REFERENCE_PACKETS } else { all });
        self.settle(setup);
        let packets = if few { ESTIMATE / 4 } else { ESTIMATE };
        let start = thread_ns();
        self.run(packets);
        let each = thread_ns().saturating_sub(start).max(1) as f64 / packets as f64;
        let wanted = (plan.trial.as_nanos() as f64 / each) as u64;
        let burst = BURST as u64;
        self.packets = wanted.min(plan.packets).max(burst).next_multiple_of(burst);
        self.before = self.subject.flows();
    }

    /// Sends packets of all flows until an engine makes no more records. Otherwise, trials would
    /// measure the making of records.
    fn settle(&mut self, setup: &Setup) {
        let made = |player: &Self| player.subject.flows().map(|flows| flows.records.made);
        let (round, mut sent, mut before) = (setup.ring.packets().max(SETTLE_STEP), 0, made(self));
        while before.is_some() && sent < SETTLE {
            self.run(round);
            sent += round;
            let now = made(self);
            if now == before {
                return;
            }
            before = now;
        }
    }

    fn run(&mut self, packets: u64) {
        let mut feed = Feed::new();
        for _ in 0..packets.div_ceil(BURST as u64) {
            (0..BURST).for_each(|_| self.cursor.add(&mut feed));
            self.subject.run(&mut feed);
        }
    }

    /// Runs a trial. Before it, a quarter of a trial runs unmeasured, so that caches hold this
    /// player's data.
    fn trial(&mut self, counters: Option<&mut Counters>) {
        self.run(self.packets / 4);
        let packets = self.packets;
        let mut timed = || {
            let start = thread_ns();
            counted_run(self, packets);
            thread_ns().saturating_sub(start)
        };
        let (elapsed, counts) = match counters {
            Some(counters) => counters.count(timed),
            None => (timed(), None),
        };
        let each = |total: f64| total / packets as f64;
        self.samples.push(Sample {
            ns: each(elapsed as f64),
            cycles: counts.map(|counts| each(counts.cycles as f64)),
            instructions: counts.map(|counts| each(counts.instructions as f64)),
        });
    }

    fn spread(&self, value: impl Fn(&Sample) -> Option<f64>) -> Option<Spread> {
        let values: Option<Vec<f64>> = self.samples.iter().map(value).collect();
        Spread::of(values?)
    }
}

/// Runs packets whose instructions another program may count: it knows this function by its name.
#[inline(never)]
fn counted_run(player: &mut Player, packets: u64) {
    player.run(packets);
}

/// The name of the function whose instructions are counted, for programs that count them.
pub const COUNTED: &str = "counted_run";

/// Runs the measured packets of flows that come and go with one engine, or with the source alone.
/// Returns their number. A program that runs this process can count the instructions of
/// [`COUNTED`].
///
/// # Errors
/// Returns an error when the engine refuses the chain.
pub fn count(setup: &Setup, kind: Option<Kind>) -> Result<u64, String> {
    let Some(sequence) = &setup.sequence else { return Ok(0) };
    let make = |kind: Kind| kind.make(&setup.chain, u64::from(sequence.flows()));
    let subject = kind.map_or(Ok(Box::new(Source) as _), make)?;
    let mut player = Player::new(kind, subject, Packets::new(setup, u64::MAX));
    player.run(sequence.before());
    let packets = sequence.packets() - sequence.before();
    counted_run(&mut player, packets);
    Ok(packets)
}

/// Number of trials of each player. Packets that are sent once must suffice for all trials.
fn rounds(setup: &Setup, plan: &Plan) -> usize {
    let most = setup.sequence.as_ref().map_or(usize::MAX, Sequence::most_trials);
    plan.runs.min(most)
}

fn rows(
    definition: &Definition,
    case: &Case,
    setup: &Setup,
    players: &[Player],
    forwarded: f64,
) -> Vec<Row> {
    let Some((source, measured)) = players.split_first() else { return Vec::new() };
    let ns = |sample: &Sample| Some(sample.ns);
    let median = |player: &Player, value: fn(&Sample) -> Option<f64>| {
        player.spread(value).map(|spread| spread.median)
    };
    let source_ns = median(source, |sample| Some(sample.ns)).unwrap_or(0.0);
    let less = |value: fn(&Sample) -> Option<f64>, player: &Player| {
        Some(median(player, value)? - median(source, value)?)
    };
    let of = |wanted: Kind| {
        let found = measured.iter().find(|player| player.kind == Some(wanted))?;
        Some(median(found, |sample| Some(sample.ns))? - source_ns)
    };
    let floor_ns = of(definition.floor.kind());
    let sequential_ns = of(Kind::Sequential);
    let mut rows = Vec::new();
    for player in measured {
        let (Some(kind), Some(spread)) = (player.kind, player.spread(ns)) else { continue };
        let mut row = Row::of(definition, case, setup);
        let spread = spread.less(source_ns);
        row.engine = kind.name().to_owned();
        row.runs = Some(player.samples.len());
        row.packets_per_run = Some(player.packets);
        row.ns_per_packet_median = Some(spread.median);
        row.ns_per_packet_min = Some(spread.min);
        row.ns_per_packet_max = Some(spread.max);
        row.cycles_per_packet = less(|sample| sample.cycles, player);
        row.instructions_per_packet = less(|sample| sample.instructions, player);
        row.source_ns = Some(source_ns);
        row.floor_ns = floor_ns;
        row.ratio_to_floor = ratio(spread.median, floor_ns);
        if kind.is_engine() {
            row.ratio_to_sequential = ratio(spread.median, sequential_ns);
        }
        if kind.is_compiled() {
            row.saved_percent = saved(Some(spread.median), sequential_ns);
        }
        row.add_flows(player.before, player.subject.flows());
        row.add_check(player.checked);
        row.forwarded = Some(forwarded);
        row.resident_bytes = machine::resident_bytes();
        rows.push(row);
    }
    rows
}

/// The ratio of two values. `None` if the second is too small to differ from noise.
fn ratio(value: f64, other: Option<f64>) -> Option<f64> {
    other.filter(|other| *other >= 0.1).map(|other| value / other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_need_something_to_compare_with() {
        assert_eq!(ratio(6.0, Some(3.0)), Some(2.0));
        assert_eq!(ratio(6.0, Some(0.01)), None);
        assert_eq!(ratio(6.0, None), None);
    }

    #[test]
    fn thread_is_pinned_to_a_core_that_it_may_use() {
        std::thread::spawn(|| {
            let core = pin(None).unwrap();
            let now = sched_getaffinity(None).unwrap();
            assert_eq!((now.count(), now.is_set(core)), (1, true));
            assert!(pin(Some(CpuSet::MAX_CPU - 1)).is_err());
        })
        .join()
        .unwrap();
    }
}
