//! Prints trees simply: with parentheses around every operand and without layout. The printer is
//! independent of the formatter, which it helps to test.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::ast::{
    Arg, BinOp, Block, Chunk, Contents, Expr, ExprKind, Ident, Part, Path, Push, Row, Stmt,
    StmtKind, Type, TypeKind, Within,
};
use crate::sema::say::symbol;

pub fn list<T>(items: &[T], print: impl Fn(&T) -> String) -> String {
    items.iter().map(print).collect::<Vec<_>>().join(", ")
}

pub fn path(path: &Path) -> String {
    path.parts.iter().map(|part| part.text.as_str()).collect::<Vec<_>>().join(".")
}

pub fn string(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\x09"),
            '\0' => out.push_str("\\0"),
            '☃' => out.push_str("\\u{2603}"),
            c => out.push(c),
        }
    }
    out + "\""
}

pub fn args(args: &[Arg]) -> String {
    list(args, |arg| {
        let name = arg.name.as_ref().map_or(String::new(), |name| format!("{}: ", name.text));
        name + &expr(&arg.value)
    })
}

pub fn record(fields: &[(Ident, Expr)]) -> String {
    format!("{{ {} }}", list(fields, |(name, value)| format!("{}: {}", name.text, expr(value))))
}

pub fn operand(e: &Expr) -> String {
    format!("({})", expr(e))
}

pub fn operator(op: BinOp) -> &'static str {
    if op == BinOp::And { "&&" } else { symbol(op) }
}

fn is_special_key(key: &[Expr]) -> bool {
    let word = |e: &Expr| if let ExprKind::Path(p) = &e.kind { path(p) } else { String::new() };
    key.len() == 2 && word(&key[0]) == "quoted" && word(&key[1]) == "reverse"
}

pub fn expr(e: &Expr) -> String {
    match &e.kind {
        ExprKind::Int(n) => format!("{n}"),
        ExprKind::Quantity(n, unit) => format!("{n:#x} {unit}"),
        ExprKind::Bool(b) => format!("{b}"),
        ExprKind::Str(text) => string(text),
        ExprKind::Ip4(a) => Ipv4Addr::from_bits(*a).to_string(),
        ExprKind::Ip6(a) => Ipv6Addr::from_bits(*a).to_string(),
        ExprKind::Mac(a) => {
            a.to_be_bytes()[2..].iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(":")
        }
        ExprKind::Prefix4(a, len) => format!("{}/{len}", Ipv4Addr::from_bits(*a)),
        ExprKind::Prefix6(a, len) => format!("{}/{len}", Ipv6Addr::from_bits(*a)),
        ExprKind::Path(p) => path(p),
        ExprKind::Range(a, b) => format!("{}..{}", operand(a), operand(b)),
        ExprKind::Set(items) => format!("{{{}}}", list(items, expr)),
        ExprKind::List(items) => format!("[{}]", list(items, expr)),
        ExprKind::Record(fields) => record(fields),
        ExprKind::Index(base, key) if is_special_key(key) => {
            format!("{}[quoted reverse]", expr(base))
        }
        ExprKind::Index(base, key) => format!("{}[{}]", expr(base), list(key, expr)),
        ExprKind::Member(base, name) => format!("{}.{}", expr(base), name.text),
        ExprKind::Call(name, list) => format!("{}({})", name.text, args(list)),
        ExprKind::Not(a) => format!("!{}", operand(a)),
        ExprKind::Complement(a) => format!("~{}", operand(a)),
        ExprKind::Binary(op, a, b) => format!("{} {} {}", operand(a), operator(*op), operand(b)),
        ExprKind::In(a, b) => format!("{} in {}", operand(a), operand(b)),
        ExprKind::Matches(a, b) => format!("{} matches {}", operand(a), operand(b)),
        ExprKind::At(at) => {
            let what = match &at.what {
                Chunk::Number(ty) => ty.text.clone(),
                Chunk::Text(text) => string(text),
                Chunk::Bytes(count, _) => format!("bytes<{count}>"),
            };
            let place = match &at.within {
                Within::Payload => "payload".to_owned(),
                Within::Option(of, kind) => of.name().replace('…', &expr(kind)),
                Within::Header(name) => name.text.clone(),
            };
            let offset = at.offset.as_ref().map(|offset| format!(" + {}", operand(offset)));
            let len = match &at.what {
                Chunk::Bytes(_, Some(len)) => format!(" for {}", operand(len)),
                _ => String::new(),
            };
            format!("{what} at {place}{}{len}", offset.unwrap_or_default())
        }
        ExprKind::Exists(a) => format!("exists {}", expr(a)),
        ExprKind::Has(p) => format!("has {}", path(p)),
        ExprKind::From(side) => format!("from {}", side.text),
        ExprKind::If(c, a, b) => {
            format!("if {} {{ {} }} else {{ {} }}", operand(c), expr(a), expr(b))
        }
        ExprKind::Error => String::new(),
    }
}

pub fn ty(t: &Type) -> String {
    match &t.kind {
        TypeKind::Bytes(count) => format!("bytes<{count}>"),
        TypeKind::Record(fields) => format!("{{{}}}", typed(fields)),
        TypeKind::Named { name, args, of } => {
            let args =
                if args.is_empty() { String::new() } else { format!("<{}>", list(args, ty)) };
            let of = of.as_ref().map_or(String::new(), |of| format!("({})", of.text));
            format!("{}{args}{of}", name.text)
        }
    }
}

pub fn typed(fields: &[(Ident, Type)]) -> String {
    list(fields, |(name, t)| format!("{}: {}", name.text, ty(t)))
}

pub fn block(b: &Block) -> String {
    format!("{{ {} }}", b.stmts.iter().map(stmt).collect::<Vec<_>>().join(" "))
}

fn row(r: &Row) -> String {
    format!("{} => {}", r.pred.as_ref().map_or("else".into(), operand), block(&r.body))
}

fn otherwise(o: Option<&Stmt>) -> String {
    o.map_or(";".into(), |o| format!(" else {}", stmt(o)))
}

pub fn stmt(s: &Stmt) -> String {
    match &s.kind {
        StmtKind::Match(rows) => {
            format!("match {{ {} }}", rows.iter().map(row).collect::<Vec<_>>().join(" "))
        }
        StmtKind::If { cond, then, otherwise } => {
            let otherwise =
                otherwise.as_ref().map_or(String::new(), |b| format!(" else {}", branch(b)));
            format!("if {} {}{otherwise}", operand(cond), block(then))
        }
        StmtKind::For { var, from, to, cond, body } => {
            let cond = cond.as_ref().map_or(String::new(), |c| format!("while {} ", operand(c)));
            format!("for {} in {}..{} {cond}{}", var.text, expr(from), expr(to), block(body))
        }
        StmtKind::Let { name, mutable, value, otherwise: o } => {
            let kept = if *mutable { "mut " } else { "" };
            format!("let {kept}{} = {}{}", name.text, expr(value), otherwise(o.as_deref()))
        }
        StmtKind::Assign { place, op, value, otherwise: o } => {
            let op = op.map_or("", operator);
            format!("{} {op}= {}{}", expr(place), expr(value), otherwise(o.as_deref()))
        }
        StmtKind::Hold { queue, delay, otherwise: o } => {
            format!("hold {} for {}{}", queue.text, expr(delay), otherwise(o.as_deref()))
        }
        StmtKind::Send { shape, contents: Contents { parts, payload }, port } => {
            let parts: String = parts.iter().map(send_part).collect();
            let length = |e: &Option<Expr>| e.as_ref().map_or(String::new(), operand);
            let payload = payload
                .as_ref()
                .map_or(String::new(), |(w, e)| format!("payload = {}{};", w.text, length(e)));
            let port = port.as_ref().map_or(String::new(), |p| format!(" to {};", p.text));
            format!("send {} {{ {parts}{payload} }}{port}", shape.text)
        }
        StmtKind::Push { pushes, otherwise: o } => {
            format!("push {}{}", list(pushes, pushed), otherwise(o.as_deref()))
        }
        StmtKind::Call { call, otherwise: o } => {
            format!("{}{}", expr(call), otherwise(o.as_deref()))
        }
        StmtKind::Pop { pops, otherwise: o } => {
            format!("pop {}{}", list(pops, pushed), otherwise(o.as_deref()))
        }
        StmtKind::Emit { event, args } if args.is_empty() => format!("emit {};", event.text),
        StmtKind::Emit { event, args } => format!("emit {} {};", event.text, record(args)),
        StmtKind::Block(b) => block(b),
        kind => format!("{};", simple(kind)),
    }
}

fn pushed(p: &Push) -> String {
    let header = path(&p.header);
    match (&p.args[..], &p.fields[..]) {
        ([], []) => header,
        ([], fields) => format!("{header} {}", record(fields)),
        (args, _) => format!("{header}({})", list(args, expr)),
    }
}

fn branch(b: &Block) -> String {
    match &b.stmts[..] {
        [only @ Stmt { kind: StmtKind::If { otherwise: None, .. }, .. }] => stmt(only),
        _ => block(b),
    }
}

fn simple(kind: &StmtKind) -> String {
    match kind {
        StmtKind::Delete(place) => format!("delete {}", expr(place)),
        StmtKind::Output(ports) => format!("output {}", list(ports, |p| p.text.clone())),
        StmtKind::Drop(Some((reason, _))) => format!("drop {}", string(reason)),
        StmtKind::Drop(None) => "drop".into(),
        StmtKind::Reset(Some((reason, _))) => format!("reset {}", string(reason)),
        StmtKind::Reset(None) => "reset".into(),
        StmtKind::Consume => "consume".into(),
        StmtKind::Resubmit => "resubmit".into(),
        StmtKind::Mirror(port) => format!("mirror {}", port.text),
        _ => String::new(),
    }
}

fn send_part(part: &Part) -> String {
    let fields = part.fields.iter().map(|(p, v)| format!("{} = {}; ", path(p), expr(v)));
    let options = part.options.iter().map(|p| format!("push {}; ", pushed(p)));
    let all: String = fields.chain(options).collect();
    part.when.as_ref().map_or(all.clone(), |cond| format!("if {} {{ {all}}} ", operand(cond)))
}
