//! Searches of streams: the parts of a stream, gaps, saved searches, and refused patterns.

use braid_externs::patterns::{Matcher, Pattern, PatternError, PatternSet, Scan};
use proptest::prelude::*;
use regex_automata::meta::Regex;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input};

fn literal(number: u32, bytes: &[u8], nocase: bool) -> Pattern {
    Pattern { number, matcher: Matcher::Literal { bytes: bytes.to_vec(), nocase } }
}

fn regex(number: u32, source: &str) -> Pattern {
    Pattern { number, matcher: Matcher::Regex { source: source.to_owned(), nocase: false } }
}

fn set(patterns: Vec<Pattern>) -> PatternSet {
    PatternSet::new(patterns).expect("good patterns")
}

/// The results of the parts of a stream.
fn results(set: &PatternSet, parts: &[&[u8]]) -> Vec<Option<u32>> {
    let mut scan = Scan::default();
    parts.iter().map(|part| set.scan(&mut scan, part)).collect()
}

#[test]
fn match_goes_across_parts() {
    let set = set(vec![literal(3, b"needle", false), literal(2, b"PIN", true), regex(1, "a+b{2}")]);
    assert_eq!(set.check_streams(), Ok(()));
    assert_eq!(
        results(&set, &[b"xxnee", b"", b"d", b"lex", b"le"]),
        [None, None, None, Some(3), None]
    );
    assert_eq!(results(&set, &[b"p", b"i", b"n", b"n"]), [None, None, Some(2), None]);
    assert_eq!(results(&set, &[b"needlaa", b"ab", b"bb"]), [None, None, Some(1)]);
    // One match ends in the first part, and a longer one in the second.
    assert_eq!(results(&set, &[b"needle pi", b"n"]), [Some(3), Some(2)]);
}

#[test]
fn text_full_of_beginnings_is_searched_to_its_end() {
    let set = set(vec![literal(3, b"abcd", false), literal(5, b"XYZ", true)]);
    let first = [b"abc-".repeat(500), b"abcd".to_vec(), b"xY-".repeat(300)].concat();
    assert_eq!(results(&set, &[&first, b"--xyZ"]), [Some(3), Some(5)]);
    let behind = [b"abc-".repeat(500), b"----".repeat(500), b"xyz".to_vec()].concat();
    assert_eq!(results(&set, &[&behind]), [Some(5)]);
}

#[test]
fn part_without_bytes_finds_nothing() {
    let set = set(vec![regex(5, "")]);
    assert_eq!(results(&set, &[b"", b"x", b"", b"y"]), [None, Some(5), None, Some(5)]);
    let nothing = PatternSet::default();
    assert_eq!(results(&nothing, &[b"", b"x"]), [None, None]);
}

#[test]
fn text_starts_once_and_lines_start_often() {
    let set = set(vec![regex(2, "^ab"), regex(1, "(?m)^cd"), regex(3, r"(?m)^x?\Az")]);
    assert_eq!(set.check_streams(), Ok(()));
    assert_eq!(results(&set, &[b"a", b"bab", b"cd"]), [None, Some(2), None]);
    assert_eq!(results(&set, &[b"\n", b"c", b"d", b"\nab"]), [None, None, Some(1), None]);
    assert_eq!(results(&set, &[b"c", b"dcd", b"\nz"]), [None, Some(1), None]);
    assert_eq!(results(&set, &[b"z"]), [Some(3)]);
}

#[test]
fn gap_breaks_matches_and_is_no_start() {
    let set =
        set(vec![literal(4, b"abc", false), regex(1, "^x"), regex(2, "(?m)^y"), regex(3, "z+w")]);
    let mut scan = Scan::default();
    assert_eq!(set.scan(&mut scan, b"ab"), None);
    scan.skip();
    assert_eq!(set.scan(&mut scan, b"cxyabz"), None);
    scan.skip();
    assert_eq!(set.scan(&mut scan, b"wxzw"), Some(3));
    assert_eq!(set.scan(&mut scan, b"\n"), None);
    assert_eq!(set.scan(&mut scan, b"y"), Some(2));
    assert_eq!(set.scan(&mut scan, b"\n"), None);
    scan.skip();
    assert_eq!(set.scan(&mut scan, b"yabc"), Some(4));
    // A gap in front of the first byte counts, too.
    let mut scan = Scan::default();
    scan.skip();
    assert_eq!(set.scan(&mut scan, b"x"), None);
}

#[test]
fn assertions_about_later_bytes_are_refused_and_never_found() {
    let sources = ["a$", r"a\z", "(?m)a$", r"\ba", r"a\B", "(?Rm)^a", r"\b{start}a", "^a", "a|$"];
    let patterns = sources.iter().map(|source| regex(1, source)).collect();
    let errors = set(patterns).check_streams().expect_err("some are refused");
    let places: Vec<_> = errors.iter().map(|error| error.index().expect("a pattern")).collect();
    assert_eq!(places, [0, 1, 2, 3, 4, 5, 6, 8]);
    assert_eq!(errors[0], PatternError::NeedsLaterBytes { index: 0 });
    let set = set(vec![regex(1, r"a\b"), regex(2, "b$"), regex(3, "ab")]);
    assert_eq!(results(&set, &[b"a", b"", b"b"]), [None, None, Some(3)]);
}

#[test]
fn search_is_small() {
    assert!(size_of::<Scan>() <= 24);
    let heavy = set(vec![regex(1, "(?s)a.{900}b"), regex(2, "[ab]c.{900}d")]);
    let mut scan = Scan::default();
    for _ in 0..50 {
        heavy.scan(&mut scan, &b"abcaabbcacabbacbacaacb".repeat(7));
    }
    // A bit for each of some 1,800 states.
    let bytes = scan.to_bytes().len();
    assert!((100..400).contains(&bytes), "{bytes}");
    assert_eq!(heavy.read_scan(&scan.to_bytes()), Some(scan));
}

#[test]
fn full_cache_loses_no_match() {
    // Almost every byte leads to a new set of states, so that the cache fills up several times.
    let set = set(vec![regex(7, "(?s)x.{99}z"), regex(9, "z$")]);
    let (mut scan, mut text) = (Scan::default(), Vec::new());
    let mut random = braid_externs::Rng::new(7);
    for _ in 0..8_000 {
        let from = text.len();
        text.extend((0..10).map(|_| b"xyxyxyxyxyxyxyxz"[(random.next_u64() & 15) as usize]));
        let ends = |at: usize| at >= 100 && text[at] == b'z' && text[at - 100] == b'x';
        let expected = (from..text.len()).any(ends).then_some(7);
        assert_eq!(set.scan(&mut scan, &text[from..]), expected);
    }
}

#[test]
fn searches_of_another_set_do_not_panic() {
    let sets = [
        set(vec![literal(1, b"abcabcabc", false), literal(2, b"cab", true)]),
        set(vec![regex(1, "(?s)a.{40}b"), regex(2, "^[ab]*c"), literal(3, b"b", false)]),
        set(vec![regex(1, "a+b"), regex(2, "bc")]),
        PatternSet::default(),
    ];
    for one in &sets {
        for other in &sets {
            let mut scan = Scan::default();
            one.scan(&mut scan, b"abcabcababaaabab");
            other.scan(&mut scan, b"abcabcab");
            let read = other.read_scan(&scan.to_bytes());
            assert!(one != other || read == Some(scan));
        }
    }
}

#[test]
fn clones_search_from_several_threads() {
    let set = set(vec![regex(1, "(?s)a.{12}b"), literal(2, b"ab", false)]);
    let text: Vec<u8> = (0..4_000_u32).map(|i| b"abc"[(i * i / 7 % 3) as usize]).collect();
    let expected = results(&set, &[&text[..99], &text[99..]]);
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let (set, text) = (set.clone(), text.clone());
            std::thread::spawn(move || results(&set, &[&text[..99], &text[99..]]))
        })
        .collect();
    for thread in threads {
        assert_eq!(thread.join().expect("no panic"), expected);
    }
}

/// Whether a match ends at a place of a text. A match at the place `from` or behind it.
struct Oracle(Vec<(u32, Matches)>);

enum Matches {
    Literal(Vec<u8>, bool),
    Regex(Regex),
}

impl Oracle {
    fn new(patterns: &[Pattern]) -> Self {
        let matches = |pattern: &Pattern| match &pattern.matcher {
            Matcher::Literal { bytes, nocase } => Matches::Literal(bytes.clone(), *nocase),
            Matcher::Regex { source, nocase } => {
                let config =
                    syntax::Config::new().unicode(false).utf8(false).case_insensitive(*nocase);
                let ends_here = format!(r"(?:{source})\z");
                let regex = Regex::builder()
                    .syntax(config)
                    .configure(Regex::config().utf8_empty(false))
                    .build(&ends_here);
                Matches::Regex(regex.expect("a good regex"))
            }
        };
        Self(patterns.iter().map(|pattern| (pattern.number, matches(pattern))).collect())
    }

    /// The lowest number of the patterns with a match in `text[from..]` that ends at `end`.
    fn lowest(&self, text: &[u8], from: usize, end: usize) -> Option<u32> {
        let text = &text[..end];
        let ends = |matches: &Matches| {
            (from..=end).any(|start| match matches {
                Matches::Literal(bytes, true) => text[start..].eq_ignore_ascii_case(bytes),
                Matches::Literal(bytes, false) => text[start..] == **bytes,
                Matches::Regex(regex) => {
                    // Assertions see the bytes in front of the start.
                    let input = Input::new(text).range(start..).anchored(Anchored::Yes);
                    regex.is_match(input)
                }
            })
        };
        self.0.iter().filter(|(_, matches)| ends(matches)).map(|(number, _)| *number).min()
    }

    /// The results of the parts of a stream. `None` is a gap.
    fn results(&self, parts: &[Option<Vec<u8>>]) -> Vec<Option<u32>> {
        let (mut text, mut from, mut results) = (Vec::new(), 0, Vec::new());
        for part in parts {
            let Some(part) = part else {
                // The byte for a gap matches nothing and ends no line.
                text = vec![0];
                from = 1;
                continue;
            };
            let first = text.len();
            text.extend_from_slice(part);
            // An empty match at the start counts with the first byte.
            let first = if first == from { first } else { first + 1 };
            let ends = if part.is_empty() { text.len() + 1 } else { first }..=text.len();
            results.push(ends.filter_map(|end| self.lowest(&text, from, end)).min());
        }
        results
    }
}

fn pattern() -> impl Strategy<Value = Pattern> {
    let byte = prop_oneof![Just(b'a'), Just(b'b'), Just(b'B')];
    let bytes = proptest::collection::vec(byte, 1..6);
    let source = prop_oneof![
        Just("a+b"),
        Just("^b"),
        Just("(ab|ba){2}"),
        Just("[^a]a"),
        Just("a.b"),
        Just(""),
        Just("^"),
        Just("(?m)^"),
        Just("(?m)^[ab]*B"),
        Just("(?s)^.{3}b"),
        Just("(?s)a.*bb"),
        Just("(?s).*ab"),
        Just("(?s)^a.*B$|[ab]{4}"),
        Just("(?s)^a?.*B.?a"),
        Just("(?s)b.{2,5}(aa|(?m:^)b)"),
        Just(r"(^|\n)(a|^b|(?m)^B)+"),
        Just(r"(?:a*|b)*\n(?m)^(?:|aa)b"),
        Just(r"a{3,}|\Ab*a"),
        Just("b*"),
    ];
    // What is refused has a test of its own.
    let source = source.prop_map(|source| source.replace('$', ""));
    let matcher = prop_oneof![
        (bytes, any::<bool>()).prop_map(|(bytes, nocase)| Matcher::Literal { bytes, nocase }),
        (source, any::<bool>()).prop_map(|(source, nocase)| Matcher::Regex { source, nocase }),
    ];
    (0_u32..9, matcher).prop_map(|(number, matcher)| Pattern { number, matcher })
}

fn patterns() -> impl Strategy<Value = Vec<Pattern>> {
    proptest::collection::vec(pattern(), 0..7)
}

fn text(most: usize) -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![Just(b'a'), Just(b'b'), Just(b'B'), Just(b'\n')];
    proptest::collection::vec(byte, 0..most)
}

/// A text with many bytes that searches skip, because no literal begins there.
fn sparse_text() -> impl Strategy<Value = Vec<u8>> {
    let filler = (0_usize..45).prop_map(|count| vec![b'-'; count]);
    let piece = prop_oneof![filler, text(8)];
    proptest::collection::vec(piece, 1..6).prop_map(|pieces| pieces.concat())
}

/// Literals of at least this number of bytes.
fn literals(least: usize) -> impl Strategy<Value = Vec<Pattern>> {
    let byte = prop_oneof![Just(b'a'), Just(b'b'), Just(b'B')];
    let bytes = proptest::collection::vec(byte, least..least + 4);
    let one = (0_u32..9, bytes, any::<bool>());
    let one = one.prop_map(|(number, bytes, nocase)| literal(number, &bytes, nocase));
    proptest::collection::vec(one, 1..5)
}

/// Adds literals that no text has. They are so long that the set has other automata for literals.
fn with_long_literals(patterns: &[Pattern]) -> Vec<Pattern> {
    let long = [false, true].map(|nocase| literal(99, &[b'x'; 5_000], nocase));
    patterns.iter().cloned().chain(long).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(braid_cases::cases(512)))]

    #[test]
    fn parts_agree_with_the_oracle(
        patterns in patterns(),
        parts in proptest::collection::vec(proptest::option::weighted(0.85, text(7)), 0..7),
    ) {
        let expected = Oracle::new(&patterns).results(&parts);
        for set in [set(with_long_literals(&patterns)), set(patterns)] {
            prop_assert_eq!(set.check_streams(), Ok(()));
            let (mut scan, mut found) = (Scan::default(), Vec::new());
            for part in &parts {
                match part {
                    Some(part) => found.push(set.scan(&mut scan, part)),
                    None => scan.skip(),
                }
                // A saved search goes on as the search itself.
                let saved = set.read_scan(&scan.to_bytes());
                prop_assert_eq!(saved.as_ref(), Some(&scan));
            }
            prop_assert_eq!(&found, &expected);
        }
    }

    #[test]
    fn sparse_parts_agree_with_the_oracle(
        patterns in (1_usize..5).prop_flat_map(literals),
        parts in proptest::collection::vec(sparse_text().prop_map(Some), 1..3),
    ) {
        let expected = Oracle::new(&patterns).results(&parts);
        let set = set(patterns);
        let (mut scan, mut bytewise) = (Scan::default(), Scan::default());
        let mut found = Vec::new();
        for part in parts.iter().flatten() {
            found.push(set.scan(&mut scan, part));
            // No bytes are skipped where they come one by one.
            for byte in part {
                set.scan(&mut bytewise, &[*byte]);
            }
            prop_assert_eq!(&scan, &bytewise);
        }
        prop_assert_eq!(&found, &expected);
    }

    #[test]
    fn cuts_make_no_difference(patterns in patterns(), text in text(14), cuts: u16) {
        let set = set(patterns);
        let mut whole = Scan::default();
        let expected = set.scan(&mut whole, &text);
        prop_assert_eq!(expected, set.lowest_match(&text).filter(|_| !text.is_empty()));
        let (mut scan, mut found, mut from) = (Scan::default(), Vec::new(), 0);
        for at in 1..=text.len() {
            if at == text.len() || cuts >> at & 1 == 1 {
                found.push(set.scan(&mut scan, &text[from..at]));
                from = at;
            }
        }
        prop_assert_eq!(found.into_iter().flatten().min(), expected);
        prop_assert_eq!(scan, whole);
    }

    #[test]
    fn damaged_searches_do_not_panic(
        patterns in patterns(),
        text in text(14),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        length in proptest::option::of(0_usize..40),
        random in proptest::collection::vec(0_u32..9, 0..5),
    ) {
        let set = set(patterns);
        let mut scan = Scan::default();
        set.scan(&mut scan, &text);
        let mut bytes = scan.to_bytes();
        for (place, byte) in damage {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        if let Some(length) = length {
            bytes.resize(length, 0);
        }
        let random = random.into_iter().flat_map(u32::to_le_bytes).collect();
        for bytes in [bytes, random] {
            if let Some(mut scan) = set.read_scan(&bytes) {
                prop_assert_eq!(scan.to_bytes(), bytes);
                set.scan(&mut scan, &text);
                prop_assert_eq!(set.read_scan(&scan.to_bytes()), Some(scan));
            }
        }
    }

    #[test]
    fn arbitrary_regexes_agree_with_the_oracle(source in "[ab^(|)*+?.\n]{0,9}", text in text(9)) {
        let patterns = vec![regex(1, &source)];
        if let Ok(set) = PatternSet::new(patterns.clone()) {
            let parts: Vec<_> = text.chunks(2).map(|part| Some(part.to_vec())).collect();
            let mut scan = Scan::default();
            let found: Vec<_> =
                text.chunks(2).map(|part| set.scan(&mut scan, part)).collect();
            prop_assert_eq!(found, Oracle::new(&patterns).results(&parts));
        }
    }
}
