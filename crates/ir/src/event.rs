//! Event types: what functions publish, and what other functions take.

use crate::ty::Ty;

/// The root of the hierarchy of event types.
pub const ROOT_EVENT: &str = "EVENT";

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
