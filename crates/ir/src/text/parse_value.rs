//! Parses names of fields, types, settings and parameter values.

use super::names::{POOL_ORDERS, by_name, resolve};
use super::scan::{Result, Scan};
use crate::model::{EventTy, Kind, Model, ParamId, ParamTy, PoolOrder, Setting, Ty, Version, Word};
use crate::routes::RouteTable;
use crate::show::NAMED_KINDS;
use crate::stream::{StreamField, StreamText};
use crate::strings::StringSet;
use crate::value::{Backend, Health, IntervalSet, ParamValue, Rule, RuleAddrs, RuleSet};
use braid_crypto::Keys;
use braid_externs::PatternSet;
use braid_externs::patterns::{Matcher, Pattern};
use braid_packet::Field;
use braid_signatures::Signatures;

/// A field by name.
pub(crate) fn field(scan: &mut Scan<'_>) -> Result<Field> {
    let name = scan.dotted()?;
    match Field::by_name(name) {
        Some(field) => Ok(field),
        None => scan.wrong(format!("no field `{name}`")),
    }
}

/// A version of IP, by the name of its header.
pub(super) fn version(scan: &mut Scan<'_>) -> Result<Version> {
    let name = scan.word()?;
    match [Version::Ip4, Version::Ip6].into_iter().find(|of| of.header().name() == name) {
        Some(version) => Ok(version),
        None => scan.wrong(format!("a packet is translated to `ip` or `ip6`, not to `{name}`")),
    }
}

/// A number of a stream by name.
pub(crate) fn stream_field(scan: &mut Scan<'_>) -> Result<StreamField> {
    let word = scan.word()?;
    match StreamField::all().find(|field| field.word() == word) {
        Some(field) => Ok(field),
        None => scan.wrong("expected a number of a stream"),
    }
}

/// `, host`: the string of a request that is searched. `None` without it.
pub(crate) fn searched(scan: &mut Scan<'_>) -> Result<Option<StreamText>> {
    if !scan.eat(",") {
        return Ok(None);
    }
    let word = scan.word()?;
    match StreamText::OF_REQUEST.into_iter().find(|text| text.word() == word) {
        Some(text) => Ok(Some(text)),
        None => scan.wrong("expected a string of an HTTP request"),
    }
}

pub(super) fn ty(scan: &mut Scan<'_>) -> Result<Ty> {
    let word = scan.word()?;
    if let Some((kind, _, width)) = NAMED_KINDS.iter().find(|(_, name, _)| *name == word) {
        let width = if scan.eat("/") { scan.number()? } else { *width };
        return Ok(Ty { kind: *kind, width });
    }
    match word.strip_prefix('u').and_then(|digits| digits.parse().ok()) {
        Some(width) => Ok(Ty { kind: Kind::Uint, width }),
        None => scan.wrong(format!("`{word}` is not a type")),
    }
}

/// One type, or the columns of a record.
pub(super) fn columns(scan: &mut Scan<'_>) -> Result<Vec<(String, Ty)>> {
    if !scan.eat("{") {
        return Ok(vec![(String::new(), ty(scan)?)]);
    }
    scan.items("}", |scan| {
        let name = scan.name()?;
        scan.expect(":")?;
        Ok((name, ty(scan)?))
    })
}

pub(super) fn param_ty(scan: &mut Scan<'_>) -> Result<ParamTy> {
    let in_angles = |scan: &mut Scan<'_>| {
        scan.word()?;
        scan.expect("<")
    };
    let made = match scan.peek_word() {
        "list" => {
            in_angles(scan)?;
            ParamTy::List(columns(scan)?)
        }
        "backends" => {
            in_angles(scan)?;
            ParamTy::Backends(columns(scan)?)
        }
        "set" => {
            in_angles(scan)?;
            ParamTy::Set(ty(scan)?)
        }
        "pool" => {
            in_angles(scan)?;
            let of = ty(scan)?;
            ParamTy::Pool(of, if scan.eat(",") { order(scan)? } else { PoolOrder::Lowest })
        }
        "strings" => {
            in_angles(scan)?;
            ParamTy::Strings(scan.number()?)
        }
        plain @ ("rules" | "routes" | "patterns" | "signatures" | "hosts" | "keys" | "string") => {
            scan.expect_word(plain)?;
            return Ok(match plain {
                "rules" => ParamTy::Rules,
                "routes" => ParamTy::Routes,
                "patterns" => ParamTy::Patterns,
                "signatures" => ParamTy::Signatures,
                "hosts" => ParamTy::Hosts,
                "keys" => ParamTy::Keys,
                _ => ParamTy::Str,
            });
        }
        _ => return ty(scan).map(ParamTy::Scalar),
    };
    scan.expect(">")?;
    Ok(made)
}

fn order(scan: &mut Scan<'_>) -> Result<PoolOrder> {
    let word = scan.word()?;
    match by_name(POOL_ORDERS, word) {
        Some(order) => Ok(order),
        None => scan.wrong("expected `lowest`, `fifo` or `random`"),
    }
}

pub(super) fn event_ty(scan: &mut Scan<'_>) -> Result<EventTy> {
    if scan.eat_word("string") { Ok(EventTy::Str) } else { ty(scan).map(EventTy::Scalar) }
}

/// A constant, or the name of a parameter.
pub(super) fn setting(scan: &mut Scan<'_>, model: &Model) -> Result<Setting> {
    match scan.reference() {
        None => scan.literal().map(Setting::Const),
        Some(word) => match resolve("param", model.params.iter().map(|p| &*p.name), word) {
            Some(param) => Ok(Setting::Param(ParamId(param))),
            None => scan.wrong(format!("no parameter `{word}`")),
        },
    }
}

/// `{1-3, 7}`
pub(super) fn set(scan: &mut Scan<'_>) -> Result<IntervalSet> {
    scan.expect("{")?;
    scan.items("}", range).map(IntervalSet::new)
}

fn range(scan: &mut Scan<'_>) -> Result<(Word, Word)> {
    let lo = scan.literal()?;
    Ok((lo, if scan.eat("-") { scan.literal()? } else { lo }))
}

fn member(scan: &mut Scan<'_>) -> Result<Vec<Word>> {
    if scan.eat("(") { scan.items(")", Scan::literal) } else { Ok(vec![scan.literal()?]) }
}

pub(super) fn param_value(scan: &mut Scan<'_>) -> Result<ParamValue> {
    if scan.sees("\"") {
        return scan.string().map(ParamValue::Str);
    }
    if scan.eat("[") {
        return scan.items("]", member).map(ParamValue::List);
    }
    let word = scan.peek_word();
    match word {
        "set" | "pool" | "rules" | "routes" | "patterns" | "signatures" | "strings" | "hosts"
        | "keys" | "backends" => scan.expect_word(word)?,
        _ => return scan.literal().map(ParamValue::Scalar),
    }
    match word {
        "set" => set(scan).map(ParamValue::Set),
        "pool" => set(scan).map(ParamValue::Pool),
        "rules" => rule_set(scan).map(ParamValue::Rules),
        "routes" => routes(scan).map(ParamValue::Routes),
        "patterns" => patterns(scan).map(ParamValue::Patterns),
        "signatures" => signatures(scan).map(ParamValue::Signatures),
        "strings" | "hosts" => strings(scan, word == "hosts").map(ParamValue::Strings),
        // The text does not hold the keys.
        "keys" => scan.expect_word("hidden").map(|()| ParamValue::Keys(Keys::default())),
        _ => {
            scan.expect("[")?;
            scan.items("]", backend).map(ParamValue::Backends)
        }
    }
}

fn backend(scan: &mut Scan<'_>) -> Result<Backend> {
    let columns = member(scan)?;
    let health = if scan.eat_word("up") {
        Health::Up
    } else if scan.eat_word("removed") {
        Health::Removed
    } else {
        scan.expect_word("down")?;
        Health::Down
    };
    Ok(Backend { columns, health })
}

fn routes(scan: &mut Scan<'_>) -> Result<RouteTable> {
    let mut table = RouteTable::default();
    scan.expect("{")?;
    scan.items("}", |scan| {
        let six = scan.sees_ip6();
        let addr: Word = scan.literal()?;
        scan.expect("/")?;
        let len: u8 = scan.number()?;
        let hop = scan.number()?;
        match u32::try_from(addr) {
            _ if six && len <= 128 => table.insert6(addr, len, hop),
            Ok(addr) if !six && len <= 32 => table.insert4(addr, len, hop),
            _ => return scan.wrong("not a prefix"),
        }
        Ok(())
    })?;
    Ok(table)
}

fn patterns(scan: &mut Scan<'_>) -> Result<PatternSet> {
    scan.expect("{")?;
    let all = scan.items("}", |scan| {
        let number = scan.number()?;
        let regex = scan.eat_word("regex");
        let matcher = match regex {
            true => Matcher::Regex { source: scan.string()?, nocase: scan.eat_word("nocase") },
            false => Matcher::Literal { bytes: scan.bytes()?, nocase: scan.eat_word("nocase") },
        };
        Ok(Pattern { number, matcher })
    })?;
    PatternSet::new(all).or_else(|errors| {
        let all: Vec<_> = errors.iter().map(ToString::to_string).collect();
        scan.error(all.join("; "))
    })
}

fn signatures(scan: &mut Scan<'_>) -> Result<Signatures> {
    scan.expect("{")?;
    let lines = scan.items("}", Scan::string)?;
    let loaded = braid_signatures::load(&lines.join("\n"));
    match loaded.refused.first() {
        None => Ok(loaded.set),
        Some(refused) => scan.error(format!("{}: {}", refused.name, refused.why)),
    }
}

fn strings(scan: &mut Scan<'_>, of_hosts: bool) -> Result<StringSet> {
    scan.expect("{")?;
    let all = scan.items("}", Scan::bytes)?;
    let set = match of_hosts {
        true => StringSet::hosts(all.iter().map(|entry| &**entry)),
        false => StringSet::exact(all),
    };
    set.or_else(|(_, why)| scan.error(why.to_string()))
}

fn rule_set(scan: &mut Scan<'_>) -> Result<RuleSet> {
    scan.expect("{")?;
    let mut rules = Vec::new();
    while !scan.eat_word("default") {
        rules.push(rule(scan)?);
        scan.expect(",")?;
    }
    let default_pass = passes(scan)?;
    scan.expect("}")?;
    Ok(RuleSet { rules, default_pass })
}

fn passes(scan: &mut Scan<'_>) -> Result<bool> {
    let pass = scan.eat_word("pass");
    if !pass {
        scan.expect_word("drop")?;
    }
    Ok(pass)
}

fn masked<T: TryFrom<Word>>(scan: &mut Scan<'_>) -> Result<(T, T)> {
    let value = scan.number()?;
    scan.expect_word("mask")?;
    Ok((value, scan.number()?))
}

fn span<T: TryFrom<Word>>(scan: &mut Scan<'_>) -> Result<(T, T)> {
    let lo = scan.number()?;
    scan.expect("-")?;
    Ok((lo, scan.number()?))
}

fn rule(scan: &mut Scan<'_>) -> Result<Rule> {
    let mut rule = Rule::any(passes(scan)?);
    loop {
        if scan.eat_word("from") {
            let src = span(scan)?;
            scan.expect_word("to")?;
            rule.addrs = Some(RuleAddrs::V4 { src, dst: span(scan)? });
        } else if scan.eat_word("from6") {
            let src = span(scan)?;
            scan.expect_word("to6")?;
            rule.addrs = Some(RuleAddrs::V6 { src, dst: span(scan)? });
        } else if scan.eat_word("proto") {
            rule.proto = masked(scan)?;
        } else if scan.eat_word("sport") {
            rule.sport = span(scan)?;
        } else if scan.eat_word("dport") {
            rule.dport = span(scan)?;
        } else if scan.eat_word("flags") {
            rule.tcp_flags = masked(scan)?;
        } else if scan.eat_word("icmp") {
            rule.icmp = masked(scan)?;
        } else if scan.eat_word("line") {
            rule.line = scan.number()?;
        } else {
            return Ok(rule);
        }
    }
}
