//! Parses statements and match tables.

use super::marks::{GLUE, LINE, STMT};
use super::ops::level;
use super::state::{Parsed, Parser};
use super::words::is_keyword;
use super::{expr, ops, types};
use crate::ast::{
    BinOp, Block, Contents, Expr, ExprKind, Ident, Part, Path, Push, Row, Span, Stmt, StmtKind,
};
use crate::diag::{Diagnostic, codes};
use crate::lexer::{Tok, string_value};

/// `{ stmt … }`
pub(super) fn block(p: &mut Parser<'_>) -> Parsed<Block> {
    let start = p.pos;
    let mut stmts = Vec::new();
    p.body(STMT, |p| stmt_into(p, &mut stmts))?;
    Ok(Block { stmts, span: p.span_from(start) })
}

/// Parses a statement and adds it to `stmts`. A statement with an error becomes an `Error` node.
pub(super) fn stmt_into(p: &mut Parser<'_>, stmts: &mut Vec<Stmt>) -> Parsed<()> {
    let start = p.pos;
    let parsed = stmt(p);
    let span = p.span_from(start);
    let result = parsed.as_ref().map(|_| ()).map_err(|bail| *bail);
    stmts.push(parsed.unwrap_or(Stmt { kind: StmtKind::Error, span }));
    result
}

fn stmt(p: &mut Parser<'_>) -> Parsed<Stmt> {
    p.deeper(|p| {
        let start = p.pos;
        let kind = stmt_kind(p)?;
        Ok(Stmt { kind, span: p.span_from(start) })
    })
}

fn stmt_kind(p: &mut Parser<'_>) -> Parsed<StmtKind> {
    if p.at(Tok::LBrace) {
        return Ok(StmtKind::Block(block(p)?));
    }
    match p.word() {
        "match" => match_stmt(p),
        "if" => if_stmt(p),
        "for" => for_stmt(p),
        "let" => let_stmt(p),
        "hold" => hold_stmt(p),
        "send" => send_stmt(p),
        "emit" => emit_stmt(p),
        "push" => {
            let mut pushes = vec![push(p)?];
            while p.eat(Tok::Comma) {
                pushes.push(pushed(p)?);
            }
            Ok(StmtKind::Push { pushes, otherwise: otherwise(p)? })
        }
        "pop" => {
            let mut pops = vec![push(p)?];
            while p.eat(Tok::Comma) {
                pops.push(pushed(p)?);
            }
            Ok(StmtKind::Pop { pops, otherwise: otherwise(p)? })
        }
        "delete" | "output" | "drop" | "consume" | "mirror" | "resubmit" => {
            let kind = simple_stmt(p)?;
            p.semicolon()?;
            Ok(kind)
        }
        // A name, unless it stands like this word.
        "reset" if matches!(p.token(1).kind, Tok::Str | Tok::Semi | Tok::RBrace) => {
            p.bump();
            let kind = StmtKind::Reset(reason(p));
            p.semicolon()?;
            Ok(kind)
        }
        _ => assign_or_call(p),
    }
}

fn simple_stmt(p: &mut Parser<'_>) -> Parsed<StmtKind> {
    let word = p.word();
    p.bump();
    Ok(match word {
        "delete" if !p.at(Tok::Ident) => return Err(p.expected("a state")),
        "delete" => StmtKind::Delete(expr::postfix(p)?),
        "output" => StmtKind::Output(ports(p)?),
        "drop" => StmtKind::Drop(reason(p)),
        "consume" => StmtKind::Consume,
        "mirror" => StmtKind::Mirror(p.any_word("a port")?),
        _ => StmtKind::Resubmit,
    })
}

/// Parses ports between commas, or none.
fn ports(p: &mut Parser<'_>) -> Parsed<Vec<Ident>> {
    let mut ports = Vec::new();
    if matches!(p.kind(), Tok::Semi | Tok::RBrace) || p.on_new_line() {
        return Ok(ports);
    }
    loop {
        ports.push(p.any_word("a port or `;`")?);
        if !p.eat(Tok::Comma) {
            return Ok(ports);
        }
    }
}

fn reason(p: &mut Parser<'_>) -> Option<(String, Span)> {
    if !matches!(p.kind(), Tok::Str | Tok::Error) {
        return None;
    }
    let span = p.here();
    let text = string_value(p.text(0)).unwrap_or_default();
    p.bump();
    Some((text, span))
}

/// The header of a `push` or `pop`, in messages.
const A_HEADER: &str = "a header, such as `vlan`";

/// `push HEADER(EXPR, …)` or `push HEADER { field: EXPR, … }`
fn push(p: &mut Parser<'_>) -> Parsed<Push> {
    let start = p.pos;
    p.bump();
    let pushed = pushed(p)?;
    Ok(Push { span: p.span_from(start), ..pushed })
}

/// `HEADER(EXPR, …)` or `HEADER { field: EXPR, … }`
fn pushed(p: &mut Parser<'_>) -> Parsed<Push> {
    let start = p.pos;
    let header = types::path(p, A_HEADER)?;
    let (mut args, mut fields) = (Vec::new(), Vec::new());
    if p.at(Tok::LParen) {
        args = p.bracketed((Tok::LParen, Tok::RParen), true, expr::expr)?;
    } else if p.at(Tok::LBrace) {
        fields = expr::record(p)?;
    }
    Ok(Push { header, args, fields, span: p.span_from(start) })
}

/// Parses `else STMT`, which has its own `;`, or the `;`.
fn otherwise(p: &mut Parser<'_>) -> Parsed<Option<Box<Stmt>>> {
    if p.eat_word("else") {
        return Ok(Some(Box::new(stmt(p)?)));
    }
    p.semicolon()?;
    Ok(None)
}

fn let_stmt(p: &mut Parser<'_>) -> Parsed<StmtKind> {
    p.bump();
    let mutable = p.at_word("mut") && p.token(1).kind == Tok::Ident;
    if mutable {
        p.bump();
    }
    let name = p.name("a name")?;
    p.expect(Tok::Assign, "`=` and a value")?;
    let value = expr::expr(p)?;
    Ok(StmtKind::Let { name, mutable, value, otherwise: otherwise(p)? })
}

fn hold_stmt(p: &mut Parser<'_>) -> Parsed<StmtKind> {
    p.bump();
    let queue = p.name("the name of a queue")?;
    p.expect_word("for")?;
    let delay = expr::expr(p)?;
    Ok(StmtKind::Hold { queue, delay, otherwise: otherwise(p)? })
}

fn assign_or_call(p: &mut Parser<'_>) -> Parsed<StmtKind> {
    let word = p.word();
    let value = matches!(word, "exists" | "has" | "not" | "true" | "false");
    if word == "else" {
        let help = "an `else` follows the `}` of its `if`, or the value of a statement";
        return Err(p.expected_with("a statement", Some(help.into())));
    }
    let starts = !word.is_empty() && (value || !is_keyword(word));
    if !starts && !p.at(Tok::LParen) {
        return Err(p.expected("a statement"));
    }
    let place = expr::expr(p)?;
    if let Some((op, tokens)) = ops::assignment(p) {
        ops::bump_operator(p, tokens);
        let value = expr::expr(p)?;
        return Ok(StmtKind::Assign { place, op, value, otherwise: otherwise(p)? });
    }
    let plain = matches!(&place.kind, ExprKind::Path(path) if path.parts.len() == 1);
    let call = matches!(place.kind, ExprKind::Call(..)) || plain;
    if matches!(place.kind, ExprKind::Call(..)) && p.at_word("else") {
        return Ok(StmtKind::Call { call: place, otherwise: otherwise(p)? });
    }
    let ends = p.at(Tok::Semi) || p.on_new_line() || p.at_block_end();
    if !ends {
        return Err(p.expected("`;` or an assignment"));
    }
    if !call && !matches!(place.kind, ExprKind::Error) {
        useless(p, &place);
    }
    p.semicolon()?;
    Ok(match call {
        true => StmtKind::Call { call: place, otherwise: None },
        false => StmtKind::Error,
    })
}

fn useless(p: &mut Parser<'_>, value: &Expr) {
    let message = "this expression has no effect";
    let found = Diagnostic::new(codes::USELESS_STATEMENT, message, value.span, "not a statement");
    let equality = matches!(value.kind, ExprKind::Binary(BinOp::Eq, ..));
    let help = if equality { "assign with `=`" } else { "assign it, or remove it" };
    p.report(found.help(help));
}

fn if_stmt(p: &mut Parser<'_>) -> Parsed<StmtKind> {
    p.bump();
    let cond = expr::condition(p)?;
    let then = block(p)?;
    // `else =>` is the next row of a `match`, in which this statement is a row.
    if !p.at_word("else") || p.token(1).kind == Tok::FatArrow {
        return Ok(StmtKind::If { cond, then, otherwise: None });
    }
    p.bump();
    let otherwise = if p.at_word("if") {
        let nested = stmt(p)?;
        Block { span: nested.span, stmts: vec![nested] }
    } else {
        block(p)?
    };
    Ok(StmtKind::If { cond, then, otherwise: Some(otherwise) })
}

fn for_stmt(p: &mut Parser<'_>) -> Parsed<StmtKind> {
    p.bump();
    let var = p.name("a name")?;
    p.expect_word("in")?;
    let from = expr::binary(p, level::BIT_OR)?;
    p.expect(Tok::DotDot, "`..` and the upper bound")?;
    let to = expr::binary(p, level::BIT_OR)?;
    let cond = if p.eat_word("while") { Some(expr::condition(p)?) } else { None };
    Ok(StmtKind::For { var, from, to, cond, body: block(p)? })
}

fn match_stmt(p: &mut Parser<'_>) -> Parsed<StmtKind> {
    p.bump();
    let mut rows = Vec::new();
    p.body(LINE, |p| {
        rows.push(row(p)?);
        Ok(())
    })?;
    Ok(StmtKind::Match(rows))
}

fn row(p: &mut Parser<'_>) -> Parsed<Row> {
    let start = p.pos;
    let pred = if p.eat_word("else") { None } else { Some(expr::condition(p)?) };
    p.expect(Tok::FatArrow, "`=>`")?;
    let body = if p.at(Tok::LBrace) {
        block(p)?
    } else {
        let only = stmt(p)?;
        Block { span: only.span, stmts: vec![only] }
    };
    Ok(Row { pred, body, span: p.span_from(start) })
}

fn send_stmt(p: &mut Parser<'_>) -> Parsed<StmtKind> {
    p.bump();
    let shape = p.any_word("the kind of packet, such as `icmp`")?;
    let mut parts = vec![Part::default()];
    let mut payload = None;
    p.body(STMT, |p| {
        if p.eat_word("if") {
            let mut part = Part { when: Some(expr::condition(p)?), ..Part::default() };
            p.body(STMT, |p| send_part(p, &mut part))?;
            parts.push(part);
        } else if p.at_word("payload") && p.token(1).kind == Tok::Assign {
            let span = p.here();
            let value = send_payload(p)?;
            if payload.replace(value).is_some() {
                let message = "the payload of the new packet is given twice";
                p.report(Diagnostic::new(codes::PAYLOAD_TWICE, message, span, "again"));
            }
        } else {
            if parts.last().is_none_or(|part| part.when.is_some()) {
                parts.push(Part::default());
            }
            parts.last_mut().map_or(Ok(()), |part| send_part(p, part))?;
        }
        Ok(())
    })?;
    let mut port = None;
    if p.eat_word("to") {
        port = Some(p.any_word("a port")?);
        p.semicolon()?;
    }
    Ok(StmtKind::Send { shape, contents: Contents { parts, payload }, port })
}

/// A field or an option of a new packet.
fn send_part(p: &mut Parser<'_>, part: &mut Part) -> Parsed<()> {
    if p.at_word("push") {
        part.options.push(push(p)?);
        return p.semicolon();
    }
    part.fields.push(send_field(p)?);
    Ok(())
}

fn send_field(p: &mut Parser<'_>) -> Parsed<(Path, Expr)> {
    let field = types::path(p, "a field of the new packet")?;
    p.expect(Tok::Assign, "`=` and a value")?;
    let value = expr::expr(p)?;
    p.semicolon()?;
    Ok((field, value))
}

/// `payload = quote(N);`, `payload = same;`
fn send_payload(p: &mut Parser<'_>) -> Parsed<(Ident, Option<Expr>)> {
    p.bump();
    p.bump();
    let what = p.any_word("`quote(N)` or `same`")?;
    let mut length = None;
    if p.at(Tok::LParen) {
        p.mark(GLUE);
        let open = p.bump();
        length = Some(expr::expr(p)?);
        p.close(open, Tok::RParen, "")?;
    }
    p.semicolon()?;
    Ok((what, length))
}

fn emit_stmt(p: &mut Parser<'_>) -> Parsed<StmtKind> {
    p.bump();
    let event = p.any_word("the name of an event")?;
    let args = if p.at(Tok::LBrace) { expr::record(p)? } else { Vec::new() };
    p.semicolon()?;
    Ok(StmtKind::Emit { event, args })
}
