//! Parses types and dotted names.

use super::marks::{GENERIC, GLUE};
use super::state::{Parsed, Parser};
use crate::ast::{Ident, Path, Type, TypeKind};
use crate::lexer::{Tok, int_value};

pub(super) fn ty(p: &mut Parser<'_>) -> Parsed<Type> {
    p.deeper(ty_inner)
}

fn ty_inner(p: &mut Parser<'_>) -> Parsed<Type> {
    let start = p.pos;
    let kind = if p.at(Tok::LBrace) {
        TypeKind::Record(record_type(p)?)
    } else {
        if is_bytes(p) {
            let count = bytes(p);
            return Ok(Type { kind: TypeKind::Bytes(count), span: p.span_from(start) });
        }
        let name = p.name("a type")?;
        let args = if p.at(Tok::Lt) { type_args(p)? } else { Vec::new() };
        let of = if p.at(Tok::LParen) { Some(type_of(p)?) } else { None };
        TypeKind::Named { name, args, of }
    };
    Ok(Type { kind, span: p.span_from(start) })
}

/// `{ addr: ip4, port: port }`
pub(super) fn record_type(p: &mut Parser<'_>) -> Parsed<Vec<(Ident, Type)>> {
    p.bracketed((Tok::LBrace, Tok::RBrace), false, typed_name)
}

/// `addr: ip4`. The name may be a keyword.
fn typed_name(p: &mut Parser<'_>) -> Parsed<(Ident, Type)> {
    let name = p.any_word("a name")?;
    p.expect(Tok::Colon, "`:` and a type")?;
    Ok((name, ty(p)?))
}

fn type_args(p: &mut Parser<'_>) -> Parsed<Vec<Type>> {
    p.mark(GLUE | GENERIC);
    let open = p.bump();
    let args = p.list(open, Tok::Gt, ty)?;
    p.marks.set(p.pos - 1, GLUE | GENERIC);
    Ok(args)
}

/// Whether `bytes<N>` follows.
pub(super) fn is_bytes(p: &Parser<'_>) -> bool {
    let kinds = [1, 2, 3].map(|at| p.token(at).kind);
    p.at_word("bytes") && kinds == [Tok::Lt, Tok::Int, Tok::Gt]
}

/// `bytes<64>`, which must follow.
pub(super) fn bytes(p: &mut Parser<'_>) -> u128 {
    p.bump();
    p.mark(GLUE | GENERIC);
    p.bump();
    p.mark(GLUE);
    let count = int_value(p.text(0)).unwrap_or_default();
    p.bump();
    p.mark(GLUE | GENERIC);
    p.bump();
    count
}

/// `(servers)` after `index`.
fn type_of(p: &mut Parser<'_>) -> Parsed<Ident> {
    p.mark(GLUE);
    let open = p.bump();
    let of = p.name("the name of a list")?;
    p.close(open, Tok::RParen, "")?;
    Ok(of)
}

/// `a.b.c`. Parts behind a dot may be keywords.
pub(super) fn path(p: &mut Parser<'_>, what: &str) -> Parsed<Path> {
    let start = p.pos;
    let mut parts = vec![p.name(what)?];
    while p.at(Tok::Dot) {
        p.bump();
        parts.push(p.any_word("a name after the `.`")?);
    }
    Ok(Path { parts, span: p.span_from(start) })
}
