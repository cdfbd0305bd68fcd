//! Results as tables for people, and conclusions from several rows.

use crate::definition::{Definition, Kind as Measures};
use crate::percentiles::SIZES;
use crate::report::Row;

/// A column of a table: its name, and the cell of a row.
type Column = (&'static str, fn(&Row) -> String);

/// The cell of a row without a value. A column with only such cells is left out.
const NOTHING: &str = "-";

const SPEED: &[Column] = &[
    ("engine", |row| row.engine.clone()),
    ("chain", |row| row.chain.clone()),
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
    ("first ns", |row| number(row.first_ns_per_packet, 1)),
    ("second ns", |row| number(row.second_ns_per_packet, 1)),
    ("M new flows/s", |row| number(row.new_flows_per_second.map(|flows| flows / 1e6), 2)),
    ("hits %", |row| percent(row.hit_rate)),
    ("guard failures %", |row| percent(row.guard_failure_rate)),
    ("misses %", |row| percent(row.miss_rate)),
];

/// Columns of a bench of flows that come and go.
const ONCE: &[Column] = &[
    ("engine", |row| row.engine.clone()),
    ("chain", |row| row.chain.clone()),
    ("functions", |row| row.functions.to_string()),
    ("mix", |row| row.mix.clone().unwrap_or_default()),
    ("flows", |row| row.flows.to_string()),
    ("bytes", |row| row.frame_bytes.to_string()),
    ("new %", |row| percent(row.new_share)),
    ("ns/packet", |row| number(row.ns_per_packet_median, 1)),
    ("min", |row| number(row.ns_per_packet_min, 1)),
    ("max", |row| number(row.ns_per_packet_max, 1)),
    ("cycles", |row| number(row.cycles_per_packet, 0)),
    ("instructions", |row| match row.instructions_per_packet {
        Some(count) => format!("{count:.0}"),
        None => "no counter".to_owned(),
    }),
    ("× floor", |row| number(row.ratio_to_floor, 2)),
    ("× sequential", |row| number(row.ratio_to_sequential, 2)),
    ("hits %", |row| percent(row.hit_rate)),
    ("guard failures %", |row| percent(row.guard_failure_rate)),
    ("misses %", |row| percent(row.miss_rate)),
];

/// Columns of a bench that compares with a paper. They follow all other columns.
const PAPER: &[Column] = &[
    ("saved", |row| row.saved_percent.map_or(NOTHING.to_owned(), |value| format!("{value:.1} %"))),
    ("beside", |row| {
        row.paper_saved_percent.map_or(NOTHING.to_owned(), |value| format!("paper: {value} %"))
    }),
];

const FLOW_TIME: &[Column] = &[
    ("engine", |row| row.engine.clone()),
    ("functions", |row| row.functions.to_string()),
    ("flows", |row| row.flows.to_string()),
    ("packets", |row| row.flow_time.as_ref().map_or(0, |time| time.packets).to_string()),
    ("bytes", |row| row.frame_bytes.to_string()),
    ("ns/packet", |row| number(row.ns_per_packet_median, 1)),
    ("first ns", |row| number(row.first_ns_per_packet, 1)),
    ("second ns", |row| number(row.second_ns_per_packet, 1)),
    ("flow ns: p10", |row| flow(row, 10)),
    ("p25", |row| flow(row, 25)),
    ("p50", |row| flow(row, 50)),
    ("p75", |row| flow(row, 75)),
    ("p90", |row| flow(row, 90)),
    ("p99", |row| flow(row, 99)),
];

const COMPILE: &[Column] = &[
    ("engine", |row| row.engine.clone()),
    ("functions", |row| row.functions.to_string()),
    ("rules", |row| row.rules.to_string()),
    ("load ms", |row| number(row.load_ms, 1)),
    ("compile ms", |row| number(row.compile_ms, 1)),
    ("peak MiB", |row| mib(row.resident_bytes)),
];

const MEMORY: &[Column] = &[
    ("engine", |row| row.engine.clone()),
    ("functions", |row| row.functions.to_string()),
    ("flows", |row| row.flows.to_string()),
    ("peak MiB", |row| mib(row.resident_bytes)),
    ("engine MiB", |row| mib(row.engine_bytes)),
    ("engine bytes/flow", |row| {
        number(row.engine_bytes.map(|bytes| bytes as f64 / row.flows.max(1) as f64), 0)
    }),
    ("records", |row| row.records_made.map_or(NOTHING.to_owned(), |made| made.to_string())),
    ("forwarded %", |row| percent(row.forwarded)),
];

fn number(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| NOTHING.to_owned(), |value| format!("{value:.decimals$}"))
}

fn percent(share: Option<f64>) -> String {
    number(share.map(|share| share * 100.0), 1)
}

fn mib(bytes: Option<u64>) -> String {
    number(bytes.map(|bytes| bytes as f64 / 1_048_576.0), 1)
}

fn flow(row: &Row, percent: u32) -> String {
    number(row.flow_time.as_ref().map(|time| time.percentile(percent)), 0)
}

/// The head and the cells of a table.
pub type Cells = (Vec<&'static str>, Vec<Vec<String>>);

/// The table of the rows of one bench.
#[must_use]
pub fn cells(definition: &Definition, rows: &[Row]) -> Cells {
    let columns = match definition.kind {
        Measures::Speed => SPEED,
        Measures::Once => ONCE,
        Measures::Compile => COMPILE,
        Measures::Memory => MEMORY,
        Measures::FlowTime => FLOW_TIME,
    };
    let paper = if definition.paper.is_empty() { &[][..] } else { PAPER };
    let says = |column: &&Column| match column.0 {
        "chain" => rows.iter().any(|row| row.chain != rows[0].chain),
        _ => rows.is_empty() || rows.iter().any(|row| (column.1)(row) != NOTHING),
    };
    let columns: Vec<&Column> = columns.iter().chain(paper).filter(says).collect();
    let head = columns.iter().map(|(name, _)| *name).collect();
    let body = rows.iter().map(|row| columns.iter().map(|(_, cell)| cell(row)).collect()).collect();
    (head, body)
}

/// A second table: median times of flows, by number of packets.
#[must_use]
pub fn by_packets(rows: &[Row]) -> Option<Cells> {
    const HEAD: [&str; 2 + SIZES.len()] = [
        "ns of flows with … packets",
        "bytes",
        "1",
        "2–3",
        "4–7",
        "8–15",
        "16–63",
        "64–255",
        "256 and more",
    ];
    let line = |row: &Row| {
        let time = row.flow_time.as_ref()?;
        let median = |least: u64| {
            let found = time.by_packets.iter().find(|size| size.least == least);
            number(found.map(|size| size.median_ns), 0)
        };
        let mut cells = vec![row.engine.clone(), row.frame_bytes.to_string()];
        cells.extend(SIZES.map(median));
        Some(cells)
    };
    let body: Vec<Vec<String>> = rows.iter().filter_map(line).collect();
    (!body.is_empty()).then(|| (HEAD.to_vec(), body))
}

/// Conclusions from several rows: how many packets were checked, and for benches that ask for it
/// how much of the saving over `sequential` each engine brings.
#[must_use]
pub fn notes(definition: &Definition, rows: &[Row]) -> Vec<String> {
    let mut notes: Vec<String> = checked(rows).into_iter().collect();
    if !definition.shares {
        return notes;
    }
    let ns = |row: &Row| row.ns_per_packet_median.filter(|_| row.ns_per_packet_min.is_some());
    for (at, row) in rows.iter().enumerate().filter(|(_, row)| row.engine == "sequential") {
        // The rows of a case follow each other.
        let same = |other: &&Row| {
            (&other.chain, other.flows, other.frame_bytes, other.train)
                == (&row.chain, row.flows, row.frame_bytes, row.train)
        };
        let engine = |name: &str| rows[at..].iter().filter(same).find(|one| one.engine == name);
        let values = (ns(row), engine("synth").and_then(ns), engine("fused").and_then(ns));
        let (Some(all), Some(synth), Some(fused)) = values else { continue };
        if all < 0.1 {
            continue;
        }
        let part = |ns: f64| format!("{ns:.1} ns ({:.0} %)", ns / all * 100.0);
        notes.push(format!(
            "{}, {} flows, {} bytes: of the {all:.1} ns of sequential, one program for the chain (synth) saves {}, flow \
             records (fused) a further {}",
            row.chain,
            row.flows,
            row.frame_bytes,
            part(all - synth),
            part(synth - fused)
        ));
    }
    notes
}

/// How many packets of `fused` were compared with those of `reference`, and how many of them took a
/// flow record.
fn checked(rows: &[Row]) -> Option<String> {
    let of = |row: &Row| Some((row.checked_packets?, row.checked_hits?));
    let all: Vec<(u64, u64)> = rows.iter().filter_map(of).collect();
    let (packets, hits) = all.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let share = |(packets, hits): &(u64, u64)| *hits as f64 / (*packets).max(1) as f64 * 100.0;
    let least = all.iter().map(share).min_by(f64::total_cmp)?;
    Some(format!(
        "check: {packets} packets of fused are those of reference, {hits} of them by flow records; in the case with the \
         fewest, {least:.0} %"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::tests::row;
    use crate::percentiles::FlowTime;

    fn definition(more: &str) -> Definition {
        let text = format!(
            "summary = ''\naxis = 'flows'\nfloor = 'touch'\nchain = ''\n{more}\n[[traffic]]\n[[sweep]]\n"
        );
        Definition::parse("x", &text).unwrap()
    }

    fn timed(engine: &str, ns: f64) -> Row {
        Row {
            engine: engine.to_owned(),
            ns_per_packet_median: Some(ns),
            ns_per_packet_min: Some(ns),
            ..row()
        }
    }

    #[test]
    fn columns_without_values_are_left_out() {
        let rows = [timed("synth", 5.0)];
        let (head, body) = cells(&definition(""), &rows);
        assert!(head.contains(&"ns/packet") && head.len() == body[0].len());
        for absent in ["chain", "hits %", "first ns", "saved", "cycles"] {
            assert!(!head.contains(&absent), "{absent}");
        }
        let rows = [timed("synth", 5.0), Row { chain: "other".to_owned(), ..timed("synth", 6.0) }];
        assert!(cells(&definition(""), &rows).0.contains(&"chain"));
    }

    #[test]
    fn savings_stand_beside_those_of_a_paper() {
        let mut paper = definition("paper = [{ functions = 1, saved = 57.7 }]");
        let mut rows = [timed("synth", 5.0), timed("fused", 3.0)];
        for row in &mut rows {
            row.saved_percent = Some(50.0);
            row.add_paper(&paper);
        }
        let (head, body) = cells(&paper, &rows);
        assert_eq!(head[head.len() - 2..], ["saved", "beside"]);
        assert_eq!(body[0][head.len() - 2..], ["50.0 %", "-"]);
        assert_eq!(body[1][head.len() - 2..], ["50.0 %", "paper: 57.7 %"]);
        paper.paper[0].functions = 2;
        rows[1].add_paper(&paper);
        assert_eq!(rows[1].paper_saved_percent, None);
    }

    #[test]
    fn parts_of_the_saving_are_told_of_benches_that_ask() {
        let rows = [timed("sequential", 100.0), timed("synth", 70.0), timed("fused", 50.0)];
        assert!(notes(&definition(""), &rows).is_empty());
        let told = notes(&definition("shares = true"), &rows);
        assert_eq!(told.len(), 1);
        assert!(told[0].contains("30.0 ns (30 %)") && told[0].contains("20.0 ns (20 %)"));
        assert!(notes(&definition("shares = true"), &rows[..2]).is_empty());
    }

    #[test]
    fn share_of_hits_among_checked_packets_is_told() {
        let row = |packets, hits| Row {
            checked_packets: Some(packets),
            checked_hits: Some(hits),
            ..timed("fused", 5.0)
        };
        let told = notes(&definition(""), &[row(100, 90), timed("synth", 7.0), row(300, 30)]);
        assert_eq!(told.len(), 1);
        assert!(told[0].contains("400 packets") && told[0].contains("120 of them"), "{told:?}");
        assert!(told[0].ends_with("10 %"), "{told:?}");
    }

    #[test]
    fn missing_counter_is_told_where_instructions_matter() {
        let mut once = definition("");
        once.kind = Measures::Once;
        let (head, body) = cells(&once, &[timed("synth", 5.0)]);
        let at = head.iter().position(|name| *name == "instructions").unwrap();
        assert_eq!(body[0][at], "no counter");
    }

    #[test]
    fn flows_by_their_packets_have_a_cell_for_each_class() {
        assert_eq!(by_packets(&[row()]), None);
        let flow_time = FlowTime::of(&[(1, 5.0), (300, 900.0)]);
        let (head, body) = by_packets(&[Row { flow_time, ..row() }]).unwrap();
        assert_eq!(head.len(), body[0].len());
        assert_eq!(body[0][2..], ["5", "-", "-", "-", "-", "-", "900"]);
    }
}
