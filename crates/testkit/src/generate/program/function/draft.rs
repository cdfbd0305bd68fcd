//! A function in the making: its declarations, and the rows that use them.

use crate::generate::Rng;
use crate::generate::program::pieces::{Param, ParamKind, Pieces};
use crate::generate::program::types::{BOOL, literal};
use braid_ir::model::Ty;
use braid_packet::Header;
use std::collections::BTreeMap;

/// A row that uses a declaration.
#[derive(Clone, Debug, Default)]
pub(super) struct Use {
    /// A test for its predicate.
    pub(super) test: String,
    /// Headers that must be present.
    pub(super) headers: Vec<Header>,
    /// Its first statements.
    pub(super) lines: Vec<String>,
    /// States that it assigns.
    pub(super) assigns: Vec<usize>,
    /// A state without a default whose entry exists.
    pub(super) exists: Option<usize>,
    /// Whether it emits an event.
    pub(super) emits: bool,
    /// Whether it is the first of all rows.
    pub(super) first: bool,
}

/// The parts of a function.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) pieces: Pieces,
    pub(super) uses: Vec<Use>,
    pub(super) timers: Vec<String>,
    /// Timers and their statements.
    pub(super) every: Vec<(String, String)>,
    /// Functions of its own, as source.
    pub(super) own: Vec<String>,
    /// The states with an `on expire` program, and its statements.
    pub(super) expire: Vec<(String, Vec<String>)>,
    /// The handlers of events, and their statements.
    pub(super) handlers: Vec<(String, Vec<String>)>,
    pub(super) queue: bool,
    pub(super) files: BTreeMap<String, String>,
}

impl Draft {
    /// The first declared parameter of a kind, if any.
    pub(super) fn param(&self, kind: ParamKind) -> Option<&Param> {
        self.pieces.params.iter().find(|param| param.kind == kind)
    }
}

/// Adds a parameter.
pub(super) fn add(
    draft: &mut Draft,
    kind: ParamKind,
    ty: &str,
    value: String,
    default: bool,
) -> String {
    let name = format!("p{}", draft.pieces.params.len());
    draft.pieces.params.push(Param { name: name.clone(), kind, ty: ty.to_owned(), value, default });
    name
}

/// A use that tests these headers.
pub(super) fn test(test: String, headers: &[Header]) -> Use {
    Use { test, headers: headers.to_vec(), ..Use::default() }
}

/// A literal for a default.
pub(super) fn default_of(rng: &mut Rng, ty: Ty) -> String {
    if ty == BOOL { "false".to_owned() } else { literal(rng, ty) }
}
