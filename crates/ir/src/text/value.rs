//! Prints types, settings and parameter values.

use super::names::{POOL_ORDERS, is_word, name_of};
use crate::model::{EventTy, Kind, Model, ParamDecl, ParamTy, Setting, Ty, Word};
use crate::value::{Backend, Health, IntervalSet, ParamValue, Rule, RuleAddrs, RuleSet};
use braid_externs::PatternSet;
use braid_externs::patterns::{Matcher, Pattern};
use std::fmt::Write;

/// A name in the notation of its declaration: a word, or quoted.
pub(super) fn name(text: &str) -> String {
    if is_word(text) { text.to_owned() } else { format!("{text:?}") }
}

/// Items separated by commas.
pub(super) fn list<T>(items: impl IntoIterator<Item = T>, show: impl FnMut(T) -> String) -> String {
    items.into_iter().map(show).collect::<Vec<_>>().join(", ")
}

/// Columns of a list or slots of a state: one type, or a record.
pub(super) fn columns(columns: &[(String, Ty)]) -> String {
    match columns {
        [(column, ty)] if column.is_empty() => ty.to_string(),
        _ => format!("{{ {} }}", list(columns, |(column, ty)| format!("{}: {ty}", name(column)))),
    }
}

fn param_ty(ty: &ParamTy) -> String {
    match ty {
        ParamTy::Scalar(ty) => ty.to_string(),
        ParamTy::List(of) => format!("list<{}>", columns(of)),
        ParamTy::Set(ty) => format!("set<{ty}>"),
        ParamTy::Rules => "rules".to_owned(),
        ParamTy::Routes => "routes".to_owned(),
        ParamTy::Patterns => "patterns".to_owned(),
        ParamTy::Strings(most) => format!("strings<{most}>"),
        ParamTy::Hosts => "hosts".to_owned(),
        ParamTy::Signatures => "signatures".to_owned(),
        ParamTy::Keys => "keys".to_owned(),
        ParamTy::Pool(ty, order) => format!("pool<{ty}, {}>", name_of(POOL_ORDERS, order)),
        ParamTy::Backends(of) => format!("backends<{}>", columns(of)),
        ParamTy::Str => "string".to_owned(),
    }
}

/// A parameter with its default, if it has one: `NAME: TYPE = VALUE`.
#[must_use]
pub fn print_param(param: &ParamDecl) -> String {
    let mut out = format!("{}: {}", name(&param.name), param_ty(&param.ty));
    if let Some(default) = &param.default {
        let _ = write!(out, " = {}", param_value(default, &param.ty));
    }
    out
}

pub(super) fn event_ty(ty: EventTy) -> String {
    match ty {
        EventTy::Scalar(ty) => ty.to_string(),
        EventTy::Str => "string".to_owned(),
    }
}

pub(super) fn setting(model: &Model, setting: Setting, kind: Kind) -> String {
    match setting {
        Setting::Const(value) => kind.literal(value),
        Setting::Param(param) => model.param_word(param),
    }
}

pub(super) fn set(set: &IntervalSet, kind: Kind) -> String {
    let one = |&(lo, hi): &(Word, Word)| match lo == hi {
        true => kind.literal(lo),
        false => format!("{}-{}", kind.literal(lo), kind.literal(hi)),
    };
    format!("{{{}}}", list(set.intervals(), one))
}

fn member(values: &[Word], of: &[(String, Ty)]) -> String {
    let kind = |column: usize| of.get(column).map_or(Kind::Uint, |(_, ty)| ty.kind);
    match values {
        [value] => kind(0).literal(*value),
        _ => format!("({})", list(values.iter().enumerate(), |(i, v)| kind(i).literal(*v))),
    }
}

fn backend(backend: &Backend, of: &[(String, Ty)]) -> String {
    let health = match backend.health {
        Health::Up => "up",
        Health::Down => "down",
        Health::Removed => "removed",
    };
    format!("{} {health}", member(&backend.columns, of))
}

/// A parameter's value. `ty` only decides how scalars are written.
fn param_value(value: &ParamValue, ty: &ParamTy) -> String {
    let kind = match ty {
        ParamTy::Scalar(ty) | ParamTy::Set(ty) | ParamTy::Pool(ty, _) => ty.kind,
        _ => Kind::Uint,
    };
    let of: &[(String, Ty)] = match ty {
        ParamTy::List(of) | ParamTy::Backends(of) => of,
        _ => &[],
    };
    match value {
        ParamValue::Scalar(value) => kind.literal(*value),
        ParamValue::List(members) => format!("[{}]", list(members, |row| member(row, of))),
        ParamValue::Set(members) => format!("set {}", set(members, kind)),
        ParamValue::Rules(rules) => rule_set(rules),
        ParamValue::Routes(table) => routes(table),
        ParamValue::Patterns(patterns) => self::patterns(patterns),
        ParamValue::Strings(set) => {
            let of = if set.is_of_hosts() { "hosts" } else { "strings" };
            let one = |entry: Vec<u8>| format!("\"{}\"", entry.escape_ascii());
            format!("{of} {{{}}}", list(set.entries(), one))
        }
        ParamValue::Signatures(set) => {
            format!("signatures {{{}}}", list(set.lines(), |line| format!("{line:?}")))
        }
        // Keys are secret.
        ParamValue::Keys(_) => "keys hidden".to_owned(),
        ParamValue::Pool(members) => format!("pool {}", set(members, kind)),
        ParamValue::Backends(all) => format!("backends [{}]", list(all, |one| backend(one, of))),
        ParamValue::Str(text) => format!("{text:?}"),
    }
}

fn patterns(set: &PatternSet) -> String {
    let flag = |nocase: bool| if nocase { " nocase" } else { "" };
    let one = |pattern: &Pattern| match &pattern.matcher {
        Matcher::Literal { bytes, nocase } => {
            format!("{} \"{}\"{}", pattern.number, bytes.escape_ascii(), flag(*nocase))
        }
        Matcher::Regex { source, nocase } => {
            format!("{} regex {source:?}{}", pattern.number, flag(*nocase))
        }
    };
    format!("patterns {{{}}}", list(set.patterns(), one))
}

fn routes(table: &crate::routes::RouteTable) -> String {
    let v4 = table.iter4().map(|(addr, len, hop)| (Kind::Ip4.show(addr.into()), len, hop));
    let v6 = table.iter6().map(|(addr, len, hop)| (Kind::Ip6.show(addr), len, hop));
    format!("routes {{{}}}", list(v4.chain(v6), |(addr, len, hop)| format!("{addr}/{len} {hop}")))
}

fn rule_set(set: &RuleSet) -> String {
    let mut out = "rules {".to_owned();
    for rule in &set.rules {
        out.push_str(&one_rule(rule));
        out.push_str(", ");
    }
    out + "default " + verdict(set.default_pass) + "}"
}

/// A rule. Conditions that match everything are left out.
fn one_rule(rule: &Rule) -> String {
    let mut out = verdict(rule.pass).to_owned();
    let range =
        |kind: Kind, lo: Word, hi: Word| format!("{}-{}", kind.literal(lo), kind.literal(hi));
    let mut put = |word: &str, text: String| {
        let _ = write!(out, " {word} {text}");
    };
    match rule.addrs {
        None => {}
        Some(RuleAddrs::V4 { src, dst }) => {
            put("from", range(Kind::Ip4, src.0.into(), src.1.into()));
            put("to", range(Kind::Ip4, dst.0.into(), dst.1.into()));
        }
        Some(RuleAddrs::V6 { src, dst }) => {
            put("from6", range(Kind::Ip6, src.0, src.1));
            put("to6", range(Kind::Ip6, dst.0, dst.1));
        }
    }
    if rule.proto != (0, 0) {
        put("proto", format!("{} mask {}", rule.proto.0, rule.proto.1));
    }
    if rule.sport != (0, u16::MAX) {
        put("sport", range(Kind::Port, rule.sport.0.into(), rule.sport.1.into()));
    }
    if rule.dport != (0, u16::MAX) {
        put("dport", range(Kind::Port, rule.dport.0.into(), rule.dport.1.into()));
    }
    if rule.tcp_flags != (0, 0) {
        put("flags", format!("{} mask {}", rule.tcp_flags.0, rule.tcp_flags.1));
    }
    if rule.icmp != (0, 0) {
        put("icmp", format!("{} mask {}", rule.icmp.0, rule.icmp.1));
    }
    if rule.line != 0 {
        put("line", rule.line.to_string());
    }
    out
}

fn verdict(pass: bool) -> &'static str {
    if pass { "pass" } else { "drop" }
}
