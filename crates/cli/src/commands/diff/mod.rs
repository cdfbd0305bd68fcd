//! `braid diff`: compares two captures packet by packet and field by field.

mod ahead;
mod align;
mod compare;
mod similar;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::answer::{Answer, Failure, Outcome};
use crate::captures::Capture;
use crate::output::{Output, warn};
use crate::progress::Shown;
use crate::table::count;
use compare::{Comparison, Options, PacketDifference, What, compare};

/// Compare two captures: packets that only one of them has, and the fields of packets that differ
///
/// Exit code 0 when they are equal, 1 when they differ.
#[derive(clap::Args)]
pub struct Args {
    /// The first capture
    a: PathBuf,
    /// The second capture
    b: PathBuf,
    /// Times may differ
    #[arg(long)]
    ignore_time: bool,
    /// The most packets whose differences are shown
    #[arg(long, value_name = "N", default_value_t = Options::default().limit)]
    limit: usize,
}

pub fn run(args: &Args, output: &Output) -> Outcome {
    let paths = [&args.a, &args.b];
    let (mut a, mut b) = (Capture::open(&args.a)?, Capture::open(&args.b)?);
    let options = Options { ignore_time: args.ignore_time, limit: args.limit };
    let found = compare(&mut Shown::new(&mut a, "packets"), &mut b, options)
        .map_err(|(at, why)| Failure::file(paths[at.min(1)], why))?;
    for (path, capture) in paths.iter().zip([&a, &b]) {
        if let Some(warning) = braid_io::PacketSource::warning(capture) {
            warn(format!("{}: {warning}", path.display()));
        }
    }
    if output.json {
        output.value(&value(&found));
    } else {
        output.text(text(&found));
    }
    Ok(Answer::of(found.is_equal()))
}

fn text(found: &Comparison) -> String {
    let mut text = String::new();
    for PacketDifference { numbers, what } in &found.shown {
        let _ = match (numbers, what) {
            ([Some(a), Some(b)], _) if a == b => writeln!(text, "packet {a}"),
            ([Some(a), Some(b)], _) => writeln!(text, "packet {a} -> {b}"),
            ([Some(a), _], What::Only(packet)) => writeln!(text, "- packet {a}: {packet}"),
            ([_, Some(b)], What::Only(packet)) => writeln!(text, "+ packet {b}: {packet}"),
            _ => Ok(()),
        };
        let fields = if let What::Fields(fields) = what { fields.as_slice() } else { &[] };
        for field in fields {
            let _ = writeln!(text, "  {}: {} -> {}", field.what, field.a, field.b);
        }
    }
    let hidden = found.different() - found.shown.len() as u64;
    if hidden > 0 {
        let _ = writeln!(text, "{} more packets differ (--limit shows more)", count(hidden));
    }
    let [a, b] = found.packets;
    let packets = if a == b { count(a) } else { format!("{} and {}", count(a), count(b)) };
    let _ = writeln!(text, "{packets} packets: {}", verdict(found));
    text
}

/// `3 differ: 1 changed, 2 only in the first`
fn verdict(found: &Comparison) -> String {
    let [first, second] = found.only;
    let parts =
        [(found.changed, "changed"), (first, "only in the first"), (second, "only in the second")];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, what)| format!("{} {what}", count(*number)))
        .collect();
    match found.different() {
        0 => "equal".to_owned(),
        different => format!("{} differ: {}", count(different), parts.join(", ")),
    }
}

fn value(found: &Comparison) -> Value {
    let differences: Vec<Value> = found.shown.iter().map(difference).collect();
    json!({
        "equal": found.is_equal(),
        "packets": found.packets,
        "different": found.different(),
        "changed": found.changed,
        "only": found.only,
        "differences": differences,
    })
}

fn difference(difference: &PacketDifference) -> Value {
    let [a, b] = difference.numbers;
    match &difference.what {
        What::Fields(fields) => {
            let field = |field: &braid_packet::Difference| json!({ "field": field.what, "a": field.a, "b": field.b });
            json!({ "a": a, "b": b, "fields": fields.iter().map(field).collect::<Vec<_>>() })
        }
        What::Only(text) => json!({ "a": a, "b": b, "summary": text }),
    }
}
