//! The names that code can use: locals, the names of the function, and the names of the file.

use std::collections::BTreeMap;

use braid_ir::model::{EventArg, ParamId, QueueId, StateId, TagId, Ty, ValueId};
use rustc_hash::FxHashMap;

use super::arith::Const;
use super::build::Var;
use super::env::Constants;
use super::module::Module;
use crate::ast::{Expr, FnDef, Span};

/// The result of an expression.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// A constant. It may have no type until its context gives it one.
    Const(Const),
    /// A value of the program.
    Scalar(ValueId, Ty),
    /// Several named values.
    Record(Vec<(String, ValueId, Ty)>),
    /// A local whose value changes. A single value has one part without a name.
    Mutable(Vec<(String, Var, Ty)>),
    /// Text, for events.
    Text(EventArg),
    /// An expression with an error that is already reported.
    Wrong,
}

impl Value {
    /// The type of a single value. `Some(None)` for a number without a type, `None` for anything
    /// but a single value.
    pub fn scalar_ty(&self) -> Option<Option<Ty>> {
        match self {
            Value::Const(constant) => Some(constant.ty),
            Value::Scalar(_, ty) => Some(Some(*ty)),
            Value::Record(_) | Value::Mutable(_) | Value::Text(_) | Value::Wrong => None,
        }
    }

    /// Describes a value in words.
    pub fn describe(&self) -> &'static str {
        match self {
            Value::Const(_) | Value::Scalar(..) => "a single value",
            Value::Record(_) => "a record",
            Value::Mutable(_) => "a local",
            Value::Text(_) => "a text",
            Value::Wrong => "nothing",
        }
    }
}

/// The declaration that a name of the function refers to.
#[derive(Clone, Copy, Debug)]
pub enum Binding<'a> {
    Param(ParamId),
    State(StateId),
    Const(&'a Expr),
    Tag(TagId),
    Queue(QueueId),
    Fn(&'a FnDef),
}

/// The constants of the function and those of the file.
pub struct Consts<'a> {
    pub own: BTreeMap<String, &'a Expr>,
    pub file: &'a BTreeMap<String, &'a Expr>,
}

impl Constants for Consts<'_> {
    fn find(&self, name: &str) -> Option<&Expr> {
        self.own.get(name).or_else(|| self.file.get(name)).copied()
    }
}

/// The local names of a call, in nested blocks.
#[derive(Default)]
struct Frame {
    /// The nested blocks, with the innermost last.
    scopes: Vec<FxHashMap<String, Value>>,
    /// Whether the names of the network function are in scope. A function of the file does not see
    /// them.
    sees_nf: bool,
}

/// The names in scope.
pub struct Scope<'a> {
    module: &'a Module<'a>,
    names: BTreeMap<&'a str, Binding<'a>>,
    /// Where each name of the function is declared.
    places: BTreeMap<&'a str, Span>,
    pub consts: Consts<'a>,
    /// The calls that are being expanded, with the innermost last.
    frames: Vec<Frame>,
}

impl<'a> Scope<'a> {
    pub fn new(module: &'a Module<'a>) -> Self {
        Self {
            module,
            names: BTreeMap::new(),
            places: BTreeMap::new(),
            consts: Consts { own: BTreeMap::new(), file: &module.consts },
            frames: vec![Frame { scopes: vec![FxHashMap::default()], sees_nf: true }],
        }
    }

    /// Declares a name of the function.
    pub fn declare(&mut self, name: &'a str, binding: Binding<'a>) {
        if let Binding::Const(value) = binding {
            self.consts.own.insert(name.to_owned(), value);
        }
        self.names.insert(name, binding);
    }

    /// Remembers where the names of the function are declared.
    pub fn set_places(&mut self, places: BTreeMap<&'a str, Span>) {
        self.places = places;
    }

    /// Where a name of the function is declared.
    pub fn place(&self, name: &str) -> Option<Span> {
        self.places.get(name).copied()
    }

    /// Opens a block of names.
    pub fn open(&mut self) {
        self.frame().scopes.push(FxHashMap::default());
    }

    /// Closes the innermost block of names.
    pub fn close(&mut self) {
        self.frame().scopes.pop();
    }

    /// Enters a call of one of the program's functions, whose parameters have these values.
    pub fn enter(&mut self, def: &FnDef, params: FxHashMap<String, Value>) {
        let sees_nf = matches!(self.names.get(def.name.text.as_str()), Some(Binding::Fn(own))
            if std::ptr::eq(*own, def));
        self.frames.push(Frame { scopes: vec![params], sees_nf });
    }

    /// Enters an item of the file that has no parameters.
    pub fn enter_file(&mut self) {
        self.frames.push(Frame { scopes: vec![FxHashMap::default()], sees_nf: false });
    }

    /// Leaves the innermost call or item.
    pub fn leave(&mut self) {
        self.frames.pop();
    }

    /// Whether the names of the network function are in scope.
    fn sees_nf(&self) -> bool {
        self.frames.last().is_none_or(|frame| frame.sees_nf)
    }

    fn frame(&mut self) -> &mut Frame {
        if self.frames.is_empty() {
            self.frames.push(Frame::default());
        }
        let last = self.frames.len() - 1;
        &mut self.frames[last]
    }

    /// Binds a local.
    pub fn bind(&mut self, name: &str, value: Value) {
        let frame = self.frame();
        if frame.scopes.is_empty() {
            frame.scopes.push(FxHashMap::default());
        }
        if let Some(scope) = frame.scopes.last_mut() {
            scope.insert(name.to_owned(), value);
        }
    }

    /// The value of the local with this name.
    pub fn local(&self, name: &str) -> Option<&Value> {
        self.frames.last()?.scopes.iter().rev().find_map(|scope| scope.get(name))
    }

    /// The binding of a name of the function or the file. Locals are not considered.
    pub fn binding(&self, name: &str) -> Option<Binding<'a>> {
        if self.sees_nf()
            && let Some(found) = self.names.get(name)
        {
            return Some(*found);
        }
        if let Some(value) = self.module.consts.get(name) {
            return Some(Binding::Const(value));
        }
        self.module.fns.get(name).map(|def| Binding::Fn(def))
    }

    /// Whether a local, or a name of the function or the file, has this name.
    pub fn knows(&self, name: &str) -> bool {
        self.local(name).is_some() || self.binding(name).is_some()
    }

    /// Whether a local or a name of the function has this name.
    pub fn is_taken(&self, name: &str) -> bool {
        self.local(name).is_some() || self.names.contains_key(name) && self.sees_nf()
    }

    /// The program's own functions.
    pub fn functions(&self) -> impl Iterator<Item = &'a str> {
        let own = self.names.iter().filter(|(_, bound)| matches!(bound, Binding::Fn(_)));
        own.map(|(name, _)| *name).chain(self.module.fns.keys().copied())
    }

    /// All names in scope, for suggestions.
    pub fn names_in_sight(&self) -> Vec<String> {
        let locals = self
            .frames
            .last()
            .into_iter()
            .flat_map(|frame| frame.scopes.iter().flat_map(|scope| scope.keys().cloned()));
        let own = self.names.keys().map(|name| (*name).to_owned());
        let file = self.module.consts.keys().cloned();
        locals.chain(own).chain(file).collect()
    }
}
