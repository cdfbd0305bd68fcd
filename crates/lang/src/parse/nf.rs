//! Parses network functions: their head, parameters, declarations and states.

use super::marks::{LINE, STMT};
use super::state::{Bail, Parsed, Parser};
use super::words::{NF_ITEMS, STATE_OPTIONS};
use super::{expr, stmt, types};
use crate::ast::{
    Const, FnBody, FnDef, Ident, KeyDef, KeyPart, NativeCode, Nf, NfItem, OnFailure, ParamDef,
    StateDef, StateOption, Type,
};
use crate::diag::{Diagnostic, codes, did_you_mean_help};
use crate::lexer::{Tok, string_value};

/// `nf NAME(…) { … }`, `stream nf …`, `native nf NAME(…) from …;`
pub(super) fn nf(p: &mut Parser<'_>) -> Parsed<Nf> {
    let start = p.pos;
    let is_native = p.eat_word("native");
    let stream = !is_native && p.eat_word("stream");
    p.expect_word("nf")?;
    let name = p.name("the name of the function")?;
    let params = params(p)?;
    let head = p.span_from(start);
    if is_native {
        let native = Some(native_code(p)?);
        let span = p.span_from(start);
        return Ok(Nf { stream, name, params, native, items: Vec::new(), span, head });
    }
    let mut items = Vec::new();
    p.body(STMT, |p| nf_item(p, &mut items))?;
    let span = p.span_from(start);
    Ok(Nf { stream, name, params, native: None, items, span, head })
}

/// `from "LIBRARY" [function NAME] [isolated [on failure WORD]];`
fn native_code(p: &mut Parser<'_>) -> Parsed<NativeCode> {
    let mut code = library(p)?;
    if p.eat_word("isolated") {
        code.isolated = Some(on_failure(p)?);
    }
    p.semicolon()?;
    Ok(code)
}

/// `from "LIBRARY" [function NAME]`
fn library(p: &mut Parser<'_>) -> Parsed<NativeCode> {
    p.expect_word("from")?;
    let start = p.pos;
    let token = p.expect(Tok::Str, "the library, in double quotes")?;
    let literal = p.text.get(token.start as usize..token.end as usize).unwrap_or("");
    let library = string_value(literal).unwrap_or_default();
    let span = p.span_from(start);
    let function = match p.eat_word("function") {
        true => Some(p.name("the name of the function in the library")?),
        false => None,
    };
    Ok(NativeCode { library, span, function, isolated: None })
}

/// `[on failure (drop | bypass)]`, before the semicolon.
fn on_failure(p: &mut Parser<'_>) -> Parsed<OnFailure> {
    if p.at(Tok::Semi) {
        return Ok(OnFailure::Drop);
    }
    if !p.eat_word("on") {
        return Err(p.expected("`on failure drop`, `on failure bypass` or `;`"));
    }
    p.expect_word("failure")?;
    if p.eat_word("bypass") {
        return Ok(OnFailure::Bypass);
    }
    match p.eat_word("drop") {
        true => Ok(OnFailure::Drop),
        false => Err(p.expected_one_of("`drop` or `bypass`", &["drop", "bypass"])),
    }
}

/// Whether a declaration starts here. A statement may begin with a name that is the same word.
fn at_nf_item(p: &Parser<'_>) -> bool {
    let next = p.token(1).kind;
    let assigned = matches!(next, Tok::Assign | Tok::Dot);
    let called = matches!(next, Tok::LParen | Tok::LBracket) && !p.at_word("every");
    let used = assigned || called;
    NF_ITEMS.contains(&p.word()) && !used && !is_operator(next)
}

fn nf_item(p: &mut Parser<'_>, items: &mut Vec<NfItem>) -> Parsed<()> {
    if !at_nf_item(p) {
        let mut stmts = Vec::with_capacity(1);
        let result = stmt::stmt_into(p, &mut stmts);
        items.extend(stmts.into_iter().map(NfItem::Stmt));
        return result;
    }
    p.mark(LINE);
    let item = match p.word() {
        "const" => NfItem::Const(constant(p)?),
        "fn" | "action" => NfItem::Fn(fn_def(p)?),
        "port" => NfItem::Port(port_names(p)?, false),
        "side" => NfItem::Port(port_names(p)?, true),
        "tag" => tag_item(p)?,
        "state" => {
            let (state, rest) = state(p)?;
            items.push(NfItem::State(state));
            return rest;
        }
        "queue" => queue_item(p)?,
        "every" => every_item(p)?,
        _ => on_item(p)?,
    };
    items.push(item);
    Ok(())
}

/// `const NAME = EXPR;`
pub(super) fn constant(p: &mut Parser<'_>) -> Parsed<Const> {
    let start = p.pos;
    p.bump();
    let name = p.name("the name of the constant")?;
    p.expect(Tok::Assign, "`=` and a value")?;
    let value = expr::expr(p)?;
    p.semicolon()?;
    Ok(Const { name, value, span: p.span_from(start) })
}

/// `fn NAME(…) -> T = EXPR;`, `fn NAME(…) -> T from "LIBRARY";` or `action NAME(…) { … }`
pub(super) fn fn_def(p: &mut Parser<'_>) -> Parsed<FnDef> {
    let start = p.pos;
    let pure = bump_word(p) == "fn";
    let name = p.name("a name")?;
    let params = plain_params(p)?;
    let body = if pure {
        if p.at(Tok::LBrace) {
            let help = "a `fn` is `fn NAME(…) -> TYPE = EXPR;`; statements need an `action`";
            return Err(p.expected_with("`->` and a type", Some(help.into())));
        }
        p.expect(Tok::Arrow, "`->` and a type")?;
        let ty = types::ty(p)?;
        if p.at_word("from") {
            let code = library(p)?;
            p.semicolon()?;
            FnBody::Library(ty, code)
        } else {
            p.expect(Tok::Assign, "`=` and a value")?;
            let value = expr::expr(p)?;
            p.semicolon()?;
            FnBody::Pure(ty, value)
        }
    } else {
        FnBody::Action(stmt::block(p)?)
    };
    Ok(FnDef { name, params, body, span: p.span_from(start) })
}

fn bump_word<'t>(p: &mut Parser<'t>) -> &'t str {
    let word = p.word();
    p.bump();
    word
}

/// `port NAME, …;` or `side NAME, …;`
fn port_names(p: &mut Parser<'_>) -> Parsed<Vec<Ident>> {
    let what = format!("the name of a {}", bump_word(p));
    let mut names = vec![p.name(&what)?];
    while p.eat(Tok::Comma) {
        names.push(p.name(&what)?);
    }
    p.semicolon()?;
    Ok(names)
}

fn tag_item(p: &mut Parser<'_>) -> Parsed<NfItem> {
    p.bump();
    let name = p.name("the name of the tag")?;
    p.expect(Tok::Colon, "`:` and a type")?;
    let ty = types::ty(p)?;
    p.semicolon()?;
    Ok(NfItem::Tag(name, ty))
}

fn queue_item(p: &mut Parser<'_>) -> Parsed<NfItem> {
    let start = p.pos;
    p.bump();
    let name = p.name("the name of the queue")?;
    p.expect_word("capacity")?;
    let capacity = expr::expr(p)?;
    p.semicolon()?;
    Ok(NfItem::Queue { name, capacity, span: p.span_from(start) })
}

fn every_item(p: &mut Parser<'_>) -> Parsed<NfItem> {
    let start = p.pos;
    p.bump();
    let period = expr::expr(p)?;
    let body = stmt::block(p)?;
    Ok(NfItem::Every { period, body, span: p.span_from(start) })
}

fn on_item(p: &mut Parser<'_>) -> Parsed<NfItem> {
    let start = p.pos;
    p.bump();
    match p.word() {
        "expire" => {
            p.bump();
            let state = p.name("the name of a state")?;
            let body = stmt::block(p)?;
            Ok(NfItem::OnExpire { state, body, span: p.span_from(start) })
        }
        "open" | "data" | "alert" | "request" | "response" | "close" => {
            let what = p.any_word("what happens")?;
            let mut from = None;
            if what.text == "data" && p.at_word("from") {
                p.bump();
                from = Some(p.any_word("`client` or `server`")?);
            }
            let body = stmt::block(p)?;
            Ok(NfItem::OnStream { what, from, body, span: p.span_from(start) })
        }
        _ if p.at(Tok::Ident) && p.token(1).kind == Tok::LBrace => {
            let event = p.name("an event type")?;
            let body = stmt::block(p)?;
            Ok(NfItem::OnEvent { event, body, span: p.span_from(start) })
        }
        _ => {
            let words = ["expire", "open", "data", "alert", "request", "response", "close"];
            let what = "`expire`, `open`, `data`, `alert`, `request`, `response`, `close` or an \
                        event type";
            Err(p.expected_one_of(what, &words))
        }
    }
}

/// `state NAME: TYPE KEY [= DEFAULT] {, OPTION};` A state with an error in its options is kept, so
/// that its uses are not reported.
fn state(p: &mut Parser<'_>) -> Parsed<(StateDef, Parsed<()>)> {
    let start = p.pos;
    p.bump();
    let name = p.name("the name of the state")?;
    p.expect(Tok::Colon, "`:` and a type")?;
    let ty = types::ty(p)?;
    let key = key_def(p)?;
    let default = if p.eat(Tok::Assign) { Some(expr::expr(p)?) } else { None };
    let mut options = Vec::new();
    let rest = state_options(p, &mut options);
    Ok((StateDef { name, ty, key, default, options, span: p.span_from(start) }, rest))
}

/// `{, OPTION};`
fn state_options(p: &mut Parser<'_>, options: &mut Vec<StateOption>) -> Parsed<()> {
    while p.eat(Tok::Comma) {
        options.push(state_option(p)?);
    }
    if STATE_OPTIONS.contains(&p.word()) {
        return Err(p.expected("`,` before the next option"));
    }
    p.semicolon()
}

fn key_def(p: &mut Parser<'_>) -> Parsed<KeyDef> {
    let start = p.pos;
    if p.eat_word("global") {
        return Ok(KeyDef::Global(p.span_from(start)));
    }
    if !p.at_word("per") {
        return Err(no_key(p));
    }
    p.bump();
    let alone = !matches!(p.token(1).kind, Tok::Dot | Tok::Lt | Tok::LParen);
    if alone && p.eat_word("flow") {
        return Ok(KeyDef::Flow(p.span_from(start)));
    }
    if alone && p.eat_word("biflow") {
        return Ok(KeyDef::Biflow(p.span_from(start)));
    }
    let parts = if p.at(Tok::LParen) {
        p.bracketed((Tok::LParen, Tok::RParen), false, key_part)?
    } else {
        vec![key_part(p)?]
    };
    Ok(KeyDef::List(parts, p.span_from(start)))
}

fn no_key(p: &mut Parser<'_>) -> Bail {
    if p.at(Tok::Error) {
        return Bail;
    }
    let message = format!("expected `per …` or `global`, found {}", p.found());
    let found = Diagnostic::new(codes::STATE_WITHOUT_KEY, message, p.here(), "per what?");
    let help = "`per flow`, `per biflow`, `per (ip.src, l4.sport)`, or `global` for one entry";
    p.report(found.help(help))
}

fn state_option(p: &mut Parser<'_>) -> Parsed<StateOption> {
    let start = p.pos;
    let word = p.word();
    if !STATE_OPTIONS.contains(&word) {
        return Err(unknown_option(p));
    }
    p.bump();
    Ok(match word {
        "idle" => StateOption::Idle(expr::expr(p)?),
        "hard" => StateOption::Hard(expr::expr(p)?),
        "tick" => StateOption::Tick(expr::expr(p)?),
        "capacity" => StateOption::Capacity(expr::expr(p)?),
        "full" => StateOption::Full(p.any_word("`refuse` or `evict_oldest`")?),
        "lives" => {
            p.expect_word("with")?;
            StateOption::LivesWith(p.name("the name of a state")?)
        }
        "portions" => {
            let names = p.bracketed((Tok::LParen, Tok::RParen), false, |p| {
                p.name("the name of a parameter")
            })?;
            StateOption::Portions(names, p.span_from(start))
        }
        _ => StateOption::Sharded(p.span_from(start)),
    })
}

fn unknown_option(p: &mut Parser<'_>) -> Bail {
    if p.at(Tok::Error) {
        return Bail;
    }
    let message = format!("expected an option of the state, found {}", p.found());
    let found = Diagnostic::new(codes::UNKNOWN_STATE_OPTION, message, p.here(), "unknown option");
    let all = "the options are `idle T`, `hard T`, `tick T`, `capacity N`, `full refuse`, \
               `full evict_oldest`, `lives with STATE`, `sharded`, `portions (PARAMETER, …)`";
    let help = did_you_mean_help(p.word(), STATE_OPTIONS.iter().copied());
    p.report(found.note(all).help_if(help))
}

/// Whether the token starts an assignment operator. `>` may start `>>=`.
fn is_operator(kind: Tok) -> bool {
    use Tok::{AmpEq, CaretEq, Gt, MinusEq, PercentEq, PipeEq, PlusEq, ShlEq, SlashEq, StarEq};
    matches!(
        kind,
        PlusEq | MinusEq | StarEq | SlashEq | PercentEq | AmpEq | PipeEq | CaretEq | ShlEq | Gt
    )
}

/// `(name: type = default, …)`
fn params(p: &mut Parser<'_>) -> Parsed<Vec<ParamDef>> {
    p.bracketed((Tok::LParen, Tok::RParen), true, |p| {
        let name = p.name("the name of a parameter")?;
        p.expect(Tok::Colon, "`:` and a type")?;
        let ty = types::ty(p)?;
        let default = if p.eat(Tok::Assign) { Some(expr::expr(p)?) } else { None };
        Ok(ParamDef { name, ty, default })
    })
}

/// `(name: type, …)` of one of the program's own functions.
fn plain_params(p: &mut Parser<'_>) -> Parsed<Vec<(Ident, Type)>> {
    p.bracketed((Tok::LParen, Tok::RParen), true, |p| {
        let name = p.name("the name of a parameter")?;
        p.expect(Tok::Colon, "`:` and a type")?;
        Ok((name, types::ty(p)?))
    })
}

/// Parses a field (a dotted name) or a type.
fn key_part(p: &mut Parser<'_>) -> Parsed<KeyPart> {
    if p.at(Tok::Ident) && p.token(1).kind == Tok::Dot {
        return Ok(KeyPart::Field(types::path(p, "a field")?));
    }
    Ok(KeyPart::Type(types::ty(p)?))
}
