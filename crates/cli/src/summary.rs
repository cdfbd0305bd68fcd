//! A run's results as text: the counts of each function, and where every packet went.

use std::fmt::Write as _;
use std::path::Path;

use braid_ir::chain::{Chain, Node};
use braid_ir::engine::{Counters, NodeCounters, TableCounters};
use braid_runtime::{RefusedChange, Summary};

use crate::output::warn;
use crate::table::{Align, count, table};

/// Tables of functions and drops, then the accounting.
pub fn summary(chain: &Chain, summary: &Summary) -> String {
    let counters = &summary.counters;
    let mut text = functions(chain, counters);
    if !counters.drops.is_empty() {
        text.push('\n');
        text.push_str(&drops(chain, counters));
    }
    text.push('\n');
    text.push_str(&leaving(chain, counters));
    if let Some(follow) = &summary.follow {
        let _ = writeln!(
            text,
            "follow: {} translated flows, {} packets rewritten before they entered",
            count(follow.flows),
            count(follow.rewritten)
        );
    }
    if !summary.refused.is_empty() {
        let _ = writeln!(text, "control lines left out: {}", count(summary.refused.len() as u64));
    }
    text.push_str(&accounting(counters));
    text
}

/// The most refused changes that are warned of one by one.
const MOST_SHOWN: usize = 100;

/// Warns of changes of a control file that could not be applied at their times.
pub fn warn_refused(control: Option<&Path>, changes: &[RefusedChange]) {
    let file = control.map_or_else(String::new, |path| path.display().to_string());
    for change in changes.iter().take(MOST_SHOWN) {
        let RefusedChange { line, function, parameter, reason, .. } = change;
        let line = line.map_or_else(String::new, |line| format!("{line}:"));
        warn(format!("{file}:{line} the change of `{function}.{parameter}` is left out: {reason}"));
    }
    if changes.len() > MOST_SHOWN {
        warn(format!("{file}: {} more changes are left out", changes.len() - MOST_SHOWN));
    }
}

fn functions(chain: &Chain, counters: &Counters) -> String {
    let dropped = |node: u16| -> u64 {
        let of_node = counters.drops.iter().filter(|((at, ..), _)| *at == node);
        of_node.map(|(_, count)| count).sum()
    };
    let row = |(at, (node, counted)): (u16, (&Node, &NodeCounters))| {
        vec![
            node.name.clone(),
            node.model.name.clone(),
            count(counted.forward.packets),
            count(counted.backward.packets),
            count(dropped(at)),
            state(node, counted),
        ]
    };
    let rows: Vec<Vec<String>> =
        (0..).zip(chain.nodes.iter().zip(&counters.nodes)).map(row).collect();
    let head = [
        ("function", Align::Left),
        ("model", Align::Left),
        ("forward", Align::Right),
        ("backward", Align::Right),
        ("dropped", Align::Right),
        ("state entries", Align::Left),
    ];
    table(&head, &rows)
}

/// `map 31, back 31 (5 refused)`
fn state(node: &Node, counted: &NodeCounters) -> String {
    let tables = node.model.state.iter().zip(&counted.tables);
    let text = |(decl, table): (&braid_ir::model::StateDecl, &TableCounters)| {
        let mut text = format!("{} {}", decl.name, count(table.entries));
        let notes: Vec<String> = [(table.refused, "refused"), (table.evicted, "evicted")]
            .iter()
            .filter(|(number, _)| *number > 0)
            .map(|(number, what)| format!("{} {what}", count(*number)))
            .collect();
        if !notes.is_empty() {
            let _ = write!(text, " ({})", notes.join(", "));
        }
        text
    };
    tables.map(text).collect::<Vec<_>>().join(", ")
}

fn drops(chain: &Chain, counters: &Counters) -> String {
    let row = |((node, row, reason), number): (&(u16, u32, String), &u64)| {
        let node = chain.nodes.get(usize::from(*node));
        let decl = node.and_then(|node| node.model.rows.get(*row as usize));
        vec![
            node.map_or_else(String::new, |node| node.name.clone()),
            decl.map_or_else(String::new, |decl| decl.label.clone()),
            reason.clone(),
            count(*number),
            decl.map_or_else(String::new, |decl| decl.text.clone()),
        ]
    };
    let rows: Vec<Vec<String>> = counters.drops.iter().map(row).collect();
    let head = [
        ("dropped by", Align::Left),
        ("row", Align::Left),
        ("reason", Align::Left),
        ("packets", Align::Right),
        ("where", Align::Left),
    ];
    table(&head, &rows)
}

fn leaving(chain: &Chain, counters: &Counters) -> String {
    let text = |(at, interface): (u16, &braid_ir::chain::Interface)| {
        let number = counters.out.get(&at).copied().unwrap_or(0);
        format!("{} {}", interface.name, count(number))
    };
    let out: Vec<String> = (0..).zip(&chain.interfaces).map(text).collect();
    let mut text = format!("out by interface: {}\n", out.join(", "));
    if !counters.lost.is_empty() {
        let lost: Vec<String> =
            counters.lost.iter().map(|(why, number)| format!("{why} {}", count(*number))).collect();
        let _ = writeln!(text, "lost by reason: {}", lost.join(", "));
    }
    text
}

/// The accounting equation with its numbers.
fn accounting(counters: &Counters) -> String {
    format!(
        "in {} + created {} + copied {} = out {} + dropped {} + consumed {} + held {} + lost {}\n",
        count(counters.packets_in),
        count(counters.created),
        count(counters.copied),
        count(counters.out.values().sum()),
        count(counters.drops.values().sum()),
        count(counters.consumed),
        count(counters.held),
        count(counters.lost.values().sum()),
    )
}
