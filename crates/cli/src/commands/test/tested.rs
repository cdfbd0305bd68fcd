//! The results of cases, as text and JSON.

use std::path::Path;
use std::time::Duration;

use braid_casefile::{Difference, Line};
use serde_json::{Value, json};

/// The end of a case on one engine.
pub struct Tested {
    pub name: String,
    pub engine: String,
    pub time: Duration,
    pub end: End,
}

/// What became of a case.
pub enum End {
    Holds,
    Blessed,
    Differs(Vec<Difference>),
    /// It could not be run.
    Failed(String),
}

impl Tested {
    /// The result as text. With several engines, it names the engine.
    pub fn text(&self, several: bool) -> String {
        let engine = if several { format!(" ({})", self.engine) } else { String::new() };
        let name = &self.name;
        match &self.end {
            End::Holds => format!("ok       {name}{engine}\n"),
            End::Blessed => format!("blessed  {name}{engine}\n"),
            End::Differs(found) => {
                let file = Path::new(name).join("case.txt");
                let found = found
                    .iter()
                    .map(|found| format!("  {}:{}: {found}", file.display(), found.line));
                format!("DIFFERS  {name}{engine}\n{}", found.collect::<String>())
            }
            End::Failed(why) => {
                let why = why.trim_end().lines().map(|line| format!("  {line}\n"));
                format!("FAILED   {name}{engine}\n{}", why.collect::<String>())
            }
        }
    }

    pub fn value(&self) -> Value {
        let mut value = json!({ "case": self.name, "engine": self.engine });
        let result = match &self.end {
            End::Holds => "holds",
            End::Blessed => "blessed",
            End::Differs(found) => {
                value["differences"] = found.iter().map(difference).collect();
                "differs"
            }
            End::Failed(why) => {
                value["error"] = json!(why.trim_end());
                "failed"
            }
        };
        value["result"] = json!(result);
        value
    }
}

fn difference(found: &Difference) -> Value {
    let line = |line: &Line| match line {
        Line::Same(text) => json!({ "what": "same", "text": text }),
        Line::Missing(text) => json!({ "what": "missing", "text": text }),
        Line::Extra(text) => json!({ "what": "extra", "text": text }),
        Line::Note(text) => json!({ "what": "note", "text": text }),
    };
    json!({
        "line": found.line,
        "step": found.step,
        "outcomes": found.lines.iter().map(line).collect::<Vec<_>>(),
    })
}
