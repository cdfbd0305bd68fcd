//! The names in scope while an index is made.

use std::collections::HashMap;

use super::names::{Definition, Index, Kind};
use crate::ast::{Ident, Type};
use crate::source::{SourceMap, Span};

/// Names of one namespace, with the numbers of their declarations.
pub(super) type Names = HashMap<String, usize>;

/// What is known while the files of a program are walked.
pub(super) struct Walk<'a> {
    pub index: Index,
    pub sources: &'a SourceMap,
    /// Constants, functions and actions of the files.
    pub values: Names,
    pub events: Names,
    pub headers: Names,
    pub nfs: Names,
    /// The network function that is walked, and its names.
    pub nf: Option<usize>,
    pub own: Names,
    /// Local names in nested blocks, the innermost last, each with the end of its block.
    pub locals: Vec<(Names, Span)>,
    /// Parts of declarations: the owner, the name of the part.
    pub parts: HashMap<(usize, String), usize>,
    /// The declared ports of network functions. A parameter may have a port's name.
    pub ports: HashMap<(usize, String), usize>,
    /// The written types of declarations.
    pub types: HashMap<usize, Type>,
    /// The events that events extend.
    pub parents: HashMap<usize, String>,
    /// The event type whose handler is walked.
    pub taken: Option<usize>,
    pub is_library: bool,
}

impl<'a> Walk<'a> {
    pub fn new(sources: &'a SourceMap) -> Self {
        Self {
            index: Index::default(),
            sources,
            values: Names::new(),
            events: Names::new(),
            headers: Names::new(),
            nfs: Names::new(),
            nf: None,
            own: Names::new(),
            locals: Vec::new(),
            parts: HashMap::new(),
            ports: HashMap::new(),
            types: HashMap::new(),
            parents: HashMap::new(),
            taken: None,
            is_library: false,
        }
    }

    /// Adds a declaration and returns its number.
    pub fn define(&mut self, kind: Kind, name: &Ident, whole: Span, scope: Option<Span>) -> usize {
        self.index.definitions.push(Definition {
            kind,
            name: name.text.clone(),
            span: name.span,
            whole,
            scope,
            ty: None,
            owner: None,
            is_of_library: self.is_library,
        });
        self.index.definitions.len() - 1
    }

    /// Gives a declaration its written type.
    pub fn typed(&mut self, at: usize, ty: &Type) {
        let text = self.sources.slice(ty.span).split_whitespace().collect::<Vec<_>>().join(" ");
        if let Some(found) = self.index.definitions.get_mut(at) {
            found.ty = Some(text);
        }
        self.types.insert(at, ty.clone());
    }

    /// Makes a declaration a part of another one.
    pub fn part_of(&mut self, owner: usize, at: usize) {
        if let Some(found) = self.index.definitions.get_mut(at) {
            found.owner = Some(owner);
            let parts = if found.kind == Kind::Port { &mut self.ports } else { &mut self.parts };
            parts.entry((owner, found.name.clone())).or_insert(at);
        }
    }

    /// Uses a name.
    pub fn used(&mut self, name: &Ident, at: Option<usize>) {
        if let Some(at) = at {
            self.index.uses.push((name.span, at));
        }
    }

    /// Uses the name of a part.
    pub fn used_part(&mut self, owner: Option<usize>, name: &Ident) {
        let found = owner.and_then(|owner| self.parts.get(&(owner, name.text.clone())).copied());
        self.used(name, found);
    }

    /// Uses the name of a declared port.
    pub fn used_port(&mut self, nf: Option<usize>, name: &Ident) {
        let found = nf.and_then(|nf| self.ports.get(&(nf, name.text.clone())).copied());
        self.used(name, found);
    }

    /// The declaration of a value's name: of the innermost local, of the network function, or of
    /// the files.
    pub fn value(&self, name: &str) -> Option<usize> {
        let local = self.locals.iter().rev().find_map(|(names, _)| names.get(name));
        local.or_else(|| self.own.get(name)).or_else(|| self.values.get(name)).copied()
    }

    /// The declaration of a name of the network function with this kind.
    pub fn own(&self, name: &str) -> Option<usize> {
        self.own.get(name).copied()
    }

    /// Adds a local name, which can be used from its declaration to the end of its block.
    pub fn local(&mut self, kind: Kind, name: &Ident, whole: Span) -> usize {
        let end = self.locals.last().map_or(whole, |(_, block)| *block);
        let scope = Span { start: whole.start, ..end };
        let at = self.define(kind, name, whole, Some(scope));
        if let Some((names, _)) = self.locals.last_mut() {
            names.insert(name.text.clone(), at);
        }
        at
    }
}
