//! Terms as SMT-LIB 2 text. Every term is defined once, from earlier terms.
//!
//! In the coarse form, arithmetic on wide numbers is an unknown function. A condition that is
//! impossible in the coarse form is impossible. Solvers find this much sooner when both sides
//! compute the same.

use std::collections::HashSet;
use std::fmt::Write;

use crate::term::{BitOp, Node, Sort, Term, Terms};

/// The most bits on which the coarse form keeps arithmetic.
const WIDE: u16 = 32;

/// The terms and functions that the solver already knows.
#[derive(Default)]
pub struct Said {
    coarse: bool,
    terms: HashSet<Term>,
    functions: HashSet<u32>,
    open: HashSet<String>,
}

/// The name of a sort.
fn sort(sort: Sort) -> String {
    match sort {
        Sort::Bool => "Bool".to_owned(),
        Sort::Bits(width) => format!("(_ BitVec {width})"),
        Sort::Token => "Token".to_owned(),
    }
}

impl Said {
    /// The state at the start of a session, in the coarse form or not.
    pub fn nothing(coarse: bool) -> Self {
        Self { coarse, ..Self::default() }
    }

    /// Defines a term and its parts that the solver does not know yet. Then [`name`] gives the
    /// term's name.
    pub fn define(&mut self, terms: &Terms, wanted: Term, text: &mut String) {
        let mut stack = vec![(wanted, false)];
        while let Some((term, ready)) = stack.pop() {
            if self.terms.contains(&term) || is_constant(terms, term) {
                continue;
            }
            if ready {
                self.terms.insert(term);
                self.one(terms, term, text);
            } else {
                stack.push((term, true));
                stack.extend(parts(terms.node(term)).iter().map(|part| (*part, false)));
            }
        }
    }

    fn one(&mut self, terms: &Terms, term: Term, text: &mut String) {
        if let Node::Apply(number, args) = terms.node(term) {
            if self.functions.insert(*number) {
                let function = terms.function(*number);
                let args: Vec<_> = function.args.iter().map(|arg| sort(*arg)).collect();
                let out = sort(function.out);
                let _ = writeln!(text, "(declare-fun f{number} ({}) {out})", args.join(" "));
            }
            if args.is_empty() {
                return;
            }
        }
        let out = sort(terms.sort(term));
        let body = match self.left_open(terms, term, text) {
            Some(open) => open,
            None => body(terms, term),
        };
        let _ = writeln!(text, "(define-fun t{} () {out} {body})", term.0);
    }
}

impl Said {
    /// Replaces wide arithmetic by a function, in the coarse form.
    fn left_open(&mut self, terms: &Terms, term: Term, text: &mut String) -> Option<String> {
        let (word, a, b) = match *terms.node(term) {
            Node::Less(sum, one) => match carry(terms, sum, one) {
                Some((a, b)) => ("carry", a, b),
                None => ("less", sum, one),
            },
            Node::Op(op, a, b) => match op {
                BitOp::And | BitOp::Or | BitOp::Xor => return None,
                _ => (operator(op), a, b),
            },
            _ => return None,
        };
        let width = terms.width(a);
        if !self.coarse || width <= WIDE {
            return None;
        }
        let function = format!("open_{word}_{width}");
        if self.open.insert(function.clone()) {
            let (arg, out) = (sort(Sort::Bits(width)), sort(terms.sort(term)));
            let _ = writeln!(text, "(declare-fun {function} ({arg} {arg}) {out})");
        }
        let (a, b) = (name(terms, a), name(terms, b));
        // Two sums of the same numbers may have them in different orders.
        if matches!(word, "bvadd" | "bvmul" | "carry") {
            let _ = writeln!(text, "(assert (= ({function} {a} {b}) ({function} {b} {a})))");
        }
        Some(format!("({function} {a} {b})"))
    }
}

/// The numbers of a sum, if the comparison asks whether the sum is less than one of them. It is so
/// exactly if the sum is too wide, so it is also less than the other one.
fn carry(terms: &Terms, sum: Term, one: Term) -> Option<(Term, Term)> {
    match *terms.node(sum) {
        Node::Op(BitOp::Add, a, b) if one == a || one == b => Some((a, b)),
        _ => None,
    }
}

/// Constants need no definition.
fn is_constant(terms: &Terms, term: Term) -> bool {
    matches!(terms.node(term), Node::Bool(_) | Node::Bits(..))
}

/// The name of a defined term.
pub fn name(terms: &Terms, term: Term) -> String {
    match terms.node(term) {
        Node::Bool(value) => value.to_string(),
        Node::Bits(width, value) => format!("(_ bv{value} {width})"),
        Node::Apply(number, args) if args.is_empty() => format!("f{number}"),
        _ => format!("t{}", term.0),
    }
}

fn parts(node: &Node) -> Vec<Term> {
    match node {
        Node::Bool(_) | Node::Bits(..) => Vec::new(),
        Node::Apply(_, parts) | Node::And(parts) | Node::Or(parts) => parts.to_vec(),
        Node::Not(a) | Node::Flip(a) | Node::Slice(_, _, a) | Node::Widen(_, a) => vec![*a],
        Node::Eq(a, b) | Node::Less(a, b) | Node::Op(_, a, b) | Node::Join(a, b) => vec![*a, *b],
        Node::Ite(a, b, c) => vec![*a, *b, *c],
    }
}

fn body(terms: &Terms, term: Term) -> String {
    let node = terms.node(term);
    let args: Vec<_> = parts(node).iter().map(|part| name(terms, *part)).collect();
    let args = args.join(" ");
    match node {
        Node::Bool(_) | Node::Bits(..) => name(terms, term),
        Node::Apply(number, _) => format!("(f{number} {args})"),
        Node::Not(_) => format!("(not {args})"),
        Node::And(_) => format!("(and {args})"),
        Node::Or(_) => format!("(or {args})"),
        Node::Eq(..) => format!("(= {args})"),
        Node::Less(..) => format!("(bvult {args})"),
        Node::Ite(..) => format!("(ite {args})"),
        Node::Op(op, ..) => format!("({} {args})", operator(*op)),
        Node::Flip(_) => format!("(bvnot {args})"),
        Node::Slice(high, low, _) => format!("((_ extract {high} {low}) {args})"),
        Node::Join(..) => format!("(concat {args})"),
        Node::Widen(width, inner) => {
            format!("((_ zero_extend {}) {args})", width - terms.width(*inner))
        }
    }
}

fn operator(op: BitOp) -> &'static str {
    match op {
        BitOp::Add => "bvadd",
        BitOp::Sub => "bvsub",
        BitOp::And => "bvand",
        BitOp::Or => "bvor",
        BitOp::Xor => "bvxor",
        BitOp::Shl => "bvshl",
        BitOp::Shr => "bvlshr",
        BitOp::Mul => "bvmul",
    }
}
