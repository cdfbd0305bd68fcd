//! The dependency table (NFP Table 3) and Algorithm 1: whether two functions can work on a packet
//! at the same time.
//!
//! The principle is the paper's *result correctness* (§4.1): the same packet and the same states
//! inside the functions as in sequence. [`Reading`] says how the paper's two readings of writes
//! are resolved.

use super::action::{Action, Kind};
use braid_ir::service_graph::{Overlap, Part};
use serde::Serialize;
use std::fmt;

/// Whether two actions, or two functions, can go on at the same time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Parallel {
    /// On the same copy of the packet (green in Table 3).
    WithoutCopy,
    /// On copies of their own (orange).
    WithCopy,
    /// Not at all (gray).
    No,
}

impl fmt::Display for Parallel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Parallel::WithoutCopy => "parallel",
            Parallel::WithCopy => "parallel with a copy",
            Parallel::No => "in sequence",
        })
    }
}

/// How the paper is read where it speaks with two voices.
///
/// Table 3 is printed with "not parallel" for write→write, and for write→read whatever the fields
/// are. Algorithm 1 (line 6) makes write→write of one field a conflicting action, which means a
/// copy; and §4.2 (OP#1) speaks of blocks "with both green and orange colors" for write→write.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Reading {
    /// As Braid does it. Write→write of one part needs a copy, as in Algorithm 1: the later
    /// function's value counts *where it wrote one*, which the merge operations say, so that writes
    /// on some ways only are right, too. Write→read is in the way only where the read part depends
    /// on the written one. Two functions that write the payload go in sequence (OP#2). Writers of
    /// different fields under one checksum need a copy: the checksum is a field that both write. A
    /// write to a header of a stack is in the way of a change of that stack.
    #[default]
    Parts,
    /// Algorithm 1 to the letter: as above, but a write is in the way of every later read.
    Algorithm,
    /// Table 3 as it is printed: also, write→write of one field is in the way.
    Table,
}

/// What an ordered pair of actions (the first function's, then the second's) means.
#[must_use]
pub fn dependency(first: Kind, second: Kind) -> Parallel {
    use Kind::{AddRemove, Count, Drop, Emit, Hold, Read, Steer, Write};
    use Parallel::{No, WithCopy, WithoutCopy};
    match (first, second) {
        // The paper's table, row by row. Where both touch fields, `pair` looks closer.
        (Read, Read | Drop) => WithoutCopy,
        (Read, Write | AddRemove) => WithCopy,
        (Write, Read | Write) => No,
        (Write, AddRemove) => WithCopy,
        (Write, Drop) => WithoutCopy,
        (AddRemove, Read | Write) => No,
        (AddRemove, AddRemove) => WithCopy,
        (AddRemove, Drop) => WithoutCopy,
        (Drop, Read | Write | AddRemove) => No,
        (Drop, Drop) => WithoutCopy,
        // A packet that is held stays for a time that nothing bounds, and with it the merger's entry.
        (Hold, _) | (_, Hold) => No,
        // What does not come by, or comes by first, the second function must see so.
        (Drop | Steer | Emit, _) => No,
        // The second function's word stands, and what it sends leaves when the merger is done.
        (_, Steer | Emit | Count) | (Count, _) => WithoutCopy,
    }
}

/// An ordered pair of actions that keeps two functions from sharing one copy of the packet.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Conflict {
    /// What the first function does.
    pub first: Action,
    /// What the second function does.
    pub second: Action,
    /// What it takes.
    pub parallel: Parallel,
    /// What they have in common besides the parts they name: a checksum, a byte.
    pub beside: Option<&'static str>,
}

impl Conflict {
    /// As a sentence over functions with these names.
    #[must_use]
    pub fn text(&self, first: &str, second: &str) -> String {
        let mut text = format!("{first} {}, {second} {}", self.first, self.second);
        if let Some(beside) = self.beside {
            text.push_str(&format!("; both change {beside}"));
        }
        text
    }
}

/// What Algorithm 1 finds for two functions.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Finding {
    /// Whether they can work at the same time.
    pub parallel: Parallel,
    /// Why not, or why it takes a copy: the paper's conflicting actions. Where they are not
    /// parallel, those pairs that are in the way.
    pub conflicts: Vec<Conflict>,
}

/// Algorithm 1: whether the first function and the second, which comes after it, can work on a
/// packet at the same time. All reasons are found, not only the first.
#[must_use]
pub fn identify(first: &[Action], second: &[Action], reading: Reading) -> Finding {
    let conflicts = conflicts(first, second, reading);
    let parallel = conflicts.iter().map(|conflict| conflict.parallel).max();
    let parallel = parallel.unwrap_or(Parallel::WithoutCopy);
    let conflicts = conflicts.into_iter().filter(|conflict| conflict.parallel == parallel);
    Finding { parallel, conflicts: conflicts.collect() }
}

/// The conflicting actions of two functions under `Priority`: both see the packet that arrives, so
/// whatever one writes and the other touches takes a copy, in either order. What the verdict
/// decides (drops, outputs) is settled by the rule.
#[must_use]
pub fn identify_priority(loser: &[Action], winner: &[Action]) -> Finding {
    let touches =
        |action: &Action| matches!(action.kind(), Kind::Read | Kind::Write | Kind::AddRemove);
    let mut found: Vec<Conflict> = Vec::new();
    for mut conflict in conflicts(loser, winner, Reading::Parts) {
        conflict.parallel = Parallel::WithCopy;
        found.push(conflict);
    }
    for mut conflict in conflicts(winner, loser, Reading::Parts) {
        conflict.parallel = Parallel::WithCopy;
        std::mem::swap(&mut conflict.first, &mut conflict.second);
        if !found.iter().any(|c| c.first == conflict.first && c.second == conflict.second) {
            found.push(conflict);
        }
    }
    found.retain(|conflict| touches(&conflict.first) && touches(&conflict.second));
    let parallel = if found.is_empty() { Parallel::WithoutCopy } else { Parallel::WithCopy };
    Finding { parallel, conflicts: found }
}

fn conflicts(first: &[Action], second: &[Action], reading: Reading) -> Vec<Conflict> {
    let mut found = Vec::new();
    for a in first {
        for b in second {
            let (parallel, beside) = pair(a, b, reading);
            if parallel != Parallel::WithoutCopy {
                found.push(Conflict { first: a.clone(), second: b.clone(), parallel, beside });
            }
        }
    }
    found
}

/// What an ordered pair of actions means, by the parts that they touch.
fn pair(a: &Action, b: &Action, reading: Reading) -> (Parallel, Option<&'static str>) {
    use Parallel::{No, WithCopy, WithoutCopy};
    let when = |holds: bool, then: Parallel| (if holds { then } else { WithoutCopy }, None);
    match (a, b) {
        (Action::Read(read), Action::Write(written)) => when(written.changes(read), WithCopy),
        (Action::Write(written), Action::Read(read)) if reading == Reading::Parts => {
            when(written.changes(read), No)
        }
        (Action::Write(a), Action::Write(b)) => writes(a, b, reading),
        // What was the outermost tag is not any more: a merge operation would write to another.
        (Action::Write(written), Action::Add(header) | Action::Remove(header))
            if reading == Reading::Parts && written.moves_with(*header) =>
        {
            (No, None)
        }
        _ => (dependency(a.kind(), b.kind()), None),
    }
}

fn writes(a: &Part, b: &Part, reading: Reading) -> (Parallel, Option<&'static str>) {
    match a.overlap(b) {
        Overlap::None => (Parallel::WithoutCopy, None),
        Overlap::Same if reading == Reading::Table => (Parallel::No, None),
        Overlap::Same if *a == Part::Payload && *b == Part::Payload => (Parallel::No, None),
        Overlap::Same => (Parallel::WithCopy, None),
        Overlap::Beside(_) if reading != Reading::Parts => (Parallel::WithoutCopy, None),
        Overlap::Beside(what) => (Parallel::WithCopy, Some(what)),
    }
}
