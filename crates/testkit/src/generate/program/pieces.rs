//! What a generated function declares, and what is in sight at a place in it.

use super::types;
use braid_ir::model::Ty;
use braid_packet::{Field, Header};

/// A parameter.
#[derive(Clone, Debug)]
pub(super) struct Param {
    /// Its name.
    pub(super) name: String,
    /// What it is.
    pub(super) kind: ParamKind,
    /// Its type as written.
    pub(super) ty: String,
    /// Its value in a chain, as written.
    pub(super) value: String,
    /// It is also its default, and chains may leave it out.
    pub(super) default: bool,
}

/// What a parameter is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ParamKind {
    /// A scalar.
    Scalar(Ty),
    /// A set of scalars.
    Set(Ty),
    /// A list of IPv4 addresses.
    List,
    /// Backends by IPv4 address.
    Backends,
    /// A pool of ports.
    Pool,
    /// A rule set.
    Rules,
    /// A route table.
    Routes,
    /// Patterns.
    Patterns,
    /// Text.
    Text,
}

/// Per what a state has entries.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Per {
    /// One entry.
    Global,
    /// `per flow`
    Flow,
    /// `per biflow`
    Biflow,
    /// `per (FIELDS)`
    Fields(Vec<Field>),
    /// `per (TYPES)`
    Types(Vec<Ty>),
}

impl Per {
    /// Headers that the implicit key needs.
    pub(super) fn needs(&self) -> Vec<Header> {
        match self {
            Per::Global | Per::Types(_) => Vec::new(),
            Per::Flow | Per::Biflow => vec![Header::Inet],
            Per::Fields(fields) => fields.iter().map(|field| field.info().header).collect(),
        }
    }
}

/// A state table.
#[derive(Clone, Debug)]
pub(super) struct State {
    /// Its name.
    pub(super) name: String,
    /// Per what.
    pub(super) per: Per,
    /// Parts; one without a name for a scalar.
    pub(super) slots: Vec<(String, Ty)>,
    /// It has a default.
    pub(super) default: bool,
    /// It lives with another table.
    pub(super) tied: bool,
    /// At capacity, assignments are refused.
    pub(super) refuses: bool,
    /// Its declaration.
    pub(super) text: String,
}

impl State {
    /// The type of its entries, if they are scalars.
    pub(super) fn scalar(&self) -> Option<Ty> {
        match &self.slots[..] {
            [(name, ty)] if name.is_empty() => Some(*ty),
            _ => None,
        }
    }
}

/// An event type with its fields.
#[derive(Clone, Debug)]
pub(super) struct Event {
    /// Its name.
    pub(super) name: String,
    /// Its fields; `None` is a text.
    pub(super) fields: Vec<(String, Option<Ty>)>,
}

/// Everything that a function declares.
#[derive(Clone, Debug, Default)]
pub(super) struct Pieces {
    /// Parameters.
    pub(super) params: Vec<Param>,
    /// States.
    pub(super) states: Vec<State>,
    /// Tags.
    pub(super) tags: Vec<(String, Ty)>,
    /// Ports besides the two sides.
    pub(super) ports: Vec<String>,
    /// Event types.
    pub(super) events: Vec<Event>,
}

/// What is in sight at a place.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    /// Headers that are there, with all that they imply.
    pub(super) headers: Vec<Header>,
    /// Names with values.
    pub(super) lets: Vec<(String, Ty)>,
    /// Numbers of states without default whose entry is known to exist.
    pub(super) exists: Vec<usize>,
    /// Numbers of states that were assigned on the way here.
    pub(super) assigned: Vec<usize>,
    /// Fields that rows above have compared with constants.
    pub(super) compared: Vec<Field>,
    /// How deep statements are nested.
    pub(super) depth: usize,
}

impl Scope {
    /// Whether these headers are known to be there.
    pub(super) fn has(&self, headers: &[Header]) -> bool {
        headers.iter().all(|header| self.headers.contains(header))
    }

    /// The scope behind a test that these headers are there.
    pub(super) fn with(&self, headers: &[Header]) -> Self {
        let mut scope = self.clone();
        scope.headers = types::closed(&[&self.headers[..], headers].concat());
        scope
    }
}
