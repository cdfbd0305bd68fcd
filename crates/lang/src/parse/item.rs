//! Parses files: their declarations.

use std::collections::BTreeSet;

use super::marks::{FIELDS, LINE};
use super::state::{Parsed, Parser};
use super::words::FILE_ITEMS;
use super::{chain, expr, nf, types};
use crate::ast::{After, EventDef, Expr, File, HeaderDef, Ident, Item, Span, joined};
use crate::lexer::{Tok, string_value};

pub(super) fn file(p: &mut Parser<'_>) -> File {
    let mut items = Vec::new();
    let mut extents = Vec::new();
    while !p.at(Tok::Eof) {
        let start = p.pos;
        p.open_braces = 0;
        p.depth = 0;
        if p.at(Tok::Semi) && start > 0 {
            p.extra_semicolon();
            continue;
        }
        p.mark(LINE);
        let declares = FILE_ITEMS.contains(&p.word());
        let parsed = item(p);
        if declares {
            extents.push(p.span_from(start));
        }
        match parsed {
            Ok(item) => items.push(item),
            Err(_) => next_item(p, start),
        }
    }
    File { items, doubtful: doubtful(p, &extents) }
}

/// The items with errors, by their order. An error behind an item may belong to it, as for an extra
/// `}`.
fn doubtful(p: &Parser<'_>, extents: &[Span]) -> Vec<Span> {
    if p.diags.left_out() > 0 {
        let whole = p.span_from(0);
        return vec![Span { start: 0, end: u32::MAX, ..whole }];
    }
    let errors = p.diags.iter().filter(|found| found.is_error());
    let item_of = |start| extents.partition_point(|item| item.start <= start).checked_sub(1);
    let found: BTreeSet<usize> = errors.filter_map(|error| item_of(error.span().start)).collect();
    found.into_iter().filter_map(|at| extents.get(at).copied()).collect()
}

fn item(p: &mut Parser<'_>) -> Parsed<Item> {
    match p.word() {
        "use" => use_item(p),
        "const" => Ok(Item::Const(nf::constant(p)?)),
        "event" => Ok(Item::Event(event(p)?)),
        "header" => Ok(Item::Header(header(p)?)),
        "fn" | "action" => Ok(Item::Fn(nf::fn_def(p)?)),
        "nf" | "stream" | "native" => Ok(Item::Nf(nf::nf(p)?)),
        "chain" => Ok(Item::Chain(chain::chain(p)?)),
        _ => Err(p.unknown_item("a declaration", FILE_ITEMS)),
    }
}

/// Skips to the place where the next declaration seems to start.
fn next_item(p: &mut Parser<'_>, start: usize) {
    if p.pos == start {
        p.bump();
    }
    while !p.at(Tok::Eof) && !at_item_start(p) {
        p.bump();
    }
}

fn at_item_start(p: &Parser<'_>) -> bool {
    let named = match p.token(1).kind {
        Tok::Ident => true,
        Tok::Str => p.at_word("use"),
        _ => false,
    };
    let starts = p.on_new_line() && named && FILE_ITEMS.contains(&p.word());
    // These words belong to a function if they are indented.
    starts && (column_of_token(p) == 0 || p.at_nf_or_chain())
}

fn column_of_token(p: &Parser<'_>) -> usize {
    let start = p.token(0).start as usize;
    let before = p.text.get(..start).unwrap_or("");
    start - before.rfind('\n').map_or(0, |at| at + 1)
}

fn use_item(p: &mut Parser<'_>) -> Parsed<Item> {
    let start = p.pos;
    p.bump();
    let token = p.expect(Tok::Str, "the path of a file in double quotes")?;
    let literal = p.text.get(token.start as usize..token.end as usize).unwrap_or("");
    p.semicolon()?;
    let path = string_value(literal).unwrap_or_default();
    Ok(Item::Use { path, span: p.span_from(start) })
}

/// `event NAME [extends PARENT] { field: type, … }`, or `;` instead of the fields
fn event(p: &mut Parser<'_>) -> Parsed<EventDef> {
    let start = p.pos;
    p.bump();
    let name = p.name("the name of the event")?;
    let parent = if p.eat_word("extends") { Some(p.name("the name of an event")?) } else { None };
    let fields = if p.at(Tok::LBrace) { types::record_type(p)? } else { Vec::new() };
    if fields.is_empty() && !closed_brace(p) {
        p.semicolon()?;
    }
    Ok(EventDef { name, parent, fields, span: p.span_from(start) })
}

/// `header NAME after PARENT [when COND], … { field: type, … } [length EXPR] [checksum FIELD]
/// [holds packet|frame [when COND]];`
fn header(p: &mut Parser<'_>) -> Parsed<HeaderDef> {
    let start = p.pos;
    p.bump();
    let path = types::path(p, "the name of the header")?;
    let name = Ident { text: joined(&path), span: path.span };
    if !p.eat_word("after") {
        return Err(p.expected("`after` and the header in front of this one"));
    }
    let mut after = Vec::new();
    loop {
        let header = types::path(p, "the name of a header")?;
        let when = if p.eat_word("when") { Some(expr::condition(p)?) } else { None };
        after.push(After { header, when });
        if !p.eat(Tok::Comma) {
            break;
        }
    }
    if !p.at(Tok::LBrace) {
        return Err(p.expected("`{` and the fields of the header"));
    }
    p.mark(FIELDS);
    let fields = types::record_type(p)?;
    let length = if p.eat_word("length") { Some(expr::expr(p)?) } else { None };
    let checksum =
        if p.eat_word("checksum") { Some(p.name("the field with the checksum")?) } else { None };
    let holds = if p.eat_word("holds") { Some(holds(p)?) } else { None };
    if length.is_some() || checksum.is_some() || holds.is_some() {
        p.semicolon()?;
    }
    Ok(HeaderDef { name, after, length, checksum, holds, fields, span: p.span_from(start) })
}

/// `packet|frame [when COND]`
fn holds(p: &mut Parser<'_>) -> Parsed<(bool, Option<Expr>)> {
    let is_frame = p.eat_word("frame");
    if !is_frame && !p.eat_word("packet") {
        return Err(p.expected("`packet` or `frame`"));
    }
    let when = if p.eat_word("when") { Some(expr::condition(p)?) } else { None };
    Ok((is_frame, when))
}

/// Whether the last consumed token was a `}`.
fn closed_brace(p: &Parser<'_>) -> bool {
    p.pos > 0 && p.tokens[p.pos - 1].kind == Tok::RBrace
}
