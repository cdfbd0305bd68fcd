//! Generates random files: functions and chains.

use crate::ast::{
    After, Arrow, Chain, ChainItem, Const, EventDef, File, FnBody, FnDef, HeaderDef, InterfacePart,
    Item, KeyDef, KeyPart, NativeCode, Nf, NfItem, OnFailure, ParamDef, PathEnd, PolicyKind,
    PolicyRule, Span, StateDef, StateOption,
};

use super::entropy::Entropy;
use super::gen_expr::{args, expr, field, ident, name, text, ty};
use super::gen_stmt::{block, stmt};

const FUEL: u32 = 2;

pub fn file(e: &mut Entropy) -> File {
    File { items: e.many(3, item), ..File::default() }
}

fn span() -> Span {
    Span::default()
}

fn item(e: &mut Entropy) -> Item {
    match e.below(11) {
        10 => Item::Header(HeaderDef {
            name: name(e),
            after: (0..=e.below(2))
                .map(|_| After { header: field(e), when: e.maybe(|e| expr(e, FUEL)) })
                .collect(),
            fields: e.some(8, |e| (name(e), ty(e, 1))),
            length: e.maybe(|e| expr(e, FUEL)),
            checksum: e.maybe(name),
            holds: e.maybe(|e| (e.below(2) == 0, e.maybe(|e| expr(e, FUEL)))),
            span: span(),
        }),
        0 => Item::Use { path: text(e), span: span() },
        1 => Item::Const(constant(e)),
        2 => Item::Event(EventDef {
            name: name(e),
            parent: e.maybe(name),
            fields: e.some(8, |e| (name(e), ty(e, 1))),
            span: span(),
        }),
        3 => Item::Fn(function(e)),
        4..=7 => Item::Nf(nf(e)),
        _ => Item::Chain(Chain { name: name(e), items: e.some(5, chain_item), span: span() }),
    }
}

fn constant(e: &mut Entropy) -> Const {
    Const { name: name(e), value: expr(e, FUEL), span: span() }
}

fn function(e: &mut Entropy) -> FnDef {
    let params = e.some(3, |e| (name(e), ty(e, 1)));
    let body = match e.below(5) {
        0 => {
            let (library, function) = (text(e), e.maybe(name));
            let code = NativeCode { library, span: span(), function, isolated: None };
            FnBody::Library(ty(e, 1), code)
        }
        1 | 2 => FnBody::Pure(ty(e, 1), expr(e, FUEL)),
        _ => FnBody::Action(block(e, FUEL)),
    };
    FnDef { name: name(e), params, body, span: span() }
}

fn nf(e: &mut Entropy) -> Nf {
    let native = (e.below(8) == 7).then(|| NativeCode {
        library: ["five", "./a b.so"][e.below(2)].to_owned(),
        span: span(),
        function: e.maybe(name),
        isolated: e.maybe(|e| [OnFailure::Drop, OnFailure::Bypass][e.below(2)]),
    });
    let is_native = native.is_some();
    Nf {
        stream: !is_native && e.below(4) == 3,
        native,
        name: name(e),
        params: e.some(4, |e| ParamDef {
            name: name(e),
            ty: ty(e, 2),
            default: e.maybe(|e| expr(e, FUEL)),
        }),
        items: if is_native { Vec::new() } else { e.some(6, nf_item) },
        span: span(),
        head: span(),
    }
}

fn nf_item(e: &mut Entropy) -> NfItem {
    match e.below(15) {
        0 => NfItem::Const(constant(e)),
        1 => NfItem::Fn(function(e)),
        2 => NfItem::Port(e.many(3, name), e.coin()),
        3 => NfItem::Tag(name(e), ty(e, 1)),
        4 => NfItem::Queue { name: name(e), capacity: expr(e, 1), span: span() },
        5 => NfItem::Every { period: expr(e, FUEL), body: block(e, 1), span: span() },
        6 => NfItem::OnExpire { state: name(e), body: block(e, 1), span: span() },
        7 => NfItem::OnStream {
            what: ident("data"),
            from: e.maybe(|_| ident("client")),
            body: block(e, 1),
            span: span(),
        },
        8 => NfItem::OnEvent { event: name(e), body: block(e, 1), span: span() },
        9 | 10 => NfItem::State(state(e)),
        _ => NfItem::Stmt(stmt(e, 3)),
    }
}

fn state(e: &mut Entropy) -> StateDef {
    let key = match e.below(4) {
        0 => KeyDef::Global(span()),
        1 => KeyDef::Flow(span()),
        2 => KeyDef::Biflow(span()),
        _ => KeyDef::List(e.many(4, key_part), span()),
    };
    StateDef {
        name: name(e),
        ty: ty(e, 2),
        key,
        default: e.maybe(|e| expr(e, FUEL)),
        options: e.some(4, option),
        span: span(),
    }
}

fn key_part(e: &mut Entropy) -> KeyPart {
    if e.coin() { KeyPart::Field(field(e)) } else { KeyPart::Type(ty(e, 1)) }
}

fn option(e: &mut Entropy) -> StateOption {
    match e.below(8) {
        0 => StateOption::Idle(expr(e, FUEL)),
        1 => StateOption::Hard(expr(e, 1)),
        2 => StateOption::Tick(expr(e, 1)),
        3 => StateOption::Capacity(expr(e, 1)),
        4 => StateOption::Full(ident(e.of(&["refuse", "evict_oldest"]))),
        5 => StateOption::LivesWith(name(e)),
        6 => StateOption::Portions(e.many(3, name), span()),
        _ => StateOption::Sharded(span()),
    }
}

fn arrow(e: &mut Entropy) -> Arrow {
    if e.coin() { Arrow::OneWay } else { Arrow::TwoWay }
}

fn end(e: &mut Entropy) -> PathEnd {
    let args = if e.below(3) == 0 { Some(args(e, 1)) } else { None };
    let port = if args.is_none() { e.maybe(name) } else { None };
    PathEnd { name: name(e), port, args, span: span() }
}

fn interface_part(e: &mut Entropy) -> InterfacePart {
    let words = ["behind", "address", "gateway", "mac", "too_long"];
    match e.of(&words) {
        "too_long" => {
            let what = ident(e.of(&["icmp", "fragment", "drop"]));
            InterfacePart::TooLong { name: ident("too_long"), what }
        }
        word => {
            let mut values = vec![expr(e, 0)];
            values.extend(e.some(9, |e| expr(e, 0)));
            InterfacePart::Values { name: ident(word), values }
        }
    }
}

fn chain_item(e: &mut Entropy) -> ChainItem {
    match e.below(9) {
        0 | 1 => {
            ChainItem::Instance { name: name(e), function: name(e), args: args(e, 3), span: span() }
        }
        2 => ChainItem::Interface { name: name(e), parts: e.some(4, interface_part), span: span() },
        3 => {
            let arrows = e.some(5, arrow);
            let ends = (0..=arrows.len()).map(|_| end(e)).collect();
            ChainItem::Path { ends, arrows, span: span() }
        }
        4 => ChainItem::Link { from: end(e), arrow: arrow(e), to: end(e), span: span() },
        5 | 6 => ChainItem::Policy { rules: e.some(3, rule), span: span() },
        7 => ChainItem::Malformed(ident(e.of(&["drop", "pass"]))),
        _ => ChainItem::Setting { name: ident(e.of(&["seed", "workers"])), value: expr(e, 1) },
    }
}

fn rule(e: &mut Entropy) -> PolicyRule {
    let kind = match e.below(3) {
        0 => PolicyKind::Order(name(e), name(e)),
        1 => PolicyKind::Priority(name(e), name(e)),
        _ => PolicyKind::Position(name(e), ident(e.of(&["first", "last"]))),
    };
    PolicyRule { kind, span: span() }
}
