//! The file-level names that a function sees: constants, functions, events.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use braid_ir::model::{Ancestor, EventDecl, EventTy, FLOW_EVENT, ParamTy, ROOT_EVENT};

use super::declared::{self, DeclaredHeader};
use super::env::{Constants, Loader};
use super::say::suggest;
use super::types::{self, Type};
use super::{built_in, say};
use crate::ast::{Const, EventDef, Expr, FnDef, Ident, Item, Nf, Path, Span, joined};
use crate::diag::{Diagnostic, Diagnostics, codes};

/// How deep events may extend each other.
const MAX_ANCESTORS: usize = 32;

/// The items of a file and of the files that it uses.
#[derive(Default)]
pub struct Module<'a> {
    /// Constants.
    pub consts: BTreeMap<String, &'a Expr>,
    /// The program's own functions.
    pub fns: BTreeMap<&'a str, &'a FnDef>,
    /// Items with syntax errors. A declaration that seems to be missing may be in one of them.
    damaged: Vec<Span>,
    /// Network functions, in order.
    pub nfs: Vec<&'a Nf>,
    /// The declared headers, each behind the one that it follows.
    pub headers: Vec<DeclaredHeader<'a>>,
    /// What loads operators from libraries.
    pub loader: Option<&'a dyn Loader>,
    events: BTreeMap<&'a str, &'a EventDef>,
    resolved: BTreeMap<&'a str, EventDecl>,
    /// Where the program's own functions are that were expanded.
    expanded: RefCell<BTreeSet<(u32, u32)>>,
    /// The declared headers that were tested.
    tested: RefCell<BTreeSet<usize>>,
}

impl Constants for BTreeMap<String, &Expr> {
    fn find(&self, name: &str) -> Option<&Expr> {
        self.get(name).copied()
    }
}

impl<'a> Module<'a> {
    /// Gathers the items. Reports names that are declared twice, and events with errors.
    pub fn new(
        items: impl Iterator<Item = &'a Item>,
        damaged: &[Span],
        diags: &mut Diagnostics,
    ) -> Self {
        let mut module = Self { damaged: damaged.to_vec(), ..Self::default() };
        let mut values: BTreeMap<&str, Span> = BTreeMap::new();
        let mut nfs: BTreeMap<&str, Span> = BTreeMap::new();
        let mut events: BTreeMap<&str, Span> = BTreeMap::new();
        let mut names: BTreeMap<&str, Span> = BTreeMap::new();
        let mut headers = Vec::new();
        for item in items {
            match item {
                Item::Const(Const { name, value, .. }) => {
                    if unique(&mut values, name, diags) {
                        module.consts.insert(name.text.clone(), value);
                    }
                }
                Item::Fn(def) => {
                    built_in::warn_if_hides(&def.name, diags);
                    if unique(&mut values, &def.name, diags) {
                        module.fns.insert(&def.name.text, def);
                    }
                }
                Item::Event(def) => {
                    if unique(&mut events, &def.name, diags) {
                        module.events.insert(&def.name.text, def);
                    }
                }
                Item::Header(def) => {
                    if unique(&mut names, &def.name, diags) {
                        headers.push(def);
                    }
                }
                Item::Nf(nf) => {
                    if unique(&mut nfs, &nf.name, diags) {
                        module.nfs.push(nf);
                    }
                }
                Item::Use { .. } | Item::Chain(_) => {}
            }
        }
        module.resolve_events(diags);
        module.headers = declared::resolve(&headers, diags);
        module
    }

    /// Whether the place is in an item with syntax errors.
    pub fn is_damaged(&self, span: Span) -> bool {
        self.damaged
            .iter()
            .any(|item| item.file == span.file && (item.start..item.end).contains(&span.start))
    }

    /// Remembers that a function was expanded, so that its body is checked.
    pub fn expanded(&self, def: &FnDef) {
        self.expanded.borrow_mut().insert((def.span.file, def.span.start));
    }

    /// Whether a function was expanded.
    pub fn is_expanded(&self, def: &FnDef) -> bool {
        self.expanded.borrow().contains(&(def.span.file, def.span.start))
    }

    /// The declared header with this name, by its number.
    pub fn header(&self, name: &str) -> Option<usize> {
        self.headers.iter().position(|header| header.def.name.text == name)
    }

    /// The declared header whose name a dotted name begins with, by its number.
    pub fn header_of(&self, path: &Path) -> Option<usize> {
        let name = joined(path);
        let begins = |header: &DeclaredHeader<'_>| {
            let rest = name.strip_prefix(header.def.name.text.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let headers = self.headers.iter().enumerate().filter(|(_, header)| begins(header));
        headers.max_by_key(|(_, header)| header.def.name.text.len()).map(|(number, _)| number)
    }

    /// The names of the declared headers.
    pub fn header_names(&self) -> impl Iterator<Item = &'a str> + Clone + use<'a, '_> {
        self.headers.iter().map(|header| header.def.name.text.as_str())
    }

    /// Remembers that a declared header was tested, so that its condition is checked.
    pub fn tested(&self, header: usize) {
        self.tested.borrow_mut().insert(header);
    }

    /// Whether a declared header was tested.
    pub fn is_tested(&self, header: usize) -> bool {
        self.tested.borrow().contains(&header)
    }

    fn resolve_events(&mut self, diags: &mut Diagnostics) {
        self.resolved.insert(FLOW_EVENT, EventDecl::of_flow());
        let names: Vec<&'a str> = self.events.keys().copied().collect();
        for name in names {
            if let Some(decl) = self.resolve_event(name, diags) {
                self.resolved.insert(name, decl);
            }
        }
    }

    fn resolve_event(&self, name: &'a str, diags: &mut Diagnostics) -> Option<EventDecl> {
        let mut line = vec![*self.events.get(name)?];
        if [ROOT_EVENT, FLOW_EVENT].contains(&name) {
            let span = line.first()?.name.span;
            let message = match name {
                ROOT_EVENT => format!("{ROOT_EVENT} is the root of all event types"),
                _ => format!("{FLOW_EVENT} is the type of events about flows"),
            };
            diags.push(Diagnostic::new(codes::DUPLICATE_NAME, message, span, "taken"));
            return None;
        }
        let (mut ancestors, mut fields) = (Vec::<Ancestor>::new(), Vec::new());
        while let Some(parent) = &line.last()?.parent {
            ancestors.push(Ancestor { name: parent.text.clone(), fields: 0 });
            if parent.text == ROOT_EVENT {
                break;
            }
            if parent.text == FLOW_EVENT {
                fields = EventDecl::of_flow().fields;
                ancestors.last_mut()?.fields = fields.len();
                break;
            }
            let Some(def) = self.events.get(parent.text.as_str()) else {
                diags.push(self.unknown_event(parent, diags));
                return None;
            };
            if def.name.text == name || line.len() > MAX_ANCESTORS {
                let first = line[0].parent.as_ref().unwrap_or(parent);
                let message = format!("`{name}` extends itself through `{}`", first.text);
                let at = first.span;
                diags.push(
                    Diagnostic::new(codes::EVENT_CYCLE, message, at, "leads back")
                        .help("let one of them extend `EVENT`"),
                );
                return None;
            }
            line.push(def);
        }
        if ancestors.last().is_none_or(|last| last.name != ROOT_EVENT) {
            ancestors.push(Ancestor { name: ROOT_EVENT.into(), fields: 0 });
        }
        let mut whole = true;
        for (at, def) in line.iter().enumerate().rev() {
            whole &= event_fields(def, &mut fields, diags);
            if let Some(ancestor) = at.checked_sub(1).and_then(|at| ancestors.get_mut(at)) {
                ancestor.fields = fields.len();
            }
        }
        whole.then(|| EventDecl { name: name.to_owned(), ancestors, fields })
    }

    /// The message for an event type that is not declared.
    pub fn unknown_event(&self, name: &Ident, diags: &Diagnostics) -> Diagnostic {
        let known = self.events.keys().copied().chain([ROOT_EVENT, FLOW_EVENT]);
        Diagnostic::new(
            codes::UNKNOWN_EVENT,
            format!("there is no event `{}`", name.text),
            name.span,
            "expected an event type",
        )
        .help_if(suggest(diags, &name.text, known))
    }

    /// The event type that a handler takes: a declared one, `FLOW`, or `EVENT` for all. `None`
    /// after an error, which is then reported.
    pub fn taken(&self, name: &Ident, diags: &mut Diagnostics) -> Option<EventDecl> {
        if name.text == ROOT_EVENT {
            let name = ROOT_EVENT.to_owned();
            return Some(EventDecl { name, ancestors: Vec::new(), fields: Vec::new() });
        }
        self.event(name, diags).cloned()
    }

    /// Whether the program declares a type of this name with other fields or another parent.
    pub fn declares_otherwise(&self, event: &EventDecl) -> bool {
        self.resolved.get(event.name.as_str()).is_some_and(|own| own != event)
    }

    /// The event type with this name. `None` after an error, which is then reported.
    pub fn event(&self, name: &Ident, diags: &mut Diagnostics) -> Option<&EventDecl> {
        let found = self.resolved.get(name.text.as_str());
        if found.is_none() && !self.events.contains_key(name.text.as_str()) {
            diags.push(self.unknown_event(name, diags));
        }
        found
    }
}

/// Records a name. Reports it when it was declared before.
pub fn unique<'a>(
    seen: &mut BTreeMap<&'a str, Span>,
    name: &'a Ident,
    diags: &mut Diagnostics,
) -> bool {
    if let Some(before) = seen.get(name.text.as_str()) {
        let message = format!("`{}` is declared twice", name.text);
        diags.push(
            Diagnostic::new(codes::DUPLICATE_NAME, message, name.span, "again here")
                .label(*before, "first here")
                .help("give one of them another name"),
        );
        return false;
    }
    seen.insert(&name.text, name.span);
    true
}

fn event_fields(
    def: &EventDef,
    fields: &mut Vec<(String, EventTy)>,
    diags: &mut Diagnostics,
) -> bool {
    let mut whole = true;
    for (name, written) in &def.fields {
        if fields.len() >= types::MAX_PARTS {
            let message = format!("an event has at most {} fields", types::MAX_PARTS);
            diags.push(Diagnostic::new(codes::BAD_TYPE, message, name.span, "one too many"));
            return false;
        }
        if fields.iter().any(|(known, _)| *known == name.text) {
            let message = format!("the event has two fields `{}`", name.text);
            diags.push(Diagnostic::new(codes::DUPLICATE_NAME, message, name.span, "again"));
            whole = false;
            continue;
        }
        let ty = match types::resolve(written, &|_| false, diags) {
            Some(Type::Scalar(ty)) => EventTy::Scalar(ty),
            Some(Type::Param(ParamTy::Str)) => EventTy::Str,
            Some(_) => {
                let found = "a type of several values";
                diags.push(
                    say::expected_type("a scalar type or string", found, written.span)
                        .note("events hold scalars and texts"),
                );
                whole = false;
                continue;
            }
            None => {
                whole = false;
                continue;
            }
        };
        fields.push((name.text.clone(), ty));
    }
    whole
}
