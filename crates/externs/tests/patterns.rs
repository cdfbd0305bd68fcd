//! Pattern sets: matches, the number of a match, and refused patterns.

use braid_externs::patterns::{
    MAX_LITERAL_BYTES, MAX_NESTED_LITERALS, MAX_PATTERNS, MAX_REGEX_BYTES, MAX_REGEX_BYTES_TOTAL,
    Match, Matcher, Pattern, PatternError, PatternSet,
};
use proptest::prelude::*;

fn literal(number: u32, bytes: &[u8], nocase: bool) -> Pattern {
    Pattern { number, matcher: Matcher::Literal { bytes: bytes.to_vec(), nocase } }
}

fn regex(number: u32, source: &str, nocase: bool) -> Pattern {
    Pattern { number, matcher: Matcher::Regex { source: source.to_owned(), nocase } }
}

fn set(patterns: Vec<Pattern>) -> PatternSet {
    PatternSet::new(patterns).expect("good patterns")
}

fn refused(patterns: Vec<Pattern>) -> Vec<PatternError> {
    PatternSet::new(patterns).expect_err("bad patterns")
}

#[test]
fn lowest_number_wins_over_all_kinds() {
    let patterns = set(vec![
        regex(5, "wor[lk]d", false),
        literal(9, b"hello", false),
        literal(3, b"WORLD", true),
        regex(2, "^x", false),
    ]);
    assert_eq!(patterns.lowest_match(b"hello"), Some(9));
    assert_eq!(patterns.lowest_match(b"hello workd"), Some(5));
    assert_eq!(patterns.lowest_match(b"hello world"), Some(3));
    assert_eq!(patterns.lowest_match(b"x hello world"), Some(2));
    assert_eq!(patterns.lowest_match(b"HELLO"), None);
    assert_eq!(patterns.lowest_match(b""), None);
}

#[test]
fn first_match_of_the_lowest_number_has_a_place() {
    let patterns = set(vec![
        literal(7, b"host: ", true),
        regex(3, "[a-z]+[.]example", false),
        literal(3, b"a.exam", false),
        regex(9, "$", false),
    ]);
    let place = |payload: &[u8]| patterns.first_match(payload).map(|m| (m.number, m.start, m.end));
    assert_eq!(place(b"x HOST: y host: "), Some((7, 2, 8)));
    // Two patterns begin at the same byte: the first one in order counts, and takes all it can.
    assert_eq!(place(b"Host: a.example"), Some((3, 6, 15)));
    assert_eq!(place(b"Host: ba.exam"), Some((3, 7, 13)));
    assert_eq!(place(b"other"), Some((9, 5, 5)));
    assert_eq!(place(b""), Some((9, 0, 0)));
    assert_eq!(set(vec![literal(1, b"x", false)]).first_match(b"y"), None);
}

#[test]
fn literal_inside_or_across_another_one_is_found() {
    let patterns = set(vec![literal(4, b"abcd", false), literal(3, b"bc", false)]);
    assert_eq!(patterns.lowest_match(b"xabcdx"), Some(3));
    let patterns = set(vec![literal(4, b"abc", false), literal(3, b"cde", false)]);
    assert_eq!(patterns.lowest_match(b"abcde"), Some(3));
}

#[test]
fn regex_inside_another_ones_match_is_found() {
    let patterns = set(vec![regex(2, "a+b*", false), regex(1, "b$", false)]);
    assert_eq!(patterns.lowest_match(b"aabb"), Some(1));
    assert_eq!(patterns.lowest_match(b"aabbc"), Some(2));
}

#[test]
fn bytes_are_no_unicode() {
    let patterns = set(vec![regex(1, r"^\xff.\x00$", false), literal(2, b"\x80\x00", false)]);
    assert_eq!(patterns.lowest_match(b"\xff\xfe\x00"), Some(1));
    assert_eq!(patterns.lowest_match(b"a\x80\x00"), Some(2));
    // A dot matches one byte; e with an acute accent is two bytes in UTF-8.
    let dot = set(vec![regex(1, "^.$", false)]);
    assert_eq!(dot.lowest_match("é".as_bytes()), None);
    // Case folding is ASCII only: the Kelvin sign does not match k.
    assert_eq!(set(vec![regex(1, "k", true)]).lowest_match("\u{212a}".as_bytes()), None);
    assert_eq!(set(vec![regex(1, "k", true)]).lowest_match(b"K"), Some(1));
}

#[test]
fn equality_is_about_patterns_and_clones_are_equal() {
    let one = set(vec![literal(1, b"a", false)]);
    assert_eq!(one, one.clone());
    assert_eq!(one, set(vec![literal(1, b"a", false)]));
    assert_ne!(one, set(vec![literal(1, b"a", true)]));
    assert_eq!(PatternSet::default().lowest_match(b"a"), None);
    assert_eq!(PatternSet::default(), set(vec![]));
}

#[test]
fn bad_patterns_are_all_reported_with_their_place() {
    let errors = refused(vec![
        literal(1, b"", false),
        literal(2, b"ok", false),
        regex(3, "a(b", false),
        regex(4, r"\p{Greek}", false),
        regex(5, &"a".repeat(MAX_REGEX_BYTES + 1), false),
    ]);
    let places: Vec<_> = errors.iter().map(PatternError::index).collect();
    assert_eq!(places, [Some(0), Some(2), Some(3), Some(4)]);
    assert!(matches!(errors[1], PatternError::RegexSyntax { offset: 1, .. }), "{:?}", errors[1]);
}

#[test]
fn limits_hold_at_their_edges() {
    let long = |length| vec![literal(1, &vec![b'a'; length], false)];
    assert_eq!(set(long(MAX_LITERAL_BYTES)).patterns().len(), 1);
    assert_eq!(refused(long(MAX_LITERAL_BYTES + 1)), [PatternError::LiteralsTooLong { index: 0 }]);
    let many = |count| (0..count).map(|_| literal(1, b"a", false)).collect::<Vec<_>>();
    assert_eq!(set(many(MAX_PATTERNS)).lowest_match(b"a"), Some(1));
    let count = MAX_PATTERNS + 1;
    assert_eq!(refused(many(count)), [PatternError::TooMany { count }]);
}

#[test]
fn literals_that_end_with_one_another_have_a_limit() {
    let nested = |count: u32, number: fn(u32) -> u32| -> Vec<Pattern> {
        (1..=count).map(|n| literal(number(n), &vec![b'a'; n as usize], false)).collect()
    };
    let most = u32::try_from(MAX_NESTED_LITERALS).expect("small");
    // Longer literals have lower numbers, so that all are needed.
    let all = set(nested(most, |n| 100 - n));
    assert_eq!(all.lowest_match(b"aaa"), Some(97));
    let errors = refused(nested(most + 1, |n| 100 - n));
    assert_eq!(errors, [PatternError::LiteralsNested { index: MAX_NESTED_LITERALS }]);
    // Longer literals have higher numbers, so that only the first is needed.
    assert_eq!(set(nested(1_000, |n| n)).lowest_match(b"aaa"), Some(1));
}

#[test]
fn regexes_that_explode_are_refused() {
    let bomb = "((a{1000}){1000}){1000}";
    assert_eq!(
        refused(vec![regex(1, "ok", false), regex(2, bomb, false)]),
        [PatternError::RegexesTooBig { index: 1 }]
    );
    let deep = format!("{}a{}", "(".repeat(500), ")".repeat(500));
    assert!(matches!(
        refused(vec![regex(1, &deep, false)])[..],
        [PatternError::RegexSyntax { .. }]
    ));
    let heavy = (0..400).map(|i| regex(i, "(aa|b){1000}", false)).collect();
    let errors = refused(heavy);
    // Each takes some 100 KiB, so that the limit falls in the middle of the list.
    assert!(matches!(errors[..], [PatternError::RegexesTooBig { index: 50..350 }]), "{errors:?}");
}

#[test]
fn regex_sources_have_a_limit_together() {
    let source = "a".repeat(MAX_REGEX_BYTES);
    let count = MAX_REGEX_BYTES_TOTAL / MAX_REGEX_BYTES + 1;
    let many = (0..count).map(|_| regex(1, &source, false)).collect();
    assert_eq!(refused(many), [PatternError::RegexesTooLong { index: count - 1 }]);
}

/// The first match of a pattern, by a simple search.
fn naive(pattern: &Pattern, payload: &[u8]) -> Option<(usize, usize)> {
    let windows = |bytes: &[u8], same: fn(&[u8], &[u8]) -> bool| {
        let start = payload.windows(bytes.len()).position(|window| same(window, bytes))?;
        Some((start, start + bytes.len()))
    };
    match &pattern.matcher {
        Matcher::Literal { bytes, nocase: false } => {
            windows(bytes, |window, bytes| window == bytes)
        }
        Matcher::Literal { bytes, nocase: true } => windows(bytes, <[u8]>::eq_ignore_ascii_case),
        Matcher::Regex { source, nocase } => {
            let pattern = if *nocase { format!("(?i){source}") } else { source.clone() };
            let config = regex_automata::util::syntax::Config::new().unicode(false).utf8(false);
            let one = regex_automata::meta::Regex::builder()
                .syntax(config)
                .configure(regex_automata::meta::Regex::config().utf8_empty(false))
                .build(&pattern)
                .expect("a good regex");
            one.find(payload).map(|found| (found.start(), found.end()))
        }
    }
}

fn pattern() -> impl Strategy<Value = Pattern> {
    let bytes = proptest::collection::vec(prop_oneof![Just(b'a'), Just(b'B'), Just(b'b')], 1..4);
    let source = prop_oneof![
        Just("a+b"),
        Just("^b"),
        Just("B$"),
        Just("(ab|ba){2}"),
        Just("[^a]a"),
        Just("a.b"),
        Just("")
    ];
    let matcher = prop_oneof![
        (bytes, any::<bool>()).prop_map(|(bytes, nocase)| Matcher::Literal { bytes, nocase }),
        (source, any::<bool>())
            .prop_map(|(source, nocase)| Matcher::Regex { source: source.to_owned(), nocase }),
    ];
    (0_u32..6, matcher).prop_map(|(number, matcher)| Pattern { number, matcher })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(braid_cases::cases(256)))]

    #[test]
    fn set_agrees_with_each_pattern_alone(
        patterns in proptest::collection::vec(pattern(), 0..6),
        payload in proptest::collection::vec(prop_oneof![Just(b'a'), Just(b'b'), Just(b'B'), Just(b'\n')], 0..12),
    ) {
        let found: Vec<_> = patterns
            .iter()
            .filter_map(|pattern| Some((pattern.number, naive(pattern, &payload)?)))
            .collect();
        // The lowest number, then the lowest beginning, then the first pattern.
        let first = found.iter().min_by_key(|(number, (start, _))| (*number, *start));
        let first = first.map(|&(number, (start, end))| Match { number, start, end });
        // Long literals, which no payload has, give the set other automata for literals.
        let long = [false, true].map(|nocase| literal(99, &[b'x'; 5_000], nocase));
        let with_long = patterns.iter().cloned().chain(long).collect();
        for set in [set(with_long), set(patterns)] {
            prop_assert_eq!(set.lowest_match(&payload), first.map(|first| first.number));
            prop_assert_eq!(set.first_match(&payload), first);
        }
    }

    #[test]
    fn arbitrary_regexes_never_panic(source in "\\PC{0,20}", payload: Vec<u8>) {
        if let Ok(patterns) = PatternSet::new(vec![regex(1, &source, false)]) {
            let found = patterns.lowest_match(&payload);
            prop_assert!(found.is_none_or(|number| number == 1));
            let place = patterns.first_match(&payload);
            prop_assert_eq!(place.map(|place| place.number), found);
            prop_assert!(place.is_none_or(|one| one.start <= one.end && one.end <= payload.len()));
        }
    }
}
