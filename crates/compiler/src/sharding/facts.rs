//! Facts about the worker that runs a program: "the worker is this function of these values".

use crate::symbolic::{Arriving, arriving};
use braid_ir::model::{ParamId, ValueId, Word};
use braid_ir::steering::{By, Of, Part, Side, Steering};
use braid_packet::{Field, FlowKey, Header};
use std::collections::BTreeSet;

/// A function from values to a worker.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Law {
    /// Always worker 0, without values.
    First,
    /// The hash of a connection: version, protocol, then address and port of both ends.
    Connection,
    /// The hash of an address and a port.
    Both,
    /// The hash of an address.
    Address,
    /// The hash of a port.
    Port,
    /// The hash of a value as wide as this field.
    Field(Field),
    /// The worker whose share of the pool holds the value.
    Pool(u16, ParamId),
}

/// A value that a program uses, by where it comes from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Term {
    /// A constant.
    Word(Word),
    /// A field of the packet as it entered the program.
    Field(Field),
    /// A parameter of a function.
    Param(u16, ParamId),
    /// A value of the program.
    Value(ValueId),
}

/// The worker is `law` of `terms`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Fact {
    pub(super) law: Law,
    pub(super) terms: Vec<Term>,
}

/// The facts that hold at one place of a program.
pub(super) type Facts = BTreeSet<Fact>;

impl Fact {
    pub(super) fn new(law: Law, mut terms: Vec<Term>) -> Self {
        if let (Law::Connection, [.., a, p, b, q]) = (law, terms.as_mut_slice())
            && (*a, *p) > (*b, *q)
        {
            std::mem::swap(a, b);
            std::mem::swap(p, q);
        }
        Self { law, terms }
    }

    /// The fact with every combination of these names for its terms.
    pub(super) fn renamed(&self, names: &dyn Fn(Term) -> Vec<Term>) -> Vec<Fact> {
        let mut all = vec![Vec::new()];
        for term in &self.terms {
            let names = names(*term);
            let longer = |start: &Vec<Term>| {
                let start = start.clone();
                names.iter().map(move |name| [&*start, &[*name]].concat()).collect::<Vec<_>>()
            };
            all = all.iter().flat_map(longer).collect();
        }
        all.into_iter().map(|terms| Fact::new(self.law, terms)).collect()
    }
}

/// The facts about the worker of packets with these headers that enter at an interface.
pub(super) fn on_entry(steering: &Steering, interface: u16, presence: u128) -> Fact {
    let fields = match steering.errors_follow && presence & Header::Quoted.bit() != 0 {
        true => FlowKey::QUOTED_FIELDS,
        false => FlowKey::FIELDS,
    };
    let reversed = fields == FlowKey::QUOTED_FIELDS;
    let terms = |fields: &[Field]| -> Option<Vec<Term>> {
        fields.iter().map(|field| term(*field, presence)).collect()
    };
    let of = |part: &Part| {
        let [_, src, dst, _, sport, dport] = fields;
        match (part.end == Side::Source) != reversed {
            true => (src, sport),
            false => (dst, dport),
        }
    };
    let (law, found) = match steering.by(interface) {
        By::Connection => {
            let [version, src, dst, proto, sport, dport] = fields;
            (Law::Connection, terms(&[version, proto, src, sport, dst, dport]))
        }
        By::Field(field) => (Law::Field(*field), terms(&[*field])),
        By::Part(part) => match (part.what, of(part)) {
            (Of::Both, (addr, port)) => (Law::Both, terms(&[addr, port])),
            (Of::Address, (addr, _)) => (Law::Address, terms(&[addr])),
            (Of::Port, (_, port)) => (Law::Port, terms(&[port])),
        },
        By::Pool(part, pool) => {
            let (addr, port) = of(part);
            let value = if part.what == Of::Port { port } else { addr };
            (Law::Pool(pool.node, pool.param), terms(&[value]))
        }
    };
    match found {
        Some(terms) => Fact::new(law, terms),
        None => Fact::new(Law::First, Vec::new()),
    }
}

fn term(field: Field, presence: u128) -> Option<Term> {
    arriving(field, presence).map(|arriving| match arriving {
        Arriving::Const(word) => Term::Word(word),
        Arriving::Cell(field) => Term::Field(field),
    })
}
