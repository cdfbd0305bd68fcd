//! Results: one row for each engine and case, as JSON lines or as a table.

use serde::{Deserialize, Serialize};

use crate::definition::{Case, Definition};
use crate::setup::Setup;

/// A result. Times are net of the source: of what it takes to copy a frame into a packet.
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
    /// Length of frames without FCS.
    pub frame_bytes: usize,
    /// Rules in the chain's rule sets.
    pub rules: usize,
    /// Routes of each router.
    pub routes: usize,
    /// Packets of a flow in a row.
    pub train: u64,
    /// Segments.
    pub runs: Option<usize>,
    /// Packets of a segment.
    pub packets_per_run: Option<u64>,
    /// Time per packet (ns): the median of the segments.
    pub ns_per_packet_median: Option<f64>,
    /// The fastest segment.
    pub ns_per_packet_min: Option<f64>,
    /// The slowest segment.
    pub ns_per_packet_max: Option<f64>,
    /// Processor cycles per packet, where there are counters.
    pub cycles_per_packet: Option<f64>,
    /// Instructions per packet, where there are counters.
    pub instructions_per_packet: Option<f64>,
    /// What the source takes (ns), which is subtracted above.
    pub source_ns: Option<f64>,
    /// The bench's floor (ns).
    pub floor_ns: Option<f64>,
    /// Times the floor.
    pub ratio_to_floor: Option<f64>,
    /// Times `sequential`.
    pub ratio_to_sequential: Option<f64>,
    /// Share of the packets that leave, from 0 to 1, as `reference` says.
    pub forwarded: Option<f64>,
    /// Time to read the chain and its files (ms).
    pub load_ms: Option<f64>,
    /// Time to make the engine and process the first packets, all their programs being compiled (ms).
    pub compile_ms: Option<f64>,
    /// Memory that is resident (bytes), all engines of the run together; for compile benches the most
    /// that ever was, of this engine alone.
    pub resident_bytes: Option<u64>,
}

impl Row {
    /// A row of a case without results.
    #[must_use]
    pub fn of(definition: &Definition, case: &Case, setup: &Setup) -> Self {
        Self {
            bench: definition.name.clone(),
            chain: setup.chain.name.clone(),
            functions: setup.chain.nodes.len(),
            flows: case.flows,
            frame_bytes: setup.ring.frame_bytes(),
            rules: setup.rules,
            routes: setup.routes,
            train: case.train,
            ..Self::default()
        }
    }

    /// The row as one line of JSON. Numbers have three decimals.
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

/// Median and extremes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Spread {
    /// The middle one.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Spread {
    /// Of some values; `None` if there are none.
    #[must_use]
    pub fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median = if values.len().is_multiple_of(2) {
            (values[middle - 1] + values[middle]) / 2.0
        } else {
            values[middle]
        };
        Some(Self { median, min, max })
    }

    /// All less by this.
    #[must_use]
    pub fn less(self, by: f64) -> Self {
        Self { median: self.median - by, min: self.min - by, max: self.max - by }
    }
}

/// Columns of the table for people: name, and a row's cell.
type Column = (&'static str, fn(&Row) -> String);

const SPEED: &[Column] = &[
    ("engine", |row| row.engine.clone()),
    ("functions", |row| row.functions.to_string()),
    ("rules", |row| row.rules.to_string()),
    ("flows", |row| row.flows.to_string()),
    ("train", |row| row.train.to_string()),
    ("bytes", |row| row.frame_bytes.to_string()),
    ("ns/packet", |row| number(row.ns_per_packet_median, 1)),
    ("min", |row| number(row.ns_per_packet_min, 1)),
    ("max", |row| number(row.ns_per_packet_max, 1)),
    ("cycles", |row| number(row.cycles_per_packet, 0)),
    ("instructions", |row| number(row.instructions_per_packet, 0)),
    ("× floor", |row| number(row.ratio_to_floor, 2)),
    ("× sequential", |row| number(row.ratio_to_sequential, 2)),
];

const COMPILE: &[Column] = &[
    ("engine", |row| row.engine.clone()),
    ("functions", |row| row.functions.to_string()),
    ("rules", |row| row.rules.to_string()),
    ("load ms", |row| number(row.load_ms, 1)),
    ("compile ms", |row| number(row.compile_ms, 1)),
    ("peak MiB", |row| {
        let mib = row.resident_bytes.map(|bytes| bytes as f64 / 1_048_576.0);
        number(mib, 1)
    }),
];

fn number(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.decimals$}"))
}

/// Head and cells of a table of rows of one bench.
#[must_use]
pub fn cells(rows: &[Row]) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let compile = rows.iter().any(|row| row.compile_ms.is_some());
    let columns = if compile { COMPILE } else { SPEED };
    let head = columns.iter().map(|(name, _)| *name).collect();
    let body = rows.iter().map(|row| columns.iter().map(|(_, cell)| cell(row)).collect()).collect();
    (head, body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_is_the_middle_or_between_the_two_middle_ones() {
        let spread = Spread::of(vec![3.0, 1.0, 2.0]).unwrap();
        assert_eq!((spread.median, spread.min, spread.max), (2.0, 1.0, 3.0));
        assert_eq!(Spread::of(vec![4.0, 1.0, 2.0, 3.0]).unwrap().median, 2.5);
        assert_eq!(Spread::of(Vec::new()), None);
        assert_eq!(spread.less(1.0), Spread { median: 1.0, min: 0.0, max: 2.0 });
    }
}
