//! Action profiles as text: a table in the form of NFP Table 2, and a list of all parts of one
//! profile.

use super::data::{COLUMNS, Profile, StateUse, Use};
use braid_packet::{Field, Header};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// One line for each function, with the columns of NFP Table 2 and three more for actions that the
/// table lacks: build packets, make copies, keep state.
#[must_use]
pub fn table(profiles: &[Profile]) -> String {
    let mut head = vec!["NF".to_owned()];
    head.extend(COLUMNS.iter().map(|(name, _)| (*name).to_owned()));
    head.extend(["Payload", "Add/Rm", "Drop", "Create", "Copy", "State"].map(str::to_owned));
    let mut rows = vec![head];
    rows.extend(profiles.iter().map(row));
    align(&rows)
}

fn row(profile: &Profile) -> Vec<String> {
    let truth = |holds: bool| if holds { "T" } else { "" }.to_owned();
    let mut cells = vec![profile.function.clone()];
    cells.extend(COLUMNS.iter().map(|(_, fields)| profile.uses(fields).text().to_owned()));
    cells.push(profile.payload().text().to_owned());
    cells.push(truth(profile.adds_or_removes()));
    cells.push(truth(!profile.drops.is_empty()));
    cells.push(truth(!profile.creates.is_empty()));
    cells.push(truth(profile.copies));
    cells.push(profile.state.iter().map(state).collect::<Vec<_>>().join(", "));
    cells
}

/// `seen/biflow R/W`
fn state(state: &StateUse) -> String {
    let usage = Use::of(state.reads, state.writes).text();
    let space = if usage.is_empty() { "" } else { " " };
    format!("{}/{}{space}{usage}", state.name, state.per)
}

/// Left-aligned columns with two spaces between them.
fn align(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |at: usize| {
        rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..columns).map(|at| width(at).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(line, "{cell:width$}  ");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Each part of a profile in a line of its own, without the empty parts.
#[must_use]
pub fn details(profile: &Profile) -> String {
    let mut lines = vec![
        ("profile", profile.origin.unwrap_or_default().to_owned()),
        ("reads", fields(&profile.reads)),
        ("writes", fields(&profile.writes)),
        ("tests", headers(&profile.tests)),
        ("adds", headers(&profile.adds)),
        ("removes", headers(&profile.removes)),
        ("payload", profile.payload().text().to_owned()),
        ("reads tags", names(&profile.reads_tags)),
        ("writes tags", names(&profile.writes_tags)),
        ("drops", quoted(&profile.drops)),
        ("faults", names(&profile.faults)),
        ("outputs", names(&profile.outputs)),
        ("creates", names(&profile.creates)),
        ("holds in", names(&profile.holds)),
        ("pools", names(&profile.pools)),
        ("events", names(&profile.events)),
        ("takes events", names(&profile.takes)),
        ("externs", names(&profile.externs)),
        ("of those with state", names(&profile.stateful_externs)),
        ("also", also(profile)),
    ];
    lines.extend(profile.state.iter().map(|used| ("state", state_details(used))));
    let mut text = format!("{}\n", profile.function);
    for (what, value) in lines.iter().filter(|(_, value)| !value.is_empty()) {
        let _ = writeln!(text, "  {what:<21}{value}");
    }
    text
}

fn also(profile: &Profile) -> String {
    let facts = [
        (profile.copies, "copies packets"),
        (profile.consumes, "consumes packets"),
        (profile.resubmits, "resubmits packets"),
        (profile.acts_on_time, "acts on timers or expiries"),
    ];
    facts.iter().filter(|(holds, _)| *holds).map(|(_, fact)| *fact).collect::<Vec<_>>().join(", ")
}

fn state_details(used: &StateUse) -> String {
    let mut text = state(used);
    for (holds, fact) in [(used.renews, "renewed when found"), (used.on_time, "used on time")] {
        if holds {
            let _ = write!(text, ", {fact}");
        }
    }
    text
}

/// The most fields that are listed one by one.
const MOST_LISTED: usize = 40;

/// The names of fields. In a longer list, `ip.*` stands for all fields of a header.
fn fields(fields: &BTreeSet<Field>) -> String {
    let mut listed: Vec<String> = Vec::new();
    for field in fields {
        let info = field.info();
        let all = info.header.info().fields;
        let is_whole = all.iter().all(|info| fields.contains(&info.field));
        let name = match fields.len() > MOST_LISTED && is_whole {
            true => format!("{}.*", info.header.name()),
            false => info.name.to_owned(),
        };
        if listed.last() != Some(&name) {
            listed.push(name);
        }
    }
    listed.join(" ")
}

fn headers(headers: &BTreeSet<Header>) -> String {
    headers.iter().map(|header| header.name()).collect::<Vec<_>>().join(" ")
}

fn names<T: AsRef<str>>(names: &BTreeSet<T>) -> String {
    names.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(" ")
}

fn quoted(names: &BTreeSet<String>) -> String {
    names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(" ")
}
