//! `braid ctl`: looks into a live run and changes it, by its control socket.

mod capture;
mod session;

use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;
use serde_json::{Value, json};

use super::run::duration;
use crate::answer::{Answer, Failure, Outcome};
use crate::output::Output;
use capture::Capture;
use session::Session;

/// Look into a live run, or change it
#[derive(clap::Args)]
pub struct Args {
    /// The run's socket, as given to `braid run --ctl`
    socket: PathBuf,
    #[command(subcommand)]
    verb: Verb,
}

/// What to do.
#[derive(Subcommand)]
enum Verb {
    /// The run's chain, time, packets and devices
    Status,
    /// The counters, as at the end of a run
    Counters,
    /// State entries
    State {
        /// Only entries of this function
        function: Option<String>,
        /// Only entries of this table
        #[arg(long, value_name = "NAME")]
        table: Option<String>,
        /// Only entries whose JSON line contains this text, such as an address
        #[arg(long, value_name = "TEXT")]
        contains: Option<String>,
        /// Skip this many entries
        #[arg(long, value_name = "N", default_value_t = 0)]
        from: u64,
        /// At most this many entries (up to 1,000)
        #[arg(long, value_name = "N", default_value_t = 100)]
        limit: u64,
    },
    /// Flow records: what each one does with its flow's packets
    Flows {
        /// Only records whose JSON contains this text, such as an address
        #[arg(long, value_name = "TEXT")]
        contains: Option<String>,
        /// The records of this worker
        #[arg(long, value_name = "N", default_value_t = 0)]
        worker: u64,
        /// Begin at this place
        #[arg(long, value_name = "N", default_value_t = 0)]
        from: u64,
        /// Look at no more than this many records (up to 1,000)
        #[arg(long, value_name = "N", default_value_t = 100)]
        limit: u64,
    },
    /// Set a parameter: FUNCTION.PARAM VALUE, as in a control file
    Set(Change),
    /// Add a rule: FUNCTION.PARAM [at N] RULE
    AddRule(Change),
    /// Remove a rule: FUNCTION.PARAM N
    RemoveRule(Change),
    /// Change a backend: FUNCTION.PARAM up|down|remove|add VALUE
    Backend(Change),
    /// Load the chain's file again, and go on with it and with the state that fits it
    Reload {
        /// Only report what would move, what would be new, and what would be lost
        #[arg(long)]
        plan: bool,
    },
    /// Write packets at an interface or a function to a file, each with what happened to it
    Capture(Capture),
    /// Show the paths of the next packets through the chain
    Trace {
        /// Only packets for which this condition holds, such as "ip.dst == 10.0.0.1 and has tcp"
        filter: Option<String>,
        /// The number of packets
        #[arg(long, value_name = "N", default_value_t = 1)]
        count: u64,
        /// Trace no packet if the chain has more state entries, because packets wait while they
        /// are copied
        #[arg(long, value_name = "N", default_value_t = 100_000)]
        most_entries: u64,
    },
    /// Follow the events from now on, one JSON line each
    Events,
    /// End the run when no packet waits in it any more. Packets that arrive meanwhile are lost
    Drain {
        /// The latest time for the end
        #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "10s")]
        within: Duration,
    },
    /// End the run, as Ctrl-C does
    Stop,
}

/// The words of a configuration change.
#[derive(clap::Args)]
struct Change {
    /// The change, written as in a control file
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

impl Verb {
    /// The request. `json` says whether the answer is shown as JSON.
    fn request(&self, json: bool) -> Value {
        let change = |verb: &str, change: &Change| json!({ "do": "change", "change": format!("{verb} {}", change.words.join(" ")) });
        match self {
            Verb::Status => json!({ "do": "status" }),
            Verb::Counters => json!({ "do": "counters", "text": !json }),
            Verb::State { function, table, contains, from, limit } => json!({
                "do": "state", "function": function, "table": table, "contains": contains,
                "from": from, "limit": limit,
            }),
            Verb::Flows { contains, worker, from, limit } => json!({
                "do": "flows", "contains": contains, "worker": worker, "from": from,
                "limit": limit, "text": !json,
            }),
            Verb::Set(words) => change("set", words),
            Verb::AddRule(words) => change("add-rule", words),
            Verb::RemoveRule(words) => change("remove-rule", words),
            Verb::Backend(words) => change("backend", words),
            Verb::Reload { plan } => json!({ "do": "reload", "plan": plan }),
            Verb::Capture(capture) => capture.request(),
            Verb::Trace { filter, count, most_entries } => json!({
                "do": "trace", "filter": filter, "count": count, "most_entries": most_entries,
                "text": !json,
            }),
            Verb::Events => json!({ "do": "events" }),
            Verb::Drain { within } => json!({
                "do": "drain", "within_ms": u64::try_from(within.as_millis()).unwrap_or(u64::MAX),
            }),
            Verb::Stop => json!({ "do": "stop" }),
        }
    }
}

pub fn run(args: &Args, output: &Output) -> Outcome {
    if let Verb::Capture(capture) = &args.verb {
        capture.check()?;
    }
    let mut session = Session::open(&args.socket)?;
    let answer = session.ask(&args.verb.request(output.json))?;
    match &args.verb {
        Verb::Capture(capture) => return capture.follow(&mut session, output),
        Verb::Events | Verb::Trace { .. } => {
            while let Some(line) = session.next(|| false)? {
                show_line(&line, output)?;
            }
        }
        _ if output.json => output.value(&answer),
        verb => output.text(text(verb, &answer)),
    }
    Ok(Answer::Yes)
}

/// Prints a line that follows an answer.
fn show_line(line: &Value, output: &Output) -> Result<(), Failure> {
    match (line["error"].as_str(), line["text"].as_str()) {
        (Some(error), _) => return Err(Failure::input(error)),
        (None, Some(text)) => output.text(text),
        (None, None) => output.text(format!("{line}\n")),
    }
    Ok(())
}

/// The answer as text.
fn text(verb: &Verb, answer: &Value) -> String {
    match verb {
        Verb::State { .. } => {
            let entries = answer["entries"].as_array().map_or(&[][..], |entries| entries);
            let mut text: String = entries.iter().map(|entry| format!("{entry}\n")).collect();
            if let Some(next) = answer["next"].as_u64() {
                text.push_str(&format!("more: --from {next}\n"));
            }
            text
        }
        Verb::Flows { .. } => {
            let mut text = answer["flows"].as_str().unwrap_or_default().to_owned();
            if let Some(next) = answer["next"].as_u64() {
                text.push_str(&format!("more: --from {next}\n"));
            }
            text
        }
        Verb::Status => {
            let mut text = String::new();
            show(&mut text, 0, answer);
            text
        }
        Verb::Reload { .. } => {
            let mut text = answer["plan"].as_str().unwrap_or_default().to_owned();
            if let Some(us) = answer["pause_us"].as_u64() {
                text.push_str(&format!("packets waited {:.1} ms\n", us as f64 / 1e3));
            }
            text
        }
        Verb::Counters => answer["text"].as_str().unwrap_or_default().to_owned(),
        Verb::Drain { within } => {
            let (held, seconds) = (&answer["held"], within.as_secs_f64());
            format!("{held} packets wait; the run ends when they have left, within {seconds} s\n")
        }
        _ => "done\n".to_owned(),
    }
}

/// Writes a value as indented lines. An object in a list is one line, and the lists of objects that
/// it holds come below. Zeros, false and empty values in lists are left out.
fn show(text: &mut String, depth: usize, value: &Value) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                match value {
                    Value::Object(inner) if inner.is_empty() => {}
                    Value::Array(inner) if inner.is_empty() => {}
                    Value::Object(_) | Value::Array(_) => {
                        text.push_str(&format!("{indent}{name}\n"));
                        show(text, depth + 1, value);
                    }
                    _ => text.push_str(&format!("{indent}{}\n", word(name, value))),
                }
            }
        }
        Value::Array(values) => {
            for value in values {
                let Value::Object(members) = value else {
                    text.push_str(&format!("{indent}{value}\n"));
                    continue;
                };
                let some = members.iter().filter(|(_, value)| !is_nothing(value));
                let (lists, flat): (Vec<_>, Vec<_>) =
                    some.partition(|(_, value)| has_objects(value));
                let words: Vec<String> =
                    flat.into_iter().map(|(name, value)| word(name, value)).collect();
                let line = if words.is_empty() { "-".to_owned() } else { words.join("  ") };
                text.push_str(&format!("{indent}{line}\n"));
                for (name, list) in lists {
                    text.push_str(&format!("{indent}  {name}\n"));
                    show(text, depth + 2, list);
                }
            }
        }
        _ => text.push_str(&format!("{indent}{value}\n")),
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Number(number) => number.as_u64() == Some(0),
        Value::Array(values) => values.is_empty(),
        Value::Object(members) => members.values().all(is_nothing),
        _ => false,
    }
}

/// Whether this is a list of objects.
fn has_objects(value: &Value) -> bool {
    value.as_array().is_some_and(|values| values.iter().any(Value::is_object))
}

fn word(name: &str, value: &Value) -> String {
    match value {
        Value::String(text) => format!("{name} {text}"),
        Value::Array(values) if !has_objects(value) => {
            let texts = values.iter().map(|one| match one {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            });
            format!("{name} {}", texts.collect::<Vec<_>>().join(", "))
        }
        Value::Object(members) => {
            let some = members.iter().filter(|(_, value)| !is_nothing(value));
            let words: Vec<String> = some.map(|(name, value)| word(name, value)).collect();
            format!("{name} ({})", words.join(", "))
        }
        _ => format!("{name} {value}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_in_lists_are_lines_without_json() {
        let device = json!({ "device": "tap:t0", "dropped": 0, "notes": ["down 1 time", "up"] });
        let programs =
            json!({ "has_ended": false, "interpreted": 4, "refused": { "too large": 1 } });
        let status = json!({
            "devices": [device],
            "workers": [{ "devices": [device], "packets": 7, "programs": programs }, { "packets": 0 }],
        });
        let mut text = String::new();
        show(&mut text, 0, &status);
        let lines = [
            "devices",
            "  device tap:t0  notes down 1 time, up",
            "workers",
            "  packets 7  programs (interpreted 4, refused (too large 1))",
            "    devices",
            "      device tap:t0  notes down 1 time, up",
            "  -",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), lines);
    }
}
