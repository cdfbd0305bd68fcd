//! Splits text into tokens. Lexing is total: text that is not a token becomes an error token with a
//! diagnostic.
//!
//! `>` is always a token of its own, so `list<set<ip4>>` is not a special case. The parser joins
//! adjacent tokens into `>=`, `>>` and `>>=`.

mod literal;
mod token;

use logos::Logos;

pub(crate) use literal::without_host_bits;
pub use literal::{Address, address, int_value, string_value};
pub use token::Tok;

use crate::ast::Span;
use crate::diag::{Diagnostic, Diagnostics, codes};
use crate::source::{MAX_FILE_BYTES, offset};

/// A token: its kind and its bytes in the text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Token {
    /// Its kind.
    pub kind: Tok,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

/// A comment. Comments are not tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Comment {
    /// First byte.
    pub start: u32,
    /// One past the last byte, without the line end.
    pub end: u32,
    /// Whether it is a `//` comment. Otherwise it is a `/* */` comment.
    pub line: bool,
}

/// A text split into tokens. The last token is always [`Tok::Eof`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Lexed {
    /// The tokens.
    pub tokens: Vec<Token>,
    /// The comments.
    pub comments: Vec<Comment>,
    /// The errors in the text.
    pub diagnostics: Diagnostics,
}

/// Splits `text` into tokens. Spans of diagnostics are in `file`, shifted by `base`. Spans of
/// tokens count from the start of `text`. A text larger than [`MAX_FILE_BYTES`] gives no tokens.
#[must_use]
pub fn lex(text: &str, file: u32, base: u32) -> Lexed {
    let mut lexer = Lexer { text, file, base, out: Lexed::default() };
    if text.len() > MAX_FILE_BYTES {
        lexer.report_too_large();
    } else {
        lexer.run();
    }
    let end = offset(text.len());
    lexer.out.tokens.push(Token { kind: Tok::Eof, start: end, end });
    lexer.out
}

struct Lexer<'t> {
    text: &'t str,
    file: u32,
    base: u32,
    out: Lexed,
}

impl<'t> Lexer<'t> {
    fn run(&mut self) {
        let mut at = 0;
        while at < self.text.len() {
            at = self.run_from(at);
        }
    }

    /// Lexes from byte `base` to the next error. Returns where to continue.
    fn run_from(&mut self, base: usize) -> usize {
        let mut inner = Tok::lexer(&self.text[base..]);
        while let Some(found) = inner.next() {
            let (start, end) = (base + inner.span().start, base + inner.span().end);
            match found {
                Ok(Tok::LineComment) => {
                    let rest = inner.remainder();
                    inner.bump(rest.find('\n').unwrap_or(rest.len()));
                    self.comment(start, base + inner.span().end, true);
                }
                Ok(Tok::BlockComment) => {
                    let rest = inner.remainder();
                    let close = rest.find("*/");
                    inner.bump(close.map_or(rest.len(), |at| at + 2));
                    if close.is_none() {
                        self.report_open_comment(start);
                    }
                    self.comment(start, base + inner.span().end, false);
                }
                Ok(kind) => self.token(kind, start, end),
                Err(()) => return self.error(start, end),
            }
        }
        self.text.len()
    }

    fn comment(&mut self, start: usize, end: usize, line: bool) {
        let text = &self.text[start..end];
        let end = start + text.trim_end().len();
        self.out.comments.push(Comment { start: offset(start), end: offset(end), line });
    }

    fn push(&mut self, kind: Tok, start: usize, end: usize) {
        self.out.tokens.push(Token { kind, start: offset(start), end: offset(end) });
    }

    fn span(&self, start: usize, end: usize) -> Span {
        let at = |byte| self.base.saturating_add(offset(byte));
        Span { file: self.file, start: at(start), end: at(end) }
    }

    /// Checks literals, so the parser gets only valid ones.
    fn token(&mut self, kind: Tok, start: usize, end: usize) {
        let text = &self.text[start..end];
        let checked = match kind {
            Tok::Int => literal::check_int(text).map(|()| kind),
            Tok::Str => literal::check_string(text).map(|()| kind),
            Tok::Ip4 | Tok::Ip6 | Tok::Prefix4 | Tok::Prefix6 => literal::classify(text),
            _ => Ok(kind),
        };
        match checked {
            Ok(kind) => self.push(kind, start, end),
            Err(wrong) => {
                let span = self.span(start + wrong.at.start, start + wrong.at.end);
                let found = Diagnostic::new(wrong.code, wrong.message, span, wrong.label);
                self.out.diagnostics.push(found.help_if(wrong.help));
                self.push(Tok::Error, start, end);
            }
        }
    }

    /// Reports characters that start no token. Returns their end.
    fn error(&mut self, start: usize, end: usize) -> usize {
        if self.text[start..].starts_with('"') {
            return self.open_string(start);
        }
        let first = self.text[start..].chars().next().unwrap_or(' ');
        let end = end.max(start + first.len_utf8());
        let code = codes::UNEXPECTED_CHARACTER;
        let message = format!("the character {} has no meaning here", show_char(first));
        let found =
            Diagnostic::new(code, message, self.span(start, end), "not part of the language");
        self.out.diagnostics.push(found.help_if(character_help(first)));
        self.push(Tok::Error, start, end);
        end
    }

    fn open_string(&mut self, start: usize) -> usize {
        let rest = &self.text[start..];
        let line = &rest[..rest.find('\n').unwrap_or(rest.len())];
        // The closing quote was probably forgotten before the last `;`.
        let end = start + line.rfind(';').unwrap_or(line.len());
        let message = "this string has no closing `\"` on its line";
        let span = self.span(start, start + 1);
        let found = Diagnostic::new(codes::UNTERMINATED_STRING, message, span, "starts here");
        self.out
            .diagnostics
            .push(found.help("close it before the line ends; write a line break as \\n"));
        self.push(Tok::Error, start, end);
        end
    }

    fn report_open_comment(&mut self, start: usize) {
        let message = "this comment has no closing `*/`";
        let span = self.span(start, start + 2);
        let found = Diagnostic::new(codes::UNTERMINATED_COMMENT, message, span, "starts here");
        self.out.diagnostics.push(found.help("comments do not nest; the first `*/` closes"));
    }

    fn report_too_large(&mut self) {
        let (len, max) = (self.text.len(), MAX_FILE_BYTES);
        let message = format!("the file has {len} bytes; at most {max} are read");
        let found = Diagnostic::new(codes::FILE_TOO_LARGE, message, self.span(0, 0), "");
        let help = "put long lists into files of their own (rules, routes, prefixes, lines)";
        self.out.diagnostics.push(found.help(help));
    }
}

fn show_char(c: char) -> String {
    if c.is_control() || c.is_whitespace() {
        format!("U+{:04X}", u32::from(c))
    } else {
        format!("`{c}`")
    }
}

fn character_help(c: char) -> Option<String> {
    let help = match c {
        '\'' | '\u{201c}' | '\u{201d}' | '\u{2018}' | '\u{2019}' => {
            "strings stand in straight double quotes: \"text\""
        }
        '#' => "comments start with `//`",
        '\u{2013}' | '\u{2014}' | '\u{2212}' => "write `-`",
        '\u{a0}' => "this is a no-break space; write an ordinary one",
        '≤' => "write `<=`",
        '≥' => "write `>=`",
        '≠' => "write `!=`",
        '→' => "write `->`",
        'µ' | '\u{3bc}' => "write microseconds as `us`",
        '?' => "choose between two values with `if COND { A } else { B }`",
        _ => return None,
    };
    Some(help.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<Tok> {
        let lexed = lex(text, 0, 0);
        assert!(lexed.diagnostics.is_empty(), "{text}: {:?}", lexed.diagnostics);
        lexed.tokens.iter().map(|token| token.kind).filter(|kind| *kind != Tok::Eof).collect()
    }

    fn codes_of(text: &str) -> Vec<u16> {
        lex(text, 0, 0).diagnostics.iter().map(|d| d.code.number()).collect()
    }

    #[test]
    fn ranges_are_no_addresses() {
        use Tok::{DotDot, Int, Ip4, Ip6};
        assert_eq!(kinds("1..5"), [Int, DotDot, Int]);
        assert_eq!(kinds("10.0.0.1"), [Ip4]);
        assert_eq!(kinds("10.0.0.1..10.0.0.9"), [Ip4, DotDot, Ip4]);
        assert_eq!(kinds("::1..::5"), [Ip6, DotDot, Ip6]);
        assert_eq!(kinds("1024..0xffff"), [Int, DotDot, Int]);
    }

    #[test]
    fn addresses_are_told_apart() {
        use Tok::{Ip6, Mac, Prefix4, Prefix6};
        assert_eq!(kinds("02:00:00:00:00:01"), [Mac]);
        assert_eq!(kinds("aa:bb:cc:dd:ee:ff"), [Mac]);
        assert_eq!(kinds("10.0.0.0/8 10.0.0.1/8"), [Prefix4; 2]);
        assert_eq!(kinds("2001:db8::/32 ::/0 fe80::1/128"), [Prefix6; 3]);
        let six =
            "2001:db8::1 :: ::1 1:2:3:4:5:6:7:8 fe80::1:2 ::ffff:10.0.0.1 a:b:c:d:e:f:1.2.3.4";
        assert_eq!(kinds(six), [Ip6; 7]);
    }

    #[test]
    fn names_before_colons_stay_names() {
        use Tok::{Colon, Ident, Int, Ip4, Ip6};
        assert_eq!(kinds("a:b"), [Ident, Colon, Ident]);
        assert_eq!(kinds("addr:10.0.0.1"), [Ident, Colon, Ip4]);
        assert_eq!(kinds("face: 1"), [Ident, Colon, Int]);
        assert_eq!(kinds("vip: ::1"), [Ident, Colon, Ip6]);
    }

    #[test]
    fn greater_signs_stay_single() {
        use Tok::{Assign, Gt, Ident, Int, Lt};
        assert_eq!(kinds("a<b<c>>= 1"), [Ident, Lt, Ident, Lt, Ident, Gt, Gt, Assign, Int]);
    }

    #[test]
    fn comments_are_kept_apart() {
        let lexed = lex("a // one  \n/* two\n */ b", 0, 0);
        assert_eq!(lexed.tokens.len(), 3);
        let spans: Vec<_> = lexed.comments.iter().map(|c| (c.start, c.end, c.line)).collect();
        assert_eq!(spans, [(2, 8, true), (11, 21, false)]);
    }

    #[test]
    fn bad_text_is_reported_and_lexing_goes_on() {
        assert_eq!(codes_of("a # b $ c"), [104, 104]);
        assert_eq!(codes_of("\"open\nx"), [105]);
        assert_eq!(codes_of("/* open"), [106]);
        assert_eq!(codes_of(r#""\q""#), [107]);
        assert_eq!(codes_of("340282366920938463463374607431768211456"), [108]);
        assert_eq!(codes_of("1.5 0x 0b12"), [109, 109, 109]);
        assert_eq!(codes_of("10.0.0 10.0.0.256 1:2:3 12345::"), [111, 111, 111, 111]);
        assert_eq!(codes_of("10.0.0.0/33 ::/129"), [112, 112]);
        let lexed = lex("a é b", 0, 0);
        assert_eq!(lexed.tokens.iter().filter(|t| t.kind == Tok::Ident).count(), 2);
    }

    #[test]
    fn file_above_the_limit_gives_no_tokens() {
        let lexed = lex(&" ".repeat(MAX_FILE_BYTES + 1), 0, 0);
        assert_eq!(lexed.tokens.len(), 1);
        assert_eq!(lexed.diagnostics.iter().next().unwrap().code, codes::FILE_TOO_LARGE);
        assert!(lex(&" ".repeat(MAX_FILE_BYTES), 0, 0).diagnostics.is_empty());
    }
}
