//! Decides where spaces go between tokens, and where long lines may break.

use crate::lexer::Tok;
use crate::parse::{GENERIC, GLUE, Source};

/// Whether a space goes between two neighbouring tokens of a line.
pub(super) fn between(source: &Source, before: usize, after: usize) -> bool {
    use Tok::{Colon, Comma, Dot, DotDot, LBracket, LParen, RBracket, RParen, Semi};
    let kind = |at: usize| source.tokens.get(at).map_or(Tok::Eof, |token| token.kind);
    let generic = |at, which| kind(at) == which && source.marks.has(at, GENERIC);
    let none_before =
        matches!(kind(after), Comma | Semi | Colon | RParen | RBracket | Dot | DotDot);
    let none_after = matches!(kind(before), LParen | LBracket | Dot | DotDot);
    let in_types = generic(before, Tok::Lt) || generic(after, Tok::Gt);
    let empty = kind(before) == Tok::LBrace && kind(after) == Tok::RBrace;
    !(none_before || none_after || in_types || empty || source.marks.has(after, GLUE))
}

/// A place where a long line may break. Looser places (of smaller rank) break first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Separator {
    pub rank: u8,
    /// Whether the separator ends its line. Otherwise it starts the next line.
    pub ends_line: bool,
}

/// The separator of a token, if the token is one.
pub(super) fn separator(source: &Source, text: &str, at: usize) -> Option<Separator> {
    let token = source.tokens.get(at)?;
    if source.marks.has(at, GLUE) || source.marks.has(at, GENERIC) {
        return None;
    }
    let word = super::text::part(text, token.start, token.end);
    let rank = match token.kind {
        Tok::Ident => word_rank(word)?,
        Tok::Comma => 1,
        Tok::Arrow | Tok::BothArrow => 2,
        Tok::OrOr => 3,
        Tok::AndAnd => 4,
        Tok::FatArrow => 5,
        Tok::EqEq | Tok::Ne | Tok::Lt | Tok::Le | Tok::Gt => 6,
        Tok::Pipe => 7,
        Tok::Caret => 8,
        Tok::Amp => 9,
        Tok::Shl => 10,
        Tok::Plus | Tok::Minus => 11,
        Tok::Star | Tok::Slash | Tok::Percent => 12,
        _ => return None,
    };
    Some(Separator { rank, ends_line: matches!(token.kind, Tok::Comma | Tok::FatArrow) })
}

fn word_rank(word: &str) -> Option<u8> {
    match word {
        "else" => Some(0),
        "or" => Some(3),
        "and" => Some(4),
        "in" | "matches" => Some(6),
        _ => None,
    }
}
