//! Evaluates the tests of a rule on a buffer.
//!
//! A relative test counts from the end of a match of the test before it. That test may match in
//! several places, so the evaluation keeps all of them: the tests hold if some choice of places
//! satisfies them all.

use crate::expression::Expression;
use crate::number::Found;
use crate::rule::{Content, Test, What};
use crate::work::{Exhausted, RuleWork};
use memchr::memmem;

/// Whether all of them hold. Those behind the first one that does not hold are not evaluated.
pub fn all(each: impl Iterator<Item = Result<bool, Exhausted>>) -> Result<bool, Exhausted> {
    for holds in each {
        if !holds? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether the tests hold, with matches from this place of the buffer on.
pub fn holds(
    tests: &[Test],
    buffer: &[u8],
    first: usize,
    work: &mut RuleWork<'_>,
) -> Result<bool, Exhausted> {
    hold(tests, (buffer, first), vec![first], Found::default(), work)
}

/// Whether tests hold behind others. `ends`: the ends of matches from which the next relative test
/// may count, in order.
fn hold(
    tests: &[Test],
    (buffer, first): (&[u8], usize),
    mut ends: Vec<usize>,
    found: Found,
    work: &mut RuleWork<'_>,
) -> Result<bool, Exhausted> {
    for (at, test) in tests.iter().enumerate() {
        let holds = match &test.what {
            What::Length(least, most) => (*least..=*most).contains(&buffer.len()),
            What::DataAt(count) => {
                let count = count.saturating_add(usize::from(!test.is_relative));
                let has = |end: &usize| end.saturating_add(count) <= buffer.len();
                work.spend(ends.len(), 1)?;
                retain(test, &mut ends, |end| has(end) != test.is_negated)
            }
            What::Content(content) => {
                content_holds(content, test, (buffer, first), &mut ends, work)?
            }
            What::Regex(regex) => regex_holds(regex, test, (buffer, first), &mut ends, work)?,
            What::Compare(number, comparison, value) => {
                let holds = |from: &usize| {
                    let number = number.read(buffer, *from, &found);
                    let value = u64::try_from(value.get(&found)).ok();
                    let both = number.zip(value);
                    both.is_some_and(|((number, _), value)| comparison.holds(number, value))
                };
                let places = if test.is_relative { ends.len() } else { 1 };
                work.spend(places, number.format.len)?;
                retain(test, &mut ends, holds)
            }
            What::Jump(number, jump) => {
                let starts = starts(test, ends);
                work.spend(starts.len(), number.format.len)?;
                let to = starts.into_iter().filter_map(|from| {
                    let (number, end) = number.read(buffer, from, &found)?;
                    jump.target(buffer, end, number)
                });
                ends = to.collect();
                ends.sort_unstable();
                ends.dedup();
                !ends.is_empty()
            }
            What::Extract(number, scale, name) => {
                let behind = tests.get(at + 1..).unwrap_or_default();
                // Each place has a number of its own.
                for from in starts(test, ends) {
                    work.spend(1, number.format.len)?;
                    let Some((number, end)) = number.read(buffer, from, &found) else { continue };
                    let (mut found, end) = (found, usize::try_from(end).unwrap_or(usize::MAX));
                    found.get_mut(*name).into_iter().for_each(|of| *of = scale.apply(number));
                    if hold(behind, (buffer, first), vec![end], found, work)? {
                        return Ok(true);
                    }
                }
                return Ok(false);
            }
        };
        if !holds {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a test holds from the start, or if it is relative, from one of the ends. Only these ends
/// stay.
fn retain(test: &Test, ends: &mut Vec<usize>, holds: impl Fn(&usize) -> bool) -> bool {
    if !test.is_relative {
        return holds(&0);
    }
    ends.retain(holds);
    !ends.is_empty()
}

/// The places from which a test counts.
fn starts(test: &Test, ends: Vec<usize>) -> Vec<usize> {
    if test.is_relative { ends } else { vec![0] }
}

fn content_holds(
    content: &Content,
    test: &Test,
    (buffer, first): (&[u8], usize),
    ends: &mut Vec<usize>,
    work: &mut RuleWork<'_>,
) -> Result<bool, Exhausted> {
    let len = content.bytes.len();
    if !test.is_relative {
        let from = usize::try_from(content.from).unwrap_or(0);
        let until = content.room.map_or(buffer.len(), |room| from.saturating_add(room));
        let first = if test.is_negated { 0 } else { first };
        let window = from.max(first)..until.min(buffer.len());
        work.spend(window.len(), weight(content))?;
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
    work.spend(buffer.len().saturating_sub(start) + ends.len(), weight(content))?;
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

/// How costly it is to search a byte for a content.
fn weight(content: &Content) -> usize {
    if content.is_nocase { 1 + content.bytes.len() / 32 } else { 1 }
}

fn regex_holds(
    regex: &Expression,
    test: &Test,
    (buffer, first): (&[u8], usize),
    ends: &mut Vec<usize>,
    work: &mut RuleWork<'_>,
) -> Result<bool, Exhausted> {
    let mut starts = if test.is_relative { std::mem::take(ends) } else { vec![0] };
    let behind = |start: usize| buffer.get(start..).unwrap_or_default();
    let first = if test.is_relative { 0 } else { first };
    if test.is_negated {
        let found = without_match(regex, starts, behind, work)?;
        let holds = !found.is_empty();
        // An absolute negated test has no place of its own.
        if test.is_relative {
            *ends = found;
        }
        return Ok(holds);
    }
    if regex.is_free {
        // What matches behind a later start also matches behind the first one.
        starts.truncate(1);
    }
    if !test.feeds {
        for start in starts {
            if regex.is_match(behind(start), first, work)? {
                return Ok(true);
            }
        }
        return Ok(false);
    }
    let mut found = Vec::new();
    for start in starts {
        regex.ends(behind(start), first, work, |end| found.push(start + end))?;
    }
    found.sort_unstable();
    found.dedup();
    *ends = found;
    Ok(!ends.is_empty())
}

/// The starts behind which a regular expression does not match.
fn without_match<'a>(
    regex: &Expression,
    mut starts: Vec<usize>,
    behind: impl Fn(usize) -> &'a [u8],
    work: &mut RuleWork<'_>,
) -> Result<Vec<usize>, Exhausted> {
    let mut matches = |start: usize| regex.is_match(behind(start), 0, work);
    if !regex.is_free {
        let mut found = Vec::new();
        for start in starts {
            if !matches(start)? {
                found.push(start);
            }
        }
        return Ok(found);
    }
    // Behind later starts, there are only fewer matches.
    let (mut low, mut high) = (0, starts.len());
    while low < high {
        let middle = low.midpoint(high);
        match starts.get(middle) {
            Some(start) if matches(*start)? => low = middle + 1,
            _ => high = middle,
        }
    }
    Ok(starts.split_off(low))
}
