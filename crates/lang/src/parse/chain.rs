//! Parses chains: interfaces, instances, paths, links, policy.

use super::expr;
use super::marks::{GLUE, LINE, STMT};
use super::state::{Bail, Parsed, Parser};
use super::words::{CHAIN_ITEMS, INTERFACE_ITEMS};
use crate::ast::{Arrow, Chain, ChainItem, InterfacePart, PathEnd, PolicyKind, PolicyRule};
use crate::diag::{Diagnostic, codes, did_you_mean_help};
use crate::lexer::Tok;

const POLICY_RULES: [&str; 3] = ["Order", "Priority", "Position"];

/// `chain NAME { … }`
pub(super) fn chain(p: &mut Parser<'_>) -> Parsed<Chain> {
    let start = p.pos;
    p.bump();
    let name = p.name("the name of the chain")?;
    let mut items = Vec::new();
    p.body(LINE, |p| {
        items.push(chain_item(p)?);
        Ok(())
    })?;
    Ok(Chain { name, items, span: p.span_from(start) })
}

fn chain_item(p: &mut Parser<'_>) -> Parsed<ChainItem> {
    if p.at(Tok::Ident) && p.token(1).kind == Tok::Assign {
        return instance(p);
    }
    match p.word() {
        "interface" => interface(p),
        "path" => path_item(p),
        "link" => link_item(p),
        "policy" => policy(p),
        "malformed" => {
            p.bump();
            let what = p.any_word("`drop` or `pass`")?;
            p.semicolon()?;
            Ok(ChainItem::Malformed(what))
        }
        "seed" | "workers" => {
            let name = p.any_word("a setting")?;
            let value = expr::expr(p)?;
            p.semicolon()?;
            Ok(ChainItem::Setting { name, value })
        }
        _ => Err(p.unknown_item("a part of the chain", CHAIN_ITEMS)),
    }
}

/// `NAME = FUNCTION(…);`
fn instance(p: &mut Parser<'_>) -> Parsed<ChainItem> {
    let start = p.pos;
    let name = p.any_word("a name")?;
    p.bump();
    let function = p.name("the name of a function")?;
    let args = expr::args(p)?;
    p.semicolon()?;
    Ok(ChainItem::Instance { name, function, args, span: p.span_from(start) })
}

/// `interface NAME;` or `interface NAME { behind PREFIX, …; address ADDRESS/LENGTH; … }`. The last
/// `;` in the braces is optional.
fn interface(p: &mut Parser<'_>) -> Parsed<ChainItem> {
    let start = p.pos;
    p.bump();
    let name = p.any_word("the name of the interface")?;
    let mut parts = Vec::new();
    if p.at(Tok::LBrace) {
        p.body(STMT, |p| {
            parts.push(interface_part(p)?);
            if !p.at(Tok::RBrace) {
                p.semicolon()?;
            }
            Ok(())
        })?;
    } else {
        p.semicolon()?;
    }
    Ok(ChainItem::Interface { name, parts, span: p.span_from(start) })
}

fn interface_part(p: &mut Parser<'_>) -> Parsed<InterfacePart> {
    if !INTERFACE_ITEMS.contains(&p.word()) {
        return Err(p.unknown_item("a part of the interface", INTERFACE_ITEMS));
    }
    let name = p.any_word("a part of the interface")?;
    if name.text == "too_long" {
        let what = p.any_word("`icmp`, `fragment` or `drop`")?;
        return Ok(InterfacePart::TooLong { name, what });
    }
    let one = if name.text == "address" { expr::own_address } else { expr::expr };
    let mut values = vec![one(p)?];
    while p.eat(Tok::Comma) {
        if matches!(p.kind(), Tok::Semi | Tok::RBrace) {
            break;
        }
        values.push(one(p)?);
    }
    Ok(InterfacePart::Values { name, values })
}

fn arrow(p: &mut Parser<'_>) -> Option<Arrow> {
    let arrow = match p.kind() {
        Tok::Arrow => Arrow::OneWay,
        Tok::BothArrow => Arrow::TwoWay,
        _ => return None,
    };
    p.bump();
    Some(arrow)
}

fn path_item(p: &mut Parser<'_>) -> Parsed<ChainItem> {
    let start = p.pos;
    p.bump();
    let mut ends = vec![path_end(p)?];
    let mut arrows = Vec::new();
    while let Some(arrow) = arrow(p) {
        arrows.push(arrow);
        ends.push(path_end(p)?);
    }
    if !p.at(Tok::Semi) && !p.on_new_line() {
        return Err(p.expected("`<->`, `->` or `;`"));
    }
    p.semicolon()?;
    Ok(ChainItem::Path { ends, arrows, span: p.span_from(start) })
}

fn link_item(p: &mut Parser<'_>) -> Parsed<ChainItem> {
    let start = p.pos;
    p.bump();
    let from = path_end(p)?;
    let Some(arrow) = arrow(p) else {
        return Err(p.expected("`->` or `<->`"));
    };
    let to = path_end(p)?;
    p.semicolon()?;
    Ok(ChainItem::Link { from, arrow, to, span: p.span_from(start) })
}

/// `NAME`, `NAME.PORT` or `FUNCTION(…)`
fn path_end(p: &mut Parser<'_>) -> Parsed<PathEnd> {
    let start = p.pos;
    let name = p.any_word("an interface or function")?;
    let mut port = None;
    let mut args = None;
    if p.at(Tok::LParen) {
        args = Some(expr::args(p)?);
    } else if p.eat(Tok::Dot) {
        port = Some(p.any_word("a port")?);
    }
    Ok(PathEnd { name, port, args, span: p.span_from(start) })
}

fn policy(p: &mut Parser<'_>) -> Parsed<ChainItem> {
    let start = p.pos;
    p.bump();
    let mut rules = Vec::new();
    p.body(STMT, |p| {
        rules.push(policy_rule(p)?);
        Ok(())
    })?;
    Ok(ChainItem::Policy { rules, span: p.span_from(start) })
}

fn policy_rule(p: &mut Parser<'_>) -> Parsed<PolicyRule> {
    let start = p.pos;
    let word = p.word();
    if !POLICY_RULES.contains(&word) {
        return Err(unknown_rule(p));
    }
    p.bump();
    p.mark(GLUE);
    let open = p.expect(Tok::LParen, "`(`")?;
    let first = p.any_word("the name of a function")?;
    let kind = match word {
        "Order" => {
            p.expect(Tok::Comma, "`, before, NAME`")?;
            p.expect_word("before")?;
            p.expect(Tok::Comma, "`,` and the name of a function")?;
            PolicyKind::Order(first, p.any_word("the name of a function")?)
        }
        "Priority" => {
            p.expect(Tok::Gt, "`>` and the name of a function")?;
            PolicyKind::Priority(first, p.any_word("the name of a function")?)
        }
        _ => {
            p.expect(Tok::Comma, "`, first` or `, last`")?;
            PolicyKind::Position(first, p.any_word("`first` or `last`")?)
        }
    };
    p.close(open, Tok::RParen, "")?;
    p.semicolon()?;
    Ok(PolicyRule { kind, span: p.span_from(start) })
}

fn unknown_rule(p: &mut Parser<'_>) -> Bail {
    if p.at(Tok::Error) {
        return Bail;
    }
    let message = format!("expected `Order`, `Priority` or `Position`, found {}", p.found());
    let found = Diagnostic::new(codes::UNKNOWN_POLICY_RULE, message, p.here(), "unknown rule");
    let help = did_you_mean_help(p.word(), POLICY_RULES);
    p.report(found.help_if(help))
}
