//! Generates random expressions and types.

use crate::ast::{
    Arg, At, BinOp, Chunk, Expr, ExprKind, Ident, OptionOf, Path, Span, Type, TypeKind, Within,
};

use super::entropy::Entropy;

const NAMES: [&str; 12] = [
    "a",
    "map",
    "seen",
    "port",
    "flow",
    "global",
    "tag",
    "state",
    "a_rather_long_name_of_something",
    "per",
    "stream",
    "idle",
];
const FIELDS: [&str; 6] = ["ip.src", "l4.dport", "pkt.len", "quoted.ip.dst", "tcp.flags", "x.drop"];
const UNITS: [&str; 12] =
    ["ns", "ms", "s", "min", "KiB", "MB", "Ki", "M", "bit/s", "Mbit/s", "B/s", "d"];
const TEXTS: [&str; 6] =
    ["", "denied", "a \"b\" \\", "tab\tline\nend\0", "é ☃", "// no /* comment"];
const BINARY: [BinOp; 18] = [
    BinOp::Or,
    BinOp::And,
    BinOp::Eq,
    BinOp::Ne,
    BinOp::Lt,
    BinOp::Le,
    BinOp::Gt,
    BinOp::Ge,
    BinOp::BitOr,
    BinOp::BitXor,
    BinOp::BitAnd,
    BinOp::Shl,
    BinOp::Shr,
    BinOp::Add,
    BinOp::Sub,
    BinOp::Mul,
    BinOp::Div,
    BinOp::Rem,
];

pub fn name(e: &mut Entropy) -> Ident {
    ident(e.of(&NAMES))
}

pub fn ident(text: &str) -> Ident {
    Ident { text: text.into(), span: Span::default() }
}

pub fn dotted(text: &str) -> Path {
    Path { parts: text.split('.').map(ident).collect(), span: Span::default() }
}

pub fn field(e: &mut Entropy) -> Path {
    dotted(e.of(&FIELDS))
}

pub fn text(e: &mut Entropy) -> String {
    e.of(&TEXTS).to_owned()
}

fn of(kind: ExprKind) -> Expr {
    Expr { kind, span: Span::default() }
}

pub fn expr(e: &mut Entropy, fuel: u32) -> Expr {
    of(if fuel == 0 || e.below(3) == 0 { leaf(e) } else { branch(e, fuel - 1) })
}

fn prefix4(e: &mut Entropy) -> ExprKind {
    let len = e.below(33);
    let mask = u32::MAX.checked_shl(32 - u32::try_from(len).unwrap()).unwrap_or(0);
    ExprKind::Prefix4(u32::try_from(e.number() & 0xffff_ffff).unwrap() & mask, len as u8)
}

fn prefix6(e: &mut Entropy) -> ExprKind {
    let len = e.below(129);
    let mask = u128::MAX.checked_shl(128 - u32::try_from(len).unwrap()).unwrap_or(0);
    ExprKind::Prefix6(e.number() & mask, len as u8)
}

fn leaf(e: &mut Entropy) -> ExprKind {
    match e.below(12) {
        0 => ExprKind::Path(Path { parts: vec![name(e)], span: Span::default() }),
        1 | 2 => ExprKind::Path(field(e)),
        3 => ExprKind::Int(e.number()),
        4 => ExprKind::Quantity(e.number(), e.of(&UNITS).to_owned()),
        5 => ExprKind::Bool(e.coin()),
        6 => ExprKind::Str(text(e)),
        7 => ExprKind::Ip4(u32::try_from(e.number() & 0xffff_ffff).unwrap()),
        8 => ExprKind::Ip6(e.number()),
        9 => ExprKind::Mac(u64::try_from(e.number() & 0xffff_ffff_ffff).unwrap()),
        10 => prefix4(e),
        _ => prefix6(e),
    }
}

/// An expression that may precede `[…]` or follow `exists`. It does not end in an open operator.
fn place(e: &mut Entropy, fuel: u32) -> Expr {
    let base = of(ExprKind::Path(Path { parts: vec![name(e)], span: Span::default() }));
    if fuel == 0 || e.coin() { base } else { index(e, fuel - 1, base) }
}

fn index(e: &mut Entropy, fuel: u32, base: Expr) -> Expr {
    let key = if e.below(6) == 0 {
        ["quoted", "reverse"].map(|word| of(ExprKind::Path(dotted(word)))).to_vec()
    } else {
        e.many(3, |e| expr(e, fuel))
    };
    let indexed = of(ExprKind::Index(Box::new(base), key));
    if e.coin() { indexed } else { of(ExprKind::Member(Box::new(indexed), name(e))) }
}

pub fn args(e: &mut Entropy, fuel: u32) -> Vec<Arg> {
    e.some(3, |e| Arg { name: e.maybe(arg_name), value: arg_value(e, fuel) })
}

fn arg_name(e: &mut Entropy) -> Ident {
    if e.below(4) == 0 { ident("match") } else { name(e) }
}

fn arg_value(e: &mut Entropy, fuel: u32) -> Expr {
    if e.below(8) == 0 { of(ExprKind::Path(dotted("drop"))) } else { expr(e, fuel) }
}

pub fn record(e: &mut Entropy, fuel: u32) -> Vec<(Ident, Expr)> {
    e.many(8, |e| (arg_name(e), expr(e, fuel)))
}

fn branch(e: &mut Entropy, fuel: u32) -> ExprKind {
    let boxed = |e: &mut Entropy| Box::new(expr(e, fuel));
    match e.below(17) {
        0..=4 => ExprKind::Binary(BINARY[e.below(BINARY.len())], boxed(e), boxed(e)),
        5 => ExprKind::Range(boxed(e), boxed(e)),
        6 => ExprKind::Set(e.some(9, |e| expr(e, fuel))),
        7 => ExprKind::List(e.some(9, |e| expr(e, fuel))),
        8 => ExprKind::Record(record(e, fuel)),
        9 => {
            let base = place(e, 0);
            index(e, fuel, base).kind
        }
        10 => ExprKind::Call(name(e), args(e, fuel)),
        11 => {
            if e.coin() {
                ExprKind::Not(boxed(e))
            } else {
                ExprKind::Complement(boxed(e))
            }
        }
        12 => ExprKind::In(boxed(e), boxed(e)),
        13 => ExprKind::Matches(boxed(e), boxed(e)),
        14 => {
            if e.coin() {
                ExprKind::Exists(Box::new(place(e, fuel)))
            } else {
                match e.coin() {
                    true => ExprKind::Has(field(e)),
                    false => ExprKind::From(name(e)),
                }
            }
        }
        15 => {
            let what = match e.below(4) {
                0 => Chunk::Text(text(e)),
                1 => Chunk::Bytes(16, e.maybe(|e| place(e, 0))),
                _ => Chunk::Number(ident(e.of(&["u8", "u16", "ip6"]))),
            };
            let within = match e.below(3) {
                0 => Within::Payload,
                1 => Within::Option(OptionOf::ALL[e.below(3)].0, expr(e, 0)),
                _ => Within::Header(name(e)),
            };
            ExprKind::At(Box::new(At { what, within, offset: e.maybe(|e| place(e, 0)) }))
        }
        _ => ExprKind::If(boxed(e), boxed(e), boxed(e)),
    }
}

pub fn ty(e: &mut Entropy, fuel: u32) -> Type {
    let kind = match e.below(if fuel == 0 { 2 } else { 5 }) {
        0 if e.coin() => TypeKind::Bytes(e.below(300) as u128),
        0 => TypeKind::Named { name: ident("ip4"), args: Vec::new(), of: None },
        1 => TypeKind::Named { name: ident("index"), args: Vec::new(), of: Some(name(e)) },
        2 => TypeKind::Record(e.many(7, |e| (arg_name(e), ty(e, fuel - 1)))),
        _ => TypeKind::Named {
            name: ident(e.of(&["list", "set", "pool"])),
            args: e.many(2, |e| ty(e, fuel - 1)),
            of: None,
        },
    };
    Type { kind, span: Span::default() }
}
