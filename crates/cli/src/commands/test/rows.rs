//! The rows of functions that cases take, and the rows that no case takes.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use braid_ir::chain::Chain;
use braid_ir::engine::Counters;
use braid_ir::model::Model;
use serde_json::{Value, json};

use crate::load::Program;

/// A row: function, its place among the function's rows, label, line, text. Two functions of one
/// name have rows of their own if they differ.
type Row = (String, usize, String, u32, String);

/// The packets that took each row of the functions under test. Functions of the library are not
/// under test.
#[derive(Default)]
pub struct Rows {
    packets: BTreeMap<Row, u64>,
}

impl Rows {
    /// Adds the rows of all functions of a program, even if none of its chains has them.
    pub fn declare(&mut self, program: &Program) {
        for model in program.models().iter().filter(|model| !program.is_of_library(&model.name)) {
            for (row, _) in rows(model) {
                self.packets.entry(row).or_default();
            }
        }
    }

    /// Adds the packets of a case.
    pub fn add(&mut self, program: &Program, chain: &Chain, counters: &Counters) {
        for (node, counted) in chain.nodes.iter().zip(&counters.nodes) {
            if program.is_of_library(&node.model.name) {
                continue;
            }
            for (row, at) in rows(&node.model) {
                let taken = counted.rows.get(at).map_or(0, |traffic| traffic.packets);
                *self.packets.entry(row).or_default() += taken;
            }
        }
    }

    /// The rows that no case takes.
    pub fn missed(&self) -> impl Iterator<Item = &Row> {
        self.packets.iter().filter(|(_, packets)| **packets == 0).map(|(row, _)| row)
    }

    /// How many rows the cases take, if there are any.
    pub fn taken(&self) -> Option<String> {
        let all = self.packets.len();
        let taken = all - self.missed().count();
        (all > 0).then(|| format!("; they take {taken} of {all} rows"))
    }

    /// The rows that no case takes, as text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (function, _, label, line, written) in self.missed() {
            if text.is_empty() {
                text.push_str("\nno case takes\n");
            }
            let _ = writeln!(text, "  {function} row {label}, line {line}: {written}");
        }
        if !text.is_empty() {
            text.push('\n');
        }
        text
    }

    /// All rows with their packets.
    pub fn value(&self) -> Value {
        let row = |((function, _, label, line, text), packets): (&Row, &u64)| {
            json!({
                "function": function, "row": label, "line": line, "text": text,
                "packets": packets,
            })
        };
        self.packets.iter().map(row).collect()
    }
}

/// The rows of a function that a case can be written for, with their places among all its rows:
/// those of its matches, or its body if it has none.
fn rows(model: &Model) -> Vec<(Row, usize)> {
    let is_match = |label: &str| label != "fault" && label != "body";
    let has_match = model.rows.iter().any(|row| is_match(&row.label));
    let wanted = |label: &str| is_match(label) || (!has_match && label == "body");
    let rows = model.rows.iter().enumerate().filter(|(_, row)| wanted(&row.label));
    rows.map(|(at, row)| {
        let of = (model.name.clone(), at, row.label.clone(), row.line, row.text.clone());
        (of, at)
    })
    .collect()
}
