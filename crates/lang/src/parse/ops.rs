//! Binary operators: their tokens and their precedence.

use super::marks::GLUE;
use super::state::Parser;
use crate::ast::BinOp;
use crate::lexer::Tok;

/// An infix operator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Infix {
    Binary(BinOp),
    In,
    NotIn,
    Matches,
    Range,
}

/// The precedence of operators. A tighter operator has a greater number.
pub(super) mod level {
    pub const OR: u8 = 1;
    pub const AND: u8 = 2;
    pub const NOT: u8 = 3;
    pub const COMPARE: u8 = 4;
    pub const RANGE: u8 = 5;
    pub const BIT_OR: u8 = 6;
    pub const BIT_XOR: u8 = 7;
    pub const BIT_AND: u8 = 8;
    pub const SHIFT: u8 = 9;
    pub const SUM: u8 = 10;
    pub const PRODUCT: u8 = 11;
}

impl Infix {
    pub(super) fn level(self) -> u8 {
        match self {
            Infix::In | Infix::NotIn | Infix::Matches => level::COMPARE,
            Infix::Range => level::RANGE,
            Infix::Binary(op) => binary_level(op),
        }
    }
}

fn binary_level(op: BinOp) -> u8 {
    match op {
        BinOp::Or => level::OR,
        BinOp::And => level::AND,
        BinOp::Eq | BinOp::Ne | BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge => level::COMPARE,
        BinOp::BitOr => level::BIT_OR,
        BinOp::BitXor => level::BIT_XOR,
        BinOp::BitAnd => level::BIT_AND,
        BinOp::Shl | BinOp::Shr => level::SHIFT,
        BinOp::Add | BinOp::Sub => level::SUM,
        BinOp::Mul | BinOp::Div | BinOp::Rem => level::PRODUCT,
    }
}

fn single(kind: Tok) -> Option<BinOp> {
    Some(match kind {
        Tok::OrOr => BinOp::Or,
        Tok::AndAnd => BinOp::And,
        Tok::EqEq => BinOp::Eq,
        Tok::Ne => BinOp::Ne,
        Tok::Lt => BinOp::Lt,
        Tok::Le => BinOp::Le,
        Tok::Gt => BinOp::Gt,
        Tok::Pipe => BinOp::BitOr,
        Tok::Caret => BinOp::BitXor,
        Tok::Amp => BinOp::BitAnd,
        Tok::Shl => BinOp::Shl,
        Tok::Plus => BinOp::Add,
        Tok::Minus => BinOp::Sub,
        Tok::Star => BinOp::Mul,
        Tok::Slash => BinOp::Div,
        Tok::Percent => BinOp::Rem,
        _ => return None,
    })
}

fn assigning(kind: Tok) -> Option<BinOp> {
    Some(match kind {
        Tok::PlusEq => BinOp::Add,
        Tok::MinusEq => BinOp::Sub,
        Tok::StarEq => BinOp::Mul,
        Tok::SlashEq => BinOp::Div,
        Tok::PercentEq => BinOp::Rem,
        Tok::AmpEq => BinOp::BitAnd,
        Tok::PipeEq => BinOp::BitOr,
        Tok::CaretEq => BinOp::BitXor,
        Tok::ShlEq => BinOp::Shl,
        _ => return None,
    })
}

fn joined_kind(p: &Parser<'_>, ahead: usize) -> Option<Tok> {
    p.joined(ahead).then(|| p.token(ahead).kind)
}

/// The infix operator at the current token, and its number of tokens.
pub(super) fn infix(p: &Parser<'_>) -> Option<(Infix, usize)> {
    let joined = (joined_kind(p, 1), joined_kind(p, 2));
    match (p.kind(), joined) {
        (Tok::DotDot, _) => Some((Infix::Range, 1)),
        (Tok::Gt, (Some(Tok::Gt), Some(Tok::Assign))) => None,
        (Tok::Gt, (Some(Tok::Gt), _)) => Some((Infix::Binary(BinOp::Shr), 2)),
        (Tok::Gt, (Some(Tok::Assign), _)) => Some((Infix::Binary(BinOp::Ge), 2)),
        (Tok::Ident, _) => match p.word() {
            "or" => Some((Infix::Binary(BinOp::Or), 1)),
            "and" => Some((Infix::Binary(BinOp::And), 1)),
            "in" => Some((Infix::In, 1)),
            "matches" => Some((Infix::Matches, 1)),
            "not" if p.word_ahead(1) == "in" => Some((Infix::NotIn, 2)),
            _ => None,
        },
        (kind, _) => single(kind).map(|op| (Infix::Binary(op), 1)),
    }
}

/// The assignment operator at the current token, and its number of tokens. `Some(None)` for `=`.
pub(super) fn assignment(p: &Parser<'_>) -> Option<(Option<BinOp>, usize)> {
    match (p.kind(), joined_kind(p, 1), joined_kind(p, 2)) {
        (Tok::Assign, _, _) => Some((None, 1)),
        (Tok::Gt, Some(Tok::Gt), Some(Tok::Assign)) => Some((Some(BinOp::Shr), 3)),
        (kind, _, _) => assigning(kind).map(|op| (Some(op), 1)),
    }
}

/// Consumes an operator of several tokens. Tokens after the first get no space.
pub(super) fn bump_operator(p: &mut Parser<'_>, tokens: usize) {
    p.bump();
    for _ in 1..tokens {
        if !p.at(Tok::Ident) {
            p.mark(GLUE);
        }
        p.bump();
    }
}
