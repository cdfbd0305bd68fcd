//! Problems in native functions and stream functions, for the report. Each problem is listed once,
//! with its number of occurrences and its first packet.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The maximum number of different problems that are kept for an instance.
const MOST: usize = 64;

/// A problem in a native function or a stream function.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Problem {
    /// It panicked, with this message.
    Panic(String),
    /// It reported a failure, with this reason.
    Failed(String),
    /// It used the interface wrongly.
    Misuse(String),
    /// It acted against its declared profile.
    Profile(String),
    /// A packet's result differed from the record of its flow.
    Record(String),
    /// Its process ended, or did not answer in time.
    Lost(String),
    /// Packets came while its process was not there.
    Away,
    /// What a stream function's TCP stack does with some packets or connections.
    Traffic(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Panic(text) => write!(f, "panicked: {text}"),
            Self::Failed(text) => write!(f, "failed: {text}"),
            Self::Misuse(text) => write!(f, "wrong use: {text}"),
            Self::Profile(text) => write!(f, "exceeds its declared profile: {text}"),
            Self::Record(text) => write!(f, "does other than it recorded: {text}"),
            Self::Lost(text) => write!(f, "lost its process, which {text}"),
            Self::Away => write!(f, "had no process for a packet"),
            Self::Traffic(text) => f.write_str(text),
        }
    }
}

/// A problem with its occurrences.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Noted {
    /// The problem.
    pub problem: Problem,
    /// The number of occurrences.
    pub times: u64,
    /// The number of the function's packet at the first occurrence, from 1. It is 0 before the
    /// first packet.
    pub packet: u64,
}

impl fmt::Display for Noted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.packet {
            0 => write!(f, "{}", self.problem)?,
            packet => write!(f, "{} (its packet {packet})", self.problem)?,
        }
        if self.times > 1 { write!(f, ", {} times", self.times) } else { Ok(()) }
    }
}

/// All problems of an instance.
#[derive(Clone, Debug, Default)]
pub struct Problems(Vec<Noted>);

impl Problems {
    /// Records a problem.
    pub fn add(&mut self, problem: Problem, packet: u64) {
        if let Some(noted) = self.0.iter_mut().find(|noted| noted.problem == problem) {
            noted.times += 1;
        } else if self.0.len() < MOST {
            self.0.push(Noted { problem, times: 1, packet });
        }
    }

    /// Adds problems that another list has noted.
    pub fn append(&mut self, more: impl IntoIterator<Item = Noted>) {
        for noted in more {
            if let Some(known) = self.0.iter_mut().find(|known| known.problem == noted.problem) {
                known.times = known.times.saturating_add(noted.times);
            } else if self.0.len() < MOST {
                self.0.push(noted);
            }
        }
    }

    /// All problems, in the order of their first occurrences.
    #[must_use]
    pub fn all(&self) -> &[Noted] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::{Problem, Problems};

    #[test]
    fn problem_is_told_once_with_how_often_and_where_first() {
        let mut problems = Problems::default();
        problems.add(Problem::Misuse("x".into()), 3);
        problems.add(Problem::Misuse("x".into()), 4);
        problems.add(Problem::Panic("y".into()), 4);
        let texts = |problems: &Problems| -> Vec<String> {
            problems.all().iter().map(ToString::to_string).collect()
        };
        let (x, y) = ("wrong use: x (its packet 3), 2 times", "panicked: y (its packet 4)");
        assert_eq!(texts(&problems), [x, y]);
        let mut other = Problems::default();
        other.add(Problem::Panic("y".into()), 1);
        other.append(problems.all().iter().cloned());
        assert_eq!(texts(&other), ["panicked: y (its packet 1), 2 times", x]);
    }
}
