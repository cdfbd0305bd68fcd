//! Compares the outcomes of steps with the expected ones, and shows what differs.

use std::fmt;

use braid_packet::diff_fields;

use crate::convert::packet_of;
use crate::outcome::{Outcome, read_packet, unreadable};
use crate::script::{Script, Step};

/// The most pairs of lines that are compared to align what was expected with what happened.
const MOST_PAIRS: usize = 1 << 20;

/// A step whose outcomes differ from the expected ones.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// The line of the step, from 1.
    pub line: usize,
    /// The step as written.
    pub step: String,
    /// Its outcomes, expected and actual ones aligned.
    pub lines: Vec<Line>,
}

/// A line of a difference.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Line {
    /// It was expected and happened.
    Same(String),
    /// It was expected and did not happen.
    Missing(String),
    /// It happened and was not expected.
    Extra(String),
    /// What the lines above differ in.
    Note(String),
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.step)?;
        for line in &self.lines {
            match line {
                Line::Same(text) => writeln!(f, "      {text}")?,
                Line::Missing(text) => writeln!(f, "    - {text}")?,
                Line::Extra(text) => writeln!(f, "    + {text}")?,
                Line::Note(text) => writeln!(f, "        {text}")?,
            }
        }
        Ok(())
    }
}

impl Step {
    /// Whether these outcomes are the expected ones.
    #[must_use]
    pub fn holds(&self, outcomes: &[Outcome]) -> bool {
        self.expected.len() == outcomes.len()
            && outcomes.iter().zip(&self.expected).all(|(outcome, line)| outcome.agrees(line))
    }
}

impl Script {
    /// Expects these outcomes of each step. Outcomes that are right already stay as they are
    /// written.
    pub fn bless(&mut self, outcomes: &[Vec<Outcome>]) {
        for (step, outcomes) in self.steps.iter_mut().zip(outcomes) {
            if !step.holds(outcomes) {
                step.expected = outcomes.iter().map(ToString::to_string).collect();
            }
        }
    }
}

/// The steps whose outcomes differ from the expected ones.
#[must_use]
pub fn differences(script: &Script, outcomes: &[Vec<Outcome>]) -> Vec<Difference> {
    let steps = script.steps.iter().zip(outcomes);
    let differing = steps.filter(|(step, outcomes)| !step.holds(outcomes));
    differing.map(|(step, outcomes)| difference(step, outcomes)).collect()
}

/// The expected outcomes of a step beside its actual ones.
#[must_use]
pub fn difference(step: &Step, outcomes: &[Outcome]) -> Difference {
    let expected = step.expected.as_slice();
    let mut lines = Vec::new();
    let (mut a, mut b) = (0, 0);
    for (x, y) in aligned(expected, outcomes).into_iter().chain([(expected.len(), outcomes.len())])
    {
        changed(&expected[a..x], &outcomes[b..y], &mut lines);
        lines.extend(outcomes.get(y).map(|same| Line::Same(same.to_string())));
        (a, b) = (x + 1, y + 1);
    }
    Difference { line: step.line, step: step.text.clone(), lines }
}

/// Lines between two that agree. Each missing one stands above the extra one in its place.
fn changed(missing: &[String], extra: &[Outcome], lines: &mut Vec<Line>) {
    for at in 0..missing.len().max(extra.len()) {
        let pair = (missing.get(at), extra.get(at));
        lines.extend(pair.0.map(|text| Line::Missing(text.clone())));
        lines.extend(pair.1.map(|outcome| Line::Extra(outcome.to_string())));
        if let (Some(text), Some(outcome)) = pair {
            lines.extend(fields(text, outcome).into_iter().map(Line::Note));
        }
        let wrong = pair.0.and_then(|text| unreadable(text));
        lines.extend(wrong.map(|why| Line::Note(format!("the expected packet is not one: {why}"))));
    }
}

/// The fields in which an expected packet differs from one that left.
fn fields(expected: &str, outcome: &Outcome) -> Vec<String> {
    let Outcome::Packet { interface, frame, .. } = outcome else { return Vec::new() };
    let Some((_, _, name, want)) = read_packet(expected) else { return Vec::new() };
    let other = (name != interface).then(|| format!("interface: {name} -> {interface}"));
    let found = diff_fields(&packet_of(&want, 0), &packet_of(frame, 0));
    let fields = found.iter().map(|field| format!("{}: {} -> {}", field.what, field.a, field.b));
    other.into_iter().chain(fields).collect()
}

/// The longest list of pairs (expected, actual) that agree, in order. Too long lists are compared
/// place by place.
fn aligned(expected: &[String], outcomes: &[Outcome]) -> Vec<(usize, usize)> {
    let agree = |a: usize, b: usize| outcomes[b].agrees(&expected[a]);
    let (n, m) = (expected.len(), outcomes.len());
    if n.saturating_mul(m) > MOST_PAIRS {
        return (0..n.min(m)).filter(|at| agree(*at, *at)).map(|at| (at, at)).collect();
    }
    // longest[a][b]: the most pairs of the lines from a and from b on.
    let mut longest = vec![vec![0_u32; m + 1]; n + 1];
    for a in (0..n).rev() {
        for b in (0..m).rev() {
            longest[a][b] = match agree(a, b) {
                true => longest[a + 1][b + 1] + 1,
                false => longest[a + 1][b].max(longest[a][b + 1]),
            };
        }
    }
    let (mut a, mut b, mut pairs) = (0, 0, Vec::new());
    while a < n && b < m {
        if agree(a, b) {
            pairs.push((a, b));
            (a, b) = (a + 1, b + 1);
        } else if longest[a + 1][b] >= longest[a][b + 1] {
            a += 1;
        } else {
            b += 1;
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Outcome {
        Outcome::Line(text.to_owned())
    }

    fn shown(expected: &str, outcomes: &[Outcome]) -> String {
        let script = Script::read(&format!("0s advance\n{expected}")).expect("a script");
        let found = differences(&script, &[outcomes.to_vec()]);
        found.iter().map(ToString::to_string).collect()
    }

    fn packet(text: &str) -> Outcome {
        let (number, at, interface, frame) = read_packet(text).expect("a packet");
        Outcome::Packet { number, at, interface: interface.to_owned(), frame }
    }

    #[test]
    fn outcomes_that_agree_have_no_difference() {
        assert_eq!(shown("    drop a\n    held 1\n", &[line("drop a"), line("held  1")]), "");
    }

    #[test]
    fn lines_that_agree_are_aligned() {
        let outcomes = [line("a"), line("x"), line("c"), line("d")];
        let text = "0s advance\n      a\n    - b\n    + x\n      c\n    + d\n";
        assert_eq!(shown("    a\n    b\n    c\n", &outcomes), text);
        assert_eq!(shown("    a\n", &[]), "0s advance\n    - a\n");
    }

    #[test]
    fn packets_that_differ_show_their_fields() {
        let outcome = packet("wan: udp 10.0.0.1:1 > 2.2.2.2:2 ttl=63");
        let text = shown("    lan: udp 10.0.0.1:1 > 2.2.2.2:2\n", &[outcome]);
        assert!(
            text.contains("        interface: lan -> wan\n        ip.ttl: 64 -> 63\n"),
            "{text}"
        );
    }

    #[test]
    fn expected_line_that_is_no_packet_says_why() {
        let text = shown("    wan: upd 10.0.0.1:1 > 2.2.2.2:2\n", &[]);
        assert!(text.contains("the expected packet is not one: "), "{text}");
    }

    #[test]
    fn long_lists_are_compared_place_by_place() {
        let expected: String = (0..2000).map(|n| format!("    {n}\n")).collect();
        let mut outcomes: Vec<Outcome> = (0..2000).map(|n| line(&n.to_string())).collect();
        outcomes[7] = line("x");
        let text = shown(&expected, &outcomes);
        assert!(text.contains("    - 7\n    + x\n") && !text.contains("- 8"), "{text}");
    }
}
