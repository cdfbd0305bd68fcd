//! The dependency table (NFP Table 3) and Algorithm 1: whether two functions can work on a packet
//! at the same time.
//!
//! The principle is the paper's *result correctness* (§4.1): the packet and the states inside the
//! functions must be the same as in sequence. [`Reading`] selects between the paper's two readings
//! of writes.

use super::action::{Action, Kind};
use braid_ir::service_graph::{Overlap, Part};
use serde::Serialize;
use std::fmt;

/// Whether two actions, or two functions, can run in parallel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Parallel {
    /// Yes, on the same copy of the packet (green in Table 3).
    WithoutCopy,
    /// Yes, on separate copies (orange).
    WithCopy,
    /// No (gray).
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

/// How to read the paper where it is ambiguous.
///
/// Table 3 is printed with "not parallel" for write→write, and for write→read whatever the fields
/// are. Algorithm 1 (line 6) makes write→write of one field a conflicting action, which requires a
/// copy. §4.2 (OP#1) mentions blocks "with both green and orange colors" for write→write.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Reading {
    /// Braid's reading. Write→write of one part needs a copy, as in Algorithm 1. The later
    /// function's value takes precedence *where it wrote one*. The merge operations encode this, so
    /// writes on only some paths are right, too. Write→read prevents parallel execution only if the
    /// read part depends on the written one. Two functions that write the payload run in sequence
    /// (OP#2). Writers of different fields under one checksum need a copy, because both write the
    /// checksum. A write to a header of a stack prevents a parallel change of that stack.
    #[default]
    Parts,
    /// Algorithm 1 to the letter: as above, but a write prevents every later read.
    Algorithm,
    /// Table 3 as it is printed: in addition, write→write of one field prevents parallel execution.
    Table,
}

/// The dependency of an ordered pair of actions: the first function's, then the second's.
#[must_use]
pub fn dependency(first: Kind, second: Kind) -> Parallel {
    use Kind::{AddRemove, Count, Drop, Emit, Events, Hold, Read, Steer, Write};
    use Parallel::{No, WithCopy, WithoutCopy};
    match (first, second) {
        // The paper's table, row by row. Where both actions touch fields, `pair` decides in detail.
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
        // A packet may be held for an unlimited time, and the merger's entry for it would last as
        // long.
        (Hold, _) | (_, Hold) => No,
        // The second function must see the effect of the first: it must not see dropped packets,
        // and sent packets reach it earlier.
        (Drop | Steer | Emit, _) => No,
        // A handler changes the state that its function uses for the same packet.
        (Events, Events) => No,
        // The verdict of the second function applies. Its packets leave when the merger is done.
        (_, Steer | Emit | Events | Count) | (Events | Count, _) => WithoutCopy,
    }
}

/// An ordered pair of actions that prevents two functions from sharing one copy of the packet.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Conflict {
    /// The first function's action.
    pub first: Action,
    /// The second function's action.
    pub second: Action,
    /// The consequence for parallel execution.
    pub parallel: Parallel,
    /// Something that both actions change besides the parts that they name: a checksum or a byte.
    pub beside: Option<String>,
}

impl Conflict {
    /// The conflict as a sentence about functions with these names.
    #[must_use]
    pub fn text(&self, first: &str, second: &str) -> String {
        let mut text = format!("{first} {}, {second} {}", self.first, self.second);
        if let Some(beside) = &self.beside {
            text.push_str(&format!("; both change {beside}"));
        }
        text
    }
}

/// The result of Algorithm 1 for two functions.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Finding {
    /// Whether they can work at the same time.
    pub parallel: Parallel,
    /// The paper's conflicting actions: the reasons for a copy, or the reasons that prevent
    /// parallel execution.
    pub conflicts: Vec<Conflict>,
}

/// Algorithm 1: whether the first function and the second, which comes after it, can work on a
/// packet at the same time. It finds all reasons, not only the first.
#[must_use]
pub fn identify(first: &[Action], second: &[Action], reading: Reading) -> Finding {
    let conflicts = conflicts(first, second, reading);
    let parallel = conflicts.iter().map(|conflict| conflict.parallel).max();
    let parallel = parallel.unwrap_or(Parallel::WithoutCopy);
    let conflicts = conflicts.into_iter().filter(|conflict| conflict.parallel == parallel);
    Finding { parallel, conflicts: conflicts.collect() }
}

/// The conflicting actions of two functions under `Priority`. Both functions see the packet as it
/// arrived, so a part that one writes and the other touches requires a copy, whatever the order.
/// The rule decides which verdict applies.
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

/// The dependency of an ordered pair of actions, by the parts that they touch.
fn pair(a: &Action, b: &Action, reading: Reading) -> (Parallel, Option<String>) {
    use Parallel::{No, WithCopy, WithoutCopy};
    let when = |holds: bool, then: Parallel| (if holds { then } else { WithoutCopy }, None);
    match (a, b) {
        (Action::Read(read), Action::Write(written)) => when(written.changes(read), WithCopy),
        (Action::Write(written), Action::Read(read)) if reading == Reading::Parts => {
            when(written.changes(read), No)
        }
        (Action::Write(a), Action::Write(b)) => writes(a, b, reading),
        (Action::Events(a), Action::Events(b)) => when(a == b, No),
        // After the change, another tag is the outermost one, and a merge operation would write to
        // that tag.
        (Action::Write(written), Action::Add(header) | Action::Remove(header))
            if reading == Reading::Parts && written.moves_with(*header) =>
        {
            (No, None)
        }
        _ => (dependency(a.kind(), b.kind()), None),
    }
}

fn writes(a: &Part, b: &Part, reading: Reading) -> (Parallel, Option<String>) {
    match a.overlap(b) {
        Overlap::None => (Parallel::WithoutCopy, None),
        Overlap::Same if reading == Reading::Table => (Parallel::No, None),
        Overlap::Same if *a == Part::Payload && *b == Part::Payload => (Parallel::No, None),
        Overlap::Same => (Parallel::WithCopy, None),
        Overlap::Beside(_) if reading != Reading::Parts => (Parallel::WithoutCopy, None),
        Overlap::Beside(what) => (Parallel::WithCopy, Some(what)),
    }
}
