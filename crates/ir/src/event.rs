//! Event types: what functions publish, and what other functions take.

use crate::ty::{Kind, Ty, Word};
use braid_packet::FlowKey;

/// The root of the hierarchy of event types.
pub const ROOT_EVENT: &str = "EVENT";
/// The type of events about a flow, such as a TCP connection. It extends the root, and its fields
/// are those of a flow key. Stream functions may end or leave out the flows that such events name.
pub const FLOW_EVENT: &str = "FLOW";

/// The names of its fields, in the order of [`FlowKey::FIELDS`].
const FLOW_NAMES: [&str; 6] = ["version", "src", "dst", "proto", "sport", "dport"];

/// An event type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EventDecl {
    /// Its name.
    pub name: String,
    /// The types that it extends, nearest first.
    pub ancestors: Vec<Ancestor>,
    /// Fields, inherited ones first.
    pub fields: Vec<(String, EventTy)>,
}

/// An event type that another one extends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ancestor {
    /// Its name.
    pub name: String,
    /// The number of its fields. They are the first fields of each type that extends it.
    pub fields: usize,
}

impl EventDecl {
    /// The type [`FLOW_EVENT`].
    #[must_use]
    pub fn of_flow() -> Self {
        let kinds = [Kind::Uint, Kind::Addr, Kind::Addr, Kind::Uint, Kind::Port, Kind::Port];
        let types = kinds.into_iter().zip(FlowKey::WIDTHS);
        let types = types.map(|(kind, width)| EventTy::Scalar(Ty { width, kind }));
        Self {
            name: FLOW_EVENT.to_owned(),
            ancestors: vec![Ancestor { name: ROOT_EVENT.to_owned(), fields: 0 }],
            fields: FLOW_NAMES.map(str::to_owned).into_iter().zip(types).collect(),
        }
    }

    /// Whether its events name a flow: it is the type [`FLOW_EVENT`] or extends it.
    #[must_use]
    pub fn names_flow(&self) -> bool {
        let of = Self::of_flow();
        let is_named = self.name == of.name || self.ancestors.iter().any(|one| one.name == of.name);
        is_named && self.fields.starts_with(&of.fields)
    }

    /// The names of the types that it extends, nearest first.
    #[must_use]
    pub fn ancestor_names(&self) -> Vec<String> {
        self.ancestors.iter().map(|ancestor| ancestor.name.clone()).collect()
    }
}

/// The type of an event's field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventTy {
    /// A scalar.
    Scalar(Ty),
    /// Text: a string constant or a string parameter.
    Str,
}

/// The flow that an event with these fields names, if its type names one.
#[must_use]
pub fn flow_of(fields: &[Word]) -> Option<FlowKey> {
    let [version, src, dst, proto, sport, dport] = *fields.first_chunk()?;
    Some(FlowKey {
        version: u8::try_from(version).ok()?,
        src,
        dst,
        proto: u8::try_from(proto).ok()?,
        sport: u16::try_from(sport).ok()?,
        dport: u16::try_from(dport).ok()?,
    })
}
