//! Lowers headers that a packet gets or loses: VLAN tags and TCP options here, outer headers in
//! `tunnel`, headers of the program in `headers`.

use braid_ir::model::{Op, StringParts, ValueId};
use braid_packet::{Header, options};

use super::lower::Lower;
use super::types::{self, BOOL, uint};
use super::{bytes, headers, needs, say, tunnel};
use crate::ast::{Expr, ExprKind, Path, Push, Span, Stmt, joined};
use crate::diag::{Diagnostic, codes};

/// Lowers `push HEADER(…), … [else STMT];`.
pub fn push<'a>(
    lower: &mut Lower<'a>,
    pushes: &[Push],
    otherwise: Option<&'a Stmt>,
    span: Span,
) -> Option<()> {
    let [push] = pushes else { return tunnel::push(lower, pushes, otherwise, span) };
    if tunnel::begins(&push.header) {
        return tunnel::push(lower, pushes, otherwise, span);
    }
    if let Some(header) = lower.module.header(&joined(&push.header)) {
        return headers::push(lower, header, push, otherwise);
    }
    if joined(&push.header) == ANY_OPTION {
        return push_any(lower, push, otherwise);
    }
    if joined(&push.header) != "vlan" {
        return push_option(lower, push, otherwise);
    }
    if let Some(otherwise) = otherwise {
        let message = "`push vlan` always adds a tag";
        let label = "this `else` is never reached";
        let wrong = Diagnostic::new(codes::UNREACHABLE_STATEMENT, message, otherwise.span, label);
        return lower.fail(wrong.help("leave the `else` out"));
    }
    let ([id], []) = (push.args.as_slice(), push.fields.as_slice()) else {
        return wrong_values(lower, push, "the identifier");
    };
    let id = lower.typed(id, uint(12));
    if !needs::packet(lower, push.span) {
        return None;
    }
    needs::header(lower, Header::Eth, false, push.span, "`push vlan`")?;
    lower.b.op(Op::PushVlan { id: id? });
    lower.b.facts.pushed_vlan();
    Some(())
}

/// Lowers `push tcp.mss(…) else STMT;`.
fn push_option<'a>(lower: &mut Lower<'a>, push: &Push, otherwise: Option<&'a Stmt>) -> Option<()> {
    let (option, values) = option(lower, push)?;
    if !needs::packet(lower, push.span) {
        return None;
    }
    let name = option.name();
    needs::header(lower, Header::Tcp, false, push.span, &format!("`push {name}`"))?;
    let Some(otherwise) = otherwise else {
        let message = "the packet may have this option, or no room for it";
        let wrong =
            Diagnostic::new(codes::NEEDS_ELSE, message, push.span, "and then nothing changes");
        return lower.fail(wrong.help(format!("write `push {name}(…) else drop;`")));
    };
    let room = lower.b.emit(BOOL, |out| Op::HasRoom { out, option });
    let (there, gone, done) = (lower.b.block(), lower.b.block(), lower.b.block());
    lower.b.branch(room, there, gone);
    lower.b.start(there);
    lower.b.op(Op::PushOption { option, values });
    lower.b.facts.pushed_option(option);
    lower.b.jump(done, Vec::new());
    lower.refused(gone, done, otherwise);
    Some(())
}

/// The name of TCP options of any kind.
const ANY_OPTION: &str = "tcp.option";

/// The most bytes of the value of a TCP option.
const MOST_VALUE: usize = 38;

/// Lowers `push tcp.option(KIND, STRING) else STMT;`.
fn push_any<'a>(lower: &mut Lower<'a>, push: &Push, otherwise: Option<&'a Stmt>) -> Option<()> {
    let ([kind, value], []) = (push.args.as_slice(), push.fields.as_slice()) else {
        return wrong_values(lower, push, "the kind and the value");
    };
    let kind = any_kind(lower, kind, push.span);
    if let ExprKind::Str(text) = &value.kind
        && text.len() > MOST_VALUE
    {
        let message = format!("the value of a TCP option has at most {MOST_VALUE} bytes");
        let label = format!("has {}", text.len());
        return lower.fail(Diagnostic::new(codes::BAD_OPERANDS, message, value.span, label));
    }
    let value = bytes::value(lower, value, MOST_VALUE.div_ceil(types::WORD));
    let (kind, value) = (kind?, value?);
    let Some(otherwise) = otherwise else {
        let message = "the packet may have this option, or no room for it";
        let label = "and then nothing changes";
        let wrong = Diagnostic::new(codes::NEEDS_ELSE, message, push.span, label);
        return lower.fail(wrong.help("write `push tcp.option(…) else drop;`"));
    };
    let ok = set_option(lower, kind, value.split_first().map(|(len, rest)| (*len, rest.to_vec())));
    lower.or_else(ok, otherwise);
    Some(())
}

/// Lowers `pop tcp.option(KIND) [else STMT];`.
fn pop_any<'a>(lower: &mut Lower<'a>, pop: &Push, otherwise: Option<&'a Stmt>) -> Option<()> {
    let ([kind], []) = (pop.args.as_slice(), pop.fields.as_slice()) else {
        return wrong_values_of(lower, "pop", pop, "the kind");
    };
    let kind = any_kind(lower, kind, pop.span)?;
    let ok = set_option(lower, kind, None);
    if let Some(otherwise) = otherwise {
        lower.or_else(ok, otherwise);
    }
    Some(())
}

fn set_option(lower: &mut Lower<'_>, kind: u8, value: Option<StringParts>) -> ValueId {
    let ok = lower.b.emit(BOOL, |ok| Op::SetOption { ok, kind, value });
    lower.b.facts.stored_option();
    ok
}

/// The kind of a TCP option without a name. The packet must have TCP.
fn any_kind(lower: &mut Lower<'_>, kind: &Expr, span: Span) -> Option<u8> {
    if !needs::packet(lower, span) {
        return None;
    }
    needs::header(lower, Header::Tcp, false, span, "a TCP option")?;
    let number = u8::try_from(lower.eval().number(kind, uint(8))?).ok()?;
    if number < 2 {
        let message = "options of the kinds 0 and 1 have no value";
        let label = "expected 2 to 255";
        return lower.fail(Diagnostic::new(codes::BAD_OPERANDS, message, kind.span, label));
    }
    if options::has_name(number) {
        let message = "options of this kind have a name";
        let wrong = Diagnostic::new(codes::BAD_OPERANDS, message, kind.span, "");
        let names = options::NAMED.iter().map(|option| format!("`{}`", option.name()));
        let names: Vec<String> = names.collect();
        return lower.fail(wrong.help(format!("the names are {}", names.join(", "))));
    }
    Some(number)
}

/// Lowers `pop HEADER, … [else STMT];`.
pub fn pop<'a>(
    lower: &mut Lower<'a>,
    pops: &[Push],
    otherwise: Option<&'a Stmt>,
    span: Span,
) -> Option<()> {
    let [pop] = pops else { return tunnel::pop(lower, pops, otherwise, span) };
    let header = &pop.header;
    if tunnel::begins(header) {
        return tunnel::pop(lower, pops, otherwise, span);
    }
    if joined(header) == ANY_OPTION {
        return pop_any(lower, pop, otherwise);
    }
    tunnel::no_values(lower, pop)?;
    let name = joined(header);
    if let Some(header) = lower.module.header(&name) {
        return headers::pop(lower, header, otherwise, span);
    }
    let known = if name == "vlan" { Header::Vlan } else { option_named(lower, header)? };
    if let Some(otherwise) = otherwise {
        let message = format!("`pop {name}` always removes the header");
        let label = "this `else` is never reached";
        let wrong = Diagnostic::new(codes::UNREACHABLE_STATEMENT, message, otherwise.span, label);
        return lower.fail(wrong.help("leave the `else` out"));
    }
    if !needs::packet(lower, span) {
        return None;
    }
    needs::header(lower, known, false, span, &format!("`pop {name}`"))?;
    if known == Header::Vlan {
        lower.b.op(Op::PopVlan);
        lower.b.facts.popped_vlan();
    } else {
        lower.b.op(Op::PopOption { option: known });
        lower.b.facts.popped_option(known);
    }
    Some(())
}

/// The TCP option that a new packet or the current one gets, with its values.
pub fn option(lower: &mut Lower<'_>, push: &Push) -> Option<(Header, Vec<ValueId>)> {
    let option = option_named(lower, &push.header)?;
    let bytes = options::values(option);
    if bytes.len() != push.args.len() || !push.fields.is_empty() {
        let fields = option.info().fields.iter().map(|info| format!("`{}`", info.name));
        let fields: Vec<String> = fields.collect();
        let wanted = if fields.is_empty() { "no values".to_owned() } else { fields.join(", ") };
        return wrong_values(lower, push, &wanted);
    }
    let widths = bytes.iter().map(|bytes| u16::try_from(8 * bytes).unwrap_or(u16::MAX));
    let values: Vec<_> =
        push.args.iter().zip(widths).map(|(arg, width)| lower.typed(arg, uint(width))).collect();
    Some((option, values.into_iter().collect::<Option<_>>()?))
}

fn wrong_values<T>(lower: &mut Lower<'_>, push: &Push, wanted: &str) -> Option<T> {
    wrong_values_of(lower, "push", push, wanted)
}

fn wrong_values_of<T>(lower: &mut Lower<'_>, word: &str, push: &Push, wanted: &str) -> Option<T> {
    let found = match push.fields.is_empty() {
        true => say::count(push.args.len(), "value"),
        false => "values with names".to_owned(),
    };
    let message = format!("`{word} {}` takes {wanted}, found {found}", joined(&push.header));
    lower.fail(Diagnostic::new(codes::WRONG_ARGUMENTS, message, push.span, ""))
}

/// The TCP option with this name.
fn option_named(lower: &mut Lower<'_>, path: &Path) -> Option<Header> {
    let name = joined(path);
    let found = Header::by_name(&name).filter(|header| options::growth(*header).is_some());
    if found.is_none() {
        let message = format!("`{name}` cannot be pushed or popped");
        let wrong = Diagnostic::new(codes::UNKNOWN_HEADER, message, path.span, "");
        lower.say(wrong.help(
            "the headers that can are vlan, the TCP options tcp.mss, tcp.wscale, tcp.sack_ok and \
             tcp.ts, headers of the program, and outer headers that begin with eth, ip, ip6 or mpls",
        ));
    }
    found
}
