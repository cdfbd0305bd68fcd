//! `braid diff`: compares two captures packet by packet and field by field.

mod compare;
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

/// Compare two captures packet by packet, field by field; exit code 0 when they are equal, 1 when
/// they differ
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
    for PacketDifference { number, what } in &found.shown {
        match what {
            What::Fields(fields) => {
                let _ = writeln!(text, "packet {number}");
                for field in fields {
                    let _ = writeln!(text, "  {}: {} -> {}", field.what, field.a, field.b);
                }
            }
            What::OnlyFirst(packet) => {
                let _ = writeln!(text, "packet {number}\n  only in the first: {packet}");
            }
            What::OnlySecond(packet) => {
                let _ = writeln!(text, "packet {number}\n  only in the second: {packet}");
            }
        }
    }
    let hidden = found.different - found.shown.len() as u64;
    if hidden > 0 {
        let _ = writeln!(text, "{} more packets differ (--limit shows more)", count(hidden));
    }
    let [a, b] = found.packets;
    let packets = if a == b { count(a) } else { format!("{} and {}", count(a), count(b)) };
    let verdict = match found.different {
        0 => "equal".to_owned(),
        different => format!("{} differ", count(different)),
    };
    let _ = writeln!(text, "{packets} packets: {verdict}");
    text
}

fn value(found: &Comparison) -> Value {
    let differences: Vec<Value> = found.shown.iter().map(difference).collect();
    json!({
        "equal": found.is_equal(),
        "packets": found.packets,
        "different": found.different,
        "differences": differences,
    })
}

fn difference(difference: &PacketDifference) -> Value {
    let packet = difference.number;
    match &difference.what {
        What::Fields(fields) => {
            let field = |field: &braid_packet::Difference| json!({ "field": field.what, "a": field.a, "b": field.b });
            json!({ "packet": packet, "fields": fields.iter().map(field).collect::<Vec<_>>() })
        }
        What::OnlyFirst(text) => json!({ "packet": packet, "only": "a", "summary": text }),
        What::OnlySecond(text) => json!({ "packet": packet, "only": "b", "summary": text }),
    }
}
