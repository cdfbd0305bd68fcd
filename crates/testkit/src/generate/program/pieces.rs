//! The declarations of a generated function, and the scope at a place in it.

use super::types;
use braid_ir::model::Ty;
use braid_packet::{Field, Header};

/// A parameter.
#[derive(Clone, Debug)]
pub(super) struct Param {
    /// Its name.
    pub(super) name: String,
    /// Its kind.
    pub(super) kind: ParamKind,
    /// Its type in written form.
    pub(super) ty: String,
    /// Its value in a chain, in written form.
    pub(super) value: String,
    /// Whether the value is also the default, so that chains may omit it.
    pub(super) default: bool,
}

/// The kind of a parameter.
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
    /// Strings, or host names.
    Strings,
    /// Secret keys with the numbers 1 and 2.
    Keys,
    /// Text.
    Text,
}

/// The key of a state's entries.
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
    /// Its key.
    pub(super) per: Per,
    /// Its parts. A scalar has one part without a name.
    pub(super) slots: Vec<(String, Ty)>,
    /// Whether it has a default.
    pub(super) default: bool,
    /// Whether it lives with another table.
    pub(super) tied: bool,
    /// Whether assignments are refused at capacity.
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
    /// Its fields. `None` is a string.
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
    /// Ports besides `left` and `right`.
    pub(super) ports: Vec<String>,
    /// Whether packets come in at these ports, too.
    pub(super) has_sides: bool,
    /// Event types.
    pub(super) events: Vec<Event>,
}

/// The scope at a place.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    /// Headers that are present, with all headers that they imply.
    pub(super) headers: Vec<Header>,
    /// Local names with their types.
    pub(super) lets: Vec<(String, Ty)>,
    /// The locals among them that may be assigned.
    pub(super) muts: Vec<(String, Ty)>,
    /// Numbers of states without a default whose entry is known to exist.
    pub(super) exists: Vec<usize>,
    /// Numbers of states that were assigned on the path to this place.
    pub(super) assigned: Vec<usize>,
    /// Fields that earlier rows compared with constants.
    pub(super) compared: Vec<Field>,
    /// Nesting depth of statements.
    pub(super) depth: usize,
}

impl Scope {
    /// Whether these headers are known to be present.
    pub(super) fn has(&self, headers: &[Header]) -> bool {
        headers.iter().all(|header| self.headers.contains(header))
    }

    /// The scope behind a test for these headers.
    pub(super) fn with(&self, headers: &[Header]) -> Self {
        let mut scope = self.clone();
        scope.headers = types::closed(&[&self.headers[..], headers].concat());
        scope
    }
}
