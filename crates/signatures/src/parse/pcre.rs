//! Regular expressions of PCRE, as far as they can be searched in linear time.
//!
//! The expression is rewritten where PCRE and the crate `regex-syntax` read the same text in
//! different ways. What only one of them knows is refused.

use super::fault::Fault;
use crate::limits::{MAX_REGEX, REGEX_CACHE};
use crate::rule::{Buffer, Expression};
use regex_automata::meta::{self, Regex};
use regex_automata::nfa::thompson::NFA;
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Hir, HirKind, Literal, Look, LookSet};
use std::borrow::Cow;

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

/// What flags say.
#[derive(Default)]
struct Flags {
    is_nocase: bool,
    is_dot_all: bool,
    is_multi_line: bool,
    is_extended: bool,
    is_ungreedy: bool,
    is_anchored: bool,
    is_dollar_end: bool,
    is_relative: bool,
    buffer: Option<Buffer>,
}

/// Reads `"/EXPRESSION/FLAGS"`.
pub fn pcre(value: &str) -> Result<Pcre, Fault> {
    let (is_negated, text) = super::content::quoted("pcre", value)?;
    let inner = text.strip_prefix('/').and_then(|text| text.rsplit_once('/'));
    let (source, flags) = inner.ok_or_else(|| Fault::wrong("pcre", "`/EXPRESSION/FLAGS`"))?;
    let flags = flags_of(flags)?;
    let source = rewritten(source)?;
    let source = if flags.is_anchored { format!(r"\A(?:{source})") } else { source };
    let refused = |why: String| Fault::unsupported("pcre", why);
    let parsed = ParserBuilder::new()
        .unicode(false)
        .utf8(false)
        .nest_limit(64)
        .case_insensitive(flags.is_nocase)
        .dot_matches_new_line(flags.is_dot_all)
        .multi_line(flags.is_multi_line)
        .ignore_whitespace(flags.is_extended)
        .swap_greed(flags.is_ungreedy)
        .build()
        .parse(&source);
    let parsed = parsed.map_err(|error| refused(said(&error)))?;
    let hir = match flags.is_dollar_end {
        true => parsed,
        false if ends_inside(&parsed) => return Err(refused("`$` that is not last".to_owned())),
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
    let regex = Expression::new(regex, &hir, states);
    let Flags { is_relative, buffer, .. } = flags;
    Ok(Pcre { regex, is_negated, is_relative, buffer, is_monotone })
}

fn said(error: &regex_syntax::Error) -> String {
    match error {
        regex_syntax::Error::Parse(error) => error.kind().to_string(),
        regex_syntax::Error::Translate(error) => error.kind().to_string(),
        _ => "it cannot be parsed".to_owned(),
    }
}

fn flags_of(text: &str) -> Result<Flags, Fault> {
    let mut flags = Flags::default();
    for c in text.chars() {
        let buffer = match c {
            'i' => {
                flags.is_nocase = true;
                continue;
            }
            's' => {
                flags.is_dot_all = true;
                continue;
            }
            'm' => {
                flags.is_multi_line = true;
                continue;
            }
            'x' => {
                flags.is_extended = true;
                continue;
            }
            'G' => {
                flags.is_ungreedy = true;
                continue;
            }
            'A' => {
                flags.is_anchored = true;
                continue;
            }
            'E' => {
                flags.is_dollar_end = true;
                continue;
            }
            'R' => {
                flags.is_relative = true;
                continue;
            }
            // Raw bytes, and no limit on matches: nothing changes.
            'B' | 'O' => continue,
            'U' => Buffer::Uri,
            'I' => Buffer::RawUri,
            'M' => Buffer::Method,
            'H' => Buffer::Header,
            'D' => Buffer::RawHeader,
            'C' => Buffer::Cookie,
            'P' => Buffer::RequestBody,
            'Q' => Buffer::ResponseBody,
            'S' => Buffer::StatusCode,
            'Y' => Buffer::StatusMessage,
            'V' => Buffer::Field("user-agent"),
            'W' => Buffer::Host,
            c => return Err(Fault::unsupported("pcre", format!("its flag `{c}`"))),
        };
        if flags.buffer.replace(buffer).is_some_and(|before| before != buffer) {
            return Err(Fault::wrong("pcre", "its flags name two buffers"));
        }
    }
    Ok(flags)
}

/// Escapes what `regex-syntax` would read in another way than PCRE: `[`, `&` and `~` in a class,
/// and a `{` that begins no repetition.
fn rewritten(source: &str) -> Result<String, Fault> {
    let mut out = String::with_capacity(source.len() + 8);
    let mut rest = source;
    let mut is_class = false;
    let mut is_repeated = false;
    while let Some(c) = rest.chars().next() {
        let after = rest.get(c.len_utf8()..).unwrap_or_default();
        let mut taken = c.len_utf8();
        let was_repeated = std::mem::replace(&mut is_repeated, false);
        match c {
            '\\' => {
                let escape = Escape::read(rest, is_class)?;
                taken = escape.taken;
                out.push_str(&escape.written);
            }
            // There `R` and `u` are flags that PCRE does not know.
            '(' if !is_class && group_flags(after).contains(['R', 'u']) => {
                return Err(Fault::unsupported("pcre", "recursion"));
            }
            '[' if !is_class => {
                is_class = true;
                // A `]` right at the start is a member.
                let start = ["[^]", "[]", "[^", "["].into_iter().find(|s| rest.starts_with(s));
                let start = start.unwrap_or("[");
                taken = start.len();
                out.push_str(&start.replace(']', "\\]"));
            }
            '[' if after.starts_with(':') && after.contains(":]") => {
                taken = rest.find(":]").map_or(1, |at| at + 2);
                out.push_str(rest.get(..taken).unwrap_or_default());
            }
            '[' | '&' | '~' | '#' if is_class => out.extend(['\\', c]),
            // With the flag `x`, only PCRE takes white space in a class for a member.
            c if is_class && c.is_ascii_whitespace() => {
                out.push_str(&format!("\\x{:02x}", u32::from(c)));
            }
            '-' if is_class && after.starts_with('-') => {
                return Err(Fault::unsupported("pcre", "`--` in a class"));
            }
            ']' => {
                out.push_str(if is_class { "]" } else { "\\]" });
                is_class = false;
            }
            '{' if !is_class && !is_repetition(after) => out.push_str("\\{"),
            // There it would be one repetition within another.
            '+' if !is_class && was_repeated => {
                return Err(Fault::unsupported("pcre", "a possessive repetition"));
            }
            '{' if !is_class => {
                taken = rest.find('}').map_or(1, |at| at + 1);
                out.push_str(rest.get(..taken).unwrap_or_default());
                is_repeated = true;
            }
            '*' | '+' | '?' if !is_class => {
                out.push(c);
                is_repeated = true;
            }
            c => out.push(c),
        }
        rest = rest.get(taken..).unwrap_or_default();
    }
    Ok(out)
}

/// A `\` and what belongs to it.
struct Escape<'a> {
    written: Cow<'a, str>,
    /// The bytes that it takes.
    taken: usize,
}

impl<'a> Escape<'a> {
    fn read(text: &'a str, is_class: bool) -> Result<Self, Fault> {
        let after = text.strip_prefix('\\').unwrap_or_default();
        let next = after.chars().next();
        let taken = 1 + next.map_or(0, char::len_utf8);
        let until =
            |taken: usize| Self { written: text.get(..taken).unwrap_or_default().into(), taken };
        Ok(match next {
            // `\z` would mean what `$` means, `\Z` and `\G` are unknown there, and `\b{` begins the
            // name of an assertion.
            Some(c @ ('z' | 'Z' | 'G')) => {
                return Err(Fault::unsupported("pcre", format!("`\\{c}` in it")));
            }
            Some('b') if after.starts_with("b{") => {
                return Err(Fault::unsupported("pcre", "`\\b{` in it"));
            }
            // There they would be limits of words.
            Some('<') => Self { written: "<".into(), taken },
            Some('>') => Self { written: ">".into(), taken },
            // Any white space that ends a line.
            Some('v') if is_class => Self { written: r"\n\x0b\f\r\x85".into(), taken },
            Some('v') => Self { written: r"[\n\x0b\f\r\x85]".into(), taken },
            Some('x') if after.starts_with("x{") => {
                until(text.find('}').map_or(taken, |at| at + 1))
            }
            _ => until(taken),
        })
    }
}

/// The letters behind `(?`, if a group begins in front of these characters.
fn group_flags(after: &str) -> &str {
    let letters = after.strip_prefix('?').unwrap_or_default();
    let end = letters.find(|c: char| !c.is_ascii_alphabetic() && c != '-');
    letters.get(..end.unwrap_or(letters.len())).unwrap_or_default()
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

/// Whether a `{` before these characters begins a repetition: `N}`, `N,}` or `N,N}`.
fn is_repetition(after: &str) -> bool {
    let Some((inner, _)) = after.split_once('}') else { return false };
    let (least, most) = inner.split_once(',').unwrap_or((inner, ""));
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    !least.is_empty() && are_digits(least) && are_digits(most)
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
    use super::pcre;

    /// Whether an expression matches a text. `None` if it is refused.
    fn matches(expression: &str, text: &str) -> Option<bool> {
        pcre(&format!("\"{expression}\"")).ok().map(|pcre| pcre.regex.is_match(text.as_bytes(), 0))
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
    fn what_needs_backtracking_is_refused() {
        for expression in [
            r"/(?=a)/",
            r"/(?<!a)b/",
            r"/(a)\1/",
            r"/a++/",
            r"/a\z/",
            r"/(?>a)/",
            "/a/q",
            "/[b--a]/",
            r"/a(?R)b/",
            r"/(?iR:a)/",
            r"/a\b{start}/",
            r"/a$\n/",
            r"/(a$)+/",
        ] {
            assert_eq!(matches(expression, "a"), None, "{expression}");
        }
        let deep = format!("/{}{}/", "(".repeat(200), ")".repeat(200));
        assert_eq!(matches(&deep, "a"), None);
        assert_eq!(matches("/(((x{999}){999}){999})/", "a"), None);
    }

    #[test]
    fn only_expressions_about_earlier_bytes_are_monotone() {
        let is = |text: &str| pcre(text).map(|pcre| pcre.is_monotone).expect("good");
        assert!(is("\"/^a.*b/\"") && is("\"/^a/m\""));
        assert!(!is("\"/a$/\"") && !is("\"/a\\b/\"") && !is("\"/a$/m\""));
    }
}
