//! The places in a text where a literal may begin, which a search finds many bytes at a time.
//! Between them, an automaton that is at its root stays there.

use aho_corasick::Span;
use aho_corasick::packed::{Config, Searcher};
use std::collections::BTreeSet;

/// The most bytes of a literal's beginning that are looked for.
const MOST_BYTES: usize = 3;

/// The most beginnings. The search slows down with their number.
const MOST: usize = 64;

/// The beginnings of some literals.
pub(super) struct Starts {
    searcher: Searcher,
    /// The number of bytes of each beginning.
    len: usize,
}

impl Starts {
    /// The beginnings of literals, which are not empty; with `nocase`, in either case of ASCII.
    /// `None` if there are too many for a fast search, or if the machine has none.
    pub(super) fn new(literals: &[Vec<u8>], nocase: bool) -> Option<Self> {
        let len = literals.iter().map(Vec::len).min()?.min(MOST_BYTES);
        let mut all: BTreeSet<Vec<u8>> = BTreeSet::new();
        for start in literals.iter().filter_map(|literal| literal.get(..len)) {
            all.extend(if nocase { in_either_case(start) } else { vec![start.to_vec()] });
            if all.len() > MOST {
                return None;
            }
        }
        let searcher = Config::new().only_teddy(true).builder().extend(all).build()?;
        Some(Self { searcher, len })
    }

    /// The least number of bytes for which a search is fast.
    pub(super) fn least(&self) -> usize {
        self.searcher.minimum_len().max(self.len)
    }

    /// The first place where a literal may begin: where its beginning stands, or where too few
    /// bytes are left for that.
    pub(super) fn first(&self, bytes: &[u8]) -> usize {
        let found = self.searcher.find_in(bytes, Span { start: 0, end: bytes.len() });
        found.map_or((bytes.len() + 1).saturating_sub(self.len), |found| found.start())
    }
}

/// All ways to write some bytes with letters of either case.
fn in_either_case(bytes: &[u8]) -> Vec<Vec<u8>> {
    bytes.iter().fold(vec![Vec::new()], |all, byte| {
        let cases = BTreeSet::from([byte.to_ascii_lowercase(), byte.to_ascii_uppercase()]);
        let with = |start: &Vec<u8>, case: u8| [start.as_slice(), &[case]].concat();
        all.iter().flat_map(|start| cases.iter().map(move |case| with(start, *case))).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::{Starts, in_either_case};

    #[test]
    fn letters_have_two_cases_and_other_bytes_one() {
        let all = in_either_case(b"a-B");
        assert_eq!(all, [b"A-B", b"A-b", b"a-B", b"a-b"]);
    }

    #[test]
    fn bytes_at_the_end_may_begin_a_literal() {
        let literals = [b"abcd".to_vec(), b"xyz".to_vec()];
        let Some(starts) = Starts::new(&literals, false) else { return };
        let text = |end: &[u8]| [&[b'-'; 50], end].concat();
        assert_eq!(starts.first(&text(b"abx")), 51, "two bytes could begin a literal");
        assert_eq!(starts.first(&text(b"-ab")), 51);
        assert_eq!(starts.first(&text(b"-abc-xyz")), 51);
        assert_eq!(starts.first(&text(b"ABC-xyz")), 54, "another case");
        let Some(short) = Starts::new(&[b"a".to_vec()], true) else { return };
        assert_eq!(short.first(&text(b"bc")), 52, "no byte could");
        assert_eq!(short.first(&text(b"bA")), 51);
    }

    #[test]
    fn many_beginnings_have_no_search() {
        let literals = |count: u8| (0..count).map(|at| vec![at, 1, 2]).collect::<Vec<_>>();
        assert!(Starts::new(&literals(65), false).is_none());
        assert!(Starts::new(&[], false).is_none());
    }
}
