//! Terms of the solver's logic: bit vectors, truth values and uninterpreted functions. Every term
//! exists once. Terms are simplified when they are built, so two notations of a value are often one
//! term.

use std::collections::HashMap;

/// A term, by number. Terms are ordered by their time of creation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Term(pub(crate) u32);

/// The sort of a term.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Sort {
    /// A truth value.
    Bool,
    /// A number with this many bits.
    Bits(u16),
    /// A value that can only be compared, such as the content of a table.
    Token,
}

/// Operators on bit vectors of equal width.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BitOp {
    /// Sum modulo 2^width.
    Add,
    /// Difference modulo 2^width.
    Sub,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Shift left. A shift by the width or more gives 0.
    Shl,
    /// Shift right. A shift by the width or more gives 0.
    Shr,
    /// Product modulo 2^width.
    Mul,
}

/// The form of a term.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Node {
    Bool(bool),
    Bits(u16, u128),
    /// A function applied to terms. Without terms it is a variable.
    Apply(u32, Box<[Term]>),
    Not(Term),
    /// Sorted, without duplicates, with at least two terms, and no term is an `And`.
    And(Box<[Term]>),
    /// Sorted, without duplicates, with at least two terms, and no term is an `Or`.
    Or(Box<[Term]>),
    Eq(Term, Term),
    Less(Term, Term),
    Ite(Term, Term, Term),
    Op(BitOp, Term, Term),
    Flip(Term),
    /// The bits from the second number up to the first, both included.
    Slice(u16, u16, Term),
    /// The first term is the high part.
    Join(Term, Term),
    /// The term with more bits, which are 0.
    Widen(u16, Term),
}

/// An uninterpreted function.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) args: Vec<Sort>,
    pub(crate) out: Sort,
}

/// All terms of one question.
#[derive(Default)]
pub struct Terms {
    nodes: Vec<Node>,
    sorts: Vec<Sort>,
    known: HashMap<Node, Term>,
    functions: Vec<Function>,
    function_of: HashMap<Function, u32>,
    pub(crate) truths: HashMap<Term, Term>,
    /// The largest values of terms, once computed.
    pub(crate) bounds: HashMap<Term, u128>,
    /// Facts about the functions that terms use.
    pub(crate) facts: Vec<Term>,
}

/// The largest number with this many bits.
pub(crate) fn mask(width: u16) -> u128 {
    if width == 0 { 0 } else { u128::MAX >> (128 - u32::from(width.min(128))) }
}

impl Terms {
    pub(crate) fn node(&self, term: Term) -> &Node {
        &self.nodes[term.0 as usize]
    }

    /// The sort of a term.
    #[must_use]
    pub fn sort(&self, term: Term) -> Sort {
        self.sorts[term.0 as usize]
    }

    /// The width of a term in bits. It is 1 for truth values.
    #[must_use]
    pub fn width(&self, term: Term) -> u16 {
        match self.sort(term) {
            Sort::Bits(width) => width,
            Sort::Bool | Sort::Token => 1,
        }
    }

    pub(crate) fn function(&self, number: u32) -> &Function {
        &self.functions[number as usize]
    }

    /// Number of terms.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are no terms.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    pub(crate) fn make(&mut self, node: Node, sort: Sort) -> Term {
        if let Some(term) = self.known.get(&node) {
            return *term;
        }
        let term = Term(u32::try_from(self.nodes.len()).unwrap_or(u32::MAX));
        self.nodes.push(node.clone());
        self.sorts.push(sort);
        self.known.insert(node, term);
        term
    }

    /// A truth value.
    pub fn bool(&mut self, value: bool) -> Term {
        self.make(Node::Bool(value), Sort::Bool)
    }

    /// A number with this many bits.
    pub fn bits(&mut self, width: u16, value: u128) -> Term {
        self.make(Node::Bits(width, value & mask(width)), Sort::Bits(width))
    }

    /// A variable. The same name and sort give the same variable.
    pub fn var(&mut self, name: impl Into<String>, sort: Sort) -> Term {
        self.apply(name, &[], sort)
    }

    /// An uninterpreted function of terms. The same name and sorts give the same function.
    pub fn apply(&mut self, name: impl Into<String>, args: &[Term], out: Sort) -> Term {
        let sorts = args.iter().map(|arg| self.sort(*arg)).collect();
        let function = Function { name: name.into(), args: sorts, out };
        let number = match self.function_of.get(&function) {
            Some(number) => *number,
            None => {
                let number = u32::try_from(self.functions.len()).unwrap_or(u32::MAX);
                self.functions.push(function.clone());
                self.function_of.insert(function, number);
                number
            }
        };
        self.make(Node::Apply(number, args.into()), out)
    }

    /// The value of a constant.
    #[must_use]
    pub fn constant(&self, term: Term) -> Option<u128> {
        match self.node(term) {
            Node::Bits(_, value) => Some(*value),
            Node::Bool(value) => Some(u128::from(*value)),
            _ => None,
        }
    }

    /// The value of a constant truth value.
    #[must_use]
    pub fn decided(&self, term: Term) -> Option<bool> {
        match self.node(term) {
            Node::Bool(value) => Some(*value),
            _ => None,
        }
    }
}
