//! Ranges of offsets: what has come out of order, on either side.

use std::ops::Range;

/// Ranges in order. They are not empty, and no two of them touch.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Ranges(pub(crate) Vec<Range<u64>>);

impl Ranges {
    /// Adds a range that is not empty. It is left out, and the answer is false, if `most` others
    /// are there and it touches none of them.
    pub fn insert(&mut self, range: Range<u64>, most: usize) -> bool {
        let first = self.0.partition_point(|other| other.end < range.start);
        let behind = self.0.partition_point(|other| other.start <= range.end);
        let joined = self.0.get(first..behind).unwrap_or_default();
        if joined.is_empty() && self.0.len() >= most {
            return false;
        }
        let start = joined.first().map_or(range.start, |other| other.start.min(range.start));
        let end = joined.last().map_or(range.end, |other| other.end.max(range.end));
        self.0.splice(first..behind, std::iter::once(start..end));
        true
    }

    /// Forgets what is in front of an offset.
    pub fn advance(&mut self, to: u64) {
        let gone = self.0.partition_point(|range| range.end <= to);
        self.0.drain(..gone);
        if let Some(first) = self.0.first_mut() {
            first.start = first.start.max(to);
        }
        if self.0.is_empty() {
            self.0 = Vec::new();
        }
    }

    /// The range that has an offset.
    pub fn holding(&self, offset: u64) -> Option<&Range<u64>> {
        let index = self.0.partition_point(|range| range.end <= offset);
        self.0.get(index).filter(|range| range.start <= offset)
    }

    /// The first offset at or behind `offset` that is in no range.
    pub fn gap(&self, offset: u64) -> u64 {
        self.holding(offset).map_or(offset, |range| range.end)
    }

    /// The start of the first range behind an offset.
    pub fn next_start(&self, offset: u64) -> Option<u64> {
        let index = self.0.partition_point(|range| range.start <= offset);
        self.0.get(index).map(|range| range.start)
    }

    /// How many offsets of a span are in no range.
    pub fn missing(&self, span: Range<u64>) -> u64 {
        let covered = |range: &Range<u64>| {
            range.end.min(span.end).saturating_sub(range.start.max(span.start))
        };
        let all: u64 = self.0.iter().map(covered).sum();
        span.end.saturating_sub(span.start).saturating_sub(all)
    }

    /// The end of the last range.
    pub fn top(&self) -> Option<u64> {
        self.0.last().map(|range| range.end)
    }

    /// The highest offset behind which more than `count` offsets are in ranges.
    pub fn with_behind(&self, count: u64) -> Option<u64> {
        let mut behind = 0;
        self.0.iter().rev().find_map(|range| {
            behind += range.end - range.start;
            (behind > count).then_some(range.start)
        })
    }

    /// The memory besides the structure (bytes).
    pub fn memory(&self) -> usize {
        self.0.capacity() * size_of::<Range<u64>>()
    }
}

#[cfg(test)]
mod tests {
    use super::Ranges;

    fn ranges(all: &[(u64, u64)]) -> Ranges {
        let mut ranges = Ranges::default();
        for &(start, end) in all {
            assert!(ranges.insert(start..end, 8));
        }
        ranges
    }

    fn pairs(ranges: &Ranges) -> Vec<(u64, u64)> {
        ranges.0.iter().map(|range| (range.start, range.end)).collect()
    }

    #[test]
    fn ranges_that_touch_are_one() {
        let joined = |all| pairs(&ranges(all));
        assert_eq!(joined(&[(5, 7), (1, 3), (3, 5)]), [(1, 7)]);
        assert_eq!(joined(&[(1, 3), (5, 7), (9, 11), (2, 10)]), [(1, 11)]);
        assert_eq!(joined(&[(5, 7), (1, 3)]), [(1, 3), (5, 7)]);
    }

    #[test]
    fn a_range_too_many_is_left_out() {
        let mut ranges = ranges(&[(1, 3), (5, 7)]);
        assert!(!ranges.insert(9..10, 2));
        assert!(ranges.insert(7..9, 2));
        assert_eq!(pairs(&ranges), [(1, 3), (5, 9)]);
    }

    #[test]
    fn questions_are_answered() {
        let mut ranges = ranges(&[(2, 4), (6, 9)]);
        assert_eq!([1, 2, 3, 4].map(|offset| ranges.gap(offset)), [1, 4, 4, 4]);
        assert_eq!([1, 2, 6].map(|offset| ranges.next_start(offset)), [Some(2), Some(6), None]);
        assert_eq!(ranges.missing(0..10), 5);
        assert_eq!(ranges.missing(3..7), 2);
        assert_eq!([2, 3, 5].map(|count| ranges.with_behind(count)), [Some(6), Some(2), None]);
        ranges.advance(7);
        assert_eq!(pairs(&ranges), [(7, 9)]);
    }
}
