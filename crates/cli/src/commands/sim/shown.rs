//! What `braid sim` prints. All of it says that it is simulated.

use braid_ir::chain::Chain;
use braid_sim::{Cost, Load, Overheads};
use serde_json::{Value, json};

use super::costs::Costs;
use super::rows::Row;
use crate::planning::words::overheads;
use crate::table::{Align, table};

/// The rows as text.
pub fn text(chain: &Chain, costs: &Costs, machine: &Overheads, rows: &[Row]) -> String {
    let mut text = format!("chain {}, simulated\n\n", chain.name);
    text += &functions(costs);
    text += "\nmeasured on this machine, for stages\n";
    text += &overheads(machine);
    text += "\nsimulated\n";
    text += &runs(rows);
    text
}

fn functions(costs: &Costs) -> String {
    let rows = costs.functions.iter().map(|(functions, Cost { call_ns, packet_ns })| {
        vec![functions.clone(), format!("{call_ns:.1}"), format!("{packet_ns:.1}")]
    });
    let head =
        [("function", Align::Left), ("a call, ns", Align::Right), ("a packet, ns", Align::Right)];
    table(&head, &rows.collect::<Vec<_>>())
}

fn runs(rows: &[Row]) -> String {
    let is_compared = rows.iter().any(|row| row.real.is_some());
    let mut head = vec![
        ("stages", Align::Right),
        ("load", Align::Left),
        ("Mpackets/s", Align::Right),
        ("a packet, ns", Align::Right),
        ("latency, ns: mean", Align::Right),
        ("p50", Align::Right),
        ("p99", Align::Right),
    ];
    if is_compared {
        head.extend([("real: a packet, ns", Align::Right), ("difference", Align::Right)]);
    }
    let cells = rows.iter().map(|row| {
        let (found, latency) = (row.predicted, row.predicted.latency);
        let mut cells = vec![
            row.stages.to_string(),
            load_name(row.load),
            format!("{:.3}", 1e3 / found.packet_ns),
            format!("{:.1}", found.packet_ns),
            format!("{:.0}", latency.mean_ns),
            format!("{:.0}", latency.p50_ns),
            format!("{:.0}", latency.p99_ns),
        ];
        if is_compared {
            let real = row.real.map(|real| {
                [format!("{:.1}", real.packet_ns), format!("{:+.1} %", real.difference * 100.0)]
            });
            cells.extend(real.unwrap_or_default());
        }
        cells
    });
    table(&head, &cells.collect::<Vec<_>>())
}

fn load_name(load: Load) -> String {
    match load {
        Load::Alone => "alone".to_owned(),
        Load::Saturated => "full bursts".to_owned(),
        Load::Rate(rate) => format!("{rate:.0} packets/s"),
    }
}

/// The rows as JSON.
pub fn value(chain: &Chain, costs: &Costs, machine: &Overheads, rows: &[Row]) -> Value {
    let functions = costs
        .functions
        .iter()
        .map(|(functions, cost)| json!({ "functions": functions, "cost": cost }));
    let runs = rows.iter().map(|row| {
        let (load, rate) = match row.load {
            Load::Alone => ("alone", None),
            Load::Saturated => ("saturated", None),
            Load::Rate(rate) => ("rate", Some(rate)),
        };
        json!({
            "simulated": true,
            "stages": row.stages,
            "load": load,
            "rate": rate,
            "packet_ns": row.predicted.packet_ns,
            "latency": row.predicted.latency,
            "real": row.real,
        })
    });
    json!({
        "simulated": true,
        "chain": chain.name,
        "source": costs.sample.source,
        "packets": costs.sample.packets.len(),
        "functions": functions.collect::<Vec<_>>(),
        "overheads": machine,
        "runs": runs.collect::<Vec<_>>(),
    })
}
