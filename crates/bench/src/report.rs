//! Results: one row for each engine and case, as JSON lines. The module `tables` makes tables for
//! people.

use braid_engine::Flows;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::definition::{Case, Definition, Mix};
use crate::first::First;
pub use crate::percentiles::FlowTime;
use crate::sequence::Sequence;
use crate::setup::Setup;
pub use crate::spread::Spread;
use crate::subject::Kind;
use crate::trace::Trace;

/// A result. Times do not include the time of the source, which copies frames into packets.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Row {
    /// The bench.
    pub bench: String,
    /// The chain.
    pub chain: String,
    /// Functions in the chain.
    pub functions: usize,
    /// The engine or floor.
    pub engine: String,
    /// Flows.
    pub flows: u64,
    /// Length of frames without FCS (bytes).
    pub frame_bytes: usize,
    /// Rules in the chain's rule sets.
    pub rules: usize,
    /// Routes of each router.
    pub routes: usize,
    /// Packets that a flow sends in a row.
    pub train: u64,
    /// The mix of flows.
    pub mix: Option<String>,
    /// Of a thousand packets, how many should begin a flow.
    pub new_per_mille: u64,
    /// Share of the measured packets that begin a flow, from 0 to 1, where flows come and go.
    pub new_share: Option<f64>,
    /// Number of trials.
    pub runs: Option<usize>,
    /// Packets of a trial.
    pub packets_per_run: Option<u64>,
    /// Time per packet (ns): the median of the trials.
    pub ns_per_packet_median: Option<f64>,
    /// Time per packet in the fastest trial (ns).
    pub ns_per_packet_min: Option<f64>,
    /// Time per packet in the slowest trial (ns).
    pub ns_per_packet_max: Option<f64>,
    /// Processor cycles per packet, on machines that count them.
    pub cycles_per_packet: Option<f64>,
    /// Instructions per packet, on machines that count them.
    pub instructions_per_packet: Option<f64>,
    /// Time of the source per packet (ns), which is subtracted from the times above.
    pub source_ns: Option<f64>,
    /// Time of the bench's floor per packet (ns).
    pub floor_ns: Option<f64>,
    /// Time per packet, divided by that of the floor.
    pub ratio_to_floor: Option<f64>,
    /// Time per packet, divided by that of `sequential`.
    pub ratio_to_sequential: Option<f64>,
    /// How much less time than `sequential` the engine takes, in per cent: of the flow times for
    /// traces, and of the times per packet otherwise.
    pub saved_percent: Option<f64>,
    /// How much less time the paper's system takes in this case than its chain without the system,
    /// in per cent.
    pub paper_saved_percent: Option<f64>,
    /// Time (ns) of a packet that is the first of its flow.
    pub first_ns_per_packet: Option<f64>,
    /// Time (ns) of a packet that is the second of its flow.
    pub second_ns_per_packet: Option<f64>,
    /// Number of first packets of flows that the engine can process in a second.
    pub new_flows_per_second: Option<f64>,
    /// Share of the measured packets that took the record of their flow, from 0 to 1.
    pub hit_rate: Option<f64>,
    /// Share of guard failures among the measured packets, from 0 to 1. It includes packets that
    /// came when something was due.
    pub guard_failure_rate: Option<f64>,
    /// Share of the measured packets whose flow had no record, from 0 to 1.
    pub miss_rate: Option<f64>,
    /// Number of packets on which the engine was compared with `reference`.
    pub checked_packets: Option<u64>,
    /// Number of these packets that took the record of their flow.
    pub checked_hits: Option<u64>,
    /// Number of records made since the engine was made.
    pub records_made: Option<u64>,
    /// Number of records that have ended since the engine was made, for any reason.
    pub records_ended: Option<u64>,
    /// Number of records that were not made because there were too many, or because they depend on
    /// the absence of too many entries.
    pub records_refused: Option<u64>,
    /// Times of whole flows.
    pub flow_time: Option<FlowTime>,
    /// Share of the packets that leave by an interface, from 0 to 1, in the output of `reference`.
    pub forwarded: Option<f64>,
    /// Time to read the chain and its files (ms).
    pub load_ms: Option<f64>,
    /// Time to make the engine and process the first packets, until all programs that they need are
    /// compiled (ms).
    pub compile_ms: Option<f64>,
    /// Resident memory (bytes). It includes all engines of the run. In benches of compiling and of
    /// memory, it is the peak of a process with this engine alone.
    pub resident_bytes: Option<u64>,
    /// Growth of the process from before the engine was made until all flows existed (bytes).
    pub engine_bytes: Option<u64>,
}

/// The measurements of a case.
pub struct Measured {
    /// A row for each engine and floor.
    pub rows: Vec<Row>,
    /// The errors of engines whose output differs from that of `reference`. These engines were not
    /// measured.
    pub wrong: Vec<Error>,
}

impl Row {
    /// The row of a case, still without results.
    #[must_use]
    pub fn of(definition: &Definition, case: &Case, setup: &Setup) -> Self {
        let captured = setup.sequence.as_ref().filter(|sequence| sequence.is_captured());
        let flows = setup.trace.as_ref().map(|trace| trace.flows);
        let flows = flows.or(captured.map(Sequence::flows));
        let name =
            |mix: &Mix| if captured.is_some() { "capture".to_owned() } else { mix.name.clone() };
        let mix = definition.mix.get(case.mix).map(name);
        let frame_bytes = setup.trace.as_ref().map(Trace::frame_bytes);
        let frame_bytes = frame_bytes.or(setup.sequence.as_ref().map(Sequence::frame_bytes));
        Self {
            bench: definition.name.clone(),
            chain: setup.chain.name.clone(),
            functions: setup.chain.nodes.len(),
            flows: flows.map_or(case.flows, u64::from),
            frame_bytes: frame_bytes.unwrap_or_else(|| setup.ring.frame_bytes()),
            rules: setup.rules,
            routes: setup.routes,
            train: case.train,
            mix,
            new_per_mille: case.new_per_mille,
            new_share: setup.sequence.as_ref().map(Sequence::new_share),
            ..Self::default()
        }
    }

    /// Adds the shares of packets since `before`, and the numbers of records since the engine was
    /// made. Does nothing if the engine makes no records.
    pub fn add_flows(&mut self, before: Option<Flows>, now: Option<Flows>) {
        let Some(now) = now else { return };
        let since = |value: fn(&Flows) -> u64| {
            value(&now).saturating_sub(before.as_ref().map_or(0, value)) as f64
        };
        let parts: [fn(&Flows) -> u64; 3] = [|f| f.hits, |f| f.guard_failures, |f| f.misses];
        let packets: f64 = parts.iter().map(|part| since(*part)).sum();
        let share = |part| (packets > 0.0).then(|| since(part) / packets);
        (self.hit_rate, self.guard_failure_rate) = (share(parts[0]), share(parts[1]));
        self.miss_rate = share(parts[2]);
        self.records_made = Some(now.records.made);
        self.records_ended = Some(now.records.ended);
        self.records_refused = Some(now.records.refused);
    }

    /// Adds the extent of the check.
    pub fn add_check(&mut self, checked: Option<(u64, Option<u64>)>) {
        self.checked_packets = checked.map(|(packets, _)| packets);
        self.checked_hits = checked.and_then(|(_, hits)| hits);
    }

    /// Adds the times of first and second packets for this engine, if they were measured.
    pub fn add_first(&mut self, all: &[(Kind, First)]) {
        let Some((_, found)) = all.iter().find(|(kind, _)| kind.name() == self.engine) else {
            return;
        };
        self.first_ns_per_packet = Some(found.first);
        self.second_ns_per_packet = Some(found.second);
        self.new_flows_per_second = (found.first > 0.0).then(|| 1e9 / found.first);
    }

    /// Adds the saving that a paper reports for this case to the row of the engine that corresponds
    /// to the paper's system.
    pub fn add_paper(&mut self, definition: &Definition) {
        let found = definition.paper.iter().find(|paper| {
            let chain = paper.chain.as_deref().unwrap_or(&self.chain);
            let bytes = paper.frame_bytes.unwrap_or(self.frame_bytes as u64);
            (paper.functions, chain, bytes)
                == (self.functions as u64, self.chain.as_str(), self.frame_bytes as u64)
        });
        let like = self.engine == Kind::Fused.name();
        self.paper_saved_percent = found.filter(|_| like).map(|paper| paper.saved);
    }

    /// The row as one line of JSON. Numbers are rounded to three decimals.
    #[must_use]
    pub fn json(&self) -> String {
        let mut value = serde_json::to_value(self).unwrap_or_default();
        if let Some(object) = value.as_object_mut() {
            for number in object.values_mut() {
                if let Some(float) = number.as_f64().filter(|_| number.is_f64()) {
                    *number = serde_json::json!((float * 1000.0).round() / 1000.0);
                }
            }
        }
        value.to_string()
    }
}

/// How much smaller a value is than another one, in per cent. `None` if the other one is too small
/// to differ from noise.
#[must_use]
pub fn saved(value: Option<f64>, other: Option<f64>) -> Option<f64> {
    let other = other.filter(|other| *other >= 0.1)?;
    Some((1.0 - value? / other) * 100.0)
}
