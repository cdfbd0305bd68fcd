//! Regular expressions of PCRE. Automata search them in linear time where they can, and
//! backtracking within limits elsewhere.

use super::fault::Fault;
use super::flags::Flags;
use super::rewriting::{Dialect, Rewriting};
use crate::expression::{Expression, Source};
use crate::limits::{MAX_REGEX, REGEX_CACHE};
use crate::rule::Buffer;
use regex_automata::meta::{self, Regex};
use regex_automata::nfa::thompson::NFA;
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Hir, HirKind, Literal, Look, LookSet};

/// A regular expression.
pub struct Pcre {
    pub regex: Expression,
    pub is_negated: bool,
    pub is_relative: bool,
    /// The buffer that its flags name.
    pub buffer: Option<Buffer>,
    /// More bytes behind a match cannot change it.
    pub is_monotone: bool,
}

/// The most groups within one another.
const MAX_NESTED_GROUPS: u32 = 64;

/// Reads `"/EXPRESSION/FLAGS"`.
pub fn pcre(value: &str) -> Result<Pcre, Fault> {
    let (is_negated, text) = super::content::quoted("pcre", value)?;
    let inner = text.strip_prefix('/').and_then(|text| text.rsplit_once('/'));
    let (source, flags) = inner.ok_or_else(|| Fault::wrong("pcre", "`/EXPRESSION/FLAGS`"))?;
    let flags = Flags::read(flags)?;
    let (regex, is_monotone) = match automaton(source, &flags) {
        Err(Unfit::NeedsBacktracking) => backtracking(source, &flags)?,
        Err(Unfit::Refused(fault)) => return Err(fault),
        Ok(found) => found,
    };
    let Flags { is_relative, buffer, .. } = flags;
    Ok(Pcre { regex, is_negated, is_relative, buffer, is_monotone })
}

/// Why no automaton can search an expression.
enum Unfit {
    NeedsBacktracking,
    Refused(Fault),
}

impl From<Fault> for Unfit {
    fn from(fault: Fault) -> Self {
        Unfit::Refused(fault)
    }
}

fn refused(why: impl Into<String>) -> Fault {
    Fault::unsupported("pcre", why)
}

/// An expression that an automaton searches, and whether it is monotone.
fn automaton(source: &str, flags: &Flags) -> Result<(Expression, bool), Unfit> {
    let written = Rewriting::of(source, Dialect::Automaton, flags)?;
    if written.needs_backtracking {
        return Err(Unfit::NeedsBacktracking);
    }
    let parsed = ParserBuilder::new()
        .unicode(false)
        .utf8(false)
        .nest_limit(MAX_NESTED_GROUPS)
        .case_insensitive(flags.is_nocase)
        .dot_matches_new_line(flags.is_dot_all)
        .multi_line(flags.is_multi_line)
        .ignore_whitespace(flags.is_extended)
        .swap_greed(flags.is_ungreedy)
        .build()
        .parse(&written.text);
    let parsed = parsed.map_err(|error| refused(said(&error)))?;
    let hir = match flags.is_dollar_end {
        true => parsed,
        false if ends_inside(&parsed) => return Err(Unfit::NeedsBacktracking),
        false => with_last_line_end(parsed),
    };
    let mut later = LookSet::full();
    for look in [Look::Start, Look::StartLF] {
        later = later.remove(look);
    }
    let is_monotone = hir.properties().look_set().intersect(later).is_empty();
    let config = meta::Config::new()
        .utf8_empty(false)
        .nfa_size_limit(Some(MAX_REGEX))
        .onepass_size_limit(Some(MAX_REGEX))
        .dfa(false)
        .hybrid_cache_capacity(REGEX_CACHE);
    let regex = Regex::builder().configure(config).build_from_hir(&hir);
    let regex = regex.map_err(|error| refused(format!("it cannot be compiled ({error})")))?;
    let states = NFA::compiler().build_from_hir(&hir).map_or(0, |nfa| nfa.states().len());
    Ok((Expression::automaton(regex, &hir, states), is_monotone))
}

/// An expression that is searched by backtracking, and whether it is monotone.
fn backtracking(source: &str, flags: &Flags) -> Result<(Expression, bool), Fault> {
    if flags.is_ungreedy {
        return Err(refused("its flag `G` together with what needs backtracking"));
    }
    let written = Rewriting::of(source, Dialect::Backtracking, flags)?;
    let source = Source {
        text: &written.text,
        is_nocase: flags.is_nocase,
        is_dot_all: flags.is_dot_all,
        is_multi_line: flags.is_multi_line,
        is_extended: flags.is_extended,
        is_free: !written.looks_behind,
    };
    let expression = Expression::backtracking(&source);
    let expression = expression.map_err(|why| refused(format!("it cannot be compiled ({why})")))?;
    Ok((expression, !written.looks_ahead))
}

fn said(error: &regex_syntax::Error) -> String {
    match error {
        regex_syntax::Error::Parse(error) => error.kind().to_string(),
        regex_syntax::Error::Translate(error) => error.kind().to_string(),
        _ => "it cannot be parsed".to_owned(),
    }
}

/// Whether `$` stands in front of something else. Before a line feed at the end, it would have to
/// hold without taking the line feed.
fn ends_inside(hir: &Hir) -> bool {
    let has_end = |hir: &Hir| hir.properties().look_set().contains(Look::End);
    match hir.kind() {
        HirKind::Concat(all) => {
            let last = all.len().saturating_sub(1);
            all.iter().take(last).any(has_end) || all.last().is_some_and(ends_inside)
        }
        HirKind::Alternation(all) => all.iter().any(ends_inside),
        HirKind::Capture(of) => ends_inside(&of.sub),
        HirKind::Repetition(of) => has_end(&of.sub),
        _ => false,
    }
}

/// `$` at the end of the text also holds before a line feed there.
fn with_last_line_end(hir: Hir) -> Hir {
    match hir.into_kind() {
        HirKind::Look(Look::End) => {
            let feed = Hir::literal(*b"\n");
            let last = Hir::concat(vec![feed, Hir::look(Look::End)]);
            Hir::alternation(vec![Hir::look(Look::End), last])
        }
        HirKind::Concat(all) => Hir::concat(all.into_iter().map(with_last_line_end).collect()),
        HirKind::Alternation(all) => {
            Hir::alternation(all.into_iter().map(with_last_line_end).collect())
        }
        HirKind::Repetition(mut of) => {
            of.sub = Box::new(with_last_line_end(*of.sub));
            Hir::repetition(of)
        }
        HirKind::Capture(mut of) => {
            of.sub = Box::new(with_last_line_end(*of.sub));
            Hir::capture(of)
        }
        HirKind::Literal(Literal(bytes)) => Hir::literal(bytes),
        HirKind::Class(class) => Hir::class(class),
        HirKind::Look(look) => Hir::look(look),
        HirKind::Empty => Hir::empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::{automaton, backtracking, pcre};
    use crate::expression::Expression;
    use crate::limits::RULE_WORK;
    use crate::parse::flags::Flags;
    use crate::work::{Exhausted, Work};
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    /// Whether an expression matches a text. `None` if it is refused.
    fn matches(expression: &str, text: &str) -> Option<bool> {
        let mut work = Work(1 << 40);
        let regex = pcre(&format!("\"{expression}\"")).ok()?.regex;
        Some(regex.is_match(text.as_bytes(), 0, &mut work.of_rule()).expect("enough work"))
    }

    #[test]
    fn expressions_mean_what_they_mean_in_pcre() {
        for (expression, text, wanted) in [
            (r"/^GET \/a/i", "get /a", true),
            (r"/a$/", "ba", true),
            (r"/a$/", "ba\n", true),
            (r"/a$/", "ba\n\n", false),
            (r"/a$/E", "ba\n", false),
            (r"/a$/m", "a\nb", true),
            (r"/a.b/", "a\nb", false),
            (r"/a.b/s", "a\nb", true),
            (r"/[[]/", "[", true),
            (r"/[a&&b]/", "&", true),
            (r"/[]a]/", "]", true),
            (r"/[^]a]/", "]", false),
            (r"/[[:digit:]x]/", "7", true),
            (r"/[a~~b]/", "~", true),
            (r"/x{/", "x{", true),
            (r"/x{2,}/", "xx", true),
            (r"/x{,2}/", "x{,2}", true),
            (r"/a]/", "a]", true),
            (r"/\x41\d/", "A7", true),
            (r"/b/A", "ab", false),
            (r"/a b/x", "ab", true),
            (r"/a[ #]b/x", "a b", true),
            (r"/\<script/", "a script", false),
            (r"/\<script/", "a <script", true),
            (r"/[\<x]\>/", "<>", true),
            (r"/a\v/", "a\n", true),
            (r"/[\v]/", "\x0b", true),
            (r"/\x{4a}/", "J", true),
            (r"/(a|b$)/", "b\n", true),
        ] {
            assert_eq!(matches(expression, text), Some(wanted), "{expression} {text:?}");
        }
    }

    #[test]
    fn expressions_that_need_backtracking_mean_what_they_mean_in_pcre() {
        for (expression, text, wanted) in [
            (r"/(a|b)x\1/", "axbxb", true),
            (r"/(a|b)x\1/", "axb", false),
            (r"/(a)x\1/i", "axA", true),
            (r"/(?P<v>[a-z]{2})-(?P=v)/", "ab-ba-ba", true),
            (r"/(?P<v>[a-z]{2})-(?P=v)/", "ab-ba-ab", false),
            (r"/^(.)(.)\2\1$/", "abba\n", true),
            (r"/^(.)(.)\2\1$/", "abba\n\n", false),
            (r"/^(.)(.)\2\1$/E", "abba\n", false),
            (r"/^(.)\1$/m", "x\naa\ny", true),
            (r"/(.)\1/", "\n\n", false),
            (r"/(.)\1/s", "\n\n", true),
            (r"/(a)(?=b)/", "ab", true),
            (r"/a(?!b)/", "abac", true),
            (r"/a(?!b)/", "abab", false),
            (r"/(?<!a)b/", "ab", false),
            (r"/(?<=a)b/", "ab", true),
            (r"/(?>a|ab)c/", "abc", false),
            (r"/(?:(?!>>).)+#/", "a>>b", false),
            (r"/^(?:(?!>>).)+#/", "ab#", true),
            (r"/a\z/", "a\n", false),
            (r"/a\Z/", "a\n", true),
            (r"/a\Z/", "a\n\n", false),
            (r"/(a|b$)x?/", "b\n", true),
            (r"/a$\n/", "a\n", true),
            (r"/(a$)+/", "ba", true),
            (r"/(a) \1 # twice/x", "aa", true),
            (r"/(x)\1/A", "axx", false),
            (r"/([[\]])\1/", "]]", true),
            (r"/(a)\x2f\1\v/", "a/a\x0b", true),
            (r"/(?i:(a))\1/", "aA", false),
            (r"/(?:(a)|b)\1/", "b", false),
        ] {
            assert_eq!(matches(expression, text), Some(wanted), "{expression} {text:?}");
        }
    }

    #[test]
    fn what_is_read_in_another_way_is_refused() {
        for expression in [
            r"/a++/",
            "/a/q",
            "/[b--a]/",
            r"/a(?R)b/",
            r"/(?iR:a)/",
            r"/(a)(?1)/",
            r"/(a)(?(1)b|c)/",
            r"/(?|(a)|(b))\1/",
            r"/a\b{start}/",
            r"/(a)\1\h/",
            r"/(a)\1\Kb/",
            r"/(a)\g{1}/",
            r"/(a)\10/",
            r"/(a)\2/",
            r"/(a)\1(?m)$/",
            r"/(*UTF8)(a)\1/",
            r"/(a)\1/G",
            r"/a\G/",
            r"/(a\1/",
            r"/(?<=x.{1,900})y/",
        ] {
            assert_eq!(matches(expression, "a"), None, "{expression}");
        }
        let deep = format!("/{}{}/", "(".repeat(200), ")".repeat(200));
        assert_eq!(matches(&deep, "a"), None);
        assert_eq!(matches("/(((x{999}){999}){999})/", "a"), None);
    }

    #[test]
    fn searches_by_backtracking_end() {
        for (expression, text) in [
            (r"/(a*)*\1b/", "a".repeat(16_000)),
            (r"/((a+)+)+\2$x/", "a".repeat(4_000)),
            (r"/(.*)\1Z/i", "a".repeat(16_000)),
            (r"/(x)\1.*foo/", "x".repeat(16_000)),
            (r"/(?=.*foo)(x)\1b/", "x".repeat(16_000)),
            (r"/(?>.*foo)(x)\1b/", "x".repeat(16_000)),
        ] {
            let regex = pcre(&format!("\"{expression}\"")).expect("good").regex;
            let mut work = Work(1 << 40);
            let found = regex.is_match(text.as_bytes(), 0, &mut work.of_rule());
            assert_eq!(found, Err(Exhausted), "{expression}");
            let taken = (1 << 40) - work.0;
            assert!(taken <= RULE_WORK, "{expression}: {taken}");
        }
    }

    #[test]
    fn only_expressions_about_earlier_bytes_are_monotone() {
        let is = |text: &str| pcre(text).map(|pcre| pcre.is_monotone).expect("good");
        assert!(is("\"/^a.*b/\"") && is("\"/^a/m\""));
        assert!(!is("\"/a$/\"") && !is("\"/a\\b/\"") && !is("\"/a$/m\""));
        assert!(is(r#""/^(a)\1/""#) && is(r#""/(?<!a)(b)\1/""#));
        assert!(!is(r#""/(a)(?=b)/""#) && !is(r#""/(a)\1(?!b)/""#) && !is(r#""/(?>a|ab)c/""#));
        assert!(!is(r#""/(a)\1$/""#) && !is(r#""/(a)\1\z/""#) && !is(r#""/(a)\1\b/""#));
    }

    /// Expressions that need no backtracking, over few letters. What is repeated takes at least one
    /// byte: of repetitions of nothing, automata and backtracking choose different ones.
    fn expressions() -> impl Strategy<Value = String> {
        let fixed = |texts: &'static [&'static str]| select(texts).prop_map(str::to_owned);
        let some = fixed(&["a", "b", "c", ".", "[ab]", "[^b]", r"\x61"]);
        let some = some.prop_recursive(2, 6, 3, |inner| {
            prop_oneof![
                vec(inner.clone(), 2..4).prop_map(|all| all.concat()),
                vec(inner, 2..3).prop_map(|all| format!("({})", all.join("|"))),
            ]
        });
        let times = fixed(&["*", "+", "?", "*?", "+?", "??", "{1,2}"]);
        let repeated = (some.clone(), times).prop_map(|(of, times)| format!("(?:{of}){times}"));
        let any = prop_oneof![some, repeated, fixed(&["^", r"\b", r"\B"])];
        any.prop_recursive(2, 8, 3, |inner| {
            prop_oneof![
                vec(inner.clone(), 2..4).prop_map(|all| all.concat()),
                vec(inner, 2..3).prop_map(|all| format!("({})", all.join("|"))),
            ]
        })
    }

    /// The ends of all matches, one behind the other.
    fn ends(regex: &Expression, text: &str) -> Result<Vec<usize>, Exhausted> {
        let (mut work, mut found) = (Work(1 << 40), Vec::new());
        regex.ends(text.as_bytes(), 0, &mut work.of_rule(), |end| found.push(end))?;
        // A match of nothing may follow at once.
        found.dedup();
        Ok(found)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(braid_cases::cases(1_000)))]

        #[test]
        fn backtracking_finds_what_automata_find(
            expression in expressions(),
            has_end in any::<bool>(),
            flags in "[ismA]{0,2}",
            text in "[abcA\n]{0,12}",
        ) {
            let expression = if has_end { expression + "$" } else { expression };
            let flags = Flags::read(&flags).expect("flags");
            let Ok((by_automaton, _)) = automaton(&expression, &flags) else { return Ok(()) };
            let (by_backtracking, _) = backtracking(&expression, &flags).expect("an expression");
            prop_assert!(by_automaton.is_free || !by_backtracking.is_free);
            let (found, wanted) = (ends(&by_backtracking, &text), ends(&by_automaton, &text));
            if has_end {
                // An automaton takes the line feed at the end for a part of the match.
                prop_assert_eq!(found.is_ok_and(|all| all.is_empty()), wanted == Ok(vec![]));
            } else {
                prop_assert_eq!(found, wanted);
            }
        }

        /// A group of single letters with a backreference is its cases written out, and an
        /// assertion about the letter leaves some of them.
        #[test]
        fn backreferences_and_assertions_are_cases_written_out(
            middle in expressions(),
            is_negated in any::<bool>(),
            flags in "[ism]{0,2}",
            text in "[abcA\n]{0,12}",
        ) {
            let flags = Flags::read(&flags).expect("flags");
            let kind = if is_negated { "!" } else { "=" };
            let short = format!(r"(?{kind}c)([abc])(?:{middle})\1");
            let letters = if is_negated { ["a", "b"].as_slice() } else { ["c"].as_slice() };
            let cases = letters.iter().map(|letter| format!("{letter}(?:{middle}){letter}"));
            let long = cases.collect::<Vec<_>>().join("|");
            let Ok((by_automaton, _)) = automaton(&long, &flags) else { return Ok(()) };
            let (by_backtracking, _) = backtracking(&short, &flags).expect("an expression");
            prop_assert_eq!(ends(&by_automaton, &text), ends(&by_backtracking, &text));
        }
    }
}
