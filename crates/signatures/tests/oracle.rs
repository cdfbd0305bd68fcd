//! Generated rules on generated streams, cut at random, against an oracle. The oracle has the whole
//! stream, tries all places of all tests one after the other, and shares no code with the matcher.

mod support;

use braid_signatures::{Counts, Flow, Inspection, load};
use proptest::prelude::*;
use support::Said;

const FLOW: Flow = Flow { version: 4, src: 1, dst: 2, sport: 3, dport: 4 };

/// A content as the oracle sees it.
#[derive(Clone, Debug)]
struct Content {
    text: String,
    is_negated: bool,
    is_nocase: bool,
    /// `offset` and `depth`, or `distance` and `within`.
    place: Option<(bool, i64, Option<i64>)>,
    is_at_end: bool,
}

impl Content {
    fn written(&self) -> String {
        let mut out =
            format!("content:{}\"{}\";", if self.is_negated { "!" } else { "" }, self.text);
        if self.is_nocase {
            out += " nocase;";
        }
        if let Some((is_relative, from, room)) = self.place {
            let names = if is_relative { ["distance", "within"] } else { ["offset", "depth"] };
            out += &format!(" {}:{from};", names[0]);
            out += &room.map_or(String::new(), |room| format!(" {}:{room};", names[1]));
        }
        if self.is_at_end {
            out += " endswith;";
        }
        out
    }

    fn is_at(&self, bytes: &[u8], start: i64, last: i64) -> bool {
        let (is_relative, from, room) = self.place.unwrap_or((false, 0, None));
        let base = if is_relative { last } else { 0 };
        let len = self.text.len() as i64;
        let Some(here) =
            usize::try_from(start).ok().and_then(|at| bytes.get(at..at + self.text.len()))
        else {
            return false;
        };
        let is_same = match self.is_nocase {
            true => here.eq_ignore_ascii_case(self.text.as_bytes()),
            false => here == self.text.as_bytes(),
        };
        is_same
            && start >= base + from
            && room.is_none_or(|room| start + len <= base + from + room)
            && (!self.is_at_end || start + len == bytes.len() as i64)
    }
}

/// A test as the oracle sees it.
#[derive(Clone, Debug)]
enum Test {
    Content(Content),
    /// The byte at this place, from the end of the match before if that is true, is less than.
    Less(bool, i64, u8),
    /// The byte leads so much further, times two, and rounded up to a multiple of four if that is
    /// true.
    Jump(bool, i64, bool),
    /// One of [`EXPRESSIONS`] matches from the start, or from the end of the match before if that
    /// is true. If the last is true, it must not.
    Regex(bool, usize, bool),
}

/// The end of the match that begins at a place.
type MatchAt = fn(&[u8], usize) -> Option<usize>;

/// Regular expressions that need backtracking, and what they mean.
const EXPRESSIONS: [(&str, MatchAt); 5] = [
    (r"([ab])\1", |bytes, at| match bytes.get(at..at + 2)? {
        b"aa" | b"bb" => Some(at + 2),
        _ => None,
    }),
    ("a(?!b)", |bytes, at| {
        (bytes.get(at) == Some(&b'a') && bytes.get(at + 1) != Some(&b'b')).then_some(at + 1)
    }),
    ("(?<!a)b", |bytes, at| {
        let before = at.checked_sub(1).and_then(|at| bytes.get(at));
        (bytes.get(at) == Some(&b'b') && before != Some(&b'a')).then_some(at + 1)
    }),
    (r"^([ab])[AB]*\1$", |bytes, at| {
        let [first, middle @ .., last] = bytes else { return None };
        let is_middle = middle.iter().all(|byte| matches!(byte, b'A' | b'B'));
        let is_same = first == last && matches!(first, b'a' | b'b');
        (at == 0 && is_middle && is_same).then_some(bytes.len())
    }),
    ("(?>a|ab)B", |bytes, at| (bytes.get(at..at + 2)? == b"aB").then_some(at + 2)),
];

/// The ends of the matches of an expression, one behind the other.
fn matches(expression: usize, bytes: &[u8]) -> Vec<usize> {
    let (mut at, mut ends) = (0, Vec::new());
    while at < bytes.len() {
        let end = EXPRESSIONS[expression].1(bytes, at);
        ends.extend(end);
        at = end.unwrap_or(at + 1);
    }
    ends
}

impl Test {
    fn written(&self) -> String {
        let relative = |is_relative: &bool| if *is_relative { ",relative" } else { "" };
        match self {
            Self::Content(content) => content.written(),
            Self::Less(of, at, than) => format!("byte_test:1,<,{than},{at}{};", relative(of)),
            Self::Jump(of, at, is_aligned) => {
                let align = if *is_aligned { ",align" } else { "" };
                format!("byte_jump:1,{at}{},multiplier 2{align};", relative(of))
            }
            Self::Regex(of, number, is_negated) => {
                let (not, flag) = (if *is_negated { "!" } else { "" }, if *of { "R" } else { "" });
                format!("pcre:{not}\"/{}/{flag}\";", EXPRESSIONS[*number].0)
            }
        }
    }
}

/// Whether tests hold, the first of them behind a match that ends at `last`.
fn hold(tests: &[Test], bytes: &[u8], last: i64) -> bool {
    let Some((first, rest)) = tests.split_first() else { return true };
    let byte = |is_relative: bool, at: i64| {
        let at = if is_relative { last + at } else { at };
        Some((at, *bytes.get(usize::try_from(at).ok()?)?))
    };
    match first {
        Test::Content(first) => {
            let mut places =
                (0..bytes.len() as i64).filter(|start| first.is_at(bytes, *start, last));
            match first.is_negated {
                true => places.next().is_none() && hold(rest, bytes, last),
                false => places.any(|start| hold(rest, bytes, start + first.text.len() as i64)),
            }
        }
        Test::Less(of, at, than) => {
            byte(*of, *at).is_some_and(|(_, byte)| byte < *than) && hold(rest, bytes, last)
        }
        Test::Jump(of, at, is_aligned) => byte(*of, *at).is_some_and(|(at, byte)| {
            let by = 2 * i64::from(byte);
            let by = if *is_aligned { (by + 3) / 4 * 4 } else { by };
            let to = at + 1 + by;
            to < bytes.len() as i64 && hold(rest, bytes, to)
        }),
        Test::Regex(of, number, is_negated) => {
            let from = if *of { usize::try_from(last).expect("a place") } else { 0 };
            let ends = matches(*number, &bytes[from..]);
            match is_negated {
                true => ends.is_empty() && hold(rest, bytes, last),
                false => ends.into_iter().any(|end| hold(rest, bytes, (from + end) as i64)),
            }
        }
    }
}

fn tests() -> impl Strategy<Value = Vec<Test>> {
    let place = (any::<bool>(), -3..5_i64, prop::option::of(0..4_i64));
    let content = ("[abAB]{1,3}", any::<(bool, bool)>(), prop::option::of(place), 0..8);
    let content = content.prop_map(|(text, (is_negated, is_nocase), place, end)| {
        let len = text.len() as i64;
        let place = place.map(|(is_relative, from, room)| {
            let from = if is_relative { from } else { from.max(0) };
            (is_relative, from, room.map(|room| room + len))
        });
        let is_negated = is_negated && end < 4;
        Test::Content(Content { text, is_negated, is_nocase, place, is_at_end: end == 7 })
    });
    let at = (any::<bool>(), -3..5_i64);
    let at = at.prop_map(|(of, at)| (of, if of { at } else { at.max(0) })).boxed();
    let less = (at.clone(), prop::sample::select(vec![1, 3, b'a', b'b']));
    let less = less.prop_map(|((of, at), than)| Test::Less(of, at, than));
    let jump = (at, any::<bool>());
    let jump = jump.prop_map(|((of, at), is_aligned)| Test::Jump(of, at, is_aligned));
    let regex = (any::<bool>(), 0..EXPRESSIONS.len(), any::<bool>());
    let regex = regex.prop_map(|(of, number, is_negated)| Test::Regex(of, number, is_negated));
    prop::collection::vec(prop_oneof![4 => content, 1 => less, 1 => jump, 2 => regex], 1..5)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(braid_cases::cases(3_000)))]

    #[test]
    fn rules_alert_as_the_oracle_says_however_streams_are_cut(
        rules in prop::collection::vec(tests(), 1..6),
        bytes in "[abAB_\\x00-\\x04]{1,24}",
        cuts in prop::collection::vec(1..6_usize, 24),
    ) {
        let lines = rules.iter().enumerate().map(|(at, tests)| {
            let tests: String = tests.iter().map(Test::written).collect();
            format!("alert tcp any any -> any any ({tests} sid:{};)\n", at + 1)
        });
        let loaded = load(&lines.collect::<String>());
        prop_assert_eq!(&loaded.refused, &[]);
        let wanted = rules.iter().enumerate().filter(|(_, of)| hold(of, bytes.as_bytes(), 0));
        let wanted: Vec<u32> = wanted.map(|(at, _)| at as u32).collect();

        let (mut inspection, mut said) = (Inspection::default(), Said::default());
        let mut offset = 0;
        let mut rest = bytes.as_bytes();
        for cut in cuts {
            let (part, behind) = rest.split_at(cut.min(rest.len()));
            inspection.data(&mut said.by(&loaded.set), (FLOW, true), (offset, part));
            offset += part.len() as u64;
            rest = behind;
        }
        inspection.close(&mut said.by(&loaded.set), FLOW);
        let mut found: Vec<u32> = said.alerts.iter().map(|alert| alert.rule).collect();
        found.sort_unstable();
        prop_assert_eq!(found, wanted);
        prop_assert_eq!(said.counts, Counts::default());
    }
}
