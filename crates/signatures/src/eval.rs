//! Evaluates the tests of a rule on a buffer.
//!
//! A relative test counts from the end of a match of the test before it. That test may match in
//! several places, so the evaluation keeps all of them: the tests hold if some choice of places
//! satisfies them all.

use crate::rule::{Content, Test, What};
use memchr::memmem;
use regex_automata::Input;
use regex_automata::meta::Regex;

/// The bytes that may still be searched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Work(pub u64);

/// The work is used up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exhausted;

impl Work {
    fn spend(&mut self, bytes: usize) -> Result<(), Exhausted> {
        self.0 = self.0.checked_sub(bytes as u64 + 16).ok_or(Exhausted)?;
        Ok(())
    }
}

/// Whether all hold. What comes behind the first that does not is not evaluated.
pub fn all(each: impl Iterator<Item = Result<bool, Exhausted>>) -> Result<bool, Exhausted> {
    for holds in each {
        if !holds? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether the tests hold.
pub fn holds(tests: &[Test], buffer: &[u8], work: &mut Work) -> Result<bool, Exhausted> {
    // The ends of matches from which the next relative test may count, in order.
    let mut ends = vec![0];
    for test in tests {
        let holds = match &test.what {
            What::Length(least, most) => (*least..=*most).contains(&buffer.len()),
            What::DataAt(count) if test.is_relative => {
                ends.retain(|end| (end + count <= buffer.len()) != test.is_negated);
                !ends.is_empty()
            }
            What::DataAt(count) => (*count < buffer.len()) != test.is_negated,
            What::Content(content) => content_holds(content, test, buffer, &mut ends, work)?,
            What::Regex(regex) => regex_holds(regex, test, buffer, &mut ends, work)?,
        };
        if !holds {
            return Ok(false);
        }
    }
    Ok(true)
}

fn content_holds(
    content: &Content,
    test: &Test,
    buffer: &[u8],
    ends: &mut Vec<usize>,
    work: &mut Work,
) -> Result<bool, Exhausted> {
    let len = content.bytes.len();
    if !test.is_relative {
        let from = usize::try_from(content.from).unwrap_or(0);
        let until = content.room.map_or(buffer.len(), |room| from.saturating_add(room));
        let window = from..until.min(buffer.len());
        work.spend(window.len())?;
        let mut found = occurrences(content, buffer, window);
        if test.is_negated {
            return Ok(found.next().is_none());
        }
        if !test.feeds {
            return Ok(found.next().is_some());
        }
        *ends = found.map(|start| start + len).collect();
        return Ok(!ends.is_empty());
    }
    let Some(first) = ends.first() else { return Ok(false) };
    let start = shifted(*first, content.from);
    work.spend(buffer.len().saturating_sub(start) + ends.len())?;
    let found = occurrences(content, buffer, start..buffer.len());
    if test.is_negated {
        let found: Vec<usize> = found.collect();
        ends.retain(|end| {
            let after = found.partition_point(|start| *start < shifted(*end, content.from));
            !found.get(after).is_some_and(|start| fits(content, *end, *start))
        });
        return Ok(!ends.is_empty());
    }
    let mut found = found.filter(|start| {
        // Of the ends that are not too far behind, the last one leaves most room.
        let least = i128::try_from(*start).unwrap_or(0) - i128::from(content.from);
        let before = ends.partition_point(|end| i128::try_from(*end).unwrap_or(0) <= least);
        let end = before.checked_sub(1).and_then(|at| ends.get(at));
        end.is_some_and(|end| fits(content, *end, *start))
    });
    if !test.feeds {
        return Ok(found.next().is_some());
    }
    let found = found.map(|start| start + len).collect();
    *ends = found;
    Ok(!ends.is_empty())
}

/// A place behind the end of a match, by a distance.
fn shifted(end: usize, distance: i64) -> usize {
    let by = usize::try_from(distance.unsigned_abs()).unwrap_or(usize::MAX);
    if distance < 0 { end.saturating_sub(by) } else { end.saturating_add(by) }
}

/// Whether an occurrence lies in the bytes that the content may have behind the end of a match.
fn fits(content: &Content, end: usize, start: usize) -> bool {
    let from = i128::try_from(end).unwrap_or(0) + i128::from(content.from);
    let until = content.room.map(|room| from + i128::try_from(room).unwrap_or(i128::MAX / 2));
    let last = i128::try_from(start + content.bytes.len()).unwrap_or(i128::MAX);
    i128::try_from(start).unwrap_or(0) >= from.max(0) && until.is_none_or(|until| last <= until)
}

/// The starts of a content's occurrences in a window, in order.
fn occurrences<'a>(
    content: &'a Content,
    buffer: &'a [u8],
    window: std::ops::Range<usize>,
) -> impl Iterator<Item = usize> + 'a {
    let from = window.start;
    let bytes = buffer.get(window).unwrap_or_default();
    let last = buffer.len().checked_sub(content.bytes.len());
    let plain = (!content.is_nocase).then(|| Overlapping::new(bytes, &content.bytes));
    let nocase = content.is_nocase.then(|| nocase(bytes, &content.bytes));
    let found = plain.into_iter().flatten().chain(nocase.into_iter().flatten());
    let found = found.map(move |start| from + start);
    found.filter(move |start| !content.is_at_end || Some(*start) == last)
}

/// Occurrences of a literal that may overlap.
struct Overlapping<'a> {
    bytes: &'a [u8],
    finder: memmem::Finder<'a>,
    at: usize,
}

impl<'a> Overlapping<'a> {
    fn new(bytes: &'a [u8], literal: &'a [u8]) -> Self {
        Self { bytes, finder: memmem::Finder::new(literal), at: 0 }
    }
}

impl Iterator for Overlapping<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let found = self.at + self.finder.find(self.bytes.get(self.at..)?)?;
        self.at = found + 1;
        Some(found)
    }
}

/// Occurrences of a literal in lower case, whatever the case of letters in the bytes.
fn nocase<'a>(bytes: &'a [u8], literal: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    let first = literal.first().copied().unwrap_or_default();
    let starts = memchr::memchr2_iter(first, first.to_ascii_uppercase(), bytes);
    starts.filter(move |start| {
        let here = bytes.get(*start..*start + literal.len());
        here.is_some_and(|here| here.eq_ignore_ascii_case(literal))
    })
}

fn regex_holds(
    regex: &Regex,
    test: &Test,
    buffer: &[u8],
    ends: &mut Vec<usize>,
    work: &mut Work,
) -> Result<bool, Exhausted> {
    let starts = if test.is_relative { std::mem::take(ends) } else { vec![0] };
    let mut found = Vec::new();
    for start in starts {
        let bytes = buffer.get(start..).unwrap_or_default();
        work.spend(bytes.len())?;
        if test.is_negated || !test.feeds {
            let holds = regex.is_match(bytes) != test.is_negated;
            match (holds, test.is_relative) {
                (true, true) => found.push(start),
                (true, false) => return Ok(true),
                (false, _) => {}
            }
            if holds && !test.feeds && !test.is_negated {
                return Ok(true);
            }
        } else {
            for end in regex.find_iter(Input::new(bytes)).map(|found| start + found.end()) {
                work.spend(0)?;
                found.push(end);
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    let holds = !found.is_empty();
    // An absolute negated test has no place of its own.
    if test.is_relative || !test.is_negated {
        *ends = found;
    }
    Ok(holds)
}
