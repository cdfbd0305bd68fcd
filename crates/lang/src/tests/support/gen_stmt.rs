//! Generates random statements.

use crate::ast::{
    BinOp, Block, Contents, Expr, ExprKind, Part, Path, Push, Row, Span, Stmt, StmtKind,
};

use super::entropy::Entropy;
use super::gen_expr::{args, expr, field, ident, name, record, text};

const FUEL: u32 = 3;
const ASSIGNING: [BinOp; 10] = [
    BinOp::Add,
    BinOp::Sub,
    BinOp::Mul,
    BinOp::Div,
    BinOp::Rem,
    BinOp::BitAnd,
    BinOp::BitOr,
    BinOp::BitXor,
    BinOp::Shl,
    BinOp::Shr,
];

fn of(kind: StmtKind) -> Stmt {
    Stmt { kind, span: Span::default() }
}

fn path_expr(path: Path) -> Expr {
    Expr { kind: ExprKind::Path(path), span: Span::default() }
}

fn place(e: &mut Entropy) -> Expr {
    match e.below(3) {
        0 => path_expr(Path { parts: vec![name(e)], span: Span::default() }),
        1 => path_expr(field(e)),
        _ => {
            let base = Box::new(path_expr(Path { parts: vec![name(e)], span: Span::default() }));
            let kind = ExprKind::Index(base, e.many(2, |e| expr(e, FUEL)));
            Expr { kind, span: Span::default() }
        }
    }
}

pub fn block(e: &mut Entropy, fuel: u32) -> Block {
    Block { stmts: e.some(4, |e| stmt(e, fuel)), span: Span::default() }
}

fn otherwise(e: &mut Entropy, fuel: u32) -> Option<Box<Stmt>> {
    if fuel > 0 && e.below(3) == 0 { Some(Box::new(stmt(e, fuel - 1))) } else { None }
}

pub fn stmt(e: &mut Entropy, fuel: u32) -> Stmt {
    of(if fuel == 0 || e.coin() { simple(e, fuel) } else { compound(e, fuel - 1) })
}

fn simple(e: &mut Entropy, fuel: u32) -> StmtKind {
    match e.below(15) {
        0 => StmtKind::Output(e.some(3, name)),
        1 => StmtKind::Drop(e.maybe(|e| (text(e), Span::default()))),
        2 => StmtKind::Consume,
        3 => StmtKind::Resubmit,
        4 => StmtKind::Mirror(name(e)),
        5 => StmtKind::Delete(place(e)),
        6 => {
            let pops = (0..=e.below(2)).map(|_| push(e)).collect();
            StmtKind::Pop { pops, otherwise: otherwise(e, fuel) }
        }
        7 => {
            let pushes = (0..=e.below(2)).map(|_| push(e)).collect();
            StmtKind::Push { pushes, otherwise: otherwise(e, fuel) }
        }
        8 => StmtKind::Emit {
            event: name(e),
            args: if e.coin() { record(e, FUEL) } else { Vec::new() },
        },
        9 => call(e, fuel),
        10 => {
            StmtKind::Hold { queue: name(e), delay: expr(e, FUEL), otherwise: otherwise(e, fuel) }
        }
        11 => StmtKind::Let {
            name: name(e),
            mutable: e.coin(),
            value: expr(e, FUEL),
            otherwise: otherwise(e, fuel),
        },
        _ => StmtKind::Assign {
            place: place(e),
            op: e.maybe(|e| ASSIGNING[e.below(ASSIGNING.len())]),
            value: expr(e, FUEL),
            otherwise: otherwise(e, fuel),
        },
    }
}

fn call(e: &mut Entropy, fuel: u32) -> StmtKind {
    let (kind, otherwise) = if e.coin() {
        (ExprKind::Call(name(e), args(e, FUEL)), otherwise(e, fuel))
    } else {
        (ExprKind::Path(Path { parts: vec![ident("forward")], span: Span::default() }), None)
    };
    StmtKind::Call { call: Expr { kind, span: Span::default() }, otherwise }
}

fn compound(e: &mut Entropy, fuel: u32) -> StmtKind {
    match e.below(6) {
        0 => StmtKind::Block(block(e, fuel)),
        1 => StmtKind::Match(e.some(4, |e| row(e, fuel))),
        2 => StmtKind::For {
            var: name(e),
            from: Expr { kind: ExprKind::Int(e.number()), span: Span::default() },
            to: place(e),
            cond: e.maybe(|e| expr(e, FUEL)),
            body: block(e, fuel),
        },
        3 => send(e),
        _ => StmtKind::If { cond: expr(e, FUEL), then: block(e, fuel), otherwise: branch(e, fuel) },
    }
}

fn branch(e: &mut Entropy, fuel: u32) -> Option<Block> {
    match e.below(3) {
        0 => None,
        1 => Some(block(e, fuel)),
        _ => {
            let kind = StmtKind::If { cond: expr(e, 2), then: block(e, fuel), otherwise: None };
            Some(Block { stmts: vec![of(kind)], span: Span::default() })
        }
    }
}

fn row(e: &mut Entropy, fuel: u32) -> Row {
    let pred = if e.below(4) == 0 { None } else { Some(expr(e, FUEL)) };
    Row { pred, body: block(e, fuel), span: Span::default() }
}

fn push(e: &mut Entropy) -> Push {
    let header = e.of(&[&["vlan"][..], &["tcp", "mss"]]).iter().map(|part| ident(part)).collect();
    let header = Path { parts: header, span: Span::default() };
    let (args, fields) = match e.coin() {
        true => (e.some(2, |e| expr(e, FUEL)), Vec::new()),
        false => (Vec::new(), record(e, FUEL)),
    };
    Push { header, args, fields, span: Span::default() }
}

fn send(e: &mut Entropy) -> StmtKind {
    StmtKind::Send {
        shape: ident(e.of(&["icmp", "tcp", "udp6"])),
        contents: Contents {
            parts: send_parts(e),
            payload: e.maybe(|e| (ident(e.of(&["quote", "same"])), e.maybe(|e| expr(e, 1)))),
        },
        port: e.maybe(name),
    }
}

/// Parts of a new packet: never two without a condition one after the other.
fn send_parts(e: &mut Entropy) -> Vec<Part> {
    let part = |e: &mut Entropy, when| Part {
        when,
        fields: e.some(3, |e| (field(e), expr(e, FUEL))),
        options: e.some(2, push),
    };
    let mut parts = vec![part(e, None)];
    for _ in 0..e.below(3) {
        let when = Some(expr(e, FUEL));
        parts.push(part(e, when));
        let behind = part(e, None);
        if !behind.fields.is_empty() || !behind.options.is_empty() {
            parts.push(behind);
        }
    }
    parts
}
