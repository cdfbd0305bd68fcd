//! Finds which packets of two captures belong together.
//!
//! Packets that occur once in both captures are anchors: first packets with equal bytes and times,
//! then, between two anchors, packets with equal bytes, then packets that agree in what functions
//! hardly ever change. Between anchors, a table of similarities finds the pairs, for a bounded
//! number of packets at a time. So the time grows with the number of packets, whatever they hold.

use std::collections::HashMap;
use std::ops::Range;

use super::ahead::Held;
use super::similar::{Features, LEAST};

/// The most packets of each capture in a table of similarities.
const TABLE: usize = 128;

/// Two packets that belong together, by their places.
pub type Pair = (usize, usize);

/// The pairs of two lists of packets.
#[derive(Debug, Default)]
pub struct Aligned {
    /// All pairs, in order.
    pub pairs: Vec<Pair>,
    /// The pairs that are certain, in order.
    pub anchors: Vec<Pair>,
}

/// What anchors agree in, the strictest first.
const KEYS: &[fn(&Held) -> u64] = &[|held| held.timed, |held| held.exact, |held| held.kept];

/// Aligns two lists of packets.
pub fn align(a: &[Held], b: &[Held], ignore_time: bool) -> Aligned {
    let keys = if ignore_time { &KEYS[1..] } else { KEYS };
    let mut aligned = Aligned::default();
    between(a, b, (0..a.len(), 0..b.len()), keys, &mut aligned);
    aligned
}

/// Aligns a part, by anchors of the first key and then of the others.
fn between(a: &[Held], b: &[Held], part: Part, keys: &[fn(&Held) -> u64], aligned: &mut Aligned) {
    let [key, others @ ..] = keys else { return fill(a, b, part, &mut aligned.pairs) };
    let found = anchors(a, b, &part, key);
    for (at, gap) in gaps(&found, &part).into_iter().enumerate() {
        between(a, b, gap, others, aligned);
        if let Some(anchor) = found.get(at) {
            aligned.pairs.push(*anchor);
            aligned.anchors.push(*anchor);
        }
    }
}

/// Places of both lists.
type Part = (Range<usize>, Range<usize>);

/// The parts before, between and behind anchors. Each part ends at its anchor; the last one at the
/// end.
fn gaps(anchors: &[Pair], part: &Part) -> Vec<Part> {
    let mut start = (part.0.start, part.1.start);
    let mut found = Vec::with_capacity(anchors.len() + 1);
    for &(a, b) in anchors.iter().chain([&(part.0.end, part.1.end)]) {
        found.push((start.0..a, start.1..b));
        start = (a + 1, b + 1);
    }
    found
}

/// The packets whose key occurs once in both parts, as many as keep their order.
fn anchors(a: &[Held], b: &[Held], part: &Part, key: impl Fn(&Held) -> u64) -> Vec<Pair> {
    // For each key: how often it occurs in each part, and where last.
    let mut seen: HashMap<u64, [(u32, usize); 2]> = HashMap::new();
    for (side, places) in [(&a, part.0.clone()), (&b, part.1.clone())].into_iter().enumerate() {
        for at in places.1 {
            let entry = &mut seen.entry(key(&places.0[at])).or_default()[side];
            *entry = (entry.0 + 1, at);
        }
    }
    let once = seen.values().filter(|[a, b]| (a.0, b.0) == (1, 1));
    let mut pairs: Vec<Pair> = once.map(|[a, b]| (a.1, b.1)).collect();
    pairs.sort_unstable();
    longest_rise(&pairs)
}

/// The most pairs whose second places rise. The first places rise already.
fn longest_rise(pairs: &[Pair]) -> Vec<Pair> {
    // ends[n]: the pair that ends the rise of n + 1 pairs with the smallest second place.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    for (at, pair) in pairs.iter().enumerate() {
        let len = ends.partition_point(|&end| pairs[end].1 < pair.1);
        before.push(len.checked_sub(1).map(|last| ends[last]));
        match ends.get_mut(len) {
            Some(end) => *end = at,
            None => ends.push(at),
        }
    }
    let mut rise = Vec::with_capacity(ends.len());
    let mut next = ends.last().copied();
    while let Some(at) = next {
        rise.push(pairs[at]);
        next = before[at];
    }
    rise.reverse();
    rise
}

/// Finds the pairs between two anchors.
fn fill(a: &[Held], b: &[Held], part: Part, pairs: &mut Vec<Pair>) {
    let (mut from, mut to) = (part.0, part.1);
    let equal = |x: usize, y: usize| a[x].exact == b[y].exact;
    while !from.is_empty() && !to.is_empty() && equal(from.start, to.start) {
        pairs.push((from.start, to.start));
        (from.start, to.start) = (from.start + 1, to.start + 1);
    }
    let mut behind = Vec::new();
    while !from.is_empty() && !to.is_empty() && equal(from.end - 1, to.end - 1) {
        (from.end, to.end) = (from.end - 1, to.end - 1);
        behind.push((from.end, to.end));
    }
    while !from.is_empty() && !to.is_empty() {
        let some =
            (from.start..from.end.min(from.start + TABLE), to.start..to.end.min(to.start + TABLE));
        let is_last = (some.0.end, some.1.end) == (from.end, to.end);
        let mut found = similar(a, b, &some);
        let mut end = (some.0.end, some.1.end);
        if !is_last {
            // The packets at the end may belong to packets behind the table.
            let near = (from.start + some.0.len() * 3 / 4, to.start + some.1.len() * 3 / 4);
            found.retain(|pair| pair.0 < near.0 && pair.1 < near.1);
            end = found.last().map_or(near, |last| (last.0 + 1, last.1 + 1));
        }
        pairs.extend(found);
        (from.start, to.start) = (end.0.max(from.start + 1), end.1.max(to.start + 1));
    }
    pairs.extend(behind.into_iter().rev());
}

/// The pairs in a small part that make the sum of similarities largest.
fn similar(a: &[Held], b: &[Held], part: &Part) -> Vec<Pair> {
    let features = |all: &[Held]| all.iter().map(|held| Features::of(&held.packet)).collect();
    let x: Vec<Features> = features(&a[part.0.clone()]);
    let y: Vec<Features> = features(&b[part.1.clone()]);
    let likeness: Vec<Vec<u32>> = x
        .iter()
        .map(|x| {
            y.iter().map(|y| x.similarity(y)).map(|found| if found < LEAST { 0 } else { found })
        })
        .map(Iterator::collect)
        .collect();
    // best[i][j]: the largest sum of the packets from i and from j on.
    let mut best = vec![vec![0_u32; y.len() + 1]; x.len() + 1];
    for i in (0..x.len()).rev() {
        for j in (0..y.len()).rev() {
            let with = match likeness[i][j] {
                0 => 0,
                found => best[i + 1][j + 1] + found,
            };
            best[i][j] = with.max(best[i + 1][j]).max(best[i][j + 1]);
        }
    }
    let (mut i, mut j, mut pairs) = (0, 0, Vec::new());
    while i < x.len() && j < y.len() {
        if likeness[i][j] > 0 && best[i][j] == best[i + 1][j + 1] + likeness[i][j] {
            pairs.push((part.0.start + i, part.1.start + j));
            (i, j) = (i + 1, j + 1);
        } else if best[i][j] == best[i + 1][j] {
            i += 1;
        } else {
            j += 1;
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longest_rise_keeps_the_most_pairs() {
        assert_eq!(longest_rise(&[]), []);
        assert_eq!(
            longest_rise(&[(0, 5), (1, 1), (2, 2), (3, 0), (4, 3)]),
            [(1, 1), (2, 2), (4, 3)]
        );
    }

    #[test]
    fn gaps_end_at_anchors() {
        let part = (0..5, 0..4);
        assert_eq!(gaps(&[(1, 1), (3, 2)], &part), [(0..1, 0..1), (2..3, 2..2), (4..5, 3..4)]);
    }
}
