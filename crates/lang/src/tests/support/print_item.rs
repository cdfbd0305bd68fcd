//! Prints declarations simply.

use crate::ast::{
    After, Arrow, Chain, ChainItem, Const, EventDef, File, FnBody, FnDef, HeaderDef, InterfacePart,
    Item, KeyDef, KeyPart, Nf, NfItem, OnFailure, ParamDef, PathEnd, PolicyKind, PolicyRule,
    StateDef, StateOption,
};

use super::print::{args, block, expr, list, operand, path, stmt, string, ty, typed};

pub fn file(f: &File) -> String {
    f.items.iter().map(|i| item(i) + "\n").collect()
}

fn item(i: &Item) -> String {
    match i {
        Item::Use { path, .. } => format!("use {};", string(path)),
        Item::Const(c) => constant(c),
        Item::Event(e) => event(e),
        Item::Header(h) => header(h),
        Item::Fn(f) => function(f),
        Item::Nf(n) => nf(n),
        Item::Chain(c) => chain(c),
    }
}

fn constant(c: &Const) -> String {
    format!("const {} = {};", c.name.text, expr(&c.value))
}

fn event(e: &EventDef) -> String {
    let parent = e.parent.as_ref().map_or(String::new(), |p| format!(" extends {}", p.text));
    format!("event {}{parent} {{ {} }}", e.name.text, typed(&e.fields))
}

fn header(h: &HeaderDef) -> String {
    let one = |after: &After| {
        let when = after.when.as_ref();
        let when = when.map_or(String::new(), |when| format!(" when {}", operand(when)));
        format!("{}{when}", path(&after.header))
    };
    let length = h.length.as_ref().map_or(String::new(), |len| format!(" length {}", expr(len)));
    let checksum = h.checksum.as_ref();
    let checksum = checksum.map_or(String::new(), |field| format!(" checksum {}", field.text));
    let holds = h.holds.as_ref().map_or(String::new(), |(is_frame, when)| {
        let what = if *is_frame { "frame" } else { "packet" };
        let when = when.as_ref();
        format!(
            " holds {what}{}",
            when.map_or(String::new(), |when| format!(" when {}", operand(when)))
        )
    });
    let behind = format!("{length}{checksum}{holds}");
    let end = if behind.is_empty() { "" } else { ";" };
    let (name, after) = (&h.name.text, list(&h.after, one));
    format!("header {name} after {after} {{ {} }}{behind}{end}", typed(&h.fields))
}

fn function(f: &FnDef) -> String {
    let head = format!("{}({})", f.name.text, typed(&f.params));
    match &f.body {
        FnBody::Pure(t, e) => format!("fn {head} -> {} = {};", ty(t), expr(e)),
        FnBody::Library(t, code) => {
            let name = code.function.as_ref().map(|name| format!(" function {}", name.text));
            let (ty, library) = (ty(t), string(&code.library));
            format!("fn {head} -> {ty} from {library}{};", name.unwrap_or_default())
        }
        FnBody::Action(b) => format!("action {head} {}", block(b)),
    }
}

fn param(p: &ParamDef) -> String {
    let default = p.default.as_ref().map_or(String::new(), |e| format!(" = {}", expr(e)));
    format!("{}: {}{default}", p.name.text, ty(&p.ty))
}

fn nf(n: &Nf) -> String {
    if let Some(code) = &n.native {
        let head = format!("native nf {}({})", n.name.text, list(&n.params, param));
        let other =
            code.function.as_ref().map_or(String::new(), |f| format!(" function {}", f.text));
        let isolated = match code.isolated {
            None => "",
            Some(OnFailure::Drop) => " isolated on failure drop",
            Some(OnFailure::Bypass) => " isolated on failure bypass",
        };
        return format!("{head} from {}{other}{isolated};", string(&code.library));
    }
    let stream = if n.stream { "stream " } else { "" };
    let items: String = n.items.iter().map(|i| nf_item(i) + " ").collect();
    format!("{stream}nf {}({}) {{ {items}}}", n.name.text, list(&n.params, param))
}

fn nf_item(i: &NfItem) -> String {
    match i {
        NfItem::Const(c) => constant(c),
        NfItem::Fn(f) => function(f),
        NfItem::Port(names, is_side) => {
            let kind = if *is_side { "side" } else { "port" };
            format!("{kind} {};", list(names, |n| n.text.clone()))
        }
        NfItem::Tag(name, t) => format!("tag {}: {};", name.text, ty(t)),
        NfItem::State(s) => state(s),
        NfItem::Queue { name, capacity, .. } => {
            format!("queue {} capacity {};", name.text, expr(capacity))
        }
        NfItem::Every { period, body, .. } => format!("every {} {}", expr(period), block(body)),
        NfItem::OnExpire { state, body, .. } => format!("on expire {} {}", state.text, block(body)),
        NfItem::OnStream { what, from, body, .. } => {
            let from = from.as_ref().map_or(String::new(), |side| format!("from {} ", side.text));
            format!("on {} {from}{}", what.text, block(body))
        }
        NfItem::OnEvent { event, body, .. } => format!("on {} {}", event.text, block(body)),
        NfItem::Stmt(s) => stmt(s),
    }
}

fn state(s: &StateDef) -> String {
    let key = match &s.key {
        KeyDef::Global(_) => "global".into(),
        KeyDef::Flow(_) => "per flow".into(),
        KeyDef::Biflow(_) => "per biflow".into(),
        KeyDef::List(parts, _) => format!("per ({})", list(parts, key_part)),
    };
    let default = s.default.as_ref().map_or(String::new(), |e| format!(" = {}", expr(e)));
    let options: String = s.options.iter().map(|o| format!(", {}", option(o))).collect();
    format!("state {}: {} {key}{default}{options};", s.name.text, ty(&s.ty))
}

fn key_part(part: &KeyPart) -> String {
    match part {
        KeyPart::Field(p) => path(p),
        KeyPart::Type(t) => ty(t),
    }
}

fn option(o: &StateOption) -> String {
    match o {
        StateOption::Idle(e) => format!("idle {}", expr(e)),
        StateOption::Hard(e) => format!("hard {}", expr(e)),
        StateOption::Tick(e) => format!("tick {}", expr(e)),
        StateOption::Capacity(e) => format!("capacity {}", expr(e)),
        StateOption::Full(what) => format!("full {}", what.text),
        StateOption::LivesWith(name) => format!("lives with {}", name.text),
        StateOption::Sharded(_) => "sharded".into(),
        StateOption::Portions(names, _) => {
            format!("portions ({})", list(names, |n| n.text.clone()))
        }
    }
}

fn chain(c: &Chain) -> String {
    let items: String = c.items.iter().map(|i| chain_item(i) + " ").collect();
    format!("chain {} {{ {items}}}", c.name.text)
}

fn arrow(a: Arrow) -> &'static str {
    match a {
        Arrow::OneWay => "->",
        Arrow::TwoWay => "<->",
    }
}

fn end(e: &PathEnd) -> String {
    let port = e.port.as_ref().map_or(String::new(), |p| format!(".{}", p.text));
    let list = e.args.as_ref().map_or(String::new(), |a| format!("({})", args(a)));
    format!("{}{port}{list}", e.name.text)
}

fn interface_part(part: &InterfacePart) -> String {
    match part {
        InterfacePart::Values { name, values } => format!("{} {}", name.text, list(values, expr)),
        InterfacePart::TooLong { name, what } => format!("{} {}", name.text, what.text),
    }
}

fn chain_item(i: &ChainItem) -> String {
    match i {
        ChainItem::Interface { name, parts, .. } if parts.is_empty() => {
            format!("interface {};", name.text)
        }
        ChainItem::Interface { name, parts, .. } => {
            let parts: String = parts.iter().map(|part| interface_part(part) + "; ").collect();
            format!("interface {} {{ {parts}}}", name.text)
        }
        ChainItem::Instance { name, function, args: list, .. } => {
            format!("{} = {}({});", name.text, function.text, args(list))
        }
        ChainItem::Path { ends, arrows, .. } => {
            let rest = arrows.iter().zip(&ends[1..]);
            let rest: String = rest.map(|(a, e)| format!(" {} {}", arrow(*a), end(e))).collect();
            format!("path {}{rest};", end(&ends[0]))
        }
        ChainItem::Link { from, arrow: a, to, .. } => {
            format!("link {} {} {};", end(from), arrow(*a), end(to))
        }
        ChainItem::Policy { rules, .. } => {
            let rules: String = rules.iter().map(|r| rule(r) + "; ").collect();
            format!("policy {{ {rules}}}")
        }
        ChainItem::Malformed(what) => format!("malformed {};", what.text),
        ChainItem::Setting { name, value } => format!("{} {};", name.text, expr(value)),
    }
}

fn rule(r: &PolicyRule) -> String {
    match &r.kind {
        PolicyKind::Order(a, b) => format!("Order({}, before, {})", a.text, b.text),
        PolicyKind::Priority(a, b) => format!("Priority({} > {})", a.text, b.text),
        PolicyKind::Position(a, at) => format!("Position({}, {})", a.text, at.text),
    }
}
