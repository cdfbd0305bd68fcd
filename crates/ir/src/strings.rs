//! Sets of byte strings: of any strings, which match exactly, or of host names.
//!
//! A set of host names compares without regard to ASCII case and to one dot at the end. Its entry
//! `*.example.org` stands for all names that end with `.example.org`.

use crate::ids::ValueId;
use crate::ty::Word;
use std::collections::HashSet;
use std::sync::Arc;

/// The most bytes of a string.
pub const MAX_STRING: usize = 16 * braid_packet::bytes::MAX_WORDS;
/// The most strings of a set.
pub const MAX_STRINGS: usize = 1 << 20;

/// A string of a program: its length (8 bits) and its words.
pub type StringParts = (ValueId, Vec<ValueId>);

/// What a search for patterns looks at ([`crate::model::Op::FindPatterns`]).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Haystack {
    /// The payload.
    Payload,
    /// The bytes of the payload from this one up to that one (32 bits each), as far as there are
    /// any. Places count from the beginning of the payload.
    Part(ValueId, ValueId),
    /// A string: its length (8 bits) and its words. No byte of the packet is read.
    Text(ValueId, Vec<ValueId>),
}

impl Haystack {
    /// Whether the search reads the payload.
    #[must_use]
    pub fn is_payload(&self) -> bool {
        !matches!(self, Self::Text(..))
    }
}

/// The place in a payload where a search of its bytes from `first` to `last` begins, and these
/// bytes, as far as there are any.
#[must_use]
pub fn part(payload: &[u8], first: Word, last: Word) -> (usize, &[u8]) {
    let [first, last] = [first, last].map(|at| usize::try_from(at).unwrap_or(usize::MAX));
    let behind = last.saturating_add(1).min(payload.len());
    (first, payload.get(first..behind).unwrap_or_default())
}

/// A set of strings. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StringSet {
    of_hosts: bool,
    tables: Arc<Tables>,
}

impl Default for StringSet {
    /// The empty set of strings.
    fn default() -> Self {
        Self { of_hosts: false, tables: Arc::default() }
    }
}

#[derive(PartialEq, Eq, Debug, Default)]
struct Tables {
    /// Strings that match as a whole.
    whole: HashSet<Box<[u8]>>,
    /// Host names such that all names below them match.
    below: HashSet<Box<[u8]>>,
    /// The most labels of a name in `below`.
    most_labels: usize,
}

/// A string that a set cannot hold.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StringError {
    /// The string is too long.
    #[error("{0} bytes, but strings of a set have at most {MAX_STRING}")]
    Long(usize),
    /// The text is no host name.
    #[error("labels of a host name have 1 to 63 letters, digits, `-` and `_`")]
    NotHost,
}

impl StringSet {
    /// A set of these strings.
    ///
    /// # Errors
    /// The first string that is too long, and its place.
    pub fn exact(strings: impl IntoIterator<Item = Vec<u8>>) -> Result<Self, (usize, StringError)> {
        let mut tables = Tables::default();
        for (at, string) in strings.into_iter().enumerate() {
            if string.len() > MAX_STRING {
                return Err((at, StringError::Long(string.len())));
            }
            tables.whole.insert(string.into());
        }
        Ok(Self { of_hosts: false, tables: Arc::new(tables) })
    }

    /// A set of these host names, and of all names below the ones behind a `*.`.
    ///
    /// # Errors
    /// The first text that is no host name, and its place.
    pub fn hosts<'t>(
        names: impl IntoIterator<Item = &'t [u8]>,
    ) -> Result<Self, (usize, StringError)> {
        let mut tables = Tables::default();
        for (at, entry) in names.into_iter().enumerate() {
            let (is_below, name) = parts(entry);
            let labels = check_host(entry).map_err(|why| (at, why))?;
            let table = if is_below { &mut tables.below } else { &mut tables.whole };
            table.insert(name.to_ascii_lowercase().into());
            if is_below {
                tables.most_labels = tables.most_labels.max(labels);
            }
        }
        Ok(Self { of_hosts: true, tables: Arc::new(tables) })
    }

    /// Whether this is a set of host names.
    #[must_use]
    pub fn is_of_hosts(&self) -> bool {
        self.of_hosts
    }

    /// The number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tables.whole.len() + self.tables.below.len()
    }

    /// Whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The length of the longest string, without a `*.`.
    #[must_use]
    pub fn longest(&self) -> usize {
        self.iter().map(|(_, one)| one.len()).max().unwrap_or(0)
    }

    /// The entries in any order: whether one stands for the names below it, and its string.
    pub fn iter(&self) -> impl Iterator<Item = (bool, &[u8])> {
        let whole = self.tables.whole.iter().map(|one| (false, &**one));
        whole.chain(self.tables.below.iter().map(|one| (true, &**one)))
    }

    /// The entries as they are written, in order.
    #[must_use]
    pub fn entries(&self) -> Vec<Vec<u8>> {
        let mut all: Vec<_> = self
            .iter()
            .map(|(below, one)| [if below { "*." } else { "" }.as_bytes(), one].concat())
            .collect();
        all.sort_unstable();
        all
    }

    /// Whether the set has this string.
    #[must_use]
    pub fn contains(&self, string: &[u8]) -> bool {
        let Tables { whole, below, most_labels } = &*self.tables;
        if !self.of_hosts {
            return whole.contains(string);
        }
        let name = string.strip_suffix(b".").unwrap_or(string);
        let mut lower = [0; MAX_STRING];
        let Some(lower) = lower.get_mut(..name.len()) else { return false };
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        let lower = &*lower;
        let dots = (0..lower.len()).rev().filter(|at| lower.get(*at) == Some(&b'.'));
        let behind = |dot: usize| lower.get(dot + 1..).unwrap_or_default();
        whole.contains(lower) || dots.take(*most_labels).any(|dot| below.contains(behind(dot)))
    }

    /// Whether the set has the string of this length in these words.
    #[must_use]
    pub fn contains_words(&self, len: Word, words: impl IntoIterator<Item = Word>) -> bool {
        let (bytes, len) = bytes_of(len, words);
        self.contains(bytes.get(..len).unwrap_or_default())
    }
}

/// The bytes of a string from its length and its words, and their number: at most as many as the
/// words have.
#[must_use]
pub fn bytes_of(len: Word, words: impl IntoIterator<Item = Word>) -> ([u8; MAX_STRING], usize) {
    let mut bytes = [0; MAX_STRING];
    let mut there = 0;
    for (place, word) in bytes.chunks_exact_mut(16).zip(words) {
        place.copy_from_slice(&word.to_be_bytes());
        there += 16;
    }
    (bytes, usize::try_from(len).unwrap_or(usize::MAX).min(there))
}

/// Whether an entry of a set of host names stands for the names below one, and this name without a
/// dot at the end.
fn parts(entry: &[u8]) -> (bool, &[u8]) {
    let below = entry.strip_prefix(b"*.");
    let name = below.unwrap_or(entry);
    (below.is_some(), name.strip_suffix(b".").unwrap_or(name))
}

/// Checks an entry of a set of host names (RFC 1123, section 2.1, and `_`, which names in use
/// have). Returns the number of its labels without a `*`.
///
/// # Errors
/// The reason why it is none.
pub fn check_host(entry: &[u8]) -> Result<usize, StringError> {
    let (_, name) = parts(entry);
    if name.len() > MAX_STRING {
        return Err(StringError::Long(name.len()));
    }
    let mut count = 0;
    for label in name.split(|byte| *byte == b'.') {
        let known = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if !(1..=63).contains(&label.len()) || !label.iter().all(known) {
            return Err(StringError::NotHost);
        }
        count += 1;
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::{MAX_STRING, StringError, StringSet, bytes_of};

    fn hosts(names: &[&str]) -> StringSet {
        StringSet::hosts(names.iter().map(|name| name.as_bytes())).expect("host names")
    }

    #[test]
    fn strings_match_exactly() {
        let set = StringSet::exact([b"a".to_vec(), Vec::new(), b"A*.".to_vec()]).expect("short");
        let is_in = |text: &str| set.contains(text.as_bytes());
        assert!(is_in("a") && is_in("") && is_in("A*."));
        assert!(!is_in("A") && !is_in("a.") && !is_in("a\0") && !is_in("xA*."));
        assert_eq!(set.entries(), [&b""[..], b"A*.", b"a"]);
    }

    #[test]
    fn hosts_match_without_case_and_below_stars() {
        let set = hosts(&["Example.ORG", "*.example.net", "*.b.example.com.", "localhost"]);
        for name in ["example.org", "EXAMPLE.org.", "a.example.net", "x.y.EXAMPLE.net", "LOCALHOST"]
        {
            assert!(set.contains(name.as_bytes()), "{name}");
        }
        for name in [
            "www.example.org",
            "example.net",
            "badexample.net",
            "",
            ".",
            "example.org..",
            "b.example.com",
            "a.b.example.com.x",
            "net",
            "example.org:80",
        ] {
            assert!(!set.contains(name.as_bytes()), "{name}");
        }
        assert!(set.contains(b"a.b.example.com") && set.contains(b".example.net"));
    }

    #[test]
    fn wrong_names_are_refused_with_their_place() {
        for wrong in ["", ".", "*", "*.", "a..b", "a b", "*.*.b", "a*.b", "a/b", "\u{e4}.de"] {
            let names = ["ok.example", wrong].map(str::as_bytes);
            assert_eq!(StringSet::hosts(names), Err((1, StringError::NotHost)), "{wrong}");
        }
        let label = "a".repeat(63);
        let most = [&*label; 3].join(".") + "." + &"b".repeat(48);
        assert_eq!(most.len(), MAX_STRING);
        assert!(hosts(&[&most, &format!("*.{most}")]).contains(most.as_bytes()));
        let long = most + "b";
        assert_eq!(StringSet::hosts([long.as_bytes()]), Err((0, StringError::Long(241))));
        assert_eq!(StringSet::exact([vec![0; 241]]), Err((0, StringError::Long(241))));
        assert!(StringSet::hosts([format!("{label}a.b").as_bytes()]).is_err());
    }

    #[test]
    fn a_length_beyond_the_words_counts_the_words() {
        let (bytes, len) = bytes_of(99, [u128::from_be_bytes(*b"0123456789abcdef")]);
        assert_eq!(&bytes[..len], b"0123456789abcdef");
        assert_eq!(bytes_of(5, []).1, 0);
    }
}
