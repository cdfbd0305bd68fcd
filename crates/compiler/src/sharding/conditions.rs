//! The values of a program, and the conditions that the headers of packets decide.

use super::facts::Term;
use braid_ir::arith;
use braid_ir::chain::{Chain, Malformed};
use braid_ir::model::{BinOp, CmpOp, Op, SetRef, ValueId, Word};
use braid_ir::residual::{HeaderMask, Residual};
use braid_packet::field::Show;
use braid_packet::{Field, Header};
use std::collections::HashMap;
use std::rc::Rc;

/// The values of a program that the walk has reached.
pub(super) struct Values<'a> {
    pub(super) chain: &'a Chain,
    pub(super) program: &'a Rc<Residual>,
    /// The headers that all packets have, or that none has.
    pub(super) headers: HeaderMask,
    pub(super) terms: HashMap<ValueId, Term>,
    /// The operations that define the values.
    pub(super) defs: HashMap<ValueId, &'a Op>,
}

impl Values<'_> {
    /// Where a value comes from.
    pub(super) fn term(&self, value: ValueId) -> Term {
        self.terms.get(&value).copied().unwrap_or(Term::Value(value))
    }

    /// The result of a condition, if the headers of the packets decide it: the type of an ICMP
    /// message decides whether the message quotes a packet, and the other way round.
    pub(super) fn decided(&self, cond: ValueId) -> Option<bool> {
        match self.defs.get(&cond)? {
            Op::Bin { op: BinOp::And, a, b, .. } => match (self.decided(*a), self.decided(*b)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            },
            Op::Bin { op: BinOp::Or, a, b, .. } => match (self.decided(*a), self.decided(*b)) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            },
            Op::Cmp { op, a, b, .. } => {
                let Term::Word(word) = self.term(*b) else { return None };
                self.of_type(*a, &|kind| arith::compare(*op, kind, word))
            }
            Op::InSet { a, set: SetRef::Const(set), .. } => {
                self.of_type(*a, &|kind| set.contains(kind))
            }
            _ => None,
        }
    }

    /// The outcome of a test for all types that an ICMP message with these headers can have. `None`
    /// if it differs.
    fn of_type(&self, value: ValueId, test: &dyn Fn(Word) -> bool) -> Option<bool> {
        let Term::Field(field @ (Field::IcmpType | Field::Icmp6Type)) = self.term(value) else {
            return None;
        };
        if self.chain.malformed != Malformed::Drop {
            return None;
        }
        let with =
            |has| field.decides().filter(move |header| self.headers.has(*header) == Some(has));
        let announced = |header: Header, kind: Word| {
            header.announced_by(field).iter().any(|value| Word::from(*value) == kind)
        };
        let possible = |kind: &Word| {
            let fits =
                |header: Header| header.announced_by(field).is_empty() || announced(header, *kind);
            // A message may be too short to quote a packet, but its header has room for an echo.
            let mut certain = with(false).filter(|header| header.is_certain());
            with(true).all(fits) && !certain.any(|header| announced(header, *kind))
        };
        let mut results = (0..=255).filter(possible).map(test);
        let first = results.next()?;
        results.all(|result| result == first).then_some(first)
    }

    /// Whether a condition compares an address with a constant.
    pub(super) fn compares_address(&self, cond: ValueId) -> bool {
        let Some(Op::Cmp { op: CmpOp::Eq, a, b, .. }) = self.defs.get(&cond) else { return false };
        let is_address = |field: Field| {
            matches!(field.info().show, Show::Ip4 | Show::Ip6 | Show::Inet | Show::Mac)
        };
        let is_constant = |term| matches!(term, Term::Word(_) | Term::Param(..));
        match (self.term(*a), self.term(*b)) {
            (Term::Field(field), other) | (other, Term::Field(field)) => {
                is_address(field) && is_constant(other)
            }
            _ => false,
        }
    }
}

/// Whether no packet of this shape has a protocol that the parser knows, unless it is a fragment.
pub(super) fn lacks_transport(chain: &Chain, shape: HeaderMask) -> bool {
    let lacks = |header| shape.has(header) == Some(false);
    let mut all = Header::transports();
    all.all(|header| lacks(header) || lacks(header.group())) && chain.malformed == Malformed::Drop
}
