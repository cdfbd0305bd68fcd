//! `braid explain`: explains the code of a message.

use braid_lang::diag::codes::{self, Entry};
use serde_json::{Value, json};

use crate::answer::{Answer, Failure, Outcome};
use crate::output::Output;
use crate::table::{Align, table};

/// Explain the code of a message, with a wrong and a right example
#[derive(clap::Args)]
pub struct Args {
    /// A code such as E0101; without it, list all codes
    code: Option<String>,
}

pub fn run(args: &Args, output: &Output) -> Outcome {
    let Some(text) = &args.code else {
        list(output);
        return Ok(Answer::Yes);
    };
    let code = codes::Code::parse(text).ok_or_else(|| {
        Failure::usage(format!("no message has the code `{text}`; `braid explain` lists all codes"))
    })?;
    match code.entry() {
        Some(entry) if output.json => output.value(&value(entry)),
        _ => output.text(codes::explain(code).unwrap_or_default()),
    }
    Ok(Answer::Yes)
}

fn list(output: &Output) {
    if output.json {
        output.value(&json!({ "codes": codes::entries().map(value).collect::<Vec<_>>() }));
        return;
    }
    let row = |entry: &Entry| vec![entry.code.to_string(), entry.title.to_owned()];
    let rows: Vec<Vec<String>> = codes::entries().map(row).collect();
    output.text(table(&[("code", Align::Left), ("title", Align::Left)], &rows));
}

fn value(entry: &Entry) -> Value {
    json!({
        "code": entry.code.to_string(),
        "severity": entry.severity.to_string(),
        "title": entry.title,
        "explanation": entry.explanation,
        "wrong": entry.wrong,
        "right": entry.right,
    })
}
