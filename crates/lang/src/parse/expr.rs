//! Parses expressions.

use super::marks::GLUE;
use super::ops::{Infix, level};
use super::state::{Parsed, Parser};
use super::words::{LENGTH_ENDS, RATES, UNITS, is_keyword};
use super::{ops, types};
use crate::ast::{Arg, At, Chunk, Expr, ExprKind, Ident, OptionOf, Path, Within};
use crate::diag::{Diagnostic, codes, did_you_mean, did_you_mean_help, foreign_unit};
use crate::lexer::{Address, Tok, address, int_value, string_value, without_host_bits};

pub(super) fn expr(p: &mut Parser<'_>) -> Parsed<Expr> {
    binary(p, level::OR)
}

/// Parses an expression that fills the whole text.
pub(super) fn whole_expr(p: &mut Parser<'_>) -> Parsed<Expr> {
    let expr = expr(p)?;
    if !p.at(Tok::Eof) {
        return Err(p.expected("the end of the value"));
    }
    Ok(expr)
}

/// Parses operators that bind at least as tightly as `min`.
pub(super) fn binary(p: &mut Parser<'_>, min: u8) -> Parsed<Expr> {
    p.deeper(|p| binary_inner(p, min))
}

fn binary_inner(p: &mut Parser<'_>, min: u8) -> Parsed<Expr> {
    let start = p.pos;
    let mut left = if p.at_word("not") { not(p, min)? } else { unary(p)? };
    while let Some((op, tokens)) = ops::infix(p) {
        if op.level() < min {
            break;
        }
        // A sequence of operators makes a deep tree. It takes no recursion here, but later walks
        // recurse.
        p.descend()?;
        ops::bump_operator(p, tokens);
        let right = binary(p, op.level() + 1)?;
        let follows = check_row(p, op);
        let kind = if follows { ExprKind::Error } else { infix_kind(op, left, right) };
        left = Expr { kind, span: p.span_from(start) };
    }
    Ok(left)
}

/// Reports comparisons and ranges in sequence, which are not allowed. The rest of the sequence is
/// still parsed.
fn check_row(p: &mut Parser<'_>, op: Infix) -> bool {
    if ops::infix(p).is_none_or(|(next, _)| next.level() != op.level()) {
        return false;
    }
    let found = match op.level() {
        level::COMPARE => {
            let message = "comparisons cannot follow one another";
            Diagnostic::new(codes::CHAINED_COMPARISON, message, p.here(), "second comparison")
                .help("join two with `and`, or use a range: `x in 1..5`")
        }
        level::RANGE => {
            let message = "a range has two ends";
            Diagnostic::new(codes::NEEDS_PARENTHESES, message, p.here(), "third end")
        }
        _ => return false,
    };
    p.report(found);
    true
}

fn not(p: &mut Parser<'_>, min: u8) -> Parsed<Expr> {
    let start = p.pos;
    let misplaced = min > level::NOT;
    if misplaced {
        let message = "`not` on the right of this operator needs parentheses";
        let found = Diagnostic::new(codes::NEEDS_PARENTHESES, message, p.here(), "");
        p.report(found.help("write `(not …)`, or `!` before a single operand"));
    }
    p.bump();
    let operand = Box::new(binary(p, level::NOT)?);
    let kind = if misplaced { ExprKind::Error } else { ExprKind::Not(operand) };
    Ok(Expr { kind, span: p.span_from(start) })
}

fn unary(p: &mut Parser<'_>) -> Parsed<Expr> {
    let start = p.pos;
    match p.kind() {
        Tok::Bang | Tok::Tilde => {
            let complement = p.bump().kind == Tok::Tilde;
            p.mark(GLUE);
            let operand = Box::new(p.deeper(unary)?);
            let kind = if complement { ExprKind::Complement } else { ExprKind::Not };
            Ok(Expr { kind: kind(operand), span: p.span_from(start) })
        }
        Tok::Minus => {
            let message = "numbers are unsigned; there is no negation";
            let found = Diagnostic::new(codes::NEGATIVE_NUMBER, message, p.here(), "");
            p.report(found.help("write a difference: `a - b`"));
            p.bump();
            p.deeper(unary)?;
            Ok(Expr { kind: ExprKind::Error, span: p.span_from(start) })
        }
        _ => postfix(p),
    }
}

/// Parses a primary expression with the `[…]` and `.name` behind it.
pub(super) fn postfix(p: &mut Parser<'_>) -> Parsed<Expr> {
    let depth = p.depth;
    let expr = postfix_inner(p);
    p.depth = depth;
    expr
}

fn postfix_inner(p: &mut Parser<'_>) -> Parsed<Expr> {
    let start = p.pos;
    let mut base = primary(p)?;
    loop {
        let kind = match p.kind() {
            Tok::LBracket => {
                p.descend()?;
                ExprKind::Index(Box::new(base), key(p)?)
            }
            Tok::Dot => {
                p.descend()?;
                p.bump();
                let member = p.any_word("a name after the `.`")?;
                ExprKind::Member(Box::new(base), member)
            }
            _ => return Ok(base),
        };
        base = Expr { kind, span: p.span_from(start) };
    }
}

/// Parses `[a, b]`, or `[quoted reverse]`, which holds the two words.
fn key(p: &mut Parser<'_>) -> Parsed<Vec<Expr>> {
    p.mark(GLUE);
    let open = p.bump();
    if p.word() == "quoted" && p.word_ahead(1) == "reverse" {
        let words = vec![path_expr(p)?, path_expr(p)?];
        p.close(open, Tok::RBracket, "")?;
        return Ok(words);
    }
    p.list(open, Tok::RBracket, expr)
}

fn primary(p: &mut Parser<'_>) -> Parsed<Expr> {
    let start = p.pos;
    let kind = match p.kind() {
        Tok::Int => number(p),
        Tok::Str if is_at(p) => at(p)?,
        Tok::Str => ExprKind::Str(string_value(take_text(p)).unwrap_or_default()),
        Tok::Ip4 | Tok::Ip6 | Tok::Mac => address_kind(take_text(p)),
        Tok::Prefix4 | Tok::Prefix6 => prefix(p),
        Tok::Ident => return word_expr(p),
        Tok::LParen => {
            let open = p.bump();
            let inner = expr(p)?;
            let inner = not_assignment(p, inner)?;
            p.close(open, Tok::RParen, "")?;
            return Ok(Expr { span: p.span_from(start), ..inner });
        }
        Tok::LBracket => {
            ExprKind::List(p.bracketed((Tok::LBracket, Tok::RBracket), false, expr)?)
        }
        Tok::LBrace => braces(p)?,
        Tok::Error => {
            let number = take_text(p).starts_with(|c: char| c.is_ascii_digit());
            if number && !p.on_new_line() {
                skip_unit(p);
            }
            ExprKind::Error
        }
        _ => return Err(p.expected("an expression")),
    };
    Ok(Expr { kind, span: p.span_from(start) })
}

/// An address with the length of its prefix, such as `10.0.0.1/24`, or another expression.
pub(super) fn own_address(p: &mut Parser<'_>) -> Parsed<Expr> {
    if !matches!(p.kind(), Tok::Prefix4 | Tok::Prefix6) {
        return expr(p);
    }
    let span = p.here();
    Ok(Expr { kind: address_kind(take_text(p)), span })
}

/// A prefix, which has no bits behind its length.
fn prefix(p: &mut Parser<'_>) -> ExprKind {
    let span = p.here();
    let text = take_text(p);
    let Some(right) = address(text).and_then(without_host_bits) else { return address_kind(text) };
    let len = text.rsplit('/').next().unwrap_or_default();
    let message = format!("`{text}` has bits set beyond its first {len}");
    let found = Diagnostic::new(codes::BAD_PREFIX, message, span, "");
    p.report(found.help(format!("write the prefix as `{right}`")));
    ExprKind::Error
}

fn take_text<'t>(p: &mut Parser<'t>) -> &'t str {
    let text = p.text(0);
    p.bump();
    text
}

/// Parses a number with its unit, if there is one.
fn number(p: &mut Parser<'_>) -> ExprKind {
    let value = int_value(p.text(0)).unwrap_or_default();
    p.bump();
    let unit = p.word();
    let goes_on = (is_keyword(unit) || LENGTH_ENDS.contains(&unit)) && !joined_to_last(p);
    if unit.is_empty() || p.on_new_line() || goes_on {
        return ExprKind::Int(value);
    }
    if RATES.contains(&unit) && rate_follows(p) {
        p.bump();
        p.mark(GLUE);
        p.bump();
        p.mark(GLUE);
        p.bump();
        return ExprKind::Quantity(value, format!("{unit}/s"));
    }
    if UNITS.contains(&unit) {
        p.bump();
        return ExprKind::Quantity(value, unit.to_owned());
    }
    unknown_unit(p, unit)
}

/// Consumes the unit of a number that is malformed.
fn skip_unit(p: &mut Parser<'_>) {
    let rate = RATES.contains(&p.word()) && rate_follows(p);
    if rate || UNITS.contains(&p.word()) {
        for _ in 0..if rate { 3 } else { 1 } {
            p.bump();
        }
    }
}

fn joined_to_last(p: &Parser<'_>) -> bool {
    p.pos > 0 && p.tokens[p.pos - 1].end == p.token(0).start
}

/// Whether `/s` follows the current word without a space.
fn rate_follows(p: &Parser<'_>) -> bool {
    p.token(1).kind == Tok::Slash && p.joined(1) && p.joined(2) && p.word_ahead(2) == "s"
}

fn unknown_unit(p: &mut Parser<'_>, unit: &str) -> ExprKind {
    let rate = did_you_mean(unit, RATES.iter().copied())
        .filter(|_| p.token(1).kind == Tok::Slash)
        .map(|near| format!("did you mean `{near}/s`?"));
    let help = match unit {
        "K" => Some("`k` is a thousand, `Ki` is 1,024".into()),
        _ => rate
            .or_else(|| foreign_unit(unit))
            .or_else(|| did_you_mean_help(unit, UNITS.iter().copied())),
    };
    let message = format!("`{unit}` is not a unit of a number");
    let found = Diagnostic::new(codes::UNKNOWN_UNIT, message, p.here(), "unknown unit");
    p.report(found.help_if(help));
    p.bump();
    if p.at(Tok::Slash) && p.word_ahead(1) == "s" && p.joined(1) {
        p.bump();
        p.bump();
    }
    ExprKind::Error
}

/// Parses an expression that starts with a word.
fn word_expr(p: &mut Parser<'_>) -> Parsed<Expr> {
    let start = p.pos;
    let kind = match p.word() {
        word @ ("true" | "false") => {
            p.bump();
            ExprKind::Bool(word == "true")
        }
        "exists" => {
            p.bump();
            ExprKind::Exists(Box::new(p.deeper(postfix)?))
        }
        "has" => {
            p.bump();
            ExprKind::Has(types::path(p, "a header")?)
        }
        "from" if p.token(1).kind == Tok::Ident && !is_keyword(p.word_ahead(1)) => {
            p.bump();
            ExprKind::From(p.name("a side")?)
        }
        "if" => if_expr(p)?,
        word if is_keyword(word) => {
            return Err(p.expected_with("an expression", keyword_help(word)));
        }
        _ if p.token(1).kind == Tok::LParen => {
            let name = p.name("a name")?;
            ExprKind::Call(name, args(p)?)
        }
        _ if is_at(p) => at(p)?,
        _ => return path_expr(p),
    };
    Ok(Expr { kind, span: p.span_from(start) })
}

/// Whether a type or a text follows, and then `at` and a name.
fn is_at(p: &Parser<'_>) -> bool {
    let next = if types::is_bytes(p) { 4 } else { 1 };
    p.word_ahead(next) == "at" && !p.word_ahead(next + 1).is_empty()
}

/// `u16 at payload + OFFSET`, `u32 at tcp.option(KIND) + OFFSET`, `u8 at HEADER + OFFSET`, or a
/// text in place of the type. The offset ends at the first operator that binds looser than `+`.
fn at(p: &mut Parser<'_>) -> Parsed<ExprKind> {
    let mut what = match p.at(Tok::Str) {
        true => Chunk::Text(string_value(take_text(p)).unwrap_or_default()),
        false if types::is_bytes(p) => Chunk::Bytes(types::bytes(p), None),
        false => Chunk::Number(p.name("a type")?),
    };
    p.bump();
    let within = within(p)?;
    let offset = if p.eat(Tok::Plus) { Some(binary(p, level::SUM)?) } else { None };
    if let Chunk::Bytes(_, len) = &mut what
        && p.eat_word("for")
    {
        *len = Some(binary(p, level::SUM)?);
    }
    Ok(ExprKind::At(Box::new(At { what, within, offset })))
}

/// `payload`, `tcp.option(KIND)`, `ip.option(KIND)`, `ip6.extension(PROTOCOL)`, or the name of a
/// header.
fn within(p: &mut Parser<'_>) -> Parsed<Within> {
    let is_here = |(_, [first, second]): &(OptionOf, [&str; 2])| {
        p.at_word(first) && p.token(1).kind == Tok::Dot && p.word_ahead(2) == *second
    };
    let Some((of, _)) = OptionOf::ALL.into_iter().find(is_here) else {
        let name = p.name("`payload`, `tcp.option(…)` or a header")?;
        return Ok(match name.text.as_str() {
            "payload" => Within::Payload,
            _ => Within::Header(name),
        });
    };
    for _ in 0..3 {
        p.bump();
    }
    if !p.at(Tok::LParen) {
        return Err(p.expected("`(` and the kind of the option"));
    }
    p.mark(GLUE);
    let open = p.bump();
    let kind = expr(p)?;
    p.close(open, Tok::RParen, "")?;
    Ok(Within::Option(of, kind))
}

fn path_expr(p: &mut Parser<'_>) -> Parsed<Expr> {
    let path = types::path(p, "a name")?;
    let span = path.span;
    if p.at(Tok::LParen) && joined_to_last(p) {
        let help = "only plain names can be called, such as `hash(ip.src)`";
        return Err(p.expected_with("an operator", Some(help.into())));
    }
    Ok(Expr { kind: ExprKind::Path(path), span })
}

/// `(VALUE, name: VALUE, …)`
pub(super) fn args(p: &mut Parser<'_>) -> Parsed<Vec<Arg>> {
    p.bracketed((Tok::LParen, Tok::RParen), true, |p| {
        let named = p.at(Tok::Ident) && p.token(1).kind == Tok::Colon;
        let name = if named { Some(p.any_word("a name")?) } else { None };
        if named {
            p.bump();
        }
        let value = arg_value(p)?;
        Ok(Arg { name, value })
    })
}

/// Parses a value. A lone keyword is a name here, as in `default: drop`.
fn arg_value(p: &mut Parser<'_>) -> Parsed<Expr> {
    let word = p.word();
    let alone = matches!(p.token(1).kind, Tok::Comma | Tok::RParen);
    if alone && is_keyword(word) && !matches!(word, "true" | "false") {
        let name = p.any_word("a name")?;
        let span = name.span;
        return Ok(Expr { kind: ExprKind::Path(Path { parts: vec![name], span }), span });
    }
    let value = expr(p)?;
    not_assignment(p, value)
}

/// Parses a set, or a record if a name and a `:` come first.
fn braces(p: &mut Parser<'_>) -> Parsed<ExprKind> {
    if p.token(1).kind == Tok::Ident && p.token(2).kind == Tok::Colon {
        return Ok(ExprKind::Record(record(p)?));
    }
    let pair = (Tok::LBrace, Tok::RBrace);
    Ok(ExprKind::Set(p.bracketed(pair, false, expr)?))
}

/// `{ name: EXPR, … }`
pub(super) fn record(p: &mut Parser<'_>) -> Parsed<Vec<(Ident, Expr)>> {
    p.bracketed((Tok::LBrace, Tok::RBrace), false, |p| {
        let name = p.any_word("a name and `:`")?;
        p.expect(Tok::Colon, "`:` and a value")?;
        Ok((name, expr(p)?))
    })
}

fn if_expr(p: &mut Parser<'_>) -> Parsed<ExprKind> {
    p.bump();
    let cond = condition(p)?;
    let then = braced_expr(p)?;
    if !p.at_word("else") {
        let help = "an `if` that is a value needs both branches";
        return Err(p.expected_with("`else`", Some(help.into())));
    }
    p.bump();
    let otherwise = if p.at_word("if") {
        let start = p.pos;
        let kind = p.deeper(if_expr)?;
        Expr { kind, span: p.span_from(start) }
    } else {
        braced_expr(p)?
    };
    Ok(ExprKind::If(Box::new(cond), Box::new(then), Box::new(otherwise)))
}

fn braced_expr(p: &mut Parser<'_>) -> Parsed<Expr> {
    let open = p.expect(Tok::LBrace, "`{`")?;
    let value = expr(p)?;
    p.close(open, Tok::RBrace, "")?;
    Ok(value)
}

/// Parses the condition of an `if`, or a row's predicate.
pub(super) fn condition(p: &mut Parser<'_>) -> Parsed<Expr> {
    if p.at(Tok::LBrace) {
        return Err(p.expected("a condition"));
    }
    let cond = expr(p)?;
    not_assignment(p, cond)
}

/// Reports a `=` behind a value, where only `==` is possible.
fn not_assignment(p: &mut Parser<'_>, value: Expr) -> Parsed<Expr> {
    if !p.at(Tok::Assign) {
        return Ok(value);
    }
    let message = "`=` assigns and cannot stand in an expression";
    let found = Diagnostic::new(codes::ASSIGN_IN_CONDITION, message, p.here(), "");
    p.report(found.help("compare with `==`"));
    p.bump();
    let right = expr(p)?;
    Ok(Expr { kind: ExprKind::Error, span: value.span.to(right.span) })
}

fn infix_kind(op: Infix, left: Expr, right: Expr) -> ExprKind {
    let span = left.span.to(right.span);
    let (left, right) = (Box::new(left), Box::new(right));
    match op {
        Infix::Binary(op) => ExprKind::Binary(op, left, right),
        Infix::In => ExprKind::In(left, right),
        Infix::NotIn => {
            let inside = Expr { kind: ExprKind::In(left, right), span };
            ExprKind::Not(Box::new(inside))
        }
        Infix::Matches => ExprKind::Matches(left, right),
        Infix::Range => ExprKind::Range(left, right),
    }
}

fn address_kind(text: &str) -> ExprKind {
    match address(text) {
        Some(Address::Ip4(addr)) => ExprKind::Ip4(addr),
        Some(Address::Ip6(addr)) => ExprKind::Ip6(addr),
        Some(Address::Mac(addr)) => ExprKind::Mac(addr),
        Some(Address::Prefix4(addr, len)) => ExprKind::Prefix4(addr, len),
        Some(Address::Prefix6(addr, len)) => ExprKind::Prefix6(addr, len),
        None => ExprKind::Error,
    }
}

fn keyword_help(word: &str) -> Option<String> {
    match word {
        "match" => {
            Some("`match` is a statement and has no value; use `if … { A } else { B }`".into())
        }
        _ => None,
    }
}
